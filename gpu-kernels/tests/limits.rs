//! Indices beyond 2^31: a launch over billions of rows, of which the last blocks run. The arrays
//! hold what those blocks may touch, at addresses that lie as far back as the rows and entries
//! before would take: an index that wraps, or loses its upper bits, is an access out of bounds.

use spm_gpu_kernels::Kernel;
use spm_gpu_kernels::device::{DevicePtr, DevicePtrMut, Element};
use spm_gpu_kernels::emulator::{EmuBuffer, Emulator, EmulatorOptions};
use spm_gpu_kernels::{spmm, spmv};

/// Rows that hold entries, the last ones.
const ROWS: u32 = 200;
const COLS: u32 = 50;

/// As if `before` elements stood before the first of the buffer.
fn far<T: Element>(buffer: &EmuBuffer<T>, before: u64) -> DevicePtr<T> {
    let address = buffer.ptr().as_raw().wrapping_sub(before * size_of::<T>() as u64);
    // SAFETY: the emulator checks every access.
    unsafe { DevicePtr::from_raw(address) }
}

fn far_mut<T: Element>(buffer: &EmuBuffer<T>, before: u64) -> DevicePtrMut<T> {
    // SAFETY: the emulator checks every access.
    unsafe { DevicePtrMut::from_raw(far(buffer, before).as_raw()) }
}

/// The last rows of a matrix with `first_row` empty rows and `first_entry` entries before them.
struct Tail {
    emulator: Emulator,
    first_row: u32,
    first_entry: u32,
    lengths: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
    x: Vec<f64>,
}

impl Tail {
    fn new(first_row: u32, first_entry: u32) -> Self {
        let lengths: Vec<u32> = (0..ROWS).map(|row| row * 7 % 5).collect();
        let entries = lengths.iter().sum::<u32>();
        Self {
            emulator: Emulator::new(EmulatorOptions::default()),
            first_row,
            first_entry,
            lengths,
            columns: (0..entries).map(|entry| entry * 13 % COLS).collect(),
            values: (0..entries).map(|entry| f64::from(entry % 9) - 3.0).collect(),
            x: (0..COLS * 2).map(|i| f64::from(i * 31 % 23) + 1.0).collect(),
        }
    }

    fn rows(&self) -> u32 {
        self.first_row + ROWS
    }

    fn pointers(&self) -> Vec<u32> {
        let mut end = self.first_entry;
        let mut pointers = vec![end];
        for length in &self.lengths {
            end += length;
            pointers.push(end);
        }
        pointers
    }

    /// Y = A X, X row-major with `k` columns: every sum is exact, in any order.
    fn expected(&self, k: usize) -> Vec<f64> {
        let mut y = Vec::new();
        let mut entry = 0;
        for &length in &self.lengths {
            let entries = entry..entry + length as usize;
            entry = entries.end;
            for j in 0..k {
                let product = |e: usize| self.values[e] * self.x[self.columns[e] as usize * k + j];
                y.push(entries.clone().map(product).sum());
            }
        }
        y
    }

    /// Launches over all rows and compares the Y of the last ones.
    fn check<K: Kernel>(
        &self,
        k: usize,
        (items_per_block, block): (u32, (u32, u32)),
        shared: u32,
        args: impl FnOnce(&Self, DevicePtr<f64>, DevicePtrMut<f64>) -> K::Args,
    ) {
        let x = self.emulator.alloc_from(&self.x[..COLS as usize * k]);
        let y = self.emulator.alloc_from(&vec![f64::NAN; ROWS as usize * k]);
        let items = u64::from(self.rows()) * k as u64;
        let grid = items.div_ceil(u64::from(items_per_block)) as u32;
        let before = u64::from(self.first_row) * k as u64;
        assert_eq!(before % u64::from(items_per_block), 0, "a block has rows of the tail only");
        let blocks = u64::from(grid) - before / u64::from(items_per_block);
        let y_far = far_mut(&y, before);
        let args = args(self, x.ptr(), y_far);
        let emulator = self.emulator.with_last_blocks(blocks);
        let launched = emulator.launch::<K>(grid, block, shared, args);
        launched.unwrap_or_else(|error| panic!("{}: {error}", K::NAME));
        assert_eq!(y.to_vec(), self.expected(k), "{}", K::NAME);
    }
}

