//! Options of a plan: thread pool and memory budget.

use spm_formats::MemoryBudget;

use crate::Threads;

/// The resources of a plan.
///
/// Each call of [`PlanOptions::default`] and [`PlanOptions::with_threads`] starts a new thread
/// pool; clones share it.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// The thread pool that runs the product.
    pub threads: Threads,
    /// What the plan may allocate.
    pub budget: MemoryBudget,
}

impl PlanOptions {
    /// `threads` threads (0 is taken as 1) and the default budget.
    ///
    /// # Panics
    /// When the system refuses to start a thread; so does [`PlanOptions::default`].
    pub fn with_threads(threads: usize) -> Self {
        Self { threads: Threads::new(threads), budget: MemoryBudget::default() }
    }

    /// The same thread pool with the rest of the budget after `bytes` bytes.
    pub(crate) fn beside(&self, bytes: u64) -> Self {
        Self { threads: self.threads.clone(), budget: self.budget.beside(bytes) }
    }
}

impl Default for PlanOptions {
    /// All cores of the process, and the default budget.
    fn default() -> Self {
        Self { threads: Threads::all_cores(), budget: MemoryBudget::default() }
    }
}
