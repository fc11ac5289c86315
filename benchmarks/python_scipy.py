"""The Python package: operators against SciPy and sparse-dot-mkl, in one run.

    venv/bin/python benchmarks/python_scipy.py [MATRIX...] [--rounds 5] [--columns 8 32] > table.md

MATRIX is a Matrix Market file; without one the twelve generated matrices below are taken. Values are f64,
caches are hot. All calls are those that a user writes (`op @ x`, `A @ x`, `dot_product_mkl(A, x)`), each
allocates its result. The libraries take turns, matrix by matrix and round by round, on all threads that each
takes by itself; set OMP_NUM_THREADS for oneMKL. Threads of oneMKL go on running for some milliseconds after a
call (KMP_BLOCKTIME), and would take a core from the next library: it waits until they sleep. A figure is the
median of the rounds. Break-even is the least number n of products for which making the operator and n products
take less time than n products of SciPy, by the clock, each n with a new operator.
"""

import argparse
import os
import statistics
import sys
import time

# In milliseconds; before oneMKL is loaded.
try:
    BLOCKTIME = int(os.environ.setdefault("KMP_BLOCKTIME", "10"))
except ValueError:
    sys.exit(f"KMP_BLOCKTIME={os.environ['KMP_BLOCKTIME']}: this benchmark waits so long, a number of milliseconds")

import numpy as np
import scipy.sparse
from sparse_dot_mkl import dot_product_mkl

import spm


def stencil(n, reach):
    """A grid of n^3 points, each with its neighbours up to `reach` in every direction."""
    line = scipy.sparse.diags_array([1.0] * (2 * reach + 1), offsets=range(-reach, reach + 1), shape=(n, n))
    return scipy.sparse.kron(scipy.sparse.kron(line, line), line)


def laplacian(n):
    line = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = scipy.sparse.eye_array(n)
    kron = scipy.sparse.kron
    return kron(kron(line, eye), eye) + kron(kron(eye, line), eye) + kron(kron(eye, eye), line)


def power_law(rng, n, mean):
    """Rows and columns drawn with a probability that falls with the index, then shuffled."""
    entries = n * mean
    draw = lambda: rng.permutation(n)[(n * rng.random(entries) ** 3).astype(np.int64)]
    return scipy.sparse.coo_array((np.ones(entries), (draw(), draw())), shape=(n, n))


def uniform(rng, rows, cols, mean):
    row = np.repeat(np.arange(rows), mean)
    return scipy.sparse.coo_array((np.ones(rows * mean), (row, rng.integers(0, cols, rows * mean))),
                                  shape=(rows, cols))


