//! Plan of `gpu-kernels/src/spmv/csr_segmented_sum.rs`.

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, Value};
use spm_gpu_kernels::spmv::{
    CsrSegmentedSum4, CsrSegmentedSum4Equal, CsrSegmentedSum4Single, CsrSegmentedSum8,
    CsrSegmentedSum8Equal, CsrSegmentedSum8Single, SEGMENT_THREADS, csr_segmented_sum_shared_bytes,
};

use super::KERNEL;
use super::parameters::{DROP_EQUAL, SINGLE_VALUES};
use crate::convert::{DeviceReducedValues, DeviceSegments, ValueKind};
use crate::matrix::With;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::product::Zero;
use crate::source::Source;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-segmented-sum",
    source: "own; after Liu and Vinter, ICS'15",
    summary: "CSR by segmented sum: equal numbers of entries for each thread, row ends as bits",
    parameters: &[ENTRIES, DROP_EQUAL, SINGLE_VALUES],
    ..KERNEL
};

pub(crate) const ENTRIES: ParameterSpec = ParameterSpec {
    name: "entries",
    meaning: "entries of a thread; auto takes 4 for a small matrix and 8 for a large one",
    default: Value::Choice("auto"),
    studied: &[Value::Choice("auto"), Value::Choice("4"), Value::Choice("8")],
};

/// Entries from which 8 entries for each thread still fill the device.
const MANY_ENTRIES: usize = 1 << 20;

/// The entries of a thread.
pub(crate) fn entries<T: DeviceScalar>(a: &Source<T>, parameters: &Parameters) -> usize {
    let fitting = if a.csr.entries() < MANY_ENTRIES { 4 } else { 8 };
    parameters.choice(ENTRIES.name).parse().unwrap_or(fitting)
}

pub(super) fn on_device<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, parameters, .. } = problem;
    if a.csr.entries() == 0 {
        return Ok(problem.boxed(Zero(a.csr.rows(), a.csr.cols())));
    }
    let entries = entries(a, parameters);
    let (drop_equal, single) =
        (parameters.switch(DROP_EQUAL.name), parameters.switch(SINGLE_VALUES.name));
    let values = ValueKind::choose(&a.stats, drop_equal, single);
    let matrix = DeviceSegments::new(&a.csr, &a.stats, entries, values)?;
    let blocks = matrix.headers.len() - 1;
    let mut parts = DeviceBuffer::<T>::uninitialized(device, 2 * blocks)?;
    let mut arrivals = DeviceBuffer::<u32>::zeroed(device, blocks)?;
    let launch = problem
        .launch(blocks, 1, SEGMENT_THREADS as usize)?
        .with_shared_bytes(csr_segmented_sum_shared_bytes::<T>(entries as u32));
    let scratch_bytes = parts.bytes() + arrivals.bytes();
    let matrix = With { matrix, extra: (), extra_bytes: 0, scratch_bytes };
    Ok(problem.product_with_scratch(matrix, 0, move |a, x, y, stream| {
        let a = &a.matrix;
        if a.row_ids.is_some() {
            a.scale_empty_rows(1, y, stream)?;
        }
        macro_rules! launch {
            ($kernel:ident { $field:ident: $value:expr }) => {{
                let args = $kernel {
                    listed: a.row_ids.is_some().into(),
                    row_ids: a.row_ids.as_ref().unwrap_or(&a.row_ptr).ptr(),
                    row_ptr: a.row_ptr.ptr(),
                    step: a.step,
                    headers: a.headers.ptr(),
                    warp_ranks: a.warp_ranks.ptr(),
                    flags: a.flags.ptr(),
                    col_ind: a.col_ind.ptr(),
                    $field: $value,
                    x: x.ptr(),
                    parts: parts.ptr_mut(),
                    arrivals: arrivals.ptr_mut(),
                    y: y.output(),
                };
                // SAFETY: arrays made from verified CSR arrays for this number of entries, and
                // vectors of the lengths of their shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match (&a.values, entries) {
            (DeviceReducedValues::Stored(v), 4) => launch!(CsrSegmentedSum4 { values: v.ptr() }),
            (DeviceReducedValues::Single(v), 4) => {
                launch!(CsrSegmentedSum4Single { values: v.ptr() })
            }
            (&DeviceReducedValues::Equal(v), 4) => launch!(CsrSegmentedSum4Equal { value: v }),
            (DeviceReducedValues::Stored(v), _) => launch!(CsrSegmentedSum8 { values: v.ptr() }),
            (DeviceReducedValues::Single(v), _) => {
                launch!(CsrSegmentedSum8Single { values: v.ptr() })
            }
            (&DeviceReducedValues::Equal(v), _) => launch!(CsrSegmentedSum8Equal { value: v }),
        }
    }))
}
