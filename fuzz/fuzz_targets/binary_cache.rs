//! Any bytes as an `.npz` archive, and sound archives with bytes changed: no panic; what is read is
//! a sound CSR matrix and comes back from a file of its own.
#![no_main]

use std::path::Path;

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use spm_formats::cache::{load_npz, save_npz};
use spm_formats::{Csr, Scalar};
use spm_fuzz::Matrix;

fn bits<T: Scalar>(a: &Csr<T>) -> (usize, usize, Vec<u32>, Vec<u32>, Vec<u64>) {
    let values = a.data().iter().map(|value| value.to_bits64()).collect();
    (a.rows(), a.cols(), a.indptr().raw_storage().to_vec(), a.indices().to_vec(), values)
}

fn round_trip<T: Scalar>(path: &Path, a: &Csr<T>) {
    save_npz(path, a.view()).expect("a folder for temporary files");
    let back: Csr<T> = load_npz(path).expect("what was written is read");
    assert_eq!(bits(&back), bits(a));
}

fn check<T: Scalar>(folder: &Path, data: &[u8]) -> arbitrary::Result<()> {
    let path = folder.join("input.npz");
    let mut u = Unstructured::new(data);
    if u.ratio(1, 4)? {
        std::fs::write(&path, u.take_rest()).expect("a folder for temporary files");
    } else {
        let changes: Vec<(u16, u8)> = Vec::arbitrary(&mut u)?;
        let matrix = Matrix::<T>::arbitrary(&mut u)?;
        round_trip(&path, &matrix.csr);
        let mut bytes = std::fs::read(&path).expect("just written");
        for (place, byte) in changes {
            let length = bytes.len();
            bytes[usize::from(place) % length] ^= byte;
        }
        std::fs::write(&path, bytes).expect("a folder for temporary files");
    }
    if let Ok(matrix) = load_npz::<T>(&path) {
        let sound = Csr::new(
            matrix.shape(),
            matrix.indptr().raw_storage().to_vec(),
            matrix.indices().to_vec(),
            matrix.data().to_vec(),
        );
        round_trip(&folder.join("again.npz"), &sound);
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    thread_local!(static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("temporary files"));
    FOLDER.with(|folder| {
        // Too few bytes for an input.
        let _ = if data.len() % 2 == 0 {
            check::<f64>(folder.path(), data)
        } else {
            check::<f32>(folder.path(), data)
        };
    });
});
