//! Complex matrices: what is read, what is refused, and what is written; the binary cache.

use std::fs;

use spm_formats::cache::{load_npz, path_for, save_npz};
use spm_formats::matrix_market::{
    Field, MatrixFile, MatrixMarketError, Mode, Problem, ReadOptions, Symmetry, read, read_bytes,
    read_csr, write_coo, write_csr, write_csr_symmetric,
};
use spm_formats::{Complex, Coo, Csr, Scalar};

type C = Complex<f64>;

fn c(re: f64, im: f64) -> C {
    Complex::new(re, im)
}

fn text(banner: &str, body: &str) -> String {
    format!("%%MatrixMarket matrix {banner}\n{body}")
}

/// In one mode, on several threads and with chunks of several sizes, which give the same.
fn outcome<T: Scalar>(text: &str, mode: Mode) -> Result<MatrixFile<T>, MatrixMarketError> {
    let on = |threads, chunk_bytes| {
        let options =
            ReadOptions { mode, threads: Some(threads), chunk_bytes, ..Default::default() };
        read_bytes("text", text.as_bytes(), &options)
    };
    let (first, second) = (on(1, 1 << 20), on(3, 7));
    let told = |result: &Result<MatrixFile<T>, _>| format!("{result:?}");
    assert_eq!(told(&first), told(&second));
    first
}

type Triplets = Vec<(u32, u32, C)>;

fn strict(banner: &str, body: &str) -> Triplets {
    outcome(&text(banner, body), Mode::Strict).unwrap().coo.iter().collect()
}

/// The error in both modes without the file's name, or the entries where a mode reads the text.
fn faults(banner: &str, body: &str) -> [Result<Triplets, String>; 2] {
    [Mode::Strict, Mode::Lenient].map(|mode| {
        let read = outcome::<C>(&text(banner, body), mode);
        read.map(|file| file.coo.iter().collect()).map_err(|error| error.to_string())
    })
}

#[test]
fn every_symmetry_is_expanded() {
    let body = "2 2 2\n1 1 0 0\n2 1 1.5 -2e1\n";
    let (z, zero) = (c(1.5, -20.0), c(0.0, 0.0));
    assert_eq!(strict("coordinate complex general", body), [(0, 0, zero), (1, 0, z)]);
    let with = |mirrored| [(0, 0, zero), (1, 0, z), (0, 1, mirrored)];
    assert_eq!(strict("coordinate complex symmetric", body), with(z));
    assert_eq!(strict("coordinate complex skew-symmetric", body), with(-z));
    assert_eq!(strict("coordinate complex hermitian", body), with(z.conj()));
}

#[test]
fn arrays_are_read_by_columns() {
    let body = "2 2\n1 0\n2 3\n4 0\n";
    let expected = [(0, 0, c(1., 0.)), (1, 0, c(2., 3.)), (1, 1, c(4., 0.)), (0, 1, c(2., -3.))];
    assert_eq!(strict("array complex hermitian", body), expected);
    assert_eq!(strict("array complex general", "1 1\n\n  nan\tinf\n")[0].2.im, f64::INFINITY);
}

#[test]
fn real_files_are_complex_matrices_with_real_values() {
    for (field, value, re) in [
        ("real", " -2.5", -2.5),
        ("double", " -2.5", -2.5),
        ("integer", " 7", 7.0),
        ("unsigned-integer", " 7", 7.0),
        ("pattern", "", 1.0),
    ] {
        let banner = format!("coordinate {field} symmetric");
        let entries = strict(&banner, &format!("2 2 1\n2 1{value}\n"));
        assert_eq!(entries, [(1, 0, c(re, 0.0)), (0, 1, c(re, 0.0))], "{field}");
    }
}

#[test]
fn a_complex_file_is_no_real_matrix() {
    let text = text("coordinate complex general", "1 1 1\n1 1 5 0\n");
    let error = outcome::<f32>(&text, Mode::Lenient).unwrap_err();
    assert!(matches!(error, MatrixMarketError::Invalid { problem: Problem::Complex, line: 1, .. }));
    let expected = "text:1: expected real values for a matrix of f32, found the field \"complex\"";
    assert_eq!(error.to_string(), expected);
    assert!(outcome::<Complex<f32>>(&text, Mode::Strict).is_ok());
}

