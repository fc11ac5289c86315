"""The operator."""

import os
import threading

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from spm import _native
from spm._arrays import DTYPES, native_arrays, sparse_matrix
from spm._device import host_matrix, host_values
from spm._results import empty

# A process that was forked has none of the threads of its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.after_fork)

_REAL = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}
_MOST_THREADS = 1 << 16


def operator(A, *, expected_products=None, deterministic=False, threads=None, recipe=None,
             budget=None, copy=False, device=None):
    """An operator that multiplies by a sparse matrix, on all CPU cores or on a GPU.

    Parameters
    ----------
    A : SciPy sparse matrix or array, matrix of cupyx.scipy.sparse, sparse tensor of PyTorch
        In CSR with sorted indices its values and its 32-bit indices are used in place; 64-bit indices
        are converted. Other formats are converted to CSR. float32, float64, complex64 and complex128
        stay as they are; integers and booleans become float64, float16 becomes float32.
    expected_products : int, optional
        Number of products to come. The operator then chooses its kernel at once, with the least time
        for planning and so many products. Without it the operator starts with the CSR arrays, and
        converts them when the products so far make it likely that this pays.
    deterministic : bool, optional
        Choose without the clock, so that two runs of a program give the same bits.
    threads : int, optional
        Number of threads; all cores by default.
    recipe : str, optional
        The choice of another operator, its `recipe`.
    budget : int, optional
        Bytes that the operator may allocate beside the matrix for each of its plans; 9 GiB by default.
    copy : bool, optional
        Copy the arrays of `A`. See Notes.
    device : str, optional
        Where the products run: "cpu"; "gpu" or "gpu:N", an NVIDIA GPU by its number from 0; "auto", the
        first GPU if there is one that holds the matrix, else CPU cores; "emulated", a GPU that is emulated
        on the host, slowly, for tests. By default the GPU that `A` is on, and "cpu" for a matrix in host
        memory.

    Returns
    -------
    Operator

    Raises
    ------
    TypeError
        `A` is not a sparse matrix, or has elements of another type.
    ValueError
        The arrays of `A` are no matrix (an index outside, for example), or the recipe is not one.
    MemoryError
        A plan takes more than the budget, or than the GPU has.
    RuntimeError
        The GPU that `device` names cannot be used; the message says why.

    Notes
    -----
    A matrix that is on a GPU already is copied to host memory once, for planning; the operator keeps that
    copy. On a GPU `expected_products` below 20
    asks for the product straight from CSR, and the budget is one of device memory. `Operator.apply` says
    what products on a GPU take.

    Without `copy` the operator and a CSR matrix share arrays. ``A.indptr`` and ``A.indices`` are then made
    read-only, as a changed index would reach memory outside the arrays. Do not write to ``A.data``
    either: whether later products see the new values depends on the kernel.
    `Operator.set_values` tells the operator.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, spm
    >>> A = scipy.sparse.csr_array([[4.0, -1.0, 0.0], [-1.0, 4.0, -1.0], [0.0, -1.0, 4.0]])
    >>> op = spm.operator(A)
    >>> op @ np.array([1.0, 2.0, 3.0])
    array([ 2.,  4., 10.])
    >>> from scipy.sparse.linalg import cg
    >>> x, info = cg(op, np.array([2.0, 4.0, 10.0]), rtol=1e-10)
    >>> x.round(6)
    array([1., 2., 3.])
    >>> op = spm.operator(A, device="auto")  # on the first GPU, or on CPU cores without one
    >>> op @ np.array([1.0, 2.0, 3.0])
    array([ 2.,  4., 10.])
    """
    return Operator(A, expected_products=expected_products, deterministic=deterministic,
                    threads=threads, recipe=recipe, budget=budget, copy=copy, device=device)


def _count(what, number, least, most=2**64 - 1):
    if number is None:
        return None
    try:
        count = number.__index__()
    except AttributeError:
        raise TypeError(f"{what}: expected an integer, found {type(number).__name__}") from None
    if not least <= count <= most:
        raise ValueError(f"{what}: expected {least} to {most}, found {count}")
    return count


