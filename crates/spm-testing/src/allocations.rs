//! Counts of allocations and their bytes, for tests and examples of what allocates nothing, or little.
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
//! let (bytes, ()) = allocations::peak_of_this_thread(|| drop(std::hint::black_box(vec![1_u8; 1000])));
//! assert_eq!(bytes, 1000);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

static OF_ALL: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST_HELD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OF_THIS: Cell<usize> = const { Cell::new(0) };
    /// Bytes; negative where a thread frees what others have allocated.
    static HELD_BY_THIS: Cell<isize> = const { Cell::new(0) };
    static MOST_HELD_BY_THIS: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, which counts allocations and their bytes besides.
#[derive(Debug)]
pub struct Counting;

// SAFETY: the system's allocator, which counts besides.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Layout) -> *mut u8 {
        OF_ALL.fetch_add(1, Ordering::Relaxed);
        OF_THIS.with(|count| count.set(count.get() + 1));
        let held = HELD.fetch_add(block.size(), Ordering::Relaxed) + block.size();
        MOST_HELD.fetch_max(held, Ordering::Relaxed);
        let held = HELD_BY_THIS.get() + block.size() as isize;
        HELD_BY_THIS.set(held);
        MOST_HELD_BY_THIS.set(held.max(MOST_HELD_BY_THIS.get()));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, block: Layout) {
        HELD.fetch_sub(block.size(), Ordering::Relaxed);
        HELD_BY_THIS.set(HELD_BY_THIS.get() - block.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, block) };
    }
}

/// The most bytes that all threads hold at a time while `run` runs, beyond those held before; 0 where
/// [`Counting`] is not the program's allocator. One measurement at a time.
pub fn peak_of_all_threads<R>(run: impl FnOnce() -> R) -> (usize, R) {
    let before = HELD.load(Ordering::Relaxed);
    MOST_HELD.store(before, Ordering::Relaxed);
    let result = run();
    (MOST_HELD.load(Ordering::Relaxed).saturating_sub(before), result)
}

/// The most bytes that the calling thread holds at a time while `run` runs, beyond those held before: what it
/// has allocated less what it has freed; 0 where [`Counting`] is not the program's allocator.
pub fn peak_of_this_thread<R>(run: impl FnOnce() -> R) -> (usize, R) {
    let before = HELD_BY_THIS.get();
    MOST_HELD_BY_THIS.set(before);
    let result = run();
    ((MOST_HELD_BY_THIS.get() - before).max(0) as usize, result)
}

/// Allocations so far of the calling thread; 0 where [`Counting`] is not the program's allocator.
pub fn of_this_thread() -> usize {
    OF_THIS.get()
}

/// Allocations so far of all threads; 0 where [`Counting`] is not the program's allocator.
pub fn of_all_threads() -> usize {
    OF_ALL.load(Ordering::Relaxed)
}
