//! The fastest plan for a matrix and a dense shape on this device: that of the only candidate, or the fastest by the
//! clock.

use std::time::Duration;

use spm_formats::DenseShape;
use spm_formats::kernel::KernelInfo;

use super::candidates::{Sizes, candidates};
use super::{KERNEL, csr_nonzero_split, csr_row_split};
use crate::plan::{BoxedPlan, DeviceReal, DeviceScalar};
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::race::{Candidate, Chosen, Race, Timed};
use crate::spmv;
use crate::timing::{Batches, Clock};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    source: "own",
    summary: "SpMV's auto for one column; for more the kernel that suits structure, k and layout, the fastest of two to four by timing them in planning where the structure does not tell",
    parameters: &[],
    ..KERNEL
};

/// Of a complex matrix.
pub(super) const COMPLEX: KernelInfo = KernelInfo {
    summary: "SpMV's auto for one column of a complex matrix; for more the fastest of two kernels by timing them in planning",
    ..INFO
};

/// How each candidate is timed: once, again where that is short but far from the best, and longer where it is not far.
/// One run of twenty times a launch tells.
const FIRST_TIMING: Batches = Batches { runs: 1, most: 1, min_time: Duration::ZERO, held: false };
const TIMING: Batches =
    Batches { runs: 3, most: 2, min_time: Duration::from_micros(30), held: false };
const SHORT_S: f64 = 5e-5;
const FAR: f64 = 1.5;

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { a, dense, budget, .. } = problem;
    if dense.k == 1 {
        return one_column(problem, &spmv::AUTO, spmv::auto);
    }
    let mut candidates = candidates(a, dense, budget);
    if a.csr.entries() == 0 || dense.k == 0 {
        candidates.truncate(1);
    }
    fastest(problem, candidates)
}

/// The plan for [`COMPLEX`].
pub(super) fn complex<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, dense, .. } = problem;
    if dense.k == 1 {
        return one_column(problem, &spmv::COMPLEX_AUTO, spmv::complex_auto);
    }
    let row_split = Candidate::with(&csr_row_split::COMPLEX, &[], csr_row_split::complex);
    if a.csr.entries() < Sizes::of(device).few_entries() || dense.k == 0 {
        return row_split.chosen(problem);
    }
    let nonzero_split =
        Candidate::with(&csr_nonzero_split::COMPLEX, &[], csr_nonzero_split::complex);
    fastest(problem, vec![row_split, nonzero_split])
}

