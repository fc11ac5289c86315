"""Times of all kernels for one matrix."""

import html
import time

import numpy as np

from spm import _native
from spm._arrays import element_type
from spm._operator import Operator


class Bench:
    """Times of the kernels for y = A x with one matrix; `bench` makes it.

    Prints as a table. A notebook shows it with bars.

    Attributes
    ----------
    rows : list of dict
        One for each kernel, the fastest first, with these keys: ``recipe``, the argument of
        `spm.operator` that chooses the kernel; ``seconds`` of a product, None if the kernel does not apply
        to the matrix; ``planning_seconds``; ``memory_bytes`` of the operator; ``reason`` why it does not
        apply, or "". The row of SciPy's own product has the recipe "SciPy".
    """

    def __init__(self, title, rows):
        self.title = title
        self.rows = sorted(rows, key=lambda row: (row["seconds"] is None, row["seconds"] or 0))

    @property
    def best(self):
        """The recipe of the fastest kernel."""
        return next(row["recipe"] for row in self.rows if row["recipe"] != "SciPy")

    def _lines(self):
        scipy = next((row["seconds"] for row in self.rows if row["recipe"] == "SciPy"), None)
        for row in self.rows:
            seconds = row["seconds"]
            if seconds is None:
                yield row, None, None, row["reason"]
            else:
                yield row, seconds, scipy / seconds if scipy else None, ""

    def __str__(self):
        width = max(len(row["recipe"]) for row in self.rows)
        lines = [self.title,
                 f"{'recipe':{width}} {'product':>12} {'SciPy/this':>10} {'planning':>12} {'memory':>12}"]
        for row, seconds, ratio, reason in self._lines():
            if seconds is None:
                lines.append(f"{row['recipe']:{width}} {reason}")
                continue
            planning = f"{row['planning_seconds'] * 1e3:9.2f} ms"
            lines.append(f"{row['recipe']:{width}} {seconds * 1e6:9.1f} us {ratio:10.2f} {planning:>12} "
                         f"{row['memory_bytes'] / 1e6:9.1f} MB")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        slowest = max(row["seconds"] for row in self.rows if row["seconds"] is not None)
        cells = []
        for row, seconds, ratio, reason in self._lines():
            name = f"<td style='text-align:left'><code>{html.escape(row['recipe'])}</code></td>"
            if seconds is None:
                cells.append(f"<tr>{name}<td colspan='5' style='text-align:left'>"
                             f"{html.escape(reason)}</td></tr>")
                continue
            color = "#999" if row["recipe"] == "SciPy" else "#3a76a8"
            bar = (f"<div style='background:{color};height:0.8em;"
                   f"width:{max(1.0, 200 * seconds / slowest):.0f}px'></div>")
            cells.append(f"<tr>{name}<td>{seconds * 1e6:.1f}</td><td>{bar}</td><td>{ratio:.2f}</td>"
                         f"<td>{row['planning_seconds'] * 1e3:.2f}</td>"
                         f"<td>{row['memory_bytes'] / 1e6:.1f}</td></tr>")
        head = "".join(f"<th>{title}</th>" for title in (
            "recipe", "product, us", "", "SciPy / this", "planning, ms", "memory, MB"))
        return (f"<p>{html.escape(self.title)}</p><table><thead><tr>{head}</tr></thead>"
                f"<tbody>{''.join(cells)}</tbody></table>")


def bench(A, *, kernels=None, threads=None, progress=None):
    """Time all kernels for y = A x with a matrix.

    Parameters
    ----------
    A : SciPy sparse matrix or array
    kernels : list of str, optional
        Only the kernels whose names contain one of these texts.
    threads : int, optional
        Number of threads; all cores by default.
    progress : callable, optional
        Called as ``progress(done, total, recipe)`` before each kernel.

    Returns
    -------
    Bench
        A table, the fastest first. Its `best` is a recipe for `spm.operator`.

    Examples
    --------
    >>> import scipy.sparse, spm
    >>> A = scipy.sparse.eye_array(1000, format="csr")
    >>> table = spm.bench(A, kernels=["csr-nnz-balanced", "csr-serial"])
    >>> op = spm.operator(A, recipe=table.best)
    """
    dtype = element_type(A.dtype)
    first = Operator(A, threads=threads, expected_products=1, copy=False)
    A = first.tocsr()
    count = threads or _native.cores()
    labels = [label for label in _native.kernels(dtype.name) if label != "auto"
              and (kernels is None or any(text in label for text in kernels))]
    if not labels:
        raise ValueError(f"kernels: none of {dtype} contains one of {kernels}")
    plural = "" if count == 1 else "s"
    rows = [{"recipe": "SciPy", "seconds": _time(lambda x=np.ones(A.shape[1], dtype): A @ x),
             "planning_seconds": 0.0, "memory_bytes": _bytes(A), "reason": ""}]
    for done, label in enumerate(labels):
        # A serial kernel runs on the calling thread, whatever the recipe says.
        recipe = f"cpu {label} on {count} thread{plural}"
        if progress is not None:
            progress(done, len(labels), recipe)
        row = {"recipe": recipe, "seconds": None, "planning_seconds": None, "memory_bytes": None,
               "reason": ""}
        try:
            start = time.perf_counter()
            op = Operator(A, recipe=recipe)
            row["planning_seconds"] = time.perf_counter() - start
            row["seconds"], row["memory_bytes"] = op.measure(), op.memory_bytes
            row["recipe"] = op.recipe
            if row["seconds"] is None:
                row["reason"] = "the budget does not allow the vectors"
        except (ValueError, MemoryError) as error:
            row["reason"] = str(error)
        rows.append(row)
    return Bench(f"{A.shape[0]} x {A.shape[1]}, {A.nnz} entries, {dtype}, {count} thread{plural}", rows)


def _time(run):
    """Seconds of the fastest of a few calls."""
    least, begin, calls = float("inf"), time.perf_counter(), 0
    while calls < 3 or (time.perf_counter() - begin < 2e-3 and calls < 100):
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
        calls += 1
    return least


def _bytes(A):
    return A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
