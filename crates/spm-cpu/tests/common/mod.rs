//! What the tests of all operations share.

use spm_formats::{Coo, Csr, Scalar, reference, sprs};

/// CSR straight from the oracle: the transpose of the transpose is A in row order.
pub(crate) fn csr<T: Scalar>(a: &Coo<T>) -> Csr<T> {
    let (p, i, v) = reference::transpose(a);
    let cols = (0..a.cols()).flat_map(|c| vec![c as u32; (p[c + 1] - p[c]) as usize]);
    let transposed = Coo::new(a.cols(), a.rows(), cols.collect(), i, v).unwrap();
    let (pointers, columns, values) = reference::transpose(&transposed);
    sprs::CsMatI::new((a.rows(), a.cols()), pointers, columns, values)
}
