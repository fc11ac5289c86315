//! Finding a device and keeping it.

use std::fmt;
use std::sync::Arc;

use cust::context::{Context, CurrentContext};
use cust::device::DeviceAttribute;
use cust::sys;

use crate::driver;
use crate::error::{CudaVersion, GpuError};

/// A CUDA device with its context. Cloning is cheap: all clones are the same device.
///
/// Buffers, streams and plans keep their device alive; it may be used from any thread.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    context: Context,
    info: DeviceInfo,
}

/// What a device is, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Core clock in kHz, the highest.
    pub clock_khz: u32,
    /// Memory clock in kHz, the highest.
    pub memory_clock_khz: u32,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
    /// The CUDA version that the driver supports.
    pub driver: CudaVersion,
    /// What a launch may ask for.
    pub limits: LaunchLimits,
}

/// The limits of a launch on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The answer of the driver as a result of ours.
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

/// An error of `cust` as one of ours.
pub(crate) fn from_cust(call: &'static str, error: cust::error::CudaError) -> GpuError {
    match check(call, driver::result(error as u32)) {
        Err(error) => error,
        Ok(()) => GpuError::Driver { call, code: format!("{error:?}"), message: String::new() },
    }
}

impl Device {
    /// Device number `ordinal` of this machine, from 0.
    ///
    /// # Errors
    /// No driver, no such device.
    pub fn open(ordinal: u32) -> Result<Self, GpuError> {
        driver::keep_symbols();
        cust::init(cust::CudaFlags::empty()).map_err(|e| from_cust("cuInit", e))?;
        let count =
            cust::device::Device::num_devices().map_err(|e| from_cust("cuDeviceGetCount", e))?;
        if count == 0 {
            return Err(GpuError::NoDevice);
        }
        if ordinal >= count {
            return Err(GpuError::NoSuchDevice { ordinal, count });
        }
        let device =
            cust::device::Device::get_device(ordinal).map_err(|e| from_cust("cuDeviceGet", e))?;
        let info = DeviceInfo::read(ordinal, device)?;
        let context = Context::new(device).map_err(|e| from_cust("cuDevicePrimaryCtxRetain", e))?;
        Ok(Self { inner: Arc::new(Inner { context, info }) })
    }

    /// The first device, or why there is none.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn available() -> Result<Self, GpuError> {
        Self::open(0)
    }

    /// What it is.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// Free and total device memory in bytes, as of now.
    ///
    /// # Errors
    /// A device that fails.
    pub fn memory(&self) -> Result<(u64, u64), GpuError> {
        self.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both point to a usize.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// Waits until everything given to the device is done.
    ///
    /// # Errors
    /// A kernel that failed since the last call.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.make_current()?;
        CurrentContext::synchronize().map_err(|e| from_cust("cuCtxSynchronize", e))
    }

    /// Whether both are handles of one device.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Makes the device the one that calls of this thread mean.
    pub(crate) fn make_current(&self) -> Result<(), GpuError> {
        CurrentContext::set_current(&self.inner.context)
            .map_err(|e| from_cust("cuCtxSetCurrent", e))
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("info", self.info()).finish_non_exhaustive()
    }
}

impl DeviceInfo {
    fn read(ordinal: u32, device: cust::device::Device) -> Result<Self, GpuError> {
        let attribute = |attribute: DeviceAttribute| {
            let value = device.get_attribute(attribute);
            value.map(|v| v.unsigned_abs()).map_err(|e| from_cust("cuDeviceGetAttribute", e))
        };
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
            l2_bytes: attribute(DeviceAttribute::L2CacheSize)?.into(),
            multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?,
            clock_khz: attribute(DeviceAttribute::ClockRate)?,
            memory_clock_khz: attribute(DeviceAttribute::MemoryClockRate)?,
            memory_bus_bits: attribute(DeviceAttribute::GlobalMemoryBusWidth)?,
            driver: CudaVersion {
                major: version.major().unsigned_abs(),
                minor: version.minor().unsigned_abs(),
            },
            limits: LaunchLimits {
                block_threads: attribute(DeviceAttribute::MaxThreadsPerBlock)?,
                grid_x: attribute(DeviceAttribute::MaxGridDimX)?,
                grid_y: attribute(DeviceAttribute::MaxGridDimY)?,
                shared_bytes: optin.unsigned_abs(),
                texture_elements: attribute(DeviceAttribute::MaximumTexture1DLinearWidth)?.into(),
            },
        })
    }
}
