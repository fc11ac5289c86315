//! The inner kernel of `csr-blocked`: rows of A times X, with a block of columns of Y in vector
//! registers.

use spm_formats::{CsrView, Scalar};

use super::columns::Columns;
use super::groups::{Groups, zero};
use super::sink::Sink;
use super::sorted::Order;
use crate::simd::{self, AHEAD, Isa, Job, LANES, first_lanes};

/// X, whose row j has `k` elements from `j * pitch` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dense<'a, T> {
    pub(super) elements: &'a [T],
    pub(super) pitch: usize,
}

/// A piece that one thread multiplies: the rows that end in it, and its entries of the row after them.
///
/// Invariants: `columns` are those of `a`, and `order` that of its rows; `first_entry` is in row `first_row`, not after
/// the first of `ends`; `ends` are those of the rows from there on; `last_entry` is in the row after them, or A's last;
/// every row of X that A's columns name exists and has `k` elements.
pub(super) struct Part<'a, T: Scalar, C, O> {
    pub(super) a: CsrView<'a, T>,
    pub(super) columns: C,
    pub(super) order: O,
    pub(super) first_row: usize,
    pub(super) first_entry: usize,
    /// The ends of the partition's rows.
    pub(super) ends: &'a [u32],
    /// The end of the partition, inside the row after `ends`.
    pub(super) last_entry: usize,
    pub(super) x: Dense<'a, T>,
    pub(super) k: usize,
    /// Number of rows that are passed to the sink together.
    pub(super) tile: usize,
    /// Whether rows are so short that several chains of additions do not pay.
    pub(super) short: bool,
    /// Whether most rows have no entries.
    pub(super) mostly_empty: bool,
    /// Prefetch distance for rows of X, in entries; 0 disables it.
    pub(super) prefetch: usize,
    pub(super) sink: Sink<'a, T>,
    /// k elements: the partial sums of the row after `ends`.
    pub(super) carry: &'a mut [T],
}

// SAFETY: `As<T>` is `Part<T>`.
unsafe impl<'a, T: Scalar, C: Columns, O: Order> Job<T> for Part<'a, T, C, O> {
    type As<U: Scalar> = Part<'a, U, C, O>;
    const GATHERS: bool = false;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(mut self) {
        let (mut row, mut entry) = (self.first_row, self.first_entry);
        let mut tiles = self.ends.chunks(self.tile);
        let last = [self.last_entry as u32];
        loop {
            let tile = tiles.next();
            let ((to, pitch), ends) = match tile {
                Some(ends) => (self.sink.tile(), ends),
                None => ((self.carry.as_mut_ptr(), self.k), &last[..]),
            };
            let groups = if O::IN_ORDER && self.mostly_empty && tile.is_some() {
                // SAFETY: the sink has room for a tile of rows; the caller's promise.
                unsafe { zero::<T, I>(to, ends.len(), self.k, pitch) };
                Groups::with_entries(&self.a.row_ptr()[row..=row + ends.len()])
            } else {
                Groups::all(ends.len())
            };
            for of in groups {
                let entry = if of.start > 0 { ends[of.start - 1] as usize } else { entry };
                // SAFETY: the sink has room for a tile of rows, the carry for one; the rest by the
                // invariants.
                unsafe {
                    let to = to.add(of.start * pitch);
                    rows::<T, I, C, O>(&self, row + of.start, entry, &ends[of], to, pitch);
                }
            }
            if tile.is_none() {
                break;
            }
            row += ends.len();
            entry = ends[ends.len() - 1] as usize;
            // SAFETY: the caller's promise.
            unsafe { self.sink.flush::<I>(ends.len()) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.sink.finish::<I>() };
    }
}

/// Rows from `row` on that end at `ends`, the first from `entry` on, to `to`, `to + pitch`, ...
///
/// # Safety
/// As [`Part`], and there is room for the rows.
#[inline(always)]
unsafe fn rows<T: Scalar, I: Isa<T>, C: Columns, O: Order>(
    part: &Part<'_, T, C, O>,
    row: usize,
    entry: usize,
    ends: &[u32],
    to: *mut T,
    pitch: usize,
) {
    // SAFETY: the matrix has the row, or it is the one after the last.
    let order = unsafe { part.order.at_row(row) };
    let rows = Rows { part, row, entry, ends, order, to, pitch };
    if part.k < LANES {
        // SAFETY: the caller's promise.
        return unsafe { rows.few_columns::<I>() };
    }
    // SAFETY: the caller's promise.
    unsafe { rows.blocks::<I>() }
}

/// Whether [`Rows::block`] prefetches rows of X: known when it is compiled, or asked for each entry. An entry of three
/// vectors or more takes so long that asking is free, and saves a copy of the machine code.
const OFF: u8 = 0;
const ON: u8 = 1;
const ASKED: u8 = 2;

/// The `N` vectors of a row of X and Y that are accumulated at once.
trait Span<const N: usize>: Copy {
    /// Whether they are the whole row, and rows of X are contiguous.
    const EXACT: bool;

