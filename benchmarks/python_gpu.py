"""The Python package on a GPU: operators against CuPy and PyTorch, in one run.

    python3 benchmarks/python_gpu.py [--rounds 7] [--calls 200] [--columns 32] > table.md

Values are f64 that need all 53 bits, indices have 32 bits. A figure is the time of a call by the host's clock: so
many calls, then a wait for the device, over the number of calls; the median of the rounds, in which the libraries
take turns. `A @ x` makes its result with each library. Every result is compared with SciPy's first. "Host" is the
clock before the wait: what a call costs the program. It is measured with an operator of a 1000 x 1000 matrix,
whose products are shorter than the calls.
"""

import argparse
import statistics
import time

import cupy
import cupyx.scipy.sparse
import numpy as np
import scipy.sparse
import torch

import spm


def stencil(n):
    """A grid of n^3 points, each with its 26 neighbours."""
    line = scipy.sparse.diags_array([1.0] * 3, offsets=range(-1, 2), shape=(n, n))
    return scipy.sparse.csr_array(scipy.sparse.kron(scipy.sparse.kron(line, line), line))


def uniform(rng, n, mean):
    columns = np.sort(rng.integers(0, n, (n, mean)), axis=1)
    A = scipy.sparse.csr_array((np.ones(n * mean), columns.ravel(), np.arange(n + 1) * mean), shape=(n, n))
    A.sum_duplicates()
    return A


def matrices():
    rng = np.random.default_rng(1)
    yield "stencil27 40^3", stencil(40)
    yield "stencil27 100^3", stencil(100)
    yield "uniform 500 k x 20", uniform(rng, 500_000, 20)
    yield "uniform 20 k x 8", uniform(rng, 20_000, 8)


def with_values(A):
    A = scipy.sparse.csr_array(A)
    A.sort_indices()
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    A.data = np.random.default_rng(2).standard_normal(A.nnz)
    return A


def in_cupy(A):
    return cupyx.scipy.sparse.csr_matrix(
        (cupy.asarray(A.data), cupy.asarray(A.indices), cupy.asarray(A.indptr)), shape=A.shape)


def in_torch(A):
    # Copies: the operator has made the indices read-only.
    arrays = (torch.from_numpy(array.copy()).cuda() for array in (A.indptr, A.indices, A.data))
    return torch.sparse_csr_tensor(*arrays, size=A.shape)


def clock(call, calls):
    """Microseconds of a call: with the wait, and of the host alone."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    host = time.perf_counter()
    torch.cuda.synchronize()
    return [(end - start) / calls * 1e6 for end in (time.perf_counter(), host)]


def in_turns(calls, rounds, count):
    """Medians of each call over the rounds."""
    for call in calls.values():
        clock(call, count)
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(clock(call, count))
    return {name: [statistics.median(of) for of in zip(*each)] for name, each in times.items()}


def compare(A, columns):
    """Calls for x, or for X with so many columns, and a check of each."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(A.shape[1] if columns is None else (A.shape[1], columns))
    op, of_cupy, of_torch = spm.operator(A, device="gpu"), in_cupy(A), in_torch(A)
    x_cupy, x_torch = cupy.asarray(x), torch.from_numpy(x).cuda()
    shape = A.shape[:1] + x.shape[1:]
    out_cupy, out_torch = cupy.empty(shape), torch.empty(shape, dtype=torch.float64, device="cuda")
    calls = {
        "CuPy": lambda: of_cupy @ x_cupy,
        "torch": lambda: of_torch @ x_torch,
        "op @ x (CuPy)": lambda: op @ x_cupy,
        "op @ x (torch)": lambda: op @ x_torch,
        "out= (CuPy)": lambda: op.apply(x_cupy, out_cupy),
        "out= (torch)": lambda: op.apply(x_torch, out_torch),
    }
    expected = A @ x
    bound = 1e-13 * (abs(A) @ abs(x)) + 1e-300
    for name, call in calls.items():
        y = call()
        y = y.get() if isinstance(y, cupy.ndarray) else y.cpu().numpy()
        assert (abs(y - expected) <= bound).all(), name
    return op, calls


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--columns", type=int, default=32)
    options = parser.parse_args()
    device = torch.cuda.get_device_name(0)
    print(f"{device}, spm {spm.__version__}, CuPy {cupy.__version__}, PyTorch {torch.__version__}, "
          f"SciPy {scipy.__version__}; {options.rounds} rounds of {options.calls} calls\n")
    for columns in (None, options.columns):
        what = "A @ x" if columns is None else f"A @ X, {columns} columns"
        ratios = []
        print(f"{what}, microseconds of a call\n")
        names = None
        for name, A in matrices():
            op, calls = compare(with_values(A), columns)
            if names is None:
                names = list(calls)
                print("| matrix | entries |", " | ".join(names), "| best of both / op @ x | recipe |")
                print("| --- | ---: |", "---: | " * (len(names) + 1), "--- |")
            times = {key: of[0] for key, of in in_turns(calls, options.rounds, options.calls).items()}
            best = min(times["CuPy"], times["torch"])
            # Each peer against the operator with the arrays of that peer.
            ratio = best / times["op @ x (CuPy)" if times["CuPy"] < times["torch"] else "op @ x (torch)"]
            ratios.append(ratio)
            cells = " | ".join(f"{times[key]:.1f}" for key in names)
            recipe = op.recipe if columns is None else ""
            print(f"| {name} | {op.nnz} | {cells} | {ratio:.2f} | {recipe} |", flush=True)
        print(f"\nGeometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}\n")
    hosts = []
    for columns in (None, options.columns):
        op, calls = compare(with_values(uniform(np.random.default_rng(4), 1000, 4)), columns)
        hosts.append({name: host for name, (_, host) in in_turns(calls, 30, options.calls).items()})
    print(f"Host time of a call, 1000 x 1000, microseconds, medians of 30 rounds\n\n| | A @ x | A @ X, "
          f"{options.columns} columns |\n| --- | ---: | ---: |")
    for name in hosts[0]:
        print(f"| {name} | {hosts[0][name]:.2f} | {hosts[1][name]:.2f} |")


if __name__ == "__main__":
    main()
