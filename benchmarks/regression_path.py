"""A path of 100 scales at depth 2 against gradient descent and against a conic solver.

Gradient descent is timed at every tenth of the 100 scales, until its loss is 1e-9; where a budget
ends it first, its time is a lower bound. The ratio sets its time for those scales against the
same share of ours. It is run at two steps: half its stability limit, as fast as it gets but with
an endpoint that is no longer that of the flow (column `error`), and a twentieth of the limit, which
is judged although its endpoint is still far less accurate than ours.
"""

from __future__ import annotations

import numpy as np
from clock import ONE_THREAD, arguments, best_of, noisy_sparse, ratio, seconds, table
from rivals import Conic, Descent, stability_limit
from threadpoolctl import threadpool_limits

from penchant.solvers import interpolate_path


def off(beta: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(beta - exact).max() / np.abs(exact).max())


def against_descent(X, y, alphas, path, ours: float, quick: bool) -> None:
    """The table and the ratios for gradient descent."""
    descent, every = Descent(X, y), max(1, len(alphas) // 10)
    chosen = range(every // 2, len(alphas), every)
    share = ours * len(chosen) / len(alphas)
    for fraction in (0.5, 0.05):
        rows, total, accuracy = [], 0.0, []
        for i in chosen:
            step = fraction * stability_limit(X, path.beta[i], alphas[i])
            run = descent.run(alphas[i], step, 1e-9, budget=1.0 if quick else 30.0)
            total += run["seconds"]
            accuracy.append(off(run["beta"], path.beta[i]))
            bound = "" if run["reached"] else "at least "
            rows.append([f"{alphas[i]:.1e}", bound + seconds(run["seconds"]), run["steps"],
                         f"{run['loss']:.1e}", f"{accuracy[-1]:.1e}"])  # fmt: skip
        print(f"\nGradient descent, step = {fraction:g} of the stability limit:")
        table(["alpha", "time", "steps", "loss", "error"], rows)
        name = f"gradient descent at {fraction:g} of its limit / ours"
        ratio(name, total / share, ">= 1000", judged=fraction < 0.5 and not quick)
        print(f"its endpoint is off by up to {max(accuracy):.1e}")


def against_conic(X, y, alphas, path, ours: float, quick: bool) -> None:
    """The table and the ratio for CVXPY with Clarabel."""
    conic, rows, ratios = Conic(X, y), [], []
    each = ours / len(alphas)
    for i in range(0, len(alphas), max(1, len(alphas) // 5)):
        run = conic.solve(alphas[i])
        if "beta" not in run:
            rows.append([f"{alphas[i]:.1e}", run["status"], "", "", ""])
            continue
        residual = float(np.abs(X @ run["beta"] - y).max() / np.abs(y).max())
        solved = run["status"] == "optimal" and residual < 1e-3
        if solved:
            ratios.append(run["seconds"] / each)
        status = "solved" if solved else f"not solved ({run['status']})"
        rows.append([f"{alphas[i]:.1e}", status, seconds(run["seconds"]), f"{residual:.1e}",
                     f"{off(run['beta'], path.beta[i]):.1e}"])  # fmt: skip
    print("\nCVXPY with Clarabel (the solver's own time; default tolerances):")
    table(["alpha", "status", "time", "residual", "error"], rows)
    ratio(
        "Clarabel / ours per scale, smallest where it solves",
        min(ratios, default=np.nan),
        ">= 100",
        judged=not quick,
    )


def main() -> None:
    quick = arguments(__doc__ or "").quick
    samples, dimension, count = (20, 100, 20) if quick else (100, 1000, 100)
    X, y = noisy_sparse(samples, dimension)
    alphas = np.logspace(2, -10, count)
    ours, path = best_of(
        2 if quick else 5, lambda: interpolate_path(X, y, 2, log_alphas=np.log(alphas))
    )
    print(f"N={samples}, d={dimension}, depth 2, {count} alphas from 1e2 to 1e-10. {ONE_THREAD}\n")
    table(["ours: all scales", "per scale", "worst residual", "worst KKT"],
          [[seconds(ours), seconds(ours / count), f"{path.residual.max():.1e}",
            f"{path.kkt.max():.1e}"]])  # fmt: skip
    with threadpool_limits(limits=1):
        against_descent(X, y, alphas, path, ours, quick)
        against_conic(X, y, alphas, path, ours, quick)


if __name__ == "__main__":
    main()
