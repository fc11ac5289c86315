//! DIA SpMV: one value for each row on each diagonal and no column indices (format as in Bell and
//! Garland, SC'09, section 3.1; diagonal offsets in the kernel's arguments and several diagonals in
//! flight are our own).
//!
//! Value d of row r is at `pitch` d + r; its column is r + `distances[d]`. An element without an
//! entry has value 0 and, beyond either end of x, the column of the last one. If that makes a sum
//! that is not finite, the row is computed again from the elements that have an entry in CSR.

use crate::device::{DevicePtr, Output, Real, thread};
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

/// Values that single precision holds exactly.
#[derive(Clone, Copy)]
struct Single(DevicePtr<f32>);

impl<T: Real> DiagonalValues<T> for Single {
    #[inline(always)]
    fn load(self, present: bool, at: u32) -> T {
        T::widen(self.0.load_streaming_if(present, at, 0.0))
    }
}

/// The matrix but for the values of its diagonals.
#[derive(Clone, Copy)]
struct Matrix {
    rows: u32,
    cols: u32,
    diagonals: u32,
    pitch: u32,
    /// The distances once more: those among the arguments have no address.
    offsets: DevicePtr<u32>,
    row_ptr: DevicePtr<u32>,
    col_ind: DevicePtr<u32>,
}

impl Matrix {
    /// The sum of a row without the elements that have no entry; otherwise in the order of [`Sums`].
    #[inline(always)]
    fn sum_of_entries<T: Real, V: DiagonalValues<T>>(
        self,
        row: u32,
        values: V,
        x: DevicePtr<T>,
    ) -> T {
        let (mut next, end) = (self.row_ptr.load(row), self.row_ptr.load(row + 1));
        let (mut this, mut other) = (T::ZERO, T::ZERO);
        let mut diagonal = 0;
        while next < end && diagonal < self.diagonals {
            let column = self.col_ind.load(next);
            if column == row.wrapping_add(self.offsets.load(diagonal)) {
                let value = values.load(true, diagonal * self.pitch + row);
                this = value.mul_add(x.load(column), this);
                next += 1;
            }
            (this, other) = (other, this);
            diagonal += 1;
        }
        this + other
    }
}

/// What a thread has summed.
#[derive(Clone, Copy)]
struct Sums<T> {
    even: T,
    odd: T,
}

impl<T: Real> Sums<T> {
    /// Adds the `left` diagonals, or as many as N quads are, from `first` on.
    #[inline(always)]
    // Indices: arrays behind iterators would not become registers.
    #[allow(clippy::needless_range_loop)]
    fn add<V: DiagonalValues<T>, const N: usize>(
        &mut self,
        matrix: Matrix,
        (row, first, left): (u32, u32, u32),
        distances: [[u32; 4]; N],
        values: V,
        x: DevicePtr<T>,
    ) {
        let at = row + first * matrix.pitch;
        let last = matrix.cols - 1;
        let (mut loaded, mut gathered) = ([[T::ZERO; 4]; N], [[T::ZERO; 4]; N]);
        // Predicates, no branches: all loads come before the first use.
        for quad in 0..N {
            for j in 0..4 {
                let place = (4 * quad + j) as u32;
                let here = at.wrapping_add(place * matrix.pitch);
                loaded[quad][j] = values.load(left > place, here);
            }
        }
        for quad in 0..N {
            for j in 0..4 {
                let column = row.wrapping_add(distances[quad][j]).min(last);
                gathered[quad][j] = x.load_if(left > (4 * quad + j) as u32, column, T::ZERO);
            }
        }
        for quad in 0..N {
            for j in 0..2 {
                self.even = loaded[quad][2 * j].mul_add(gathered[quad][2 * j], self.even);
                self.odd = loaded[quad][2 * j + 1].mul_add(gathered[quad][2 * j + 1], self.odd);
            }
        }
    }
}

/// N quads of diagonals in flight; the same sums whatever N.
#[inline(always)]
fn product<T: Real, V: DiagonalValues<T>, const N: usize>(
    matrix: Matrix,
    distances: Distances,
    values: V,
    x: DevicePtr<T>,
    y: Output<T>,
) {
    let row = thread::index_1d();
    // Behind the last row the last one again: no branch between loads.
    let loaded = row.min(matrix.rows - 1);
    let mut sums = Sums { even: T::ZERO, odd: T::ZERO };
    // One after another, each with its number: only so the distances stay arguments.
    macro_rules! quads {
        ($($quad:literal)*) => {$(
            if $quad % N == 0 && 4 * $quad < matrix.diagonals {
                let place = (loaded, 4 * $quad, matrix.diagonals - 4 * $quad);
                let distances: [[u32; 4]; N] = core::array::from_fn(|i| distances.0[($quad + i) % 8]);
                sums.add(matrix, place, distances, values, x);
            }
        )*};
    }
    quads!(0 1 2 3 4 5 6 7);
    let mut sum = sums.even + sums.odd;
    if row >= matrix.rows {
        return;
    }
    if !sum.is_finite() {
        sum = matrix.sum_of_entries(row, values, x);
    }
    y.store(row, sum);
}

macro_rules! dia {
    ($stored:ident $stored_marker:ident $stored_quads:literal, $single:ident $single_marker:ident $single_quads:literal) => {
        kernel! {
            /// `dia-thread-per-row`, in one of its forms: a matrix of 1 to [`MOST_DIAGONALS`]
            /// diagonals with less than 2^32 places in all, and the pattern of the same one in CSR.
            /// `offsets` are the `distances`. Grid: at least one thread per row, one-dimensional.
            pub fn $stored<T: Real>(
                rows: u32,
                cols: u32,
                diagonals: u32,
                pitch: u32,
                distances: Distances,
                diagonal_values: DevicePtr<T>,
                offsets: DevicePtr<u32>,
                row_ptr: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                x: DevicePtr<T>,
                y: Output<T>,
            ) {
                let matrix = Matrix { rows, cols, diagonals, pitch, offsets, row_ptr, col_ind };
                product::<T, _, $stored_quads>(matrix, distances, diagonal_values, x, y);
            }
            as $stored_marker
        }

        kernel! {
            /// The same with values that single precision holds exactly; products and sums as there.
            pub fn $single<T: Real>(
                rows: u32,
                cols: u32,
                diagonals: u32,
                pitch: u32,
                distances: Distances,
                diagonal_values: DevicePtr<f32>,
                offsets: DevicePtr<u32>,
                row_ptr: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                x: DevicePtr<T>,
                y: Output<T>,
            ) {
                let matrix = Matrix { rows, cols, diagonals, pitch, offsets, row_ptr, col_ind };
                let values = Single(diagonal_values);
                product::<T, _, $single_quads>(matrix, distances, values, x, y);
            }
            as $single_marker
        }
    };
}

dia!(spmv_dia Dia 1, spmv_dia_single DiaSingle 1);
// As many as 64 registers hold.
dia!(spmv_dia_deep DiaDeep 3, spmv_dia_deep_single DiaDeepSingle 4);
