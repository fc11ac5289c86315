//! Operands in device memory, as callers' libraries have them: CuPy arrays, PyTorch tensors, and whatever
//! has `__cuda_array_interface__` or `__dlpack__`. A call on a GPU takes microseconds: arrays of the two
//! libraries are read by their attributes, which is faster than either protocol.

use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyType};

use spm::Layout;

use crate::dlpack::{self, Exchange, MANAGED, ON_CUDA, ON_HOST};
use crate::place::{Place, Shape};

/// The default stream where null would be ambiguous (`cudaStreamLegacy`).
const LEGACY_STREAM: usize = 1;

/// Where the elements of an operand are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Of this GPU.
    Gpu(u32),
    /// Of a GPU that the protocol does not name.
    SomeGpu,
    /// Of the host, for an emulated device.
    Host,
}

/// What made an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    Cupy,
    Torch,
    /// The stream in which its contents are made, if it says one.
    Other(Option<usize>),
}

/// A vector or a matrix in device memory.
pub(crate) struct Operand<'py> {
    pub(crate) address: u64,
    pub(crate) memory: Memory,
    pub(crate) library: Library,
    /// The element type by NumPy's name.
    pub(crate) dtype: &'static str,
    pub(crate) place: Place,
    pub(crate) is_readonly: bool,
    /// Keeps the memory of a DLPack tensor.
    _capsule: Option<Bound<'py, PyAny>>,
}

