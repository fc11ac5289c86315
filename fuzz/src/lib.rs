//! What the fuzz targets share: small matrices from bytes, and a folder for files.

pub mod interface;

use std::collections::BTreeMap;
use std::path::Path;

use arbitrary::{Arbitrary, Result, Unstructured};
use spm_formats::{Coo, Csr, Scalar, convert};

/// The largest number of rows and of columns.
const SIDE: usize = 300;
/// The largest number of triplets.
const ENTRIES: usize = 700;

/// Triplets in any order, duplicates included.
#[derive(Debug)]
pub struct Triplets<T>(pub Coo<T>);

/// A matrix without duplicates, as triplets for the reference and as CSR for the kernels.
#[derive(Debug)]
pub struct Matrix<T> {
    /// Sorted by row and column.
    pub coo: Coo<T>,
    /// The same.
    pub csr: Csr<T>,
}

/// A value: mostly ordinary, sometimes one that rounds, is large, infinite or no number.
pub fn value<T: Scalar>(u: &mut Unstructured<'_>) -> Result<T> {
    Ok(T::from_f64(match u.int_in_range(0..=31_u8)? {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3 => 0.0,
        4 => -0.0,
        5 => f64::from_bits(1),
        // Sums of products of these are finite in single precision: where they overflow depends on the order,
        // and the reference is not in single precision.
        6 | 7 => 1e15,
        8..=15 => 1.0,
        16..=23 => f64::from(i16::arbitrary(u)?) / 64.0,
        _ => f64::from(i32::arbitrary(u)?) / f64::from(1 << 20),
    }))
}

/// Calls `check` with a folder for temporary files, the same in every call of a thread.
pub fn in_folder(check: impl FnOnce(&Path)) {
    thread_local!(static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("temporary files"));
    FOLDER.with(|folder| check(folder.path()));
}

/// `length` values.
pub fn vector<T: Scalar>(u: &mut Unstructured<'_>, length: usize) -> Result<Vec<T>> {
    (0..length).map(|_| value(u)).collect::<Result<_>>().map(exact)
}

/// The same elements without spare capacity: AddressSanitizer reports the first access behind an allocation,
/// and an allocation that has grown ends behind its elements.
pub fn exact<T>(elements: Vec<T>) -> Vec<T> {
    elements.into_boxed_slice().into_vec()
}

/// The bits of values that were copied.
pub fn bits<T: Scalar>(values: &[T]) -> Vec<u128> {
    values.iter().map(|value| value.to_bits128()).collect()
}

impl<T: Scalar> Triplets<T> {
    /// At most `side` rows and columns and `entries` triplets.
    fn within(u: &mut Unstructured<'_>, side: usize, entries: usize) -> Result<Self> {
        let (rows, cols) = (u.int_in_range(0..=side)?, u.int_in_range(0..=side)?);
        let (mut r, mut c, mut v) = (Vec::new(), Vec::new(), Vec::new());
        while rows > 0 && cols > 0 && v.len() < entries && !u.is_empty() {
            // Runs, so that long rows and dense columns come up.
            let run = if u.ratio(1, 8)? { u.int_in_range(1..=cols)? } else { 1 };
            let (row, first) = (u.choose_index(rows)?, u.choose_index(cols)?);
            for step in 0..run.min(entries - v.len()) {
                r.push(row as u32);
                c.push(((first + step) % cols) as u32);
                v.push(value(u)?);
            }
        }
        Ok(Self(Coo::new(rows, cols, exact(r), exact(c), exact(v)).expect("indices are in range")))
    }
}

impl<'a, T: Scalar> Arbitrary<'a> for Triplets<T> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Self::within(u, SIDE, ENTRIES)
    }
}

impl<T: Scalar> Matrix<T> {
    /// At most `side` rows and columns and `entries` entries.
    pub fn within(u: &mut Unstructured<'_>, side: usize, entries: usize) -> Result<Self> {
        let Triplets(coo) = Triplets::<T>::within(u, side, entries)?;
        let unique: BTreeMap<(u32, u32), T> = coo.iter().map(|(r, c, v)| ((r, c), v)).collect();
        let (r, c) = unique.keys().copied().unzip();
        let values = unique.into_values().collect();
        let coo = Coo::new(coo.rows(), coo.cols(), r, c, values).expect("indices are in range");
        let csr = convert::coo_to_csr(&coo);
        Ok(Self { coo, csr })
    }
}

impl<'a, T: Scalar> Arbitrary<'a> for Matrix<T> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Self::within(u, SIDE, ENTRIES)
    }
}
