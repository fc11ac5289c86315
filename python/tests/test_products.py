"""Products against SciPy and NumPy. All numbers are small and whole, so results must be equal."""

import itertools
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse
from conftest import DTYPES, matrix, numbers

import spm

SHAPES = [(0, 0), (0, 5), (5, 0), (1, 1), (1, 70), (70, 1), (3, 4), (64, 33), (201, 300)]

equal = np.testing.assert_array_equal


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_every_format_index_and_dtype(rng, dtype, index, kind):
    for shape in SHAPES:
        A = matrix(rng, shape, dtype, kind=kind, index=index)
        op, dense = spm.operator(A), A.toarray()
        assert (op.shape, op.dtype, op.nnz) == (shape, A.dtype, A.nnz)
        x, z = numbers(rng, shape[1], dtype), numbers(rng, shape[0], dtype)
        assert (op @ x).dtype == (A @ x).dtype
        equal(op @ x, dense @ x)
        equal(op.T @ z, dense.T @ z)
        equal(op.H @ z, dense.conj().T @ z)
        equal(op.conj() @ x, dense.conj() @ x)
        equal(op.T.T @ x, dense @ x)
        equal(op.H.T @ x, dense.conj() @ x)
        equal(op.tocsr().toarray(), dense)
        equal(op.H.tocsr().toarray(), dense.conj().T)


@pytest.mark.parametrize("make", [getattr(scipy.sparse, f"{kind}_{suffix}")
                                  for kind in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
                                  for suffix in ("array", "matrix")])
def test_every_class(rng, make):
    A = make(matrix(rng, (12, 9)))
    x = numbers(rng, 9, "float64")
    equal(spm.operator(A) @ x, A.toarray() @ x)


def layouts(X):
    """The same matrix in every order, with gaps, backwards and misaligned."""
    rows, cols = X.shape
    yield np.ascontiguousarray(X)
    yield np.asfortranarray(X)
    wide = np.full((rows, cols + 3), 99, X.dtype)
    wide[:, 1:cols + 1] = X
    yield wide[:, 1:cols + 1]
    tall = np.full((rows + 3, cols), 99, X.dtype, order="F")
    tall[2:rows + 2] = X
    yield tall[2:rows + 2]
    yield np.ascontiguousarray(X[::-1])[::-1]
    yield np.repeat(X, 2, axis=1)[:, ::2]
    yield np.repeat(X, 2, axis=0)[::2]
    raw = np.zeros(X.nbytes + 1, np.uint8)
    misaligned = raw[1:].view(X.dtype).reshape(X.shape)
    misaligned[...] = X
    yield misaligned


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [0, 1, 2, 3, 8, 17])
def test_every_order_and_stride(rng, dtype, k):
    for shape in [(7, 5), (40, 64), (1, 6), (6, 1), (0, 3), (3, 0)]:
        A = matrix(rng, shape, dtype)
        op, dense = spm.operator(A), A.toarray()
        X = numbers(rng, (shape[1], k), dtype)
        Z = numbers(rng, (shape[0], k), dtype)
        for x, z in zip(layouts(X), layouts(Z)):
            before = x.copy()
            equal(op @ x, dense @ X)
            equal(op.T @ z, dense.T @ Z)
            equal(op.H @ z, dense.conj().T @ Z)
            equal(op.conj() @ x, dense.conj() @ X)
            equal(x, before)


def test_the_result_has_the_order_of_x(rng):
    op = spm.operator(matrix(rng, (20, 30)))
    X = numbers(rng, (30, 4), "float64")
    assert (op @ X).flags.c_contiguous
    assert (op @ np.asfortranarray(X)).flags.f_contiguous


