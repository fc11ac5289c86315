//! Stand-ins for the matrices of the catalogue.

use super::class::circuit_locality;
use super::columns::{ColumnSource, Grid, Locality};
use super::pattern::Pattern;
use super::profile::{Profile, arrange, square};
use super::random::mix;
use super::symmetric::{Partners, realise};
use super::{GenerateError, Values};
use crate::catalogue::{self, CatalogueEntry, FileSymmetry, ValueField};
use crate::{Csr, Scalar};

/// What a matrix's kind says of its structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Structure {
    /// Discretised equations: stretches of neighbouring columns in the bands of a 2-D or 3-D grid.
    Discretisation,
    /// Triangulations and other meshes: the same bands with gaps.
    Mesh,
    /// Roads: a mesh of degree 2 to 3.
    Road,
    /// The web, citations, co-authors, routers: power-law rows, partners anywhere.
    PowerLaw,
    /// Circuits: short rows, dense rows and columns.
    Circuit,
    /// Chemical plants, power networks, economies: near the diagonal, some anywhere.
    Scattered,
}

fn structure(entry: &CatalogueEntry) -> Structure {
    let kind = entry.kind.as_str();
    if kind.contains("circuit") {
        Structure::Circuit
    } else if kind.contains("chemical")
        || kind.contains("power network")
        || kind.contains("economic")
    {
        Structure::Scattered
    } else if kind == "undirected graph" {
        // The collection's kind does not tell these apart; the names of their families do.
        let name = entry.name.as_str();
        if name.ends_with("_osm") || name.starts_with("roadNet") {
            Structure::Road
        } else if name.starts_with("co")
            || ["caidaRouterLevel", "citationCiteseer", "chesapeake"].contains(&name)
        {
            Structure::PowerLaw
        } else {
            Structure::Mesh
        }
    } else if kind.contains("directed") && !kind.contains("undirected") {
        Structure::PowerLaw
    } else {
        Structure::Discretisation
    }
}

/// The entry that lends its row statistics: the matrix itself, or another of the same sequence,
/// which shares the structure and differs in values.
fn with_row_lengths(entry: &CatalogueEntry) -> Option<&CatalogueEntry> {
    if entry.row_length_max.is_some() {
        return Some(entry);
    }
    catalogue::all().iter().find(|other| {
        other.row_length_max.is_some()
            && other.group == entry.group
            && (other.rows, other.cols, other.entries) == (entry.rows, entry.cols, entry.entries)
    })
}

