//! SpMM with one column of X, computed by an SpMV kernel.

use spm_formats::kernel::{PlanError, Scaling, split_label};
use spm_formats::{CsrSource, DenseShape, Scalar};

use super::BoxedPlan;
use super::plan::{Memory, Product, boxed};
use crate::{PlanOptions, spmv};

struct Vector<'a, T>(spmv::BoxedPlan<'a, T>);

/// A plan of the SpMV kernel `label` for X and Y of one column.
pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    dense: DenseShape,
    label: &str,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    assert_eq!(dense.k, 1, "columns of a vector");
    let (id, text) = split_label(label);
    let kernel = spmv::find::<T>(id).expect("a registered kernel");
    let parameters = kernel.info.parse_parameters(text).expect("its own parameters");
    Ok(boxed(Vector(kernel.plan(a, &parameters, options)?), dense))
}

impl<T: Scalar> Product<T> for Vector<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    fn memory(&self) -> Memory {
        let footprint = self.0.footprint();
        Memory { matrix: footprint.matrix_bytes, plan: footprint.plan_bytes }
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        let scaling = scaling.unwrap_or(Scaling::OVERWRITE);
        self.0.run_scaled(scaling, x, y).expect("the lengths are checked");
    }

    fn choice(&self) -> Option<String> {
        self.0.choice().map(|choice| format!("spmv {choice}"))
    }
}
