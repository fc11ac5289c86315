//! `auto` for transposition: times the kernels that suit a matrix.

use std::hint::black_box;

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput, Value};
use spm_formats::{CsrView, Scalar};

use super::plan::Chosen;
use super::{BoxedPlan, KERNEL, TransposeKernel};
use super::{column_blocks, counting, radix, serial, symmetric_pattern};
use crate::race::{self, Clock, Monotonic, Race};
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    source: "own",
    summary: "the fastest of serial, symmetric-pattern, counting, radix and column-blocks, found by timing them in planning",
    parameters: &[],
    ..KERNEL
};

/// Entries up to which the serial kernel is used, because the differences between kernels are below
/// the resolution of the clock.
const TINY: usize = 32;
/// Entries up to which one thread is used, because waking another takes as long.
const SMALL: usize = 1 << 10;
/// Entries from which one thread is no candidate beside a thread pool.
const LARGE: usize = 1 << 19;
/// Columns below which the write positions of all columns stay in a second-level cache.
const NEAR: usize = 1 << 16;
/// Entries up to which a processor may learn where rows of all lengths end, rows up to which it does so in a few
/// calls, and these calls.
const LEARNED: usize = 1 << 16;
const LEARNED_ROWS: usize = 1 << 12;
const PRACTICE: usize = 16;
/// Bytes of output that stay in a first-level cache.
const IN_CACHE: usize = 1 << 15;

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    plan_by(Monotonic::start(), a, options)
}

/// The plan that is the fastest by `clock`.
fn plan_by<'a, T: Scalar>(
    clock: impl Clock,
    a: CsrView<'a, T>,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    if a.nnz() <= TINY && a.cols() <= TINY && a.rows() <= TINY {
        return Ok(serial::chosen(a));
    }
    // What is timed writes to arrays of its own.
    let of_output = (a.cols() + 1) * size_of::<u32>() + a.nnz() * (size_of::<u32>() + T::BYTES);
    if options.budget.check_bytes(INFO.id, of_output as u128).is_err() {
        return Ok(serial::chosen(a));
    }
    let options = &options.beside(of_output as u64);
    let alone = PlanOptions { threads: Threads::new(1), ..options.clone() };
    let mut output = TransposeOutput::new(a.cols(), a.nnz());
    let mut run = |plan: &mut BoxedPlan<'a, T>| {
        plan.run(black_box(&mut output)).expect("arrays of the plan's sizes");
    };
    let serial = serial::plan(a, &Parameters::default(), &alone)?;
    let is_learned = a.nnz() <= LEARNED && !counting::ends_are_predicted(&a);
    let practice = if is_learned && a.rows() <= LEARNED_ROWS { PRACTICE } else { 0 };
    let mut race = Race::new(clock, serial).with_practice(practice);
    for options in race::pools(options, &alone, a.nnz(), (SMALL, LARGE)) {
        for (kernel, set) in &candidates(&a, is_learned, options.threads.count()) {
            let options = options.beside(race.held(|plan| plan.footprint().plan_bytes));
            // One that takes too much memory, or is not for this matrix, is no candidate.
            let Ok(plan) = kernel.plan(a, &kernel.info.with(set), &options) else { continue };
            let label = || kernel.info.label(&set.iter().copied().collect());
            race::settle(&options.threads);
            race.enter(plan, || race::on(&label(), options.threads.count()), &mut run);
        }
    }
    Ok(match race.finish(&mut run) {
        Some((plan, choice)) => Box::new(Chosen(plan, choice)),
        None => serial::chosen(a),
    })
}

/// A kernel with the parameters that are set.
type Candidate<T> = (TransposeKernel<T>, Vec<(&'static str, Value)>);

/// The candidate kernels on so many threads, the likeliest first. `is_learned` says that a processor may learn where rows
/// end that a sample does not predict.
fn candidates<T: Scalar>(
    a: &CsrView<'_, T>,
    is_learned: bool,
    threads: usize,
) -> Vec<Candidate<T>> {
    let counting = TransposeKernel { info: counting::INFO, plan: counting::plan };
    let symmetric = symmetric_pattern::INFO;
    let mut candidates =
        vec![(TransposeKernel { info: symmetric, plan: symmetric_pattern::plan }, vec![])];
    let prefetch = ("prefetch", Value::Count(64));
    let branch = ("row-ends", counting::BRANCH);
    if a.nnz() * T::BYTES > IN_CACHE {
        candidates.push((counting, vec![prefetch]));
        if is_learned {
            candidates.push((counting, vec![prefetch, branch]));
        }
    }
    candidates.push((counting, vec![]));
    if is_learned {
        candidates.push((counting, vec![branch]));
    }
    let is_far = a.cols() >= NEAR;
    if column_blocks::suits(a, threads, is_far) {
        let kernel = TransposeKernel { info: column_blocks::INFO, plan: column_blocks::plan };
        candidates.push((kernel, vec![]));
    }
    if is_far {
        candidates.push((TransposeKernel { info: radix::INFO, plan: radix::plan }, vec![]));
    }
    candidates
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use spm_formats::convert;
    use spm_testing::{generate, reference};

    use super::*;
    use crate::race::Dice;

    /// Matrices, with labels of kernels that must be among the winners.
    const MATRICES: [(&str, &[&str]); 7] = [
        // Up to TINY entries, and above.
        ("diagonal[n=32]", &["serial"]),
        ("diagonal[n=33]", &["serial", "counting on 1 thread"]),
        // More than SMALL entries.
        (
            "stencil5[n=20]",
            &["symmetric-pattern on 3 threads", "counting on 3 threads", "counting on 1 thread"],
        ),
        // Rows with several entries for each thread.
        (
            "uniform[rows=100,cols=300,entries=2000]",
            &["column-blocks on 3 threads", "counting on 3 threads"],
        ),
        // More output than IN_CACHE.
        ("stencil5[n=60]", &["counting[prefetch=64] on 3 threads", "counting on 1 thread"]),
        // Rows that end anywhere.
        ("mesh2[n=30]", &["counting[row-ends=branch] on 3 threads", "counting on 1 thread"]),
        // As many columns as NEAR, more entries than LARGE.
        (
            "uniform[rows=900,cols=70000,entries=530000]",
            &[
                "radix on 3 threads",
                "counting on 3 threads",
                "counting[prefetch=64] on 3 threads",
                "column-blocks on 3 threads",
            ],
        ),
    ];

    /// By a clock of chance every candidate wins a race of some seed; each is right.
    #[test]
    fn every_branch_gives_a_right_plan() {
        for (name, labels) in MATRICES {
            let a = generate::named(name).unwrap().generate::<f64>().unwrap();
            let coo = convert::csr_to_coo(a.view());
            let (col_ptr, row_ind, values) = reference::transpose(&coo);
            let expected = TransposeOutput { col_ptr, row_ind, values };
            let mut missing: Vec<&str> = labels.to_vec();
            let mut choices = BTreeSet::new();
            for seed in 0..100 {
                for threads in [1, 3] {
                    let options = PlanOptions::with_threads(threads);
                    let mut plan = plan_by(Dice::new(seed), a.view(), &options).unwrap();
                    let choice = plan.choice().unwrap();
                    let mut output = TransposeOutput::new(a.cols(), a.nnz());
                    plan.run(&mut output).unwrap();
                    assert!(output == expected, "{name}, {choice}");
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
}
