//! Sums over the lanes of a warp.

use crate::device::{Real, warp};

/// The sum over each segment of `width` lanes (a power of two), on every lane of it.
///
/// The butterfly adds in an order that depends on nothing but `width`, and each lane adds the same
/// pairs: the result is bitwise the same on all lanes and from run to run.
#[inline(always)]
pub(crate) fn warp_sum<T: Real>(mask: u32, value: T, width: u32) -> T {
    let mut sum = value;
    let mut distance = width / 2;
    while distance > 0 {
        sum += warp::shuffle_xor(mask, sum, distance, width);
        distance /= 2;
    }
    sum
}
