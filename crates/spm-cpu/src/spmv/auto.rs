//! `auto` for SpMV: times the kernels that may be the fastest by the machine model.

use std::hint::black_box;
use std::ptr;

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, Value, split_label};
use spm_formats::{CsrSource, DenseShape, Scalar};

use super::predict::{self, OnThreads};
use super::{KERNEL, SpmvKernel, bsr_rows, csr_merge, csr_serial, sell_compact, sell_tiles};
use crate::kernel::{Planned, Problem};
use crate::machine::Rates;
use crate::plan::{BoxedOwnPlan, Chosen};
use crate::race::{self, Caches, Clock, First, Monotonic, Race};
use crate::simd::{GATHER, PREFETCH};
use crate::workspace::Workspace;
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    source: "own",
    summary: "the fastest of the kernels that suit the structure, found by timing them in planning",
    parameters: &[],
    ..KERNEL
};

/// Entries up to which the serial kernel is used, because the differences between kernels are below
/// the resolution of the clock.
const TINY: usize = 256;
/// How far the model may be wrong about two kernels: one that it says to take so many times as long is not
/// timed.
const FAR: f64 = 2.0;
/// Times the best one by the model up to which a conversion is near it.
const NEAR: f64 = 1.15;
/// How far the model may be wrong about planning.
const MOST_WRONG: f64 = 4.0;
/// Products that planning is expected to take at most, and seconds that it may take of products that are shorter. A fifth of
/// the 50 that it may take is left for what takes longer than expected. The fastest conversion by the model and what converts
/// nothing are timed anyway.
const PLANNING: f64 = 40.0;
/// Products that share planning in the order of the candidates. A plan that is raced for serves many more than its planning
/// takes; but what is slow to plan and hardly faster should not take the time of all others.
const SERVED: f64 = 10.0 * PLANNING;
const LEAST: f64 = 5e-3;

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    plan_by(Monotonic::start(), PLANNING, Rates::of_races, problem.a, problem.options)
}

/// The plan that is the fastest by `clock` of those that may be by `rates`, where planning may take so many
/// products.
fn plan_by<'a, T: Scalar>(
    clock: impl Clock,
    planning: f64,
    rates: impl FnOnce() -> Rates,
    source: CsrSource<'a, T>,
    options: &PlanOptions,
) -> Planned<'a, T> {
    let a = source.view();
    if a.nnz() <= TINY {
        return Ok(csr_serial::chosen(source.clone()));
    }
    // What is timed has an x and a y of its own; a task that counts stored elements sorts some rows.
    let operands = (a.rows() + a.cols()) * T::BYTES;
    let counted = predict::LARGEST_WINDOW.min(a.rows()) * size_of::<u32>();
    let tasks = rayon::current_num_threads().max(options.threads.count());
    let taken = operands + tasks * counted;
    if options.budget.check_bytes(INFO.id, taken as u128).is_err() {
        return Ok(csr_serial::chosen(source.clone()));
    }
    // Any numbers that are not special: between 0.5 and 1.
    let element = |j: usize| 0.5 + (j as f64 * 0.618_033_988_749_895).fract() / 2.0;
    let x = Workspace::on(&options.threads, a.cols(), |j| T::from_f64(element(j)));
    let mut y = Workspace::on(&options.threads, a.rows(), |_| T::ZERO);
    let mut run = |plan: &mut BoxedOwnPlan<'a, T>| {
        plan.run(black_box(&x), black_box(&mut y)).expect("vectors of the plan's shape");
    };
    let race = Race::new(clock, csr_serial::serial(source.clone()));
    let ways = predict::on_threads(&a, options.threads.count(), &rates());
    let race = race.expecting(ways[0].alone.seconds);
    let options = options.beside(taken as u64);
    let mut course = Course { source: source.clone(), options, race, planned: 0.0, predicted: 0.0 };
    let candidates = candidates(&ways);
    let mut last = None;
    for candidate in &candidates {
        let cost = course.cost(candidate.cost);
        let race = &mut course.race;
        let mut is_affordable =
            || race.spent() + cost + race.remaining() < LEAST.max(planning * race.best());
        if !candidate.is_optional || is_affordable() {
            last = course.enter(candidate, last.as_ref(), &mut run);
        }
    }
    // Where no thread pool is faster than the serial kernel, something holds its cores.
    let first = &candidates[0];
    if first.on != On::Caller && course.race.serial_leads(&mut run) {
        course.enter(&Candidate { on: On::Caller, ..first.clone() }, None, &mut run);
    }
    Ok(match course.race.finish(&mut run) {
        Some((plan, choice)) => {
            Box::new(Chosen { plan, dense: DenseShape::VECTOR, choice: Some(choice) })
        }
        None => csr_serial::chosen(source.clone()),
    })
}

