//! CSR SpMM by CSR-Stream (own; after Greathouse and Daga, SC'14, for all columns of X at once, with long rows split).
//!
//! A block takes a tile: a run of whole rows with no more entries than its shared memory has room for products.
//! - First groups of c lanes take entries: lane l writes values[e] X[col_ind[e], j] for its columns j to shared
//!   memory. Groups of a warp take neighbouring entries, whatever the rows: columns and values come in lines, and every
//!   lane has four rows of X in flight.
//! - Then groups take rows: lane l adds the products of row i, and writes Y[i, j].
//!
//! Or it takes a part of a long row, whose entries its groups share; their sums are added in a fixed order. Where the
//! row has several parts, each block leaves its sum, and the last one to arrive adds all of them in a fixed order: no
//! block waits for another, there is no second kernel, and the bits are the same every time.

use super::columns::{Columns, Lane, zeros};
use super::csr::{Csr, QUAD};
use super::strides::Strides;
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, Number, Output, thread, warp};
use crate::kernel::kernel;

/// Entries whose rows of X a lane has in flight.
pub const STREAM_AT_ONCE: u32 = 4;

/// The shared memory of a block.
#[derive(Clone, Copy)]
struct Shared<T> {
    /// For each column of a lane: a product for each entry and lane, or a sum for each warp and lane.
    products: SharedArray<T>,
    /// How many of them for each column.
    plane: u32,
    /// One element.
    arrivals: SharedArray<u32>,
}

impl<T: Number> Shared<T> {
    #[inline(always)]
    fn cut(pool: &mut Pool, columns: u32, plane: u32) -> Self {
        Self { products: pool.array(columns * plane), plane, arrivals: pool.array(1) }
    }

    #[inline(always)]
    // Indices: arrays behind iterators would not become registers.
    #[allow(clippy::needless_range_loop)]
    fn store<const N: usize, const W: usize>(self, at: u32, numbers: Columns<T, N>) {
        for n in 0..N {
            self.products.store((n * W) as u32 * self.plane + at, numbers[n][0]);
            if W == 2 {
                self.products.store((n * W + 1) as u32 * self.plane + at, numbers[n][1]);
            }
        }
    }

    #[inline(always)]
    fn load<const N: usize, const W: usize>(self, at: u32) -> Columns<T, N> {
        let element = |n: usize, w: usize| self.products.load((n * W + w) as u32 * self.plane + at);
        core::array::from_fn(|n| [element(n, 0), if W == 2 { element(n, 1) } else { T::ZERO }])
    }
}

/// Bytes of dynamic shared memory of blocks with room for `plane` products of each of `columns` columns of a lane.
#[cfg(not(target_arch = "nvptx64"))]
pub fn csr_stream_bytes<T: Number>(columns: u32, plane: u32) -> u32 {
    let mut pool = Pool::new();
    Shared::<T>::cut(&mut pool, columns, plane);
    pool.bytes()
}

#[inline(always)]
fn add<T: Number, const N: usize>(a: Columns<T, N>, b: Columns<T, N>) -> Columns<T, N> {
    core::array::from_fn(|n| [a[n][0] + b[n][0], a[n][1] + b[n][1]])
}

/// What a thread knows of its block.
#[derive(Clone, Copy)]
struct Place<T, const N: usize, const W: usize> {
    lanes: u32,
    /// Groups of the block.
    groups: u32,
    /// That of the thread.
    group: u32,
    lane: u32,
    columns: Lane<T, N, W>,
    shared: Shared<T>,
}

/// The long rows.
#[derive(Clone, Copy)]
struct LongRows<T> {
    /// Of each: its number, its first part and the end of its parts.
    rows: DevicePtr<[u32; 4]>,
    partial: DevicePtrMut<T>,
    arrivals: DevicePtrMut<u32>,
}

