//! Sums neighbouring entries with the same row and column into one entry.

use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

kernel! {
    /// `marks[k] = 1` where an entry has another column than the one before, else 0; and
    /// `marks[entries] = 0`. Grid: at least entries + 1 threads.
    pub fn transpose_mark_columns(
        entries: u32,
        columns: DevicePtr<u32>,
        marks: DevicePtrMut<u32>,
    ) {
        let k = thread::index_1d();
        if k < entries {
            let differs = k == 0 || columns.load(k) != columns.load(k - 1);
            marks.store(k, u32::from(differs));
        } else if k == entries {
            marks.store(k, 0);
        }
    }
    as MarkColumns
}

kernel! {
    /// `marks[k] = 1` for the first entry of each row. Grid: at least one thread for each row.
    pub fn transpose_mark_rows(rows: u32, row_ptr: DevicePtr<u32>, marks: DevicePtrMut<u32>) {
        let row = thread::index_1d();
        if row < rows {
            let start = row_ptr.load(row);
            if start < row_ptr.load(row + 1) {
                marks.store(start, 1);
            }
        }
    }
    as MarkRows
}

kernel! {
    /// Adds up each run of entries that have the same place, in their order, and stores the sum
    /// there; `places`: the exclusive scan of the marks (entries + 1 words). Grid: at least one
    /// thread for each entry.
    pub fn transpose_sum_duplicates<T: Real>(
        entries: u32,
        places: DevicePtr<u32>,
        columns: DevicePtr<u32>,
        values: DevicePtr<T>,
        distinct_columns: DevicePtrMut<u32>,
        sums: DevicePtrMut<T>,
    ) {
        let k = thread::index_1d();
        if k < entries {
            let (place, next) = (places.load(k), places.load(k + 1));
            if place < next {
                let mut sum = values.load(k);
                let mut other = k + 1;
                while other < entries && places.load(other + 1) == next {
                    sum += values.load(other);
                    other += 1;
                }
                distinct_columns.store(place, columns.load(k));
                sums.store(place, sum);
            }
        }
    }
    as SumDuplicates
}

kernel! {
    /// Pointers to the entries that are left. Grid: at least rows + 1 threads.
    pub fn transpose_distinct_pointers(
        rows: u32,
        row_ptr: DevicePtr<u32>,
        places: DevicePtr<u32>,
        distinct: DevicePtrMut<u32>,
    ) {
        let row = thread::index_1d();
        if row <= rows {
            distinct.store(row, places.load(row_ptr.load(row)));
        }
    }
    as DistinctPointers
}