/// Types and functions of a library that the program has imported.
struct Torch {
    tensor: Py<PyType>,
    empty_like: Py<PyAny>,
    /// Its element types, by NumPy's names.
    dtypes: [(Py<PyAny>, &'static str); 4],
    /// From the number of a device to the handle of its current stream.
    current_stream: Py<PyAny>,
    /// Since 2.10.
    exchange: Option<Exchange>,
}

struct Cupy {
    array: Py<PyType>,
    /// From the number of a device to its current stream.
    current_stream: Py<PyAny>,
    /// The number of the current device.
    current_device: Py<PyAny>,
    /// The context manager that makes another one current.
    device: Py<PyType>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();
static CUPY: PyOnceLock<Cupy> = PyOnceLock::new();

fn imported<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    Ok(modules.cast::<PyDict>()?.get_item(name)?.filter(|module| !module.is_none()))
}

fn torch(py: Python<'_>) -> PyResult<Option<&Torch>> {
    if let Some(torch) = TORCH.get(py) {
        return Ok(Some(torch));
    }
    let Some(module) = imported(py, "torch")? else { return Ok(None) };
    // Nothing while another thread imports it.
    let Ok(tensor) = module.getattr("Tensor") else { return Ok(None) };
    let private = module.getattr("_C").and_then(|c| c.getattr("_cuda_getCurrentRawStream"));
    let dtype = |name: &'static str| PyResult::Ok((module.getattr(name)?.unbind(), name));
    let tensor = tensor.cast_into::<PyType>()?;
    let torch = Torch {
        exchange: Exchange::of(&tensor),
        tensor: tensor.unbind(),
        empty_like: module.getattr("empty_like")?.unbind(),
        dtypes: [dtype("float64")?, dtype("float32")?, dtype("complex128")?, dtype("complex64")?],
        // A PyTorch without CUDA has none, and no tensors on a GPU.
        current_stream: private.map_or_else(|_| py.None(), Bound::unbind),
    };
    Ok(Some(TORCH.get_or_init(py, || torch)))
}

fn cupy(py: Python<'_>) -> PyResult<Option<&Cupy>> {
    if let Some(cupy) = CUPY.get(py) {
        return Ok(Some(cupy));
    }
    let Some(module) = imported(py, "cupy")? else { return Ok(None) };
    let Ok(array) = module.getattr("ndarray") else { return Ok(None) };
    let Ok(cuda) = module.getattr("cuda") else { return Ok(None) };
    let cupy = Cupy {
        array: array.cast_into::<PyType>()?.unbind(),
        current_stream: cuda.getattr("get_current_stream")?.unbind(),
        current_device: cuda.getattr("runtime")?.getattr("getDevice")?.unbind(),
        device: cuda.getattr("Device")?.cast_into::<PyType>()?.unbind(),
    };
    Ok(Some(CUPY.get_or_init(py, || cupy)))
}

impl<'py> Operand<'py> {
    /// Of what is in device memory; nothing for anything else. For an emulated device also of what is in
    /// host memory and says so by `__dlpack_device__`. `name` is for errors; a tensor that is handed over
    /// for `stream` is ready there.
    pub(crate) fn read(
        x: &Bound<'py, PyAny>,
        name: &str,
        is_emulated: bool,
        stream: Option<usize>,
    ) -> PyResult<Option<Self>> {
        let (py, kind) = (x.py(), x.get_type());
        // First what costs nothing.
        if let Some(torch) = TORCH.get(py)
            && kind.is(&torch.tensor)
        {
            return Self::of_torch(x, torch, name, is_emulated);
        }
        if CUPY.get(py).is_some_and(|cupy| kind.is(&cupy.array)) {
            return Self::of_cupy(x, name).map(Some);
        }
        if let Some(torch) = torch(py)?
            && x.is_instance(torch.tensor.bind(py))?
        {
            return Self::of_torch(x, torch, name, is_emulated);
        }
        if let Some(cupy) = cupy(py)?
            && x.is_instance(cupy.array.bind(py))?
        {
            return Self::of_cupy(x, name).map(Some);
        }
        let device = || -> PyResult<Option<[i32; 2]>> {
            let device = optional(x, "__dlpack_device__")?;
            device.map(|method| method.call0()?.extract()).transpose()
        };
        if let Some(interface) = optional(x, "__cuda_array_interface__")? {
            let memory = match is_emulated.then(device).transpose()?.flatten() {
                Some([ON_HOST, _]) => Memory::Host,
                _ => Memory::SomeGpu,
            };
            return Self::of_interface(&interface, name, memory).map(Some);
        }
        let Some(memory) = device()?.and_then(|device| memory(device, is_emulated)) else {
            return Ok(None);
        };
        Self::of_dlpack(x, name, memory, stream).map(Some)
    }

    fn of_torch(
        x: &Bound<'py, PyAny>,
        torch: &Torch,
        name: &str,
        is_emulated: bool,
    ) -> PyResult<Option<Self>> {
        let py = x.py();
        // What it does not describe, such as a tensor without memory, the attributes do.
        let tensor = torch.exchange.and_then(|exchange| exchange.tensor(x).ok());
        let memory = match &tensor {
            Some(tensor) => memory(tensor.device, is_emulated),
            None if x.getattr(intern!(py, "is_cuda"))?.extract()? => {
                Some(Memory::Gpu(x.call_method0(intern!(py, "get_device"))?.extract()?))
            }
            None => None,
        };
        let Some(memory) = memory else { return Ok(None) };
        if x.getattr(intern!(py, "requires_grad"))?.extract::<bool>()? {
            let reason = "requires a gradient, which a product does not have: pass its detach()";
            return Err(PyValueError::new_err(format!("{name}: {reason}")));
        }
        if x.call_method0(intern!(py, "is_neg"))?.extract::<bool>()? {
            let reason = "is a lazily negated view: pass its resolve_neg()";
            return Err(PyValueError::new_err(format!("{name}: {reason}")));
        }
        let operand = match tensor {
            Some(tensor) => {
                let Some(dtype) = tensor.dtype() else {
                    return Err(not_supported(name, &x.getattr("dtype")?));
                };
                Self::of_tensor(&tensor, dtype, memory, Library::Torch)
            }
            None => Self::of_attributes(x, torch, name, memory)?,
        };
        let is_complex = operand.dtype.starts_with('c');
        if is_complex && x.call_method0(intern!(py, "is_conj"))?.extract::<bool>()? {
            let reason = "is a lazily conjugated view: pass its resolve_conj()";
            return Err(PyValueError::new_err(format!("{name}: {reason}")));
        }
        Ok(Some(operand))
    }

    /// A tensor of a PyTorch before 2.10.
    fn of_attributes(
        x: &Bound<'py, PyAny>,
        torch: &Torch,
        name: &str,
        memory: Memory,
    ) -> PyResult<Self> {
        let py = x.py();
        let dtype = x.getattr(intern!(py, "dtype"))?;
        let Some(&(_, dtype)) = torch.dtypes.iter().find(|(of, _)| dtype.is(of)) else {
            return Err(not_supported(name, &dtype));
        };
        let shape = Shape::of(&x.getattr(intern!(py, "shape"))?)?;
        let strides = Shape::of(&x.call_method0(intern!(py, "stride"))?)?;
        Ok(Self {
            address: x.call_method0(intern!(py, "data_ptr"))?.extract()?,
            memory,
            library: Library::Torch,
            dtype,
            place: Place::new(shape, Some(strides), 1),
            is_readonly: false,
            _capsule: None,
        })
    }

    fn of_tensor(
        tensor: &dlpack::Tensor,
        dtype: &'static str,
        memory: Memory,
        library: Library,
    ) -> Self {
        Self {
            address: tensor.address,
            memory,
            library,
            dtype,
            place: Place::new(tensor.shape, tensor.strides, 1),
            is_readonly: false,
            _capsule: None,
        }
    }

    fn of_cupy(x: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        let py = x.py();
        let dtype = x.getattr(intern!(py, "dtype"))?;
        let dtype = match dtype.getattr(intern!(py, "char"))?.extract::<char>()? {
            'd' => "float64",
            'f' => "float32",
            'D' => "complex128",
            'F' => "complex64",
            _ => return Err(not_supported(name, &dtype)),
        };
        let memory = x.getattr(intern!(py, "data"))?;
        let shape = Shape::of(&x.getattr(intern!(py, "shape"))?)?;
        let strides = Shape::of(&x.getattr(intern!(py, "strides"))?)?;
        Ok(Self {
            address: memory.getattr(intern!(py, "ptr"))?.extract()?,
            memory: Memory::Gpu(memory.getattr(intern!(py, "device_id"))?.extract()?),
            library: Library::Cupy,
            dtype,
            place: Place::new(shape, Some(strides), bytes(dtype)),
            is_readonly: false,
            _capsule: None,
        })
    }

    /// The CUDA array interface, versions 2 and 3.
    fn of_interface(interface: &Bound<'py, PyAny>, name: &str, memory: Memory) -> PyResult<Self> {
        let field = |key: &str| interface.get_item(key);
        let optional = |key: &str| -> PyResult<Option<Bound<'py, PyAny>>> {
            let field = interface.call_method1("get", (key,))?;
            Ok((!field.is_none()).then_some(field))
        };
        if optional("mask")?.is_some() {
            return Err(PyTypeError::new_err(format!("{name}: masks are not supported")));
        }
        let dtype = match field("typestr")?.extract::<String>()?.as_str() {
            "<f8" => "float64",
            "<f4" => "float32",
            "<c16" => "complex128",
            "<c8" => "complex64",
            _ => return Err(not_supported(name, &field("typestr")?)),
        };
        let (address, is_readonly) = field("data")?.extract::<(u64, bool)>()?;
        let shape = Shape::of(&field("shape")?)?;
        let strides = optional("strides")?.map(|strides| Shape::of(&strides)).transpose()?;
        let stream = optional("stream")?.map(|stream| stream.extract::<usize>()).transpose()?;
        if stream == Some(0) {
            let reason = "the array interface forbids the stream 0";
            return Err(PyValueError::new_err(format!("{name}: {reason}")));
        }
        Ok(Self {
            address,
            memory,
            library: Library::Other(stream),
            dtype,
            place: Place::new(shape, strides, bytes(dtype)),
            is_readonly,
            _capsule: None,
        })
    }

    fn of_dlpack(
        x: &Bound<'py, PyAny>,
        name: &str,
        memory: Memory,
        stream: Option<usize>,
    ) -> PyResult<Self> {
        let py = x.py();
        // 0 is not allowed there.
        let stream = stream.map_or(LEGACY_STREAM, |stream| stream.max(LEGACY_STREAM));
        let arguments = PyDict::new(py);
        arguments.set_item("stream", (memory != Memory::Host).then_some(stream))?;
        let versioned = arguments.copy()?;
        versioned.set_item("max_version", (1, 0))?;
        let method = x.getattr("__dlpack__")?;
        let capsule = match method.call((), Some(&versioned)) {
            // Of before version 1.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                method.call((), Some(&arguments))?
            }
            answer => answer?,
        };
        let (tensor, is_readonly) = dlpack::tensor(capsule.cast::<PyCapsule>()?)?;
        let Some(dtype) = tensor.dtype() else {
            return Err(not_supported(name, &x.getattr("dtype")?));
        };
        let operand = Self::of_tensor(&tensor, dtype, memory, Library::Other(Some(stream)));
        Ok(Self { is_readonly, _capsule: Some(capsule), ..operand })
    }

