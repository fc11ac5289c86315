"""Sharing, new values, pickles, solvers, errors, processes."""

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from conftest import DTYPES, matrix, numbers

import spm

equal = np.testing.assert_array_equal


def laplacian(n):
    line = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    eye = scipy.sparse.eye_array(n)
    return (scipy.sparse.kron(line, eye) + scipy.sparse.kron(eye, line)).tocsr()


# Sharing.

@pytest.mark.parametrize("dtype", DTYPES)
def test_csr_is_used_in_place(rng, dtype):
    A = matrix(rng, (50, 40), dtype)
    op = spm.operator(A)
    arrays = [A.indptr, A.indices, A.data]
    assert op._native.addresses == [array.ctypes.data for array in arrays]
    assert [array.flags.writeable for array in arrays] == [False, False, True]
    with pytest.raises(ValueError):
        A.indices[0] = 1 << 20


def test_64_bit_indices_are_converted_and_values_stay(rng):
    A = matrix(rng, (50, 40), index="int64")
    op = spm.operator(A)
    assert op._native.addresses[2] == A.data.ctypes.data
    assert op._native.addresses[1] != A.indices.ctypes.data
    assert A.indices.flags.writeable


def test_copy_shares_nothing(rng):
    A = matrix(rng, (50, 40))
    expected = A @ np.ones(40)
    op = spm.operator(A, copy=True)
    A.indices[:] = 0
    A.data[:] = 0
    equal(op @ np.ones(40), expected)


def test_the_arrays_outlive_the_matrix(rng):
    A = matrix(rng, (200, 200))
    expected = A @ np.ones(200)
    op = spm.operator(A)
    del A
    for _ in range(20):
        np.ones(20000)
    equal(op @ np.ones(200), expected)


def test_out_may_not_be_the_matrix(rng):
    A = matrix(rng, (6, 6), density=1.0)
    op = spm.operator(A)
    with pytest.raises(ValueError, match="matrix of the operator"):
        op.apply(np.ones(6), out=A.data[:6])


# New values.

@pytest.mark.parametrize("dtype", DTYPES)
def test_new_values(rng, dtype):
    A = matrix(rng, (60, 50), dtype)
    op = spm.operator(A)
    transpose, adjoint = op.T, op.H
    x, z = numbers(rng, 50, dtype), numbers(rng, (60, 2), dtype)
    op @ x, transpose @ z, adjoint @ z
    before = A.data.copy()
    for _ in range(3):
        values = numbers(rng, A.nnz, dtype)
        op.set_values(values)
        B = scipy.sparse.csr_array((values, A.indices, A.indptr), shape=A.shape)
        equal(op @ x, B @ x)
        equal(transpose @ z, B.T @ z)
        equal(adjoint @ z, B.conj().T @ z)
    equal(A.data, before)


def test_new_values_of_a_matrix_in_any_format(rng):
    A = matrix(rng, (30, 20))
    B = A.copy()
    B.data = numbers(rng, A.nnz, "float64")
    x = numbers(rng, 20, "float64")
    for kind in ("csr", "csc", "coo"):
        for new in ("csr", "csc", "coo"):
            op = spm.operator(A.asformat(kind))
            op.set_values(B.asformat(new))
            equal(op @ x, B @ x)


def test_new_values_that_do_not_fit(rng):
    A = matrix(rng, (30, 20))
    op = spm.operator(A)
    with pytest.raises(ValueError, match="expected shape"):
        op.set_values(np.ones(A.nnz + 1))
    with pytest.raises(ValueError, match="other places"):
        op.set_values(matrix(rng, (30, 20)))
    with pytest.raises(TypeError, match="does not fit"):
        op.set_values(np.ones(A.nnz, complex))
    with pytest.raises(ValueError, match="another order"):
        spm.operator(A.tocsc()).set_values(A.tocsc().data)
    with pytest.raises(ValueError, match="not transposed"):
        op.T.set_values(A)
    equal(op @ np.ones(20), A @ np.ones(20))


