//! Transposition a block of columns at a time.
//!
//! Each row has a cursor at its next entry. Block by block, the entries of all rows in the columns of the block are
//! counted, then moved to their places. The output of a block stays in a cache, and A is read once, in pieces: for
//! matrices of few rows, which have several entries in each block.

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
    meaning: "entries in a block, about; they and their places should fit into a second-level cache",
    default: Value::Count(DEFAULT_BLOCK),
    studied: &[Value::Count(1 << 14), Value::Count(DEFAULT_BLOCK), Value::Count(1 << 18)],
};
const DEFAULT_BLOCK: usize = 1 << 16;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "column-blocks",
    source: "own",
    summary: "a cursor in each row, counting sort of a block of columns at a time; for few rows",
    parameters: &[BLOCK],
    ..KERNEL
};

/// Rows up to which a row has some eight entries in a block, so that finding them costs less than moving them.
pub(super) const FEW_ROWS: usize = DEFAULT_BLOCK / 8;

/// Rows ahead whose entries are prefetched.
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
    /// Of each block, and the end.
    starts: Vec<Start>,
    /// The first block of each thread, and the number of blocks.
    bounds: Vec<usize>,
    /// Entries of a row in a block, in the mean.
    piece: usize,
    /// threads x rows: the first entry of each row in the columns of the thread's blocks.
    firsts: Workspace<u32>,
    /// threads x rows: the first entry of each row in the block at hand.
    begins: Workspace<u32>,
    /// threads x rows: the first entry behind the block.
    ends: Workspace<u32>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let threads = options.threads.clone();
    let cursors = threads.count() * a.rows();
    let block = parameters.count(BLOCK.name);
    let most_blocks = most_blocks(&a, block);
    let of_words = (3 * cursors + a.cols()) * size_of::<u32>();
    let of_blocks = (most_blocks + 1) * (size_of::<Start>() + size_of::<usize>());
    options.budget.check_bytes(INFO.id, (of_words + of_blocks) as u128)?;
    let starts = starts(&a, block, most_blocks);
    let weights: Vec<usize> = starts.iter().map(|start| start.entry).collect();
    let bounds = partition::by_weight(&weights, threads.count());
    let mut firsts = Workspace::new(cursors, 0);
    for (firsts, &block) in firsts.chunks_mut(a.rows().max(1)).zip(&bounds) {
        let first_col = starts[block].col;
        for (row, first) in firsts.iter_mut().enumerate() {
            let before = a.row(row).0.partition_point(|&col| (col as usize) < first_col);
            *first = a.row_ptr()[row] + before as u32;
        }
    }
    let piece = a.nnz() / (a.rows() * (starts.len() - 1)).max(1);
    let (begins, ends) = (Workspace::new(cursors, 0), Workspace::new(cursors, 0));
    Ok(boxed(ColumnBlocks { a, threads, starts, bounds, piece, firsts, begins, ends }))
}

/// Blocks of `block` entries, at most: two beside each other have more.
fn most_blocks<T: Scalar>(a: &CsrView<'_, T>, block: usize) -> usize {
    a.cols().min(2 * (a.nnz() / block)) + 2
}

/// Cuts the columns into at most `most` blocks of `block` entries or of one column with more, and gives the end, too.
fn starts<T: Scalar>(a: &CsrView<'_, T>, block: usize, most: usize) -> Vec<Start> {
    let mut counts = vec![0_u32; a.cols()];
    a.col_ind().iter().for_each(|&col| counts[col as usize] += 1);
    let mut starts = Vec::with_capacity(most + 1);
    let (mut first, mut entry) = (0, 0);
    starts.push(Start { col: 0, entry });
    for (col, &count) in counts.iter().enumerate() {
        if entry + count as usize - first > block {
            starts.push(Start { col, entry });
            first = entry;
        }
        entry += count as usize;
    }
    starts.push(Start { col: a.cols(), entry });
    starts
}

