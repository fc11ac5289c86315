//! SpMV, SpMM and transposition on NVIDIA GPUs.
//!
//! One binary runs with and without a GPU. The driver is opened at the first call; without one
//! [`Device::open`] returns an error.
//!
//! ```
//! use spm_formats::Csr;
//! use spm_formats::kernel::ProductPlan;
//! use spm_gpu::{Device, HostProductPlan, PlanOptions, spmv};
//!
//! // | 1 0 2 |
//! // | 0 3 0 |
//! let a = Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
//! match Device::available() {
//!     Ok(device) => {
//!         // Planning converts the matrix and copies it to the device, once.
//!         let kernel = spmv::find::<f64>("auto").expect("a registered kernel");
//!         let parameters = kernel.info.defaults();
//!         let plan = kernel.plan(&device, a.view(), &parameters, &PlanOptions::default())?;
//!
//!         // x and y in host memory; `plan.launch` takes them in device memory.
//!         let plan = HostProductPlan::new(plan)?;
//!         let mut y = [0.0; 2];
//!         plan.run(&[1.0, 10.0, 100.0], &mut y)?;
//!         assert_eq!(y, [201.0, 30.0]);
//!     }
//!     Err(error) => println!("skipped: {error}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threads
//! Devices, buffers, matrices and streams are `Send` and `Sync`, plans are `Send`. Every call makes
//! the device's context current in its thread.
//!
//! # Building
//! There are no feature flags: the driver, cuSPARSE and NCCL are loaded at run time.
//!
//! `cust`, over which the device is driven, looks for a CUDA toolkit when it is built. Where none is
//! installed, one line in `.cargo/config.toml` lets it build: the README has it.
//!
//! # Beside other users of libcuda
//! This crate defines the driver's functions that `cust` calls, as weak and hidden symbols that
//! forward to libcuda.so.1. A program may link libcuda as well, or open it, or have such symbols of
//! its own (not with fat link-time optimisation, which makes one unit of all crates); its other
//! libraries call the driver itself. A function that the program's own code
//! declares and that is among those which `cust` calls goes through the forwarder: codes that CUDA
//! 11.4 did not have arrive as `CUDA_ERROR_UNKNOWN` (999).

mod blocks;
mod budget;
mod convert;
mod cuda;
pub mod cusparse;
mod device;
mod driver;
mod error;
mod host;
mod host_words;
mod idle;
mod info;
mod kernel;
mod launch;
mod library;
mod matrix;
mod memory;
pub mod nccl;
mod plan;
mod pool;
mod problem;
mod procedure;
mod product;
mod ptx;
mod race;
mod rates;
mod rows;
mod source;
pub mod spmm;
pub mod spmv;
mod stream;
mod texture;
mod timing;
pub mod transpose;
mod vector;

pub use device::{Device, EmulatedDevice, preserving_context};
pub use error::{CudaVersion, GpuError};
pub use host::HostBuffer;
pub use info::{DeviceInfo, LaunchLimits};
pub use kernel::ProductKernel;
pub use launch::{Launch, Loads};
pub use matrix::{DeviceCsr, DeviceHll, DeviceSell};
pub use memory::{DeviceBuffer, Lines, Scratch};
pub use plan::{
    DeviceCsc, DeviceProductPlan, DeviceReal, DeviceScalar, DeviceTransposePlan, HostPlan,
    HostProductPlan, HostTransposePlan, Operands, PlanOptions,
};
pub use rates::{Pass, Rates, time_passes};
pub use rows::DeviceRows;
pub use spm_formats::timing::{Sampling, Timing};
pub use spm_gpu_kernels::emulator::EmulatorOptions;
pub use stream::{Event, Stream};
pub use timing::{time, time_after};
pub use vector::DeviceVector;
