//! The operator.

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use numpy::{
    BorrowError, Complex32, Complex64, PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::RwLockExt;
use spm::spm_gpu::{Device, Scratch};
use spm::{Csr, DenseMut, DenseRef, Error, Form, Layout, Recipe, Scalar, WidensTo};
use spm_formats::convert;

use crate::arrays::{Arrays, Converted, Csr4, Number, by_dtype, to_python, vector};
use crate::errors::exception;
use crate::gpu;
use crate::process::{detached, interruptible, keep_contexts, keeping_context};
use crate::results::Keeping;

/// How an operator is planned.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    threads: Option<usize>,
    expected_products: Option<u64>,
    deterministic: bool,
    recipe: Option<String>,
    /// The recipe that an operator with the other options has chosen.
    chosen: Option<String>,
    budget: Option<u64>,
    device: String,
}

/// An operator with elements of one type.
pub(crate) struct Typed<T: Number> {
    state: ManuallyDrop<RwLock<State<T>>>,
    shape: (usize, usize),
    /// The GPU, which the operator keeps.
    device: Option<Device>,
    options: Options,
    _keeping: Keeping,
}

pub(crate) struct State<T> {
    pub(crate) op: spm::Operator<T>,
    /// Those of other forms of the matrix, for products with matrices.
    others: Mutex<Vec<(Form, spm::Operator<T>)>>,
    /// Those that the caller has asked for.
    threads: Option<usize>,
    /// Of operands in device memory with gaps.
    pub(crate) scratch: Mutex<Scratch<T>>,
    same_order: bool,
}

enum Any {
    Single(Typed<f32>),
    Double(Typed<f64>),
    SingleComplex(Typed<Complex32>),
    DoubleComplex(Typed<Complex64>),
}

/// Makes the same call for each element type.
macro_rules! each {
    ($any:expr, $typed:ident => $call:expr) => {
        match $any {
            Any::Single($typed) => $call,
            Any::Double($typed) => $call,
            Any::SingleComplex($typed) => $call,
            Any::DoubleComplex($typed) => $call,
        }
    };
}

/// A matrix that is ready to multiply; what `spm.Operator` calls.
#[pyclass(frozen, module = "spm._native")]
pub(crate) struct Operator(Any);

