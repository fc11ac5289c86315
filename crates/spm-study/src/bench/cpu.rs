//! Cases on CPU cores.

use std::rc::Rc;

use spm_cpu::PlanOptions;
use spm_formats::kernel::{
    Footprint, Operation, PlanError, ProductPlan, RunError, TransposeOutput, TransposePlan,
};
use spm_formats::{Coo, DenseShape, Layout, RealScalar, Scalar, convert};
use spm_testing::reference::{self, ErrorMeasures, Reference, is_exactly};

use super::cache::{Eviction, evicting};
use super::case::{Case, CaseSpec, Planned, compare_transpose, exact, missing};
use super::reading;
use super::timing::{Sampling, Timing, sample};
use crate::matrix::Matrix;

/// Plans `spec`, a case of the CPU.
///
/// # Errors
/// A kernel that does not apply, padding beyond the budget, no such kernel.
pub(super) fn plan<'a, T: RealScalar>(
    spec: &CaseSpec,
    matrix: &'a Matrix<T>,
    options: &PlanOptions,
) -> Result<Planned<'a>, PlanError> {
    let info = spec.info;
    let missing = || missing(&info);
    let a = matrix.csr();
    match info.operation {
        Operation::Spmv => {
            let kernel = spm_cpu::spmv::find::<T>(info.id).ok_or_else(missing)?;
            Planned::new(
                || kernel.plan(a.view(), &spec.parameters, options),
                |plan| Ok(Product::new(plan, matrix, None)),
            )
        }
        Operation::Spmm => {
            let kernel = spm_cpu::spmm::find::<T>(info.id).ok_or_else(missing)?;
            let dense = spec.dense.unwrap_or(DenseShape { k: 1, layout: Layout::RowMajor });
            Planned::new(
                || kernel.plan(a.view(), dense, &spec.parameters, options),
                |plan| Ok(Product::new(plan, matrix, Some(dense))),
            )
        }
        Operation::Transpose => {
            let kernel = spm_cpu::transpose::find::<T>(info.id).ok_or_else(missing)?;
            Planned::new(
                || kernel.plan(a.view(), &spec.parameters, options),
                |plan| {
                    let output = TransposeOutput::new(a.cols(), a.nnz());
                    Ok(Transpose { plan, output, reference: matrix.transpose_reference() })
                },
            )
        }
        Operation::Conversion => {
            let kernel = convert::find::<T>(info.id).ok_or_else(missing)?;
            let input = convert::ConversionInput { coo: matrix.coo(), csr: a.view() };
            let pool = rayon_pool(spec.threads)?;
            Planned::new(
                || kernel.plan(input, &spec.parameters, &options.budget),
                |plan| Ok(Conversion { plan, pool, coo: matrix.coo() }),
            )
        }
        Operation::Read => reading::plan(spec, matrix, rayon_pool(spec.threads)?),
    }
}

/// A pool of its own for what runs on rayon.
fn rayon_pool(threads: usize) -> Result<rayon::ThreadPool, PlanError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| PlanError::device(error.to_string()))
}

struct Product<'a, T> {
    plan: Box<dyn ProductPlan<T> + 'a>,
    x: Vec<T>,
    y: Vec<T>,
    reference: Rc<Reference>,
}

impl<'a, T: RealScalar> Product<'a, T> {
    fn new(
        plan: Box<dyn ProductPlan<T> + 'a>,
        matrix: &Matrix<T>,
        dense: Option<DenseShape>,
    ) -> Self {
        let k = dense.map_or(1, |dense| dense.k);
        let y = vec![<T as Scalar>::ZERO; matrix.csr().rows() * k];
        Self { plan, x: matrix.x(k), y, reference: matrix.reference(dense) }
    }
}

impl<T: RealScalar> Case for Product<'_, T> {
    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn choice(&self) -> Option<String> {
        self.plan.choice()
    }

    fn check(&mut self) -> Result<ErrorMeasures, RunError> {
        // What a kernel fails to write must not pass for a result.
        self.y.fill(T::from_f64(f64::NAN));
        self.plan.run(&self.x, &mut self.y)?;
        Ok(reference::compare(&self.y, &self.reference))
    }

    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
    ) -> Result<Timing, RunError> {
        sample(sampling, evicting(eviction), || self.plan.run(&self.x, &mut self.y))
    }
}

struct Transpose<'a, T> {
    plan: Box<dyn TransposePlan<T> + 'a>,
    output: TransposeOutput<T>,
    reference: Rc<TransposeOutput<T>>,
}

impl<T: RealScalar> Case for Transpose<'_, T> {
    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn choice(&self) -> Option<String> {
        self.plan.choice()
    }

    fn check(&mut self) -> Result<ErrorMeasures, RunError> {
        self.output.col_ptr.fill(u32::MAX);
        self.output.row_ind.fill(u32::MAX);
        self.output.values.fill(T::from_f64(f64::NAN));
        self.plan.run(&mut self.output)?;
        Ok(compare_transpose(&self.output, &self.reference))
    }

    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
    ) -> Result<Timing, RunError> {
        sample(sampling, evicting(eviction), || self.plan.run(&mut self.output))
    }
}

struct Conversion<'a, T> {
    plan: convert::ConversionPlan<'a, T>,
    pool: rayon::ThreadPool,
    coo: &'a Coo<T>,
}

impl<T: RealScalar> Case for Conversion<'_, T> {
    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn choice(&self) -> Option<String> {
        None
    }

    fn check(&mut self) -> Result<ErrorMeasures, RunError> {
        let converted = self.pool.install(|| self.plan.run());
        let converted = converted.map_err(|error| RunError::device(error.to_string()))?;
        Ok(exact(is_exactly(&converted, self.coo)))
    }

    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
    ) -> Result<Timing, RunError> {
        let convert = || -> Result<(), RunError> {
            let converted = self.plan.run().map_err(|error| RunError::device(error.to_string()))?;
            // Giving the result back to the allocator is part of what a caller pays.
            drop(std::hint::black_box(converted));
            Ok(())
        };
        sample(sampling, evicting(eviction), || self.pool.install(convert))
    }
}