impl<T: Number, const N: usize, const W: usize> Place<T, N, W> {
    /// The sum over the groups of the block, for each lane of the first group. All threads must come here; between two
    /// calls there must be a barrier.
    #[inline(always)]
    fn block_sum(self, mut sum: Columns<T, N>) -> Columns<T, N> {
        let mut distance = WARP_SIZE / 2;
        while distance >= self.lanes {
            sum = core::array::from_fn(|n| {
                let other = |w: usize| warp::shuffle_xor(FULL_MASK, sum[n][w], distance, WARP_SIZE);
                [sum[n][0] + other(0), if W == 2 { sum[n][1] + other(1) } else { T::ZERO }]
            });
            distance /= 2;
        }
        let (me, warps) = (thread::thread_idx_x(), thread::block_dim_x() / WARP_SIZE);
        if me % WARP_SIZE < self.lanes {
            self.shared.store::<N, W>(me / WARP_SIZE * self.lanes + self.lane, sum);
        }
        thread::sync_threads();
        if self.group == 0 {
            for warp in 1..warps {
                sum = add(sum, self.shared.load::<N, W>(warp * self.lanes + self.lane));
            }
        }
        sum
    }

    /// A part of a long row: entries `start` to `end`, part `part` of row `long` of the long ones.
    #[inline(always)]
    fn part(
        self,
        csr: Csr<T>,
        (start, end): (u32, u32),
        (part, long): (u32, u32),
        long_rows: LongRows<T>,
        y: Output<T>,
        y_strides: Strides,
    ) {
        let sum = csr.sum(self.columns, (start, end), self.group, self.groups);
        let sum = self.block_sum(sum);
        let [row, first, last, _] = long_rows.rows.load(long);
        if last - first == 1 {
            if self.group == 0 {
                self.columns.store(y, y_strides, row, sum);
            }
            return;
        }
        if self.group == 0 {
            self.columns.store_part(long_rows.partial, part, sum);
        }
        // The first thread's release is that of all, which come before it here.
        thread::sync_threads();
        let counter = long * thread::grid_dim_y() + thread::block_idx_y();
        let me = thread::thread_idx_x();
        if me == 0 {
            self.shared.arrivals.store(0, long_rows.arrivals.atomic_add_release(counter, 1));
        }
        thread::sync_threads();
        if self.shared.arrivals.load(0) != last - first - 1 {
            return;
        }
        // All parts are in L2, and are read there.
        let load = |part: u32| self.columns.load_part(long_rows.partial, part);
        let mut sum = zeros();
        let mut part = first + self.group;
        while part < last {
            let parts: [Columns<T, N>; 4] = core::array::from_fn(|u| {
                let other = part + u as u32 * self.groups;
                if other < last { load(other) } else { zeros() }
            });
            sum = add(add(add(add(sum, parts[0]), parts[1]), parts[2]), parts[3]);
            part += 4 * self.groups;
        }
        let sum = self.block_sum(sum);
        if self.group == 0 {
            self.columns.store(y, y_strides, row, sum);
        }
        if me == 0 {
            long_rows.arrivals.store(counter, 0);
        }
    }

    /// Rows `first` to `last` with the entries `start` to `end`.
    #[inline(always)]
    fn tile(
        self,
        csr: Csr<T>,
        (start, end): (u32, u32),
        (first, last): (u32, u32),
        y: Output<T>,
        y_strides: Strides,
    ) {
        // Counted from the first of the tile: behind the last there may be no number.
        let (rows, entries) = (last - first, end - start);
        let bounds = |row: u32| {
            let inside = row < rows;
            let bound = |row: u32| if inside { csr.row_ptr.load(first + row) } else { start };
            (bound(row), bound(row + 1))
        };
        let mut row = self.group;
        // In flight with the entries: not to be used before them.
        let mut of_row = bounds(row);
        let mut entry = self.group;
        while entry < entries {
            // Beyond the last one that again: nobody adds it.
            let at = |u: usize| start + (entry + u as u32 * self.groups).min(entries - 1);
            let columns: [u32; STREAM_AT_ONCE as usize] =
                core::array::from_fn(|u| csr.col_ind.load_with_line(at(u)));
            let values: [T; STREAM_AT_ONCE as usize] =
                core::array::from_fn(|u| csr.values.load_with_line(at(u)));
            let rows_of_x: [Columns<T, N>; STREAM_AT_ONCE as usize] =
                core::array::from_fn(|u| self.columns.load(columns[u]));
            // Written out: a loop would be left as one, with its arrays in local memory.
            macro_rules! store {
                ($($u:literal)*) => {$({
                    let product = rows_of_x[$u].map(|pair| pair.map(|x| values[$u] * x));
                    let at = (entry + $u * self.groups) * self.lanes + self.lane;
                    self.shared.store::<N, W>(at, product);
                })*};
            }
            store!(0 1 2 3);
            entry += STREAM_AT_ONCE * self.groups;
        }
        thread::sync_threads();
        while row < rows {
            let product = |entry: u32| self.shared.load::<N, W>(entry * self.lanes + self.lane);
            let (mut entry, end) = (of_row.0 - start, of_row.1 - start);
            let mut sum = zeros();
            while end - entry >= QUAD {
                let products: [Columns<T, N>; QUAD as usize] =
                    core::array::from_fn(|u| product(entry + u as u32));
                sum = add(add(add(add(sum, products[0]), products[1]), products[2]), products[3]);
                entry += QUAD;
            }
            while entry < end {
                sum = add(sum, product(entry));
                entry += 1;
            }
            self.columns.store(y, y_strides, first + row, sum);
            row += self.groups;
            of_row = bounds(row);
        }
    }
}

