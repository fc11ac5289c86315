//! CSR and CSC: what their constructors refuse, and what they take from other types.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use spm_formats::sprs::{CsMatI, CsMatViewI};
use spm_formats::{Csc, CscView, Csr, CsrView, FormatError, SharedSlice};

/// | 1 0 2 |
/// | 0 3 0 |
fn sample() -> Csr<f64> {
    Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap()
}

/// The same in `sprs`, with any index types.
fn of_sprs<I, P>() -> CsMatI<f64, I, P>
where
    I: spm_formats::sprs::SpIndex,
    P: spm_formats::sprs::SpIndex,
{
    let pointers = [0, 2, 3].map(P::from_usize).to_vec();
    let indices = [0, 2, 1].map(I::from_usize).to_vec();
    CsMatI::new((2, 3), pointers, indices, vec![1.0, 2.0, 3.0])
}

#[test]
fn accessors() {
    let a = sample();
    assert_eq!((a.rows(), a.cols(), a.shape(), a.nnz()), (2, 3, (2, 3), 3));
    assert_eq!(a.row(0), (&[0, 2][..], &[1.0, 2.0][..]));
    assert_eq!(
        (a.get(0, 2), a.get(0, 1), a.get(1, 9), a.get(1, 1 << 33)),
        (Some(&2.0), None, None, None)
    );
    let entries: Vec<_> = a.iter().map(|(i, j, &v)| (i, j, v)).collect();
    assert_eq!(entries, [(0, 0, 1.0), (0, 2, 2.0), (1, 1, 3.0)]);
    assert_eq!(a.memory_bytes(), 4 * 3 + 12 * 3);
    assert_eq!(a.map(|v| *v as u8).values(), [1, 2, 3]);
    assert_eq!(a.view().to_owned(), a);

    // The CSR of A is the CSC of the transpose.
    let b = a.clone().into_transposed();
    assert_eq!((b.rows(), b.cols(), b.shape(), b.nnz()), (3, 2, (3, 2), 3));
    assert_eq!((b.col_ptr(), b.row_ind(), b.values()), (a.row_ptr(), a.col_ind(), a.values()));
    assert_eq!(b.col(1), (&[1][..], &[3.0][..]));
    let entries: Vec<_> = b.iter().map(|(i, j, &v)| (i, j, v)).collect();
    assert_eq!(entries, [(0, 0, 1.0), (2, 0, 2.0), (1, 1, 3.0)]);
    assert_eq!(b.transposed(), a.view());
    assert_eq!(b.view().to_owned(), b);
    assert_eq!(b.into_transposed(), a);
}

#[test]
fn values_can_be_replaced() {
    let mut a = sample();
    a.values_mut().copy_from_slice(&[7.0, 8.0, 9.0]);
    assert_eq!(a.row(0), (&[0, 2][..], &[7.0, 8.0][..]));
    let mut b = a.into_transposed();
    b.values_mut()[2] = -1.0;
    assert_eq!(b.values(), [7.0, 8.0, -1.0]);
}

