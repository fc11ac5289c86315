//! CSR-Adaptive for SpMM (R4 3.3; after Greathouse and Daga, SC'14).
//!
//! The rows are cut into row blocks: consecutive rows that have together no more entries than a
//! block has threads, or one longer row. Block b takes row block b / k and column j = b % k of X.
//! - CSR-Stream (several rows): thread t writes values[e] X[col_ind[e], j] of the t-th entry of
//!   the row block to shared memory; then a thread per row adds the products of its row.
//! - CSR-Vector (one row): the threads sum strided entries, and the sums are added in shared memory.
//!
//! X is column-major: the report transposes it.

use super::strides::Strides;
use crate::device::shared::Pool;
use crate::device::{DevicePtr, Output, Real, divide, thread};
use crate::kernel::kernel;

/// Bytes of dynamic shared memory for blocks of `block` threads.
#[cfg(not(target_arch = "nvptx64"))]
pub fn csr_adaptive_bytes<T: Real>(block: u32) -> u32 {
    super::reduce::shared_sum_bytes::<T>(block)
}

kernel! {
    /// `csr-adaptive`. Row block b has the rows `row_blocks[b]` to `row_blocks[b + 1]`. Block: at
    /// least as many threads as a row block of several rows has entries, a power of two; grid: row
    /// blocks x k, one-dimensional; shared memory: [`csr_adaptive_bytes`].
    pub fn spmm_csr_adaptive<T: Real>(
        k: u32,
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
        let products = Pool::new().array::<T>(threads);
        let block = divide(thread::block_idx_x(), k);
        let column = thread::block_idx_x() - block * k;
        let (first, last) = (row_blocks.load(block), row_blocks.load(block + 1));
        let (start, end) = (row_ptr.load(first), row_ptr.load(last));
        if last - first > 1 {
            if me < end - start {
                let e = start + me;
                let x = x.load(x_strides.index(col_ind.load(e), column));
                products.store(me, values.load(e) * x);
            }
            thread::sync_threads();
            let mut row = first + me;
            while row < last {
                let mut sum = T::ZERO;
                for e in row_ptr.load(row)..row_ptr.load(row + 1) {
                    sum += products.load(e - start);
                }
                y.store(y_strides.index(row, column), sum);
                row += threads;
            }
        } else {
            let mut sum = T::ZERO;
            let mut e = start + me;
            while e < end {
                let x = x.load(x_strides.index(col_ind.load(e), column));
                sum = values.load(e).mul_add(x, sum);
                e += threads;
            }
            products.store(me, sum);
            let mut distance = threads / 2;
            while distance > 0 {
                thread::sync_threads();
                if me < distance {
                    sum += products.load(me + distance);
                    products.store(me, sum);
                }
                distance /= 2;
            }
            if me == 0 {
                y.store(y_strides.index(first, column), sum);
            }
        }
    }
    as CsrAdaptive
}
