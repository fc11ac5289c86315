//! Moving entries, tile by tile, each tile put in order in shared memory before it is written.

use super::tile::{Mine, NO_COLUMN, TILE_ITEMS, Tile, bits, counted, for_items};
use crate::device::shared::{Pool, SharedArray};
use crate::device::{DevicePtr, DevicePtrMut, Real, thread};

/// Shared memory of the kernels that move to buckets, in bytes.
pub fn bucket_move_bytes(digits: u32, block: u32) -> u32 {
    let mut pool = Pool::new();
    cut_to_move(&mut pool, digits, block);
    pool.bytes()
}

#[inline(always)]
pub(super) fn cut_to_move(
    pool: &mut Pool,
    digits: u32,
    block: u32,
) -> (Tile, SharedArray<u32>, SharedArray<u32>) {
    // As many cursors as counters.
    let cursors = counted(digits);
    (Tile::cut(pool, digits, block), pool.array(cursors), pool.array(cursors))
}

/// Where the entries that are moved come from.
pub(super) trait Source {
    /// The column of entry `first` + `step`, or what stands for it, if there is one, else
    /// [`NO_COLUMN`]; `step` a literal.
    fn column(&self, there: bool, first: u32, step: u32) -> u32;
    /// The rows of the thread's entries; see [`super::rows::RowMarks::of_tile`].
    fn rows(&mut self, tile: Tile, extent: (u32, u32), mine: Mine) -> [u32; TILE_ITEMS];
}

#[inline(always)]
pub(super) fn rows_of(rows: DevicePtr<u32>, begin: u32, mine: Mine) -> [u32; TILE_ITEMS] {
    let rows = rows.offset(begin + mine.first);
    for_items!(i => rows.load_if(mine.has(i), Mine::step(i), 0))
}

/// Moves the entries from `begin` to `end`, tile after tile of `items` x block entries, to
/// `deltas[digit]` + their place in the tile; the cursors say where the next entry of each digit
/// goes. `word_of` has the digit of a column in its high half, and what is stored of it in the low
/// one; `no_digit` is one more than the largest digit. A pattern has no values.
#[inline(always)]
pub(super) fn move_entries<T: Real>(
    source: &mut impl Source,
    (tile, cursors, deltas): (Tile, SharedArray<u32>, SharedArray<u32>),
    (begin, end, items): (u32, u32, u32),
    (word_of, no_digit): (impl Fn(u32) -> u32, u32),
    store_key: impl Fn(bool, u32, u16),
    moved_rows: DevicePtrMut<u32>,
    values: Option<(DevicePtr<T>, DevicePtrMut<T>)>,
) {
    let block = thread::block_dim_x();
    let mut start = begin;
    while start < end {
        let stop = start + (items * block).min(end - start);
        let mine = Mine::of(items, stop - start);
        let words = for_items!(i => {
            let column = source.column(mine.has(i), start + mine.first, Mine::step(i));
            if column == NO_COLUMN { no_digit << 16 } else { word_of(column) }
        });
        let full = items == TILE_ITEMS as u32 && stop - start == items * block;
        let bits = bits(if full { no_digit - 1 } else { no_digit });
        let places = tile.places(
            |i| words[i] >> 16,
            bits,
            |digit, starts, counts| {
                let advance = |i: u32, start: u32, count: u32| {
                    let cursor = cursors.load(digit + i);
                    deltas.store(digit + i, cursor.wrapping_sub(start));
                    cursors.store(digit + i, cursor + count);
                };
                advance(0, starts[0], counts[0]);
                advance(1, starts[1], counts[1]);
                advance(2, starts[2], counts[2]);
                advance(3, starts[3], counts[3]);
            },
        );
        thread::sync_threads();
        let mine = mine.again();
        for_items!(i => tile.left.store(places.get(i), words[i]));
        let rows = source.rows(tile, (start, stop), mine);
        for_items!(i => tile.right.store(places.get(i), rows[i]));
        thread::sync_threads();
        // From here on a thread has the places that it had the entries of; other places hold what
        // is stored nowhere.
        let mine = mine.again();
        let place = |i: usize| mine.first + Mine::step(i);
        let words = for_items!(i => tile.left.load(place(i)));
        let targets = for_items!(i => deltas.load(words[i] >> 16).wrapping_add(place(i)));
        for_items!(i => store_key(mine.has(i), targets[i], words[i] as u16));
        for_items!(i => {
            let row = tile.right.load(place(i));
            moved_rows.store_if(mine.has(i), targets[i], row);
        });
        thread::sync_threads();
        if let Some((values, _)) = values {
            let values = values.offset(start + mine.first);
            let mine = mine.again();
            for_items!(i => {
                let value = values.load_if(mine.has(i), Mine::step(i), T::ZERO);
                tile.words.store(places.get(i), value.to_word());
            });
        }
        thread::sync_threads();
        if let Some((_, moved_values)) = values {
            let mine = mine.again();
            for_items!(i => {
                let word = tile.words.load(place(i));
                moved_values.store_if(mine.has(i), targets[i], T::from_word(word));
            });
        }
        thread::sync_threads();
        start = stop;
    }
}
