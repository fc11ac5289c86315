"""Several threads share operators; on a free-threaded Python they run at once."""

import os
import pickle
import subprocess
import sys
import sysconfig
import threading

import numpy as np
import pytest
from conftest import DTYPES, matrix, numbers

import spm

# What all values of a matrix are while others change them.
FACTORS = (1, 2, 3)
ROUNDS = 15


def at_once(*bodies):
    """Calls all bodies, each in a thread, and raises what the first failing one raises."""
    start, failures = threading.Barrier(len(bodies)), []

    def run(body):
        start.wait()
        try:
            body()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def times(body, count=ROUNDS):
    return lambda: [body() for _ in range(count)]


def is_of_one_matrix(found, expected):
    """Whether it is the product of a matrix whose values are all the same one of the factors."""
    assert found.shape == expected.shape
    assert any((found == factor * expected).all() for factor in FACTORS), (found, expected)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="a Python with a GIL")
def test_the_module_leaves_a_free_threaded_python_free():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    program = "import spm, sys; print(sys._is_gil_enabled())"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True,
                          env=environment, timeout=120)
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize("device", ["cpu", "emulated"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_new_values_views_and_texts_at_once(rng, dtype, device):
    rows, cols = (700, 500) if device == "cpu" else (40, 30)
    A = matrix(rng, (rows, cols), dtype)
    A.data[:] = 1
    op, dense = spm.operator(A, device=device), A.toarray()
    wide = "complex128" if np.dtype(dtype).kind == "c" else "float64"
    x, z = numbers(rng, cols, dtype), numbers(rng, rows, dtype)
    X, Z = numbers(rng, (cols, 3), dtype), np.asfortranarray(numbers(rng, (rows, 4), dtype))
    x_wide = x.astype(wide)
    y, t, Y, T = dense @ x, dense.T @ z, dense @ X, dense.T @ Z

    def products():
        is_of_one_matrix(op @ x, y)
        is_of_one_matrix(op @ X, Y)
        is_of_one_matrix(op.T @ z, t)
        is_of_one_matrix(op.H @ Z, T)
        is_of_one_matrix(op.apply(x, out=np.zeros_like(y), alpha=2, beta=1), 2 * y)

    def wider_products():
        is_of_one_matrix(op @ x_wide, dense.astype(wide) @ x_wide)

    def of_values():
        for factor in FACTORS:
            op.set_values(np.full(A.nnz, factor, dtype))

    def of_matrices():
        for factor in FACTORS:
            op.set_values(A.dtype.type(factor) * A.tocsc())

    def views_and_texts():
        view = op.T.H
        assert view.nnz == A.nnz and view.recipe and op.memory_bytes > 0
        assert "entries" in repr(view) and op.describe()
        del view
        copy = op.tocsr()
        is_of_one_matrix(copy.data, np.ones(A.nnz, dtype))
        is_of_one_matrix(pickle.loads(pickle.dumps(op)) @ x, y)

    def others_of_the_same_matrix():
        other = spm.operator(A)
        np.testing.assert_array_equal(other @ x, y)
        del other
        np.testing.assert_array_equal(spm.operator(A, expected_products=500) @ x, y)

    count = ROUNDS if device == "cpu" else 4
    at_once(*(times(body, count) for body in (products, products, wider_products, of_values, of_matrices,
                                               views_and_texts, others_of_the_same_matrix)))


def test_the_last_owner_of_an_operator_is_a_product(rng):
    A = matrix(rng, (300, 300))
    A.data[:] = 1
    x = numbers(rng, 300, "float64")
    expected, holder, left = A @ x, [spm.operator(A)], threading.Event()

    def multiply():
        while not left.is_set():
            is_of_one_matrix(holder[0] @ x, expected)

    def replace():
        for i in range(60):
            holder[0] = spm.operator(float(FACTORS[i % 3]) * A)
        left.set()

    at_once(multiply, multiply, multiply, replace)


def test_an_out_belongs_to_one_product_at_a_time(rng):
    A = matrix(rng, (2000, 300), density=0.2)
    op, x, out = spm.operator(A), numbers(rng, 300, "float64"), np.zeros(2000)
    done = []

    def multiply():
        try:
            op.apply(x, out=out)
        except ValueError as refused:
            assert "another product" in str(refused)
        else:
            done.append(True)

    at_once(*[times(multiply, 50)] * 4)
    assert done
    np.testing.assert_array_equal(out, A @ x)


def test_threads_make_operators_of_one_matrix(rng):
    for kind in ("csr", "csc", "coo"):
        A, x = matrix(rng, (400, 300), kind=kind), numbers(rng, 300, "float64")
        expected = A @ x

        def make():
            np.testing.assert_array_equal(spm.operator(A) @ x, expected)
            np.testing.assert_array_equal(spm.transpose(A).T @ x, expected)

        at_once(*[times(make)] * 4)
        assert kind != "csr" or not A.indices.flags.writeable
