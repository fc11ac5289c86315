//! Matrices of integers, finite fields and other element types.

use std::fmt;
use std::sync::Arc;

use spm_cpu::elements::{self, Element};
use spm_cpu::{PlanOptions, Threads, spmv};
use spm_formats::Csr;
use spm_formats::kernel::Scaling;

use crate::{Error, pools};

/// A sparse matrix with elements of any type that adds and multiplies: integers, wrapping integers, or a
/// type of the program that implements [`Element`].
///
/// Products are straight from the CSR arrays, on all threads. Each row is summed by one thread in the
/// order of its entries, so that results do not depend on the number of threads. As an
/// [`Operator`](crate::Operator), it owns or shares its matrix, is `Send` and `Sync`, clones cheaply and
/// multiplies through `&self`.
///
/// ```
/// use spm::{Csr, ElementOperator};
///
/// // | 3 0 -6 |
/// // | 0 5  0 |
/// let a = Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![3_i64, -6, 5])?;
/// let op = ElementOperator::new(a);
/// let mut y = [0; 2];
/// op.apply(&[2, 3, 4], &mut y)?;
/// assert_eq!(y, [-18, 15]);
/// op.apply_scaled(2, &[2, 3, 4], -1, &mut y)?; // y = 2 A x - y
/// assert_eq!(y, [-18, 15]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A prime field:
///
/// ```
/// use spm::{Csr, Element, ElementOperator};
///
/// /// A number modulo the prime 2^31 - 1.
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// struct Prime(u32);
///
/// impl Element for Prime {
///     fn zero() -> Self {
///         Self(0)
///     }
///
///     fn add_product(self, a: Self, x: Self) -> Self {
///         let sum = u64::from(self.0) + u64::from(a.0) * u64::from(x.0);
///         Self((sum % ((1 << 31) - 1)) as u32)
///     }
/// }
///
/// let a = Csr::new((1, 2), vec![0, 2], vec![0, 1], vec![Prime(1 << 30), Prime(1)])?;
/// let mut y = [Prime(0)];
/// ElementOperator::new(a).apply(&[Prime(2), Prime(5)], &mut y)?;
/// assert_eq!(y, [Prime(6)]); // 2^31 + 5
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ElementOperator<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    a: Arc<Csr<T>>,
    product: spmv::BoxedPlan<'static, T>,
}

impl<T> Clone for ElementOperator<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T: Element> fmt::Debug for ElementOperator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElementOperator")
            .field("shape", &self.shape())
            .field("nnz", &self.inner.a.nnz())
            .finish()
    }
}

impl<T: Element> ElementOperator<T> {
    /// An operator on all cores, or on the calling thread for a small matrix. `a` is a [`Csr`] or a
    /// shared one; `Csr::new` and `Csr::from_unsorted` take arrays.
    pub fn new(a: impl Into<Arc<Csr<T>>>) -> Self {
        let a = a.into();
        let threads = pools::for_matrix(&a);
        Self::with_threads(a, threads)
    }

    /// An operator on a thread pool of the caller's.
    pub fn with_threads(a: impl Into<Arc<Csr<T>>>, threads: Threads) -> Self {
        let a = a.into();
        let options = PlanOptions { threads, ..PlanOptions::default() };
        let product = elements::plan(&a, &options).expect("a plan that needs no memory");
        Self { inner: Arc::new(Inner { a, product }) }
    }

    /// (rows, columns).
    pub fn shape(&self) -> (usize, usize) {
        self.inner.a.shape()
    }

    /// The matrix.
    pub fn matrix(&self) -> &Arc<Csr<T>> {
        &self.inner.a
    }

    /// `y` = A `x`. x has as many elements as A has columns, y as A has rows.
    ///
    /// # Errors
    /// [`Error::Shape`]: vectors of other lengths.
    pub fn apply(&self, x: &[T], y: &mut [T]) -> Result<(), Error> {
        Ok(self.inner.product.run(x, y)?)
    }

    /// `y` = `alpha` A `x` + `beta` `y`. beta = 0 overwrites y, alpha = 0 leaves out the product.
    ///
    /// # Errors
    /// As [`ElementOperator::apply`].
    pub fn apply_scaled(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<(), Error> {
        Ok(self.inner.product.run_scaled(Scaling::new(alpha, beta), x, y)?)
    }
}
