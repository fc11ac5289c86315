"""Operands in device memory: stand-ins over host memory on an emulated GPU, CuPy and PyTorch where there is one."""

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from conftest import DTYPES, matrix, numbers
from numpy.lib.stride_tricks import as_strided
from scipy.sparse.linalg import cg

import spm


class Interface:
    """Host memory behind the CUDA array interface. `changes` are other fields of it."""

    def __init__(self, array, **changes):
        self.array, self.changes = array, changes

    @property
    def __cuda_array_interface__(self):
        a = self.array
        return dict({"shape": a.shape, "typestr": a.dtype.str, "version": 3, "stream": None,
                     "data": (a.ctypes.data, not a.flags.writeable),
                     "strides": None if a.flags.c_contiguous else a.strides}, **self.changes)

    def __dlpack_device__(self):
        return (1, 0)


class Tensor:
    """Host memory behind DLPack and the array API."""

    device = "cpu"

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __array_namespace__(self):
        return Namespace

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def T(self):
        return Tensor(self.array.T)


class OldTensor(Tensor):
    """Of before DLPack's versions."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class Namespace:
    def empty(shape, dtype, device):
        assert device == "cpu"
        return Tensor(np.full(shape, np.nan, dtype))


class Library:
    """How a library's arrays are made and read."""

    def __init__(self, name):
        self.name, self.device = name, "emulated"
        if name in ("cupy", "torch"):
            self.device = "gpu"
            self.module = pytest.importorskip(name)
            there = self.module.cuda.is_available()
            if not there:
                pytest.skip(f"{name} sees no GPU")

    def put(self, array):
        """The array with its order."""
        array = np.array(array, order="K", copy=True)
        if self.name == "cupy":
            return self.module.asarray(array, order="F" if np.isfortran(array) else "C")
        if self.name == "torch":
            if np.isfortran(array):
                return self.module.from_numpy(array.T).cuda().t()
            return self.module.from_numpy(array).cuda()
        return {"interface": Interface, "dlpack": Tensor, "old dlpack": OldTensor}[self.name](array)

    def get(self, array):
        if self.name == "cupy":
            assert isinstance(array, self.module.ndarray)
            return array.get()
        if self.name == "torch":
            assert isinstance(array, self.module.Tensor)
            return array.cpu().numpy()
        return array.array

    def is_fortran(self, array):
        return array.array.flags.f_contiguous if hasattr(array, "array") else (
            array.flags.f_contiguous if self.name == "cupy" else array.t().is_contiguous())


@pytest.fixture(params=["interface", "dlpack", "old dlpack", "cupy", "torch"])
def library(request):
    return Library(request.param)


@pytest.fixture(params=["interface", "dlpack"])
def fake(request):
    return Library(request.param)


def equal(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(30, 50), (40, 40), (5, 1), (1, 7), (0, 4), (4, 0)])
def test_every_form_and_order_into_out(rng, library, dtype, shape):
    A = matrix(rng, shape, dtype)
    op, dense = spm.operator(A, device=library.device), A.toarray()
    forms = [(op, dense), (op.T, dense.T), (op.H, dense.T.conj()), (op.conj(), dense.conj())]
    for form, dense in forms[:2] if np.dtype(dtype).kind == "f" else forms:
        for k, order in [(None, "C"), (1, "C"), (1, "F"), (3, "C"), (3, "F"), (4, "C"), (0, "C")]:
            columns = () if k is None else (k,)
            x = np.array(numbers(rng, dense.shape[1:] + columns, dtype), order=order)
            y = np.array(numbers(rng, dense.shape[:1] + columns, dtype), order=order)
            out = library.put(y)
            assert form.apply(library.put(x), out=out, alpha=2, beta=-1) is out
            equal(library.get(out), 2 * (dense @ x) - y)
            junk = np.full_like(y, np.nan)
            out = library.put(junk)
            form.matvec(library.put(x), out=out)
            equal(library.get(out), dense @ x)


