"""Matrices and arrays that CuPy and PyTorch have, on a GPU or in host memory, as SciPy and NumPy have them."""

import sys

import scipy.sparse


def _is_of(A, module, name):
    """Whether A is an instance of a class of a module, which is not imported for this."""
    module = sys.modules.get(module)
    of = getattr(module, name, None)
    return of is not None and isinstance(A, of)


def host_matrix(A):
    """A as a SciPy matrix, and the device of its arrays: "gpu:N", or None for host memory."""
    if scipy.sparse.issparse(A):
        return A, None
    if _is_of(A, "torch", "Tensor"):
        return _of_torch(A), f"gpu:{A.get_device()}" if A.is_cuda else None
    # Formats of cupyx.scipy.sparse have no public base class.
    if type(A).__module__.startswith("cupyx.scipy.sparse") and hasattr(A, "get"):
        on_host = A.get()
        data = getattr(A, "data", None)
        return on_host, "gpu:0" if data is None else f"gpu:{data.device.id}"
    return A, None


def _of_torch(A):
    torch = sys.modules["torch"]
    if A.ndim != 2:
        raise ValueError(f"expected a matrix of two dimensions, found {A.ndim}")
    shape = tuple(A.shape)
    if A.layout == torch.sparse_csr:
        arrays = (A.values(), A.col_indices(), A.crow_indices())
        return scipy.sparse.csr_array(tuple(map(_of_tensor, arrays)), shape=shape)
    if A.layout == torch.sparse_csc:
        arrays = (A.values(), A.row_indices(), A.ccol_indices())
        return scipy.sparse.csc_array(tuple(map(_of_tensor, arrays)), shape=shape)
    if A.layout == torch.sparse_coo:
        A = A.coalesce()
        return scipy.sparse.coo_array((_of_tensor(A.values()), tuple(_of_tensor(A.indices()))),
                                      shape=shape)
    raise TypeError(f"expected a sparse tensor, found one of layout {A.layout}: "
                    "A.to_sparse_csr() makes one of a dense tensor")


def _of_tensor(tensor):
    return tensor.detach().cpu().numpy()


def host_values(values):
    """An array or a matrix of CuPy or PyTorch as one of NumPy or SciPy; anything else as it is."""
    if _is_of(values, "torch", "Tensor") and values.layout == sys.modules["torch"].strided:
        return _of_tensor(values)
    if _is_of(values, "cupy", "ndarray"):
        return values.get()
    return host_matrix(values)[0]
