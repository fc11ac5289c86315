//! Containers, the writer, and what holds for any text.

use std::fs;
use std::path::Path;

use crate::common::gzip;
use proptest::prelude::*;
use spm_formats::matrix_market::{
    MatrixFile, MatrixMarketError, Mode, ReadOptions, read, read_bytes, read_csr, write_coo,
    write_text,
};
use spm_formats::{Coo, Csr};

const TEXT: &[u8] = b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.5\n2 1 -3\n";

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, text) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        archive.append_data(&mut header, name, *text).unwrap();
    }
    gzip(&archive.into_inner().unwrap())
}

fn read_f64(path: impl AsRef<Path>) -> Result<MatrixFile<f64>, MatrixMarketError> {
    read(path, &ReadOptions::default())
}

#[test]
fn every_container_gives_the_same_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let expected = read_bytes::<f64>("text", TEXT, &ReadOptions::default()).unwrap();
    let packed = archive(&[
        ("cage4/README.txt", b"no matrix"),
        ("cage4/cage4_b.mtx", b"not this one"),
        ("cage4/cage4.mtx", TEXT),
    ]);
    // Two gzip members, one after the other, are one text.
    let two_members = [gzip(&TEXT[..60]), gzip(&TEXT[60..])].concat();
    for (name, bytes) in [
        ("cage4.mtx", TEXT),
        ("cage4.MTX", TEXT),
        ("cage4.mtx.gz", &two_members),
        ("cage4.tar.gz", &packed),
        ("cage4.tgz", &packed),
    ] {
        fs::write(place(name), bytes).unwrap();
        assert_eq!(read_f64(place(name)).unwrap(), expected, "{name}");
    }

    fs::write(place("other.tar.gz"), &packed).unwrap();
    let error = read_f64(place("other.tar.gz")).unwrap_err().to_string();
    assert!(
        error.ends_with("expected a file named other.mtx in the archive, found none"),
        "{error}"
    );
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let packed = gzip(TEXT);
    fs::write(place("cut.mtx.gz"), &packed[..packed.len() - 9]).unwrap();
    fs::write(place("plain.mtx.gz"), TEXT).unwrap();
    fs::write(place("plain.tar.gz"), TEXT).unwrap();
    fs::write(place("matrix.txt"), TEXT).unwrap();
    fs::write(place("empty.mtx"), b"").unwrap();
    for name in ["cut.mtx.gz", "plain.mtx.gz", "plain.tar.gz", "absent.mtx"] {
        let error = read_f64(place(name)).unwrap_err();
        assert!(matches!(error, MatrixMarketError::Io { .. }), "{name}: {error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    let error = read_f64(place("matrix.txt")).unwrap_err();
    assert!(matches!(error, MatrixMarketError::UnknownEnding { .. }), "{error}");
    let error = read_f64(place("empty.mtx")).unwrap_err();
    assert!(matches!(error, MatrixMarketError::Invalid { line: 1, .. }), "{error}");
}

#[test]
fn long_headers_pass_through_small_blocks() {
    let comments = "% a comment line\n".repeat(5000);
    let text = format!("%%MatrixMarket matrix coordinate real general\n{comments}1 1 1\n1 1 x\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.mtx.gz");
    fs::write(&path, gzip(text.as_bytes())).unwrap();
    let options = ReadOptions { chunk_bytes: 64, threads: Some(1), ..ReadOptions::default() };
    let error = read::<f64>(&path, &options).unwrap_err().to_string();
    assert!(error.ends_with("long.mtx.gz:5003: expected a real value, found \"x\""), "{error}");
}

#[test]
fn chunks_of_any_size_read_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let expected = read_bytes::<f64>("text", TEXT, &ReadOptions::default()).unwrap();
    for (name, bytes) in [("a.mtx", TEXT.to_vec()), ("a.mtx.gz", gzip(TEXT))] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        for chunk_bytes in [0, usize::MAX / 2, usize::MAX] {
            let options = ReadOptions { chunk_bytes, ..ReadOptions::default() };
            assert_eq!(read(&path, &options).unwrap(), expected, "{name}");
            assert_eq!(read_bytes("text", TEXT, &options).unwrap(), expected);
        }
    }
}

/// Two numbers ask for 2^32 columns without a value: a step for each of them would be seen.
#[test]
fn an_array_without_values_is_read() {
    let text = b"%%MatrixMarket matrix array real general\n0 4294967294\n";
    let matrix = read_bytes::<f64>("text", text, &ReadOptions::default()).unwrap();
    assert_eq!((matrix.coo.cols(), matrix.coo.entries()), (4_294_967_294, 0));
}

#[cfg(unix)]
#[test]
fn names_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let expected = read_bytes::<f64>("text", TEXT, &ReadOptions::default()).unwrap();
    for (name, bytes) in [(&b"\xff.mtx"[..], TEXT.to_vec()), (b"\xff.mtx.gz", gzip(TEXT))] {
        let path = folder.path().join(OsStr::from_bytes(name));
        fs::write(&path, bytes).unwrap();
        assert_eq!(read_f64(&path).unwrap(), expected);
        write_coo(&path, &expected.coo, &[]).unwrap();
        assert_eq!(read_f64(&path).unwrap(), expected);
    }
}

