//! Test matrices: small ones by hand, and seeded ones wider than a warp and a block.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use spm_formats::convert::csr_to_coo;
use spm_formats::{Coo, Csr, Scalar};
use spm_testing::generate;

/// A matrix, as triplets for the reference and as CSR for the kernels.
pub(crate) struct Case<T> {
    pub(crate) name: &'static str,
    pub(crate) coo: Coo<T>,
    pub(crate) csr: Csr<T>,
}

impl<T: Scalar> Case<T> {
    /// Row `i` has `length(i)` entries in distinct columns, in ascending order.
    fn new(
        name: &'static str,
        (rows, cols): (usize, usize),
        length: impl Fn(usize, &mut Pcg64Mcg) -> usize,
    ) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(0x5eed);
        let (mut pointers, mut row_indices) = (vec![0], Vec::new());
        let (mut col_indices, mut values) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let mut columns: Vec<u32> = (0..cols as u32).collect();
            let length = length(row, &mut rng).min(cols);
            for i in 0..length {
                columns.swap(i, rng.random_range(i..cols));
            }
            columns.truncate(length);
            columns.sort_unstable();
            row_indices.extend(std::iter::repeat_n(row as u32, length));
            values.extend((0..length).map(|_| T::from_f64(rng.random_range(-1.0..1.0))));
            col_indices.extend(columns);
            pointers.push(values.len() as u32);
        }
        let csr = Csr::new((rows, cols), pointers, col_indices.clone(), values.clone()).unwrap();
        let coo = Coo::new(rows, cols, row_indices, col_indices, values).expect("a sound matrix");
        Self { name, coo, csr }
    }

    /// A generated matrix.
    pub(crate) fn generated(name: &'static str) -> Self {
        let csr: Csr<T> = generate::named(name).and_then(|spec| spec.generate()).expect(name);
        let coo = csr_to_coo(csr.view());
        Self { name, coo, csr }
    }

    /// All values the same, as in a pattern file.
    fn with_equal_values(self) -> Self {
        self.map_values(|_, _| T::ONE)
    }

    /// Entry i with the value `value(i, old)`; the triplets are in the order of CSR.
    pub(crate) fn map_values(mut self, value: impl Fn(usize, T) -> T) -> Self {
        let (rows, cols) = (self.coo.rows(), self.coo.cols());
        let (row_indices, col_indices, values) = self.coo.into_arrays();
        let values: Vec<T> = values.into_iter().enumerate().map(|(i, v)| value(i, v)).collect();
        self.csr.values_mut().copy_from_slice(&values);
        self.coo = Coo::new(rows, cols, row_indices, col_indices, values).expect("as sound");
        self
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
        Case::new("rows of 0 to 4", (300, 50), |_, rng| rng.random_range(0..5)),
        Case::new("rows of 0 to 90", (70, 150), |_, rng| rng.random_range(0..90)),
        Case::new("long rows, wide", (5, 900), |_, rng| rng.random_range(300..700)),
        Case::new("a full row among short and empty ones", (200, 1100), |row, rng| match row {
            77 => 1100,
            100..150 => 0,
            _ => rng.random_range(1..4),
        }),
        Case::new("equal values", (150, 90), |_, rng| rng.random_range(0..20)).with_equal_values(),
        // Longer than what a block takes at once.
        Case::new("a long row of equal values", (12, 5000), |row, _| {
            [3, 4700][usize::from(row == 7)]
        })
        .with_equal_values(),
        // Neighbouring rows have neighbouring columns; values that single precision holds.
        Case::generated("stencil27[n=5]"),
        Case::generated("banded[n=700,lower=3,upper=2]"),
        Case::generated("stencil27[n=5]").with_equal_values(),
        // More diagonals than a word has bits.
        Case::generated("banded[n=60,lower=30,upper=20]"),
    ]
}

/// Those for Y = A X, smaller: the emulator makes k times the work.
pub(crate) fn spmm_cases<T: Scalar>() -> Vec<Case<T>> {
    vec![
        Case::new("no rows", (0, 5), |_, _| 0),
        Case::new("no columns", (5, 0), |_, _| 0),
        Case::new("rows of 0 to 20", (41, 30), |_, rng| rng.random_range(0..21)),
        Case::new("a full row among short and empty ones", (24, 600), |row, rng| match row {
            7 => 600,
            10..15 => 0,
            _ => rng.random_range(1..4),
        }),
    ]
}

/// Larger ones, for a GPU.
pub(crate) fn large<T: Scalar>() -> Vec<Case<T>> {
    vec![
        Case::new("30000 rows of 0 to 40", (30_000, 2_000), |_, rng| rng.random_range(0..41)),
        Case::new("a row of 10^5 among rows of 3", (2_000, 100_000), |row, _| match row {
            1_000 => 100_000,
            _ => 3,
        }),
    ]
}

/// `length` numbers between -1 and 1.
pub(crate) fn vector<T: Scalar>(length: usize) -> Vec<T> {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    (0..length).map(|_| T::from_f64(rng.random_range(-1.0..1.0))).collect()
}
