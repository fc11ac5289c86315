"""SpMV on CPU cores: spm's `auto` against oneMKL, scipy, sprs, faer and a plain loop in C.

    venv/bin/python benchmarks/spmv_cpu.py [MATRIX...] > table.md          (set-up: README.md)

Everything runs on the same arrays in f64, hot and page-faulted, on one thread and on all cores.
Both sides take turns, matrix by matrix and round by round; a figure is the median of the fastest
round: another process on the machine only ever makes one slower. Calls are timed in C and in Rust,
short ones many together; only scipy is called from Python, and the time of the same call on an
empty matrix is taken off (`inf`: nothing measurable is left). MATRIX is a name of DEMO or LARGE
below, or a label that `cargo xtask generate` takes; without any, all of both.
"""

import argparse
import ctypes
import glob
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# Before oneMKL is loaded: one OpenMP runtime for it and the plain loop.
os.environ.setdefault("MKL_THREADING_LAYER", "GNU")

import numpy as np
from scipy.sparse import _sparsetools

HERE = pathlib.Path(__file__).resolve().parent
OURS = HERE.parent / "target" / "release" / "spm-benchmarks"

LARGE = {
    "stencil27 100^3": "stencil27[n=100]",
    "cant": "cant",
    "webbase-1M": "webbase-1M",
    "roadNet-PA": "roadNet-PA",
    "uniform 500k/10M": "uniform[rows=500000,cols=500000,entries=10000000]",
}
DEMO = {
    "cage4": "cage4",
    "mcfe": "mcfe",
    "bcsstk17": "bcsstk17",
    "lung2": "lung2",
    "thermomech_TK": "thermomech_TK",
    "delaunay_n15": "delaunay_n15",
    "dc1": "dc1",
    "stencil27 40^3": "stencil27[n=40]",
    "blocks 16^3 x 3": "blocks[n=16,block=3]",
    "power law 400k": "powerlaw[rows=400000,cols=400000,entries=1240000,longest=3000]",
    "road 400k": "road[n=400000,edges=565000]",
    "uniform 100k/1.5M": "uniform[rows=100000,cols=100000,entries=1500000]",
    "uniform wide": "uniform[rows=20000,cols=300000,entries=600000]",
    "uniform tall": "uniform[rows=500000,cols=50000,entries=400000]",
}
PEERS = ["mkl", "mkl optimized", "C loop", "scipy", "sprs", "faer"]


class Description(ctypes.Structure):
    """`struct matrix_descr` of mkl_spblas.h."""

    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diagonal", ctypes.c_int)]


# Of mkl_spblas.h.
GENERAL = Description(20, 0, 0)
NON_TRANSPOSE, TRANSPOSE, ROW_MAJOR = 10, 11, 101


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Mkl:
    """A matrix in oneMKL's hands, for one number of threads."""

    lib = ctypes.CDLL((glob.glob(f"{sys.prefix}/lib/libmkl_rt.so*") or ["libmkl_rt.so"])[0])

    def __init__(self, a, threads, optimize):
        self.lib.MKL_Set_Num_Threads(ctypes.c_int(threads))
        self.handle = ctypes.c_void_p()
        ends = ctypes.c_void_p(a.pointers.ctypes.data + 4)
        sizes = ctypes.c_int(a.rows), ctypes.c_int(a.cols)
        arrays = pointer(a.pointers), ends, pointer(a.columns), pointer(a.values)
        self.call("mkl_sparse_d_create_csr", ctypes.byref(self.handle), 0, *sizes, *arrays)
        if optimize:
            hint = NON_TRANSPOSE, GENERAL, ctypes.c_int(1000)
            self.call("mkl_sparse_set_mv_hint", self.handle, *hint)
            self.call("mkl_sparse_optimize", self.handle)

    def call(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status != 0:
            sys.exit(f"{name}: status {status}")

    def close(self):
        self.call("mkl_sparse_destroy", self.handle)


class Matrix:
    """A matrix that the Rust side has generated, and the Rust side itself, waiting."""

    def __init__(self, label, directory):
        command = [OURS, label, directory]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        sizes = self.process.stdout.readline().split()
        if len(sizes) != 3:
            sys.exit(f"{OURS} could not generate {label}")
        self.rows, self.cols, self.entries = map(int, sizes)
        read = lambda name, kind: np.fromfile(f"{directory}/{name}", dtype=kind)
        self.pointers, self.columns = read("pointers", np.int32), read("columns", np.int32)
        self.values, self.x = read("values", np.float64), read("x", np.float64)
        self.y = np.zeros(self.rows)

    def ask(self, name, threads, seconds):
        """Median seconds of what rust/src/main.rs calls `name`, and what it chose."""
        # The other side's threads go to sleep first.
        time.sleep(0.02)
        print(name, threads, seconds, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split(maxsplit=1)
        if len(answer) != 2:
            sys.exit(f"compare failed at {name}")
        return float(answer[0]), answer[1].strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def time_scipy(a, seconds):
    nothing = np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0), a.x, np.zeros(0)
    arrays = a.pointers, a.columns, a.values, a.x, a.y

    def median(rows, arrays, seconds):
        def run():
            # It adds to y, which a user clears first.
            arrays[-1].fill(0.0)
            _sparsetools.csr_matvec(rows, a.cols, *arrays)

        run()
        begin = time.perf_counter()
        run()
        calls = max(1, int(1e-4 / max(time.perf_counter() - begin, 1e-8)))
        samples, start = [], time.perf_counter()
        while len(samples) < 5 or time.perf_counter() - start < seconds:
            begin = time.perf_counter()
            for _ in range(calls):
                run()
            samples.append((time.perf_counter() - begin) / calls)
        return float(np.median(samples))

    overhead = median(0, nothing, 0.02)
    took = median(a.rows, arrays, seconds) - overhead
    # What is little beside the call itself is noise: no figure, and no peer.
    return took if took > overhead else float("inf")


def compile_c(directory):
    library = f"{directory}/spmv.so"
    flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, HERE / "spmv.c"], check=True)
    lib = ctypes.CDLL(library)
    lib.time_plain.restype = lib.time_mkl.restype = ctypes.c_double
    return lib


