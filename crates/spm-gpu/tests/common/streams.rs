//! Plans that are launched into two streams in turns.

use std::collections::BTreeSet;

use spm_formats::kernel::TransposeOutput;
use spm_formats::{DenseShape, Layout, MemoryBudget, Scalar};
use spm_gpu::transpose::convert::{self, DeviceCoo};
use spm_gpu::transpose::primitives;
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsc, DeviceScalar, GpuError, PlanOptions, Stream, spmm, spmv,
    transpose,
};
use spm_testing::reference;

use super::cases::{Case, spmm_cases};
use super::planned;

/// Launches of a plan, into one stream and the other.
const ROUNDS: usize = 2;

/// Operand number `which`.
fn operand<T: Scalar>(which: usize, length: usize) -> Vec<T> {
    let part =
        |i: usize| <T::Real as Scalar>::from_f64((((5 + 2 * which) * i + which) % 11) as f64 - 5.0);
    (0..length).map(|i| T::from_parts(part(i), part(i + 3))).collect()
}

/// Launches in turns into two streams, then each into a stream of another library that is gone at the next
/// one. Each stream has its own operand and results, none of which is waited for. Checks all results.
fn in_turns<T: DeviceScalar>(
    what: &str,
    device: &Device,
    (cols, rows): (usize, usize),
    expected: impl Fn(&[T]) -> Vec<T::Wide>,
    mut launch: impl FnMut(&DeviceBuffer<T>, &mut DeviceBuffer<T>, &Stream) -> Result<(), GpuError>,
) {
    let streams = [Stream::new(device).unwrap(), Stream::new(device).unwrap()];
    let x = [operand(0, cols), operand(1, cols)];
    let on_device = x.each_ref().map(|x| DeviceBuffer::from_slice(device, x).unwrap());
    let fresh = || DeviceBuffer::from_slice(device, &vec![T::from_f64(f64::NAN); rows]).unwrap();
    let mut results: Vec<_> = (0..4 * ROUNDS).map(|_| fresh()).collect();
    // On a GPU they are the test's own, which outlive what stands for them.
    let others = [Stream::new(device).unwrap(), Stream::new(device).unwrap()];
    for (round, y) in results.iter_mut().enumerate() {
        let side = round % 2;
        let launched = if round < 2 * ROUNDS {
            launch(&on_device[side], y, &streams[side])
        } else {
            // SAFETY: a stream of this device, which lives longer.
            let stream = unsafe { Stream::from_raw(device, others[side].as_raw()) };
            launch(&on_device[side], y, &stream)
        };
        launched.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    device.synchronize().unwrap_or_else(|error| panic!("{what}: {error}"));
    let expected = x.map(|x| expected(&x));
    for (round, y) in results.iter().enumerate() {
        let result: Vec<_> = y.to_vec().unwrap().into_iter().map(T::widen).collect();
        assert!(result == expected[round % 2], "{what}: launch {round} is wrong");
    }
}

/// Returns which kernels took the matrix.
pub(crate) fn products<T: DeviceScalar>(device: &Device, case: &Case<T>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let (rows, cols) = (case.coo.rows(), case.coo.cols());
    for kernel in spmv::registry::<T>() {
        let (what, set) = (format!("spmv {}", kernel.info.id), kernel.info.defaults());
        let plan = kernel.plan(device, case.csr.view(), &set, &PlanOptions::default());
        let Some(mut plan) = planned(&what, plan) else { continue };
        let expected = |x: &[T]| reference::spmv(&case.coo, x).values;
        in_turns(&what, device, (cols, rows), expected, |x, y, stream| plan.launch(x, y, stream));
        seen.insert(what);
    }
    for kernel in spmm::registry::<T>() {
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let dense = DenseShape { k: 4, layout };
            let (what, set) = (format!("spmm {}", kernel.info.id), kernel.info.defaults());
            let plan = kernel.plan(device, case.csr.view(), dense, &set, &PlanOptions::default());
            let Some(mut plan) = planned(&what, plan) else { continue };
            let expected = |x: &[T]| reference::spmm(&case.coo, x, dense).values;
            let lengths = (cols * dense.k, rows * dense.k);
            in_turns(&what, device, lengths, expected, |x, y, stream| plan.launch(x, y, stream));
            seen.insert(what);
        }
    }
    seen
}

