//! What the tests on the emulator and those on a GPU share.

pub(crate) mod cases;
pub(crate) mod device;
pub(crate) mod scaled;
pub(crate) mod spmm;
pub(crate) mod spmv;
pub(crate) mod streams;
pub(crate) mod transpose;
pub(crate) mod values;
pub(crate) mod vectors;

use spm_formats::kernel::PlanError;

/// The refusals that tests expect: how the kernel's label begins, and a part of why.
const REFUSALS: [(&str, &str); 14] = [
    // Columns as 16-bit differences do not reach across a long row.
    ("csr-compact", "a row spans more than 2^16 columns"),
    ("dia-thread-per-row", "only matrices on up to"),
    ("bsr-subwarp-per-row", "do not form dense square blocks"),
    // Threads that take columns in pairs.
    ("csr-row-split", "takes an even k"),
    ("csr-nonzero-split", "takes an even k"),
    ("csr-stream", "takes an even k"),
    ("sell-row-split", "takes an even k"),
    ("bsr-row-split", "takes an even k"),
    ("bsr-row-split", "do not form dense square blocks"),
    // A row of 10^5 among short ones.
    ("ell-", "the memory budget is"),
    // What this version of the library does not do, or no library.
    ("cusparse", "this version of cuSPARSE has no sliced ELLPACK"),
    ("cusparse", "has no second algorithm"),
    ("cusparse", "(status 10)"),
    ("cusparse", "cuSPARSE is absent"),
];

/// The plan; nothing where the kernel is for other matrices. Any other error fails the test.
pub(crate) fn planned<P>(what: &str, plan: Result<P, PlanError>) -> Option<P> {
    match plan {
        Ok(plan) => Some(plan),
        Err(error) => {
            let why = error.to_string();
            let expected = |(id, part): &(&str, &str)| {
                what.split(' ').any(|word| word.starts_with(id)) && why.contains(part)
            };
            assert!(REFUSALS.iter().any(expected), "{what}: {why}");
            None
        }
    }
}
