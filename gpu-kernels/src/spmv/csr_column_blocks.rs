//! CSR SpMV by column blocks, with each block's part of x in shared memory (own; column blocking
//! after Im, Yelick and Vuduc, "Sparsity", IJHPCA 18(1), 2004; segmented sums after Liu and Vinter, "CSR5", ICS'15).
//!
//! The kernel suits rows with entries spread over an x that L1 cannot hold: a gather from x
//! that goes to L2 moves a sector of 32 bytes for one number. A block copies the
//! part of x of a column block once, then sums a chunk of its entries, with 16-bit columns.
//! A second kernel adds the sums of all column blocks in their order, so the result is reproducible bit by bit.
//!
//! The entries of a row in a column block, its part, are quads: four entries that a lane reads at once. A part without entries
//! has a quad, too. The rest of a part's last quad is padding (`*`), whose value is 0 and whose column is the one behind the
//! block, where shared memory has a 0. Bit q % 32 of `ends[q / 32]` says that a part ends with quad q; the group of 32
//! quads begins in part `parts[q / 32]`:
//!
//! ```text
//! parts of 2, 0, 5 and 4 entries     a b * * | * * * * | c d e f  g * * * | h i j k
//! ends                               1         1         0        1         1
//! ```
//!
//! A warp sums consecutive groups. The sum of a part that ends in a later one goes there; that of a part that ends in a later
//! warp is added when all warps of the block have stored theirs. Chunks begin where a part begins.

use crate::collective::warp_inclusive_scan_of_runs;
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, Output, Real, thread, warp};
use crate::kernel::kernel;

/// Entries that a lane reads at once.
pub const COLUMN_BLOCK_QUAD: u32 = 4;
/// A warp of a block that leaves nothing to a later one.
const NOTHING: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Shared<T> {
    /// The columns of a block, a 0, and as many elements as keep their number even.
    x: SharedArray<T>,
    /// What each warp leaves to a later one, and of which part.
    carries: SharedArray<T>,
    carried_to: SharedArray<u32>,
}

impl<T: Real> Shared<T> {
    #[inline(always)]
    fn cut(pool: &mut Pool, block_cols: u32) -> Self {
        Self {
            x: pool.array(block_cols + 2),
            carries: pool.array(WARP_SIZE),
            carried_to: pool.array(WARP_SIZE),
        }
    }
}

/// Bytes of dynamic shared memory for `block_cols` columns.
#[cfg(not(target_arch = "nvptx64"))]
pub fn csr_column_blocks_shared_bytes<T: Real>(block_cols: u32) -> u32 {
    let mut pool = Pool::new();
    Shared::<T>::cut(&mut pool, block_cols);
    pool.bytes()
}

/// Where the values of a quad come from. They are read past the caches, where the sums of parts are to stay.
trait QuadValues<T: Real>: Copy {
    type Quad: Copy;

    fn load(self, quad: u32) -> Self::Quad;

    fn values(quad: Self::Quad) -> [T; 4];
}

impl<T: Real> QuadValues<T> for DevicePtr<T> {
    type Quad = [T; 4];

    #[inline(always)]
    fn load(self, quad: u32) -> [T; 4] {
        T::load_quad(self, u64::from(COLUMN_BLOCK_QUAD) * u64::from(quad))
    }

    #[inline(always)]
    fn values(quad: [T; 4]) -> [T; 4] {
        quad
    }
}

#[derive(Clone, Copy)]
struct Single(DevicePtr<f32>);

impl<T: Real> QuadValues<T> for Single {
    type Quad = [f32; 4];

    #[inline(always)]
    fn load(self, quad: u32) -> [f32; 4] {
        f32::load_quad(self.0, u64::from(COLUMN_BLOCK_QUAD) * u64::from(quad))
    }

    #[inline(always)]
    fn values(quad: [f32; 4]) -> [T; 4] {
        quad.map(T::widen)
    }
}

/// All are this one.
#[derive(Clone, Copy)]
struct All<T>(T);

impl<T: Real> QuadValues<T> for All<T> {
    type Quad = T;

    #[inline(always)]
    fn load(self, _: u32) -> T {
        self.0
    }

    #[inline(always)]
    fn values(value: T) -> [T; 4] {
        [value; 4]
    }
}

/// Copies the `cols_here` elements of x from `first_col`, an even one, on; the rest of `elements`, of which padding names the
/// last, become 0.
#[inline(always)]
fn copy_x<T: Real>(
    x: DevicePtr<T>,
    shared: SharedArray<T>,
    first_col: u32,
    (cols_here, elements): (u32, u32),
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
    while j < elements {
        shared.store(j, x.load_if(j < cols_here, u64::from(first_col) + u64::from(j), T::ZERO));
        j += threads;
    }
}

/// The quads of all column blocks.
#[derive(Clone, Copy)]
struct Quads<V> {
    ends: DevicePtr<u32>,
    parts: DevicePtr<u32>,
    col_offsets: DevicePtr<u16>,
    values: V,
}

