//! CSR SpMV by segmented sum over equal numbers of entries (own; after Liu and Vinter, "CSR5",
//! ICS'15, with row ends as bits and no second kernel).
//!
//! A thread has V consecutive entries (4 or 8), stored so that a warp reads them in lines: entry
//! v of lane l of a warp at 32 v + l. Bit v of its flags says that a row ends there. It sums up to
//! each end; what is left goes through a segmented scan over the warp, and over the warps of the
//! block, to the next row end. Sums lie in shared memory in the order of the rows, and leave it in
//! lines.
//!
//! Blocks begin a fixed number of entries apart, or up to a slack earlier, where a row ends: so few
//! rows span blocks. Of one that does, each block writes its part, and the last one to arrive adds
//! the parts in their order. So no block waits for another, and the bits are the same every time.
//!
//! Only rows with entries are numbered ("ranks"); y is 0 elsewhere before the launch.

use crate::collective::{warp_inclusive_scan, warp_segmented_scan, warp_sum};
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, Number, Output, Real, divide, fence, thread, warp};
use crate::kernel::kernel;

/// Threads of a block.
pub const SEGMENT_THREADS: u32 = 256;
const WARPS: u32 = SEGMENT_THREADS / WARP_SIZE;

/// Arrays that say which rows there are.
#[derive(Clone, Copy)]
pub(crate) struct Ranks {
    /// 0 when every row has entries: then a row's rank is its number.
    pub(crate) listed: u32,
    pub(crate) row_ids: DevicePtr<u32>,
    pub(crate) row_ptr: DevicePtr<u32>,
}

impl Ranks {
    #[inline(always)]
    pub(crate) fn row(self, rank: u32) -> u32 {
        if self.listed == 0 { rank } else { self.row_ids.load(rank) }
    }

    /// The first entry of a row, and the one after its last.
    #[inline(always)]
    pub(crate) fn bounds(self, rank: u32) -> (u32, u32) {
        let row = self.row(rank);
        (self.row_ptr.load(row), self.row_ptr.load(row + 1))
    }
}

/// Where the blocks begin: block b takes its entries from `step` b on, or from up to a slack before.
#[derive(Clone, Copy)]
pub(crate) struct Cuts {
    pub(crate) step: u32,
    pub(crate) headers: DevicePtr<[u32; 4]>,
}

/// In the last word of a header: the first row begins in an earlier block, the last one goes on in
/// a later block.
pub(crate) const STARTS_BEFORE: u32 = 1;
pub(crate) const GOES_ON: u32 = 2;

impl Cuts {
    /// The block of an entry.
    #[inline(always)]
    pub(crate) fn block_of(self, entry: u32) -> u32 {
        let block = divide(entry, self.step);
        block + u32::from(self.headers.load(block + 1)[0] <= entry)
    }
}

/// Where values come from.
pub(crate) trait SegmentValues<T: Number>: Copy {
    fn load(self, element: u32) -> T;
}

impl<T: Number> SegmentValues<T> for DevicePtr<T> {
    #[inline(always)]
    fn load(self, element: u32) -> T {
        self.load_streaming(element)
    }
}

#[derive(Clone, Copy)]
struct Single(DevicePtr<f32>);

impl<T: Real> SegmentValues<T> for Single {
    #[inline(always)]
    fn load(self, element: u32) -> T {
        T::widen(self.0.load_streaming(element))
    }
}

#[derive(Clone, Copy)]
struct All<T>(T);

impl<T: Number> SegmentValues<T> for All<T> {
    #[inline(always)]
    fn load(self, _: u32) -> T {
        self.0
    }
}

#[derive(Clone, Copy)]
struct Shared<T> {
    /// By rank inside the block.
    sums: SharedArray<T>,
    /// Of the warps: what is summed after the last row end, and whether there is one.
    tails: SharedArray<T>,
    ended: SharedArray<u32>,
}

impl<T: Number> Shared<T> {
    #[inline(always)]
    fn cut(pool: &mut Pool, entries: u32) -> Self {
        Self {
            sums: pool.array(SEGMENT_THREADS * entries),
            tails: pool.array(WARPS),
            ended: pool.array(WARPS),
        }
    }

    /// What the warps before `warp` summed after the last row end among them.
    #[inline(always)]
    fn carry(self, warp: u32) -> T {
        let mut sum = T::ZERO;
        let mut earlier = warp;
        while earlier > 0 {
            earlier -= 1;
            sum += self.tails.load(earlier);
            if self.ended.load(earlier) != 0 {
                break;
            }
        }
        sum
    }
}

/// Bytes of dynamic shared memory for `entries` of a thread.
#[cfg(not(target_arch = "nvptx64"))]
pub fn csr_segmented_sum_shared_bytes<T: Number>(entries: u32) -> u32 {
    let mut pool = Pool::new();
    Shared::<T>::cut(&mut pool, entries);
    pool.bytes()
}

