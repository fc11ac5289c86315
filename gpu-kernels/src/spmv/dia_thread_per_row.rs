//! DIA: one value for each row on each diagonal, no columns (the format as in Bell and Garland, SC'09,
//! section 3.1; distances in the kernel's arguments and four diagonals in flight own).
//!
//! Value d of row r lies at `pitch` d + r; its column is r + `distances[d]`. A place without an entry
//! has value 0 and, beyond either end of x, the column of the last one: where that makes a sum that
//! is not finite, the row is summed again, from CSR.

use super::csr_subwarp_per_row::strided_sum;
use super::entries::Stored;
use crate::device::{DevicePtr, DevicePtrMut, Real, thread};
use crate::kernel::kernel;

/// Diagonals, at most: their distances are arguments of the kernel.
pub const MOST_DIAGONALS: u32 = 32;

/// The distance, column - row, of each diagonal in its place, four diagonals together.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Distances(pub [[u32; 4]; MOST_DIAGONALS as usize / 4]);

/// Where the values of the diagonals come from.
trait DiagonalValues<T: Real>: Copy {
    /// 0 where it is not present.
    fn load(self, present: bool, at: u32) -> T;
}

impl<T: Real> DiagonalValues<T> for DevicePtr<T> {
    #[inline(always)]
    fn load(self, present: bool, at: u32) -> T {
        self.load_streaming_if(present, at, T::ZERO)
    }
}

#[derive(Clone, Copy)]
struct Narrow(DevicePtr<f32>);

impl<T: Real> DiagonalValues<T> for Narrow {
    #[inline(always)]
    fn load(self, present: bool, at: u32) -> T {
        T::widen(self.0.load_streaming_if(present, at, 0.0))
    }
}

/// The matrix but for the values of its diagonals.
#[derive(Clone, Copy)]
struct Matrix<T> {
    rows: u32,
    cols: u32,
    diagonals: u32,
    pitch: u32,
    pointers: DevicePtr<u32>,
    csr: Stored<T>,
}

/// What a thread has summed.
#[derive(Clone, Copy)]
struct Sums<T> {
    even: T,
    odd: T,
}

impl<T: Real> Sums<T> {
    /// Adds the `left` diagonals (four, or fewer at the end) from `first` on.
    #[inline(always)]
    fn add_quad<V: DiagonalValues<T>>(
        &mut self,
        matrix: Matrix<T>,
        (row, first, left): (u32, u32, u32),
        distances: [u32; 4],
        values: V,
        x: DevicePtr<T>,
    ) {
        // Predicates, no branches: all loads come before the first use.
        let present = [true, left > 1, left > 2, left > 3];
        let at = row + first * matrix.pitch;
        let value = |j: u32| values.load(present[j as usize], at.wrapping_add(j * matrix.pitch));
        let values = [value(0), value(1), value(2), value(3)];
        let last = matrix.cols - 1;
        let gather = |present: bool, distance: u32| {
            x.load_if(present, row.wrapping_add(distance).min(last), T::ZERO)
        };
        let [a, b, c, d] = distances;
        let [p, q, r, s] = present;
        let x = [gather(p, a), gather(q, b), gather(r, c), gather(s, d)];
        self.even = values[0].mul_add(x[0], self.even);
        self.odd = values[1].mul_add(x[1], self.odd);
        self.even = values[2].mul_add(x[2], self.even);
        self.odd = values[3].mul_add(x[3], self.odd);
    }
}

#[inline(always)]
fn product<T: Real, V: DiagonalValues<T>>(
    matrix: Matrix<T>,
    distances: Distances,
    values: V,
    x: DevicePtr<T>,
    y: DevicePtrMut<T>,
) {
    let row = thread::index_1d();
    // Behind the last row the last one again: no branch between loads.
    let loaded = row.min(matrix.rows - 1);
    let mut sums = Sums { even: T::ZERO, odd: T::ZERO };
    // One after another, each with its number: only so the distances stay arguments.
    macro_rules! quads {
        ($($quad:literal)*) => {$(
            if 4 * $quad < matrix.diagonals {
                let place = (loaded, 4 * $quad, matrix.diagonals - 4 * $quad);
                sums.add_quad(matrix, place, distances.0[$quad], values, x);
            }
        )*};
    }
    quads!(0 1 2 3 4 5 6 7);
    let mut sum = sums.even + sums.odd;
    if row >= matrix.rows {
        return;
    }
    if !sum.is_finite() {
        let (start, end) = (matrix.pointers.load(row), matrix.pointers.load(row + 1));
        sum = strided_sum(matrix.csr, x, start, end, 1);
    }
    y.store(row, sum);
}

kernel! {
    /// `dia-thread-per-row`: a matrix of 1 to [`MOST_DIAGONALS`] diagonals with less than 2^32 places
    /// in all, and the same one in CSR. Grid: at least one thread per row, one-dimensional.
    pub fn spmv_dia_thread_per_row<T: Real>(
        rows: u32,
        cols: u32,
        diagonals: u32,
        pitch: u32,
        distances: Distances,
        diagonal_values: DevicePtr<T>,
        pointers: DevicePtr<u32>,
        col_indices: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: DevicePtrMut<T>,
    ) {
        let csr = Stored { col_indices, values };
        let matrix = Matrix { rows, cols, diagonals, pitch, pointers, csr };
        product(matrix, distances, diagonal_values, x, y);
    }
    as DiaThreadPerRow
}

kernel! {
    /// [`DiaThreadPerRow`] with values that single precision holds exactly; products and sums as
    /// there.
    pub fn spmv_dia_thread_per_row_narrow<T: Real>(
        rows: u32,
        cols: u32,
        diagonals: u32,
        pitch: u32,
        distances: Distances,
        diagonal_values: DevicePtr<f32>,
        pointers: DevicePtr<u32>,
        col_indices: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: DevicePtrMut<T>,
    ) {
        let csr = Stored { col_indices, values };
        let matrix = Matrix { rows, cols, diagonals, pitch, pointers, csr };
        product(matrix, distances, Narrow(diagonal_values), x, y);
    }
    as DiaThreadPerRowNarrow
}
