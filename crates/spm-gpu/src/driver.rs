//! The functions of libcuda that `cust` links against, each forwarded at its first call.
//!
//! `cust` wants `-lcuda`. So that one binary runs with and without a driver, this module defines
//! the symbols itself and opens libcuda.so.1 (which comes with the driver, not with the toolkit)
//! when the first of them is called. Without a driver every call answers `CUDA_ERROR_NO_DEVICE`.
//!
//! The symbols are weak and hidden. Weak: another definition in the same program goes first and
//! does not clash. Hidden: they are seen inside of one executable or shared library only, so that
//! no other library of the process gets a forwarder in place of the driver. Code of the same
//! executable that declares one of these functions does get the forwarder, which passes arguments
//! as they are and answers with [`result`]'s code.
//!
//! One line of the table below per symbol, under the name that the headers give it (`_v2` where the
//! header has a `#define` to it). A signature that is not the one of `cust`'s bindings does not
//! compile.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_uint, c_ushort, c_void};
use std::sync::OnceLock;

use cust::sys::*;
use libloading::Library;

/// File names under which the driver's library is looked for.
const NAMES: &[&str] = &["libcuda.so.1", "libcuda.so"];

/// The driver's library, or why it could not be opened.
pub(crate) fn library() -> Result<&'static Library, &'static str> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    let opened = LIBRARY.get_or_init(|| {
        let mut reason = String::new();
        for name in NAMES {
            // SAFETY: opening the driver runs its initialisers, which is what every CUDA program
            // does when it starts.
            match unsafe { Library::new(*name) } {
                Ok(library) => return Ok(library),
                Err(error) if reason.is_empty() => reason = with_causes(&error),
                Err(_) => {}
            }
        }
        Err(reason)
    });
    opened.as_ref().map_err(String::as_str)
}

/// An error and what caused it, in one line: the loader's own words are in the cause.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}

/// The address of a driver function, if there is a driver and it has the function.
fn entry(name: &str) -> Option<*const c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: only the address is taken here; the table gives it the type of the header.
    let symbol = unsafe { library().ok()?.get::<*const c_void>(name.as_bytes_with_nul()) };
    symbol.ok().map(|symbol| *symbol)
}

/// An address that can lie in a static.
struct Entry(OnceLock<Option<*const c_void>>);
// SAFETY: the address of a function that stays loaded for the life of the process.
unsafe impl Sync for Entry {}
// SAFETY: as above.
unsafe impl Send for Entry {}

/// The driver's answer as `cust`'s enum, which has no room for the codes of later drivers.
pub(crate) fn result(code: u32) -> CUresult {
    let known = matches!(code,
        0..=8 | 34 | 100..=102 | 200..=202 | 205..=224 | 300..=304 | 400..=401 | 500 | 600
        | 700..=705 | 708..=720 | 800..=809 | 900..=911 | 999);
    if known {
        // SAFETY: CUresult is repr(u32) and has exactly the values above (CUDA 11.4).
        unsafe { std::mem::transmute::<u32, CUresult>(code) }
    } else {
        CUresult::CUDA_ERROR_UNKNOWN
    }
}

