"""The time per scale of a large path against the N^2 d operations of one Hessian, and its memory.

The rate of one core is measured in the same run as the best of a square dgemm; the bound is
N^2 d floating-point operations (what the symmetric product X diag(h) X^T takes) at that rate. A
second process walks the same path, keeps a few numbers per scale, and reports its peak memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np
from clock import ONE_THREAD, arguments, best_of, noisy_sparse, ratio, seconds, table
from scipy.linalg import blas

from penchant.solvers import interpolate_path


def walk(samples: int, dimension: int, count: int) -> list[tuple[float, float]]:
    """(residual, KKT residual) at each scale; the endpoints themselves are let go."""
    X, y = noisy_sparse(samples, dimension)
    log_alphas = np.log(10) * np.linspace(2, -10, count)
    return interpolate_path(X, y, 2, log_alphas=log_alphas, measure=lambda s: (s.residual, s.kkt))


def peak_memory(samples: int, dimension: int, count: int) -> float:
    """Peak resident memory in MB of a process of its own that walks the path."""
    run = [sys.executable, __file__, "--walk", str(samples), str(dimension), str(count)]
    return float(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


def rate(size: int) -> float:
    """Floating-point operations per second of one core in a dgemm of `size`."""
    matrix = np.asfortranarray(np.random.default_rng(0).normal(size=(size, size)))
    fastest, _ = best_of(5, lambda: blas.dgemm(1.0, matrix, matrix))
    return 2 * size**3 / fastest


def symmetric_product(samples: int, dimension: int) -> float:
    """Seconds of one dsyrk of the shape of the Hessian."""
    matrix = np.asfortranarray(np.random.default_rng(0).normal(size=(dimension, samples)))
    return best_of(5, lambda: blas.dsyrk(1.0, matrix, trans=1))[0]


def main() -> None:
    quick = arguments(__doc__ or "").quick
    size = (50, 500, 20) if quick else (500, 10_000, 100)
    samples, dimension, count = size
    square = 200 if quick else 1000
    flops = rate(square)
    product = symmetric_product(samples, dimension)
    ours, certificates = best_of(1 if quick else 2, lambda: walk(*size))
    flops = max(flops, rate(square))  # before and after: the faster makes the bound harder
    bound, each = samples**2 * dimension / flops, ours / count
    residual, kkt = np.max(certificates, axis=0)
    memory = peak_memory(*size)
    print(f"N={samples}, d={dimension}, depth 2, {count} alphas from 1e2 to 1e-10. {ONE_THREAD}")
    print(f"worst residual {residual:.1e}, worst KKT residual {kkt:.1e}\n")
    table(
        ["all scales", "per scale", "N^2 d bound", "one dsyrk", "one core", "peak memory"],
        [[seconds(ours), seconds(each), seconds(bound), seconds(product),
          f"{flops / 1e9:.1f} Gflop/s", f"{memory:.0f} MB"]],
    )  # fmt: skip
    ratio("time per scale / N^2 d bound", each / bound, "<= 5", judged=not quick)
    ratio("peak memory / 1 GB", memory / 1000, "<= 1", judged=not quick)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--walk"]:
        best_of(1, lambda: walk(*map(int, sys.argv[2:])))
        # kilobytes on Linux, bytes on macOS
        unit = 1e6 if sys.platform == "darwin" else 1e3
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
    else:
        main()
