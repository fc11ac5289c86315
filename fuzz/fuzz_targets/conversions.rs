//! Any triplets through every conversion and back: the same matrix, bit by bit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spm_formats::convert::{self, Converted};
use spm_formats::kernel::PlanError;
use spm_formats::{Coo, CsrView, Layout, MemoryBudget, Scalar};
use spm_fuzz::Triplets;
use spm_testing::reference::is_exactly;

/// What formats are cut into: rows of a hack, rows of a chunk, rows of a sorting window, alignment.
type Sizes = (u8, u8, u8, u8);

/// Any sizes of the padded formats; size 0 is an error.
fn check_sizes<T: Scalar>(coo: &Coo<T>, csr: CsrView<'_, T>, sizes: Sizes) {
    let (hack, chunk, sigma, align) = sizes;
    let [hack, chunk, sigma, align] = [hack, chunk, sigma, align].map(usize::from);
    let budget = MemoryBudget::default();
    let hll = convert::csr_to_hll(csr, hack, &budget);
    assert_eq!(hll.is_ok(), hack > 0);
    if let Ok(hll) = hll {
        assert!(is_exactly(&Converted::Hll(hll.clone()), coo), "hack size {hack}: {coo:?}");
        assert!(
            is_exactly(&Converted::Csr(convert::hll_to_csr(&hll)), coo),
            "hack size {hack}: {coo:?}"
        );
    }
    if let Ok(sell) = convert::csr_to_sell(csr, chunk, sigma, &budget) {
        let case = format!("chunk {chunk}, sigma {sigma}");
        assert!(is_exactly(&Converted::Sell(sell.clone()), coo), "{case}: {coo:?}");
        assert!(is_exactly(&Converted::Csr(convert::sell_to_csr(&sell)), coo), "{case}: {coo:?}");
    }
    for layout in [Layout::RowMajor, Layout::ColumnMajor] {
        let options = convert::EllOptions { layout, pitch_alignment: align };
        if let Ok(ell) = convert::csr_to_ell(csr, options, &budget) {
            assert!(is_exactly(&Converted::Ell(ell.clone()), coo), "{options:?}: {coo:?}");
            assert!(
                is_exactly(&Converted::Csr(convert::ell_to_csr(&ell)), coo),
                "{options:?}: {coo:?}"
            );
        }
    }
    let csc = convert::csr_to_csc(csr);
    let back = convert::csc_to_csr(csc.view());
    assert!(is_exactly(&Converted::Csr(back), coo), "CSC and back: {coo:?}");
}

fn check<T: Scalar>(Triplets(coo): &Triplets<T>, sizes: Sizes) {
    let csr = convert::coo_to_csr(coo);
    check_sizes(coo, csr.view(), sizes);
    let input = convert::ConversionInput { coo, csr: csr.view() };
    for kernel in convert::registry::<T>() {
        for parameters in kernel.info.variants() {
            let label = kernel.info.label(&parameters);
            let converted = match kernel.plan(input, &parameters, &MemoryBudget::default()) {
                Ok(plan) => plan.run().unwrap_or_else(|error| panic!("{label}: {error}")),
                Err(PlanError::Format(_) | PlanError::Unsupported { .. }) => continue,
                Err(error) => panic!("{label}: {error}"),
            };
            assert!(is_exactly(&converted, coo), "{label}: {coo:?}");
        }
    }
}

#[derive(Debug, arbitrary::Arbitrary)]
enum Input {
    Double(Sizes, Triplets<f64>),
    Single(Sizes, Triplets<f32>),
}

fuzz_target!(|input: Input| {
    match input {
        Input::Double(sizes, triplets) => check(&triplets, sizes),
        Input::Single(sizes, triplets) => check(&triplets, sizes),
    }
});
