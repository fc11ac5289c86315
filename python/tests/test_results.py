"""Memory of results, which is kept and used again."""

import collections
import copy
import ctypes
import multiprocessing
import pickle
import queue
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse
from conftest import DTYPES, matrix, numbers

import spm

try:
    from numpy._core.multiarray import get_handler_name
except ImportError:
    from numpy.core.multiarray import get_handler_name

equal = np.testing.assert_array_equal
ROWS, COLUMNS = 4000, 8
OURS = "spm_results"


@pytest.fixture(autouse=True)
def nothing_is_kept():
    limit = spm.result_memory().limit
    spm.result_memory(0)
    spm.result_memory(limit)
    yield
    spm.result_memory(limit)


@pytest.fixture
def product(rng):
    """An operator, a matrix X, and A X, which is large."""
    A, X = matrix(rng, (ROWS, 30)), numbers(rng, (30, COLUMNS), "float64")
    return spm.operator(A), X, A.toarray() @ X


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_is_used_again(product):
    op, X, expected = product
    y = op @ X
    where, size = address(y), y.nbytes
    assert spm.result_memory().kept == 0
    del y
    assert size <= spm.result_memory().kept < size + 4096
    y = op @ X
    assert address(y) == where and spm.result_memory().kept == 0
    equal(y, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_are_ordinary_arrays(rng, dtype):
    A = matrix(rng, (ROWS, 30), dtype)
    op = spm.operator(A)
    for form, rows, k in ((op, 30, COLUMNS), (op.T, ROWS, 600), (op.H, ROWS, 600), (op.conj(), 30, COLUMNS)):
        for order in "CF":
            y = form @ np.asarray(numbers(rng, (rows, k), dtype), order=order)
            assert type(y) is np.ndarray and y.base is None and get_handler_name(y) == OURS
            assert y.flags.owndata and y.flags.writeable and address(y) % 64 == 0
            assert y.flags.c_contiguous == (order == "C")
    long = spm.operator(matrix(rng, (30_000, 2), dtype))
    assert get_handler_name(long @ numbers(rng, 2, dtype)) == OURS
    assert get_handler_name(op @ numbers(rng, 30, dtype)) == "default_allocator"


def test_what_others_allocate_is_theirs(product):
    op, X, _ = product
    op @ X
    for size in (10, 1 << 20):
        assert get_handler_name(np.empty(size)) == "default_allocator"
    with pytest.raises(MemoryError):
        spm._native.empty((1 << 58,), np.dtype(float), "C")
    with pytest.raises(ValueError):
        spm._native.empty((-1,), np.dtype(float), "C")
    assert get_handler_name(np.empty(1 << 20)) == "default_allocator"


def views(y):
    yield "slice", y[7:9, 1:3]
    yield "reversed", y[::-1]
    yield "transposed", y.T
    yield "reshaped", y.reshape(-1)
    yield "of another type", y.view(np.uint8)
    yield "diagonal", y.diagonal()
    yield "strides", np.lib.stride_tricks.as_strided(y, (5, 2), y.strides)
    yield "buffer", np.asarray(memoryview(y))
    yield "DLPack", np.from_dlpack(y)
    yield "interface", np.asarray(type("Interface", (), {"__array_interface__": y.__array_interface__, "y": y})())
    yield "iterator", y.flat


def test_views_keep_the_memory(product):
    op, X, _ = product
    for i in range(len(list(views(op @ X)))):
        y = op @ X
        where = address(y)
        name, view = list(views(y))[i]
        before = np.array(view)
        del y
        others = [op @ (X + 1) for _ in range(3)]
        assert where not in map(address, others), name
        equal(np.array(view), before, err_msg=name)
        del view, others
        assert spm.result_memory().kept > 0


def test_results_never_share_memory(rng):
    shapes = [(ROWS, 30), (ROWS + 3, 30), (2 * ROWS, 30)]
    operators = [(spm.operator(A), A.toarray()) for A in (matrix(rng, shape) for shape in shapes)]
    alive = []
    for _ in range(300):
        op, dense = operators[rng.integers(3)]
        X = numbers(rng, (30, rng.integers(6, 9)), "float64")
        alive.append((op @ X, dense @ X))
        while len(alive) > rng.integers(1, 8):
            alive.pop(rng.integers(len(alive)))
        places = sorted((address(y), y.nbytes) for y, _ in alive)
        assert all(start + size <= after for (start, size), (after, _) in zip(places, places[1:]))
        for y, expected in alive:
            equal(y, expected)


def test_resizing(product):
    op, X, expected = product
    for rows in (2 * ROWS, ROWS + 1, ROWS // 3, 1, 0):
        y = op @ X
        kept = spm.result_memory().kept
        y.resize((rows, COLUMNS), refcheck=False)
        assert kept or spm.result_memory().kept >= expected.nbytes
        common = min(rows, ROWS)
        equal(y[:common], expected[:common])
        assert not y[common:].any()
        z = op @ X
        equal(y[:common], expected[:common])
        y[...] = 7
        equal(z, expected)
        del y, z
    for y in (op @ X, op @ X):
        equal(y, expected)


def test_pickles_and_copies(product):
    op, X, expected = product
    y = op @ X
    copies = [pickle.loads(pickle.dumps(y, protocol)) for protocol in (2, 5)]
    buffers = []
    text = pickle.dumps(y, 5, buffer_callback=buffers.append)
    apart = pickle.loads(text, buffers=buffers)
    copies += [copy.copy(y), copy.deepcopy(y), y.astype(float), apart]
    del y, text, buffers
    others = [op @ (X + 1) for _ in range(3)]
    for found in copies:
        equal(found, expected)
    assert others[0] is not None


def test_threads(product):
    op, X, expected = product
    failures = []

    def run(factor):
        for _ in range(60):
            y = op @ (factor * X)
            z = op @ (-factor * X)
            if not ((y == factor * expected).all() and (z == -factor * expected).all()):
                failures.append(factor)
            del y

    threads = [threading.Thread(target=run, args=(factor,)) for factor in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_take_give_and_give_back_at_once(product):
    """Results that one thread makes and another drops, while the limit changes and operators come and go."""
    op, X, expected = product
    made, stop, failures = queue.SimpleQueue(), threading.Event(), []

    def run(body):
        try:
            body()
        except BaseException as failure:
            failures.append(failure)

    def make(factor):
        alive = collections.deque(maxlen=3)
        for _ in range(50):
            y = op @ (factor * X)
            alive.append(y)
            made.put((y, factor))
            assert all((y == factor * expected).all() for y in alive)

    def drop():
        for _ in range(50):
            y, factor = made.get(timeout=60)
            assert (y == factor * expected).all()
            del y

    def change():
        limit, other = expected.nbytes, None
        while not stop.wait(1e-3):
            limit = 0 if limit else 3 * expected.nbytes
            assert spm.result_memory(limit).kept <= limit
            other = spm.operator(scipy.sparse.eye_array(3, format="csr")) if other is None else None

    changing = threading.Thread(target=run, args=(change,))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        others = [threading.Thread(target=run, args=(body,))
                  for factor in (1, 2, 3) for body in (lambda factor=factor: make(factor), drop)]
        for thread in (changing, *others):
            thread.start()
        for thread in others:
            thread.join()
    finally:
        stop.set()
        changing.join()
        sys.setswitchinterval(interval)
    if failures:
        raise failures[0]
    assert made.empty()


def test_another_thread_frees(product):
    op, X, expected = product
    results = [op @ X for _ in range(4)]
    thread = threading.Thread(target=results.clear)
    thread.start()
    thread.join()
    assert spm.result_memory().kept >= 4 * expected.nbytes
    equal(op @ X, expected)


def test_the_limit(product):
    op, X, expected = product
    results = [op @ X for _ in range(5)]
    limit = 3 * expected.nbytes + 4096
    assert spm.result_memory(limit) == (0, limit)
    del results
    assert 2 * expected.nbytes <= spm.result_memory().kept <= limit
    assert spm.result_memory(expected.nbytes).kept <= expected.nbytes
    spm.result_memory(0)
    op @ X
    assert spm.result_memory() == spm.ResultMemory(kept=0, limit=0)
    for wrong, error in ((-1, ValueError), (1 << 63, ValueError), (1.5, TypeError), ("1", TypeError)):
        with pytest.raises(error, match="limit"):
            spm.result_memory(wrong)


def test_the_longest_kept_goes_first_and_the_newest_is_used_first(product):
    op, X, expected = product
    y, z = op @ X, op @ X
    first, second = address(y), address(z)
    del y
    del z
    # The newest may still be in cache.
    y = op @ X
    assert address(y) == second
    del y
    spm.result_memory(2 * expected.nbytes - 1)
    y = op @ X
    assert address(y) == second != first


def test_a_result_beyond_the_limit_does_not_take_the_place_of_others(product):
    op, X, expected = product
    op @ X
    kept = spm.result_memory(expected.nbytes + 4096).kept
    op @ np.concatenate([X, X], axis=1)
    assert spm.result_memory().kept == kept > 0


def test_a_larger_result_leaves_the_memory(product):
    bytes_of = np.dtype(np.uint8)
    spm._native.empty((1 << 18,), bytes_of, "C")
    kept = spm.result_memory().kept
    larger = spm._native.empty((kept + 1,), bytes_of, "C")
    assert spm.result_memory().kept == kept == 1 << 18
    del larger


def test_a_much_smaller_result_leaves_the_memory(product):
    op, X, expected = product
    op @ X
    kept = spm.result_memory().kept
    y = op @ X[:, :4]
    assert spm.result_memory().kept == kept
    equal(y, expected[:, :4])


def test_nothing_is_kept_without_operators():
    program = """if True:
        import numpy as np, scipy.sparse, spm
        A = scipy.sparse.eye_array(50_000, format="csr")
        one, two = spm.operator(A), spm.operator(A)
        one @ np.ones(50_000)
        del one
        before = spm.result_memory().kept
        y = two @ np.ones(50_000)
        z = two @ np.ones(50_000)
        del y
        between = spm.result_memory().kept
        del two
        after = spm.result_memory().kept
        del z
        print(before >= 400_000, between >= 400_000, after, spm.result_memory().kept)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("True True 0 0\n", "")


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process(product):
    op, X, expected = product
    y = op @ X
    op @ X

    def child(found):
        nonlocal y
        del y
        results = [op @ X for _ in range(3)]
        found.put(all((z == expected).all() for z in results))

    context = multiprocessing.get_context("fork")
    found = context.Queue()
    process = context.Process(target=child, args=(found,))
    process.start()
    assert found.get(timeout=120)
    process.join()
    equal(y, expected)


def test_an_allocator_that_somebody_has_set_is_used(product):
    op, X, expected = product
    try:
        from numpy._core.multiarray import _ARRAY_API
    except ImportError:
        from numpy.core.multiarray import _ARRAY_API
    python = ctypes.pythonapi
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    python.PyCapsule_New.restype = ctypes.py_object
    python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    table = (ctypes.c_void_p * 307).from_address(python.PyCapsule_GetPointer(_ARRAY_API, None))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])
    default = ctypes.py_object.from_address(table[306]).value
    # NumPy's own functions under another name. It lives as long as the arrays.
    theirs = ctypes.create_string_buffer(
        ctypes.string_at(python.PyCapsule_GetPointer(default, b"mem_handler"), 168), 168)
    theirs[:7] = b"theirs\0"
    capsule = python.PyCapsule_New(ctypes.addressof(theirs), b"mem_handler", None)
    former = set_handler(capsule)
    try:
        y = op @ X
        assert get_handler_name(y) == get_handler_name(np.empty(5)) == "theirs"
    finally:
        set_handler(former)
    equal(y, expected)
    assert get_handler_name(op @ X) == OURS
    del y
