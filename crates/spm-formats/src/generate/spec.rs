//! Structure classes and their labels.

use std::fmt;
use std::str::FromStr;

use super::columns::{ColumnSource, Grid, Locality};
use super::grids::{self, Points};
use super::pattern::Pattern;
use super::profile::{Profile, arrange};
use super::random::Random;
use super::symmetric::{Partners, realise};
use super::{GenerateError, Values};
use crate::kernel::split_label;
use crate::{Csr, Scalar};

/// A class of sparsity structure with its sizes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The diagonal.
    Diagonal {
        /// Rows.
        n: usize,
    },
    /// Every column from `row - lower` to `row + upper`.
    Banded {
        /// Rows.
        n: usize,
        /// Diagonals below the main one.
        lower: usize,
        /// Diagonals above it.
        upper: usize,
    },
    /// A finite-difference stencil.
    Stencil {
        /// Its points.
        points: Points,
        /// Grid points a side.
        n: usize,
    },
    /// Finite elements: dense blocks on the 27-point stencil of the nodes.
    Blocks {
        /// Nodes a side of the cube.
        n: usize,
        /// Unknowns of a node.
        block: usize,
    },
    /// A directed graph like the web: Zipf row lengths, Zipf popularity of columns.
    PowerLaw {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
        /// Entries.
        entries: usize,
        /// Entries of the longest row.
        longest: usize,
    },
    /// An undirected graph of degree 1 to 8 with partners nearby: a pattern, no diagonal.
    Road {
        /// Crossings.
        n: usize,
        /// Roads; there are twice as many entries.
        edges: usize,
    },
    /// A circuit: short rows, and a few nearly dense rows and columns.
    Circuit {
        /// Rows.
        n: usize,
        /// Entries.
        entries: usize,
        /// Dense rows, and as many dense columns.
        dense: usize,
        /// Entries of a dense row.
        longest: usize,
    },
    /// Every entry anywhere.
    Uniform {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
        /// Entries.
        entries: usize,
    },
}

/// A parameter of a [`Kind`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct KindParameter {
    /// Name before the `=`.
    pub name: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    /// Taken when it is not given.
    pub default: usize,
}

/// One kind of generated matrix, for `--help`. Every kind also takes `seed=NUMBER` (default 1) and
/// `values=random`, `values=ones` or, where the pattern is symmetric, `values=symmetric`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Kind {
    /// Name before the bracket.
    pub name: &'static str,
    /// What it looks like.
    pub summary: &'static str,
    /// Its sizes in the order in which they print.
    pub parameters: &'static [KindParameter],
}

const fn parameter(name: &'static str, meaning: &'static str, default: usize) -> KindParameter {
    KindParameter { name, meaning, default }
}

const SQUARE: &[KindParameter] = &[parameter("n", "grid points a side; n^2 rows", 300)];
const CUBE: &[KindParameter] = &[parameter("n", "grid points a side; n^3 rows", 40)];

