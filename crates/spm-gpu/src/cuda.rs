//! The CUDA backend of a device: its context, the kernels loaded into it, and launches.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{CString, c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use cust::context::{Context, ContextHandle, CurrentContext};
use cust::memory::LockedBuffer;
use cust::sys;
use spm_gpu_kernels::{Kernel, KernelArgs};

use crate::driver;
use crate::error::{GpuError, check, from_cust};
use crate::idle::Idle;
use crate::info::DeviceInfo;
use crate::launch::{Launch, Loads};
use crate::pool::Pool;
use crate::ptx;
use crate::stream::Readers;

/// Dynamic shared memory that a launch may have without opting in.
const SHARED_WITHOUT_OPT_IN: u32 = 48 * 1024;
/// Room for the messages of the driver's PTX compiler.
const LOG_BYTES: usize = 16 * 1024;

/// A context with its kernels.
pub(crate) struct Cuda {
    // Before `context`: fields are dropped in order.
    functions: Mutex<HashMap<(&'static str, Loads), Function>>,
    pool: Pool,
    readers: OnceLock<Readers>,
    idle_streams: Idle<cust::stream::Stream>,
    idle_words: Idle<LockedBuffer<u32>>,
    device: sys::CUdevice,
    context: Context,
}

/// A kernel, in a module of its own: a program compiles the kernels that it uses, at their first launch.
struct Function {
    raw: sys::CUfunction,
    _module: Module,
    /// Dynamic shared memory that launches may have so far.
    shared_bytes: u32,
}

// SAFETY: a handle into the module that it owns; the driver is thread-safe.
unsafe impl Send for Function {}

/// PTX, compiled for the device.
struct Module(sys::CUmodule);

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded once, unloaded once, while its context is current (`Cuda::drop`).
        let _ = unsafe { sys::cuModuleUnload(self.0) };
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // Modules and streams go next, from the context of this device.
        let _ = self.make_current();
        self.pool.release();
    }
}

impl Cuda {
    pub(crate) fn new(device: cust::device::Device) -> Result<Self, GpuError> {
        let context = Context::new(device).map_err(|e| from_cust("cuDevicePrimaryCtxRetain", e))?;
        let (pool, device) = (Pool::new(), device.as_raw());
        let (functions, readers) = (Mutex::default(), OnceLock::new());
        let (idle_streams, idle_words) = (Idle::default(), Idle::default());
        Ok(Self { functions, pool, readers, idle_streams, idle_words, device, context })
    }

    /// The context of the driver, which devices with one ordinal share.
    pub(crate) fn raw_context(&self) -> sys::CUcontext {
        self.context.get_inner()
    }

    /// Whether memory of one is memory of the other.
    pub(crate) fn shares_context(&self, other: &Self) -> bool {
        ptr::eq(self.raw_context(), other.raw_context())
    }

    /// The stream that waits for what other devices read; makes this context current.
    pub(crate) fn readers(&self) -> Result<&Readers, GpuError> {
        if let Some(readers) = self.readers.get() {
            return Ok(readers);
        }
        self.make_current()?;
        let made = Readers::new()?;
        Ok(self.readers.get_or_init(|| made))
    }

    /// Lets copies go straight from `other`'s memory to this one's; whether they can.
    pub(crate) fn enable_peer(&self, other: &Self) -> Result<bool, GpuError> {
        if self.shares_context(other) {
            return Ok(true);
        }
        let mut can = 0;
        // SAFETY: points to an int.
        check("cuDeviceCanAccessPeer", unsafe {
            sys::cuDeviceCanAccessPeer(&mut can, self.device, other.device)
        })?;
        if can == 0 {
            return Ok(false);
        }
        self.make_current()?;
        // SAFETY: a live context of another device; no flags.
        match unsafe { sys::cuCtxEnablePeerAccess(other.raw_context(), 0) } {
            sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(true),
            answer => check("cuCtxEnablePeerAccess", answer).map(|()| true),
        }
    }

    /// Streams that steps of planning take turns in.
    pub(crate) fn idle_streams(&self) -> &Idle<cust::stream::Stream> {
        &self.idle_streams
    }

    /// Page-locked memory of [`HostWords`](crate::host_words::HostWords).
    pub(crate) fn idle_words(&self) -> &Idle<LockedBuffer<u32>> {
        &self.idle_words
    }

