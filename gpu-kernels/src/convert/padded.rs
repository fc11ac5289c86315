//! Conversion of CSR to HLL and SELL-C-sigma: blocks of rows, each as wide as its longest row,
//! column-major.
//!
//! The steps are: row lengths in the order of the rows, block widths, a scan of the widths, and the
//! stored elements. The row order of SELL comes from two stable sorts, by length and by window.

use crate::collective::warp_fold;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, divide, thread, warp};
use crate::kernel::kernel;

kernel! {
    /// The sort keys of rows, the longest first: `keys[row] = longest - length`, with
    /// `numbers[row] = row`.
    pub fn convert_length_keys(
        rows: u32,
        longest: u32,
        row_ptr: DevicePtr<u32>,
        keys: DevicePtrMut<u32>,
        numbers: DevicePtrMut<u32>,
    ) {
        let row = thread::index_1d();
        if row < rows {
            keys.store(row, longest - (row_ptr.load(row + 1) - row_ptr.load(row)));
            numbers.store(row, row);
        }
    }
    as LengthKeys
}

kernel! {
    /// The window of `sigma` rows that the row at each position is in.
    pub fn convert_window_keys(
        rows: u32,
        sigma: u32,
        order: DevicePtr<u32>,
        keys: DevicePtrMut<u32>,
    ) {
        let position = thread::index_1d();
        if position < rows {
            keys.store(position, divide(order.load(position), sigma));
        }
    }
    as WindowKeys
}

/// The row at a position; `sorted` 0 leaves the rows where they are.
#[inline(always)]
fn row_at(position: u32, sorted: u32, order: DevicePtr<u32>) -> u32 {
    if sorted == 0 { position } else { order.load(position) }
}

kernel! {
    /// The length of the row at each position; `moved` (0 before) counts warps that have a row which
    /// is not at its own position. Block: a multiple of 32.
    pub fn convert_row_lengths(
        rows: u32,
        sorted: u32,
        order: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        lengths: DevicePtrMut<u32>,
        moved: DevicePtrMut<u32>,
    ) {
        let position = thread::index_1d();
        let mut elsewhere = false;
        if position < rows {
            let row = row_at(position, sorted, order);
            lengths.store(position, row_ptr.load(row + 1) - row_ptr.load(row));
            elsewhere = row != position;
        }
        if warp::any(FULL_MASK, elsewhere) && warp::lane_id() == 0 {
            moved.atomic_add(0_u32, 1);
        }
    }
    as RowLengths
}

kernel! {
    /// The longest of each `height` lengths. Block: a multiple of 32; grid: at least a warp for each
    /// of the `blocks`.
    pub fn convert_block_widths(
        rows: u32,
        blocks: u32,
        height: u32,
        lengths: DevicePtr<u32>,
        widths: DevicePtrMut<u32>,
    ) {
        let (block, lane) = (thread::index_1d() / WARP_SIZE, thread::index_1d() % WARP_SIZE);
        if block >= blocks {
            return;
        }
        let first = block * height;
        let lanes = height.min(rows - first);
        let (mut width, mut i) = (0, lane);
        while i < lanes {
            width = lengths.load(first + i).max(width);
            if lanes - i <= WARP_SIZE {
                break;
            }
            i += WARP_SIZE;
        }
        let width = warp_fold(width, u32::max);
        if lane == 0 {
            widths.store(block, width);
        }
    }
    as BlockWidths
}

kernel! {
    /// Where each block starts in stored elements, and the number of stored elements last; `starts`:
    /// in columns, of `height` stored elements but for the last block's `last_height`.
    pub fn convert_block_offsets(
        blocks: u32,
        height: u32,
        last_height: u32,
        starts: DevicePtr<u32>,
        offsets: DevicePtrMut<u64>,
    ) {
        let block = thread::index_1d();
        if block < blocks {
            let start = u64::from(starts.load(block)) * u64::from(height);
            offsets.store(block, start);
            if block == blocks - 1 {
                let width = starts.load(blocks) - starts.load(block);
                offsets.store(blocks, start + u64::from(width) * u64::from(last_height));
            }
        }
    }
    as BlockOffsets
}

kernel! {
    /// Columns and values of all stored elements, padding with the row's last column (0 in an empty
    /// row) and value 0. The last block has lanes for the rows that are left, or with `filled` not 0 all
    /// `height` of them. Grid: a thread for each lane of each block.
    pub fn convert_padded_elements<T: Number>(
        rows: u32,
        lanes: u32,
        height: u32,
        filled: u32,
        sorted: u32,
        order: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        starts: DevicePtr<u32>,
        to_columns: DevicePtrMut<u32>,
        to_values: DevicePtrMut<T>,
    ) {
        let position = thread::index_1d();
        if position >= lanes {
            return;
        }
        let block = divide(position, height);
        let first = block * height;
        let stride = if filled != 0 { height } else { height.min(rows - first) };
        let (mut begin, mut end) = (0, 0);
        if position < rows {
            let row = row_at(position, sorted, order);
            (begin, end) = (row_ptr.load(row), row_ptr.load(row + 1));
        }
        let start = starts.load(block);
        let width = starts.load(block + 1) - start;
        let mut element = u64::from(start) * u64::from(height) + u64::from(position - first);
        let mut column = 0;
        for s in 0..width {
            let mut value = T::ZERO;
            if s < end - begin {
                column = col_ind.load(begin + s);
                value = values.load(begin + s);
            }
            to_columns.store(element, column);
            to_values.store(element, value);
            element += u64::from(stride);
        }
    }
    as PaddedElements
}
