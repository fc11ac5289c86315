//! BSR SpMV, 1 to 32 lanes for each block row (own; slices as in Kreutzer et al., SIAM J. Sci. Comput. 36(5),
//! 2014): y_I = sum_J A_IJ x_J.
//!
//! Lane p of P sums the blocks p, p + P, ... of its block row, all rows of a block at once. The elements of the
//! blocks of 32 lanes lie side by side (`convert/bsr.rs`), so that a warp reads whole lines, b^2 of them for one
//! line of columns and b loads of x. A lane stops at its last block; what lies behind is not read.

use crate::convert::{SlicedBsr, SlicedRow};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, Number, Output, thread, warp};
use crate::kernel::kernel;

/// Threads of a block, at most: with 1024 there would be registers for half of the elements in flight.
pub const BSR_THREADS: u32 = 256;

impl<T: Number> SlicedBsr<T> {
    /// The sums of one lane of a block row; `W` columns are loaded before the first is used.
    #[inline(always)]
    // Indices: arrays behind iterators would not become registers.
    #[allow(clippy::needless_range_loop)]
    fn lane_sums<const B: usize, const W: usize>(
        self,
        row: SlicedRow,
        part: u32,
        x: DevicePtr<T>,
    ) -> [T; B] {
        let mut sums = [T::ZERO; B];
        if part >= row.blocks {
            return sums;
        }
        let last = self.cols - 1;
        let mut at = row.at(part);
        let mut values = self.first::<B>(row.place(part));
        let mut left = ((row.blocks - 1 - part) >> self.log_lanes) + 1;
        let mut first_col = self.first_cols.load_streaming(at);
        loop {
            // Of the next block: its elements of x wait for it.
            let next_col = self.first_cols.load_streaming_if(left > 1, at + WARP_SIZE, 0);
            // `W` divides `B`.
            for step in 0..B / W {
                let (mut loaded, mut of_x) = ([[T::ZERO; B]; W], [T::ZERO; W]);
                for c in 0..W {
                    let col = (step * W + c) as u32;
                    for r in 0..B {
                        let element = (col * B as u32 + r as u32) * WARP_SIZE;
                        loaded[c][r] = values.load_streaming(element);
                    }
                    // Beyond the last column there is only padding.
                    of_x[c] = x.load((first_col + col).min(last));
                }
                for c in 0..W {
                    for r in 0..B {
                        sums[r] = loaded[c][r].mul_add(of_x[c], sums[r]);
                    }
                }
            }
            if left == 1 {
                return sums;
            }
            left -= 1;
            first_col = next_col;
            at += WARP_SIZE;
            values = values.offset((B * B) as u32 * WARP_SIZE);
        }
    }

    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    fn product<const B: usize, const W: usize>(self, x: DevicePtr<T>, y: Output<T>) {
        let thread = thread::index_1d();
        let (position, part) = (thread >> self.log_lanes, thread & ((1 << self.log_lanes) - 1));
        let inside = position < self.block_rows;
        // Lanes beyond the last block row take part in the shuffles.
        let position = position.min(self.block_rows - 1);
        let row = self.row(position);
        let mut sums = self.lane_sums::<B, W>(row, part, x);
        for step in 0..self.log_lanes {
            sums = sums.map(|sum| sum + warp::shuffle_xor(FULL_MASK, sum, 1 << step, WARP_SIZE));
        }
        if !inside || part > 0 {
            return;
        }
        let first_row = row.block_row * B as u32;
        // Padding may have met an infinite x; 0 x inf is NaN.
        if self.full == 0 && !sums.iter().all(|sum| sum.is_finite()) {
            for r in 0..(B as u32).min(self.rows - first_row) {
                let add = |value: T, col: u32, sum: T| value.mul_add(x.load(col), sum);
                y.store(first_row + r, self.sum_of_entries::<B, T>(row, r, T::ZERO, add));
            }
            return;
        }
        for r in 0..B {
            if r as u32 + first_row < self.rows {
                y.store(first_row + r as u32, sums[r]);
            }
        }
    }
}

/// A kernel for blocks of `$size` x `$size`, with `$width` columns of a block in flight.
macro_rules! of_size {
    ($size:literal, $width:literal: $name:ident $Name:ident) => {
        kernel! {
            /// `bsr-subwarp-per-row` of blocks with as many rows and columns as the name says; arrays as in
            /// `convert/bsr.rs`. `full` is not 0 if there are no masks, because all elements are entries;
            /// 2^`log_lanes` lanes per block row. There is an entry. Block: a multiple of 32 up to [`BSR_THREADS`]; grid: at
            /// least as many lanes as the block rows have.
            pub fn $name<T: Number>(
                rows: u32,
                cols: u32,
                block_rows: u32,
                log_lanes: u32,
                full: u32,
                order: DevicePtr<u32>,
                starts: DevicePtr<u32>,
                first_cols: DevicePtr<u32>,
                masks: DevicePtr<u64>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                y: Output<T>,
            ) {
                let matrix = SlicedBsr {
                    rows,
                    cols,
                    block_rows,
                    log_lanes,
                    full,
                    order,
                    starts,
                    first_cols,
                    masks,
                    values,
                };
                matrix.product::<$size, $width>(x, y);
            }
            as $Name
        }
    };
}

of_size!(2, 2: spmv_bsr_2 Bsr2);
of_size!(3, 3: spmv_bsr_3 Bsr3);
of_size!(4, 4: spmv_bsr_4 Bsr4);
of_size!(5, 5: spmv_bsr_5 Bsr5);
of_size!(6, 3: spmv_bsr_6 Bsr6);
of_size!(8, 2: spmv_bsr_8 Bsr8);
