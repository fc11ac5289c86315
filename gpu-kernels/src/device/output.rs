//! Where a product stores its sums.

use super::{DevicePtrMut, Index, Number};

/// Where a product y = A x stores its sums: y itself, or an [`Output`]. Kernels that are fastest without
/// alpha and beta exist for both.
pub trait Sums<T>: Copy {
    /// What is added to element `index`, so that its load need not wait for the sum; 0 if nothing is.
    fn addend(self, index: impl Index) -> T;
    /// Element `index` from its sum and its [`Sums::addend`].
    fn store_with(self, index: impl Index, sum: T, addend: T);
}

impl<T: Number> Sums<T> for DevicePtrMut<T> {
    #[inline(always)]
    fn addend(self, _: impl Index) -> T {
        T::ZERO
    }

    #[inline(always)]
    fn store_with(self, index: impl Index, sum: T, _: T) {
        self.store_streaming(index, sum);
    }
}

/// y = alpha s + beta z for the sums s of a product y = A x; z may be y. With beta = 0 z is not read: it
/// may hold anything. The factors are the same for all threads and are looked at in a store only.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Output<T> {
    /// The factor of a sum.
    pub alpha: T,
    /// The factor of an element of z.
    pub beta: T,
    /// Only read, by the thread that then stores the element of y.
    pub z: DevicePtrMut<T>,
    /// Overwritten.
    pub y: DevicePtrMut<T>,
}

impl<T: Number> Sums<T> for Output<T> {
    #[inline(always)]
    fn addend(self, index: impl Index) -> T {
        if self.beta != T::ZERO { self.z.load(index) } else { T::ZERO }
    }

    #[inline(always)]
    fn store_with(self, index: impl Index, sum: T, addend: T) {
        let mut result = sum.scaled(self.alpha);
        if self.beta != T::ZERO {
            result = result.add_scaled(self.beta, addend);
        }
        self.y.store_streaming(index, result);
    }
}

impl<T: Number> Output<T> {
    /// Element `index` of y from its sum.
    #[inline(always)]
    pub fn store(self, index: impl Index, sum: T) {
        self.store_with(index, sum, self.addend(index));
    }

    /// Elements `index` and `index + 1`; `index` must be even.
    #[inline(always)]
    pub fn store_pair(self, index: u64, sums: [T; 2]) {
        let mut pair = sums.map(|sum| sum.scaled(self.alpha));
        if self.beta != T::ZERO {
            let z = T::load_written_pair(self.z, index);
            pair = [pair[0].add_scaled(self.beta, z[0]), pair[1].add_scaled(self.beta, z[1])];
        }
        T::store_pair_streaming(self.y, index, pair);
    }

    /// Adds another part of its sum to element `index`, which is stored.
    #[inline(always)]
    pub fn add(self, index: impl Index, sum: T) {
        self.y.store(index, self.y.load(index).add_scaled(self.alpha, sum));
    }

    /// Element `index` without a product: beta z.
    #[inline(always)]
    pub fn scale(self, index: impl Index) {
        let mut result = T::ZERO;
        if self.beta != T::ZERO {
            result = self.z.load(index).scaled(self.beta);
        }
        self.y.store_streaming(index, result);
    }

    /// y and z from element `index` on.
    #[inline(always)]
    pub fn offset(self, index: impl Index) -> Self {
        Self { z: self.z.offset(index), y: self.y.offset(index), ..self }
    }
}

/// y = s.
impl<T: Number> From<DevicePtrMut<T>> for Output<T> {
    #[inline(always)]
    fn from(y: DevicePtrMut<T>) -> Self {
        Self { alpha: T::ONE, beta: T::ZERO, z: y, y }
    }
}
