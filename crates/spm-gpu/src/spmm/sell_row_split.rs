//! Plan of `gpu-kernels/src/spmm/sell_row_split.rs`.

use spm_formats::Layout;
use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmm::{SellRowSplit1, SellRowSplit2, SellRowSplit4};

use super::KERNEL;
use super::arrays::launch_sell;
use super::columns::{COLUMNS, ColumnShape, SMALL_BLOCK, TILE};
use super::parameters::SIGMA;
use super::rearrange::Ordered;
use crate::matrix::DeviceMatrix;
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell-row-split",
    source: "own; Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014",
    summary: "SELL-32-sigma, threads across the columns of X in vector loads; X row-major, rearranged in the run if it is not",
    parameters: &[SMALL_BLOCK, COLUMNS, SIGMA, TILE],
    ..KERNEL
};

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, dense, parameters, budget, .. } = problem;
    let shape = ColumnShape::new(INFO.id, dense.k, parameters)?;
    let launch = shape.launch(&problem, a.csr.rows(), shape.lanes)?;
    let a = a.sell(parameters.count(SIGMA.name), budget)?;
    let (_, cols) = a.shape();
    let mut ordered = Ordered::new(device, cols, dense, Layout::RowMajor)?;
    let workspace = ordered.bytes();
    let alignment = shape.alignment::<T>();
    Ok(problem.product_aligned(alignment, a, workspace, move |a, x, y, stream| {
        let x = ordered.load(x, stream)?;
        macro_rules! launch {
            ($kernel:ident) => {
                launch_sell!(launch, a, x, y, dense, stream, $kernel { lanes: shape.lanes as u32 })
            };
        }
        match shape.columns {
            1 => launch!(SellRowSplit1),
            2 => launch!(SellRowSplit2),
            _ => launch!(SellRowSplit4),
        }
    }))
}
