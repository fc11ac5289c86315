//! ELLPACK SpMM of R4 4.2: the loops over rows and columns are collapsed into one whose iterations
//! are distributed to threads in static chunks, after X has been transposed;
//! y_ic = sum_j a_ij x_jc.

use spm_formats::kernel::Schedule;
use spm_formats::{DenseShape, FormatError, Layout, Scalar};

use super::plan::{Memory, Product};
use super::rows::{RowWise, Strides, element, static_chunk};
use crate::disjoint::Disjoint;
use crate::pool::Pool;
use crate::scaled::Update;
use crate::{PlanOptions, Threads, scaled};

/// Rows of X that are transposed at a time: a cache line of each of their elements' columns.
const ROWS_PER_TILE: usize = 16;

pub(super) struct Collapsed<T, A> {
    a: A,
    dense: DenseShape,
    threads: Threads,
    chunk: usize,
    /// X in column-major order; empty if the caller's X is column-major.
    transposed: Pool<Vec<T>>,
}

impl<T: Scalar, A: RowWise<T>> Collapsed<T, A> {
    /// The plan of `kernel`, which holds `a`.
    ///
    /// # Errors
    /// A transposed X beyond the budget.
    pub(super) fn new(
        kernel: &'static str,
        a: A,
        dense: DenseShape,
        options: &PlanOptions,
    ) -> Result<Self, FormatError> {
        let ((rows, cols), threads) = (a.shape(), &options.threads);
        if dense.layout == Layout::RowMajor {
            let budget = options.budget.beside(a.held_bytes());
            budget.check_bytes(kernel, (cols * dense.k * T::BYTES) as u128)?;
        }
        let transposed = Pool::new(Self::workspace(cols, dense));
        let chunk = static_chunk(rows, threads.count());
        Ok(Self { a, dense, threads: threads.clone(), chunk, transposed })
    }

    fn workspace(cols: usize, dense: DenseShape) -> Vec<T> {
        match dense.layout {
            Layout::RowMajor => vec![T::ZERO; cols * dense.k],
            Layout::ColumnMajor => Vec::new(),
        }
    }
}

impl<T: Scalar, A: RowWise<T>> Product<T> for Collapsed<T, A> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    fn memory(&self) -> Memory {
        let transposed = match self.dense.layout {
            Layout::RowMajor => self.a.shape().1 * self.dense.k * T::BYTES,
            Layout::ColumnMajor => 0,
        };
        Memory { matrix: self.a.bytes(), plan: self.a.held_bytes() + transposed as u64 }
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (rows, cols) = self.a.shape();
        let k = self.dense.k;
        let mut transposed = self.transposed.take(|| Self::workspace(cols, self.dense));
        let x = match self.dense.layout {
            Layout::RowMajor => {
                transpose(x, k, &mut transposed, &self.threads);
                &transposed
            }
            Layout::ColumnMajor => x,
        };
        let in_x = Strides { down: 1, across: cols };
        let in_y = Strides::new(rows, self.dense);
        let y = Disjoint::new(y);
        self.threads.for_each_chunk(rows * k, Schedule::Static, self.chunk, |elements| {
            for (row, c) in elements.map(|i| (i / k, i % k)) {
                let at = row * in_y.down + c * in_y.across;
                // SAFETY: the chunks of a loop do not overlap, and each iteration has an element
                // of its own.
                let y = unsafe { &mut y.range(at..at + 1)[0] };
                scaled::store(scaling, element(&self.a, row, x, c, in_x), y);
            }
        });
    }
}

/// `transposed` = the transpose of the row-major matrix `x` of `k` columns.
fn transpose<T: Scalar>(x: &[T], k: usize, transposed: &mut [T], threads: &Threads) {
    let rows = x.len() / k.max(1);
    let transposed = Disjoint::new(transposed);
    threads.for_each_chunk(rows, Schedule::Static, static_chunk(rows, threads.count()), |chunk| {
        for tile in chunk.clone().step_by(ROWS_PER_TILE) {
            let tile = tile..chunk.end.min(tile + ROWS_PER_TILE);
            for c in 0..k {
                // SAFETY: the chunks of a loop do not overlap.
                let column =
                    unsafe { transposed.range(c * rows + tile.start..c * rows + tile.end) };
                for (element, row) in column.iter_mut().zip(tile.clone()) {
                    *element = x[row * k + c];
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transpose_has_columns_side_by_side() {
        for (rows, k) in [(0, 3), (3, 0), (3, 2), (100, 7)] {
            let x: Vec<f64> = (0..rows * k).map(|i| i as f64).collect();
            let mut transposed = vec![f64::NAN; rows * k];
            transpose(&x, k, &mut transposed, &Threads::new(3));
            for i in 0..rows {
                for j in 0..k {
                    assert_eq!(transposed[j * rows + i], x[i * k + j]);
                }
            }
        }
    }
}
