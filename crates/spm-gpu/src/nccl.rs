//! NVIDIA's NCCL, loaded at run time: messages and sums between the GPUs of several threads or processes.
//!
//! Looked for: the file or folder that the variable `SPM_NCCL` names, the loader's own search, and the folder of
//! PyPI's package `nvidia-nccl-cu12` or `nvidia-nccl-cu13`. Without it every call is
//! [`GpuError::LibraryAbsent`].

use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;
use spm_gpu_kernels::device::Element;

use crate::device::Device;
use crate::driver::with_causes;
use crate::error::GpuError;
use crate::library::{Search, functions};
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::DeviceReal;
use crate::stream::Stream;

const SEARCH: Search = Search {
    variable: "SPM_NCCL",
    prefix: "libnccl.",
    names: &["libnccl.so.2"],
    packages: &["nvidia/nccl/lib"],
    install: "NCCL (PyPI's nvidia-nccl-cu13)",
};

/// `ncclResult_t`: success.
const SUCCESS: c_int = 0;
/// `ncclDataType_t`: bytes.
const UINT8: c_int = 1;
/// `ncclRedOp_t`: sum.
const SUM: c_int = 0;
/// The first version with ncclSend, as ncclGetVersion has it.
const FIRST_VERSION: c_int = 2700;
/// Bytes of `ncclUniqueId`.
const ID_BYTES: usize = 128;

/// `ncclComm_t`.
type Comm = *mut c_void;

/// `ncclUniqueId`, which is passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawId([u8; ID_BYTES]);

functions! {
    /// The functions of NCCL 2 that are called.
    ncclGetErrorString
    required {
        ncclGetVersion(*mut c_int);
        ncclGetUniqueId(*mut RawId);
        ncclCommInitRank(*mut Comm, c_int, RawId, c_int);
        ncclCommAbort(Comm);
        ncclSend(*const c_void, usize, c_int, c_int, Comm, *mut c_void);
        ncclRecv(*mut c_void, usize, c_int, c_int, Comm, *mut c_void);
        ncclAllReduce(*const c_void, *mut c_void, usize, c_int, c_int, Comm, *mut c_void);
        ncclGroupStart();
        ncclGroupEnd();
    }
    optional {}
}

/// An opened NCCL; it stays open for the life of the process.
struct Api {
    functions: Functions,
    /// As ncclGetVersion has it.
    version: c_int,
    path: PathBuf,
    _library: Library,
}

impl Api {
    /// Opens the library at the first call ([`Search::find`]).
    fn open() -> Result<&'static Self, GpuError> {
        static OPENED: OnceLock<Result<Api, String>> = OnceLock::new();
        OPENED
            .get_or_init(|| SEARCH.find(load))
            .as_ref()
            .map_err(|reason| GpuError::LibraryAbsent { library: "NCCL", reason: reason.clone() })
    }

    fn check(&self, call: &'static str, status: c_int) -> Result<(), GpuError> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: takes any status, and returns a static string.
        let text = unsafe { (self.functions.ncclGetErrorString)(status) };
        let text = match text.is_null() {
            true => "no message".into(),
            // SAFETY: a null-terminated, static string.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy(),
        };
        Err(GpuError::Library { call, message: format!("{text} (status {status})") })
    }
}

fn load(library: Library, path: &Path) -> Result<Api, String> {
    // SAFETY: it has the name of NCCL 2; nothing else is called before the version is known.
    let functions = unsafe { Functions::load(&library) }.map_err(|error| with_causes(&error))?;
    let mut version = 0;
    // SAFETY: points to an int.
    let status = unsafe { (functions.ncclGetVersion)(&mut version) };
    if status != SUCCESS || version < FIRST_VERSION {
        return Err(format!(
            "{} is version {version}, not {FIRST_VERSION} or later",
            path.display()
        ));
    }
    Ok(Api { functions, version, path: path.to_owned(), _library: library })
}

/// The NCCL of this machine: its version and the file, or why there is none.
///
/// # Errors
/// [`GpuError::LibraryAbsent`].
pub fn version() -> Result<([u32; 3], &'static Path), GpuError> {
    let api = Api::open()?;
    // 2708 is 2.7.8; 22809 is 2.28.9.
    let number = api.version.unsigned_abs();
    let unit = if number < 10_000 { 1000 } else { 10_000 };
    Ok(([number / unit, number % unit / 100, number % 100], &api.path))
}

