//! Synthetic analogues of the matrices of the catalogue.

use spm_formats::{Csr, RealScalar};
use spm_testing::generate::{GenerateError, RowLengths, StandIn, Structure, Values, seed_of};

use crate::catalogue::{self, CatalogueEntry, FileSymmetry, ValueField};

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
        } else if name.starts_with("delaunay") {
            Structure::Triangulation
        } else {
            Structure::Mesh
        }
    } else if kind.contains("directed") && !kind.contains("undirected") {
        Structure::PowerLaw
    } else {
        Structure::Discretisation
    }
}

/// The entry whose row statistics are used: the matrix itself, or another of the same sequence,
/// which has the same structure and other values.
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

/// The analogue of a matrix of the catalogue.
///
/// The analogue has the same rows, columns and number of entries as the original, and no explicit
/// zeros. If the original is a pattern, all values are 1. If the original is symmetric, the
/// analogue has a symmetric pattern with symmetric values and the same number of diagonal entries,
/// which follows from the file's entry count.
///
/// The shortest, longest and mean row length and the variance of row lengths are those of the
/// original if the catalogue has them. Otherwise row lengths are taken from a matrix of the same
/// sequence (same group and size) or are typical of the matrix's kind. The positions of the entries
/// follow the kind: bands of dense blocks, meshes, roads, circuits with dense rows and columns,
/// power-law graphs.
///
/// # Errors
/// None of the entries of the catalogue has one.
pub fn generate<T: RealScalar>(entry: &CatalogueEntry) -> Result<Csr<T>, GenerateError> {
    let row_lengths = with_row_lengths(entry).and_then(|known| {
        Some(RowLengths {
            min: known.row_length_min?,
            max: known.row_length_max?,
            variance: known.row_length_variance?,
        })
    });
    let symmetric = entry.symmetry == FileSymmetry::Symmetric;
    let values = match (entry.field, symmetric) {
        (ValueField::Pattern, _) => Values::Ones,
        (_, true) => Values::Symmetric,
        (_, false) => Values::General,
    };
    let stand_in = StandIn {
        rows: entry.rows,
        cols: entry.cols,
        entries: entry.entries,
        structure: structure(entry),
        symmetric_diagonal: entry.implied_diagonal(),
        row_lengths,
        values,
        seed: seed_of(&entry.name),
    };
    stand_in.generate()
}

#[cfg(test)]
mod tests {
    use spm_formats::stats::RowLengthStats;

    use super::*;

    #[test]
    fn analogues_agree_with_the_catalogue() {
        let mut checked = 0;
        for entry in catalogue::all().iter().filter(|entry| entry.entries <= 3_000_000) {
            let name = &entry.name;
            let matrix = generate::<f32>(entry).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(matrix.rows(), entry.rows, "{name}");
            assert_eq!(matrix.cols(), entry.cols, "{name}");
            assert_eq!(matrix.nnz(), entry.entries, "{name}");
            let lengths = RowLengthStats::of(matrix.row_ptr());
            if let Some(known) = with_row_lengths(entry) {
                assert_eq!(Some(lengths.min as usize), known.row_length_min, "{name}");
                assert_eq!(Some(lengths.max as usize), known.row_length_max, "{name}");
                let (found, wanted) = (lengths.variance, known.row_length_variance.unwrap());
                assert!((found - wanted).abs() < 1e-4 * wanted, "{name}: {found}, {wanted}");
            }
            let ones = matrix.values().iter().all(|&v| v == 1.0);
            assert_eq!(ones, entry.field == ValueField::Pattern, "{name}");
            assert!(!matrix.values().contains(&0.0), "{name}");
            let entries = || matrix.iter().map(|(i, j, &v)| (v, i, j));
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
    fn sequences_share_their_row_lengths() {
        let lender =
            |name| with_row_lengths(catalogue::find(name).unwrap()).map(|e| e.name.as_str());
        assert_eq!(lender("dc3"), Some("dc1"));
        assert_eq!(lender("cavity14"), Some("cavity10"));
        assert_eq!(lender("raefsky1"), Some("raefsky2"));
        assert_eq!(lender("consph"), None);
    }
}