impl<T: Scalar> Procedure<T> for ColumnBlocks<'_, T> {
    fn matrix(&self) -> &CsrView<'_, T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        let cursors =
            size_of_val(&*self.firsts) + size_of_val(&*self.begins) + size_of_val(&*self.ends);
        (cursors + size_of_val(&*self.starts) + size_of_val(&*self.bounds)) as u64
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        let TransposeOutput { col_ptr, row_ind, values } = output;
        let (a, rows, starts, bounds) = (self.a, self.a.rows(), &self.starts, &self.bounds);
        let (firsts, piece) = (&self.firsts, self.piece);
        col_ptr[0] = 0;
        let (col_ptr, row_ind) = (Disjoint::new(col_ptr), Disjoint::new(row_ind));
        let values = Disjoint::new(values);
        let (begins, ends) = (Disjoint::new(&mut self.begins), Disjoint::new(&mut self.ends));
        self.threads.run(|part| {
            let of_part = part * rows..(part + 1) * rows;
            // SAFETY: one row for each part.
            let (begins, ends) =
                unsafe { (begins.range(of_part.clone()), ends.range(of_part.clone())) };
            begins.copy_from_slice(&firsts[of_part]);
            for block in bounds[part]..bounds[part + 1] {
                let (start, end) = (starts[block], starts[block + 1]);
                let of_block = start.entry..end.entry;
                // SAFETY: each block is one part's, and blocks share neither columns nor entries.
                let (places, row_ind, values) = unsafe {
                    (
                        col_ptr.range(start.col + 1..end.col + 1),
                        row_ind.range(of_block.clone()),
                        values.range(of_block),
                    )
                };
                places.fill(0);
                count(&a, (start.col, piece), begins, ends, places);
                simd::prefetch_to_overwrite(row_ind);
                simd::prefetch_to_overwrite(values);
                let mut sum = start.entry as u32;
                places.iter_mut().for_each(|count| sum += std::mem::replace(count, sum));
                place(&a, (start, piece), begins, ends, (places, row_ind, values));
                begins.copy_from_slice(ends);
            }
        });
    }
}

/// Counts the entries of the columns from `first` on, one for each element of `counts`. They begin in each row at
/// `begins`; where they end is written to `ends`. `piece` is how many there are, about.
fn count<T: Scalar>(
    a: &CsrView<'_, T>,
    (first, piece): (usize, usize),
    begins: &[u32],
    ends: &mut [u32],
    counts: &mut [u32],
) {
    let columns = a.col_ind();
    let ends_of_rows = &a.row_ptr()[1..];
    let ahead = begins.iter().skip(ROWS_AHEAD).chain(std::iter::repeat(&0));
    for (((&begin, end), &end_of_row), &ahead) in
        begins.iter().zip(ends).zip(ends_of_rows).zip(ahead)
    {
        prefetch_from(columns, ahead, piece);
        let of_row = &columns[begin as usize..end_of_row as usize];
        let counted = of_row.iter().map_while(|&col| {
            let count = counts.get_mut(col as usize - first)?;
            *count += 1;
            Some(())
        });
        *end = begin + counted.count() as u32;
    }
}

/// Moves the entries from `begins` to `ends` of each row to their places. `places` has the place of the next entry of
/// each column of the block, the arrays behind it are those of the block.
fn place<T: Scalar>(
    a: &CsrView<'_, T>,
    (start, piece): (Start, usize),
    begins: &[u32],
    ends: &[u32],
    (places, row_ind, values): (&mut [u32], &mut [u32], &mut [T]),
) {
    let (columns, from) = (a.col_ind(), a.values());
    let ahead = begins.iter().skip(ROWS_AHEAD).chain(std::iter::repeat(&0));
    for (row, ((&begin, &end), &ahead)) in begins.iter().zip(ends).zip(ahead).enumerate() {
        prefetch_from(from, ahead, piece);
        let entries = begin as usize..end as usize;
        for (&col, &value) in columns[entries.clone()].iter().zip(&from[entries]) {
            let place = &mut places[col as usize - start.col];
            let at = *place as usize - start.entry;
            *place += 1;
            row_ind[at] = row as u32;
            values[at] = value;
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

    /// A block has at most as many entries as it may have, or one column, and blocks are as few as planning counts.
    #[test]
    fn blocks_are_full_and_not_too_full() {
        for name in ["uniform[rows=50,cols=700,entries=9000]", "arrow[n=300,width=2]"] {
            let a = generate::named(name).unwrap().generate::<f64>().unwrap();
            for block in [1, 20, 299, 1000, 100_000, usize::MAX] {
                let starts = starts(&a.view(), block, most_blocks(&a.view(), block));
                assert!(starts.len() <= most_blocks(&a.view(), block) + 1, "{name}, {block}");
                for pair in starts.windows(2) {
                    let (entries, cols) =
                        (pair[1].entry - pair[0].entry, pair[1].col - pair[0].col);
                    assert!(
                        entries <= block || cols == 1,
                        "{name}, {block}: {entries} in {cols} columns"
                    );
                }
                for three in starts.windows(3) {
                    let entries = three[2].entry - three[0].entry;
                    assert!(entries > block, "{name}, {block}: {entries} in two blocks");
                }
                let end = starts[starts.len() - 1];
                assert_eq!((end.col, end.entry), (a.cols(), a.nnz()), "{name}, {block}");
            }
        }
    }
}
