//! Devices: CUDA devices and the emulator.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cust::context::CurrentContext;
use cust::device::DeviceAttribute;
use cust::sys;
use spm_gpu_kernels::Kernel;
use spm_gpu_kernels::emulator::{Emulator, EmulatorOptions, MAX_BLOCK_THREADS, MAX_SHARED_BYTES};

use crate::cuda::{Cuda, check, from_cust};
use crate::driver;
use crate::error::{CudaVersion, GpuError};
use crate::launch::Launch;
use crate::stream::Stream;

/// A CUDA device with its context, or an emulated device. Plans are written once for both.
///
/// Clones refer to the same device. Buffers, streams and plans keep their device alive. A device
/// may be used from any thread.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Backend,
    info: DeviceInfo,
    /// [`EmulatedDevice::seconds`] that nobody has read.
    seconds: Mutex<VecDeque<f64>>,
}

/// What an emulated device says that it is, and how long it says that products take.
#[derive(Debug, Clone, PartialEq)]
pub struct EmulatedDevice {
    /// [`DeviceInfo::l2_bytes`].
    pub l2_bytes: u64,
    /// [`DeviceInfo::multiprocessors`].
    pub multiprocessors: u32,
    /// [`DeviceInfo::memory_clock_khz`].
    pub memory_clock_khz: u32,
    /// [`DeviceInfo::memory_bus_bits`].
    pub memory_bus_bits: u32,
    /// Seconds that `auto` measures, one measurement after the other; behind the last of them all
    /// take 0. The emulator's own time says nothing of a GPU.
    pub seconds: Vec<f64>,
}

impl Default for EmulatedDevice {
    /// One multiprocessor, nothing said of caches and memory, and no product that takes time.
    fn default() -> Self {
        Self {
            l2_bytes: 0,
            multiprocessors: 1,
            memory_clock_khz: 0,
            memory_bus_bits: 0,
            seconds: Vec::new(),
        }
    }
}

