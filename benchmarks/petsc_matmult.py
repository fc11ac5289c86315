"""y = Ax on ranks: PETSc's MatMult, spm's DistOperator and spm's plan on as many threads, in turn.

    python3 benchmarks/petsc_matmult.py --petsc DIR [--arch NAME] [--ranks 2] [--rounds 5] [--seconds 1] [MATRIX...]

DIR is PETSc's source folder after `make` (with --arch) or where it was installed. README.md says how PETSc is built.
Each side runs once a round, the first one another in each round. A figure is the median of the rounds; behind it
are the least and the most of the rounds, and the ratios are medians of the ratios of one round each.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import scipy.io
import scipy.sparse

HERE = pathlib.Path(__file__).resolve().parent
MATRICES = ["stencil27[n=100]", "mesh3[n=100,order=rcm]"]
# Open MPI refuses root, and more ranks than cores, unless it is told.
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "core",
}


def run(*command):
    """The last line of a command's output, which is JSON."""
    environment = os.environ | MPI
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def build(arguments, folder):
    """Compiles PETSc's side."""
    petsc, program = pathlib.Path(arguments.petsc), folder / "petsc_matmult"
    roots = [petsc, petsc / arguments.arch] if arguments.arch else [petsc]
    library = roots[-1] / "lib"
    flags = [f"-I{root / 'include'}" for root in roots]
    flags += [f"-L{library}", f"-Wl,-rpath,{library}", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
    subprocess.run(
        ["mpicc", "-O3", "-march=native", HERE / "petsc_matmult.c", *flags, "-lpetsc", "-o", program],
        check=True,
    )
    return program


def write_petsc(path, a):
    """A CSR matrix in PETSc's binary format: big-endian class, sizes, lengths of rows, columns, values."""
    with open(path, "wb") as file:
        np.array([1211216, *a.shape, a.nnz], ">i4").tofile(file)
        np.diff(a.indptr).astype(">i4").tofile(file)
        a.indices.astype(">i4").tofile(file)
        a.data.astype(">f8").tofile(file)


def for_petsc(name, xtask, folder):
    """What PETSc's side takes for a matrix of a generator."""
    if name.startswith("stencil27[n="):
        return ["stencil27", name[len("stencil27[n=") : -1]]
    text = folder / "matrix.mtx"
    subprocess.run([xtask, "generate", name, text], check=True, stdout=subprocess.DEVNULL)
    a = scipy.sparse.csr_matrix(scipy.io.mmread(text))
    a.sort_indices()
    text.unlink()
    write_petsc(folder / "matrix.petsc", a)
    return ["file", folder / "matrix.petsc"]


def milliseconds(times):
    return f"{statistics.median(times) * 1e3:.2f} ({min(times) * 1e3:.2f} to {max(times) * 1e3:.2f})"


def ratio(over, under):
    ratios = [a / b for a, b in zip(over, under)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrix", nargs="*", default=MATRICES)
    parser.add_argument("--petsc", required=True)
    parser.add_argument("--arch", default="")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--target", default=HERE.parent / "target" / "release")
    parser.add_argument("--xtask", help="program that generates other matrices than stencil27 [TARGET/xtask]")
    arguments = parser.parse_args()
    target = pathlib.Path(arguments.target)
    scaling, seconds, ranks = target / "examples" / "scaling", arguments.seconds, arguments.ranks
    print(f"| matrix | PETSc, ms | spm on {ranks} ranks, ms | spm on {ranks} threads, ms | PETSc / ranks | threads / ranks |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        petsc = build(arguments, folder)
        mpirun = ["mpirun", "-n", ranks]
        for name in arguments.matrix:
            theirs = for_petsc(name, arguments.xtask or target / "xtask", folder)
            # `auto` chooses once for all rounds.
            kernel = run(*mpirun, scaling, name, "strong", 0.1)["kernel"]
            of_threads = run(scaling, name, "threads", 0.1, "auto", ranks)["kernel"].split(" on ")[0]
            sides = {
                "petsc": lambda: run(*mpirun, petsc, seconds, *theirs),
                "ranks": lambda: run(*mpirun, scaling, name, "strong", seconds, kernel),
                "threads": lambda: run(scaling, name, "threads", seconds, of_threads, ranks),
            }
            times = {side: [] for side in sides}
            for round in range(arguments.rounds):
                order = list(sides)
                order = order[round % 3 :] + order[: round % 3]
                for side in order:
                    numbers = sides[side]()
                    if side != "petsc" and not numbers["bound_err"] <= 1.0:
                        sys.exit(f"{name}, {side}: the result is wrong")
                    times[side].append(numbers["median_s"])
            cells = [milliseconds(times[side]) for side in sides]
            ratios = [ratio(times["petsc"], times["ranks"]), ratio(times["threads"], times["ranks"])]
            print(f"| `{name}` |", " | ".join(cells + ratios), "|", flush=True)
            print(f"{name}: {kernel} on ranks, {of_threads} on threads", file=sys.stderr)


if __name__ == "__main__":
    main()
