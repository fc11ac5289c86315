//! What a plan is made with besides the matrix.

use spm_formats::MemoryBudget;

use crate::Threads;

/// Resources of a plan; one place instead of hidden globals.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// The team that runs the product.
    pub threads: Threads,
    /// What a padded format may take.
    pub budget: MemoryBudget,
}

impl PlanOptions {
    /// `threads` threads and the default budget.
    pub fn with_threads(threads: usize) -> Self {
        Self { threads: Threads::new(threads), budget: MemoryBudget::default() }
    }
}

impl Default for PlanOptions {
    /// All cores of the process, and the default budget.
    fn default() -> Self {
        Self { threads: Threads::all_cores(), budget: MemoryBudget::default() }
    }
}
