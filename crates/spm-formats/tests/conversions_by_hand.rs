//! The drawings of the formats' documentation, and other matrices up to 5 x 5, array by array.

use spm_formats::convert::*;
use spm_formats::{
    Coo, Ell, FormatError, Hll, Layout, MemoryBudget, Sell, UnpaddedEll, UnpaddedRow,
};

/// The 3 x 3 matrix of the drawings.
fn sample() -> Coo<f64> {
    Coo::new(3, 3, vec![0, 2, 1, 0, 2], vec![0, 0, 1, 2, 2], vec![1., 4., 3., 2., 5.]).unwrap()
}

fn budget() -> MemoryBudget {
    MemoryBudget::default()
}

#[test]
fn csr_of_the_sample() {
    let csr = coo_to_csr(&sample());
    let (pointers, indices, values) = csr.into_arrays();
    assert_eq!(pointers, [0, 2, 3, 5]);
    assert_eq!(indices, [0, 2, 1, 0, 2]);
    assert_eq!(values, [1., 2., 3., 4., 5.]);
}

#[test]
fn csr_keeps_zeros_and_empty_rows_and_sums_duplicates_in_order() {
    // 1e16 + 1 - 1e16 is 0 from left to right, and 1 in another order.
    let coo = Coo::new(
        4,
        2,
        vec![3, 1, 1, 3, 1, 1],
        vec![1, 1, 0, 0, 1, 1],
        vec![0., 1e16, 7., 2., 1., -1e16],
    )
    .unwrap();
    let (pointers, indices, values) = coo_to_csr(&coo).into_arrays();
    assert_eq!(pointers, [0, 0, 2, 2, 4]);
    assert_eq!(indices, [0, 1, 0, 1]);
    assert_eq!(values, [7., 0., 2., 0.]);
}

#[test]
fn csr_of_sorted_triplets() {
    let coo = |cols| Coo::new(4, 2, vec![0, 0, 2], cols, vec![1., 2., 4.]).unwrap();
    let (pointers, indices, values) = coo_to_csr(&coo(vec![0, 1, 1])).into_arrays();
    assert_eq!((pointers, indices, values), (vec![0, 2, 2, 3, 3], vec![0, 1, 1], vec![1., 2., 4.]));
    // With a duplicate.
    let (pointers, indices, values) = coo_to_csr(&coo(vec![1, 1, 1])).into_arrays();
    assert_eq!((pointers, indices, values), (vec![0, 1, 1, 2, 2], vec![1, 1], vec![3., 4.]));
}

#[test]
fn ell_of_the_sample() {
    let csr = coo_to_csr(&sample());
    let ell = csr_to_ell(csr.view(), EllOptions::ROW_MAJOR, &budget()).unwrap();
    assert_eq!((ell.width(), ell.pitch(), ell.entries()), (2, 2, 5));
    assert_eq!(ell.row_lengths(), [2, 1, 2]);
    assert_eq!(ell.col_ind(), [0, 2, 1, 1, 0, 2]);
    assert_eq!(ell.values(), [1., 2., 3., 0., 4., 5.]);

    let ell = csr_to_ell(csr.view(), EllOptions::COLUMN_MAJOR, &budget()).unwrap();
    assert_eq!((ell.width(), ell.pitch()), (2, 3));
    assert_eq!(ell.col_ind(), [0, 1, 0, 2, 1, 2]);
    assert_eq!(ell.values(), [1., 3., 4., 2., 0., 5.]);
    assert_eq!(ell.memory_bytes(), 6 * 12 + 3 * 4);
}

#[test]
fn hll_of_the_sample() {
    let csr = coo_to_csr(&sample());
    let hll = csr_to_hll(csr.view(), 2, &budget()).unwrap();
    assert_eq!(hll.block_offsets(), [0, 4, 6]);
    assert_eq!(hll.row_lengths(), [2, 1, 2]);
    assert_eq!(hll.col_ind(), [0, 1, 2, 1, 0, 2]);
    assert_eq!(hll.values(), [1., 3., 2., 0., 4., 5.]);
}

#[test]
fn sell_of_the_sample() {
    let csr = coo_to_csr(&sample());
    let sell = csr_to_sell(csr.view(), 2, 4, &budget()).unwrap();
    assert_eq!(sell.permutation(), [0, 2, 1]);
    assert_eq!(sell.row_lengths(), [2, 2, 1]);
    assert_eq!(sell.chunk_offsets(), [0, 4, 6]);
    assert_eq!(sell.col_ind(), [0, 0, 2, 2, 1, 0]);
    assert_eq!(sell.values(), [1., 4., 2., 5., 3., 0.]);
}

