//! How `sell-compact` stores the values of a matrix.

use std::sync::atomic::{AtomicBool, Ordering};

use spm_formats::RealScalar;
use spm_formats::kernel::{ParameterSpec, Parameters, PlanError, Schedule, Value};

use crate::Threads;
use crate::simd::{FEW, Machine};
use crate::spmv::dictionary::{self, CHUNK, Dictionary};

/// The parameter codes: which values are stored as codes.
pub(in crate::spmv) const CODES: ParameterSpec = ParameterSpec {
    name: "codes",
    meaning: "a byte for each entry instead of a value; registers: where the distinct values are at \
              most 32 and fit vector registers, which takes no more time than values in cache; \
              table: where they are at most 256, and are looked up in the first-level cache",
    default: Value::Choice("registers"),
    studied: &[Value::Choice("off"), Value::Choice("registers"), Value::Choice("table")],
};

/// Maximum number of distinct values that codes stand for.
pub(super) fn most_codes<T: RealScalar>(parameters: &Parameters, machine: Machine) -> usize {
    match parameters.choice(CODES.name) {
        "table" => dictionary::MOST,
        "registers" if machine.has_few::<T>() => FEW,
        _ => 0,
    }
}

/// The storage of the values.
#[derive(Debug)]
pub(super) enum Coding<T> {
    /// All entries have this value, which is finite; none is stored.
    Equal(T),
    /// Each as it is.
    Each,
    /// A code for each. The product has the same bits as that of [`Coding::Each`].
    Codes(Dictionary<T>),
}

impl<T: RealScalar> Coding<T> {
    /// The coding that takes the fewest bytes, with codes for up to `most` distinct values.
    pub(super) fn of(values: &[T], most: usize, threads: &Threads) -> Self {
        let dictionary = || Dictionary::of(values, most);
        match common_value(values, threads) {
            Some(value) => Self::Equal(value),
            None => dictionary().map_or(Self::Each, Self::Codes),
        }
    }

    /// The same coding of other values.
    pub(super) fn of_new(
        &self,
        values: &[T],
        most: usize,
        threads: &Threads,
    ) -> Result<Self, PlanError> {
        match (self, common_value(values, threads)) {
            (Self::Equal(_), Some(value)) => Ok(Self::Equal(value)),
            (Self::Equal(_), None) => {
                Err(PlanError::Values("they are not all equal, as the old ones are"))
            }
            (_, Some(_)) => {
                Err(PlanError::Values("they are all equal, which a new plan makes use of"))
            }
            (Self::Each, None) => Ok(Self::Each),
            (Self::Codes(_), None) => Dictionary::on(threads, values, most)
                .map(Self::Codes)
                .ok_or(PlanError::Values("they are not as few distinct ones as the old ones are")),
        }
    }

    /// Bytes of the value of a stored element.
    pub(super) fn value_bytes(&self) -> usize {
        match self {
            Self::Equal(_) => 0,
            Self::Each => T::BYTES,
            Self::Codes(_) => size_of::<u8>(),
        }
    }

    /// Bytes that a product reads, and bytes that are kept besides.
    pub(super) fn bytes(&self) -> (usize, usize) {
        match self {
            Self::Codes(dictionary) => (size_of_val(dictionary.table()), dictionary.rest_bytes()),
            _ => (0, 0),
        }
    }
}

/// The common value of all entries, if they are equal bit by bit. `None` for an infinite or NaN
/// value, which cannot be multiplied in after the sum.
fn common_value<T: RealScalar>(values: &[T], threads: &Threads) -> Option<T> {
    let &first = values.first()?;
    // Without a branch for each value.
    let same = |chunk: &[T]| {
        chunk.iter().fold(0, |all, value| all | value.to_bits64() ^ first.to_bits64()) == 0
    };
    // Nearly always the first few entries decide.
    let head = &values[..values.len().min(64)];
    if !first.is_finite() || !same(head) {
        return None;
    }
    let other = AtomicBool::new(false);
    threads.for_each_chunk(values.len(), Schedule::Static, CHUNK, |chunk| {
        if !other.load(Ordering::Relaxed) && !same(&values[chunk]) {
            other.store(true, Ordering::Relaxed);
        }
    });
    (!other.into_inner()).then_some(first)
}
