//! The thread pools that operators share.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

use spm_cpu::Threads;
use spm_formats::Csr;

use crate::planning;

/// One pool for each number of threads that an operator has asked for.
static POOLS: Mutex<Vec<Threads>> = Mutex::new(Vec::new());

/// The pool of `count` threads that all operators share.
pub(crate) fn shared(count: usize) -> Threads {
    let count = count.max(1);
    // A list of pools is whole after a panic: one that cannot start is not in it.
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.iter().find(|pool| pool.count() == count) {
        return pool.clone();
    }
    let pool = Threads::new(count);
    pools.push(pool.clone());
    pool
}

/// The threads of an operator without options: all cores, or the calling thread for a small matrix.
pub(crate) fn for_matrix<T>(a: &Csr<T>) -> Threads {
    let threads = all_cores();
    shared(if planning::is_small(a, threads) { 1 } else { threads })
}

/// The cores that this process may use.
pub(crate) fn all_cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
