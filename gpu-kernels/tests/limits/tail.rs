//! The end of a large matrix.

use spm_gpu_kernels::device::{DevicePtr, DevicePtrMut, Element};
use spm_gpu_kernels::emulator::{EmuBuffer, Emulator, EmulatorOptions};
use spm_gpu_kernels::{Dim3, Kernel};

/// Rows that hold entries, the last ones.
pub(crate) const ROWS: u32 = 200;
/// Columns that have entries.
pub(crate) const COLS: u32 = 50;

/// Rows and entries before the tail: beyond 31 bits, and near the end of 32.
pub(crate) const PLACES: [(u32, u32); 3] =
    [(1 << 31, 8), (0x8765_4000, 0xfedc_0000 - 0x0800_0000), (0xf7ff_f000, 0xf7ff_0000)];

/// As if `before` elements stood before the first of the buffer.
pub(crate) fn far<T: Element>(buffer: &EmuBuffer<T>, before: impl Into<u64>) -> DevicePtr<T> {
    let before = before.into() * size_of::<T>() as u64;
    // SAFETY: the emulator checks every access.
    unsafe { DevicePtr::from_raw(buffer.ptr().as_raw().wrapping_sub(before)) }
}

/// The same for an array that is written.
pub(crate) fn far_mut<T: Element>(
    buffer: &EmuBuffer<T>,
    before: impl Into<u64>,
) -> DevicePtrMut<T> {
    // SAFETY: the emulator checks every access.
    unsafe { DevicePtrMut::from_raw(far(buffer, before).as_raw()) }
}

/// A device whose memory is as large as its addresses: what nobody touches takes none.
pub(crate) fn emulator() -> Emulator {
    Emulator::new(EmulatorOptions { memory: 1 << 40, ..EmulatorOptions::default() })
}

/// Runs the last `blocks` blocks of a grid.
pub(crate) fn launch_last<K: Kernel>(
    emulator: &Emulator,
    (grid, blocks): (impl Into<Dim3>, u64),
    block: impl Into<Dim3>,
    shared: u32,
    args: K::Args,
) {
    let emulator = emulator.with_last_blocks(blocks);
    let launched = emulator.launch::<K>(grid, block, shared, args);
    launched.unwrap_or_else(|error| panic!("{}: {error}", K::NAME));
}

/// Threads `items` of which the last `last` are looked at, one each: the grid, and its last blocks.
pub(crate) fn over(items: u64, last: u64, per_block: u64) -> (u32, u64) {
    let grid = items.div_ceil(per_block);
    (u32::try_from(grid).unwrap(), grid - (items - last) / per_block)
}

/// The last rows of a matrix with `first_row` rows and `first_entry` entries before them.
pub(crate) struct Tail {
    pub(crate) emulator: Emulator,
    pub(crate) first_row: u32,
    pub(crate) first_entry: u32,
    pub(crate) lengths: Vec<u32>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f64>,
    pub(crate) x: Vec<f64>,
    pub(crate) x_buffer: EmuBuffer<f64>,
}

impl Tail {
    pub(crate) fn new(first_row: u32, first_entry: u32) -> Self {
        Self::of(first_row, first_entry, (0..ROWS).map(|row| row * 7 % 5).collect(), 1)
    }

    /// With rows of these lengths, and columns `spread` times as far apart.
    pub(crate) fn of(first_row: u32, first_entry: u32, lengths: Vec<u32>, spread: u32) -> Self {
        let entries = lengths.iter().sum::<u32>();
        let x: Vec<f64> =
            (0..COLS * spread * 2).map(|i| f64::from((i % 1000) * 31 % 23) + 1.0).collect();
        let emulator = emulator();
        Self {
            x_buffer: emulator.alloc_from(&x),
            emulator,
            first_row,
            first_entry,
            lengths,
            columns: (0..entries).map(|entry| entry * 13 % COLS * spread).collect(),
            values: (0..entries).map(|entry| f64::from(entry % 9) - 3.0).collect(),
            x,
        }
    }