@pytest.mark.parametrize("name", ["dlpack", "cupy", "torch"])
def test_new_results_are_of_the_library_and_the_order_of_x(rng, name):
    library = Library(name)
    A = matrix(rng, (30, 50))
    op, dense = spm.operator(A, device=library.device), A.toarray()
    x = numbers(rng, 50, "float64")
    equal(library.get(op @ library.put(x)), dense @ x)
    equal(library.get(op.dot(library.put(x))), dense @ x)
    equal(library.get(op(library.put(x))), dense @ x)
    equal(library.get(op.T @ library.put(x[:30])), dense.T @ x[:30])
    for order in "CF":
        X = np.array(numbers(rng, (50, 4), "float64"), order=order)
        Y = op @ library.put(X)
        equal(library.get(Y), dense @ X)
        assert library.is_fortran(Y) == (order == "F")
        equal(library.get(op.rmatmat(library.put(X[:30].copy(order)))), dense.T @ X[:30])


def test_a_library_without_new_arrays_needs_out(rng):
    op = spm.operator(matrix(rng, (4, 4)), device="emulated")
    with pytest.raises(TypeError, match="out: Interface does not say how to make a new array"):
        op @ Interface(np.ones(4))


def test_operands_are_checked(rng, fake):
    A = matrix(rng, (6, 5))
    op = spm.operator(A, device="emulated")
    put, zeros = fake.put, lambda *shape: np.zeros(shape)

    def fails(kind, text, x, out, **options):
        before = out.array.copy()
        with pytest.raises(kind, match=text):
            op.apply(x, out, **options)
        np.testing.assert_array_equal(out.array, before)

    y, x = put(zeros(6)), put(np.ones(5))
    fails(ValueError, r"x: expected shape \(5,\) or \(5, k\), found \(6,\)", put(zeros(6)), y)
    fails(ValueError, r"x: .* found \(\)", put(np.array(1.0)), y)
    fails(ValueError, r"x: .* found \(5, 1, \.\.\.\) of 3 dimensions", put(zeros(5, 1, 1)), y)
    fails(ValueError, r"out: expected shape \(6,\), found \(5,\)", x, put(zeros(5)))
    fails(ValueError, r"out: expected shape \(6,\), found \(6, 1\)", x, put(zeros(6, 1)))
    fails(ValueError, r"out: expected shape \(6, 2\), found \(6, 3\)", put(zeros(5, 2)), put(zeros(6, 3)))
    fails(TypeError, "x: expected float64, the type of the operator, found float32",
          put(np.ones(5, "float32")), y)
    fails(TypeError, "out: expected float64", x, put(np.zeros(6, "float32")))
    fails(TypeError, "x: expected float32, float64, complex64 or complex128, found", put(np.ones(5, "int64")), y)
    fails(TypeError, "x: expected float64, .* found complex128", put(np.ones(5, "complex128")), y)
    fails(TypeError, "alpha: expected a real number", x, y, alpha=1j)
    fails(TypeError, "stream: expected a stream", x, y, stream="default")
    def strided(*arguments):
        return type(x)(as_strided(*arguments))

    fails(ValueError, "x has elements in a place .* pass a contiguous copy", type(x)(np.ones(5)[::-1]), y)
    fails(ValueError, "x has elements in a place", strided(np.ones(1), (5,), (0,)), y)
    fails(ValueError, "x has elements in a place", strided(np.ones(9), (5, 2), (8, 0)), put(zeros(6, 2)))
    fails(ValueError, "out has elements in a place", x, type(x)(np.zeros(6)[::-1]))
    fails(ValueError, "out: some of its elements are at one place", put(zeros(5, 2)),
          strided(np.zeros(9), (6, 2), (8, 8)))
    bytes = np.zeros(64, "uint8")
    fails(ValueError, "is no multiple of 8; use a copy", type(x)(bytes[4:44].view("float64")), y)
    locked = np.zeros(6)
    locked.flags.writeable = False
    # NumPy itself refuses to hand over what is read-only to those who do not ask.
    fails(ValueError, "out: the array is read-only", x, type(x)(locked))
    with pytest.raises(TypeError, match="out: expected an array in device memory"):
        op.apply(x, [0.0] * 6)
    with pytest.raises(ValueError, match="beta: there is no out to add to"):
        op.apply(x, beta=1)
    with pytest.raises(TypeError, match="out: expected a NumPy array"):
        op.apply(np.ones(5), y)
    with pytest.raises(TypeError, match="stream: x is in host memory"):
        op.apply(np.ones(5), stream=1)


