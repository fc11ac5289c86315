"""A stand-in for PyTorch, whose tensors are in host memory, for an emulated GPU.

A process reads the functions of `torch` once, so a test that uses this is a program of its own.
"""

import ctypes
import sys
import types

import numpy as np

HOST, CUDA = 1, 2
FLOAT, COMPLEX, INTEGER = 2, 5, 0


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


READ = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class ExchangeApi(ctypes.Structure):
    pass


ExchangeApi._fields_ = [("version", ctypes.c_uint32 * 2), ("previous", ctypes.POINTER(ExchangeApi)),
                        ("owning", ctypes.c_void_p * 3), ("read", READ), ("stream", STREAM)]


class Tensor:
    """An array with the attributes of a tensor that are asked for besides the functions of DLPack."""

    reads = 0

    def __init__(self, array, device=(HOST, 0), requires_grad=False, negated=False, conjugated=False):
        self.array, self.device, self.requires_grad = array, device, requires_grad
        self.negated, self.conjugated = negated, conjugated
        lines = ctypes.c_int64 * max(array.ndim, 1)
        self.shape_of = lines(*array.shape)
        self.strides_of = lines(*(stride // array.itemsize for stride in array.strides))

    is_cuda = False
    dtype = property(lambda self: self.array.dtype)
    shape = property(lambda self: self.array.shape)
    T = property(lambda self: Tensor(self.array.T))

    def is_neg(self):
        return self.negated

    def is_conj(self):
        return self.conjugated

    def data_ptr(self):
        return self.array.ctypes.data

    def new_empty(self, shape):
        return Tensor(np.full(shape, np.nan, self.dtype))

    def __array__(self, dtype=None, copy=None):
        return self.array


@READ
def read(x, out):
    Tensor.reads += 1
    if x.array.ndim == 0:
        # As for a tensor that a library cannot describe.
        return -1
    code = {"f": FLOAT, "c": COMPLEX}.get(x.dtype.kind, INTEGER)
    # The address comes in two parts.
    out[0] = DLTensor(x.array.ctypes.data - 64, x.device, x.array.ndim, code, 8 * x.dtype.itemsize, 1,
                      x.shape_of, x.strides_of, 64)
    return 0


@STREAM  # Of host memory none is asked for.
def stream(device_type, device, out):
    return -1


def install(major=1):
    """Makes it the module `torch`, whose functions are of this major version of DLPack behind a later one."""
    of_version = ExchangeApi((major, 3), None, (ctypes.c_void_p * 3)(), read, stream)
    later = ExchangeApi((major + 1, 0), ctypes.pointer(of_version), (ctypes.c_void_p * 3)(), READ(), STREAM())
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = b"dlpack_exchange_api"
    Tensor.__dlpack_c_exchange_api__ = capsule(ctypes.addressof(later), name, None)
    module = types.ModuleType("torch")
    module.Tensor, module._alive = Tensor, (of_version, later, name)
    module.empty_like = lambda x: Tensor(np.full_like(x.array, np.nan))
    for dtype in ("float64", "float32", "complex128", "complex64"):
        setattr(module, dtype, np.dtype(dtype))
    sys.modules["torch"] = module