/// Rows and entries before the tail: beyond 31 bits, and near the end of 32.
const PLACES: [(u32, u32); 3] =
    [(1 << 31, 7), (0x8765_4000, 0xfedc_0000), (0xf7ff_f000, 0xf7ff_0000)];

macro_rules! csr {
    ($tail:ident, $kernel:ty, $name:ident, $k:expr, $shape:expr, $shared:expr,
     { $($field:ident: $value:expr),* }, $pointers:ident) => {{
        let entry = u64::from($tail.first_entry);
        let row = u64::from($tail.first_row);
        let pointers = $tail.emulator.alloc_from(&$tail.pointers());
        let columns = $tail.emulator.alloc_from(&$tail.columns);
        let values = $tail.emulator.alloc_from(&$tail.values);
        $tail.check::<$kernel>($k, $shape, $shared, |tail, x, y| {
            csr!(@args $name, tail, x, y, $pointers(&pointers, row), far(&columns, entry),
                far(&values, entry), { $($field: $value),* })
        });
    }};
    (@args $name:ident, $tail:ident, $x:ident, $y:ident, $p:expr, $c:expr, $v:expr,
     { $($field:ident: $value:expr),* }) => {
        $name { rows: $tail.rows(), pointers: $p, col_indices: $c, values: $v, x: $x, y: $y,
            $($field: $value),* }
    };
}

#[test]
fn csr_spmv() {
    use spmv::*;
    for (row, entry) in PLACES {
        let tail = Tail::new(row, entry);
        csr!(tail, CsrThreadPerRow<f64>, CsrThreadPerRow, 1, (128, (128, 1)), 0, {}, far);
        csr!(tail, CsrWarpPerRow<f64>, CsrWarpPerRow, 1, (8, (32, 8)), 0, {}, far);
        let one = (256, (256, 1));
        csr!(tail, CsrSubwarpPerRow<f64>, CsrSubwarpPerRow, 1, one, 0, { lanes: 1 }, far);
        // As many threads as rows, of which a warp takes every (rows / 32)-th row.
        let shared = csr_warp_per_row_shared_bytes::<f64>(1024);
        let few = Tail::new(0, entry);
        let all = (32, (1024, 1));
        csr!(few, CsrWarpPerRowShared<f64>, CsrWarpPerRowShared, 1, all, shared, {}, far);
    }
    // Less than 2^32 threads.
    let tail = Tail::new((1 << 28) - 512, 0xf7ff_0000);
    csr!(tail, CsrSubwarpPerRow<f64>, CsrSubwarpPerRow, 1, (16, (128, 1)), 0, { lanes: 8 }, far);
}