def test_values_changed_during_products_are_one_or_the_other(rng):
    n = 400
    A = matrix(rng, (n, n), density=0.2)
    A.data[:] = 1
    counts = A @ np.ones(n)
    op, stop, failures = spm.operator(A), threading.Event(), []

    def multiply():
        while not stop.is_set():
            y = op @ np.ones(n)
            if not ((y == counts).all() or (y == 2 * counts).all()):
                failures.append(y)

    threads = [threading.Thread(target=multiply) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(50):
        op.set_values(np.full(A.nnz, 1.0 + i % 2))
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


# Recipes, pickles, text.

@pytest.mark.parametrize("dtype", DTYPES)
def test_pickles(rng, dtype):
    A = matrix(rng, (60, 50), dtype)
    for op in (spm.operator(A), spm.operator(A, expected_products=500), spm.operator(A).T,
               spm.operator(A).H, spm.operator(A.tocsc())):
        for again in (pickle.loads(pickle.dumps(op)), copy.copy(op), copy.deepcopy(op)):
            assert (again.recipe, again.shape, again.dtype) == (op.recipe, op.shape, op.dtype)
            x = numbers(rng, op.shape[1], dtype)
            equal(again @ x, op @ x)


@pytest.mark.parametrize("options", [{}, {"threads": 3}, {"expected_products": 10**6, "threads": 3},
                                     {"recipe": "cpu csr-compact on 2 threads"},
                                     {"recipe": "cpu csr-compact on 1 thread", "threads": 3}])
def test_an_unpickled_operator_takes_the_same_threads(rng, options):
    A = matrix(rng, (1000, 1000), density=0.1)
    op, x = spm.operator(A, **options), numbers(rng, 1000, "float64")
    op @ x
    again = pickle.loads(pickle.dumps(op))
    twice = pickle.loads(pickle.dumps(again))
    for other in (again, twice):
        assert (other.recipe, other._native.threads) == (op.recipe, op._native.threads)
        equal(other @ np.stack([x, x], axis=1), op @ np.stack([x, x], axis=1))
    if "threads" in options:
        assert again._native.threads == 3
    # It goes on as the first one: this one has chosen, or will.
    assert again._native.chosen == twice._native.chosen == op._native.chosen
    assert (op._native.chosen is None) == ("expected_products" not in options and "recipe" not in options)


def test_a_choice_of_one_thread_is_one_for_vectors(rng):
    A, X = matrix(rng, (1000, 1000), density=0.1), numbers(rng, (1000, 3), "float64")
    op = spm.operator(A, threads=3)
    restore, (*arguments, options, transposed, conjugate) = op.__reduce__()
    options["chosen"] = "cpu csr-compact on 1 thread"
    again = restore(*arguments, options, transposed, conjugate)
    for other in (again, pickle.loads(pickle.dumps(again)), pickle.loads(pickle.dumps(again.T)).T):
        assert other.recipe.startswith("cpu csr-compact") and other.recipe.endswith("on 1 thread")
        assert other._native.threads == 3
        equal(other @ X, op @ X)
        equal(other.T @ X, op.T @ X)
        equal(other @ X[:, 0], op @ X[:, 0])


def test_a_recipe_is_a_choice(rng):
    A = matrix(rng, (60, 50))
    op = spm.operator(A, recipe="cpu csr-serial on 1 thread")
    assert op.recipe == "cpu csr-serial on 1 thread"
    assert spm.operator(A, recipe=op.recipe).recipe == op.recipe
    with pytest.raises(ValueError, match="recipe"):
        spm.operator(A, recipe="the fast one")
    with pytest.raises(ValueError, match="no kernel"):
        spm.operator(A, recipe="cpu nonsense on 1 thread")


def test_text(rng):
    op = spm.operator(matrix(rng, (60, 50)))
    assert "60 x 50" in op.describe()
    assert "60x50" in repr(op)
    assert op.measure() > 0
    assert op.memory_bytes > 0


# SciPy's solvers.

def test_solvers():
    A = laplacian(20)
    op = spm.operator(A)
    assert isinstance(op, scipy.sparse.linalg.LinearOperator)
    assert scipy.sparse.linalg.aslinearoperator(op) is op
    b = A @ np.linspace(0, 1, 400)
    for solver in (scipy.sparse.linalg.cg, scipy.sparse.linalg.gmres, scipy.sparse.linalg.bicg,
                   scipy.sparse.linalg.bicgstab, scipy.sparse.linalg.minres):
        tolerance = {"maxiter": 2000}
        x, info = solver(op, b, **tolerance)
        assert info == 0
        assert np.linalg.norm(A @ x - b) < 1e-3 * np.linalg.norm(b)
    x = scipy.sparse.linalg.lsqr(op, b)[0]
    assert np.linalg.norm(A @ x - b) < 1e-3 * np.linalg.norm(b)


def test_eigenvalues_and_singular_values(rng):
    A = laplacian(12)
    op = spm.operator(A)
    np.testing.assert_allclose(scipy.sparse.linalg.eigsh(op, k=3, return_eigenvectors=False),
                               scipy.sparse.linalg.eigsh(A, k=3, return_eigenvectors=False))
    B = matrix(rng, (40, 30))
    np.testing.assert_allclose(
        np.sort(scipy.sparse.linalg.svds(spm.operator(B), k=3, return_singular_vectors=False)),
        np.sort(scipy.sparse.linalg.svds(B, k=3, return_singular_vectors=False)))
    x = rng.random((144, 3))
    values = scipy.sparse.linalg.lobpcg(op, x, largest=True, maxiter=500, tol=1e-8)[0]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A.toarray())[-1:-4:-1], rtol=1e-6)


