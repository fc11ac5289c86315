//! Sizes at and beyond what 32 bits number and memory holds: typed errors, never a wrap.

use spm_formats::convert::{self, EllOptions};
use spm_formats::csr::check_limits;
use spm_formats::{
    Bsr, Coo, Csr, CsrView, Ell, FormatError, Hll, Layout, MemoryBudget, Sell, UnpaddedEll,
};

fn too_large<T: std::fmt::Debug>(result: Result<T, FormatError>) -> (&'static str, u64) {
    match result.unwrap_err() {
        FormatError::TooLarge { what, size, .. } => (what, size),
        error => panic!("{error}"),
    }
}

#[test]
fn sizes_of_32_bits() {
    let (most, largest) = (u64::from(u32::MAX), u64::from(u32::MAX) - 1);
    assert_eq!(check_limits(largest, largest, most), Ok(()));
    assert_eq!(too_large(check_limits(most, 1, 1)), ("number of rows", most));
    assert_eq!(too_large(check_limits(1, most, 1)), ("number of columns", most));
    assert_eq!(too_large(check_limits(1, 1, most + 1)), ("number of entries", most + 1));
    for size in [u64::MAX, 1 << 63, 1 << 32] {
        assert!(check_limits(size, 1, 1).is_err() && check_limits(1, size, 1).is_err());
        assert!(check_limits(1, 1, size).is_err());
    }
}

/// Every constructor looks at the sizes before it believes them.
#[test]
fn constructors_refuse_sizes_beyond_32_bits() {
    let rows = u32::MAX as usize;
    for shape in [(rows, 1), (1, rows), (usize::MAX, 1), (1, usize::MAX)] {
        let none = || (Vec::<u32>::new(), Vec::<u32>::new(), Vec::<f64>::new());
        let (r, c, v) = none();
        too_large(Coo::new(shape.0, shape.1, r, c, v));
        too_large(Coo::<f64>::empty(shape.0, shape.1));
        too_large(CsrView::<f64>::new(shape, &[0, 0], &[], &[]));
        let (r, c, v) = none();
        too_large(Hll::new(shape, 32, r, c, v));
        // So large that there is one block row and one block column.
        let block = (usize::MAX, usize::MAX);
        too_large(Bsr::<f64>::new(shape, block, vec![0, 0], vec![], vec![], vec![]));
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let (r, c, v) = none();
            too_large(Ell::<f64>::new(shape, layout, (0, 0), r, c, v));
        }
    }
    // Lengths of rows that only together are too many.
    let lengths = vec![u32::MAX, 1];
    too_large(Hll::<f64>::new((2, 5), 2, lengths.clone(), vec![], vec![]));
    too_large(Sell::<f64>::new((2, 5), (2, 1), vec![0, 1], lengths, vec![], vec![]));
    too_large(UnpaddedEll::<f64>::new(usize::MAX, vec![]));
}

/// 10^5 rows, the first one full: padded to 10^10 stored elements.
fn hopeless() -> Csr<f64> {
    let n = 100_000;
    let columns = (0..n as u32).chain(1..n as u32).collect::<Vec<_>>();
    let pointers = (0..=n as u32).map(|row| if row == 0 { 0 } else { n as u32 - 1 + row });
    let values = vec![1.0; columns.len()];
    Csr::new((n, n), pointers.collect(), columns, values).unwrap()
}

