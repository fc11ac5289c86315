//! Products with operands in device memory, in the streams of callers' libraries.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use numpy::Complex64;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyComplex;
use spm::spm_gpu::{Device, DeviceBuffer, Scratch, Stream};
use spm::{DenseShape, DeviceScalar, Error, Form, Layout};

use crate::arrays::Number;
use crate::device::{Library, Memory, New, Operand, stream_handle};
use crate::errors::exception;
use crate::operator::Typed;
use crate::place::{Copied, Place};
use crate::process::detached;

/// What a caller says of a product beside its operands.
pub(crate) struct Arguments<'a, 'py> {
    pub(crate) out: &'a Bound<'py, PyAny>,
    pub(crate) alpha: &'a Bound<'py, PyAny>,
    pub(crate) beta: &'a Bound<'py, PyAny>,
    pub(crate) form: Form,
    pub(crate) stream: &'a Bound<'py, PyAny>,
}

/// The refusal of an operand in device memory by an operator that is not there; nothing for others.
pub(crate) fn refuse(x: &Bound<'_, PyAny>) -> PyResult<()> {
    if Operand::read(x, "x", false, None)?.is_none() {
        return Ok(());
    }
    let reason =
        "x is in device memory, and the operator on CPU cores: make it with device=\"gpu\"";
    Err(PyTypeError::new_err(reason))
}

/// `out` = `alpha` A `x` + `beta` `out` with a form of A. Returns `out`, or a new array of the library of x.
/// Nothing if x is not in device memory.
pub(crate) fn run<'py, T: Number>(
    typed: &Typed<T>,
    device: &Device,
    x: &Bound<'py, PyAny>,
    arguments: &Arguments<'_, 'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = x.py();
    let is_emulated = device.is_emulated();
    let given = match arguments.stream {
        none if none.is_none() => None,
        stream => Some(stream_handle(stream)?),
    };
    let Some(of_x) = Operand::read(x, "x", is_emulated, given)? else { return Ok(None) };
    let alpha = number::<T>("alpha", arguments.alpha)?;
    let beta = number::<T>("beta", arguments.beta)?;
    check::<T>("x", &of_x, device)?;
    let (rows, cols) = typed.shape();
    let form = arguments.form;
    let (rows, cols) = if form.transposed { (cols, rows) } else { (rows, cols) };
    let Some((_, k)) = of_x.place.shape.rows_and_columns().filter(|&(length, _)| length == cols)
    else {
        let found = of_x.place.shape.text();
        let expected = format!("x: expected shape ({cols},) or ({cols}, k), found {found}");
        return Err(PyValueError::new_err(expected));
    };
    let library = of_x.stream(py)?;
    let stream = given.or(library).unwrap_or(0);
    // Streams of which the product's stream does not know; each waits for the other one.
    let mut others = [None; 2];
    let (out, of_out) = if arguments.out.is_none() {
        if beta != <T as spm::Scalar>::ZERO {
            return Err(PyValueError::new_err("beta: there is no out to add to"));
        }
        // It belongs to the library's stream.
        others[0] = library;
        let New { array, operand } = of_x.new_like(x, rows)?;
        (array, operand)
    } else {
        (arguments.out.clone(), None)
    };
    let of_out = match of_out {
        Some(operand) => operand,
        None => of_out_like::<T>(&out, &of_x, (rows, k), device, stream)?,
    };
    let (from, to) = (of_x.elements::<T>("x")?, of_out.elements::<T>("out")?);
    let layout = layout(&of_x.place, &of_out.place);
    // An x where the result goes is a copy, too.
    let overlap = from.start < to.end && to.start < from.end;
    let x =
        Side::new("x", &of_x.place, from, (!of_x.place.has(layout) || overlap).then_some(layout))?;
    let y = Side::new("out", &of_out.place, to, (!of_out.place.has(layout)).then_some(layout))?;
    if y.copies.is_some() && !of_out.place.is_injective() {
        return Err(PyValueError::new_err("out: some of its elements are at one place"));
    }
    for (other, operand) in others.iter_mut().zip([&of_x, &of_out]) {
        let is_own = given.is_none() && operand.library == of_x.library;
        if matches!(operand.library, Library::Other(_)) || given.is_none() && !is_own {
            *other = operand.stream(py)?;
        }
    }
    let call = Call {
        device,
        stream,
        others: others.map(|other| other.filter(|&other| other.max(1) != stream.max(1))),
        x,
        y,
        adds: beta != <T as spm::Scalar>::ZERO,
    };
    let dense = DenseShape { k, layout };
    let launched = detached(py, || {
        typed.read(|state| {
            call.with_operands(&state.scratch, |x, y, stream| match (k, form) {
                (1, _) => state.op.apply_in_stream(form, alpha, x, beta, y, stream),
                (_, Form::PLAIN) => {
                    state.op.apply_dense_in_stream(dense, alpha, x, beta, y, stream)
                }
                (_, form) => {
                    let op = state.of_form(form)?;
                    op.apply_dense_in_stream(dense, alpha, x, beta, y, stream)
                }
            })
        })
    });
    launched?.map_err(exception)?;
    Ok(Some(out))
}

