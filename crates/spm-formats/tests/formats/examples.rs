//! The examples, at a size that takes no time.

#[allow(dead_code, reason = "an example is a program of its own: its main is not called here")]
#[path = "../../examples/transpose_file.rs"]
mod transpose_file;

use spm_formats::Csr;
use spm_formats::matrix_market::{ReadOptions, read_csr};

#[test]
fn a_file_is_transposed() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("a.mtx"), folder.path().join("t.mtx.gz"));
    let text = "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 1\n1 3 2\n2 2 3\n";
    std::fs::write(&input, text).unwrap();
    transpose_file::transpose_file(&input, &output).unwrap();
    let transpose: Csr<f64> = read_csr(&output, &ReadOptions::default()).unwrap();
    let expected = Csr::new((3, 2), vec![0, 1, 2, 3], vec![0, 1, 0], vec![1.0, 3.0, 2.0]);
    assert_eq!(transpose, expected.unwrap());
    assert!(transpose_file::transpose_file(&folder.path().join("none.mtx"), &output).is_err());
}