pub(crate) fn transpositions<T: DeviceScalar>(device: &Device, case: &Case<T>) {
    let (cols, entries) = (case.coo.cols(), case.coo.entries());
    let (col_ptr, row_ind, values) = reference::transpose(&case.coo);
    let expected = TransposeOutput { col_ptr, row_ind, values };
    let streams = [Stream::new(device).unwrap(), Stream::new(device).unwrap()];
    for kernel in transpose::registry::<T>() {
        let (what, set) = (format!("transpose {}", kernel.info.id), kernel.info.defaults());
        let plan = kernel.plan(device, case.csr.view(), &set, &PlanOptions::default());
        let Some(mut plan) = planned(&what, plan) else { continue };
        let fresh = || DeviceCsc::new(device, cols, entries).unwrap();
        let mut results: Vec<_> = (0..2 * ROUNDS).map(|_| fresh()).collect();
        for (round, output) in results.iter_mut().enumerate() {
            plan.launch(output, &streams[round % 2]).unwrap();
        }
        device.synchronize().unwrap_or_else(|error| panic!("{what}: {error}"));
        for output in &results {
            let mut result = TransposeOutput::new(cols, entries);
            output.copy_to(&mut result).unwrap();
            assert!(result == expected, "{what}: wrong");
        }
    }
}

/// A conversion twice at the same time: what they share is the device.
pub(crate) fn conversions(device: &Device, case: &Case<f64>) {
    let entries = case.coo.entries();
    let coo = DeviceCoo::from_coo(device, &case.coo).unwrap();
    let csr = || {
        let csr = convert::coo_to_csr(&coo, &MemoryBudget::default()).unwrap();
        let mut columns = vec![0; entries];
        csr.indices().copy_to_slice(&mut columns).unwrap();
        assert!(columns == case.csr.col_ind(), "COO to CSR");
    };
    std::thread::scope(|scope| {
        scope.spawn(csr);
        scope.spawn(csr);
    });
}

pub(crate) fn procedures(device: &Device, lengths: &[usize]) {
    let streams = [Stream::new(device).unwrap(), Stream::new(device).unwrap()];
    for primitive in primitives::registry() {
        for &length in lengths {
            let set = primitive.info.defaults();
            let mut prepared = primitive.prepare(device, length, &set).unwrap();
            for round in 0..2 * ROUNDS {
                prepared.launch(&streams[round % 2]).unwrap();
            }
            let id = primitive.info.id;
            device.synchronize().unwrap_or_else(|error| panic!("{id}: {error}"));
            assert!(prepared.check(&streams[1]).unwrap(), "{id}: wrong");
        }
    }
}

/// Columns all over, an empty and a full row.
pub(crate) fn small<T: Scalar>() -> Case<T> {
    let full = "a full row among short and empty ones";
    let case = spmm_cases().into_iter().find(|case| case.name == full);
    case.expect("a listed case")
}

/// A stream, a plan and its operands are dropped behind their launches, whose results must be right.
pub(crate) fn dropped_behind_a_launch(device: &Device) {
    let case = small();
    let (rows, cols) = (case.coo.rows(), case.coo.cols());
    let kernel = spmv::find::<f64>("csr-merge").unwrap();
    let expected = reference::spmv(&case.coo, &operand(0, cols)).values;
    let plan =
        kernel.plan(device, case.csr.view(), &kernel.info.defaults(), &PlanOptions::default());
    let (mut plan, streams) = (plan.unwrap(), [(); 2].map(|()| Stream::new(device).unwrap()));
    let x = DeviceBuffer::from_slice(device, &operand(0, cols)).unwrap();
    let mut ys = [(); 2].map(|()| DeviceBuffer::zeroed(device, rows).unwrap());
    for (y, stream) in ys.iter_mut().zip(streams) {
        plan.launch(&x, y, &stream).unwrap();
        drop(stream);
    }
    drop((plan, x));
    for y in &ys {
        let mut result = vec![0.0; rows];
        y.copy_to_slice(&mut result).unwrap();
        assert_eq!(result, expected);
    }
}