/// The threads that a candidate is timed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    /// One thread.
    Caller,
    /// The thread pool.
    All,
    /// The thread pool and one thread.
    Both,
}

/// A kernel that may be the fastest, with its parameters.
#[derive(Debug, Clone)]
struct Candidate<T> {
    kernel: SpmvKernel<T>,
    parameters: Parameters,
    on: On,
    /// Seconds of a product by the model, on all threads or on one.
    expected: f64,
    /// What a time on one thread counts beside one on all.
    weight: f64,
    /// What planning and timing it takes.
    cost: Cost,
    /// Whether it is left out where that is too long.
    is_optional: bool,
    /// Whether it reads the arrays of the candidate before, and is timed only in the way that was the fastest of
    /// that one.
    follows: bool,
}

/// The parameters that plans may change without being made again.
const CHANGED: [&ParameterSpec; 2] = [&GATHER, &PREFETCH];

/// Seconds by the model.
#[derive(Debug, Clone, Copy)]
struct Cost {
    planning: f64,
    timing: f64,
}

impl Cost {
    /// Of a conversion that is timed in each of its ways.
    fn of(way: &OnThreads) -> Self {
        let (id, _) = split_label(&way.alone.label);
        let kernel = super::find::<f64>(id).expect("the model knows registered kernels");
        let has =
            |of: &&ParameterSpec| kernel.info.parameters.iter().any(|own| own.name == of.name);
        let changes = CHANGED.iter().copied().filter(has).map(|of| of.studied.len() - 1);
        let timing = race::trial(way.seconds(), 1 + changes.sum::<usize>());
        Self { planning: way.all.planning, timing }
    }

    fn all(self) -> f64 {
        self.planning + self.timing
    }
}

/// The fastest way to run a candidate.
struct Fastest {
    parameters: Parameters,
    on: On,
    /// What it is, for its user.
    choice: String,
}

impl<T: Scalar> Candidate<T> {
    fn new(way: &OnThreads) -> Self {
        let (id, text) = split_label(&way.alone.label);
        let kernel = super::find::<T>(id).expect("the model knows registered kernels");
        let parameters = kernel.info.parse_parameters(text).expect("parameters of the kernel");
        let (alone, all) = (way.alone.seconds, way.all.seconds);
        let on = match () {
            () if way.all.threads == 1 || alone * FAR < all => On::Caller,
            () if all * FAR < alone => On::All,
            () => On::Both,
        };
        let weight = race::weight(alone, all);
        let (expected, cost) = (way.seconds(), Cost::of(way));
        let (is_optional, follows) = (false, false);
        Self { kernel, parameters, on, expected, weight, cost, is_optional, follows }
    }

    /// The ways to run it besides the first one, each of which changes one parameter.
    fn changes(&self) -> impl Iterator<Item = Change> {
        CHANGED.into_iter().flat_map(|of| {
            let now = self.parameters.get(of.name);
            let others =
                now.map(|now| of.studied.iter().copied().filter(move |&value| value != now));
            others.into_iter().flatten().map(|value| (of.name, value))
        })
    }
}