# From a large array to a part, and the shape of a large array that has a part of this shape.
PARTS = {
    1: [(lambda a: a, lambda n: n), (lambda a: a[1:], lambda n: n + 1), (lambda a: a[1:-1:3], lambda n: 3 * n + 1),
        (lambda a: a[:, 1], lambda n: (n, 3))],
    2: [(lambda a: a, lambda n, k: (n, k)), (lambda a: a[1:], lambda n, k: (n + 1, k)),
        (lambda a: a[:, 1:-1], lambda n, k: (n, k + 2)), (lambda a: a[:, ::2], lambda n, k: (n, 2 * k)),
        (lambda a: a[1::2, ::2], lambda n, k: (2 * n, 2 * k)), (lambda a: a.T, lambda n, k: (k, n)),
        (lambda a: a[:, 1:].T, lambda n, k: (k, n + 1)), (lambda a: a[1:, ::3].T, lambda n, k: (k + 1, 3 * n))],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [None, 2, 3, 8])
def test_operands_with_gaps(rng, library, dtype, k):
    A = matrix(rng, (30, 20), dtype)
    op, dense = spm.operator(A, device=library.device), A.toarray()
    columns = () if k is None else (k,)

    def placed(part, shape, contents):
        """A part of a large array with these contents, and the function that reads all of that."""
        large = np.full(shape(*contents.shape), 7, dtype)
        part(large)[...] = contents
        if library.device == "emulated":
            kind = {"interface": Interface, "dlpack": Tensor, "old dlpack": OldTensor}[library.name]
            return kind(part(large)), lambda: large
        large = library.put(large)
        return part(large), lambda: library.get(large)

    def check(form, dense, of_x, of_out, beta):
        x = numbers(rng, dense.shape[1:] + columns, dtype)
        y = numbers(rng, dense.shape[:1] + columns, dtype)
        expected = np.full(of_out[1](*y.shape), 7, dtype)
        of_out[0](expected)[...] = 2 * (dense @ x) + beta * y
        x, _ = placed(*of_x, x)
        out, all_of_out = placed(*of_out, y)
        assert form.apply(x, out, alpha=2, beta=beta) is out
        equal(all_of_out(), expected)

    parts = PARTS[1 + len(columns)]
    for of_x in parts:
        for of_out in parts:
            check(op, dense, of_x, of_out, -1)
        check(op, dense, of_x, parts[-1], 0)
        check(op.T, dense.T, of_x, parts[-2], -1)
        check(op.H, dense.conj().T, parts[-2], of_x, 0)


@pytest.mark.parametrize("name", ["dlpack", "cupy", "torch"])
def test_new_results_for_operands_with_gaps(rng, name):
    library = Library(name)
    A = matrix(rng, (30, 20))
    op, dense = spm.operator(A, device=library.device), A.toarray()
    for k in (1, 4):
        large = numbers(rng, (20, k + 3), "float64")
        for order in "CF":
            whole = np.array(large, order=order)
            X = Tensor(whole[:, 2:-1]) if name == "dlpack" else library.put(whole)[:, 2:-1]
            Y = op @ X
            equal(library.get(Y), dense @ large[:, 2:-1])
            assert k == 1 or library.is_fortran(Y) == (order == "F")
    x = Tensor(large[:, 1]) if name == "dlpack" else library.put(large)[:, 1]
    equal(library.get(op @ x), dense @ large[:, 1])


def test_an_x_where_the_result_goes_is_a_copy_first(rng, fake):
    A = matrix(rng, (20, 20))
    op, dense, kind = spm.operator(A, device="emulated"), A.toarray(), type(fake.put(np.ones(1)))
    for from_, to in [(slice(0, 20), slice(0, 20)), (slice(0, 20), slice(4, 24)), (slice(5, 25), slice(0, 20))]:
        for beta in (0, 3):
            buffer = numbers(rng, 25, "float64")
            expected = buffer.copy()
            expected[to] = dense @ buffer[from_] + beta * buffer[to]
            op.apply(kind(buffer[from_]), kind(buffer[to]), beta=beta)
            equal(buffer, expected)
    square = numbers(rng, (20, 8), "float64")
    expected = square.copy()
    expected[:, 4:] = dense @ square[:, :4]
    op.apply(kind(square[:, :4]), kind(square[:, 4:]))
    equal(square, expected)


