//! The common part of the 2-D kernels: tiles write partial sums, and a parallel reduction adds
//! them.

use spm_formats::kernel::Parameters;
use spm_formats::{FormatError, Scalar, partition};

use super::schedule::{GRID, Loop};
use crate::disjoint::Disjoint;
use crate::pool::Pool;
use crate::scaled::Update;
use crate::{PlanOptions, Threads, scaled};

/// A grid of row blocks x column blocks over a matrix, and the partial sums of its tiles.
pub(super) struct Tiles<T> {
    rows: usize,
    row_blocks: usize,
    col_blocks: usize,
    tiles: Loop,
    /// One partial sum for each row and column block. The `rows` sums of a column block are
    /// contiguous, so that two tiles write to the same cache line only at their ends.
    partial: Pool<Vec<T>>,
}

impl<T: Scalar> Tiles<T> {
    /// The grid of `kernel` over a matrix of `shape` = (rows, columns or stored elements of a row).
    ///
    /// # Errors
    /// More partial sums than the budget allows, counted with the offset or row pointer that CSR
    /// stores for each.
    pub(super) fn new(
        kernel: &'static str,
        shape: (usize, usize),
        entries: usize,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<Self, FormatError> {
        let ((rows, cols), (row_blocks, col_blocks)) = (shape, parameters.grid(GRID.name));
        // Further ones would be empty.
        let (row_blocks, col_blocks) = (row_blocks.min(rows.max(1)), col_blocks.min(cols.max(1)));
        let sums = rows as u128 * col_blocks as u128;
        options.budget.check(kernel, entries, sums, T::BYTES + size_of::<u32>(), 0)?;
        Ok(Self {
            rows,
            row_blocks,
            col_blocks,
            tiles: Loop::new(&options.threads, row_blocks * col_blocks, parameters),
            partial: Pool::new(vec![T::ZERO; rows * col_blocks]),
        })
    }

    pub(super) fn threads(&self) -> &Threads {
        self.tiles.threads()
    }

    pub(super) fn col_blocks(&self) -> usize {
        self.col_blocks
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows * self.col_blocks * T::BYTES
    }

    /// y_r = alpha `finish(r, s_r)` + beta y_r, where s_r is the sum over the column blocks j of
    /// `tile_sum(j, r)`.
    pub(super) fn multiply(
        &self,
        scaling: Option<Update<'_, T>>,
        y: &mut [T],
        tile_sum: impl Fn(usize, usize) -> T + Sync,
        finish: impl Fn(usize, T) -> T + Sync,
    ) {
        let (rows, col_blocks) = (self.rows, self.col_blocks);
        let mut sums = self.partial.take(|| vec![T::ZERO; rows * col_blocks]);
        let partial = Disjoint::new(&mut sums);
        self.tiles.run(|tiles| {
            for tile in tiles {
                let (row_block, col_block) = (tile / col_blocks, tile % col_blocks);
                let block = partition::even(rows, self.row_blocks, row_block);
                let start = col_block * rows;
                // SAFETY: tiles of one column block have different rows, of two different sums.
                let sums = unsafe { partial.range(start + block.start..start + block.end) };
                for (sum, row) in sums.iter_mut().zip(block) {
                    *sum = tile_sum(col_block, row);
                }
            }
        });
        let (partial, y) = (&*sums, Disjoint::new(y));
        let threads = self.tiles.threads();
        threads.run(|part| {
            let share = partition::even(rows, threads.count(), part);
            // SAFETY: the shares do not overlap.
            for (y, row) in unsafe { y.range(share.clone()) }.iter_mut().zip(share) {
                let sums = (0..col_blocks).map(|block| partial[block * rows + row]);
                let sum = sums.fold(T::ZERO, |sum, partial| sum + partial);
                scaled::store(scaling, finish(row, sum), y);
            }
        });
    }
}