#[test]
fn a_structure_that_a_kernel_could_trip_over_is_refused() {
    let check = |pointers: &[u32], columns: &[u32], values: usize| {
        let (pointers, columns, values) = (pointers.to_vec(), columns.to_vec(), vec![1.0; values]);
        let rows = Csr::new((2, 3), pointers.clone(), columns.clone(), values.clone());
        let borrowed = CsrView::new((2, 3), &pointers, &columns, &values);
        assert_eq!(rows.as_ref().map(Csr::view).map_err(Clone::clone), borrowed);
        let cols = Csc::new((3, 2), pointers.clone(), columns.clone(), values.clone());
        let borrowed = CscView::new((3, 2), &pointers, &columns, &values);
        assert_eq!(cols.as_ref().map(Csc::view).map_err(Clone::clone), borrowed);
        let text = |error: FormatError| error.to_string();
        (rows.map(drop).map_err(text), cols.map(drop).map_err(text))
    };
    assert_eq!(check(&[0, 1, 3], &[2, 0, 1], 3), (Ok(()), Ok(())));
    let advice = "indices must ascend without duplicates (`from_unsorted` sorts and sums)";
    for (pointers, columns, values, of_rows, of_cols) in [
        (
            &[0, 1, 3][..],
            &[3, 0, 1][..],
            3,
            "entry 0: column index 3 is outside 0..3",
            "entry 0: row index 3 is outside 0..3",
        ),
        (
            &[0, 4, 3],
            &[2, 0, 1],
            3,
            "row pointers at position 2: must be at least the one before it",
            "column pointers at position 2: must be at least the one before it",
        ),
        (
            &[0, 1, 2],
            &[2, 0, 1],
            3,
            "row pointers at position 2: must be the number of entries",
            "column pointers at position 2: must be the number of entries",
        ),
        (
            &[1, 1, 3],
            &[2, 0, 1],
            3,
            "row pointers at position 0: must be 0",
            "column pointers at position 0: must be 0",
        ),
        (
            &[0, 3],
            &[2, 0, 1],
            3,
            "row pointers: expected length 3, found 2",
            "column pointers: expected length 3, found 2",
        ),
        (
            &[0, 1, 3],
            &[2, 0],
            3,
            "column indices: expected length 3, found 2",
            "row indices: expected length 3, found 2",
        ),
        (
            &[0, 1, 3],
            &[2, 1, 0],
            3,
            &format!("row 1: index 0 of entry 2 comes after 1; {advice}"),
            &format!("column 1: index 0 of entry 2 comes after 1; {advice}"),
        ),
        (
            &[0, 1, 3],
            &[2, 1, 1],
            3,
            &format!("row 1: index 1 of entry 2 comes after 1; {advice}"),
            &format!("column 1: index 1 of entry 2 comes after 1; {advice}"),
        ),
    ] {
        let expected = (Err(of_rows.to_owned()), Err(of_cols.to_owned()));
        assert_eq!(check(pointers, columns, values), expected);
    }
    assert!(Csr::<f64>::new((0, 0), vec![0], vec![], vec![]).is_ok());
    assert!(Csr::<f64>::new((0, 0), vec![], vec![], vec![]).is_err());
}

