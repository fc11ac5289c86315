//! `matrices/NAME.json`: what the report shows of a matrix.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::MATRICES_FOLDER;
use crate::files::{plain, write_whole};

/// What `matrices/NAME.json` says of one matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MatrixFile {
    /// Name as in `results.csv`.
    pub name: String,
    /// Measures by name (`rows`, `row_length_mean`, `bandwidth`, ...), printed as they come.
    #[serde(default)]
    pub stats: BTreeMap<String, serde_json::Value>,
    /// Rows with a length in `low..=high`, as `[low, high, count]`, ascending.
    #[serde(default)]
    pub row_length_histogram: Vec<(u64, u64, u64)>,
    /// Entries by position, on a coarse grid.
    #[serde(default)]
    pub spy: Option<Spy>,
}

/// Number of entries in each cell of a grid laid over the matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spy {
    /// Cells from top to bottom.
    pub rows: usize,
    /// Cells from left to right.
    pub cols: usize,
    /// `counts[row][col]`.
    pub counts: Vec<Vec<u64>>,
}

impl MatrixFile {
    /// Where the description of a matrix lies inside a results folder.
    pub fn path(results: &Path, matrix: &str) -> PathBuf {
        results.join(MATRICES_FOLDER).join(format!("{}.json", plain(matrix)))
    }

    /// Writes the description to its place in `results`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, results: &Path) -> anyhow::Result<()> {
        let path = Self::path(results, &self.name);
        let folder = results.join(MATRICES_FOLDER);
        std::fs::create_dir_all(&folder)
            .and_then(|()| write_whole(&path, serde_json::to_vec(self)?))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Every description in `results`, by name; a folder that is not there holds none.
    ///
    /// # Errors
    /// A file is unreadable or not a description.
    pub fn read_all(results: &Path) -> anyhow::Result<Vec<Self>> {
        let folder = results.join(MATRICES_FOLDER);
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        let unreadable = || format!("cannot read {}", folder.display());
        for entry in std::fs::read_dir(&folder).with_context(unreadable)? {
            let path = entry.with_context(unreadable)?.path();
            if path.extension().is_some_and(|e| e == "json") {
                let context = || format!("{} is not a matrix description", path.display());
                let text = std::fs::read(&path).with_context(context)?;
                all.push(serde_json::from_slice::<Self>(&text).with_context(context)?);
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrix_files_come_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(MatrixFile::read_all(folder.path()).unwrap(), []);
        let matrix = MatrixFile {
            name: "synthetic:cant".into(),
            stats: BTreeMap::from([("rows".to_owned(), 3.into())]),
            row_length_histogram: vec![(0, 0, 1), (1, 2, 2)],
            spy: Some(Spy { rows: 1, cols: 2, counts: vec![vec![3, 0]] }),
        };
        matrix.write(folder.path()).unwrap();
        assert_eq!(MatrixFile::read_all(folder.path()).unwrap(), [matrix]);
    }
}
