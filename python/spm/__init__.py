"""Fast products of sparse matrices, on all CPU cores or on an NVIDIA GPU.

>>> import numpy as np, scipy.sparse, spm
>>> A = scipy.sparse.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
>>> op = spm.operator(A)
>>> op @ np.array([1.0, 10.0, 100.0])
array([201.,  30.])

An operator is a `scipy.sparse.linalg.LinearOperator`, so the solvers of SciPy run on it.
"""

from importlib.metadata import PackageNotFoundError, version

from spm._bench import Bench, bench
from spm._files import read, transpose, write
from spm._operator import Operator, operator
from spm._results import ResultMemory, result_memory

try:
    __version__ = version("spm-sparse")
except PackageNotFoundError:  # pragma: no cover - a source tree that is not installed
    __version__ = "0"

__all__ = ["Bench", "Operator", "ResultMemory", "bench", "operator", "read", "result_memory", "transpose", "write"]
