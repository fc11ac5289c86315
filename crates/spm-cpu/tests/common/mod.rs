//! What the tests of all operations share.

use spm_formats::kernel::{KernelInfo, Parameters};
use spm_formats::{Coo, Csr, Scalar, reference, sprs};

/// CSR straight from the oracle: the transpose of the transpose is A in row order.
pub(crate) fn csr<T: Scalar>(a: &Coo<T>) -> Csr<T> {
    let (p, i, v) = reference::transpose(a);
    let cols = (0..a.cols()).flat_map(|c| vec![c as u32; (p[c + 1] - p[c]) as usize]);
    let transposed = Coo::new(a.cols(), a.rows(), cols.collect(), i, v).unwrap();
    let (pointers, columns, values) = reference::transpose(&transposed);
    sprs::CsMatI::new((a.rows(), a.cols()), pointers, columns, values)
}

/// The defaults, and every studied value of each parameter with the others at their defaults.
pub(crate) fn variants(info: &KernelInfo) -> Vec<Parameters> {
    let defaults = info.defaults();
    let mut all = vec![defaults.clone()];
    for parameter in info.parameters {
        let others = parameter.studied.iter().filter(|&&value| value != parameter.default);
        all.extend(others.map(|&value| defaults.clone().with(parameter.name, value)));
    }
    all
}