    /// The stream in which the library of the operand works now; nothing if there is none to wait for.
    pub(crate) fn stream(&self, py: Python<'py>) -> PyResult<Option<usize>> {
        let number = match self.memory {
            Memory::Gpu(number) => number,
            _ => 0,
        };
        let stream = match (self.library, TORCH.get(py), CUPY.get(py)) {
            (Library::Torch, ..) if self.memory == Memory::Host => return Ok(None),
            (Library::Torch, Some(torch), _) => match torch.exchange {
                Some(exchange) => {
                    let device = [ON_CUDA, number.cast_signed()];
                    return exchange.current_stream(py, device).map(Some);
                }
                None => torch.current_stream.call1(py, (number,))?,
            },
            (Library::Cupy, _, Some(cupy)) => {
                let stream = cupy.current_stream.call1(py, (number,))?;
                stream.getattr(py, intern!(py, "ptr"))?
            }
            (Library::Other(stream), ..) => return Ok(stream),
            _ => return Ok(None),
        };
        stream.extract(py).map(Some)
    }
}

impl<'py> Operand<'py> {
    /// A new array of `rows` rows for the product with this operand, which is `x`, in its order and from its
    /// library.
    pub(crate) fn new_like(&self, x: &Bound<'py, PyAny>, rows: usize) -> PyResult<New<'py>> {
        let py = x.py();
        let (is_vector, by_columns) = (self.place.shape.is_vector(), self.place.is_by_columns());
        let [length, k] = self.place.shape.sizes;
        // An array by columns is the transpose of one by rows.
        let shape = match (is_vector, by_columns) {
            (true, _) => (rows,).into_pyobject(py)?.into_any(),
            (false, false) => (rows, k).into_pyobject(py)?.into_any(),
            (false, true) => (k, rows).into_pyobject(py)?.into_any(),
        };
        let (array, address) = match (self.library, self.memory, CUPY.get(py)) {
            (Library::Torch, ..) => {
                let same = length == rows as i64 && !by_columns && self.place.has(Layout::RowMajor);
                let array = match TORCH.get(py) {
                    // Faster.
                    Some(torch) if same => torch.empty_like.bind(py).call1((x,))?,
                    _ => x.call_method1(intern!(py, "new_empty"), (shape,))?,
                };
                let address = array.call_method0(intern!(py, "data_ptr"))?.extract()?;
                (array, Some(address))
            }
            (Library::Cupy, Memory::Gpu(number), Some(cupy)) => {
                let dtype = x.getattr(intern!(py, "dtype"))?;
                let array =
                    cupy.on_device(py, number, || cupy.array.bind(py).call1((shape, dtype)))?;
                let address = array.getattr(intern!(py, "data"))?.getattr(intern!(py, "ptr"))?;
                (array, Some(address.extract()?))
            }
            _ => {
                // The array API.
                let Some(module) = optional(x, "__array_namespace__")? else {
                    let name = x.get_type();
                    let name = name.name()?;
                    let text = format!("out: {name} does not say how to make a new array");
                    return Err(PyTypeError::new_err(text));
                };
                let options = PyDict::new(py);
                options.set_item("dtype", x.getattr("dtype")?)?;
                options.set_item("device", x.getattr("device")?)?;
                (module.call0()?.call_method("empty", (shape,), Some(&options))?, None)
            }
        };
        let array = if by_columns && !is_vector { array.getattr(intern!(py, "T"))? } else { array };
        let Some(address) = address else { return Ok(New { array, operand: None }) };
        let operand = Self {
            address,
            place: Place::without_gaps(self.place.shape.with_rows(rows), by_columns),
            is_readonly: false,
            _capsule: None,
            ..*self
        };
        Ok(New { array, operand: Some(operand) })
    }
}

/// A new array, and what is known of it.
pub(crate) struct New<'py> {
    pub(crate) array: Bound<'py, PyAny>,
    pub(crate) operand: Option<Operand<'py>>,
}

