//! The kernels of `spm-cpu`: the only file that knows its registries.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use spm_cpu::{PlanOptions, Threads, spmm, spmv, transpose};
use spm_formats::kernel::{Footprint, Scaling, TransposeOutput, split_label};
use spm_formats::{Csr, DenseShape, MemoryBudget, NewValues, Replacement, Scalar};

use crate::{Error, ParseRecipeError, Recipe, pools};

/// The product straight from CSR: rows with about the same number of entries for each thread. The
/// sum of a row has the same bits on any number of threads.
const DIRECT: &str = "csr-nnz-balanced";
/// Y = A X straight from CSR.
const DIRECT_MANY: &str = "csr-blocked";
/// The fastest kernel by the clock.
const RACE: &str = "auto";
/// A transposition without a race, which one transposition would not pay for.
const TRANSPOSE: &str = "counting";
const TRANSPOSE_PARAMETERS: &str = "prefetch=64";

/// Seconds of short products that are timed.
const TIMING: f64 = 2e-4;

/// Threads and memory of a plan.
#[derive(Debug, Clone)]
pub(crate) struct Resources {
    pub(crate) threads: Threads,
    pub(crate) budget: MemoryBudget,
}

impl Resources {
    fn options(&self) -> PlanOptions {
        PlanOptions { threads: self.threads.clone(), budget: self.budget.clone() }
    }

    /// The same on `count` threads: the whole pool, or the calling thread.
    pub(crate) fn on(&self, count: usize) -> Self {
        let threads = match count == self.threads.count() {
            true => self.threads.clone(),
            false => pools::shared(count),
        };
        Self { threads, budget: self.budget.clone() }
    }

    /// The rest of the memory after `bytes` bytes.
    fn beside(&self, bytes: u64) -> Self {
        Self { threads: self.threads.clone(), budget: self.budget.beside(bytes) }
    }
}

/// A planned y = alpha A x + beta y.
pub(crate) struct Product<T> {
    plan: spmv::BoxedPlan<'static, T>,
    recipe: Recipe,
}

impl<T: Scalar> Product<T> {
    /// Straight from CSR.
    pub(crate) fn direct(a: &Arc<Csr<T>>, resources: &Resources) -> Result<Self, Error> {
        Self::plan(a, DIRECT, resources)
    }

    /// The fastest by the clock.
    pub(crate) fn raced(a: &Arc<Csr<T>>, resources: &Resources) -> Result<Self, Error> {
        Self::plan(a, RACE, resources)
    }