def test_the_fields_of_the_array_interface(rng):
    A = matrix(rng, (6, 6))
    op, x = spm.operator(A, device="emulated"), np.arange(6.0)
    for stream in [None, 1, 2, 1 << 40]:
        out = Interface(np.zeros(6), stream=stream)
        op.apply(Interface(x, stream=1), out)
        equal(out.array, A @ x)
        out = Interface(np.zeros(6))
        op.apply(Interface(x, stream=stream), out, stream=7)
        equal(out.array, A @ x)
    out = Interface(np.zeros(6))
    with pytest.raises(ValueError, match="forbids the stream 0"):
        op.apply(Interface(x, stream=0), out)
    with pytest.raises(TypeError, match="x: masks"):
        op.apply(Interface(x, mask=Interface(x)), out)
    with pytest.raises(TypeError, match="x: expected float32, float64"):
        op.apply(Interface(x, typestr=">f8"), out)


@pytest.mark.parametrize("attribute", ["ptr", "cuda_stream", "__cuda_stream__"])
def test_streams_of_any_library(rng, attribute):
    handle = (lambda self: (0, 5)) if attribute == "__cuda_stream__" else 5
    stream = type("Stream", (), {attribute: handle})()
    op, out = spm.operator(scipy.sparse.eye_array(4, format="csr"), device="emulated"), np.zeros(4)
    op.apply(Interface(np.arange(4.0)), Interface(out), stream=stream)
    equal(out, np.arange(4.0))
    with pytest.raises((OverflowError, TypeError)):
        op.apply(Interface(np.arange(4.0)), Interface(out), stream=-1)


def test_memory_elsewhere_is_refused(rng):
    class OnGpu(Interface):
        def __dlpack_device__(self):
            return (2, 1)

    class Nowhere:
        __cuda_array_interface__ = Interface(np.ones(4)).__cuda_array_interface__

    A = scipy.sparse.eye_array(4, format="csr")
    op, out = spm.operator(A, device="emulated"), Interface(np.zeros(4))
    for x in [OnGpu(np.ones(4)), Nowhere()]:
        with pytest.raises(ValueError, match="x is elsewhere, and the operator on an emulated GPU"):
            op.apply(x, out)
        with pytest.raises(TypeError, match="x is in device memory, and the operator on CPU cores"):
            spm.operator(A) @ x
    with pytest.raises(TypeError, match="device memory"):
        spm.operator(A.astype("complex128")).apply(OnGpu(np.ones(4)))


def test_numpy_arrays_and_solvers_on_a_gpu(rng):
    A = matrix(rng, (30, 30))
    A = scipy.sparse.csr_array(A @ A.T + 200 * scipy.sparse.eye_array(30))
    A.sort_indices()
    op, b = spm.operator(A, device="emulated"), numbers(rng, 30, "float64")
    assert op.device == op.T.device == "emulated" and op.recipe.startswith("gpu ")
    equal(op @ b, A @ b)
    equal(op @ b[:, None].repeat(3, 1), (A @ b)[:, None].repeat(3, 1))
    equal(op.T @ np.asfortranarray(b[:, None].repeat(3, 1)), (A.T @ b)[:, None].repeat(3, 1))
    equal(op @ b.tolist(), A @ b)
    x, info = cg(op, b, rtol=1e-10)
    assert info == 0 and np.allclose(A @ x, b)
    op.set_values(A.data * 2)
    out = Interface(np.zeros(30))
    op.apply(Interface(b), out)
    equal(out.array, 2 * (A @ b))
    op = pickle.loads(pickle.dumps(op))
    assert op.device == "emulated"
    equal(op @ b, 2 * (A @ b))


