//! The vector x that cases multiply: drawn from a recorded seed, or read from a file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, ensure};
use rand::SeedableRng;
use rand::distr::{Distribution, Uniform};
use rand_pcg::Pcg64Mcg;
use sha2::{Digest, Sha256};
use spm_formats::RealScalar;
use spm_formats::matrix_market::{self, ReadOptions};

use crate::files::write_whole;
use crate::hash::hexadecimal;

/// Where the elements of x come from: one sequence, of which a matrix with n columns takes the first
/// n elements, and an SpMM the first n x k.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Uniform in `low..high`.
    Seeded {
        /// Smallest element.
        low: f64,
        /// Bound of the largest (excluded).
        high: f64,
        /// Seed of the generator.
        seed: u64,
    },
    /// A file that was read.
    Read {
        /// Its path.
        path: PathBuf,
        /// Its elements.
        elements: Rc<[f64]>,
    },
}

impl Default for Input {
    fn default() -> Self {
        let (low, high) = Self::RANGE;
        Self::Seeded { low, high, seed: 1 }
    }
}

impl Input {
    /// R0 section 3's range, smallest element and bound.
    pub const RANGE: (f64, f64) = (0.1, 3.0);

    /// Reads a vector as [`Input::write`] leaves it: a Matrix Market file with one column (.gz too).
    ///
    /// # Errors
    /// An unreadable file, or one with several columns.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let read = matrix_market::read::<f64>(path, &ReadOptions::default())?;
        let (coo, shown) = (read.coo, path.display());
        ensure!(coo.cols() == 1, "{shown}: expected 1 column, found {}", coo.cols());
        let mut elements = vec![0.0; coo.rows()];
        for (row, _, value) in coo.iter() {
            elements[row as usize] = value;
        }
        Ok(Self::Read { path: path.to_owned(), elements: elements.into() })
    }

    /// Elements that there are; `None` for as many as anybody wants.
    pub fn limit(&self) -> Option<usize> {
        match self {
            Self::Seeded { .. } => None,
            Self::Read { elements, .. } => Some(elements.len()),
        }
    }

    /// The first `length` elements.
    ///
    /// # Panics
    /// When [`Input::limit`] is less.
    pub fn elements<T: RealScalar>(&self, length: usize) -> Vec<T> {
        match self {
            Self::Seeded { low, high, seed } => {
                let range = Uniform::new(*low, *high).expect("low < high");
                let generator = Pcg64Mcg::seed_from_u64(*seed);
                range.sample_iter(generator).take(length).map(T::from_f64).collect()
            }
            Self::Read { elements, .. } => {
                elements[..length].iter().map(|&x| T::from_f64(x)).collect()
            }
        }
    }

    /// Writes the first `length` elements as a Matrix Market array, each with the shortest text that
    /// reads back to the same bits.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path, length: usize) -> anyhow::Result<()> {
        let mut text = format!("%%MatrixMarket matrix array real general\n{length} 1\n");
        for x in self.elements::<f64>(length) {
            let _ = writeln!(text, "{x:e}");
        }
        write_whole(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// What `environment.json` records.
    pub fn describe(&self) -> serde_json::Value {
        match self {
            Self::Seeded { low, high, seed } => {
                serde_json::json!({ "low": low, "high": high, "seed": seed })
            }
            Self::Read { path, elements } => {
                let mut digest = Sha256::new();
                elements.iter().for_each(|x| digest.update(x.to_le_bytes()));
                serde_json::json!({
                    "file": path,
                    "elements": elements.len(),
                    "sha256_of_elements": hexadecimal(digest),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_vector_is_the_start_of_a_longer_one() {
        let input = Input::default();
        let x = input.elements::<f64>(100);
        assert_eq!(input.elements::<f64>(10), x[..10]);
        assert!(x.iter().all(|x| (0.1..3.0).contains(x)));
        let other = Input::Seeded { low: 0.1, high: 3.0, seed: 2 };
        assert_ne!(other.elements::<f64>(100), x);
    }

    #[test]
    fn what_is_written_reads_back_to_the_same_bits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.mtx");
        for (low, high) in [(0.1, 3.0), (-3e-5, 3e-5)] {
            let input = Input::Seeded { low, high, seed: 7 };
            input.write(&path, 1000).unwrap();
            let read = Input::read(&path).unwrap();
            assert_eq!(read.limit(), Some(1000));
            assert_eq!(read.elements::<f64>(1000), input.elements::<f64>(1000));
            assert_eq!(read.describe()["elements"], 1000);
        }
        std::fs::write(&path, "%%MatrixMarket matrix array real general\n1 2\n1\n2\n").unwrap();
        let error = Input::read(&path).unwrap_err().to_string();
        assert!(error.ends_with("expected 1 column, found 2"), "{error}");
    }
}