#[pymethods]
impl Operator {
    /// Of the arrays (format, shape, major, minor, data, copy).
    #[new]
    fn new(arrays: &Bound<'_, PyAny>, options: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (arrays, options): (Arrays<'_>, Options) = (arrays.extract()?, options.extract()?);
        by_dtype!(&arrays.data, new_typed(&arrays, options))
    }

    /// `out` = `alpha` A `x` + `beta` `out`, with A^T or, for vectors, A^H. Returns "" if it is done, or the
    /// array ("x" or "out") that must be a copy first.
    #[allow(clippy::too_many_arguments, reason = "the operands of a product")]
    fn run(
        &self,
        x: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        alpha: Option<Complex64>,
        beta: Option<Complex64>,
        transposed: bool,
        conjugate: bool,
    ) -> PyResult<&'static str> {
        each!(&self.0, typed => typed.run(x, out, alpha, beta, Form { transposed, conjugate }))
    }

    /// `out` = `alpha` A `x` + `beta` `out` with arrays in device memory, in a stream. Returns `out` or, if it
    /// is None, a new array; None if x is not in device memory.
    #[allow(clippy::too_many_arguments, reason = "the operands of a product")]
    fn run_on_device<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        out: &Bound<'py, PyAny>,
        alpha: &Bound<'py, PyAny>,
        beta: &Bound<'py, PyAny>,
        transposed: bool,
        conjugate: bool,
        stream: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let form = Form { transposed, conjugate };
        let arguments = gpu::Arguments { out, alpha, beta, form, stream };
        each!(&self.0, typed => match &typed.device {
            Some(device) => gpu::run(typed, device, x, &arguments),
            None => gpu::refuse(x).map(|()| None),
        })
    }

    /// "cpu", "gpu:N" or "emulated".
    #[getter]
    fn device(&self) -> String {
        match each!(&self.0, typed => &typed.device) {
            None => "cpu".to_owned(),
            Some(device) if device.is_emulated() => "emulated".to_owned(),
            Some(device) => format!("gpu:{}", device.info().ordinal),
        }
    }

    /// New values, in the order of the matrix in compressed rows.
    fn set_values(&self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        each!(&self.0, typed => typed.set_values(values))
    }

    /// The values of a matrix with the same pattern.
    fn set_matrix(&self, arrays: &Bound<'_, PyAny>) -> PyResult<()> {
        let arrays: Arrays<'_> = arrays.extract()?;
        each!(&self.0, typed => typed.set_matrix(&arrays))
    }

    /// Whether values are in the order of the caller's matrix.
    #[getter]
    fn same_order(&self, py: Python<'_>) -> bool {
        each!(&self.0, typed => typed.look(py, |state| state.same_order))
    }

    /// Addresses of row pointers, column indices and values, those of the caller's arrays if the matrix
    /// shares them.
    #[getter]
    fn addresses(&self, py: Python<'_>) -> [usize; 3] {
        each!(&self.0, typed => typed.look(py, |state| state.addresses().map(|array| array.start)))
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        each!(&self.0, typed => typed.shape())
    }

    #[getter]
    fn nnz(&self, py: Python<'_>) -> usize {
        each!(&self.0, typed => typed.look(py, |state| state.op.nnz()))
    }

    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> u64 {
        each!(&self.0, typed => typed.look(py, |state| state.op.memory_bytes()))
    }

    #[getter]
    fn recipe(&self, py: Python<'_>) -> String {
        each!(&self.0, typed => typed.look(py, |state| state.op.recipe().to_string()))
    }

    /// Threads of products with matrices on CPU cores.
    #[getter]
    fn threads(&self, py: Python<'_>) -> usize {
        each!(&self.0, typed => typed.look(py, |state| state.op.threads()))
    }

    /// The recipe, if the operator has chosen it for good.
    #[getter]
    fn chosen(&self, py: Python<'_>) -> Option<String> {
        each!(&self.0, typed => typed.look(py, |state| {
            state.op.is_settled().then(|| state.op.recipe().to_string())
        }))
    }

    /// Kernel, reason, sizes and times as text.
    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        let text = || each!(&self.0, typed => typed.read(|state| state.op.describe().to_string()));
        detached(py, text)
    }

    /// Seconds of planning.
    #[getter]
    fn planning_seconds(&self, py: Python<'_>) -> PyResult<f64> {
        let of = || each!(&self.0, typed => typed.read(|state| state.op.describe().planning));
        Ok(detached(py, of)?.as_secs_f64())
    }

    /// Seconds of the fastest of a few products.
    fn measure(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let measure = || each!(&self.0, typed => typed.read(|state| state.op.measure()));
        Ok(detached(py, measure)?.map(|time| time.as_secs_f64()))
    }

    /// Copies of the arrays of the matrix in compressed rows.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Csr4<'py>> {
        each!(&self.0, typed => {
            let matrix = detached(py, || typed.read(|state| Csr::clone(state.op.matrix())))?;
            Ok(to_python(py, matrix))
        })
    }

    /// The operator of the same numbers in double precision.
    fn widened(&self, py: Python<'_>) -> PyResult<Self> {
        let any = match &self.0 {
            Any::Single(typed) => Any::Double(typed.widened(py)?),
            Any::SingleComplex(typed) => Any::DoubleComplex(typed.widened(py)?),
            _ => return Err(PyTypeError::new_err("the operator is in double precision")),
        };
        Ok(Self(any))
    }
}

fn new_typed<T: Typable>(
    data: &Bound<'_, PyArray1<T>>,
    arrays: &Arrays<'_>,
    options: Options,
) -> PyResult<Operator> {
    let Converted { matrix, same_order } = arrays.to_csr(data)?;
    let op = build(data.py(), matrix, &options)?;
    Ok(Operator(T::any(Typed::new(op, options, same_order))))
}