/// 5 x 4, row lengths 1 3 0 2 1: an empty row, and columns in a jumble.
///
/// ```text
/// | 0 1 0 0 |
/// | 2 0 3 4 |
/// | 0 0 0 0 |
/// | 5 0 0 6 |
/// | 0 0 7 0 |
/// ```
fn ragged() -> Coo<f32> {
    Coo::new(
        5,
        4,
        vec![4, 3, 1, 0, 1, 3, 1],
        vec![2, 3, 3, 1, 0, 0, 2],
        vec![7., 6., 4., 1., 2., 5., 3.],
    )
    .unwrap()
}

#[test]
fn csc_of_the_ragged_one() {
    let by_rows = coo_to_csr(&ragged());
    let csc = csr_to_csc(by_rows.view());
    assert_eq!(csc.shape(), (5, 4));
    assert_eq!(csc, coo_to_csc(&ragged()));
    assert_eq!(csc_to_csr(csc.view()), by_rows);
    let (pointers, rows, values) = csc.into_arrays();
    assert_eq!(pointers, [0, 2, 3, 5, 7]);
    assert_eq!(rows, [1, 3, 0, 1, 4, 1, 3]);
    assert_eq!(values, [2., 5., 1., 3., 7., 4., 6.]);
}

#[test]
fn coo_of_the_ragged_one_is_sorted() {
    let coo = csr_to_coo(coo_to_csr(&ragged()).view());
    assert_eq!(coo.row_ind(), [0, 1, 1, 1, 3, 3, 4]);
    assert_eq!(coo.col_ind(), [1, 0, 2, 3, 0, 3, 2]);
    assert_eq!(coo.values(), [1., 2., 3., 4., 5., 6., 7.]);
}

#[test]
fn pitched_ell_of_the_ragged_one() {
    let options = EllOptions { layout: Layout::RowMajor, pitch_alignment: 4 };
    let ell = coo_to_ell(&ragged(), options, &budget()).unwrap();
    assert_eq!((ell.width(), ell.pitch(), ell.stored_elements()), (3, 4, 20));
    assert_eq!(ell.row_lengths(), [1, 3, 0, 2, 1]);
    #[rustfmt::skip]
    assert_eq!(ell.col_ind(), [1,1,1,0, 0,2,3,0, 0,0,0,0, 0,3,3,0, 2,2,2,0]);
    #[rustfmt::skip]
    assert_eq!(ell.values(), [1.,0.,0.,0., 2.,3.,4.,0., 0.,0.,0.,0., 5.,6.,0.,0., 7.,0.,0.,0.]);
    assert_eq!(ell.padding_ratio(), 20.0 / 7.0);

    let ell = coo_to_ell(&ragged(), EllOptions::DEVICE, &budget()).unwrap();
    assert_eq!((ell.width(), ell.pitch(), ell.stored_elements()), (3, 64, 192));
    assert_eq!(ell.col_ind()[..6], [1, 0, 0, 0, 2, 0]);
    assert_eq!(ell.values()[64..70], [0., 3., 0., 6., 0., 0.]);
    assert_eq!(ell.values()[ell.position(1, 2)], 4.);
}

#[test]
fn unpadded_ell_of_the_ragged_one() {
    let ell = coo_to_unpadded_ell(&ragged());
    assert_eq!((ell.rows(), ell.cols(), ell.entries(), ell.width()), (5, 4, 7, 3));
    let row = &ell.row_arrays()[1];
    assert_eq!((&*row.col_ind, &*row.values), (&[0, 2, 3][..], &[2., 3., 4.][..]));
    assert!(ell.row_arrays()[2].values.is_empty());
}

#[test]
fn hll_of_the_ragged_one() {
    let hll = coo_to_hll(&ragged(), 3, &budget()).unwrap();
    assert_eq!(hll.blocks(), 2);
    assert_eq!((hll.block_rows(0), hll.block_rows(1)), (0..3, 3..5));
    assert_eq!(hll.block_offsets(), [0, 9, 13]);
    assert_eq!(hll.col_ind(), [1, 0, 0, 1, 2, 0, 1, 3, 0, 0, 2, 3, 2]);
    assert_eq!(hll.values(), [1., 2., 0., 0., 3., 0., 0., 4., 0., 5., 7., 6., 0.]);
}

