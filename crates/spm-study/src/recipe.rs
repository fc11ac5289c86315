//! Matrices that can be generated: structure classes and analogues of the catalogue's matrices.
//!
//! The same label gives the same bits on every machine and for every number of threads. The name of
//! a generated matrix always begins with `synthetic:`, so that its figures are not confused with
//! those of a collected matrix.

use std::fmt;
use std::str::FromStr;

use spm_formats::{Csr, RealScalar};
use spm_testing::generate::{self, GenerateError, PREFIX, Spec, Values};

use crate::analogue;
use crate::catalogue::{self, CatalogueEntry};

/// The description of a matrix that can be generated.
#[derive(Debug, Clone, PartialEq)]
pub enum Recipe {
    /// A structure class.
    Class(Spec),
    /// A synthetic analogue of a matrix of the catalogue.
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
    pub fn generate<T: RealScalar>(&self) -> Result<Csr<T>, GenerateError> {
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
            None => generate::named(name).map(Self::Class),
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

/// The demo suite: matrices of different structure, each below two million entries, for runs
/// without collected matrices.
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

    use spm_testing::generate::fingerprint;

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
            let empty = matrix.row_ptr().windows(2).any(|pair| pair[0] == pair[1]);
            with_empty_rows += usize::from(empty);
        }
        assert!(patterns >= 2 && rectangular >= 2 && with_empty_rows >= 1);
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        for label in ["dc1", "bcsstk17"] {
            let recipe = named(label).unwrap();
            let on = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| recipe.generate::<f64>().unwrap())
            };
            assert!(on(1) == on(3), "{label}");
        }
    }

    #[test]
    fn bits_are_the_same_everywhere() {
        let fingerprints = [
            ("cage4", 0x812c_1322_86ca_3177),
            ("bcsstk17", 0xa942_9394_59ce_b473),
            ("adder_dcop_32", 0x69cd_73e2_59c9_12f4),
            ("delaunay_n12", 0x5824_6b3b_aa05_0b85),
            ("caidaRouterLevel", 0x27b0_16c4_580b_f683),
        ];
        for (label, expected) in fingerprints {
            let found = fingerprint(&named(label).unwrap().generate().unwrap());
            assert_eq!(found, expected, "{label}: {found:016x}");
        }
    }

    #[test]
    fn unknown_names_are_explained() {
        let error = named("cant2").unwrap_err().to_string();
        assert!(error.contains("cant2") && error.contains("powerlaw"), "{error}");
    }
}
