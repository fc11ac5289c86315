"""SciPy's own tests of products with dense operands, through `spm.operator`."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

# Tests of `@`, `dot` and what is computed by products.
CASES = ("matvec or matvecs or rmatvec or matmul or matmat_dense or mult or dot or small_multiplication or "
         "mul_custom_type or sum or mean or onenorm")


def test_scipys_own_tests_pass_through_operators():
    pytest.importorskip("scipy.sparse.tests.test_base")
    here = pathlib.Path(__file__).parent
    path = os.pathsep.join([str(here), *sys.path])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "through_operator", "-p", "no:cacheprovider",
               "--import-mode=importlib", "-W", "ignore", "-k", CASES, "--pyargs",
               "scipy.sparse.tests.test_base", "scipy.sparse.tests.test_coo",
               "scipy.sparse.linalg.tests.test_onenormest", "--durations=8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=here,
                          env=dict(os.environ, PYTHONPATH=path))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    passed = int(re.search(r"(\d+) passed", done.stdout)[1])
    counts = re.search(r"'products': (\d+), 'others': (\d+)", done.stdout)
    products, others = int(counts[1]), int(counts[2])
    print(f"{passed} tests, {products} products, {others} others")
    assert passed >= 300 and products >= 1000
