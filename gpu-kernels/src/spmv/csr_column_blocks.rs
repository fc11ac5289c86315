//! CSR by blocks of columns, each block's part of x in shared memory (own; column blocking after
//! Im, Yelick and Vuduc, "Sparsity", IJHPCA 18(1), 2004).
//!
//! For rows with many entries anywhere in an x that L1 cannot hold: every gather from x that goes to
//! L2 moves a sector of 32 bytes for one number. Here block (c, r) of the grid copies the columns
//! of column block c once, then reads its entries of row block r, with 16-bit columns, a part of a
//! warp per row. The last block of a row block to arrive adds the sums of all column blocks in
//! their order: the same bits every time.

use crate::collective::warp_sum;
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::FULL_MASK;
use crate::device::{DevicePtr, DevicePtrMut, Real, fence, thread};
use crate::kernel::kernel;

#[derive(Clone, Copy)]
struct Shared<T> {
    x: SharedArray<T>,
    came_before: SharedArray<u32>,
}

impl<T: Real> Shared<T> {
    #[inline(always)]
    fn cut(pool: &mut Pool, block_cols: u32) -> Self {
        Self { x: pool.array(block_cols), came_before: pool.array(1) }
    }
}

/// Bytes of dynamic shared memory for `block_cols` columns.
#[cfg(not(target_arch = "nvptx64"))]
pub fn csr_column_blocks_shared_bytes<T: Real>(block_cols: u32) -> u32 {
    let mut pool = Pool::new();
    Shared::<T>::cut(&mut pool, block_cols);
    pool.bytes()
}

