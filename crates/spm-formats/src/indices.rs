//! Conversion of indices of other types to `u32`; `u32` indices are moved.

use std::any::Any;

use sprs::SpIndex;

use crate::FormatError;
use crate::check::{Axes, check_length};

/// One index, or an error that names its array.
fn to_u32<I: SpIndex>(what: &'static str, position: usize, index: I) -> Result<u32, FormatError> {
    index.try_index().and_then(|index| u32::try_from(index).ok()).ok_or_else(|| {
        let found = format!("{index:?}");
        FormatError::NotU32 { what, position, found }
    })
}

/// Inner indices.
pub(crate) fn indices_to_u32<I: SpIndex + 'static>(
    axes: &Axes,
    mut indices: Vec<I>,
) -> Result<Vec<u32>, FormatError> {
    if let Some(same) = (&mut indices as &mut dyn Any).downcast_mut() {
        return Ok(std::mem::take(same));
    }
    let convert = |(position, index)| to_u32(axes.indices, position, index);
    indices.into_iter().enumerate().map(convert).collect()
}

/// Outer pointers of a matrix of `shape` = (outer, inner) and this many entries, relative to the
/// first pointer, which is not 0 in a slice of a larger matrix.
pub(crate) fn pointers_to_u32<P: SpIndex + 'static>(
    axes: &Axes,
    shape: (usize, usize),
    mut pointers: Vec<P>,
    entries: usize,
) -> Result<Vec<u32>, FormatError> {
    axes.check_limits(shape, entries)?;
    check_length(axes.pointers, shape.0 + 1, pointers.len())?;
    let first = pointers[0];
    if first == P::zero()
        && let Some(same) = (&mut pointers as &mut dyn Any).downcast_mut()
    {
        return Ok(std::mem::take(same));
    }
    let what = axes.pointers;
    if first < P::zero() {
        to_u32(what, 0, first)?;
    }
    let convert = |(position, pointer)| {
        if pointer < first {
            let expected = "at least the first one";
            return Err(FormatError::InvalidStructure { what, position, expected });
        }
        to_u32(what, position, pointer - first)
    };
    pointers.into_iter().enumerate().map(convert).collect()
}

/// Row and column indices and values, side by side.
type Triplets<T> = (Vec<u32>, Vec<u32>, Vec<T>);

/// Rows, columns and values of triplets.
pub(crate) fn triplets_to_u32<I: SpIndex, T>(
    triplets: impl IntoIterator<Item = (I, I, T)>,
) -> Result<Triplets<T>, FormatError> {
    let (mut rows, mut cols, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (position, (row, col, value)) in triplets.into_iter().enumerate() {
        rows.push(to_u32("row indices", position, row)?);
        cols.push(to_u32("column indices", position, col)?);
        values.push(value);
    }
    Ok((rows, cols, values))
}
