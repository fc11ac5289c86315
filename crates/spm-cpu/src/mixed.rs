//! SpMV in mixed precision: a matrix in single precision, vectors and sums in double precision.
//!
//! A stored value takes half the memory of a double. Each is widened when it is read, which is exact, so
//! that the result is that of the widened matrix.

use spm_formats::kernel::PlanError;
use spm_formats::{CsrSource, Scalar, WidensTo};

use crate::PlanOptions;
use crate::spmv::load::Widened;
use crate::spmv::{BoxedPlan, csr_nnz_balanced, csr_transposed};

/// Plans y = A x and y = alpha A x + beta y straight from a CSR matrix A, borrowed or shared. The rows
/// are divided between the threads by entries; a sum has the same bits on any number of threads.
///
/// # Errors
/// None so far: the plan needs no memory.
///
/// ```
/// use spm_cpu::{PlanOptions, mixed};
/// use spm_formats::Csr;
///
/// let a = Csr::new((1, 2), vec![0, 2], vec![0, 1], vec![1.0_f32, 0.5])?;
/// let plan = mixed::plan(&a, &PlanOptions::default())?;
/// let mut y = [0.0_f64];
/// plan.run(&[1.0, 1e-12], &mut y)?;
/// assert_eq!(y, [1.0 + 0.5e-12]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan<'a, A: WidensTo<T>, T: Scalar>(
    a: impl Into<CsrSource<'a, A>>,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(csr_nnz_balanced::widened(a.into(), options))
}

/// Plans y = A^T x and y = alpha A^T x + beta y straight from CSR, otherwise as
/// [`transposed::plan`](crate::transposed::plan).
///
/// # Errors
/// As there.
pub fn plan_transposed<'a, A: WidensTo<T>, T: Scalar>(
    a: impl Into<CsrSource<'a, A>>,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(csr_transposed::plan_of(Widened, a.into(), options))
}
