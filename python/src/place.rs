//! Where the elements of an operand in device memory are: shapes, strides, and copies without gaps.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use spm::Layout;
use spm::spm_gpu::Lines;

/// Sizes or strides of up to two dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    dimensions: usize,
    pub(crate) sizes: [i64; 2],
}

impl Shape {
    /// The second size of one dimension is 1.
    pub(crate) fn new(dimensions: usize, sizes: [i64; 2]) -> Self {
        Self { dimensions, sizes }
    }

    pub(crate) fn of(tuple: &Bound<'_, PyAny>) -> PyResult<Self> {
        let tuple = tuple.cast::<PyTuple>()?;
        let dimensions = tuple.len();
        let mut sizes = [1; 2];
        for (i, size) in sizes.iter_mut().enumerate().take(dimensions) {
            *size = tuple.get_item(i)?.extract()?;
        }
        Ok(Self { dimensions, sizes })
    }

    pub(crate) fn is_vector(self) -> bool {
        self.dimensions == 1
    }

    /// Rows and columns; a vector is one column. Nothing for other numbers of dimensions.
    pub(crate) fn rows_and_columns(self) -> Option<(usize, usize)> {
        let [rows, cols] = self.sizes.map(|size| usize::try_from(size).ok());
        matches!(self.dimensions, 1 | 2).then_some((rows?, cols?))
    }

    /// The same with another number of rows.
    pub(crate) fn with_rows(self, rows: usize) -> Self {
        Self { sizes: [rows as i64, self.sizes[1]], ..self }
    }

    /// As Python writes it.
    pub(crate) fn text(self) -> String {
        let [rows, cols] = self.sizes;
        match self.dimensions {
            0 => "()".to_owned(),
            1 => format!("({rows},)"),
            2 => format!("({rows}, {cols})"),
            more => format!("({rows}, {cols}, ...) of {more} dimensions"),
        }
    }

    fn is_empty(self) -> bool {
        self.sizes.contains(&0)
    }
}

/// A shape, and where its elements are from the first one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) shape: Shape,
    /// From a row to the next, and from a column to the next, in elements; 1 where there is no next one.
    /// Nothing if it is no whole number of elements.
    steps: Option<[i64; 2]>,
}

/// A copy of some elements: where they are, and where they go.
pub(crate) struct Copied {
    pub(crate) with_gaps: Lines,
    pub(crate) without: Lines,
}

impl Place {
    /// With strides of `unit` each, or else by rows without gaps.
    pub(crate) fn new(shape: Shape, strides: Option<Shape>, unit: i64) -> Self {
        let Some(strides) = strides else { return Self::without_gaps(shape, false) };
        let step = |i: usize| {
            let stride = strides.sizes[i];
            let is_used = i < shape.dimensions && shape.sizes[i] > 1;
            if is_used { (stride % unit == 0).then_some(stride / unit) } else { Some(1) }
        };
        let steps = step(0).zip(step(1)).map(|(down, right)| [down, right]);
        Self { shape, steps }
    }

    pub(crate) fn without_gaps(shape: Shape, by_columns: bool) -> Self {
        let [rows, cols] = shape.sizes;
        let step = |size: i64, step: i64| if size > 1 { step } else { 1 };
        let steps = if by_columns { [1, step(cols, rows)] } else { [step(rows, cols), 1] };
        Self { shape, steps: Some(steps) }
    }

    /// Whether it has this layout, without gaps.
    pub(crate) fn has(self, layout: Layout) -> bool {
        let by_columns = layout == Layout::ColumnMajor;
        self.shape.is_empty() || self == Self::without_gaps(self.shape, by_columns)
    }

    /// Whether rows are nearer to each other than columns.
    pub(crate) fn is_by_columns(self) -> bool {
        let [rows, cols] = self.shape.sizes;
        let [down, right] = self.steps.unwrap_or_default();
        !self.has(Layout::RowMajor) && rows > 1 && cols > 1 && down < right
    }

    /// Elements from the first one to the last one, both included. Nothing if some are before the first
    /// one, or not a whole number of elements behind it, or too far.
    pub(crate) fn extent(self) -> Option<usize> {
        if self.shape.is_empty() {
            return Some(0);
        }
        let mut last = 0_i64;
        for (size, step) in self.shape.sizes.into_iter().zip(self.steps?) {
            last = last.checked_add((size - 1).checked_mul(step.max(0))?)?;
            if step < 0 {
                return None;
            }
        }
        // So that addresses do not overflow.
        usize::try_from(last).ok().filter(|&last| last < 1 << 48).map(|last| last + 1)
    }

    /// Whether no two elements are at one place.
    pub(crate) fn is_injective(self) -> bool {
        let Some(steps) = self.steps else { return false };
        let mut lines: Vec<_> =
            self.shape.sizes.into_iter().zip(steps).filter(|&(size, _)| size > 1).collect();
        lines.sort_by_key(|&(_, step)| step);
        let mut last = 0_i64;
        lines.into_iter().all(|(size, step)| {
            let is_behind = step > last;
            last = last.saturating_add((size - 1).saturating_mul(step));
            is_behind
        })
    }

    /// The copies from it to an array of `layout` without gaps, as few as there can be. Nothing without an
    /// [extent](Self::extent), or for steps of 0.
    pub(crate) fn copies(self, layout: Layout) -> Option<Vec<Copied>> {
        self.extent()?;
        let (rows, cols) = self.shape.rows_and_columns()?;
        let [down, right] = self.steps?.map(|step| usize::try_from(step).unwrap_or(0));
        if self.shape.is_empty() {
            return Some(Vec::new());
        }
        if down == 0 || right == 0 {
            return None;
        }
        // Of each line: elements, the step between them, and that to the next line.
        let (count, length, inner, outer) = match layout {
            Layout::RowMajor => (rows, cols, right, down),
            Layout::ColumnMajor => (cols, rows, down, right),
        };
        if (length == 1 || inner == 1) && (count == 1 || outer >= length) {
            let with_gaps = Lines { first: 0, count, length, pitch: outer };
            return Some(vec![Copied { with_gaps, without: Lines::without_gaps(count, length) }]);
        }
        // There are fewer columns than rows.
        let column = |j: usize| {
            let (first, pitch) = match layout {
                Layout::RowMajor => (j, cols),
                Layout::ColumnMajor => (j * rows, 1),
            };
            let lines = |first, pitch| Lines { first, count: rows, length: 1, pitch };
            Copied { with_gaps: lines(j * right, down), without: lines(first, pitch) }
        };
        Some((0..cols).map(column).collect())
    }
}
