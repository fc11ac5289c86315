//! Every kind of file that the reader accepts or refuses, each with its own small file, in both
//! modes, for several numbers of threads and sizes of chunks.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::gzip;
use spm_formats::Scalar;
use spm_formats::matrix_market::{
    MatrixFile, MatrixMarketError, Mode, Problem, ReadOptions, read, read_bytes,
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/matrix_market")
}

/// A matrix as in the table: sizes, then entries with indices from 1; or the error, without the
/// name of the file.
fn outcome<T: Scalar>(file: &str, result: Result<MatrixFile<T>, MatrixMarketError>) -> String {
    match result {
        Ok(matrix) => {
            let coo = matrix.coo;
            let entries = coo.iter().map(|(row, col, value)| {
                format!(" ({},{})={value}", u64::from(row) + 1, u64::from(col) + 1)
            });
            format!("{}x{}:{}", coo.rows(), coo.cols(), entries.collect::<String>())
        }
        Err(error) => {
            let error = error.to_string();
            let error = error.strip_prefix(file).unwrap_or_else(|| panic!("{error}: no {file}"));
            format!("error{error}")
        }
    }
}

/// Name of the file, the outcome in strict mode, the outcome in lenient mode where it differs.
type Case = (&'static str, &'static str, Option<&'static str>);

include!("matrix_market_cases/table.rs");

#[test]
fn every_case_has_its_outcome_in_both_modes_whatever_the_threads_and_chunks() {
    let scratch = tempfile::tempdir().unwrap();
    for (name, strict, lenient) in CASES {
        let text = fs::read(folder().join(format!("{name}.mtx"))).unwrap();
        let packed = scratch.path().join(format!("{name}.mtx.gz"));
        fs::write(&packed, gzip(&text)).unwrap();
        for (mode, expected) in
            [(Mode::Strict, strict), (Mode::Lenient, &lenient.unwrap_or(strict))]
        {
            for threads in [1, 2, 4] {
                for chunk_bytes in [1, 5, 16, 1 << 20] {
                    let options = ReadOptions {
                        mode,
                        threads: Some(threads),
                        chunk_bytes,
                        ..Default::default()
                    };
                    let found = outcome(name, read_bytes::<f64>(name, &text, &options));
                    assert_eq!(&found, expected, "{name} {options:?}");
                    let path = packed.display().to_string();
                    let found = outcome(&path, read::<f64>(&packed, &options));
                    assert_eq!(&found, expected, "{name} as a stream {options:?}");
                }
            }
        }
    }
}

#[test]
fn every_file_is_in_the_table() {
    let mut files: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "mtx"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let names: Vec<&str> = CASES.iter().map(|(name, ..)| *name).collect();
    assert_eq!(files, names);
}

#[test]
fn single_precision_has_its_own_range_and_rounding() {
    let text = |value: &str| {
        format!("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {value}\n")
    };
    let read = |value: &str| {
        outcome("f", read_bytes::<f32>("f", text(value).as_bytes(), &ReadOptions::default()))
    };
    assert_eq!(read("1e39"), "error:3: expected a real value in the range of f32, found \"1e39\"");
    assert_eq!(read("3.4e38"), "1x1: (1,1)=340000000000000000000000000000000000000");
    assert_eq!(read("16777217"), "1x1: (1,1)=16777216");
    // Rounding to f64 first would give 1.
    assert_eq!(read("1.00000005960464477540"), "1x1: (1,1)=1.0000001");
}

#[test]
fn errors_carry_their_kind_and_line() {
    let text = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n\n3 1 1\n";
    match read_bytes::<f64>("f", text, &ReadOptions::default()) {
        Err(MatrixMarketError::Invalid { line: 4, problem: Problem::Index, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn header_keeps_what_the_file_says() {
    let options = ReadOptions::default();
    let path = folder().join("comments_and_blanks_around_size.mtx");
    let matrix = read::<f64>(path, &options).unwrap();
    assert_eq!(matrix.header.comments, [" first", " second", "", " third"]);
    let matrix = read::<f64>(folder().join("symmetric.mtx"), &options).unwrap();
    assert_eq!((matrix.header.entries, matrix.coo.entries()), (4, 6));
    assert_eq!(matrix.header.symmetry.to_string(), "symmetric");
}
