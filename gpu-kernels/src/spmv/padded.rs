//! What the padded formats share.
//!
//! A padding slot holds value 0 and a column of the row: it adds nothing, unless x is infinite or
//! NaN there and the row has no such entry of its own. So a kernel that walks the padding looks
//! at its sum: when that is not finite, it sums the row again, as far as its real length.

use crate::device::{DevicePtr, Real};

/// The sum of values[s] x[col_indices[s]] over `slots` slots, the first at `first`, `stride` apart.
#[inline(always)]
pub(crate) fn slot_sum<T: Real>(
    col_indices: DevicePtr<u32>,
    values: DevicePtr<T>,
    x: DevicePtr<T>,
    first: u64,
    stride: u64,
    slots: u32,
) -> T {
    let mut sum = T::ZERO;
    let mut slot = first;
    for _ in 0..slots {
        sum = values.load(slot).mul_add(x.load(col_indices.load(slot)), sum);
        slot += stride;
    }
    sum
}
