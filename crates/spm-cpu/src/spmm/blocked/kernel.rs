//! A part of Y: rows of A times X, a block of columns of Y in vector registers at a time.

use std::marker::PhantomData;

use spm_formats::{CsrArrays, Scalar};

use super::sink::Sink;
use crate::simd::{Isa, Job, LANES};

/// Vectors of a row of Y that are summed up at once: with the broadcast value and the elements of X
/// they fit into 16 registers, and hide the latency of a multiply-add.
const MOST_VECTORS: usize = 8;

/// X, whose row j has `k` elements from `start + j * pitch` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dense<'a, T> {
    pub(super) start: *const T,
    pub(super) pitch: usize,
    pub(super) lifetime: PhantomData<&'a [T]>,
}

// SAFETY: a shared slice in other words.
unsafe impl<T: Sync> Send for Dense<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Dense<'_, T> {}

/// Rows that end in one thread's piece, and the entries of the row after them that belong to it.
///
/// Invariants: `first_entry` is not after the end of the first of `ends`; `ends` ascend; every row
/// of X that A's columns name exists and has `k` elements.
pub(super) struct Part<'a, T: Scalar> {
    pub(super) a: CsrArrays<'a, T>,
    pub(super) first_entry: usize,
    /// Where the piece's rows end.
    pub(super) ends: &'a [u32],
    /// Where the piece ends, inside the row after `ends`.
    pub(super) last_entry: usize,
    pub(super) x: Dense<'a, T>,
    pub(super) k: usize,
    /// Rows that go to the sink together.
    pub(super) tile: usize,
    /// How many entries ahead rows of X are asked for; 0: not at all.
    pub(super) prefetch: usize,
    pub(super) sink: Sink<'a, T>,
    /// k elements: the part of the row after `ends`.
    pub(super) carry: &'a mut [T],
}

// SAFETY: `As<T>` is `Part<T>`.
unsafe impl<'a, T: Scalar> Job<T> for Part<'a, T> {
    type As<U: Scalar> = Part<'a, U>;
    const GATHERS: bool = false;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(mut self) {
        let mut entry = self.first_entry;
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
            unsafe { rows::<T, I>(&self, entry, ends, to, pitch) };
            if tile.is_none() {
                break;
            }
            entry = ends[ends.len() - 1] as usize;
            // SAFETY: the caller's promise.
            unsafe { self.sink.flush::<I>(ends.len()) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.sink.finish::<I>() };
    }
}

/// Rows that end at `ends`, the first from `entry` on, to `to`, `to + pitch`, ...
///
/// # Safety
/// As [`Part`], and there is room for the rows.
#[inline(always)]
unsafe fn rows<T: Scalar, I: Isa<T>>(
    part: &Part<'_, T>,
    entry: usize,
    ends: &[u32],
    to: *mut T,
    pitch: usize,
) {
    let rows = Rows { part, entry, ends, to, pitch };
    if part.k < LANES {
        // SAFETY: the caller's promise.
        return unsafe { rows.narrow::<I>() };
    }
    let vectors = part.k.div_ceil(LANES);
    let blocks = vectors.div_ceil(MOST_VECTORS);
    for block in 0..blocks {
        let span = spm_formats::partition::even(vectors, blocks, block);
        // The last vector ends where the row ends and may repeat columns of the one before.
        let last = ((span.end - 1) * LANES).min(part.k - LANES);
        let first = span.start * LANES;
        // SAFETY: the caller's promise; k is at least LANES, so all vectors are inside the row.
        unsafe {
            match span.len() {
                1 => rows.block::<I, 1, 4>(first, last),
                2 => rows.block::<I, 2, 4>(first, last),
                3 => rows.block::<I, 3, 2>(first, last),
                4 => rows.block::<I, 4, 2>(first, last),
                5 => rows.block::<I, 5, 1>(first, last),
                6 => rows.block::<I, 6, 1>(first, last),
                7 => rows.block::<I, 7, 1>(first, last),
                _ => rows.block::<I, 8, 1>(first, last),
            }
        }
    }
}

struct Rows<'a, 'b, T: Scalar> {
    part: &'a Part<'b, T>,
    entry: usize,
    ends: &'a [u32],
    to: *mut T,
    pitch: usize,
}

