//! What the constructors of several formats check.

use rayon::prelude::*;

use crate::FormatError;

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
    let largest = |chunk: &[u32]| chunk.iter().fold(0, |largest, &index| largest.max(index));
    let largest = indices.par_chunks(1 << 16).map(largest).reduce(|| 0, u32::max);
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
