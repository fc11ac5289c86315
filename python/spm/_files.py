"""Matrix Market files, and the transpose."""

import os

import numpy as np

from spm import _native
from spm._arrays import native_arrays, sparse_matrix


def read(path, dtype=None):
    """Read a Matrix Market file.

    Files are read in parallel. Symmetry is expanded, values of equal positions are summed, explicit
    zeros are kept.

    Parameters
    ----------
    path : str or os.PathLike
        A file ``NAME.mtx``, ``NAME.mtx.gz``, or ``NAME.tar.gz`` with ``NAME.mtx`` in it.
    dtype : data type, optional
        float32, float64, complex64 or complex128. By default complex128 for a complex file and
        float64 for any other.

    Returns
    -------
    scipy.sparse.csr_array
        The matrix, with sorted indices.

    Raises
    ------
    FileNotFoundError, PermissionError, OSError
        The file cannot be read.
    ValueError
        The text is not a Matrix Market file; the message has file, line and what was expected. Or the
        file is complex and `dtype` is not.

    Examples
    --------
    >>> import scipy.sparse, spm, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spm.write(folder + "/a.mtx.gz", scipy.sparse.csr_array([[0.0, 2.5], [1.0, 0.0]]))
    ...     A = spm.read(folder + "/a.mtx.gz")
    >>> A.toarray()
    array([[0. , 2.5],
           [1. , 0. ]])
    """
    dtype = None if dtype is None else np.dtype(dtype)
    is_complex = dtype is not None and dtype.kind == "c"
    matrix = sparse_matrix(_native.read(os.fspath(path), is_complex))
    if dtype is None:
        return matrix
    if matrix.dtype.kind == "c" and not is_complex:
        raise ValueError(f"{os.fspath(path)}: the matrix is complex, and {dtype} is not")
    return matrix.astype(dtype, copy=False)


def write(path, A):
    """Write a matrix to a Matrix Market file of general symmetry.

    Every value reads back to the same bits.

    Parameters
    ----------
    path : str or os.PathLike
        ``NAME.mtx`` or ``NAME.mtx.gz``. An existing file is replaced once the new one is whole.
    A : SciPy sparse matrix or array

    Raises
    ------
    OSError
        The file cannot be written.
    """
    _native.write(os.fspath(path), native_arrays(A))


def transpose(A):
    """The transpose in compressed rows, made on all cores.

    ``A.T`` of SciPy only swaps the names of rows and columns: a CSR matrix becomes a CSC one. This
    function reorders the entries.

    Parameters
    ----------
    A : SciPy sparse matrix or array

    Returns
    -------
    scipy.sparse.csr_array
        A^T with sorted indices.

    Examples
    --------
    >>> import scipy.sparse, spm
    >>> spm.transpose(scipy.sparse.csr_array([[1.0, 2.0, 3.0]])).toarray()
    array([[1.],
           [2.],
           [3.]])
    """
    return sparse_matrix(_native.transpose(native_arrays(A)))
