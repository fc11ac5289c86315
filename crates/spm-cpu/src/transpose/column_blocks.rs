//! Transposition a block of columns at a time.
//!
//! Planning cuts each row where blocks of columns begin. Block by block, the entries of all rows in the columns of the block
//! are counted, then moved to their places. The output of a block stays in a cache, A is read once, in pieces, and no two
//! threads write to the same columns: for rows that have several entries in each block.

use std::iter;
use std::ops::Range;

use spm_formats::kernel::{
    KernelInfo, ParameterSpec, Parameters, PlanError, TransposeOutput, Value,
};
use spm_formats::{CsrView, Scalar, partition};

use super::BoxedPlan;
use super::KERNEL;
use super::plan::{Procedure, boxed};
use crate::disjoint::Disjoint;
use crate::simd;
use crate::workspace::{CACHE_LINE, Workspace};
use crate::{PlanOptions, Threads};

const BLOCK: ParameterSpec = ParameterSpec {
    name: "block",
    meaning: "entries in a block, about, or fewer, so that each thread has as many blocks; they and their places should fit \
              into a second-level cache",
    default: Value::Count(DEFAULT_BLOCK),
    studied: &[Value::Count(1 << 14), Value::Count(DEFAULT_BLOCK), Value::Count(1 << 18)],
};
const DEFAULT_BLOCK: usize = 1 << 16;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "column-blocks",
    source: "own",
    summary: "rows cut where blocks of columns begin, counting sort of a block at a time; for rows with \
              several entries in each block",
    parameters: &[BLOCK],
    ..KERNEL
};

/// Entries of a row in a block, in the mean, from which finding their ends costs less than it saves.
const PIECE: usize = 2;

/// Whether so many `threads` have more than one block, and rows have several entries in each. Where all threads have one block
/// each, they are kept from each other's cache lines, for which rows need as many entries as for two; that is all that blocks
/// are for unless columns are far from each other (`is_far`).
pub(super) fn suits<T: Scalar>(a: &CsrView<'_, T>, threads: usize, is_far: bool) -> bool {
    let blocks = blocks(a, DEFAULT_BLOCK, threads);
    let one_each = a.nnz() <= threads * DEFAULT_BLOCK;
    let pieces = if one_each { blocks.min(2) } else { blocks };
    (is_far || one_each) && blocks > 1 && a.nnz() >= PIECE * pieces * a.rows()
}

/// Rows ahead whose entries are prefetched where a thread has several blocks.
const ROWS_AHEAD: usize = 8;

/// Where a block of columns starts.
#[derive(Debug, Clone, Copy)]
struct Start {
    col: usize,
    /// Entries in the columns before.
    entry: usize,
}

struct ColumnBlocks<'a, T> {
    a: CsrView<'a, T>,
    threads: Threads,
    /// The first block of each thread, and the number of blocks.
    bounds: Vec<usize>,
    /// Of each block, and the end.
    starts: Vec<Start>,
    /// (blocks + 1) x rows: the first entry of each row in the columns from the start of the block on.
    cuts: Workspace<u32>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let threads = options.threads.clone();
    let blocks = blocks(&a, parameters.count(BLOCK.name), threads.count());
    let of_cuts = (blocks as u128 + 1) * (a.rows() * size_of::<u32>()) as u128;
    let of_starts = (blocks + 1) * size_of::<Start>() + (a.cols() + 1) * size_of::<usize>();
    options.budget.check_bytes(INFO.id, of_cuts + of_starts as u128)?;
    let starts = starts(&a, blocks);
    let mut cuts = Workspace::new((blocks + 1) * a.rows(), 0);
    cuts[..a.rows()].copy_from_slice(&a.row_ptr()[..a.rows()]);
    for (block, start) in starts.iter().enumerate().skip(1) {
        let (before, at) = cuts[(block - 1) * a.rows()..].split_at_mut(a.rows());
        for ((row, &before), at) in before.iter().enumerate().zip(at) {
            let left = &a.col_ind()[before as usize..a.row_range(row).end];
            *at = before + left.partition_point(|&col| (col as usize) < start.col) as u32;
        }
    }
    let bounds = (0..=threads.count()).map(|thread| thread * (blocks / threads.count())).collect();
    Ok(boxed(ColumnBlocks { a, threads, bounds, starts, cuts }))
}

