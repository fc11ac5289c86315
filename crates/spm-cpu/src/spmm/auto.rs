//! `auto` for SpMM: times the kernels that suit a matrix and a number of columns.

use std::hint::black_box;

use spm_formats::kernel::{KernelInfo, Value};
use spm_formats::{CsrSource, CsrView, DenseShape, Layout, Scalar, convert};

use super::blocked::bsr;
use super::{KERNEL, SpmmKernel, blocked, csr_serial, vector};
use crate::kernel::{Planned, Problem};
use crate::machine::Rates;
use crate::plan::{BoxedOwnPlan, Chosen};
use crate::race::{self, Caches, Clock, Monotonic, Race};
use crate::spmv;
use crate::spmv::bsr_rows::BLOCK;
use crate::workspace::Workspace;
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    source: "own",
    summary: "the fastest of serial and blocked kernels, found by timing them in planning",
    parameters: &[],
    ..KERNEL
};

/// Multiplications up to which the serial kernel is used, because the differences between kernels
/// are below the resolution of the clock.
const TINY: usize = 32;
/// The least share of a product's memory traffic that a candidate saves by the model: less is noise.
const SAVED: f64 = 0.03;
/// Times a near element that an element of X at a random place takes by the model where prefetching may pay.
const FAR: f64 = 2.0;
/// Bytes of X whose elements are near: from a second-level cache rows of X come in time without prefetching.
const NEAR: f64 = 65_536.0;
/// Entries, and blocks, whose rows of X are prefetched ahead, with rows of X of up to so many bytes and with
/// longer ones: the rows of about 8 KiB, which arrive in time and are not evicted again on both machines of
/// docs/tuning-log-cpu.md.
const SHORT_ROW: usize = 128;
const AHEAD_SHORT: usize = 96;
const AHEAD: usize = 32;
const AHEAD_BLOCKS: usize = 8;
/// Rows of another length than the one before, as a share of all, from which on sorting them may pay, and mean entries of
/// a row up to which it may: a mispredicted branch takes what some entries do.
const UNEVEN: f64 = 0.25;
const SORTED_ENTRIES: usize = 64;

/// Calls of a plan before it is compared: one that writes Y past the caches leaves none of it there, and the next
/// plan's first call puts it back.
const WARM_UP: usize = 2;
/// What the times of a plan that writes Y past the caches count beside others: the queues of the memory take what
/// some calls write, not what a long row of them does.
const BURST: f64 = 1.08;
/// Times of the better kind of stores up to which the other is tried with further forms of a matrix.
const CLOSE: f64 = 1.1;

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, dense, options, .. } = problem;
    plan_by(Monotonic::start(), Rates::of_races, a, dense, options)
}

