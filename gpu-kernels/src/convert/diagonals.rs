//! Conversion of CSR to DIA for `dia-thread-per-row` ([`crate::spmv`]), one thread per row.

use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

/// Size of the hash table of diagonals, twice the maximum number of diagonals, so that searches are
/// short.
pub const DIAGONAL_TABLE: u32 = 64;
/// A free element of the table. No diagonal of a matrix with less than 2^32 rows and columns
/// together has this offset.
pub const NO_DIAGONAL: u32 = 1 << 31;

kernel! {
    /// Which diagonals have entries: their distances, column - row, in any place of `table`, which
    /// has [`DIAGONAL_TABLE`] of them, all [`NO_DIAGONAL`] before. The word behind the table becomes
    /// 1 where that is too few, or the columns of a row do not ascend. Rows and columns are
    /// less than 2^31. Grid: at least one thread per row.
    pub fn convert_find_diagonals(
        rows: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        table: DevicePtrMut<u32>,
    ) {
        let row = thread::index_1d();
        if row >= rows || table.load(DIAGONAL_TABLE) != 0 {
            return;
        }
        let end = row_ptr.load(row + 1);
        let mut before = None;
        for entry in row_ptr.load(row)..end {
            let column = col_ind.load(entry);
            let ascends = before.is_none_or(|before| before < column);
            before = Some(column);
            let distance = column.wrapping_sub(row);
            // Fibonacci hashing: places far apart for neighbours.
            let mut place = distance.wrapping_mul(0x9e37_79b9) >> 26;
            let mut tried = 0;
            let mut found = false;
            while !found && tried < DIAGONAL_TABLE {
                let mut seen = table.load(place);
                if seen == NO_DIAGONAL {
                    seen = table.atomic_compare_exchange(place, NO_DIAGONAL, distance);
                }
                found = seen == distance || seen == NO_DIAGONAL;
                place = (place + 1) % DIAGONAL_TABLE;
                tried += 1;
            }
            if !(ascends && found) {
                table.store(DIAGONAL_TABLE, 1);
                return;
            }
        }
    }
    as FindDiagonals
}

/// The values of all diagonals, whose distances ascend as signed numbers; 0 where there is no entry.
#[inline(always)]
fn write(
    (rows, diagonals, pitch): (u32, u32, u32),
    distances: DevicePtr<u32>,
    (row_ptr, col_ind): (DevicePtr<u32>, DevicePtr<u32>),
    store: impl Fn(u32, Option<u32>),
) {
    let row = thread::index_1d();
    if row >= rows {
        return;
    }
    let (mut next, end) = (row_ptr.load(row), row_ptr.load(row + 1));
    for diagonal in 0..diagonals {
        let column = row.wrapping_add(distances.load(diagonal));
        let here = next < end && col_ind.load(next) == column;
        store(diagonal * pitch + row, here.then_some(next));
        next += u32::from(here);
    }
}

kernel! {
    /// The matrix in DIA; `distances` are those that [`FindDiagonals`] found, as ascending signed
    /// numbers. Grid: at least one thread per row.
    pub fn convert_diagonal_values<T: Real>(
        rows: u32,
        diagonals: u32,
        pitch: u32,
        distances: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        places: DevicePtrMut<T>,
    ) {
        write((rows, diagonals, pitch), distances, (row_ptr, col_ind), |at, entry| {
            places.store(at, entry.map_or(T::ZERO, |k| values.load(k)));
        });
    }
    as DiagonalPlaces
}

kernel! {
    /// [`DiagonalPlaces`] in single precision, which is to hold each value exactly.
    pub fn convert_diagonal_values_single<T: Real>(
        rows: u32,
        diagonals: u32,
        pitch: u32,
        distances: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        places: DevicePtrMut<f32>,
    ) {
        write((rows, diagonals, pitch), distances, (row_ptr, col_ind), |at, entry| {
            places.store(at, entry.map_or(0.0, |k| values.load(k).single()));
        });
    }
    as DiagonalPlacesSingle
}