#[test]
fn ell_spmv() {
    use spmv::*;
    for (row, _) in PLACES {
        let tail = Tail::new(row, 0);
        let (width, rows) = (4, ROWS as usize);
        let lengths = tail.emulator.alloc_from(&tail.lengths);
        let mut slot = [vec![0_u32; rows * 4], vec![0; rows * 4]];
        let mut numbers = [vec![0_f64; rows * 4], vec![0.0; rows * 4]];
        let mut entry = 0;
        for (row, &length) in tail.lengths.iter().enumerate() {
            for s in 0..length as usize {
                for (order, at) in [(0, s * rows + row), (1, row * 4 + s)] {
                    slot[order][at] = tail.columns[entry];
                    numbers[order][at] = tail.values[entry];
                }
                entry += 1;
            }
        }
        let [down, along] = slot.map(|columns| tail.emulator.alloc_from(&columns));
        let [down_values, along_values] = numbers.map(|v| tail.emulator.alloc_from(&v));
        let before = u64::from(tail.first_row);
        let lengths = || far(&lengths, before);
        let block = (128, (128, 1));
        // Column-major with the pitch of the rows that are there: slots far back in each column.
        tail.check::<EllThreadPerRow<f64>>(1, block, 0, |tail, x, y| EllThreadPerRow {
            rows: tail.rows(),
            pitch: rows as u64,
            row_lengths: lengths(),
            col_indices: far(&down, before),
            values: far(&down_values, before),
            x,
            y,
        });
        macro_rules! along {
            ($name:ident, $block:expr, { $($field:ident: $value:expr),* }) => {
                tail.check::<$name<f64>>(1, $block, 0, |tail, x, y| $name {
                    rows: tail.rows(),
                    pitch: 4,
                    row_lengths: lengths(),
                    col_indices: far(&along, 4 * before),
                    values: far(&along_values, 4 * before),
                    x,
                    y,
                    $($field: $value),*
                })
            };
        }
        along!(EllThreadPerRowRowmajor, block, {});
        along!(EllThreadPerRowRowmajorPadded, block, { width: width });
        along!(EllWarpPerRow, (4, (32, 4)), {});
        along!(EllWarpPerRowPadded, (4, (32, 4)), { width: width });
        // Hacks of one row: its slots side by side, at 64-bit offsets.
        let offsets: Vec<u64> = (0..=u64::from(ROWS)).map(|row| 4 * (before + row)).collect();
        let offsets = tail.emulator.alloc_from(&offsets);
        tail.check::<HllThreadPerRow<f64>>(1, block, 0, |tail, x, y| HllThreadPerRow {
            rows: tail.rows(),
            hack_size: 1,
            block_offsets: far(&offsets, before),
            row_lengths: lengths(),
            col_indices: far(&along, 4 * before),
            values: far(&along_values, 4 * before),
            x,
            y,
        });
    }
}

/// Elements of Y that 32 bits number, 2^31 of them and more.
#[test]
fn csr_spmm() {
    use spmm::*;
    let strides = Strides { row: 2, column: 1 };
    let far_pointers = far_mut::<u32>;
    for (row, entry) in [(1 << 30, 0xf7ff_0000), ((1 << 31) - 2048, 5)] {
        let tail = Tail::new(row, entry);
        macro_rules! check {
            ($name:ident, $shape:expr, $shared:expr, $pointers:ident $(, $field:ident: $value:expr)*) => {
                csr!(tail, $name<f64>, $name, 2, $shape, $shared,
                    { k: 2, x_strides: strides, y_strides: strides $(, $field: $value)* }, $pointers)
            };
        }
        check!(CsrThreadPerElementV1, (256, (256, 1)), 0, far_pointers);
        check!(CsrThreadPerElementV2, (256, (256, 1)), 0, far_pointers);
        check!(CsrThreadPerElementV3, (256, (256, 1)), 0, far);
        let shared = shared_sum_bytes::<f64>(1024);
        check!(CsrSubwarpPerElement, (256, (1024, 1)), shared, far, lanes: 4);
        check!(CsrWarpPerElement, (32, (1024, 1)), shared, far);
        // A grid over rows.
        let (pointers, columns) = (tail.pointers(), &tail.columns);
        let pointers = tail.emulator.alloc_from(&pointers);
        let columns = tail.emulator.alloc_from(columns);
        let values = tail.emulator.alloc_from(&tail.values);
        let entry = u64::from(entry);
        // Items are elements of Y: 2 of them for each of 32 rows.
        tail.check::<CsrWarpPerRow<f64>>(2, (64, (1024, 1)), shared, |tail, x, y| CsrWarpPerRow {
            rows: tail.rows(),
            k: 2,
            pointers: far(&pointers, u64::from(row)),
            col_indices: far(&columns, entry),
            values: far(&values, entry),
            x,
            x_strides: strides,
            y,
            y_strides: strides,
        });
    }
}