def banded(n, width):
    return scipy.sparse.diags_array([1.0] * width, offsets=range(-(width // 2), width - width // 2),
                                    shape=(n, n))


def generated():
    rng = np.random.default_rng(1)
    blocks = scipy.sparse.kron(stencil(14, 1), np.ones((3, 3)))
    yield "laplacian 40^3", laplacian(40)
    yield "laplacian 80^3", laplacian(80)
    yield "stencil27 30^3", stencil(30, 1)
    yield "stencil27 60^3", stencil(60, 1)
    yield "stencil125 20^3", stencil(20, 2)
    yield "blocks of 3", blocks
    yield "band of 11", banded(100_000, 11)
    yield "power law 50 k x 10", power_law(rng, 50_000, 10)
    yield "power law 300 k x 8", power_law(rng, 300_000, 8)
    yield "uniform 20 k x 8", uniform(rng, 20_000, 20_000, 8)
    yield "uniform 200 k x 16", uniform(rng, 200_000, 200_000, 16)
    yield "wide 20 k x 100", uniform(rng, 20_000, 200_000, 100)


def with_values(A):
    A = scipy.sparse.csr_array(A)
    A.sum_duplicates()
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    A.data = np.random.default_rng(2).standard_normal(A.nnz)
    return A


def once(call, seconds=0.05):
    """Median seconds of a call, after calls for as long: the system may first run two threads on one core."""
    time.sleep(2e-3 * BLOCKTIME)
    for _ in range(2):
        samples, begin = [], time.perf_counter()
        while len(samples) < 3 or time.perf_counter() - begin < seconds:
            samples.append(timed(call))
    return statistics.median(samples)


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def break_even(A, x):
    """The least of some numbers of products for which an operator pays; None if none does."""
    def ours(count):
        op = spm.operator(A)
        for _ in range(count):
            op @ x

    def scipys(count):
        for _ in range(count):
            A @ x

    time.sleep(2e-3 * BLOCKTIME)
    for count in (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100):
        samples = [(timed(lambda: ours(count)), timed(lambda: scipys(count))) for _ in range(5)]
        if statistics.median(a for a, _ in samples) < statistics.median(b for _, b in samples):
            return count
    return None


def compare(A, columns, rounds):
    """{what: median seconds}."""
    x = np.random.default_rng(3).standard_normal(A.shape[1])
    op, many = spm.operator(A), {k: np.random.default_rng(4).standard_normal((A.shape[1], k)) for k in columns}
    for _ in range(70):  # it converts the matrix by then, if it does
        op @ x
    assert np.abs(op @ x - A @ x).max() <= 1e-10 * np.abs(A @ x).max()
    calls = {
        "spm": lambda: op @ x,
        "scipy": lambda: A @ x,
        "mkl": lambda: dot_product_mkl(A, x),
        "first": lambda: spm.operator(A) @ x,
    }
    for k, X in many.items():
        calls |= {
            f"spm {k}": lambda X=X: op @ X,
            f"scipy {k}": lambda X=X: A @ X,
            f"mkl {k}": lambda X=X: dot_product_mkl(A, X),
        }
    samples = {what: [] for what in calls}
    for _ in range(rounds):
        for what, call in calls.items():
            samples[what].append(once(call))
    return {what: statistics.median(times) for what, times in samples.items()}, op.recipe, break_even(A, x)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrix", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--columns", type=int, nargs="+", default=[8, 32])
    options = parser.parse_args()
    matrices = ((path, spm.read(path)) for path in options.matrix) if options.matrix else generated()
    heads = ["matrix", "entries", "op @ x µs", "SciPy / op", "MKL / op", "first call / SciPy", "break-even"]
    for k in options.columns:
        heads += [f"op @ X, k = {k} µs", "SciPy / op", "MKL / op"]
    print("|", " | ".join([*heads, "recipe"]), "|")
    print("| --- |" + " ---: |" * (len(heads) - 1) + " --- |")
    ratios = {}
    for name, A in matrices:
        A = with_values(A)
        took, recipe, breaks = compare(A, options.columns, options.rounds)
        row = {"SciPy / op": took["scipy"] / took["spm"], "MKL / op": took["mkl"] / took["spm"],
               "first call / SciPy": took["first"] / took["scipy"]}
        cells = [name, A.nnz, f"{took['spm'] * 1e6:.4g}", *(f"{value:.2f}" for value in row.values()),
                 breaks or "none to 100"]
        for k in options.columns:
            of_k = {f"SciPy / op, k = {k}": took[f"scipy {k}"] / took[f"spm {k}"],
                    f"MKL / op, k = {k}": took[f"mkl {k}"] / took[f"spm {k}"]}
            cells += [f"{took[f'spm {k}'] * 1e6:.4g}", *(f"{value:.2f}" for value in of_k.values())]
            row |= of_k
        for what, value in row.items():
            ratios.setdefault(what, []).append(value)
        print("|", " | ".join(map(str, [*cells, recipe])), "|")
        sys.stdout.flush()
    print()
    for what, values in ratios.items():
        mean = np.exp(np.log(values).mean())
        print(f"{what}: geometric mean {mean:.2f}, least {min(values):.2f}, most {max(values):.2f} of {len(values)}.")


if __name__ == "__main__":
    main()