/// The bytes by which ranks find each other: one rank makes them and tells all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NcclId([u8; ID_BYTES]);

impl fmt::Debug for NcclId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NcclId").finish_non_exhaustive()
    }
}

impl NcclId {
    /// New ones.
    ///
    /// # Errors
    /// [`GpuError::LibraryAbsent`], [`GpuError::Library`].
    pub fn new() -> Result<Self, GpuError> {
        let api = Api::open()?;
        let mut id = RawId([0; ID_BYTES]);
        // SAFETY: points to an id.
        api.check("ncclGetUniqueId", unsafe { (api.functions.ncclGetUniqueId)(&mut id) })?;
        Ok(Self(id.0))
    }

    /// The bytes, to send them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Those that were sent; `None` for another number of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// One rank of an NCCL communicator, on a device of its own.
///
/// What is put into a stream is done when all ranks that take part have put theirs; a rank that never does
/// leaves the others waiting. Dropping it ends what has not been done yet: synchronise the streams before.
pub struct NcclRank {
    api: &'static Api,
    device: Device,
    rank: usize,
    ranks: usize,
    /// NCCL takes one call for a communicator at a time.
    raw: Mutex<Raw>,
}

struct Raw(Comm);

// SAFETY: a handle that any thread may use, one at a time.
unsafe impl Send for Raw {}

impl fmt::Debug for NcclRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, ranks, device, .. } = self;
        let mut out = f.debug_struct("NcclRank");
        out.field("rank", rank).field("ranks", ranks).field("device", device);
        out.finish_non_exhaustive()
    }
}

