//! SpMV on a GPU: y = A x.
//!
//! # Reproducibility
//! Every kernel of our own adds in an order that does not depend on when its blocks and warps run:
//! plans with the same parameters give the same bits on one device, each time. Only `auto` may
//! choose another kernel; the baselines have the guarantees of cuSPARSE.

mod arrays;
mod auto;
mod bsr_subwarp_per_row;
mod csr_adaptive;
mod csr_column_blocks;
mod csr_compact;
mod csr_ell_columns;
mod csr_merge;
mod csr_segmented_sum;
mod csr_subwarp_per_row;
mod csr_thread_per_row;
mod csr_thread_per_row_texture;
mod csr_warp_per_row;
mod csr_warp_per_row_shared;
mod dia_thread_per_row;
mod ell_thread_per_row;
mod ell_thread_per_row_rowmajor;
mod ell_warp_per_row;
mod hll_thread_per_row;
mod hll_thread_per_row_texture;
mod parameters;
mod sell;
mod sell_compact;
mod sellp;

use spm_formats::kernel::{self, Backend, KernelInfo, Operation};
use spm_formats::num_complex::Complex;

use crate::cusparse;
use crate::kernel::ProductKernel;
pub use crate::kernel::Spmv;
use crate::plan::DeviceReal;
pub use crate::plan::{BoxedPlan, DeviceScalar};

pub(crate) use auto::{
    COMPLEX as COMPLEX_AUTO, INFO as AUTO, complex as complex_auto, on_device as auto,
};
pub(crate) use csr_segmented_sum::{ENTRIES as SEGMENT_ENTRIES, entries as segment_entries};
pub(crate) use parameters::{ROW_LENGTHS, row_lanes};

/// What the kernels of this module have in common.
const KERNEL: KernelInfo = KernelInfo::of(Operation::Spmv, Backend::Gpu);

/// One entry of the registry.
pub type SpmvKernel<T> = ProductKernel<T, Spmv>;

kernel::registry! {
    /// Every SpMV kernel for devices: those of the reports in their order, our own, the baselines. Complex
    /// matrices have those of our own that suit every structure.
    SpmvKernel<T: DeviceScalar>
    f32, f64: DeviceReal [
        SpmvKernel::host(csr_warp_per_row_shared::INFO, csr_warp_per_row_shared::plan),
        SpmvKernel::host(csr_warp_per_row::INFO, csr_warp_per_row::plan),
        SpmvKernel::host(csr_thread_per_row::INFO, csr_thread_per_row::plan),
        SpmvKernel::host(csr_thread_per_row_texture::INFO, csr_thread_per_row_texture::plan),
        SpmvKernel::host(ell_thread_per_row::INFO, ell_thread_per_row::plan),
        SpmvKernel::host(ell_thread_per_row_rowmajor::INFO, ell_thread_per_row_rowmajor::plan),
        SpmvKernel::host(ell_warp_per_row::INFO, ell_warp_per_row::plan),
        SpmvKernel::host(hll_thread_per_row_texture::INFO, hll_thread_per_row_texture::plan),
        SpmvKernel::device(hll_thread_per_row::INFO, hll_thread_per_row::on_device),
        SpmvKernel::device(csr_subwarp_per_row::INFO, csr_subwarp_per_row::on_device),
        SpmvKernel::host(csr_adaptive::INFO, csr_adaptive::plan),
        SpmvKernel::host(csr_merge::INFO, csr_merge::plan),
        SpmvKernel::host(csr_compact::INFO, csr_compact::plan),
        SpmvKernel::device(sell::INFO, sell::on_device),
        SpmvKernel::host(sell_compact::INFO, sell_compact::plan),
        SpmvKernel::device(sellp::INFO, sellp::on_device),
        SpmvKernel::device(csr_segmented_sum::INFO, csr_segmented_sum::on_device),
        SpmvKernel::device(csr_column_blocks::INFO, csr_column_blocks::on_device),
        SpmvKernel::device(csr_ell_columns::INFO, csr_ell_columns::on_device),
        SpmvKernel::device(dia_thread_per_row::INFO, dia_thread_per_row::on_device),
        SpmvKernel::device(bsr_subwarp_per_row::INFO, bsr_subwarp_per_row::on_device),
        SpmvKernel::surveyed(auto::INFO, auto::look, auto::on_device),
        SpmvKernel::baseline(cusparse::spmv::CSR_ALG1, cusparse::spmv::csr_alg1),
        SpmvKernel::baseline(cusparse::spmv::CSR_ALG2, cusparse::spmv::csr_alg2),
        SpmvKernel::baseline(cusparse::spmv::SELL, cusparse::spmv::sell),
    ]
    Complex<f32>, Complex<f64>: DeviceScalar [
        SpmvKernel::device(csr_subwarp_per_row::COMPLEX, csr_subwarp_per_row::stored),
        SpmvKernel::device(sell::INFO, sell::on_device),
        SpmvKernel::device(csr_segmented_sum::COMPLEX, csr_segmented_sum::complex),
        SpmvKernel::device(bsr_subwarp_per_row::INFO, bsr_subwarp_per_row::on_device),
        SpmvKernel::device(auto::COMPLEX, auto::complex),
        SpmvKernel::baseline(cusparse::spmv::CSR_ALG1, cusparse::spmv::csr_alg1),
        SpmvKernel::baseline(cusparse::spmv::CSR_ALG2, cusparse::spmv::csr_alg2),
        SpmvKernel::baseline(cusparse::spmv::SELL, cusparse::spmv::sell),
    ]
}
