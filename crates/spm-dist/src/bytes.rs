//! Numbers as the bytes of messages, and back. All ranks have the same byte order.

use spm_formats::Scalar;

/// A number of messages besides matrix elements.
///
/// # Safety
/// No padding, and every bit pattern is a value.
pub(crate) unsafe trait Index: Copy + Default {}
// SAFETY: integers.
unsafe impl Index for u32 {}
// SAFETY: integers.
unsafe impl Index for u64 {}

/// # Safety
/// `T` has no padding.
unsafe fn bytes_of<T>(numbers: &[T]) -> &[u8] {
    // SAFETY: the same memory; its bytes are initialised, by the caller's promise.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

/// # Safety
/// Every bit pattern is a `T`, and `T` has no padding.
unsafe fn copied<T: Copy + Default>(bytes: &[u8]) -> Vec<T> {
    assert!(bytes.len().is_multiple_of(size_of::<T>()), "{} bytes", bytes.len());
    let mut numbers = vec![T::default(); bytes.len() / size_of::<T>()];
    // SAFETY: as many bytes as the numbers have, which may be any, by the caller's promise.
    unsafe { bytes.as_ptr().copy_to_nonoverlapping(numbers.as_mut_ptr().cast(), bytes.len()) };
    numbers
}

/// The bytes of matrix elements.
pub(crate) fn of_scalars<T: Scalar>(numbers: &[T]) -> &[u8] {
    // SAFETY: `Scalar` is sealed: one or two floating point numbers.
    unsafe { bytes_of(numbers) }
}

/// Matrix elements of their bytes.
///
/// # Panics
/// When the bytes are no whole number of elements.
pub(crate) fn to_scalars<T: Scalar>(bytes: &[u8]) -> Vec<T> {
    // SAFETY: `Scalar` is sealed: one or two floating point numbers.
    unsafe { copied(bytes) }
}

/// The bytes of indices.
pub(crate) fn of_indices<I: Index>(numbers: &[I]) -> &[u8] {
    // SAFETY: the promise of `Index`.
    unsafe { bytes_of(numbers) }
}

/// Indices of their bytes.
///
/// # Panics
/// When the bytes are no whole number of indices.
pub(crate) fn to_indices<I: Index>(bytes: &[u8]) -> Vec<I> {
    // SAFETY: the promise of `Index`.
    unsafe { copied(bytes) }
}

/// The buffer of a channel: bytes that are aligned for every element type.
#[derive(Debug)]
pub(crate) struct Buffer {
    storage: Vec<u128>,
    bytes: usize,
}

impl Buffer {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { storage: vec![0; bytes.div_ceil(size_of::<u128>())], bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: integers have no padding; there are at least so many bytes.
        unsafe { std::slice::from_raw_parts(self.storage.as_ptr().cast(), self.bytes) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; every bit pattern is an integer, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.storage.as_mut_ptr().cast(), self.bytes) }
    }
}

/// Matrix elements in the bytes of a [`Buffer`].
///
/// # Panics
/// When the bytes are not aligned, or no whole number of elements.
pub(crate) fn scalars<T: Scalar>(bytes: &[u8]) -> &[T] {
    check::<T>(bytes);
    // SAFETY: aligned and as long, as checked; `Scalar` is sealed: one or two floating point numbers.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / T::BYTES) }
}

/// As [`scalars`], to write to.
///
/// # Panics
/// As [`scalars`].
pub(crate) fn scalars_mut<T: Scalar>(bytes: &mut [u8]) -> &mut [T] {
    check::<T>(bytes);
    // SAFETY: as in `scalars`; the borrow is exclusive.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / T::BYTES) }
}

fn check<T>(bytes: &[u8]) {
    assert!(bytes.as_ptr().cast::<T>().is_aligned(), "the buffer is not aligned");
    assert!(bytes.len().is_multiple_of(size_of::<T>()), "{} bytes", bytes.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_from_unaligned_bytes() {
        let mut bytes = vec![0];
        bytes.extend_from_slice(of_indices(&[1_u64, u64::MAX]));
        assert_eq!(to_indices::<u64>(&bytes[1..]), [1, u64::MAX]);
        assert_eq!(to_scalars::<f64>(of_scalars(&[1.5, -2.0])), [1.5, -2.0]);
    }

    #[test]
    fn a_buffer_is_read_as_it_was_written() {
        let mut buffer = Buffer::new(24);
        scalars_mut::<f64>(buffer.bytes_mut()).copy_from_slice(&[1.0, 2.0, 3.0]);
        assert_eq!(scalars::<f64>(&buffer.bytes()[8..]), [2.0, 3.0]);
    }

    #[test]
    #[should_panic(expected = "20 bytes")]
    fn a_broken_element_is_refused() {
        scalars::<f64>(Buffer::new(20).bytes());
    }
}
