//! Plan of `gpu-kernels/src/spmv/dia_thread_per_row.rs`.

use std::sync::Arc;

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};
use spm_gpu_kernels::spmv::{
    DiaCached, DiaCachedSingle, DiaDeep, DiaDeepSingle, DiaStreamed, DiaStreamedSingle, Distances,
    MOST_DIAGONALS,
};

use super::KERNEL;
use super::parameters::{R2_BLOCKS, SINGLE_VALUES, block};
use crate::convert::{DeviceDia, DeviceReducedValues};
use crate::info::DeviceInfo;
use crate::matrix::DeviceMatrix;
use crate::plan::{BoxedPlan, DeviceReal};
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::product::Zero;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "dia-thread-per-row",
    source: "own; Bell and Garland, SC'09",
    summary: "DIA, up to 32 diagonals, a thread for each row",
    parameters: &[block(128, R2_BLOCKS), LOADS, SINGLE_VALUES],
    ..KERNEL
};

const LOADS: ParameterSpec = ParameterSpec {
    name: "loads",
    meaning: "values streamed past the caches, cached, or cached with 12 or 16 diagonals in flight \
              (deep); auto takes cached for a product that L2 holds, and deep for few rows of short \
              values",
    default: Value::Choice("auto"),
    studied: &[
        Value::Choice("auto"),
        Value::Choice("streamed"),
        Value::Choice("cached"),
        Value::Choice("deep"),
    ],
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loads {
    Streamed,
    Cached,
    Deep,
}

impl Loads {
    /// Rows per multiprocessor (a quarter of the threads that it holds) up to which more loads in
    /// flight per thread compensate for missing threads.
    const DEEP_ROWS: usize = 512;

    /// The choice for a product that moves so many bytes; `short` values have 4 bytes.
    fn choose(
        parameters: &Parameters,
        device: &DeviceInfo,
        (rows, bytes, short): (usize, u64, bool),
    ) -> Self {
        match parameters.choice(LOADS.name) {
            "streamed" => Self::Streamed,
            "cached" => Self::Cached,
            "deep" => Self::Deep,
            _ if bytes > device.l2_bytes / 5 * 4 => Self::Streamed,
            _ if short && rows <= Self::DEEP_ROWS * device.multiprocessors as usize => Self::Deep,
            _ => Self::Cached,
        }
    }
}

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { a, budget, .. } = problem;
    if a.csr.entries() == 0 {
        return Ok(problem.boxed(Zero(a.csr.rows(), a.csr.cols())));
    }
    let plan = with_places(problem, |places| {
        budget.check("DIA", a.csr.entries(), places.into(), size_of::<T>(), 0)?;
        Ok(true)
    })?;
    plan.ok_or_else(|| {
        let reason = format!(
            "only matrices on up to {MOST_DIAGONALS} diagonals, with less than 2^32 places"
        );
        problem.unsupported(reason)
    })
}

/// `None` for a matrix that DIA does not hold, or if `accept` refuses the number of stored
/// elements.
pub(super) fn with_places<T: DeviceReal>(
    problem: DeviceProblem<'_, T>,
    accept: impl Fn(u64) -> Result<bool, PlanError>,
) -> Result<Option<BoxedPlan<T>>, PlanError> {
    let Problem { device, a, parameters, .. } = problem;
    let (rows, cols) = (a.csr.rows(), a.csr.cols());
    let Some(sample) = a.diagonals()? else { return Ok(None) };
    let block = problem.block();
    let launch = problem.launch(rows, block, block)?;
    let single = parameters.switch(SINGLE_VALUES.name) && a.values()?.single;
    let Some(dia) = DeviceDia::new(Arc::clone(&a.csr), sample, single, accept)? else {
        return Ok(None);
    };
    let mut distances = Distances::default();
    for (place, &distance) in distances.0.as_flattened_mut().iter_mut().zip(&dia.distances) {
        *place = distance;
    }
    let bytes = dia.bytes() + ((rows + cols) * size_of::<T>()) as u64;
    let short = single || size_of::<T>() == size_of::<f32>();
    let loads = Loads::choose(parameters, device.info(), (rows, bytes, short));
    Ok(Some(problem.product(dia, 0, move |a, x, y, stream| {
        macro_rules! launch {
            ($kernel:ident($values:expr)) => {{
                let args = $kernel {
                    rows: rows as u32,
                    cols: cols as u32,
                    diagonals: a.distances.len() as u32,
                    pitch: a.pitch,
                    distances,
                    diagonal_values: $values,
                    offsets: a.offsets.ptr(),
                    row_ptr: a.csr.row_ptr.ptr(),
                    col_ind: a.csr.col_ind.ptr(),
                    x: x.ptr(),
                    y: y.output(),
                };
                // SAFETY: a matrix in DIA made from these verified CSR arrays, and vectors of the
                // lengths of its shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        use DeviceReducedValues::{Equal, Single, Stored};
        match (&a.values, loads) {
            (Stored(v), Loads::Streamed) => launch!(DiaStreamed(v.ptr())),
            (Stored(v), Loads::Cached) => launch!(DiaCached(v.ptr())),
            (Stored(v), Loads::Deep) => launch!(DiaDeep(v.ptr())),
            (Single(v), Loads::Streamed) => launch!(DiaStreamedSingle(v.ptr())),
            (Single(v), Loads::Cached) => launch!(DiaCachedSingle(v.ptr())),
            (Single(v), Loads::Deep) => launch!(DiaDeepSingle(v.ptr())),
            (Equal(_), _) => unreachable!("places have values"),
        }
    })))
}
