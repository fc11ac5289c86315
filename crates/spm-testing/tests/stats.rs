//! The statistics of generated matrices against what conversions and transposition make of them.

use spm_formats::MemoryBudget;
use spm_formats::convert::{csc_to_csr, csr_to_hll, csr_to_sell};
use spm_formats::stats::{MatrixStats, hll_stored_elements, sell_stored_elements};
use spm_testing::generate::named;

fn generated(label: &str) -> MatrixStats {
    MatrixStats::of(named(label).unwrap().generate::<f64>().unwrap().view())
}

#[test]
fn symmetry_agrees_with_the_transpose() {
    let symmetric = ["stencil27[n=5]", "road[n=400,edges=600]", "banded[n=90]"];
    for label in symmetric {
        let stats = generated(label);
        assert!(stats.pattern_symmetric && stats.numerically_symmetric, "{label}");
    }
    let random = generated("stencil9[n=7,values=general]");
    assert!(random.pattern_symmetric && !random.numerically_symmetric);
    for label in [
        "powerlaw[rows=900,cols=900,entries=2800,longest=50]",
        "circuit[n=900,entries=5000,dense=1,longest=700]",
    ] {
        let matrix = named(label).unwrap().generate::<f64>().unwrap();
        let transposed = csc_to_csr(matrix.transposed());
        assert!(transposed != matrix && !generated(label).pattern_symmetric, "{label}");
    }
}

#[test]
fn elements_are_those_of_the_converted_matrix() {
    let label = "powerlaw[rows=777,cols=500,entries=5000,longest=200]";
    let matrix = named(label).unwrap().generate::<f32>().unwrap();
    let pointers = matrix.row_ptr();
    let budget = MemoryBudget::unlimited();
    for hack_size in [1, 7, 32, 777, 1000] {
        let hll = csr_to_hll(matrix.view(), hack_size, &budget).unwrap();
        assert_eq!(
            hll_stored_elements(pointers, hack_size),
            hll.stored_elements() as u64,
            "{hack_size}"
        );
    }
    for (chunk, sigma) in [(1, 1), (8, 1), (8, 12), (32, 64), (32, 100), (5, 776), (900, 9)] {
        let sell = csr_to_sell(matrix.view(), chunk, sigma, &budget).unwrap();
        assert_eq!(
            sell_stored_elements(pointers, chunk, sigma),
            sell.stored_elements() as u64,
            "{chunk} {sigma}"
        );
    }
    let stats = MatrixStats::of(matrix.view());
    assert_eq!(stats.padding.ell, 777.0 * 200.0 / 5000.0);
}
