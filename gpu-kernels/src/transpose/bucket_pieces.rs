//! Sort of a large bucket by column with several blocks: column counts of each piece of the bucket,
//! the scan of these counts over the pieces, and the moves.
//!
//! A piece is four words: (first entry, one after the last, large bucket, 0). A large bucket is
//! four words: (bucket, first piece, one after the last, 0).

use super::buckets::{SCAN_WARPS, scan_down};
use super::move_entries::{Source, cut_to_move, move_entries, rows_of};
use super::tile::{Mine, NO_COLUMN, TILE_ITEMS, Tile, for_items};
use crate::collective::{BLOCK_SCAN_WORDS, block_scan};
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, DevicePtrMut, Real, divide, thread, warp};
use crate::kernel::kernel;

/// Shared memory of [`PieceCount`] for buckets of `width` columns, in bytes.
pub fn piece_count_bytes(width: u32) -> u32 {
    width * size_of::<u32>() as u32
}

/// Shared memory of [`PieceMove`] for buckets of `width` columns, in bytes.
pub fn piece_move_bytes(width: u32, block: u32) -> u32 {
    let mut pool = Pool::new();
    cut(&mut pool, width, block);
    pool.bytes()
}

#[inline(always)]
fn cut(
    pool: &mut Pool,
    width: u32,
    block: u32,
) -> ((Tile, SharedArray<u32>, SharedArray<u32>), SharedArray<u32>) {
    (cut_to_move(pool, width, block), pool.array(BLOCK_SCAN_WORDS))
}

kernel! {
    /// `inter[block * width + column] =` entries of the block's piece in the column of its bucket.
    ///
    /// Grid: pieces; any block; shared memory: [`piece_count_bytes`].
    pub fn transpose_piece_count(
        width: u32,
        pieces: DevicePtr<u32>,
        keys: DevicePtr<u16>,
        inter: DevicePtrMut<u32>,
    ) {
        let counts: SharedArray<u32> = Pool::new().array(width);
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let mut column = me;
        while column < width {
            counts.store(column, 0);
            column += block;
        }
        thread::sync_threads();
        let [begin, end, ..] = pieces.load_vector::<4>(4 * thread::block_idx_x());
        let mut k = me;
        while k < end - begin {
            counts.atomic_add(u32::from(keys.load(begin + k)), 1);
            k += block;
        }
        thread::sync_threads();
        let row = inter.offset(u64::from(thread::block_idx_x()) * u64::from(width));
        let mut column = me;
        while column < width {
            row.store(column, counts.load(column));
            column += block;
        }
    }
    as PieceCount
}

kernel! {
    /// The vertical scan: replaces the counts of each column of each large bucket by their exclusive
    /// prefix sums over the bucket's pieces, and writes the totals (large buckets x width).
    ///
    /// Grid: (large buckets, width / 32 rounded up); block: [`SCAN_WARPS`] warps; shared memory:
    /// [`super::bucket_scan_bytes`].
    pub fn transpose_piece_scan(
        width: u32,
        large: DevicePtr<u32>,
        inter: DevicePtrMut<u32>,
        totals: DevicePtrMut<u32>,
    ) {
        let sums = Pool::new().array(WARP_SIZE * SCAN_WARPS);
        let me = thread::thread_idx_x();
        let (index, strip) = (thread::block_idx_x(), thread::block_idx_y());
        let column = strip * WARP_SIZE + me % WARP_SIZE;
        let [_, first, end, _] = large.load_vector::<4>(4 * index);
        let all = (width, u32::MAX);
        let total = scan_down(inter, all, (first, end), column, sums, |_| [0, width]);
        if me < WARP_SIZE && column < width {
            totals.store(index * width + column, total);
        }
    }
    as PieceScan
}

kernel! {
    /// [`PieceScan`] where a bucket has few pieces: a warp walks down 32 columns alone.
    ///
    /// Grid: a warp for each 32 columns, or fewer, of each of the `buckets` large buckets; any block.
    pub fn transpose_piece_scan_short(
        width: u32,
        buckets: u32,
        large: DevicePtr<u32>,
        inter: DevicePtrMut<u32>,
        totals: DevicePtrMut<u32>,
    ) {
        let strips = width.div_ceil(WARP_SIZE);
        let my_warp = thread::index_1d() / WARP_SIZE;
        let index = divide(my_warp, strips);
        if index >= buckets {
            return;
        }
        let column = (my_warp - index * strips) * WARP_SIZE + warp::lane_id();
        let inside = column < width;
        let [_, first, end, _] = large.load_vector::<4>(4 * index);
        let (mut piece, mut sum) = (first, 0);
        while piece < end {
            // Loads that do not wait for each other.
            let slot = |i: usize| {
                let piece = piece + i as u32;
                (inside && piece < end, u64::from(piece) * u64::from(width) + u64::from(column))
            };
            let counts: [u32; 4] = for_items!(i => {
                let (there, slot) = slot(i);
                inter.load_if(there, slot, 0)
            }; 0 1 2 3);
            for_items!(i => {
                let (there, slot) = slot(i);
                inter.store_if(there, slot, sum);
                sum += counts[i];
            }; 0 1 2 3);
            piece += 4;
        }
        if inside {
            totals.store(index * width + column, sum);
        }
    }
    as PieceScanShort
}