    /// Elements from a row of X to the next.
    fn pitch(self, pitch: usize) -> usize;

    /// Where a vector would begin in the row at `row`, which may be before it.
    fn place<T>(self, row: *const T, vector: usize) -> *const T;

    /// # Safety
    /// All elements of the span are inside the row.
    unsafe fn load<T: Scalar, I: Isa<T>>(self, row: *const T, vector: usize) -> I::Vector;

    /// # Safety
    /// As [`Span::load`].
    unsafe fn store<T: Scalar, I: Isa<T>>(self, row: *mut T, vector: usize, sum: I::Vector);
}

/// Whole vectors, the last one from column `last` on; `EXACT`: from the first column on, and all of them.
#[derive(Clone, Copy)]
struct Whole<const EXACT: bool> {
    first: usize,
    last: usize,
}

impl<const N: usize, const EXACT: bool> Span<N> for Whole<EXACT> {
    const EXACT: bool = EXACT;

    #[inline(always)]
    fn pitch(self, pitch: usize) -> usize {
        if EXACT { N * LANES } else { pitch }
    }

    #[inline(always)]
    fn place<T>(self, row: *const T, vector: usize) -> *const T {
        row.wrapping_add(if EXACT {
            vector * LANES
        } else if vector + 1 == N {
            self.last
        } else {
            self.first + vector * LANES
        })
    }

    #[inline(always)]
    unsafe fn load<T: Scalar, I: Isa<T>>(self, row: *const T, vector: usize) -> I::Vector {
        // SAFETY: the caller's promise.
        unsafe { I::load(Span::<N>::place(self, row, vector)) }
    }

    #[inline(always)]
    unsafe fn store<T: Scalar, I: Isa<T>>(self, row: *mut T, vector: usize, sum: I::Vector) {
        // SAFETY: the caller's promise.
        unsafe { I::store(Span::<N>::place(self, row, vector).cast_mut(), sum) }
    }
}

/// A row of X that begins `shift` lanes behind a multiple of the vector's size, as all others do: vectors at
/// such multiples, of which the first lacks so many lanes and the last has them. A vector that is in two
/// cache lines takes two accesses, and most arrays do not begin with a line.
#[derive(Clone, Copy)]
struct Aligned {
    shift: usize,
}

impl Aligned {
    #[inline(always)]
    fn lanes(self, vector: usize, count: usize) -> Option<u8> {
        let before = first_lanes(self.shift);
        if vector == 0 {
            Some(!before)
        } else if vector + 1 == count {
            Some(before)
        } else {
            None
        }
    }
}

impl<const N: usize> Span<N> for Aligned {
    const EXACT: bool = true;

    #[inline(always)]
    fn pitch(self, _: usize) -> usize {
        (N - 1) * LANES
    }

    #[inline(always)]
    fn place<T>(self, row: *const T, vector: usize) -> *const T {
        row.wrapping_sub(self.shift).wrapping_add(vector * LANES)
    }

    #[inline(always)]
    unsafe fn load<T: Scalar, I: Isa<T>>(self, row: *const T, vector: usize) -> I::Vector {
        let from = Span::<N>::place(self, row, vector);
        // SAFETY: the caller's promise.
        unsafe {
            match self.lanes(vector, N) {
                Some(lanes) => I::load_some(lanes, from),
                None => I::load(from),
            }
        }
    }