class _Shared:
    """What an operator, its transpose and its conjugates share."""

    def __init__(self, native, dtype, options, same_order):
        self.native = native
        self.dtype = dtype
        self.options = options
        # Whether values are in the order of the matrix that the operator was made of.
        self.same_order = same_order
        self.wide = None
        self.lock = threading.Lock()

    def of(self, dtype):
        """The native operator of `dtype`, which is as wide as the matrix or wider."""
        if dtype == self.dtype:
            return self.native
        with self.lock:
            if self.wide is None:
                self.wide = self.native.widened()
            return self.wide


class Operator(LinearOperator):
    """A sparse matrix that is ready to multiply; `spm.operator` makes it.

    ``op @ x`` is the product with a vector or with a matrix X. X in row-major (C) order gives a result in
    C order, X in column-major (Fortran) order one in Fortran order; neither is copied, and neither are
    slices of columns or rows of a larger array. `Operator.apply` has further arguments. ``op.T`` and
    ``op.H`` are operators of the transpose and of the conjugate transpose, which share the matrix.

    The type of the result is the one that NumPy gives to a product of both types. x in double precision
    with a matrix in single precision makes a copy of the matrix in double precision, once.

    Products release the GIL. Several threads may use one operator at once.

    On a GPU (`device`) x and X may be CuPy arrays, PyTorch tensors, or anything else in device memory with
    ``__cuda_array_interface__`` or ``__dlpack__``. The product is put into the stream in which their library
    works; neither does it wait, nor does anything pass through host memory. The result is of the same
    kind. NumPy arrays are copied to the GPU and back.

    Attributes
    ----------
    shape : tuple of int
        (rows, columns).
    dtype : numpy.dtype
        Type of the elements.
    nnz : int
        Stored entries, explicit zeros included.
    recipe : str
        Kernel, parameters and threads of the product with a vector; an argument of `operator`.
    memory_bytes : int
        Bytes of the matrix and of all plans.
    device : str
        "cpu", "gpu:N" or "emulated".
    """

    def __init__(self, A, *, expected_products=None, deterministic=False, threads=None, recipe=None,
                 budget=None, copy=False, device=None):
        A, of_matrix = host_matrix(A)
        if device is None:
            device = of_matrix or "cpu"
        elif not isinstance(device, str):
            raise TypeError(f"device: expected a string, found {type(device).__name__}")
        if recipe is not None and not isinstance(recipe, str):
            raise TypeError(f"recipe: expected a string, found {type(recipe).__name__}")
        options = {
            "threads": _count("threads", threads, 1, _MOST_THREADS),
            "expected_products": _count("expected_products", expected_products, 0),
            "deterministic": bool(deterministic),
            "recipe": recipe,
            "chosen": None,
            "budget": _count("budget", budget, 0),
            "device": device,
        }
        arrays = native_arrays(A, copy=bool(copy))
        native = _native.Operator(arrays, options)
        if A.format == "csr":
            _freeze(A, native)
        self._set(_Shared(native, arrays["data"].dtype, options, native.same_order), False, False)

    def _set(self, shared, transposed, conjugate):
        shape = shared.native.shape
        super().__init__(shared.dtype, shape[::-1] if transposed else shape)
        self._shared = shared
        self._native = shared.native
        self._on_gpu = shared.native.device != "cpu"
        self._transposed = transposed
        self._conjugate = conjugate

    def __new__(cls, *args, **kwargs):
        # That of LinearOperator looks for methods that a subclass may lack.
        return object.__new__(cls)

    @classmethod
    def _of(cls, shared, transposed, conjugate):
        op = object.__new__(cls)
        op._set(shared, transposed, conjugate)
        return op

    # Products.

    def __matmul__(self, x):
        if type(x) is np.ndarray:
            return self.apply(x)
        if self._on_gpu:
            result = self._native.run_on_device(x, None, 1, 0, self._transposed, self._conjugate, None)
            if result is not None:
                return result
        if isinstance(x, np.ndarray) or not (
            np.isscalar(x) or isinstance(x, LinearOperator) or scipy.sparse.issparse(x)
        ):
            return self.dot(x)
        if scipy.sparse.issparse(x):
            raise TypeError("products with sparse matrices are not supported: use op.tocsr() @ x")
        return super().__matmul__(x)

    def dot(self, x):
        """As ``op @ x``; also the product with a number or with another linear operator."""
        if np.isscalar(x) or isinstance(x, LinearOperator):
            return super().dot(x)
        result = self.apply(np.asarray(x) if isinstance(x, np.ndarray) else x)
        return np.asmatrix(result) if isinstance(x, np.matrix) else result

    def apply(self, x, out=None, *, alpha=1, beta=0, stream=None):
        """``out = alpha * op @ x + beta * out``.

        Parameters
        ----------
        x : array_like
            A vector with as many elements as the operator has columns, or a matrix with as many rows.
        out : numpy.ndarray, optional
            Where the result goes, of the type and the shape of the result, in any order. It may be
            `x` itself or overlap it (x is copied then), but not the matrix.
        alpha : number, optional
            Factor of the product. 0 leaves out the product.
        beta : number, optional
            Factor of `out`. If it is 0, which is the default, `out` is not read.
        stream : int or stream of CuPy or PyTorch, optional
            Where a product with arrays in device memory runs. See Notes.

        Returns
        -------
        numpy.ndarray
            `out`, or a new array. For an x in device memory, an array of the same library.

        Raises
        ------
        ValueError
            `x` or `out` has another shape, `out` is read-only, or another thread's product uses it.
        TypeError
            `out` has another type than the result. Or x is in device memory and the operator on CPU cores.

        Notes
        -----
        In device memory x and `out` have the type of the operator and are on the operator's GPU; anything
        else is an error. They are used in place if both are in C order or both in F order without gaps. A
        slice with gaps, an x in the other order than `out` and an x that overlaps `out` are copied on the
        GPU, in the stream of the product; elements that do not come in the order of their addresses are
        an error.

        The product runs in `stream`, which is by default the current stream of CuPy or PyTorch, the one
        that a ``__cuda_array_interface__`` names, or else the default stream. The call returns when the
        product is in the stream. The operands may then be released, because both libraries reuse
        memory in the order of their current streams. With a `stream` that is another one, operands that
        are given belong to the caller: x must be ready there, and neither x nor `out` may be released or
        written elsewhere before the product is done (``Tensor.record_stream``). A new array may be used
        in the current stream at once, which waits for the product.

        The first product with a vector's or a matrix's width, and the first with the transpose, plan:
        that takes milliseconds and waits for the device.

        Examples
        --------
        >>> import numpy as np, scipy.sparse, spm
        >>> op = spm.operator(scipy.sparse.csr_array([[2.0, 0.0], [0.0, 3.0]]))
        >>> r = np.array([1.0, 1.0])
        >>> op.apply(np.array([1.0, 2.0]), out=r, alpha=-1, beta=1)  # r - A x
        array([-1., -5.])
        """
        if not isinstance(x, np.ndarray):
            result = self._native.run_on_device(x, out, alpha, beta, self._transposed,
                                                self._conjugate, stream)
            if result is not None:
                return result
            x = np.asarray(x)
        if stream is not None:
            raise TypeError("stream: x is in host memory")
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            raise ValueError(f"x: expected shape ({self.shape[1]},) or ({self.shape[1]}, k), "
                             f"found {x.shape}")
        shape = self.shape[:1] + x.shape[1:]
        if out is None and not _is_zero(beta):
            raise ValueError("beta: there is no out to add to")
        if out is not None and not isinstance(out, np.ndarray):
            raise TypeError(f"out: expected a NumPy array, as x is, found {type(out).__name__}")
        if out is not None and out.shape != shape:
            raise ValueError(f"out: expected shape {shape}, found {out.shape}")
        native, dtype = self._native, x.dtype
        if dtype != self.dtype or not dtype.isnative:
            dtype = self._result_type(dtype)
            if _needs_parts(self.dtype, dtype):
                return self._apply_parts(x, out, alpha, beta, dtype)
            x = x.astype(dtype)
            native = self._shared.of(dtype)
        if out is None:
            out = empty(shape, dtype, x.ndim == 2 and x.flags.f_contiguous and not x.flags.c_contiguous)
        elif not isinstance(out, np.ndarray) or out.dtype != dtype:
            raise TypeError(f"out: expected an array of {dtype}")
        if self._conjugate and (x.ndim == 2 or not self._transposed) and dtype.kind == "c":
            return self._apply_conjugate(native, x, out, alpha, beta)
        # None is 1 for alpha and 0 for beta.
        alpha = None if alpha == 1 else complex(alpha)
        beta = None if _is_zero(beta) else complex(beta)
        _run(native, x, out, alpha, beta, self._transposed, self._conjugate)
        return out

    def _result_type(self, dtype):
        try:
            result = np.result_type(self.dtype, dtype)
        except TypeError:
            result = None
        if result not in DTYPES:
            raise TypeError(f"x: a product of {self.dtype} and {dtype} is not supported")
        return result

    def _apply_parts(self, x, out, alpha, beta, dtype):
        """A real matrix times a complex x: twice as many columns of real numbers."""
        real = _REAL[dtype.name]
        native = self._shared.of(real)
        x = np.ascontiguousarray(x, dtype=dtype)
        wide = x.view(real).reshape(x.shape[0], 2 * (x.size // x.shape[0] if x.shape[0] else 0))
        product = empty((self.shape[0], wide.shape[1]), real)
        _run(native, wide, product, None, None, self._transposed, False)
        shape = self.shape[:1] + x.shape[1:]
        product = product.view(dtype).reshape(shape) if product.size else np.zeros(shape, dtype)
        return _combine(product, out, alpha, beta, dtype)

    def _apply_conjugate(self, native, x, out, alpha, beta):
        """conj(A) x = conj(A conj(x)), and the same with the transpose."""
        product = np.empty_like(out)
        _run(native, np.conj(x), product, None, None, self._transposed, False)
        return _combine(np.conj(product, out=product), out, alpha, beta, out.dtype)

    def matvec(self, x, out=None, *, alpha=1, beta=0, stream=None):
        """`apply` for a vector; x may also have the shape (n, 1)."""
        if out is None and stream is None and alpha == 1 and isinstance(x, np.ndarray):
            return super().matvec(x)
        return self.apply(x, out, alpha=alpha, beta=beta, stream=stream)

    def matmat(self, X, out=None, *, alpha=1, beta=0, stream=None):
        """`apply` for a matrix of one or more columns."""
        if out is None and stream is None and alpha == 1 and isinstance(X, np.ndarray):
            return super().matmat(X)
        return self.apply(X, out, alpha=alpha, beta=beta, stream=stream)

    def rmatvec(self, x, out=None, *, alpha=1, beta=0, stream=None):
        """`matvec` with the conjugate transpose."""
        if out is None and stream is None and alpha == 1 and isinstance(x, np.ndarray):
            return super().rmatvec(x)
        return self.H.matvec(x, out, alpha=alpha, beta=beta, stream=stream)

    def rmatmat(self, X, out=None, *, alpha=1, beta=0, stream=None):
        """`matmat` with the conjugate transpose."""
        if out is None and stream is None and alpha == 1 and isinstance(X, np.ndarray):
            return super().rmatmat(X)
        return self.H.matmat(X, out, alpha=alpha, beta=beta, stream=stream)

    def _matvec(self, x):
        return self.apply(x)

    def _matmat(self, X):
        return self.apply(X)

    def _rmatvec(self, x):
        return self.H.apply(x)

    def _rmatmat(self, X):
        return self.H.apply(X)

    def _transpose(self):
        return self._of(self._shared, not self._transposed, self._conjugate)

    def _adjoint(self):
        conjugate = self.dtype.kind == "c" and not self._conjugate
        return self._of(self._shared, not self._transposed, conjugate)

    def conj(self):
        """The operator of the conjugate matrix, which shares the matrix."""
        conjugate = self.dtype.kind == "c" and not self._conjugate
        return self._of(self._shared, self._transposed, conjugate)

    # New values.

    def set_values(self, values):
        """Replace the values of the stored entries; the pattern and the choice of kernel stay.

        All operators that share the matrix (``op.T``, ``op.H``) have the new values.

        Parameters
        ----------
        values : numpy.ndarray or SciPy sparse matrix, or those of CuPy and PyTorch
            The new ``A.data`` of the CSR matrix that the operator was made of, or a matrix with its
            entries at the same places, in any format.

        Raises
        ------
        ValueError
            Another number of values, or entries at other places. Also an array of values for an
            operator that was not made of a CSR matrix with sorted indices: its own order is another
            one, so pass the matrix.

        Examples
        --------
        >>> import numpy as np, scipy.sparse, spm
        >>> op = spm.operator(scipy.sparse.csr_array([[1.0, 2.0], [0.0, 3.0]]))
        >>> op.set_values(np.array([10.0, 20.0, 30.0]))
        >>> op @ np.ones(2)
        array([30., 30.])
        """
        shared = self._shared
        values = host_values(values)
        if scipy.sparse.issparse(values):
            if self._transposed or self._conjugate:
                raise ValueError("pass the matrix to the operator that is not transposed")
            if not np.can_cast(values.dtype, shared.dtype, "same_kind"):
                raise TypeError(f"values: {values.dtype} does not fit {shared.dtype}")
            change, new = shared.native.set_matrix, native_arrays(values, shared.dtype)
        else:
            if not shared.same_order:
                raise ValueError("the operator was not made of a CSR matrix with sorted indices, and has "
                                 "its values in another order: pass the matrix")
            new = np.asarray(values)
            if not np.can_cast(new.dtype, shared.dtype, "same_kind"):
                raise TypeError(f"values: {new.dtype} does not fit {shared.dtype}")
            if new.shape != (shared.native.nnz,):
                raise ValueError(f"values: expected shape ({shared.native.nnz},), found {new.shape}")
            change, new = shared.native.set_values, np.ascontiguousarray(new, dtype=shared.dtype)
        with shared.lock:
            change(new)
            shared.wide = None

    # What it is.

    @property
    def nnz(self):
        return self._native.nnz

    @property
    def device(self):
        return self._native.device

    @property
    def recipe(self):
        return self._native.recipe

    @property
    def memory_bytes(self):
        wide = self._shared.wide
        return self._native.memory_bytes + (0 if wide is None else wide.memory_bytes)

    def describe(self):
        """Kernel, the reason for it, sizes and times, as text for people."""
        return self._native.describe()

    def measure(self):
        """Seconds of the fastest of a few products ``op @ x`` with vectors of the operator's own; None
        if the budget does not allow the vectors. `describe` has the time too afterwards."""
        return self._native.measure()

    def tocsr(self):
        """The matrix as a `scipy.sparse.csr_array` of its own arrays."""
        matrix = sparse_matrix(self._native.arrays())
        if self._transposed:
            matrix = sparse_matrix(_native.transpose(native_arrays(matrix)))
        return matrix.conj() if self._conjugate else matrix

    def __repr__(self):
        rows, cols = self.shape
        return f"<{rows}x{cols} spm.Operator of {self.dtype}, {self.nnz} entries, {self.recipe}>"

    def __reduce__(self):
        options = dict(self._shared.options)
        if options["recipe"] is None:
            options["chosen"] = self._native.chosen
        return _restore, (self._native.arrays(), self._shared.same_order, options,
                          self._transposed, self._conjugate)


def _restore(arrays, same_order, options, transposed, conjugate):
    shape, indptr, indices, data = arrays
    arrays = {"format": "csr", "shape": shape, "major": indptr, "minor": indices, "data": data,
              "copy": False}
    native = _native.Operator(arrays, options)
    return Operator._of(_Shared(native, data.dtype, options, same_order), transposed, conjugate)


def _freeze(A, native):
    """Makes the indices of `A` read-only if the operator shares them."""
    indptr, indices, _ = native.addresses
    for array, address in ((A.indptr, indptr), (A.indices, indices)):
        if array.size and array.ctypes.data == address:
            array.flags.writeable = False


def _is_zero(number):
    return number == 0


def _needs_parts(matrix, result):
    return result.kind == "c" and matrix.kind != "c"


def _combine(product, out, alpha, beta, dtype):
    """alpha * product + beta * out, in out if there is one."""
    product *= dtype.type(alpha)
    if out is None:
        return product
    if not isinstance(out, np.ndarray) or out.dtype != dtype:
        raise TypeError(f"out: expected an array of {dtype}")
    if _is_zero(beta):
        out[...] = product
    else:
        out *= dtype.type(beta)
        out += product
    return out


def _run(native, x, out, alpha, beta, transposed, conjugate):
    """Runs a native product; copies what it cannot use in place."""
    copied = native.run(x, out, alpha, beta, transposed, conjugate)
    if not copied:
        return
    if copied == "out":
        result = np.array(out, order="C", copy=True)
        _run(native, x, result, alpha, beta, transposed, conjugate)
        out[...] = result
        return
    x = np.array(x, order="C", copy=True)
    if native.run(x, out, alpha, beta, transposed, conjugate):
        result = np.array(out, order="C", copy=True)
        _run(native, x, result, alpha, beta, transposed, conjugate)
        out[...] = result
