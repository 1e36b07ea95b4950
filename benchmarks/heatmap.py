"""The 12 x 8 map of W-F5 (one seed) against eager gradient descent with the printed step 1e-5.

Descent is timed for a share of its steps at every width, and its whole time is that cost per step
times the steps it needs: the training time at which the flow meets the same loss, over 1e-5. One
cell is descended to its end, to see that both arrive at the same matrix.
"""

from __future__ import annotations

import time

import numpy as np
from clock import ONE_THREAD, arguments, best_of, ratio, seconds, table

from penchant import Factorization, train
from penchant.methods import MatrixFlow
from penchant.problems import Completion, low_rank_completion
from penchant.record import LogSpaced
from penchant.stop import Interpolated

STEP = 1e-5  # printed below W's Figure 5
LOSSES = (1e-10, 1e-4)


class Descent:
    """Gradient descent on the observed entries of U V^T, in plain NumPy."""

    def __init__(self, problem: Completion, model: Factorization):
        W = model.stack(model.start(problem.dimension))
        self.U, self.V = W[: problem.shape[0]].copy(), W[problem.shape[0] :].copy()
        self.mask, self.target = problem.observed, problem.adjoint(problem.y)

    def run(self, steps: int) -> np.ndarray:
        U, V = self.U, self.V
        for _ in range(steps):
            slope = (2 * STEP) * (self.mask * (U @ V.T) - self.target)
            U, V = U - slope @ V, V - slope.T @ U
        self.U, self.V = U, V
        return U @ V.T


def row(problem: Completion, alphas: np.ndarray, k: int, loss: float) -> list:
    """The paths of one width, as the figure computes them."""
    flow, stop = MatrixFlow(rtol=1e-4), Interpolated(loss)
    nets = [Factorization(k, alpha=alpha) for alpha in alphas]
    return [train(net, problem, flow, stop=stop, record=LogSpaced(1)) for net in nets]


def per_step(problem: Completion, k: int, share: int) -> float:
    """Seconds of one step of descent at width k."""
    descent = Descent(problem, Factorization(k, alpha=0.1))
    spent, _ = best_of(3, lambda: descent.run(share))
    return spent / share


def check(problem: Completion) -> float:
    """The largest difference between descent and flow where descent can afford its end."""
    model = Factorization(1000, alpha=1.0)
    path = train(model, problem, MatrixFlow(rtol=1e-8), stop=Interpolated(1e-16))
    end = Descent(problem, model).run(round(path.t / STEP))
    return float(np.abs(end - path.predictor).max() / np.abs(path.predictor).max())


def main() -> None:
    quick = arguments(__doc__ or "").quick
    alphas = np.logspace(-2.5, 0, 4 if quick else 12)
    widths = np.unique(np.rint(np.logspace(1, 3, 2 if quick else 8))).astype(int)
    problem = low_rank_completion(samples=60, dimension=10, rank=1)
    row(problem, alphas[-1:], 10, LOSSES[0])  # imports off the clock
    rows, ours, descents, sooner = [], [], np.zeros(len(LOSSES)), 0.0
    for k in widths:
        spent, paths = best_of(1 if quick else 2, lambda k=k: row(problem, alphas, k, LOSSES[0]))
        cost = per_step(problem, int(k), 200 if quick else 2000)
        soon, early = best_of(1, lambda k=k: row(problem, alphas, k, LOSSES[1]))
        sooner += soon
        steps = np.array([sum(path.t for path in found) / STEP for found in (paths, early)])
        ours.append(spent)
        descents += cost * steps
        rows.append(
            [
                k,
                seconds(spent),
                seconds(cost),
                *(f"{n:.3g}" for n in steps),
                f"{cost * steps[0] / spent:.3g}",
            ]
        )
    total = sum(ours)
    print(f"{len(alphas)} scales, loss {LOSSES[0]:g} of that of M = 0. {ONE_THREAD}\n")
    table(
        [
            "k",
            "penchant, a row of the map",
            "one step of descent",
            "its steps",
            f"its steps to loss {LOSSES[1]:g}",
            "ratio",
        ],
        rows,
    )
    print(f"\nDescent at k = 1000, alpha = 1 to its end: differs by {check(problem):.2g} of M.")
    days = descents / 86400
    print(f"Whole map: penchant {seconds(total)}, descent {days[0]:.3g} days (extrapolated).")
    ratio("descent / penchant, whole map", descents[0] / total, ">= 1000", judged=not quick)
    print(f"Both stopped at loss {LOSSES[1]:g} already: {descents[1] / sooner:.3g} times.")
    ratio("whole map / 15 s", total / 15, "<= 1", judged=not quick)
    ratio("a row at k = 1000 / at k = 10", ours[-1] / ours[0], "<= 2", judged=not quick)


if __name__ == "__main__":
    begin = time.perf_counter()
    main()
    print(f"benchmark took {seconds(time.perf_counter() - begin)}")
