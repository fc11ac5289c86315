//! Borrowed dense matrices with a leading dimension.

use spm_formats::Layout;

use crate::Error;

/// Where the elements of a dense matrix are in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    rows: usize,
    cols: usize,
    layout: Layout,
    leading: usize,
}

impl Places {
    fn new(
        (rows, cols): (usize, usize),
        layout: Layout,
        leading: Option<usize>,
        elements: usize,
    ) -> Result<Self, Error> {
        let (lines, length) = match layout {
            Layout::RowMajor => (rows, cols),
            Layout::ColumnMajor => (cols, rows),
        };
        let found = leading.unwrap_or(length);
        if found < length {
            return Err(Error::Shape { what: "leading dimension", expected: length, found });
        }
        // Of a shape that overflows no slice has enough.
        let needed = match lines.checked_sub(1) {
            Some(before) => before.saturating_mul(found).saturating_add(length),
            None => 0,
        };
        if elements < needed || (leading.is_none() && elements > needed) {
            let what = "elements of a dense matrix";
            return Err(Error::Shape { what, expected: needed, found: elements });
        }
        Ok(Self { rows, cols, layout, leading: found })
    }

    /// Length of a row in row-major order, of a column in column-major order.
    fn length(&self) -> usize {
        match self.layout {
            Layout::RowMajor => self.cols,
            Layout::ColumnMajor => self.rows,
        }
    }

    /// Rows in row-major order, columns in column-major order.
    fn lines(&self) -> usize {
        match self.layout {
            Layout::RowMajor => self.rows,
            Layout::ColumnMajor => self.cols,
        }
    }

    fn index(&self, row: usize, col: usize) -> usize {
        match self.layout {
            Layout::RowMajor => row * self.leading + col,
            Layout::ColumnMajor => col * self.leading + row,
        }
    }

    /// Whether no elements are between the rows or columns.
    fn is_contiguous(&self) -> bool {
        self.leading == self.length() || self.lines() <= 1
    }
}

/// A borrowed dense matrix, row-major or column-major, with a leading dimension.
///
/// The leading dimension is the distance of the first elements of two consecutive rows (row-major)
/// or columns (column-major), in elements.
///
/// ```
/// use spm::{DenseRef, Layout};
///
/// // | 1 2 |
/// // | 3 4 |, with one element between the rows
/// let x = DenseRef::with_leading_dimension(&[1, 2, 0, 3, 4], (2, 2), Layout::RowMajor, 3)?;
/// assert_eq!(x.get(1, 0), Some(&3));
/// # Ok::<(), spm::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DenseRef<'a, T> {
    elements: &'a [T],
    places: Places,
}

/// As [`DenseRef`], with elements that can be overwritten.
#[derive(Debug, PartialEq)]
pub struct DenseMut<'a, T> {
    elements: &'a mut [T],
    places: Places,
}

macro_rules! dense {
    ($type:ident, $slice:ty) => {
        impl<'a, T> $type<'a, T> {
            /// A matrix of `shape` = (rows, columns) in a slice of exactly its elements.
            ///
            /// # Errors
            /// [`Error::Shape`] for a slice of another length.
            pub fn new(
                elements: $slice,
                shape: (usize, usize),
                layout: Layout,
            ) -> Result<Self, Error> {
                let places = Places::new(shape, layout, None, elements.len())?;
                Ok(Self { elements, places })
            }

            /// A matrix of `shape` = (rows, columns) with `leading` elements from one row to the
            /// next (row-major) or from one column to the next (column-major). The slice may be
            /// longer than the matrix needs.
            ///
            /// # Errors
            /// [`Error::Shape`] for a slice that is too short, and for a leading dimension that is
            /// less than a row or column.
            pub fn with_leading_dimension(
                elements: $slice,
                shape: (usize, usize),
                layout: Layout,
                leading: usize,
            ) -> Result<Self, Error> {
                let places = Places::new(shape, layout, Some(leading), elements.len())?;
                Ok(Self { elements, places })
            }

            /// Number of rows.
            pub fn rows(&self) -> usize {
                self.places.rows
            }

            /// Number of columns.
            pub fn cols(&self) -> usize {
                self.places.cols
            }

            /// Row-major or column-major.
            pub fn layout(&self) -> Layout {
                self.places.layout
            }

            /// Elements from one row to the next (row-major) or from one column to the next
            /// (column-major).
            pub fn leading_dimension(&self) -> usize {
                self.places.leading
            }

            /// The element at (`row`, `col`), if there is one.
            pub fn get(&self, row: usize, col: usize) -> Option<&T> {
                let inside = row < self.rows() && col < self.cols();
                inside.then(|| &self.elements[self.places.index(row, col)])
            }
        }
    };
}