impl Cupy {
    /// Calls `make` while a device is CuPy's current one.
    fn on_device<'py, R>(
        &self,
        py: Python<'py>,
        number: u32,
        make: impl FnOnce() -> PyResult<R>,
    ) -> PyResult<R> {
        if self.current_device.call0(py)?.extract::<u32>(py)? == number {
            return make();
        }
        let device = self.device.bind(py).call1((number,))?;
        device.call_method0("__enter__")?;
        let made = make();
        device.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
        made
    }
}

/// The handle of a stream that a caller gives: a number, or a stream of CuPy, PyTorch or another library.
pub(crate) fn stream_handle(stream: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Ok(handle) = stream.extract::<usize>() {
        return Ok(handle);
    }
    // PyTorch's and CuPy's.
    for name in ["cuda_stream", "ptr"] {
        if let Some(handle) = optional(stream, name)? {
            return handle.extract();
        }
    }
    if let Some(method) = optional(stream, "__cuda_stream__")? {
        return Ok(method.call0()?.extract::<(u32, usize)>()?.1);
    }
    let kind = stream.get_type();
    Err(PyTypeError::new_err(format!(
        "stream: expected a stream of CuPy or PyTorch, or the handle of one, found {}",
        kind.name()?
    )))
}

/// An attribute that there may be none of.
fn optional<'py>(x: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    match x.getattr(name) {
        Ok(attribute) => Ok(Some(attribute)),
        Err(error) if error.is_instance_of::<PyAttributeError>(x.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where a device of DLPack is: on the host for an emulated device alone.
fn memory([kind, number]: [i32; 2], is_emulated: bool) -> Option<Memory> {
    match kind {
        ON_CUDA | MANAGED => Some(Memory::Gpu(number.unsigned_abs())),
        ON_HOST if is_emulated => Some(Memory::Host),
        _ => None,
    }
}

fn bytes(dtype: &str) -> i64 {
    match dtype {
        "float32" => 4,
        "complex128" => 16,
        _ => 8,
    }
}

fn not_supported(name: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let expected = "float32, float64, complex64 or complex128";
    PyTypeError::new_err(format!("{name}: expected {expected}, found {found}"))
}
