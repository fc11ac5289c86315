//! The values of a format from those of CSR, without converting again.
//!
//! A conversion moves values without looking at them. One of the numbers of the entries, as bits, tells
//! where each stored element comes from.

use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

/// The position of a stored element without an entry.
pub const NO_POSITION: u32 = u32::MAX;

kernel! {
    /// Instead of the value of entry k the bits of k + 1. Grid: at least one thread per entry,
    /// one-dimensional.
    pub fn convert_numbers<T: Number>(entries: u32, numbers: DevicePtrMut<T>) {
        let entry = thread::index_1d();
        if entry < entries {
            numbers.store(entry, T::from_word(u64::from(entry) + 1));
        }
    }
    as Numbers
}

kernel! {
    /// The entry of each of `elements` stored elements, from what became of the numbers of
    /// [`Numbers`]; [`NO_POSITION`] for padding, which has the bits 0. Grid: any, one-dimensional.
    pub fn convert_positions<T: Number>(
        elements: u64,
        numbers: DevicePtr<T>,
        positions: DevicePtrMut<u32>,
    ) {
        let threads = u64::from(thread::grid_dim_x()) * u64::from(thread::block_dim_x());
        let mut element = u64::from(thread::index_1d());
        while element < elements {
            positions.store(element, (numbers.load(element).to_word() as u32).wrapping_sub(1));
            element += threads;
        }
    }
    as Positions
}

kernel! {
    /// The values of stored elements whose positions are known; 0 for padding. Grid: any,
    /// one-dimensional.
    pub fn convert_values<T: Number>(
        elements: u64,
        positions: DevicePtr<u32>,
        values: DevicePtr<T>,
        to_values: DevicePtrMut<T>,
    ) {
        let threads = u64::from(thread::grid_dim_x()) * u64::from(thread::block_dim_x());
        let mut element = u64::from(thread::index_1d());
        while element < elements {
            let position = positions.load_streaming(element);
            to_values.store(element, values.load_if(position != NO_POSITION, position, T::ZERO));
            element += threads;
        }
    }
    as PlacedValues
}
