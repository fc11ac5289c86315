//! CSR SpMV with a second copy of the column indices in a fixed number of stored elements for each
//! thread, so that a thread loads them without waiting for row pointers (own; the stored elements are
//! those of ELLPACK). The kernel suits matrices whose product takes little more than a launch.
//!
//! Lane l of w has the entries l, l + w, ... of its row, the first 4 or 8 of them in stored elements.
//! A column has 16 bits where columns, or their distances from the row, fit; thread t reads the stored
//! elements
//!
//! ```text
//! 16 bits: words 4 t to 4 t + 3 (of 4 stored elements: 2 t, 2 t + 1), two stored elements in a word
//! 32 bits: words 4 t to 4 t + 3, stored elements 4 to 7 as many words further as the stored elements
//! 0 to 3 of all take
//! ```
//!
//! Values are read from CSR, and so are the entries of long rows that have no stored element.

use super::csr_subwarp_per_row::strided_sum;
use super::entries::{Entries, Equal, Stored};
use crate::collective::warp_sum;
use crate::device::warp::FULL_MASK;
use crate::device::{DevicePtr, Output, Real, thread};
use crate::kernel::kernel;

/// A stored element without an entry, in 16 and in 32 bits.
pub(crate) const NO_ENTRY: [u32; 2] = [0xffff, u32::MAX];
/// What is taken from a row to get the origin of its relative columns.
pub const COLUMN_BIAS: u32 = 1 << 15;

/// What the columns in 16 bits of a row count from; `relative` is all ones, or 0.
#[inline(always)]
pub(crate) fn column_origin(row: u32, relative: u32) -> u32 {
    row.wrapping_sub(COLUMN_BIAS) & relative
}

/// The columns of a thread's N stored elements, and whether there are any.
trait Columns<const N: usize>: Copy {
    fn load(self, thread: u32, row: u32) -> [(bool, u32); N];
}

#[derive(Clone, Copy)]
struct Columns16 {
    words: DevicePtr<u32>,
    relative: u32,
}

impl Columns16 {
    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    fn unpack<const N: usize>(self, row: u32, words: [u32; 4]) -> [(bool, u32); N] {
        let origin = column_origin(row, self.relative);
        let mut elements = [(false, 0); N];
        for s in 0..N {
            let word = words[s / 2];
            let offset = if s.is_multiple_of(2) { word & 0xffff } else { word >> 16 };
            elements[s] = (offset != NO_ENTRY[0], origin.wrapping_add(offset));
        }
        elements
    }
}

impl Columns<8> for Columns16 {
    #[inline(always)]
    fn load(self, thread: u32, row: u32) -> [(bool, u32); 8] {
        self.unpack(row, self.words.load_vector_streaming::<4>(u64::from(thread) * 4))
    }
}

impl Columns<4> for Columns16 {
    #[inline(always)]
    fn load(self, thread: u32, row: u32) -> [(bool, u32); 4] {
        let [low, high] = self.words.load_vector_streaming::<2>(u64::from(thread) * 2);
        self.unpack(row, [low, high, 0, 0])
    }
}

#[derive(Clone, Copy)]
struct Columns32 {
    words: DevicePtr<u32>,
}

impl Columns<8> for Columns32 {
    #[inline(always)]
    fn load(self, thread: u32, _: u32) -> [(bool, u32); 8] {
        let threads = u64::from(thread::grid_dim_x()) * u64::from(thread::block_dim_x());
        let first = u64::from(thread) * 4;
        let a = self.words.load_vector_streaming::<4>(first);
        let b = self.words.load_vector_streaming::<4>(first + 4 * threads);
        [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]].map(|c| (c != NO_ENTRY[1], c))
    }
}

impl Columns<4> for Columns32 {
    #[inline(always)]
    fn load(self, thread: u32, _: u32) -> [(bool, u32); 4] {
        let words = self.words.load_vector_streaming::<4>(u64::from(thread) * 4);
        words.map(|c| (c != NO_ENTRY[1], c))
    }
}

/// Where the values of entries come from.
trait ElementValues<T: Real>: Copy {
    /// The entries as they are in CSR.
    fn entries(self, col_ind: DevicePtr<u32>) -> impl Entries<T>;
    /// The values of the stored elements of a thread; `place` is its row, its lane and the lanes of a
    /// row.
    fn load<const N: usize>(
        self,
        row_ptr: DevicePtr<u32>,
        place: (u32, u32, u32),
        elements: [(bool, u32); N],
    ) -> [T; N];
}

impl<T: Real> ElementValues<T> for DevicePtr<T> {
    #[inline(always)]
    fn entries(self, col_ind: DevicePtr<u32>) -> impl Entries<T> {
        Stored { col_ind, values: self }
    }
    #[inline(always)]
    fn load<const N: usize>(
        self,
        row_ptr: DevicePtr<u32>,
        (row, lane, lanes): (u32, u32, u32),
        elements: [(bool, u32); N],
    ) -> [T; N] {
        let mut entry = row_ptr.load(row) + lane;
        elements.map(|(filled, _)| {
            let value = self.load_if(filled, entry, T::ZERO);
            entry += lanes;
            value
        })
    }
}

/// The value of all entries. It is finite, so that it counts for nothing in an empty stored element.
#[derive(Clone, Copy)]
struct All<T>(T);

