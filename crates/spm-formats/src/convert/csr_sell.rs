//! CSR to SELL-C-sigma.

use std::ops::Range;

use super::rows::GRAIN;
use super::tile::Elements;
use crate::check::check_nonzero;
use crate::huge_pages::zeroed;
use crate::{CsrView, FormatError, MemoryBudget, Scalar, Sell, parallel};

/// Sorts rows by length inside windows of `sigma` rows, longest first and stable, and pads the
/// rows of every chunk of `chunk` rows to the longest one of the chunk.
///
/// With `sigma` = 1 the rows keep their order; with `sigma >= rows` all rows are sorted. `sigma`
/// need not be a multiple of `chunk`, so a window may end inside a chunk.
///
/// # Errors
/// Chunk or sigma 0; more memory than `budget` allows (nothing is allocated if the entries alone
/// exceed it, and no stored element if the padding does).
pub fn csr_to_sell<T: Scalar>(
    matrix: CsrView<'_, T>,
    chunk: usize,
    sigma: usize,
    budget: &MemoryBudget,
) -> Result<Sell<T>, FormatError> {
    let Order { permutation, row_lengths, .. } = order(&matrix, chunk, sigma, budget)?;
    let (rows, entries) = (matrix.rows(), matrix.nnz());
    let mut chunk_offsets = Vec::with_capacity(rows.div_ceil(chunk) + 1);
    chunk_offsets.push(0);
    let mut end = 0;
    for rows in row_lengths.chunks(chunk) {
        end += width(rows) as usize * chunk;
        chunk_offsets.push(end);
    }
    let mut col_ind = zeroed(0, end);
    let mut values = zeroed(T::ZERO, end);
    let output = Elements::new(&mut col_ind, &mut values);
    parallel::for_each(chunk_offsets.len() - 1, 1, |index| {
        let permutation = &permutation[index * chunk..];
        let permutation = &permutation[..chunk.min(permutation.len())];
        let start = chunk_offsets[index];
        let width = (chunk_offsets[index + 1] - start) / chunk;
        let row_of = |lane: usize| permutation[lane] as usize;
        // SAFETY: chunks own different ranges of the arrays. Lanes beyond the last row keep
        // column 0 and value 0.
        unsafe { output.fill(&matrix, row_of, permutation.len(), start, width, chunk) };
    });
    Ok(Sell {
        rows,
        cols: matrix.cols(),
        entries,
        chunk,
        sigma,
        chunk_offsets,
        permutation,
        row_lengths,
        col_ind,
        values,
    })
}

/// Width of a chunk: its longest row, which need not be the first if a window ends inside it.
fn width(row_lengths: &[u32]) -> u32 {
    row_lengths.iter().copied().max().unwrap_or(0)
}

/// The order of the rows.
pub(super) struct Order {
    pub(super) permutation: Vec<u32>,
    pub(super) row_lengths: Vec<u32>,
    pub(super) elements: usize,
}

/// Sorts the rows and counts the stored elements, if they are within the budget.
pub(super) fn order<T: Scalar>(
    matrix: &CsrView<'_, T>,
    chunk: usize,
    sigma: usize,
    budget: &MemoryBudget,
) -> Result<Order, FormatError> {
    check_nonzero("chunk", "at least 1 row", chunk)?;
    check_nonzero("sigma", "at least 1 row", sigma)?;
    let (rows, entries) = (matrix.rows(), matrix.nnz());
    let chunks = rows.div_ceil(chunk);
    let fixed = (chunks + 1) * size_of::<usize>() + rows * 2 * size_of::<u32>();
    let element_bytes = size_of::<u32>() + T::BYTES;
    budget.check("sell", entries, entries as u128, element_bytes, fixed)?;

    let mut permutation = vec![0; rows];
    let window_rows = sigma.min(rows.max(1));
    let task_rows = window_rows * GRAIN.div_ceil(window_rows);
    let mut tasks: Vec<_> = permutation.chunks_mut(task_rows).collect();
    parallel::for_each_mut(&mut tasks, 1, |task, rows| {
        for (window, rows) in rows.chunks_mut(window_rows).enumerate() {
            sort_window(matrix, task * task_rows + window * window_rows, rows);
        }
    });
    let row_lengths = parallel::map_ranges(rows, 1, |range| {
        permutation[range].iter().map(|&row| matrix.length(row as usize) as u32)
    });
    let widths = |chunks: Range<usize>| {
        let rows = chunks.start * chunk..rows.min(chunks.end.saturating_mul(chunk));
        row_lengths[rows].chunks(chunk).map(|rows| u64::from(width(rows))).sum()
    };
    let widths = parallel::reduce(chunks, 1, 0, &widths, |a, b| a + b);
    let elements = u128::from(widths) * chunk as u128;
    budget.check("sell", entries, elements, element_bytes, fixed)?;
    Ok(Order { permutation, row_lengths, elements: elements as usize })
}

/// Rows of a window up to which a comparison sort is faster than a counting sort.
const SMALL_WINDOW: usize = 256;

/// Writes the rows from `first` on into `window`, longest first, equal lengths in their order.
fn sort_window<T: Scalar>(matrix: &CsrView<'_, T>, first: usize, window: &mut [u32]) {
    let rows = first..first + window.len();
    let longest = matrix.longest(rows.start, rows.end);
    if window.len() <= SMALL_WINDOW {
        for (element, row) in window.iter_mut().zip(rows) {
            *element = row as u32;
        }
        window.sort_by_key(|&row| std::cmp::Reverse(matrix.length(row as usize)));
        return;
    }
    // Counting sort: longest <= entries, so the counters cost no more than the entries read.
    let mut places = vec![0_u32; longest + 2];
    for row in rows.clone() {
        places[longest - matrix.length(row) + 1] += 1;
    }
    for i in 1..places.len() {
        places[i] += places[i - 1];
    }
    for row in rows {
        let place = &mut places[longest - matrix.length(row)];
        window[*place as usize] = row as u32;
        *place += 1;
    }
}
