//! How an operator is planned.

use std::sync::Arc;
use std::time::Instant;

use spm_cpu::Threads;
use spm_cpu::machine::{Rates, RatesFile};
use spm_formats::{Csr, MemoryBudget, Scalar};

use crate::cpu::Cpu;
#[cfg(feature = "gpu")]
use crate::device::{Device, Place};
use crate::engine::{Product, Resources};
#[cfg(feature = "gpu")]
use crate::gpu::{self, Planner};
use crate::operator::{Engine, Intent, Operator};
use crate::planning::{self, Chosen, Machine, Planned};
use crate::{Error, IntoCsr, ParseRecipeError, Reason, Recipe, pools};

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
    recipe: Option<Recipe>,
    /// Whether the recipe is for products with a vector alone.
    of_vectors: bool,
    intent: Intent,
    machine: Machine,
    pool: Pool,
    budget: MemoryBudget,
    /// The device, and what plans on a GPU.
    #[cfg(feature = "gpu")]
    device: Option<(Device, Planner<T>)>,
    #[cfg(feature = "gpu")]
    new_values: bool,
}

impl<T: Scalar> Builder<T> {
    pub(crate) fn new<A: IntoCsr<Scalar = T>>(a: A) -> Self {
        Self {
            matrix: a.into_csr(),
            recipe: None,
            of_vectors: false,
            intent: Intent::default(),
            machine: Machine::default(),
            pool: Pool::Shared(pools::all_cores()),
            budget: MemoryBudget::default(),
            #[cfg(feature = "gpu")]
            device: None,
            #[cfg(feature = "gpu")]
            new_values: false,
        }
    }

    /// Where the products run; CPU cores by default.
    ///
    /// On a GPU [`Builder::expected_products`] chooses between the product straight from CSR (for fewer
    /// than 20 products) and the fastest kernel, and [`Builder::deterministic`] chooses by the lengths of
    /// the rows. Rates, threads and pool are those of CPU cores. The budget is one of device memory.
    #[cfg(feature = "gpu")]
    pub fn device(mut self, device: Device) -> Self
    where
        T: spm_gpu::DeviceScalar,
    {
        self.device = Some((device, gpu::plan));
        self
    }

    /// Plans on a GPU for [`Operator::set_values`] from the start: values are stored at full width, and where
    /// a format changes their order also their positions, 4 bytes each. Without this the first new
    /// values may cost a second plan. On CPU cores every plan is ready for new values.
    #[cfg(feature = "gpu")]
    pub fn new_values(mut self) -> Self {
        self.new_values = true;
        self
    }

    /// The number of products that the operator will compute. [`Builder::build`] then makes the choice
    /// with the least time for planning and so many products, by the [model](crate#planning) of the
    /// machine: 1 product is computed straight from CSR, more may pay for a conversion, and many for a
    /// race of kernels.
    ///
    /// Without this number the operator begins straight from CSR and converts the matrix when the
    /// products so far make it likely that this pays.
    pub fn expected_products(mut self, count: u64) -> Self {
        self.intent.products = Some(count);
        self
    }

    /// Chooses by the structure of the matrix and the [rates](Builder::rates) of the machine alone, never
    /// by the clock, and in [`Builder::build`]: with the same rates two runs of a program choose alike,
    /// and their results have the same bits. 100 products are expected if
    /// [`Builder::expected_products`] says nothing else.
    pub fn deterministic(mut self) -> Self {
        self.intent.deterministic = true;
        self
    }

    /// Rates of the machine for all choices, in place of those in the [file](Builder::rates_file):
    /// `Rates::typical()` makes different machines choose alike.
    pub fn rates(mut self, rates: Rates) -> Self {
        self.machine.given = Some(rates);
        self
    }

    /// The file that keeps the rates of the machine between processes, or [`RatesFile::none`]. By default it
    /// is `spm/rates` in the user's cache folder; the environment variable `SPM_RATES` is another path,
    /// or empty for no file. The machine is measured, in less than half a second, by the first operator
    /// whose expected products take more than two seconds; until then typical rates stand in, and all threads
    /// are used.
    pub fn rates_file(mut self, file: RatesFile) -> Self {
        self.machine.file = Some(file);
        self
    }

    /// Takes the kernel, parameters and number of threads of another operator's
    /// [`recipe`](Operator::recipe). A call of [`Builder::threads`] or [`Builder::pool`] after this
    /// one replaces the number of threads.
    pub fn recipe(mut self, recipe: Recipe) -> Self {
        self.pool = Pool::Shared(recipe.threads());
        (self.recipe, self.of_vectors) = (Some(recipe), false);
        self
    }

    /// Takes what an operator with the same options has chosen for y = A x, its
    /// [`recipe`](Operator::recipe), without choosing again. All other products run as that operator's do:
    /// on the builder's threads, not on those of the recipe.
    pub fn chosen(mut self, recipe: Recipe) -> Self {
        (self.recipe, self.of_vectors) = (Some(recipe), true);
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
    /// Those of the matrix ([`IntoCsr::into_csr`]); [`Error::Recipe`] for a recipe of another version or
    /// for another device; [`Error::Plan`] for a recipe that does not apply to this matrix; with the
    /// feature `gpu` also `Error::Gpu` for a GPU that is absent, fails or has too little memory.
    ///
    /// # Panics
    /// When the system refuses to start a thread.
    pub fn build(self) -> Result<Operator<T>, Error> {
        let a = self.matrix?;
        let start = Instant::now();
        #[cfg_attr(not(feature = "gpu"), allow(unused_mut, reason = "there is never a GPU"))]
        let mut no_gpu = None;
        #[cfg(feature = "gpu")]
        if let Some((device, plan)) = self.device
            && let Place::Gpu { gpu, required } =
                device.open(self.recipe.as_ref().map(Recipe::is_gpu))
        {
            let options = gpu::Options {
                recipe: self.recipe.clone(),
                intent: self.intent,
                budget: self.budget.clone(),
                new_values: self.new_values,
            };
            match gpu.map_err(Error::from).and_then(|gpu| plan(gpu, &a, options)) {
                Ok(products) => return Ok(Operator::from_parts(a, Engine::Gpu(products))),
                Err(error) if required => return Err(error),
                Err(error) => no_gpu = Some(gpu::reason(&error)),
            }
        }
        if self.recipe.as_ref().is_some_and(Recipe::is_gpu) {
            let reason = "the recipe is for a GPU, which `Builder::device` chooses".to_owned();
            return Err(Error::Recipe(ParseRecipeError::new(reason)));
        }
        let threads = match self.pool {
            Pool::Shared(count) => count,
            Pool::Own(ref threads) => threads.count(),
        };
        let small = pools::is_small(&a, threads);
        let is_free = self.recipe.is_none() || self.of_vectors;
        let threads = match self.pool {
            _ if small && is_free => pools::shared(1),
            Pool::Shared(count) => pools::shared(count),
            Pool::Own(threads) => threads,
        };
        let Self { recipe, of_vectors, intent, machine, budget, .. } = self;
        let resources = Resources { threads, budget };
        let chosen = match recipe {
            Some(recipe) => {
                let count = if of_vectors { recipe.threads() } else { resources.threads.count() };
                let product = Product::plan(&a, recipe.kernel(), &resources.on(count))?;
                Chosen::fixed(Planned::new(product, Reason::Recipe, start.elapsed()))
            }
            None => planning::choose(&a, &resources, &machine, intent, small, start)?,
        };
        let cpu = Cpu::new(chosen, resources, machine, intent, no_gpu);
        Ok(Operator::from_parts(a, Engine::Cpu(cpu)))
    }
}
