//! CSR to ELLPACK, padded and not.

use super::tile::{Elements, padding_column};
use crate::check::check_nonzero;
use crate::huge_pages::zeroed;
use crate::{
    CsrView, Ell, FormatError, Layout, MemoryBudget, Scalar, UnpaddedEll, UnpaddedRow, parallel,
};

/// The memory layout of an ELLPACK matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EllOptions {
    /// Contiguous dimension.
    pub layout: Layout,
    /// The pitch is rounded up to a multiple of this many elements; 1 for no gap.
    pub pitch_alignment: usize,
}

impl EllOptions {
    /// Row-major without gaps, for CPU cores, which process a row at a time.
    pub const ROW_MAJOR: Self = Self { layout: Layout::RowMajor, pitch_alignment: 1 };
    /// Column-major without gaps.
    pub const COLUMN_MAJOR: Self = Self { layout: Layout::ColumnMajor, pitch_alignment: 1 };
    /// Column-major with every column aligned to 256 bytes in both arrays, as `cudaMallocPitch`
    /// does: 64 elements are 256 bytes of indices and of `f32`, 512 of `f64`.
    pub const DEVICE: Self = Self { layout: Layout::ColumnMajor, pitch_alignment: 64 };
}

/// Rows of a row-major matrix that one task fills.
const ROWS_PER_TASK: usize = 256;

/// Pads every row to the longest one.
///
/// # Errors
/// Pitch alignment 0; more memory than `budget` allows (nothing is allocated then).
pub fn csr_to_ell<T: Scalar>(
    matrix: CsrView<'_, T>,
    options: EllOptions,
    budget: &MemoryBudget,
) -> Result<Ell<T>, FormatError> {
    let rows = matrix.rows();
    let width = matrix.width();
    let (pitch, elements) = extent::<T>(rows, width, matrix.nnz(), options, budget)?;
    let layout = options.layout;
    let mut col_ind = zeroed(0, elements);
    let mut values = zeroed(T::ZERO, elements);
    match layout {
        Layout::RowMajor if elements > 0 => {
            let col_ind = col_ind.chunks_mut(pitch * ROWS_PER_TASK);
            let mut tasks: Vec<_> = col_ind.zip(values.chunks_mut(pitch * ROWS_PER_TASK)).collect();
            parallel::for_each_mut(&mut tasks, 1, |task, (col_ind, values)| {
                let elements = col_ind.chunks_mut(pitch).zip(values.chunks_mut(pitch));
                for (i, (cols, values)) in elements.enumerate() {
                    let (row_cols, row_values) = matrix.row(task * ROWS_PER_TASK + i);
                    cols[..row_cols.len()].copy_from_slice(row_cols);
                    cols[row_cols.len()..width].fill(padding_column(row_cols));
                    values[..row_values.len()].copy_from_slice(row_values);
                }
            });
        }
        Layout::ColumnMajor if elements > 0 => {
            let output = Elements::new(&mut col_ind, &mut values);
            parallel::for_each(rows.div_ceil(ROWS_PER_TASK), 1, |task| {
                let first = task * ROWS_PER_TASK;
                let lanes = ROWS_PER_TASK.min(rows - first);
                // SAFETY: tasks fill different rows, so different stored elements.
                unsafe { output.fill(&matrix, |lane| first + lane, lanes, first, width, pitch) };
            });
        }
        _ => {}
    }
    Ok(Ell {
        rows,
        cols: matrix.cols(),
        entries: matrix.nnz(),
        width,
        pitch,
        layout,
        row_lengths: matrix.lengths(),
        col_ind,
        values,
    })
}

/// Pitch and number of stored elements of a matrix whose longest row has `width` entries, if they
/// are within the budget.
pub(super) fn extent<T: Scalar>(
    rows: usize,
    width: usize,
    entries: usize,
    options: EllOptions,
    budget: &MemoryBudget,
) -> Result<(usize, usize), FormatError> {
    let EllOptions { layout, pitch_alignment } = options;
    check_nonzero("pitch alignment", "at least 1 element", pitch_alignment)?;
    let (run, runs) = match layout {
        Layout::RowMajor => (width, rows),
        Layout::ColumnMajor => (rows, width),
    };
    let pitch = (run as u128).div_ceil(pitch_alignment as u128) * pitch_alignment as u128;
    let elements = pitch * runs as u128;
    budget.check("ell", entries, elements, size_of::<u32>() + T::BYTES, rows * size_of::<u32>())?;
    // A pitch without runs is bounded by nothing: it may not fit a usize, and nobody uses it.
    Ok((usize::try_from(pitch).unwrap_or(run), elements as usize))
}

/// Gives every row two arrays of its own.
pub fn csr_to_unpadded_ell<T: Scalar>(matrix: CsrView<'_, T>) -> UnpaddedEll<T> {
    let rows = parallel::map(matrix.rows(), ROWS_PER_TASK, |row| {
        let (cols, values) = matrix.row(row);
        UnpaddedRow { col_ind: cols.into(), values: values.into() }
    });
    UnpaddedEll { cols: matrix.cols(), entries: matrix.nnz(), rows }
}