/// A layout that both have without gaps, or else one for copies.
fn layout(x: &Place, out: &Place) -> Layout {
    let layouts = [Layout::RowMajor, Layout::ColumnMajor];
    let of = |places: &[&Place]| {
        layouts.into_iter().find(|&layout| places.iter().all(|place| place.has(layout)))
    };
    let none = if x.is_by_columns() { Layout::ColumnMajor } else { Layout::RowMajor };
    of(&[x, out]).or_else(|| of(&[out])).or_else(|| of(&[x])).unwrap_or(none)
}

/// An operand of another library.
struct Side {
    address: u64,
    /// Elements from the first one to the last one.
    extent: usize,
    /// Elements without gaps.
    length: usize,
    /// To and from an array without gaps, for one that is used through a copy.
    copies: Option<Vec<Copied>>,
}

impl Side {
    fn new(
        name: &str,
        place: &Place,
        addresses: Range<u64>,
        copy_in: Option<Layout>,
    ) -> PyResult<Self> {
        let copies = copy_in.map(|layout| place.copies(layout).ok_or_else(|| no_copy(name)));
        let (rows, cols) = place.shape.rows_and_columns().unwrap_or_default();
        let extent = place.extent().unwrap_or_default();
        let copies = copies.transpose()?;
        Ok(Self { address: addresses.start, extent, length: rows * cols, copies })
    }

    /// The array for its copy.
    fn room(&self) -> usize {
        self.copies.as_ref().map_or(0, |_| self.length)
    }

    fn copies(&self) -> impl Iterator<Item = &Copied> {
        self.copies.iter().flatten()
    }
}

/// A product with operands of another library, and handles of streams.
struct Call<'a> {
    device: &'a Device,
    stream: usize,
    others: [Option<usize>; 2],
    x: Side,
    y: Side,
    /// Whether something is added to y.
    adds: bool,
}

impl Call<'_> {
    fn with_operands<T: DeviceScalar>(
        &self,
        scratch: &Mutex<Scratch<T>>,
        product: impl FnOnce(&DeviceBuffer<T>, &mut DeviceBuffer<T>, &Stream) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let device = self.device;
        let handle = |stream: usize| ptr::without_provenance_mut::<c_void>(stream);
        // SAFETY: what the protocols promise, which cannot be verified here. An array that is exported has
        // so many elements at this address, on this device, gaps included. It is alive until this function
        // returns, and a
        // library frees memory in the order of its streams: in the product's stream, or in one of `others`,
        // which wait for it. The same streams order what else reads and writes it. A stream that a caller
        // names is alive during the call, and per-thread ones are the calling thread's. Where x and y
        // overlap, x is copied before y is written; gaps are not written.
        let (x, mut y, stream, others) = unsafe {
            let x = DeviceBuffer::from_raw(device, self.x.address, self.x.extent)?;
            let y = DeviceBuffer::from_raw_mut(device, self.y.address, self.y.extent)?;
            let others = self.others.map(|it| it.map(|it| Stream::from_raw(device, handle(it))));
            (x, y, Stream::from_raw(device, handle(self.stream)), others)
        };
        others.iter().flatten().try_for_each(|other| stream.follow(other))?;
        let result = if self.x.copies.is_none() && self.y.copies.is_none() {
            product(&x, &mut y, &stream)
        } else {
            let rooms = [self.x.room(), self.y.room()];
            let mut scratch = scratch.lock().unwrap_or_else(PoisonError::into_inner);
            let entered = scratch.enter(device, rooms, &stream, |[own_x, own_y]| {
                for Copied { with_gaps, without } in self.x.copies() {
                    own_x.copy_lines_from_on(*without, &x, *with_gaps, &stream)?;
                }
                let x = if self.x.copies.is_some() { own_x } else { &x };
                if self.y.copies.is_none() {
                    return product(x, &mut y, &stream);
                }
                for Copied { with_gaps, without } in self.y.copies().filter(|_| self.adds) {
                    own_y.copy_lines_from_on(*without, &y, *with_gaps, &stream)?;
                }
                product(x, own_y, &stream)?;
                for Copied { with_gaps, without } in self.y.copies() {
                    y.copy_lines_from_on(*with_gaps, own_y, *without, &stream)?;
                }
                Ok(())
            });
            entered.unwrap_or_else(|error| Err(error.into()))
        };
        others.iter().flatten().try_for_each(|other| other.follow(&stream))?;
        result
    }
}