impl NcclRank {
    /// Rank `rank` of `ranks`, which all make this call with the same `id`; it returns when all have.
    ///
    /// # Errors
    /// [`GpuError::LibraryAbsent`], also for an emulated device; [`GpuError::Library`], for example when two
    /// ranks have one device; [`GpuError::Shape`] for a rank that is not below `ranks`.
    pub fn new(device: &Device, id: &NcclId, rank: usize, ranks: usize) -> Result<Self, GpuError> {
        if device.is_emulated() {
            let reason = "it has no emulated devices".to_owned();
            return Err(GpuError::LibraryAbsent { library: "NCCL", reason });
        }
        let (Ok(number), Ok(count)) = (c_int::try_from(rank), c_int::try_from(ranks)) else {
            let (what, expected) = ("ranks of NCCL", c_int::MAX as usize);
            return Err(GpuError::Shape { what, expected, found: ranks.max(rank) });
        };
        if rank >= ranks {
            return Err(GpuError::Shape { what: "rank of NCCL", expected: ranks, found: rank });
        }
        let api = Api::open()?;
        device.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: points to a handle; an id is any bytes, which NCCL checks.
        let status =
            unsafe { (api.functions.ncclCommInitRank)(&mut raw, count, RawId(id.0), number) };
        api.check("ncclCommInitRank", status)?;
        Ok(Self { api, device: device.clone(), rank, ranks, raw: Mutex::new(Raw(raw)) })
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Puts messages into the stream, all at once: to each of some ranks a part of `from`, and from each of
    /// some ranks a part of `to`. Collective: what a rank sends to another one, that one receives with as
    /// many elements.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for a part beyond the end, a rank that is not there, or a message to this rank that
    /// is not received; buffers or a stream of another device; [`GpuError::Library`].
    pub fn exchange<T: Element>(
        &self,
        sends: &[(usize, Range<usize>)],
        from: &DeviceBuffer<T>,
        receives: &[(usize, Range<usize>)],
        to: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        check_operand("from", &self.device, from, from.len())?;
        check_operand("to", &self.device, to, to.len())?;
        stream.check_device(&self.device)?;
        for (list, length) in [(sends, from.len()), (receives, to.len())] {
            for (rank, part) in list {
                if *rank >= self.ranks {
                    let what = "rank of a message";
                    return Err(GpuError::Shape { what, expected: self.ranks, found: *rank });
                }
                if part.start > part.end || part.end > length {
                    let what = "part of a message";
                    return Err(GpuError::Shape { what, expected: length, found: part.end });
                }
            }
        }
        let to_itself = |list: &[(usize, Range<usize>)]| -> usize {
            list.iter().filter(|(rank, _)| *rank == self.rank).map(|(_, part)| part.len()).sum()
        };
        let (sent, received) = (to_itself(sends), to_itself(receives));
        if sent != received {
            let what = "message to this rank";
            return Err(GpuError::Shape { what, expected: sent, found: received });
        }
        let bytes = |part: &Range<usize>| part.len() * size_of::<T>();
        let place = |address: u64, part: &Range<usize>| -> *mut c_void {
            ptr::without_provenance_mut((address as usize) + part.start * size_of::<T>())
        };
        let (from, to, queue) = (from.address(), to.address(), stream.as_raw());
        let functions = &self.api.functions;
        self.group(|raw| {
            for (rank, part) in sends.iter().filter(|(_, part)| !part.is_empty()) {
                let (part, bytes) = (place(from, part), bytes(part));
                // SAFETY: so many bytes of a buffer on this communicator's device; once it is dropped, they are
                // nobody's before the stream is done.
                let status =
                    unsafe { (functions.ncclSend)(part, bytes, UINT8, *rank as c_int, raw, queue) };
                self.api.check("ncclSend", status)?;
            }
            for (rank, part) in receives.iter().filter(|(_, part)| !part.is_empty()) {
                let (part, bytes) = (place(to, part), bytes(part));
                // SAFETY: as above; every bit pattern is an element, and the borrow is exclusive.
                let status =
                    unsafe { (functions.ncclRecv)(part, bytes, UINT8, *rank as c_int, raw, queue) };
                self.api.check("ncclRecv", status)?;
            }
            Ok(())
        })
    }

    /// Puts into the stream what replaces each of the first `length` elements of `values` by its sum over all
    /// ranks. Collective.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for more elements than there are; a buffer or a stream of another device;
    /// [`GpuError::Library`].
    pub fn sum<T: DeviceReal>(
        &self,
        values: &mut DeviceBuffer<T>,
        length: usize,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        check_operand("values", &self.device, values, values.len())?;
        stream.check_device(&self.device)?;
        if length > values.len() {
            return Err(GpuError::Shape { what: "sums", expected: values.len(), found: length });
        }
        // `ncclDataType_t`.
        let kind = match size_of::<T>() {
            4 => 7,
            _ => 8,
        };
        let address: *mut c_void = ptr::without_provenance_mut(values.address() as usize);
        self.group(|raw| {
            // SAFETY: so many elements on this communicator's device, nobody's before the stream is done once they are
            // dropped; in place.
            let status = unsafe {
                let sum = self.api.functions.ncclAllReduce;
                sum(address, address, length, kind, SUM, raw, stream.as_raw())
            };
            self.api.check("ncclAllReduce", status)
        })
    }

    /// Calls of one group.
    fn group(&self, calls: impl FnOnce(Comm) -> Result<(), GpuError>) -> Result<(), GpuError> {
        self.device.make_current()?;
        let functions = &self.api.functions;
        let raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: no arguments; ended below, in this thread.
        self.api.check("ncclGroupStart", unsafe { (functions.ncclGroupStart)() })?;
        let made = calls(raw.0);
        // SAFETY: no arguments; the group was started above.
        let ended = self.api.check("ncclGroupEnd", unsafe { (functions.ncclGroupEnd)() });
        made.and(ended)
    }
}

impl Drop for NcclRank {
    fn drop(&mut self) {
        let raw = self.raw.get_mut().unwrap_or_else(PoisonError::into_inner).0;
        if self.device.make_current().is_ok() {
            // Not ncclCommDestroy, which waits for ranks that may be gone.
            // SAFETY: of ncclCommInitRank, given back once.
            let _ = unsafe { (self.api.functions.ncclCommAbort)(raw) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_library_every_call_says_so() {
        match version() {
            Ok((version, path)) => {
                assert_eq!(version[0], 2);
                assert!(path.to_string_lossy().contains("nccl"));
            }
            Err(error) => {
                assert!(
                    error.is_absent() && error.to_string().contains(SEARCH.variable),
                    "{error}"
                );
                assert_eq!(NcclId::new().unwrap_err(), error);
            }
        }
    }

    #[test]
    fn an_emulated_device_and_a_broken_id_are_refused() {
        let id = NcclId::from_bytes(&[7; ID_BYTES]).unwrap();
        assert_eq!(id.as_bytes(), [7; ID_BYTES]);
        assert_eq!(NcclId::from_bytes(&[7; ID_BYTES - 1]), None);
        let device = Device::emulated(Default::default());
        assert!(NcclRank::new(&device, &id, 0, 1).unwrap_err().is_absent());
    }
}
