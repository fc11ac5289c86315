//! Plans of the blocks of a matrix, and the choice of their kernel.

use std::sync::Arc;

use spm_formats::kernel::{ParameterError, PlanError, split_label};
use spm_formats::{Csr, DenseShape, Layout};
use spm_gpu::{Device, DeviceCsr, DeviceProductPlan, DeviceScalar, PlanOptions, spmm, spmv};

use super::DeviceOptions;
use crate::{Communicator, DistError};

/// The kernel that takes every matrix, and that of SpMM.
const PLAIN: &str = "csr-subwarp-per-row";
const PLAIN_MANY: &str = "csr-vector";
/// That of the transpose, whose rows may have any length.
const OF_TRANSPOSE: &str = "csr-segmented-sum";

pub(super) type BoxedPlan<T> = Box<dyn DeviceProductPlan<T>>;

pub(super) fn dense(columns: usize) -> DenseShape {
    DenseShape { k: columns, layout: Layout::RowMajor }
}

pub(super) fn plain(columns: usize) -> &'static str {
    if columns == 1 { PLAIN } else { PLAIN_MANY }
}

/// Plans a block with the kernel of a label.
pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    label: &str,
    columns: usize,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, DistError> {
    let (id, parameters) = split_label(label);
    let unsupported = |reason| PlanError::Unsupported { kernel: PLAIN, reason };
    let unknown =
        || unsupported(format!("no kernel of this operation for a GPU is called {label:?}"));
    let wrong = |error: ParameterError| unsupported(error.to_string());
    let plan = if columns == 1 {
        let kernel = spmv::find::<T>(id).ok_or_else(unknown)?;
        let parameters = kernel.info.parse_parameters(parameters).map_err(wrong)?;
        kernel.plan(device, a.view(), &parameters, options)?
    } else {
        let kernel = spmm::find::<T>(id).ok_or_else(unknown)?;
        let parameters = kernel.info.parse_parameters(parameters).map_err(wrong)?;
        kernel.plan(device, a.view(), dense(columns), &parameters, options)?
    };
    Ok(plan)
}

/// Plans the product with the transpose of a block, which is transposed on the device.
pub(super) fn plan_transposed<T: DeviceScalar>(
    device: &Device,
    a: &Csr<T>,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, DistError> {
    let transpose = Arc::new(DeviceCsr::transposed(device, a.view(), options)?);
    let kernel = spmv::find::<T>(OF_TRANSPOSE).expect("a registered kernel");
    let plan = kernel.plan_on_device(&transpose, &kernel.info.defaults(), options);
    Ok(plan.expect("it is planned on the device")?)
}

/// The label of rank 0's choice for the block with the most entries. Collective.
pub(super) fn choose<T: DeviceScalar>(
    comm: &(impl Communicator + ?Sized),
    device: &Device,
    blocks: [&Csr<T>; 2],
    options: &DeviceOptions,
) -> Result<String, DistError> {
    let mut label = String::new();
    if comm.rank() == 0 {
        let [local, boundary] = blocks;
        let block = if local.nnz() >= boundary.nnz() { local } else { boundary };
        let auto = plan(device, block, "auto", options.columns, &options.plan);
        let choice = auto.ok().and_then(|plan| plan.choice());
        label = choice.unwrap_or_else(|| plain(options.columns).to_owned());
    }
    let all = comm.all_gather(label.as_bytes())?;
    Ok(String::from_utf8_lossy(&all[0]).into_owned())
}
