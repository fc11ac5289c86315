//! NumPy arrays as matrices of `spm`, and back.

use std::sync::Arc;

use numpy::{Complex64, Element, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use spm::num_complex::Complex;
use spm::{Coo, Csc, CscView, Csr, DeviceScalar};
use spm_formats::{FormatError, SharedSlice, convert};

use crate::errors::exception;
use crate::process::detached;

/// The element types, with what NumPy and Python call their numbers.
pub(crate) trait Number: DeviceScalar + Element {
    /// The number, if it is one of this type.
    fn of_python(number: Complex64) -> Option<Self>;

    /// NumPy's name of the type.
    const NAME_IN_NUMPY: &'static str;
}

macro_rules! real {
    ($($type:ty => $name:literal, $complex_name:literal);*) => {$(
        impl Number for $type {
            const NAME_IN_NUMPY: &'static str = $name;

            fn of_python(number: Complex64) -> Option<Self> {
                (number.im == 0.0).then_some(number.re as $type)
            }
        }
        impl Number for Complex<$type> {
            const NAME_IN_NUMPY: &'static str = $complex_name;

            fn of_python(number: Complex64) -> Option<Self> {
                Some(Self::new(number.re as $type, number.im as $type))
            }
        }
    )*};
}

real!(f32 => "float32", "complex64"; f64 => "float64", "complex128");

/// Calls the generic function with the element type of an array.
macro_rules! by_dtype {
    ($array:expr, $function:ident($($argument:expr),*)) => {{
        use numpy::{Complex32, Complex64, PyArray1};
        let array = $array;
        if let Ok(array) = array.cast::<PyArray1<f64>>() {
            $function::<f64>(array, $($argument),*)
        } else if let Ok(array) = array.cast::<PyArray1<f32>>() {
            $function::<f32>(array, $($argument),*)
        } else if let Ok(array) = array.cast::<PyArray1<Complex64>>() {
            $function::<Complex64>(array, $($argument),*)
        } else if let Ok(array) = array.cast::<PyArray1<Complex32>>() {
            $function::<Complex32>(array, $($argument),*)
        } else {
            Err(pyo3::exceptions::PyTypeError::new_err(
                "values: expected a vector of float32, float64, complex64 or complex128",
            ))
        }
    }};
}
pub(crate) use by_dtype;

/// A NumPy array that stays alive.
struct Held<T: Element> {
    _array: Py<PyArray1<T>>,
    start: *const T,
    len: usize,
}

// SAFETY: it gives out shared references to its elements only, which are `Send` and `Sync`; the array may be
// released on any thread.
unsafe impl<T: Element> Send for Held<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Held<T> {}

impl<T: Element> AsRef<[T]> for Held<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: `hold` took both from a slice of the array's buffer, which NumPy keeps in place for as long
        // as there are references to the array.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// The elements of an array that is contiguous, in place.
fn hold<T: Element + 'static>(array: &Bound<'_, PyArray1<T>>) -> PyResult<SharedSlice<T>> {
    let readonly =
        array.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
    let slice = readonly.as_slice()?;
    let (start, len) = (slice.as_ptr(), slice.len());
    Ok(SharedSlice::new(Held { _array: array.clone().unbind(), start, len }))
}

/// Indices or pointers: of 32 bits, or of 64.
#[derive(FromPyObject)]
pub(crate) enum Indices<'py> {
    Short(Bound<'py, PyArray1<u32>>),
    Long(Bound<'py, PyArray1<i64>>),
}

/// The same without the GIL.
enum Numbers {
    Short(SharedSlice<u32>),
    Long(SharedSlice<i64>),
}

impl Indices<'_> {
    fn numbers(&self) -> PyResult<Numbers> {
        Ok(match self {
            Self::Short(array) => Numbers::Short(hold(array)?),
            Self::Long(array) => Numbers::Long(hold(array)?),
        })
    }
}

impl Numbers {
    /// In 32 bits: in place where they have them.
    fn short(self, what: &'static str) -> Result<SharedSlice<u32>, FormatError> {
        let long = match self {
            Self::Short(short) => return Ok(short),
            Self::Long(long) => long,
        };
        let wrong = |position: usize| {
            let found = long[position].to_string();
            FormatError::NotU32 { what, position, found }
        };
        let narrow = long.iter().enumerate().map(|(i, &index)| u32::try_from(index).map_err(|_| i));
        let narrow = narrow.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        Ok(SharedSlice::new(narrow))
    }
}

/// Arrays of a SciPy matrix: those of CSR or CSC (pointers and indices), or of COO (rows and columns).
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Arrays<'py> {
    format: String,
    shape: (usize, usize),
    major: Indices<'py>,
    minor: Indices<'py>,
    pub(crate) data: Bound<'py, PyAny>,
    copy: bool,
}

