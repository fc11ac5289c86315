//! y[i] = alpha y[i]

use super::index;
use crate::device::DevicePtrMut;
use crate::kernel::kernel;

kernel! {
    /// Multiplies `y` by a number. Grid: at least one thread per element, one-dimensional.
    pub fn vector_scale<T: Number>(length: u64, alpha: T, y: DevicePtrMut<T>) {
        let i = index();
        if i < length {
            y.store(i, y.load(i).scaled(alpha));
        }
    }
    as VectorScale
}
