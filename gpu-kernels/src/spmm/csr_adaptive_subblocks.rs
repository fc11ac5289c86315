//! CSR-Adaptive with sub-blocks (R4 3.3, CSR_Adaptive_sub_blocks).
//!
//! A block takes a row block (see `csr_adaptive.rs`) with all columns of X. It is cut into
//! sub-blocks of w threads; each computes one element of Y at a time: lane l sums the entries l,
//! l + w, ... of row i with column j of X, and the w sums are added in shared memory. The entries
//! of a row block of several rows are kept in shared memory, since every column needs them.
//! X is column-major: the report transposes it.

use super::reduce::shared_sum;
use super::strides::Strides;
use crate::device::shared::{Pool, SharedArray};
use crate::device::{DevicePtr, Output, Real, divide, thread};
use crate::kernel::kernel;

/// Bytes of dynamic shared memory for blocks of `block` threads.
#[cfg(not(target_arch = "nvptx64"))]
pub fn csr_adaptive_subblocks_bytes<T: Real>(block: u32) -> u32 {
    let mut pool = Pool::new();
    cut::<T>(&mut pool, block);
    pool.bytes()
}

/// The sums, the values and the columns.
#[inline(always)]
fn cut<T: Real>(pool: &mut Pool, block: u32) -> (SharedArray<T>, SharedArray<T>, SharedArray<u32>) {
    (pool.array(block), pool.array(block), pool.array(block))
}

kernel! {
    /// `csr-adaptive-subblocks`: `lanes` (a power of two up to 32) per sub-block. Row block b has
    /// the rows `row_blocks[b]` to `row_blocks[b + 1]`. Block: a multiple of 32, at least as many
    /// threads as a row block of several rows has entries; grid: one block per row block; shared
    /// memory: [`csr_adaptive_subblocks_bytes`].
    pub fn spmm_csr_adaptive_subblocks<T: Real>(
        k: u32,
        lanes: u32,
        row_blocks: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        x_strides: Strides,
        y: Output<T>,
        y_strides: Strides,
    ) {
        let (me, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let (sums, kept_values, kept_columns) = cut::<T>(&mut Pool::new(), threads);
        let block = thread::block_idx_x();
        let (first, last) = (row_blocks.load(block), row_blocks.load(block + 1));
        let (start, end) = (row_ptr.load(first), row_ptr.load(last));
        let kept = end - start <= threads;
        if kept {
            if me < end - start {
                kept_values.store(me, values.load(start + me));
                kept_columns.store(me, col_ind.load(start + me));
            }
            thread::sync_threads();
        }
        let subblocks = threads >> lanes.trailing_zeros();
        let (subblock, lane) = (me >> lanes.trailing_zeros(), me & (lanes - 1));
        let elements = (last - first) * k;
        // The same number of steps for all lanes of a warp: they meet in the sum.
        let mut step = 0;
        while step < elements {
            let element = step + subblock;
            let inside = element < elements;
            let row = first + divide(element, k);
            let column = element - (row - first) * k;
            let mut sum = T::ZERO;
            if inside {
                let row_end = row_ptr.load(row + 1);
                let mut e = row_ptr.load(row) + lane;
                while e < row_end {
                    let (value, index) = if kept {
                        (kept_values.load(e - start), kept_columns.load(e - start))
                    } else {
                        (values.load(e), col_ind.load(e))
                    };
                    sum = value.mul_add(x.load(x_strides.index(index, column)), sum);
                    e += lanes;
                }
            }
            let sum = shared_sum(sums, sum, lanes);
            if inside && lane == 0 {
                y.store(y_strides.index(row, column), sum);
            }
            step += subblocks;
        }
    }
    as CsrAdaptiveSubblocks
}
