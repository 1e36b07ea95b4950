"""Paths of 100 values of mu = alpha^depth at depths 3, 5 and 10 against depth 2."""

from __future__ import annotations

import numpy as np
from clock import ONE_THREAD, arguments, best_of, noisy_sparse, ratio, seconds, table

from penchant.solvers import interpolate_path


def main() -> None:
    quick = arguments(__doc__ or "").quick
    samples, dimension, count = (20, 100, 20) if quick else (100, 1000, 100)
    X, y = noisy_sparse(samples, dimension)
    log_mus = np.log(10) * np.linspace(3, -30, count)
    sweeps = {f"depth {depth}": (depth, log_mus / depth) for depth in (2, 3, 5, 10)}
    sweeps["depth 2, alpha 1e2 to 1e-10"] = (2, np.log(10) * np.linspace(2, -10, count))
    rows, times = [], {}
    for name, (depth, log_alphas) in sweeps.items():
        times[name], path = best_of(
            5, lambda d=depth, a=log_alphas: interpolate_path(X, y, d, log_alphas=a)
        )
        failed = sum(not outcome.ok for outcome in path.outcomes)
        rows.append([name, seconds(times[name]), f"{path.residual.max():.0e}",
                     f"{path.kkt.max():.0e}", failed, int(path.iterations.sum())])  # fmt: skip
    print(f"N={samples}, d={dimension}, {count} values of mu from 1e3 to 1e-30. {ONE_THREAD}\n")
    table(["sweep", "time", "worst residual", "worst KKT", "failed", "Hessians"], rows)
    worst = max(times[f"depth {depth}"] for depth in (3, 5, 10))
    for name in ("depth 2", "depth 2, alpha 1e2 to 1e-10"):
        ratio(f"slowest of depth 3, 5, 10 / {name}", worst / times[name], "<= 3", judged=not quick)


if __name__ == "__main__":
    main()
