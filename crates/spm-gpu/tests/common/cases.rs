//! Test matrices: small ones by hand, and seeded ones wider than a warp and a block.

use spm_formats::convert::coo_to_csr;
use spm_formats::{Coo, Csr, Scalar};
use spm_testing::edge_cases::{self, Lengths, vector};
use spm_testing::exact::{self, Whole};
use spm_testing::reference::{self, Reference};

/// A matrix, as triplets for the reference and as CSR for the kernels.
pub(crate) struct Case<T> {
    pub(crate) name: String,
    pub(crate) coo: Coo<T>,
    pub(crate) csr: Csr<T>,
    /// Whether all values are whole numbers, so that products have to equal the reference.
    pub(crate) whole: bool,
}

impl<T: Scalar> Case<T> {
    /// Row `i` has `length(i)` entries in random columns.
    pub(crate) fn new(
        name: &str,
        shape: (usize, usize),
        length: impl Fn(usize, &mut Lengths) -> usize,
    ) -> Self {
        Self::of(name, edge_cases::with_lengths(shape, length))
    }

    /// These entries.
    pub(crate) fn of(name: &str, coo: Coo<T>) -> Self {
        let csr = coo_to_csr(&coo);
        Self { name: name.to_owned(), coo, csr, whole: false }
    }

    /// A generated matrix.
    pub(crate) fn generated(name: &str) -> Self {
        Self::of(name, edge_cases::generated(name))
    }

    /// Whole numbers instead of the values.
    pub(crate) fn with(self, kind: Whole) -> Self {
        Self { whole: true, ..Self::of(&self.name, exact::matrix(&self.coo, kind)) }
    }

    /// `length` elements of x, whole numbers where the values are.
    pub(crate) fn vector(&self, length: usize) -> Vec<T> {
        if self.whole { exact::vector(length) } else { vector(length) }
    }

    /// Fails where `y` is not the reference: equal for whole numbers, within the error bound for others.
    pub(crate) fn judge(&self, what: &str, y: &[T], expected: &Reference<T::Wide>) {
        if self.whole {
            assert_eq!(exact::difference(y, expected), None, "{what}");
        } else {
            let errors = reference::compare(y, expected);
            assert!(errors.acceptable(), "{what}: {errors:?}");
        }
    }
}

/// Matrices that a kernel may trip over; none has more than a few thousand entries, for the
/// emulator.
pub(crate) fn small<T: Scalar>() -> Vec<Case<T>> {
    vec![
        Case::new("1 x 1", (1, 1), |_, _| 1),
        Case::new("no rows", (0, 5), |_, _| 0),
        Case::new("no columns", (5, 0), |_, _| 0),
        Case::new("no entries", (40, 3), |_, _| 0),
        Case::new("one entry, last row", (97, 5), |row, _| usize::from(row == 96)),
        Case::new("rows of 0 to 4", (300, 50), |_, random| random.between(0, 5)),
        Case::new("rows of 0 to 90", (70, 150), |_, random| random.between(0, 90)),
        Case::new("long rows, wide", (5, 900), |_, random| random.between(300, 700))
            .with(Whole::Wide),
        Case::new("a full row among short and empty ones", (200, 1100), |row, random| match row {
            77 => 1100,
            100..150 => 0,
            _ => random.between(1, 4),
        })
        .with(Whole::Wide),
        Case::new("equal values", (150, 90), |_, random| random.between(0, 20)).with(Whole::Equal),
        // Longer than what a block takes at once.
        Case::new("a long row of equal values", (12, 5000), |row, _| {
            [3, 4700][usize::from(row == 7)]
        })
        .with(Whole::Equal),
        // Neighbouring rows have neighbouring columns; values that single precision holds.
        Case::generated("stencil27[n=5]"),
        Case::generated("banded[n=700,lower=3,upper=2]"),
        Case::generated("stencil27[n=5]").with(Whole::Equal),
        // Dense blocks.
        Case::generated("mesh2[n=5,unknowns=3]"),
        // More diagonals than a word has bits.
        Case::generated("banded[n=60,lower=30,upper=20]"),
    ]
}

/// Those for Y = A X, smaller: the emulator makes k times the work.
pub(crate) fn spmm_cases<T: Scalar>() -> Vec<Case<T>> {
    vec![
        Case::new("no rows", (0, 5), |_, _| 0),
        Case::new("no columns", (5, 0), |_, _| 0),
        Case::new("rows of 0 to 20", (41, 30), |_, random| random.between(0, 21)),
        Case::new("a full row among short and empty ones", (24, 600), |row, random| match row {
            7 => 600,
            10..15 => 0,
            _ => random.between(1, 4),
        })
        .with(Whole::Wide),
        // Dense blocks.
        Case::generated("mesh2[n=3,unknowns=3]").with(Whole::Wide),
    ]
}
