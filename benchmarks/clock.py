"""What every benchmark shares: one BLAS thread, the best of several runs, a table, a ratio."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

ONE_THREAD = (
    "BLAS runs on 1 thread on both sides, deliberately; times are the best of several runs."
)


def arguments(description: str) -> argparse.Namespace:
    """The command line: `--quick` shrinks the instances, to see that the script runs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small instances, only a smoke test")
    return parser.parse_args()


def best_of(repeats: int, run: Callable[[], Any]) -> tuple[float, Any]:
    """(seconds of the fastest of `repeats` calls, the last result), with one BLAS thread."""
    fastest, result = float("inf"), None
    with threadpool_limits(limits=1):
        for _ in range(repeats):
            start = time.perf_counter()
            result = run()
            fastest = min(fastest, time.perf_counter() - start)
    return fastest, result


def noisy_sparse(samples: int, dimension: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(X, y) with x ~ N(0, I), a truth of 5 entries 1/sqrt(5), noise variance 0.01 (W-F1)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, dimension))
    truth = np.zeros(dimension)
    truth[:5] = 1 / np.sqrt(5)
    return X, X @ truth + 0.1 * rng.normal(size=samples)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints an aligned Markdown table."""
    lines = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        print("| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |")


def ratio(what: str, value: float, target: str, *, judged: bool = True) -> None:
    """Prints a measured ratio beside its target (">= 5" or "<= 5") and whether it is met."""
    sign, limit = target.split()
    met = value >= float(limit) if sign == ">=" else value <= float(limit)
    verdict = "not judged" if not judged else "met" if met else "MISSED"
    print(f"RATIO {what}: {value:.4g} (target {target}: {verdict})")


def seconds(value: float) -> str:
    """A time with a unit that suits its size."""
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"
