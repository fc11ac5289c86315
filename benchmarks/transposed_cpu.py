"""y = A^T x on CPU cores: spm against oneMKL, scipy and faer.

    venv/bin/python benchmarks/transposed_cpu.py [MATRIX...] > table.md         (set-up: README.md)

f64, hot, on one thread and on all cores. `straight` is an operator of spm that expects one product
and multiplies straight from the CSR arrays of A, as the peers do; `planned` expects a million and
may have made a transposed copy. oneMKL is called as it is and with `mkl_sparse_optimize` for the
transposed product. scipy's routine takes the arrays of A as the CSC arrays of A^T, as `A.T @ x`
does; it adds to y. The sides take turns, matrix by matrix and round by round; a figure is the
median of the fastest round.
"""

import numpy as np
from scipy.sparse import _sparsetools

import peers

OURS = ["straight", "planned"]
PEERS = ["mkl", "mkl optimized", "scipy", "faer"]


def compare(a, threads, rounds, seconds):
    """{implementation: seconds}, and what `planned` chose."""
    x, y = peers.aligned(a.rows), peers.aligned(a.cols)
    plain = peers.Sparse(a, threads)
    optimized = peers.Sparse(a, threads, transposed=True)
    arrays = a.pointers, a.columns, a.values, x, y
    chosen = []

    def rust(name):
        took, choice = a.ask(f"transposed {name}", threads, seconds)
        if name == "planned":
            chosen.append(choice)
        return took

    def scipy():
        # It adds to y, which a user clears first.
        y.fill(0.0)
        _sparsetools.csc_matvec(a.cols, a.rows, *arrays)

    timings = {name: lambda name=name: rust(name) for name in OURS}
    timings["mkl"] = lambda: peers.median(plain.multiply_transposed(x, y), seconds)
    timings["mkl optimized"] = lambda: peers.median(optimized.multiply_transposed(x, y), seconds)
    timings["scipy"] = lambda: peers.median(scipy, seconds)
    timings["faer"] = lambda: rust("faer")
    # All compute the same product.
    scipy()
    expected = y.copy()
    plain.multiply_transposed(x, y)()
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max(initial=1))
    took = peers.interleave(rounds, timings)
    plain.close()
    optimized.close()
    return took, chosen[-1]


def main():
    options = peers.options(__doc__.splitlines()[0]).parse_args()
    columns = [*OURS, *PEERS]
    ends = [*(f"best peer / {name}" for name in OURS), "planned"]
    peers.print_head(["matrix", "entries", "threads", *(f"{c} µs" for c in columns), *ends])
    ratios = {}
    for name in options.matrix or peers.MATRICES:
        a = peers.matrix(name)
        for threads in options.threads:
            took, choice = compare(a, threads, options.rounds, options.seconds)
            best = min(took[peer] for peer in PEERS)
            of_ours = [best / took[name] for name in OURS]
            for ours, ratio in zip(OURS, of_ours):
                ratios.setdefault((threads, ours), []).append(ratio)
            cells = [name, str(a.entries), str(threads)]
            cells += [f"{took[column] * 1e6:.4g}" for column in columns]
            cells += [f"{ratio:.2f}" for ratio in of_ours]
            print("|", " | ".join([*cells, choice]), "|", flush=True)
        a.close()
    print()
    for (threads, ours), values in ratios.items():
        print(peers.summary(f"{threads} threads, best peer / {ours}", values))


if __name__ == "__main__":
    main()
