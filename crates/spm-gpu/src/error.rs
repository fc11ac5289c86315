//! Errors of devices and of the libraries loaded at run time.

use cust::sys;
use spm_formats::FormatError;
use spm_formats::kernel::{PlanError, RunError};
use spm_gpu_kernels::emulator::EmulatorError;
use thiserror::Error;

use crate::driver;

/// Why an operation on a device failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GpuError {
    /// libcuda.so.1 could not be opened.
    #[error(
        "no NVIDIA driver: {reason}; install the driver of the GPU (the CUDA toolkit is not needed)"
    )]
    NoDriver {
        /// The loader's message.
        reason: String,
    },
    /// There is a driver, but it shows no device.
    #[error(
        "no device: the driver shows no GPU; check `nvidia-smi` and the variable CUDA_VISIBLE_DEVICES"
    )]
    NoDevice,
    /// The driver shows fewer devices than asked for.
    #[error("there is no device {ordinal}: the driver shows {count}, numbered from 0")]
    NoSuchDevice {
        /// The number asked for.
        ordinal: u32,
        /// Devices there are.
        count: u32,
    },
    /// The device is older than every PTX that is embedded.
    #[error("{name} has compute capability {major}.{minor}; the kernels need 7.0 (Volta) or later")]
    DeviceTooOld {
        /// Name of the device.
        name: String,
        /// Compute capability, major.
        major: u32,
        /// Compute capability, minor.
        minor: u32,
    },
    /// The driver does not know the version of the embedded PTX.
    #[error(
        "the driver supports CUDA {found}, the PTX of the kernels needs CUDA {needs}; update the driver"
    )]
    DriverTooOld {
        /// The least that is needed.
        needs: CudaVersion,
        /// What the driver supports.
        found: CudaVersion,
    },
    /// The embedded PTX was refused for another reason.
    #[error("the driver cannot compile the PTX for {target} ({code}): {log}")]
    Ptx {
        /// The architecture that it was compiled for.
        target: &'static str,
        /// The driver's code.
        code: String,
        /// The log of the driver's compiler.
        log: String,
    },
    /// Not enough device memory.
    #[error(
        "out of device memory: {requested} bytes asked for, {free} of {total} are free; use a smaller \
         matrix or a format with less padding, or drop other plans and buffers first"
    )]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Bytes free at that moment.
        free: u64,
        /// Bytes of the device.
        total: u64,
    },
    /// More device memory than the budget of a plan or a conversion allows.
    #[error("{0}")]
    OverBudget(FormatError),
    /// A plan cannot take new values for its pattern; the reason says why. It keeps the old ones.
    #[error("new values: {0}")]
    Values(&'static str),
    /// A launch that the device cannot take.
    #[error("{kernel}: {what} is {found}, this device takes at most {limit}")]
    LaunchLimit {
        /// Name of the kernel's entry.
        kernel: &'static str,
        /// What is too large, or 0.
        what: &'static str,
        /// The limit of the device.
        limit: u64,
        /// The number asked for.
        found: u64,
    },
    /// A launch that the driver refused.
    #[error(
        "{kernel} with grid {grid:?}, block {block:?}, {shared_bytes} bytes of shared memory: {reason}"
    )]
    LaunchFailed {
        /// Name of the kernel's entry.
        kernel: &'static str,
        /// Blocks in x and y.
        grid: (u32, u32),
        /// Threads of a block in x and y.
        block: (u32, u32),
        /// Dynamic shared memory of a block.
        shared_bytes: u32,
        /// The driver's message.
        reason: String,
    },
    /// The PTX has no such entry.
    #[error("the PTX has no kernel {name}; rebuild it with `cargo xtask build-ptx`")]
    MissingKernel {
        /// Name of the entry.
        name: &'static str,
    },
    /// A buffer or a slice has the wrong length.
    #[error("{what}: expected {expected} elements, found {found}")]
    Shape {
        /// What it is.
        what: &'static str,
        /// Elements needed.
        expected: usize,
        /// Elements given.
        found: usize,
    },
    /// Buffers, streams and plans of different devices were mixed.
    #[error("{what} is on another device than the call it is given to")]
    OtherDevice {
        /// What it is.
        what: &'static str,
    },
    /// An array of another library begins where kernels cannot read it.
    #[error(
        "the array begins at address {address:#x}, which is no multiple of {alignment}; use a copy of it"
    )]
    Misaligned {
        /// Where it begins.
        address: u64,
        /// Bytes that kernels read at once.
        alignment: u64,
    },
    /// A time was asked of an event that is in no stream.
    #[error("the event was never recorded in a stream")]
    NotRecorded,
    /// The emulator reported what a kernel did wrong.
    #[error("emulator: {0}")]
    Emulator(EmulatorError),
    /// Any other answer of the driver.
    #[error("{call} failed: {code} ({message})")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Name of the code.
        code: String,
        /// The driver's message.
        message: String,
    },
    /// A library that is loaded at run time is absent.
    #[error("{library} is absent: {reason}")]
    LibraryAbsent {
        /// Name of the library.
        library: &'static str,
        /// Where it was looked for, and how to provide it.
        reason: String,
    },
    /// A library refused a call.
    #[error("{call} failed: {message}")]
    Library {
        /// The library's function.
        call: &'static str,
        /// The library's message.
        message: String,
    },
}