    #[inline(always)]
    unsafe fn store<T: Scalar, I: Isa<T>>(self, row: *mut T, vector: usize, sum: I::Vector) {
        let to = Span::<N>::place(self, row, vector).cast_mut();
        // SAFETY: the caller's promise.
        unsafe {
            match self.lanes(vector, N) {
                Some(lanes) => I::store_some(lanes, to, sum),
                None => I::store(to, sum),
            }
        }
    }
}

struct Rows<'a, 'b, T: Scalar, C, O> {
    part: &'a Part<'b, T, C, O>,
    row: usize,
    entry: usize,
    ends: &'a [u32],
    order: O,
    to: *mut T,
    pitch: usize,
}

impl<T: Scalar, C: Columns, O: Order> Rows<'_, '_, T, C, O> {
    /// # Safety
    /// As [`rows`].
    #[inline(always)]
    unsafe fn blocks<I: Isa<T>>(&self) {
        let Part { k, x, short, .. } = *self.part;
        let exact = Whole::<true> { first: 0, last: 0 };
        // SAFETY: the caller's promise; k is at least LANES, so all vectors are inside the row.
        unsafe {
            // The usual widths, with nothing left to compute at run time.
            if x.pitch == k {
                let shift = x.elements.as_ptr().addr() / T::BYTES % LANES;
                if I::LOADS_SOME && shift > 0 {
                    // As many chains as below: bits do not depend on where X is.
                    let aligned = Aligned { shift };
                    match (k / LANES, k % LANES, short) {
                        (1, 0, true) => return self.few_vectors::<I, _, 2, 1>(aligned),
                        (2, 0, true) => return self.block::<I, _, 3, 1, ASKED>(aligned),
                        (2, 0, false) => return self.block::<I, _, 3, 4, ASKED>(aligned),
                        (4, 0, true) => return self.block::<I, _, 5, 1, ASKED>(aligned),
                        (4, 0, false) => return self.block::<I, _, 5, 2, ASKED>(aligned),
                        (8, 0, _) => return self.block::<I, _, 9, 1, ASKED>(aligned),
                        _ => {}
                    }
                }
                match (k / LANES, k % LANES, short) {
                    (1, 0, true) => return self.few_vectors::<I, _, 1, 1>(exact),
                    (1, 0, false) => return self.few_vectors::<I, _, 1, 4>(exact),
                    (2, 0, true) => return self.few_vectors::<I, _, 2, 1>(exact),
                    (2, 0, false) => return self.few_vectors::<I, _, 2, 4>(exact),
                    _ => {}
                }
                if I::MOST_VECTORS >= 8 {
                    match (k / LANES, k % LANES, short) {
                        (4, 0, true) => return self.block::<I, _, 4, 1, ASKED>(exact),
                        (4, 0, false) => return self.block::<I, _, 4, 2, ASKED>(exact),
                        (8, 0, _) => return self.block::<I, _, 8, 1, ASKED>(exact),
                        _ => {}
                    }
                }
            }
            let vectors = k.div_ceil(LANES);
            let blocks = vectors.div_ceil(I::MOST_VECTORS);
            for block in 0..blocks {
                let span = spm_formats::partition::even(vectors, blocks, block);
                // The last vector ends where the row ends and may repeat columns of the one before.
                let last = ((span.end - 1) * LANES).min(k - LANES);
                let columns = Whole::<false> { first: span.start * LANES, last };
                if I::MOST_VECTORS < 8 {
                    match span.len() {
                        1 => self.few_vectors::<I, _, 1, 4>(columns),
                        _ => self.few_vectors::<I, _, 2, 4>(columns),
                    }
                    continue;
                }
                match span.len() {
                    1 => self.few_vectors::<I, _, 1, 4>(columns),
                    2 => self.few_vectors::<I, _, 2, 4>(columns),
                    3 => self.block::<I, _, 3, 2, ASKED>(columns),
                    4 => self.block::<I, _, 4, 2, ASKED>(columns),
                    5 => self.block::<I, _, 5, 1, ASKED>(columns),
                    6 => self.block::<I, _, 6, 1, ASKED>(columns),
                    7 => self.block::<I, _, 7, 1, ASKED>(columns),
                    _ => self.block::<I, _, 8, 1, ASKED>(columns),
                }
            }
        }
    }

    /// [`Rows::block`] of so few vectors that a branch for each entry takes a while.
    ///
    /// # Safety
    /// As [`Rows::block`].
    #[inline(always)]
    unsafe fn few_vectors<
        I: Isa<T>,
        S: Span<VECTORS>,
        const VECTORS: usize,
        const CHAINS: usize,
    >(
        &self,
        span: S,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            if I::MOST_VECTORS < 8 {
                // Without vector instructions an entry takes long enough.
                self.block::<I, S, VECTORS, CHAINS, ASKED>(span);
            } else if self.part.prefetch > 0 {
                self.block::<I, S, VECTORS, CHAINS, ON>(span);
            } else {
                self.block::<I, S, VECTORS, CHAINS, OFF>(span);
            }
        }
    }

