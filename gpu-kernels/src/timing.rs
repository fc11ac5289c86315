//! Holding a stream while launches are put into it.

use crate::device::{DevicePtr, thread};
use crate::kernel::kernel;

kernel! {
    /// Ends once the word at `open`, which the host may write meanwhile, is not 0, or so many nanoseconds after it
    /// began. Grid: one thread.
    pub fn timing_hold(nanoseconds: u32, open: DevicePtr<u32>) {
        let start = thread::global_timer();
        // A look at the clock takes more than a nanosecond: a clock that stands still is not waited for.
        let mut looks = 0;
        while open.load_system(0u32) == 0
            && looks < nanoseconds
            && thread::global_timer().wrapping_sub(start) < nanoseconds
        {
            looks += 1;
        }
    }
    as Hold
}
