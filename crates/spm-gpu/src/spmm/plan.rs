//! SpMM plans from products.

use spm_formats::DenseShape;

use super::BoxedPlan;
use crate::device::Device;
use crate::error::GpuError;
use crate::matrix::DeviceMatrix;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::product::{Checked, Launches, Product};
use crate::stream::Stream;

/// A plan made of a matrix on the device, `workspace` bytes, and launches. `enqueue` is called with
/// checked operands: X and Y have the lengths of the shapes, Y is not empty, and everything is on
/// one device.
pub(crate) fn product<T, M, F>(
    device: &Device,
    dense: DenseShape,
    matrix: M,
    workspace: u64,
    enqueue: F,
) -> BoxedPlan<T>
where
    T: DeviceScalar,
    M: DeviceMatrix,
    F: Fn(&M, &DeviceBuffer<T>, &mut DeviceBuffer<T>, &Stream) -> Result<(), GpuError>
        + Send
        + 'static,
{
    let launches = Launches { matrix, workspace, enqueue };
    Box::new(Checked::without_scratch(device, dense, launches))
}

/// The same for launches that write scratch memory of the plan: they run one after another.
pub(crate) fn product_with_scratch<T, M, F>(
    device: &Device,
    dense: DenseShape,
    matrix: M,
    workspace: u64,
    enqueue: F,
) -> BoxedPlan<T>
where
    T: DeviceScalar,
    M: DeviceMatrix,
    F: FnMut(&M, &DeviceBuffer<T>, &mut DeviceBuffer<T>, &Stream) -> Result<(), GpuError>
        + Send
        + 'static,
{
    boxed(device, dense, Launches { matrix, workspace, enqueue })
}

/// Makes a plan of a product.
pub(crate) fn boxed<T: DeviceScalar>(
    device: &Device,
    dense: DenseShape,
    product: impl Product<T> + 'static,
) -> BoxedPlan<T> {
    Box::new(Checked::new(device, dense, product))
}
