"""SpMM on CPU cores, row-major: spm's `auto` against oneMKL, scipy, sprs and faer, and beside what it moves.

    venv/bin/python benchmarks/spmm_cpu.py [MATRIX...] [--columns 8 32 64] > table.md

Everything runs on the same arrays in f64, hot and page-faulted, X and Y on a cache line and on
large pages, on one thread and on all cores. Both sides take turns, matrix by matrix and round by
round; a figure is the median of the fastest round. scipy and sprs add to Y; their time includes
clearing it first. `traffic` is no product: it reads A and the rows of X that the entries of A name,
in their order, and writes Y (`time_traffic` of spmv.c).
"""

import ctypes
import tempfile

from scipy.sparse import _sparsetools

import peers
from spmv_cpu import compile_c, pointer

PEERS = ["mkl", "mkl optimized", "scipy", "sprs", "faer"]
with tempfile.TemporaryDirectory() as directory:
    LIB = compile_c(directory)
LIB.time_traffic.restype = ctypes.c_double


def compare(a, k, threads, rounds, seconds):
    """{implementation: seconds}, and what `auto` chose."""
    x, y = peers.aligned(a.cols, k), peers.aligned(a.rows, k)
    plain, optimized = peers.Sparse(a, threads), peers.Sparse(a, threads, k)
    flat = a.pointers, a.columns, a.values, x.ravel(), y.ravel()
    chosen = []

    def ours():
        took, choice = a.ask(f"spmm {k} auto", threads, seconds)
        chosen.append(choice)
        return took

    def scipy():
        y.fill(0.0)
        _sparsetools.csr_matvecs(a.rows, a.cols, k, *flat)

    def traffic():
        arrays = [pointer(v) for v in (a.pointers, a.columns, a.values, x, y)]
        sizes = ctypes.c_int(a.rows), ctypes.c_int(k)
        return LIB.time_traffic(*sizes, *arrays, ctypes.c_int(threads), ctypes.c_double(seconds))

    timings = {
        "auto": ours,
        "traffic": traffic,
        "mkl": lambda: peers.median(plain.multiply(x, y), seconds),
        "mkl optimized": lambda: peers.median(optimized.multiply(x, y), seconds),
        "scipy": lambda: peers.median(scipy, seconds),
    }
    for peer in ["sprs", "faer"]:
        timings[peer] = lambda peer=peer: a.ask(f"spmm {k} {peer}", threads, seconds)[0]
    took = peers.interleave(rounds, timings)
    plain.close()
    optimized.close()
    return took, chosen[-1]


def main():
    parser = peers.options(__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[8, 32, 64])
    options = parser.parse_args()
    columns = ["auto", *PEERS, "traffic"]
    ratios = ["best peer / auto", "traffic / auto"]
    peers.print_head(["matrix", "k", "threads", *(f"{c} µs" for c in columns), *ratios, "chosen"])
    found = {}
    for name in options.matrix or peers.MATRICES:
        a = peers.matrix(name)
        for threads in options.threads:
            for k in options.columns:
                took, choice = compare(a, k, threads, options.rounds, options.seconds)
                of_peers = min(took[peer] for peer in PEERS) / took["auto"]
                of_traffic = took["traffic"] / took["auto"]
                found.setdefault((k, threads), []).append((of_peers, of_traffic))
                cells = [f"{took[column] * 1e6:.4g}" for column in columns]
                print("|", " | ".join([name, str(k), str(threads), *cells]), end=" ")
                print(f"| {of_peers:.2f} | {of_traffic:.2f} | {choice} |", flush=True)
        a.close()
    print()
    for (k, threads), pairs in found.items():
        for what, values in zip(ratios, zip(*pairs)):
            print(peers.summary(f"k = {k}, {threads} threads, {what}", values))


if __name__ == "__main__":
    main()
