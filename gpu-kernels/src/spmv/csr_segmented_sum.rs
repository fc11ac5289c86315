//! CSR SpMV by segmented sum over equal numbers of entries (own; after Liu and Vinter, "CSR5",
//! ICS'15, with row ends as bits and no second kernel).
//!
//! Lane l of a warp loads its entries l, 32 + l, ..., 32 (V - 1) + l, where V is 4 or 8, and the
//! elements of x for them: neighbours in a row, whose columns are near, load at the same time. If a
//! row ends in the warp, the products go through shared memory to lanes that have V consecutive
//! ones. Bit v of a lane's flags says that a row ends there. It sums up to each end; what is left
//! goes through a segmented scan over the warp, and over the warps of the block, to the next row
//! end. Sums lie in shared memory in the order of the rows, and leave it in lines.
//!
//! Blocks begin a fixed number of entries apart, or up to a slack earlier, where a row ends: so few
//! rows span blocks. Of one that does, each block leaves its part, and the last one to arrive adds
//! the parts in their order. So no block waits for another that has not come, and the bits are the same every time. Two
//! blocks meet in one atomic exchange, which carries the part; more count their arrivals.
//!
//! Only rows with entries are numbered ("ranks"); y is 0 elsewhere before the launch.

use crate::collective::{warp_inclusive_scan, warp_segmented_scan, warp_sum};
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, Number, Output, Real, thread, warp};
use crate::kernel::kernel;

/// Threads of a block.
pub const SEGMENT_THREADS: u32 = 256;
const WARPS: u32 = SEGMENT_THREADS / WARP_SIZE;

/// A block's entries and rows, in 16 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    /// The block's first entry.
    pub(crate) start: u32,
    /// The row ends before it.
    pub(crate) first_rank: u32,
    /// The row ends inside.
    pub(crate) ranks: u32,
    /// How many blocks before this one the first row begins, 0 for here.
    pub(crate) begins_before: u32,
    /// How many blocks behind this one the row ends that has no end here, 0 for none.
    pub(crate) goes_on: u32,
}

impl Header {
    /// Bits that the row ends of a block take, where the threads have 2^`log_entries` entries. Fewer than
    /// 2^31 stored elements leave enough for the distance of any two blocks.
    const fn rank_bits(log_entries: u32) -> u32 {
        SEGMENT_THREADS.trailing_zeros() + log_entries + 1
    }

    #[inline(always)]
    pub(crate) fn pack(self, log_entries: u32) -> [u32; 4] {
        let ranks = self.ranks | self.begins_before << Self::rank_bits(log_entries);
        [self.start, self.first_rank, ranks, self.goes_on]
    }

