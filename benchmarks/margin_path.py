"""A path of 100 scales of the margin problem at depth 2 against CVXPY with Clarabel.

Two data sets: Gaussian points, nearly all of them support vectors, and points U(0, 1) of one
class, whose support vectors change along the path. The rival is timed at a few of the scales, by
the solver's own clock, and both sides are judged by the same certificate: the largest violation
of a margin, and the KKT residual (stationarity, sign of the dual, complementarity). A scale
counts as solved by the rival if both are below 1e-2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from clock import ONE_THREAD, arguments, best_of, ratio, seconds, table
from rivals import by_clarabel
from threadpoolctl import threadpool_limits

from penchant import Outcome, Q
from penchant.lab import Kind
from penchant.problems import separable_points, uniform_points
from penchant.solvers import MarginPath, max_margin_path
from penchant.solvers.margins.rows import certified
from penchant.solvers.solution import Found

# measured as it is: what counts as solved is moved onto its margins
THEIRS = Outcome(Kind.STALLED, "found by another solver")


class ConicMargin:
    """The depth-2 margin problem as an exponential cone program in its dual form.

    Minimise sum mu (e^s + e^-s) - sum nu over nu >= 0 with s = Z^T nu; beta = 2 mu sinh(s).
    log mu is a parameter, so that CVXPY compiles only once.
    """

    def __init__(self, Z: np.ndarray):
        import cvxpy as cp

        self.Z = Z
        self.nu, self.s = cp.Variable(len(Z), nonneg=True), cp.Variable(Z.shape[1])
        self.log_mu = cp.Parameter()
        growth = cp.sum(cp.exp(self.s + self.log_mu) + cp.exp(self.log_mu - self.s))
        self.problem = cp.Problem(cp.Minimize(growth - cp.sum(self.nu)), [self.s == Z.T @ self.nu])

    def solve(self, mu: float) -> dict[str, Any]:
        """beta and nu with the status and Clarabel's own time, which leaves out CVXPY's."""
        self.log_mu.value = np.log(mu)
        found = by_clarabel(self.problem)
        if "seconds" not in found or self.nu.value is None:
            return found
        nu = np.asarray(self.nu.value)
        return found | {"beta": 2 * mu * np.sinh(nu @ self.Z), "nu": nu}


def compare(name: str, Z: np.ndarray, path: MarginPath, each: float, judged: bool) -> None:
    """The table of the rival and the ratio to our time for one scale."""
    rival, rows, ratios, better = ConicMargin(Z), [], [], True
    for i in range(0, len(path.mus), max(1, len(path.mus) // 5)):
        mu, run = float(path.mus[i]), rival.solve(path.mus[i])
        if "beta" not in run:
            rows.append([f"{mu:.1e}", run["status"], "", "", "", ""])
            continue
        his = certified(Z, Q(2, mu=mu), Found(run["beta"], run["nu"], 0, THEIRS))
        worst = max(his.residual, his.kkt)
        solved = run["status"] == "optimal" and worst < 1e-2
        if solved:
            ratios.append(run["seconds"] / each)
            better &= max(path.kkt[i], path.residual[i]) <= worst
        status = "solved" if solved else f"not solved ({run['status']})"
        rows.append(
            [
                f"{mu:.1e}",
                status,
                seconds(run["seconds"]),
                f"{his.residual:.1e}",
                f"{his.kkt:.1e}",
                f"{path.kkt[i]:.1e}",
            ]
        )
    print("\nCVXPY with Clarabel (the solver's own time; default tolerances):")
    table(["mu", "status", "time", "violation", "KKT", "ours: KKT"], rows)
    what = f"{name}: Clarabel / ours per scale, smallest where it solves"
    ratio(what, min(ratios, default=np.nan), ">= 300", judged=judged)
    print(f"the worse of our violation and KKT residual is at most its own: {better}\n")


def main() -> None:
    quick = arguments(__doc__ or "").quick
    samples, dimension, count = (20, 100, 20) if quick else (100, 1000, 100)
    mus = np.logspace(2, -4, count)
    print(f"N={samples}, d={dimension}, depth 2, {count} mus from 1e2 to 1e-4. {ONE_THREAD}\n")
    for name, problem in (
        ("Gaussian", separable_points(samples, dimension)),
        ("uniform", uniform_points(samples, dimension)),
    ):
        X, y = problem.X, problem.y
        ours, path = best_of(2 if quick else 5, lambda X=X, y=y: max_margin_path(X, y, 2, mus=mus))
        table(
            [f"{name}: all scales", "per scale", "changes", "worst violation", "worst KKT"],
            [
                [
                    seconds(ours),
                    seconds(ours / count),
                    len(path.changes),
                    f"{path.residual.max():.1e}",
                    f"{path.kkt.max():.1e}",
                ]
            ],
        )
        with threadpool_limits(limits=1):
            compare(name, problem.signed_rows, path, ours / count, judged=not quick)


if __name__ == "__main__":
    main()
