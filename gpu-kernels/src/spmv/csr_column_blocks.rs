//! CSR SpMV by column blocks, with each block's part of x in shared memory (own; column blocking
//! after Im, Yelick and Vuduc, "Sparsity", IJHPCA 18(1), 2004).
//!
//! The kernel suits rows with many entries spread over an x that L1 cannot hold: a gather from x
//! that goes to L2 moves a sector of 32 bytes for one number. Block (c, r) of the grid copies the
//! part of x of column block c once, then reads its entries of row block r, with 16-bit columns and
//! a sub-warp per row. The last block of a row block to arrive adds the sums of all column blocks
//! in their order, so the result is reproducible bit by bit.
//!
//! The entries of a row in a column block, its part, begin at a multiple of 4, so that a lane reads
//! four of them at once. `ends` says where each part ends; the next one begins at the next multiple of
//! 4, the first one at 0. Between them is padding (`*`: column 0, value 0, never added: x may be
//! infinite there), as long as the distance of the end from the next multiple of 4:
//!
//! ```text
//! parts of 2, 0, 5 and 4 entries     a b * * | c d e f  g * * * | h i j k
//! ends                               2 4 9 16                                 (a word 0 before them)
//! ```
//!
//! A lane has two quads in flight. Those of its next row, and the ends of the one after it, are asked
//! for before the sum of this row is folded over the lanes; those of the first row before x is copied.

use crate::collective::warp_sum;
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::FULL_MASK;
use crate::device::{DevicePtr, DevicePtrMut, Output, Real, fence, thread};
use crate::kernel::kernel;

/// Entries that a lane reads at once.
pub const COLUMN_BLOCK_QUAD: u32 = 4;
/// Entries that a lane has in flight, those of two quads.
pub const COLUMN_BLOCK_IN_FLIGHT: u32 = 2 * COLUMN_BLOCK_QUAD;

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

/// A quad of entries: their columns, two in a word, and their values.
#[derive(Clone, Copy)]
struct Quad<V> {
    columns: [u32; 2],
    values: [V; 4],
}

impl<V: Real> Quad<V> {
    #[inline(always)]
    fn load(index: u32, col_offsets: DevicePtr<u16>, values: DevicePtr<V>) -> Self {
        let first = COLUMN_BLOCK_QUAD * index;
        let [a, b, c, d] = col_offsets.load_vector::<4>(first).map(u32::from);
        let values = V::load_quad(values, u64::from(first));
        Self { columns: [a | b << 16, c | d << 16], values }
    }

    #[inline(always)]
    fn columns(self) -> [u32; 4] {
        let [low, high] = self.columns;
        [low & 0xffff, low >> 16, high & 0xffff, high >> 16]
    }
}

