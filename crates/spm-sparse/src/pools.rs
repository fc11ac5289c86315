//! The thread pools that operators share.

use std::num::NonZero;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use spm_cpu::machine::Rates;
use spm_cpu::{Threads, spmv};
use spm_formats::Csr;

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
    shared(if is_small(a, threads) { 1 } else { threads })
}

/// Whether a product takes so little that waking another thread would take longer.
pub(crate) fn is_small<T>(a: &Csr<T>, threads: usize) -> bool {
    spmv::one_thread_suffices(a.rows(), a.nnz(), threads.max(2), &Rates::typical())
}

/// The cores that this process may use, as they were at the first call: to ask the system takes longer
/// than a small product.
pub(crate) fn all_cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}
