//! The drawings of the formats' documentation, and other matrices up to 5 x 5, array by array.

use spm_formats::convert::{EllOptions, coo_to_csr, csr_to_ell, csr_to_hll, csr_to_sell};
use spm_formats::{Coo, MemoryBudget};

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
    let (pointers, indices, values) = csr.into_raw_storage();
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
    let (pointers, indices, values) = coo_to_csr(&coo).into_raw_storage();
    assert_eq!(pointers, [0, 0, 2, 2, 4]);
    assert_eq!(indices, [0, 1, 0, 1]);
    assert_eq!(values, [7., 0., 2., 0.]);
}

#[test]
fn ell_of_the_sample() {
    let csr = coo_to_csr(&sample());
    let ell = csr_to_ell(csr.view(), EllOptions::ROW_MAJOR, &budget()).unwrap();
    assert_eq!((ell.width(), ell.pitch(), ell.entries()), (2, 2, 5));
    assert_eq!(ell.row_lengths(), [2, 1, 2]);
    assert_eq!(ell.col_indices(), [0, 2, 1, 1, 0, 2]);
    assert_eq!(ell.values(), [1., 2., 3., 0., 4., 5.]);

    let ell = csr_to_ell(csr.view(), EllOptions::COLUMN_MAJOR, &budget()).unwrap();
    assert_eq!((ell.width(), ell.pitch()), (2, 3));
    assert_eq!(ell.col_indices(), [0, 1, 0, 2, 1, 2]);
    assert_eq!(ell.values(), [1., 3., 4., 2., 0., 5.]);
    assert_eq!(ell.memory_bytes(), 6 * 12 + 3 * 4);
}

#[test]
fn hll_of_the_sample() {
    let csr = coo_to_csr(&sample());
    let hll = csr_to_hll(csr.view(), 2, &budget()).unwrap();
    assert_eq!(hll.block_offsets(), [0, 4, 6]);
    assert_eq!(hll.row_lengths(), [2, 1, 2]);
    assert_eq!(hll.col_indices(), [0, 1, 2, 1, 0, 2]);
    assert_eq!(hll.values(), [1., 3., 2., 0., 4., 5.]);
}

#[test]
fn sell_of_the_sample() {
    let csr = coo_to_csr(&sample());
    let sell = csr_to_sell(csr.view(), 2, 4, &budget()).unwrap();
    assert_eq!(sell.permutation(), [0, 2, 1]);
    assert_eq!(sell.row_lengths(), [2, 2, 1]);
    assert_eq!(sell.chunk_offsets(), [0, 4, 6]);
    assert_eq!(sell.col_indices(), [0, 0, 2, 2, 1, 0]);
    assert_eq!(sell.values(), [1., 4., 2., 5., 3., 0.]);
}
