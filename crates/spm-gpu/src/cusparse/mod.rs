//! NVIDIA's cuSPARSE as a baseline, loaded at run time.
//!
//! Its kernels are entries of the registries [`crate::spmv`], [`crate::spmm`] and
//! [`crate::transpose`]. If the library is not installed, planning them is an error that states the
//! reason. Preprocessing is part of planning.

mod library;
pub(crate) mod spmm;
pub(crate) mod spmv;
pub(crate) mod transpose;

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr;

use spm_formats::kernel::PlanError;
use spm_formats::{CsrView, DenseShape, Layout};
use spm_gpu_kernels::device::Element;

use crate::device::Device;
use crate::error::{CudaVersion, GpuError};
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::stream::Stream;
use crate::{DeviceScalar, matrix};
use library::{BASE_ZERO, Cusparse, INDEX_32I, ORDER_COL, ORDER_ROW};

/// The cuSPARSE of this machine: its version and the file, or why there is none.
///
/// # Errors
/// [`GpuError::LibraryAbsent`]; a device that fails.
pub fn version(device: &Device) -> Result<(CudaVersion, &'static Path), GpuError> {
    let handle = Handle::new(device)?;
    Ok((handle.version()?, &handle.library.path))
}

/// A handle of the library, on one device.
struct Handle {
    library: &'static Cusparse,
    raw: *mut c_void,
    device: Device,
}

// SAFETY: a handle may move between threads; only one uses it at a time (`&mut` in every launch).
unsafe impl Send for Handle {}

impl Handle {
    fn new(device: &Device) -> Result<Self, GpuError> {
        if device.is_emulated() {
            let reason = "the emulator runs kernels of this workspace only".to_owned();
            return Err(GpuError::LibraryAbsent { library: "cuSPARSE", reason });
        }
        let library = Cusparse::open()?;
        device.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: points to a handle.
        let status = unsafe { (library.functions.cusparseCreate)(&mut raw) };
        library.check("cusparseCreate", status)?;
        Ok(Self { library, raw, device: device.clone() })
    }

    /// The handle of a plan. Without the library it is [`PlanError::Unsupported`] with the reason.
    fn of_plan(kernel: &'static str, device: &Device) -> Result<Self, PlanError> {
        Self::new(device).map_err(|error| match error {
            GpuError::LibraryAbsent { .. } => {
                PlanError::Unsupported { kernel, reason: error.to_string() }
            }
            error => error.into(),
        })
    }

    fn version(&self) -> Result<CudaVersion, GpuError> {
        let mut number = 0;
        // SAFETY: points to an int; the handle is live.
        let status = unsafe { (self.library.functions.cusparseGetVersion)(self.raw, &mut number) };
        self.library.check("cusparseGetVersion", status)?;
        let number = number.unsigned_abs();
        Ok(CudaVersion { major: number / 1000, minor: number % 1000 / 100 })
    }

    /// Sets the stream of the next calls.
    fn enter(&self, stream: &Stream) -> Result<(), GpuError> {
        self.device.make_current()?;
        // SAFETY: both are live, and on one device (checked by the plan).
        let status =
            unsafe { (self.library.functions.cusparseSetStream)(self.raw, stream.as_raw()) };
        self.library.check("cusparseSetStream", status)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Its kernels have to be done.
        if self.device.synchronize().is_ok() {
            // SAFETY: created by cusparseCreate, destroyed once, its context current.
            unsafe { (self.library.functions.cusparseDestroy)(self.raw) };
        }
    }
}

/// The kind of a descriptor, which determines how it is destroyed.
#[derive(Clone, Copy)]
enum Kind {
    Matrix,
    Vector,
    Dense,
}

/// A descriptor of the library, which refers to our arrays.
struct Descriptor {
    library: &'static Cusparse,
    raw: *mut c_void,
    kind: Kind,
}

// SAFETY: as for the handle.
unsafe impl Send for Descriptor {}

impl Descriptor {
    /// `create` fills the descriptor and returns the status.
    fn new(
        library: &'static Cusparse,
        kind: Kind,
        call: &'static str,
        create: impl FnOnce(*mut *mut c_void) -> c_int,
    ) -> Result<Self, GpuError> {
        let mut raw = ptr::null_mut();
        library.check(call, create(&mut raw))?;
        Ok(Self { library, raw, kind })
    }

    fn csr<T: DeviceScalar>(handle: &Handle, a: &DeviceCsr<T>) -> Result<Self, GpuError> {
        let library = handle.library;
        Self::new(library, Kind::Matrix, "cusparseCreateCsr", |raw| {
            // SAFETY: the arrays have the sizes of a CSR matrix; the plan keeps them.
            unsafe {
                (library.functions.cusparseCreateCsr)(
                    raw,
                    a.rows() as i64,
                    a.cols() as i64,
                    a.entries() as i64,
                    pointer(&a.row_ptr),
                    pointer(&a.col_ind),
                    pointer(&a.values),
                    INDEX_32I,
                    INDEX_32I,
                    BASE_ZERO,
                    T::CUDA_DATA_TYPE,
                )
            }
        })
    }
}

