//! y[i] = alpha x[i] + beta y[i]

use super::index;
use crate::device::{DevicePtr, DevicePtrMut};
use crate::kernel::kernel;

kernel! {
    /// y = alpha x + beta y; for beta = 0 y is not read. Grid: at least one thread per element,
    /// one-dimensional.
    pub fn vector_axpby<T: Number>(
        length: u64,
        alpha: T,
        x: DevicePtr<T>,
        beta: T,
        y: DevicePtrMut<T>,
    ) {
        let i = index();
        if i < length {
            let x = x.load(i);
            let sum = if beta == T::ZERO {
                x.scaled(alpha)
            } else {
                y.load(i).scaled(beta).add_scaled(alpha, x)
            };
            y.store(i, sum);
        }
    }
    as VectorAxpby
}
