//! SpMM plans from products.

use spm_formats::kernel::Operation;
use spm_formats::{DenseShape, Scalar};

pub(super) use crate::memory::Memory;
pub(super) use crate::plan::Product;
use crate::plan::{BoxedOwnPlan, Checked};

/// A product with its checks.
pub(super) fn checked<P>(product: P, dense: DenseShape) -> Checked<P> {
    Checked::new(Operation::Spmm, dense, product)
}

/// Makes a plan of a product.
pub(super) fn boxed<'a, T: Scalar>(
    product: impl Product<T> + 'a,
    dense: DenseShape,
) -> BoxedOwnPlan<'a, T> {
    Box::new(checked(product, dense))
}
