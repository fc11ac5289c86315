//! Conversion of CSR to the stored columns of `csr-ell-columns` ([`crate::spmv`]).

use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;
use crate::spmv::csr_ell_columns::{NO_ENTRY, column_origin};

kernel! {
    /// The words of each thread's `elements` (4 or 8) of a product with this launch. `wide` is 0 for 16
    /// bits, relative to the row if `relative` is all ones; `too_far` becomes 1 where they do not
    /// hold a column.
    pub fn convert_ell_columns(
        rows: u32,
        lanes: u32,
        elements: u32,
        wide: u32,
        relative: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        words: DevicePtrMut<u32>,
        too_far: DevicePtrMut<u32>,
    ) {
        let thread = thread::index_1d();
        let row = thread >> lanes.trailing_zeros();
        let lane = thread & (lanes - 1);
        let (mut next, mut end) = (0, 0);
        if row < rows {
            (next, end) = (row_ptr.load(row) + lane, row_ptr.load(row + 1));
        }
        let origin = column_origin(row, relative);
        let mut element = || {
            if next >= end {
                return NO_ENTRY[usize::from(wide != 0)];
            }
            let column = col_ind.load(next);
            next += lanes;
            if wide != 0 {
                return column;
            }
            let offset = column.wrapping_sub(origin);
            if offset >= NO_ENTRY[0] {
                too_far.store(0_u32, 1);
            }
            offset & 0xffff
        };
        let threads = u64::from(thread::grid_dim_x()) * u64::from(thread::block_dim_x());
        for quad in 0..elements / 4 {
            let [a, b, c, d] = [element(), element(), element(), element()];
            if wide != 0 {
                let at = u64::from(quad) * threads + u64::from(thread);
                words.store_vector::<4>(at * 4, [a, b, c, d]);
            } else {
                let at = u64::from(thread) * u64::from(elements / 2) + u64::from(2 * quad);
                words.store_vector::<2>(at, [a | b << 16, c | d << 16]);
            }
        }
    }
    as EllColumns
}
