//! Holding a stream while launches are put into it.

use crate::device::thread;
use crate::kernel::kernel;

kernel! {
    /// Ends so many nanoseconds after it began. Grid: one thread.
    pub fn timing_hold(nanoseconds: u32) {
        let start = thread::global_timer();
        // A look at the clock takes more than a nanosecond: a clock that stands still is not waited for.
        let mut looks = 0;
        while looks < nanoseconds && thread::global_timer().wrapping_sub(start) < nanoseconds {
            looks += 1;
        }
    }
    as Hold
}
