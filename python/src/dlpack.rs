//! The structures and functions of DLPack (`dlpack.h`), as far as they are used.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi::PyObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyType};

use crate::place::Shape;

const FLOAT: u8 = 2;
const COMPLEX: u8 = 5;
/// `DLDeviceType`.
pub(crate) const ON_HOST: i32 = 1;
pub(crate) const ON_CUDA: i32 = 2;
pub(crate) const MANAGED: i32 = 13;
const READ_ONLY: u64 = 1;
const PLAIN: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const EXCHANGE: &CStr = c"dlpack_exchange_api";
/// Of the structures below.
const MAJOR_VERSION: u32 = 1;

#[repr(C)]
struct DlTensor {
    data: *const c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
struct Versioned {
    version: [u32; 2],
    manager: *const c_void,
    deleter: *const c_void,
    flags: u64,
    tensor: DlTensor,
}

/// The functions of a library (`DLPackExchangeAPI`, since DLPack 1.2).
#[repr(C)]
struct ExchangeApi {
    version: [u32; 2],
    /// One of an earlier major version, or null.
    previous: *const ExchangeApi,
    _owning: [*const c_void; 3],
    tensor: Option<ReadTensor>,
    current_stream: Option<CurrentStream>,
}

type ReadTensor = unsafe extern "C" fn(*mut PyObject, *mut DlTensor) -> c_int;
type CurrentStream = unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int;

/// The functions by which a library says what its tensors are without a call of Python.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    tensor: ReadTensor,
    current_stream: CurrentStream,
}

pub(crate) struct Tensor {
    pub(crate) address: u64,
    /// A `DLDeviceType`, and the number of the device.
    pub(crate) device: [i32; 2],
    code: u8,
    bits: u8,
    lanes: u16,
    pub(crate) shape: Shape,
    pub(crate) strides: Option<Shape>,
}

/// What is in the capsule, which goes on owning it, and whether it is read-only.
pub(crate) fn tensor(capsule: &Bound<'_, PyCapsule>) -> PyResult<(Tensor, bool)> {
    let at = |name| capsule.pointer_checked(Some(name));
    if capsule.is_valid_checked(Some(VERSIONED)) {
        // SAFETY: a capsule of this name holds this structure while it lives.
        let managed = unsafe { at(VERSIONED)?.cast::<Versioned>().as_ref() };
        if managed.version[0] != MAJOR_VERSION {
            let version = managed.version[0];
            return Err(PyTypeError::new_err(format!("there is no DLPack version {version}")));
        }
        // SAFETY: as above.
        let tensor = unsafe { read(&managed.tensor) };
        return Ok((tensor, managed.flags & READ_ONLY != 0));
    }
    // SAFETY: a capsule of this name holds a structure that begins with this one while it lives.
    let tensor = unsafe { read(at(PLAIN)?.cast::<DlTensor>().as_ref()) };
    Ok((tensor, false))
}

/// # Safety
/// The tensor is one of DLPack: `shape` and `strides`, which may be null, have `ndim` elements.
unsafe fn read(tensor: &DlTensor) -> Tensor {
    let dimensions = usize::try_from(tensor.ndim).unwrap_or(0);
    let numbers = |from: *const i64| {
        let mut sizes = [1; 2];
        for (i, size) in sizes.iter_mut().enumerate().take(dimensions) {
            // SAFETY: the caller's promise.
            *size = unsafe { *from.add(i) };
        }
        Shape::new(dimensions, sizes)
    };
    Tensor {
        address: (tensor.data as u64).wrapping_add(tensor.byte_offset),
        device: tensor.device,
        code: tensor.code,
        bits: tensor.bits,
        lanes: tensor.lanes,
        shape: numbers(tensor.shape),
        strides: (!tensor.strides.is_null()).then(|| numbers(tensor.strides)),
    }
}

impl Tensor {
    /// NumPy's name of the element type, if it is one of those that operators have.
    pub(crate) fn dtype(&self) -> Option<&'static str> {
        Some(match (self.code, self.bits, self.lanes) {
            (FLOAT, 64, 1) => "float64",
            (FLOAT, 32, 1) => "float32",
            (COMPLEX, 128, 1) => "complex128",
            (COMPLEX, 64, 1) => "complex64",
            _ => return None,
        })
    }
}

impl Exchange {
    /// Those of a type's library; nothing if it does not offer them.
    pub(crate) fn of(kind: &Bound<'_, PyType>) -> Option<Self> {
        let capsule = kind.getattr(intern!(kind.py(), "__dlpack_c_exchange_api__")).ok()?;
        let capsule = capsule.cast::<PyCapsule>().ok()?;
        let mut api: *const ExchangeApi =
            capsule.pointer_checked(Some(EXCHANGE)).ok()?.as_ptr().cast();
        // SAFETY: a capsule of this name holds such a structure, or a later one that begins with the
        // version and the pointer to an earlier one. They live as long as the library, which has the type.
        while unsafe { api.as_ref() }?.version[0] > MAJOR_VERSION {
            // SAFETY: as above.
            api = unsafe { (*api).previous };
        }
        // SAFETY: as above.
        let api = unsafe { api.as_ref() }.filter(|api| api.version[0] == MAJOR_VERSION)?;
        Some(Self { tensor: api.tensor?, current_stream: api.current_stream? })
    }

    /// What is known of `x`, which is of the type or of one derived from it.
    pub(crate) fn tensor(self, x: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let mut tensor = MaybeUninit::<DlTensor>::uninit();
        // SAFETY: an object of the library, which fills the structure and keeps what that points to while
        // nobody changes the object: Python is not called before it is read.
        if unsafe { (self.tensor)(x.as_ptr(), tensor.as_mut_ptr()) } != 0 {
            return Err(failed(x.py()));
        }
        // SAFETY: the function says that it has filled it.
        Ok(unsafe { read(tensor.assume_init_ref()) })
    }

    /// The stream in which the library works on a device now.
    pub(crate) fn current_stream(
        self,
        py: Python<'_>,
        [kind, number]: [i32; 2],
    ) -> PyResult<usize> {
        let mut stream = ptr::null_mut();
        // SAFETY: points to a pointer, which the function sets.
        if unsafe { (self.current_stream)(kind, number, &mut stream) } != 0 {
            return Err(failed(py));
        }
        Ok(stream as usize)
    }
}

/// The error of a function that has failed.
fn failed(py: Python<'_>) -> PyErr {
    let none = || PyBufferError::new_err("a function of DLPack failed without saying why");
    PyErr::take(py).unwrap_or_else(none)
}