    /// The pool of device memory.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Free and total bytes; free includes what the pool holds unused.
    pub(crate) fn memory(&self) -> Result<(u64, u64), GpuError> {
        self.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both point to a usize.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free as u64 + self.pool.unused(), total as u64))
    }

    /// Whether the driver says that memory of this device begins at `address` or before it.
    pub(crate) fn holds(&self, ordinal: u32, address: u64) -> Result<bool, GpuError> {
        self.make_current()?;
        let mut of = -1;
        let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        // SAFETY: points to an int, which this attribute is; any address may be asked for.
        let answer =
            unsafe { sys::cuPointerGetAttribute((&raw mut of).cast(), attribute, address) };
        if answer == sys::CUresult::CUDA_ERROR_INVALID_VALUE {
            return Ok(false);
        }
        check("cuPointerGetAttribute", answer)?;
        Ok(i64::from(of) == i64::from(ordinal))
    }

    /// Makes this context current in the calling thread.
    pub(crate) fn make_current(&self) -> Result<(), GpuError> {
        CurrentContext::set_current(&self.context).map_err(|e| from_cust("cuCtxSetCurrent", e))
    }

    /// Compiles every kernel that has not been used.
    pub(crate) fn load(&self, info: &DeviceInfo) -> Result<(), GpuError> {
        self.make_current()?;
        ptx::forms().try_for_each(|form| self.function(info, form, 0).map(|_| ()))
    }

    /// The kernel's handle, allowed to use that much shared memory. The context is current.
    fn function(
        &self,
        info: &DeviceInfo,
        (name, loads): (&'static str, Loads),
        shared_bytes: u32,
    ) -> Result<sys::CUfunction, GpuError> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let function = match functions.entry((name, loads)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let text = ptx::of_kernel(info, name, loads)?;
                let module = load_module(&text, ptx::target(info))?;
                let raw = find_function(&module, name)?;
                new.insert(Function { raw, _module: module, shared_bytes: SHARED_WITHOUT_OPT_IN })
            }
        };
        if shared_bytes > function.shared_bytes {
            // SAFETY: the function is live; the size is within the device's limit (checked).
            check("cuFuncSetAttribute", unsafe {
                sys::cuFuncSetAttribute(
                    function.raw,
                    sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    shared_bytes.cast_signed(),
                )
            })?;
            function.shared_bytes = shared_bytes;
        }
        Ok(function.raw)
    }

    /// Puts a kernel into a stream.
    ///
    /// # Safety
    /// As [`crate::Device::launch`]; the launch is within the device's limits.
    pub(crate) unsafe fn launch<K: Kernel>(
        &self,
        info: &DeviceInfo,
        Launch { grid, block, shared_bytes, loads }: Launch,
        stream: *mut c_void,
        args: K::Args,
    ) -> Result<(), GpuError> {
        self.make_current()?;
        let function = self.function(info, (K::NAME, loads), shared_bytes)?;
        let mut answer = sys::CUresult::CUDA_SUCCESS;
        args.with_raw(&mut |pointers| {
            // SAFETY: one pointer per argument of the kernel's signature, which `K` and the PTX
            // share; the driver copies what they point to before it returns.
            answer = unsafe {
                sys::cuLaunchKernel(
                    function,
                    grid.x,
                    grid.y,
                    1,
                    block.x,
                    block.y,
                    1,
                    shared_bytes,
                    stream.cast(),
                    pointers.as_mut_ptr(),
                    ptr::null_mut(),
                )
            };
        });
        if answer == sys::CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        Err(GpuError::LaunchFailed {
            kernel: K::NAME,
            grid: (grid.x, grid.y),
            block: (block.x, block.y),
            shared_bytes,
            reason: format!("{answer:?}, {}", driver::message(answer)),
        })
    }
}

fn load_module(text: &str, target: &'static str) -> Result<Module, GpuError> {
    let text = CString::new(text).map_err(|_| GpuError::Ptx {
        target,
        code: "CUDA_ERROR_INVALID_PTX".to_owned(),
        log: "the text has a null character".to_owned(),
    })?;
    let mut log = vec![0_u8; LOG_BYTES];
    let mut options = [
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    // The driver takes a number that fits a pointer in the place of the pointer.
    let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(log.len())];
    let mut module = ptr::null_mut();
    // SAFETY: a null-terminated text, and as many values as options.
    let answer = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            options.len() as c_uint,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if answer == sys::CUresult::CUDA_SUCCESS {
        return Ok(Module(module));
    }
    let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
    Err(GpuError::Ptx { target, code: format!("{answer:?}"), log })
}

fn find_function(module: &Module, name: &'static str) -> Result<sys::CUfunction, GpuError> {
    let c_name = CString::new(name).map_err(|_| GpuError::MissingKernel { name })?;
    let mut raw = ptr::null_mut();
    // SAFETY: the module is live and its context current; the name is null-terminated.
    match unsafe { sys::cuModuleGetFunction(&mut raw, module.0, c_name.as_ptr()) } {
        sys::CUresult::CUDA_ERROR_NOT_FOUND => Err(GpuError::MissingKernel { name }),
        answer => check("cuModuleGetFunction", answer).map(|()| raw),
    }
}