dense!(DenseRef, &'a [T]);
dense!(DenseMut, &'a mut [T]);

impl<'a, T: Copy> DenseRef<'a, T> {
    /// All elements, those between the rows or columns included.
    pub(crate) fn elements(&self) -> &'a [T] {
        self.elements
    }

    /// The elements in `layout` without any between them: borrowed where they are so already,
    /// otherwise copied to `storage`.
    pub(crate) fn contiguous<'b>(&self, layout: Layout, storage: &'b mut Vec<T>) -> &'b [T]
    where
        'a: 'b,
    {
        let places = self.places;
        let total = places.rows * places.cols;
        // A single row or column is both row-major and column-major.
        let either = places.rows <= 1 || places.cols <= 1;
        if places.is_contiguous() && (layout == places.layout || either) {
            return &self.elements[..total];
        }
        storage.clear();
        storage.reserve_exact(total);
        if layout == places.layout {
            let lines = self.elements.chunks(places.leading).take(places.lines());
            lines.for_each(|line| storage.extend_from_slice(&line[..places.length()]));
        } else {
            let (lines, length) = (places.lines(), places.length());
            let line = |at: usize| (0..lines).map(move |i| self.elements[i * places.leading + at]);
            (0..length).for_each(|at| storage.extend(line(at)));
        }
        storage
    }
}

impl<T: Copy> DenseMut<'_, T> {
    /// All elements, those between the rows or columns included.
    pub(crate) fn elements(&mut self) -> &mut [T] {
        self.elements
    }

    /// The elements, if there are none between them.
    pub(crate) fn as_contiguous(&mut self) -> Option<&mut [T]> {
        let total = self.places.rows * self.places.cols;
        self.places.is_contiguous().then(|| &mut self.elements[..total])
    }

    /// Calls `update` with each element and the one of `from`, a contiguous matrix of the same
    /// shape and layout, at its place.
    pub(crate) fn update(&mut self, from: &[T], mut update: impl FnMut(&mut T, T)) {
        let (length, leading) = (self.places.length().max(1), self.places.leading.max(1));
        for (from, to) in from.chunks(length).zip(self.elements.chunks_mut(leading)) {
            to.iter_mut().zip(from).for_each(|(to, &from)| update(to, from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColumnMajor];

    #[test]
    fn elements_are_where_the_layout_says() {
        let elements: Vec<usize> = (0..20).collect();
        for layout in LAYOUTS {
            let x = DenseRef::with_leading_dimension(&elements, (3, 2), layout, 5).unwrap();
            for to in LAYOUTS {
                let mut storage = Vec::new();
                let copied = x.contiguous(to, &mut storage);
                assert_eq!(copied.len(), 6);
                for row in 0..3 {
                    for col in 0..2 {
                        let expected = match layout {
                            Layout::RowMajor => row * 5 + col,
                            Layout::ColumnMajor => col * 5 + row,
                        };
                        assert_eq!(x.get(row, col), Some(&expected));
                        let at = match to {
                            Layout::RowMajor => row * 2 + col,
                            Layout::ColumnMajor => col * 3 + row,
                        };
                        assert_eq!(copied[at], expected);
                    }
                }
            }
            assert_eq!((x.get(3, 0), x.get(0, 2)), (None, None));
        }
    }

    #[test]
    fn an_update_leaves_what_is_between_the_lines() {
        for layout in LAYOUTS {
            let mut elements = [1; 11];
            let shape = if layout == Layout::RowMajor { (3, 2) } else { (2, 3) };
            let mut y = DenseMut::with_leading_dimension(&mut elements, shape, layout, 4).unwrap();
            assert!(y.as_contiguous().is_none());
            y.update(&[2, 3, 4, 5, 6, 7], |to, from| *to += from);
            assert_eq!(elements, [3, 4, 1, 1, 5, 6, 1, 1, 7, 8, 1]);
        }
    }

    #[test]
    fn wrong_sizes_are_errors() {
        let size = |shape, leading, elements: usize| {
            let elements = vec![0; elements];
            let layout = Layout::RowMajor;
            let made = match leading {
                Some(leading) => {
                    DenseRef::with_leading_dimension(&elements, shape, layout, leading)
                }
                None => DenseRef::new(&elements, shape, layout),
            };
            made.map(|x| x.leading_dimension()).map_err(|error| error.to_string())
        };
        assert_eq!(size((2, 3), None, 6), Ok(3));
        assert_eq!(size((2, 3), Some(4), 7), Ok(4));
        assert_eq!(size((0, 3), Some(4), 0), Ok(4));
        let wrong = "elements of a dense matrix: expected 6, found 7";
        assert_eq!(size((2, 3), None, 7), Err(wrong.to_owned()));
        let wrong = "elements of a dense matrix: expected 7, found 6";
        assert_eq!(size((2, 3), Some(4), 6), Err(wrong.to_owned()));
        let wrong = "leading dimension: expected 3, found 2";
        assert_eq!(size((2, 3), Some(2), 9), Err(wrong.to_owned()));
        assert!(size((usize::MAX, 3), None, 9).is_err());
        assert!(size((usize::MAX, usize::MAX), Some(usize::MAX), 9).is_err());
    }
}
