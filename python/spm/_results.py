"""Memory of results, which is kept for further results."""

import os
from typing import NamedTuple

import numpy as np

from spm import _native

# Bytes of a result from which its memory is kept; the system's allocator is as fast for smaller ones.
LARGE = 1 << 16


class ResultMemory(NamedTuple):
    """Bytes of memory of former results that no array uses, and the most of them that are kept."""

    kept: int
    limit: int


def result_memory(limit=None):
    """The memory that is kept for results of products; sets the most that may be.

    The memory of a large result is kept for the next results when the array and all views of it are gone, because
    fresh memory from the system takes as long as many a product. It is given back to the system when
    the last operator is gone, and, the longest kept first, when it is more than the limit.

    Parameters
    ----------
    limit : int, optional
        The new limit in bytes; 0 keeps nothing. At first it is an eighth of the machine's memory.

    Returns
    -------
    ResultMemory
        (kept, limit) in bytes.

    Examples
    --------
    >>> import spm
    >>> limit = spm.result_memory().limit
    >>> spm.result_memory(0)  # gives back what is kept, and keeps nothing from now on
    ResultMemory(kept=0, limit=0)
    >>> spm.result_memory(limit).limit == limit
    True
    """
    if limit is not None:
        try:
            limit = limit.__index__()
        except AttributeError:
            raise TypeError(f"limit: expected an integer, found {type(limit).__name__}") from None
        if not 0 <= limit < 2**63:
            raise ValueError(f"limit: expected 0 to 2**63 - 1, found {limit}")
    return ResultMemory(*_native.result_memory(limit))


def empty(shape, dtype, by_columns=False):
    """As `numpy.empty`, for a result."""
    order = "F" if by_columns else "C"
    elements = shape[0] * shape[1] if len(shape) > 1 else shape[0]
    make = np.empty if elements * dtype.itemsize < LARGE else _native.empty
    return make(shape, dtype, order)


def _machine_memory():
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 8 << 30


result_memory(_machine_memory() // 8)
