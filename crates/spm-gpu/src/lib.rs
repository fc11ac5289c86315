//! Sparse matrix kernels on NVIDIA GPUs.
//!
//! One binary runs with and without a GPU: the driver is opened at the first call, and without one
//! [`Device::open`] says so.
//!
//! ```
//! use spm_gpu::{Device, DeviceBuffer};
//!
//! match Device::available() {
//!     Ok(device) => {
//!         let x = DeviceBuffer::from_slice(&device, &[1.0, 2.0, 3.0])?;
//!         let mut back = [0.0; 3];
//!         x.copy_to_slice(&mut back)?;
//!         assert_eq!(back, [1.0, 2.0, 3.0]);
//!     }
//!     Err(error) => println!("skipped: {error}"),
//! }
//! # Ok::<(), spm_gpu::GpuError>(())
//! ```
//!
//! # Building
//! `cust`, over which the device is driven, looks for a CUDA toolkit when it is built. The
//! workspace's `.cargo/config.toml` points its variable `CUDA_LIBRARY_PATH` to a folder of this
//! crate that satisfies it; a workspace that depends on this crate sets the variable itself, or has
//! a toolkit.

mod cuda;
pub mod cusparse;
mod device;
mod driver;
mod error;
mod launch;
mod matrix;
mod memory;
mod plan;
mod ptx;
pub mod spmm;
pub mod spmv;
mod stream;
mod texture;
mod timing;
pub mod transpose;

pub use device::{Device, DeviceInfo, LaunchLimits};
pub use error::{CudaVersion, GpuError};
pub use launch::Launch;
pub use memory::DeviceBuffer;
pub use plan::{
    DeviceCsc, DeviceScalar, DeviceSpmmPlan, DeviceSpmvPlan, DeviceTransposePlan, HostPlan,
    HostSpmmPlan, HostSpmvPlan, HostTransposePlan, Operands, PlanOptions,
};
pub use stream::{Event, Stream};
pub use timing::{Timing, TimingOptions, time, time_after};
