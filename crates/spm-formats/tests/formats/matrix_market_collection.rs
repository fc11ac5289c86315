//! Reads every file of the collection beside the workspace: those that the documentation of
//! `spm_formats::matrix_market` says are read are as their index says, the others give their error.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use spm_formats::Complex;
use spm_formats::matrix_market::{
    Format, MatrixFile, MatrixMarketError, Mode, Problem, ReadOptions, Symmetry, read,
};

fn collection() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    // A checkout may be the sibling of the collection, or one folder deeper.
    let places = workspace.ancestors().skip(1).take(2);
    places.map(|folder| folder.join("shared/matrices")).find(|folder| folder.is_dir())
}

/// A file that some mode refuses: its folder and name, the error of strict mode, and what lenient mode
/// says where that is something else; without the path of the file.
type Refused = (&'static str, &'static str, Option<&'static str>);

include!("matrix_market_collection/refused.rs");

/// Size and entries, or the error behind the path.
fn outcome(path: &Path, result: &Result<MatrixFile<f64>, MatrixMarketError>) -> String {
    match result {
        Ok(matrix) => {
            let coo = &matrix.coo;
            format!("{} x {}, {} entries", coo.rows(), coo.cols(), coo.entries())
        }
        Err(error) => {
            let (error, path) = (error.to_string(), path.display().to_string());
            error.strip_prefix(&path).unwrap_or_else(|| panic!("{error}: no {path}")).to_owned()
        }
    }
}

/// In the stricter mode that reads the file.
fn read_complex(path: &Path) -> Result<MatrixFile<Complex<f64>>, MatrixMarketError> {
    let lenient = ReadOptions { mode: Mode::Lenient, ..ReadOptions::default() };
    read(path, &ReadOptions::default()).or_else(|_| read(path, &lenient))
}

#[test]
fn every_file_of_the_collection_is_read_as_documented() {
    let Some(folder) = collection() else {
        println!("skipped: no shared/matrices beside the workspace");
        return;
    };
    let index = std::fs::read_to_string(folder.join("INDEX.tsv")).unwrap();
    let (mut unread, mut complex) = (Vec::new(), 0);
    let mut files = BTreeSet::new();
    for line in index.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, dir, rows, cols, stored, format, field, symmetry, .., scipy] = columns[..]
        else {
            panic!("unexpected line in INDEX.tsv: {line}");
        };
        let path = folder.join(dir).join(format!("{name}.mtx.gz"));
        assert!(files.insert(path.clone()), "{name} is there twice");
        let name = if dir == "." { name.to_owned() } else { format!("{dir}/{name}") };
        let in_mode = |mode| read::<f64>(&path, &ReadOptions { mode, ..ReadOptions::default() });
        let (strict, lenient) = (in_mode(Mode::Strict), in_mode(Mode::Lenient));

        let refused = REFUSED.iter().find(|(refused, ..)| *refused == name);
        if let Some((_, in_strict, in_lenient)) = refused {
            assert_eq!(outcome(&path, &strict), *in_strict, "{name}");
            assert_eq!(outcome(&path, &lenient), in_lenient.unwrap_or(in_strict), "{name}");
        } else if field == "complex" && dir != "bad" {
            for result in [&strict, &lenient] {
                let problem = match result {
                    Err(MatrixMarketError::Invalid { problem, .. }) => Some(*problem),
                    _ => None,
                };
                assert_eq!(problem, Some(Problem::Complex), "{name}: {:?}", result.as_ref().err());
            }
            let read = read_complex(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(
                (read.coo.rows().to_string(), read.coo.cols().to_string()),
                (rows.to_owned(), cols.to_owned()),
                "{name}"
            );
            assert_eq!(read.header.entries.to_string(), stored, "{name}");
            assert_eq!(read.header.symmetry.word(), symmetry, "{name}");
            if let Some((_, expanded)) = scipy.split_once("expanded=") {
                assert_eq!(read.coo.entries().to_string(), expanded, "{name}");
            }
            complex += 1;
            continue;
        } else if strict.is_err() {
            let lenient = Some(outcome(&path, &lenient)).filter(|l| *l != outcome(&path, &strict));
            unread.push(format!("{:?}, {:?}, {lenient:?}", name, outcome(&path, &strict)));
            continue;
        } else {
            let header = |result: &Result<MatrixFile<f64>, _>| {
                result.as_ref().ok().map(|matrix| matrix.header.clone())
            };
            assert_eq!(header(&strict), header(&lenient), "{name}");
        }
        let Ok(matrix) = strict.or(lenient) else { continue };
        if rows == "?" {
            continue;
        }
        let (header, coo) = (&matrix.header, &matrix.coo);
        assert_eq!(coo.rows().to_string(), rows, "{name}");
        assert_eq!(coo.cols().to_string(), cols, "{name}");
        assert_eq!(header.entries.to_string(), stored, "{name}");
        assert_eq!(header.format.word(), format, "{name}");
        let same =
            header.field.word() == field || field == "double" && header.field.word() == "real";
        assert!(same, "{name}: {} is not {field}", header.field);
        assert_eq!(header.symmetry.word(), symmetry, "{name}");
        if let Some((_, expanded)) = scipy.split_once("expanded=") {
            assert_eq!(coo.entries().to_string(), expanded, "{name}");
        }
        if header.symmetry == Symmetry::General && header.format == Format::Coordinate {
            assert_eq!(coo.entries(), header.entries as usize, "{name}");
        }
    }
    assert!(unread.is_empty(), "refused, but not in the table:\n{}", unread.join("\n"));
    for folder in [folder.clone(), folder.join("odd"), folder.join("bad")] {
        for file in std::fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            let is_matrix = path.extension().is_some_and(|ending| ending == "gz");
            assert!(!is_matrix || files.contains(&path), "not in INDEX.tsv: {path:?}");
        }
    }
    println!("{} files as INDEX.tsv says, {complex} of them complex", files.len());
    assert!(files.len() > 220 && complex > 5);
}