/// The number of blocks, the same for each thread.
fn blocks<T: Scalar>(a: &CsrView<'_, T>, block: usize, threads: usize) -> usize {
    let wanted = a.nnz().div_ceil(block).min(a.cols());
    wanted.max(1).next_multiple_of(threads)
}

/// Cuts the columns into blocks of about as many entries each, and gives the end, too.
fn starts<T: Scalar>(a: &CsrView<'_, T>, blocks: usize) -> Vec<Start> {
    let mut sums = vec![0; a.cols() + 1];
    a.col_ind().iter().for_each(|&col| sums[col as usize + 1] += 1);
    for col in 0..a.cols() {
        sums[col + 1] += sums[col];
    }
    let starts = partition::by_weight(&sums, blocks);
    starts.into_iter().map(|col| Start { col, entry: sums[col] }).collect()
}

impl<T: Scalar> Procedure<T> for ColumnBlocks<'_, T> {
    fn matrix(&self) -> &CsrView<'_, T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        let of_blocks = size_of_val(&*self.starts) + size_of_val(&*self.bounds);
        (size_of_val(&*self.cuts) + of_blocks) as u64
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        // Entries are written to their places without a check.
        output.check(self.a.cols(), self.a.nnz()).expect("arrays of the matrix's sizes");
        let TransposeOutput { col_ptr, row_ind, values } = output;
        let (a, rows, starts, cuts) = (self.a, self.a.rows(), &self.starts, &self.cuts);
        col_ptr[0] = 0;
        let col_ptr = Disjoint::new(col_ptr);
        let to = (Disjoint::new(row_ind), Disjoint::new(values));
        // Where each thread has one block, caches hold all of it.
        let blocks = starts.len() - 1;
        let is_alone = blocks == self.threads.count();
        let piece = if is_alone { 0 } else { a.nnz().div_ceil((a.rows() * blocks).max(1)) };
        self.threads.share(&self.bounds, |_, block| {
            let (start, end) = (starts[block], starts[block + 1]);
            let cuts = cuts[block * rows..][..2 * rows].split_at(rows);
            let block =
                Block { first_col: start.col, entries: start.entry..end.entry, cuts, piece };
            // SAFETY: blocks share no columns. The columns of a row ascend, so those from one cut to the next are of
            // the block that the cuts are of.
            unsafe {
                let places = col_ptr.range(start.col + 1..end.col + 1);
                transpose_block(a, &block, places, to);
            }
        });
    }
}

/// The entries of a block.
struct Block<'a> {
    first_col: usize,
    /// Where they are in the output.
    entries: Range<usize>,
    /// The first one of each row, and the first one behind them.
    cuts: (&'a [u32], &'a [u32]),
    /// Entries of a row that are prefetched.
    piece: usize,
}

impl Block<'_> {
    /// Of each row its entries, and the first one of a row further on.
    fn pieces(&self) -> impl Iterator<Item = (Range<usize>, u32)> {
        let (begins, ends) = self.cuts;
        let pieces = begins.iter().zip(ends).map(|(&begin, &end)| begin as usize..end as usize);
        pieces.zip(begins.iter().copied().skip(ROWS_AHEAD).chain(iter::repeat(0)))
    }
}

