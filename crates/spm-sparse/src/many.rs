//! The plans for dense X, one for each width and layout.

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use spm_formats::DenseShape;

/// The planned Y = A X, one for each width and layout that has been asked for.
pub(crate) struct Many<P> {
    plans: RwLock<Vec<(DenseShape, Arc<P>)>>,
    /// Held by the thread that plans: others wait for its plan and go on with those that are there.
    planning: Mutex<()>,
}

impl<P> Many<P> {
    pub(crate) fn new() -> Self {
        Self { plans: RwLock::default(), planning: Mutex::default() }
    }

    /// The plan for `dense`, which the first call for it makes.
    pub(crate) fn plan<E>(
        &self,
        dense: DenseShape,
        make: impl FnOnce() -> Result<P, E>,
    ) -> Result<Arc<P>, E> {
        let find = || {
            let plans = self.read();
            plans.iter().find(|(of, _)| *of == dense).map(|(_, plan)| Arc::clone(plan))
        };
        if let Some(plan) = find() {
            return Ok(plan);
        }
        let _guard = self.planning.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = find() {
            return Ok(plan);
        }
        let new = Arc::new(make()?);
        let mut plans = self.plans.write().unwrap_or_else(PoisonError::into_inner);
        plans.push((dense, Arc::clone(&new)));
        Ok(new)
    }

    /// What `each` gives for all plans together.
    pub(crate) fn sum(&self, each: impl Fn(&P) -> u64) -> u64 {
        self.read().iter().map(|(_, plan)| each(plan)).sum()
    }

    /// All plans, which no product uses at the time.
    pub(crate) fn get_mut(&mut self) -> &mut Vec<(DenseShape, Arc<P>)> {
        self.plans.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<(DenseShape, Arc<P>)>> {
        // A list of plans is whole after a panic.
        self.plans.read().unwrap_or_else(PoisonError::into_inner)
    }
}
