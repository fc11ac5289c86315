"""Files, the transpose, the table of kernels, the notebook."""

import doctest
import importlib
import pathlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from conftest import DTYPES, matrix

import spm

equal = np.testing.assert_array_equal
ROOT = pathlib.Path(__file__).parent.parent


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ending", [".mtx", ".mtx.gz"])
def test_a_matrix_is_written_and_read(rng, tmp_path, dtype, ending):
    A = matrix(rng, (30, 20), dtype)
    A.data *= A.dtype.type(1 / 3)
    path = tmp_path / ("a" + ending)
    spm.write(path, A)
    B = spm.read(str(path))
    assert B.dtype == (np.complex128 if A.dtype.kind == "c" else np.float64)
    equal(spm.read(path, dtype).toarray(), A.toarray())
    if ending == ".mtx":
        equal(scipy.io.mmread(path).toarray().astype(dtype), A.toarray())


def test_a_read_matrix_is_an_ordinary_one(rng, tmp_path):
    A = matrix(rng, (30, 20))
    spm.write(tmp_path / "a.mtx", A.tocoo())
    B = spm.read(tmp_path / "a.mtx")
    assert isinstance(B, scipy.sparse.csr_array)
    assert B.indices.dtype == B.indptr.dtype == np.int32
    B.data *= 2
    B.eliminate_zeros()
    equal(B.toarray(), 2 * A.toarray())


def test_files_that_cannot_be_read(rng, tmp_path):
    with pytest.raises(FileNotFoundError, match="none.mtx"):
        spm.read(tmp_path / "none.mtx")
    with pytest.raises(OSError):
        spm.write(tmp_path / "none" / "a.mtx", matrix(rng, (3, 3)))
    broken = tmp_path / "broken.mtx"
    broken.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1.0\n")
    with pytest.raises(ValueError, match="broken.mtx:3: expected"):
        spm.read(broken)
    spm.write(tmp_path / "c.mtx", matrix(rng, (3, 3), "complex128", density=1.0))
    with pytest.raises(ValueError, match="complex"):
        spm.read(tmp_path / "c.mtx", "float64")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_transpose(rng, kind, dtype):
    for shape in [(0, 0), (0, 4), (4, 0), (1, 9), (60, 41)]:
        A = matrix(rng, shape, dtype, kind=kind)
        T = spm.transpose(A)
        assert T.format == "csr" and T.dtype == A.dtype and T.shape == shape[::-1]
        assert (np.diff(T.indices)[np.diff(np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))) == 0]
                > 0).all()
        equal(T.toarray(), A.toarray().T)


def test_the_table_of_kernels(rng):
    seen = []
    table = spm.bench(matrix(rng, (200, 200)), kernels=["csr-", "ell-rows"],
                      progress=lambda done, total, recipe: seen.append((done, total, recipe)))
    assert len(table.rows) == len(seen) + 1
    assert [done for done, _, _ in seen] == list(range(seen[0][1]))
    assert table.best in str(table)
    assert table.best in table._repr_html_()
    assert "SciPy" in str(table)
    op = spm.operator(matrix(rng, (200, 200)), recipe=table.best)
    assert op.recipe == table.best
    with pytest.raises(ValueError, match="none"):
        spm.bench(matrix(rng, (3, 3)), kernels=["nonsense"])


@pytest.mark.parametrize("module", ["spm", "spm._operator", "spm._files", "spm._bench"])
def test_doctests(module):
    failed, run = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert run > 0 and failed == 0


def test_the_notebook(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    preprocessors = pytest.importorskip("nbconvert.preprocessors")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(ROOT / "examples" / "first_steps.ipynb", as_version=4)
    preprocessors.ExecutePreprocessor(timeout=300, kernel_name="python3").preprocess(
        notebook, {"metadata": {"path": str(tmp_path)}})
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [output.data for output in outputs if output.output_type == "execute_result"]
    assert sum(data.get("text/plain") == "True" for data in shown) == 3
    assert any("csr-" in data.get("text/html", "") for data in shown)
