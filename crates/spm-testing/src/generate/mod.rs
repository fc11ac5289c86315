//! Generators of synthetic matrices: structure classes with a seed and sizes, and analogues of
//! matrices of which only size and row lengths are known.
//!
//! The same label gives the same bits on every machine and for every number of threads. The name of
//! a generated matrix always begins with `synthetic:`, so that its figures are not confused with
//! those of a collected matrix.
//!
//! ```
//! use spm_testing::generate;
//!
//! let spec = generate::named("stencil5[n=10]")?;
//! let matrix = spec.generate::<f64>()?;
//! assert_eq!((matrix.rows(), matrix.nnz()), (100, 460));
//! assert_eq!(spec.label(), "synthetic:stencil5[n=10]");
//! # Ok::<(), generate::GenerateError>(())
//! ```

mod class;
mod columns;
mod error;
mod graphs;
mod grids;
mod kinds;
mod mesh;
mod numbering;
mod pattern;
mod profile;
mod random;
mod spec;
mod stand_in;
mod symmetric;
mod systems;

use spm_formats::Csr;

pub use error::GenerateError;
pub use kinds::{Class, Kind, KindParameter, kinds};
pub use numbering::Numbering;
pub use spec::Spec;
pub use stand_in::{RowLengths, StandIn, Structure};

/// The prefix of the name of every generated matrix.
pub const PREFIX: &str = "synthetic:";

/// The values of a generated matrix; none is 0. Those of [`Values::General`] need the whole width of
/// the type; the other kinds are what lossless compression can make smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Values {
    /// Uniform in (-1, 1), each entry on its own, with a 53-bit significand.
    General,
    /// As [`Values::General`], entry (j, i) equal to (i, j); for symmetric patterns only.
    Symmetric,
    /// Uniform in (-1, 1), each entry on its own, exact in `f32`.
    Single,
    /// [`FEW_VALUES`] distinct values that are not exact in `f32`.
    Few,
    /// [`MANY_VALUES`] distinct values that are not exact in `f32`.
    Many,
    /// All 1, as in a pattern file.
    Ones,
}

/// Distinct values of a matrix with [`Values::Few`].
pub const FEW_VALUES: u32 = 128;

/// Distinct values of a matrix with [`Values::Many`], if it has enough entries: as many as 16 bits
/// can number.
pub const MANY_VALUES: u32 = 40_000;

impl Values {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::General, Self::Symmetric, Self::Single, Self::Few, Self::Many, Self::Ones];

    /// Name in labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::Single => "single",
            Self::Few => "few",
            Self::Many => "many",
            Self::Ones => "ones",
        }
    }
}

/// FNV-1a over the arrays of a matrix: the same for the same bits.
pub fn fingerprint(matrix: &Csr<f64>) -> u64 {
    let indices = matrix.row_ptr().iter().chain(matrix.col_ind()).copied().map(u64::from);
    indices
        .chain(matrix.values().iter().map(|value| value.to_bits()))
        .fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x100_0000_01b3))
}

/// A seed from a name.
pub fn seed_of(name: &str) -> u64 {
    name.bytes().fold(0, |seed, byte| random::mix(seed ^ u64::from(byte)))
}

/// The matrix that `label` names: `kind[name=value,...]`, with or without the prefix `synthetic:`.
///
/// # Errors
/// An unknown kind, or parameters that the kind does not have.
pub fn named(label: &str) -> Result<Spec, GenerateError> {
    let label = label.trim();
    label.strip_prefix(PREFIX).unwrap_or(label).parse()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_number_of_threads_changes_nothing() {
        for label in [
            "powerlaw",
            "road",
            "circuit",
            "uniform",
            "stencil9",
            "rmat-symmetric[scale=12,edges=40000]",
            "power",
            "kkt[n=90]",
            "hosts[n=9000,entries=60000]",
            "mesh3[n=12,drop=5,order=rcm,unknowns=2,values=many]",
            "markov[states=6,order=random]",
        ] {
            let spec = named(label).unwrap();
            let on = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| spec.generate::<f64>().unwrap())
            };
            assert!(on(1) == on(3), "{label}");
        }
    }

    #[test]
    fn bits_are_the_same_everywhere() {
        let fingerprints = [
            ("stencil7[n=9]", 0xd72b_de2a_a9dc_66c0),
            ("powerlaw[rows=3000,cols=2000,entries=9000,longest=300]", 0xe4ca_1de0_9398_2e2e),
            ("uniform[rows=300,cols=2000,entries=900]", 0x10e0_4fc1_1217_906c),
            ("mesh2[n=30,drop=10,order=rcm,unknowns=3]", 0x1030_86b2_c662_ba61),
            ("mesh3[n=9,order=random]", 0xedab_b729_4bc2_ac46),
            ("masked7[n=40]", 0x7a97_893e_c034_573d),
            ("rmat[scale=9,edges=5000]", 0x8100_1b90_5840_0e52),
            ("power[n=2000,extra=500]", 0xfb10_1b94_f5fe_a02d),
            ("kkt[n=20,constraints=300]", 0xc16f_a534_da8f_fdaf),
            ("lp[rows=300,cols=4000,entries=3000,dense=2,longest=400]", 0x8e05_168b_154c_aef5),
            ("hosts[n=2000,entries=9000,longest=200]", 0x0852_0e2c_698b_0b18),
        ];
        let found = |label: &str| fingerprint(&named(label).unwrap().generate().unwrap());
        let changed: Vec<String> = fingerprints
            .iter()
            .filter(|(label, expected)| found(label) != *expected)
            .map(|(label, _)| format!("{label}: {:#018x}", found(label)))
            .collect();
        assert!(changed.is_empty(), "{changed:#?}");
    }

    /// Distinct values, and whether each is exact in single precision.
    fn values_of(label: &str) -> (usize, bool) {
        let matrix = named(label).unwrap().generate::<f64>().unwrap();
        let distinct: HashSet<u64> = matrix.values().iter().map(|value| value.to_bits()).collect();
        (distinct.len(), matrix.values().iter().all(|&value| f64::from(value as f32) == value))
    }

    #[test]
    fn values_are_of_the_kind_that_is_asked_for() {
        let of = |values| values_of(&format!("uniform[rows=90,cols=90,entries=4000{values}]"));
        assert_eq!(of(""), (4000, false));
        assert_eq!(of(",values=general"), (4000, false));
        assert_eq!(of(",values=few"), (FEW_VALUES as usize, false));
        // Of 40,000 values, 4000 draws leave out few: some values are drawn twice.
        let (distinct, exact) = of(",values=many");
        assert!((3700..3990).contains(&distinct) && !exact, "{distinct}");
        assert_eq!(of(",values=ones"), (1, true));
        let (distinct, exact) = of(",values=single");
        assert!(distinct > 3900 && exact);
        assert!(!values_of("stencil7[n=9]").1);
    }

    #[test]
    fn labels_are_read_back_and_unknown_names_explained() {
        let spec = named("stencil5[n=10]").unwrap();
        assert_eq!(spec.label(), "synthetic:stencil5[n=10]");
        assert_eq!(named(&spec.label()).unwrap(), spec);
        let error = named("cant2").unwrap_err().to_string();
        assert!(error.contains("cant2") && error.contains("powerlaw"), "{error}");
    }
}
