"""SciPy matrices as the arrays that the native code takes."""

import numpy as np
import scipy.sparse

DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))


def element_type(dtype):
    """The data type of an operator for a matrix of `dtype`."""
    dtype = np.dtype(dtype).newbyteorder("=")
    if dtype in DTYPES:
        return dtype
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    if dtype == np.float16:
        return np.dtype(np.float32)
    raise TypeError(f"there are no operators of {dtype}: convert the matrix, "
                    "for example by A.astype(numpy.float64)")


def _indices(array, nonnegative_32_bits=np.dtype(np.int32)):
    """In 32 bits without a sign, in place, or in 64 bits."""
    array = np.ascontiguousarray(array)
    if array.dtype == nonnegative_32_bits:
        # A negative index becomes a large one, which the native code refuses.
        return array.view(np.uint32)
    return np.ascontiguousarray(array, dtype=np.int64)


def native_arrays(A, dtype=None, copy=False):
    """The arrays of a sparse matrix, for the native code."""
    if not scipy.sparse.issparse(A):
        raise TypeError(f"expected a SciPy sparse matrix or array, found {type(A).__name__}: "
                        "scipy.sparse.csr_array(A) makes one of a dense array")
    if A.ndim != 2:
        raise ValueError(f"expected a matrix of two dimensions, found {A.ndim}")
    if A.format not in ("csr", "csc", "coo"):
        A = A.tocsr()
    dtype = element_type(A.dtype) if dtype is None else dtype
    data = np.ascontiguousarray(A.data, dtype=dtype)
    if A.format == "coo":
        major, minor = _indices(A.row), _indices(A.col)
    else:
        major = _indices(A.indptr)
        # SciPy allows room behind the last entry.
        entries = int(major[-1]) if len(major) else 0
        data, minor = data[:entries], _indices(A.indices[:entries])
    return {"format": A.format, "shape": A.shape, "major": major, "minor": minor, "data": data,
            "copy": copy}


def sparse_matrix(arrays):
    """A `csr_array` of (shape, indptr, indices, data) from the native code."""
    shape, indptr, indices, data = arrays
    # As SciPy has them: with a sign, in 32 bits where that is enough.
    if max(len(data), *shape) <= np.iinfo(np.int32).max:
        indptr, indices = indptr.view(np.int32), indices.view(np.int32)
    else:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=shape, copy=False)
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