/// Moves the entries of a block to their places, which are computed in `places`: the column pointers behind each of its
/// columns.
///
/// # Safety
/// These are all entries of the columns, and of no others. `to` has the lengths of the transpose, and no other thread
/// writes to these columns of it.
unsafe fn transpose_block<T: Scalar>(
    a: CsrView<'_, T>,
    block: &Block<'_>,
    places: &mut [u32],
    to: (Disjoint<'_, u32>, Disjoint<'_, T>),
) {
    let (columns, values) = (a.col_ind(), a.values());
    let (first_col, piece) = (block.first_col, block.piece);
    places.fill(0);
    for (entries, ahead) in block.pieces() {
        prefetch_from(columns, ahead, piece);
        for entry in entries {
            // SAFETY: the caller's promise.
            unsafe {
                let col = *columns.get_unchecked(entry) as usize;
                *places.get_unchecked_mut(col - first_col) += 1;
            }
        }
    }
    // The place of the next entry of a column is the end of the column when all have been placed.
    let mut sum = block.entries.start as u32;
    places.iter_mut().for_each(|count| sum += std::mem::replace(count, sum));
    if piece > 0 {
        // SAFETY: the caller's promise.
        unsafe {
            simd::prefetch_to_overwrite(to.0.range(block.entries.clone()));
            simd::prefetch_to_overwrite(to.1.range(block.entries.clone()));
        }
    }
    for (row, (entries, ahead)) in block.pieces().enumerate() {
        prefetch_from(values, ahead, piece);
        for entry in entries {
            // SAFETY: the caller's promise: each column has as many places, from its own on, as it has entries.
            unsafe {
                let col = *columns.get_unchecked(entry) as usize;
                let place = places.get_unchecked_mut(col - first_col);
                let at = *place as usize;
                *place += 1;
                to.0.write_unchecked(at, row as u32);
                to.1.write_unchecked(at, *values.get_unchecked(entry));
            }
        }
    }
}

/// Prefetches the lines of `entries` elements from `first` on.
#[inline(always)]
fn prefetch_from<T>(elements: &[T], first: u32, entries: usize) {
    let line = elements.as_ptr().wrapping_add(first as usize);
    for offset in (0..entries * size_of::<T>()).step_by(CACHE_LINE) {
        simd::prefetch(line.wrapping_byte_add(offset));
    }
}

#[cfg(test)]
mod tests {
    use spm_testing::generate;

    use super::*;

    #[test]
    fn blocks_have_about_as_many_entries() {
        for name in ["uniform[rows=50,cols=700,entries=9000]", "arrow[n=300,width=2]"] {
            let a = generate::named(name).unwrap().generate::<f64>().unwrap();
            let a = a.view();
            let longest = |cols: Range<usize>| {
                let of = |col: usize| a.col_ind().iter().filter(|&&of| of as usize == col).count();
                cols.map(of).max().unwrap_or(0)
            };
            for (block, threads) in
                [(1, 1), (20, 3), (299, 2), (1000, 4), (100_000, 3), (usize::MAX, 1)]
            {
                let blocks = blocks(&a, block, threads);
                assert!(blocks % threads == 0 && blocks < a.cols() + threads, "{name}, {block}");
                let starts = starts(&a, blocks);
                assert_eq!(starts.len(), blocks + 1);
                let ends = [starts[0], starts[blocks]].map(|of| (of.col, of.entry));
                assert_eq!(ends, [(0, 0), (a.cols(), a.nnz())], "{name}, {block}");
                for pair in starts.windows(2) {
                    let of_block = pair[1].entry - pair[0].entry;
                    let most = a.nnz().div_ceil(blocks) + longest(pair[0].col..pair[1].col);
                    assert!(of_block <= most, "{name}, {block}: {of_block} entries in a block");
                }
            }
        }
    }

    #[test]
    fn rows_must_have_several_entries_in_each_of_several_blocks() {
        let suits_if = |is_far: bool, name: &str, threads| {
            let a = generate::named(name).unwrap().generate::<f64>().unwrap();
            suits(&a.view(), threads, is_far)
        };
        let suits = |name: &str, threads| suits_if(true, name, threads);
        let small = |rows| format!("uniform[rows={rows},cols=300,entries=600]");
        assert_eq!(
            [1, 2, 3, 16].map(|threads| suits(&small(150), threads)),
            [false, true, true, true]
        );
        assert_eq!([2, 16].map(|threads| suits(&small(151), threads)), [false; 2]);
        let large = |rows| format!("uniform[rows={rows},cols=3000,entries=140000]");
        assert!(suits(&large(23_000), 1) && !suits(&large(24_000), 1));
        assert!(suits(&large(17_000), 2) && !suits(&large(18_000), 2) && suits(&large(35_000), 4));
        // Several blocks each are only for columns that are far.
        assert!(suits_if(false, &small(150), 3) && !suits_if(false, &large(17_000), 2));
    }
}
