//! Plan of `gpu-kernels/src/spmm/csr_vector.rs`.

use spm_formats::Layout;
use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters};
use spm_gpu_kernels::spmm::{CsrVector2, CsrVector4, CsrVector8};

use super::KERNEL;
use super::columns::SMALL_BLOCK;
use super::long_rows::{LongRows, Parts, SPLIT, longest};
use super::rearrange::{Ordered, strides};
use super::sell_thread_per_row::COLUMNS;
use crate::launch::WARP;
use crate::matrix::PlanCsr;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::source::Source;
use crate::spmv::row_lanes;

const LANES: ParameterSpec =
    row_lanes("threads of a row; auto takes fewer than a row of mean length has entries");

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-vector",
    source: "own; after Bell and Garland, SC'09",
    summary: "CSR, threads across the entries of a row, each for some columns of X, long rows split; X column-major, rearranged in the run if it is not",
    parameters: &[SMALL_BLOCK, COLUMNS, LANES, SPLIT],
    ..KERNEL
};

/// Entries of a row for each of its threads up to which the row is not split.
const TURNS: usize = 32;
/// Times the threads that the device runs at once above which more threads per row do not help.
const MANY_THREADS: usize = 4;
/// A launch of fewer than one thread for this many that the device runs at once leaves most of it idle.
const FEW_THREADS: usize = 8;

/// The assignment of the threads of a warp to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    /// Columns of a thread.
    columns: usize,
    /// Threads of a row.
    lanes: usize,
}

impl Shape {
    /// The assignment for rows of `mean` entries. With more columns fewer threads share a row,
    /// because each column costs a reduction over them. `resident`: threads that the device runs at once.
    fn fitting(resident: usize, rows: usize, mean: usize, k: usize) -> Self {
        let (columns, wanted) = match k {
            0..=2 => (2, 2 * mean / 3 + 1),
            3..=4 => (4, 2 * mean / 3 + 1),
            5..=8 => (4, mean / 2),
            _ => (8, mean / 4),
        };
        let mut lanes = (1 << wanted.max(1).ilog2()).min(WARP);
        while lanes > 1 && rows.saturating_mul(lanes) > MANY_THREADS * resident {
            lanes /= 2;
        }
        if rows.saturating_mul(lanes * k.div_ceil(columns)) <= resident / FEW_THREADS {
            return Self { columns: 2, lanes: (2 * lanes).min(WARP) };
        }
        Self { columns, lanes }
    }

    fn of<T: DeviceReal>(a: &Source<T>, k: usize, parameters: &Parameters) -> Self {
        let fitting =
            Self::fitting(a.csr.device().info().resident_threads(), a.csr.rows(), a.mean_row(), k);
        Self {
            columns: parameters.choice(COLUMNS.name).parse().unwrap_or(fitting.columns),
            lanes: parameters.choice(LANES.name).parse().unwrap_or(fitting.lanes),
        }
    }
}

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, dense, parameters, .. } = problem;
    let Shape { columns, lanes } = Shape::of(a, dense.k, parameters);
    let longest = longest(a, lanes, parameters).max(TURNS * lanes);
    let parts = Parts::of(a, longest)?;
    let items = parts.bounds.len() + a.csr.rows();
    let launch = problem.launch_groups(items, lanes, columns)?;
    let chunks = parts.bounds.len() as u32;
    let chunk_bounds = DeviceBuffer::from_slice(device, &parts.bounds)?;
    let mut long = LongRows::new(device, &parts, dense.k)?;
    let a = PlanCsr::new(a)?;
    let mut ordered = Ordered::new(device, a.cols(), dense, Layout::ColumnMajor)?;
    let workspace = ordered.bytes() + chunk_bounds.bytes() as u64 + long.bytes();
    Ok(problem.product_with_scratch(a, workspace, move |a, x, y, stream| {
        let x = ordered.load(x, stream)?;
        macro_rules! launch {
            ($kernel:ident) => {{
                let args = $kernel {
                    rows: a.rows() as u32,
                    cols: a.cols() as u32,
                    k: dense.k as u32,
                    lanes: lanes as u32,
                    split: longest as u32,
                    chunks,
                    chunk_bounds: chunk_bounds.ptr(),
                    partial: long.sums(),
                    row_ptr: a.row_ptr(),
                    col_ind: a.col_ind(),
                    values: a.values(),
                    x,
                    y: y.output(),
                    y_strides: strides(a.rows(), dense),
                };
                // SAFETY: verified CSR arrays, X column-major and Y of their shape and k > 0
                // columns; chunks of the matrix with room for k sums each.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args)? }
            }};
        }
        match columns {
            2 => launch!(CsrVector2),
            4 => launch!(CsrVector4),
            _ => launch!(CsrVector8),
        }
        long.enqueue(dense, a.rows(), y, stream)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_fit_the_rows() {
        let shape = |columns, lanes| Shape { columns, lanes };
        let fitting = |rows, mean, k| Shape::fitting(1 << 18, rows, mean, k);
        assert_eq!(fitting(4_884, 59, 4), shape(4, 32));
        assert_eq!(fitting(4_884, 59, 64), shape(8, 8));
        assert_eq!(fitting(32_768, 5, 4), shape(4, 4));
        assert_eq!(fitting(156_317, 13, 4), shape(4, 4), "enough rows for the device");
        assert_eq!(fitting(765, 32, 4), shape(2, 32), "few rows");
        assert_eq!(fitting(0, 1, 0), shape(2, 2));
    }
}