/// Numbers whose operators are one of [`Any`].
trait Typable: Number {
    fn any(typed: Typed<Self>) -> Any;
}

macro_rules! typable {
    ($($type:ty => $variant:ident),*) => {$(
        impl Typable for $type {
            fn any(typed: Typed<Self>) -> Any {
                Any::$variant(typed)
            }
        }
    )*};
}

typable!(f32 => Single, f64 => Double, Complex32 => SingleComplex, Complex64 => DoubleComplex);

fn build<T: Number>(
    py: Python<'_>,
    matrix: Arc<Csr<T>>,
    options: &Options,
) -> PyResult<spm::Operator<T>> {
    let Options { threads, expected_products, deterministic, recipe, chosen, budget, device } =
        options.clone();
    let on_cpu = device == "cpu";
    let long = expected_products.is_some() || deterministic || !on_cpu;
    let device = gpu::device(&device)?;
    if !on_cpu {
        keep_contexts();
    }
    let build = move || {
        let mut builder = spm::Operator::builder(matrix).device(device);
        if let Some(recipe) = recipe {
            builder = builder.recipe(recipe.parse::<Recipe>().map_err(Error::Recipe)?);
        }
        if let Some(recipe) = chosen {
            builder = builder.chosen(recipe.parse::<Recipe>().map_err(Error::Recipe)?);
        }
        if let Some(count) = threads {
            builder = builder.threads(count);
        }
        if let Some(count) = expected_products {
            builder = builder.expected_products(count);
        }
        if deterministic {
            builder = builder.deterministic();
        }
        if let Some(bytes) = budget {
            builder = builder.budget(bytes);
        }
        builder.build()
    };
    let built = if long { interruptible(py, build) } else { detached(py, build) };
    built?.map_err(exception)
}

/// Where the elements of an array of one or two dimensions are.
struct Place {
    shape: (usize, usize),
    layout: Layout,
    leading: usize,
    vector: bool,
}

impl Place {
    /// Nothing for one that is not row-major or column-major with a leading dimension.
    fn of<T: Number>(array: &Bound<'_, PyArrayDyn<T>>) -> Option<Self> {
        let size = size_of::<T>() as isize;
        let aligned = (array.data() as usize).is_multiple_of(align_of::<T>());
        let step = |stride: isize| (aligned && stride % size == 0).then_some(stride / size);
        match (array.shape(), array.strides()) {
            (&[n], &[stride]) => {
                let contiguous = aligned && (n <= 1 || stride == size);
                let (shape, layout) = ((n, 1), Layout::ColumnMajor);
                contiguous.then_some(Self { shape, layout, leading: n, vector: true })
            }
            (&[rows, cols], &[down, right]) => {
                let (down, right) = (step(down)?, step(right)?);
                let shape = (rows, cols);
                if rows == 0 || cols == 0 {
                    let layout = Layout::RowMajor;
                    return Some(Self { shape, layout, leading: cols, vector: false });
                }
                // Strides of lines that are alone mean nothing.
                let leading = |lines: usize, length: usize, stride: isize, inner: isize| {
                    let stride = if lines == 1 { length as isize } else { stride };
                    let fits = (length == 1 || inner == 1) && stride >= length as isize;
                    fits.then_some(stride as usize)
                };
                let by_rows = leading(rows, cols, down, right).map(|l| (Layout::RowMajor, l));
                let place = by_rows
                    .or_else(|| leading(cols, rows, right, down).map(|l| (Layout::ColumnMajor, l)));
                let (layout, leading) = place?;
                Some(Self { shape, layout, leading, vector: false })
            }
            _ => None,
        }
    }

    /// Elements from the first one to the last one.
    fn extent(&self) -> usize {
        let (rows, cols) = self.shape;
        if rows == 0 || cols == 0 {
            return 0;
        }
        match self.layout {
            Layout::RowMajor => (rows - 1) * self.leading + cols,
            Layout::ColumnMajor => (cols - 1) * self.leading + rows,
        }
    }