/// A version of CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaVersion {
    /// Major, the 12 of 12.6.
    pub major: u32,
    /// Minor, the 6 of 12.6.
    pub minor: u32,
}

impl std::fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl GpuError {
    /// Whether there is no device or driver, as on a machine without a GPU. The GPU part of a run
    /// is then skipped, not failed.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NoDriver { .. } | Self::NoDevice | Self::LibraryAbsent { .. })
    }
}

impl From<EmulatorError> for GpuError {
    fn from(error: EmulatorError) -> Self {
        match error {
            EmulatorError::OutOfMemory { requested, free } => {
                Self::OutOfMemory { requested, free, total: free }
            }
            error => Self::Emulator(error),
        }
    }
}

impl From<GpuError> for PlanError {
    fn from(error: GpuError) -> Self {
        match error {
            GpuError::OverBudget(error) => Self::Format(error),
            GpuError::Values(reason) => Self::Values(reason),
            GpuError::Shape { what, expected, found } => {
                Self::Format(FormatError::LengthMismatch { what, expected, found })
            }
            error => Self::device(error),
        }
    }
}

impl From<GpuError> for RunError {
    fn from(error: GpuError) -> Self {
        match error {
            GpuError::Shape { what, expected, found } => Self::Shape { what, expected, found },
            error => Self::device(error),
        }
    }
}

/// Converts a status of the driver to a result.
pub(crate) fn check(call: &'static str, answer: sys::CUresult) -> Result<(), GpuError> {
    match answer {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        sys::CUresult::CUDA_ERROR_NO_DEVICE => Err(match driver::library() {
            Err(reason) => GpuError::NoDriver { reason: reason.to_owned() },
            Ok(_) => GpuError::NoDevice,
        }),
        other => Err(GpuError::Driver {
            call,
            code: format!("{other:?}"),
            message: driver::message(other),
        }),
    }
}

/// Converts an error of `cust`.
pub(crate) fn from_cust(call: &'static str, error: cust::error::CudaError) -> GpuError {
    match check(call, driver::result(error as u32)) {
        Err(error) => error,
        Ok(()) => GpuError::Driver { call, code: format!("{error:?}"), message: String::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_to_do() {
        let error = GpuError::DriverTooOld {
            needs: CudaVersion { major: 11, minor: 8 },
            found: CudaVersion { major: 11, minor: 4 },
        };
        assert_eq!(
            error.to_string(),
            "the driver supports CUDA 11.4, the PTX of the kernels needs CUDA 11.8; update the driver"
        );
        let error = GpuError::OutOfMemory { requested: 3, free: 1, total: 2 };
        assert!(error.to_string().contains("format with less padding"));
        let PlanError::Device(kept) = PlanError::from(error.clone()) else { panic!("{error}") };
        assert_eq!(kept.downcast_ref(), Some(&error));
        assert_eq!(kept.to_string(), error.to_string());
    }

    #[test]
    fn a_wrong_shape_stays_a_wrong_shape() {
        let shape = GpuError::Shape { what: "x", expected: 3, found: 2 };
        assert_eq!(RunError::from(shape), RunError::Shape { what: "x", expected: 3, found: 2 });
    }
}
