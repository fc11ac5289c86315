//! The products with the transpose and with the conjugate transpose.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use spm_formats::{Csr, Scalar};

use crate::engine::{self, DirectProduct, Resources, TransposedCopy};
use crate::{Error, Recipe};

/// y = alpha A^T x + beta y, and the same with A^H: straight from the CSR arrays of A at first, later
/// from a transposed copy.
pub(crate) struct Transposed<T> {
    calls: AtomicU64,
    /// Products before the copy is made, if it is.
    after: OnceLock<Option<u64>>,
    direct: OnceLock<DirectProduct<T>>,
    /// With A^H; unused for a real matrix.
    conjugate: OnceLock<DirectProduct<T>>,
    /// Nothing where the copy is beyond the budget.
    planned: OnceLock<Option<TransposedCopy<T>>>,
    /// Held by the thread that makes the copy.
    planning: Mutex<()>,
}

impl<T: Scalar> Transposed<T> {
    pub(crate) fn new() -> Self {
        let (calls, planning) = (AtomicU64::new(0), Mutex::new(()));
        let (after, planned) = (OnceLock::new(), OnceLock::new());
        let (direct, conjugate) = (OnceLock::new(), OnceLock::new());
        Self { calls, after, direct, conjugate, planned, planning }
    }

    /// Products so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn recipe(&self) -> Option<&Recipe> {
        Some(self.planned.get()?.as_ref()?.product.recipe())
    }

    /// Bytes of the transposed copy, if `a` has one, and of the plans.
    pub(crate) fn memory_bytes(&self, a: &Csr<T>) -> u64 {
        let of_copy = |copy: &TransposedCopy<T>| engine::transposed_bytes(a) + copy.plan_bytes();
        let bytes =
            |direct: &OnceLock<DirectProduct<T>>| direct.get().map_or(0, DirectProduct::plan_bytes);
        let direct = bytes(&self.direct) + bytes(&self.conjugate);
        direct + self.planned.get().and_then(Option::as_ref).map_or(0, of_copy)
    }

    /// A product, from the copy if this one comes after as many others as `after` says; with A^H if
    /// `conjugate`. The lengths are right.
    #[expect(
        clippy::too_many_arguments,
        reason = "what an operator has, and what its caller gives"
    )]
    pub(crate) fn run(
        &self,
        a: &Arc<Csr<T>>,
        resources: &Resources,
        after: impl FnOnce() -> Option<u64>,
        conjugate: bool,
        (alpha, beta): (T, T),
        x: &[T],
        y: &mut [T],
    ) -> Result<(), Error> {
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        let after = self.after.get_or_init(after).unwrap_or(u64::MAX);
        let make = || engine::transposed(a, resources).ok();
        let planned = match self.planned.get() {
            Some(planned) => planned.as_ref(),
            None if before < after => None,
            // All wait for the copy: a product in another order has other bits.
            None if after == 0 => self.planned.get_or_init(make).as_ref(),
            // The others go on without the copy.
            None => match self.planning.try_lock() {
                Ok(_guard) => self.planned.get_or_init(make).as_ref(),
                Err(_) => None,
            },
        };
        let conjugate = conjugate && T::IS_COMPLEX;
        if let Some(TransposedCopy { product, conjugate: conjugated }) = planned {
            return match conjugated {
                Some(product) if conjugate => product.run(alpha, x, beta, y),
                _ => product.run(alpha, x, beta, y),
            };
        }
        let direct = if conjugate { &self.conjugate } else { &self.direct };
        if let Some(direct) = direct.get() {
            return direct.run(alpha, x, beta, y);
        }
        let new = DirectProduct::transposed(a, conjugate, resources)?;
        direct.get_or_init(|| new).run(alpha, x, beta, y)
    }
}
