#!/usr/bin/env python3
"""Reading speed of Matrix Market text to CSR: spm against fast_matrix_market.

    python3 benchmarks/matrix_market.py [--entries 5000000] [--threads 1 2]

Writes a coordinate real general file (uniformly random columns, sorted by column as the files of
the SuiteSparse collection are), reads it once so that it lies in the page cache, then lets both
readers alternate and prints the entries per second of the fastest time of each, their ratio, and
the peak memory of spm over the bytes of the finished CSR and the COO it passes through.
Exit status 1 when a ratio is below 1.5 or the memory above 1.5.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import fast_matrix_market
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]


def write_matrix(path, entries, digits, order):
    """`entries` distinct-ish random positions in a square matrix with 20 entries a row."""
    generator = numpy.random.default_rng(1)
    size = max(entries // 20, 1)
    rows = generator.integers(1, size + 1, entries)
    cols = generator.integers(1, size + 1, entries)
    if order != "random":
        order = numpy.lexsort((rows, cols) if order == "column" else (cols, rows))
        rows, cols = rows[order], cols[order]
    values = generator.standard_normal(entries)
    with open(path, "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate real general\n{size} {size} {entries}\n")
        for start in range(0, entries, 1 << 16):
            part = slice(start, start + (1 << 16))
            triplets = zip(rows[part].tolist(), cols[part].tolist(), values[part].tolist())
            if digits:
                file.writelines(f"{i} {j} {v:.{digits}g}\n" for i, j, v in triplets)
            else:
                file.writelines(f"{i} {j} {v!r}\n" for i, j, v in triplets)
    return size


def time_fast_matrix_market(path, threads):
    start = time.perf_counter()
    csr = fast_matrix_market.mmread(path, parallelism=threads).tocsr()
    seconds = time.perf_counter() - start
    return seconds, csr


def run_spm(example, path, threads, repetitions):
    """Reads `repetitions` times in one process, as the other reader does in this one."""
    output = subprocess.run(
        [example, path, str(threads), str(repetitions)], check=True, capture_output=True, text=True
    ).stdout
    return {key: float(value) for key, value in map(str.split, output.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=5_000_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--digits", type=int, default=0, help="significant digits (0: shortest)")
    parser.add_argument("--order", choices=["column", "row", "random"], default="column")
    parser.add_argument("--no-build", action="store_true", help="the example is built already")
    parser.add_argument("--folder", default=None, help="where the file is written")
    arguments = parser.parse_args()

    build = "cargo build --release -p spm-formats --example read_matrix_market".split()
    if not arguments.no_build:
        subprocess.run(build, cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    example = target / "release" / "examples" / "read_matrix_market"

    passed = True
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = pathlib.Path(folder) / "random.mtx"
        size = write_matrix(path, arguments.entries, arguments.digits, arguments.order)
        text = path.read_bytes()  # warms the page cache
        print(f"{size} x {size}, {arguments.entries} entries, {len(text) / 1e6:.0f} MB of text, "
              f"order: {arguments.order}")
        del text
        for threads in arguments.threads:
            theirs, ours = [], []
            for _ in range(arguments.repetitions):
                seconds, csr = time_fast_matrix_market(path, threads)
                theirs.append(arguments.entries / seconds)
                stored = csr.nnz
                del csr
                ours.append(run_spm(example, path, threads, arguments.repetitions))
            assert ours[0]["entries"] == stored, (ours[0]["entries"], stored)
            speed = max(arguments.entries / run["seconds"] for run in ours)
            ratio = speed / max(theirs)
            csr_bytes = 12 * stored + 4 * (size + 1)
            memory = max(run["peak_bytes"] for run in ours) / (csr_bytes + 16 * arguments.entries)
            passed &= ratio >= 1.5 and memory <= 1.5
            print(f"{threads} threads: spm {speed / 1e6:.1f} M entries/s, fast_matrix_market "
                  f"{max(theirs) / 1e6:.1f} M entries/s, ratio {ratio:.2f}; "
                  f"spm peak memory / (CSR + COO) {memory:.2f}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
