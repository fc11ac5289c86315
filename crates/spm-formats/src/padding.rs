//! Checks that the constructors of all padded formats share.

use crate::check::{check_indices, check_length, check_limits};
use crate::{FormatError, Scalar};

/// The accessors that all padded formats have; `$array` are arrays that a format has besides.
macro_rules! padded_accessors {
    ($format:ident $(, $array:ident)*) => {
        impl<T: Scalar> $format<T> {
            /// Number of rows.
            pub fn rows(&self) -> usize {
                self.rows
            }

            /// Number of columns.
            pub fn cols(&self) -> usize {
                self.cols
            }

            /// Number of stored entries, padding not counted.
            pub fn entries(&self) -> usize {
                self.entries
            }

            /// Entries of each row, in the order of the format.
            pub fn row_lengths(&self) -> &[u32] {
                &self.row_lengths
            }

            /// Column of every stored element, padding included.
            pub fn col_ind(&self) -> &[u32] {
                &self.col_ind
            }

            /// Value of every stored element, padding included.
            pub fn values(&self) -> &[T] {
                &self.values
            }

            /// Number of stored elements, padding included.
            pub fn stored_elements(&self) -> usize {
                self.values.len()
            }

            /// Stored elements per entry: 1 without padding, and 1 for a matrix without stored
            /// elements.
            pub fn padding_ratio(&self) -> f64 {
                $crate::padding::padding_ratio(self.stored_elements(), self.entries)
            }

            /// Bytes of all arrays.
            pub fn memory_bytes(&self) -> u64 {
                let bytes = size_of_val(&*self.col_ind)
                    + size_of_val(&*self.values)
                    + size_of_val(&*self.row_lengths)
                    $(+ size_of_val(&*self.$array))*;
                bytes as u64
            }
        }
    };
}
pub(crate) use padded_accessors;

/// The arrays of a padded format to be checked.
pub(crate) struct Padded<'a, T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_lengths: &'a [u32],
    pub(crate) col_ind: &'a [u32],
    pub(crate) values: &'a [T],
}

impl<T: Scalar> Padded<'_, T> {
    /// Checks sizes and column bounds; returns the number of entries.
    pub(crate) fn check_sizes(&self) -> Result<usize, FormatError> {
        let entries: u64 = self.row_lengths.iter().map(|&length| u64::from(length)).sum();
        check_limits(self.rows as u64, self.cols as u64, entries)?;
        check_length("row lengths", self.rows, self.row_lengths.len())?;
        check_length("column indices", self.values.len(), self.col_ind.len())?;
        check_indices("column", self.col_ind, self.cols)?;
        Ok(entries as usize)
    }

    /// Checks that the arrays have `elements` elements each.
    pub(crate) fn check_stored_elements(&self, elements: u128) -> Result<(), FormatError> {
        if self.values.len() as u128 == elements {
            return Ok(());
        }
        let expected = usize::try_from(elements).unwrap_or(usize::MAX);
        Err(FormatError::LengthMismatch { what: "slots", expected, found: self.values.len() })
    }

    /// Checks one lane, stored element `s` of which is at `start + s * stride`: `length` ascending
    /// columns, then zeros up to `width`.
    pub(crate) fn check_lane(
        &self,
        length: usize,
        width: usize,
        start: usize,
        stride: usize,
    ) -> Result<(), FormatError> {
        for element in 0..width {
            let position = start + element * stride;
            if element >= length && self.values[position] != T::ZERO {
                let (what, expected) = ("value", "0 in padding");
                return Err(FormatError::InvalidStructure { what, position, expected });
            }
            if (1..length).contains(&element)
                && self.col_ind[position - stride] >= self.col_ind[position]
            {
                let (what, expected) = ("column index", "above the one before it in the row");
                return Err(FormatError::InvalidStructure { what, position, expected });
            }
        }
        Ok(())
    }
}

/// Where blocks of `height` rows start when each is as wide as its longest row and a block of `r`
/// rows has `lanes(r)` lanes, and the total last. The total may exceed what memory holds.
pub(crate) fn offsets(
    row_lengths: &[u32],
    height: usize,
    lanes: impl Fn(usize) -> usize,
) -> Vec<u128> {
    let mut end = 0;
    let blocks = row_lengths.chunks(height).map(|lengths| {
        let width = lengths.iter().copied().max().unwrap_or(0);
        end += u128::from(width) * lanes(lengths.len()) as u128;
        end
    });
    std::iter::once(0).chain(blocks).collect()
}

/// Stored elements per entry; 1 if there are none.
pub(crate) fn padding_ratio(elements: usize, entries: usize) -> f64 {
    if elements == 0 { 1.0 } else { elements as f64 / entries as f64 }
}
