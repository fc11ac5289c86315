//! Plan of `gpu-kernels/src/spmv/dia_thread_per_row.rs`.

use std::sync::Arc;

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};
use spm_gpu_kernels::spmv::{Dia, DiaDeep, DiaDeepSingle, DiaSingle, Distances, MOST_DIAGONALS};

use super::KERNEL;
use super::parameters::{R2_BLOCKS, SINGLE_VALUES, block};
use crate::convert::{DeviceDia, DeviceReducedValues};
use crate::info::DeviceInfo;
use crate::launch::Loads;
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

/// Rows per multiprocessor (a quarter of the threads that it holds) up to which more loads in
/// flight per thread compensate for missing threads.
const DEEP_ROWS: usize = 512;

/// The loads of a product of so many rows, and whether 12 or 16 diagonals are in flight; `short` values have 4 bytes.
fn loads(
    parameters: &Parameters,
    device: &DeviceInfo,
    (rows, short, fitting): (usize, bool, Loads),
) -> (Loads, bool) {
    let few = rows <= DEEP_ROWS * device.multiprocessors as usize;
    match parameters.choice(LOADS.name) {
        "streamed" => (Loads::Streamed, false),
        "cached" => (Loads::Cached, false),
        "deep" => (Loads::Cached, true),
        _ => (fitting, short && few && fitting == Loads::Cached),
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
    let Some(sample) = a.pattern()?.diagonals else { return Ok(None) };
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
    let short = single || size_of::<T>() == size_of::<f32>();
    let fitting = problem.loading(&dia, launch).loads;
    let (loads, deep) = loads(parameters, device.info(), (rows, short, fitting));
    let launch = launch.with_loads(loads);
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
        match (&a.values, deep) {
            (Stored(v), false) => launch!(Dia(v.ptr())),
            (Stored(v), true) => launch!(DiaDeep(v.ptr())),
            (Single(v), false) => launch!(DiaSingle(v.ptr())),
            (Single(v), true) => launch!(DiaDeepSingle(v.ptr())),
            (Equal(_), _) => unreachable!("places have values"),
        }
    })))
}