const KINDS: &[Kind] = &[
    Kind {
        name: "diagonal",
        summary: "the diagonal",
        parameters: &[parameter("n", "rows", 100_000)],
    },
    Kind {
        name: "banded",
        summary: "every column near the diagonal",
        parameters: &[
            parameter("n", "rows", 100_000),
            parameter("lower", "diagonals below the main one", 5),
            parameter("upper", "diagonals above the main one", 5),
        ],
    },
    Kind { name: "stencil5", summary: "2-D grid, four neighbours", parameters: SQUARE },
    Kind { name: "stencil9", summary: "2-D grid, eight neighbours", parameters: SQUARE },
    Kind { name: "stencil7", summary: "3-D grid, six neighbours", parameters: CUBE },
    Kind { name: "stencil27", summary: "3-D grid, 26 neighbours", parameters: CUBE },
    Kind {
        name: "blocks",
        summary: "finite elements: dense blocks on the 27-point stencil of the nodes",
        parameters: &[
            parameter("n", "nodes a side; n^3 nodes", 16),
            parameter("block", "unknowns of a node", 3),
        ],
    },
    Kind {
        name: "powerlaw",
        summary: "directed graph like the web: Zipf row lengths and column popularity",
        parameters: &[
            parameter("rows", "rows", 100_000),
            parameter("cols", "columns", 100_000),
            parameter("entries", "entries", 310_000),
            parameter("longest", "entries of the longest row", 1500),
        ],
    },
    Kind {
        name: "road",
        summary: "undirected graph of degree 1 to 8 with partners nearby",
        parameters: &[
            parameter("n", "crossings", 100_000),
            parameter("edges", "roads; twice as many entries", 140_000),
        ],
    },
    Kind {
        name: "circuit",
        summary: "short rows with a few nearly dense rows and columns",
        parameters: &[
            parameter("n", "rows", 100_000),
            parameter("entries", "entries", 600_000),
            parameter("dense", "dense rows, and as many dense columns", 1),
            parameter("longest", "entries of a dense row", 90_000),
        ],
    },
    Kind {
        name: "uniform",
        summary: "every entry anywhere",
        parameters: &[
            parameter("rows", "rows", 100_000),
            parameter("cols", "columns", 100_000),
            parameter("entries", "entries", 1_000_000),
        ],
    },
];

/// The kinds that [`Spec`] reads, with their parameters and defaults.
pub fn kinds() -> &'static [Kind] {
    KINDS
}

impl Class {
    /// The kind's name and the sizes in the kind's order.
    fn parts(&self) -> (&'static str, Vec<usize>) {
        match *self {
            Self::Diagonal { n } => ("diagonal", vec![n]),
            Self::Banded { n, lower, upper } => ("banded", vec![n, lower, upper]),
            Self::Stencil { points, n } => (
                match points {
                    Points::Five => "stencil5",
                    Points::Nine => "stencil9",
                    Points::Seven => "stencil7",
                    Points::TwentySeven => "stencil27",
                },
                vec![n],
            ),
            Self::Blocks { n, block } => ("blocks", vec![n, block]),
            Self::PowerLaw { rows, cols, entries, longest } => {
                ("powerlaw", vec![rows, cols, entries, longest])
            }
            Self::Road { n, edges } => ("road", vec![n, edges]),
            Self::Circuit { n, entries, dense, longest } => {
                ("circuit", vec![n, entries, dense, longest])
            }
            Self::Uniform { rows, cols, entries } => ("uniform", vec![rows, cols, entries]),
        }
    }

    /// The inverse of [`Class::parts`].
    fn from_parts(kind: &str, sizes: &[usize]) -> Option<Self> {
        let stencil = |points, n| Some(Self::Stencil { points, n });
        match (kind, sizes) {
            ("diagonal", &[n]) => Some(Self::Diagonal { n }),
            ("banded", &[n, lower, upper]) => Some(Self::Banded { n, lower, upper }),
            ("stencil5", &[n]) => stencil(Points::Five, n),
            ("stencil9", &[n]) => stencil(Points::Nine, n),
            ("stencil7", &[n]) => stencil(Points::Seven, n),
            ("stencil27", &[n]) => stencil(Points::TwentySeven, n),
            ("blocks", &[n, block]) => Some(Self::Blocks { n, block }),
            ("powerlaw", &[rows, cols, entries, longest]) => {
                Some(Self::PowerLaw { rows, cols, entries, longest })
            }
            ("road", &[n, edges]) => Some(Self::Road { n, edges }),
            ("circuit", &[n, entries, dense, longest]) => {
                Some(Self::Circuit { n, entries, dense, longest })
            }
            ("uniform", &[rows, cols, entries]) => Some(Self::Uniform { rows, cols, entries }),
            _ => None,
        }
    }

    /// Entry (j, i) exists wherever (i, j) does.
    pub fn is_symmetric(&self) -> bool {
        match self {
            Self::Diagonal { .. } | Self::Stencil { .. } | Self::Blocks { .. } => true,
            Self::Road { .. } => true,
            Self::Banded { lower, upper, .. } => lower == upper,
            Self::PowerLaw { .. } | Self::Circuit { .. } | Self::Uniform { .. } => false,
        }
    }

