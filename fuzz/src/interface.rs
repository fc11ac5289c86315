//! The worst arguments of the public safe functions: the answer is an error or the right result.
//! A panic is allowed where the documentation announces it ([`allowing_panics`]).

mod cpu;
mod device;
mod formats;
mod operations;
mod padded;
mod procedures;

use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use arbitrary::{Arbitrary, Result, Unstructured};
use spm_formats::kernel::{KernelInfo, Parameters, Schedule, Value};
use spm_formats::{DenseShape, Layout, MemoryBudget, Scalar};
use spm_testing::reference::{self, Reference};

/// One use of the interface.
///
/// # Errors
/// Too few bytes.
pub fn check(u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=9_u8)? {
        0 | 1 => formats::check(u),
        2 => padded::check(u),
        3 => procedures::check(u),
        4 => cpu::check::<f32>(u),
        5 | 6 => cpu::check::<f64>(u),
        7 => device::check::<f32>(u),
        8 => operations::check(u),
        _ => device::check::<f64>(u),
    }
}

/// Whether the documentation of what runs announces a panic.
static ALLOWED: AtomicBool = AtomicBool::new(false);

/// What `call` returns; `None` where it panics, which its documentation announces.
fn allowing_panics<R>(call: impl FnOnce() -> R) -> Option<R> {
    static HOOK: Once = Once::new();
    // The hook of libFuzzer's crate ends the process at a panic, caught or not.
    HOOK.call_once(|| {
        let fatal = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !ALLOWED.load(Ordering::SeqCst) {
                fatal(info);
            }
        }));
    });
    ALLOWED.store(true, Ordering::SeqCst);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    ALLOWED.store(false, Ordering::SeqCst);
    result.ok()
}

/// Sizes at the ends of their types.
const SIZES: [usize; 12] = [
    0,
    u32::MAX as usize - 1,
    u32::MAX as usize,
    1 << 31,
    1 << 32,
    (1 << 32) + 1,
    1 << 45,
    usize::MAX / 3,
    usize::MAX / 2,
    usize::MAX / 2 + 1,
    usize::MAX - 7,
    usize::MAX,
];

/// A size: small, or one that no memory holds.
fn size(u: &mut Unstructured<'_>) -> Result<usize> {
    if u.ratio(1, 3)? { Ok(*u.choose(&SIZES)?) } else { u.int_in_range(0..=70) }
}

/// An index: small, or at the end of its type.
fn index(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=7_u8)? {
        0 => u32::MAX,
        1 => u32::MAX - 1,
        2 => 1 << 31,
        _ => u.int_in_range(0..=40)?,
    })
}

/// A budget from nothing to more than small matrices need.
fn budget(u: &mut Unstructured<'_>) -> Result<MemoryBudget> {
    Ok(MemoryBudget::bytes(match u.int_in_range(0..=5_u8)? {
        0 => 0,
        1 => u16::arbitrary(u)?.into(),
        _ => 32 << 20,
    }))
}

/// One of `kernels` with parameters: studied ones, the worst ones, or those of another kernel.
fn choose<'k, K>(
    u: &mut Unstructured<'_>,
    kernels: &'k [K],
    info: impl Fn(&K) -> &KernelInfo,
) -> Result<(&'k K, Parameters)> {
    let kernel = u.choose(kernels)?;
    let parameters = match u.int_in_range(0..=7_u8)? {
        0 => info(u.choose(kernels)?).defaults(),
        1..=3 => worst(u, info(kernel))?,
        _ => u.choose(&info(kernel).variants())?.clone(),
    };
    Ok((kernel, parameters))
}

/// Parameters at the ends of their types.
fn worst(u: &mut Unstructured<'_>, info: &KernelInfo) -> Result<Parameters> {
    let mut parameters = info.defaults();
    for spec in info.parameters {
        if u.ratio(1, 3)? {
            continue;
        }
        let value = match spec.default {
            Value::Count(_) => Value::Count(size(u)?),
            Value::Switch(_) => Value::Switch(bool::arbitrary(u)?),
            Value::Grid(..) => Value::Grid(size(u)?, size(u)?),
            Value::Schedule(_) => {
                Value::Schedule(*u.choose(&[Schedule::Static, Schedule::Dynamic])?)
            }
            Value::Choice(_) if u.ratio(1, 4)? => Value::Choice("neither"),
            _ => *u.choose(spec.studied)?,
        };
        parameters = parameters.with(spec.name, value);
    }
    Ok(parameters)
}

/// Columns and layout of X: few columns, seldom more than memory holds.
fn dense(u: &mut Unstructured<'_>) -> Result<DenseShape> {
    let layout = *u.choose(&[Layout::RowMajor, Layout::ColumnMajor])?;
    let k = if u.ratio(1, 8)? { size(u)? } else { u.int_in_range(0..=9)? };
    Ok(DenseShape { k, layout })
}

/// A wrong length.
fn other_length(u: &mut Unstructured<'_>, right: usize) -> Result<usize> {
    let found = u.int_in_range(0..=right + 3)?;
    Ok(if found == right { right + 1 } else { found })
}

fn compare<T: Scalar>(label: &str, y: &[T], expected: &Reference<T::Wide>) {
    let errors = reference::compare(y, expected);
    assert!(errors.acceptable(), "{label}: {errors:?}");
}
