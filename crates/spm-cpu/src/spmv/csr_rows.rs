//! y_i = sum_j a_ij x_j, rows handed to threads in chunks: R0 3.2.1, R1 1.1.1
//! (`spmvRowsBasicCSR`, OMP CSR 1).

use spm_formats::kernel::{
    Backend, Footprint, KernelInfo, Operation, ParameterSpec, Parameters, PlanError, RunError,
    Schedule, SpmvPlan, Value, check_length,
};
use spm_formats::{CsrArrays, CsrView, Scalar};

use super::{BoxedPlan, csr_footprint, row};
use crate::disjoint::Disjoint;
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-rows",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R0 3.2.1; R1 1.1.1, OMP CSR 1 (spmvRowsBasicCSR)",
    summary: "chunks of rows to threads, static or dynamic",
    parameters: &[SCHEDULE, CHUNK, FOLDING, row::SIMD],
};

/// How rows (or blocks of rows) go to threads.
pub(super) const SCHEDULE: ParameterSpec = ParameterSpec {
    name: "schedule",
    meaning: "static: each thread its share beforehand; dynamic: first come, first served",
    default: Value::Schedule(Schedule::Dynamic),
    studied: &[Value::Schedule(Schedule::Static), Value::Schedule(Schedule::Dynamic)],
};

/// R0 3.2 found chunks of the order of 10^3 rows as good as any.
const CHUNK: ParameterSpec = ParameterSpec {
    name: "chunk",
    meaning: "rows in a chunk; 0: by the folding when dynamic, one piece a thread when static",
    default: Value::Count(0),
    studied: &[Value::Count(0), Value::Count(1000)],
};

/// R1 1.3's `FAIR_CHUNKS_FOLDING`.
pub(super) const FOLDING: ParameterSpec = ParameterSpec {
    name: "folding",
    meaning: "chunks that a dynamic schedule cuts the iterations into, for each thread",
    default: Value::Count(4),
    studied: &[Value::Count(4)],
};

/// The chunk of a schedule when none is given: R1 1.3 divides the iterations by the folding, here
/// for each thread, so that more than `folding` threads find work.
pub(super) fn chunk_for(
    schedule: Schedule,
    iterations: usize,
    folding: usize,
    threads: &Threads,
) -> usize {
    match schedule {
        Schedule::Static => 0,
        Schedule::Dynamic => (iterations / (folding * threads.count())).max(1),
    }
}

struct Plan<'a, T> {
    a: CsrArrays<'a, T>,
    threads: Threads,
    schedule: Schedule,
    chunk: usize,
    simd: bool,
}

pub(super) fn plan<'a, T: Scalar>(
    a: &CsrView<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let a = CsrArrays::new(a)?;
    let schedule = parameters.schedule("schedule");
    let chunk = match parameters.count("chunk") {
        0 => chunk_for(schedule, a.rows(), parameters.count("folding"), &options.threads),
        chunk => chunk,
    };
    let (threads, simd) = (options.threads.clone(), parameters.switch("simd"));
    Ok(Box::new(Plan { a, threads, schedule, chunk, simd }))
}

impl<T: Scalar> SpmvPlan<T> for Plan<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.a.rows(), self.a.cols())
    }

    fn footprint(&self) -> Footprint {
        csr_footprint(&self.a, 0)
    }

    fn run(&mut self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        check_length("x", self.a.cols(), x.len())?;
        check_length("y", self.a.rows(), y.len())?;
        let y = Disjoint::new(y);
        let (a, simd) = (&self.a, self.simd);
        self.threads.for_each_chunk(a.rows(), self.schedule, self.chunk, |rows| {
            // SAFETY: the chunks of a loop do not overlap.
            let y = unsafe { y.range(rows.clone()) };
            row::multiply_rows(a, rows, x, y, simd);
        });
        Ok(())
    }
}