/// `out` for the product with x, which has `shape`, in `stream`.
fn of_out_like<'py, T: Number>(
    out: &Bound<'py, PyAny>,
    x: &Operand<'_>,
    shape: (usize, usize),
    device: &Device,
    stream: usize,
) -> PyResult<Operand<'py>> {
    let Some(found) = Operand::read(out, "out", device.is_emulated(), Some(stream))? else {
        return Err(PyTypeError::new_err("out: expected an array in device memory, as x is"));
    };
    check::<T>("out", &found, device)?;
    let is_vector = x.place.shape.is_vector();
    if found.place.shape.is_vector() != is_vector
        || found.place.shape.rows_and_columns() != Some(shape)
    {
        let (rows, k) = shape;
        let expected = if is_vector { format!("({rows},)") } else { format!("({rows}, {k})") };
        let found = found.place.shape.text();
        return Err(PyValueError::new_err(format!(
            "out: expected shape {expected}, found {found}"
        )));
    }
    if found.is_readonly {
        return Err(PyValueError::new_err("out: the array is read-only"));
    }
    Ok(found)
}

/// Checks the place and the type of an operand.
fn check<T: Number>(name: &str, operand: &Operand<'_>, device: &Device) -> PyResult<()> {
    if operand.dtype != T::NAME_IN_NUMPY {
        let (expected, found) = (T::NAME_IN_NUMPY, operand.dtype);
        let text = format!("{name}: expected {expected}, the type of the operator, found {found}");
        return Err(PyTypeError::new_err(text));
    }
    let ordinal = device.info().ordinal;
    let is_there = match operand.memory {
        Memory::Host => device.is_emulated(),
        _ if device.is_emulated() => false,
        Memory::Gpu(number) => number == ordinal,
        Memory::SomeGpu => {
            let is_empty = operand.place.extent() == Some(0);
            is_empty
                || device.holds(operand.address).map_err(|error| exception(Error::Gpu(error)))?
        }
    };
    if is_there {
        return Ok(());
    }
    let of = match operand.memory {
        Memory::Gpu(number) => format!("on GPU {number}"),
        _ => "elsewhere".to_owned(),
    };
    let here =
        if device.is_emulated() { "an emulated GPU".to_owned() } else { format!("GPU {ordinal}") };
    Err(PyValueError::new_err(format!("{name} is {of}, and the operator on {here}")))
}

fn no_copy(name: &str) -> PyErr {
    let reason = "has elements in a place that others have, or before the first one, or not whole \
                  elements apart: pass a contiguous copy";
    PyValueError::new_err(format!("{name} {reason}"))
}

impl Operand<'_> {
    /// Addresses of its elements.
    fn elements<T>(&self, name: &str) -> PyResult<Range<u64>> {
        let extent = self.place.extent().ok_or_else(|| no_copy(name))?;
        let bytes = (extent * size_of::<T>()) as u64;
        Ok(self.address..self.address.saturating_add(bytes))
    }
}

/// alpha or beta.
fn number<T: Number>(name: &str, number: &Bound<'_, PyAny>) -> PyResult<T> {
    let complex = if number.is_instance_of::<PyComplex>() {
        number.extract::<Complex64>()?
    } else {
        Complex64::new(number.extract::<f64>()?, 0.0)
    };
    let number = T::of_python(complex);
    number.ok_or_else(|| PyTypeError::new_err(format!("{name}: expected a real number")))
}

/// Where the products of an operator are asked to run.
pub(crate) fn device(name: &str) -> PyResult<spm::Device> {
    static EMULATED: OnceLock<spm::Device> = OnceLock::new();
    let gpu = |number: &str| number.parse().ok().map(spm::Device::gpu);
    let device = match name {
        "cpu" => Some(spm::Device::cpu()),
        "auto" => Some(spm::Device::auto()),
        "gpu" => gpu("0"),
        "emulated" => Some(EMULATED.get_or_init(spm::Device::emulated).clone()),
        other => other.strip_prefix("gpu:").and_then(gpu),
    };
    device.ok_or_else(|| {
        let expected = "\"auto\", \"cpu\", \"gpu\" or \"gpu:N\"";
        PyValueError::new_err(format!("device: expected {expected}, found {name:?}"))
    })
}
