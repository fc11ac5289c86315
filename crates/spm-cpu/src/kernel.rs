//! Entries of the registries of SpMV and SpMM.

use std::marker::PhantomData;

use spm_formats::kernel::{KernelInfo, Parameters, PlanError};
use spm_formats::{CsrSource, DenseShape, Scalar};

use crate::PlanOptions;
use crate::plan::{BoxedOwnPlan, BoxedPlan};

/// A product to plan with one kernel.
#[derive(Debug, Clone)]
pub(crate) struct Problem<'a, 'p, T> {
    /// The matrix.
    pub(crate) a: CsrSource<'a, T>,
    /// Columns and layout of X and Y.
    pub(crate) dense: DenseShape,
    pub(crate) parameters: &'p Parameters,
    pub(crate) options: &'p PlanOptions,
}

/// A plan, or why there is none.
pub(crate) type Planned<'a, T> = Result<BoxedOwnPlan<'a, T>, PlanError>;

/// What plans a product.
pub(crate) type PlanFn<T> = for<'a> fn(Problem<'a, '_, T>) -> Planned<'a, T>;

/// One entry of a registry; `O` is [`Spmv`] or [`Spmm`].
#[derive(Debug, Clone, Copy)]
pub struct ProductKernel<T, O> {
    /// Id, source and parameters.
    pub info: KernelInfo,
    plan: PlanFn<T>,
    operation: PhantomData<O>,
}

/// y = A x.
#[derive(Debug, Clone, Copy)]
pub enum Spmv {}

/// Y = A X.
#[derive(Debug, Clone, Copy)]
pub enum Spmm {}

impl<T: Scalar, O> ProductKernel<T, O> {
    pub(crate) fn new(info: KernelInfo, plan: PlanFn<T>) -> Self {
        Self { info, plan, operation: PhantomData }
    }

    pub(crate) fn plan_product<'a>(
        &self,
        a: CsrSource<'a, T>,
        dense: DenseShape,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Planned<'a, T> {
        self.info.check_parameters(parameters)?;
        dense.check::<T>(a.view().shape())?;
        (self.plan)(Problem { a, dense, parameters, options })
    }
}

/// The public functions, which differ by the argument for the dense shape.
macro_rules! plans {
    ($operation:ident, $shape:expr $(, $dense:ident: $type:ty)?) => {
        impl<T: Scalar> ProductKernel<T, $operation> {
            /// Plans the product with one matrix, borrowed or shared: converts, partitions,
            /// allocates.
            ///
            /// # Errors
            /// A matrix that is not CSR or not valid, or (except for ELLPACK and HLL) a slice of a
            /// larger one; padding beyond the budget; parameters of another kernel, or a dense shape
            /// or parameters that this matrix does not allow. For 0 columns the plan does nothing.
            pub fn plan<'a>(
                &self,
                a: impl Into<CsrSource<'a, T>>,
                $($dense: $type,)?
                parameters: &Parameters,
                options: &PlanOptions,
            ) -> Result<BoxedPlan<'a, T>, PlanError> {
                Ok(self.plan_product(a.into(), $shape, parameters, options)?)
            }
        }
    };
}

plans!(Spmv, DenseShape::VECTOR);
plans!(Spmm, dense, dense: DenseShape);