#[test]
fn sell_of_the_ragged_one() {
    // Windows of 3 do not end where chunks of 2 do.
    let sell = coo_to_sell(&ragged(), 2, 3, &budget()).unwrap();
    assert_eq!(sell.permutation(), [1, 0, 2, 3, 4]);
    assert_eq!(sell.row_lengths(), [3, 1, 0, 2, 1]);
    assert_eq!(sell.chunk_offsets(), [0, 6, 10, 12]);
    assert_eq!(sell.col_ind(), [0, 1, 2, 1, 3, 1, 0, 0, 0, 3, 2, 0]);
    assert_eq!(sell.values(), [2., 1., 3., 0., 4., 0., 0., 5., 0., 6., 7., 0.]);

    let sell = coo_to_sell(&ragged(), 4, 100, &budget()).unwrap();
    assert_eq!(sell.permutation(), [1, 3, 0, 4, 2]);
    assert_eq!(sell.chunk_offsets(), [0, 12, 12]);
}

#[test]
fn constructors_name_the_broken_invariant() {
    let structure = |error: FormatError| match error {
        FormatError::InvalidStructure { what, position, .. } => (what, position),
        other => panic!("{other}"),
    };
    let ell = |lengths: &[u32], cols: &[u32], values: &[f64]| {
        let (lengths, cols) = (lengths.to_vec(), cols.to_vec());
        Ell::new((2, 3), Layout::RowMajor, (2, 2), lengths, cols, values.to_vec())
    };
    assert!(ell(&[2, 1], &[0, 2, 1, 1], &[1., 2., 3., 0.]).is_ok());
    let error = ell(&[2, 1], &[0, 2, 1, 3], &[1., 2., 3., 0.]).unwrap_err();
    assert_eq!(error.to_string(), "entry 3: column index 3 is outside 0..3");
    let error = ell(&[2, 1], &[0, 2, 1, 1], &[1., 2., 3., 4.]).unwrap_err();
    assert_eq!(structure(error), ("value", 3));
    let error = ell(&[2, 1], &[2, 2, 1, 1], &[1., 2., 3., 0.]).unwrap_err();
    assert_eq!(structure(error), ("column index", 1));
    let error = ell(&[2, 3], &[0, 2, 1, 1], &[1., 2., 3., 0.]).unwrap_err();
    assert_eq!(structure(error), ("row length", 1));
    assert!(matches!(
        ell(&[2, 1], &[0, 2, 1], &[1., 2., 3.]),
        Err(FormatError::LengthMismatch { what: "slots", expected: 4, found: 3 })
    ));
    let narrow = Ell::new((2, 3), Layout::RowMajor, (2, 1), vec![0; 2], vec![0; 2], vec![0.; 2]);
    assert!(matches!(narrow, Err(FormatError::InvalidParameter { what: "pitch", .. })));

    let hll = Hll::new((3, 3), 2, vec![2, 1, 1], vec![0; 5], vec![0.; 5]).unwrap_err();
    assert_eq!(structure(hll), ("column index", 2));
    let hll = Hll::new((3, 3), 2, vec![2, 1, 1], vec![0; 4], vec![0.; 4]).unwrap_err();
    assert_eq!(hll, FormatError::LengthMismatch { what: "slots", expected: 5, found: 4 });

    let sell = |permutation: &[u32]| {
        Sell::new((2, 3), (2, 1), permutation.to_vec(), vec![1, 1], vec![0; 2], vec![1.; 2])
    };
    assert!(sell(&[0, 1]).is_ok());
    for wrong in [[1, 0], [0, 0], [0, 2]] {
        assert_eq!(structure(sell(&wrong).unwrap_err()).0, "permutation");
    }

    let row =
        |cols: &[u32], values: &[f64]| UnpaddedRow { col_ind: cols.into(), values: values.into() };
    assert!(UnpaddedEll::new(3, vec![row(&[], &[]), row(&[0, 2], &[1., 2.])]).is_ok());
    assert!(UnpaddedEll::new(2, vec![row(&[], &[]), row(&[0, 2], &[1., 2.])]).is_err());
    assert!(UnpaddedEll::new(3, vec![row(&[2, 2], &[1., 2.])]).is_err());
    assert!(UnpaddedEll::new(3, vec![row(&[2], &[1., 2.])]).is_err());
}