/// Entries of a bucket.
struct Moved {
    keys: DevicePtr<u16>,
    rows: DevicePtr<u32>,
}

impl Source for Moved {
    #[inline(always)]
    fn column(&self, there: bool, first: u32, step: u32) -> u32 {
        let key = self.keys.offset(first).load_if(there, step, 0);
        if there { key.into() } else { NO_COLUMN }
    }

    #[inline(always)]
    fn rows(&mut self, _: Tile, (begin, _): (u32, u32), mine: Mine) -> [u32; TILE_ITEMS] {
        rows_of(self.rows, begin, mine)
    }
}

/// What a piece is moved by.
#[derive(Clone, Copy)]
struct Counts {
    pieces: DevicePtr<u32>,
    large: DevicePtr<u32>,
    inter: DevicePtr<u32>,
    totals: DevicePtr<u32>,
    starts: DevicePtr<u32>,
}

#[inline(always)]
fn move_piece<T: Real>(
    (cols, width): (u32, u32),
    counts: Counts,
    mut source: Moved,
    (col_ptr, row_ind): (DevicePtrMut<u32>, DevicePtrMut<u32>),
    values: Option<(DevicePtr<T>, DevicePtrMut<T>)>,
) {
    let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
    let ((tile, cursors, deltas), sums) = cut(&mut Pool::new(), width, block);
    let piece = thread::block_idx_x();
    let [begin, end, index, _] = counts.pieces.load_vector::<4>(4 * piece);
    let [bucket, first_piece, ..] = counts.large.load_vector::<4>(4 * index);
    let row = counts.inter.offset(u64::from(piece) * u64::from(width));
    let mut before = counts.starts.load(bucket);
    let mut start = 0;
    // More cursors than columns where there are few columns.
    while start < cursors.length() {
        let column = start + me;
        let inside = column < width;
        let total = if inside { counts.totals.load(index * width + column) } else { 0 };
        let (exclusive, all) = block_scan(total, sums);
        let of_column = before + exclusive;
        if column < cursors.length() {
            cursors.store(column, if inside { of_column + row.load(column) } else { 0 });
        }
        if piece == first_piece && inside && bucket * width + column < cols {
            col_ptr.store(bucket * width + column, of_column);
        }
        before += all;
        start += block;
    }
    if me == 0 && piece == first_piece && cols - bucket * width <= width {
        col_ptr.store(cols, before);
    }
    thread::sync_threads();
    let items = divide(end - begin + block - 1, block).min(TILE_ITEMS as u32);
    move_entries(
        &mut source,
        (tile, cursors, deltas),
        (begin, end, items),
        (|key| key << 16, width),
        |_, _, _| (),
        row_ind,
        values,
    );
}

kernel! {
    /// Moves the entries of each piece to their columns; the first piece of a bucket writes its
    /// column pointers.
    ///
    /// Grid: pieces; block: a multiple of 32 up to 1024; shared memory: [`piece_move_bytes`].
    pub fn transpose_piece_move<T: Real>(
        cols: u32,
        width: u32,
        pieces: DevicePtr<u32>,
        large: DevicePtr<u32>,
        inter: DevicePtr<u32>,
        totals: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        keys: DevicePtr<u16>,
        moved_rows: DevicePtr<u32>,
        moved_values: DevicePtr<T>,
        col_ptr: DevicePtrMut<u32>,
        row_ind: DevicePtrMut<u32>,
        values: DevicePtrMut<T>,
    ) {
        move_piece(
            (cols, width),
            Counts { pieces, large, inter, totals, starts },
            Moved { keys, rows: moved_rows },
            (col_ptr, row_ind),
            Some((moved_values, values)),
        );
    }
    as PieceMove
}

kernel! {
    /// [`PieceMove`] without values.
    pub fn transpose_piece_move_pattern(
        cols: u32,
        width: u32,
        pieces: DevicePtr<u32>,
        large: DevicePtr<u32>,
        inter: DevicePtr<u32>,
        totals: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        keys: DevicePtr<u16>,
        moved_rows: DevicePtr<u32>,
        col_ptr: DevicePtrMut<u32>,
        row_ind: DevicePtrMut<u32>,
    ) {
        move_piece::<f32>(
            (cols, width),
            Counts { pieces, large, inter, totals, starts },
            Moved { keys, rows: moved_rows },
            (col_ptr, row_ind),
            None,
        );
    }
    as PieceMovePattern
}
