//! The common part of the kernels for padded formats.
//!
//! A padding element has value 0 and a column of the row. It adds nothing unless x is infinite or
//! NaN there. A kernel that multiplies the padding therefore checks its sum: if it is not finite,
//! the row is computed again up to its length.

use crate::device::{DevicePtr, Number};

/// The sum of values[s] x[col_ind[s]] over `elements` stored elements, the first at `first`, `stride`
/// apart.
#[inline(always)]
pub(crate) fn element_sum<T: Number>(
    col_ind: DevicePtr<u32>,
    values: DevicePtr<T>,
    x: DevicePtr<T>,
    first: u64,
    stride: u64,
    elements: u32,
) -> T {
    let mut sum = T::ZERO;
    let mut element = first;
    for _ in 0..elements {
        sum = values.load(element).mul_add(x.load(col_ind.load(element)), sum);
        element += stride;
    }
    sum
}
