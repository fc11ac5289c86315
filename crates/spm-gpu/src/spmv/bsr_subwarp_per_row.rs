//! Plan of `gpu-kernels/src/spmv/bsr_subwarp_per_row.rs`.

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};
use spm_gpu_kernels::spmv::{BSR_THREADS, Bsr2, Bsr3, Bsr4, Bsr5, Bsr6, Bsr8};

use super::KERNEL;
use super::parameters::{block, row_lanes};
use crate::blocks::{SIZE, block_size, no_such_size};
use crate::convert::{BsrBlocks, BsrOptions, DeviceBsr};
use crate::info::DeviceInfo;
use crate::launch::{Launch, WARP};
use crate::memory::DeviceBuffer;
use crate::plan::{BoxedPlan, DeviceScalar};
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::product::{Target, Zero};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "bsr-subwarp-per-row",
    source: "own; slices after Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014",
    summary: "BSR, dense square blocks, 1 to 32 threads for each block row",
    parameters: &[block(128, BLOCKS), SIZE, LANES],
    ..KERNEL
};

const BLOCKS: &[Value] = &[Value::Count(64), Value::Count(128), Value::Count(256)];

const LANES: ParameterSpec = row_lanes(
    "threads of a block row; auto takes more where there are few of them, and long block rows",
);

/// When a block row gets twice the threads: less of them than so many sixteenths of what the device runs at
/// once, and at least so many blocks for each. Few threads leave a multiprocessor idle at the end of the launch
/// or throughout; threads with few blocks wait for the loads that begin a row, and read sectors in part.
const DOUBLED: [(usize, f64); 4] = [(18, 12.0), (6, 6.0), (3, 3.0), (1, 1.5)];

/// The requested threads per block row, or those that suit the number of block rows and their mean length.
fn lanes<T: DeviceScalar>(
    parameters: &Parameters,
    device: &DeviceInfo,
    blocks: &BsrBlocks<'_, T>,
) -> usize {
    parameters.choice(LANES.name).parse().unwrap_or_else(|_| {
        let block_rows = blocks.block_rows();
        fitting_lanes(block_rows, blocks.blocks, device.resident_threads())
    })
}

fn fitting_lanes(block_rows: usize, blocks: usize, resident: usize) -> usize {
    let of_row = blocks as f64 / block_rows.max(1) as f64;
    let more = |&lanes: &usize| {
        DOUBLED.iter().any(|&(sixteenths, of_thread)| {
            block_rows * lanes < resident / 16 * sixteenths && of_row / lanes as f64 >= of_thread
        })
    };
    let doubled = std::iter::successors(Some(1), |lanes| Some(2 * lanes));
    doubled.take_while(|&lanes| lanes <= WARP).find(|lanes| !more(lanes)).unwrap_or(WARP)
}

pub(super) fn on_device<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let csr = &problem.a.csr;
    if csr.entries() == 0 {
        return Ok(problem.boxed(Zero(csr.rows(), csr.cols())));
    }
    let size = block_size(problem)?;
    let plan = with_blocks(problem, size, |_| true)?;
    Ok(plan.expect("any number of stored elements is accepted"))
}

/// The plan with blocks of this size; `None` if `accept` refuses the number of stored elements.
pub(super) fn with_blocks<T: DeviceScalar>(
    problem: DeviceProblem<'_, T>,
    size: usize,
    accept: impl FnOnce(u64) -> bool,
) -> Result<Option<BoxedPlan<T>>, PlanError> {
    macro_rules! plan {
        ($kernel:ident) => {{
            let enqueue = |a: &DeviceBsr<T>, launch, x: &DeviceBuffer<T>, y: &mut Target<'_, T>, stream: &crate::Stream| {
                let args = $kernel {
                    rows: a.shape.0 as u32,
                    cols: a.shape.1 as u32,
                    block_rows: a.block_rows() as u32,
                    log_lanes: a.log_lanes,
                    full: a.is_full().into(),
                    order: a.order.ptr(),
                    starts: a.starts.ptr(),
                    first_cols: a.first_cols.ptr(),
                    masks: a.masks.ptr(),
                    values: a.values.ptr(),
                    x: x.ptr(),
                    y: y.output(),
                };
                // SAFETY: a BSR matrix made from verified CSR arrays, with blocks of the size of the kernel, and
                // vectors of the lengths of its shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            };
            planned(problem, size, accept, enqueue)
        }};
    }
    match size {
        2 => plan!(Bsr2),
        3 => plan!(Bsr3),
        4 => plan!(Bsr4),
        5 => plan!(Bsr5),
        6 => plan!(Bsr6),
        8 => plan!(Bsr8),
        _ => Err(no_such_size(problem, size)),
    }
}

/// [`with_blocks`] with the launch of its kernel.
fn planned<T: DeviceScalar>(
    problem: DeviceProblem<'_, T>,
    size: usize,
    accept: impl FnOnce(u64) -> bool,
    enqueue: impl Fn(
        &DeviceBsr<T>,
        Launch,
        &DeviceBuffer<T>,
        &mut Target<'_, T>,
        &crate::Stream,
    ) -> Result<(), crate::GpuError>
    + Send
    + 'static,
) -> Result<Option<BoxedPlan<T>>, PlanError> {
    let Problem { device, a, parameters, budget, .. } = problem;
    let block = problem.warps()? * WARP;
    if block > BSR_THREADS as usize {
        let reason = format!("blocks of {block} threads; it takes up to {BSR_THREADS}");
        return Err(problem.unsupported(reason));
    }
    let options = BsrOptions { size, new_values: a.new_values };
    let blocks = BsrBlocks::count(&a.csr, options)?;
    if !accept(blocks.elements()) {
        return Ok(None);
    }
    let lanes = lanes(parameters, device.info(), &blocks);
    let launch = problem.launch(blocks.block_rows() * lanes, block, block)?;
    let bsr = blocks.convert(lanes, budget)?;
    let launch = problem.loading(&bsr, launch);
    Ok(Some(problem.product(bsr, 0, move |a, x, y, stream| enqueue(a, launch, x, y, stream))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that were the fastest on 132 multiprocessors of 2048 threads, or within 5 % of them.
    #[test]
    fn few_block_rows_have_more_threads() {
        let fitting = |block_rows, of_row: f64| {
            fitting_lanes(block_rows, (block_rows as f64 * of_row) as usize, 132 * 2048)
        };
        assert_eq!(fitting(64_000, 14.4), 2);
        assert_eq!(fitting(166_000, 14.4), 2);
        assert_eq!(fitting(27_000, 14.2), 4);
        assert_eq!(fitting(32_400, 6.9), 2);
        assert_eq!(fitting(10_000, 6.9), 4);
        assert_eq!(fitting(250_000, 7.0), 1);
        assert_eq!(fitting(125_000, 6.9), 1);
        assert_eq!(fitting(8_000, 13.8), 8);
        assert_eq!(fitting(512, 20.8), 16);
        assert_eq!(fitting(3_000_000, 30.0), 1);
        assert_eq!(fitting(1, 1e6), 32);
        assert_eq!(fitting(0, 0.0), 1);
    }
}
