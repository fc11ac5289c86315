//! libcusparse, opened at run time. Enumerators and signatures: cusparse.h of CUDA 12 and 13.

use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use crate::driver::with_causes;
use crate::error::GpuError;
use crate::library::{Search, functions};

const SEARCH: Search = Search {
    variable: "SPM_CUSPARSE",
    prefix: "libcusparse.",
    names: &["libcusparse.so.13", "libcusparse.so.12", "libcusparse.so.11", "libcusparse.so"],
    packages: &["nvidia/cu13/lib", "nvidia/cusparse/lib"],
    install: "CUDA's libcusparse",
};
/// Major versions that have the signatures below.
const VERSIONS: std::ops::RangeInclusive<c_int> = 11..=13;
/// `MAJOR_VERSION` of `libraryPropertyType`.
const MAJOR_VERSION: c_int = 0;

/// `cusparseStatus_t`: success.
const SUCCESS: c_int = 0;
/// `cusparseStatus_t`: the algorithm does not apply to these arguments.
pub(super) const NOT_SUPPORTED: c_int = 10;
/// `CUSPARSE_INDEX_32I`.
pub(super) const INDEX_32I: c_int = 2;
/// `CUSPARSE_INDEX_BASE_ZERO`.
pub(super) const BASE_ZERO: c_int = 0;
/// `CUSPARSE_OPERATION_NON_TRANSPOSE`.
pub(super) const NON_TRANSPOSE: c_int = 0;
/// `CUSPARSE_ORDER_COL`.
pub(super) const ORDER_COL: c_int = 1;
/// `CUSPARSE_ORDER_ROW`.
pub(super) const ORDER_ROW: c_int = 2;
/// `CUSPARSE_ACTION_SYMBOLIC`.
pub(super) const ACTION_SYMBOLIC: c_int = 0;
/// `CUSPARSE_ACTION_NUMERIC`.
pub(super) const ACTION_NUMERIC: c_int = 1;

type Handle = *mut c_void;
type Descriptor = *mut c_void;

functions! {
    /// The functions that the cuSPARSE baseline calls. The optional ones came with CUDA 12.
    pub(super) cusparseGetErrorString
    required {
        cusparseCreate(*mut Handle);
        cusparseDestroy(Handle);
        cusparseGetProperty(c_int, *mut c_int);
        cusparseGetVersion(Handle, *mut c_int);
        cusparseSetStream(Handle, *mut c_void);
        cusparseCreateCsr(*mut Descriptor, i64, i64, i64, *mut c_void, *mut c_void, *mut c_void, c_int,
            c_int, c_int, c_int);
        cusparseDestroySpMat(Descriptor);
        cusparseCreateDnVec(*mut Descriptor, i64, *mut c_void, c_int);
        cusparseDestroyDnVec(Descriptor);
        cusparseDnVecSetValues(Descriptor, *mut c_void);
        cusparseCreateDnMat(*mut Descriptor, i64, i64, i64, *mut c_void, c_int, c_int);
        cusparseDestroyDnMat(Descriptor);
        cusparseDnMatSetValues(Descriptor, *mut c_void);
        cusparseSpMV_bufferSize(Handle, c_int, *const c_void, Descriptor, Descriptor, *const c_void,
            Descriptor, c_int, c_int, *mut usize);
        cusparseSpMV(Handle, c_int, *const c_void, Descriptor, Descriptor, *const c_void, Descriptor,
            c_int, c_int, *mut c_void);
        cusparseSpMM_bufferSize(Handle, c_int, c_int, *const c_void, Descriptor, Descriptor,
            *const c_void, Descriptor, c_int, c_int, *mut usize);
        cusparseSpMM_preprocess(Handle, c_int, c_int, *const c_void, Descriptor, Descriptor,
            *const c_void, Descriptor, c_int, c_int, *mut c_void);
        cusparseSpMM(Handle, c_int, c_int, *const c_void, Descriptor, Descriptor, *const c_void,
            Descriptor, c_int, c_int, *mut c_void);
        cusparseCsr2cscEx2_bufferSize(Handle, c_int, c_int, c_int, *const c_void, *const c_int,
            *const c_int, *mut c_void, *mut c_int, *mut c_int, c_int, c_int, c_int, c_int, *mut usize);
        cusparseCsr2cscEx2(Handle, c_int, c_int, c_int, *const c_void, *const c_int, *const c_int,
            *mut c_void, *mut c_int, *mut c_int, c_int, c_int, c_int, c_int, *mut c_void);
    }
    optional {
        cusparseCreateSlicedEll(*mut Descriptor, i64, i64, i64, i64, i64, *mut c_void, *mut c_void,
            *mut c_void, c_int, c_int, c_int, c_int);
        cusparseSpMV_preprocess(Handle, c_int, *const c_void, Descriptor, Descriptor, *const c_void,
            Descriptor, c_int, c_int, *mut c_void);
    }
}

/// An opened cuSPARSE; it stays open for the life of the process.
pub(super) struct Cusparse {
    pub(super) functions: Functions,
    /// The file that was opened.
    pub(super) path: PathBuf,
    _library: Library,
}

impl Cusparse {
    /// Opens the library at the first call ([`Search::find`]; the variable is `SPM_CUSPARSE`).
    pub(super) fn open() -> Result<&'static Self, GpuError> {
        static OPENED: OnceLock<Result<Cusparse, String>> = OnceLock::new();
        OPENED.get_or_init(|| SEARCH.find(load)).as_ref().map_err(|reason| {
            GpuError::LibraryAbsent { library: "cuSPARSE", reason: reason.clone() }
        })
    }

    /// Converts a status of the library to a result.
    pub(super) fn check(&self, call: &'static str, status: c_int) -> Result<(), GpuError> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: takes any status, and returns a static string.
        let text = unsafe { (self.functions.cusparseGetErrorString)(status) };
        let text = if text.is_null() {
            "no message".into()
        } else {
            // SAFETY: a null-terminated, static string.
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        };
        Err(GpuError::Library { call, message: format!("{text} (status {status})") })
    }
}

fn load(library: Library, path: &Path) -> Result<Cusparse, String> {
    // SAFETY: it has the name of cuSPARSE; nothing else is called before the version is known.
    let functions = unsafe { Functions::load(&library) }.map_err(|error| with_causes(&error))?;
    let mut major = 0;
    // SAFETY: has this signature in every version, takes no handle, and points to an int.
    let status = unsafe { (functions.cusparseGetProperty)(MAJOR_VERSION, &mut major) };
    if status != SUCCESS || !VERSIONS.contains(&major) {
        let (first, last) = (VERSIONS.start(), VERSIONS.end());
        return Err(format!("{} is version {major}, not {first} to {last}", path.display()));
    }
    Ok(Cusparse { functions, path: path.to_owned(), _library: library })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_library_the_reason_names_the_variable() {
        match Cusparse::open() {
            Ok(library) => assert!(library.path.to_string_lossy().contains("cusparse")),
            Err(error) => {
                assert!(error.is_absent());
                assert!(error.to_string().contains(SEARCH.variable), "{error}");
            }
        }
    }
}
