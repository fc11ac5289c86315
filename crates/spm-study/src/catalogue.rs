//! The catalogue: facts about the SuiteSparse matrices of the five reports, without the matrices.
//!
//! The table is `data/suitesparse.csv` of this crate, embedded; `data/README.md` of the
//! repository names its origin, licence and citations.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize};

const TABLE: &str = include_str!("../data/suitesparse.csv");

/// The reports that spm reproduces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Report {
    /// Cristofori 2022: SpMV in CSR and ELLPACK. Thirty matrices, tables 1 to 4.
    R0,
    /// Di Iorio: SpMV in CSR and ELLPACK, 1-D and 2-D partitions. The matrices of its two tables.
    R1,
    /// Pompili: SpMV in CSR and HLL. It shows its matrices in plots only; listed are those that
    /// its section VII names.
    R2,
    /// Incudini and Penzo: transposition. The files of its figure 14.
    R3,
    /// Capotombolo and Zarrelli 2023: SpMM. It names no matrix; the catalogue uses those of R0.
    R4,
}

impl Report {
    /// All five in order.
    pub const ALL: [Self; 5] = [Self::R0, Self::R1, Self::R2, Self::R3, Self::R4];

    /// The matrices of this report, by name; for R4, which names none, those of R0.
    pub fn matrices(self) -> impl Iterator<Item = &'static CatalogueEntry> {
        let set = if self == Self::R4 { Self::R0 } else { self };
        all().iter().filter(move |entry| entry.reports.contains(&set))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::R0 => "R0",
            Self::R1 => "R1",
            Self::R2 => "R2",
            Self::R3 => "R3",
            Self::R4 => "R4",
        })
    }
}

impl FromStr for Report {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|report| report.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("no report is called {text}; there are R0 to R4"))
    }
}

/// What the file stores of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueField {
    /// A real number.
    Real,
    /// A whole number.
    Integer,
    /// Nothing: every stored entry is 1.
    Pattern,
}

/// Whether the file stores all entries or the lower triangle only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSymmetry {
    /// All entries.
    General,
    /// The lower triangle with the diagonal.
    Symmetric,
}

/// One matrix of the SuiteSparse collection. It is deserialised from a row of the table, where
/// [`reports`](Self::reports) are words in one field and a yes or no is written so.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct CatalogueEntry {
    /// Name, unique in the catalogue: `cant`.
    pub name: String,
    /// Group of the collection: `Williams`.
    pub group: String,
    /// Number in the collection.
    pub id: u32,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Stored entries after symmetric expansion, explicit zeros included.
    pub entries: usize,
    /// How many of the entries are explicit zeros.
    pub explicit_zeros: usize,
    /// What the file stores of each entry.
    pub field: ValueField,
    /// Whether the file stores one triangle only.
    pub symmetry: FileSymmetry,
    /// Entries in the file: the third number of its size line.
    pub header_entries: usize,
    /// Problem kind as the collection words it: `structural problem`.
    pub kind: String,
    /// Symmetric positive definite.
    #[serde(deserialize_with = "yes_or_no")]
    pub positive_definite: bool,
    /// Fraction of the off-diagonal entries whose mirror image is an entry too.
    pub pattern_symmetry: f64,
    /// Fraction of the off-diagonal entries whose mirror image has the same value.
    pub numeric_symmetry: f64,
    /// SHA-256 of `NAME.tar.gz` in the Matrix Market form of the collection, in hexadecimal.
    pub sha256_tar_gz: String,
    /// Shortest row; `None` where the reports' sources do not say.
    pub row_length_min: Option<usize>,
    /// Longest row.
    pub row_length_max: Option<usize>,
    /// Mean row length.
    pub row_length_mean: Option<f64>,
    /// Population variance of the row lengths.
    pub row_length_variance: Option<f64>,
    /// The reports that use the matrix.
    #[serde(deserialize_with = "reports")]
    pub reports: Vec<Report>,
}

impl CatalogueEntry {
    /// Diagonal entries that a symmetric file implies: twice the header's count less the expanded
    /// count. `None` for a general file.
    pub fn implied_diagonal(&self) -> Option<usize> {
        (self.symmetry == FileSymmetry::Symmetric).then(|| 2 * self.header_entries - self.entries)
    }
}

fn yes_or_no<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(serde::de::Error::custom(format!("expected yes or no, found {other}"))),
    }
}

fn reports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Report>, D::Error> {
    String::deserialize(deserializer)?
        .split_whitespace()
        .map(|word| word.parse().map_err(serde::de::Error::custom))
        .collect()
}

static ENTRIES: LazyLock<Vec<CatalogueEntry>> = LazyLock::new(|| {
    csv::Reader::from_reader(TABLE.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .expect("the embedded table is covered by a test")
});

/// Every matrix of the reports, in alphabetical order.
pub fn all() -> &'static [CatalogueEntry] {
    &ENTRIES
}

/// The matrix called `name`, exactly.
pub fn find(name: &str) -> Option<&'static CatalogueEntry> {
    all().iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reports_have_their_matrices() {
        assert_eq!(all().len(), 71);
        let sizes = Report::ALL.map(|report| report.matrices().count());
        assert_eq!(sizes, [30, 64, 5, 9, 30]);
        assert!(all().iter().all(|entry| !entry.reports.is_empty()));
    }

    #[test]
    fn facts_are_consistent() {
        for (i, entry) in all().iter().enumerate() {
            let name = &entry.name;
            assert!(!all()[..i].iter().any(|other| other.name == *name), "{name} twice");
            assert_eq!(entry.sha256_tar_gz.len(), 64, "{name}");
            assert!(entry.explicit_zeros <= entry.entries, "{name}");
            match entry.implied_diagonal() {
                Some(diagonal) => assert!(diagonal <= entry.rows, "{name}"),
                None => assert_eq!(entry.header_entries, entry.entries, "{name}"),
            }
            if let Some(mean) = entry.row_length_mean {
                let expected = entry.entries as f64 / entry.rows as f64;
                assert!((mean - expected).abs() < 1e-5 * expected, "{name}: {mean}, {expected}");
            }
        }
    }

    #[test]
    fn cant_is_as_published() {
        let cant = find("cant").unwrap();
        assert_eq!((cant.rows, cant.cols, cant.entries), (62451, 62451, 4007383));
        assert_eq!(cant.implied_diagonal(), Some(62451));
        assert_eq!((cant.row_length_min, cant.row_length_max), (Some(1), Some(78)));
        assert_eq!(cant.reports, [Report::R0, Report::R1, Report::R2, Report::R3]);
        assert!(cant.positive_definite);
        assert_eq!(find("Cant"), None);
        assert_eq!(find("consph").unwrap().row_length_variance, None);
    }
}
