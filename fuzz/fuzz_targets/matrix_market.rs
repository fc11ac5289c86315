//! Any text: no panic, and the same matrix or the same error on any number of threads, in any
//! chunks, from any container.
#![no_main]

use std::io::Write;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use spm_formats::Scalar;
use spm_formats::matrix_market::{
    MatrixFile, MatrixMarketError, Mode, ReadOptions, read, read_bytes,
};
use spm_fuzz::in_folder;

/// Bits of the matrix, or the error without the name of the file.
type Outcome = Result<(usize, usize, Vec<u32>, Vec<u32>, Vec<u128>), String>;

fn outcome<T: Scalar>(name: &str, file: Result<MatrixFile<T>, MatrixMarketError>) -> Outcome {
    let anonymous = |error: MatrixMarketError| {
        let text = error.to_string();
        text.strip_prefix(name).map_or(text.clone(), |rest| format!("FILE{rest}"))
    };
    let coo = file.map_err(anonymous)?.coo;
    let bits = coo.values().iter().map(|value| value.to_bits128()).collect();
    Ok((coo.rows(), coo.cols(), coo.row_ind().to_vec(), coo.col_ind().to_vec(), bits))
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

/// Bit 0 of `flags`: lenient. Bits 1 to 3: the container. Bits 4 to 6: the length of a chunk.
/// Bit 7: three threads.
fn check<T: Scalar>(folder: &Path, flags: u8, text: &[u8]) {
    let mode = if flags & 1 == 0 { Mode::Strict } else { Mode::Lenient };
    let options = |threads, chunk_bytes| ReadOptions {
        mode,
        threads: Some(threads),
        chunk_bytes,
        ..ReadOptions::default()
    };
    let expected = outcome("FILE", read_bytes::<T>("FILE", text, &options(1, 1 << 18)));
    let pieces = 1 + usize::from(flags >> 4 & 7) * 7;
    let threads = if flags >> 7 == 0 { 1 } else { 3 };
    let small = outcome("FILE", read_bytes::<T>("FILE", text, &options(threads, pieces)));
    assert_eq!(small, expected, "chunks of {pieces} bytes on {threads} threads");
    let file =
        |name: &str, bytes: &[u8]| from_file::<T>(folder, name, bytes, &options(threads, pieces));
    match (flags >> 1) & 7 {
        0 => {}
        1 => assert_eq!(file("input.mtx", text), expected),
        2 => assert_eq!(file("input.mtx.gz", &gzip(text)), expected),
        3 => assert_eq!(file("input.tar.gz", &archive(text)), expected),
        4 => {
            // Two members of a gzip file are one text.
            let (first, second) = text.split_at(text.len() / 2);
            let bytes = [gzip(first), gzip(second)].concat();
            assert_eq!(file("input.mtx.gz", &bytes), expected);
        }
        // The containers themselves are the input.
        5 => drop(file("input.mtx.gz", text)),
        6 => drop(file("input.tar.gz", text)),
        _ => drop(file("input.tgz", &gzip(text))),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&flags, text)) = data.split_first() else { return };
    in_folder(|folder| {
        if text.len() % 2 == 0 {
            check::<f64>(folder, flags, text);
        } else {
            check::<f32>(folder, flags, text);
        }
    });
});
