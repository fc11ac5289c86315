//! The patterns of the structure classes.

use super::columns::{ColumnSource, Grid, Locality};
use super::error::at_most;
use super::kinds::Class;
use super::pattern::Pattern;
use super::profile::{Profile, arrange};
use super::random::Random;
use super::symmetric::{Partners, realise};
use super::{GenerateError, Values, graphs, grids, mesh, systems};
use spm_formats::csr::check_limits;

impl Class {
    /// Entry (j, i) exists wherever (i, j) does.
    pub fn is_symmetric(&self) -> bool {
        match self {
            Self::Banded { lower, upper, .. } => lower == upper,
            Self::PowerLaw { .. }
            | Self::Hosts { .. }
            | Self::Ratings { .. }
            | Self::Rmat { .. }
            | Self::Circuit { .. }
            | Self::Program { .. }
            | Self::Markov { .. }
            | Self::Uniform { .. } => false,
            _ => true,
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
            Self::Stencil5 { n } => grids::stencil(2, true, n),
            Self::Stencil9 { n } => grids::stencil(2, false, n),
            Self::Stencil7 { n } => grids::stencil(3, true, n),
            Self::Stencil27 { n } => grids::stencil(3, false, n),
            Self::Blocks { n, block } => grids::stencil(3, false, n)?.with_unknowns(block),
            Self::Masked5 { n, holes } => mesh::masked(2, n, holes, seed),
            Self::Masked7 { n, holes } => mesh::masked(3, n, holes, seed),
            Self::Mesh2 { n } => mesh::triangles(n, seed),
            Self::Mesh3 { n } => mesh::tetrahedra(n, seed),
            Self::Atoms { n, reach } => mesh::atoms(n, reach),
            Self::BlockDiagonal { n, size } => systems::block_diagonal(n, size, seed),
            Self::Arrow { n, width } => systems::arrow(n, width),
            Self::Rmat { scale, edges } => graphs::rmat(scale, edges, false, seed),
            Self::RmatSymmetric { scale, edges } => graphs::rmat(scale, edges, true, seed),
            Self::Power { n, extra } => graphs::power(n, extra, seed),
            Self::Kkt { n, constraints } => systems::kkt(n, constraints, seed),
            Self::Program { rows, cols, entries, dense, longest } => {
                systems::program((rows, cols), entries, dense, longest, seed)
            }
            Self::Markov { states, queues } => graphs::markov(states, queues),
            Self::PowerLaw { rows, cols, entries, longest } => {
                let locality = Locality::Web { local_percent: 40 };
                heavy_tail((rows, cols), entries, longest, locality, seed)
            }
            Self::Ratings { rows, cols, entries, longest } => {
                let locality = Locality::Web { local_percent: 0 };
                heavy_tail((rows, cols), entries, longest, locality, seed)
            }
            Self::Hosts { n, entries, longest } => {
                heavy_tail((n, n), entries, longest, Locality::Hosts, seed)
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

/// Rows of power-law lengths.
fn heavy_tail(
    (rows, cols): (usize, usize),
    entries: usize,
    longest: usize,
    locality: Locality,
    seed: u64,
) -> Result<Pattern, GenerateError> {
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
    let source = ColumnSource::new(rows, cols, locality, seed);
    Pattern::with_lengths(rows, cols, &lengths, |row, out| source.fill(row, out))
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