    fn default_values(&self) -> Values {
        match self {
            Self::Road { .. } => Values::Ones,
            class if class.is_symmetric() => Values::Symmetric,
            _ => Values::Random,
        }
    }

    fn pattern(&self, seed: u64) -> Result<Pattern, GenerateError> {
        match *self {
            Self::Diagonal { n } => grids::diagonal(n),
            Self::Banded { n, lower, upper } => grids::banded(n, lower, upper),
            Self::Stencil { points, n } => grids::stencil(points, n, 1),
            Self::Blocks { n, block } => grids::stencil(Points::TwentySeven, n, block),
            Self::PowerLaw { rows, cols, entries, longest } => {
                at_most("longest", longest, cols)?;
                let profile = Profile {
                    rows,
                    entries,
                    min: usize::from(entries >= rows),
                    max: longest,
                    heavy_tail: true,
                    ..Profile::default()
                };
                let mut lengths = profile.lengths()?;
                arrange(&mut lengths, 1, seed);
                let locality = Locality::Web { local_percent: 40 };
                let source = ColumnSource::new(rows, cols, locality, seed);
                Pattern::with_lengths(rows, cols, &lengths, |row, out| source.fill(row, out))
            }
            Self::Road { n, edges } => {
                let entries = edges.saturating_mul(2);
                let mean = entries as f64 / n.max(1) as f64;
                let profile = Profile {
                    rows: n,
                    entries,
                    min: usize::from(entries >= n),
                    max: 8.min(n.saturating_sub(1)),
                    // Row lengths of roadNet-PA: mean 2.8, variance 1.05.
                    variance: Some(0.13 * mean * mean),
                    ..Profile::default()
                };
                let mut lengths = profile.lengths()?;
                arrange(&mut lengths, 1, seed);
                let grid = Grid { dimensions: 2, block: 1, spread: 3 };
                realise(&lengths, false, Partners::Grid { grid, far_percent: 0 }, seed)
            }
            Self::Circuit { n, entries, dense, longest } => {
                at_most("longest", longest, n)?;
                at_most("dense", dense, n)?;
                // Ordinary rows have up to 60 entries, or up to sqrt(n) in a small circuit.
                let profile = Profile {
                    rows: n,
                    entries,
                    min: 1,
                    max: n.isqrt().clamp(1, 60).max(entries.div_ceil(n.max(1)).min(n)),
                    heavy_tail: true,
                    dense: vec![u32::try_from(longest).unwrap_or(u32::MAX); dense],
                    ..Profile::default()
                };
                let mut lengths = profile.lengths()?;
                arrange(&mut lengths, 1, seed);
                let locality = circuit_locality(n, &profile.dense, seed);
                let source = ColumnSource::new(n, n, locality, seed);
                Pattern::with_lengths(n, n, &lengths, |row, out| source.fill(row, out))
            }
            Self::Uniform { rows, cols, entries } => {
                let lengths = scattered_lengths(rows, cols, entries, seed)?;
                let source = ColumnSource::new(rows, cols, Locality::Uniform, seed);
                Pattern::with_lengths(rows, cols, &lengths, |row, out| source.fill(row, out))
            }
        }
    }
}

/// Short rows near the diagonal, and a dense column for every dense row.
pub(super) fn circuit_locality(n: usize, dense: &[u32], seed: u64) -> Locality {
    let mut random = Random::new(seed, 2);
    let dense = dense.iter().map(|&entries| (random.below(n) as u32, entries)).collect();
    Locality::Scattered { far_percent: 15, dense }
}

fn at_most(what: &'static str, value: usize, limit: usize) -> Result<(), GenerateError> {
    if value <= limit {
        Ok(())
    } else {
        let problem = format!("is {value}; at most {limit} is possible");
        Err(GenerateError::Parameter { what, problem })
    }
}

