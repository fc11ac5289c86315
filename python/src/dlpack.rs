//! The structures of DLPack (`dlpack.h`), as far as they are read.

use std::ffi::{CStr, c_void};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::place::Shape;

pub(crate) const FLOAT: u8 = 2;
pub(crate) const COMPLEX: u8 = 5;
const READ_ONLY: u64 = 1;
const PLAIN: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

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

pub(crate) struct Tensor {
    pub(crate) address: u64,
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
    pub(crate) shape: Shape,
    pub(crate) strides: Option<Shape>,
}

/// What is in the capsule, which goes on owning it, and whether it is read-only.
pub(crate) fn tensor(capsule: &Bound<'_, PyCapsule>) -> PyResult<(Tensor, bool)> {
    let at = |name| capsule.pointer_checked(Some(name));
    if capsule.is_valid_checked(Some(VERSIONED)) {
        // SAFETY: a capsule of this name holds this structure while it lives.
        let managed = unsafe { at(VERSIONED)?.cast::<Versioned>().as_ref() };
        if managed.version[0] != 1 {
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
        code: tensor.code,
        bits: tensor.bits,
        lanes: tensor.lanes,
        shape: numbers(tensor.shape),
        strides: (!tensor.strides.is_null()).then(|| numbers(tensor.strides)),
    }
}