/// The plan that is the fastest by `clock` of those that may be by `rates`; that of one column by the machine's.
fn plan_by<'a, T: Scalar>(
    clock: impl Clock,
    rates: impl FnOnce() -> Rates,
    source: CsrSource<'a, T>,
    dense: DenseShape,
    options: &PlanOptions,
) -> Planned<'a, T> {
    let a = source.view();
    let work = a.nnz().saturating_mul(dense.k);
    if work.max(a.rows() * dense.k) <= TINY {
        return Ok(csr_serial::chosen(source.clone(), dense));
    }
    if dense.k == 1 {
        return vector::plan(source.clone(), dense, spmv::auto(), &[], options);
    }
    // What is timed has an X and a Y of its own.
    let of_operands = (a.rows() + a.cols()) * dense.k * T::BYTES;
    if options.budget.check_bytes(INFO.id, of_operands as u128).is_err() {
        return Ok(csr_serial::chosen(source.clone(), dense));
    }
    let options = options.beside(of_operands as u64);
    // Any numbers that are not special.
    let x = Workspace::on(&options.threads, a.cols() * dense.k, |_| T::from_f64(0.75));
    let mut y = Workspace::on(&options.threads, a.rows() * dense.k, |_| T::ZERO);
    let mut run = |plan: &mut BoxedOwnPlan<'a, T>| {
        plan.run(black_box(&x), black_box(&mut y)).expect("matrices of the plan's shape");
    };
    let serial = csr_serial::serial(source.clone(), dense);
    let mut race = Race::new(clock, serial).with_warm_up(WARM_UP);
    let model = Model { traffic: Traffic::of(&a, dense), rates: rates() };
    let (mut threads, mut raced) = (options.threads.clone(), false);
    // Whether Y is written past the caches, where that is not far slower with the forms before.
    let mut stores = vec![false, true];
    for Form { kernel, set, ways } in forms(&a, dense, &model, threads.count()) {
        let with = |way: &[Set]| [&set[..], way].concat();
        let run_by = |plan: &mut BoxedOwnPlan<'a, T>, way: &[Set], threads: &Threads| {
            plan.run_by(&kernel.info.with(&with(way)), threads)
        };
        // Planned for all of its ways.
        let parameters = kernel.info.with(&with(ways.last().expect("one way at least")));
        let mut options = options.beside(race.held(|plan| plan.footprint().plan_bytes));
        options.threads = threads.clone();
        // One that takes too much memory is no candidate.
        let Ok(mut plan) = kernel.plan_product(source.clone(), dense, &parameters, &options) else {
            continue;
        };
        run_by(&mut plan, &[], &threads);
        race::settle(&threads);
        if !race.warm(&mut plan, &mut run) {
            continue;
        }
        // A plan keeps the number of its parts, whatever runs them.
        let mut of_plan = threads.clone();
        // The first one is for all where the number of threads is concerned.
        if !raced {
            let all = race.times(&mut plan, Caches::Warm, 1, |_, _| {}, &mut run)[0];
            let on = |plan: &mut BoxedOwnPlan<'a, T>, threads: &Threads| run_by(plan, &[], threads);
            let count = threads.count();
            let weight = |alone| race::weight(alone, model.on_threads(alone, count));
            (of_plan, _) = race.threads(&mut plan, (&threads, all), weight, on, &mut run);
            raced = true;
            if of_plan.working() == 1 {
                threads = Threads::new(1);
            }
        }
        let set = |plan: &mut BoxedOwnPlan<'a, T>, way: &[Set]| {
            run_by(plan, way, &of_plan);
        };
        let (seconds, weight, way) =
            fastest(&mut race, &mut plan, &ways, &mut stores, set, &mut run);
        let label = || kernel.info.label(&with(way).iter().copied().collect());
        race.keep_weighted(plan, (seconds, weight), || race::on(&label(), of_plan.working()));
    }
    Ok(match race.finish(&mut run) {
        Some((plan, choice)) => Box::new(Chosen { plan, dense, choice: Some(choice) }),
        None => csr_serial::chosen(source.clone(), dense),
    })
}

/// Makes a plan run in the fastest of its ways, and returns that with the seconds of a call and what they count. `stores` are the kinds
/// of stores to time; one that is far slower than the other is taken out.
fn fastest<'w, P>(
    race: &mut Race<P, impl Clock>,
    plan: &mut P,
    ways: &'w [Vec<Set>],
    stores: &mut Vec<bool>,
    set: impl Fn(&mut P, &[Set]),
    run: &mut impl FnMut(&mut P),
) -> (f64, f64, &'w [Set]) {
    let mut fastest = (f64::INFINITY, 1.0, &ways[0][..]);
    let mut of_stores = [f64::INFINITY; 2];
    // Each kind of stores by itself: what writes past the caches leaves none of Y there.
    for &streamed in &*stores {
        let ways: Vec<_> = ways.iter().filter(|way| way.contains(&STREAMED) == streamed).collect();
        let Some(first) = ways.first() else { continue };
        set(plan, first);
        let times =
            race.times(plan, Caches::Warm, ways.len(), |plan, way| set(plan, ways[way]), run);
        let weight = if streamed { BURST } else { 1.0 };
        for (way, seconds) in ways.into_iter().zip(times) {
            of_stores[usize::from(streamed)] = of_stores[usize::from(streamed)].min(seconds);
            if weight * seconds < fastest.0 * fastest.1 {
                fastest = (seconds, weight, way);
            }
        }
    }
    stores.retain(|&streamed| of_stores[usize::from(streamed)] <= CLOSE * fastest.0);
    set(plan, fastest.2);
    fastest
}

