//! `auto` for SpMM: times the kernels that suit a matrix and a number of columns.

use std::hint::black_box;

use spm_formats::kernel::{KernelInfo, Value};
use spm_formats::{CsrSource, CsrView, DenseShape, Layout, Scalar, convert};

use super::blocked::bsr;
use super::{KERNEL, SpmmKernel, blocked, csr_serial, vector};
use crate::kernel::{Planned, Problem};
use crate::plan::{BoxedOwnPlan, Chosen};
use crate::race::{self, Clock, Monotonic, Race};
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
/// Multiplications up to which one thread is used, because waking another takes as long.
const SMALL: usize = 1 << 12;
/// Multiplications from which one thread is no candidate beside a thread pool.
const LARGE: usize = 1 << 22;
/// Bytes of Y from which streaming stores may pay.
const LARGE_Y: usize = 4 << 20;
/// Bytes of X from which prefetching its rows may pay.
const LARGE_X: usize = 1 << 20;
/// Bytes of a row of X up to which more rows are prefetched at a time.
const SHORT_ROW: usize = 128;
/// Blocks whose rows of X are prefetched ahead.
const AHEAD_BLOCKS: usize = 8;
/// Entries from which compressed column indices may pay.
const LARGE_A: usize = 1 << 16;
/// Bytes of a row of X up to which compressed column indices may pay; with longer rows of X, A is
/// the smaller part of the traffic.
const NARROW_ROW: usize = 256;

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    plan_by(Monotonic::start(), problem.a, problem.dense, problem.options)
}

/// The plan that is the fastest by `clock`; that of one column by the machine's.
fn plan_by<'a, T: Scalar>(
    clock: impl Clock,
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
    let options = &options.beside(of_operands as u64);
    let alone = PlanOptions { threads: Threads::new(1), ..options.clone() };
    // Any numbers that are not special.
    let x = Workspace::new(a.cols() * dense.k, T::from_f64(0.75));
    let mut y = Workspace::zeros(a.rows() * dense.k);
    let mut run = |plan: &mut BoxedOwnPlan<'a, T>| {
        plan.run(black_box(&x), black_box(&mut y)).expect("matrices of the plan's shape");
    };
    let serial = csr_serial::serial(source.clone(), dense);
    let mut race = Race::new(clock, serial);
    let candidates = candidates(&a, dense);
    for options in race::pools(options, &alone, work, (SMALL, LARGE)) {
        for (kernel, set) in &candidates {
            let parameters = kernel.info.with(set);
            let options = options.beside(race.held(|plan| plan.footprint().plan_bytes));
            // One that takes too much memory is no candidate.
            let Ok(plan) = kernel.plan_product(source.clone(), dense, &parameters, &options) else {
                continue;
            };
            let choice = || {
                let label = kernel.info.label(&set.iter().copied().collect());
                race::on(&label, options.threads.count())
            };
            race::settle(&options.threads);
            race.enter(plan, choice, &mut run);
        }
    }
    Ok(match race.finish(&mut run) {
        Some((plan, choice)) => Box::new(Chosen { plan, dense, choice: Some(choice) }),
        None => csr_serial::chosen(source.clone(), dense),
    })
}

/// Kernels that may be the fastest, with their parameters, the likeliest first.
fn candidates<T: Scalar>(a: &CsrView<'_, T>, dense: DenseShape) -> Vec<(SpmmKernel<T>, Vec<Set>)> {
    let row = dense.k * T::BYTES;
    let on = Value::Switch(true);
    let (csr, bsr) =
        (SpmmKernel::new(blocked::INFO, blocked::plan), SpmmKernel::new(bsr::INFO, bsr::plan));
    let mut sets = vec![(csr, vec![])];
    if a.nnz() >= LARGE_A && row <= NARROW_ROW {
        sets.push((csr, vec![("narrow", on)]));
    }
    let large_x = a.cols() * row >= LARGE_X;
    if large_x {
        let ahead = if row <= SHORT_ROW { 96 } else { 32 };
        sets.push((csr, vec![("prefetch", Value::Count(ahead))]));
    }
    if let Some(blocks) = convert::detect_blocks(*a) {
        let set = vec![(BLOCK.name, Value::Count(blocks.size))];
        if large_x {
            let ahead = (bsr::PREFETCH.name, Value::Count(AHEAD_BLOCKS));
            sets.push((bsr, [&set[..], &[ahead]].concat()));
        }
        sets.push((bsr, set));
    }
    if dense.layout == Layout::RowMajor && a.rows() * row >= LARGE_Y {
        let streamed: Vec<_> = sets
            .iter()
            .map(|(kernel, set)| (*kernel, [&set[..], &[("stream", on)]].concat()))
            .collect();
        sets.extend(streamed);
    }
    sets
}

/// A parameter and its value.
type Set = (&'static str, Value);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use spm_formats::convert;
    use spm_testing::exact::{self, Whole};
    use spm_testing::{generate, reference};

    use super::*;
    use crate::race::tests::Dice;

    /// Matrices and widths, with labels of kernels that must be among the winners.
    const CASES: [(&str, usize, Layout, &[&str]); 8] = [
        // Up to TINY multiplications, and above.
        ("diagonal[n=5]", 3, Layout::RowMajor, &["csr-serial"]),
        ("stencil5[n=6]", 3, Layout::RowMajor, &["csr-serial", "csr-blocked on 1 thread"]),
        ("stencil5[n=6]", 1, Layout::ColumnMajor, &["spmv csr-serial"]),
        // More than SMALL.
        (
            "stencil5[n=30]",
            4,
            Layout::ColumnMajor,
            &["csr-blocked on 3 threads", "csr-blocked on 1 thread"],
        ),
        // X and A are large, its rows are short.
        (
            "uniform[rows=9000,cols=20000,entries=70000]",
            8,
            Layout::RowMajor,
            &["csr-blocked[narrow=on] on", "csr-blocked[prefetch=96] on"],
        ),
        // Its rows are long; more multiplications than LARGE.
        (
            "uniform[rows=3000,cols=9000,entries=70000]",
            64,
            Layout::ColumnMajor,
            &["csr-blocked[prefetch=32] on 3 threads"],
        ),
        // Dense blocks, and a large X.
        (
            "mesh2[n=50,unknowns=3]",
            40,
            Layout::RowMajor,
            &["bsr-blocked[block=3] on", "bsr-blocked[block=3,prefetch=8] on"],
        ),
        // Y is large.
        (
            "uniform[rows=70000,cols=9000,entries=70000]",
            8,
            Layout::RowMajor,
            &["csr-blocked[stream=on]", "csr-blocked[narrow=on,stream=on]"],
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
                    let plan =
                        plan_by(Dice::new(seed), csr.view().into(), dense, &options).unwrap();
                    let choice = plan.choice().unwrap();
                    let mut y = vec![f64::NAN; a.rows() * k];
                    plan.run(&x, &mut y).unwrap();
                    let difference = exact::difference(&y, &expected);
                    assert_eq!(difference, None, "{name}, {dense:?}, {choice}");
                    missing.retain(|part| !choice.contains(part));
                    choices.insert(choice);
                }
                if missing.is_empty() {
                    break;
                }
            }
            assert!(missing.is_empty(), "{name}, {dense:?}: no {missing:?} in {choices:#?}");
        }
    }
}
