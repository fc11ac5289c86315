//! The products of an operator on CPU cores.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use spm_formats::{Csr, DenseShape, Replacement, Scalar};

use crate::engine::{DirectProduct, Product, Resources};
use crate::many::Many;
use crate::operator::Intent;
use crate::planning::{Chosen, Machine, Planned};
use crate::transposed::{Setting, Transposed};
use crate::{Description, Error, Reason, Recipe};

/// The plans of an operator on CPU cores, and what further ones are made by.
pub(crate) struct Cpu<T> {
    resources: Resources,
    machine: Machine,
    intent: Intent,
    chosen: Chosen<T>,
    transposed: Transposed<T>,
    conjugate: OnceLock<DirectProduct<T>>,
    many: Many<DirectProduct<T>>,
    /// Why there is no GPU, where there was to be one.
    no_gpu: Option<String>,
}

impl<T: Scalar> Cpu<T> {
    pub(crate) fn new(
        chosen: Chosen<T>,
        resources: Resources,
        machine: Machine,
        intent: Intent,
        no_gpu: Option<String>,
    ) -> Self {
        let (transposed, conjugate) = (Transposed::new(), OnceLock::new());
        let many = Many::new();
        Self { resources, machine, intent, chosen, transposed, conjugate, many, no_gpu }
    }

    /// Bytes of the plans.
    pub(crate) fn memory_bytes(&self, a: &Csr<T>) -> u64 {
        let conjugate = self.conjugate.get().map_or(0, DirectProduct::plan_bytes);
        let many = self.many.sum(DirectProduct::plan_bytes);
        self.chosen.plan_bytes() + conjugate + self.transposed.memory_bytes(a) + many
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        self.chosen.now().product.recipe()
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.chosen.is_settled()
    }

    pub(crate) fn threads(&self) -> usize {
        self.resources.threads.count()
    }

    /// `plain`, and what else there is to say.
    pub(crate) fn describe(&self, a: &Csr<T>, plain: Description) -> Description {
        let planned = self.chosen.now();
        let predictions = self.machine.predict(a, &self.resources, 0);
        let expected = predictions.of(self.recipe().kernel()).map(|of| of.seconds);
        let device = match &self.no_gpu {
            Some(why) => format!("CPU cores, because no GPU can be used: {why}"),
            None => "CPU cores".to_owned(),
        };
        Description {
            device,
            reason: planned.reason,
            planning: planned.planning,
            expected: expected.map(Duration::from_secs_f64),
            measured: planned.measured().map(Duration::from_secs_f64),
            bytes_per_product: planned.product.footprint().bytes_moved,
            transposed_products: self.transposed.calls(),
            transposed_recipe: self.transposed.recipe().cloned(),
            ..plain
        }
    }

    /// See [`Operator::measure`](crate::Operator::measure).
    pub(crate) fn measure(&self) -> Option<Duration> {
        self.chosen.now().measure(&self.resources.budget).map(Duration::from_secs_f64)
    }

    /// The product for y = A x, which counts.
    #[inline]
    pub(crate) fn next(&self, a: &Arc<Csr<T>>) -> &Product<T> {
        self.chosen.next(a, &self.resources, &self.machine)
    }

    /// With A^H if `conjugate`. The lengths are right.
    pub(crate) fn run_transposed(
        &self,
        a: &Arc<Csr<T>>,
        conjugate: bool,
        scaling: (T, T),
        x: &[T],
        y: &mut [T],
    ) -> Result<(), Error> {
        let Self { resources, machine, intent, transposed, .. } = self;
        let setting = Setting { a, resources, machine, intent: *intent };
        transposed.run(setting, conjugate, scaling, x, y)
    }

    /// `y` = conj(A) `x`. Checks the lengths.
    pub(crate) fn run_conjugate(&self, a: &Arc<Csr<T>>, x: &[T], y: &mut [T]) -> Result<(), Error> {
        let product = self.conjugate.get_or_init(|| DirectProduct::conjugate(a, &self.resources));
        product.run(T::ONE, x, T::ZERO, y)
    }

    /// The planned Y = alpha A X + beta Y.
    pub(crate) fn many(
        &self,
        a: &Arc<Csr<T>>,
        dense: DenseShape,
    ) -> Result<Arc<DirectProduct<T>>, Error> {
        self.many.plan(dense, || DirectProduct::many(a, dense, &self.resources))
    }

    /// Puts `values` into the matrix, which the plan and `a` share. Returns whether the plan takes
    /// them; if not, the matrix has not changed.
    pub(crate) fn set_values(&mut self, a: &mut Arc<Csr<T>>, values: Replacement<'_, T>) -> bool {
        // These share the matrix, and have its former values.
        (self.transposed, self.conjugate) = (Transposed::new(), OnceLock::new());
        let many = self.many.get_mut();
        // No product runs: nobody else has one of them.
        let unshared =
            std::mem::take(many).into_iter().filter_map(|(_, plan)| Arc::into_inner(plan));
        let mut unshared = unshared.map(DirectProduct::into_plan).collect();
        let taken = self.chosen.settle().product.set_values(a, values, &mut unshared);
        let renewed = unshared.into_iter().map(DirectProduct::from_plan);
        many.extend(renewed.map(|plan| (plan.dense(), Arc::new(plan))));
        taken
    }

    /// What plans the same choice for other values.
    pub(crate) fn again(&self) -> Again {
        let now = self.chosen.now();
        Again {
            resources: self.resources.clone(),
            machine: self.machine.clone(),
            intent: self.intent,
            reason: now.reason,
            planning: now.planning,
            recipe: now.product.recipe().clone(),
            no_gpu: self.no_gpu.clone(),
        }
    }
}

/// The choice of an operator, without plans and matrix.
pub(crate) struct Again {
    resources: Resources,
    machine: Machine,
    intent: Intent,
    reason: Reason,
    planning: Duration,
    recipe: Recipe,
    no_gpu: Option<String>,
}

impl Again {
    /// The same choice for `a`; straight from CSR if its kernel does not suit the values.
    pub(crate) fn plan<T: Scalar>(self, a: &Arc<Csr<T>>) -> Cpu<T> {
        let Self { resources, machine, intent, mut reason, planning, recipe, no_gpu } = self;
        let on = resources.on(recipe.threads());
        let product = Product::plan(a, recipe.kernel(), &on).unwrap_or_else(|_| {
            reason = Reason::NewValues;
            Product::direct(a, &on).expect("a product straight from CSR")
        });
        let planned = Planned::new(product, reason, planning);
        let chosen = match reason {
            Reason::First => Chosen::adaptive(planned),
            _ => Chosen::fixed(planned),
        };
        Cpu::new(chosen, resources, machine, intent, no_gpu)
    }
}