/// Bytes that a product moves.
#[derive(Debug, Clone, Copy)]
struct Traffic {
    columns: f64,
    values: f64,
    x: f64,
    y: f64,
}

impl Traffic {
    fn of<T: Scalar>(a: &CsrView<'_, T>, dense: DenseShape) -> Self {
        let bytes = |elements: usize, of_element: usize| elements as f64 * of_element as f64;
        Self {
            columns: bytes(a.nnz(), size_of::<u32>()),
            values: bytes(a.nnz(), T::BYTES),
            x: bytes(a.cols() * dense.k, T::BYTES),
            y: bytes(a.rows() * dense.k, T::BYTES),
        }
    }

    /// A store through the caches reads its line first.
    fn all(&self) -> f64 {
        self.columns + self.values + self.x + 2.0 * self.y
    }
}

/// What decides which candidates are timed.
struct Model {
    traffic: Traffic,
    rates: Rates,
}

impl Model {
    /// Bytes of the matrix, X and Y.
    fn bytes(&self) -> f64 {
        self.traffic.all() - self.traffic.y
    }

    /// Seconds of a product on `threads` threads that takes one thread `alone`: a thread has its share of
    /// the time, but all together read no faster than memory serves them.
    fn on_threads(&self, alone: f64, threads: usize) -> f64 {
        let read = |threads| self.rates.read(self.bytes(), threads);
        let share = (1.0 / threads as f64).max(read(1) / read(threads));
        self.rates.start(threads) + alone * share
    }

    /// Whether columns in 16 bits may pay: in the nearest caches reading is not the limit.
    fn narrow(&self, threads: usize) -> bool {
        let read = |bytes| self.rates.read(bytes, threads);
        let saved = self.traffic.columns / 2.0;
        saved >= SAVED * self.traffic.all() && read(self.bytes()) < (1.0 - SAVED) * read(0.0)
    }

    /// Whether rows of X are far from each other by the cache that holds them.
    fn prefetch(&self, threads: usize) -> bool {
        let gather = |bytes| self.rates.gather(bytes, threads);
        gather(self.traffic.x) >= FAR * gather(NEAR)
    }

    /// Whether a Y that is written past the caches may pay.
    fn stream(&self, threads: usize) -> bool {
        let saved = self.traffic.y;
        saved >= SAVED * self.traffic.all() && self.rates.write_past_caches(self.bytes(), threads)
    }
}

/// A kernel that may be the fastest, with its parameters, and the ways to run one plan of it: further parameters, none in the
/// first.
struct Form<T> {
    kernel: SpmmKernel<T>,
    set: Vec<Set>,
    ways: Vec<Vec<Set>>,
}

/// What is timed, the likeliest first.
fn forms<T: Scalar>(
    a: &CsrView<'_, T>,
    dense: DenseShape,
    model: &Model,
    threads: usize,
) -> Vec<Form<T>> {
    let on = Value::Switch(true);
    let (csr, bsr) =
        (SpmmKernel::new(blocked::INFO, blocked::plan), SpmmKernel::new(bsr::INFO, bsr::plan));
    let streamed = dense.layout == Layout::RowMajor && model.stream(threads);
    let far = model.prefetch(threads);
    let short = dense.k * T::BYTES <= SHORT_ROW;
    let ways = |ahead: Option<usize>| {
        let prefetched = ahead.filter(|_| far).map(|of| vec![("prefetch", Value::Count(of))]);
        let mut ways: Vec<_> = [vec![]].into_iter().chain(prefetched).collect();
        if streamed {
            let past = ways.iter().map(|way| [&way[..], &[STREAMED]].concat());
            ways.extend(past.collect::<Vec<_>>());
        }
        ways
    };
    let ahead = Some(if short { AHEAD_SHORT } else { AHEAD });
    let mut forms = vec![Form { kernel: csr, set: vec![], ways: ways(ahead) }];
    if short && rows_are_uneven(a) {
        forms.push(Form { kernel: csr, set: vec![("sorted", on)], ways: ways(ahead) });
    } else if model.narrow(threads) {
        // The columns ahead are those of another list.
        forms.push(Form { kernel: csr, set: vec![("narrow", on)], ways: ways(None) });
    }
    if let Some(blocks) = convert::detect_blocks(*a) {
        let set = vec![(BLOCK.name, Value::Count(blocks.size))];
        forms.push(Form { kernel: bsr, set, ways: ways(Some(AHEAD_BLOCKS)) });
    }
    forms
}

