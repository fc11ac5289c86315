//! The structure classes: their sizes, their table for `--help`, and their patterns.

use super::columns::{ColumnSource, Grid, Locality};
use super::grids::{self, Points};
use super::pattern::Pattern;
use super::profile::{Profile, arrange};
use super::random::Random;
use super::symmetric::{Partners, realise};
use super::{GenerateError, Values};
use spm_formats::csr::check_limits;

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
/// `values=` with `general`, `single`, `few`, `ones` or, where the pattern is symmetric, `symmetric`
/// ([`Values`]).
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

/// The kinds that [`Spec`](super::Spec) reads, with their parameters and defaults.
pub fn kinds() -> &'static [Kind] {
    KINDS
}

impl Class {
    /// The kind's name and the sizes in the kind's order.
    pub(super) fn parts(&self) -> (&'static str, Vec<usize>) {
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
    pub(super) fn from_parts(kind: &str, sizes: &[usize]) -> Option<Self> {
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

    pub(super) fn default_values(&self) -> Values {
        match self {
            Self::Road { .. } => Values::Ones,
            class if class.is_symmetric() => Values::Symmetric,
            _ => Values::General,
        }
    }

    /// The pattern of these sizes; sizes beyond the formats' limits are refused before anything is
    /// computed of them.
    pub(super) fn pattern(&self, seed: u64) -> Result<Pattern, GenerateError> {
        match *self {
            Self::Diagonal { n } => grids::diagonal(n),
            Self::Banded { n, lower, upper } => grids::banded(n, lower, upper),
            Self::Stencil { points, n } => grids::stencil(points, n, 1),
            Self::Blocks { n, block } => grids::stencil(Points::TwentySeven, n, block),
            Self::PowerLaw { rows, cols, entries, longest } => {
                check_limits(rows as u64, cols as u64, entries as u64)?;
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
                check_limits(n as u64, n as u64, entries as u64)?;
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
                check_limits(n as u64, n as u64, entries as u64)?;
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
    check_limits(rows as u64, cols as u64, entries as u64)?;
    // Beyond half full, a throw would seldom find room.
    at_most("entries", entries, rows * cols / 2)?;
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
