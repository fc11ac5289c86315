//! MergeTrans: the entries sorted by column, in segments and merges (R3 III-D; Wang, Liu, Hou,
//! Feng, ICS 2016, algorithm 2). What is here is only what the procedures do not do.
//!
//! A key is column << 32 | entry: keys are all different, and their order is the stable one.

use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

kernel! {
    /// The key of each entry. Grid: at least one thread for each.
    pub fn transpose_keys(
        entries: u32,
        col_ind: DevicePtr<u32>,
        keys: DevicePtrMut<u64>,
    ) {
        let k = thread::index_1d();
        if k < entries {
            keys.store(k, (u64::from(col_ind.load(k)) << 32) | u64::from(k));
        }
    }
    as Keys
}

kernel! {
    /// Row and value of the entry that each sorted key names. Grid: at least one thread for each.
    pub fn transpose_gather<T: Real>(
        entries: u32,
        keys: DevicePtr<u64>,
        rows: DevicePtr<u32>,
        values: DevicePtr<T>,
        row_ind: DevicePtrMut<u32>,
        sorted_values: DevicePtrMut<T>,
    ) {
        let i = thread::index_1d();
        if i < entries {
            let k = keys.load(i) as u32;
            row_ind.store(i, rows.load(k));
            sorted_values.store(i, values.load(k));
        }
    }
    as Gather
}

kernel! {
    /// Row of the entry that each sorted key names. Grid: at least one thread for each.
    pub fn transpose_gather_pattern(
        entries: u32,
        keys: DevicePtr<u64>,
        rows: DevicePtr<u32>,
        row_ind: DevicePtrMut<u32>,
    ) {
        let i = thread::index_1d();
        if i < entries {
            row_ind.store(i, rows.load(keys.load(i) as u32));
        }
    }
    as GatherPattern
}