/// A parameter that a plan may change without being made again, and its value.
type Change = (&'static str, Value);

/// The candidates: the fastest conversion by the model, what converts nothing, and other conversions that
/// may be as fast.
fn candidates<T: Scalar>(ways: &[OnThreads]) -> Vec<Candidate<T>> {
    let direct = Candidate::new(&ways[0]);
    let kernel = SpmvKernel::new(csr_merge::INFO, csr_merge::plan);
    let parameters = kernel.info.defaults();
    let merge = Candidate { kernel, parameters, follows: true, ..direct };
    let mut converted = entrants(ways).into_iter().map(Candidate::new);
    let first = converted.next();
    let rest = converted.map(|of| Candidate { is_optional: true, ..of });
    first.into_iter().chain([direct, merge]).chain(rest).collect()
}

/// The conversions that may be the fastest: first those that are near the best one by the model, last those that take far
/// too long, each group in the order of what the model says of a product and its share of planning. `ways` begins with the
/// one straight from CSR.
///
/// Tiles and the fastest chunks of whole rows count as near each other: they differ in how they wait for an x that is far, of which
/// the model knows least. Blocks come before all that are near: the model knows one stream of equal blocks best, and says too little of
/// lists that rows share, whose values are read as several streams.
fn entrants(ways: &[OnThreads]) -> Vec<&OnThreads> {
    let best = best(ways);
    let fastest = |id: &str| {
        let of_kernel = ways.iter().filter(|way| split_label(&way.alone.label).0 == id);
        of_kernel.min_by(|a, b| a.seconds().total_cmp(&b.seconds()))
    };
    let tiles = fastest(sell_tiles::INFO.id);
    let chunks = tiles.and_then(|_| fastest(sell_compact::INFO.id));
    let is_either =
        |way: &OnThreads| [tiles, chunks].into_iter().flatten().any(|of| ptr::eq(of, way));
    let has_blocks = |way: &OnThreads| split_label(&way.alone.label).0 == bsr_rows::INFO.id;
    let mut entrants: Vec<_> = ways[1..].iter().filter(|way| way.seconds() < FAR * best).collect();
    let share = |way: &OnThreads| way.seconds() + way.all.planning / SERVED;
    let group = |way: &OnThreads| match () {
        () if way.all.planning > FAR * LEAST.max(PLANNING * best) => 3,
        () if way.seconds() < NEAR * best && has_blocks(way) => 0,
        () if way.seconds() < NEAR * best || is_either(way) => 1,
        () => 2,
    };
    entrants.sort_by(|a, b| group(a).cmp(&group(b)).then_with(|| share(a).total_cmp(&share(b))));
    entrants
}

/// Seconds of a product in the fastest of `ways` by the model.
fn best(ways: &[OnThreads]) -> f64 {
    ways.iter().map(OnThreads::seconds).fold(f64::INFINITY, f64::min)
}

/// Seconds of the race between `ways`, the first of which is straight from CSR.
pub(super) fn predicted_race(ways: &[OnThreads]) -> f64 {
    let (direct, best) = (&ways[0], best(ways));
    let straight = race::trial(direct.seconds(), 3) + race::last(best, direct.alone.seconds, 2);
    let mut costs = entrants(ways).into_iter().map(|way| Cost::of(way).all());
    let mut race = straight + costs.next().unwrap_or(0.0);
    for cost in costs {
        race += if race + cost < LEAST.max(PLANNING * best) { cost } else { 0.0 };
    }
    race
}

/// A race, and what its candidates are planned with.
struct Course<'a, T, C> {
    source: CsrSource<'a, T>,
    options: PlanOptions,
    race: Race<BoxedOwnPlan<'a, T>, C>,
    /// Seconds that conversions have taken so far, and those that the model has said.
    planned: f64,
    predicted: f64,
}

impl<'a, T: Scalar, C: Clock> Course<'a, T, C> {
    /// Seconds of planning and timing a candidate, where the model is as wrong about planning as it has been so far: what new
    /// memory takes changes with what else the machine does.
    fn cost(&self, cost: Cost) -> f64 {
        let wrong = if self.predicted > 0.0 { self.planned / self.predicted } else { 1.0 };
        wrong.clamp(1.0 / MOST_WRONG, MOST_WRONG) * cost.planning + cost.timing
    }