#[test]
fn hopeless_padding_is_refused_before_it_is_allocated() {
    let a = hopeless();
    let budget = MemoryBudget::default().for_matrix("arrow");
    let column_major = EllOptions::COLUMN_MAJOR;
    for options in [EllOptions::ROW_MAJOR, column_major, EllOptions::DEVICE] {
        let error = convert::csr_to_ell(a.view(), options, &budget).unwrap_err();
        let FormatError::OverBudget { format: "ell", ref matrix, required, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(matrix, "arrow");
        assert!(required >= 12 * 10_u64.pow(10), "{required}");
    }
    let error = convert::csr_to_hll(a.view(), 50_000, &budget).unwrap_err();
    assert!(matches!(error, FormatError::OverBudget { format: "hll", .. }), "{error}");
    // A chunk as large as the address space: products of sizes must not wrap.
    for chunk in [50_000, usize::MAX] {
        let error = convert::csr_to_sell(a.view(), chunk, 1, &budget).unwrap_err();
        assert!(matches!(error, FormatError::OverBudget { format: "sell", .. }), "{error}");
    }
    for block in [(50_000, 50_000), (1, usize::MAX), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
        let error = convert::csr_to_bsr(a.view(), block, &budget).unwrap_err();
        assert!(matches!(error, FormatError::OverBudget { format: "bsr", .. }), "{error}");
    }
    let options = EllOptions { pitch_alignment: usize::MAX, ..column_major };
    let error = convert::csr_to_ell(a.view(), options, &MemoryBudget::unlimited()).unwrap_err();
    assert!(matches!(error, FormatError::OverBudget { required: u64::MAX, .. }), "{error}");
    // In blocks the long row costs little.
    assert!(convert::csr_to_hll(a.view(), 32, &budget).is_ok());
    assert!(convert::csr_to_sell(a.view(), 32, 1024, &budget).is_ok());
    assert!(convert::csr_to_bsr(a.view(), (2, 2), &budget).is_ok());
}

#[test]
fn a_budget_of_exactly_the_size_is_enough() {
    let a = hopeless();
    let hll = |bytes| convert::csr_to_hll(a.view(), 32, &MemoryBudget::bytes(bytes));
    let sell = |bytes| convert::csr_to_sell(a.view(), 8, 64, &MemoryBudget::bytes(bytes));
    let hll_bytes = hll(u64::MAX).unwrap().memory_bytes();
    let sell_bytes = sell(u64::MAX).unwrap().memory_bytes();
    assert!(hll(hll_bytes).is_ok() && sell(sell_bytes).is_ok());
    assert!(hll(hll_bytes - 1).is_err() && sell(sell_bytes - 1).is_err());
    let bsr = |bytes| convert::csr_to_bsr(a.view(), (3, 2), &MemoryBudget::bytes(bytes));
    let bsr_bytes = bsr(u64::MAX).unwrap().memory_bytes();
    assert!(bsr(bsr_bytes).is_ok() && bsr(bsr_bytes - 1).is_err());
    let small = Csr::new((3, 3), vec![0, 2, 3, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap();
    for options in [EllOptions::ROW_MAJOR, EllOptions::DEVICE] {
        let ell = |bytes| convert::csr_to_ell(small.view(), options, &MemoryBudget::bytes(bytes));
        let bytes = ell(u64::MAX).unwrap().memory_bytes();
        assert!(ell(bytes).is_ok() && ell(bytes - 1).is_err());
    }
}

/// Sizes whose products overflow 64 bits.
#[test]
fn blocks_and_pitches_of_any_size() {
    let a = Csr::new((3, 3), vec![0, 2, 3, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap();
    for size in [1 << 31, 1 << 32, 1 << 40, 1 << 62, usize::MAX / 2 + 1, usize::MAX] {
        for budget in [MemoryBudget::default(), MemoryBudget::unlimited()] {
            // A hack has no more rows than the matrix.
            let hll = convert::csr_to_hll(a.view(), size, &budget).unwrap();
            assert_eq!(convert::hll_to_csr(&hll), a);
            // A window for sorting too.
            let sell = convert::csr_to_sell(a.view(), 2, size, &budget).unwrap();
            assert_eq!(convert::sell_to_csr(&sell), a);
        }
        // Blocks that are not stored have any size.
        let empty = Csr::<f64>::empty(3, 3).unwrap();
        for block in [(size, size), (1, size), (size, 1)] {
            let mut bsr =
                convert::csr_to_bsr(empty.view(), block, &MemoryBudget::default()).unwrap();
            assert_eq!(bsr.set_values(&[]), Ok(()));
            assert_eq!(convert::bsr_to_csr(&bsr), empty);
            let error = convert::csr_to_bsr(a.view(), block, &MemoryBudget::default());
            assert!(matches!(error, Err(FormatError::OverBudget { .. })), "{block:?}");
        }
        // A chunk and a pitch are padded to their size.
        let budget = MemoryBudget::default();
        let error = convert::csr_to_sell(a.view(), size, size, &budget).unwrap_err();
        assert!(matches!(error, FormatError::OverBudget { .. }), "chunk {size}: {error}");
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let options = EllOptions { layout, pitch_alignment: size };
            let error = convert::csr_to_ell(a.view(), options, &budget).unwrap_err();
            assert!(matches!(error, FormatError::OverBudget { .. }), "{options:?}: {error}");
        }
    }
}
