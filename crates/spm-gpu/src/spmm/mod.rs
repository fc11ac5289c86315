//! SpMM on a GPU: Y = A X, where X and Y are dense with k columns.
//!
//! Results are reproducible as [in SpMV](crate::spmv).

mod arrays;
mod auto;
mod bsr_row_split;
mod candidates;
mod columns;
mod csr_adaptive;
mod csr_adaptive_subblocks;
mod csr_nonzero_split;
mod csr_row_split;
mod csr_segmented_sum;
mod csr_stream;
mod csr_subwarp_per_element;
mod csr_thread_per_element;
mod csr_vector;
mod csr_warp_per_element;
mod csr_warp_per_row;
mod ell_subwarp_per_element;
mod ell_thread_per_element;
mod long_rows;
mod parameters;
mod rearrange;
mod row_blocks;
mod sell_row_split;
mod sell_thread_per_row;

use spm_formats::kernel::{self, Backend, KernelInfo, Operation};
use spm_formats::num_complex::Complex;

use crate::cusparse;
use crate::kernel::ProductKernel;
pub use crate::kernel::Spmm;
use crate::plan::DeviceReal;
pub use crate::plan::{BoxedPlan, DeviceScalar};

/// What the kernels of this module have in common.
const KERNEL: KernelInfo = KernelInfo::of(Operation::Spmm, Backend::Gpu);

/// One entry of the registry.
pub type SpmmKernel<T> = ProductKernel<T, Spmm>;

kernel::registry! {
    /// Every SpMM kernel for devices: those of the reports in their order, our own, the baselines. Complex
    /// matrices have those of our own that suit every structure.
    SpmmKernel<T: DeviceScalar>
    f32, f64: DeviceReal [
        SpmmKernel::host(csr_thread_per_element::V1, csr_thread_per_element::plan_v1),
        SpmmKernel::host(csr_thread_per_element::V2, csr_thread_per_element::plan_v2),
        SpmmKernel::host(csr_thread_per_element::V3, csr_thread_per_element::plan_v3),
        SpmmKernel::host(csr_warp_per_element::INFO, csr_warp_per_element::plan),
        SpmmKernel::host(csr_subwarp_per_element::INFO, csr_subwarp_per_element::plan),
        SpmmKernel::host(csr_adaptive::INFO, csr_adaptive::plan),
        SpmmKernel::host(csr_warp_per_row::INFO, csr_warp_per_row::plan),
        SpmmKernel::host(csr_adaptive_subblocks::INFO, csr_adaptive_subblocks::plan),
        SpmmKernel::host(ell_thread_per_element::INFO, ell_thread_per_element::plan),
        SpmmKernel::host(ell_subwarp_per_element::INFO, ell_subwarp_per_element::plan),
        SpmmKernel::device(csr_row_split::INFO, csr_row_split::on_device),
        SpmmKernel::device(csr_nonzero_split::INFO, csr_nonzero_split::on_device),
        SpmmKernel::device(csr_stream::INFO, csr_stream::on_device),
        SpmmKernel::device(csr_vector::INFO, csr_vector::on_device),
        SpmmKernel::device(csr_segmented_sum::INFO, csr_segmented_sum::on_device),
        SpmmKernel::device(sell_row_split::INFO, sell_row_split::on_device),
        SpmmKernel::device(sell_thread_per_row::INFO, sell_thread_per_row::on_device),
        SpmmKernel::device(bsr_row_split::INFO, bsr_row_split::on_device),
        SpmmKernel::device(auto::INFO, auto::on_device),
        SpmmKernel::baseline(cusparse::spmm::CSR_ALG1, cusparse::spmm::csr_alg1),
        SpmmKernel::baseline(cusparse::spmm::CSR_ALG2, cusparse::spmm::csr_alg2),
        SpmmKernel::baseline(cusparse::spmm::CSR_ALG3, cusparse::spmm::csr_alg3),
    ]
    Complex<f32>, Complex<f64>: DeviceScalar [
        SpmmKernel::device(csr_row_split::COMPLEX, csr_row_split::complex),
        SpmmKernel::device(csr_nonzero_split::COMPLEX, csr_nonzero_split::complex),
        SpmmKernel::device(auto::COMPLEX, auto::complex),
        SpmmKernel::baseline(cusparse::spmm::CSR_ALG1, cusparse::spmm::csr_alg1),
        SpmmKernel::baseline(cusparse::spmm::CSR_ALG2, cusparse::spmm::csr_alg2),
        SpmmKernel::baseline(cusparse::spmm::CSR_ALG3, cusparse::spmm::csr_alg3),
    ]
}
