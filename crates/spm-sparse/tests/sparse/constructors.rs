//! Every form of matrix that an operator can be made of.

use std::error::Error as _;
use std::sync::Arc;

use spm::sprs::{CsMat, CsMatI, TriMat};
use spm::{Coo, Csc, Csr, Error, IntoCsr, Operator};
use spm_formats::convert;

/// | 1 0 2 |
/// | 0 0 0 |
/// | 0 3 4 |
fn expected() -> Csr<f64> {
    Csr::new((3, 3), vec![0, 2, 2, 4], vec![0, 2, 1, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap()
}

fn check(what: &str, a: impl IntoCsr<Scalar = f64>) {
    let op = Operator::new(a).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(**op.matrix(), expected(), "{what}");
    let mut y = [f64::NAN; 3];
    op.apply(&[1.0, 10.0, 100.0], &mut y).unwrap();
    assert_eq!(y, [201.0, 0.0, 430.0], "{what}");
}

#[test]
fn matrices_of_the_formats_crate() {
    let a = expected();
    check("Csr", a.clone());
    check("a view", a.view());
    check("Csc", convert::csr_to_csc(a.view()));
    check("a view of Csc", convert::csr_to_csc(a.view()).view());
    check("Coo", convert::csr_to_coo(a.view()));
    let shared = Arc::new(a);
    check("Arc", Arc::clone(&shared));
    let op = Operator::new(Arc::clone(&shared)).unwrap();
    assert!(Arc::ptr_eq(&shared, op.matrix()));
}

#[test]
fn matrices_of_sprs() {
    let usize_csr: CsMat<f64> =
        CsMat::new((3, 3), vec![0, 2, 2, 4], vec![0, 2, 1, 2], vec![1.0, 2.0, 3.0, 4.0]);
    check("CsMat", usize_csr.clone());
    check("&CsMat", &usize_csr);
    check("CsMatView", usize_csr.view());
    check("CsMat in columns", usize_csr.to_csc());
    let in_columns = usize_csr.to_csc();
    check("&CsMat in columns", &in_columns);
    let u32_csr: CsMatI<f64, u32> = expected().into_sprs();
    check("u32", u32_csr.clone());
    check("u32 in columns", u32_csr.to_csc());
    let i32_csr: CsMatI<f64, i32> =
        CsMatI::new((3, 3), vec![0, 2, 2, 4], vec![0, 2, 1, 2], vec![1.0, 2.0, 3.0, 4.0]);
    check("i32", i32_csr);
    let mixed: CsMatI<f64, u16, u64> =
        CsMatI::new((3, 3), vec![0, 2, 2, 4], vec![0, 2, 1, 2], vec![1.0, 2.0, 3.0, 4.0]);
    check("u16 indices, u64 pointers", mixed);
    // Rows 1 to 3 of a larger matrix.
    let larger: CsMat<f64> =
        CsMat::new((4, 3), vec![0, 1, 3, 3, 5], vec![1, 0, 2, 1, 2], vec![9.0, 1.0, 2.0, 3.0, 4.0]);
    check("a slice", larger.slice_outer(1..4));
    let mut triplets = TriMat::new((3, 3));
    for (row, col, value) in [(2, 2, 3.0), (0, 2, 2.0), (2, 1, 3.0), (0, 0, 1.0), (2, 2, 1.0)] {
        triplets.add_triplet(row, col, value);
    }
    check("&TriMat", &triplets);
    check("a view of TriMat", triplets.view());
    check("TriMat", triplets);
}

/// The arrays with rows that are not sorted and an entry in two parts, in every index type.
#[test]
fn triplets_and_slices() {
    let (ptr, ind) = ([0_u8, 2, 2, 5], [2_u8, 0, 2, 1, 2]);
    let (val, csc_ptr) = ([2.0, 1.0, 3.0, 3.0, 1.0], [0_u8, 1, 2, 5]);
    let (csc_ind, csc_val) = ([0_u8, 2, 2, 0, 2], [1.0, 3.0, 3.0, 2.0, 1.0]);
    macro_rules! types {
        ($($type:ty)*) => {$(
            let to = |values: &[u8]| values.iter().map(|&i| i as $type).collect::<Vec<_>>();
            let name = stringify!($type);
            check(name, spm::from_csr((3, 3), &to(&ptr), &to(&ind), &val).unwrap());
            check(name, spm::from_csc((3, 3), &to(&csc_ptr), &to(&csc_ind), &csc_val).unwrap());
            let triplets = [(2, 2, 3.0), (0, 2, 2.0), (2, 1, 3.0), (0, 0, 1.0), (2, 2, 1.0)];
            let triplets = triplets.map(|(row, col, value)| (row as $type, col as $type, value));
            check(name, spm::from_triplets((3, 3), triplets).unwrap());
        )*};
    }
    types!(u16 u32 u64 usize i16 i32 i64 isize);
    let i64_pointers = ptr.map(i64::from);
    check("mixed", spm::from_csr((3, 3), &i64_pointers, &ind.map(i32::from), &val).unwrap());
}

#[test]
fn matrices_without_rows_columns_or_entries() {
    for shape in [(0, 0), (0, 4), (4, 0), (3, 2)] {
        let op = Operator::new(Csr::<f64>::empty(shape.0, shape.1).unwrap()).unwrap();
        assert_eq!((op.shape(), op.nnz()), (shape, 0));
        let mut y = vec![f64::NAN; shape.0];
        op.apply(&vec![1.0; shape.1], &mut y).unwrap();
        assert_eq!(y, vec![0.0; shape.0]);
        let mut y = vec![f64::NAN; shape.1];
        op.apply_transpose(&vec![1.0; shape.0], &mut y).unwrap();
        assert_eq!(y, vec![0.0; shape.1]);
        let (x, mut y) = (vec![1.0; shape.1 * 3], vec![f64::NAN; shape.0 * 3]);
        op.apply_many(&x, &mut y, 3, spm::Layout::RowMajor).unwrap();
        assert_eq!(y, vec![0.0; shape.0 * 3]);
    }
}

#[test]
fn what_is_too_large_or_wrong_is_a_typed_error() {
    let error = spm::from_triplets::<f64, u64>((1 << 33, 4), []).unwrap_err();
    assert!(matches!(error, Error::TooLarge(_)), "{error:?}");
    assert!(error.to_string().contains("spm-dist"), "{error}");
    assert!(error.source().unwrap().to_string().contains("number of rows"), "{error:?}");
    let error = Operator::new(CsMat::<f64>::zero((3, 1 << 33))).unwrap_err();
    assert!(matches!(error, Error::TooLarge(_)), "{error:?}");

    let error = spm::from_triplets((2, 2), [(2_usize, 0_usize, 1.0)]).unwrap_err();
    assert!(matches!(error, Error::Matrix(_)), "{error:?}");
    let source = error.source().unwrap().to_string();
    assert_eq!(source, "entry 0: row index 2 is outside 0..2");
    let error = spm::from_csr((1, 2), &[0, 2], &[0, -1], &[1.0, 2.0]).unwrap_err();
    assert!(error.source().unwrap().to_string().contains("-1 is outside 0..2^32"), "{error:?}");
    let error = spm::from_csr((1, 2), &[0, 3], &[0, 1], &[1.0, 2.0]).unwrap_err();
    assert!(matches!(error, Error::Matrix(_)), "{error:?}");
    let csc = Csc::<f64>::new((1, 1), vec![0, 1], vec![0], vec![1.0]).unwrap();
    assert_eq!(Operator::new(csc).unwrap().nnz(), 1);
    let coo = Coo::<f32>::new(1, 1, vec![0], vec![0], vec![1.0]).unwrap();
    assert_eq!(Operator::<f32>::new(coo).unwrap().nnz(), 1);
}

#[test]
#[cfg(feature = "io")]
fn files_are_read_and_written() {
    let folder = std::env::temp_dir().join(format!("spm-sparse-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("a.mtx");
    spm::write(&file, expected().view()).unwrap();
    let read = spm::read::<f64>(&file).unwrap();
    let missing = spm::read::<f64>(folder.join("b.mtx")).unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    check("a file", read);
    assert!(matches!(missing, Error::File(_)), "{missing:?}");
    assert!(missing.source().unwrap().to_string().contains("b.mtx"), "{missing:?}");
}