    /// Plans a candidate and times it in each way; returns the fastest, `before` being that of the candidate before.
    /// What planning has made serves all of them.
    fn enter(
        &mut self,
        candidate: &Candidate<T>,
        before: Option<&Fastest>,
        run: &mut impl FnMut(&mut BoxedOwnPlan<'a, T>),
    ) -> Option<Fastest> {
        let Candidate { kernel, weight, .. } = candidate;
        let before = before.filter(|_| candidate.follows);
        let (parameters, on) =
            before.map_or((&candidate.parameters, candidate.on), |of| (&of.parameters, of.on));
        // A conversion has just read CSR.
        let is_read = candidate.cost.planning == 0.0 && self.planned > 0.0;
        let caches = if before.is_some() || is_read { Caches::Warm } else { Caches::Cold };
        let is_expected_far = self.race.is_expected_far(candidate.expected);
        let first = First { caches, is_expected_far };
        let mut options = self.options.beside(self.race.held(|plan| plan.footprint().plan_bytes));
        if on == On::Caller {
            options.threads = Threads::new(1);
        }
        let begin = (candidate.cost.planning > 0.0).then(|| self.race.spent());
        // One that refuses the matrix is no candidate.
        let Ok(mut plan) =
            kernel.plan_product(self.source.clone(), DenseShape::VECTOR, parameters, &options)
        else {
            return None;
        };
        if let Some(begin) = begin {
            self.planned += self.race.spent() - begin;
            self.predicted += candidate.cost.planning;
        }
        race::settle(&options.threads);
        let changed = |of: &Parameters, (name, value): Change| of.clone().with(name, value);
        let changes: Vec<_> = candidate
            .changes()
            .filter(|_| before.is_none())
            .filter(|&change| plan.run_by(&changed(parameters, change), &options.threads))
            .collect();
        let mut ways = vec![parameters.clone()];
        ways.extend(changes.iter().map(|&change| changed(parameters, change)));
        let set = |plan: &mut BoxedOwnPlan<'a, T>, way: usize| {
            plan.run_by(&ways[way], &options.threads);
        };
        let times = self.race.times(&mut plan, first, ways.len(), set, run);
        let (best, mut seconds) = fastest(&times);
        let mut way = ways.swap_remove(best);
        // What has helped by itself, together.
        let helped = changes.iter().zip(&times[1..]).filter(|(_, of)| **of < times[0]);
        if helped.clone().count() > 1 {
            let together =
                helped.fold(parameters.clone(), |way, (&change, _)| changed(&way, change));
            plan.run_by(&together, &options.threads);
            let time = self.race.times(&mut plan, Caches::Warm, 1, |_, _| {}, run)[0];
            if time < seconds {
                (way, seconds) = (together, time);
            }
        }
        let mut threads = options.threads;
        plan.run_by(&way, &threads);
        // What is slow on all threads will not win on one.
        if on == On::Both && !self.race.is_slow(seconds) {
            let on = |plan: &mut BoxedOwnPlan<'a, T>, threads: &Threads| plan.run_by(&way, threads);
            let all = (&threads, seconds);
            (threads, seconds) = self.race.threads(&mut plan, all, |_| *weight, on, run);
        }
        let choice = race::on(&kernel.info.label(&way), threads.working());
        match before {
            Some(before) => self.race.keep_beside(plan, seconds, choice.clone(), &before.choice),
            None => self.race.keep(plan, seconds, || choice.clone()),
        }
        let on = if threads.working() == 1 { On::Caller } else { On::All };
        Some(Fastest { parameters: way, on, choice })
    }
}