#[inline(always)]
fn product<T: Number, const N: usize, const W: usize>(
    csr: Csr<T>,
    (lanes, plane): (u32, u32),
    (parts, items): (u32, DevicePtr<[u32; 4]>),
    (k, x): (u32, DevicePtr<T>),
    long_rows: LongRows<T>,
    y: Output<T>,
    y_strides: Strides,
) {
    let (me, shift) = (thread::thread_idx_x(), lanes.trailing_zeros());
    let lane = me & (lanes - 1);
    let place = Place {
        lanes,
        groups: thread::block_dim_x() >> shift,
        group: me >> shift,
        lane,
        columns: Lane::<T, N, W>::new(x, k, thread::block_idx_y(), lanes, lane),
        shared: Shared::cut(&mut Pool::new(), (N * W) as u32, plane),
    };
    let item = thread::block_idx_x();
    let [start, end, first, last] = items.load(item);
    if item < parts {
        place.part(csr, (start, end), (item, first), long_rows, y, y_strides);
    } else {
        place.tile(csr, (start, end), (first, last), y, y_strides);
    }
}

macro_rules! widths {
    ($($(#[$meta:meta])* $name:ident $marker:ident $bound:ident $loads:literal $width:literal;)*) => {$(
        kernel! {
            $(#[$meta])*
            ///
            /// X is row-major. An item is, up to `parts` of them, a part of a long row: first entry and end, and which
            /// of the long rows; then a tile: first entry and end, first row and end. A long row is its number, its
            /// first part and the end of its parts. `partial` has k elements for each part, `arrivals` one for each long
            /// row and column tile, 0 before and after. Groups of `lanes` lanes, a power of two up to 32. `plane` is a
            /// multiple of [`STREAM_AT_ONCE`] times the threads of a block, and `lanes` times the entries of a tile, at
            /// least. Block: a multiple of 32; grid: an item in x, column tiles in y; shared memory:
            /// [`csr_stream_bytes`].
            pub fn $name<T: $bound>(
                rows: u32,
                entries: u32,
                k: u32,
                lanes: u32,
                plane: u32,
                parts: u32,
                items: DevicePtr<[u32; 4]>,
                long_rows: DevicePtr<[u32; 4]>,
                partial: DevicePtrMut<T>,
                arrivals: DevicePtrMut<u32>,
                row_ptr: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                y: Output<T>,
                y_strides: Strides,
            ) {
                let csr = Csr { rows, entries, row_ptr, col_ind, values };
                let long_rows = LongRows { rows: long_rows, partial, arrivals };
                let (places, items) = ((lanes, plane), (parts, items));
                product::<T, $loads, $width>(csr, places, items, (k, x), long_rows, y, y_strides);
            }
            as $marker
        }
    )*};
}

widths! {
    /// `csr-stream[columns=1]`: any k.
    spmm_csr_stream_1 CsrStream1 Real 1 1;
    /// `csr-stream[columns=2]`: k even.
    spmm_csr_stream_2 CsrStream2 Real 1 2;
    /// `csr-stream[columns=4]`: k even.
    spmm_csr_stream_4 CsrStream4 Real 2 2;
}
