//! How an operator is planned.

use std::sync::Arc;
use std::time::Instant;

use spm_cpu::Threads;
use spm_formats::{Csr, MemoryBudget, Scalar};

use crate::engine::{Product, Resources};
use crate::operator::{Chosen, Operator};
use crate::{Error, IntoCsr, Reason, Recipe, pools};

/// Products that an operator expects unless [`Builder::expected_products`] says otherwise.
const EXPECTED: u64 = 100;
/// Entries up to which a product runs on the calling thread: waking another one takes longer.
const SMALL: usize = 1 << 13;
/// Products from which a race of kernels pays. Measured in four cases, it paid after 300 to 2100
/// products (the section on planning of the crate documentation).
const PAYS_FROM: u64 = 2000;

/// How the product is chosen.
#[derive(Debug, Clone)]
enum Choice {
    /// By the expected number of products.
    Expected(u64),
    /// By the structure alone.
    Deterministic,
    Recipe(Recipe),
}

/// Where the product runs.
#[derive(Debug, Clone)]
enum Pool {
    /// The shared pool of this many threads.
    Shared(usize),
    Own(Threads),
}

/// Options of an [`Operator`]; [`Operator::builder`] makes it.
///
/// ```
/// use spm::Operator;
///
/// let a = spm::from_triplets((2, 2), [(0_usize, 0_usize, 2.0), (1, 1, 3.0)])?;
/// let op = Operator::builder(a).expected_products(10_000).threads(2).build()?;
/// # Ok::<(), spm::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "`build` makes the operator"]
pub struct Builder<T> {
    matrix: Result<Arc<Csr<T>>, Error>,
    choice: Choice,
    pool: Pool,
    budget: MemoryBudget,
}

impl<T: Scalar> Builder<T> {
    pub(crate) fn new<A: IntoCsr<Scalar = T>>(a: A) -> Self {
        Self {
            matrix: a.into_csr(),
            choice: Choice::Expected(EXPECTED),
            pool: Pool::Shared(pools::all_cores()),
            budget: MemoryBudget::default(),
        }
    }

    /// The number of products that the operator will compute, as far as it is known. 100 by
    /// default. More products pay for more planning; the [crate documentation](crate#planning)
    /// says how much.
    pub fn expected_products(mut self, count: u64) -> Self {
        self.choice = Choice::Expected(count);
        self
    }

    /// Chooses by the structure of the matrix alone, never by the clock: two runs of a program
    /// choose alike, and their results have the same bits.
    pub fn deterministic(mut self) -> Self {
        self.choice = Choice::Deterministic;
        self
    }

    /// Takes the kernel, parameters and number of threads of another operator's
    /// [`recipe`](Operator::recipe). A call of [`Builder::threads`] or [`Builder::pool`] after this
    /// one replaces the number of threads.
    pub fn recipe(mut self, recipe: Recipe) -> Self {
        self.pool = Pool::Shared(recipe.threads());
        self.choice = Choice::Recipe(recipe);
        self
    }

    /// The number of threads, the calling thread included; all cores by default. 0 is taken as 1.
    /// Operators with the same number of threads share one pool.
    pub fn threads(mut self, count: usize) -> Self {
        self.pool = Pool::Shared(count);
        self
    }

    /// A thread pool of the caller's.
    pub fn pool(mut self, threads: Threads) -> Self {
        self.pool = Pool::Own(threads);
        self
    }

    /// The bytes that the operator may allocate beside the matrix, for each plan that it makes; 9 GiB
    /// by default.
    pub fn budget(mut self, bytes: u64) -> Self {
        self.budget = MemoryBudget::bytes(bytes);
        self
    }

    /// Makes the operator.
    ///
    /// # Errors
    /// Those of the matrix ([`IntoCsr::into_csr`]); [`Error::Recipe`] for a recipe of another
    /// version; [`Error::Plan`] for a recipe that does not apply to this matrix.
    ///
    /// # Panics
    /// When the system refuses to start a thread.
    pub fn build(self) -> Result<Operator<T>, Error> {
        let a = self.matrix?;
        let start = Instant::now();
        let small = a.nnz().max(a.rows()) <= SMALL;
        let by_recipe = matches!(self.choice, Choice::Recipe(_));
        let threads = match self.pool {
            // One thread is faster.
            _ if small && !by_recipe => pools::shared(1),
            Pool::Shared(count) => pools::shared(count),
            Pool::Own(threads) => threads,
        };
        let resources = Resources { threads, budget: self.budget };
        let (product, reason) = match &self.choice {
            Choice::Recipe(recipe) => {
                (Product::plan(&a, recipe.kernel(), &resources)?, Reason::Recipe)
            }
            Choice::Deterministic => (Product::direct(&a, &resources)?, Reason::Deterministic),
            Choice::Expected(_) if small => (Product::direct(&a, &resources)?, Reason::Small),
            &Choice::Expected(expected) if expected < PAYS_FROM => {
                let reason = Reason::Few { expected, pays_from: PAYS_FROM };
                (Product::direct(&a, &resources)?, reason)
            }
            &Choice::Expected(expected) => {
                let reason = Reason::Raced { expected, pays_from: PAYS_FROM };
                (Product::raced(&a, &resources)?, reason)
            }
        };
        let deterministic = matches!(self.choice, Choice::Deterministic);
        let chosen = Chosen { product, reason, planning: start.elapsed() };
        Ok(Operator::from_parts(a, chosen, resources, deterministic))
    }
}
