import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional, TypedDict, Union, overload

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse.linalg import LinearOperator

__all__ = ["Bench", "Operator", "ResultMemory", "bench", "operator", "read", "result_memory", "transpose", "write"]
__version__: str

_Sparse = Union[scipy.sparse.sparray, scipy.sparse.spmatrix]
# Matrices of cupyx.scipy.sparse, sparse tensors, arrays in device memory, streams: of packages that may be absent.
_OnDevice = Any
_Path = Union[str, os.PathLike[str]]

class Operator(LinearOperator):
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    def __init__(
        self,
        A: Union[_Sparse, _OnDevice],
        *,
        expected_products: Optional[int] = None,
        deterministic: bool = False,
        threads: Optional[int] = None,
        recipe: Optional[str] = None,
        budget: Optional[int] = None,
        copy: bool = False,
        device: Optional[str] = None,
    ) -> None: ...
    @overload
    def apply(
        self,
        x: ArrayLike,
        out: Optional[NDArray[Any]] = None,
        *,
        alpha: complex = 1,
        beta: complex = 0,
    ) -> NDArray[Any]: ...
    @overload
    def apply(
        self,
        x: _OnDevice,
        out: Optional[_OnDevice] = None,
        *,
        alpha: complex = 1,
        beta: complex = 0,
        stream: Optional[_OnDevice] = None,
    ) -> _OnDevice: ...
    def matvec(
        self,
        x: _OnDevice,
        out: Optional[_OnDevice] = None,
        *,
        alpha: complex = 1,
        beta: complex = 0,
        stream: Optional[_OnDevice] = None,
    ) -> _OnDevice: ...
    def matmat(
        self,
        X: _OnDevice,
        out: Optional[_OnDevice] = None,
        *,
        alpha: complex = 1,
        beta: complex = 0,
        stream: Optional[_OnDevice] = None,
    ) -> _OnDevice: ...
    def rmatvec(
        self,
        x: _OnDevice,
        out: Optional[_OnDevice] = None,
        *,
        alpha: complex = 1,
        beta: complex = 0,
        stream: Optional[_OnDevice] = None,
    ) -> _OnDevice: ...
    def rmatmat(
        self,
        X: _OnDevice,
        out: Optional[_OnDevice] = None,
        *,
        alpha: complex = 1,
        beta: complex = 0,
        stream: Optional[_OnDevice] = None,
    ) -> _OnDevice: ...
    def set_values(self, values: Union[ArrayLike, _Sparse, _OnDevice]) -> None: ...
    def conj(self) -> Operator: ...
    def transpose(self) -> Operator: ...
    def adjoint(self) -> Operator: ...
    @property
    def T(self) -> Operator: ...
    @property
    def H(self) -> Operator: ...
    @property
    def nnz(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def recipe(self) -> str: ...
    @property
    def memory_bytes(self) -> int: ...
    def describe(self) -> str: ...
    def measure(self) -> Optional[float]: ...
    def tocsr(self) -> scipy.sparse.csr_array: ...

def operator(
    A: Union[_Sparse, _OnDevice],
    *,
    expected_products: Optional[int] = None,
    deterministic: bool = False,
    threads: Optional[int] = None,
    recipe: Optional[str] = None,
    budget: Optional[int] = None,
    copy: bool = False,
    device: Optional[str] = None,
) -> Operator: ...

class ResultMemory(NamedTuple):
    kept: int
    limit: int

def result_memory(limit: Optional[int] = None) -> ResultMemory: ...

class _Row(TypedDict):
    recipe: str
    seconds: Optional[float]
    planning_seconds: Optional[float]
    memory_bytes: Optional[int]
    reason: str

class Bench:
    title: str
    rows: list[_Row]
    @property
    def best(self) -> str: ...
    def _repr_html_(self) -> str: ...

def bench(
    A: _Sparse,
    *,
    kernels: Optional[Sequence[str]] = None,
    threads: Optional[int] = None,
    progress: Optional[Callable[[int, int, str], object]] = None,
) -> Bench: ...
def read(path: _Path, dtype: Optional[DTypeLike] = None) -> scipy.sparse.csr_array: ...
def write(path: _Path, A: _Sparse) -> None: ...
def transpose(A: _Sparse) -> scipy.sparse.csr_array: ...
