//! Counts of allocations, for tests and examples of what allocates nothing.
//!
//! ```
//! use spm_testing::allocations::{self, Counting};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! let before = allocations::of_this_thread();
//! drop(std::hint::black_box(Box::new(1)));
//! assert_eq!(allocations::of_this_thread(), before + 1);
//! assert!(allocations::of_all_threads() > before);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

static OF_ALL: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OF_THIS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts allocations besides.
#[derive(Debug)]
pub struct Counting;

// SAFETY: the system's allocator, which counts besides.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Layout) -> *mut u8 {
        OF_ALL.fetch_add(1, Ordering::Relaxed);
        OF_THIS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, block: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, block) };
    }
}

/// Allocations so far of the calling thread; 0 where [`Counting`] is not the program's allocator.
pub fn of_this_thread() -> usize {
    OF_THIS.get()
}

/// Allocations so far of all threads; 0 where [`Counting`] is not the program's allocator.
pub fn of_all_threads() -> usize {
    OF_ALL.load(Ordering::Relaxed)
}
