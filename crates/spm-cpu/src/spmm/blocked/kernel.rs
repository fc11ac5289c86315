//! The inner kernel of `csr-blocked`: rows of A times X, with a block of columns of Y in vector
//! registers.

use spm_formats::{CsrView, Scalar};

use super::columns::Columns;
use super::sink::Sink;
use crate::simd::{self, AHEAD, Isa, Job, LANES};

/// X, whose row j has `k` elements from `j * pitch` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dense<'a, T> {
    pub(super) elements: &'a [T],
    pub(super) pitch: usize,
}

/// The partition of one thread: the rows that end in it, and its entries of the row after them.
///
/// Invariants: `columns` are those of `a`; `first_entry` is in row `first_row`, not after the first
/// of `ends`; `ends` are those of the rows from there on; `last_entry` is in the row after them, or
/// A's last; every row of X that A's columns name exists and has `k` elements.
pub(super) struct Part<'a, T: Scalar, C> {
    pub(super) a: CsrView<'a, T>,
    pub(super) columns: C,
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
    /// Prefetch distance for rows of X, in entries; 0 disables it.
    pub(super) prefetch: usize,
    pub(super) sink: Sink<'a, T>,
    /// k elements: the partial sums of the row after `ends`.
    pub(super) carry: &'a mut [T],
}

// SAFETY: `As<T>` is `Part<T>`.
unsafe impl<'a, T: Scalar, C: Columns> Job<T> for Part<'a, T, C> {
    type As<U: Scalar> = Part<'a, U, C>;
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
            // SAFETY: the sink has room for a tile of rows, the carry for one; the rest by the
            // invariants.
            unsafe { rows::<T, I, C>(&self, row, entry, ends, to, pitch) };
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
unsafe fn rows<T: Scalar, I: Isa<T>, C: Columns>(
    part: &Part<'_, T, C>,
    row: usize,
    entry: usize,
    ends: &[u32],
    to: *mut T,
    pitch: usize,
) {
    let rows = Rows { part, row, entry, ends, to, pitch };
    if part.k < LANES {
        // SAFETY: the caller's promise.
        return unsafe { rows.few_columns::<I>() };
    }
    // SAFETY: the caller's promise.
    unsafe { if part.prefetch > 0 { rows.blocks::<I, true>() } else { rows.blocks::<I, false>() } }
}

/// Columns of X and Y that are accumulated at once.
struct Block<const VECTORS: usize, const EXACT: bool> {
    first: usize,
    last: usize,
}

impl<const VECTORS: usize, const EXACT: bool> Block<VECTORS, EXACT> {
    /// The first column of a vector.
    #[inline(always)]
    fn offset(&self, vector: usize) -> usize {
        if EXACT {
            vector * LANES
        } else if vector + 1 == VECTORS {
            self.last
        } else {
            self.first + vector * LANES
        }
    }

