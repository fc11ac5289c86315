//! z[i] = x[i] y[i]

use super::index;
use crate::device::{DevicePtr, DevicePtrMut};
use crate::kernel::kernel;

kernel! {
    /// The product of two vectors, element by element. Grid: at least one thread per element,
    /// one-dimensional.
    pub fn vector_multiply<T: Number>(
        length: u64,
        x: DevicePtr<T>,
        y: DevicePtr<T>,
        z: DevicePtrMut<T>,
    ) {
        let i = index();
        if i < length {
            z.store(i, x.load(i) * y.load(i));
        }
    }
    as VectorMultiply
}
