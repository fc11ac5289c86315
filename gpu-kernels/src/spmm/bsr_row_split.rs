//! BSR SpMM, lanes across the columns of X (own; slices as in Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014):
//! Y_I = sum_J A_IJ X_J.
//!
//! A group of c lanes takes a block row of b rows: a lane sums all b rows for its columns of X, so that a row of X is
//! loaded once for b rows of A. The matrix has one lane for each block row (`convert/bsr.rs`): elements of
//! neighbouring block rows lie side by side.
//! - Neighbouring groups take neighbouring block rows: an element of a block comes in whole sectors, which the warps
//!   of a block share in L1.
//! - Neighbouring lanes take neighbouring columns of X, two in one 16-byte load of f64.

use super::columns::{Columns, Lane, multiply_add, zeros};
use super::strides::Strides;
use crate::convert::{SlicedBsr, SlicedRow};
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, Output, Real, thread};
use crate::kernel::kernel;

/// A statement for each row of a block, whose number is a constant in it: sums that a loop numbers would lie in memory.
macro_rules! each_row {
    ($rows:ident, |$r:ident| $statement:block) => {
        each_row!($rows, |$r| $statement, 0 1 2 3 4 5 6 7)
    };
    ($rows:ident, |$r:ident| $statement:block, $($number:literal)*) => {
        $(if $number < $rows {
            let $r: usize = $number;
            $statement
        })*
    };
}

impl<T: Real> SlicedBsr<T> {
    /// The sums of a block row for the columns of a lane; `AT_ONCE` rows of X are loaded before the first is used.
    #[inline(always)]
    // Indices: arrays behind iterators would not become registers.
    #[allow(clippy::needless_range_loop)]
    fn column_sums<const B: usize, const AT_ONCE: usize, const N: usize, const W: usize>(
        self,
        row: SlicedRow,
        columns: Lane<T, N, W>,
    ) -> [Columns<T, N>; B] {
        let mut sums = [zeros::<T, N>(); B];
        let last = self.cols - 1;
        let mut at = row.at(0);
        let mut values = self.first::<B>(row.place(0));
        let mut left = row.blocks;
        let mut first_col = self.first_cols.load_if(left > 0, at, 0);
        while left > 0 {
            // Of the next block: its rows of X wait for it.
            let next_col = self.first_cols.load_if(left > 1, at + WARP_SIZE, 0);
            // `AT_ONCE` divides `B`.
            for step in 0..B / AT_ONCE {
                // Beyond the last column there is only padding.
                let rows_of_x: [Columns<T, N>; AT_ONCE] = core::array::from_fn(|c| {
                    columns.load((first_col + (step * AT_ONCE + c) as u32).min(last))
                });
                for c in 0..AT_ONCE {
                    for r in 0..B {
                        let element = ((step * AT_ONCE + c) * B + r) as u32 * WARP_SIZE;
                        sums[r] = multiply_add(values.load(element), rows_of_x[c], sums[r]);
                    }
                }
            }
            left -= 1;
            first_col = next_col;
            at += WARP_SIZE;
            values = values.offset((B * B) as u32 * WARP_SIZE);
        }
        sums
    }

    #[inline(always)]
    fn multiply<const B: usize, const AT_ONCE: usize, const N: usize, const W: usize>(
        self,
        lanes: u32,
        k: u32,
        x: DevicePtr<T>,
        y: Output<T>,
        y_strides: Strides,
    ) {
        let shift = lanes.trailing_zeros();
        let me = thread::thread_idx_x();
        let position = thread::block_idx_x() * (thread::block_dim_x() >> shift) + (me >> shift);
        if position >= self.block_rows {
            return;
        }
        let columns = Lane::<T, N, W>::new(x, k, thread::block_idx_y(), lanes, me & (lanes - 1));
        let row = self.row(position);
        let sums = self.column_sums::<B, AT_ONCE, N, W>(row, columns);
        let first_row = row.block_row * B as u32;
        let rows = (B as u32).min(self.rows - first_row);
        // An element of X that is not finite leaves no sum of its column finite, in any row of the block: where that is
        // padding, 0 x inf is NaN.
        let finite = sums[0].iter().all(|pair| pair[0].is_finite() & pair[1].is_finite());
        if self.full == 0 && !finite {
            for r in 0..rows {
                let add = |value: T, col: u32, sum: Columns<T, N>| {
                    multiply_add(value, columns.load(col), sum)
                };
                let sum = self.sum_of_entries::<B, _>(row, r, zeros(), add);
                columns.store(y, y_strides, first_row + r, sum);
            }
            return;
        }
        each_row!(B, |r| {
            if (r as u32) < rows {
                columns.store(y, y_strides, first_row + r as u32, sums[r]);
            }
        });
    }
}