/// Copies the `cols_here` elements of x from `first_col`, an even one, on; the rest of the block's
/// columns, which a quad of another block may name, get a 0.
#[inline(always)]
fn copy_x<T: Real>(
    x: DevicePtr<T>,
    shared: SharedArray<T>,
    first_col: u32,
    (cols_here, block_cols): (u32, u32),
) {
    let (me, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let pairs = cols_here / 2;
    let mut j = me;
    while j < pairs {
        let left = pairs - j;
        // Beyond the end the first pair once more: four loads in flight.
        let at = [0, 1, 2, 3].map(|i| 2 * (j + if i * threads < left { i * threads } else { 0 }));
        let loaded = at.map(|at| T::load_pair(x, u64::from(first_col + at)));
        T::store_shared_pair(shared, at[0], loaded[0]);
        T::store_shared_pair(shared, at[1], loaded[1]);
        T::store_shared_pair(shared, at[2], loaded[2]);
        T::store_shared_pair(shared, at[3], loaded[3]);
        j += 4 * threads;
    }
    let mut j = 2 * pairs + me;
    while j < block_cols {
        shared.store(j, x.load_if(j < cols_here, u64::from(first_col) + u64::from(j), T::ZERO));
        j += threads;
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn product<T: Real, V: Real>(
    shape: Shape,
    ends: DevicePtr<u32>,
    col_offsets: DevicePtr<u16>,
    values: DevicePtr<V>,
    widen: impl Fn(V) -> T,
    x: DevicePtr<T>,
    sums: DevicePtrMut<T>,
    arrivals: DevicePtrMut<u32>,
    y: Output<T>,
) {
    let Shape { rows, cols, block_rows, block_cols, col_blocks, log_lanes } = shape;
    let (me, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let (col_block, row_block) = (thread::block_idx_x(), thread::block_idx_y());
    let shared = Shared::<T>::cut(&mut Pool::new(), block_cols);
    let first_col = col_block * block_cols;
    let first_row = row_block * block_rows;
    let rows_here = (rows - first_row).min(block_rows);
    let (lanes, groups) = (1 << log_lanes, threads >> log_lanes);
    let lane = me & (lanes - 1);
    let first_part = u64::from(col_block) * u64::from(rows) + u64::from(first_row);
    let (ends, sums_here) = (ends.offset(first_part), sums.offset(first_part));

    // The first quad of a row's part, and where it ends.
    let bounds = |row: u32| {
        let row = row.min(rows_here - 1);
        (ends.load(row).div_ceil(COLUMN_BLOCK_QUAD), ends.load(row + 1))
    };
    // Beyond the end the quad before it again, of whatever row and block: it is left out below.
    let fetch = |quad: u32, end: u32| {
        let last = (end.max(1) - 1) / COLUMN_BLOCK_QUAD;
        [quad + lane, quad + lane + lanes]
            .map(|quad| Quad::load(quad.min(last), col_offsets, values))
    };
    let mut row = me >> log_lanes;
    let (mut quad, mut end) = bounds(row);
    let mut next = bounds(row + groups);
    let mut quads = fetch(quad, end);
    copy_x(x, shared.x, first_col, ((cols - first_col).min(block_cols), block_cols));
    thread::sync_threads();

    let mut base = 0;
    // The same number of turns for all threads: the lanes of a row meet in the shuffle.
    while base < rows_here {
        let (mut even, mut odd) = (T::ZERO, T::ZERO);
        loop {
            let x = quads.map(|quad| quad.columns().map(|column| shared.x.load(column)));
            let mut add = |quad: Quad<V>, x: [T; 4], index: u32| {
                let k = COLUMN_BLOCK_QUAD * index;
                if k < end {
                    even = widen(quad.values[0]).mul_add(x[0], even);
                }
                if k + 1 < end {
                    odd = widen(quad.values[1]).mul_add(x[1], odd);
                }
                if k + 2 < end {
                    even = widen(quad.values[2]).mul_add(x[2], even);
                }
                if k + 3 < end {
                    odd = widen(quad.values[3]).mul_add(x[3], odd);
                }
            };
            add(quads[0], x[0], quad + lane);
            add(quads[1], x[1], quad + lane + lanes);
            quad += 2 * lanes;
            if COLUMN_BLOCK_QUAD * quad >= end {
                break;
            }
            quads = fetch(quad, end);
        }
        (quad, end) = next;
        quads = fetch(quad, end);
        next = bounds(row + 2 * groups);
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
    /// `csr-column-blocks`: entries by column block, then by row; the part of each row in each column
    /// block begins at a multiple of 4 ([`COLUMN_BLOCK_QUAD`]). `ends` has a 0, then the end of each
    /// part; there is an entry, and padded they are less than 2^32 - 32 x [`COLUMN_BLOCK_IN_FLIGHT`].
    /// `block_cols` is even. Block: a multiple of 32 up to 1024; grid: column blocks x row blocks;
    /// shared memory: [`csr_column_blocks_shared_bytes`]. `sums` has an element for each row of each
    /// column block, `arrivals` one for each row block, 0 before and after.
    pub fn spmv_csr_column_blocks<T: Real>(
        rows: u32,
        cols: u32,
        block_rows: u32,
        block_cols: u32,
        col_blocks: u32,
        log_lanes: u32,
        ends: DevicePtr<u32>,
        col_offsets: DevicePtr<u16>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        sums: DevicePtrMut<T>,
        arrivals: DevicePtrMut<u32>,
        y: Output<T>,
    ) {
        let shape = Shape { rows, cols, block_rows, block_cols, col_blocks, log_lanes };
        product(shape, ends, col_offsets, values, |value| value, x, sums, arrivals, y);
    }
    as CsrColumnBlocks
}

kernel! {
    /// [`CsrColumnBlocks`] with values that single precision holds exactly; products and sums as
    /// there.
    pub fn spmv_csr_column_blocks_single<T: Real>(
        rows: u32,
        cols: u32,
        block_rows: u32,
        block_cols: u32,
        col_blocks: u32,
        log_lanes: u32,
        ends: DevicePtr<u32>,
        col_offsets: DevicePtr<u16>,
        values: DevicePtr<f32>,
        x: DevicePtr<T>,
        sums: DevicePtrMut<T>,
        arrivals: DevicePtrMut<u32>,
        y: Output<T>,
    ) {
        let shape = Shape { rows, cols, block_rows, block_cols, col_blocks, log_lanes };
        product(shape, ends, col_offsets, values, T::widen, x, sums, arrivals, y);
    }
    as CsrColumnBlocksSingle
}