impl<V> Quads<V> {
    /// The end of the part that quad `quad` is in, which is one of the `all` quads. One warp calls.
    #[inline(always)]
    fn end_of_part(&self, quad: u32, all: u32, lane: u32) -> u32 {
        let groups = all.div_ceil(WARP_SIZE);
        let mut group = quad / WARP_SIZE;
        let mut unseen = FULL_MASK << (quad % WARP_SIZE);
        loop {
            let mine = group + lane;
            let loaded = if mine < groups { self.ends.load(mine) } else { 0 };
            let ends = if lane == 0 { loaded & unseen } else { loaded };
            let found = warp::ballot(FULL_MASK, ends != 0);
            if found != 0 || groups - group <= WARP_SIZE {
                // There is one: the last quad of all ends a part.
                let first = found.trailing_zeros() % WARP_SIZE;
                let ends = warp::shuffle_idx(FULL_MASK, ends, first, WARP_SIZE);
                return (group + first) * WARP_SIZE + ends.trailing_zeros() % WARP_SIZE + 1;
            }
            group += WARP_SIZE;
            unseen = FULL_MASK;
        }
    }

    /// Columns, two in a word, and values of a quad.
    #[inline(always)]
    fn load<T: Real>(&self, quad: u32) -> ([u32; 2], V::Quad)
    where
        V: QuadValues<T>,
    {
        let first = u64::from(COLUMN_BLOCK_QUAD) * u64::from(quad);
        let [a, b, c, d] = self.col_offsets.load_vector_streaming::<4>(first).map(u32::from);
        ([a | b << 16, c | d << 16], self.values.load(quad))
    }
}

#[inline(always)]
fn product<T: Real, V: QuadValues<T>>(
    (cols, block_cols): (u32, u32),
    chunks: DevicePtr<[u32; 4]>,
    quads: Quads<V>,
    x: DevicePtr<T>,
    sums: DevicePtrMut<T>,
) {
    let me = thread::thread_idx_x();
    let (lane, warp_in_block) = (me % WARP_SIZE, me / WARP_SIZE);
    let shared = Shared::<T>::cut(&mut Pool::new(), block_cols);
    let [col_block, from, to, all] = chunks.load(thread::block_idx_x());
    // The first part from a quad on.
    let first_from = |quad: u32| if quad == 0 { 0 } else { quads.end_of_part(quad - 1, all, lane) };
    let (begin, end) = (first_from(from), first_from(to));
    if begin == end {
        return;
    }
    let first_group = begin / WARP_SIZE;
    let groups = (end - 1) / WARP_SIZE + 1 - first_group;
    let warps = thread::block_dim_x() / WARP_SIZE;
    let of_warp = groups.div_ceil(warps.max(1));
    let mut group = (warp_in_block * of_warp).min(groups);
    let end_group = (group + of_warp).min(groups);
    // Of this group, or the last one of the chunk.
    let fetch = |group: u32| {
        let group = first_group + group.min(groups - 1);
        let quad = (group * WARP_SIZE + lane).max(begin).min(end - 1);
        (quads.load::<T>(quad), quads.ends.load(group), quads.parts.load(group))
    };
    let mut fetched = fetch(group);
    let first_col = col_block * block_cols;
    copy_x(x, shared.x, first_col, ((cols - first_col).min(block_cols), block_cols + 1));
    thread::sync_threads();

    let (mut carry, mut carried_to) = (T::ZERO, NOTHING);
    while group < end_group {
        let (([low, high], values), ends, first_part) = fetched;
        let quad = (first_group + group) * WARP_SIZE + lane;
        group += 1;
        fetched = fetch(group);
        let of_x = [low & 0xffff, low >> 16, high & 0xffff, high >> 16];
        let of_x = of_x.map(|column| shared.x.load(column));
        let values = V::values(values);
        let even = values[2].mul_add(of_x[2], values[0] * of_x[0]);
        let odd = values[3].mul_add(of_x[3], values[1] * of_x[1]);
        let inside = quad >= begin && quad < end;
        let sum = if inside { even + odd } else { T::ZERO };
        let is_end = inside && ends >> lane & 1 != 0;
        let ends_here = warp::ballot(FULL_MASK, is_end);
        let mut sum = warp_inclusive_scan_of_runs(sum, ends_here, lane);
        if ends_here.trailing_zeros() == lane {
            sum = carry + sum;
        }
        if is_end {
            let before = (ends & ((1 << lane) - 1)).count_ones();
            sums.store(first_part + before, sum);
        }
        let last = warp::shuffle_idx(FULL_MASK, sum, WARP_SIZE - 1, WARP_SIZE);
        let goes_on = ends_here >> (WARP_SIZE - 1) == 0;
        carry = match (goes_on, ends_here) {
            (true, 0) => carry + last,
            (true, _) => last,
            (false, _) => T::ZERO,
        };
        carried_to = if goes_on { first_part + ends.count_ones() } else { NOTHING };
    }
    // The last group of the chunk has quads of the next one, or none, behind its end.
    if group == groups {
        carried_to = NOTHING;
    }
    if lane == 0 {
        shared.carries.store(warp_in_block, carry);
        shared.carried_to.store(warp_in_block, carried_to);
    }
    thread::sync_threads();
    if warp_in_block > 0 {
        return;
    }
    let (mut carry, mut to) = (T::ZERO, NOTHING);
    if lane < warps {
        (carry, to) = (shared.carries.load(lane), shared.carried_to.load(lane));
    }
    // Warps of one part in a row leave one sum.
    let next = warp::shuffle_down(FULL_MASK, to, 1, WARP_SIZE);
    let is_last = lane == WARP_SIZE - 1 || to != next;
    let carry = warp_inclusive_scan_of_runs(carry, warp::ballot(FULL_MASK, is_last), lane);
    if is_last && to != NOTHING {
        sums.store(to, carry + sums.load(to));
    }
}

