//! Plan of `gpu-kernels/src/spmm/sell_thread_per_row.rs`.

use spm_formats::Layout;
use spm_formats::kernel::{KernelInfo, ParameterSpec, Value};
use spm_gpu_kernels::spmm::{SellThreadPerRow2, SellThreadPerRow4, SellThreadPerRow8};

use super::KERNEL;
use super::arrays::launch_sell;
use super::columns::SMALL_BLOCK;
use super::parameters::SIGMA;
use super::rearrange::Ordered;
use crate::matrix::DeviceMatrix;
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned, Problem};

pub(super) const COLUMNS: ParameterSpec = ParameterSpec {
    name: "columns",
    meaning: "columns of X for a thread",
    default: Value::Choice("auto"),
    studied: &[Value::Choice("auto"), Value::Choice("2"), Value::Choice("4"), Value::Choice("8")],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell-thread-per-row",
    source: "own; Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014",
    summary: "SELL-32-sigma, a thread for each row and some columns of X; X column-major, rearranged in the run if it is not",
    parameters: &[SMALL_BLOCK, COLUMNS, SIGMA],
    ..KERNEL
};

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, dense, parameters, budget, .. } = problem;
    let columns: usize = parameters.choice(COLUMNS.name).parse().unwrap_or(match dense.k {
        0..=2 => 2,
        3..=4 => 4,
        _ => 8,
    });
    let launch = problem.launch_groups(a.csr.rows(), 1, columns)?;
    let a = a.sell(parameters.count(SIGMA.name), budget)?;
    let (_, cols) = a.shape();
    let mut ordered = Ordered::new(device, cols, dense, Layout::ColumnMajor)?;
    let workspace = ordered.bytes();
    Ok(problem.product_with_scratch(a, workspace, move |a, x, y, stream| {
        let x = ordered.load(x, stream)?;
        macro_rules! launch {
            ($kernel:ident) => {
                launch_sell!(launch, a, x, y, dense, stream, $kernel { cols: cols as u32 })
            };
        }
        match columns {
            2 => launch!(SellThreadPerRow2),
            4 => launch!(SellThreadPerRow4),
            _ => launch!(SellThreadPerRow8),
        }
    }))
}
