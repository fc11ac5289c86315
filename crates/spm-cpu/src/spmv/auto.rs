//! `auto` for SpMV: chooses a few candidate kernels by the structure of the matrix and times them.

use std::hint::black_box;

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, Value};
use spm_formats::{ByField, CsrSource, CsrView, DenseShape, RealScalar, Scalar, convert, stats};

use super::bsr_rows::BLOCK;
use super::dictionary::needs_lookup;
use super::sell_compact::{CODES, SIGMA};
use super::{
    BoxedPlan, KERNEL, SpmvKernel, bsr_rows, csr_compact, csr_merge, csr_nnz_balanced, csr_serial,
    sell_compact, sell_symmetric, sell_tiles,
};
use crate::kernel::{Planned, Problem};
use crate::plan::Chosen;
use crate::race::{self, Clock, Monotonic, Race};
use crate::simd::{GATHER, LANES, PREFETCH};
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
/// Entries up to which waking other threads may cost more time than they save.
const SMALL: usize = 1 << 18;
/// Number of rows that are read to estimate the structure.
const SAMPLE: usize = 512;
/// Rows of the largest window that rows are sorted in.
const LARGEST_WINDOW: usize = 4096;
/// Bytes of x from which on it competes with the matrix for the second-level cache.
const LARGE_X: usize = 1 << 20;

/// Bytes of values from which prefetching them may pay: more than a second-level cache holds.
const LARGE_A: usize = 1 << 20;

/// The ways to load elements of x.
const FETCH: [Value; 2] = [Value::Choice("vector"), Value::Choice("scalar")];

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    plan_by(Monotonic::start(), problem.a, problem.options)
}

/// The plan that is the fastest by `clock`.
fn plan_by<'a, T: Scalar>(
    clock: impl Clock,
    source: CsrSource<'a, T>,
    options: &PlanOptions,
) -> Planned<'a, T> {
    let a = source.view();
    if a.nnz() <= TINY {
        return Ok(csr_serial::chosen(source.clone()));
    }
    // What is timed has an x and a y of its own; a task that counts stored elements sorts some rows.
    let operands = (a.rows() + a.cols()) * T::BYTES;
    let counted = LARGEST_WINDOW.min(a.rows()) * size_of::<u32>();
    let taken = operands + rayon::current_num_threads() * counted;
    if options.budget.check_bytes(INFO.id, taken as u128).is_err() {
        return Ok(csr_serial::chosen(source.clone()));
    }
    let options = &options.beside(taken as u64);
    // Any numbers that are not special: between 0.5 and 1.
    let element = |j: usize| 0.5 + (j as f64 * 0.618_033_988_749_895).fract() / 2.0;
    let x: Vec<T> = (0..a.cols()).map(|j| T::from_f64(element(j))).collect();
    let mut y = vec![T::ZERO; a.rows()];
    let mut run = |plan: &mut BoxedPlan<'a, T>| {
        plan.run(black_box(&x), black_box(&mut y)).expect("vectors of the plan's shape");
    };
    let serial = csr_serial::serial(source.clone());
    let mut race = Race::new(clock, serial, &mut run);
    let mut best: Option<Entrant<T>> = None;
    let mut enter = |entrant: Entrant<T>, best: &mut Option<Entrant<T>>| {
        let Entrant { kernel, parameters, threads } = &entrant;
        let held = race.held(|plan| plan.footprint().plan_bytes);
        let options = PlanOptions { threads: threads.clone(), ..options.beside(held) };
        // One that refuses the matrix is no candidate.
        let Ok(plan) = kernel.plan(source.clone(), parameters, &options) else { return };
        let choice = || race::on(&kernel.info.label(parameters), threads);
        if race.enter(plan, choice, &mut run) {
            *best = Some(entrant);
        }
    };
    let mut pools = vec![options.threads.clone()];
    if options.threads.count() > 1 && a.nnz() <= SMALL {
        pools.push(Threads::new(1));
    }
    let candidates = candidates(&a);
    // How x is fetched best hardly depends on the format: the first candidate finds out.
    let mut fetch = FETCH.to_vec();
    for (kernel, set) in &candidates {
        for &way in &fetch[..if gathers(kernel) { fetch.len() } else { 1 }] {
            for threads in &pools {
                let entrant = Entrant::new(*kernel, set, threads);
                enter(entrant.clone().with(&GATHER, way).unwrap_or(entrant), &mut best);
            }
        }
        if let Some(way) = best.as_ref().and_then(|best| best.parameters.get(GATHER.name)) {
            fetch = vec![way];
        }
    }
    // Where no thread pool is faster than the serial kernel, something holds its cores.
    if best.is_none() && options.threads.count() > 1 && a.nnz() > SMALL {
        let (kernel, set) = &candidates[0];
        enter(Entrant::new(*kernel, set, &Threads::new(1)), &mut best);
    }
    // The best once more in other ways.
    for way in FETCH {
        if let Some(other) = best.clone().and_then(|best| best.with(&GATHER, way)) {
            enter(other, &mut best);
        }
    }
    if a.nnz() * T::BYTES >= LARGE_A
        && let Some(other) = best.clone().and_then(|best| best.with(&PREFETCH, Value::Switch(true)))
    {
        enter(other, &mut best);
    }
    Ok(match race.finish(&mut run) {
        Some((plan, choice)) => {
            Box::new(Chosen { plan, dense: DenseShape::VECTOR, choice: Some(choice) })
        }
        None => csr_serial::chosen(source.clone()),
    })
}