/// Which time is the least, and that time.
fn fastest(times: &[f64]) -> (usize, f64) {
    let least = times.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    least.expect("a first way")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use spm_formats::{Csr, convert};
    use spm_testing::exact::{self, Whole};
    use spm_testing::{generate, reference};

    use super::*;
    use crate::race::Dice;
    use crate::spmv::predict::Prediction;

    /// Matrices, with what must be among the choices.
    const MATRICES: [(&str, &[&str]); 7] = [
        // Up to TINY entries, and just above.
        ("uniform[rows=100,cols=50,entries=256]", &["csr-serial"]),
        (
            "uniform[rows=100,cols=50,entries=257]",
            &["csr-serial", "csr-nnz-balanced", "csr-merge", "gather=scalar", "on 1 thread"],
        ),
        // Rows that repeat the one before, shifted by one.
        (
            "stencil27[n=12]",
            &[
                "sell-compact[sigma=1,",
                "csr-nnz-balanced[simd=on,prefetch=on]",
                "gather=vector",
                "prefetch=on",
                "on 3 threads",
            ],
        ),
        // Three unknowns a node.
        ("blocks[n=10,block=3]", &["bsr-rows[block=3,", "csr-compact"]),
        // Rows that sorting makes equally long.
        (
            "powerlaw[rows=20000,cols=20000,entries=100000,longest=3000]",
            &["sell-compact[sigma=4096,", "on 1 thread", "on 3 threads"],
        ),
        // Long reaches over a large x.
        (
            "uniform[rows=20000,cols=140000,entries=280000]",
            &["sell-tiles", "sell-compact[sigma=256,", "prefetch=on", "on 3 threads"],
        ),
        // Hardly any row has entries.
        ("uniform[rows=9000,cols=5000,entries=700]", &["dcsr-rows on 1 thread", "csr-merge"]),
    ];

    /// By a clock of chance every candidate wins a race of some seed, and every way to run it; each is right.
    #[test]
    fn every_branch_gives_a_right_plan() {
        for (name, expected) in MATRICES {
            let pattern = generate::named(name).unwrap().generate::<f64>().unwrap();
            let a = exact::matrix(&convert::csr_to_coo(pattern.view()), Whole::Wide);
            let x = exact::vector(a.cols());
            let (csr, right) = (convert::coo_to_csr(&a), reference::spmv(&a, &x));
            let mut missing: Vec<&str> = expected.to_vec();
            let mut choices = BTreeSet::new();
            for seed in 0..1000 {
                for threads in [1, 3] {
                    let (source, options) = (csr.view().into(), PlanOptions::with_threads(threads));
                    // Other ways are looked at where the first one is not slow.
                    let dice = if seed % 2 == 0 { Dice::new(seed) } else { Dice::near(seed) };
                    let plan =
                        plan_by(dice, f64::INFINITY, Rates::of_three_threads, source, &options);
                    let plan = plan.unwrap();
                    let choice = plan.choice().unwrap();
                    let mut y = vec![f64::NAN; a.rows()];
                    plan.run(&x, &mut y).unwrap();
                    assert_eq!(exact::difference(&y, &right), None, "{name}, {choice}");
                    missing.retain(|part| !choice.contains(part));
                    choices.insert(choice);
                }
                if missing.is_empty() {
                    break;
                }
            }
            assert!(missing.is_empty(), "{name}: no {missing:?} in {choices:#?}");
        }
    }

    fn matrix(name: &str) -> Csr<f64> {
        generate::named(name).unwrap().generate().unwrap()
    }

    /// The candidates on three threads.
    fn of_three(a: &Csr<f64>, rates: &Rates) -> Vec<Candidate<f64>> {
        candidates(&predict::on_threads(&a.view(), 3, rates))
    }

    #[test]
    fn the_model_says_what_is_timed() {
        let of = |name: &str, rates: &str| -> Vec<_> {
            let candidates = of_three(&matrix(name), &rates.parse().unwrap());
            candidates.into_iter().map(|of| (split_label(of.kernel.info.id).0, of.on)).collect()
        };
        let text = Rates::of_three_threads().to_string();
        let change = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        };
        let ids = |of: &[(&'static str, On)]| of.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        // What converts nothing is always there, behind the fastest conversion.
        let usual = of("uniform[rows=20000,cols=20000,entries=280000]", &text);
        assert_eq!(ids(&usual)[..3], ["sell-compact", "csr-nnz-balanced", "csr-merge"]);
        assert!(usual.len() > 3 && usual.iter().all(|(_, on)| *on == On::All), "{usual:?}");
        // Conversions whose products take far longer: none.
        let fast = change("\nsell", "\nsell").replace(" 2e-10 4e-10", " 2e-7 4e-10");
        let fast = fast
            .replace(" 4e-10 1e-5 1e-8 5e-9", " 4e-7 1e-5 1e-8 5e-9")
            .replace(" 3e-10 4e-10", " 3e-7 4e-10");
        let few = of("uniform[rows=20000,cols=20000,entries=280000]", &fast);
        assert_eq!(ids(&few), ["csr-nnz-balanced", "csr-merge"]);
        // Threads that start late, and threads that may just be worth it.
        let on = |start: &str| of("stencil5[n=90]", &change("start 1e-5", start));
        assert!(on("start 1e0").iter().all(|(_, on)| *on == On::Caller));
        assert!(on("start 1e-5").iter().any(|(_, on)| *on == On::Both), "{:?}", on("start 1e-5"));
    }

    /// A conversion beyond the first one must not take too long, by the model and the products so far.
    #[test]
    fn planning_is_limited() {
        let a = matrix("uniform[rows=20000,cols=20000,entries=280000]");
        let rates = Rates::of_three_threads();
        let candidates = of_three(&a, &rates);
        assert_eq!(candidates.iter().filter(|of| !of.is_optional).count(), 3);
        assert!(candidates.len() > 3 && candidates[3..].iter().all(|of| of.cost.planning > 0.0));
        // The same is predicted: of a small matrix all conversions, of a large one the first where they take
        // long.
        let converted = |name: &str, rates: &Rates| {
            let ways = predict::on_threads(&matrix(name).view(), 3, rates);
            let straight = race::trial(ways[0].seconds(), 3)
                + race::last(best(&ways), ways[0].alone.seconds, 2);
            let costs: Vec<f64> =
                entrants(&ways).into_iter().map(|way| Cost::of(way).all()).collect();
            (predicted_race(&ways) - straight, costs)
        };
        let (race, costs) = converted("uniform[rows=2000,cols=2000,entries=20000]", &rates);
        assert!(costs.len() > 1 && (race / costs.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let slow = rates.to_string().replace("fresh 2e9", "fresh 1e6").parse().unwrap();
        let (race, costs) = converted("uniform[rows=20000,cols=20000,entries=280000]", &slow);
        assert!(costs.len() > 1 && (race / costs[0] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn conversions_so_far_tell_what_others_take() {
        let a = matrix("stencil5[n=9]");
        let race = Race::new(Monotonic::start(), csr_serial::serial(a.view().into()));
        let options = PlanOptions::with_threads(1);
        let mut course =
            Course { source: a.view().into(), options, race, planned: 0.0, predicted: 0.0 };
        let mut cost = |planned, predicted| {
            (course.planned, course.predicted) = (planned, predicted);
            course.cost(Cost { planning: 8.0, timing: 1.0 })
        };
        assert_eq!([cost(0.0, 0.0), cost(3.0, 2.0), cost(2.0, 3.0)], [9.0, 13.0, 1.0 + 16.0 / 3.0]);
        // Something has disturbed one of them.
        assert_eq!([cost(90.0, 2.0), cost(1.0, 90.0)], [33.0, 3.0]);
    }

    /// A way by what the model says of a product and of planning.
    fn way(label: &str, seconds: f64, planning: f64) -> OnThreads {
        let label = label.to_owned();
        let of = Prediction { label, threads: 1, seconds, planning, bytes: 0.0 };
        OnThreads { alone: of.clone(), all: of }
    }

    fn order(ways: &[OnThreads]) -> Vec<&str> {
        entrants(ways).into_iter().map(|way| way.all.label.as_str()).collect()
    }

    /// Whatever the model says of others in between.
    #[test]
    fn tiles_and_the_fastest_chunks_of_whole_rows_are_near_each_other() {
        let others = || [way("csr", 10e-3, 0.0), way("csr-compact", 6.5e-3, 1e-3)];
        let chunks = || {
            [
                way("sell-compact[sigma=1]", 7.6e-3, 1e-3),
                way("sell-compact[sigma=256]", 7.2e-3, 2e-3),
            ]
        };
        let near =
            ["sell-tiles", "sell-compact[sigma=256]", "csr-compact", "sell-compact[sigma=1]"];
        let tiles = |seconds| [way("sell-tiles", seconds, 0.01)];
        let ways: Vec<_> = others().into_iter().chain(chunks()).chain(tiles(5e-3)).collect();
        assert_eq!(order(&ways), near);
        // Without tiles, and with tiles that take far too long.
        let ways: Vec<_> = others().into_iter().chain(chunks()).collect();
        assert_eq!(order(&ways)[0], "csr-compact");
        let ways: Vec<_> = others().into_iter().chain(chunks()).chain(tiles(14e-3)).collect();
        assert_eq!(order(&ways).len(), 3);
    }

    #[test]
    fn conversions_that_are_near_come_in_the_order_of_what_they_take() {
        // 4 % less for a product, 3.5 times as much for planning.
        let ways = [way("csr", 10e-3, 0.0), way("tiles", 6.9e-3, 0.21), way("sell", 7.2e-3, 0.06)];
        assert_eq!(order(&ways), ["sell", "tiles"]);
        let ways = [way("csr", 10e-3, 0.0), way("sell", 7.2e-3, 0.06), way("tiles", 6.0e-3, 0.09)];
        assert_eq!(order(&ways), ["tiles", "sell"]);
        // Unless it takes more than twice as long as all of planning may.
        let ways = [way("csr", 10e-3, 0.0), way("sell", 7.2e-3, 0.06), way("tiles", 6.0e-3, 0.47)];
        assert_eq!(order(&ways), ["tiles", "sell"]);
        let ways = [way("csr", 10e-3, 0.0), way("sell", 7.2e-3, 0.06), way("tiles", 6.0e-3, 0.49)];
        assert_eq!(order(&ways), ["sell", "tiles"]);
    }

    #[test]
    fn blocks_come_before_others_that_are_near() {
        let lists = || way("csr-compact", 6.0e-3, 1e-3);
        let others = || [way("csr", 10e-3, 0.0), lists(), way("sell-compact", 6.5e-3, 0.02)];
        let blocks = |seconds, planning| [way("bsr-rows[block=4]", seconds, planning)];
        let order = |of: [OnThreads; 1]| {
            let ways: Vec<_> = others().into_iter().chain(of).collect();
            order(&ways).first().map(|label| (*label).to_owned())
        };
        assert_eq!(order(blocks(6.8e-3, 0.1)).as_deref(), Some("bsr-rows[block=4]"));
        // Unless they are not near, or take too long to make.
        assert_eq!(order(blocks(7.0e-3, 0.1)).as_deref(), Some("csr-compact"));
        assert_eq!(order(blocks(6.8e-3, 0.5)).as_deref(), Some("csr-compact"));
    }

    /// A clock that goes on by a duration for so many looks, then by the next one.
    struct Steps(Vec<(usize, f64)>, f64);

    impl Clock for Steps {
        fn seconds(&mut self) -> f64 {
            let (looks, duration) = self.0.iter_mut().find(|(looks, _)| *looks > 0).unwrap();
            *looks -= 1;
            self.1 += *duration;
            self.1
        }
    }

    /// Where the whole thread pool is slower than the serial kernel, one thread is tried.
    #[test]
    fn a_thread_pool_that_loses_leaves_one_thread() {
        let a = matrix("uniform[rows=9000,cols=9000,entries=270000]");
        let rates = Rates::of_three_threads();
        let candidates = of_three(&a, &rates);
        assert!(candidates.iter().all(|of| of.on == On::All), "{candidates:?}");
        // A look to begin with, and two at planning the first one. Of the first three candidates two looks for each call, which is too slow to be
        // timed with others: one, and three in each way, of which the third has but that of the second; and of each
        // other candidate one for the time so far.
        let ways = |of: &Candidate<f64>| if of.follows { 1 } else { 1 + of.changes().count() };
        let looks = 3 + candidates[..3].iter().map(|of| 2 * (1 + 3 * ways(of))).sum::<usize>();
        let steps = vec![(looks + candidates.len() - 3, 1.0), (8, 1e-3), (usize::MAX, 1e-5)];
        let options = PlanOptions::with_threads(3);
        let plan = plan_by(Steps(steps, 0.0), 0.0, || rates, a.view().into(), &options).unwrap();
        let choice = plan.choice().unwrap();
        assert!(choice.ends_with("on 1 thread"), "{choice}");
    }
}