kernel! {
    /// `csr-column-blocks`: the sums of all parts, of each row in each column block. For each block of the grid `chunks` has
    /// the column block, where its chunk begins and ends, in quads of [`COLUMN_BLOCK_QUAD`] entries, and the number of all quads.
    /// If a part does not begin there, the chunk begins or ends with the next one. Chunks of a column block are one behind
    /// the other. `ends` has a word, and `parts` an element, for each 32 quads. `block_cols` is even and less than 2^16. Block:
    /// a multiple of 32 up to 1024; shared memory: [`csr_column_blocks_shared_bytes`].
    pub fn spmv_csr_column_blocks<T: Real>(
        cols: u32,
        block_cols: u32,
        chunks: DevicePtr<[u32; 4]>,
        ends: DevicePtr<u32>,
        parts: DevicePtr<u32>,
        col_offsets: DevicePtr<u16>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        sums: DevicePtrMut<T>,
    ) {
        let quads = Quads { ends, parts, col_offsets, values };
        product((cols, block_cols), chunks, quads, x, sums);
    }
    as CsrColumnBlocks
}

kernel! {
    /// [`CsrColumnBlocks`] with values that single precision holds exactly; products and sums as
    /// there.
    pub fn spmv_csr_column_blocks_single<T: Real>(
        cols: u32,
        block_cols: u32,
        chunks: DevicePtr<[u32; 4]>,
        ends: DevicePtr<u32>,
        parts: DevicePtr<u32>,
        col_offsets: DevicePtr<u16>,
        values: DevicePtr<f32>,
        x: DevicePtr<T>,
        sums: DevicePtrMut<T>,
    ) {
        let quads = Quads { ends, parts, col_offsets, values: Single(values) };
        product((cols, block_cols), chunks, quads, x, sums);
    }
    as CsrColumnBlocksSingle
}

kernel! {
    /// [`CsrColumnBlocks`] of a matrix whose values are all equal, and finite.
    pub fn spmv_csr_column_blocks_equal<T: Real>(
        cols: u32,
        block_cols: u32,
        chunks: DevicePtr<[u32; 4]>,
        ends: DevicePtr<u32>,
        parts: DevicePtr<u32>,
        col_offsets: DevicePtr<u16>,
        value: T,
        x: DevicePtr<T>,
        sums: DevicePtrMut<T>,
    ) {
        let quads = Quads { ends, parts, col_offsets, values: All(value) };
        product((cols, block_cols), chunks, quads, x, sums);
    }
    as CsrColumnBlocksEqual
}

// Indices: arrays behind iterators would not become registers.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn sum_of_blocks<T: Real>((row, rows): (u32, u32), col_blocks: u32, sums: DevicePtr<T>) -> T {
    let mut sum = T::ZERO;
    let mut col_block = 0;
    while col_block < col_blocks {
        // Eight loads in flight; behind the last the same once more.
        let mut of = [T::ZERO; 8];
        for i in 0..8 {
            let block = (col_block + i as u32).min(col_blocks - 1);
            of[i] = sums.load(u64::from(block) * u64::from(rows) + u64::from(row));
        }
        for i in 0..8 {
            if col_block + (i as u32) < col_blocks {
                sum += of[i];
            }
        }
        col_block += 8;
    }
    sum
}

kernel! {
    /// The end of `csr-column-blocks`: the sum of each row is that of its parts, of which column block c has those from
    /// `c * rows` on. Grid: at least one thread for each row.
    pub fn spmv_column_block_sums<T: Real>(
        rows: u32,
        col_blocks: u32,
        sums: DevicePtr<T>,
        y: Output<T>,
    ) {
        let row = thread::index_1d();
        if row >= rows {
            return;
        }
        let sum = sum_of_blocks((row, rows), col_blocks, sums);
        y.store(row, sum);
    }
    as ColumnBlockSums
}
