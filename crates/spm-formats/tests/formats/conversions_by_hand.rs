//! The drawings of the formats' documentation, and other matrices up to 5 x 5, array by array.

use spm_formats::convert::*;
use spm_formats::{
    Bsr, Coo, Csr, Ell, FormatError, Hll, Layout, MemoryBudget, Sell, UnpaddedEll, UnpaddedRow,
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

/// The 4 x 4 matrix of the drawing of BSR.
fn blocked() -> Coo<f64> {
    let (rows, cols) = (vec![0, 0, 1, 1, 1, 2, 3, 3], vec![0, 1, 0, 1, 3, 2, 2, 3]);
    Coo::new(4, 4, rows, cols, vec![1., 2., 3., 4., 5., 6., 7., 8.]).unwrap()
}

#[test]
fn bsr_of_the_drawing() {
    let csr = coo_to_csr(&blocked());
    let mut bsr = csr_to_bsr(csr.view(), (2, 2), &budget()).unwrap();
    assert_eq!((bsr.block(), bsr.block_rows(), bsr.entries()), ((2, 2), 2, 8));
    assert_eq!(bsr.block_ptr(), [0, 2, 3]);
    assert_eq!(bsr.block_col(), [0, 1, 1]);
    assert_eq!(bsr.values(), [1., 3., 2., 4., 0., 0., 0., 5., 6., 7., 0., 8.]);
    assert_eq!(bsr.padding(), [4, 5, 6, 10]);
    assert_eq!((bsr.stored_elements(), bsr.padding_ratio()), (12, 1.5));
    assert_eq!(bsr.memory_bytes(), 6 * 4 + 12 * 8 + 4 * 8);
    assert_eq!(bsr_to_csr(&bsr), csr);

    // New values in the order of CSR; a 0 among them is an entry.
    bsr.set_values(&[10., 20., 30., 40., 50., 0., 70., 80.]).unwrap();
    assert_eq!(bsr.values(), [10., 30., 20., 40., 0., 0., 0., 50., 0., 70., 0., 80.]);
    let before = bsr.clone();
    let wrong = FormatError::LengthMismatch { what: "values", expected: 8, found: 9 };
    assert_eq!((bsr.set_values(&[1.; 9]), &bsr), (Err(wrong), &before));
    assert_eq!(bsr_to_csr(&bsr).values(), [10., 20., 30., 40., 50., 0., 70., 80.]);
}

#[test]
fn bsr_of_the_ragged_one() {
    // Blocks of 2 x 3: the last block row has one row, the last block column one column.
    let bsr = coo_to_bsr(&ragged(), (2, 3), &budget()).unwrap();
    assert_eq!(bsr.block_ptr(), [0, 2, 4, 5]);
    assert_eq!(bsr.block_col(), [0, 1, 0, 1, 0]);
    #[rustfmt::skip]
    assert_eq!(bsr.values(), [
        0., 2., 1., 0., 0., 3.,  0., 4., 0., 0., 0., 0.,
        0., 5., 0., 0., 0., 0.,  0., 6., 0., 0., 0., 0.,
        0., 0., 0., 0., 7., 0.,
    ]);
    assert_eq!((bsr.entries(), bsr.padding().len()), (7, 23));
    assert_eq!(bsr_to_csr(&bsr), coo_to_csr(&ragged()));

    // One block is larger than the matrix.
    let bsr = coo_to_bsr(&ragged(), (6, 5), &budget()).unwrap();
    assert_eq!((bsr.block_ptr(), bsr.block_col()), (&[0, 1][..], &[0][..]));
    assert_eq!(bsr.values()[6..12], [1., 0., 0., 0., 0., 0.]);
    assert_eq!(bsr_to_coo(&bsr), csr_to_coo(coo_to_csr(&ragged()).view()));

    // Blocks of one element are CSR.
    let bsr = coo_to_bsr(&ragged(), (1, 1), &budget()).unwrap();
    let csr = coo_to_csr(&ragged());
    assert_eq!((bsr.block_ptr(), bsr.block_col()), (csr.row_ptr(), csr.col_ind()));
    assert_eq!((bsr.values(), bsr.padding().len()), (csr.values(), 0));
}

/// Rows without padding, for each height that has code of its own, and others.
#[test]
fn bsr_of_full_blocks() {
    for height in 1..=9 {
        // Element (i, j) is 10 i + j.
        let (row_ptr, cols) =
            ((0..=height).map(|row| 6 * row).collect(), (0..height * 6).map(|at| at % 6));
        let values: Vec<f64> = (0..height * 6).map(|at| f64::from(at / 6 * 10 + at % 6)).collect();
        let a = Csr::new((height as usize, 6), row_ptr, cols.collect(), values.clone()).unwrap();
        let mut bsr = csr_to_bsr(a.view(), (height as usize, 2), &budget()).unwrap();
        assert_eq!((bsr.block_ptr(), bsr.block_col()), (&[0, 3][..], &[0, 1, 2][..]));
        let column_major = (0..height * 6).map(|at| f64::from(at % height * 10 + at / height));
        assert_eq!(bsr.values(), column_major.collect::<Vec<f64>>(), "{height}");
        assert_eq!(bsr_to_csr(&bsr), a, "{height}");
        let negative: Vec<f64> = values.iter().map(|value| -1.0 - value).collect();
        bsr.set_values(&negative).unwrap();
        assert_eq!(bsr_to_csr(&bsr).values(), negative, "{height}");
    }
}

/// Rows that have the same columns, in blocks that are full and in some that are not; the last block row has one row.
#[test]
fn bsr_of_rows_with_the_same_columns() {
    let cols = [1, 2, 3, 6].repeat(3);
    let values: Vec<f64> = (1..=12).map(f64::from).collect();
    let a = Csr::new((3, 7), vec![0, 4, 8, 12], cols, values).unwrap();
    let bsr = csr_to_bsr(a.view(), (2, 2), &budget()).unwrap();
    assert_eq!(bsr.block_ptr(), [0, 3, 6]);
    assert_eq!(bsr.block_col(), [0, 1, 3, 0, 1, 3]);
    #[rustfmt::skip]
    assert_eq!(bsr.values(), [
        0., 0., 1., 5.,  2., 6., 3., 7.,  4., 8., 0., 0.,
        0., 0., 9., 0.,  10., 0., 11., 0.,  12., 0., 0., 0.,
    ]);
    assert_eq!(bsr.padding(), [0, 1, 10, 11, 12, 13, 15, 17, 19, 21, 22, 23]);
    assert_eq!(bsr_to_csr(&bsr), a);
}

/// The pattern of `count` dense blocks on the diagonal.
fn diagonal_blocks(size: u32, count: u32) -> Coo<f64> {
    let entries = (0..size * count).flat_map(|row| {
        let first = row / size * size;
        (first..first + size).map(move |col| (row, col))
    });
    let (rows, cols): (Vec<u32>, Vec<u32>) = entries.unzip();
    let (n, values) = ((size * count) as usize, vec![1.0; rows.len()]);
    Coo::new(n, n, rows, cols, values).unwrap()
}

#[test]
fn blocks_are_detected() {
    let detected = |a: &Coo<f64>| {
        let blocks = detect_blocks(coo_to_csr(a).view())?;
        Some((blocks.size, blocks.padding_ratio))
    };
    for size in [2, 3, 4, 5, 6, 8] {
        assert_eq!(detected(&diagonal_blocks(size, 7)), Some((size as usize, 1.0)), "{size}");
    }
    // Blocks of 9 are three times three of 3; of 7 there are none.
    assert_eq!(detected(&diagonal_blocks(9, 4)), Some((3, 1.0)));
    assert_eq!(detected(&diagonal_blocks(7, 9)), None);
    assert_eq!(detected(&diagonal_blocks(1, 100)), None);
    assert_eq!(detected(&Coo::empty(9, 9).unwrap()), None);
    assert_eq!(detected(&Coo::empty(1, 0).unwrap()), None);

    // Without the first entries of some of 50 blocks of 4 x 4.
    let without = |missing: u32| {
        let all = diagonal_blocks(4, 50);
        let kept = all.iter().filter(|&(row, col, _)| row != col || row >= 4 * missing);
        let kept: Vec<(u32, u32, f64)> = kept.collect();
        let rows = kept.iter().map(|entry| entry.0).collect();
        let cols = kept.iter().map(|entry| entry.1).collect();
        Coo::new(200, 200, rows, cols, vec![1.0; kept.len()]).unwrap()
    };
    let (size, ratio) = detected(&without(25)).unwrap();
    assert!(size == 4 && (1.12..1.18).contains(&ratio), "{size}, {ratio}");
    assert_eq!(detected(&without(50)), None);
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

#[test]
fn the_constructor_of_bsr_names_the_broken_invariant() {
    // 3 x 3 in blocks of 2 x 2: a full block, one beyond the columns, one beyond the rows.
    let shape = (3, 3);
    let bsr = |ptr: &[u32], cols: &[u32], values: &[f64], padding: &[usize]| {
        Bsr::new(shape, (2, 2), ptr.to_vec(), cols.to_vec(), values.to_vec(), padding.to_vec())
    };
    let values = [1., 2., 3., 4., 5., 0., 0., 0., 6., 0., 7., 0.];
    let padding = [6, 7, 9, 11];
    let right = bsr(&[0, 2, 3], &[0, 1, 0], &values, &padding).unwrap();
    assert_eq!((right.rows(), right.cols(), right.entries()), (3, 3, 8));
    assert_eq!(bsr_to_csr(&right).row_ptr(), [0, 3, 6, 8]);
    let structure = |result: Result<Bsr<f64>, FormatError>| match result.unwrap_err() {
        FormatError::InvalidStructure { what, position, .. } => (what, position),
        other => panic!("{other}"),
    };
    // Elements beyond the matrix that are entries.
    let found = bsr(&[0, 2, 3], &[0, 1, 0], &values, &padding[1..]);
    assert_eq!(structure(found), ("value", 6));
    let found = bsr(&[0, 2, 3], &[0, 1, 0], &values, &padding[..3]);
    assert_eq!(structure(found), ("value", 11));
    // A value in padding, and padding out of order, twice, and where there is no value.
    let found = bsr(&[0, 2, 3], &[0, 1, 0], &values, &[4, 6, 7, 9, 11]);
    assert_eq!(structure(found), ("value", 4));
    for wrong in [[7, 6, 9, 11], [6, 6, 7, 9]] {
        let found = bsr(&[0, 2, 3], &[0, 1, 0], &values, &wrong);
        assert_eq!(structure(found), ("padding", 1));
    }
    let found = bsr(&[0, 2, 3], &[0, 1, 0], &values, &[6, 7, 9, 11, 12]);
    assert_eq!(structure(found), ("padding", 12));
    // Pointers and columns.
    assert_eq!(structure(bsr(&[0, 2, 2], &[0, 1, 0], &values, &padding)), ("block pointers", 2));
    assert_eq!(structure(bsr(&[1, 2, 3], &[0, 1, 0], &values, &padding)), ("block pointers", 0));
    let error = bsr(&[0, 2, 3], &[0, 2, 0], &values, &padding).unwrap_err();
    assert_eq!(error.to_string(), "entry 1: block column index 2 is outside 0..2");
    let error = bsr(&[0, 2, 3], &[1, 0, 0], &values, &padding).unwrap_err();
    assert!(matches!(error, FormatError::Unsorted { axis: "block row", line: 0, .. }), "{error}");
    let error = bsr(&[0, 2, 3], &[0, 1, 0], &values[..11], &padding).unwrap_err();
    assert_eq!(error, FormatError::LengthMismatch { what: "values", expected: 12, found: 11 });
    for (block, what) in [((0, 2), "block height"), ((2, 0), "block width")] {
        let error = Bsr::<f64>::new(shape, block, vec![0], vec![], vec![], vec![]).unwrap_err();
        assert!(matches!(error, FormatError::InvalidParameter { what: of, .. } if of == what));
    }
}
