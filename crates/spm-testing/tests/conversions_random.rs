//! COO -> format -> COO for every format, on random matrices and on the awkward ones.

use proptest::prelude::*;
use spm_formats::Scalar;
use spm_formats::convert::*;
use spm_formats::{Bsr, Coo, Csr, Ell, FormatError, Hll, Layout, MemoryBudget, Sell, UnpaddedEll};
use spm_testing::reference;

/// Row-sorted triplets without duplicates, bit by bit, through the reference's transpose.
fn canonical<T: Scalar>(coo: &Coo<T>) -> (Vec<u32>, Vec<u32>, Vec<u128>) {
    let (pointers, rows, values) = reference::transpose(coo);
    (pointers, rows, values.iter().map(|v| v.to_bits128()).collect())
}

fn any_coo() -> impl Strategy<Value = Coo<f64>> {
    (0..40_usize, 0..40_usize).prop_flat_map(|(rows, cols)| {
        let most = if rows * cols == 0 { 0 } else { 120 };
        // Few distinct rows and columns on the way: duplicates are frequent.
        let index = move |bound: usize| 0..bound.max(1) as u32;
        let value = prop_oneof![Just(0.0), Just(1e16), Just(-1e16), -1.0..1.0];
        proptest::collection::vec((index(rows), index(cols), value), 0..=most).prop_map(
            move |triplets| {
                let (mut r, mut c, mut v) = (Vec::new(), Vec::new(), Vec::new());
                for (row, col, value) in triplets {
                    r.push(row);
                    c.push(col);
                    v.push(value);
                }
                Coo::new(rows, cols, r, c, v).unwrap()
            },
        )
    })
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// One conversion there and back, with its name.
type RoundTrip = (&'static str, fn(&Coo<f64>) -> Coo<f64>);

const ROUND_TRIPS: &[RoundTrip] = &[
    ("csr", |coo| csr_to_coo(coo_to_csr(coo).view())),
    ("csc", |coo| csc_to_coo(coo_to_csc(coo).view())),
    ("csr-csc-csr", |coo| {
        let csc = csr_to_csc(coo_to_csr(coo).view());
        csr_to_coo(csc_to_csr(csc.view()).view())
    }),
    ("ell row-major", |coo| {
        ell_to_coo(&checked_ell(coo_to_ell(coo, EllOptions::ROW_MAJOR, &budget()).unwrap()))
    }),
    ("ell column-major", |coo| {
        ell_to_coo(&checked_ell(coo_to_ell(coo, EllOptions::COLUMN_MAJOR, &budget()).unwrap()))
    }),
    ("ell device", |coo| {
        ell_to_coo(&checked_ell(coo_to_ell(coo, EllOptions::DEVICE, &budget()).unwrap()))
    }),
    ("ell row-major pitched", |coo| {
        let options = EllOptions { layout: Layout::RowMajor, pitch_alignment: 3 };
        ell_to_coo(&checked_ell(coo_to_ell(coo, options, &budget()).unwrap()))
    }),
    ("unpadded ell", |coo| {
        let ell = coo_to_unpadded_ell(coo);
        assert_eq!(UnpaddedEll::new(ell.cols(), ell.row_arrays().to_vec()).as_ref(), Ok(&ell));
        unpadded_ell_to_coo(&ell)
    }),
    ("hll 1", |coo| hll_to_coo(&checked_hll(coo_to_hll(coo, 1, &budget()).unwrap()))),
    ("hll 7", |coo| hll_to_coo(&checked_hll(coo_to_hll(coo, 7, &budget()).unwrap()))),
    ("hll 32", |coo| hll_to_coo(&checked_hll(coo_to_hll(coo, 32, &budget()).unwrap()))),
    ("sell 1 1", |coo| sell_to_coo(&checked_sell(coo_to_sell(coo, 1, 1, &budget()).unwrap()))),
    ("sell 4 6", |coo| sell_to_coo(&checked_sell(coo_to_sell(coo, 4, 6, &budget()).unwrap()))),
    ("sell 8 all", |coo| {
        sell_to_coo(&checked_sell(coo_to_sell(coo, 8, usize::MAX, &budget()).unwrap()))
    }),
    ("bsr 1 1", |coo| bsr_to_coo(&checked_bsr(coo_to_bsr(coo, (1, 1), &budget()).unwrap()))),
    ("bsr 3 3", |coo| bsr_to_coo(&checked_bsr(coo_to_bsr(coo, (3, 3), &budget()).unwrap()))),
    ("bsr 2 7", |coo| bsr_to_coo(&checked_bsr(coo_to_bsr(coo, (2, 7), &budget()).unwrap()))),
    ("bsr 41 5", |coo| bsr_to_coo(&checked_bsr(coo_to_bsr(coo, (41, 5), &budget()).unwrap()))),
];

fn budget() -> MemoryBudget {
    MemoryBudget::default()
}

/// The same matrix through the validating constructor.
fn checked_ell(ell: Ell<f64>) -> Ell<f64> {
    let again = Ell::new(
        (ell.rows(), ell.cols()),
        ell.layout(),
        (ell.width(), ell.pitch()),
        ell.row_lengths().to_vec(),
        ell.col_ind().to_vec(),
        ell.values().to_vec(),
    );
    assert_eq!(again.as_ref(), Ok(&ell));
    ell
}

fn checked_hll(hll: Hll<f64>) -> Hll<f64> {
    let again = Hll::new(
        (hll.rows(), hll.cols()),
        hll.hack_size(),
        hll.row_lengths().to_vec(),
        hll.col_ind().to_vec(),
        hll.values().to_vec(),
    );
    assert_eq!(again.as_ref(), Ok(&hll));
    hll
}

fn checked_sell(sell: Sell<f64>) -> Sell<f64> {
    let again = Sell::new(
        (sell.rows(), sell.cols()),
        (sell.chunk(), sell.sigma()),
        sell.permutation().to_vec(),
        sell.row_lengths().to_vec(),
        sell.col_ind().to_vec(),
        sell.values().to_vec(),
    );
    assert_eq!(again.as_ref(), Ok(&sell));
    sell
}

/// The same for BSR, and after taking its own values anew.
fn checked_bsr(mut bsr: Bsr<f64>) -> Bsr<f64> {
    let again = Bsr::new(
        (bsr.rows(), bsr.cols()),
        bsr.block(),
        bsr.block_ptr().to_vec(),
        bsr.block_col().to_vec(),
        bsr.values().to_vec(),
        bsr.padding().to_vec(),
    );
    assert_eq!(again.as_ref(), Ok(&bsr));
    let values = bsr_to_csr(&bsr).values().to_vec();
    bsr.set_values(&vec![f64::NAN; values.len()]).unwrap();
    bsr.set_values(&values).unwrap();
    assert_eq!(again, Ok(bsr.clone()));
    bsr
}

fn check_round_trips(coo: &Coo<f64>) {
    let expected = canonical(coo);
    for (name, round_trip) in ROUND_TRIPS {
        let back = round_trip(coo);
        assert_eq!((back.rows(), back.cols()), (coo.rows(), coo.cols()), "{name}");
        assert_eq!(canonical(&back), expected, "{name}");
        assert_eq!(back.entries(), expected.1.len(), "{name} left duplicates");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_format_gives_the_matrix_back(coo in any_coo()) {
        check_round_trips(&coo);
    }

    #[test]
    fn slices_of_a_larger_matrix_convert(coo in any_coo(), from in 0..40_usize, to in 0..40_usize) {
        let csr = coo_to_csr(&coo);
        let (from, to) = (from.min(to).min(coo.rows()), from.max(to).min(coo.rows()));
        let part = csr.view().as_sprs().slice_outer(from..to).to_owned();
        let slice = Csr::try_from(part).unwrap();
        let slice = slice.view();
        let kept: Vec<_> = csr_to_coo(csr.view())
            .iter()
            .filter(|&(row, _, _)| (from..to).contains(&(row as usize)))
            .collect();
        let expected = Coo::new(
            to - from,
            coo.cols(),
            kept.iter().map(|t| t.0 - from as u32).collect(),
            kept.iter().map(|t| t.1).collect(),
            kept.iter().map(|t| t.2).collect(),
        )
        .unwrap();
        let device = csr_to_ell(slice, EllOptions::DEVICE, &budget()).unwrap();
        prop_assert_eq!(ell_to_coo(&device), expected.clone());
        let hll = csr_to_hll(slice, 3, &budget()).unwrap();
        prop_assert_eq!(hll_to_coo(&hll), expected.clone());
        let sell = csr_to_sell(slice, 4, 8, &budget()).unwrap();
        prop_assert_eq!(sell_to_coo(&sell), expected.clone());
        let bsr = csr_to_bsr(slice, (3, 4), &budget()).unwrap();
        prop_assert_eq!(bsr_to_coo(&bsr), expected.clone());
        prop_assert_eq!(unpadded_ell_to_coo(&csr_to_unpadded_ell(slice)), expected.clone());
        prop_assert_eq!(csc_to_coo(csr_to_csc(slice).view()), expected.clone());
        prop_assert_eq!(csr_to_coo(slice), expected);
    }
}

#[test]
fn matrices_without_rows_columns_or_entries() {
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (5, 7), (100_000, 1), (1, 100_000)] {
        check_round_trips(&Coo::empty(rows, cols).unwrap());
    }
}

/// Entries scattered by a multiplicative hash, duplicates included; row 3 has 10^5 entries.
fn large() -> Coo<f64> {
    let (rows, cols, scattered) = (5_000, 200_000, 60_000_u64);
    let hash = |i: u64, salt: u64| (i ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let scattered = (0..scattered).map(|i| {
        let value = hash(i, 3) as f64 - 2e9;
        ((hash(i, 1) % 700 * 7) as u32, (hash(i, 2) % 300) as u32, value)
    });
    let long = (0..100_000_u32).rev().map(|i| (3, 2 * i, f64::from(i)));
    let (mut r, mut c, mut v) = (Vec::new(), Vec::new(), Vec::new());
    for (row, col, value) in scattered.chain(long) {
        r.push(row);
        c.push(col);
        v.push(value);
    }
    Coo::new(rows, cols, r, c, v).unwrap()
}

#[test]
fn every_thread_count_gives_the_same_bits() {
    let coo = large();
    let expected = canonical(&coo);
    let by_rows = |coo: &Coo<f64>| csr_to_coo(coo_to_csr(coo).view());
    let sorted = by_rows(&coo);
    let by_columns = csc_to_coo_in_column_order(&sorted);
    for threads in [1, 2, 4] {
        pool(threads).install(|| {
            for input in [&coo, &sorted, &by_columns] {
                let csr = coo_to_csr(input);
                assert_eq!(canonical(&csr_to_coo(csr.view())), expected);
                let csc = coo_to_csc(input);
                assert_eq!(csc, csr_to_csc(csr.view()));
                assert_eq!(csr, csc_to_csr(csc.view()));
                let hll = csr_to_hll(csr.view(), 32, &budget()).unwrap();
                assert_eq!(csr_to_coo(hll_to_csr(&hll).view()), sorted);
                for block in [(1, 8), (3, 3), (20, 1)] {
                    let bsr = csr_to_bsr(csr.view(), block, &budget()).unwrap();
                    assert_eq!(csr_to_coo(bsr_to_csr(&bsr).view()), sorted);
                }
                for sigma in [1, 100, 1000, 10_000] {
                    let sell = csr_to_sell(csr.view(), 8, sigma, &budget()).unwrap();
                    assert_eq!(csr_to_coo(sell_to_csr(&sell).view()), sorted);
                }
            }
        });
    }
}

/// The triplets in the order in which Matrix Market files have them.
fn csc_to_coo_in_column_order(coo: &Coo<f64>) -> Coo<f64> {
    let mut triplets: Vec<_> = coo.iter().collect();
    triplets.sort_by_key(|t| (t.1, t.0));
    Coo::new(
        coo.rows(),
        coo.cols(),
        triplets.iter().map(|t| t.0).collect(),
        triplets.iter().map(|t| t.1).collect(),
        triplets.iter().map(|t| t.2).collect(),
    )
    .unwrap()
}

#[test]
fn windows_of_any_size_are_sorted_stably() {
    let csr = coo_to_csr(&large());
    for sigma in [1, 7, 256, 257, 4096, 5_000, usize::MAX] {
        let sell = csr_to_sell(csr.view(), 8, sigma, &budget()).unwrap();
        let mut expected: Vec<u32> = (0..csr.rows() as u32).collect();
        let length = |row: &u32| csr.view().row_range(*row as usize).len();
        for window in expected.chunks_mut(sigma.min(csr.rows())) {
            window.sort_by_key(|row| std::cmp::Reverse(length(row)));
        }
        assert_eq!(sell.permutation(), expected, "sigma {sigma}");
    }
}

#[test]
fn zero_sizes_are_typed_errors() {
    let csr = coo_to_csr(&Coo::<f32>::new(2, 3, vec![0, 1], vec![2, 0], vec![1., 2.]).unwrap());
    let options = EllOptions { layout: Layout::RowMajor, pitch_alignment: 0 };
    let parameter = |result: Result<(), FormatError>| match result {
        Err(FormatError::InvalidParameter { what, found: 0, .. }) => what,
        other => panic!("{other:?}"),
    };
    let view = csr.view();
    assert_eq!(parameter(csr_to_ell(view, options, &budget()).map(drop)), "pitch alignment");
    assert_eq!(parameter(csr_to_hll(view, 0, &budget()).map(drop)), "hack size");
    assert_eq!(parameter(csr_to_sell(view, 0, 1, &budget()).map(drop)), "chunk");
    assert_eq!(parameter(csr_to_sell(view, 1, 0, &budget()).map(drop)), "sigma");
    assert_eq!(parameter(csr_to_bsr(view, (0, 1), &budget()).map(drop)), "block height");
    assert_eq!(parameter(csr_to_bsr(view, (1, 0), &budget()).map(drop)), "block width");
}
