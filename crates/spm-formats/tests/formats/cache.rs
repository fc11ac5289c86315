//! The binary cache: fresh, stale, damaged, hostile; and SciPy as a second reader and writer.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use spm_formats::cache::{
    CacheError, NpzFile, Source, load, load_npz, path_for, read_csr, save_npz, store,
};
use spm_formats::matrix_market::{Mode, ReadOptions};
use spm_formats::{Csr, Scalar};

const TEXT: &str = "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 1.5\n2 3 -3\n";

fn sample<T: Scalar>() -> Csr<T> {
    let values = [1.5, 0.0, f64::INFINITY, -0.1].map(T::from_f64).to_vec();
    Csr::new((4, 3), vec![0, 2, 2, 3, 4], vec![0, 2, 1, 2], values).unwrap()
}

#[test]
fn a_cache_serves_the_text_it_was_made_from_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("small.mtx");
    fs::write(&text, TEXT).unwrap();
    let options = ReadOptions::default();
    let first = read_csr::<f64>(&text, &options).unwrap();
    let cache = path_for::<f64>(&text);
    assert_eq!(cache.file_name().unwrap(), "small.mtx.f64.npz");
    let fresh = Source::of(&text, Mode::Strict).unwrap();
    assert_eq!(load::<f64>(&text, fresh).unwrap(), Some(first.clone()));
    assert_eq!(load::<f32>(&text, fresh).unwrap(), None, "no cache in single precision yet");

    // What the cache says is believed: the text is not read again.
    store(&text, fresh, sample::<f64>().view()).unwrap();
    assert_eq!(read_csr::<f64>(&text, &options).unwrap(), sample());

    // Another time, another size: stale, read again and replaced.
    let file = fs::File::options().append(true).open(&text).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
    let touched = Source::of(&text, Mode::Strict).unwrap();
    assert_eq!(load::<f64>(&text, touched).unwrap(), None);
    assert_eq!(read_csr::<f64>(&text, &options).unwrap(), first);
    assert_eq!(load::<f64>(&text, touched).unwrap(), Some(first.clone()));
    let modified = fs::metadata(&text).unwrap().modified().unwrap();
    (&file).write_all(b"\n").unwrap();
    file.set_modified(modified).unwrap();
    let longer = Source::of(&text, Mode::Strict).unwrap();
    assert_eq!(load::<f64>(&text, longer).unwrap(), None);

    // A damaged cache is an error to `load` and replaced by `read_csr`.
    fs::write(&cache, b"junk").unwrap();
    assert!(matches!(load::<f64>(&text, longer).unwrap_err(), CacheError::Invalid { .. }));
    assert_eq!(read_csr::<f64>(&text, &options).unwrap(), first);
    assert_eq!(load::<f64>(&text, longer).unwrap(), Some(first));
}

#[test]
fn a_lenient_cache_does_not_serve_strict_mode() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("loose.mtx");
    fs::write(&text, TEXT.replace("1.5\n", "1.5\n% loose\n")).unwrap();
    let lenient = ReadOptions { mode: Mode::Lenient, ..ReadOptions::default() };
    let matrix = read_csr::<f64>(&text, &lenient).unwrap();
    assert_eq!(read_csr::<f64>(&text, &lenient).unwrap(), matrix);
    let error = read_csr::<f64>(&text, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, CacheError::Text(_)), "{error}");
    // The other way round is fine: what strict mode reads, lenient mode reads the same.
    fs::write(&text, TEXT).unwrap();
    let strict = read_csr::<f64>(&text, &ReadOptions::default()).unwrap();
    let source = Source::of(&text, Mode::Lenient).unwrap();
    assert_eq!(load::<f64>(&text, source).unwrap(), Some(strict));
}

