//! Reads every matrix of the collection beside the workspace and compares it with its index.
#![cfg(feature = "io")]

use std::path::{Path, PathBuf};

use spm_formats::matrix_market::{
    Format, MatrixMarketError, Mode, Problem, ReadOptions, Symmetry, read,
};

fn collection() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    // A checkout may be the sibling of the collection, or one folder deeper.
    let places = workspace.ancestors().skip(1).take(2);
    places.map(|folder| folder.join("shared/matrices")).find(|folder| folder.is_dir())
}

/// Files that follow the specification only loosely: read in lenient mode, refused in strict.
const LENIENT_ONLY: [(&str, Problem); 5] = [
    ("fmmpy_matrix_coordinate_real_skew-symmetric", Problem::Symmetry),
    ("fmm_permissive_banner_one_percent_eye3", Problem::Banner),
    ("fmm_coordinate_hermitian_real_row", Problem::Banner),
    ("lagraph_matrix_fp64", Problem::Value),
    ("cholmod_fullrsa", Problem::Comment),
];

/// Files that no mode reads, whatever SciPy does: what strict and lenient mode say.
const REFUSED: [(&str, Problem, Problem); 4] = [
    ("fmm_vector_array", Problem::Banner, Problem::Banner),
    ("fmmpy_windows_newlines", Problem::Banner, Problem::Banner),
    ("lagraph_mangled6", Problem::Banner, Problem::ExtraToken),
    ("russell_bad_symmetric_rectangular_complex", Problem::Size, Problem::Size),
];

/// Files that SciPy refuses for blank lines or comments around the size line, which are harmless.
const MORE_THAN_SCIPY: [&str; 1] = ["lagraph_west0067_jumbled"];

fn problem(error: &MatrixMarketError) -> Problem {
    match error {
        MatrixMarketError::Invalid { problem, .. } => *problem,
        other => panic!("not a fault of the text: {other}"),
    }
}

#[test]
fn every_matrix_of_the_collection_reads_as_its_index_says() {
    let Some(folder) = collection() else {
        println!("skipped: no shared/matrices beside the workspace");
        return;
    };
    let index = std::fs::read_to_string(folder.join("INDEX.tsv")).unwrap();
    let mut checked = 0;
    for line in index.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, dir, rows, cols, stored, format, field, symmetry, .., scipy] = columns[..]
        else {
            panic!("unexpected line in INDEX.tsv: {line}");
        };
        let path = folder.join(dir).join(format!("{name}.mtx.gz"));
        let strict = read::<f64>(&path, &ReadOptions::default());
        let lenient =
            read::<f64>(&path, &ReadOptions { mode: Mode::Lenient, ..ReadOptions::default() });
        checked += 1;

        let loose = LENIENT_ONLY.iter().find(|(loose, _)| *loose == name);
        let refused = REFUSED.iter().find(|(refused, ..)| *refused == name);
        let matrix = if let Some((_, in_strict, in_lenient)) = refused {
            assert_eq!(problem(&strict.unwrap_err()), *in_strict, "{name}");
            assert_eq!(problem(&lenient.unwrap_err()), *in_lenient, "{name}");
            continue;
        } else if let Some((_, expected)) = loose {
            let error = strict.err().unwrap_or_else(|| panic!("{name} was read"));
            assert_eq!(problem(&error), *expected, "{name}: {error}");
            lenient.unwrap_or_else(|error| panic!("{error}"))
        } else if field == "complex" {
            assert_eq!(problem(&strict.unwrap_err()), Problem::Complex, "{name}");
            continue;
        } else if scipy.starts_with("REJECT") && !MORE_THAN_SCIPY.contains(&name) {
            let error = strict.err().unwrap_or_else(|| panic!("{name} was read: {scipy}"));
            let again = lenient.err().unwrap_or_else(|| panic!("{name} was read: {scipy}"));
            assert_eq!(error.to_string(), again.to_string(), "{name}");
            continue;
        } else {
            let strict = strict.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(strict.header, lenient.unwrap().header, "{name}");
            strict
        };
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
    println!("{checked} files compared with INDEX.tsv");
    assert!(checked > 200);
}
