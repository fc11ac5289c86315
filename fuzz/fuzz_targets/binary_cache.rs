//! Any bytes as an `.npz` archive, and sound archives with bytes changed: no panic; what is read is
//! a sound CSR matrix and comes back from a file of its own. A text is read through its cache,
//! whatever has happened to that.
#![no_main]

use std::path::Path;

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use spm_formats::cache::{self, NpzFile, load_npz, save_npz};
use spm_formats::matrix_market::{ReadOptions, write_csr};
use spm_formats::{Csr, Scalar};
use spm_fuzz::{Matrix, in_folder};

fn bits<T: Scalar>(a: &Csr<T>) -> (usize, usize, Vec<u32>, Vec<u32>, Vec<u128>) {
    let values = a.values().iter().map(|value| value.to_bits128()).collect();
    (a.rows(), a.cols(), a.row_ptr().to_vec(), a.col_ind().to_vec(), values)
}

fn round_trip<T: Scalar>(path: &Path, a: &Csr<T>) {
    save_npz(path, a.view()).expect("a folder for temporary files");
    let back: Csr<T> = load_npz(path).expect("what was written is read");
    assert_eq!(bits(&back), bits(a));
}

/// The same matrix, whose structure the constructor has checked.
fn sound<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let pointers = a.row_ptr().to_vec();
    Csr::new(a.shape(), pointers, a.col_ind().to_vec(), a.values().to_vec())
        .expect("a sound matrix")
}

/// Changes bytes of a file, and cuts it where `end` says; both count round the file's length.
fn damage(path: &Path, changes: &[(u16, u8)], end: Option<u16>) {
    let mut bytes = std::fs::read(path).expect("just written");
    let length = bytes.len();
    for &(place, byte) in changes {
        bytes[usize::from(place) % length] ^= byte;
    }
    bytes.truncate(end.map_or(length, |end| usize::from(end) % length));
    std::fs::write(path, bytes).expect("a folder for temporary files");
}

/// A text that has a cache, sound or damaged.
fn through_cache<T: Scalar>(folder: &Path, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let changes: Vec<(u16, u8)> = Vec::arbitrary(u)?;
    let end = Option::arbitrary(u)?;
    let matrix = Matrix::<T>::arbitrary(u)?.csr;
    let text = folder.join("input.mtx");
    write_csr(&text, matrix.view(), &[]).expect("a folder for temporary files");
    let options = ReadOptions { threads: Some(1), ..ReadOptions::default() };
    drop(std::fs::remove_file(cache::path_for::<T>(&text)));
    let read = || cache::read_csr::<T>(&text, &options).expect("a sound text");
    let first = read();
    assert_eq!(bits(&read()), bits(&first), "from the cache");
    damage(&cache::path_for::<T>(&text), &changes, end);
    // A damaged cache may still be a sound one of another matrix, never an unsound one.
    let again = sound(&read());
    if changes.is_empty() {
        assert_eq!(bits(&again), bits(&first), "from a cache cut at {end:?}");
    }
    Ok(())
}

fn check<T: Scalar>(folder: &Path, data: &[u8]) -> arbitrary::Result<()> {
    let path = folder.join("input.npz");
    let mut u = Unstructured::new(data);
    match u.int_in_range(0..=3_u8)? {
        0 => std::fs::write(&path, u.take_rest()).expect("a folder for temporary files"),
        1 => return through_cache::<T>(folder, &mut u),
        _ => {
            let changes: Vec<(u16, u8)> = Vec::arbitrary(&mut u)?;
            let matrix = Matrix::<T>::arbitrary(&mut u)?;
            round_trip(&path, &matrix.csr);
            damage(&path, &changes, None);
        }
    }
    if let Ok(matrix) = load_npz::<T>(&path) {
        round_trip(&folder.join("again.npz"), &sound(&matrix));
        // What is read as a whole is read by rows too.
        let file = NpzFile::open(&path).expect("a sound archive");
        let read = (file.row_ptr(0..matrix.rows() as u64), file.col_ind(0..matrix.nnz() as u64));
        let wide = |indices: &[u32]| -> Vec<u64> { indices.iter().map(|&i| i.into()).collect() };
        assert_eq!(read.0.expect("row pointers"), wide(matrix.row_ptr()));
        assert_eq!(read.1.expect("columns"), wide(matrix.col_ind()));
        let values = file.values::<T>(0..file.entries()).expect("values");
        assert_eq!(values.len(), matrix.nnz());
    } else if let Ok(file) = NpzFile::open(&path) {
        // Errors or other elements, no panic.
        let _ = (file.row_ptr(0..file.shape().0), file.values::<T>(0..file.entries()));
        let _ = file.col_ind(0..file.entries());
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    in_folder(|folder| {
        // An error means too few bytes for an input.
        let _ = if data.len() % 2 == 0 {
            check::<f64>(folder, data)
        } else {
            check::<f32>(folder, data)
        };
    });
});