def test_devices(rng):
    A = matrix(rng, (4, 4))
    for name in ["", "GPU", "gpu:", "gpu:-1", "gpu:x", "cuda"]:
        with pytest.raises(ValueError, match="device: expected"):
            spm.operator(A, device=name)
    with pytest.raises(TypeError, match="device: expected a string, found int"):
        spm.operator(A, device=0)
    assert spm.operator(A).device == spm.operator(A, device="cpu").device == "cpu"
    op = spm.operator(A, device="auto")
    x = numbers(rng, 4, "float64")
    equal(op @ x, A @ x)
    try:
        assert spm.operator(A, device="gpu").device == "gpu:0" == op.device
    except RuntimeError as error:
        assert "no NVIDIA driver" in str(error) or "no device" in str(error)
        assert op.device == "cpu" and "GPU" in op.describe() + str(error)


def test_threads_share_an_operator_on_a_gpu(rng, library):
    from concurrent.futures import ThreadPoolExecutor
    A = matrix(rng, (200, 200))
    op, xs = spm.operator(A, device=library.device), numbers(rng, (16, 200), "float64")

    def product(x):
        out = library.put(np.zeros(200))
        op.apply(library.put(x), out)
        return library.get(out)

    with ThreadPoolExecutor(4) as pool:
        for x, y in zip(xs, pool.map(product, xs)):
            equal(y, A @ x)


def in_a_program(code):
    """Runs the lines in a process of its own."""
    here = Path(__file__).parent
    answer = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=here, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


def test_tensors_by_the_functions_of_dlpack():
    in_a_program("""
        import numpy as np, pytest, spm, torch_stand_in
        from conftest import matrix, numbers
        from torch_stand_in import CUDA, Tensor
        torch_stand_in.install()
        rng = np.random.default_rng(1)
        for dtype in ["float32", "float64", "complex64", "complex128"]:
            A = matrix(rng, (30, 50), dtype)
            op = spm.operator(A, device="emulated")
            for columns, order in [((), "C"), ((3,), "C"), ((3,), "F")]:
                x = np.array(numbers(rng, (50,) + columns, dtype), order=order)
                y = op @ Tensor(x)
                assert type(y) is Tensor and y.dtype == dtype
                assert np.array_equal(y.array, A @ x)
                assert y.array.flags.f_contiguous == (order == "F" or not columns)
                out = np.array(numbers(rng, (30,) + columns, dtype), order=order)
                expected = 2 * (A @ x) - out
                assert op.apply(Tensor(x), Tensor(out), alpha=2, beta=-1).array is out
                assert np.array_equal(out, expected)
            # With gaps.
            x = numbers(rng, (50, 7), dtype)
            assert np.array_equal((op @ Tensor(x[:, 3])).array, A @ x[:, 3])
        assert Tensor.reads == 4 * (3 + 6 + 1)
        op = spm.operator(matrix(rng, (4, 4)), device="emulated")
        x, complex_x = np.ones(4), np.ones(4, complex)
        for refused, text in [(Tensor(x, device=(CUDA, 3)), "x is on GPU 3, and the operator on an emulated GPU"),
                              (Tensor(x, requires_grad=True), "requires a gradient"),
                              (Tensor(x, negated=True), "negated"),
                              (Tensor(complex_x, conjugated=True), "conjugated"),
                              (Tensor(complex_x), "expected float64, the type of the operator, found complex128"),
                              (Tensor(np.ones(4, int)), "expected float32, float64, complex64 or complex128, found int"),
                              (Tensor(np.ones(5)), r"expected shape \\(4,\\)")]:
            with pytest.raises((TypeError, ValueError), match=text):
                op @ refused
        # What the functions do not describe is read by its attributes, which say that it is not on a GPU.
        with pytest.raises(ValueError, match="expected shape"):
            op @ Tensor(np.array(1.0))
    """)


def test_functions_of_another_major_version_are_not_called():
    in_a_program("""
        import numpy as np, spm, torch_stand_in
        from conftest import matrix
        from torch_stand_in import Tensor
        torch_stand_in.install(major=2)
        A = matrix(np.random.default_rng(1), (4, 4))
        y = spm.operator(A, device="emulated") @ Tensor(np.ones(4))
        assert np.array_equal(y, A @ np.ones(4)) and Tensor.reads == 0
    """)