    /// With one value for all entries.
    pub(crate) fn equal(first_row: u32, first_entry: u32, value: f64) -> Self {
        let mut tail = Self::new(first_row, first_entry);
        tail.values.fill(value);
        tail
    }

    /// With columns that ascend in each row.
    pub(crate) fn ascending(first_row: u32, first_entry: u32) -> Self {
        let mut tail = Self::new(first_row, first_entry);
        let mut start = 0;
        for &length in &tail.lengths {
            let end = start + length as usize;
            tail.columns[start..end].sort_unstable();
            start = end;
        }
        tail
    }

    pub(crate) fn tail_rows(&self) -> u32 {
        self.lengths.len() as u32
    }

    pub(crate) fn rows(&self) -> u32 {
        self.first_row + self.tail_rows()
    }

    pub(crate) fn entries(&self) -> u32 {
        self.first_entry + self.values.len() as u32
    }

    /// Those of the tail, from `first_entry` on.
    pub(crate) fn row_ptr(&self) -> Vec<u32> {
        self.pointers_from(self.first_entry)
    }

    pub(crate) fn pointers_from(&self, first: u32) -> Vec<u32> {
        let mut end = first;
        let mut row_ptr = vec![end];
        for length in &self.lengths {
            end += length;
            row_ptr.push(end);
        }
        row_ptr
    }

    /// Pointers, columns and values on the device.
    pub(crate) fn csr(&self) -> (EmuBuffer<u32>, EmuBuffer<u32>, EmuBuffer<f64>) {
        let alloc = |words: &[u32]| self.emulator.alloc_from(words);
        (alloc(&self.row_ptr()), alloc(&self.columns), self.emulator.alloc_from(&self.values))
    }

    /// Row, column and value of each entry.
    pub(crate) fn triplets(&self) -> impl Iterator<Item = (u32, u32, f64)> {
        let rows = self.lengths.iter().zip(self.first_row..);
        let rows = rows.flat_map(|(&length, row)| (0..length).map(move |_| row));
        rows.zip(&self.columns)
            .zip(&self.values)
            .map(|((row, &column), &value)| (row, column, value))
    }

    /// Y = A X, X row-major with `k` columns: every sum is exact, in any order.
    pub(crate) fn expected(&self, k: usize) -> Vec<f64> {
        let mut y = vec![0.0; self.lengths.len() * k];
        for (row, column, value) in self.triplets() {
            for j in 0..k {
                y[(row - self.first_row) as usize * k + j] +=
                    value * self.x[column as usize * k + j];
            }
        }
        y
    }

    /// X of two columns, column by column.
    pub(crate) fn x_by_column(&self) -> EmuBuffer<f64> {
        let columns = [0, 1].map(|j| self.x.iter().skip(j).step_by(2).copied().collect::<Vec<_>>());
        self.emulator.alloc_from(&columns.concat())
    }

    /// Y of the tail before a product.
    pub(crate) fn y(&self, k: usize) -> EmuBuffer<f64> {
        self.emulator.alloc_from(&vec![f64::NAN; self.lengths.len() * k])
    }

    pub(crate) fn check_y<K: Kernel>(&self, y: &EmuBuffer<f64>, k: usize) {
        assert_eq!(y.to_vec(), self.expected(k), "{}", K::NAME);
    }

    /// Launches over all rows and compares the Y of the last ones.
    pub(crate) fn check<K: Kernel>(
        &self,
        k: usize,
        (items_per_block, block): (u32, (u32, u32)),
        shared: u32,
        args: impl FnOnce(&Self, DevicePtr<f64>, DevicePtrMut<f64>) -> K::Args,
    ) {
        let y = self.y(k);
        let before = u64::from(self.first_row) * k as u64;
        assert_eq!(before % u64::from(items_per_block), 0, "a block has rows of the tail only");
        let all = u64::from(self.rows()) * k as u64;
        let grid = over(all, all - before, items_per_block.into());
        let args = args(self, self.x_buffer.ptr(), far_mut(&y, before));
        launch_last::<K>(&self.emulator, grid, block, shared, args);
        self.check_y::<K>(&y, k);
    }
}