/// A kernel that may be the fastest, with its parameters, on a thread pool.
#[derive(Clone)]
struct Entrant<T> {
    kernel: SpmvKernel<T>,
    parameters: Parameters,
    threads: Threads,
}

impl<T: Scalar> Entrant<T> {
    fn new(kernel: SpmvKernel<T>, set: &[Set], threads: &Threads) -> Self {
        Self { kernel, parameters: kernel.info.with(set), threads: threads.clone() }
    }

    /// The same with another value of a parameter; `None` if the kernel does not have the
    /// parameter.
    fn with(self, parameter: &ParameterSpec, value: Value) -> Option<Self> {
        let now = self.parameters.get(parameter.name)?;
        let parameters = self.parameters.with(parameter.name, value);
        (now != value).then_some(Self { parameters, ..self })
    }
}

/// Kernels with the parameters that are set.
type Candidates<T> = Vec<(SpmvKernel<T>, Vec<Set>)>;

/// Whether a kernel has the parameter [`GATHER`].
fn gathers<T>(kernel: &SpmvKernel<T>) -> bool {
    kernel.info.parameters.iter().any(|parameter| parameter.name == GATHER.name)
}

/// The candidate kernels. The first one gathers if any does.
fn candidates<T: Scalar>(a: &CsrView<'_, T>) -> Candidates<T> {
    T::by_field(ForField(a))
}

/// The choice of the candidates for a matrix.
struct ForField<'v, 'a, T>(&'v CsrView<'a, T>);

impl<T: Scalar> ByField<T> for ForField<'_, '_, T> {
    type Output = Candidates<T>;

    fn real(self) -> Candidates<T>
    where
        T: RealScalar,
    {
        vectorised(self.0)
    }

    fn complex(self) -> Candidates<T> {
        straight_from_csr().map(|kernel| (kernel, vec![])).into()
    }
}

/// Kernels with vector instructions.
fn vectorised<T: RealScalar>(a: &CsrView<'_, T>) -> Candidates<T> {
    let structure = Structure::sample(a);
    let elements = |sigma| stats::sell_stored_elements(a.row_ptr(), LANES, sigma) as f64;
    let (unsorted, near, far) = (elements(1), elements(256), elements(LARGEST_WINDOW));
    // Codes that are looked up take longer than values that are in cache.
    let codes = if needs_lookup(a.values()) { &["table", "registers"][..] } else { &["registers"] };
    let sorted = |sigma| {
        codes.iter().map(move |&codes| {
            let set = vec![(SIGMA.name, Value::Count(sigma)), (CODES.name, Value::Choice(codes))];
            (SpmvKernel::new(sell_compact::INFO, sell_compact::plan), set)
        })
    };
    let mut candidates = Vec::new();
    if far < 0.95 * near {
        candidates.extend(sorted(LARGEST_WINDOW));
    }
    if near < 1.3 * far {
        candidates.extend(sorted(256));
    }
    if unsorted < 1.15 * near || structure.shifted {
        candidates.extend(sorted(1));
    }
    candidates.push((SpmvKernel::new(csr_compact::INFO, csr_compact::plan), vec![]));
    if let Some(blocks) = convert::detect_blocks(*a) {
        let set = vec![(BLOCK.name, Value::Count(blocks.size))];
        candidates.push((SpmvKernel::new(bsr_rows::INFO, bsr_rows::plan), set));
    }
    if structure.shifted && a.rows() == a.cols() {
        candidates.push((SpmvKernel::new(sell_symmetric::INFO, sell_symmetric::plan), vec![]));
    }
    if structure.far && a.cols() * T::BYTES >= LARGE_X {
        candidates.push((SpmvKernel::new(sell_tiles::INFO, sell_tiles::plan), vec![]));
    }
    candidates.extend(straight_from_csr().map(|kernel| (kernel, vec![])));
    candidates
}

/// What is a candidate for every matrix: nothing is converted.
fn straight_from_csr<T: Scalar>() -> [SpmvKernel<T>; 2] {
    let balanced = SpmvKernel::new(csr_nnz_balanced::INFO, csr_nnz_balanced::plan);
    [balanced, SpmvKernel::new(csr_merge::INFO, csr_merge::plan)]
}