#[test]
fn faults_name_their_line_and_token() {
    let both = |body, expected: &str| {
        let [strict, lenient] = faults("coordinate complex general", body);
        assert_eq!(strict.as_ref().unwrap_err(), expected);
        assert_eq!(strict, lenient);
    };
    let value = "a complex value, which is two real ones";
    both("1 1 1\n1 1 5\n", &format!("text:3: expected {value}, found the end of the line"));
    both("1 1 1\n1 1 5 x\n", &format!("text:3: expected {value}, found \"x\""));
    both("1 1 1\n1 1 (5,1)\n", &format!("text:3: expected {value}, found \"(5,1)\""));
    both("1 1 1\n1 1 5 1 2\n", "text:3: expected the end of the line, found \"2\"");
    let [strict, lenient] = faults("coordinate complex general", "1 1 1\n1 1 5 1d3\n");
    assert!(strict.unwrap_err().ends_with("found \"1d3\""));
    assert_eq!(lenient.unwrap(), [(0, 0, c(5.0, 1000.0))]);
    let [strict, lenient] = faults("coordinate complex general", "1 1 1\n1 1 0 1e999\n");
    assert!(strict.unwrap_err().ends_with("in the range of f64, found \"1e999\""));
    assert_eq!(lenient.unwrap(), [(0, 0, c(0.0, f64::INFINITY))]);
}

#[test]
fn the_diagonal_of_a_hermitian_matrix_is_real() {
    let found = "expected real numbers on the diagonal of a hermitian matrix, found 5-1i in row 2";
    let [strict, lenient] = faults("coordinate complex hermitian", "2 2 2\n1 1 1 0\n2 2 5 -1\n");
    assert_eq!(strict.unwrap_err(), format!("text:4: {found}"));
    assert_eq!(lenient.unwrap(), [(0, 0, c(1.0, 0.0)), (1, 1, c(5.0, -1.0))]);
    let [strict, lenient] = faults("array complex hermitian", "2 2\n1 0\n3 1\n5 -1\n");
    assert_eq!(strict.unwrap_err(), format!("text:1: {found}"));
    assert_eq!(lenient.unwrap().len(), 4);
}

fn sample<T: Scalar>(parts: &[(f64, f64)]) -> Coo<T> {
    let part = T::Real::from_f64;
    let values = parts.iter().map(|&(re, im)| T::from_parts(part(re), part(im))).collect();
    let numbers: Vec<u32> = (0..parts.len() as u32).collect();
    Coo::new(parts.len(), 1, numbers, vec![0; parts.len()], values).unwrap()
}

/// Numbers of every size, in both parts.
const PARTS: [(f64, f64); 7] = [
    (0.1, -0.3),
    (0.0, -0.0),
    (-0.0, 0.0),
    (1e30, -1e-30),
    (f64::INFINITY, 1.0 / 3.0),
    (1.0, f64::NEG_INFINITY),
    (5e-40, 16_777_217.0),
];

fn bits<T: Scalar>(values: &[T]) -> Vec<u128> {
    values.iter().map(|value| value.to_bits128()).collect()
}

fn reads_back<T: Scalar>() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = sample::<T>(&PARTS);
    for name in ["a.mtx", "a.mtx.gz"] {
        let path = folder.path().join(name);
        write_coo(&path, &matrix, &[]).unwrap();
        let file = read::<T>(&path, &ReadOptions::default()).unwrap();
        assert_eq!((file.header.field, file.header.symmetry), (Field::Complex, Symmetry::General));
        assert_eq!(bits(file.coo.values()), bits(matrix.values()), "{} {name}", T::NAME);
    }
    let csr = read_csr::<T>(folder.path().join("a.mtx"), &ReadOptions::default()).unwrap();
    let path = path_for::<T>(&folder.path().join("a.mtx"));
    assert!(path.to_str().unwrap().ends_with(&format!("a.mtx.{}.npz", T::NAME)));
    save_npz(&path, csr.view()).unwrap();
    assert_eq!(bits(load_npz::<T>(&path).unwrap().values()), bits(csr.values()), "{}", T::NAME);
}