/// Whether the arrays are a CSR matrix of `cols` columns, one obvious step after the other.
fn is_sound(cols: usize, pointers: &[u32], columns: &[u32]) -> bool {
    pointers.first() == Some(&0)
        && pointers.last() == Some(&(columns.len() as u32))
        && pointers.windows(2).all(|p| p[0] <= p[1])
        && pointers.windows(2).all(|p| {
            let row = &columns[p[0] as usize..p[1] as usize];
            row.iter().all(|&col| (col as usize) < cols) && row.windows(2).all(|c| c[0] < c[1])
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn exactly_the_sound_structures_are_taken(
        pointers in prop::collection::vec(0_u32..8, 1..6),
        sorted in any::<bool>(),
        columns in prop::collection::vec(0_u32..5, 0..8),
        cols in 0_usize..6,
    ) {
        let mut pointers = pointers;
        if sorted {
            pointers.sort_unstable();
            pointers[0] = 0;
            *pointers.last_mut().unwrap() = columns.len() as u32;
        }
        let shape = (pointers.len() - 1, cols);
        let values = vec![0_u8; columns.len()];
        let taken = CsrView::new(shape, &pointers, &columns, &values).is_ok();
        prop_assert_eq!(taken, is_sound(cols, &pointers, &columns));
    }
}

/// Long enough for several threads: a descent is found wherever it is, and none is seen between
/// rows.
#[test]
fn large_structures() {
    let (rows, per_row) = (50_000_u32, 5_u32);
    let pointers: Vec<u32> = (0..=rows).map(|row| row * per_row).collect();
    let columns: Vec<u32> =
        (0..rows).flat_map(|row| (0..per_row).map(move |i| 3 * i + row % 7)).collect();
    let values = vec![1.0_f32; columns.len()];
    let shape = (rows as usize, 20);
    let new = |pointers: &[u32], columns: &[u32]| {
        CsrView::new(shape, pointers, columns, &values).map(drop)
    };
    assert_eq!(new(&pointers, &columns), Ok(()));
    for entry in [1, 4, 65_534, 65_535, 65_536, 65_537, 131_071, 131_072, 249_999] {
        if entry % per_row as usize == 0 {
            continue;
        }
        let mut columns = columns.clone();
        columns[entry] = columns[entry - 1];
        let error = new(&pointers, &columns).unwrap_err();
        let FormatError::Unsorted { axis: "row", line, entry: at, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((line, at), (entry / per_row as usize, entry));
    }
    // Pointers that descend far from the start, as a broken matrix of `sprs` may have them.
    let mut descending = pointers.clone();
    descending.swap(20_000, 30_000);
    let error = new(&descending, &columns).unwrap_err();
    assert!(matches!(error, FormatError::InvalidStructure { what: "row pointers", .. }), "{error}");
}

#[test]
fn unsorted_rows_are_sorted_and_duplicates_summed_in_order() {
    // 1e16 + 1 - 1e16 is 0 from left to right, and 1 in another order.
    let values = vec![1e16, 7.0, 1.0, -1e16, 2.0];
    let a = Csr::from_unsorted((3, 3), vec![0_i64, 4, 4, 5], vec![2_usize, 0, 2, 2, 1], values);
    let a = a.unwrap();
    assert_eq!((a.row_ptr(), a.col_ind()), (&[0, 2, 2, 3][..], &[0, 2, 1][..]));
    assert_eq!(a.values(), [7.0, 0.0, 2.0]);
    let b = Csc::from_unsorted((3, 2), vec![0_u32, 2, 3], vec![2_i32, 1, 0], vec![1, 2, 3]);
    let b = b.unwrap();
    assert_eq!((b.row_ind(), b.values()), (&[1, 2, 0][..], &[2, 1, 3][..]));
    // What is sorted stays where it is.
    let columns = sample().into_arrays().1;
    let place = columns.as_ptr();
    let a = Csr::from_unsorted((2, 3), vec![0_u32, 2, 3], columns, vec![1.0, 2.0, 3.0]).unwrap();
    assert_eq!((a.col_ind().as_ptr(), &a), (place, &sample()));

    let error = |pointers: Vec<i32>, columns: Vec<i32>| {
        let values = vec![1.0; columns.len()];
        Csr::from_unsorted((2, 3), pointers, columns, values).unwrap_err().to_string()
    };
    assert_eq!(
        error(vec![0, 1, 2], vec![0, -1]),
        "column indices at position 1: -1 is outside 0..2^32"
    );
    assert_eq!(error(vec![0, 1, 2], vec![0, 3]), "entry 1: column index 3 is outside 0..3");
    assert_eq!(
        error(vec![-1, 0, 1], vec![0, 0]),
        "row pointers at position 0: -1 is outside 0..2^32"
    );
    assert_eq!(error(vec![0, 1], vec![0, 0]), "row pointers: expected length 3, found 2");
    assert_eq!(
        error(vec![0, 2, 1], vec![0, 0]),
        "row pointers at position 2: must be at least the one before it"
    );
}

#[test]
fn triplets() {
    let a = Csr::from_triplets((2, 3), [(1_usize, 1, 1.0), (0, 2, 2.0), (0, 0, 1.0), (1, 1, 2.0)]);
    assert_eq!(a.unwrap(), sample());
    let error = Csr::from_triplets((2, 3), [(0_i64, -4, 1.0)]).unwrap_err().to_string();
    assert_eq!(error, "column indices at position 0: -4 is outside 0..2^32");
    assert!(Csr::from_triplets((2, 3), [(2_u32, 0, 1.0)]).is_err());
}

/// Sizes that 32 bits would wrap into plausible ones.
#[cfg(target_pointer_width = "64")]
#[test]
fn nothing_wraps() {
    let wrapped = (1_usize << 32) + 1;
    let a = CsMatI::<f64, usize>::new((1, wrapped + 1), vec![0, 1], vec![wrapped], vec![1.0]);
    let error = Csr::try_from(a).unwrap_err();
    assert!(matches!(error, FormatError::TooLarge { what: "number of columns", .. }), "{error}");
    let error = Csr::from_unsorted((1, 2), vec![0, 1], vec![wrapped], vec![1.0]).unwrap_err();
    assert!(matches!(error, FormatError::NotU32 { what: "column indices", .. }), "{error}");
    let error = Csr::from_unsorted((1, 2), vec![0, wrapped], vec![0], vec![1.0]).unwrap_err();
    assert!(matches!(error, FormatError::NotU32 { what: "row pointers", .. }), "{error}");
    let error = Csr::from_triplets((1, 2), [(wrapped - 1, 0, 1.0)]).unwrap_err();
    assert!(matches!(error, FormatError::NotU32 { what: "row indices", .. }), "{error}");
    // 2^32 entries of no size: more than the pointers number.
    let error = Csr::new((1, 2), vec![0, 0], vec![], vec![(); 1 << 32]).unwrap_err();
    assert!(matches!(error, FormatError::TooLarge { what: "number of entries", .. }), "{error}");
}

#[test]
fn matrices_of_sprs_with_any_index_type() {
    fn check<I, P>()
    where
        I: spm_formats::sprs::SpIndex + 'static,
        P: spm_formats::sprs::SpIndex + 'static,
    {
        let matrix = of_sprs::<I, P>();
        let values = matrix.data().as_ptr();
        assert_eq!(Csr::try_from(matrix.view()).unwrap(), sample());
        let a = Csr::try_from(matrix).unwrap();
        assert_eq!((a.values().as_ptr(), &a), (values, &sample()));
        let columns = of_sprs::<I, P>().transpose_into();
        assert_eq!(Csc::try_from(columns.view()).unwrap(), sample().into_transposed());
        assert_eq!(Csc::try_from(columns).unwrap(), sample().into_transposed());
    }
    check::<usize, usize>();
    check::<u64, u64>();
    check::<i32, i32>();
    check::<i64, usize>();
    check::<u16, u32>();
    check::<u32, u64>();
    check::<u32, u32>();
}

#[test]
fn thirty_two_bits_are_not_copied() {
    let matrix = of_sprs::<u32, u32>();
    let places = |pointers: &[u32], indices: &[u32], values: &[f64]| {
        (pointers.as_ptr(), indices.as_ptr(), values.as_ptr())
    };
    let view = CsrView::try_from(&matrix).unwrap();
    let before = places(matrix.indptr().raw_storage(), matrix.indices(), matrix.data());
    assert_eq!(places(view.row_ptr(), view.col_ind(), view.values()), before);
    let a = Csr::try_from(matrix).unwrap();
    assert_eq!(places(a.row_ptr(), a.col_ind(), a.values()), before);
    assert_eq!(a.view().as_sprs(), of_sprs::<u32, u32>().view());
    let matrix = a.into_sprs();
    assert_eq!(places(matrix.indptr().raw_storage(), matrix.indices(), matrix.data()), before);
    assert_eq!(matrix, of_sprs());

    let matrix = matrix.transpose_into();
    assert_eq!(CscView::try_from(&matrix).unwrap().transposed(), sample().view());
    let b = Csc::try_from(matrix).unwrap();
    assert_eq!(places(b.col_ptr(), b.row_ind(), b.values()), before);
    assert!(b.view().as_sprs().is_csc() && b.view().as_sprs().shape() == (3, 2));
    let matrix = b.into_sprs();
    assert_eq!(places(matrix.indptr().raw_storage(), matrix.indices(), matrix.data()), before);
    assert!(matrix.is_csc() && matrix.shape() == (3, 2));
}

#[test]
fn the_other_orientation_is_an_error_that_says_what_to_call() {
    let matrix = of_sprs::<u32, u32>();
    let expected = "expected a matrix of sprs in CSC storage, found CSR: convert it to the type for \
                    CSR, or call its `to_csc` first";
    assert_eq!(Csc::try_from(matrix.view()).unwrap_err().to_string(), expected);
    assert!(CscView::try_from(&matrix).is_err() && Csc::try_from(matrix.clone()).is_err());
    let matrix = matrix.transpose_into();
    let expected = "expected a matrix of sprs in CSR storage, found CSC: convert it to the type for \
                    CSC, or call its `to_csr` first";
    assert_eq!(Csr::try_from(matrix.view()).unwrap_err().to_string(), expected);
    assert!(CsrView::try_from(&matrix).is_err() && Csr::try_from(matrix.clone()).is_err());
    assert_eq!(Csr::try_from(matrix.to_csr()).unwrap().shape(), (3, 2));
}

/// `slice_outer` keeps the pointers of the larger matrix, `to_owned` too.
#[test]
fn slices_of_sprs_matrices() {
    let matrix = CsMatI::<f64, u32>::new(
        (4, 2),
        vec![0, 1, 2, 2, 4],
        vec![1, 0, 0, 1],
        vec![1., 2., 3., 4.],
    );
    let expected = Csr::new((2, 2), vec![0, 0, 2], vec![0, 1], vec![3., 4.]).unwrap();
    let slice: CsMatViewI<'_, f64, u32> = matrix.slice_outer(2..4);
    assert_eq!(Csr::try_from(slice).unwrap(), expected);
    assert_eq!(Csr::try_from(slice.to_owned()).unwrap(), expected);
    let columns = slice.transpose_into();
    assert_eq!(Csc::try_from(columns).unwrap(), expected.clone().into_transposed());
    let error = CsrView::try_from(slice).unwrap_err().to_string();
    let advice = "must be 0; a slice of a larger matrix is converted to an owning type";
    assert_eq!(error, format!("row pointers at position 0: {advice}"));
    let error = CscView::try_from(columns).unwrap_err().to_string();
    assert_eq!(error, format!("column pointers at position 0: {advice}"));
    // Empty ones, at both ends.
    for range in [0..0, 2..2, 4..4] {
        let slice = matrix.slice_outer(range);
        assert_eq!(Csr::try_from(slice).unwrap(), Csr::empty(0, 2).unwrap());
    }
}

/// `modify` checks after it has mutated: behind `catch_unwind` a broken matrix is in safe hands.
#[test]
fn matrices_that_modify_has_broken_are_refused() {
    type Breaker = fn(&mut [u32], &mut [u32]);
    let rows = 10_000;
    let sound = || {
        let pointers = (0..=rows).map(|row| 2 * row).collect();
        let columns = (0..rows).flat_map(|row| [row / 2, row / 2 + 1]).collect();
        CsMatI::<f64, u32>::new(
            (rows as usize, rows as usize),
            pointers,
            columns,
            vec![1.0; 2 * rows as usize],
        )
    };
    let breakers: [Breaker; 6] = [
        |pointers, _| pointers.swap(8_500, 9_500),
        |pointers, _| pointers[9_000] = u32::MAX,
        |pointers, _| pointers[10_000] = 7,
        |pointers, _| pointers.iter_mut().for_each(|pointer| *pointer += 3),
        |_, columns| columns[12_345] = u32::MAX,
        |_, columns| columns.swap(100, 101),
    ];
    for (number, breaker) in breakers.iter().enumerate() {
        let mut matrix = sound();
        let caught = catch_unwind(AssertUnwindSafe(|| {
            matrix.modify(|pointers, columns, _| breaker(pointers, columns));
        }));
        let moved = Csr::try_from(matrix.clone());
        if number == 3 {
            // Pointers that all moved are those of a slice.
            assert_eq!(moved.unwrap(), Csr::try_from(sound()).unwrap());
            continue;
        }
        assert!(caught.is_err(), "breaker {number} has broken nothing");
        let error = moved.unwrap_err();
        assert_eq!(CsrView::try_from(&matrix).unwrap_err(), error, "breaker {number}");
        assert_eq!(Csr::try_from(matrix.view()).unwrap_err(), error, "breaker {number}");
        assert!(Csc::try_from(matrix.transpose_into()).is_err(), "breaker {number}");
    }
}

/// An array of another library, which tells when it is dropped.
struct Foreign(Vec<f64>, Arc<AtomicUsize>);

impl AsRef<[f64]> for Foreign {
    fn as_ref(&self) -> &[f64] {
        &self.0
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn shared_arrays_stay_where_they_are_until_they_are_overwritten() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let foreign = SharedSlice::new(Foreign(vec![1.0, 2.0, 3.0], Arc::clone(&dropped)));
    let place = foreign.as_ptr();
    let (row_ptr, col_ind) = (SharedSlice::new(vec![0, 2, 3]), SharedSlice::new(vec![0, 2, 1]));
    let a = Csr::from_shared((2, 3), row_ptr, col_ind.clone(), foreign.clone()).unwrap();
    let expected = Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap();
    assert_eq!(a, expected);
    drop(foreign);
    let mut b = a.clone();
    assert_eq!((a.values().as_ptr(), b.values().as_ptr()), (place, place));
    assert_eq!(b.col_ind().as_ptr(), col_ind.as_ptr());
    b.values_mut()[1] = 7.0;
    assert_eq!((b.values(), a.values()), (&[1.0, 7.0, 3.0][..], &[1.0, 2.0, 3.0][..]));
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    assert_eq!(a.clone().into_sprs(), expected.clone().into_sprs());
    assert_eq!(a.into_arrays(), expected.into_arrays());
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    assert_eq!(b.values(), [1.0, 7.0, 3.0]);
}

#[test]
fn shared_arrays_are_checked() {
    let outside = Csr::from_shared(
        (1, 2),
        SharedSlice::new(vec![0, 1]),
        SharedSlice::new(vec![2]),
        SharedSlice::new(vec![1.0]),
    );
    assert!(matches!(outside, Err(FormatError::IndexOutOfBounds { index: 2, .. })), "{outside:?}");
}
