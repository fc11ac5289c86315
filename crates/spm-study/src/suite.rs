//! Which matrices a command works on, and how they are loaded.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::catalogue;
use anyhow::{Context, ensure};
use spm_formats::matrix_market::{self, Mode, ReadOptions};
use spm_formats::{RealScalar, convert};
use spm_testing::generate::GenerateError;

use crate::input::Input;
use crate::matrix::Matrix;
use crate::recipe::{self, Recipe};

/// A matrix that is not loaded yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A Matrix Market file: .mtx, .mtx.gz, or .tar.gz with NAME.mtx inside.
    File(PathBuf),
    /// A generated matrix.
    Generated(Recipe),
}

/// What a user may name where a command takes one matrix.
pub const MATRIX_HELP: &str = "A file (.mtx, .mtx.gz, .tar.gz); a matrix of the five reports by its \
    name, such as cant, generated in its likeness until it is downloaded; or a generator with its \
    parameters, such as \"stencil27[n=100]\" (`cargo xtask generate --help` lists them)";

/// The same where a command takes several or none.
pub fn matrices_help() -> String {
    format!("{MATRIX_HELP}. Default: what is downloaded, or a demo suite when nothing is")
}

/// The root of the workspace that this program was built in, or the current folder when it runs
/// elsewhere.
pub fn workspace_root() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_owned);
    built.filter(|root| root.join("Cargo.toml").is_file()).unwrap_or_else(|| ".".into())
}

/// Where `download-suitesparse` puts matrices unless told otherwise.
pub fn download_folder() -> PathBuf {
    workspace_root().join("data/suitesparse")
}

impl Source {
    /// What a user names: a file, a generator's label (with or without `synthetic:`), or a matrix
    /// of the catalogue, which is the downloaded file if there is one and its analogue if not.
    ///
    /// # Errors
    /// Nothing of that name exists.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let path = Path::new(text);
        if path.is_file() {
            ensure!(matrix_name(path).is_some(), "{text}: expected .mtx, .mtx.gz or .tar.gz");
            return Ok(Self::File(path.to_owned()));
        }
        let name = text.rsplit('/').next().unwrap_or(text);
        if let Some(path) = downloaded(name) {
            return Ok(Self::File(path));
        }
        match recipe::named(name) {
            Ok(recipe) => Ok(Self::Generated(recipe)),
            // A generator that exists was meant, and its error says what is wrong with it.
            Err(error @ GenerateError::Label { .. }) => Err(error.into()),
            Err(error) => Err(error).with_context(|| format!("{text}: no such file")),
        }
    }

    /// Name in tables.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => matrix_name(path).unwrap_or_else(|| path.display().to_string()),
            Self::Generated(recipe) => recipe.label(),
        }
    }

    /// About how many entries it has, without reading it.
    pub fn entries(&self) -> u64 {
        /// Bytes of an entry, as text and compressed: an entry of a symmetric file counts twice.
        const TEXT: u64 = 15;
        const COMPRESSED: u64 = 5;
        match self {
            Self::File(path) => {
                let known = matrix_name(path).and_then(|name| catalogue::find(&name));
                let plain = path.extension().is_some_and(|end| end == "mtx");
                let bytes = path.metadata().map_or(0, |file| file.len());
                let guess = bytes / if plain { TEXT } else { COMPRESSED };
                known.map_or(guess, |entry| entry.entries as u64)
            }
            Self::Generated(Recipe::Analogue(entry)) => entry.entries as u64,
            Self::Generated(recipe @ Recipe::Class(_)) => {
                recipe.generate::<f32>().map_or(0, |matrix| matrix.nnz() as u64)
            }
        }
    }

    /// Reads or generates the matrix.
    ///
    /// # Errors
    /// An unreadable or unsound file: the error names file, line and what was expected.
    pub fn load<T: RealScalar>(&self, mode: Mode, input: Input) -> anyhow::Result<Matrix<T>> {
        let (coo, csr) = match self {
            Self::File(path) => {
                let options = ReadOptions { mode, ..ReadOptions::default() };
                let coo = matrix_market::read::<T>(path, &options)?.coo;
                let csr = convert::coo_to_csr(&coo);
                (coo, csr)
            }
            Self::Generated(recipe) => {
                let csr = recipe.generate::<T>()?;
                (convert::csr_to_coo(csr.view()), csr)
            }
        };
        Ok(Matrix::new(self.name(), coo, csr, input))
    }
}