# CuPy and PyTorch, on a GPU.


@pytest.fixture(params=["cupy", "torch"])
def real(request):
    return Library(request.param)


def test_matrices_of_the_library(rng, real):
    A = matrix(rng, (30, 50))
    if real.name == "cupy":
        sparse = pytest.importorskip("cupyx.scipy.sparse")
        matrices = [sparse.csr_matrix(scipy.sparse.csr_matrix(A)), sparse.csc_matrix(scipy.sparse.csc_matrix(A)),
                    sparse.coo_matrix(scipy.sparse.coo_matrix(A))]
    else:
        torch = real.module
        csr = torch.sparse_csr_tensor(*map(torch.from_numpy, (A.indptr, A.indices, A.data)), size=A.shape)
        matrices = [csr.cuda(), csr.to_sparse_csc().cuda(), csr.to_sparse_coo().cuda()]
    x = numbers(rng, 50, "float64")
    for B in matrices:
        op = spm.operator(B)
        assert op.device == "gpu:0"
        equal(real.get(op @ real.put(x)), A @ x)
        assert spm.operator(B, device="cpu").device == "cpu"
    op = spm.operator(matrices[0])
    op.set_values(real.put(3 * A.data))
    equal(real.get(op @ real.put(x)), 3 * (A @ x))
    op.set_values(matrices[0])
    equal(real.get(op @ real.put(x)), A @ x)


def busy(real, stream_of):
    """Keeps the current stream working for milliseconds."""
    big = real.put(np.ones((4000, 4000)))
    for _ in range(4):
        big = big @ big * 1e-4
    return big


def test_the_current_stream_orders_the_product(rng, real):
    """The operand is made behind milliseconds of work in a stream that no other waits for."""
    A = matrix(rng, (3000, 3000), density=0.01)
    op, x = spm.operator(A, device="gpu"), numbers(rng, 3000, "float64")
    op @ real.put(x), op @ real.put(x[:, None].repeat(4, 1))
    module, y = real.module, real.put(x)
    zero, expected = real.put(np.zeros(3000)), A @ x
    if real.name == "cupy":
        streams = [module.cuda.Stream(non_blocking=True) for _ in range(3)]
        use = lambda stream: stream
    else:
        streams = [module.cuda.Stream() for _ in range(3)]
        use = module.cuda.stream
    busy(real, None)
    results = []
    for stream in streams * 3:
        stream.synchronize()
        with use(stream):
            z = zero * 1
            w = busy(real, stream)
            z += y + 0 * w[0, 0]
            results.append(op @ z)
            out = zero + 1
            op.apply(z, out, alpha=2, beta=1)
            results.append((out - 1) / 2)
            results.append((op @ module.stack([z] * 4, -1))[:, 3])
    # A stream that is named, with the current one being another.
    named = streams[0]
    with use(named):
        z = zero + y + 0 * busy(real, named)[0, 0]
    results.append(op.apply(z, stream=named) * 1)
    handle = named.ptr if real.name == "cupy" else named.cuda_stream
    results.append(op.apply(z, stream=handle) * 1)
    for stream in streams:
        stream.synchronize()
    for result in results:
        equal(real.get(result * 1), expected)


def test_no_call_waits_or_copies(rng, real):
    """Products are put behind a stream's work, which is not done when the calls return."""
    op = spm.operator(matrix(rng, (100, 100)), device="gpu")
    x, out = real.put(np.ones(100)), real.put(np.zeros(100))
    op.apply(x, out)
    module = real.module
    if real.name == "cupy":
        stream, event = module.cuda.Stream(non_blocking=True), module.cuda.Event()
        with stream:
            busy(real, stream)
            busy(real, stream)
            op.apply(x, out)
            event.record()
            assert not event.done
    else:
        stream, event = module.cuda.Stream(), module.cuda.Event()
        with module.cuda.stream(stream):
            busy(real, stream)
            busy(real, stream)
            op.apply(x, out)
            event.record()
            assert not event.query()
    stream.synchronize()


