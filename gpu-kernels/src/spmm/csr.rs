//! CSR access for the SpMM kernels whose lanes take columns of X: four entries at once, long rows
//! in chunks.

use super::columns::{Columns, Lane, multiply_add, zeros};
use super::strides::Strides;
use crate::device::{DevicePtr, DevicePtrMut, Number, Output};

/// Entries that are loaded at once.
pub(super) const QUAD: u32 = 4;

/// The matrix.
#[derive(Clone, Copy)]
pub(super) struct Csr<T> {
    pub(super) rows: u32,
    pub(super) entries: u32,
    pub(super) row_ptr: DevicePtr<u32>,
    pub(super) col_ind: DevicePtr<u32>,
    pub(super) values: DevicePtr<T>,
}

impl<T: Number> Csr<T> {
    /// Columns and values of the entries from `first` on, a multiple of 4 below the number of
    /// entries, across the ends of rows; column 0 and value 0 behind the last one.
    #[inline(always)]
    pub(super) fn quad(self, first: u32) -> ([u32; 4], [T; 4]) {
        if self.entries - first >= QUAD {
            let low = T::load_pair_with_line(self.values, u64::from(first));
            let high = T::load_pair_with_line(self.values, u64::from(first) + 2);
            (self.col_ind.load_vector_with_line::<4>(first), [low[0], low[1], high[0], high[1]])
        } else {
            let left = self.entries - first;
            let column = |u: usize| {
                if (u as u32) < left { self.col_ind.load(first + u as u32) } else { 0 }
            };
            let value = |u: usize| {
                if (u as u32) < left { self.values.load(first + u as u32) } else { T::ZERO }
            };
            (core::array::from_fn(column), core::array::from_fn(value))
        }
    }

    /// The sum over those of the entries `start` to `end` that lie in every `stride`-th quad from the `first`-th on,
    /// for the columns of a lane.
    #[inline(always)]
    pub(super) fn sum<const N: usize, const W: usize>(
        self,
        own: Lane<T, N, W>,
        (start, end): (u32, u32),
        first: u32,
        stride: u32,
    ) -> Columns<T, N> {
        let mut sum = zeros::<T, N>();
        let mut quad = (start & !(QUAD - 1)).saturating_add(QUAD * first);
        while quad < end {
            let (columns, values) = self.quad(quad);
            if quad >= start && end - quad >= QUAD {
                let rows_of_x: [Columns<T, N>; 4] = core::array::from_fn(|u| own.load(columns[u]));
                for u in 0..4 {
                    sum = multiply_add(values[u], rows_of_x[u], sum);
                }
            } else {
                // The neighbours' entries may meet what is not finite.
                let inside = |u: usize| quad + u as u32 >= start && (u as u32) < end - quad;
                let rows_of_x: [Columns<T, N>; 4] =
                    core::array::from_fn(
                        |u| {
                            if inside(u) { own.load(columns[u]) } else { zeros() }
                        },
                    );
                for u in 0..4 {
                    let value = if inside(u) { values[u] } else { T::ZERO };
                    sum = multiply_add(value, rows_of_x[u], sum);
                }
            }
            quad = quad.saturating_add(QUAD * stride);
        }
        sum
    }
}

/// Rows, and the chunks that long rows are split into. An item is a chunk or, after all chunks, a
/// row.
#[derive(Clone, Copy)]
pub(super) struct CutRows {
    pub(super) rows: u32,
    pub(super) row_ptr: DevicePtr<u32>,
    /// Rows with more entries are split into chunks.
    pub(super) split: u32,
    pub(super) chunks: u32,
    /// First entry and end of each chunk.
    pub(super) chunk_bounds: DevicePtr<[u32; 2]>,
}

impl CutRows {
    /// First entry of an item, their end, and whether it has a result.
    #[inline(always)]
    pub(super) fn bounds(self, item: u32) -> (u32, u32, bool) {
        let row = item.wrapping_sub(self.chunks);
        if item < self.chunks {
            let [start, end] = self.chunk_bounds.load(item);
            return (start, end, true);
        }
        if row >= self.rows {
            return (0, 0, false);
        }
        let (start, end) = (self.row_ptr.load(row), self.row_ptr.load(row + 1));
        let whole = end - start <= self.split;
        (start, if whole { end } else { start }, whole)
    }

    /// Where the result of an item goes: that of a chunk to its k sums, that of a row to Y.
    #[inline(always)]
    pub(super) fn target<T: Number>(
        self,
        item: u32,
        (partial, k): (DevicePtrMut<T>, u32),
        (y, y_strides): (Output<T>, Strides),
    ) -> Target<T> {
        if item < self.chunks {
            let strides = Strides { row: u64::from(k), column: 1 };
            Target { array: partial.into(), row: item, strides }
        } else {
            Target { array: y, row: item.wrapping_sub(self.chunks), strides: y_strides }
        }
    }
}

/// A row of a dense matrix.
#[derive(Clone, Copy)]
pub(super) struct Target<T> {
    pub(super) array: Output<T>,
    pub(super) row: u32,
    pub(super) strides: Strides,
}

impl<T: Number> Target<T> {
    /// Overwrites the element in `column`.
    #[inline(always)]
    pub(super) fn store(self, column: u32, value: T) {
        self.array.store(self.strides.index(self.row, column), value);
    }
}