/// A parameter and its value.
type Set = (&'static str, Value);

/// The structure of the matrix as estimated from a few rows.
struct Structure {
    /// Whether many rows span more columns than the caches hold of x.
    far: bool,
    /// Whether many rows have the columns of the previous row shifted by one.
    shifted: bool,
}

impl Structure {
    fn sample<T: Scalar>(a: &CsrView<'_, T>) -> Self {
        let columns = |row: usize| a.row(row).0;
        let (mut seen, mut far, mut shifted) = (0, 0, 0);
        for row in (1..a.rows()).step_by((a.rows() / SAMPLE).max(1)) {
            let (before, here) = (columns(row - 1), columns(row));
            let (Some(first), Some(last)) = (here.first(), here.last()) else { continue };
            seen += 1;
            far += usize::from(last.abs_diff(*first) as usize * T::BYTES >= LARGE_X / 4);
            shifted += usize::from(2 * common_shifted(before, here) > here.len());
        }
        Self { far: 4 * far > seen, shifted: 2 * shifted > seen }
    }
}

/// How many columns of `here` are one beyond a column of `before`; both ascend.
fn common_shifted(before: &[u32], here: &[u32]) -> usize {
    let (mut common, mut rest) = (0, before.iter().peekable());
    for &column in here {
        while rest.next_if(|&&other| other + 1 < column).is_some() {}
        common += usize::from(rest.next_if(|&&other| other + 1 == column).is_some());
    }
    common
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use spm_formats::convert;
    use spm_testing::exact::{self, Whole};
    use spm_testing::{generate, reference};

    use super::*;
    use crate::race::tests::Dice;

    /// Matrices, with what must be among the choices.
    const MATRICES: [(&str, &[&str]); 6] = [
        // Up to TINY entries, and just above.
        ("uniform[rows=100,cols=50,entries=256]", &["csr-serial"]),
        (
            "uniform[rows=100,cols=50,entries=257]",
            &["csr-serial", "csr-compact", "csr-nnz-balanced", "csr-merge", "gather=scalar"],
        ),
        // Rows that repeat the one before, shifted by one; more entries than SMALL.
        ("stencil27[n=23]", &["sell-symmetric", "sell-compact[sigma=1,"]),
        // Three unknowns a node.
        ("blocks[n=10,block=3]", &["bsr-rows[block=3,", "csr-compact"]),
        // Rows that sorting makes equally long.
        (
            "powerlaw[rows=20000,cols=20000,entries=100000,longest=3000]",
            &["sell-compact[sigma=4096,", "on 1 thread", "on 3 threads"],
        ),
        // Long reaches over a large x; more entries than SMALL.
        (
            "uniform[rows=20000,cols=140000,entries=280000]",
            &["sell-tiles", "sell-compact[sigma=256,", "prefetch=on", "on 3 threads"],
        ),
    ];

    /// By a clock of chance every candidate wins a race of some seed; each is right.
    #[test]
    fn every_branch_gives_a_right_plan() {
        for (name, expected) in MATRICES {
            let pattern = generate::named(name).unwrap().generate::<f64>().unwrap();
            let a = exact::matrix(&convert::csr_to_coo(pattern.view()), Whole::Wide);
            let x = exact::vector(a.cols());
            let (csr, right) = (convert::coo_to_csr(&a), reference::spmv(&a, &x));
            let mut missing: Vec<&str> = expected.to_vec();
            let mut choices = BTreeSet::new();
            for seed in 0..100 {
                for threads in [1, 3] {
                    let options = PlanOptions::with_threads(threads);
                    let plan = plan_by(Dice::new(seed), csr.view().into(), &options).unwrap();
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
        let a = generate::named("uniform[rows=9000,cols=9000,entries=270000]").unwrap();
        let a = a.generate::<f64>().unwrap();
        assert!(a.nnz() > SMALL);
        // Two looks for a call that is too slow to repeat; one that gathers comes in both ways.
        let ways =
            |(kernel, _): (SpmvKernel<f64>, _)| if gathers(&kernel) { FETCH.len() } else { 1 };
        let of_team = 2 * candidates(&a.view()).into_iter().map(ways).sum::<usize>();
        // The serial kernel: two calls alone, three together, each between two looks, and two more.
        let steps = vec![(12, 1e-3), (of_team, 1.0), (usize::MAX, 1e-5)];
        let options = PlanOptions::with_threads(3);
        let plan = plan_by(Steps(steps, 0.0), a.view().into(), &options).unwrap();
        let choice = plan.choice().unwrap();
        assert!(choice.ends_with("on 1 thread"), "{choice}");
    }

    #[test]
    fn columns_shifted_by_one() {
        assert_eq!(common_shifted(&[], &[0, 1]), 0);
        assert_eq!(common_shifted(&[0, 1, 2], &[]), 0);
        assert_eq!(common_shifted(&[0, 4, 9], &[0, 1, 5, 9, 10]), 3);
        assert_eq!(common_shifted(&[3, 4, 5], &[3, 4, 5]), 2);
        assert_eq!(common_shifted(&[u32::MAX - 2], &[u32::MAX - 1]), 1);
    }
}