def test_compositions(rng):
    A, x = matrix(rng, (20, 20)), numbers(rng, 20, "float64")
    op, dense = spm.operator(A), A.toarray()
    equal((2 * op) @ x, 2 * dense @ x)
    equal((op + op.T) @ x, (dense + dense.T) @ x)
    equal((op @ op) @ x, dense @ (dense @ x))
    equal((op**2) @ x, dense @ (dense @ x))
    equal((-op) @ x, -dense @ x)
    equal(op * x, dense @ x)
    equal(op(x), dense @ x)
    equal(op.matvec(x), dense @ x)
    equal(op.rmatvec(x), dense.T @ x)
    equal(op.matmat(x[:, None]), dense @ x[:, None])
    equal(op.rmatmat(x[:, None]), dense.T @ x[:, None])
    equal(op.dot(3.0) @ x, 3 * dense @ x)
    with pytest.raises(TypeError, match="sparse"):
        op @ A
    with pytest.raises(ValueError):
        op @ 2.0


# Errors.

def test_what_is_no_matrix():
    with pytest.raises(TypeError, match="csr_array"):
        spm.operator(np.eye(3))
    with pytest.raises(TypeError, match="csr_array"):
        spm.operator([[1.0]])
    with pytest.raises(TypeError, match="longdouble|float128"):
        spm.operator(scipy.sparse.csr_array(np.eye(2)).astype(np.longdouble))
    with pytest.raises(ValueError, match="two dimensions"):
        spm.operator(scipy.sparse.coo_array(np.ones(3)))


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("wrong", [-1, 40, 2**30])
def test_indices_outside(rng, index, wrong):
    for kind in ("csr", "csc"):
        A = matrix(rng, (40, 40), kind=kind, index=index)
        A.indices[-1] = wrong
        with pytest.raises(ValueError, match="outside"):
            spm.operator(A)
        A = matrix(rng, (40, 40), kind=kind, index=index)
        A.indptr[3] = wrong + 10**6
        with pytest.raises(ValueError, match="pointers"):
            spm.operator(A)
    A = matrix(rng, (40, 40), kind="coo", index=index)
    A.coords[0][-1] = wrong
    with pytest.raises(ValueError, match="outside"):
        spm.operator(A)


def test_arrays_of_other_lengths(rng):
    A = matrix(rng, (40, 40))
    A.data = A.data[:-1]
    with pytest.raises(ValueError, match="length"):
        spm.operator(A)
    A = matrix(rng, (40, 40))
    A.indptr = A.indptr[:-1]
    with pytest.raises(ValueError):
        spm.operator(A)
    A.indptr = A.indptr[:0]
    with pytest.raises(ValueError):
        spm.operator(A)


