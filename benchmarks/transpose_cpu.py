"""Transposition on CPU cores: spm's `auto` and ScanTrans against oneMKL, scipy, sprs and faer.

    venv/bin/python benchmarks/transpose_cpu.py [MATRIX...] > table.md          (set-up: README.md)

CSR to CSC in f64, hot, on one thread and on all cores. Both sides take turns, matrix by matrix and
round by round; a figure is the median of the fastest round. scipy's routine gets arrays that
exist and have been written, as ours does; oneMKL, sprs and faer allocate what they return.
"""

import numpy as np
from scipy.sparse import _sparsetools

import peers

OURS = ["auto", "scan-trans"]
PEERS = ["mkl", "scipy", "sprs", "faer"]


def compare(a, threads, rounds, seconds):
    """{implementation: seconds}, and what `auto` chose."""
    mkl = peers.Sparse(a, threads)
    pointers, rows = np.zeros(a.cols + 1, np.int32), np.zeros(a.entries, np.int32)
    arrays = a.pointers, a.columns, a.values, pointers, rows, np.zeros(a.entries)
    chosen = []

    def rust(name):
        took, choice = a.ask(f"transpose {name}", threads, seconds)
        if name == "auto":
            chosen.append(choice)
        return took

    timings = {name: lambda name=name: rust(name) for name in OURS}
    timings["mkl"] = lambda: mkl.transpose(seconds)
    timings["scipy"] = lambda: peers.median(
        lambda: _sparsetools.csr_tocsc(a.rows, a.cols, *arrays), seconds
    )
    timings |= {name: lambda name=name: rust(name) for name in ["sprs", "faer"]}
    took = peers.interleave(rounds, timings)
    mkl.close()
    return took, chosen[-1]


def main():
    options = peers.options(__doc__.splitlines()[0]).parse_args()
    columns = [*OURS, *PEERS]
    ends = ["best peer / auto", "mkl / scan-trans", "chosen"]
    peers.print_head(["matrix", "entries", "threads", *(f"{c} µs" for c in columns), *ends])
    best, scan = {}, {}
    for name in options.matrix or peers.MATRICES:
        a = peers.matrix(name)
        for threads in options.threads:
            took, choice = compare(a, threads, options.rounds, options.seconds)
            ratio = min(took[peer] for peer in PEERS) / took["auto"]
            best.setdefault(threads, []).append(ratio)
            against_mkl = took["mkl"] / took["scan-trans"]
            if a.entries > 1e6:
                scan.setdefault(threads, []).append(against_mkl)
            cells = [f"{took[column] * 1e6:.4g}" for column in columns]
            print("|", " | ".join([name, str(a.entries), str(threads), *cells]), end=" ")
            print(f"| {ratio:.2f} | {against_mkl:.2f} | {choice} |", flush=True)
        a.close()
    print()
    for threads, values in best.items():
        print(peers.summary(f"{threads} threads, best peer / auto", values))
    for threads, values in scan.items():
        what = f"{threads} threads, mkl / scan-trans, more than a million entries"
        print(peers.summary(what, values))


if __name__ == "__main__":
    main()
