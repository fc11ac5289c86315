//! Sort of a bucket by column in shared memory, with one block for a bucket that fits.

use super::tile::{Mine, Packed, TILE_ITEMS, Tile, bits, for_items};
use crate::device::shared::Pool;
use crate::device::{DevicePtr, DevicePtrMut, Real, divide, thread};
use crate::kernel::kernel;

/// Entries of the largest bucket that a block of [`BucketSort`] takes.
pub fn bucket_sort_entries(block: u32) -> u32 {
    block * TILE_ITEMS as u32
}

/// Shared memory of [`BucketSort`] for buckets of `width` columns, in bytes.
pub fn bucket_sort_bytes(width: u32, block: u32) -> u32 {
    let mut pool = Pool::new();
    Tile::cut(&mut pool, width, block);
    pool.bytes()
}

/// The columns of the buckets.
#[derive(Clone, Copy)]
struct Columns {
    cols: u32,
    width: u32,
    col_ptr: DevicePtrMut<u32>,
}

#[inline(always)]
fn sort_bucket<T: Real>(
    columns: Columns,
    starts: DevicePtr<u32>,
    keys: DevicePtr<u16>,
    rows: [DevicePtrMut<u32>; 2],
    values: Option<[DevicePtrMut<T>; 2]>,
) {
    let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
    let width = columns.width;
    let tile = Tile::cut(&mut Pool::new(), width, block);
    let bucket = thread::block_idx_x();
    let (begin, end) = (starts.load(bucket), starts.load(bucket + 1));
    let length = end - begin;
    let first_column = bucket * width;
    if me == 0 && columns.cols - first_column <= width {
        columns.col_ptr.store(columns.cols, end);
    }
    // Longer ones are for the kernels that cut buckets into pieces.
    if length > block * TILE_ITEMS as u32 {
        return;
    }
    let mine = Mine::of(divide(length + block - 1, block), length);
    let source = begin + mine.first;
    let keys = keys.offset(source);
    let no_digit = width as u16;
    let digits = Packed::new(|i| keys.load_if(mine.has(i), Mine::step(i), no_digit).into());
    let [moved, ordered] = rows.map(|rows| rows.offset(source));
    let moved = for_items!(i => moved.load_if(mine.has(i), Mine::step(i), 0));
    let places = tile.places(
        |i| digits.get(i),
        bits(width),
        |digit, starts, _| {
            let column = first_column + digit;
            let put = |i: u32, start: u32| {
                if digit + i < width && i < columns.cols - column {
                    columns.col_ptr.store(column + i, begin + start);
                }
            };
            if column < columns.cols {
                put(0, starts[0]);
                put(1, starts[1]);
                put(2, starts[2]);
                put(3, starts[3]);
            }
        },
    );
    thread::sync_threads();
    let mine = mine.again();
    for_items!(i => tile.left.store(places.get(i), moved[i]));
    // From here on the rows may be overwritten: all of them have been loaded.
    thread::sync_threads();
    let place = |i: usize| mine.first + Mine::step(i);
    for_items!(i => {
        let row = tile.left.load(place(i));
        ordered.store_if(mine.has(i), Mine::step(i), row);
    });
    thread::sync_threads();
    let values = values.map(|values| values.map(|values| values.offset(source)));
    if let Some([moved, _]) = values {
        let mine = mine.again();
        for_items!(i => {
            let value = moved.load_if(mine.has(i), Mine::step(i), T::ZERO);
            tile.words.store(places.get(i), value.to_word());
        });
    }
    thread::sync_threads();
    if let Some([_, ordered]) = values {
        let mine = mine.again();
        for_items!(i => {
            let word = tile.words.load(place(i));
            ordered.store_if(mine.has(i), Mine::step(i), T::from_word(word));
        });
    }
}

kernel! {
    /// Orders each bucket of `width` columns by column, and writes the column pointers; a bucket of
    /// more than [`bucket_sort_entries`] is left alone. `moved_rows` may be the same array as
    /// `row_ind`, `moved_values` the same as `values`.
    ///
    /// Grid: buckets; block: a multiple of 32 up to 1024; shared memory: [`bucket_sort_bytes`].
    pub fn transpose_bucket_sort<T: Real>(
        cols: u32,
        width: u32,
        starts: DevicePtr<u32>,
        keys: DevicePtr<u16>,
        moved_rows: DevicePtrMut<u32>,
        moved_values: DevicePtrMut<T>,
        col_ptr: DevicePtrMut<u32>,
        row_ind: DevicePtrMut<u32>,
        values: DevicePtrMut<T>,
    ) {
        sort_bucket(
            Columns { cols, width, col_ptr },
            starts,
            keys,
            [moved_rows, row_ind],
            Some([moved_values, values]),
        );
    }
    as BucketSort
}

kernel! {
    /// [`BucketSort`] without values.
    pub fn transpose_bucket_sort_pattern(
        cols: u32,
        width: u32,
        starts: DevicePtr<u32>,
        keys: DevicePtr<u16>,
        moved_rows: DevicePtrMut<u32>,
        col_ptr: DevicePtrMut<u32>,
        row_ind: DevicePtrMut<u32>,
    ) {
        sort_bucket::<f32>(
            Columns { cols, width, col_ptr },
            starts,
            keys,
            [moved_rows, row_ind],
            None,
        );
    }
    as BucketSortPattern
}
