//! Sums of long rows, each split between all threads.

use spm_formats::{CsrView, Scalar, partition};

use super::row::{self, Summing};
use crate::disjoint::Disjoint;
use crate::pool::{Pool, Taken};
use crate::scaled::Update;
use crate::simd::LANES;
use crate::{Threads, scaled};

/// Rows of up to so many entries are not split, unless a chunk of [`LANES`] rows as long as they is more than one in
/// [`CHUNKS`] of what a thread has.
pub(super) const LONG: usize = 2048;
const CHUNKS: usize = 4;
/// Nor are rows of up to so many times the mean, if such a chunk is less than that.
const USUAL: usize = 4;
/// A chunk column may be stored for each entry of a row and more; they are counted in 16 bits.
const MOST: usize = 1 << 15;
/// Rows that are looked at for others of their length, about.
const SAMPLE: usize = 8192;

/// Entries of a row up to which it is not split between so many threads.
pub(super) fn longest_whole(row_ptr: &[u32], threads: usize) -> usize {
    let (rows, entries) = (row_ptr.len() - 1, row_ptr[row_ptr.len() - 1] as usize);
    let usual = USUAL * entries / rows.max(1);
    let of_thread = row_of_thread(entries, threads);
    of_thread.clamp(usual.min(LONG), LONG).max(usual.min(of_thread).min(MOST))
}

/// Entries of a row of which a chunk is one in [`CHUNKS`] of what each of so many threads has.
fn row_of_thread(entries: usize, threads: usize) -> usize {
    entries / threads.max(1) / (LANES * CHUNKS)
}

/// [`longest_whole`] where rows are sorted by length in windows of so many: also rows that share their chunk with others at least half
/// as long, which read x together and faster than a row by itself.
pub(super) fn longest_in_windows(row_ptr: &[u32], threads: usize, window: usize) -> usize {
    let whole = longest_whole(row_ptr, threads);
    let (rows, entries) = (row_ptr.len() - 1, row_ptr[row_ptr.len() - 1] as usize);
    let most = row_of_thread(entries, threads).min(MOST);
    if most < 2 * whole.max(1) {
        return whole;
    }
    let step = rows.div_ceil(SAMPLE).max(1);
    // Of as many entries as a power of two, and up to twice that.
    let mut alike = [0; u32::BITS as usize];
    for row in partition::sampled(rows, step) {
        let length = row_ptr[row + 1] - row_ptr[row];
        alike[length.checked_ilog2().unwrap_or(0) as usize] += step;
    }
    // A chunk of them in each window.
    let needed = LANES * rows.div_ceil(window.max(LANES));
    let powers = (0..MOST.ilog2()).rev().filter(|&power| alike[power as usize] >= needed);
    let longest = powers.map(|power| 2 << power).find(|&longest| longest <= most);
    longest.map_or(whole, |longest| longest.max(whole))
}

/// The long rows of a matrix, and workspace for the partial sums of the threads.
pub(super) struct LongRows<T> {
    rows: Vec<u32>,
    parts: usize,
    /// The partial sum of thread t for long row l at `t * rows.len() + l`, and after all of these
    /// the elements of y in the long rows.
    workspaces: Pool<Vec<T>>,
}

impl<T: Scalar> LongRows<T> {
    /// The rows of more than `longest` entries.
    pub(super) fn new(a: &CsrView<'_, T>, longest: usize, threads: &Threads) -> Self {
        let long = |ends: &[u32]| (ends[1] - ends[0]) as usize > longest;
        let rows: Vec<u32> = (0..)
            .zip(a.row_ptr().windows(2))
            .filter_map(|(row, ends)| long(ends).then_some(row))
            .collect();
        let parts = threads.count();
        let workspaces = Pool::new(vec![T::ZERO; rows.len() * (parts + 1)]);
        Self { workspaces, rows, parts }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.rows) + self.elements() * T::BYTES
    }

    /// Bytes of the columns and values of the long rows, which stay in the arrays of `a`.
    pub(super) fn csr_bytes(&self, a: &CsrView<'_, T>) -> usize {
        let entries = self.rows.iter().map(|&row| a.row_range(row as usize).len());
        entries.sum::<usize>() * (size_of::<u32>() + T::BYTES)
    }

    /// Elements of a workspace: the partial sums, then the elements of y.
    fn elements(&self) -> usize {
        self.rows.len() * (self.parts + 1)
    }

    /// Workspace for one product, which keeps what `y` has in the long rows.
    pub(super) fn begin(&self, y: &[T]) -> Taken<'_, Vec<T>> {
        let mut workspace = self.workspaces.take(|| vec![T::ZERO; self.elements()]);
        let kept = &mut workspace[self.rows.len() * self.parts..];
        kept.iter_mut().zip(&self.rows).for_each(|(kept, &row)| *kept = y[row as usize]);
        workspace
    }

    /// Access to the partial sums for the threads of a pool.
    pub(super) fn pieces<'a>(&'a self, workspace: &'a mut [T]) -> Pieces<'a, T> {
        Pieces { rows: &self.rows, parts: self.parts, sums: Disjoint::new(workspace) }
    }

    /// Adds the partial sums, always in the same order. What is in the long rows of `y` is
    /// discarded; alpha and beta apply to what was there at the beginning.
    pub(super) fn finish(&self, workspace: &[T], scaling: Option<Update<'_, T>>, y: &mut [T]) {
        let count = self.rows.len();
        let (sums, kept) = workspace.split_at(count * self.parts);
        for (l, (&row, &kept)) in self.rows.iter().zip(kept).enumerate() {
            let pieces = (0..self.parts).map(|part| sums[part * count + l]);
            let y = &mut y[row as usize];
            *y = kept;
            scaled::store(scaling, pieces.fold(T::ZERO, |sum, piece| sum + piece), y);
        }
    }
}

