//! `auto` for SpMV: times the kernels that may be the fastest by the machine model.

mod candidates;

use std::hint::black_box;

use spm_formats::kernel::{KernelInfo, Parameters};
use spm_formats::{CsrSource, DenseShape, Scalar};

pub(super) use candidates::predicted_race;
use candidates::{Candidate, Change, Cost, LEAST, On, PLANNING, candidates};

use super::predict;
use super::{KERNEL, csr_serial};
use crate::kernel::{Planned, Problem};
use crate::machine::Rates;
use crate::plan::{BoxedOwnPlan, Chosen};
use crate::race::{self, Caches, Clock, First, Monotonic, Race};
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
/// How far the model may be wrong about planning.
const MOST_WRONG: f64 = 4.0;

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

/// The fastest way to run a candidate.
struct Fastest {
    parameters: Parameters,
    on: On,
    /// What it is, for its user.
    choice: String,
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

    use spm_formats::convert;
    use spm_testing::exact::{self, Whole};
    use spm_testing::{generate, reference};

    use super::candidates::tests::{matrix, of_three};
    use super::*;
    use crate::race::Dice;

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
