//! SpMM with one column of X, computed by an SpMV kernel.

use spm_formats::kernel::Value;
use spm_formats::{CsrSource, DenseShape, Scalar};

use crate::PlanOptions;
use crate::kernel::Planned;
use crate::plan::Chosen;
use crate::spmv::SpmvKernel;

/// A plan of an SpMV kernel, with parameters that may differ from its defaults, for X and Y of one column.
pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    dense: DenseShape,
    kernel: SpmvKernel<T>,
    set: &[(&'static str, Value)],
    options: &PlanOptions,
) -> Planned<'a, T> {
    assert_eq!(dense.k, 1, "columns of a vector");
    let plan = kernel.plan(a, &kernel.info.with(set), options)?;
    let choice = plan.choice().map(|choice| format!("spmv {choice}"));
    Ok(Box::new(Chosen { plan, dense, choice }))
}