#[test]
fn csr_sums_duplicates_and_keeps_explicit_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sums.mtx");
    let text = "%%MatrixMarket matrix coordinate real general\n3 2 4\n3 2 1\n1 1 0\n3 2 2\n3 1 5\n";
    fs::write(&path, text).unwrap();
    let matrix: Csr<f64> = read_csr(&path, &ReadOptions::default()).unwrap();
    let expected = Csr::new((3, 2), vec![0, 1, 1, 3], vec![0, 0, 1], vec![0.0, 5.0, 3.0]);
    assert_eq!(matrix, expected.unwrap());
}

#[test]
fn the_written_text_is_the_shortest() {
    let values = vec![1.0, -0.0, 0.1, 1e100, 0.001, 123456.0, 1e21, 5e-324, f64::INFINITY, 1e5];
    let count = values.len();
    let matrix = Coo::new(1, count, vec![0; count], (0..count as u32).collect(), values).unwrap();
    let mut text = Vec::new();
    write_text(&mut text, &matrix, &["first\nsecond", ""]).unwrap();
    let text = String::from_utf8(text).unwrap();
    let (header, body) = text.split_once("1 10 10\n").unwrap();
    assert_eq!(header, "%%MatrixMarket matrix coordinate real general\n%first\n%second\n");
    let written: Vec<&str> = body.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    let expected = ["1", "-0", "0.1", "1e100", "1e-3", "123456", "1e21", "5e-324", "inf", "1e5"];
    assert_eq!(written, expected);
}

#[test]
fn a_failed_write_leaves_the_former_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = Coo::<f64>::empty(2, 2).unwrap();
    let path = folder.path().join("kept.mtx");
    write_coo(&path, &matrix, &[]).unwrap();
    let former = fs::read(&path).unwrap();
    // A folder cannot be replaced by a file.
    fs::create_dir(folder.path().join("folder.mtx")).unwrap();
    let error = write_coo(folder.path().join("folder.mtx"), &matrix, &[]).unwrap_err();
    assert!(matches!(error, MatrixMarketError::Io { .. }), "{error}");
    assert!(matches!(
        write_coo(folder.path().join("matrix.tar.gz"), &matrix, &[]).unwrap_err(),
        MatrixMarketError::UnknownEnding { .. }
    ));
    assert_eq!(fs::read(&path).unwrap(), former);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

fn coo_of<T: spm_formats::RealScalar>(bits: &[(u32, u32, T)]) -> Coo<T> {
    let (mut rows, mut cols, mut values) = (vec![], vec![], vec![]);
    for &(row, col, value) in bits {
        rows.push(row);
        cols.push(col);
        values.push(value);
    }
    Coo::new(1000, 70_000, rows, cols, values).unwrap()
}

fn assert_reads_back<T: spm_formats::RealScalar>(matrix: &Coo<T>) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["matrix.mtx", "matrix.mtx.gz"] {
        let path = folder.path().join(name);
        write_coo(&path, matrix, &[]).unwrap();
        let options = ReadOptions { chunk_bytes: 100, ..ReadOptions::default() };
        let again = read::<T>(&path, &options).unwrap().coo;
        assert_eq!(again.row_ind(), matrix.row_ind());
        assert_eq!(again.col_ind(), matrix.col_ind());
        for (&read, &written) in again.values().iter().zip(matrix.values()) {
            let same_nan = read.to_f64().is_nan() && written.to_f64().is_nan();
            assert!(same_nan || read.to_bits64() == written.to_bits64(), "{written} as {read}");
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back_bit_by_bit(
        entries in prop::collection::vec((0..1000u32, 0..70_000u32, any::<u64>()), 0..200),
    ) {
        let doubles: Vec<_> =
            entries.iter().map(|&(row, col, bits)| (row, col, f64::from_bits(bits))).collect();
        assert_reads_back(&coo_of(&doubles));
        let singles: Vec<_> =
            entries.iter().map(|&(row, col, bits)| (row, col, f32::from_bits(bits as u32))).collect();
        assert_reads_back(&coo_of(&singles));
    }

    /// Damaged text gives the same matrix or the same error however it is cut, and never panics.
    #[test]
    fn chunks_do_not_show(
        lines in prop::collection::vec("([0-9]{1,2} [0-9] -?[0-9]{0,3}\\.?[0-9]{0,20}(e-?[0-9]{1,3})?|[ %x]?|[0-9 .%e+-]{0,12})\r?", 0..20),
        declared in 0..20usize,
        symmetric in any::<bool>(),
        mode in prop_oneof![Just(Mode::Strict), Just(Mode::Lenient)],
    ) {
        let symmetry = if symmetric { "symmetric" } else { "general" };
        let text = format!(
            "%%MatrixMarket matrix coordinate real {symmetry}\n99 99 {declared}\n{}",
            lines.join("\n")
        );
        let outcome = |threads, chunk_bytes| {
            let options = ReadOptions { mode, threads: Some(threads), chunk_bytes, ..Default::default() };
            match read_bytes::<f64>("f", text.as_bytes(), &options) {
                Ok(matrix) => format!("{matrix:?}"),
                Err(error) => error.to_string(),
            }
        };
        let whole = outcome(1, 1 << 20);
        for chunk_bytes in [1, 3, 10, 50] {
            prop_assert_eq!(&outcome(2, chunk_bytes), &whole, "{:?}", text);
        }
    }
}