/// The kernels for blocks of `$size` x `$size`, with `$at_once` rows of X in flight for a lane.
macro_rules! of_size {
    ($size:literal: $($(#[$meta:meta])* $name:ident $marker:ident $at_once:literal $loads:literal $width:literal;)*) => {$(
        kernel! {
            $(#[$meta])*
            ///
            /// Blocks have as many rows and columns as the name says; arrays as in `convert/bsr.rs`, with one lane
            /// for each block row. `full` is not 0 if there are no masks, because all elements are entries.
            /// There is an entry. X is row-major. Groups of `lanes` lanes, a power of two up to 32. Block: a multiple
            /// of 32 up to [`crate::spmm::COLUMN_THREADS`]; grid: at least as many groups as block rows in x, column tiles in y.
            pub fn $name<T: Real>(
                rows: u32,
                cols: u32,
                k: u32,
                lanes: u32,
                block_rows: u32,
                full: u32,
                order: DevicePtr<u32>,
                starts: DevicePtr<u32>,
                first_cols: DevicePtr<u32>,
                masks: DevicePtr<u64>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                y: Output<T>,
                y_strides: Strides,
            ) {
                let a = SlicedBsr {
                    rows,
                    cols,
                    block_rows,
                    log_lanes: 0,
                    full,
                    order,
                    starts,
                    first_cols,
                    masks,
                    values,
                };
                a.multiply::<$size, $at_once, $loads, $width>(lanes, k, x, y, y_strides);
            }
            as $marker
        }
    )*};
}

macro_rules! sizes {
    ($($size:literal, [$one:literal $two:literal $four:literal]:
        $name_1:ident $Name1:ident $name_2:ident $Name2:ident $name_4:ident $Name4:ident;)*) => {$(
        of_size! {
            $size:
            /// `bsr-row-split[columns=1]`: any k.
            $name_1 $Name1 $one 1 1;
            /// `bsr-row-split[columns=2]`: k even.
            $name_2 $Name2 $two 1 2;
            /// `bsr-row-split[columns=4]`: k even.
            $name_4 $Name4 $four 2 2;
        }
    )*};
}

sizes! {
    2, [2 2 2]: spmm_bsr_2_1 BsrRowSplit2x1 spmm_bsr_2_2 BsrRowSplit2x2 spmm_bsr_2_4 BsrRowSplit2x4;
    3, [3 3 3]: spmm_bsr_3_1 BsrRowSplit3x1 spmm_bsr_3_2 BsrRowSplit3x2 spmm_bsr_3_4 BsrRowSplit3x4;
    4, [4 4 2]: spmm_bsr_4_1 BsrRowSplit4x1 spmm_bsr_4_2 BsrRowSplit4x2 spmm_bsr_4_4 BsrRowSplit4x4;
    5, [5 5 1]: spmm_bsr_5_1 BsrRowSplit5x1 spmm_bsr_5_2 BsrRowSplit5x2 spmm_bsr_5_4 BsrRowSplit5x4;
    6, [6 3 2]: spmm_bsr_6_1 BsrRowSplit6x1 spmm_bsr_6_2 BsrRowSplit6x2 spmm_bsr_6_4 BsrRowSplit6x4;
    8, [4 4 1]: spmm_bsr_8_1 BsrRowSplit8x1 spmm_bsr_8_2 BsrRowSplit8x2 spmm_bsr_8_4 BsrRowSplit8x4;
}