@pytest.mark.parametrize("step", [-3, -1, 2, 3])
def test_strided_vectors(rng, step):
    A = matrix(rng, (31, 40))
    x = numbers(rng, 40 * abs(step), "float64")[::step]
    out = np.full(31 * abs(step), 5.0)
    expected = A @ x
    equal(spm.operator(A) @ x, expected)
    view = out[::step]
    assert spm.operator(A).apply(x, out=view) is view
    equal(view, expected)
    assert (np.delete(out, np.arange(out.size)[::step]) == 5).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_alpha_beta_and_out(rng, dtype):
    A = matrix(rng, (30, 20), dtype)
    op, dense = spm.operator(A), A.toarray()
    factors = [0, 1, -2, 0.5] + ([1j, 2 - 1j] if np.dtype(dtype).kind == "c" else [])
    forms = [(op, dense), (op.T, dense.T), (op.H, dense.conj().T), (op.conj(), dense.conj())]
    for (form, a), k, alpha, beta in itertools.product(forms, [None, 1, 3], factors, factors):
        tail = () if k is None else (k,)
        x = numbers(rng, (a.shape[1], *tail), dtype)
        y = numbers(rng, (a.shape[0], *tail), dtype)
        expected = (alpha * (a @ x) + beta * y).astype(dtype)
        for order in "CF":
            out = np.array(y, order=order)
            assert form.apply(x, out=out, alpha=alpha, beta=beta) is out
            equal(out, expected)
        if k == 3:
            outs = list(layouts(y))
            for out in outs:
                equal(form.apply(x, out=out, alpha=alpha, beta=beta), expected)


def test_what_beta_0_overwrites_is_never_read(rng):
    A = matrix(rng, (9, 9))
    op = spm.operator(A)
    for shape in [9, (9, 3)]:
        for form in (op, op.T, op.H):
            out = np.full(shape, np.nan)
            form.apply(np.ones(shape), out=out)
            assert np.isfinite(out).all()


@pytest.mark.parametrize("of_a", DTYPES)
@pytest.mark.parametrize("of_x", DTYPES + ["int8", "uint16", "int32", "int64", "bool", "float16",
                                           ">f8", ">c8"])
def test_types_are_promoted_as_in_scipy(rng, of_a, of_x):
    A = matrix(rng, (25, 18), of_a)
    op = spm.operator(A)
    forms = [(op, A), (op.T, A.T), (op.H, A.conj().T), (op.conj(), A.conj())]
    for (form, a), k in itertools.product(forms, [None, 1, 4]):
        x = numbers(rng, a.shape[1] if k is None else (a.shape[1], k), "int64")
        x = (x + 1j * x[::-1]).astype(of_x) if np.dtype(of_x).kind == "c" else abs(x).astype(of_x)
        expected = a.toarray() @ x
        result = form @ x
        assert result.dtype == np.result_type(A.dtype, x.dtype)
        equal(result, expected)
        out = np.ones_like(result)
        equal(form.apply(x, out=out, alpha=2, beta=3), 2 * expected + 3)
    for n in (0, 3):
        empty = spm.operator(matrix(rng, (n, 3 - n), of_a))
        assert (empty @ np.ones(3 - n, of_x)).shape == (n,)
        assert (empty @ np.ones((3 - n, 2), of_x)).shape == (n, 2)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", ">f8",
                                   ">f4"])
def test_other_matrices_are_converted(rng, dtype):
    A = abs(matrix(rng, (8, 6)))
    A.data = A.data.astype(dtype)
    op = spm.operator(A)
    assert op.dtype == {"float16": np.float32, ">f4": np.float32}.get(dtype, np.float64)
    equal(op @ np.arange(6.0), scipy.sparse.csr_array((A.data.astype(float), A.indices, A.indptr), shape=A.shape) @ np.arange(6.0))