impl<T: Real> ElementValues<T> for All<T> {
    #[inline(always)]
    fn entries(self, col_ind: DevicePtr<u32>) -> impl Entries<T> {
        Equal { col_ind, value: self.0 }
    }
    #[inline(always)]
    fn load<const N: usize>(
        self,
        _: DevicePtr<u32>,
        _: (u32, u32, u32),
        _: [(bool, u32); N],
    ) -> [T; N] {
        [self.0; N]
    }
}

/// What all of the kernels get.
#[derive(Clone, Copy)]
struct Rows {
    rows: u32,
    lanes: u32,
    /// 0 if the stored elements hold all entries.
    rest: u32,
    row_ptr: DevicePtr<u32>,
    col_ind: DevicePtr<u32>,
}

#[inline(always)]
// Indices: arrays behind iterators would not become registers.
#[allow(clippy::needless_range_loop)]
fn product<T: Real, const N: usize>(
    matrix: Rows,
    columns: impl Columns<N>,
    values: impl ElementValues<T>,
    x: DevicePtr<T>,
    y: Output<T>,
) {
    let Rows { rows, lanes, rest, row_ptr, col_ind } = matrix;
    let thread = thread::index_1d();
    let row = thread >> lanes.trailing_zeros();
    let lane = thread & (lanes - 1);
    // Beyond the last row stored elements are empty.
    let elements = columns.load(thread, row);
    let weights = values.load(row_ptr, (row.min(rows), lane, lanes), elements);
    let gathered = elements.map(|(filled, column)| x.load_if(filled, column, T::ZERO));
    let (mut even, mut odd) = (T::ZERO, T::ZERO);
    for s in 0..N {
        if s.is_multiple_of(2) {
            even = weights[s].mul_add(gathered[s], even);
        } else {
            odd = weights[s].mul_add(gathered[s], odd);
        }
    }
    let mut sum = even + odd;
    if rest != 0 && row < rows {
        let first = row_ptr.load(row) + N as u32 * lanes + lane;
        sum += strided_sum(values.entries(col_ind), x, first, row_ptr.load(row + 1), lanes);
    }
    let sum = warp_sum(FULL_MASK, sum, lanes);
    if row < rows && lane == 0 {
        y.store(row, sum);
    }
}

macro_rules! elements {
    ($elements:literal: $stored16:ident $Stored16:ident, $equal16:ident $Equal16:ident,
        $stored32:ident $Stored32:ident, $equal32:ident $Equal32:ident) => {
        kernel! {
            /// `csr-ell-columns` with this many stored elements of a thread, columns in 16 bits:
            /// relative to the row if `relative` is all ones, absolute if it is 0. `lanes` (a power of
            /// two up to 32) per row; `rest` is not 0 where rows have more entries than their stored
            /// elements. Block: a multiple of 32; grid: at least rows x lanes threads,
            /// one-dimensional, less than 2^32; there are stored elements for each thread of it.
            pub fn $stored16<T: Real>(
                rows: u32,
                lanes: u32,
                rest: u32,
                relative: u32,
                words: DevicePtr<u32>,
                row_ptr: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                y: Output<T>,
            ) {
                let matrix = Rows { rows, lanes, rest, row_ptr, col_ind };
                product::<T, $elements>(matrix, Columns16 { words, relative }, values, x, y);
            }
            as $Stored16
        }

        kernel! {
            /// The same where all entries have the value `value`, which is finite.
            pub fn $equal16<T: Real>(
                rows: u32,
                lanes: u32,
                rest: u32,
                relative: u32,
                words: DevicePtr<u32>,
                row_ptr: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                value: T,
                x: DevicePtr<T>,
                y: Output<T>,
            ) {
                let matrix = Rows { rows, lanes, rest, row_ptr, col_ind };
                product::<T, $elements>(matrix, Columns16 { words, relative }, All(value), x, y);
            }
            as $Equal16
        }

        kernel! {
            /// The same with columns in 32 bits.
            pub fn $stored32<T: Real>(
                rows: u32,
                lanes: u32,
                rest: u32,
                words: DevicePtr<u32>,
                row_ptr: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                y: Output<T>,
            ) {
                let matrix = Rows { rows, lanes, rest, row_ptr, col_ind };
                product::<T, $elements>(matrix, Columns32 { words }, values, x, y);
            }
            as $Stored32
        }

        kernel! {
            /// The same with columns in 32 bits where all entries have the value `value`, which is
            /// finite.
            pub fn $equal32<T: Real>(
                rows: u32,
                lanes: u32,
                rest: u32,
                words: DevicePtr<u32>,
                row_ptr: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                value: T,
                x: DevicePtr<T>,
                y: Output<T>,
            ) {
                let matrix = Rows { rows, lanes, rest, row_ptr, col_ind };
                product::<T, $elements>(matrix, Columns32 { words }, All(value), x, y);
            }
            as $Equal32
        }
    };
}

elements!(4: spmv_csr_ell_columns_4 CsrEllColumns4, spmv_csr_ell_columns_4_equal CsrEllColumns4Equal,
    spmv_csr_ell_columns_4_wide CsrEllColumns4Wide, spmv_csr_ell_columns_4_wide_equal CsrEllColumns4WideEqual);
elements!(8: spmv_csr_ell_columns_8 CsrEllColumns8, spmv_csr_ell_columns_8_equal CsrEllColumns8Equal,
    spmv_csr_ell_columns_8_wide CsrEllColumns8Wide, spmv_csr_ell_columns_8_wide_equal CsrEllColumns8WideEqual);
