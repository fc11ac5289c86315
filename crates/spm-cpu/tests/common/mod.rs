//! What the tests of all operations share.
#![allow(dead_code, reason = "each test file is a crate of its own and uses some of this")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use spm_formats::kernel::PlanError;
use spm_formats::{Coo, Csr, Layout, Scalar};
use spm_testing::exact;
use spm_testing::reference::{self, Reference};

pub(crate) const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColumnMajor];

/// CSR straight from the reference: the transpose of the transpose is A in row order.
pub(crate) fn csr<T: Scalar>(a: &Coo<T>) -> Csr<T> {
    let (p, i, v) = reference::transpose(a);
    let cols = (0..a.cols()).flat_map(|c| vec![c as u32; (p[c + 1] - p[c]) as usize]);
    let transposed = Coo::new(a.cols(), a.rows(), cols.collect(), i, v).unwrap();
    let (row_ptr, columns, values) = reference::transpose(&transposed);
    Csr::new((a.rows(), a.cols()), row_ptr, columns, values).unwrap()
}

/// The refusals that tests expect: which kernel, and a part of why.
const REFUSALS: [(&str, &str); 7] = [
    // It detects no size of blocks.
    ("bsr-rows", "do not form dense square blocks"),
    ("bsr-blocked", "do not form dense square blocks"),
    // It keeps one half of the matrix, in rows that repeat a pattern.
    ("sell-symmetric", "is not square"),
    ("sell-symmetric", "has no equal at"),
    ("sell-symmetric", "rows do not repeat a pattern"),
    // It copies the pattern.
    ("symmetric-pattern", "is not square"),
    ("symmetric-pattern", "has no equal at"),
];

/// The plan; nothing where the kernel is for other matrices. Any other error fails the test.
pub(crate) fn planned<P>(label: &str, plan: Result<P, PlanError>) -> Option<P> {
    match plan {
        Ok(plan) => Some(plan),
        Err(PlanError::Unsupported { kernel, reason })
            if REFUSALS.iter().any(|&(id, why)| id == kernel && reason.contains(why)) =>
        {
            None
        }
        Err(error) => panic!("{label}: {error}"),
    }
}

/// What a result has to be; the text says of what.
pub(crate) type Judge<T> = fn(&str, &[T], &Reference<<T as Scalar>::Wide>);

/// Within the error bound.
pub(crate) fn within_bound<T: Scalar>(what: &str, y: &[T], expected: &Reference<T::Wide>) {
    let errors = reference::compare(y, expected);
    assert!(errors.acceptable(), "{what}: {errors:?}");
}

/// Equal to the reference, for whole numbers.
pub(crate) fn equal<T: Scalar>(what: &str, y: &[T], expected: &Reference<T::Wide>) {
    assert_eq!(exact::difference(y, expected), None, "{what}");
}

pub(crate) fn bits<T: Scalar>(values: &[T]) -> Vec<u128> {
    values.iter().map(|value| value.to_bits128()).collect()
}

/// Fewer than `side` rows and columns, but one at least, and fewer than `entries` entries, without
/// duplicates.
pub(crate) fn matrices<T: Scalar>(side: usize, entries: usize) -> impl Strategy<Value = Coo<T>> {
    (1..side, 1..side).prop_flat_map(move |(rows, cols)| {
        let entry = (0..rows as u32, 0..cols as u32, -1.0_f64..1.0);
        let part = T::Real::from_f64;
        let number = move |v: f64| T::from_parts(part(v), part((7.0 * v).sin()));
        prop::collection::vec(entry, 0..entries).prop_map(move |entries| {
            let unique: BTreeMap<(u32, u32), T> =
                entries.into_iter().map(|(r, c, v)| ((r, c), number(v))).collect();
            let (r, c) = unique.keys().copied().unzip();
            Coo::new(rows, cols, r, c, unique.into_values().collect()).unwrap()
        })
    })
}