/// A row that spans blocks `first` to `last`.
#[derive(Clone, Copy)]
struct Spanning {
    row: u32,
    first: u32,
    last: u32,
}

impl Spanning {
    /// Where the part of a block lies: the tail of the block where the row starts, else its head.
    #[inline(always)]
    fn element(self, block: u32) -> u32 {
        2 * block + u32::from(block == self.first)
    }

    /// Leaves this block's part, and adds all of them if it is the last to come. Warp 0 calls.
    #[inline(always)]
    fn arrive<T: Number>(
        self,
        block: u32,
        part: T,
        lane: u32,
        parts: DevicePtrMut<T>,
        arrivals: DevicePtrMut<u32>,
        y: Output<T>,
    ) {
        let mut came_before = 0;
        if lane == 0 {
            parts.store(self.element(block), part);
            fence::device();
            came_before = arrivals.atomic_add(self.first, 1);
        }
        let came_before = warp::shuffle_idx(FULL_MASK, came_before, 0, WARP_SIZE);
        if came_before != self.last - self.first {
            return;
        }
        warp::sync_warp(FULL_MASK);
        fence::device();
        let mut sum = T::ZERO;
        let mut other = self.first + lane;
        while other <= self.last {
            sum += parts.load(self.element(other));
            other += WARP_SIZE;
        }
        let sum = warp_sum(FULL_MASK, sum, WARP_SIZE);
        if lane == 0 {
            y.store(self.row, sum);
            arrivals.store(self.first, 0);
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Matrix<V> {
    pub(crate) ranks: Ranks,
    pub(crate) cuts: Cuts,
    pub(crate) warp_ranks: DevicePtr<u32>,
    pub(crate) flags: DevicePtr<u32>,
    pub(crate) col_ind: DevicePtr<u32>,
    pub(crate) values: V,
}

/// What a thread does for piece `block` of the entries.
#[inline(always)]
// Indices: arrays behind iterators would not become registers.
#[allow(clippy::needless_range_loop)]
pub(crate) fn product<T: Number, V: SegmentValues<T>, const N: usize>(
    matrix: Matrix<V>,
    block: u32,
    x: DevicePtr<T>,
    parts: DevicePtrMut<T>,
    arrivals: DevicePtrMut<u32>,
    y: Output<T>,
) {
    let entries = N as u32;
    let shared = Shared::<T>::cut(&mut Pool::new(), entries);
    let me = thread::thread_idx_x();
    let (warp_in_block, lane) = (me / WARP_SIZE, me % WARP_SIZE);
    let thread = block * SEGMENT_THREADS + me;
    let first_element = (thread - lane) * entries + lane;
    let mut columns = [0; N];
    let mut products = [T::ZERO; N];
    for v in 0..N {
        columns[v] = matrix.col_ind.load_streaming(first_element + v as u32 * WARP_SIZE);
    }
    for v in 0..N {
        products[v] = matrix.values.load(first_element + v as u32 * WARP_SIZE);
    }
    let flags = matrix.flags.load(thread / 2) >> (16 * (thread % 2));
    let [start, first_rank, ranks, spans] = matrix.cuts.headers.load(block);
    let [end, ..] = matrix.cuts.headers.load(block + 1);
    let warp_rank = matrix.warp_ranks.load(block * WARPS + warp_in_block);
    for v in 0..N {
        products[v] = products[v] * x.load(columns[v]);
    }
    // A row that goes on must not see the stored elements behind the block's entries.
    let mine = (end - start).saturating_sub(me * entries);
    if mine < entries {
        for v in 0..N {
            if v as u32 >= mine {
                products[v] = T::ZERO;
            }
        }
    }

    let ends = (flags & ((1 << N) - 1)).count_ones();
    let first = warp_rank + warp_inclusive_scan(ends) - ends;
    let (mut sum, mut head, mut rank) = (T::ZERO, T::ZERO, first);
    for (v, product) in products.into_iter().enumerate() {
        sum += product;
        if flags >> v & 1 != 0 {
            if rank == first {
                head = sum;
            } else {
                shared.sums.store(rank, sum);
            }
            rank += 1;
            sum = T::ZERO;
        }
    }
    let ((before, ended_before), (tail, any_end)) = warp_segmented_scan(sum, ends > 0, lane);
    head = before + head;
    if lane == WARP_SIZE - 1 {
        shared.tails.store(warp_in_block, tail);
        shared.ended.store(warp_in_block, any_end.into());
    }
    if ends > 0 && ended_before {
        shared.sums.store(first, head);
    }
    thread::sync_threads();
    // The first row end of a warp closes what earlier warps left open.
    if ends > 0 && !ended_before {
        shared.sums.store(first, shared.carry(warp_in_block) + head);
    }
    thread::sync_threads();

    if warp_in_block == 0 && spans != 0 {
        let arrive = |rank: u32, part: T| {
            let (start, end) = matrix.ranks.bounds(rank);
            let (first, last) = (matrix.cuts.block_of(start), matrix.cuts.block_of(end - 1));
            let spanning = Spanning { row: matrix.ranks.row(rank), first, last };
            spanning.arrive(block, part, lane, parts, arrivals, y);
        };
        // A row that begins before and goes on has its one part here in the middle.
        if spans & STARTS_BEFORE != 0 {
            let part = if ranks > 0 { shared.sums.load(0) } else { shared.carry(WARPS) };
            arrive(first_rank, part);
        }
        if spans & GOES_ON != 0 && (ranks > 0 || spans & STARTS_BEFORE == 0) {
            arrive(first_rank + ranks, shared.carry(WARPS));
        }
    }
    let starts_before = spans & STARTS_BEFORE;
    let mut rank = me + starts_before;
    while rank < ranks {
        y.store(matrix.ranks.row(first_rank + rank), shared.sums.load(rank));
        rank += SEGMENT_THREADS;
    }
}

macro_rules! segments {
    ($entries:literal: $stored:ident $stored_marker:ident $bound:ident, $single:ident $single_marker:ident,
        $equal:ident $equal_marker:ident) => {
        kernel! {
            /// `csr-segmented-sum` with this many entries for each thread. Block: [`SEGMENT_THREADS`];
            /// grid: a block for each header but the last; `parts` has two elements for each block,
            /// `arrivals` one, 0 before and after. Shared memory: [`csr_segmented_sum_shared_bytes`].
            pub fn $stored<T: $bound>(
                listed: u32,
                row_ids: DevicePtr<u32>,
                row_ptr: DevicePtr<u32>,
                step: u32,
                headers: DevicePtr<[u32; 4]>,
                warp_ranks: DevicePtr<u32>,
                flags: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                parts: DevicePtrMut<T>,
                arrivals: DevicePtrMut<u32>,
                y: Output<T>,
            ) {
                let ranks = Ranks { listed, row_ids, row_ptr };
                let cuts = Cuts { step, headers };
                let matrix = Matrix { ranks, cuts, warp_ranks, flags, col_ind, values };
                product::<T, _, $entries>(matrix, thread::block_idx_x(), x, parts, arrivals, y);
            }
            as $stored_marker
        }

        kernel! {
            /// The same with values that single precision holds exactly; products and sums as there.
            pub fn $single<T: Real>(
                listed: u32,
                row_ids: DevicePtr<u32>,
                row_ptr: DevicePtr<u32>,
                step: u32,
                headers: DevicePtr<[u32; 4]>,
                warp_ranks: DevicePtr<u32>,
                flags: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<f32>,
                x: DevicePtr<T>,
                parts: DevicePtrMut<T>,
                arrivals: DevicePtrMut<u32>,
                y: Output<T>,
            ) {
                let (ranks, values) = (Ranks { listed, row_ids, row_ptr }, Single(values));
                let cuts = Cuts { step, headers };
                let matrix = Matrix { ranks, cuts, warp_ranks, flags, col_ind, values };
                product::<T, _, $entries>(matrix, thread::block_idx_x(), x, parts, arrivals, y);
            }
            as $single_marker
        }

        kernel! {
            /// The same where all entries have the value `value`.
            pub fn $equal<T: Real>(
                listed: u32,
                row_ids: DevicePtr<u32>,
                row_ptr: DevicePtr<u32>,
                step: u32,
                headers: DevicePtr<[u32; 4]>,
                warp_ranks: DevicePtr<u32>,
                flags: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                value: T,
                x: DevicePtr<T>,
                parts: DevicePtrMut<T>,
                arrivals: DevicePtrMut<u32>,
                y: Output<T>,
            ) {
                let (ranks, values) = (Ranks { listed, row_ids, row_ptr }, All(value));
                let cuts = Cuts { step, headers };
                let matrix = Matrix { ranks, cuts, warp_ranks, flags, col_ind, values };
                product::<T, _, $entries>(matrix, thread::block_idx_x(), x, parts, arrivals, y);
            }
            as $equal_marker
        }
    };
}

segments!(4: spmv_csr_segmented_sum_4 CsrSegmentedSum4 Number,
    spmv_csr_segmented_sum_4_single CsrSegmentedSum4Single,
    spmv_csr_segmented_sum_4_equal CsrSegmentedSum4Equal);
segments!(8: spmv_csr_segmented_sum_8 CsrSegmentedSum8 Real,
    spmv_csr_segmented_sum_8_single CsrSegmentedSum8Single,
    spmv_csr_segmented_sum_8_equal CsrSegmentedSum8Equal);
