"""Sparse X with a million columns: `interpolate` against 15 s and 1 GB.

As an array X would have 8 GB. Each regularizer runs in a process of its own, whose peak memory is
reported with the time, the certified error and the largest distance of X^T dual from the gradient
at beta, which the benchmark computes itself.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np
import scipy.sparse
from clock import ONE_THREAD, arguments, ratio, seconds, table

from penchant import L1, L2, Q, interpolate

REGULARIZERS = {"Q(2, alpha=1e-3)": Q(2, alpha=1e-3), "Q(3, alpha=0.1)": Q(3, alpha=0.1)}
REGULARIZERS |= {"L1()": L1(), "L2()": L2()}


def data(samples: int, dimension: int, entries: int) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Normal entries at random places, and normal labels."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, samples, entries), rng.integers(0, dimension, entries)
    X = scipy.sparse.coo_array((rng.normal(size=entries), places), shape=(samples, dimension))
    return X.tocsr(), rng.normal(size=samples)


def measured(name: str, samples: int, dimension: int, entries: int) -> dict[str, float]:
    """Seconds, processor seconds, peak MB, the error, and the distance from the gradient."""
    X, y = data(samples, dimension, entries)
    interpolate(X[:9], y[:9], L2())  # imports
    begin, processor = time.perf_counter(), time.process_time()
    solution = interpolate(X, y, REGULARIZERS[name])
    spent = time.perf_counter() - begin, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    s, slopes = X.T @ solution.dual, REGULARIZERS[name].dual_of(solution.beta)
    apart = np.abs(s - slopes)
    if name == "L1()":  # whose slope at zero is anything up to 1
        apart = np.where(solution.beta == 0, np.maximum(np.abs(s) - 1, 0), apart)
    off = float(apart.max() / np.abs(slopes).max())
    return dict(
        zip(
            ("wall", "cpu", "peak", "error", "off"),
            (*spent, peak, solution.error, off),
            strict=True,
        )
    )


def main() -> None:
    size = (100, 20_000, 20_000) if arguments(__doc__ or "").quick else (1000, 10**6, 10**6)
    rows, worst, largest = [], 0.0, 0.0
    for name in REGULARIZERS:
        run = [sys.executable, __file__, "--one", name, *map(str, size)]
        result = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
        worst, largest = max(worst, result["cpu"]), max(largest, result["peak"])
        times = seconds(result["wall"]), seconds(result["cpu"])
        numbers = f"{result['peak']:.0f}", f"{result['error']:.1e}", f"{result['off']:.1e}"
        rows.append([name, *times, *numbers])
    print(f"N={size[0]}, d={size[1]}, {size[2]} entries; {ONE_THREAD}")
    heads = ["regularizer", "time", "processor", "peak MB", "error", "off the gradient"]
    table(heads, rows)
    ratio("processor seconds of the slowest over 15 s", worst / 15, "<= 1")
    ratio("peak memory over 1 GB", largest / 1024, "<= 1")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(sys.argv[2], *map(int, sys.argv[3:]))))
    else:
        main()
