//! Synthetic matrices: structure classes with a seed and sizes, and stand-ins for the matrices of
//! the catalogue.
//!
//! The same label gives the same bits on every machine and for every number of threads. A generated
//! matrix is always called `synthetic:...`, so that nobody takes its figures for those of a
//! collected one.
//!
//! ```
//! use spm_formats::generate;
//!
//! let recipe = generate::named("stencil5[n=10]")?;
//! let matrix = recipe.generate::<f64>()?;
//! assert_eq!((matrix.rows(), matrix.nnz()), (100, 460));
//! assert_eq!(recipe.label(), "synthetic:stencil5[n=10]");
//!
//! let cage4 = generate::analogue::<f32>("cage4")?;
//! assert_eq!((cage4.rows(), cage4.nnz()), (9, 49));
//! # Ok::<(), generate::GenerateError>(())
//! ```

mod analogue;
mod class;
mod columns;
mod grids;
mod pattern;
mod profile;
mod random;
mod spec;
mod symmetric;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

pub use class::{Class, Kind, KindParameter, kinds};
pub use grids::Points;
pub use spec::Spec;

use crate::catalogue::{self, CatalogueEntry};
use crate::{Csr, FormatError, Scalar};

/// What stands before the name of every generated matrix.
pub const PREFIX: &str = "synthetic:";

/// The values of a generated matrix. All are exact in `f32`, and none is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Values {
    /// Uniform in (-1, 1), each entry on its own.
    Random,
    /// Uniform in (-1, 1), entry (j, i) equal to (i, j); for symmetric patterns only.
    Symmetric,
    /// All 1, as in a pattern file.
    Ones,
}

impl Values {
    /// Name in labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Symmetric => "symmetric",
            Self::Ones => "ones",
        }
    }
}

/// Why a matrix could not be generated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A name that is neither in the catalogue nor a kind.
    #[error(
        "{name} is neither a matrix of the catalogue nor a kind of generated matrix; kinds: {kinds}"
    )]
    Unknown {
        /// The name.
        name: String,
        /// The kinds there are.
        kinds: String,
    },
    /// A name that the catalogue does not have.
    #[error("the catalogue has no matrix called {name}")]
    NotInCatalogue {
        /// The name.
        name: String,
    },
    /// A label that is not `kind[name=value,...]`.
    #[error("{label}: {problem}")]
    Label {
        /// The label.
        label: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A parameter whose value makes no matrix.
    #[error("{what} {problem}")]
    Parameter {
        /// The parameter.
        what: &'static str,
        /// What is wrong with its value.
        problem: String,
    },
    /// Row lengths cannot have this sum.
    #[error("{rows} rows of {min} to {max} entries cannot hold {entries} entries")]
    Impossible {
        /// Number of rows.
        rows: usize,
        /// Number of entries.
        entries: usize,
        /// Shortest row.
        min: usize,
        /// Longest row.
        max: usize,
    },
    /// No symmetric pattern with the wanted row lengths was found.
    #[error(
        "found no symmetric pattern of {rows} rows with the wanted lengths ({entries} entries)"
    )]
    Unrealisable {
        /// Number of rows.
        rows: usize,
        /// Number of entries.
        entries: usize,
    },
    /// Sizes beyond the formats' limits.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// A matrix that can be generated at any time.
#[derive(Debug, Clone, PartialEq)]
pub enum Recipe {
    /// A structure class.
    Class(Spec),
    /// A stand-in for a matrix of the catalogue.
    Analogue(&'static CatalogueEntry),
}

impl Recipe {
    /// `synthetic:NAME` or `synthetic:kind[name=value,...]`; [`named`] reads it back.
    pub fn label(&self) -> String {
        format!("{PREFIX}{self}")
    }

    /// Builds the matrix.
    ///
    /// # Errors
    /// Parameters that contradict each other, sizes beyond 32 bits.
    pub fn generate<T: Scalar>(&self) -> Result<Csr<T>, GenerateError> {
        match self {
            Self::Class(spec) => spec.generate(),
            Self::Analogue(entry) => analogue::generate(entry),
        }
    }

    /// All values are 1, as they are in a pattern file.
    pub fn is_pattern(&self) -> bool {
        match self {
            Self::Class(spec) => spec.values() == Values::Ones,
            Self::Analogue(entry) => entry.field == catalogue::ValueField::Pattern,
        }
    }
}

impl fmt::Display for Recipe {
    /// The label without its prefix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(spec) => spec.fmt(f),
            Self::Analogue(entry) => f.pad(&entry.name),
        }
    }
}

impl FromStr for Recipe {
    type Err = GenerateError;

    fn from_str(label: &str) -> Result<Self, GenerateError> {
        let label = label.trim();
        let name = label.strip_prefix(PREFIX).unwrap_or(label);
        match catalogue::find(name) {
            Some(entry) => Ok(Self::Analogue(entry)),
            None => name.parse().map(Self::Class),
        }
    }
}

/// The matrix that `label` names: one of the catalogue, or `kind[name=value,...]`; with or without
/// the prefix `synthetic:`.
///
/// # Errors
/// An unknown name, or parameters that the kind does not have.
pub fn named(label: &str) -> Result<Recipe, GenerateError> {
    label.parse()
}

