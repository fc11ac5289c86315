//! Properties of devices, and the limits of launches.

use cust::device::DeviceAttribute;
use cust::sys;
use spm_gpu_kernels::emulator::{MAX_BLOCK_THREADS, MAX_SHARED_BYTES};

use crate::error::{CudaVersion, GpuError, check, from_cust};

/// Properties of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Number of the device for the driver, from 0.
    pub ordinal: u32,
    /// Name, as `nvidia-smi` shows it.
    pub name: String,
    /// Compute capability, (major, minor).
    pub compute_capability: (u32, u32),
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// L2 cache in bytes.
    pub l2_bytes: u64,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Threads that a multiprocessor runs at once, at most.
    pub multiprocessor_threads: u32,
    /// Core clock in kHz, the highest; 0 where the driver does not tell.
    pub clock_khz: u32,
    /// The CUDA version that the driver supports.
    pub driver: CudaVersion,
    /// The limits of a launch.
    pub limits: LaunchLimits,
}

/// The limits of a launch on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchLimits {
    /// Threads of a block.
    pub block_threads: u32,
    /// Blocks of a grid in x.
    pub grid_x: u32,
    /// Blocks of a grid in y.
    pub grid_y: u32,
    /// Shared memory of a block in bytes, once opted in.
    pub shared_bytes: u32,
    /// Elements that a texture over a linear array may have.
    pub texture_elements: u64,
}

impl LaunchLimits {
    /// The limits of the emulator.
    pub(crate) const EMULATED: Self = Self {
        block_threads: MAX_BLOCK_THREADS,
        grid_x: i32::MAX.cast_unsigned(),
        grid_y: 65_535,
        shared_bytes: MAX_SHARED_BYTES,
        texture_elements: 1 << 28,
    };
}

impl DeviceInfo {
    /// Threads that the device runs at once, at most: what the sizes of launches are compared with.
    pub fn resident_threads(&self) -> usize {
        self.multiprocessors as usize * self.multiprocessor_threads as usize
    }

    /// The properties of an emulated device.
    pub(crate) fn emulated(memory_bytes: u64, limits: LaunchLimits) -> Self {
        Self {
            ordinal: 0,
            name: "emulator".to_owned(),
            compute_capability: (9, 0),
            memory_bytes,
            l2_bytes: 0,
            multiprocessors: 1,
            multiprocessor_threads: 2048,
            clock_khz: 0,
            driver: CudaVersion { major: 0, minor: 0 },
            limits,
        }
    }

    pub(crate) fn read(ordinal: u32, device: cust::device::Device) -> Result<Self, GpuError> {
        let attribute = |attribute: DeviceAttribute| {
            let value = device.get_attribute(attribute);
            value.map(|v| v.unsigned_abs()).map_err(|e| from_cust("cuDeviceGetAttribute", e))
        };
        // Only for reports; not every device tells.
        let if_known = |which| attribute(which).unwrap_or(0);
        // Deprecated; 2^27 is what every device since compute capability 3.0 takes.
        let texture_elements = if_known(DeviceAttribute::MaximumTexture1DLinearWidth).max(1 << 27);
        let mut optin = 0;
        // SAFETY: points to an int; the handle comes from the driver.
        check("cuDeviceGetAttribute", unsafe {
            sys::cuDeviceGetAttribute(
                &mut optin,
                sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                device.as_raw(),
            )
        })?;
        let version =
            cust::CudaApiVersion::get().map_err(|e| from_cust("cuDriverGetVersion", e))?;
        Ok(Self {
            ordinal,
            name: device.name().map_err(|e| from_cust("cuDeviceGetName", e))?,
            compute_capability: (
                attribute(DeviceAttribute::ComputeCapabilityMajor)?,
                attribute(DeviceAttribute::ComputeCapabilityMinor)?,
            ),
            memory_bytes: device.total_memory().map_err(|e| from_cust("cuDeviceTotalMem", e))?
                as u64,
            l2_bytes: if_known(DeviceAttribute::L2CacheSize).into(),
            multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?,
            multiprocessor_threads: attribute(DeviceAttribute::MaxThreadsPerMultiprocessor)?,
            clock_khz: if_known(DeviceAttribute::ClockRate),
            driver: CudaVersion {
                major: version.major().unsigned_abs(),
                minor: version.minor().unsigned_abs(),
            },
            limits: LaunchLimits {
                block_threads: attribute(DeviceAttribute::MaxThreadsPerBlock)?,
                grid_x: attribute(DeviceAttribute::MaxGridDimX)?,
                grid_y: attribute(DeviceAttribute::MaxGridDimY)?,
                shared_bytes: optin.unsigned_abs(),
                texture_elements: texture_elements.into(),
            },
        })
    }
}