#[derive(Clone, Copy)]
struct Shape {
    rows: u32,
    cols: u32,
    block_rows: u32,
    block_cols: u32,
    col_blocks: u32,
    log_lanes: u32,
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn product<T: Real>(
    shape: Shape,
    pointers: DevicePtr<u32>,
    col_offsets: DevicePtr<u16>,
    value: impl Fn(u32) -> T,
    x: DevicePtr<T>,
    sums: DevicePtrMut<T>,
    arrivals: DevicePtrMut<u32>,
    y: DevicePtrMut<T>,
) {
    let Shape { rows, cols, block_rows, block_cols, col_blocks, log_lanes } = shape;
    let (me, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let (col_block, row_block) = (thread::block_idx_x(), thread::block_idx_y());
    let shared = Shared::<T>::cut(&mut Pool::new(), block_cols);
    let first_col = col_block * block_cols;
    let cols_here = (cols - first_col).min(block_cols);
    let mut j = me;
    while j < cols_here {
        let left = cols_here - j;
        // Beyond the end the last once more: four loads in flight.
        let at = [0, 1, 2, 3].map(|i| j + if i * threads < left { i * threads } else { 0 });
        let values = at.map(|at| x.load(first_col + at));
        shared.x.store(at[0], values[0]);
        if threads < left {
            shared.x.store(at[1], values[1]);
        }
        if 2 * threads < left {
            shared.x.store(at[2], values[2]);
        }
        if 3 * threads < left {
            shared.x.store(at[3], values[3]);
        }
        j += 4 * threads;
    }
    thread::sync_threads();

    let first_row = row_block * block_rows;
    let rows_here = (rows - first_row).min(block_rows);
    let (lanes, groups) = (1 << log_lanes, threads >> log_lanes);
    let lane = me & (lanes - 1);
    let pointers = pointers.offset(u64::from(col_block) * u64::from(rows) + u64::from(first_row));
    let sums_here = sums.offset(u64::from(col_block) * u64::from(rows) + u64::from(first_row));
    let mut base = 0;
    // The bounds of the next row are on their way while this one is summed.
    let bounds = |row: u32| {
        let row = row.min(rows_here - 1);
        (pointers.load(row), pointers.load(row + 1))
    };
    let mut row = me >> log_lanes;
    let mut next = bounds(row);
    // The same number of turns for all threads: the lanes of a row meet in the shuffle.
    while base < rows_here {
        let (start, end) = next;
        next = bounds(row + groups);
        let mut k = start + lane;
        let (mut even, mut odd) = (T::ZERO, T::ZERO);
        while k < end {
            let left = end - k;
            // Eight in flight; beyond the end the last entry again, left out.
            let at = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| k + (i << log_lanes).min(left - 1));
            let columns = at.map(|at| u32::from(col_offsets.load(at)));
            let values = at.map(&value);
            let x = columns.map(|column| shared.x.load(column));
            even = values[0].mul_add(x[0], even);
            if lanes < left {
                odd = values[1].mul_add(x[1], odd);
            }
            if 2 * lanes < left {
                even = values[2].mul_add(x[2], even);
            }
            if 3 * lanes < left {
                odd = values[3].mul_add(x[3], odd);
            }
            if 4 * lanes < left {
                even = values[4].mul_add(x[4], even);
            }
            if 5 * lanes < left {
                odd = values[5].mul_add(x[5], odd);
            }
            if 6 * lanes < left {
                even = values[6].mul_add(x[6], even);
            }
            if 7 * lanes < left {
                odd = values[7].mul_add(x[7], odd);
            }
            if left <= 8 * lanes {
                break;
            }
            k += 8 * lanes;
        }
        let sum = warp_sum(FULL_MASK, even + odd, lanes);
        if row < rows_here && lane == 0 {
            sums_here.store(row, sum);
        }
        row += groups;
        base += groups;
    }

    fence::device();
    thread::sync_threads();
    if me == 0 {
        shared.came_before.store(0, arrivals.atomic_add(row_block, 1));
    }
    thread::sync_threads();
    if shared.came_before.load(0) != col_blocks - 1 {
        return;
    }
    fence::device();
    let mut row = first_row + me;
    while row < first_row + rows_here {
        let mut sum = T::ZERO;
        for col_block in 0..col_blocks {
            sum += sums.load(u64::from(col_block) * u64::from(rows) + u64::from(row));
        }
        y.store(row, sum);
        row += threads;
    }
    if me == 0 {
        arrivals.store(row_block, 0);
    }
}

kernel! {
    /// `csr-column-blocks`: entries by column block, then by row; `pointers` has an element for
    /// each row of each column block, and one more. Block: a multiple of 32 up to 1024; grid:
    /// column blocks x row blocks; shared memory: [`csr_column_blocks_shared_bytes`]. `sums` has an
    /// element for each row of each column block, `arrivals` one for each row block, 0 before and
    /// after.
    pub fn spmv_csr_column_blocks<T: Real>(
        rows: u32,
        cols: u32,
        block_rows: u32,
        block_cols: u32,
        col_blocks: u32,
        log_lanes: u32,
        pointers: DevicePtr<u32>,
        col_offsets: DevicePtr<u16>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        sums: DevicePtrMut<T>,
        arrivals: DevicePtrMut<u32>,
        y: DevicePtrMut<T>,
    ) {
        let shape = Shape { rows, cols, block_rows, block_cols, col_blocks, log_lanes };
        let value = |k: u32| values.load(k);
        product(shape, pointers, col_offsets, value, x, sums, arrivals, y);
    }
    as CsrColumnBlocks
}

kernel! {
    /// [`CsrColumnBlocks`] with values that single precision holds exactly; products and sums as
    /// there.
    pub fn spmv_csr_column_blocks_narrow<T: Real>(
        rows: u32,
        cols: u32,
        block_rows: u32,
        block_cols: u32,
        col_blocks: u32,
        log_lanes: u32,
        pointers: DevicePtr<u32>,
        col_offsets: DevicePtr<u16>,
        values: DevicePtr<f32>,
        x: DevicePtr<T>,
        sums: DevicePtrMut<T>,
        arrivals: DevicePtrMut<u32>,
        y: DevicePtrMut<T>,
    ) {
        let shape = Shape { rows, cols, block_rows, block_cols, col_blocks, log_lanes };
        let value = |k: u32| T::widen(values.load(k));
        product(shape, pointers, col_offsets, value, x, sums, arrivals, y);
    }
    as CsrColumnBlocksNarrow
}
