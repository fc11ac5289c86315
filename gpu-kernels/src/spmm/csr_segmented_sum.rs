//! CSR SpMM by segmented sum over equal numbers of entries, for each column of a column-major X
//! (own).
//!
//! Block (piece, j) does for column j what `../spmv/csr_segmented_sum.rs` does for x. The blocks of one
//! piece follow each other, so that its entries come from L2 for all columns but one.

use crate::device::{DevicePtr, DevicePtrMut, Output, divide, thread};
use crate::kernel::kernel;
use crate::spmv::csr_segmented_sum::{Matrix, product};

macro_rules! segments {
    ($($(#[$meta:meta])* $name:ident $marker:ident $entries:literal;)*) => {$(
        kernel! {
            $(#[$meta])*
            ///
            /// X and Y are column-major, of `cols` and `rows` rows. Block:
            /// [`crate::spmv::SEGMENT_THREADS`]; grid: `pieces` x k blocks, the columns of a piece
            /// one after the other; `parts` has two elements for each block, `arrivals` one;
            /// all are 0 before and after. Shared memory: [`crate::spmv::csr_segmented_sum_shared_bytes`].
            pub fn $name<T: Real>(
                rows: u32,
                cols: u32,
                k: u32,
                pieces: u32,
                listed: u32,
                row_ids: DevicePtr<u32>,
                headers: DevicePtr<[u32; 4]>,
                warp_ranks: DevicePtr<u32>,
                flags: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                parts: DevicePtrMut<T>,
                arrivals: DevicePtrMut<u64>,
                y: Output<T>,
            ) {
                let piece = divide(thread::block_idx_x(), k);
                let column = thread::block_idx_x() - piece * k;
                let of_column = |pitch: u32| u64::from(column) * u64::from(pitch);
                let matrix =
                    Matrix { listed, row_ids, headers, warp_ranks, flags, col_ind, values };
                product::<T, _, $entries>(
                    matrix,
                    piece,
                    x.offset(of_column(cols)),
                    parts.offset(2 * of_column(pieces)),
                    arrivals.offset(of_column(pieces)),
                    y.offset(of_column(rows)),
                );
            }
            as $marker
        }
    )*};
}

segments! {
    /// `csr-segmented-sum[entries=4]`.
    spmm_csr_segmented_sum_4 CsrSegmentedSum4 4;
    /// `csr-segmented-sum[entries=8]`.
    spmm_csr_segmented_sum_8 CsrSegmentedSum8 8;
}
