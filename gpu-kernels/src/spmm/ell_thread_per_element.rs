//! ELLPACK, row-major, one thread per element of Y (R4 4.3, ELLPACK_kernel).
//!
//! t = i k + j; Y[i, j] = sum over s of values[i pitch + s] X[col_ind[i pitch + s], j]
//!
//! With row lengths s ends at the row's own length, without them at the width of the matrix. In the
//! second case a sum that is not finite is computed again up to the length, because padding may
//! have been multiplied by an infinite element of X.

use super::strides::Strides;
use crate::device::{DevicePtr, Output, Real, divide, thread};
use crate::kernel::kernel;

/// The sum of the stored elements `first`, `first + step`, ... below `elements` of the row at `base`.
#[inline(always)]
pub(super) fn element_sum<T: Real>(
    col_ind: DevicePtr<u32>,
    values: DevicePtr<T>,
    (x, x_strides, column): (DevicePtr<T>, Strides, u32),
    base: u64,
    (first, elements, step): (u32, u32, u32),
) -> T {
    let mut sum = T::ZERO;
    let mut element = first;
    while element < elements {
        let at = base + u64::from(element);
        sum = values.load(at).mul_add(x.load(x_strides.index(col_ind.load(at), column)), sum);
        element += step;
    }
    sum
}

kernel! {
    /// `ell-thread-per-element`. Walks the padding when `padded` is not 0. Grid: at least rows x k
    /// threads, one-dimensional.
    pub fn spmm_ell_thread_per_element<T: Real>(
        rows: u32,
        k: u32,
        width: u32,
        pitch: u64,
        padded: u32,
        row_lengths: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        x_strides: Strides,
        y: Output<T>,
        y_strides: Strides,
    ) {
        let row = divide(thread::index_1d(), k);
        let column = thread::index_1d() - row * k;
        if row < rows {
            let (x, base) = ((x, x_strides, column), u64::from(row) * pitch);
            let elements = if padded != 0 { width } else { row_lengths.load(row) };
            let mut sum = element_sum(col_ind, values, x, base, (0, elements, 1));
            if padded != 0 && !sum.is_finite() {
                sum = element_sum(col_ind, values, x, base, (0, row_lengths.load(row), 1));
            }
            y.store(y_strides.index(row, column), sum);
        }
    }
    as EllThreadPerElement
}