fn profile(entry: &CatalogueEntry, structure: Structure) -> Profile {
    let (rows, entries) = (entry.rows, entry.entries);
    let diagonal = entry.implied_diagonal().unwrap_or(0);
    let mean = entries as f64 / rows as f64;
    let heavy_tail = matches!(structure, Structure::PowerLaw | Structure::Circuit);
    // A symmetric file with fewer diagonal entries than rows has that many empty rows, unless it
    // is a graph without loops.
    let empty = if diagonal == 0 { 0 } else { rows - diagonal };
    let known = with_row_lengths(entry).and_then(|known| {
        Some((known.row_length_min?, known.row_length_max?, known.row_length_variance?))
    });
    let mut profile = Profile { rows, entries, heavy_tail, empty, ..Profile::default() };
    if let Some((min, max, variance)) = known {
        profile.min = if empty > 0 { min.max(1) } else { min };
        profile.max = max;
        profile.variance = Some(variance);
        split_off_dense(&mut profile);
        return profile;
    }
    profile.min = 1;
    if heavy_tail {
        // The usual cutoff of a scale-free graph without degree correlations is sqrt(entries).
        profile.max = entries.isqrt().min(entry.cols - 1);
        if structure == Structure::Circuit {
            // The longest row of adder_dcop_32 has 0.7 rows entries, that of dc1 0.98.
            profile.max = profile.max.min(200);
            profile.dense = vec![(rows / 2) as u32];
        }
    } else {
        // Poisson-Delaunay triangulations have mean 6 and variance 1.78, 0.05 of the squared mean.
        profile.variance = Some(0.05 * mean * mean);
        profile.min = (mean / 2.0).floor().max(1.0) as usize;
        profile.max = ((2.0 * mean).ceil() as usize + 1).min(entry.cols - 1);
    }
    profile
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

fn grid(structure: Structure, mean: f64) -> Grid {
    let dimensions = if mean > 12.0 { 3 } else { 2 };
    match structure {
        Structure::Discretisation => {
            Grid { dimensions, block: if mean > 30.0 { 3 } else { 1 }, spread: 1 }
        }
        _ => Grid { dimensions, block: 1, spread: 3 },
    }
}

pub(super) fn generate<T: Scalar>(entry: &CatalogueEntry) -> Result<Csr<T>, GenerateError> {
    let seed = entry.name.bytes().fold(0, |seed, byte| mix(seed ^ u64::from(byte)));
    let structure = structure(entry);
    let profile = profile(entry, structure);
    let grid = grid(structure, entry.entries as f64 / entry.rows as f64);
    let mut lengths = profile.lengths()?;
    let run = if structure == Structure::Discretisation { 2 * grid.block } else { 1 };
    arrange(&mut lengths, run, seed);
    let symmetric = entry.symmetry == FileSymmetry::Symmetric;
    let values = match (entry.field, symmetric) {
        (ValueField::Pattern, _) => Values::Ones,
        (_, true) => Values::Symmetric,
        (_, false) => Values::Random,
    };
    let pattern = if symmetric {
        let partners = match structure {
            Structure::PowerLaw => Partners::Anywhere,
            // The numbering of these random triangulations has two in five neighbours far away
            // (measured on delaunay_n13: half of the distances below 20, a quarter above 0.4 n).
            Structure::Mesh if entry.name.starts_with("delaunay") => {
                Partners::Grid { grid, far_percent: 40 }
            }
            _ => Partners::Grid { grid, far_percent: 0 },
        };
        realise(&lengths, entry.implied_diagonal() != Some(0), partners, seed)?
    } else {
        let locality = match structure {
            Structure::PowerLaw => Locality::Web { local_percent: 40 },
            Structure::Circuit => circuit_locality(entry.rows, &profile.dense, seed),
            Structure::Scattered => Locality::Scattered { far_percent: 20, dense: Vec::new() },
            _ => Locality::Grid(grid),
        };
        let source = ColumnSource::new(entry.rows, entry.cols, locality, seed);
        Pattern::with_lengths(entry.rows, entry.cols, &lengths, |row, out| source.fill(row, out))?
    };
    Ok(pattern.into_csr(values, seed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::RowLengthStats;

    #[test]
    fn analogues_agree_with_the_catalogue() {
        let mut checked = 0;
        for entry in catalogue::all().iter().filter(|entry| entry.entries <= 3_000_000) {
            let name = &entry.name;
            let matrix = generate::<f32>(entry).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(matrix.rows(), entry.rows, "{name}");
            assert_eq!(matrix.cols(), entry.cols, "{name}");
            assert_eq!(matrix.nnz(), entry.entries, "{name}");
            let lengths = RowLengthStats::of(matrix.indptr().raw_storage());
            if let Some(known) = with_row_lengths(entry) {
                assert_eq!(Some(lengths.min as usize), known.row_length_min, "{name}");
                assert_eq!(Some(lengths.max as usize), known.row_length_max, "{name}");
                let (found, wanted) = (lengths.variance, known.row_length_variance.unwrap());
                assert!((found - wanted).abs() < 1e-4 * wanted, "{name}: {found}, {wanted}");
            }
            let ones = matrix.data().iter().all(|&v| v == 1.0);
            assert_eq!(ones, entry.field == ValueField::Pattern, "{name}");
            assert!(!matrix.data().contains(&0.0), "{name}");
            let entries = || matrix.iter().map(|(&v, (i, j))| (v, i as usize, j as usize));
            if let Some(diagonal) = entry.implied_diagonal() {
                assert_eq!(entries().filter(|&(_, i, j)| i == j).count(), diagonal, "{name}");
                let mirrored = entries().all(|(v, i, j)| matrix.get(j, i) == Some(&v));
                assert!(mirrored, "{name}");
            }
            checked += 1;
        }
        assert_eq!(checked, 47);
    }

    #[test]
    fn dc1_has_its_two_dense_rows() {
        let profile = profile(catalogue::find("dc1").unwrap(), Structure::Circuit);
        assert_eq!(profile.dense.len(), 2);
        assert_eq!(profile.dense[1], 114_190);
        assert!(profile.max < 200, "{}", profile.max);
    }

    #[test]
    fn sequences_share_their_row_lengths() {
        let lender =
            |name| with_row_lengths(catalogue::find(name).unwrap()).map(|e| e.name.as_str());
        assert_eq!(lender("dc3"), Some("dc1"));
        assert_eq!(lender("cavity14"), Some("cavity10"));
        assert_eq!(lender("raefsky1"), Some("raefsky2"));
        assert_eq!(lender("consph"), None);
    }
}
