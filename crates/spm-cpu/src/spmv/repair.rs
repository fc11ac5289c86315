//! Recomputes rows whose result is not finite, because padding may be the cause: 0 x inf is NaN,
//! and a sum of elements of x may overflow.

use std::ops::Range;

use spm_formats::{CsrView, Scalar};

use super::row;

/// Whether some element is infinite or NaN.
pub(super) fn any_not_finite<T: Scalar>(y: &[T]) -> bool {
    // 0 x v is NaN for these and no others.
    let sum = y.iter().fold(T::ZERO, |sum, &v| sum + v * T::ZERO);
    sum != T::ZERO
}

/// Overwrites each element of y that is not finite with the sum of its row, computed from CSR; `y`
/// holds only `rows`.
#[cold]
pub(super) fn repair<T: Scalar>(a: &CsrView<'_, T>, rows: Range<usize>, x: &[T], y: &mut [T]) {
    for (y, row) in y.iter_mut().zip(rows) {
        if !y.is_finite() {
            *y = row::dot_row(a, row, x);
        }
    }
}
