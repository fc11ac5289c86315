//! Plan of `gpu-kernels/src/spmv/dia_thread_per_row.rs`.

use spm_formats::MemoryBudget;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::{DiaThreadPerRow, DiaThreadPerRowNarrow, Distances, MOST_DIAGONALS};

use super::on_device::Source;
use super::parameters::{NARROW, R2_BLOCKS, block};
use super::{BoxedPlan, boxed, product};
use crate::convert::{DeviceDia, DeviceReducedValues};
use crate::launch::Launch;
use crate::plan::DeviceScalar;
use crate::product::Zero;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "dia-thread-per-row",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own; Bell and Garland, SC'09",
    summary: "DIA, up to 32 diagonals, a thread for each row",
    parameters: &[block(128, R2_BLOCKS), NARROW],
};

pub(super) fn on_device<T: DeviceScalar>(
    a: &Source<T>,
    parameters: &Parameters,
    budget: &MemoryBudget,
) -> Result<BoxedPlan<T>, PlanError> {
    if a.csr.entries() == 0 {
        return Ok(boxed(a.csr.device(), Zero(a.csr.rows(), a.csr.cols())));
    }
    let plan = with_places(a, parameters, |places| {
        budget.check("DIA", a.csr.entries(), places.into(), size_of::<T>(), 0)?;
        Ok(true)
    })?;
    plan.ok_or_else(|| {
        let reason = format!(
            "only matrices on up to {MOST_DIAGONALS} diagonals, with ascending columns in each row \
             and less than 2^32 places"
        );
        PlanError::Unsupported { kernel: INFO.id, reason }
    })
}

/// `None` for a matrix that this format does not hold, or when `accept` says no to the number of
/// places.
pub(super) fn with_places<T: DeviceScalar>(
    a: &Source<T>,
    parameters: &Parameters,
    accept: impl FnOnce(u64) -> Result<bool, PlanError>,
) -> Result<Option<BoxedPlan<T>>, PlanError> {
    let device = a.csr.device().clone();
    let (rows, cols) = (a.csr.rows(), a.csr.cols());
    let block = parameters.count("block");
    let launch = Launch::over(INFO.id, &device, rows, block, block)?;
    let narrow = parameters.switch(NARROW.name) && a.stats.narrow;
    let Some(dia) = DeviceDia::new(&a.csr, narrow, accept)? else { return Ok(None) };
    let mut distances = Distances::default();
    for (place, &distance) in distances.0.as_flattened_mut().iter_mut().zip(&dia.distances) {
        *place = distance;
    }
    Ok(Some(product(&device, dia, move |a, x, y, stream| {
        macro_rules! launch {
            ($kernel:ident($values:expr)) => {{
                let args = $kernel {
                    rows: rows as u32,
                    cols: cols as u32,
                    diagonals: a.distances.len() as u32,
                    pitch: a.pitch,
                    distances,
                    diagonal_values: $values,
                    pointers: a.csr.pointers.ptr(),
                    col_indices: a.csr.col_indices.ptr(),
                    values: a.csr.values.ptr(),
                    x: x.ptr(),
                    y: y.ptr_mut(),
                };
                // SAFETY: a matrix in DIA made from these verified CSR arrays, and vectors of the
                // lengths of its shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match &a.values {
            DeviceReducedValues::Stored(v) => launch!(DiaThreadPerRow(v.ptr())),
            DeviceReducedValues::Narrow(v) => launch!(DiaThreadPerRowNarrow(v.ptr())),
            DeviceReducedValues::Equal(_) => unreachable!("places have values"),
        }
    })))
}
