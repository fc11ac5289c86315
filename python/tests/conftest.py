import numpy as np
import pytest
import scipy.sparse

DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def numbers(rng, shape, dtype):
    """Small whole numbers: all sums are exact in every type."""
    dtype = np.dtype(dtype)
    real = rng.integers(-4, 5, size=shape)
    if dtype.kind == "c":
        return (real + 1j * rng.integers(-4, 5, size=shape)).astype(dtype)
    return real.astype(dtype)


def matrix(rng, shape, dtype="float64", density=0.3, kind="csr", index="int32"):
    """A sparse matrix with whole numbers, of any SciPy format."""
    dense = numbers(rng, shape, dtype) * (rng.random(shape) < density)
    sparse = scipy.sparse.csr_array(dense)
    if kind in ("csr", "csc", "coo"):
        sparse = sparse.asformat(kind)
        if kind == "coo":
            sparse.coords = tuple(array.astype(index) for array in sparse.coords)
        else:
            sparse.indptr = sparse.indptr.astype(index)
            sparse.indices = sparse.indices.astype(index)
        return sparse
    return sparse.asformat(kind)
