//! SpMM on CPU cores: Y = A X, where X and Y are dense with k columns.
//!
//! ```
//! use spm_cpu::{PlanOptions, spmm};
//! use spm_formats::{Csr, DenseShape, Layout};
//!
//! // | 1 0 2 |
//! // | 0 3 0 |
//! let a = Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
//! let kernel = spmm::find("auto").expect("auto is always there");
//! let dense = DenseShape { k: 2, layout: Layout::RowMajor };
//! let options = PlanOptions::default();
//! let plan = kernel.plan(a.view(), dense, &kernel.info.defaults(), &options)?;
//! let mut y = [0.0; 4];
//! plan.run(&[1.0, 4.0, 10.0, 40.0, 100.0, 400.0], &mut y)?;
//! assert_eq!(y, [201.0, 804.0, 30.0, 120.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reproducibility
//! Every run of a plan gives the same bits. Two plans of one kernel with the same parameters give
//! the same bits on any number of threads, with two exceptions: `csr-blocked` splits rows at the
//! ends of pieces, which are one for each thread or more, and `auto` may choose another kernel.

mod auto;
mod blocked;
mod collapsed;
mod csr_rows;
mod csr_serial;
mod ell_rows;
mod ell_rows_unpadded;
mod ell_serial;
mod ell_serial_unpadded;
mod plan;
mod rows;
mod serial;
mod vector;

use spm_formats::kernel::{self, Backend, KernelInfo, Operation};
use spm_formats::{Complex, RealScalar, Scalar};

use crate::kernel::ProductKernel;
pub use crate::kernel::Spmm;
pub use crate::plan::BoxedPlan;

/// What the kernels of this module have in common.
const KERNEL: KernelInfo = KernelInfo::of(Operation::Spmm, Backend::Cpu);

/// One entry of the registry.
pub type SpmmKernel<T> = ProductKernel<T, Spmm>;

kernel::registry! {
    /// Every SpMM kernel for CPU cores, in the order of the reports, then our own. Complex matrices have
    /// those that multiply straight from CSR, and dense blocks.
    SpmmKernel<T: Scalar>
    f32, f64: RealScalar [
        SpmmKernel::new(csr_serial::INFO, csr_serial::plan),
        SpmmKernel::new(ell_serial::INFO, ell_serial::plan),
        SpmmKernel::new(ell_serial_unpadded::INFO, ell_serial_unpadded::plan),
        SpmmKernel::new(csr_rows::INFO, csr_rows::plan),
        SpmmKernel::new(ell_rows::INFO, ell_rows::plan),
        SpmmKernel::new(ell_rows_unpadded::INFO, ell_rows_unpadded::plan),
        SpmmKernel::new(blocked::INFO, blocked::plan),
        SpmmKernel::new(blocked::bsr::INFO, blocked::bsr::plan),
        SpmmKernel::new(auto::INFO, auto::plan),
    ]
    Complex<f32>, Complex<f64>: Scalar [
        SpmmKernel::new(csr_serial::INFO, csr_serial::plan),
        SpmmKernel::new(csr_rows::INFO, csr_rows::plan),
        SpmmKernel::new(blocked::INFO, blocked::plan),
        SpmmKernel::new(blocked::bsr::INFO, blocked::bsr::plan),
        SpmmKernel::new(auto::INFO, auto::plan),
    ]
}