#[test]
fn what_is_written_reads_back_to_the_same_bits() {
    reads_back::<Complex<f32>>();
    reads_back::<Complex<f64>>();
}

#[test]
fn a_cache_has_one_scalar_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let matrix = Csr::new((1, 1), vec![0, 1], vec![0], vec![Complex::new(1.0_f32, 2.0)]).unwrap();
    save_npz(&path, matrix.view()).unwrap();
    let found = |error: spm_formats::cache::CacheError| error.to_string();
    let error = load_npz::<C>(&path).map_err(found).unwrap_err();
    assert!(error.ends_with("expected elements of type <c16 in data.npy, found <c8"), "{error}");
    // As long as the elements of f64.
    let error = load_npz::<f64>(&path).map_err(found).unwrap_err();
    assert!(error.ends_with("expected elements of type <f8 in data.npy, found <c8"), "{error}");
    // The layout of NumPy: the real part first.
    let bytes = fs::read(&path).unwrap();
    let value = [1.0_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat();
    assert!(bytes.windows(8).any(|window| window == value));
}

/// | 2    1-3i  0 |
/// | 1+3i 0     4 |, or the same with other upper entries
/// | 0    4     5 |
fn square(upper: [C; 2], diagonal: [C; 2]) -> Csr<C> {
    let lower = c(1.0, 3.0);
    let [first, last] = diagonal;
    let values = vec![first, upper[0], lower, upper[1], c(4.0, 0.0), last];
    Csr::new((3, 3), vec![0, 2, 4, 6], vec![0, 1, 0, 2, 1, 2], values).unwrap()
}

#[test]
fn matrices_are_written_with_their_symmetry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let (z, four) = (c(1.0, 3.0), c(4.0, 0.0));
    let real = [c(2.0, 0.0), c(5.0, 0.0)];
    for (symmetry, matrix) in [
        (Symmetry::Hermitian, square([z.conj(), four], real)),
        (Symmetry::Symmetric, square([z, four], [c(2.0, 1.0), c(5.0, 0.0)])),
        (Symmetry::SkewSymmetric, square([-z, -four], [c(0.0, 0.0); 2])),
    ] {
        let write = |symmetry| write_csr_symmetric(&path, matrix.view(), symmetry, &["c"]);
        write(symmetry).unwrap();
        let file = read::<C>(&path, &ReadOptions::default()).unwrap();
        assert_eq!((file.header.symmetry, file.header.entries), (symmetry, 4));
        assert_eq!(file.header.comments, ["c"]);
        assert_eq!(read_csr::<C>(&path, &ReadOptions::default()).unwrap(), matrix);
        for other in [Symmetry::Hermitian, Symmetry::Symmetric, Symmetry::SkewSymmetric] {
            assert_eq!(write(other).is_ok(), other == symmetry, "{symmetry} as {other}");
        }
        write(Symmetry::General).unwrap();
        assert_eq!(read_csr::<C>(&path, &ReadOptions::default()).unwrap(), matrix);
    }
}

#[test]
fn a_matrix_without_the_symmetry_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let error = |matrix: &Csr<f64>| {
        let written = write_csr_symmetric(&path, matrix.view(), Symmetry::Symmetric, &[]);
        assert!(!path.exists());
        written.unwrap_err().to_string().rsplit_once("expected a ").unwrap().1.to_owned()
    };
    assert_eq!(error(&Csr::empty(2, 3).unwrap()), "symmetric matrix, found 2 x 3");
    // An entry above the diagonal, or below it, without the other one.
    let one = |row, col| Csr::from_triplets((2, 2), [(row, col, 7.0)]).unwrap();
    assert_eq!(error(&one(0_u32, 1)), "symmetric matrix, found 7 at row 1, column 2");
    assert_eq!(error(&one(1, 0)), "symmetric matrix, found 7 at row 2, column 1");
    write_csr(&path, one(0, 1).view(), &[]).unwrap();
}