    #[inline(always)]
    fn unpack([start, first_rank, ranks, goes_on]: [u32; 4], log_entries: u32) -> Self {
        let bits = Self::rank_bits(log_entries);
        let (begins_before, ranks) = (ranks >> bits, ranks & ((1 << bits) - 1));
        Self { start, first_rank, ranks, begins_before, goes_on }
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
    /// For each warp: its products, then its sums by rank inside the warp.
    exchange: SharedArray<T>,
    /// Of the warps: what is summed after the last row end, and whether there is one.
    tails: SharedArray<T>,
    ended: SharedArray<u32>,
}

impl<T: Number> Shared<T> {
    #[inline(always)]
    fn cut(pool: &mut Pool, entries: u32) -> Self {
        Self {
            exchange: pool.array(SEGMENT_THREADS * entries),
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

    /// From the elements 32 v + lane of a warp to the elements N lane + v; `first` is the warp's
    /// first element in shared memory.
    #[inline(always)]
    fn consecutive<const N: usize>(self, first: u32, lane: u32, products: [T; N]) -> [T; N] {
        for (v, product) in (0..).zip(products) {
            self.exchange.store(first + swizzled::<T, N>(v * WARP_SIZE + lane), product);
        }
        warp::sync_warp(FULL_MASK);
        let mut consecutive = [T::ZERO; N];
        for (v, product) in (0..).zip(&mut consecutive) {
            *product = self.exchange.load(first + swizzled::<T, N>(N as u32 * lane + v));
        }
        // The sums overwrite them.
        warp::sync_warp(FULL_MASK);
        consecutive
    }
}

/// Where element `element` of a warp lies in shared memory: inside of N elements it is moved so
/// that neither stores nor loads of [`Shared::consecutive`] have bank conflicts.
#[inline(always)]
fn swizzled<T, const N: usize>(element: u32) -> u32 {
    let entries = N as u32;
    // Of N elements each, in one pass over the 32 banks of 4 bytes.
    let in_a_pass = (128 / size_of::<T>() as u32 / entries).max(1);
    let row = element / entries;
    row * entries + ((element % entries) ^ (row / in_a_pass % entries))
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

    /// [`Spanning::arrive`] for two blocks of real numbers. One thread calls.
    #[inline(always)]
    fn meet<T: Number>(self, part: T, arrivals: DevicePtrMut<u64>, y: Output<T>) {
        let other = arrivals.atomic_exchange(self.first, announced(part).to_word());
        if other != 0 {
            // The same sum for whoever is the last.
            y.store(self.row, part + T::from_word(!other));
            arrivals.store(self.first, 0);
        }
    }

    /// Leaves this block's part, and adds all of them if it is the last to come. One warp calls.
    #[inline(always)]
    fn arrive<T: Number>(
        self,
        block: u32,
        part: T,
        lane: u32,
        parts: DevicePtrMut<T>,
        arrivals: DevicePtrMut<u64>,
        y: Output<T>,
    ) {
        if T::IS_A_WORD && self.last - self.first == 1 {
            if lane == 0 {
                self.meet(part, arrivals, y);
            }
            return;
        }
        let mut came_before = 0;
        if lane == 0 {
            let element = self.element(block);
            came_before = if T::IS_A_WORD {
                parts.store_relaxed(element, announced(part));
                arrivals.atomic_add(self.first, 1)
            } else {
                parts.store(element, part);
                arrivals.atomic_add_release(self.first, 1)
            };
        }
        let came_before = warp::shuffle_idx(FULL_MASK, came_before, 0, WARP_SIZE);
        if came_before != u64::from(self.last - self.first) {
            return;
        }
        warp::sync_warp(FULL_MASK);
        // All parts are in L2 or on their way, and are read there. A fence would empty this multiprocessor's L1, and
        // with it the x of all its blocks.
        let mut sum = T::ZERO;
        let mut other = self.first + lane;
        while other <= self.last {
            let element = self.element(other);
            sum += if T::IS_A_WORD {
                let mut word = 0;
                while word == 0 {
                    word = parts.load_relaxed(element).to_word();
                }
                parts.store(element, T::ZERO);
                T::from_word(!word)
            } else {
                parts.load_relaxed(element)
            };
            other += WARP_SIZE;
        }
        let sum = warp_sum(FULL_MASK, sum, WARP_SIZE);
        if lane == 0 {
            y.store(self.row, sum);
            arrivals.store(self.first, 0);
        }
    }
}

/// The part of a block as a number whose bits are not 0, which says "not there": nothing else has to be in memory
/// before it, so that no fence waits for what the thread has stored. The bits are complemented, so that 0 would be a NaN, for
/// which another one serves.
#[inline(always)]
fn announced<T: Number>(part: T) -> T {
    let complement = T::from_word(!part.to_word());
    if complement.to_word() == 0 { T::from_word(1) } else { complement }
}

#[derive(Clone, Copy)]
pub(crate) struct Matrix<V> {
    /// The rows that have entries, where `listed` is not 0. Else those are all rows, and the rank of a
    /// row is its number.
    pub(crate) listed: u32,
    pub(crate) row_ids: DevicePtr<u32>,
    pub(crate) headers: DevicePtr<[u32; 4]>,
    pub(crate) warp_ranks: DevicePtr<u32>,
    pub(crate) flags: DevicePtr<u32>,
    pub(crate) col_ind: DevicePtr<u32>,
    pub(crate) values: V,
}

impl<V> Matrix<V> {
    #[inline(always)]
    fn row(&self, rank: u32) -> u32 {
        if self.listed == 0 { rank } else { self.row_ids.load(rank) }
    }
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
    arrivals: DevicePtrMut<u64>,
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
    let header = matrix.headers.load(block);
    let [end, ..] = matrix.headers.load(block + 1);
    let Header { start, first_rank, ranks, begins_before, goes_on } =
        Header::unpack(header, entries.trailing_zeros());
    let warp_rank = matrix.warp_ranks.load(block * WARPS + warp_in_block);
    let warp_first = warp_in_block * WARP_SIZE * entries;
    let in_warp = (end - start).saturating_sub(warp_first);
    // Before x is used: these loads are to be in flight with those of the entries.
    let ends = (flags & ((1 << N) - 1)).count_ones();
    let until = warp_inclusive_scan(ends);
    let in_this_warp = warp::shuffle_idx(FULL_MASK, until, WARP_SIZE - 1, WARP_SIZE);
    for v in 0..N {
        products[v] = products[v] * x.load(columns[v]);
    }
    // A row that goes on must not see the stored elements behind the block's entries.
    if in_warp < WARP_SIZE * entries {
        for v in 0..N {
            if v as u32 * WARP_SIZE + lane >= in_warp {
                products[v] = T::ZERO;
            }
        }
    }
    // Inside of a row the order does not matter.
    if in_this_warp > 0 {
        products = shared.consecutive(warp_first, lane, products);
    }
    // By rank inside the warp.
    let sums = |rank: u32| warp_first + rank;
    let first = until - ends;
    let (mut sum, mut head, mut rank) = (T::ZERO, T::ZERO, first);
    for (v, product) in products.into_iter().enumerate() {
        sum += product;
        if flags >> v & 1 != 0 {
            if rank == first {
                head = sum;
            } else {
                shared.exchange.store(sums(rank), sum);
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
    thread::sync_threads();
    if ends > 0 {
        // The first row end of a warp closes what earlier warps left open.
        if !ended_before {
            head = shared.carry(warp_in_block) + head;
        }
        shared.exchange.store(sums(first), head);
    }
    warp::sync_warp(FULL_MASK);

    // The row that begins before the block ends in this warp.
    let closes = begins_before > 0 && warp_rank == 0 && in_this_warp > 0;
    let mut rank = lane + u32::from(closes);
    while rank < in_this_warp {
        let row = matrix.row(first_rank + warp_rank + rank);
        y.store(row, shared.exchange.load(sums(rank)));
        rank += WARP_SIZE;
    }
    let arrive = |rank: u32, first: u32, last: u32, part: T| {
        let spanning = Spanning { row: matrix.row(rank), first, last };
        spanning.arrive(block, part, lane, parts, arrivals, y);
    };
    if closes {
        arrive(first_rank, block - begins_before, block, shared.exchange.load(sums(0)));
    }
    if goes_on > 0 && warp_in_block == 0 {
        let before = if ranks > 0 { 0 } else { begins_before };
        arrive(first_rank + ranks, block - before, block + goes_on, shared.carry(WARPS));
    }
}

macro_rules! segments {
    ($entries:literal: $stored:ident $stored_marker:ident $bound:ident, $single:ident $single_marker:ident,
        $equal:ident $equal_marker:ident) => {
        kernel! {
            /// `csr-segmented-sum` with this many entries for each thread. Block: [`SEGMENT_THREADS`];
            /// grid: a block for each header but the last; `parts` has two elements for each block,
            /// `arrivals` one; all are 0 before and after. Shared memory: [`csr_segmented_sum_shared_bytes`].
            pub fn $stored<T: $bound>(
                listed: u32,
                row_ids: DevicePtr<u32>,
                headers: DevicePtr<[u32; 4]>,
                warp_ranks: DevicePtr<u32>,
                flags: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                parts: DevicePtrMut<T>,
                arrivals: DevicePtrMut<u64>,
                y: Output<T>,
            ) {
                let matrix =
                    Matrix { listed, row_ids, headers, warp_ranks, flags, col_ind, values };
                product::<T, _, $entries>(matrix, thread::block_idx_x(), x, parts, arrivals, y);
            }
            as $stored_marker
        }

        kernel! {
            /// The same with values that single precision holds exactly; products and sums as there.
            pub fn $single<T: Real>(
                listed: u32,
                row_ids: DevicePtr<u32>,
                headers: DevicePtr<[u32; 4]>,
                warp_ranks: DevicePtr<u32>,
                flags: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<f32>,
                x: DevicePtr<T>,
                parts: DevicePtrMut<T>,
                arrivals: DevicePtrMut<u64>,
                y: Output<T>,
            ) {
                let values = Single(values);
                let matrix =
                    Matrix { listed, row_ids, headers, warp_ranks, flags, col_ind, values };
                product::<T, _, $entries>(matrix, thread::block_idx_x(), x, parts, arrivals, y);
            }
            as $single_marker
        }

        kernel! {
            /// The same where all entries have the value `value`.
            pub fn $equal<T: Real>(
                listed: u32,
                row_ids: DevicePtr<u32>,
                headers: DevicePtr<[u32; 4]>,
                warp_ranks: DevicePtr<u32>,
                flags: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                value: T,
                x: DevicePtr<T>,
                parts: DevicePtrMut<T>,
                arrivals: DevicePtrMut<u64>,
                y: Output<T>,
            ) {
                let values = All(value);
                let matrix =
                    Matrix { listed, row_ids, headers, warp_ranks, flags, col_ind, values };
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
