//! The structure classes, each declared once: its kind, its sizes and their defaults.

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

/// One kind of generated matrix, for `--help`. Every kind also takes the options of
/// [`Spec`](super::Spec).
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

macro_rules! classes {
    ($($class:ident $kind:literal $summary:literal {
        $($size:ident = $default:literal $meaning:literal,)*
    })*) => {
        /// A class of sparsity structure with its sizes.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Class {
            $(#[doc = $summary] $class { $(#[doc = $meaning] $size: usize,)* },)*
        }

        const KINDS: &[Kind] = &[$(Kind {
            name: $kind,
            summary: $summary,
            parameters: &[$(KindParameter {
                name: stringify!($size),
                meaning: $meaning,
                default: $default,
            },)*],
        },)*];

        impl Class {
            /// The kind's name and the sizes in the kind's order.
            pub(super) fn parts(&self) -> (&'static str, Vec<usize>) {
                match *self {
                    $(Self::$class { $($size,)* } => ($kind, vec![$($size,)*]),)*
                }
            }

            /// The inverse of [`Class::parts`].
            pub(super) fn from_parts(kind: &str, sizes: &[usize]) -> Option<Self> {
                match (kind, sizes) {
                    $(($kind, &[$($size,)*]) => Some(Self::$class { $($size,)* }),)*
                    _ => None,
                }
            }
        }
    };
}

classes! {
    Diagonal "diagonal" "the diagonal" {
        n = 100_000 "rows",
    }
    Banded "banded" "every column near the diagonal" {
        n = 100_000 "rows",
        lower = 5 "diagonals below the main one",
        upper = 5 "diagonals above the main one",
    }
    Stencil5 "stencil5" "2-D grid, four neighbours" {
        n = 300 "grid points a side; n^2 rows",
    }
    Stencil9 "stencil9" "2-D grid, eight neighbours" {
        n = 300 "grid points a side; n^2 rows",
    }
    Stencil7 "stencil7" "3-D grid, six neighbours" {
        n = 40 "grid points a side; n^3 rows",
    }
    Stencil27 "stencil27" "3-D grid, 26 neighbours" {
        n = 40 "grid points a side; n^3 rows",
    }
    Masked5 "masked5" "2-D grid with holes, four neighbours" {
        n = 300 "grid points a side, those in holes included",
        holes = 30 "percentage of the 16 x 16 tiles that are holes",
    }
    Masked7 "masked7" "3-D grid with holes, six neighbours" {
        n = 40 "grid points a side, those in holes included",
        holes = 30 "percentage of the 16 x 16 x 16 tiles that are holes",
    }
    Mesh2 "mesh2" "triangulated plane: a 2-D grid whose cells have one random diagonal" {
        n = 300 "nodes a side; n^2 nodes",
    }
    Mesh3 "mesh3" "tetrahedral mesh: a 3-D grid with random diagonals of faces and cells" {
        n = 40 "nodes a side; n^3 nodes",
    }
    Atoms "atoms" "3-D grid, every neighbour within a distance, as atomic orbitals couple" {
        n = 16 "atoms a side; n^3 atoms",
        reach = 6 "squared distance of the farthest neighbours (6 reaches 80)",
    }
    Blocks "blocks" "finite elements: dense blocks on the 27-point stencil of the nodes" {
        n = 16 "nodes a side; n^3 nodes",
        block = 3 "unknowns of a node",
    }
    BlockDiagonal "blockdiagonal" "dense blocks of different sizes on the diagonal" {
        n = 100_000 "rows",
        size = 8 "rows of a block in the mean",
    }
    Arrow "arrow" "the diagonal, and the first rows and columns full" {
        n = 100_000 "rows",
        width = 3 "full rows, and as many full columns",
    }
    PowerLaw "powerlaw" "directed graph like the web: Zipf row lengths and column popularity" {
        rows = 100_000 "rows",
        cols = 100_000 "columns",
        entries = 310_000 "entries",
        longest = 1500 "entries of the longest row",
    }
    Hosts "hosts" "web pages ordered by host: most links near, at distances of every magnitude" {
        n = 100_000 "pages",
        entries = 800_000 "links",
        longest = 1500 "links of the longest row",
    }
    Ratings "ratings" "users by items: Zipf row lengths and column popularity, no locality" {
        rows = 100_000 "users",
        cols = 5_000 "items",
        entries = 1_000_000 "ratings",
        longest = 2_000 "entries of the longest row",
    }
    Rmat "rmat" "directed R-MAT graph (0.57, 0.19, 0.19, 0.05), repeated edges merged" {
        scale = 16 "2^scale vertices",
        edges = 1_000_000 "edges drawn",
    }
    RmatSymmetric "rmat-symmetric" "undirected R-MAT graph, repeated edges merged" {
        scale = 16 "2^scale vertices",
        edges = 500_000 "edges drawn; at most twice as many entries",
    }
    Road "road" "undirected graph of degree 1 to 8 with partners nearby; no diagonal" {
        n = 100_000 "crossings",
        edges = 140_000 "roads; twice as many entries",
    }
    Power "power" "power network: a tree of short lines, some long ones, and the diagonal" {
        n = 100_000 "buses",
        extra = 40_000 "lines beside those of the tree",
    }
    Circuit "circuit" "short rows with a few nearly dense rows and columns" {
        n = 100_000 "rows",
        entries = 600_000 "entries",
        dense = 1 "dense rows, and as many dense columns",
        longest = 90_000 "entries of a dense row",
    }
    Kkt "kkt" "saddle point [H A^T; A 0]: H a 2-D stencil of nine points, A short rows" {
        n = 200 "grid points a side; n^2 variables",
        constraints = 20_000 "rows of A",
    }
    Program "lp" "constraints of a linear program: short rows near the diagonal, some far, a few long" {
        rows = 20_000 "constraints",
        cols = 60_000 "variables",
        entries = 200_000 "entries",
        dense = 4 "long rows",
        longest = 5_000 "entries of a long row",
    }
    Markov "markov" "Markov chain of queues in a row: arrivals, departures and moves" {
        states = 12 "lengths of a queue",
        queues = 4 "queues; states^queues rows",
    }
    Uniform "uniform" "every entry anywhere" {
        rows = 100_000 "rows",
        cols = 100_000 "columns",
        entries = 1_000_000 "entries",
    }
}

/// The kinds that [`Spec`](super::Spec) reads, with their parameters and defaults.
pub fn kinds() -> &'static [Kind] {
    KINDS
}
