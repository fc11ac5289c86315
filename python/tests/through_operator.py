"""A plugin for pytest: SciPy's products of sparse matrices with dense vectors and matrices go through
`spm.operator`. Prints how many did, and how many are of integers, of other types or of other dimensions."""

import numpy as np
import scipy.sparse

import spm

_counts = {"products": 0, "others": 0}


def _through(original):
    def product(self, other):
        other = np.asarray(other)
        # An operator of integers has float64 elements, which neither wrap nor have 64 bits.
        integers = np.result_type(self.dtype, other.dtype).kind in "biu"
        if self.ndim != 2 or other.ndim not in (1, 2) or integers:
            _counts["others"] += 1
            return original(self, other)
        try:
            result = spm.operator(self) @ other
        except TypeError:
            _counts["others"] += 1
            return original(self, other)
        _counts["products"] += 1
        return result

    return product


def pytest_configure(config):
    for kind in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"):
        base = getattr(scipy.sparse, f"{kind}_array")
        for name in ("_matmul_vector", "_matmul_multivector"):
            for owner in base.__mro__:
                if name in vars(owner) and not hasattr(vars(owner)[name], "through"):
                    through = _through(vars(owner)[name])
                    through.through = True
                    setattr(owner, name, through)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"through spm.operator: {_counts}")