#[test]
fn matrices_come_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.npz");
    save_npz(&path, sample::<f32>().view()).unwrap();
    assert_eq!(load_npz::<f32>(&path).unwrap(), sample());
    let error = load_npz::<f64>(&path).unwrap_err().to_string();
    assert!(error.ends_with("expected elements of type <f8 in data.npy, found <f4"), "{error}");
    for shape in [(0, 0), (0, 5), (5, 0)] {
        let empty = Csr::empty(shape.0, shape.1).unwrap();
        save_npz::<f64>(&path, empty.view()).unwrap();
        assert_eq!(load_npz(&path).unwrap(), empty);
    }
}

/// An `.npz` archive of the given members: name, header dictionary, bytes.
fn archive(members: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, dictionary, bytes) in members {
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
        zip.write_all(&(dictionary.len() as u16).to_le_bytes()).unwrap();
        zip.write_all(dictionary.as_bytes()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn le<const N: usize>(numbers: [i32; N]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn hostile_archives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.npz");
    let format = ("format", "{'descr': '|S3', 'fortran_order': False, 'shape': (), }", &b"csr"[..]);
    let i4 = |count: u64| format!("{{'descr': '<i4', 'shape': ({count},), }}");
    let f8 = |count: u64| format!("{{'descr': '<f8', 'shape': ({count},), }}");
    let good_pointers = le([0, 1, 2]);
    let values = [0; 16];
    let check = |what: &str, pointers: (&str, &[u8]), indices: (&str, &[u8]), shape: &[u8]| {
        let bytes = archive(&[
            format,
            ("shape", &i4(shape.len() as u64 / 4), shape),
            ("indptr", pointers.0, pointers.1),
            ("indices", indices.0, indices.1),
            ("data", &f8(2), &values),
        ]);
        fs::write(&path, bytes).unwrap();
        let error = load_npz::<f64>(&path).unwrap_err();
        assert!(matches!(error, CacheError::Invalid { .. }), "{what}: {error}");
        error.to_string()
    };
    let (three, two, shape) = (i4(3), i4(2), le([2, 2]));
    let pointers = (three.as_str(), &good_pointers[..]);
    let indices = le([0, 1]);
    let good = (two.as_str(), &indices[..]);
    check("index outside", pointers, (&two, &le([0, 2])), &shape);
    check("negative index", pointers, (&two, &le([0, -1])), &shape);
    check("pointers descend", (&three, &le([0, 3, 2])), good, &shape);
    check("pointers beyond", (&three, &le([0, 1, 9])), good, &shape);
    check("pointers from 1", (&three, &le([1, 1, 2])), good, &shape);
    check("too few pointers", (&two, &le([0, 2])), good, &shape);
    check("negative rows", pointers, good, &le([-2, 2]));
    check("enormous rows", pointers, good, &le([i32::MAX, 2]));
    check("one size", pointers, good, &le([2]));
    for count in [1 << 20, 1 << 40, u64::MAX / 4 + 1, u64::MAX] {
        let error = check("more declared than there", pointers, (&i4(count), &indices), &shape);
        assert!(error.contains(&format!("{count} elements of 4 bytes in indices.npy")), "{error}");
    }
    check("a matrix", pointers, ("{'descr': '<i4', 'shape': (1, 2), }", &indices), &shape);
    check("objects", pointers, ("{'descr': '|O', 'shape': (2,), }", &indices), &shape);
    check("no header", pointers, ("", &indices), &shape);

    fs::write(&path, archive(&[format])).unwrap();
    let error = load_npz::<f64>(&path).unwrap_err().to_string();
    assert!(error.ends_with("expected an array shape.npy, found none"), "{error}");
    let csc = archive(&[("format", "{'descr': '<U3', 'shape': (), }", b"c\0\0\0s\0\0\0c\0\0\0")]);
    fs::write(&path, csc).unwrap();
    let error = load_npz::<f64>(&path).unwrap_err().to_string();
    assert!(error.ends_with("expected the format \"csr\", found \"csc\""), "{error}");
}

proptest! {
    /// One byte changed or the end cut off: the same matrix or an error, never a panic.
    #[test]
    fn damaged_archives_give_errors(at in 0.0..1.0f64, byte in any::<u8>(), cut in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.npz");
        save_npz(&path, sample::<f64>().view()).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let at = (at * bytes.len() as f64) as usize;
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = byte;
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(matrix) = load_npz::<f64>(&path) {
            prop_assert_eq!(matrix, sample::<f64>());
        }
        // Checksums are not compared here: other elements may come, but no panic.
        if let Ok(file) = NpzFile::open(&path) {
            let _ = (file.row_ptr(0..file.shape().0), file.values::<f64>(0..file.entries()));
            let _ = file.col_ind(0..file.entries());
        }
    }
}

/// Runs a Python program on `path`; `None` where Python or SciPy is not installed.
fn scipy(program: &str, path: &Path) -> Option<String> {
    let available = Command::new("python3").args(["-c", "import scipy.sparse"]).output();
    if !available.is_ok_and(|output| output.status.success()) {
        println!("skipped: no python3 with scipy");
        return None;
    }
    let output = Command::new("python3").args(["-c", program]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn scipy_opens_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("small.mtx");
    fs::write(&text, TEXT).unwrap();
    read_csr::<f64>(&text, &ReadOptions::default()).unwrap();
    let program = "import sys, scipy.sparse as s; m = s.load_npz(sys.argv[1]); \
                   m.check_format(full_check=True); \
                   print(m.format, m.dtype, m.indices.dtype, m.toarray().tolist())";
    if let Some(output) = scipy(program, &path_for::<f64>(&text)) {
        assert_eq!(output.trim(), "csr float64 int32 [[1.5, 0.0, 0.0], [0.0, 0.0, -3.0]]");
    }
}

#[test]
fn what_scipy_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scipy.npz");
    let program = "import sys, numpy, scipy.sparse as s; \
                   m = s.csr_array(numpy.array([[0, 2.5], [0, 0], [1, 0]])); \
                   s.save_npz(sys.argv[1], m, compressed=False)";
    if scipy(program, &path).is_some() {
        let expected = Csr::new((3, 2), vec![0, 1, 1, 2], vec![1, 0], vec![2.5, 1.0]).unwrap();
        assert_eq!(load_npz::<f64>(&path).unwrap(), expected);
    }
    let compressed = program.replace("False", "True");
    if scipy(&compressed, &path).is_some() {
        let error = load_npz::<f64>(&path).unwrap_err().to_string();
        assert!(
            error.contains("expected an uncompressed archive, found format.npy compressed"),
            "{error}"
        );
    }
}

#[test]
fn ranges_of_an_archive_are_those_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.npz");
    let a = sample::<f64>();
    save_npz(&path, a.view()).unwrap();
    let file = NpzFile::open(&path).unwrap();
    let (rows, entries) = (a.rows() as u64, a.nnz() as u64);
    assert_eq!((file.shape(), file.entries()), ((rows, a.cols() as u64), entries));
    let wide = |indices: &[u32]| indices.iter().map(|&index| u64::from(index)).collect::<Vec<_>>();
    for start in 0..=rows {
        for end in start..=rows {
            let pointers = file.row_ptr(start..end).unwrap();
            assert_eq!(pointers, wide(&a.row_ptr()[start as usize..=end as usize]));
            let range = pointers[0]..pointers[pointers.len() - 1];
            let of = range.start as usize..range.end as usize;
            assert_eq!(file.col_ind(range.clone()).unwrap(), wide(&a.col_ind()[of.clone()]));
            assert_eq!(file.values::<f64>(range).unwrap(), a.values()[of]);
        }
    }
    let message = |error: CacheError| error.to_string();
    let wrong = message(file.values::<f32>(0..1).unwrap_err());
    assert!(wrong.ends_with("expected elements of type <f4 in data.npy, found <f8"), "{wrong}");
    let beyond = message(file.col_ind(0..entries + 1).unwrap_err());
    assert!(beyond.contains(&format!("a range of {entries} elements in indices.npy")), "{beyond}");
    #[expect(clippy::reversed_empty_ranges, reason = "what is refused")]
    for reversed in [1..0, 2..0] {
        assert!(file.row_ptr(reversed).is_err());
    }
    assert!(file.row_ptr(0..rows + 1).is_err() && file.row_ptr(0..u64::MAX).is_err());
    // A file that was cut off since.
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(400).unwrap();
    let cut = file.values::<f64>(0..entries).unwrap_err();
    assert!(matches!(cut, CacheError::Io { .. }), "{cut}");
}

#[test]
fn hostile_archives_are_refused_by_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.npz");
    let open = |pointers: (&str, &[u8]), indices: &[u8], shape: &[u8]| {
        let i4 = |bytes: &[u8]| format!("{{'descr': '<i4', 'shape': ({},), }}", bytes.len() / 4);
        let format = ("format", "{'descr': '|S3', 'shape': (), }", &b"csr"[..]);
        let data = ("data", "{'descr': '<f8', 'shape': (2,), }", &[0; 16][..]);
        let pointers = ("indptr", pointers.0, pointers.1);
        let (of_indices, of_shape) = (i4(indices), i4(shape));
        let (indices, shape) = (("indices", &*of_indices, indices), ("shape", &*of_shape, shape));
        fs::write(&path, archive(&[format, shape, pointers, indices, data])).unwrap();
        NpzFile::open(&path).map_err(|error| error.to_string())
    };
    let (three, indices, shape) = ("{'descr': '<i4', 'shape': (3,), }", le([0, 1]), le([2, 2]));
    let opened = |pointers: [i32; 3]| open((three, &le(pointers)), &indices, &shape).unwrap();
    assert_eq!(opened([0, 1, 2]).row_ptr(0..2).unwrap(), [0, 1, 2]);
    for pointers in [[0, 3, 2], [0, 1, 9], [0, -1, 2], [i32::MIN, 0, 2]] {
        let error = opened(pointers).row_ptr(0..2).unwrap_err();
        assert!(matches!(error, CacheError::Invalid { .. }), "{pointers:?}: {error}");
    }
    let negative = open((three, &le([0, 1, 2])), &le([0, -1]), &shape).unwrap();
    assert!(negative.col_ind(0..2).unwrap_err().to_string().contains("a negative one"));
    let good = le([0, 1, 2]);
    for (pointers, indices, shape, expected) in [
        ((three, &good), &indices, le([2]), "a shape of 2 sizes, found 1 sizes"),
        ((three, &good), &indices, le([-2, 2]), "sizes of 0 or more, found -2"),
        ((three, &good), &indices, le([3, 2]), "expected 4 elements, found 3 in indptr.npy"),
        ((three, &good), &le([0]), le([2, 2]), "expected 2 elements, found 1 in indices.npy"),
        (
            ("{'descr': '<i4', 'shape': (9,), }", &good),
            &indices,
            le([8, 2]),
            "9 elements of 4 bytes",
        ),
        (("{'descr': '|O', 'shape': (3,), }", &good), &indices, le([2, 2]), "found |O"),
    ] {
        let error = open((pointers.0, pointers.1), indices, &shape).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    // Compressed: its elements have no places. The method is in the headers of each file and of the directory.
    save_npz(&path, sample::<f64>().view()).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    for at in 0..bytes.len() - 4 {
        match &bytes[at..at + 4] {
            b"PK\x03\x04" => bytes[at + 8] = 8,
            b"PK\x01\x02" => bytes[at + 10] = 8,
            _ => {}
        }
    }
    fs::write(&path, bytes).unwrap();
    let error = NpzFile::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("an uncompressed archive, found format.npy compressed"), "{error}");
}