pub(super) struct Pieces<'a, T> {
    rows: &'a [u32],
    parts: usize,
    sums: Disjoint<'a, T>,
}

impl<T: Scalar> Pieces<'_, T> {
    /// Computes the partial sums of thread `part`. Each part is computed by one thread only.
    pub(super) fn sum(&self, a: &CsrView<'_, T>, part: usize, x: &[T], summing: Summing) {
        let (start, count) = (part * self.rows.len(), self.rows.len());
        // SAFETY: the parts do not overlap, and each belongs to one thread.
        let sums = unsafe { self.sums.range(start..start + count) };
        for (sum, &row) in sums.iter_mut().zip(self.rows) {
            let ends = &a.row_ptr()[row as usize..=row as usize + 1];
            let piece = partition::even((ends[1] - ends[0]) as usize, self.parts, part);
            let start = ends[0] as usize;
            *sum = row::dot_entries(a, start + piece.start..start + piece.end, x, summing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(rows: usize, length: u32, threads: usize) -> usize {
        let row_ptr: Vec<u32> = (0..=rows as u32).map(|row| row * length).collect();
        longest_whole(&row_ptr, threads)
    }

    #[test]
    fn rows_are_whole_among_others_of_their_length() {
        // Some long rows, then rows of 70 entries.
        let matrix = |long: usize, length: u32| -> Vec<u32> {
            let lengths = (0..20_000).map(|row| if row < long { length } else { 70 });
            let ends = lengths.scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            std::iter::once(0).chain(ends).collect()
        };
        let longest = |long, length, threads, window| {
            longest_in_windows(&matrix(long, length), threads, window)
        };
        // 20 windows of 1024 rows, each of which could have a chunk of them.
        assert_eq!(longest(180, 3000, 1, 1024), 4096);
        assert_eq!(longest(180, 9000, 1, 1024), 16_384);
        assert_eq!(longest(130, 3000, 1, 1024), LONG);
        assert_eq!(longest(180, 3000, 1, 512), LONG);
        // A chunk would be more than a quarter of what a thread has.
        assert_eq!(longest(180, 3000, 16, 1024), longest_whole(&matrix(180, 3000), 16));
        assert_eq!(longest(180, 9000, 8, 1024), LONG);
        // More than are counted.
        assert_eq!(longest(180, 60_000, 1, 1024), longest_whole(&matrix(180, 60_000), 1));
        assert_eq!(longest_in_windows(&[0], 1, 256), 0);
    }

    #[test]
    fn rows_are_whole_where_they_are_a_small_part_of_what_a_thread_has() {
        assert_eq!(longest(100_000, 7, 2), LONG);
        // A chunk of eight is a quarter of what a thread has.
        assert_eq!(longest(1000, 12, 2), 1000 * 12 / 2 / 32);
        assert_eq!(longest(1000, 3000, 2), 4 * 3000);
        assert_eq!(longest(1000, 3000, 16), 1000 * 3000 / 16 / 32);
        assert_eq!(longest(1000, 20_000, 2), MOST);
        // Usual ones, however few.
        assert_eq!(longest(10, 12, 2), 4 * 12);
        assert_eq!(longest(1000, 3000, 1000), LONG);
        for (row_ptr, expected) in [(&[0][..], 0), (&[0, 0], 0), (&[0, 5], 20)] {
            assert_eq!(longest_whole(row_ptr, 0), expected);
        }
    }
}
