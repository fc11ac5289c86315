//! Checks that the constructors of several formats share.

use std::ops::Range;

use crate::{FormatError, parallel};

/// Checks rows, columns and entries against the 32-bit limits shared by all formats.
///
/// # Errors
/// [`FormatError::TooLarge`] names the first size that does not fit.
pub fn check_limits(rows: u64, cols: u64, entries: u64) -> Result<(), FormatError> {
    // rows + 1 pointers must be countable in the pointers' own type, for CSC too.
    let (limit, index_limit) = (u64::from(u32::MAX), u64::from(u32::MAX) - 1);
    for (what, size, limit) in [
        ("number of rows", rows, index_limit),
        ("number of columns", cols, index_limit),
        ("number of entries", entries, limit),
    ] {
        if size > limit {
            return Err(FormatError::TooLarge { what, size, limit });
        }
    }
    Ok(())
}

/// What errors call the two dimensions of a compressed matrix and its arrays.
#[derive(Debug)]
pub(crate) struct Axes {
    /// The dimension whose lines the pointers bound.
    pub(crate) outer: &'static str,
    /// The dimension that the indices number.
    pub(crate) inner: &'static str,
    pub(crate) pointers: &'static str,
    pub(crate) indices: &'static str,
}

/// Those of CSR.
pub(crate) const ROWS: Axes =
    Axes { outer: "row", inner: "column", pointers: "row pointers", indices: "column indices" };

/// Those of CSC.
pub(crate) const COLUMNS: Axes =
    Axes { outer: "column", inner: "row", pointers: "column pointers", indices: "row indices" };

impl Axes {
    /// [`check_limits`] of a matrix of `shape` = (outer, inner).
    pub(crate) fn check_limits(
        &self,
        (outer, inner): (usize, usize),
        entries: usize,
    ) -> Result<(), FormatError> {
        let (rows, cols) = if self.outer == "column" { (inner, outer) } else { (outer, inner) };
        check_limits(rows as u64, cols as u64, entries as u64)
    }
}

/// Checks the arrays of a compressed matrix of `shape` = (outer, inner), the order of the indices
/// inside a line apart.
pub(crate) fn check_unsorted(
    axes: &Axes,
    shape: (usize, usize),
    (pointers, indices): (&[u32], &[u32]),
    values: usize,
) -> Result<(), FormatError> {
    axes.check_limits(shape, values)?;
    let (outer, inner) = shape;
    check_length(axes.pointers, outer + 1, pointers.len())?;
    check_length(axes.indices, values, indices.len())?;
    let wrong = |position, expected| {
        Err(FormatError::InvalidStructure { what: axes.pointers, position, expected })
    };
    if pointers[0] != 0 {
        return wrong(0, "0");
    }
    if !pointers.is_sorted() {
        let position = pointers.windows(2).position(|pair| pair[0] > pair[1]).unwrap_or_default();
        return wrong(position + 1, "at least the one before it");
    }
    if pointers[outer] as usize != values {
        return wrong(outer, "the number of entries");
    }
    check_indices(axes.inner, indices, inner)
}

/// Checks the arrays of a compressed matrix of `shape` = (outer, inner).
pub(crate) fn check_compressed(
    axes: &Axes,
    shape: (usize, usize),
    (pointers, indices): (&[u32], &[u32]),
    values: usize,
) -> Result<(), FormatError> {
    check_unsorted(axes, shape, (pointers, indices), values)?;
    // Indices may descend from one line to the next only. Counting takes whole vectors at a time,
    // a search line by line does not.
    let descents = |range: Range<usize>| {
        let pairs = indices[range.start..indices.len().min(range.end + 1)].windows(2);
        pairs.map(|pair| u64::from(pair[0] >= pair[1])).sum()
    };
    let allowed = |pair: &[u32]| {
        let start = pair[1] as usize;
        let between = pair[0] < pair[1] && start < indices.len();
        u64::from(between && indices[start - 1] >= indices[start])
    };
    let allowed =
        |lines: Range<usize>| pointers[lines.start..=lines.end].windows(2).map(allowed).sum();
    let sum = |count, of: &(dyn Fn(Range<usize>) -> u64 + Sync)| {
        parallel::reduce(count, CHUNK, 0, of, |a, b| a + b)
    };
    if sum(indices.len(), &descents) == sum(pointers.len() - 1, &allowed) {
        return Ok(());
    }
    for (line, ends) in pointers.windows(2).enumerate() {
        let start = ends[0] as usize;
        let line_indices = &indices[start..ends[1] as usize];
        if let Some(at) = line_indices.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(FormatError::Unsorted {
                axis: axes.outer,
                line,
                entry: start + at + 1,
                previous: line_indices[at],
                index: line_indices[at + 1],
            });
        }
    }
    Ok(())
}

/// Elements below which a loop is not split between threads.
const CHUNK: usize = 1 << 16;

/// Checks the length of one of several arrays that belong together.
pub(crate) fn check_length(
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), FormatError> {
    if expected == found {
        Ok(())
    } else {
        Err(FormatError::LengthMismatch { what, expected, found })
    }
}

/// Checks that all `indices` along `axis` (`"row"` or `"column"`) are below `bound`.
pub(crate) fn check_indices(
    axis: &'static str,
    indices: &[u32],
    bound: usize,
) -> Result<(), FormatError> {
    // A maximum takes whole vectors at a time, a search for the first offender does not.
    let largest = |range: Range<usize>| {
        u64::from(indices[range].iter().fold(0, |largest, &index| largest.max(index)))
    };
    let largest = parallel::reduce(indices.len(), CHUNK, 0, &largest, u64::max);
    if indices.is_empty() || (largest as usize) < bound {
        return Ok(());
    }
    let entry = indices.iter().position(|&index| index as usize >= bound).unwrap_or_default();
    Err(FormatError::IndexOutOfBounds { entry, axis, index: indices[entry], bound })
}

/// Refuses 0 for a parameter that must be `expected`: `"at least 1 row"`.
pub(crate) fn check_nonzero(
    what: &'static str,
    expected: &'static str,
    found: usize,
) -> Result<(), FormatError> {
    if found > 0 { Ok(()) } else { Err(FormatError::InvalidParameter { what, expected, found }) }
}
