"""What spmm_cpu.py, transpose_cpu.py and transposed_cpu.py share: matrices, the Rust side, oneMKL, medians, tables.

README.md has the set-up.
"""

import argparse
import ctypes
import os
import sys
import tempfile
import time

import numpy as np

from spmv_cpu import DEMO, GENERAL, LARGE, NON_TRANSPOSE, ROW_MAJOR, TRANSPOSE, Matrix, Mkl, pointer

MATRICES = DEMO | LARGE


def median(call, seconds, clean_up=None):
    """Median seconds of `call` over at least 5 samples and `seconds`, after two calls.

    Short calls are timed together. With `clean_up`, which runs outside of the time after each call,
    they are timed one by one.
    """
    for _ in range(2):
        begin = time.perf_counter()
        call()
        once = time.perf_counter() - begin
        if clean_up:
            clean_up()
    calls = 1 if clean_up else max(1, int(1e-4 / max(once, 1e-8)))
    samples, start = [], time.perf_counter()
    while len(samples) < 5 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        samples.append((time.perf_counter() - begin) / calls)
        if clean_up:
            clean_up()
    return float(np.median(samples))


def aligned(*shape):
    """Doubles on a cache line, on large pages as numpy asks for them."""
    size = int(np.prod(shape))
    storage = np.empty(size + 8)
    start = -(storage.ctypes.data // 8) % 8
    array = storage[start : start + size].reshape(shape)
    array[...] = np.sin(np.arange(size)).reshape(shape)
    return array


class Sparse(Mkl):
    """A matrix in oneMKL's hands, for SpMM, transposed products and transposition."""

    def __init__(self, a, threads, columns=0, transposed=False):
        """`columns`: optimise for products with so many; `transposed`: for y = A^T x."""
        super().__init__(a, threads, False)
        if transposed:
            hint = TRANSPOSE, GENERAL, ctypes.c_int(1000)
            self.call("mkl_sparse_set_mv_hint", self.handle, *hint)
            self.call("mkl_sparse_optimize", self.handle)
        if columns:
            hint = NON_TRANSPOSE, GENERAL, ROW_MAJOR, ctypes.c_int(columns), ctypes.c_int(1000)
            self.call("mkl_sparse_set_mm_hint", self.handle, *hint)
            self.call("mkl_sparse_optimize", self.handle)

    def multiply(self, x, y):
        """A call of y = A x, row-major."""
        k = ctypes.c_int(x.shape[1])
        one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
        dense = ROW_MAJOR, pointer(x), k, k, zero, pointer(y), k
        function, before = self.lib.mkl_sparse_d_mm, (NON_TRANSPOSE, one, self.handle, GENERAL)
        return lambda: function(*before, *dense)

    def multiply_transposed(self, x, y):
        """A call of y = A^T x."""
        one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
        vectors = pointer(x), zero, pointer(y)
        function, before = self.lib.mkl_sparse_d_mv, (TRANSPOSE, one, self.handle, GENERAL)
        return lambda: function(*before, *vectors)

    def transpose(self, seconds):
        """Median seconds of a conversion; releasing the result is not timed."""
        result = ctypes.c_void_p()
        arguments = self.handle, TRANSPOSE, ctypes.byref(result)
        function, destroy = self.lib.mkl_sparse_convert_csr, self.lib.mkl_sparse_destroy
        return median(lambda: function(*arguments), seconds, lambda: destroy(result))


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("matrix", nargs="*", help="name in the table or label of a generated one")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, os.cpu_count()])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each timing")
    return parser


def matrix(name):
    """The matrix of this name, in the hands of the Rust side."""
    with tempfile.TemporaryDirectory() as directory:
        return Matrix(MATRICES.get(name, name), directory)


def interleave(rounds, timings):
    """{name: seconds of the fastest round}; `timings` maps names to functions that time once."""
    samples = {name: [] for name in timings}
    for _ in range(rounds):
        for name, timing in timings.items():
            samples[name].append(timing())
    return {name: min(times) for name, times in samples.items()}


def print_head(columns):
    version = ctypes.create_string_buffer(200)
    Mkl.lib.mkl_get_version_string(version, 200)
    print(version.value.decode().strip(), end="\n\n")
    print("|", " | ".join(columns), "|")
    print("| --- |" + " ---: |" * (len(columns) - 2) + " --- |")
    sys.stdout.flush()


def summary(what, ratios):
    mean = np.exp(np.log(ratios).mean())
    return f"{what}: geometric mean {mean:.2f}, least {min(ratios):.2f} of {len(ratios)}."