    /// # Safety
    /// X has the row.
    #[inline(always)]
    unsafe fn x_row<T>(&self, x: &Dense<'_, T>, row: usize) -> *const T {
        let pitch = if EXACT { VECTORS * LANES } else { x.pitch };
        // SAFETY: the caller's promise.
        unsafe { x.elements.as_ptr().add(row * pitch) }
    }
}

struct Rows<'a, 'b, T: Scalar, C> {
    part: &'a Part<'b, T, C>,
    row: usize,
    entry: usize,
    ends: &'a [u32],
    to: *mut T,
    pitch: usize,
}

impl<T: Scalar, C: Columns> Rows<'_, '_, T, C> {
    /// # Safety
    /// As [`rows`].
    #[inline(always)]
    unsafe fn blocks<I: Isa<T>, const PREFETCH: bool>(&self) {
        let Part { k, x, short, .. } = *self.part;
        // SAFETY: the caller's promise; k is at least LANES, so all vectors are inside the row.
        unsafe {
            // The usual widths, with nothing left to compute at run time.
            if x.pitch == k {
                match (k / LANES, k % LANES, short) {
                    (1, 0, true) => return self.block::<I, 1, 1, true, PREFETCH>(0, 0),
                    (1, 0, false) => return self.block::<I, 1, 4, true, PREFETCH>(0, 0),
                    (2, 0, true) => return self.block::<I, 2, 1, true, PREFETCH>(0, 0),
                    (2, 0, false) => return self.block::<I, 2, 4, true, PREFETCH>(0, 0),
                    _ => {}
                }
                if I::MOST_VECTORS >= 8 {
                    match (k / LANES, k % LANES, short) {
                        (4, 0, true) => return self.block::<I, 4, 1, true, PREFETCH>(0, 0),
                        (4, 0, false) => return self.block::<I, 4, 2, true, PREFETCH>(0, 0),
                        (8, 0, _) => return self.block::<I, 8, 1, true, PREFETCH>(0, 0),
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
                let first = span.start * LANES;
                if I::MOST_VECTORS < 8 {
                    match span.len() {
                        1 => self.block::<I, 1, 4, false, PREFETCH>(first, last),
                        _ => self.block::<I, 2, 4, false, PREFETCH>(first, last),
                    }
                    continue;
                }
                match span.len() {
                    1 => self.block::<I, 1, 4, false, PREFETCH>(first, last),
                    2 => self.block::<I, 2, 4, false, PREFETCH>(first, last),
                    3 => self.block::<I, 3, 2, false, PREFETCH>(first, last),
                    4 => self.block::<I, 4, 2, false, PREFETCH>(first, last),
                    5 => self.block::<I, 5, 1, false, PREFETCH>(first, last),
                    6 => self.block::<I, 6, 1, false, PREFETCH>(first, last),
                    7 => self.block::<I, 7, 1, false, PREFETCH>(first, last),
                    _ => self.block::<I, 8, 1, false, PREFETCH>(first, last),
                }
            }
        }
    }

    /// `VECTORS` vectors from column `first` on, the last one at column `last`. A row is summed in
    /// `CHAINS` independent chains of additions. `EXACT`: the vectors are whole rows of X, which
    /// are contiguous.
    ///
    /// # Safety
    /// As [`rows`]; the vectors are inside a row of X.
    #[inline(always)]
    unsafe fn block<
        I: Isa<T>,
        const VECTORS: usize,
        const CHAINS: usize,
        const EXACT: bool,
        const PREFETCH: bool,
    >(
        &self,
        first: usize,
        last: usize,
    ) {
        let values = self.part.a.values();
        let columns = Block::<VECTORS, EXACT> { first, last };
        let mut entry = self.entry;
        // SAFETY: the caller's promise.
        unsafe {
            for (row, &end) in self.ends.iter().enumerate() {
                let list = self.part.columns.list(self.row + row, entry);
                let of_row = values.as_ptr().add(entry);
                let (length, left) = (end as usize - entry, values.len() - entry);
                let mut sums = [[I::splat(T::ZERO); VECTORS]; CHAINS];
                let mut at = 0;
                // `blocks` takes one chain of so few vectors for short rows: a branch for their second line
                // of A would cost more than its prefetch saves.
                let once = EXACT && CHAINS == 1 && VECTORS < 8;
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
                        if PREFETCH {
                            self.prefetch::<VECTORS, EXACT>(&columns, list, at + chain, left);
                        }
                        self.add::<I, VECTORS, EXACT>(&columns, list, of_row, at + chain, sums);
                    }
                    at += CHAINS;
                }
                while CHAINS > 1 && at < length {
                    if PREFETCH {
                        self.prefetch::<VECTORS, EXACT>(&columns, list, at, left);
                    }
                    self.add::<I, VECTORS, EXACT>(&columns, list, of_row, at, &mut sums[0]);
                    at += 1;
                }
                entry = end as usize;
                let to = self.to.add(row * self.pitch);
                for v in 0..VECTORS {
                    let mut sum = sums[0][v];
                    for chain in &sums[1..] {
                        sum = I::add(sum, chain[v]);
                    }
                    I::store(to.add(columns.offset(v)), sum);
                }
            }
        }
    }

    /// Adds the entry `at` of the row whose values start at `of_row`.
    ///
    /// # Safety
    /// As [`Rows::block`]; the row has the entry.
    #[inline(always)]
    unsafe fn add<I: Isa<T>, const VECTORS: usize, const EXACT: bool>(
        &self,
        columns: &Block<VECTORS, EXACT>,
        list: C::List,
        of_row: *const T,
        at: usize,
        sums: &mut [I::Vector; VECTORS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let value = I::splat(*of_row.add(at));
            let x = columns.x_row(&self.part.x, C::column(list, at));
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = I::mul_add(value, I::load(x.add(columns.offset(v))), *sum);
            }
        }
    }

    /// Prefetches the row of X that a later entry of A needs, or that of the last entry: `left` (at
    /// least one) entries of A remain from the row's first on.
    ///
    /// # Safety
    /// As [`Rows::block`].
    #[inline(always)]
    unsafe fn prefetch<const VECTORS: usize, const EXACT: bool>(
        &self,
        columns: &Block<VECTORS, EXACT>,
        list: C::List,
        at: usize,
        left: usize,
    ) {
        let ahead = (at + self.part.prefetch).min(left - 1);
        // SAFETY: the caller's promise.
        unsafe {
            let x = columns.x_row(&self.part.x, C::ahead(list, ahead));
            for v in 0..VECTORS {
                simd::prefetch(x.add(columns.offset(v)));
            }
            // A row that does not start on a cache line ends in one more.
            if !EXACT || !self.part.x.elements.as_ptr().addr().is_multiple_of(64) {
                simd::prefetch(x.add(columns.offset(VECTORS - 1) + LANES - 1));
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
                I::store_first(k, self.to.add(row * self.pitch), I::add(sums[0], sums[1]));
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
