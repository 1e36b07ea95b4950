"""The l1 endpoint against HiGHS, dual simplex or interior point, whichever is faster."""

from __future__ import annotations

import numpy as np
from clock import ONE_THREAD, arguments, best_of, noisy_sparse, ratio, seconds, table
from scipy.optimize import linprog

from penchant import L1, interpolate


def highs(X: np.ndarray, y: np.ndarray, method: str) -> np.ndarray:
    """argmin sum(p + m) under X (p - m) = y, p, m >= 0, as beta = p - m."""
    d = X.shape[1]
    found = linprog(np.ones(2 * d), A_eq=np.hstack([X, -X]), b_eq=y, method=method)
    return found.x[:d] - found.x[d:]


def residual(X: np.ndarray, y: np.ndarray, beta: np.ndarray) -> float:
    return float(np.abs(X @ beta - y).max() / np.abs(y).max())


def compare(seed: int, samples: int, dimension: int) -> tuple[float, list[object]]:
    """(how many times faster we are than the faster HiGHS, the row of the table)."""
    X, y = noisy_sparse(samples, dimension, seed)
    ours, solution = best_of(5, lambda: interpolate(X, y, L1()))
    simplex, vertex = best_of(2, lambda: highs(X, y, "highs-ds"))
    interior, other = best_of(2, lambda: highs(X, y, "highs-ipm"))
    theirs, beta = (simplex, vertex) if simplex < interior else (interior, other)
    gap = float(np.abs(solution.beta).sum() / np.abs(beta).sum() - 1)
    if abs(gap) > 1e-9:
        raise SystemExit(f"seed {seed}: the l1 norms differ by {gap:.1e}, nothing to compare")
    row = [seed, seconds(ours), seconds(simplex), seconds(interior), f"{theirs / ours:.1f}",
           f"{gap:+.0e}", f"{residual(X, y, solution.beta):.0e}",
           f"{residual(X, y, beta):.0e}"]  # fmt: skip
    return theirs / ours, row


def main() -> None:
    quick = arguments(__doc__ or "").quick
    samples, dimension, seeds = (20, 100, 2) if quick else (100, 1000, 5)
    results = [compare(seed, samples, dimension) for seed in range(seeds)]
    print(f"N={samples}, d={dimension}, noisy. {ONE_THREAD}\n")
    table(["seed", "ours", "highs-ds", "highs-ipm", "ratio", "l1 norm, ours/theirs - 1",
           "our residual", "their residual"], [row for _, row in results])  # fmt: skip
    ratio(
        "faster HiGHS / ours, smallest over the seeds",
        min(r for r, _ in results),
        ">= 5",
        judged=not quick,
    )


if __name__ == "__main__":
    main()
