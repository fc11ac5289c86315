//! SpMV on CPU cores: y = A x.
//!
//! # Reproducibility
//! Every run of a plan gives the same bits. Two plans of one kernel with the same parameters give
//! the same bits on any number of threads and with any schedule, with these exceptions:
//! - `csr-merge` splits rows at the ends of pieces, which are one for each thread or more.
//! - `csr-compact` splits groups of rows with the same columns at the ends of its pieces, and sums a row that is alone
//!   in its group in another order.
//! - `sell-compact` splits rows of more than 2048 entries between the threads.
//! - `sell-symmetric` adds the contributions from another thread's rows last.
//! - `auto` may choose another kernel.

mod auto;
pub(crate) mod bsr_rows;
mod csr_compact;
mod csr_merge;
pub(crate) mod csr_nnz_balanced;
mod csr_row_blocks;
mod csr_rows;
mod csr_serial;
mod csr_tiles;
mod csr_tiles_copied;
pub(crate) mod csr_transposed;
mod dcsr_rows;
mod dictionary;
mod ell;
mod ell_row_blocks;
mod ell_rows;
mod ell_serial;
mod ell_tiles;
mod hll;
mod hll_blocks;
mod hll_serial;
pub(crate) mod load;
mod long_rows;
mod plan;
mod predict;
mod repair;
mod row;
mod rows;
mod schedule;
mod sell;
mod sell_compact;
mod sell_symmetric;
mod sell_tiles;
mod tiles;

use spm_formats::kernel::{self, Backend, KernelInfo, Operation};
use spm_formats::{Complex, RealScalar, Scalar};

pub use self::predict::{
    Choice, Prediction, Predictions, TransposedPredictions, one_thread_suffices, predict,
    predict_transposed, roughly,
};
pub(crate) use self::row::{SampledRows, Walk, mispredictions};
use crate::kernel::ProductKernel;
pub use crate::kernel::Spmv;
pub use crate::plan::BoxedPlan;

/// What the kernels of this module have in common.
const KERNEL: KernelInfo = KernelInfo::of(Operation::Spmv, Backend::Cpu);

/// One entry of the registry.
pub type SpmvKernel<T> = ProductKernel<T, Spmv>;

/// `auto`, for SpMM with one column.
pub(crate) fn auto<T: Scalar>() -> SpmvKernel<T> {
    SpmvKernel::new(auto::INFO, auto::plan)
}

/// `csr-merge`, for SpMM with one column.
pub(crate) fn csr_merge<T: Scalar>() -> SpmvKernel<T> {
    SpmvKernel::new(csr_merge::INFO, csr_merge::plan)
}

/// `bsr-rows`, for SpMM with one column.
pub(crate) fn bsr_rows<T: Scalar>() -> SpmvKernel<T> {
    SpmvKernel::new(bsr_rows::INFO, bsr_rows::plan)
}

kernel::registry! {
    /// Every SpMV kernel for CPU cores, in the order of the reports, then our own. Complex matrices have
    /// those that multiply straight from CSR, and dense blocks.
    SpmvKernel<T: Scalar>
    f32, f64: RealScalar [
        SpmvKernel::new(csr_serial::INFO, csr_serial::plan),
        SpmvKernel::new(csr_rows::INFO, csr_rows::plan),
        SpmvKernel::new(csr_row_blocks::INFO, csr_row_blocks::plan),
        SpmvKernel::new(csr_tiles::INFO, csr_tiles::plan),
        SpmvKernel::new(csr_tiles_copied::INFO, csr_tiles_copied::plan),
        SpmvKernel::new(csr_nnz_balanced::INFO, csr_nnz_balanced::plan),
        SpmvKernel::new(ell_serial::INFO, ell_serial::plan),
        SpmvKernel::new(ell_rows::INFO, ell_rows::plan),
        SpmvKernel::new(ell_row_blocks::INFO, ell_row_blocks::plan),
        SpmvKernel::new(ell_tiles::INFO, ell_tiles::plan),
        SpmvKernel::new(hll_serial::INFO, hll_serial::plan),
        SpmvKernel::new(hll_blocks::INFO, hll_blocks::plan),
        SpmvKernel::new(bsr_rows::INFO, bsr_rows::plan),
        SpmvKernel::new(csr_merge::INFO, csr_merge::plan),
        SpmvKernel::new(dcsr_rows::INFO, dcsr_rows::plan),
        SpmvKernel::new(csr_compact::INFO, csr_compact::plan),
        SpmvKernel::new(sell::INFO, sell::plan),
        SpmvKernel::new(sell_compact::INFO, sell_compact::plan),
        SpmvKernel::new(sell_tiles::INFO, sell_tiles::plan),
        SpmvKernel::new(sell_symmetric::INFO, sell_symmetric::plan),
        SpmvKernel::new(auto::INFO, auto::plan),
    ]
    Complex<f32>, Complex<f64>: Scalar [
        SpmvKernel::new(csr_serial::INFO, csr_serial::plan),
        SpmvKernel::new(csr_rows::INFO, csr_rows::plan),
        SpmvKernel::new(csr_nnz_balanced::INFO, csr_nnz_balanced::plan),
        SpmvKernel::new(bsr_rows::INFO, bsr_rows::plan),
        SpmvKernel::new(csr_merge::INFO, csr_merge::plan),
        SpmvKernel::new(dcsr_rows::INFO, dcsr_rows::plan),
        SpmvKernel::new(auto::INFO, auto::plan),
    ]
}