    /// Addresses from the first element to the end of the last one.
    fn addresses<T: Number>(&self, array: &Bound<'_, PyArrayDyn<T>>) -> Range<usize> {
        let start = array.data() as usize;
        start..start + self.extent() * size_of::<T>()
    }
}

fn addresses<E>(slice: &[E]) -> Range<usize> {
    let range = slice.as_ptr_range();
    range.start as usize..range.end as usize
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

impl<T: Number> Typed<T> {
    fn new(op: spm::Operator<T>, options: Options, same_order: bool) -> Self {
        let (shape, device) = (op.shape(), op.device().cloned());
        let (others, scratch) = (Mutex::default(), Mutex::default());
        let of_recipe = options.recipe.as_ref().map(|_| op.recipe().threads());
        let threads = options.threads.or(of_recipe);
        let state = RwLock::new(State { op, others, threads, scratch, same_order });
        Self { state: ManuallyDrop::new(state), shape, device, options, _keeping: Keeping::new() }
    }

    /// (rows, columns)
    pub(crate) fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// Calls `body` while the values stay. The operator is whole after a panic.
    pub(crate) fn read<R>(&self, body: impl FnOnce(&State<T>) -> R) -> R {
        body(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Typed::read`] for what takes no time: other Python threads go on while it waits for new values.
    fn look<R>(&self, py: Python<'_>, body: impl FnOnce(&State<T>) -> R) -> R {
        body(&self.state.read_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }

    fn run(
        &self,
        x: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        alpha: Option<Complex64>,
        beta: Option<Complex64>,
        form: Form,
    ) -> PyResult<&'static str> {
        let py = x.py();
        let scalar = |what: &str, number: Option<Complex64>, default: T| match number {
            None => Ok(default),
            Some(number) => T::of_python(number)
                .ok_or_else(|| PyTypeError::new_err(format!("{what}: expected a real number"))),
        };
        let (alpha, beta) = (
            scalar("alpha", alpha, <T as Scalar>::ONE)?,
            scalar("beta", beta, <T as Scalar>::ZERO)?,
        );
        let array =
            |what: &str| PyTypeError::new_err(format!("{what}: not of the operator's type"));
        let x = x.cast::<PyArrayDyn<T>>().map_err(|_| array("x"))?;
        let out = out.cast::<PyArrayDyn<T>>().map_err(|_| array("out"))?;
        let Some(of_x) = Place::of(x) else { return Ok("x") };
        let Some(of_out) = Place::of(out) else { return Ok("out") };
        if of_x.vector != of_out.vector {
            return Err(PyValueError::new_err("out: expected as many dimensions as x has"));
        }
        let to = of_out.addresses(out);
        if overlap(&of_x.addresses(x), &to) {
            return Ok("x");
        }
        // Held during the product, so that another product cannot write what this one reads.
        let Ok(_reading) = x.try_readonly() else { return Ok("x") };
        let _writing = match out.try_readwrite() {
            Ok(writing) => writing,
            Err(BorrowError::NotWriteable) => {
                return Err(PyValueError::new_err("out: the array is read-only"));
            }
            Err(_) => {
                return Err(PyValueError::new_err("out: another product uses the array"));
            }
        };
        // SAFETY: the extent is that of the array, whose elements are aligned. The borrow above excludes
        // writers that ask for one.
        let from = unsafe { std::slice::from_raw_parts(x.data(), of_x.extent()) };
        // SAFETY: as above; the extents of x and out do not overlap, and the borrow is exclusive.
        let into = unsafe { std::slice::from_raw_parts_mut(out.data(), of_out.extent()) };
        let result: Result<bool, Error> = detached(py, || {
            self.read(|state| {
                if state.addresses().iter().any(|array| overlap(array, &to)) {
                    return Ok(false);
                }
                state.product(form, alpha, (from, &of_x), beta, (into, &of_out))?;
                Ok(true)
            })
        })?;
        match result {
            Ok(true) => Ok(""),
            Ok(false) => Err(PyValueError::new_err("out: the matrix of the operator is there")),
            Err(error) => Err(exception(error)),
        }
    }

    fn set_values(&self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = vector::<T>(values, "values")?;
        let readonly = array.try_readonly();
        let readonly = readonly.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let values = readonly.as_slice()?;
        self.write(array.py(), |state| state.op.set_values(values))
    }

    fn set_matrix(&self, arrays: &Arrays<'_>) -> PyResult<()> {
        let data = vector::<T>(&arrays.data, "values")?;
        let matrix = arrays.to_csr(data)?.matrix;
        self.write(data.py(), move |state| state.op.set_matrix(matrix))
    }

    /// Changes the operator when no product uses it.
    fn write(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut State<T>) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let changed = detached(py, || {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            state.others.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
            change(&mut state)
        });
        changed?.map_err(exception)
    }

    fn widened<W: Number>(&self, py: Python<'_>) -> PyResult<Typed<W>>
    where
        T: WidensTo<W>,
    {
        let widen = || self.read(|state| state.op.matrix().map(|value| value.widen_to()));
        let matrix = Arc::new(detached(py, widen)?);
        let mut options = self.options.clone();
        // The clock may say something else for wider values; the recipe was for these.
        (options.recipe, options.chosen) = (None, None);
        let op = build(py, matrix, &options)?;
        Ok(Typed::new(op, options, self.look(py, |state| state.same_order)))
    }
}

impl<T: Number> Drop for Typed<T> {
    fn drop(&mut self) {
        let state = &mut self.state;
        // SAFETY: dropped here alone, and not used any more.
        let mut free = || unsafe { ManuallyDrop::drop(state) };
        match self.device {
            // Freeing device memory waits for work that may wait for the GIL.
            Some(_) => Python::attach(|py| py.detach(|| keeping_context(free))),
            None => free(),
        }
    }
}

impl<T: Number> State<T> {
    /// Of row pointers, column indices and values.
    fn addresses(&self) -> [Range<usize>; 3] {
        let a = self.op.matrix();
        [addresses(a.row_ptr()), addresses(a.col_ind()), addresses(a.values())]
    }

    fn product(
        &self,
        Form { transposed, conjugate }: Form,
        alpha: T,
        (x, of_x): (&[T], &Place),
        beta: T,
        (y, of_y): (&mut [T], &Place),
    ) -> Result<(), Error> {
        let op = &self.op;
        if of_x.vector {
            return match (transposed, conjugate) {
                (false, _) => op.apply_scaled(alpha, x, beta, y),
                (true, false) => op.apply_transpose_scaled(alpha, x, beta, y),
                (true, true) => op.apply_conj_transpose_scaled(alpha, x, beta, y),
            };
        }
        let x = DenseRef::with_leading_dimension(x, of_x.shape, of_x.layout, of_x.leading)?;
        let y = DenseMut::with_leading_dimension(y, of_y.shape, of_y.layout, of_y.leading)?;
        if transposed {
            let form = Form { transposed, conjugate: false };
            self.of_form(form)?.apply_dense(alpha, x, beta, y)
        } else {
            op.apply_dense(alpha, x, beta, y)
        }
    }

    /// The operator of another form of the matrix, where this one is.
    pub(crate) fn of_form(&self, form: Form) -> Result<spm::Operator<T>, Error> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, op)) = others.iter().find(|(of, _)| *of == form) {
            return Ok(op.clone());
        }
        let mut matrix = if form.transposed {
            convert::csr_to_csc(self.op.matrix().view()).into_transposed()
        } else {
            Csr::clone(self.op.matrix())
        };
        if form.conjugate {
            matrix.values_mut().iter_mut().for_each(|value| *value = Scalar::conj(*value));
        }
        let builder = spm::Operator::builder(matrix);
        let op = match self.op.device() {
            Some(device) => builder.device(device.clone().into()),
            None => match self.threads {
                Some(count) => builder.threads(count),
                None => builder,
            },
        };
        let op = op.build()?;
        others.push((form, op.clone()));
        Ok(op)
    }
}
