//! Plan of `gpu-kernels/src/spmv/csr_segmented_sum.rs`.

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};
use spm_gpu_kernels::device::{DevicePtr, DevicePtrMut, Output};
use spm_gpu_kernels::spmv::{
    CsrSegmentedSum4, CsrSegmentedSum4Equal, CsrSegmentedSum4Single, CsrSegmentedSum8,
    CsrSegmentedSum8Equal, CsrSegmentedSum8Single, SEGMENT_THREADS, csr_segmented_sum_shared_bytes,
};

use super::KERNEL;
use super::parameters::{DROP_EQUAL, SINGLE_VALUES};
use crate::convert::{DeviceReducedValues, DeviceSegments, ValueKind};
use crate::error::GpuError;
use crate::launch::Launch;
use crate::matrix::With;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceReal, DeviceScalar};
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::product::Zero;
use crate::source::Source;
use crate::stream::Stream;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-segmented-sum",
    source: "own; after Liu and Vinter, ICS'15",
    summary: "CSR by segmented sum: equal numbers of entries for each thread, row ends as bits",
    parameters: &[ENTRIES, DROP_EQUAL, SINGLE_VALUES],
    ..KERNEL
};

/// Of a complex matrix, with 4 entries for each thread.
pub(super) const COMPLEX: KernelInfo = KernelInfo { parameters: &[], ..INFO };

pub(crate) const ENTRIES: ParameterSpec = ParameterSpec {
    name: "entries",
    meaning: "entries of a thread; auto takes 4 for a small matrix and 8 for a large one",
    default: Value::Choice("auto"),
    studied: &[Value::Choice("auto"), Value::Choice("4"), Value::Choice("8")],
};

/// Entries for each thread that the device runs at once from which 8 for each thread still fill it: half.
const MANY_ENTRIES: usize = 4;

/// The entries of a thread.
pub(crate) fn entries<T: DeviceScalar>(a: &Source<T>, parameters: &Parameters) -> usize {
    let many = MANY_ENTRIES * a.csr.device().info().resident_threads();
    let fitting = if a.csr.entries() < many { 4 } else { 8 };
    parameters.choice(ENTRIES.name).parse().unwrap_or(fitting)
}

/// Calls a kernel: `launch!(CALL, Kernel { values: ... })`.
macro_rules! launch {
    ($call:ident, $kernel:ident { $field:ident: $value:expr }) => {{
        let Call { a, launch, x, parts, arrivals, y, stream } = $call;
        let args = $kernel {
            listed: a.row_ids.is_some().into(),
            row_ids: a.row_ids.as_ref().unwrap_or(&a.row_ptr).ptr(),
            headers: a.headers.ptr(),
            warp_ranks: a.warp_ranks.ptr(),
            flags: a.flags.ptr(),
            col_ind: a.col_ind.ptr(),
            $field: $value,
            x,
            parts,
            arrivals,
            y,
        };
        // SAFETY: arrays made from verified CSR arrays for this number of entries, and vectors of
        // the lengths of their shape.
        unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
    }};
}

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { a, parameters, .. } = problem;
    let entries = entries(a, parameters);
    let (drop_equal, single) =
        (parameters.switch(DROP_EQUAL.name), parameters.switch(SINGLE_VALUES.name));
    let values = ValueKind::choose(a.values()?, drop_equal, single);
    let convert = |entries| DeviceSegments::with_values(&a.csr, a.stats, entries, values);
    product(problem, entries, convert, move |call| match (&call.a.values, entries) {
        (DeviceReducedValues::Stored(v), 4) => launch!(call, CsrSegmentedSum4 { values: v.ptr() }),
        (DeviceReducedValues::Single(v), 4) => {
            launch!(call, CsrSegmentedSum4Single { values: v.ptr() })
        }
        (&DeviceReducedValues::Equal(v), 4) => launch!(call, CsrSegmentedSum4Equal { value: v }),
        (DeviceReducedValues::Stored(v), _) => launch!(call, CsrSegmentedSum8 { values: v.ptr() }),
        (DeviceReducedValues::Single(v), _) => {
            launch!(call, CsrSegmentedSum8Single { values: v.ptr() })
        }
        (&DeviceReducedValues::Equal(v), _) => launch!(call, CsrSegmentedSum8Equal { value: v }),
    })
}

/// The plan for [`COMPLEX`].
pub(super) fn complex<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let a = problem.a;
    let convert = |entries| DeviceSegments::new(&a.csr, a.stats, entries);
    product(problem, 4, convert, |call| match &call.a.values {
        DeviceReducedValues::Stored(v) => launch!(call, CsrSegmentedSum4 { values: v.ptr() }),
        _ => unreachable!("complex values are stored"),
    })
}

/// The arguments of a launch.
struct Call<'a, T> {
    a: &'a DeviceSegments<T>,
    launch: Launch,
    x: DevicePtr<T>,
    parts: DevicePtrMut<T>,
    arrivals: DevicePtrMut<u64>,
    y: Output<T>,
    stream: &'a Stream,
}

/// A plan with `entries` entries for each thread.
fn product<T: DeviceScalar>(
    problem: DeviceProblem<'_, T>,
    entries: usize,
    convert: impl FnOnce(usize) -> Result<DeviceSegments<T>, PlanError>,
    enqueue: impl Fn(Call<'_, T>) -> Result<(), GpuError> + Send + 'static,
) -> Planned<T> {
    let Problem { device, a, .. } = problem;
    if a.csr.entries() == 0 {
        return Ok(problem.boxed(Zero(a.csr.rows(), a.csr.cols())));
    }
    let matrix = convert(entries)?;
    let blocks = matrix.headers.len() - 1;
    let mut parts = DeviceBuffer::<T>::zeroed(device, 2 * blocks)?;
    let mut arrivals = DeviceBuffer::<u64>::zeroed(device, blocks)?;
    let launch = problem
        .launch(blocks, 1, SEGMENT_THREADS as usize)?
        .with_shared_bytes(csr_segmented_sum_shared_bytes::<T>(entries as u32));
    let launch = problem.loading(&matrix, launch);
    let scratch_bytes = parts.bytes() + arrivals.bytes();
    let matrix = With { matrix, extra: (), extra_bytes: 0, scratch_bytes };
    Ok(problem.product_with_scratch(matrix, 0, move |a, x, y, stream| {
        let a = &a.matrix;
        if a.row_ids.is_some() {
            a.scale_empty_rows(1, y, stream)?;
        }
        let (x, parts, arrivals) = (x.ptr(), parts.ptr_mut(), arrivals.ptr_mut());
        enqueue(Call { a, launch, x, parts, arrivals, y: y.output(), stream })
    }))
}
