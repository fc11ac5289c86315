//! Every conversion of the registry against the reference, with every studied parameter.

use std::collections::HashSet;

use proptest::prelude::*;
use spm_formats::convert::{
    ConversionInput, Converted, ROW_SCAN_LIMIT, coo_to_csr, csc_to_csr, find, registry,
};
use spm_formats::kernel::{Operation, PlanError, Value};
use spm_formats::{Complex, Coo, FormatError, MemoryBudget, Scalar};
use spm_testing::edge_cases;
use spm_testing::reference::is_exactly;

/// Runs all kernels with all parameters; returns what they made.
fn check_all<T: Scalar>(coo: &Coo<T>) -> Vec<Converted<T>> {
    let csr = coo_to_csr(coo);
    let input = ConversionInput { coo, csr: csr.view() };
    let mut results = Vec::new();
    for kernel in registry::<T>() {
        for parameters in kernel.info.variants() {
            let label = kernel.info.label(&parameters);
            let plan = kernel.plan(input, &parameters, &MemoryBudget::default()).unwrap();
            let converted = plan.run().unwrap();
            assert!(is_exactly(&converted, coo), "{label}");
            assert_eq!(converted.entries(), csr.nnz(), "{label}");
            assert_eq!(plan.footprint().matrix_bytes, converted.memory_bytes(), "{label}");
            results.push(converted);
        }
    }
    results
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_kernel_gives_the_matrix(
        rows in 1..30_usize,
        cols in 1..30_usize,
        triplets in proptest::collection::vec((0..30_u32, 0..30_u32, -1e3..1e3_f32), 0..150),
    ) {
        let row_of = triplets.iter().map(|t| t.0 % rows as u32).collect();
        let col_of = triplets.iter().map(|t| t.1 % cols as u32).collect();
        let values = triplets.iter().map(|t| t.2).collect();
        check_all(&Coo::new(rows, cols, row_of, col_of, values).unwrap());
    }
}

#[test]
fn complex_matrices() {
    check_all(&edge_cases::generated::<Complex<f64>>("uniform[rows=30,cols=20,entries=200]"));
    check_all(&edge_cases::ragged(|i| Complex::new(i as f32, -0.5)));
}

#[test]
fn matrices_without_rows_columns_or_entries() {
    for (rows, cols) in [(0, 0), (0, 3), (3, 0), (3, 4)] {
        check_all(&Coo::<f64>::empty(rows, cols).unwrap());
    }
}

#[test]
fn every_thread_count_gives_the_same_bits() {
    // Few rows, many duplicates: threads meet in every row, and the order of sums shows.
    let entries = 40_000_u32;
    let hash = |i: u32, salt: u32| (i ^ salt).wrapping_mul(0x9E37_79B9) >> 16;
    let coo = Coo::new(
        50,
        300,
        (0..entries).map(|i| hash(i, 1) % 50).collect(),
        (0..entries).map(|i| hash(i, 0x5555) % 300).collect(),
        (0..entries).map(|i| 1.0 / (1.0 + f64::from(i))).collect(),
    )
    .unwrap();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| check_all(&coo))
    };
    let one = on(1);
    assert_eq!(on(2), one);
    assert_eq!(on(4), one);
}

#[test]
fn a_wrong_result_is_found() {
    let coo = Coo::new(2, 2, vec![0, 1, 1], vec![1, 0, 1], vec![1., 2., 3.]).unwrap();
    let csr = coo_to_csr(&coo);
    assert!(is_exactly(&Converted::Csr(csr.clone()), &coo));
    let wrong_value = csr.map(|&v| if v == 3. { 4. } else { v });
    assert!(!is_exactly(&Converted::Csr(wrong_value), &coo));
    assert!(!is_exactly(&Converted::Csr(csc_to_csr(csr.transposed())), &coo));
    let missing = Coo::new(2, 2, vec![0, 1], vec![1, 0], vec![1., 2.]).unwrap();
    assert!(!is_exactly(&Converted::Csr(coo_to_csr(&missing)), &coo));
}

#[test]
fn row_scans_refuse_what_would_take_hours() {
    let rows = 100_000_u32;
    let coo = Coo::new(
        rows as usize,
        1,
        (0..rows).collect(),
        vec![0; rows as usize],
        vec![1.0_f64; rows as usize],
    )
    .unwrap();
    assert!(u64::from(rows) * u64::from(rows) > ROW_SCAN_LIMIT);
    let csr = coo_to_csr(&coo);
    let input = ConversionInput { coo: &coo, csr: csr.view() };
    let mut refused = Vec::new();
    for kernel in registry::<f64>() {
        match kernel.plan(input, &kernel.info.defaults(), &MemoryBudget::default()) {
            Ok(plan) => assert!(is_exactly(&plan.run().unwrap(), &coo), "{}", kernel.info.id),
            Err(PlanError::Unsupported { reason, .. }) => {
                assert!(reason.contains("10000000000 comparisons"), "{reason}");
                refused.push(kernel.info.id);
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(refused, ["coo-to-csr-row-scan", "coo-to-ell-padded", "coo-to-ell-unpadded"]);
}

#[test]
fn plans_refuse_what_exceeds_the_budget() {
    let coo = Coo::new(3, 3, vec![0, 1, 2], vec![0, 1, 2], vec![1.0_f64; 3]).unwrap();
    let csr = coo_to_csr(&coo);
    let input = ConversionInput { coo: &coo, csr: csr.view() };
    for id in ["coo-to-ell-padded", "csr-to-ell", "csr-to-hll", "csr-to-sell", "csr-to-bsr"] {
        let kernel = find::<f64>(id).unwrap();
        let plan = kernel.plan(input, &kernel.info.defaults(), &MemoryBudget::bytes(10));
        let refused =
            matches!(plan, Err(PlanError::Format(FormatError::OverBudget { budget: 10, .. })));
        assert!(refused, "{id}");
    }
}

#[test]
fn parameters_of_another_kernel_are_refused() {
    let coo = Coo::new(3, 3, vec![0, 1, 2], vec![0, 1, 2], vec![1.0_f64; 3]).unwrap();
    let csr = coo_to_csr(&coo);
    let input = ConversionInput { coo: &coo, csr: csr.view() };
    let hll = find::<f64>("csr-to-hll").unwrap();
    let none = find::<f64>("csr-to-csc").unwrap();
    let zero = hll.info.defaults().with("hack", Value::Count(0));
    for (kernel, parameters) in
        [(hll, none.info.defaults()), (none, hll.info.defaults()), (hll, zero)]
    {
        let plan = kernel.plan(input, &parameters, &MemoryBudget::default());
        assert!(matches!(plan, Err(PlanError::Unsupported { .. })), "{plan:?}");
    }
}

#[test]
fn ids_are_unique() {
    let kernels = registry::<f32>();
    let ids: HashSet<_> = kernels.iter().map(|kernel| kernel.info.id).collect();
    assert_eq!(ids.len(), kernels.len());
    assert!(kernels.iter().all(|kernel| kernel.info.operation == Operation::Conversion));
    assert!(find::<f32>("coo-to-nowhere").is_none());
}