def compare(name, label, threads, lib, rounds, seconds):
    """{implementation: median seconds of its fastest round}, and what `auto` chose."""
    with tempfile.TemporaryDirectory() as directory:
        a = Matrix(label, directory)
    mkls = {"mkl": Mkl(a, threads, False), "mkl optimized": Mkl(a, threads, True)}
    wait = ctypes.c_double(seconds)
    samples = {peer: [] for peer in ["auto", "csr-serial", *PEERS]}
    for _ in range(rounds):
        took, choice = a.ask("auto", threads, seconds)
        samples["auto"].append(took)
        for peer, mkl in mkls.items():
            multiply = ctypes.cast(mkl.lib.mkl_sparse_d_mv, ctypes.c_void_p)
            vectors = pointer(a.x), pointer(a.y)
            samples[peer].append(lib.time_mkl(multiply, mkl.handle, *vectors, wait))
        arrays = [pointer(v) for v in (a.pointers, a.columns, a.values, a.x, a.y)]
        plain = lib.time_plain(ctypes.c_int(a.rows), *arrays, ctypes.c_int(threads), wait)
        samples["C loop"].append(plain)
        samples["scipy"].append(time_scipy(a, seconds))
        for peer in ["sprs", "faer", "csr-serial"]:
            samples[peer].append(a.ask(peer, threads, seconds)[0])
    for mkl in mkls.values():
        mkl.close()
    a.close()
    print(f"{name}, {threads} threads: done", file=sys.stderr)
    return {peer: min(times) for peer, times in samples.items()}, choice


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrix", nargs="*", help="name in the table or label of a generated one")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, os.cpu_count()])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each timing")
    options = parser.parse_args()
    known = DEMO | LARGE
    chosen = {name: known.get(name, name) for name in options.matrix} or known
    with tempfile.TemporaryDirectory() as directory:
        lib = compile_c(directory)
    version = ctypes.create_string_buffer(200)
    Mkl.lib.mkl_get_version_string(version, 200)
    print(version.value.decode().strip(), end="\n\n")
    columns = ["auto", "csr-serial", *PEERS]
    print("| matrix | threads |", *(f"{c} µs |" for c in columns), "best peer / auto | chosen |")
    print("| --- |" + " ---: |" * (len(columns) + 2), "--- |")
    ratios = {}
    for name, label in chosen.items():
        for threads in options.threads:
            took, choice = compare(name, label, threads, lib, options.rounds, options.seconds)
            ratio = min(took[peer] for peer in PEERS) / took["auto"]
            ratios.setdefault(threads, []).append((ratio, took["sprs"] / took["auto"]))
            cells = [f"{took[column] * 1e6:.4g}" for column in columns]
            print("|", " | ".join([name, str(threads), *cells, f"{ratio:.2f}", choice]), "|")
            sys.stdout.flush()
    print()
    for threads, pairs in ratios.items():
        best, sprs = np.array(pairs).T
        mean = lambda values: np.exp(np.log(values).mean())
        print(f"{threads} threads: best peer / auto: geometric mean {mean(best):.2f}, least "
              f"{best.min():.2f}; sprs / auto: geometric mean {mean(sprs):.2f}, least "
              f"{sprs.min():.2f}.")


if __name__ == "__main__":
    main()