/// The driver's words for a code.
pub(crate) fn message(code: CUresult) -> String {
    let mut text = std::ptr::null();
    // SAFETY: points to a pointer, which the driver sets to a static string or to null.
    let answer = unsafe { cuGetErrorString(code, &mut text) };
    if answer != CUresult::CUDA_SUCCESS || text.is_null() {
        return "unknown to this driver".to_owned();
    }
    // SAFETY: a static, null-terminated string of the driver.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// How a parameter is passed in C. An enum of the header is an int there: callers that know a later
/// header than `cust` pass values which are none of the enum in Rust.
trait Abi {
    type Raw;
}

macro_rules! passed_as {
    ($($type:ty => $raw:ty),* $(,)?) => {
        $(
            const _: () = assert!(size_of::<$type>() == size_of::<$raw>());
            impl Abi for $type {
                type Raw = $raw;
            }
        )*
    };
}

impl<T> Abi for *mut T {
    type Raw = Self;
}

impl<T> Abi for *const T {
    type Raw = Self;
}

passed_as! {
    c_int => c_int,
    c_uchar => c_uchar,
    c_uint => c_uint,
    c_ushort => c_ushort,
    CUdeviceptr => CUdeviceptr,
    usize => usize,
    CUhostFn => CUhostFn,
    CUoccupancyB2DSize => CUoccupancyB2DSize,
    CUdevice_attribute => c_uint,
    CUfunc_cache => c_uint,
    CUfunction_attribute => c_uint,
    CUjitInputType => c_uint,
    CUlimit => c_uint,
    CUpointer_attribute => c_uint,
    CUmem_advise => c_uint,
    CUresult => c_uint,
    CUsharedconfig => c_uint,
}

/// The instruction of a jump that returns to the caller's caller.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
macro_rules! jump {
    () => {
        "jmp"
    };
}
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
macro_rules! jump {
    () => {
        "b"
    };
}

macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            const _: unsafe extern "C" fn($($type),*) -> CUresult = cust::sys::$name;

            // Rust has no attribute for weak or hidden symbols.
            #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
            std::arch::global_asm!(
                concat!(".pushsection .text.", stringify!($name), ",\"ax\",@progbits"),
                ".p2align 4",
                concat!(".weak ", stringify!($name)),
                concat!(".hidden ", stringify!($name)),
                concat!(".type ", stringify!($name), ",@function"),
                concat!(stringify!($name), ":"),
                concat!(jump!(), " {forwarder}"),
                concat!(".size ", stringify!($name), ", . - ", stringify!($name)),
                ".popsection",
                forwarder = sym forwarders::$name,
            );
        )*

        mod forwarders {
            use super::*;

            $(
                #[allow(non_snake_case, reason = "the names of the header")]
                #[cfg_attr(
                    not(all(
                        target_os = "linux",
                        any(target_arch = "x86_64", target_arch = "aarch64")
                    )),
                    unsafe(no_mangle)
                )]
                pub(super) unsafe extern "C" fn $name(
                    $($argument: <$type as Abi>::Raw),*
                ) -> CUresult {
                    static ENTRY: Entry = Entry(OnceLock::new());
                    match *ENTRY.0.get_or_init(|| entry(stringify!($name))) {
                        Some(address) => {
                            // SAFETY: the driver's function of this name has this signature; it
                            // returns an enum of the size of an int.
                            let function = unsafe {
                                std::mem::transmute::<
                                    *const c_void,
                                    unsafe extern "C" fn($(<$type as Abi>::Raw),*) -> u32,
                                >(address)
                            };
                            // SAFETY: the caller keeps the contract of the driver's function.
                            result(unsafe { function($($argument),*) })
                        }
                        None => CUresult::CUDA_ERROR_NO_DEVICE,
                    }
                }
            )*
        }

        /// Every symbol. Naming them in code that a program surely uses pulls this file out of its
        /// archive before the linker meets `cust`, whatever order the linker reads them in.
        pub(crate) fn keep_symbols() {
            std::hint::black_box([$(cust::sys::$name as *const ()),*]);
        }
    };
}