/// The backend that runs the kernels.
pub(crate) enum Backend {
    Cuda(Cuda),
    Emulator(Emulator),
}

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
    /// Core clock in kHz, the highest; 0 where the driver does not tell.
    pub clock_khz: u32,
    /// Memory clock in kHz, the highest; 0 where the driver does not tell.
    pub memory_clock_khz: u32,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
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
        let backend = Backend::Cuda(Cuda::new(device)?);
        Ok(Self { inner: Arc::new(Inner { backend, info, seconds: Mutex::default() }) })
    }

    /// A device that is emulated on the host, with separate memory. It runs the same kernels
    /// slowly, and reports defects that a GPU does not report (see [`spm_gpu_kernels::emulator`]).
    pub fn emulated(options: EmulatorOptions) -> Self {
        Self::emulated_as(options, EmulatedDevice::default())
    }

    /// The same, as another device: `auto` decides by what it is.
    pub fn emulated_as(options: EmulatorOptions, device: EmulatedDevice) -> Self {
        let info = DeviceInfo {
            l2_bytes: device.l2_bytes,
            multiprocessors: device.multiprocessors,
            memory_clock_khz: device.memory_clock_khz,
            memory_bus_bits: device.memory_bus_bits,
            ..DeviceInfo::emulated(options.memory, LaunchLimits::EMULATED)
        };
        let backend = Backend::Emulator(Emulator::new(options));
        let seconds = Mutex::new(device.seconds.into());
        Self { inner: Arc::new(Inner { backend, info, seconds }) }
    }

    /// The next of [`EmulatedDevice::seconds`]; nothing on a GPU.
    pub(crate) fn emulated_seconds(&self) -> Option<f64> {
        let mut seconds = self.inner.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_emulated().then(|| seconds.pop_front().unwrap_or(0.0))
    }

    /// Whether the kernels run on the host.
    pub fn is_emulated(&self) -> bool {
        matches!(self.inner.backend, Backend::Emulator(_))
    }

    /// The first device, or why there is none.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn available() -> Result<Self, GpuError> {
        Self::open(0)
    }

    /// The properties of the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// Free and total device memory in bytes, as of now.
    ///
    /// # Errors
    /// A device that fails.
    pub fn memory(&self) -> Result<(u64, u64), GpuError> {
        match &self.inner.backend {
            Backend::Cuda(cuda) => cuda.memory(),
            Backend::Emulator(emulator) => {
                let total = emulator.options().memory;
                Ok((total.saturating_sub(emulator.allocated_bytes()), total))
            }
        }
    }

    /// Waits until everything given to the device is done.
    ///
    /// # Errors
    /// A kernel that failed since the last call.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        match &self.inner.backend {
            Backend::Cuda(cuda) => {
                cuda.make_current()?;
                CurrentContext::synchronize().map_err(|e| from_cust("cuCtxSynchronize", e))
            }
            Backend::Emulator(emulator) => Ok(emulator.synchronize()?),
        }
    }

    /// Compiles the kernels for the device, which otherwise happens at the first launch. The
    /// driver keeps the result between programs.
    ///
    /// # Errors
    /// A device or a driver that is too old for them.
    pub fn load_kernels(&self) -> Result<(), GpuError> {
        match &self.inner.backend {
            Backend::Cuda(cuda) => cuda.load(self.info()),
            Backend::Emulator(_) => Ok(()),
        }
    }

    /// Puts kernel `K` into the stream and returns without waiting for it. The emulator, unless it
    /// defers ([`EmulatorOptions::deferred`]), runs it before it returns.
    ///
    /// # Errors
    /// A launch beyond the limits of the device, a stream of another device; from the emulator,
    /// what the kernel did wrong.
    ///
    /// # Safety
    /// The arguments keep the kernel's contract: sizes describe the arrays, indices stay inside,
    /// and what the pointers point to lies on this device and lives until the stream is done with
    /// the kernel. (Dropping a [`crate::DeviceBuffer`] waits for that.)
    pub unsafe fn launch<K: Kernel>(
        &self,
        launch: Launch,
        stream: &Stream,
        args: K::Args,
    ) -> Result<(), GpuError>
    where
        K::Args: Send,
    {
        stream.check_device(self)?;
        launch.check(K::NAME, &self.info().limits)?;
        match (&self.inner.backend, stream.emulated()) {
            // SAFETY: the caller's promise, and the limits were checked.
            (Backend::Cuda(cuda), _) => unsafe {
                cuda.launch::<K>(self.info(), launch, stream.as_raw(), args)
            },
            (Backend::Emulator(_), Some(stream)) => {
                Ok(stream.launch::<K>(launch.grid, launch.block, launch.shared_bytes, args)?)
            }
            (Backend::Emulator(_), None) => Err(GpuError::OtherDevice { what: "stream" }),
        }
    }

    /// Whether both are handles of one device.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Makes the device's context current in the calling thread.
    pub(crate) fn make_current(&self) -> Result<(), GpuError> {
        match &self.inner.backend {
            Backend::Cuda(cuda) => cuda.make_current(),
            Backend::Emulator(_) => Ok(()),
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.backend
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("info", self.info()).finish_non_exhaustive()
    }
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
    /// The properties of an emulated device.
    pub(crate) fn emulated(memory_bytes: u64, limits: LaunchLimits) -> Self {
        Self {
            ordinal: 0,
            name: "emulator".to_owned(),
            compute_capability: (9, 0),
            memory_bytes,
            l2_bytes: 0,
            multiprocessors: 1,
            clock_khz: 0,
            memory_clock_khz: 0,
            memory_bus_bits: 0,
            driver: CudaVersion { major: 0, minor: 0 },
            limits,
        }
    }

    fn read(ordinal: u32, device: cust::device::Device) -> Result<Self, GpuError> {
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
            clock_khz: if_known(DeviceAttribute::ClockRate),
            memory_clock_khz: if_known(DeviceAttribute::MemoryClockRate),
            memory_bus_bits: if_known(DeviceAttribute::GlobalMemoryBusWidth),
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
