//! Processors whose vector instructions have no module of their own.

use spm_formats::Scalar;

use super::portable::Portable;
use super::{Job, Level};

/// What this processor has.
pub(super) fn detect_level() -> Level {
    Level::Portable
}

/// Whether the registers have room for [`FEW`](super::FEW) elements.
pub(super) fn has_few(_: Level, _: usize) -> bool {
    false
}

/// Runs a job on `f64`.
///
/// # Safety
/// None: the compiler's own instructions.
#[inline]
pub(super) unsafe fn run_f64<J: Job<f64>>(job: J, _: Level, _: bool) {
    // SAFETY: no instructions beyond the compiler's own.
    unsafe { job.run::<Portable>() }
}

/// Runs a job on any scalar.
///
/// # Safety
/// None: the compiler's own instructions.
#[inline]
pub(super) unsafe fn run_portable<T: Scalar, J: Job<T>>(job: J, _: Level) {
    // SAFETY: no instructions beyond the compiler's own.
    unsafe { job.run::<Portable>() }
}

/// Runs a job on `f32`.
///
/// # Safety
/// None: the compiler's own instructions.
#[inline]
pub(super) unsafe fn run_f32<J: Job<f32>>(job: J, _: Level, _: bool) {
    // SAFETY: no instructions beyond the compiler's own.
    unsafe { job.run::<Portable>() }
}
