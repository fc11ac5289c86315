//! CSR to HLL.

use rayon::prelude::*;

use super::rows::Rows;
use super::tile::Slots;
use crate::{CsrView, FormatError, Hll, MemoryBudget, Scalar};

/// Pads the rows of every block of `hack_size` rows to the longest one of the block.
///
/// # Errors
/// A CSC matrix; hack size 0; more memory than `budget` allows (nothing is allocated then).
pub fn csr_to_hll<T: Scalar>(
    matrix: CsrView<'_, T>,
    hack_size: usize,
    budget: &MemoryBudget,
) -> Result<Hll<T>, FormatError> {
    let matrix = Rows::new(matrix)?;
    if hack_size == 0 {
        return Err(FormatError::InvalidParameter {
            what: "hack size",
            expected: "at least 1 row",
            found: 0,
        });
    }
    let rows = matrix.rows();
    let blocks = rows.div_ceil(hack_size);
    let extent = |block: usize| {
        let first = block * hack_size;
        (first, hack_size.min(rows - first))
    };
    let block_slots = |block: usize| {
        let (first, height) = extent(block);
        height as u128 * matrix.longest(first, first + height) as u128
    };
    let slots: u128 = (0..blocks).into_par_iter().map(block_slots).sum();
    let fixed = (blocks + 1) * size_of::<usize>() + rows * size_of::<u32>();
    budget.check("hll", matrix.entries(), slots, size_of::<u32>() + T::BYTES, fixed)?;

    let mut block_offsets = vec![0; blocks + 1];
    block_offsets[1..]
        .par_iter_mut()
        .enumerate()
        .for_each(|(block, end)| *end = block_slots(block) as usize);
    for block in 0..blocks {
        block_offsets[block + 1] += block_offsets[block];
    }
    let mut col_indices = vec![0; slots as usize];
    let mut values = vec![T::ZERO; slots as usize];
    let output = Slots::new(&mut col_indices, &mut values);
    (0..blocks).into_par_iter().for_each(|block| {
        let (first, height) = extent(block);
        let start = block_offsets[block];
        let width = (block_offsets[block + 1] - start) / height;
        // SAFETY: blocks own different ranges of the arrays.
        unsafe { output.fill(&matrix, |lane| first + lane, height, start, width, height) };
    });
    Ok(Hll {
        rows,
        cols: matrix.cols,
        entries: matrix.entries(),
        hack_size,
        block_offsets,
        row_lengths: matrix.lengths(),
        col_indices,
        values,
    })
}