/// The plan of SpMV's `auto`.
fn one_column<T: DeviceScalar>(
    problem: DeviceProblem<'_, T>,
    info: &KernelInfo,
    plan: fn(DeviceProblem<'_, T>) -> Planned<T>,
) -> Planned<T> {
    let (dense, parameters) = (problem.dense, &info.defaults());
    let plan = plan(Problem { dense: DenseShape::VECTOR, info, parameters, ..problem })?;
    let choice = format!("spmv {}", plan.choice().unwrap_or_default());
    Ok(Box::new(Chosen { plan, dense, choice }))
}

/// The fastest candidate by the clock.
fn fastest<T: DeviceScalar>(
    problem: DeviceProblem<'_, T>,
    candidates: Vec<Candidate<T>>,
) -> Planned<T> {
    let time = |clock: &mut Clock<T>, least, plan: &mut BoxedPlan<T>| {
        let far = SHORT_S.min(FAR * least);
        let mut seconds = clock.time(FIRST_TIMING, plan)?;
        if (far..SHORT_S).contains(&seconds) {
            // Right behind the compilation of its kernel a run may take longer.
            seconds = clock.time(FIRST_TIMING, plan)?;
        }
        if seconds < far { clock.time(TIMING, plan) } else { Ok(seconds) }
    };
    let mut race = Race::new(problem, Timed::Each(time));
    candidates.into_iter().for_each(|candidate| race.enter(candidate));
    race.winner()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spm_formats::{Csr, Layout, MemoryBudget};
    use spm_testing::generate;

    use super::*;
    use crate::convert::Survey;
    use crate::device::{Device, EmulatedDevice};
    use crate::matrix::DeviceCsr;
    use crate::source::Source;

    /// SELL and blocks with two and four columns for each thread, by the clock.
    #[test]
    fn dense_blocks_are_chosen_by_the_clock() {
        let a = generate::named("mesh2[n=26,unknowns=4]").unwrap().generate::<f64>().unwrap();
        let choice = |k: usize, layout: Layout, seconds: &[f64]| {
            let emulated = EmulatedDevice {
                multiprocessors: 13,
                seconds: seconds.to_vec(),
                ..Default::default()
            };
            let device = Device::emulated_as(Default::default(), emulated);
            let kernel = crate::spmm::find::<f64>("auto").unwrap();
            let (defaults, options) = (kernel.info.defaults(), Default::default());
            let dense = DenseShape { k, layout };
            kernel.plan(&device, a.view(), dense, &defaults, &options).unwrap().choice().unwrap()
        };
        let (rows, columns) = (Layout::RowMajor, Layout::ColumnMajor);
        assert_eq!(choice(32, rows, &[1e-3, 2e-3, 3e-3]), "sell-row-split[sigma=1]");
        assert_eq!(choice(32, rows, &[3e-3, 1e-3, 2e-3]), "bsr-row-split[columns=2,size=4]");
        assert_eq!(choice(32, rows, &[3e-3, 2e-3, 1e-3]), "bsr-row-split[columns=4,size=4]");
        assert_eq!(choice(3, rows, &[3e-3, 2e-3]), "bsr-row-split[size=4]");
        assert_eq!(choice(8, columns, &[1e-3, 2e-3, 3e-3]), "bsr-row-split[columns=2,size=4]");
    }

    #[test]
    fn one_candidate_is_not_timed() {
        let next = |a: &Csr<f64>| {
            let emulated = EmulatedDevice { seconds: vec![7.0, 8.0, 9.0], ..Default::default() };
            let device = Device::emulated_as(Default::default(), emulated);
            let kernel = crate::spmm::find::<f64>("auto").unwrap();
            let (defaults, options) = (kernel.info.defaults(), Default::default());
            let dense = DenseShape { k: 8, layout: Layout::ColumnMajor };
            kernel.plan(&device, a.view(), dense, &defaults, &options).unwrap();
            device.emulated_seconds()
        };
        assert_eq!(next(&Csr::empty(40, 30).unwrap()), Some(7.0));
        let blocks = generate::named("mesh2[n=26,unknowns=4]").unwrap().generate().unwrap();
        assert_ne!(next(&blocks), Some(7.0));
    }

    /// The fastest by the clock, which looks twice at what is short.
    #[test]
    fn the_fastest_candidate_is_chosen() {
        let a = generate::named("uniform[rows=20000,cols=20000,entries=60000]").unwrap();
        let a = a.generate::<f64>().unwrap();
        let dense = DenseShape { k: 8, layout: Layout::ColumnMajor };
        let device = |seconds: &[f64]| {
            let emulated = EmulatedDevice {
                l2_bytes: 60 << 20,
                multiprocessors: 128,
                seconds: seconds.to_vec(),
                ..Default::default()
            };
            Device::emulated_as(Default::default(), emulated)
        };
        let choice = |seconds: &[f64]| {
            let kernel = crate::spmm::find::<f64>("auto").unwrap();
            let (defaults, options) = (kernel.info.defaults(), Default::default());
            let plan = kernel.plan(&device(seconds), a.view(), dense, &defaults, &options).unwrap();
            plan.choice().unwrap()
        };
        let copy = DeviceCsr::new(&device(&[]), a.view()).unwrap();
        let source = Source::shared(Arc::new(copy), false, |a, _| Survey::of_rows(a)).unwrap();
        let candidates = candidates(&source, dense, &MemoryBudget::default());
        let labels: Vec<_> = candidates.into_iter().map(|candidate| candidate.label).collect();
        let [first, second, third] = &labels[..] else { panic!("{labels:?}") };
        // Long runs are timed once.
        assert_eq!(choice(&[1e-3, 2e-3, 3e-3]), *first);
        assert_eq!(choice(&[3e-3, 1e-3, 2e-3]), *second);
        assert_eq!(choice(&[3e-3, 2e-3, 1e-3]), *third);
        // Short ones are timed longer, unless they are far from the best twice.
        assert_eq!(choice(&[1e-5, 2e-5, 1.2e-5, 1e-5, 4e-5, 3e-5]), *second);
        assert_eq!(choice(&[1e-5, 1e-5, 1.2e-5, 2e-5, 4e-5, 1.4e-5, 0.5e-5]), *third);
    }
}