    /// The vectors of a span. A row is summed in `CHAINS` independent chains of additions.
    ///
    /// # Safety
    /// As [`rows`]; the span is inside a row of X.
    #[inline(always)]
    unsafe fn block<
        I: Isa<T>,
        S: Span<VECTORS>,
        const VECTORS: usize,
        const CHAINS: usize,
        const PREFETCH: u8,
    >(
        &self,
        span: S,
    ) {
        let values = self.part.a.values();
        let mut entry = self.entry;
        // SAFETY: the caller's promise.
        unsafe {
            for (row, &end) in self.ends.iter().enumerate() {
                let list = self.part.columns.list(self.row + row, entry);
                let of_row = values.as_ptr().add(entry);
                let (length, left) = (end as usize - entry, values.len() - entry);
                let mut sums = [[I::splat(T::ZERO); VECTORS]; CHAINS];
                let prefetches = PREFETCH == ON || PREFETCH == ASKED && self.part.prefetch > 0;
                let mut at = 0;
                // `blocks` takes one chain of so few vectors for short rows: a branch for their second line
                // of A would cost more than its prefetch saves.
                let once = S::EXACT && CHAINS == 1 && VECTORS < 8;
                if once {
                    simd::prefetch(of_row.wrapping_add(AHEAD));
                    self.part.columns.prefetch(list, AHEAD);
                }
                while at + CHAINS <= length {
                    if CHAINS > 1 || (!once && at % LANES == 0) {
                        simd::prefetch(of_row.wrapping_add(at + AHEAD));
                        self.part.columns.prefetch(list, at + AHEAD);
                    }
                    for (chain, sums) in sums.iter_mut().enumerate() {
                        if prefetches {
                            self.prefetch::<S, VECTORS>(span, list, at + chain, left);
                        }
                        self.add::<I, S, VECTORS>(span, list, of_row, at + chain, sums);
                    }
                    at += CHAINS;
                }
                while CHAINS > 1 && at < length {
                    if prefetches {
                        self.prefetch::<S, VECTORS>(span, list, at, left);
                    }
                    self.add::<I, S, VECTORS>(span, list, of_row, at, &mut sums[0]);
                    at += 1;
                }
                entry = end as usize;
                let to = self.to.add(self.order.place(row) * self.pitch);
                for v in 0..VECTORS {
                    let mut sum = sums[0][v];
                    for chain in &sums[1..] {
                        sum = I::add(sum, chain[v]);
                    }
                    span.store::<T, I>(to, v, sum);
                }
            }
        }
    }

    /// Adds the entry `at` of the row whose values start at `of_row`.
    ///
    /// # Safety
    /// As [`Rows::block`]; the row has the entry.
    #[inline(always)]
    unsafe fn add<I: Isa<T>, S: Span<VECTORS>, const VECTORS: usize>(
        &self,
        span: S,
        list: C::List,
        of_row: *const T,
        at: usize,
        sums: &mut [I::Vector; VECTORS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let value = I::splat(*of_row.add(at));
            let Dense { elements, pitch } = self.part.x;
            let x = elements.as_ptr().add(C::column(list, at) * span.pitch(pitch));
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = I::mul_add(value, span.load::<T, I>(x, v), *sum);
            }
        }
    }

    /// Prefetches the row of X that a later entry of A needs, or that of the last entry: `left` (at
    /// least one) entries of A remain from the row's first on.
    ///
    /// # Safety
    /// As [`Rows::block`].
    #[inline(always)]
    unsafe fn prefetch<S: Span<VECTORS>, const VECTORS: usize>(
        &self,
        span: S,
        list: C::List,
        at: usize,
        left: usize,
    ) {
        let ahead = (at + self.part.prefetch).min(left - 1);
        // SAFETY: the caller's promise.
        unsafe {
            let Dense { elements, pitch } = self.part.x;
            let x = elements.as_ptr().add(C::ahead(list, ahead) * span.pitch(pitch));
            for v in 0..VECTORS {
                simd::prefetch(span.place(x, v));
            }
            // A row that does not start on a cache line ends in one more.
            if !S::EXACT || !elements.as_ptr().addr().is_multiple_of(64) {
                simd::prefetch(span.place(x, VECTORS - 1).wrapping_add(LANES - 1));
            }
        }
    }

    /// Fewer columns than a vector has lanes.
    ///
    /// # Safety
    /// As [`rows`].
    #[inline(always)]
    unsafe fn few_columns<I: Isa<T>>(&self) {
        let (values, k, ahead) = (self.part.a.values(), self.part.k, self.part.prefetch);
        let mut entry = self.entry;
        // SAFETY: the caller's promise.
        unsafe {
            for (row, &end) in self.ends.iter().enumerate() {
                let list = self.part.columns.list(self.row + row, entry);
                let (of_row, length) = (values.as_ptr().add(entry), end as usize - entry);
                let left = values.len() - entry;
                let mut sums = [I::splat(T::ZERO); 2];
                for at in 0..length {
                    let value = I::splat(*of_row.add(at));
                    let x = I::load_first(k, self.x_row(C::column(list, at)));
                    if ahead > 0 && at + ahead < left {
                        simd::prefetch(self.x_row(C::ahead(list, at + ahead)));
                    }
                    sums = [sums[1], I::mul_add(value, x, sums[0])];
                }
                entry = end as usize;
                I::store_first(
                    k,
                    self.to.add(self.order.place(row) * self.pitch),
                    I::add(sums[0], sums[1]),
                );
            }
        }
    }

    /// # Safety
    /// A has an entry in this column.
    #[inline(always)]
    unsafe fn x_row(&self, col: usize) -> *const T {
        let Dense { elements, pitch } = self.part.x;
        // SAFETY: by the invariants of `Part` X has the row.
        unsafe { elements.as_ptr().add(col * pitch) }
    }
}
