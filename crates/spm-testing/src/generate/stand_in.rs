//! Stand-ins for matrices of which only size, row lengths and kind are known.

use spm_formats::{Csr, Scalar};

use super::class::circuit_locality;
use super::columns::{ColumnSource, Grid, Locality};
use super::pattern::Pattern;
use super::profile::{Profile, arrange, square};
use super::symmetric::{Partners, realise};
use super::{GenerateError, Values};

/// Where the entries of a matrix lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Structure {
    /// Discretised equations: stretches of neighbouring columns in the bands of a 2-D or 3-D grid.
    Discretisation,
    /// Meshes: the same bands with gaps.
    Mesh,
    /// Random triangulations, whose numbering has some neighbours far away.
    Triangulation,
    /// Roads: a mesh of degree 2 to 3.
    Road,
    /// The web, citations, co-authors, routers: power-law rows, partners anywhere.
    PowerLaw,
    /// Circuits: short rows, dense rows and columns.
    Circuit,
    /// Chemical plants, power networks, economies: near the diagonal, some anywhere.
    Scattered,
}

/// Shortest and longest row of a matrix and the variance of its row lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowLengths {
    /// Shortest row.
    pub min: usize,
    /// Longest row.
    pub max: usize,
    /// Population variance.
    pub variance: f64,
}

/// What is known of a matrix for which a synthetic one shall stand in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StandIn {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Number of entries.
    pub entries: usize,
    /// Where they lie.
    pub structure: Structure,
    /// Entries on the diagonal of a symmetric matrix; `None` for a general one.
    pub symmetric_diagonal: Option<usize>,
    /// The row lengths; those typical of the structure where they are not known.
    pub row_lengths: Option<RowLengths>,
    /// The values.
    pub values: Values,
    /// Seed of places and values.
    pub seed: u64,
}

impl StandIn {
    /// Builds the matrix: it has the rows, columns, number of entries, diagonal entries and row
    /// lengths of the original; none of its entries is an explicit zero.
    ///
    /// # Errors
    /// Figures that contradict each other, sizes beyond 32 bits.
    pub fn generate<T: Scalar>(&self) -> Result<Csr<T>, GenerateError> {
        let Self { rows, cols, structure, seed, .. } = *self;
        let profile = self.profile();
        let grid = self.grid();
        let mut lengths = profile.lengths()?;
        let run = if structure == Structure::Discretisation { 2 * grid.block } else { 1 };
        arrange(&mut lengths, run, seed);
        let pattern = if let Some(diagonal) = self.symmetric_diagonal {
            let partners = match structure {
                Structure::PowerLaw => Partners::Anywhere,
                // The numbering of Delaunay triangulations of random points has two in five
                // neighbours far away (measured on delaunay_n13: half of the distances below 20, a
                // quarter above 0.4 n).
                Structure::Triangulation => Partners::Grid { grid, far_percent: 40 },
                _ => Partners::Grid { grid, far_percent: 0 },
            };
            realise(&lengths, diagonal != 0, partners, seed)?
        } else {
            let locality = match structure {
                Structure::PowerLaw => Locality::Web { local_percent: 40 },
                Structure::Circuit => circuit_locality(rows, &profile.dense, seed),
                Structure::Scattered => Locality::Scattered { far_percent: 20, dense: Vec::new() },
                _ => Locality::Grid(grid),
            };
            let source = ColumnSource::new(rows, cols, locality, seed);
            Pattern::with_lengths(rows, cols, &lengths, |row, out| source.fill(row, out))?
        };
        Ok(pattern.into_csr(self.values, seed))
    }

    fn mean(&self) -> f64 {
        self.entries as f64 / self.rows as f64
    }

    fn profile(&self) -> Profile {
        let Self { rows, cols, entries, structure, .. } = *self;
        let diagonal = self.symmetric_diagonal.unwrap_or(0);
        let mean = self.mean();
        let heavy_tail = matches!(structure, Structure::PowerLaw | Structure::Circuit);
        // A symmetric matrix with fewer diagonal entries than rows has that many empty rows, unless
        // it is a graph without loops.
        let empty = if diagonal == 0 { 0 } else { rows - diagonal };
        let mut profile = Profile { rows, entries, heavy_tail, empty, ..Profile::default() };
        if let Some(RowLengths { min, max, variance }) = self.row_lengths {
            profile.min = if empty > 0 { min.max(1) } else { min };
            profile.max = max;
            profile.variance = Some(variance);
            split_off_dense(&mut profile);
            return profile;
        }
        profile.min = 1;
        if heavy_tail {
            // The usual cutoff of a scale-free graph without degree correlations is sqrt(entries).
            profile.max = entries.isqrt().min(cols - 1);
            if structure == Structure::Circuit {
                // The longest row of adder_dcop_32 has 0.7 rows entries, that of dc1 0.98.
                profile.max = profile.max.min(200);
                profile.dense = vec![(rows / 2) as u32];
            }
        } else {
            // Poisson-Delaunay triangulations have mean 6 and variance 1.78, 0.05 of the squared mean.
            profile.variance = Some(0.05 * mean * mean);
            profile.min = (mean / 2.0).floor().max(1.0) as usize;
            profile.max = ((2.0 * mean).ceil() as usize + 1).min(cols - 1);
        }
        profile
    }

    fn grid(&self) -> Grid {
        let mean = self.mean();
        let dimensions = if mean > 12.0 { 3 } else { 2 };
        match self.structure {
            Structure::Discretisation => {
                Grid { dimensions, block: if mean > 30.0 { 3 } else { 1 }, spread: 1 }
            }
            _ => Grid { dimensions, block: 1, spread: 3 },
        }
    }
}

/// Takes single rows out of the profile while one row alone makes up a large part of the variance:
/// a smooth distribution cannot hold it.
fn split_off_dense(profile: &mut Profile) {
    let Some(variance) = profile.variance else { return };
    let rows = profile.rows as f64;
    let mean = profile.entries as f64 / rows;
    let mut left = rows * variance;
    let longest = profile.max as f64;
    let mut next = longest;
    // What is left to the ordinary rows: a variance of the order of their squared mean.
    let ordinary = rows * mean * mean;
    while next > 32.0 * mean && (0.2 * left..=left).contains(&square(next - mean)) {
        profile.dense.push(next as u32);
        left -= square(next - mean);
        next = longest.min((left - ordinary).max(0.0).sqrt() + mean).floor();
    }
    if profile.dense.is_empty() {
        return;
    }
    profile.dense.reverse();
    profile.max = ((mean + 12.0 * (left / rows).sqrt()).ceil() as usize).min(profile.max);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the SuiteSparse matrix dc1.
    #[test]
    fn dense_rows_are_split_off_a_circuit() {
        let dc1 = StandIn {
            rows: 116_835,
            cols: 116_835,
            entries: 766_396,
            structure: Structure::Circuit,
            symmetric_diagonal: None,
            row_lengths: Some(RowLengths { min: 1, max: 114_190, variance: 130_681.0 }),
            values: Values::General,
            seed: 1,
        };
        let profile = dc1.profile();
        assert_eq!(profile.dense.len(), 2);
        assert_eq!(profile.dense[1], 114_190);
        assert!(profile.max < 200, "{}", profile.max);
    }
}