impl<T: Scalar> Rows<'_, '_, T> {
    /// `VECTORS` vectors from column `first` on, the last one at column `last`; `CHAINS` entries of
    /// a row are summed up apart, so that additions need not wait for each other.
    ///
    /// # Safety
    /// As [`rows`]; the vectors are inside a row of X.
    #[inline(always)]
    unsafe fn block<I: Isa<T>, const VECTORS: usize, const CHAINS: usize>(
        &self,
        first: usize,
        last: usize,
    ) {
        let (columns, values) = (self.part.a.col_indices(), self.part.a.values());
        let offset = |v: usize| if v + 1 == VECTORS { last } else { first + v * LANES };
        let ahead = self.part.prefetch;
        let mut entry = self.entry;
        // SAFETY: the caller's promise.
        unsafe {
            for (row, &end) in self.ends.iter().enumerate() {
                let mut sums = [[I::splat(T::ZERO); VECTORS]; CHAINS];
                let end = end as usize;
                while entry + CHAINS <= end {
                    for (chain, sums) in sums.iter_mut().enumerate() {
                        let entry = entry + chain;
                        let value = I::splat(*values.get_unchecked(entry));
                        let x = self.x_row(*columns.get_unchecked(entry));
                        if ahead > 0 && entry + ahead < columns.len() {
                            let x = self.x_row(*columns.get_unchecked(entry + ahead));
                            for v in 0..VECTORS {
                                I::prefetch(x.add(offset(v)));
                            }
                            I::prefetch(x.add(last + LANES - 1));
                        }
                        for (v, sum) in sums.iter_mut().enumerate() {
                            *sum = I::mul_add(value, I::load(x.add(offset(v))), *sum);
                        }
                    }
                    entry += CHAINS;
                }
                while entry < end {
                    let value = I::splat(*values.get_unchecked(entry));
                    let x = self.x_row(*columns.get_unchecked(entry));
                    if ahead > 0 && entry + ahead < columns.len() {
                        let x = self.x_row(*columns.get_unchecked(entry + ahead));
                        for v in 0..VECTORS {
                            I::prefetch(x.add(offset(v)));
                        }
                        I::prefetch(x.add(last + LANES - 1));
                    }
                    for (v, sum) in sums[0].iter_mut().enumerate() {
                        *sum = I::mul_add(value, I::load(x.add(offset(v))), *sum);
                    }
                    entry += 1;
                }
                let to = self.to.add(row * self.pitch);
                for v in 0..VECTORS {
                    let mut sum = sums[0][v];
                    for chain in &sums[1..] {
                        sum = I::add(sum, chain[v]);
                    }
                    I::store(to.add(offset(v)), sum);
                }
            }
        }
    }

    /// Fewer columns than a vector has lanes.
    ///
    /// # Safety
    /// As [`rows`].
    #[inline(always)]
    unsafe fn narrow<I: Isa<T>>(&self) {
        let (columns, values) = (self.part.a.col_indices(), self.part.a.values());
        let (k, ahead) = (self.part.k, self.part.prefetch);
        let mut entry = self.entry;
        // SAFETY: the caller's promise.
        unsafe {
            for (row, &end) in self.ends.iter().enumerate() {
                let mut sums = [I::splat(T::ZERO); 2];
                while entry < end as usize {
                    let value = I::splat(*values.get_unchecked(entry));
                    let x = I::load_first(k, self.x_row(*columns.get_unchecked(entry)));
                    if ahead > 0 && entry + ahead < columns.len() {
                        I::prefetch(self.x_row(*columns.get_unchecked(entry + ahead)));
                    }
                    sums = [sums[1], I::mul_add(value, x, sums[0])];
                    entry += 1;
                }
                I::store_first(k, self.to.add(row * self.pitch), I::add(sums[0], sums[1]));
            }
        }
    }

    #[inline(always)]
    unsafe fn x_row(&self, col: u32) -> *const T {
        // SAFETY: the invariants of `Part`.
        unsafe { self.part.x.start.add(col as usize * self.part.x.pitch) }
    }
}
