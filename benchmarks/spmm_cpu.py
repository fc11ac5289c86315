"""SpMM on CPU cores, row-major: spm's `auto` against oneMKL, scipy, sprs and faer.

    venv/bin/python benchmarks/spmm_cpu.py [MATRIX...] [--columns 8 32 64] > table.md

Everything runs on the same arrays in f64, hot and page-faulted, X and Y on a cache line and on
large pages, on one thread and on all cores. Both sides take turns, matrix by matrix and round by
round; a figure is the median over the rounds of the median of each. scipy and sprs add to Y;
their time includes clearing it first.
"""

from scipy.sparse import _sparsetools

import peers

PEERS = ["mkl", "mkl optimized", "scipy", "sprs", "faer"]


def compare(a, k, threads, rounds, seconds):
    """{implementation: median seconds}, and what `auto` chose."""
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

    timings = {
        "auto": ours,
        "mkl": lambda: peers.median(plain.multiply(x, y), seconds),
        "mkl optimized": lambda: peers.median(optimized.multiply(x, y), seconds),
        "scipy": lambda: peers.median(scipy, seconds),
    }
    for peer in ["sprs", "faer"]:
        timings[peer] = lambda peer=peer: a.ask(f"spmm {k} {peer}", threads, seconds)[0]
    medians = peers.interleave(rounds, timings)
    plain.close()
    optimized.close()
    return medians, chosen[-1]


def main():
    parser = peers.options(__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[8, 32, 64])
    options = parser.parse_args()
    columns = ["auto", *PEERS]
    cells = ["matrix", "k", "threads", *(f"{c} µs" for c in columns), "best peer / auto", "chosen"]
    peers.print_head(cells)
    ratios = {}
    for name in options.matrix or peers.MATRICES:
        a = peers.matrix(name)
        for threads in options.threads:
            for k in options.columns:
                took, choice = compare(a, k, threads, options.rounds, options.seconds)
                ratio = min(took[peer] for peer in PEERS) / took["auto"]
                ratios.setdefault(threads, []).append(ratio)
                cells = [f"{took[column] * 1e6:.4g}" for column in columns]
                print("|", " | ".join([name, str(k), str(threads), *cells]), end=" ")
                print(f"| {ratio:.2f} | {choice} |", flush=True)
        a.close()
    print()
    for threads, values in ratios.items():
        print(peers.summary(f"{threads} threads, best peer / auto", values))


if __name__ == "__main__":
    main()