    /// With this kernel.
    pub(crate) fn plan(a: &Arc<Csr<T>>, label: &str, resources: &Resources) -> Result<Self, Error> {
        let wrong = |reason| Error::Recipe(ParseRecipeError::new(reason));
        let (id, text) = split_label(label);
        let kernel =
            spmv::find::<T>(id).ok_or_else(|| wrong(format!("there is no kernel {id:?}")))?;
        let parameters =
            kernel.info.parse_parameters(text).map_err(|error| wrong(error.to_string()))?;
        let plan = kernel.plan(a, &parameters, &resources.options())?;
        let threads = resources.threads.count();
        let recipe = match plan.choice() {
            Some(choice) => of_choice(&choice),
            None => Recipe::new(kernel.info.label(&parameters), threads),
        };
        Ok(Self { plan, recipe })
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    pub(crate) fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    /// Puts `values` into the matrix, which the plan, `others` and `a` share. Returns whether the plan takes
    /// them; if not, nothing has changed.
    pub(crate) fn set_values(
        &mut self,
        a: &mut Arc<Csr<T>>,
        values: Replacement<'_, T>,
        others: &mut Vec<spmm::BoxedPlan<'static, T>>,
    ) -> bool {
        self.plan.set_values(NewValues::together(a, values, others)).is_ok()
    }

    /// `y` = alpha A `x` + beta `y`. Checks the lengths.
    #[inline]
    pub(crate) fn run(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<(), Error> {
        Ok(self.plan.run_scaled(Scaling::new(alpha, beta), x, y)?)
    }

    /// See [`time`].
    pub(crate) fn time(&self, budget: &MemoryBudget) -> Option<f64> {
        time(&self.plan, budget)
    }

    /// `r` = `b` - A `x`. Checks the lengths.
    pub(crate) fn residual(&self, b: &[T], x: &[T], r: &mut [T]) -> Result<(), Error> {
        Ok(self.plan.run_adding(Scaling::new(-T::ONE, T::ONE), x, b, r)?)
    }
}

/// Seconds of the fastest of a few products with vectors, or nothing where the budget does not allow these.
fn time<T: Scalar>(plan: &spmv::BoxedPlan<'_, T>, budget: &MemoryBudget) -> Option<f64> {
    let (rows, cols) = plan.shape();
    budget.check_bytes("vectors to time", ((rows + cols) * T::BYTES) as u128).ok()?;
    let (x, mut y) = (vec![T::ONE; cols], vec![T::ZERO; rows]);
    let mut least = f64::INFINITY;
    // The first one may meet cold caches; short ones are disturbed more easily.
    let (mut calls, start) = (0, Instant::now());
    while calls < 3 || (start.elapsed().as_secs_f64() < TIMING && calls < 100) {
        let start = Instant::now();
        plan.run(black_box(&x), black_box(&mut y)).ok()?;
        least = least.min(start.elapsed().as_secs_f64());
        calls += 1;
    }
    Some(least)
}

/// The recipe of what `auto` says of its choice: `LABEL on N threads`, or a serial kernel's label.
fn of_choice(choice: &str) -> Recipe {
    let threads = |text: &str| text.split_once(' ')?.0.parse().ok();
    match choice.rsplit_once(" on ").and_then(|(label, text)| Some((label, threads(text)?))) {
        Some((label, threads)) => Recipe::new(label.to_owned(), threads),
        None => Recipe::new(choice.to_owned(), 1),
    }
}

/// A planned product straight from the CSR arrays of A, on which no recipe has a say.
pub(crate) struct DirectProduct<T> {
    plan: spmv::BoxedPlan<'static, T>,
}

impl<T: Scalar> DirectProduct<T> {
    /// Y = alpha A X + beta Y for one width and layout of X.
    pub(crate) fn many(
        a: &Arc<Csr<T>>,
        dense: DenseShape,
        resources: &Resources,
    ) -> Result<Self, Error> {
        let kernel = spmm::find::<T>(DIRECT_MANY).expect("a registered kernel");
        let parameters = kernel.info.defaults();
        Ok(Self { plan: kernel.plan(a, dense, &parameters, &resources.options())? })
    }

    /// y = alpha conj(A) x + beta y.
    pub(crate) fn conjugate(a: &Arc<Csr<T>>, resources: &Resources) -> Self {
        let plan = spm_cpu::conjugate::plan(a, &resources.options());
        Self { plan: plan.expect("a plan that needs no memory") }
    }

    /// y = alpha A^T x + beta y, or the same with A^H.
    pub(crate) fn transposed(
        a: &Arc<Csr<T>>,
        conjugate: bool,
        resources: &Resources,
    ) -> Result<Self, Error> {
        let options = resources.options();
        let plan = if conjugate {
            spm_cpu::transposed::plan_conjugate(a, &options)?
        } else {
            spm_cpu::transposed::plan(a, &options)?
        };
        Ok(Self { plan })
    }

    /// The plan, for new values.
    pub(crate) fn into_plan(self) -> spmm::BoxedPlan<'static, T> {
        self.plan
    }

    pub(crate) fn from_plan(plan: spmm::BoxedPlan<'static, T>) -> Self {
        Self { plan }
    }

    pub(crate) fn dense(&self) -> DenseShape {
        self.plan.dense()
    }

    pub(crate) fn plan_bytes(&self) -> u64 {
        self.plan.footprint().plan_bytes
    }

    /// See [`time`]; of a product with vectors.
    pub(crate) fn time(&self, budget: &MemoryBudget) -> Option<f64> {
        time(&self.plan, budget)
    }

    /// `Y` = alpha A `X` + beta `Y` with these leading dimensions, of a product made by
    /// [`DirectProduct::many`] for several columns. Checks the lengths.
    pub(crate) fn run_leading(
        &self,
        (alpha, beta): (T, T),
        x: &[T],
        y: &mut [T],
        leading: [usize; 2],
    ) -> Result<(), Error> {
        let run = self.plan.run_leading(Scaling::new(alpha, beta), x, y, leading);
        Ok(run.expect("a kernel for leading dimensions")?)
    }

    /// `y` = alpha times the product with `x`, + beta `y`. Checks the lengths.
    pub(crate) fn run(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<(), Error> {
        Ok(self.plan.run_scaled(Scaling::new(alpha, beta), x, y)?)
    }
}

/// The transpose of `a`, and what it leaves of the resources.
pub(crate) fn transposed<T: Scalar>(
    a: &Csr<T>,
    resources: &Resources,
) -> Result<(Arc<Csr<T>>, Resources), Error> {
    let kernel = transpose::find::<T>(TRANSPOSE).expect("a registered kernel");
    let parameters = kernel.info.parse_parameters(TRANSPOSE_PARAMETERS).expect("its parameters");
    let bytes = transposed_bytes(a);
    resources.budget.check_bytes("a transposed copy", bytes.into())?;
    let mut plan = kernel.plan(a.view(), &parameters, &resources.beside(bytes).options())?;
    let mut output = TransposeOutput::new(a.cols(), a.nnz());
    plan.run(&mut output)?;
    drop(plan);
    let TransposeOutput { col_ptr, row_ind, values } = output;
    let transpose = Csr::new((a.cols(), a.rows()), col_ptr, row_ind, values)?;
    Ok((Arc::new(transpose), resources.beside(bytes)))
}

/// Bytes of the transpose of `a` in CSR.
pub(crate) fn transposed_bytes<T: Scalar>(a: &Csr<T>) -> u64 {
    let entries = a.nnz() as u64 * (size_of::<u32>() + T::BYTES) as u64;
    (a.cols() as u64 + 1) * size_of::<u32>() as u64 + entries
}
