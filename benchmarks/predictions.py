"""Predictions before the data and before the run: their seconds, and those of what they predict.

Times are seconds of the processor, the best of several calls, so that a loaded machine changes them
little. Compiled steps are counted where they move: a run that has fitted its data stands still, and
tiny numbers make its steps slower, so that the time of a step is that of a run at a rate of 1e-8.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from clock import ONE_THREAD, arguments, ratio, seconds, table
from threadpoolctl import threadpool_limits

import penchant
from penchant import L1, DiagonalNet, GradientDescent, Q, Steps, train
from penchant.forecasts import design, population_error, population_margin, predict_run
from penchant.methods import CentralFlow
from penchant.problems import sparse_regression
from penchant.record import At
from penchant.stop import Interpolated

SETTINGS = {
    "Q(2, alpha=1e-3)": Q(2, alpha=1e-3),
    "Q(2, log_alpha=-1000)": Q(2, log_alpha=-1000.0),
    "Q(3, alpha=0.1)": Q(3, alpha=0.1),
    "Q(5, log_alpha=-1000)": Q(5, log_alpha=-1000.0),
    "L1()": L1(),
}


def processor(run: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Processor seconds of the fastest of some calls, and the last result."""
    fastest, result = float("inf"), None
    with threadpool_limits(limits=1):
        for _ in range(repeats):
            begin = time.process_time()
            result = run()
            fastest = min(fastest, time.process_time() - begin)
    return fastest, result


def before_the_data(dimension: int) -> None:
    given = {"samples": dimension // 10, "dimension": dimension, "truth": [0.45] * 5}
    rows, slowest = [], 0.0
    for name, law in SETTINGS.items():
        spent, error = processor(lambda law=law: population_error(law, noise=0.1, **given))
        slowest = max(slowest, spent)
        rows.append([name, seconds(spent), f"{error.error:.4g}"])
    spent, margin = processor(lambda: population_margin(L1(), flips=0.1, **given))
    rows.append(["margin, L1()", seconds(spent), f"{margin.error:.4g}"])
    table(["population error", "processor", "error"], rows)
    ratio("the slowest population error over 50 ms", slowest / 0.05, "<= 1")


def recipes(samples: int, dimension: int, steps: int) -> None:
    problem = sparse_regression(samples, dimension, sparsity=5, noise=0.1, seed=1)
    rows, slowest = [], 0.0
    for method, alpha in (("decay", 1e-3), ("label noise", 0.1)):
        target = Q(2, alpha=alpha)
        spent, plan = processor(
            lambda m=method, t=target: design(problem, t, steps=steps, method=m)
        )
        ran, path = processor(
            lambda plan=plan: train(**plan.arguments, record=At(steps=[steps])), 1
        )
        wanted = penchant.interpolate(problem, target).beta
        apart = np.linalg.norm(path.predictor - wanted) / np.linalg.norm(wanted)
        slowest = max(slowest, spent)
        rows.append([f"{method}, alpha={alpha:g}", seconds(spent), seconds(ran), f"{apart:.2g}"])
    table(["design", "processor", f"its {steps} steps", "end to the target's minimiser"], rows)
    ratio("the slowest design over 5 s", slowest / 5, "<= 1")


def runs(samples: int, dimension: int) -> None:
    problem = sparse_regression(samples, dimension, sparsity=2, noise=0.1, seed=0)
    rows = []
    for name, net, method in (
        ("depth 2", DiagonalNet(2, alpha=0.1), GradientDescent(1e-6)),
        ("depth 3", DiagonalNet(3, alpha=0.3), GradientDescent(1e-6)),
        ("momentum 0.9", DiagonalNet(2, alpha=0.1), GradientDescent(1e-7, momentum=0.9)),
    ):
        stop = Steps(1_000_000)
        spent, run = processor(
            lambda n=net, m=method, s=stop: predict_run(n, problem, m, batch=1, stop=s)
        )
        rows.append([name, seconds(spent), "yes" if run.fails_at is None else "no"])
    table(["predict_run, 1e6 steps of one sample", "processor", "marked as valid"], rows)


def central_flow(samples: int, dimension: int, *, steps: int = 100_000) -> None:
    problem = sparse_regression(samples, dimension, sparsity=3, seed=0)
    net = DiagonalNet(2, alpha=0.1)
    end = train(net, problem, penchant.DualFlow(), record=At(times=[])).predictor
    squares = np.hypot(end, 2 * 0.1**2)
    rate = 1.2 / float(np.linalg.norm(2 * problem.X * np.sqrt(squares), 2)) ** 2
    method, fitted = CentralFlow(rate), Interpolated(1e-10)
    spent, central = processor(lambda: train(net, problem, method, stop=fitted))
    moving, last = GradientDescent(1e-8), At(steps=[steps])
    train(net, problem, moving, stop=Steps(10))  # compiles
    ran, _ = processor(lambda: train(net, problem, moving, stop=Steps(steps), record=last))
    descent = train(
        net, problem, GradientDescent(rate, check=False), stop=[Steps(steps), fitted], record=last
    )
    apart = np.linalg.norm(central.predictor - descent.predictor) / np.linalg.norm(end)
    row = [f"{samples} x {dimension}", seconds(spent), seconds(ran), f"{apart:.2g}"]
    table(["central flow at 1.2", "processor", f"{steps} compiled steps", "ends apart"], [row])
    ratio(f"{steps} compiled steps over the central flow, d={dimension}", ran / spent, ">= 10")


def main() -> None:
    quick = arguments(__doc__ or "").quick
    print(f"seconds of the processor; {ONE_THREAD}\n")
    before_the_data(200 if quick else 1000)
    recipes(*((10, 25, 5_000) if quick else (50, 500, 20_000)))
    runs(*((8, 20) if quick else (100, 1000)))
    central_flow(15, 40, steps=10_000 if quick else 100_000)
    if not quick:
        central_flow(50, 500)


if __name__ == "__main__":
    main()