/// Whether rows are short and their lengths hard to predict.
fn rows_are_uneven<T: Scalar>(a: &CsrView<'_, T>) -> bool {
    let ends = a.row_ptr();
    let changes = ends.windows(3).filter(|of| of[2] - of[1] != of[1] - of[0]).count();
    changes as f64 >= UNEVEN * a.rows() as f64 && a.nnz() <= SORTED_ENTRIES * a.rows()
}

/// A parameter and its value.
type Set = (&'static str, Value);

/// Y is written past the caches.
const STREAMED: Set = ("stream", Value::Switch(true));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use spm_formats::convert;
    use spm_testing::exact::{self, Whole};
    use spm_testing::{generate, reference};

    use super::*;
    use crate::race::Dice;

    /// Rates of three threads that write fast.
    fn rates() -> Rates {
        let text = Rates::of_three_threads().to_string();
        let text = text.replace("write-one 8e9", "write-one 1.2e10");
        text.replace("write-all 8e9", "write-all 3.6e10").parse().unwrap()
    }

    /// Matrices and widths, with labels of kernels that must be among the winners.
    const CASES: [(&str, usize, Layout, &[&str]); 9] = [
        // Up to TINY multiplications, and above.
        ("diagonal[n=5]", 3, Layout::RowMajor, &["csr-serial"]),
        ("stencil5[n=6]", 3, Layout::RowMajor, &["csr-serial", "csr-blocked on 1 thread"]),
        ("stencil5[n=6]", 1, Layout::ColumnMajor, &["spmv csr-serial"]),
        // Threads start in time.
        (
            "stencil5[n=30]",
            4,
            Layout::ColumnMajor,
            &["csr-blocked on 3 threads", "csr-blocked on 1 thread"],
        ),
        // X and A are large, its rows are short, and of one length.
        (
            "stencil5[n=130]",
            8,
            Layout::RowMajor,
            &["csr-blocked[narrow=on] on", "csr-blocked[prefetch=96] on"],
        ),
        // They are of many lengths.
        (
            "uniform[rows=3000,cols=20000,entries=23000]",
            8,
            Layout::RowMajor,
            &["csr-blocked[sorted=on] on", "csr-blocked[sorted=on,prefetch=96"],
        ),
        // Its rows are long.
        (
            "uniform[rows=2000,cols=6000,entries=14000]",
            20,
            Layout::ColumnMajor,
            &["csr-blocked[prefetch=32] on 3 threads"],
        ),
        // Dense blocks, and a large X.
        (
            "mesh2[n=36,unknowns=3]",
            20,
            Layout::RowMajor,
            &["bsr-blocked[block=3] on", "bsr-blocked[block=3,prefetch=8"],
        ),
        // Y is large.
        (
            "uniform[rows=40000,cols=3000,entries=120000]",
            8,
            Layout::RowMajor,
            &["csr-blocked[stream=on]", "csr-blocked[sorted=on,stream=on]"],
        ),
    ];

    /// By a clock of chance every candidate wins a race of some seed; each is right.
    #[test]
    fn every_branch_gives_a_right_plan() {
        for (name, k, layout, labels) in CASES {
            let dense = DenseShape { k, layout };
            let pattern = generate::named(name).unwrap().generate::<f64>().unwrap();
            let coo = convert::csr_to_coo(pattern.view());
            let a = exact::matrix(&coo, Whole::Wide);
            let x = exact::vector(a.cols() * k);
            let (csr, expected) = (convert::coo_to_csr(&a), reference::spmm(&a, &x, dense));
            let mut missing: Vec<&str> = labels.to_vec();
            let mut choices = BTreeSet::new();
            for seed in 0..100 {
                for threads in [1, 3] {
                    let options = PlanOptions::with_threads(threads);
                    let (clock, source) = (Dice::near(seed), csr.view().into());
                    let plan = plan_by(clock, rates, source, dense, &options).unwrap();
                    let choice = plan.choice().unwrap();
                    missing.retain(|part| !choice.contains(part));
                    if choices.contains(&choice) {
                        continue;
                    }
                    let mut y = vec![f64::NAN; a.rows() * k];
                    plan.run(&x, &mut y).unwrap();
                    let difference = exact::difference(&y, &expected);
                    assert_eq!(difference, None, "{name}, {dense:?}, {choice}");
                    choices.insert(choice);
                }
                if missing.is_empty() {
                    break;
                }
            }
            assert!(missing.is_empty(), "{name}, {dense:?}: no {missing:?} in {choices:#?}");
        }
    }

    fn model(text: &str, [columns, values, x, y]: [f64; 4]) -> Model {
        Model { traffic: Traffic { columns, values, x, y }, rates: text.parse().unwrap() }
    }

    #[test]
    fn the_model_says_what_is_timed() {
        let text = rates().to_string();
        let of = |traffic| {
            let model = model(&text, traffic);
            [model.narrow(3), model.prefetch(3), model.stream(3)]
        };
        // In the nearest caches.
        assert_eq!(of([2e4, 4e4, 1e4, 1e3]), [false; 3]);
        // Half of the columns is 4 % of the traffic, or 2 %.
        assert_eq!(of([8e4, 1.6e5, 4e5, 1.8e5]), [true, false, false]);
        assert_eq!(of([4e4, 1.6e5, 4e5, 2e5]), [false; 3]);
        // X takes twice as long as in the nearest cache from half of the third size on.
        assert!(!of([1e4, 2e4, 4e5, 1e4])[1] && of([1e4, 2e4, 6e5, 1e4])[1]);
        // Y is 25 % of a traffic beyond the caches, or 2 %.
        assert!(of([1e4, 2e4, 5e7, 2.5e7])[2] && !of([1e4, 2e4, 5e7, 1e6])[2]);
        assert_eq!(model(&text, [0.0, 0.0, 5e7, 2.5e7]).bytes(), 7.5e7);
    }

    #[test]
    fn threads_share_what_memory_serves() {
        let text = Rates::of_three_threads().to_string();
        let start = 1e-5;
        let of = |text: &str, alone| {
            let seconds = model(text, [0.0, 0.0, 1e9, 0.0]).on_threads(alone, 3);
            ((seconds - start) / alone * 1e6).round() / 1e6
        };
        assert_eq!(of(&text, 3e-3), 0.333_333);
        // Together they read from memory twice as fast as one.
        let slow = text.replace("4.5e10 3e10", "4.5e10 2e10");
        assert_ne!(slow, text);
        assert_eq!(of(&slow, 3e-3), 0.5);
    }

    #[test]
    fn a_product_moves_each_array_once_and_reads_y_before_it_writes_it() {
        let a = generate::named("diagonal[n=10]").unwrap().generate::<f64>().unwrap();
        let traffic = Traffic::of(&a.view(), DenseShape { k: 4, layout: Layout::RowMajor });
        assert_eq!((traffic.columns, traffic.values), (40.0, 80.0));
        assert_eq!((traffic.x, traffic.y, traffic.all()), (320.0, 320.0, 1080.0));
    }
}
