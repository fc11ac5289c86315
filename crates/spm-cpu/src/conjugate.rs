//! SpMV with the complex conjugate of a CSR matrix: y = conj(A) x.

use spm_formats::kernel::PlanError;
use spm_formats::{CsrSource, Scalar};

use crate::PlanOptions;
use crate::spmv::{BoxedPlan, csr_nnz_balanced};

/// Plans y = conj(A) x and y = alpha conj(A) x + beta y straight from a CSR matrix A, borrowed or shared.
/// The rows are divided between the threads by entries; a sum has the same bits on any number of
/// threads. With the transpose of A in CSR this is the product with the conjugate transpose.
///
/// # Errors
/// None so far: the plan needs no memory.
///
/// ```
/// use spm_cpu::{PlanOptions, conjugate};
/// use spm_formats::{Complex, Csr};
///
/// let a = Csr::new((1, 1), vec![0, 1], vec![0], vec![Complex::new(1.0, 2.0)])?;
/// let plan = conjugate::plan(&a, &PlanOptions::default())?;
/// let mut y = [Complex::new(0.0, 0.0)];
/// plan.run(&[Complex::new(0.0, 1.0)], &mut y)?;
/// assert_eq!(y, [Complex::new(2.0, 1.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan<'a, T: Scalar>(
    a: impl Into<CsrSource<'a, T>>,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(csr_nnz_balanced::conjugate(a.into(), options))
}