/// Throws `entries` entries at the rows, each row holding at most `cols`.
fn scattered_lengths(
    rows: usize,
    cols: usize,
    entries: usize,
    seed: u64,
) -> Result<Vec<u32>, GenerateError> {
    // Beyond half full, a throw would seldom find room.
    at_most("entries", entries, rows.saturating_mul(cols) / 2)?;
    crate::csr::check_limits(rows as u64, cols as u64, entries as u64)?;
    let mut lengths = vec![0u32; rows];
    let mut random = Random::new(seed, 0);
    let mut left = entries;
    while left > 0 {
        let length = &mut lengths[random.below(rows)];
        if (*length as usize) < cols {
            *length += 1;
            left -= 1;
        }
    }
    Ok(lengths)
}

/// A class with seed and values; reads and prints as `kind[name=value,...]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    class: Class,
    seed: u64,
    values: Values,
}

impl Spec {
    /// `class` with seed 1 and the values that suit it: ones for roads, symmetric where the pattern
    /// is, random otherwise.
    pub fn new(class: Class) -> Self {
        let values = class.default_values();
        Self { class, seed: 1, values }
    }

    /// Replaces the seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Replaces the values.
    ///
    /// # Errors
    /// Symmetric values for a pattern that is not symmetric.
    pub fn with_values(mut self, values: Values) -> Result<Self, GenerateError> {
        if values == Values::Symmetric && !self.class.is_symmetric() {
            return Err(GenerateError::Parameter {
                what: "values",
                problem: format!(
                    "cannot be symmetric: the pattern of {} is not",
                    self.class.parts().0
                ),
            });
        }
        self.values = values;
        Ok(self)
    }

    /// The class.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The values.
    pub fn values(&self) -> Values {
        self.values
    }

    /// Builds the matrix.
    ///
    /// # Errors
    /// Parameters that contradict each other, sizes beyond 32 bits.
    pub fn generate<T: Scalar>(&self) -> Result<Csr<T>, GenerateError> {
        Ok(self.class.pattern(self.seed)?.into_csr(self.values, self.seed))
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, sizes) = self.class.parts();
        let kind = KINDS.iter().find(|kind| kind.name == name).expect("every class has a kind");
        write!(f, "{name}[")?;
        for (i, (parameter, size)) in kind.parameters.iter().zip(sizes).enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{}={size}", parameter.name)?;
        }
        if self.seed != 1 {
            write!(f, ",seed={}", self.seed)?;
        }
        if self.values != self.class.default_values() {
            write!(f, ",values={}", self.values.name())?;
        }
        f.write_str("]")
    }
}

impl FromStr for Spec {
    type Err = GenerateError;