/// A matrix, and what it has of the caller's.
pub(crate) struct Converted<T> {
    pub(crate) matrix: Arc<Csr<T>>,
    /// Whether its values are in the order of the caller's.
    pub(crate) same_order: bool,
}

impl Arrays<'_> {
    /// The matrix in compressed rows.
    pub(crate) fn to_csr<T: Number>(
        &self,
        data: &Bound<'_, PyArray1<T>>,
    ) -> PyResult<Converted<T>> {
        let (shape, copy) = (self.shape, self.copy);
        let (major, minor) = (self.major.numbers()?, self.minor.numbers()?);
        let values = hold(data)?;
        let py = data.py();
        let converted = match self.format.as_str() {
            "csr" => detached(py, || of_csr(shape, major, minor, values, copy)),
            "csc" => detached(py, || of_csc(shape, major, minor, &values)),
            "coo" => detached(py, || of_coo(shape, major, minor, &values)),
            other => return Err(PyTypeError::new_err(format!("there is no format {other:?}"))),
        };
        converted?.map_err(exception)
    }
}

fn of_csr<T: Number>(
    shape: (usize, usize),
    row_ptr: Numbers,
    col_ind: Numbers,
    values: SharedSlice<T>,
    copy: bool,
) -> Result<Converted<T>, FormatError> {
    let (row_ptr, col_ind) = (row_ptr.short("row pointers")?, col_ind.short("column indices")?);
    let made = if copy {
        Csr::new(shape, row_ptr.to_vec(), col_ind.to_vec(), values.to_vec())
    } else {
        Csr::from_shared(shape, row_ptr.clone(), col_ind.clone(), values.clone())
    };
    let (matrix, same_order) = match made {
        Ok(matrix) => (matrix, true),
        Err(FormatError::Unsorted { .. }) => {
            let (row_ptr, col_ind) = (row_ptr.to_vec(), col_ind.to_vec());
            (Csr::from_unsorted(shape, row_ptr, col_ind, values.to_vec())?, false)
        }
        Err(error) => return Err(error),
    };
    Ok(Converted { matrix: Arc::new(matrix), same_order })
}

fn of_csc<T: Number>(
    shape: (usize, usize),
    col_ptr: Numbers,
    row_ind: Numbers,
    values: &[T],
) -> Result<Converted<T>, FormatError> {
    let (col_ptr, row_ind) = (col_ptr.short("column pointers")?, row_ind.short("row indices")?);
    let matrix = match CscView::new(shape, &col_ptr, &row_ind, values) {
        Ok(matrix) => convert::csc_to_csr(matrix),
        Err(FormatError::Unsorted { .. }) => {
            let (col_ptr, row_ind) = (col_ptr.to_vec(), row_ind.to_vec());
            let sorted = Csc::from_unsorted(shape, col_ptr, row_ind, values.to_vec())?;
            convert::csc_to_csr(sorted.view())
        }
        Err(error) => return Err(error),
    };
    Ok(Converted { matrix: Arc::new(matrix), same_order: false })
}

fn of_coo<T: Number>(
    (rows, cols): (usize, usize),
    row_ind: Numbers,
    col_ind: Numbers,
    values: &[T],
) -> Result<Converted<T>, FormatError> {
    let (row_ind, col_ind) = (row_ind.short("row indices")?, col_ind.short("column indices")?);
    let coo = Coo::new(rows, cols, row_ind.to_vec(), col_ind.to_vec(), values.to_vec())?;
    let matrix = Arc::new(convert::coo_to_csr(&coo));
    Ok(Converted { matrix, same_order: false })
}

/// (shape, indptr, indices, data), with the vectors of the matrix moved or, where it is shared, copied.
pub(crate) type Csr4<'py> =
    ((usize, usize), Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyAny>);

pub(crate) fn to_python<T: Number>(py: Python<'_>, matrix: Csr<T>) -> Csr4<'_> {
    let shape = matrix.shape();
    let (row_ptr, col_ind, values) = matrix.into_arrays();
    let values = PyArray1::from_vec(py, values).into_any();
    (shape, PyArray1::from_vec(py, row_ptr), PyArray1::from_vec(py, col_ind), values)
}

/// Whether an array is a vector of elements next to each other.
pub(crate) fn vector<'a, T: Element>(
    array: &'a Bound<'_, PyAny>,
    what: &str,
) -> PyResult<&'a Bound<'a, PyArray1<T>>> {
    let wrong = || PyTypeError::new_err(format!("{what}: expected a contiguous vector"));
    let array = array.cast::<PyArray1<T>>().map_err(|_| wrong())?;
    if array.is_contiguous() { Ok(array) } else { Err(wrong()) }
}
