//! What planning may allocate on a device.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spm_formats::{FormatError, MemoryBudget};

use crate::error::GpuError;

thread_local! {
    /// The innermost [`within`] of this thread. A plan allocates in a hundred places, on the thread
    /// that plans; a count that is carried to each of them could be forgotten at one.
    static GAUGE: RefCell<Option<Arc<Gauge>>> = const { RefCell::new(None) };
}

/// Counts the device memory that one plan or conversion holds.
#[derive(Debug)]
struct Gauge {
    what: &'static str,
    budget: MemoryBudget,
    /// Bytes beside the budget: the copy of the matrix, and what is not counted.
    free: u64,
    used: AtomicU64,
    /// The one around it, which counts the same memory.
    outer: Option<Arc<Self>>,
}

impl Gauge {
    fn take(&self, bytes: u64) -> Result<(), FormatError> {
        let more = |used: u64| {
            let used = used.checked_add(bytes)?;
            let counted = used.saturating_sub(self.free);
            self.budget.check_bytes(self.what, counted.into()).is_ok().then_some(used)
        };
        if let Err(used) = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            let counted = used.saturating_add(bytes).saturating_sub(self.free);
            self.budget.check_bytes(self.what, counted.into())?;
        }
        if let Some(outer) = &self.outer
            && let Err(error) = outer.take(bytes)
        {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(error);
        }
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(outer) = &self.outer {
            outer.give_back(bytes);
        }
    }
}

/// Device memory that counts for a budget as long as this lives.
#[derive(Debug)]
pub(crate) struct Reserved(Option<(Arc<Gauge>, u64)>);

impl Reserved {
    /// `bytes` of the budget in whose scope this thread is, if it is in one.
    pub(crate) fn new(bytes: u64) -> Result<Self, GpuError> {
        let Some(gauge) = GAUGE.with_borrow(Clone::clone) else { return Ok(Self(None)) };
        gauge.take(bytes).map_err(GpuError::OverBudget)?;
        Ok(Self(Some((gauge, bytes))))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some((gauge, bytes)) = &self.0 {
            gauge.give_back(*bytes);
        }
    }
}

/// Returns what `work` does while every device buffer that it allocates on this thread counts for
/// `budget`, until that is dropped; `copied` bytes are the matrix, which does not count.
pub(crate) fn within<R>(
    what: &'static str,
    budget: &MemoryBudget,
    copied: u64,
    work: impl FnOnce() -> R,
) -> R {
    /// Puts the outer one back, also when `work` panics.
    struct Restore;

    impl Drop for Restore {
        fn drop(&mut self) {
            GAUGE.with_borrow_mut(|gauge| *gauge = gauge.take().and_then(|it| it.outer.clone()));
        }
    }

    let (budget, used) = (budget.clone(), AtomicU64::new(0));
    let free = copied.saturating_add(MemoryBudget::ALLOWANCE);
    GAUGE.with_borrow_mut(|gauge| {
        let outer = gauge.take();
        *gauge = Some(Arc::new(Gauge { what, budget, free, used, outer }));
    });
    let _restore = Restore;
    work()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::memory::DeviceBuffer;

    #[test]
    fn buffers_count_until_they_are_dropped_and_in_every_scope_around() {
        let device = Device::emulated(Default::default());
        let buffer = |bytes: u64| DeviceBuffer::<u32>::zeroed(&device, bytes as usize / 4);
        let free = 8 + MemoryBudget::ALLOWANCE;
        let kept = within("outer", &MemoryBudget::bytes(100), 8, || {
            let kept = buffer(free + 40).unwrap();
            within("inner", &MemoryBudget::bytes(1000), 0, || {
                assert!(buffer(60).is_ok());
                assert!(buffer(60).is_ok(), "the first one is dropped");
                let Err(GpuError::OverBudget(error)) = buffer(64) else { panic!("104 of 100") };
                let FormatError::OverBudget { format, required, budget, .. } = error else {
                    panic!("{error}")
                };
                assert_eq!((format, required, budget), ("outer", 104, 100));
            });
            let none = MemoryBudget::bytes(0);
            let panicked = std::panic::catch_unwind(|| within::<()>("x", &none, 0, || panic!()));
            assert!(panicked.is_err());
            assert!(matches!(buffer(64), Err(GpuError::OverBudget(_))), "the outer scope is back");
            assert!(buffer(60).is_ok());
            let more = buffer(40).unwrap();
            assert!(buffer(20).is_ok());
            assert!(matches!(buffer(24), Err(GpuError::OverBudget(_))), "20 are given back once");
            drop(more);
            kept
        });
        assert!(buffer(free + 1000).is_ok(), "outside of the scope");
        drop(kept);
    }
}
