//! Devices: CUDA devices and the emulator.

use std::collections::VecDeque;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use cust::context::CurrentContext;
use cust::sys;
use spm_formats::MemoryBudget;
use spm_gpu_kernels::emulator::{Emulator, EmulatorOptions};

use crate::budget;
use crate::cuda::Cuda;
use crate::driver;
use crate::error::{GpuError, from_cust};
use crate::info::{DeviceInfo, LaunchLimits};
use crate::rates::{self, Rates};

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
    /// [`Device::rates`], once they are known.
    rates: Mutex<Option<Rates>>,
}

/// Calls `body` and then makes the context current that was current in this thread before. Other users of
/// the driver in a thread, such as the CUDA runtime, take the current context for their device's; the
/// calls of this crate change it if there are several devices.
pub fn preserving_context<R>(body: impl FnOnce() -> R) -> R {
    /// Puts the former context back, also when `body` panics.
    struct Restore(sys::CUcontext);

    impl Drop for Restore {
        fn drop(&mut self) {
            if current() != Some(self.0) {
                // SAFETY: a context that was current in this thread, or none.
                let _ = unsafe { sys::cuCtxSetCurrent(self.0) };
            }
        }
    }

    let _restore = current().map(Restore);
    body()
}

/// The current context of this thread, null if it has none; nothing without a driver.
fn current() -> Option<sys::CUcontext> {
    let mut context = ptr::null_mut();
    // SAFETY: points to a handle.
    let answer = unsafe { sys::cuCtxGetCurrent(&mut context) };
    (answer == sys::CUresult::CUDA_SUCCESS).then_some(context)
}

/// What an emulated device says that it is, and how long it says that products take.
#[derive(Debug, Clone, PartialEq)]
pub struct EmulatedDevice {
    /// [`DeviceInfo::l2_bytes`].
    pub l2_bytes: u64,
    /// [`DeviceInfo::multiprocessors`]; 0 is taken as 1.
    pub multiprocessors: u32,
    /// Seconds that `auto` measures, one measurement after the other; behind the last of them all
    /// take 0. The emulator's own time says nothing of a GPU.
    pub seconds: Vec<f64>,
    /// [`Device::rates`].
    pub rates: Option<Rates>,
}

impl Default for EmulatedDevice {
    /// One multiprocessor, nothing said of caches, memory and rates, and no product that takes time.
    fn default() -> Self {
        Self { l2_bytes: 0, multiprocessors: 1, seconds: Vec::new(), rates: None }
    }
}

/// The backend that runs the kernels.
pub(crate) enum Backend {
    Cuda(Cuda),
    Emulator(Emulator),
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
        let (seconds, rates) = Default::default();
        Ok(Self { inner: Arc::new(Inner { backend, info, seconds, rates }) })
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
            multiprocessors: device.multiprocessors.max(1),
            ..DeviceInfo::emulated(options.memory, LaunchLimits::EMULATED)
        };
        let backend = Backend::Emulator(Emulator::new(options));
        let (seconds, rates) = (Mutex::new(device.seconds.into()), Mutex::new(device.rates));
        Self { inner: Arc::new(Inner { backend, info, seconds, rates }) }
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

    /// How fast the device moves bytes. The first call measures it: that takes some milliseconds and,
    /// meanwhile, device memory of four times L2, at least 64 MiB. Other work on the device at the time makes
    /// the rates lower.
    ///
    /// Nothing if that is more than `budget` or than half of the free memory, or if the device fails; a later
    /// call tries again. An emulated device has the rates that it was given
    /// ([`EmulatedDevice::rates`]).
    pub fn rates(&self, budget: &MemoryBudget) -> Option<Rates> {
        // Rates are whole after a panic. The lock is held while they are measured: by one thread.
        let mut rates = self.inner.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.is_none() && !self.is_emulated() {
            let what = "arrays to measure the device";
            *rates = budget::within(what, budget, 0, || rates::measure(self)).ok().flatten();
        }
        *rates
    }

    /// The rates, if they have been measured.
    pub(crate) fn known_rates(&self) -> Option<Rates> {
        *self.inner.rates.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Compiles every kernel for the device. Otherwise each is compiled at its first launch, during which
    /// the driver may wait for all work of the device. The driver keeps the results between programs.
    ///
    /// # Errors
    /// A device or a driver that is too old for them.
    pub fn load_kernels(&self) -> Result<(), GpuError> {
        match &self.inner.backend {
            Backend::Cuda(cuda) => cuda.load(self.info()),
            Backend::Emulator(_) => Ok(()),
        }
    }

    /// Lets copies from `other` to this device go straight ([`DeviceBuffer::copy_part_from_on`]); whether
    /// they can. Otherwise the driver copies through host memory.
    ///
    /// # Errors
    /// A device that fails; a GPU and an emulated device.
    ///
    /// [`DeviceBuffer::copy_part_from_on`]: crate::DeviceBuffer::copy_part_from_on
    pub fn enable_peer(&self, other: &Self) -> Result<bool, GpuError> {
        match (&self.inner.backend, &other.inner.backend) {
            (Backend::Cuda(cuda), Backend::Cuda(other)) => cuda.enable_peer(other),
            (Backend::Emulator(_), Backend::Emulator(_)) => Ok(true),
            _ => Err(GpuError::OtherDevice { what: "the peer" }),
        }
    }

    /// Whether `address`, of another library, is memory of this device; on an emulated device whether it
    /// is not 0.
    ///
    /// # Errors
    /// A device that fails.
    pub fn holds(&self, address: u64) -> Result<bool, GpuError> {
        match &self.inner.backend {
            Backend::Cuda(cuda) => cuda.holds(self.inner.info.ordinal, address),
            Backend::Emulator(_) => Ok(address != 0),
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