forward! {
    cuArray3DCreate_v2(a: *mut CUarray, b: *const CUDA_ARRAY3D_DESCRIPTOR);
    cuArray3DGetDescriptor_v2(a: *mut CUDA_ARRAY3D_DESCRIPTOR, b: CUarray);
    cuArrayDestroy(a: CUarray);
    cuCtxCreate_v2(a: *mut CUcontext, b: c_uint, c: CUdevice);
    cuCtxDestroy_v2(a: CUcontext);
    cuCtxEnablePeerAccess(a: CUcontext, b: c_uint);
    cuCtxGetApiVersion(a: CUcontext, b: *mut c_uint);
    cuCtxGetCacheConfig(a: *mut CUfunc_cache);
    cuCtxGetCurrent(a: *mut CUcontext);
    cuCtxGetDevice(a: *mut CUdevice);
    cuCtxGetFlags(a: *mut c_uint);
    cuCtxGetLimit(a: *mut usize, b: CUlimit);
    cuCtxGetSharedMemConfig(a: *mut CUsharedconfig);
    cuCtxGetStreamPriorityRange(a: *mut c_int, b: *mut c_int);
    cuCtxPopCurrent_v2(a: *mut CUcontext);
    cuCtxPushCurrent_v2(a: CUcontext);
    cuCtxSetCacheConfig(a: CUfunc_cache);
    cuCtxSetCurrent(a: CUcontext);
    cuCtxSetLimit(a: CUlimit, b: usize);
    cuCtxSetSharedMemConfig(a: CUsharedconfig);
    cuCtxSynchronize();
    cuDestroyExternalMemory(a: CUexternalMemory);
    cuDeviceCanAccessPeer(a: *mut c_int, b: CUdevice, c: CUdevice);
    cuDeviceGet(a: *mut CUdevice, b: c_int);
    cuDeviceGetAttribute(a: *mut c_int, b: CUdevice_attribute, c: CUdevice);
    cuDeviceGetCount(a: *mut c_int);
    cuDeviceGetName(a: *mut c_char, b: c_int, c: CUdevice);
    cuDevicePrimaryCtxRelease_v2(a: CUdevice);
    cuDevicePrimaryCtxReset_v2(a: CUdevice);
    cuDevicePrimaryCtxRetain(a: *mut CUcontext, b: CUdevice);
    cuDevicePrimaryCtxSetFlags_v2(a: CUdevice, b: c_uint);
    cuDeviceTotalMem_v2(a: *mut usize, b: CUdevice);
    cuDriverGetVersion(a: *mut c_int);
    cuEventCreate(a: *mut CUevent, b: c_uint);
    cuEventDestroy_v2(a: CUevent);
    cuEventElapsedTime(a: *mut f32, b: CUevent, c: CUevent);
    cuEventQuery(a: CUevent);
    cuEventRecord(a: CUevent, b: CUstream);
    cuEventSynchronize(a: CUevent);
    cuExternalMemoryGetMappedBuffer(
        a: *mut CUdeviceptr, b: CUexternalMemory, c: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC
    );
    cuFuncGetAttribute(a: *mut c_int, b: CUfunction_attribute, c: CUfunction);
    cuFuncSetAttribute(a: CUfunction, b: CUfunction_attribute, c: c_int);
    cuFuncSetCacheConfig(a: CUfunction, b: CUfunc_cache);
    cuFuncSetSharedMemConfig(a: CUfunction, b: CUsharedconfig);
    cuGetErrorName(a: CUresult, b: *mut *const c_char);
    cuGetErrorString(a: CUresult, b: *mut *const c_char);
    cuGraphAddKernelNode(
        a: *mut CUgraphNode, b: CUgraph, c: *const CUgraphNode, d: usize,
        e: *const CUDA_KERNEL_NODE_PARAMS
    );
    cuGraphCreate(a: *mut CUgraph, b: c_uint);
    cuGraphDebugDotPrint(a: CUgraph, b: *const c_char, c: c_uint);
    cuGraphDestroy(a: CUgraph);
    cuGraphGetEdges(a: CUgraph, b: *mut CUgraphNode, c: *mut CUgraphNode, d: *mut usize);
    cuGraphGetNodes(a: CUgraph, b: *mut CUgraphNode, c: *mut usize);
    cuGraphKernelNodeGetParams(a: CUgraphNode, b: *mut CUDA_KERNEL_NODE_PARAMS);
    cuGraphNodeGetType(a: CUgraphNode, b: *mut CUgraphNodeType);
    cuImportExternalMemory(a: *mut CUexternalMemory, b: *const CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
    cuInit(a: c_uint);
    cuLaunchHostFunc(a: CUstream, b: CUhostFn, c: *mut c_void);
    cuLaunchKernel(
        a: CUfunction, b: c_uint, c: c_uint, d: c_uint, e: c_uint, f: c_uint, g: c_uint,
        h: c_uint, i: CUstream, j: *mut *mut c_void, k: *mut *mut c_void
    );
    cuLinkAddData_v2(
        a: CUlinkState, b: CUjitInputType, c: *mut c_void, d: usize, e: *const c_char, f: c_uint,
        g: *mut CUjit_option, h: *mut *mut c_void
    );
    cuLinkComplete(a: CUlinkState, b: *mut *mut c_void, c: *mut usize);
    cuLinkCreate_v2(a: c_uint, b: *mut CUjit_option, c: *mut *mut c_void, d: *mut CUlinkState);
    cuLinkDestroy(a: CUlinkState);
    cuMemAdvise(a: CUdeviceptr, b: usize, c: CUmem_advise, d: CUdevice);
    cuMemAllocAsync(a: *mut CUdeviceptr, b: usize, c: CUstream);
    cuMemAllocHost_v2(a: *mut *mut c_void, b: usize);
    cuMemAllocManaged(a: *mut CUdeviceptr, b: usize, c: c_uint);
    cuMemAlloc_v2(a: *mut CUdeviceptr, b: usize);
    cuMemFreeAsync(a: CUdeviceptr, b: CUstream);
    cuMemFreeHost(a: *mut c_void);
    cuMemFree_v2(a: CUdeviceptr);
    cuMemGetInfo_v2(a: *mut usize, b: *mut usize);
    cuMemPrefetchAsync(a: CUdeviceptr, b: usize, c: CUdevice, d: CUstream);
    cuMemcpy2DAsync_v2(a: *const CUDA_MEMCPY2D, b: CUstream);
    cuMemcpy2D_v2(a: *const CUDA_MEMCPY2D);
    cuMemcpyAtoH_v2(a: *mut c_void, b: CUarray, c: usize, d: usize);
    cuMemcpyDtoDAsync_v2(a: CUdeviceptr, b: CUdeviceptr, c: usize, d: CUstream);
    cuMemcpyDtoD_v2(a: CUdeviceptr, b: CUdeviceptr, c: usize);
    cuMemcpyDtoHAsync_v2(a: *mut c_void, b: CUdeviceptr, c: usize, d: CUstream);
    cuMemcpyDtoH_v2(a: *mut c_void, b: CUdeviceptr, c: usize);
    cuMemcpyHtoA_v2(a: CUarray, b: usize, c: *const c_void, d: usize);
    cuMemcpyHtoDAsync_v2(a: CUdeviceptr, b: *const c_void, c: usize, d: CUstream);
    cuMemcpyHtoD_v2(a: CUdeviceptr, b: *const c_void, c: usize);
    cuMemcpyPeerAsync(
        a: CUdeviceptr, b: CUcontext, c: CUdeviceptr, d: CUcontext, e: usize, f: CUstream
    );
    cuMemsetD16Async(a: CUdeviceptr, b: c_ushort, c: usize, d: CUstream);
    cuMemsetD16_v2(a: CUdeviceptr, b: c_ushort, c: usize);
    cuMemsetD32Async(a: CUdeviceptr, b: c_uint, c: usize, d: CUstream);
    cuMemsetD32_v2(a: CUdeviceptr, b: c_uint, c: usize);
    cuMemsetD8Async(a: CUdeviceptr, b: c_uchar, c: usize, d: CUstream);
    cuMemsetD8_v2(a: CUdeviceptr, b: c_uchar, c: usize);
    cuModuleGetFunction(a: *mut CUfunction, b: CUmodule, c: *const c_char);
    cuModuleGetGlobal_v2(a: *mut CUdeviceptr, b: *mut usize, c: CUmodule, d: *const c_char);
    cuModuleLoad(a: *mut CUmodule, b: *const c_char);
    cuModuleLoadData(a: *mut CUmodule, b: *const c_void);
    cuModuleLoadDataEx(
        a: *mut CUmodule, b: *const c_void, c: c_uint, d: *mut CUjit_option, e: *mut *mut c_void
    );
    cuModuleUnload(a: CUmodule);
    cuOccupancyAvailableDynamicSMemPerBlock(a: *mut usize, b: CUfunction, c: c_int, d: c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(a: *mut c_int, b: CUfunction, c: c_int, d: usize);
    cuOccupancyMaxPotentialBlockSize(
        a: *mut c_int, b: *mut c_int, c: CUfunction, d: CUoccupancyB2DSize, e: usize, f: c_int
    );
    cuPointerGetAttribute(a: *mut c_void, b: CUpointer_attribute, c: CUdeviceptr);
    cuStreamCreateWithPriority(a: *mut CUstream, b: c_uint, c: c_int);
    cuStreamDestroy_v2(a: CUstream);
    cuStreamGetFlags(a: CUstream, b: *mut c_uint);
    cuStreamGetPriority(a: CUstream, b: *mut c_int);
    cuStreamSynchronize(a: CUstream);
    cuStreamWaitEvent(a: CUstream, b: CUevent, c: c_uint);
    cuSurfObjectCreate(a: *mut CUsurfObject, b: *const CUDA_RESOURCE_DESC);
    cuSurfObjectDestroy(a: CUsurfObject);
    cuSurfObjectGetResourceDesc(a: *mut CUDA_RESOURCE_DESC, b: CUsurfObject);
    cuTexObjectCreate(
        a: *mut CUtexObject, b: *const CUDA_RESOURCE_DESC, c: *const CUDA_TEXTURE_DESC,
        d: *const CUDA_RESOURCE_VIEW_DESC
    );
    cuTexObjectDestroy(a: CUtexObject);
    cuTexObjectGetResourceDesc(a: *mut CUDA_RESOURCE_DESC, b: CUtexObject);
    cuTexObjectGetResourceViewDesc(a: *mut CUDA_RESOURCE_VIEW_DESC, b: CUtexObject);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_every_call_answers_no_device() {
        if library().is_ok() {
            println!("skipped: this machine has a driver");
            return;
        }
        let mut count = -1;
        // SAFETY: both take a flag or a pointer to an int.
        let answers = unsafe { [cust::sys::cuInit(0), cust::sys::cuDeviceGetCount(&mut count)] };
        assert_eq!(answers, [CUresult::CUDA_ERROR_NO_DEVICE; 2]);
        assert_eq!(count, -1);
    }

    #[test]
    fn codes_of_later_drivers_become_unknown() {
        assert_eq!(result(0), CUresult::CUDA_SUCCESS);
        assert_eq!(result(2), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert_eq!(result(226), CUresult::CUDA_ERROR_UNKNOWN);
        assert_eq!(result(912), CUresult::CUDA_ERROR_UNKNOWN);
    }
}