    /// Sizes that are not given keep the kind's defaults.
    fn from_str(label: &str) -> Result<Self, GenerateError> {
        let (name, assignments) = split_label(label);
        let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            GenerateError::Unknown { name: label.to_owned(), kinds: kinds.join(", ") }
        })?;
        let wrong = |problem| GenerateError::Label { label: label.to_owned(), problem };
        if label.contains('[') != label.ends_with(']') {
            return Err(wrong("the brackets do not match".to_owned()));
        }
        let mut sizes: Vec<usize> = kind.parameters.iter().map(|p| p.default).collect();
        let (mut seed, mut values) = (1, None);
        for assignment in assignments.split(',').map(str::trim).filter(|a| !a.is_empty()) {
            let (key, text) = assignment.split_once('=').unwrap_or((assignment, ""));
            let number = || format!("{key} must be a number, found {text:?}");
            if let Some(i) = kind.parameters.iter().position(|p| p.name == key) {
                sizes[i] = text.parse().map_err(|_| wrong(number()))?;
            } else if key == "seed" {
                seed = text.parse().map_err(|_| wrong(number()))?;
            } else if key == "values" {
                let known = [Values::Random, Values::Symmetric, Values::Ones];
                let found = known.into_iter().find(|values| values.name() == text);
                values = Some(found.ok_or_else(|| {
                    wrong(format!("values must be random, symmetric or ones, found {text:?}"))
                })?);
            } else {
                let known: Vec<&str> = kind.parameters.iter().map(|p| p.name).collect();
                let known = known.join(", ");
                return Err(wrong(format!("{name} takes {known}, seed and values, not {key:?}")));
            }
        }
        let class = Class::from_parts(name, &sizes).expect("every kind has a class");
        let spec = Self::new(class).with_seed(seed);
        match values {
            Some(values) => spec.with_values(values),
            None => Ok(spec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_read_back() {
        for kind in kinds() {
            let spec: Spec = kind.name.parse().unwrap();
            assert_eq!(spec.class().parts().0, kind.name);
            assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec);
            let other = spec.with_seed(77).with_values(Values::Ones).unwrap();
            assert_eq!(other.to_string().parse::<Spec>().unwrap(), other);
        }
        let spec: Spec = "banded[ n=9, upper=0]".parse().unwrap();
        assert_eq!(*spec.class(), Class::Banded { n: 9, lower: 5, upper: 0 });
        assert_eq!(spec.values(), Values::Random);
        assert_eq!(spec.to_string(), "banded[n=9,lower=5,upper=0]");
    }

    #[test]
    fn wrong_labels_are_explained() {
        for (label, word) in [
            ("stencil27[m=3]", "\"m\""),
            ("stencil27[n=x]", "number"),
            ("stencil27[n=3", "brackets"),
            ("uniform[values=symmetric]", "symmetric"),
            ("road[values=twos]", "twos"),
            ("nosuch[n=3]", "diagonal"),
        ] {
            let error = label.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(word), "{label}: {error}");
        }
    }

    #[test]
    fn classes_have_their_sizes() {
        for (label, rows, cols, entries) in [
            ("diagonal[n=7]", 7, 7, 7),
            ("powerlaw[rows=5000,cols=700,entries=20000,longest=300]", 5000, 700, 20_000),
            ("powerlaw[rows=5000,cols=9000,entries=1000,longest=30]", 5000, 9000, 1000),
            ("road[n=3000,edges=4200]", 3000, 3000, 8400),
            ("circuit[n=4000,entries=30000,dense=2,longest=3500]", 4000, 4000, 30_000),
            ("uniform[rows=30,cols=2000,entries=900]", 30, 2000, 900),
            ("uniform[rows=0,cols=5,entries=0]", 0, 5, 0),
            ("blocks[n=3,block=2]", 54, 54, 7 * 7 * 7 * 4),
        ] {
            let spec: Spec = label.parse().unwrap();
            let matrix = spec.generate::<f64>().unwrap();
            assert_eq!(
                (matrix.rows(), matrix.cols(), matrix.nnz()),
                (rows, cols, entries),
                "{label}"
            );
            assert!(matrix.data().iter().all(|&v| v != 0.0 && v.abs() <= 1.0));
        }
    }

    #[test]
    fn contradictions_are_errors() {
        for label in [
            "uniform[rows=3,cols=3,entries=9]",
            "uniform[rows=0,cols=3,entries=1]",
            "powerlaw[cols=10,longest=11]",
            "powerlaw[rows=10,cols=10,entries=200,longest=10]",
            "road[n=10,edges=1000]",
            "road[n=0,edges=1]",
            "circuit[n=10,longest=11]",
            "circuit[n=10,entries=12,dense=1,longest=9]",
            "stencil27[n=5000]",
            "banded[n=100000,lower=100000,upper=0]",
        ] {
            assert!(label.parse::<Spec>().unwrap().generate::<f64>().is_err(), "{label}");
        }
    }

    #[test]
    fn symmetric_values_mirror() {
        for label in ["road[n=500,edges=700,values=symmetric]", "stencil9[n=9]", "blocks[n=3]"] {
            let matrix = label.parse::<Spec>().unwrap().generate::<f64>().unwrap();
            let mirrored =
                matrix.iter().all(|(&v, (i, j))| matrix.get(j as usize, i as usize) == Some(&v));
            assert!(mirrored, "{label}");
        }
    }
}
