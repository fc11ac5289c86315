//! Conversion of CSR to DIA for `dia-thread-per-row` ([`crate::spmv`]): one thread per row, behind the entries of
//! a block of rows in shared memory.

use crate::device::shared::{Pool, SharedArray};
use crate::device::{DevicePtr, DevicePtrMut, Real, thread};
use crate::kernel::kernel;

/// Size of the hash table of diagonals, twice the maximum number of diagonals, so that searches are
/// short.
pub const DIAGONAL_TABLE: u32 = 64;
/// A free element of the table. No diagonal of a matrix with less than 2^32 rows and columns
/// together has this offset.
pub const NO_DIAGONAL: u32 = 1 << 31;

/// Whether the columns of a row ascend and its diagonals fit into a table of [`DIAGONAL_TABLE`] places. `claim` gives
/// a distance a place where that is free, and returns what was there.
#[inline(always)]
pub(super) fn fit(
    row: u32,
    row_ptr: DevicePtr<u32>,
    col_ind: DevicePtr<u32>,
    claim: impl Fn(u32, u32) -> u32,
) -> bool {
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
            let seen = claim(place, distance);
            found = seen == distance || seen == NO_DIAGONAL;
            place = (place + 1) % DIAGONAL_TABLE;
            tried += 1;
        }
        if !(ascends && found) {
            return false;
        }
    }
    true
}

kernel! {
    /// Which diagonals have entries: their distances, column - row, in any place of `table`, which
    /// has [`DIAGONAL_TABLE`] of them, before [`NO_DIAGONAL`] or those of some rows: all threads at once would wait for
    /// each other at free places. The word behind the table becomes
    /// 1 where that is too few, or the columns of a row do not ascend; then nothing is looked at any more. Rows and
    /// columns are less than 2^31. Grid: at least one thread for each row.
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
        let claim = |place, distance| match table.load(place) {
            NO_DIAGONAL => table.atomic_compare_exchange(place, NO_DIAGONAL, distance),
            seen => seen,
        };
        if !fit(row, row_ptr, col_ind, claim) {
            table.store(DIAGONAL_TABLE, 1);
        }
    }
    as FindDiagonals
}

/// Rows of a block that writes the values of diagonals.
pub const DIAGONAL_BLOCK: u32 = 64;

/// The entries of a block in shared memory. A gap after each 16 elements keeps rows of 16 or 32 entries out
/// of each other's banks.
#[derive(Clone, Copy)]
struct Staged<T> {
    values: SharedArray<T>,
    columns: SharedArray<u32>,
}

impl<T: Real> Staged<T> {
    /// The arrays for rows of at most `diagonals` entries, and the memory that they take.
    #[inline(always)]
    fn new(diagonals: u32) -> (Self, Pool) {
        let mut pool = Pool::new();
        let length = Self::place(DIAGONAL_BLOCK * diagonals);
        (Self { values: pool.array(length), columns: pool.array(length) }, pool)
    }

    #[inline(always)]
    fn place(entry: u32) -> u32 {
        entry + entry / 16
    }
}

/// Shared memory of [`DiagonalPlaces`] and [`DiagonalPlacesSingle`].
pub fn diagonal_shared_bytes<T: Real>(diagonals: u32) -> u32 {
    Staged::<T>::new(diagonals).1.bytes()
}

/// The values of all diagonals, whose distances ascend as signed numbers; 0 where there is no entry.
#[inline(always)]
fn write<T: Real>(
    (rows, diagonals, pitch): (u32, u32, u32),
    distances: DevicePtr<u32>,
    (row_ptr, col_ind, values): (DevicePtr<u32>, DevicePtr<u32>, DevicePtr<T>),
    store: impl Fn(u32, T),
) {
    let (staged, _) = Staged::<T>::new(diagonals);
    let first_row = thread::block_idx_x() * DIAGONAL_BLOCK;
    let start = row_ptr.load(first_row);
    let end = row_ptr.load((first_row + DIAGONAL_BLOCK).min(rows));
    // Neighbouring threads read neighbouring entries here, and write neighbouring rows below.
    let mut entry = start + thread::thread_idx_x();
    while entry < end {
        // Four entries are loaded before the first is stored; beyond the end the last one again.
        let entries = [0, 1, 2, 3].map(|j| (entry + j * DIAGONAL_BLOCK).min(end - 1));
        let columns = entries.map(|entry| col_ind.load_streaming(entry));
        let numbers = entries.map(|entry| values.load_streaming(entry));
        for j in 0..4 {
            if entry + j as u32 * DIAGONAL_BLOCK < end {
                let place = Staged::<T>::place(entries[j] - start);
                staged.columns.store(place, columns[j]);
                staged.values.store(place, numbers[j]);
            }
        }
        entry += 4 * DIAGONAL_BLOCK;
    }
    thread::sync_threads();
    let row = first_row + thread::thread_idx_x();
    if row >= rows {
        return;
    }
    let (mut next, end) = (row_ptr.load(row) - start, row_ptr.load(row + 1) - start);
    for diagonal in 0..diagonals {
        let column = row.wrapping_add(distances.load(diagonal));
        let mut value = T::ZERO;
        if next < end {
            let place = Staged::<T>::place(next);
            if staged.columns.load(place) == column {
                value = staged.values.load(place);
                next += 1;
            }
        }
        store(diagonal * pitch + row, value);
    }
}

kernel! {
    /// The matrix in DIA; `distances` are those that [`FindDiagonals`] found, as ascending signed
    /// numbers, so that a row has at most `diagonals` entries. Block: [`DIAGONAL_BLOCK`]; grid: one block
    /// for as many rows; shared memory: [`diagonal_shared_bytes`].
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
        write((rows, diagonals, pitch), distances, (row_ptr, col_ind, values), |at, value| {
            places.store(at, value);
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
        write((rows, diagonals, pitch), distances, (row_ptr, col_ind, values), |at, value| {
            places.store(at, value.single());
        });
    }
    as DiagonalPlacesSingle
}
