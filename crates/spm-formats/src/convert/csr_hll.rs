//! CSR to HLL.

use super::tile::Elements;
use crate::check::check_nonzero;
use crate::huge_pages::zeroed;
use crate::stats::hll_stored_elements;
use crate::{CsrView, FormatError, Hll, MemoryBudget, Scalar, parallel};

/// Pads the rows of every block of `hack_size` rows to the longest one of the block.
///
/// # Errors
/// Hack size 0; more memory than `budget` allows (nothing is allocated then).
pub fn csr_to_hll<T: Scalar>(
    matrix: CsrView<'_, T>,
    hack_size: usize,
    budget: &MemoryBudget,
) -> Result<Hll<T>, FormatError> {
    let elements = count_elements(&matrix, hack_size, budget)?;
    let (rows, blocks) = (matrix.rows(), matrix.rows().div_ceil(hack_size));
    let mut block_offsets = vec![0; blocks + 1];
    parallel::for_each_mut(&mut block_offsets[1..], 1, |block, end| {
        let (first, height) = block_extent(rows, hack_size, block);
        *end = height * matrix.longest(first, first + height);
    });
    for block in 0..blocks {
        block_offsets[block + 1] += block_offsets[block];
    }
    let mut col_ind = zeroed(0, elements);
    let mut values = zeroed(T::ZERO, elements);
    let output = Elements::new(&mut col_ind, &mut values);
    parallel::for_each(blocks, 1, |block| {
        let (first, height) = block_extent(rows, hack_size, block);
        let start = block_offsets[block];
        let width = (block_offsets[block + 1] - start) / height;
        // SAFETY: blocks own different ranges of the arrays.
        unsafe { output.fill(&matrix, |lane| first + lane, height, start, width, height) };
    });
    Ok(Hll {
        rows,
        cols: matrix.cols(),
        entries: matrix.nnz(),
        hack_size,
        block_offsets,
        row_lengths: matrix.lengths(),
        col_ind,
        values,
    })
}

/// First row and number of rows of a block.
fn block_extent(rows: usize, hack_size: usize, block: usize) -> (usize, usize) {
    let first = block * hack_size;
    (first, hack_size.min(rows - first))
}

/// Number of stored elements, if they are within the budget.
pub(super) fn count_elements<T: Scalar>(
    matrix: &CsrView<'_, T>,
    hack_size: usize,
    budget: &MemoryBudget,
) -> Result<usize, FormatError> {
    check_nonzero("hack size", "at least 1 row", hack_size)?;
    let blocks = matrix.rows().div_ceil(hack_size);
    let elements = hll_stored_elements(matrix.row_ptr(), hack_size);
    let fixed = (blocks + 1) * size_of::<usize>() + matrix.rows() * size_of::<u32>();
    budget.check("hll", matrix.nnz(), elements.into(), size_of::<u32>() + T::BYTES, fixed)?;
    Ok(elements as usize)
}
