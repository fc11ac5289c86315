//! The products with the transpose and with the conjugate transpose.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use spm_formats::{Csr, Scalar};

use crate::engine::{self, DirectProduct, Resources};
use crate::operator::Intent;
use crate::planning::{self, CHECKED, Chosen, Machine};
use crate::{Error, Recipe, pools};

/// What the products of an operator are planned by.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'s, T> {
    pub(crate) a: &'s Arc<Csr<T>>,
    pub(crate) resources: &'s Resources,
    pub(crate) machine: &'s Machine,
    pub(crate) intent: Intent,
}

/// y = alpha A^T x + beta y, and the same with A^H: straight from the CSR arrays of A at first, later
/// from a transposed copy.
pub(crate) struct Transposed<T> {
    calls: AtomicU64,
    /// Products before the copy is made, if it is.
    after: OnceLock<Option<u64>>,
    direct: OnceLock<DirectProduct<T>>,
    /// With A^H; unused for a real matrix.
    conjugate: OnceLock<DirectProduct<T>>,
    /// Nothing where the copy is beyond the budget, or slower by the clock.
    copy: OnceLock<Option<TransposedCopy<T>>>,
    /// Held by the thread that makes the copy.
    planning: Mutex<()>,
}

/// A transposed copy of a matrix, and its products.
struct TransposedCopy<T> {
    transpose: Arc<Csr<T>>,
    resources: Resources,
    /// With the transpose, planned as those of any matrix.
    chosen: Chosen<T>,
    /// With the conjugate transpose, of a complex matrix.
    conjugate: Option<DirectProduct<T>>,
}

impl<T: Scalar> TransposedCopy<T> {
    fn new(setting: Setting<'_, T>) -> Result<Self, Error> {
        let start = Instant::now();
        let Setting { a, resources, machine, intent } = setting;
        let (transpose, resources) = engine::transposed(a, resources)?;
        let small = pools::is_small(&transpose, resources.threads.count());
        let chosen = planning::choose(&transpose, &resources, machine, intent, small, start)?;
        let conjugate = T::IS_COMPLEX.then(|| DirectProduct::conjugate(&transpose, &resources));
        Ok(Self { transpose, resources, chosen, conjugate })
    }

    /// Seconds of a product by the clock.
    fn seconds(&self) -> Option<f64> {
        let now = self.chosen.now();
        now.measured().or_else(|| now.measure(&self.resources.budget))
    }
}

impl<T: Scalar> Transposed<T> {
    pub(crate) fn new() -> Self {
        let (calls, planning) = (AtomicU64::new(0), Mutex::new(()));
        let (after, copy) = (OnceLock::new(), OnceLock::new());
        let (direct, conjugate) = (OnceLock::new(), OnceLock::new());
        Self { calls, after, direct, conjugate, copy, planning }
    }

    /// Products so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn recipe(&self) -> Option<&Recipe> {
        Some(self.copy.get()?.as_ref()?.chosen.now().product.recipe())
    }

    /// Bytes of the transposed copy, if `a` has one, and of the plans.
    pub(crate) fn memory_bytes(&self, a: &Csr<T>) -> u64 {
        let bytes = |direct: &DirectProduct<T>| direct.plan_bytes();
        let of_copy = |copy: &TransposedCopy<T>| {
            let conjugate = copy.conjugate.as_ref().map_or(0, bytes);
            engine::transposed_bytes(a) + copy.chosen.plan_bytes() + conjugate
        };
        let direct = self.direct.get().map_or(0, bytes) + self.conjugate.get().map_or(0, bytes);
        direct + self.copy.get().and_then(Option::as_ref).map_or(0, of_copy)
    }

    /// A product, from the copy if this one comes after as many others as the model says; with A^H if
    /// `conjugate`. The lengths are right.
    pub(crate) fn run(
        &self,
        setting: Setting<'_, T>,
        conjugate: bool,
        (alpha, beta): (T, T),
        x: &[T],
        y: &mut [T],
    ) -> Result<(), Error> {
        let Setting { a, resources, machine, intent } = setting;
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        let after = self.after.get_or_init(|| machine.copy_after(a, resources, intent));
        let after = after.unwrap_or(u64::MAX);
        let make = || self.make(setting);
        let copy = match self.copy.get() {
            Some(copy) => copy.as_ref(),
            None if before < after => None,
            // All wait for the copy: a product in another order has other bits.
            None if after == 0 => self.copy.get_or_init(make).as_ref(),
            // The others go on without the copy.
            None => match self.planning.try_lock() {
                Ok(_guard) => self.copy.get_or_init(make).as_ref(),
                Err(_) => None,
            },
        };
        let conjugate = conjugate && T::IS_COMPLEX;
        let Some(TransposedCopy { transpose, resources, chosen, conjugate: conjugated }) = copy
        else {
            return self.direct(a, conjugate, resources)?.run(alpha, x, beta, y);
        };
        match conjugated {
            Some(product) if conjugate => product.run(alpha, x, beta, y),
            _ => chosen.next(transpose, resources, machine).run(alpha, x, beta, y),
        }
    }

    /// The product straight from CSR.
    fn direct(
        &self,
        a: &Arc<Csr<T>>,
        conjugate: bool,
        resources: &Resources,
    ) -> Result<&DirectProduct<T>, Error> {
        let direct = if conjugate { &self.conjugate } else { &self.direct };
        if let Some(direct) = direct.get() {
            return Ok(direct);
        }
        let new = DirectProduct::transposed(a, conjugate, resources)?;
        Ok(direct.get_or_init(|| new))
    }

    /// The copy, unless it is beyond the budget. For many expected products the clock decides, too.
    fn make(&self, setting: Setting<'_, T>) -> Option<TransposedCopy<T>> {
        let Setting { a, resources, intent, .. } = setting;
        let copy = TransposedCopy::new(setting).ok()?;
        let is_checked = intent.products.is_some_and(|products| products >= CHECKED);
        if is_checked && !intent.deterministic {
            let direct = self.direct(a, false, resources).ok();
            let straight = direct.and_then(|direct| direct.time(&resources.budget));
            let is_slower = |straight: f64| copy.seconds().is_some_and(|copied| straight < copied);
            if straight.is_some_and(is_slower) {
                return None;
            }
        }
        Some(copy)
    }
}