def test_what_pytorch_says_of_its_tensors(rng):
    torch = Library("torch").module
    op = spm.operator(matrix(rng, (5, 5)), device="gpu")
    x = torch.ones(5, dtype=torch.float64, device="cuda", requires_grad=True)
    with pytest.raises(ValueError, match="requires a gradient.*detach"):
        op @ x
    with pytest.raises(ValueError, match="negated"):
        op @ torch._neg_view(torch.ones(5, dtype=torch.float64, device="cuda"))
    complex_op = spm.operator(matrix(rng, (5, 5), "complex128"), device="gpu")
    with pytest.raises(ValueError, match="conjugated"):
        complex_op @ torch.ones(5, dtype=torch.complex128, device="cuda").conj()
    equal((op @ x.detach()).cpu().numpy(), op @ np.ones(5))
    equal(op @ torch.ones(5, dtype=torch.float64), op @ np.ones(5))


def test_pytorch_without_the_functions_of_dlpack():
    """As before PyTorch 2.10."""
    Library("torch")
    in_a_program("""
        import numpy as np, scipy.sparse, torch
        torch.Tensor.__dlpack_c_exchange_api__ = None
        import spm
        A = scipy.sparse.random_array((40, 30), density=0.2, rng=1, format="csr")
        op = spm.operator(A, device="gpu")
        for x in [np.arange(30.0), np.arange(90.0).reshape(30, 3), np.arange(90.0).reshape(3, 30).T]:
            y = op @ torch.from_numpy(x).cuda()
            assert isinstance(y, torch.Tensor) and np.allclose(y.cpu().numpy(), A @ x, rtol=1e-14)
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                assert np.allclose((op @ torch.from_numpy(x).cuda()).cpu().numpy(), A @ x, rtol=1e-14)
        assert np.allclose(op @ torch.ones(30, dtype=torch.float64), A @ np.ones(30))
    """)


def test_one_library_for_x_and_another_for_out(rng):
    cupy, torch = Library("cupy"), Library("torch")
    A = matrix(rng, (50, 50))
    op, x = spm.operator(A, device="gpu"), numbers(rng, 50, "float64")
    for one, other in [(cupy, torch), (torch, cupy)]:
        out = other.put(np.zeros(50))
        op.apply(one.put(x), out)
        equal(other.get(out), A @ x)


def test_solvers_of_cupy(rng):
    cupy = Library("cupy").module
    from cupyx.scipy.sparse.linalg import cg as cg_of_cupy
    A = matrix(rng, (30, 30))
    A = scipy.sparse.csr_array(A @ A.T + 200 * scipy.sparse.eye_array(30))
    b = numbers(rng, 30, "float64")
    x, info = cg_of_cupy(spm.operator(A, device="gpu"), cupy.asarray(b))
    # To its own tolerance, whose name depends on CuPy's version.
    assert info == 0 and np.allclose(A @ x.get(), b, atol=1e-3)


def test_protocols_of_others_on_a_gpu(rng):
    """Stand-ins that have a protocol alone."""
    library = Library("cupy")
    A = matrix(rng, (50, 50))
    op, x = spm.operator(A, device="gpu"), numbers(rng, 50, "float64")

    class OnlyInterface:
        def __init__(self, array):
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    class OnlyDlpack:
        def __init__(self, array):
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    for kind in [OnlyInterface, OnlyDlpack]:
        on_gpu, out = library.put(x), library.put(np.zeros(50))
        op.apply(kind(on_gpu), kind(out))
        equal(library.get(out), A @ x)
    host = Interface(np.zeros(50))
    with pytest.raises(ValueError, match="x is elsewhere, and the operator on GPU 0"):
        op.apply(host, OnlyInterface(out))


def test_contexts_stay(rng, real):
    """A second library's current device is what it was, also when operators are freed."""
    op = spm.operator(matrix(rng, (50, 50)), device="gpu")
    x = real.put(np.ones(50))
    op @ x
    before = real.module.cuda.current_device() if real.name == "torch" else real.module.cuda.Device().id
    del op
    after = real.module.cuda.current_device() if real.name == "torch" else real.module.cuda.Device().id
    assert before == after
    assert sys.getrefcount(x) < 4