/// A synthetic stand-in for the catalogue's matrix `name`.
///
/// It has the same rows, columns and number of entries, none of them an explicit zero; all values 1
/// where the original is a pattern; a symmetric pattern with symmetric values where the original is
/// symmetric, with as many diagonal entries (the file's count implies them, so parity never stands
/// in the way); and the shortest, longest and mean row of the original, with its variance of row
/// lengths, where the catalogue knows them. Where it does not, lengths are taken from a matrix of
/// the same sequence (same group and size) or are typical of the matrix's kind. Where the entries
/// lie follows the kind: bands of dense blocks, meshes, roads, circuits with dense rows and columns,
/// power-law graphs.
///
/// # Errors
/// A name that is not in the catalogue.
pub fn analogue<T: Scalar>(name: &str) -> Result<Csr<T>, GenerateError> {
    let entry = catalogue::find(name)
        .ok_or_else(|| GenerateError::NotInCatalogue { name: name.to_owned() })?;
    analogue::generate(entry)
}

/// Matrices of different structure, each below two million entries: what runs when there is no
/// collected matrix at hand.
pub fn demo_suite() -> Vec<Recipe> {
    DEMO.iter().map(|label| named(label).expect("the suite is covered by a test")).collect()
}

const DEMO: [&str; 14] = [
    "cage4",                                                          // 9 x 9
    "mcfe",                 // small, dense rows of 17 to 81
    "bcsstk17",             // structural, rows of 1 to 150
    "lung2",                // short rows
    "thermomech_TK",        // symmetric, even rows
    "delaunay_n15",         // pattern, planar mesh
    "dc1",                  // one row of 114190
    "stencil27[n=40]",      // constant rows
    "blocks[n=16,block=3]", // dense node blocks
    "powerlaw[rows=400000,cols=400000,entries=1240000,longest=3000]", // after webbase-1M
    "road[n=400000,edges=565000]", // after roadNet-PA
    "uniform[rows=100000,cols=100000,entries=1500000]", // no locality at all
    "uniform[rows=20000,cols=300000,entries=600000]", // wide
    "uniform[rows=500000,cols=50000,entries=400000]", // tall, half the rows empty
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_demo_suite_is_small_and_varied() {
        let suite = demo_suite();
        let mut labels = HashSet::new();
        let (mut patterns, mut rectangular, mut with_empty_rows) = (0, 0, 0);
        for recipe in &suite {
            assert_eq!(named(&recipe.label()).unwrap(), *recipe);
            assert!(labels.insert(recipe.label()));
            let matrix = recipe.generate::<f32>().unwrap();
            assert!(matrix.nnz() < 2_000_000, "{recipe}");
            patterns += usize::from(recipe.is_pattern());
            rectangular += usize::from(matrix.rows() != matrix.cols());
            let pointers = matrix.indptr();
            let empty = pointers.raw_storage().windows(2).any(|pair| pair[0] == pair[1]);
            with_empty_rows += usize::from(empty);
        }
        assert!(patterns >= 2 && rectangular >= 2 && with_empty_rows >= 1);
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        for label in ["dc1", "bcsstk17", "powerlaw", "road", "circuit", "uniform", "stencil9"] {
            let recipe = named(label).unwrap();
            let on = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| recipe.generate::<f64>().unwrap())
            };
            assert!(on(1) == on(3), "{label}");
        }
    }

    /// FNV-1a over the arrays of a matrix.
    fn fingerprint(matrix: &Csr<f64>) -> u64 {
        let pointers = matrix.indptr();
        let indices = pointers.raw_storage().iter().chain(matrix.indices()).copied().map(u64::from);
        indices
            .chain(matrix.data().iter().map(|value| value.to_bits()))
            .fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x100_0000_01b3))
    }

    #[test]
    fn bits_are_the_same_everywhere() {
        let fingerprints = [
            "cage4",
            "bcsstk17",
            "adder_dcop_32",
            "delaunay_n12",
            "caidaRouterLevel",
            "stencil7[n=9]",
            "powerlaw[rows=3000,cols=2000,entries=9000,longest=300]",
            "uniform[rows=300,cols=2000,entries=900]",
        ]
        .map(|label| {
            format!("{label} {:016x}", fingerprint(&named(label).unwrap().generate().unwrap()))
        });
        assert_eq!(
            fingerprints,
            [
                "cage4 e12d275ea79b9ff7",
                "bcsstk17 39bc1bc8c99df625",
                "adder_dcop_32 23e0c47cb41e623c",
                "delaunay_n12 58246b3baa050b85",
                "caidaRouterLevel 27b016c4580bf683",
                "stencil7[n=9] 7ce3986bd374ceb2",
                "powerlaw[rows=3000,cols=2000,entries=9000,longest=300] 00e1d4e5a341b750",
                "uniform[rows=300,cols=2000,entries=900] 618aaa539a615572",
            ]
        );
    }

    #[test]
    fn single_precision_has_the_same_values() {
        let recipe = named("banded[n=50,lower=3,upper=2]").unwrap();
        let (single, double) =
            (recipe.generate::<f32>().unwrap(), recipe.generate::<f64>().unwrap());
        assert!(single.data().iter().zip(double.data()).all(|(&s, &d)| f64::from(s) == d));
    }

    #[test]
    fn unknown_names_are_explained() {
        let error = named("cant2").unwrap_err().to_string();
        assert!(error.contains("cant2") && error.contains("powerlaw"), "{error}");
        let error = analogue::<f64>("stencil5").unwrap_err().to_string();
        assert_eq!(error, "the catalogue has no matrix called stencil5");
    }
}
