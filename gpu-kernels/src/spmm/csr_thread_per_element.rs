//! CSR, one thread per element of Y, in the three versions of R4 3.3.
//!
//! t = i k + j; Y[i, j] = sum over the entries e of row i of values[e] X[col_ind[e], j]
//!
//! Version 1 adds in memory, version 2 in a register, version 3 also reads the bounds of the row
//! once, before the loop. The first two read the end of the row at every step, as the report's
//! source does: `row_ptr` is writable for them, or the compiler would do version 3's hoisting.

use super::strides::Strides;
use crate::device::{DevicePtr, DevicePtrMut, Output, divide, thread};
use crate::kernel::kernel;

kernel! {
    /// `csr-thread-per-element-v1`. Grid: at least rows x k threads, one-dimensional.
    pub fn spmm_csr_thread_per_element_v1<T: Real>(
        rows: u32,
        k: u32,
        row_ptr: DevicePtrMut<u32>,
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
            let target = y_strides.index(row, column);
            let scaled = y.beta != T::ZERO || y.alpha != T::ONE;
            let before = if y.beta != T::ZERO { y.z.load(target) } else { T::ZERO };
            let Output { y, alpha, beta, .. } = y;
            y.store(target, T::ZERO);
            let mut e = row_ptr.load(row);
            while e < row_ptr.load(row + 1) {
                let x = x.load(x_strides.index(col_ind.load(e), column));
                y.store(target, values.load(e).mul_add(x, y.load(target)));
                e += 1;
            }
            if scaled {
                y.store(target, beta.mul_add(before, alpha * y.load(target)));
            }
        }
    }
    as CsrThreadPerElementV1
}

kernel! {
    /// `csr-thread-per-element-v2`. Grid: at least rows x k threads, one-dimensional.
    pub fn spmm_csr_thread_per_element_v2<T: Real>(
        rows: u32,
        k: u32,
        row_ptr: DevicePtrMut<u32>,
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
            let mut sum = T::ZERO;
            let mut e = row_ptr.load(row);
            while e < row_ptr.load(row + 1) {
                let x = x.load(x_strides.index(col_ind.load(e), column));
                sum = values.load(e).mul_add(x, sum);
                e += 1;
            }
            y.store(y_strides.index(row, column), sum);
        }
    }
    as CsrThreadPerElementV2
}

kernel! {
    /// `csr-thread-per-element-v3`. Grid: at least rows x k threads, one-dimensional.
    pub fn spmm_csr_thread_per_element_v3<T: Real>(
        rows: u32,
        k: u32,
        row_ptr: DevicePtr<u32>,
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
            let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
            let mut sum = T::ZERO;
            for e in start..end {
                let x = x.load(x_strides.index(col_ind.load(e), column));
                sum = values.load(e).mul_add(x, sum);
            }
            y.store(y_strides.index(row, column), sum);
        }
    }
    as CsrThreadPerElementV3
}