impl fmt::Display for Source {
    /// The path of a file, the label of a generated matrix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Generated(recipe) => recipe.label().fmt(f),
        }
    }
}

/// The matrices of `--suite`: `demo`, `reports`, or a folder. Without a suite: every matrix that
/// was downloaded, or the demo suite when there is none.
///
/// # Errors
/// A folder that cannot be read or holds no matrix.
pub fn suite(name: Option<&str>) -> anyhow::Result<Vec<Source>> {
    match name {
        None => {
            let found = downloads();
            if found.is_empty() { suite(Some("demo")) } else { Ok(files(found)) }
        }
        Some("demo") => Ok(recipe::demo_suite().into_iter().map(Source::Generated).collect()),
        Some("reports") => catalogue::all().iter().map(|e| Source::parse(&e.name)).collect(),
        Some(folder) => {
            let found = in_folder(Path::new(folder))?;
            ensure!(!found.is_empty(), "{folder} holds no .mtx, .mtx.gz or .tar.gz file");
            Ok(files(found))
        }
    }
}

/// Every matrix file in `folder` and its folders (GROUP/NAME.mtx), ordered by path; beside NAME.mtx
/// neither a packed form of it (NAME.mtx.gz, NAME.tar.gz) nor right-hand sides and the like (NAME/).
fn in_folder(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let context = || format!("cannot read the folder {}", folder.display());
    let (mut files, mut pending) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).with_context(context)? {
            let path = entry.with_context(context)?.path();
            if path.is_dir() {
                if !beside_matrix(&path, "") {
                    pending.push(path);
                }
            } else if matrix_name(&path).is_some()
                && ![".mtx.gz", ".tar.gz"].iter().any(|end| beside_matrix(&path, end))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Whether `path` is NAME followed by `end`, with NAME.mtx in the same folder.
fn beside_matrix(path: &Path, end: &str) -> bool {
    let name = path.file_name().and_then(|file| file.to_str()?.strip_suffix(end));
    name.is_some_and(|name| path.with_file_name(format!("{name}.mtx")).is_file())
}

/// The name of the matrix in a file, from the file's name.
fn matrix_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    [".mtx", ".mtx.gz", ".tar.gz"].iter().find_map(|end| file.strip_suffix(end)).map(str::to_owned)
}

fn downloaded(name: &str) -> Option<PathBuf> {
    downloads().into_iter().find(|path| matrix_name(path).as_deref() == Some(name))
}

/// What is downloaded; nothing where the folder is not there.
fn downloads() -> Vec<PathBuf> {
    in_folder(&download_folder()).unwrap_or_default()
}

fn files(paths: Vec<PathBuf>) -> Vec<Source> {
    paths.into_iter().map(Source::File).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_walked_in_order() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("HB")).unwrap();
        for file in ["b.mtx", "a.mtx.gz", "HB/c.tar.gz", "notes.txt"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let path = folder.path().to_str().unwrap();
        let names: Vec<_> = suite(Some(path)).unwrap().iter().map(Source::name).collect();
        assert_eq!(names, ["c", "a", "b"]);

        for companion in ["HB/c.mtx", "HB/c/c_b.mtx", "b.mtx.gz"] {
            let path = folder.path().join(companion);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let names: Vec<_> = suite(Some(path)).unwrap().iter().map(Source::name).collect();
        assert_eq!(names, ["c", "a", "b"]);
    }

    #[test]
    fn an_empty_folder_and_an_unknown_name_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        assert!(suite(Some(folder.path().to_str().unwrap())).is_err());
        let error = format!("{:#}", Source::parse("no-such-matrix").unwrap_err());
        assert!(error.starts_with("no-such-matrix: no such file: "), "{error}");
        let error = format!("{:#}", Source::parse("stencil5[m=3]").unwrap_err());
        assert!(error.starts_with("stencil5[m=3]: stencil5 takes n, "), "{error}");
    }

    #[test]
    fn the_demo_suite_has_a_dozen_matrices() {
        assert!(suite(Some("demo")).unwrap().len() >= 12);
    }
}
