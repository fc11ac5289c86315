//! A matrix in single precision with vectors in double precision.

use std::fmt;
use std::sync::{Arc, OnceLock};

use spm_cpu::{PlanOptions, Threads, mixed, spmv};
use spm_formats::kernel::Scaling;
use spm_formats::{Csr, Scalar, WidensTo};

use crate::error::check;
use crate::{Error, IntoCsr, pools};

/// A sparse matrix in single precision for products with vectors in double precision: `A` is `f32` and
/// `T` is `f64`, or `A` is `Complex<f32>` and `T` is `Complex<f64>`.
///
/// An entry takes 8 bytes instead of 12 (12 instead of 20 for complex ones), and a product of a large
/// matrix is as fast as memory. Sums are in double precision: the result is that of the matrix whose
/// values have been widened, which is exact. Products are straight from the CSR arrays. As an
/// [`Operator`](crate::Operator), it owns or shares its matrix, is `Send` and `Sync`, clones cheaply and
/// multiplies through `&self`.
///
/// ```
/// use spm::MixedOperator;
///
/// let a = spm::from_triplets((2, 2), [(0_u32, 0_u32, 1.0_f32), (0, 1, 0.5), (1, 1, 2.0)])?;
/// let op = MixedOperator::<f32, f64>::new(a)?;
/// let (x, mut y) = ([1.0, 1e-12], [0.0; 2]);
/// op.apply(&x, &mut y)?;
/// assert_eq!(y, [1.0 + 0.5e-12, 2e-12]);
/// # Ok::<(), spm::Error>(())
/// ```
pub struct MixedOperator<A, T> {
    inner: Arc<Inner<A, T>>,
}

struct Inner<A, T> {
    a: Arc<Csr<A>>,
    options: PlanOptions,
    product: spmv::BoxedPlan<'static, T>,
    transposed: OnceLock<spmv::BoxedPlan<'static, T>>,
}

impl<A, T> Clone for MixedOperator<A, T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<A: WidensTo<T>, T: Scalar> fmt::Debug for MixedOperator<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MixedOperator")
            .field("shape", &self.shape())
            .field("nnz", &self.inner.a.nnz())
            .field("matrix", &A::NAME)
            .field("vectors", &T::NAME)
            .finish()
    }
}

impl<A: WidensTo<T>, T: Scalar> MixedOperator<A, T> {
    /// An operator on all cores, or on the calling thread for a small matrix. `a` is anything that an
    /// [`Operator`](crate::Operator) can be made of.
    ///
    /// # Errors
    /// Those of [`IntoCsr::into_csr`].
    pub fn new<M: IntoCsr<Scalar = A>>(a: M) -> Result<Self, Error> {
        let a = a.into_csr()?;
        let threads = pools::for_matrix(&a);
        Self::with_threads(a, threads)
    }

    /// An operator on a thread pool of the caller's.
    ///
    /// # Errors
    /// Those of [`IntoCsr::into_csr`].
    pub fn with_threads<M: IntoCsr<Scalar = A>>(a: M, threads: Threads) -> Result<Self, Error> {
        let a = a.into_csr()?;
        let options = PlanOptions { threads, ..PlanOptions::default() };
        let product = mixed::plan(&a, &options)?;
        let inner = Inner { a, options, product, transposed: OnceLock::new() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// (rows, columns).
    pub fn shape(&self) -> (usize, usize) {
        self.inner.a.shape()
    }

    /// The matrix.
    pub fn matrix(&self) -> &Arc<Csr<A>> {
        &self.inner.a
    }

    /// `y` = A `x`. x has as many elements as A has columns, y as A has rows.
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths.
    pub fn apply(&self, x: &[T], y: &mut [T]) -> Result<(), Error> {
        self.apply_scaled(T::ONE, x, T::ZERO, y)
    }

    /// `y` = `alpha` A `x` + `beta` `y`. beta = 0 overwrites y, alpha = 0 leaves out the product.
    ///
    /// # Errors
    /// As [`MixedOperator::apply`].
    pub fn apply_scaled(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<(), Error> {
        Ok(self.inner.product.run_scaled(Scaling::new(alpha, beta), x, y)?)
    }

    /// `y` = A^T `x`. x has as many elements as A has rows, y as A has columns.
    ///
    /// # Errors
    /// As [`MixedOperator::apply`].
    pub fn apply_transpose(&self, x: &[T], y: &mut [T]) -> Result<(), Error> {
        self.apply_transpose_scaled(T::ONE, x, T::ZERO, y)
    }

    /// `y` = `alpha` A^T `x` + `beta` `y`, otherwise as [`MixedOperator::apply_transpose`].
    ///
    /// # Errors
    /// As [`MixedOperator::apply`].
    pub fn apply_transpose_scaled(
        &self,
        alpha: T,
        x: &[T],
        beta: T,
        y: &mut [T],
    ) -> Result<(), Error> {
        let Inner { a, options, transposed, .. } = &*self.inner;
        check("x", a.rows(), x.len())?;
        check("y", a.cols(), y.len())?;
        let plan = match transposed.get() {
            Some(plan) => plan,
            None => {
                let new = mixed::plan_transposed(a, options)?;
                transposed.get_or_init(|| new)
            }
        };
        Ok(plan.run_scaled(Scaling::new(alpha, beta), x, y)?)
    }
}