def test_wider_vectors_keep_their_precision(rng):
    A = scipy.sparse.csr_array(np.array([[1.0, 1.0]], np.float32))
    op = spm.operator(A)
    assert (op @ np.array([1.0, 1e-12]))[0] == 1.0 + 1e-12
    op.set_values(np.array([2.0, 2.0], np.float32))
    assert (op @ np.array([1.0, 1e-12]))[0] == 2.0 + 2e-12


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_unsorted_and_repeated_indices(rng, dtype, index):
    data = numbers(rng, 7, dtype)
    indices = np.array([3, 0, 3, 1, 1, 2, 0], index)
    indptr = np.array([0, 3, 3, 7], index)
    rows = np.repeat([0, 2], [3, 4])
    dense = np.zeros((3, 4), dtype)
    np.add.at(dense, (rows, indices), data)
    matrices = [
        scipy.sparse.csr_array((data, indices, indptr), shape=(3, 4)),
        scipy.sparse.csc_array((data, indices, indptr), shape=(4, 3)),
        scipy.sparse.coo_array((data, (rows, indices)), shape=(3, 4)),
    ]
    for A, expected in zip(matrices, [dense, dense.T, dense]):
        x = numbers(rng, expected.shape[1], dtype)
        kept = A.data.copy(), [array.copy() for array in (A.coords if A.format == "coo" else [A.indices])]
        equal(spm.operator(A) @ x, expected @ x)
        equal(A.data, kept[0])
        for array, before in zip(A.coords if A.format == "coo" else [A.indices], kept[1]):
            equal(array, before)


def test_room_behind_the_last_entry(rng):
    A = matrix(rng, (5, 5))
    A.data = np.append(A.data, [7.0, 7.0])
    A.indices = np.append(A.indices, [0, 1]).astype(np.int32)
    equal(spm.operator(A) @ np.ones(5), A @ np.ones(5))


def test_more_products_than_the_operator_first_plans_for(rng):
    A = matrix(rng, (900, 700), density=0.2)
    op = spm.operator(A)
    for _ in range(70):
        x, z = numbers(rng, 700, "float64"), numbers(rng, 900, "float64")
        equal(op @ x, A @ x)
        equal(op.T @ z, A.T @ z)


def test_several_threads_at_once(rng):
    A = matrix(rng, (300, 300))
    op, failures = spm.operator(A), []
    cases = [(x, A @ x) for x in numbers(rng, (8, 300), "float64")]

    def run(x, expected):
        for _ in range(50):
            if not (op @ x == expected).all():
                failures.append(x)

    threads = [threading.Thread(target=run, args=case) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads(rng, threads):
    A = matrix(rng, (700, 500), density=0.2)
    x = numbers(rng, 500, "float64")
    for options in [{}, {"expected_products": 1}, {"expected_products": 1000}, {"deterministic": True},
                    {"recipe": f"cpu csr-rows on {threads} threads"}]:
        op = spm.operator(A, threads=threads, **options)
        equal(op @ x, A @ x)


def test_an_overlapping_out_is_a_copy_of_x_first(rng):
    A = matrix(rng, (6, 6))
    op = spm.operator(A)
    x = numbers(rng, 6, "float64")
    y = x.copy()
    equal(op.apply(y, out=y, alpha=2, beta=1), 2 * (A @ x) + x)
    buffer = numbers(rng, 9, "float64")
    expected = A @ buffer[:6]
    equal(op.apply(buffer[:6], out=buffer[3:]), expected)
    square = numbers(rng, (6, 8), "float64")
    expected = A @ square[:, :4]
    equal(op.apply(square[:, :4], out=square[:, 4:]), expected)


def test_lists_matrices_and_left_products(rng):
    A = matrix(rng, (4, 3))
    op, dense = spm.operator(A), A.toarray()
    equal(op @ [1.0, 2.0, 3.0], dense @ [1.0, 2.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        X = np.matrix([[1.0], [2.0], [3.0]])
        assert isinstance(op @ X, np.matrix)
        equal(op @ X, dense @ X)
    equal(np.arange(4.0) @ op, np.arange(4.0) @ dense)
    equal(np.ones((2, 4)) @ op, np.ones((2, 4)) @ dense)
