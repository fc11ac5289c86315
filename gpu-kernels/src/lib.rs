//! The GPU kernels of spm for SpMV, SpMM, transposition, conversions and vector operations, written in Rust.
//!
//! The kernels use the small [`device`] module. One source is compiled to PTX (`cargo xtask
//! build-ptx`, target nvptx64-nvidia-cuda) and to host code for the [`emulator`], which runs the
//! same kernels on machines without a GPU and reports their defects.
//!
//! A kernel is one `kernel!` item in its own file (`spmv/csr_warp_per_row.rs`, ...). For each
//! element type it becomes an entry of the PTX and a marker type that implements [`Kernel`] and
//! whose fields are the arguments. The compiler therefore checks launches on the device and on the
//! emulator.
//!
//! ```
//! use spm_gpu_kernels::emulator::Emulator;
//! use spm_gpu_kernels::spmv::CsrThreadPerRow;
//!
//! // | 1 0 2 |   | 1 |
//! // | 0 3 0 | x | 1 |
//! let emulator = Emulator::default();
//! let row_ptr = emulator.alloc_from(&[0_u32, 2, 3]);
//! let col_ind = emulator.alloc_from(&[0_u32, 2, 1]);
//! let values = emulator.alloc_from(&[1.0, 2.0, 3.0]);
//! let x = emulator.alloc_from(&[1.0; 3]);
//! let y = emulator.alloc_uninit::<f64>(2);
//! let kernel = CsrThreadPerRow {
//!     rows: 2,
//!     row_ptr: row_ptr.ptr(),
//!     col_ind: col_ind.ptr(),
//!     values: values.ptr(),
//!     x: x.ptr(),
//!     y: y.ptr_mut().into(),
//! };
//! emulator.launch::<CsrThreadPerRow<f64>>(1, 32, 0, kernel)?;
//! assert_eq!(y.to_vec(), [3.0, 3.0]);
//! # Ok::<(), spm_gpu_kernels::emulator::EmulatorError>(())
//! ```
//!
//! # The contract of a launch
//! A kernel trusts its arguments: sizes must describe the arrays, and column indices must be inside
//! x. Loads and stores through a [`device::DevicePtr`] are therefore only as safe as the launch,
//! and making such a pointer from an address is `unsafe`. The emulator checks every access.

#![cfg_attr(target_arch = "nvptx64", no_std)]
// Written once for every element type, where the type's own conversion would need a name each.
#![allow(unnecessary_transmutes)]
// LLVM's convergent intrinsics have no other way into Rust yet.
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]
// What the host alone uses: sizes of launches, bounds of element types.
#![cfg_attr(target_arch = "nvptx64", allow(dead_code, unreachable_pub, unused_imports))]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_ptx, asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx)
)]

mod collective;
pub mod convert;
pub mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub mod emulator;
mod kernel;
pub mod scale;
mod search;
pub mod spmm;
pub mod spmv;
pub mod timing;
pub mod transpose;
pub mod vector;

/// How many threads an SM is to hold of the entries whose names begin so, of which the first counts: at least this number of
/// blocks of this number of threads, the largest that are launched. The SM's 65 536 registers are
/// shared by those: 64 for each thread of `(1024, 1)`, 48 of `(256, 5)`, 32 of `(1024, 2)`.
///
/// Left alone the assembler keeps to 32, so that an SM is filled by the most threads, and to that end
/// moves loads behind the first use of earlier ones: one load in flight instead of four or eight.
/// With the directives `.maxntid` and `.minnctapersm`, which `build-ptx` adds to these entries, they
/// stay where the kernel has them; an entry whose loads fit 32 registers takes 36 or 40 without.
#[cfg(not(target_arch = "nvptx64"))]
pub const RESIDENT_BLOCKS: &[(&str, (u32, u32))] = &[
    // 64: few elements of a block, so more threads.
    ("spmm_bsr_2_", (spmm::COLUMN_THREADS, 2)),
    // 128: the sums of all rows of a block, and its elements and rows of X in flight.
    ("spmm_bsr_", (spmm::COLUMN_THREADS, 1)),
    ("spmm_csr_vector", (1024, 1)),
    ("spmm_csr_segmented_sum", (1024, 1)),
    // Up to 30 complex numbers of a block and its sums.
    ("spmv_bsr_5_c64", (spmv::BSR_THREADS, 1)),
    ("spmv_bsr_6_c64", (spmv::BSR_THREADS, 1)),
    ("spmv_bsr_8_c64", (spmv::BSR_THREADS, 1)),
    // Few elements of a block, so more threads.
    ("spmv_bsr_2_f", (spmv::BSR_THREADS, 5)),
    // 128: up to 25 elements of a block in flight.
    ("spmv_bsr_", (spmv::BSR_THREADS, 2)),
    ("spmv_csr_column_blocks", (1024, 1)),
    // 16 bytes for each of four products.
    ("spmv_csr_segmented_sum_4_c64", (spmv::SEGMENT_THREADS, 4)),
    ("spmv_csr_segmented_sum", (spmv::SEGMENT_THREADS, 5)),
    ("spmv_csr_ell_columns", (1024, 1)),
    ("spmv_csr_subwarp_per_row", (1024, 1)),
    ("spmv_dia_cached", (1024, 2)),
    ("spmv_dia_deep", (1024, 1)),
    ("spmv_dia_streamed", (1024, 2)),
    ("spmv_sell", (1024, 1)),
    ("transpose_bucket_", (1024, 1)),
    ("transpose_piece_", (1024, 1)),
];

/// The most registers of a thread of the entries whose names begin so, of which the first counts, whatever the block. Between
/// the 32 that the assembler keeps to and what all loads in flight take, as measured (docs/tuning-log-gpu-spmm.md, Registers).
#[cfg(not(target_arch = "nvptx64"))]
pub const MOST_REGISTERS: &[(&str, u32)] = &[
    ("spmm_bsr_2_4_f64", 72),
    ("spmm_bsr_6_2_f64", 96),
    ("spmm_csr_row_split_2_f64", 56),
    ("spmm_csr_row_split_4_f64", 64),
    ("spmm_csr_stream_2_f64", 48),
    ("spmm_sell_row_split_4_f64", 72),
    ("spmv_bsr_2_f64", 40),
    ("spmv_sellp_coded", 48),
    ("spmv_sellp_equal_f64", 40),
    ("spmv_sellp_equal_sorted_f64", 48),
];

/// Beginnings of the names of those entries whose loops have eight loads in flight as they are: unrolled by the assembler
/// they would need more than the 64 registers, and the loads would move again. `build-ptx` adds the pragma `nounroll`.
#[cfg(not(target_arch = "nvptx64"))]
pub const ROLLED_ENTRIES: &[&str] = &["spmv_sell_compact", "spmv_sellp"];

#[cfg(not(target_arch = "nvptx64"))]
pub use kernel::{Dim3, Kernel, KernelArgs};

/// Left unresolved on purpose: a panic path that survives optimisation shows in the PTX as an
/// `.extern .func`, which `build-ptx` refuses.
#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        safe fn spm_kernels_must_not_panic() -> !;
    }
    spm_kernels_must_not_panic()
}