/// Calls a function for y = alpha A x + beta y or Y = alpha A X + beta Y. All of them take the operands alike, behind whether
/// matrices are transposed; `$last` is the place for the size of a workspace, or the workspace.
macro_rules! multiply {
    ($product:ident, $scaling:expr, $function:expr, [$($operation:expr),*], $last:expr) => {{
        let spm_formats::kernel::Scaling { alpha, beta } = $scaling;
        $function(
            $product.handle.raw,
            $($operation,)*
            (&raw const alpha).cast(),
            $product.matrix.raw,
            $product.x.raw,
            (&raw const beta).cast(),
            $product.y.raw,
            T::CUDA_DATA_TYPE,
            $product.algorithm,
            $last,
        )
    }};
}
pub(crate) use multiply;

/// The operands of products.
impl Descriptor {
    fn vector<T: DeviceScalar>(
        handle: &Handle,
        values: &DeviceBuffer<T>,
    ) -> Result<Self, GpuError> {
        let library = handle.library;
        Self::new(library, Kind::Vector, "cusparseCreateDnVec", |raw| {
            // SAFETY: the buffer has that many elements of that type.
            unsafe {
                (library.functions.cusparseCreateDnVec)(
                    raw,
                    values.len() as i64,
                    pointer(values),
                    T::CUDA_DATA_TYPE,
                )
            }
        })
    }

    /// X or Y with `rows` rows.
    fn dense<T: DeviceScalar>(
        handle: &Handle,
        rows: usize,
        dense: DenseShape,
        values: &DeviceBuffer<T>,
    ) -> Result<Self, GpuError> {
        let library = handle.library;
        let (leading, order) = match dense.layout {
            Layout::RowMajor => (dense.k, ORDER_ROW),
            Layout::ColumnMajor => (rows, ORDER_COL),
        };
        Self::new(library, Kind::Dense, "cusparseCreateDnMat", |raw| {
            // SAFETY: the buffer has rows x k elements of that type.
            unsafe {
                (library.functions.cusparseCreateDnMat)(
                    raw,
                    rows as i64,
                    dense.k as i64,
                    leading as i64,
                    pointer(values),
                    T::CUDA_DATA_TYPE,
                    order,
                )
            }
        })
    }

    /// Replaces the array of an operand by one of the same length.
    fn point_to<T: DeviceScalar>(&self, values: &DeviceBuffer<T>) -> Result<(), GpuError> {
        let functions = &self.library.functions;
        let (call, set) = match self.kind {
            Kind::Vector => ("cusparseDnVecSetValues", functions.cusparseDnVecSetValues),
            Kind::Dense => ("cusparseDnMatSetValues", functions.cusparseDnMatSetValues),
            Kind::Matrix => unreachable!("a matrix is no operand"),
        };
        // SAFETY: the buffer has the length and the type of the descriptor (checked by the plan).
        self.library.check(call, unsafe { set(self.raw, pointer(values)) })
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let functions = &self.library.functions;
        let destroy = match self.kind {
            Kind::Matrix => functions.cusparseDestroySpMat,
            Kind::Vector => functions.cusparseDestroyDnVec,
            Kind::Dense => functions.cusparseDestroyDnMat,
        };
        // SAFETY: created by the function that belongs to the kind, destroyed once.
        unsafe { destroy(self.raw) };
    }
}

fn pointer<T: Element>(buffer: &DeviceBuffer<T>) -> *mut c_void {
    buffer.address() as *mut c_void
}

/// 64-bit words of a workspace; at least one, because some versions refuse a null pointer.
fn workspace_words(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u64>()).max(1)
}

/// Checks the sizes: with 32-bit indices the library takes signed 32-bit sizes only.
fn check_sizes(
    kernel: &'static str,
    (rows, cols, entries): (usize, usize, usize),
) -> Result<(), PlanError> {
    matrix::check_signed(kernel, "rows", rows)?;
    matrix::check_signed(kernel, "columns", cols)?;
    matrix::check_signed(kernel, "entries", entries)
}

/// (rows, columns, entries).
fn sizes<T: DeviceScalar>(a: CsrView<'_, T>) -> (usize, usize, usize) {
    (a.rows(), a.cols(), a.nnz())
}

/// Converts the status "not supported" to [`PlanError::Unsupported`]; other failures stay as they
/// are.
fn unsupported(kernel: &'static str, status: c_int, error: GpuError) -> PlanError {
    if status == library::NOT_SUPPORTED {
        PlanError::Unsupported { kernel, reason: error.to_string() }
    } else {
        error.into()
    }
}
