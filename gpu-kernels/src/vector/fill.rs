//! y[i] = value

use super::index;
use crate::device::DevicePtrMut;
use crate::kernel::kernel;

kernel! {
    /// Overwrites `y` with one value. Grid: at least one thread per element, one-dimensional.
    pub fn vector_fill<T: Number>(length: u64, value: T, y: DevicePtrMut<T>) {
        let i = index();
        if i < length {
            y.store(i, value);
        }
    }
    as VectorFill
}