def test_operands_that_do_not_fit(rng):
    op = spm.operator(matrix(rng, (4, 3)))
    for x in (np.ones(4), np.ones((4, 2)), np.ones((3, 2, 2)), np.float64(1), np.ones((1, 3))):
        with pytest.raises(ValueError):
            op.apply(x)
    for out in (np.ones(3), np.ones((4, 1))):
        with pytest.raises(ValueError, match="out"):
            op.apply(np.ones(3), out=out)
    with pytest.raises(TypeError, match="out"):
        op.apply(np.ones(3), out=np.ones(4, np.float32))
    with pytest.raises(ValueError, match="no out"):
        op.apply(np.ones(3), beta=1)
    with pytest.raises(TypeError, match="alpha"):
        op.apply(np.ones(3), alpha=1j)
    with pytest.raises(TypeError):
        op.apply(np.array(["a", "b", "c"]))
    with pytest.raises(TypeError, match="longdouble|float128"):
        op.apply(np.ones(3, np.longdouble))
    frozen = np.ones(4)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        op.apply(np.ones(3), out=frozen)


def test_options_that_make_no_sense(rng):
    A = matrix(rng, (4, 3))
    with pytest.raises(ValueError, match="threads"):
        spm.operator(A, threads=0)
    with pytest.raises(ValueError, match="threads"):
        spm.operator(A, threads=1 << 40)
    with pytest.raises(TypeError, match="expected_products"):
        spm.operator(A, expected_products="many")
    with pytest.raises(ValueError, match="budget"):
        spm.operator(A, budget=-1)
    with pytest.raises(TypeError, match="recipe"):
        spm.operator(A, recipe=1)


def test_a_budget_that_is_too_small(rng):
    A = matrix(rng, (300, 300))
    with pytest.raises(MemoryError, match="budget"):
        spm.operator(A, recipe="cpu ell-rows on 1 thread", budget=10)


def test_a_panic_is_an_exception(rng):
    # More threads than a system starts, which the Python code refuses.
    from spm import _native
    from spm._arrays import native_arrays

    arrays = native_arrays(matrix(rng, (400, 400)))
    with pytest.raises(RuntimeError, match="internal error"):
        _native.Operator(arrays, {"threads": 1 << 30, "expected_products": None,
                                  "deterministic": False, "recipe": None, "chosen": None, "budget": None,
                                  "device": "cpu"})


# Processes.

def _product(op, x):
    return [op @ x for _ in range(20)][-1]


def _new_operator(A, x):
    return _product(spm.operator(A, expected_products=1000), x)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_multiplies(rng):
    A = matrix(rng, (1200, 1200), density=0.2)
    op, x = spm.operator(A, threads=3), numbers(rng, 1200, "float64")
    csc = A.tocsc()
    expected = A @ x
    equal(op @ x, expected)
    equal(spm.operator(csc, threads=3) @ x, expected)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        tasks = [pool.apply_async(_product, (op, x)), pool.apply_async(_new_operator, (A, x)),
                 pool.apply_async(_new_operator, (csc, x)), pool.apply_async(_forked_again, (A, x))]
        for task in tasks:
            equal(task.get(timeout=120), expected)
    equal(op @ x, expected)


def _forked_again(A, x):
    op = spm.operator(A, threads=3)
    first = op @ x
    child = os.fork()
    if child == 0:
        os._exit(0 if (op @ x == first).all() and (spm.operator(A.tocsc()) @ x == first).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    return first


def _child_with_the_parents_operator(op, x, queue):
    queue.put([op @ x for _ in range(40)][-1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_operator_goes_with_a_fork(rng):
    A = matrix(rng, (1200, 1200), density=0.2)
    op, x = spm.operator(A, threads=3), numbers(rng, 1200, "float64")
    expected = op @ x
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child_with_the_parents_operator, args=(op, x, queue))
    child.start()
    equal(queue.get(timeout=120), expected)
    child.join()
    assert child.exitcode == 0


def test_a_spawned_process_multiplies(rng):
    A, x = matrix(rng, (100, 100)), numbers(rng, 100, "float64")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        equal(pool.apply(_product, (spm.operator(A), x)), A @ x)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
def test_ctrl_c_ends_a_long_call(tmp_path):
    pipe = tmp_path / "slow.mtx"
    os.mkfifo(pipe)
    program = f"""
import signal, spm
# Ignored where the tests run in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
try:
    spm.read({str(pipe)!r})
except KeyboardInterrupt:
    print("interrupted", flush=True)
    import os
    os._exit(7)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    # Opening the pipe waits for a writer, which never writes a line.
    with open(pipe, "w"):
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert child.wait(timeout=60) == 7
