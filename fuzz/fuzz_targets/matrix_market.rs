//! Any text: no panic, and the same matrix or the same error on any number of threads, in any
//! chunks, from any container.
#![no_main]

use std::cell::OnceCell;
use std::io::Write;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use spm_formats::Scalar;
use spm_formats::matrix_market::{Mode, ReadOptions, read, read_bytes};

thread_local! {
    static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

/// Bits of the matrix, or the error without the name of the file.
type Outcome = Result<(usize, usize, Vec<u32>, Vec<u32>, Vec<u64>), String>;

fn outcome<T: Scalar>(
    name: &str,
    file: Result<
        spm_formats::matrix_market::MatrixFile<T>,
        spm_formats::matrix_market::MatrixMarketError,
    >,
) -> Outcome {
    let anonymous = |error: spm_formats::matrix_market::MatrixMarketError| {
        let text = error.to_string();
        text.strip_prefix(name).map_or(text.clone(), |rest| format!("FILE{rest}"))
    };
    let coo = file.map_err(anonymous)?.coo;
    let bits = coo.values().iter().map(|value| value.to_bits64()).collect();
    Ok((coo.rows(), coo.cols(), coo.row_indices().to_vec(), coo.col_indices().to_vec(), bits))
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text).and_then(|()| gzip.finish()).expect("memory")
}

fn archive(text: &[u8]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, "input/input.mtx", text).expect("memory");
    gzip(&archive.into_inner().expect("memory"))
}

fn from_file<T: Scalar>(folder: &Path, name: &str, bytes: &[u8], options: &ReadOptions) -> Outcome {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a folder for temporary files");
    outcome(&path.display().to_string(), read::<T>(&path, options))
}

fn check<T: Scalar>(folder: &Path, flags: u8, text: &[u8]) {
    let mode = if flags & 1 == 0 { Mode::Strict } else { Mode::Lenient };
    let options = |threads, chunk_bytes| ReadOptions { mode, threads: Some(threads), chunk_bytes };
    let expected = outcome("FILE", read_bytes::<T>("FILE", text, &options(1, 1 << 18)));
    let pieces = 1 + usize::from(flags >> 4) * 7;
    let small = outcome("FILE", read_bytes::<T>("FILE", text, &options(1, pieces)));
    assert_eq!(small, expected, "chunks of {pieces} bytes");
    match (flags >> 1) & 7 {
        0 => {
            let parallel = outcome("FILE", read_bytes::<T>("FILE", text, &options(3, pieces)));
            assert_eq!(parallel, expected, "three threads");
        }
        1 => assert_eq!(from_file::<T>(folder, "input.mtx", text, &options(1, pieces)), expected),
        2 => {
            let bytes = gzip(text);
            assert_eq!(from_file::<T>(folder, "input.mtx.gz", &bytes, &options(1, 64)), expected);
        }
        3 => {
            let bytes = archive(text);
            let found = from_file::<T>(folder, "input.tar.gz", &bytes, &options(2, 64));
            let inside = |error: String| error.replace("FILE: input/input.mtx", "FILE");
            assert_eq!(found.is_ok(), expected.is_ok());
            if let Ok(matrix) = found.map_err(inside) {
                assert_eq!(Ok(matrix), expected);
            }
        }
        // The containers themselves are the input.
        4 => drop(from_file::<T>(folder, "input.mtx.gz", text, &options(1, 64))),
        5 => drop(from_file::<T>(folder, "input.tar.gz", text, &options(1, 64))),
        _ => {}
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&flags, text)) = data.split_first() else { return };
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| tempfile::tempdir().expect("temporary files")).path();
        if text.len() % 2 == 0 {
            check::<f64>(folder, flags, text);
        } else {
            check::<f32>(folder, flags, text);
        }
    });
});
