"""Jumps against one exact flow; SGD with its clock against plain SGD; runs against predictions."""

from __future__ import annotations

import numpy as np
from clock import ONE_THREAD, arguments, best_of, noisy_sparse, ratio, seconds, table

import penchant


def jumps(samples: int, dimension: int, log_alpha: float) -> None:
    """Every jump by `saddles`, and one run of DualFlow to its end."""
    X, y = noisy_sparse(samples, dimension)
    problem = penchant.Regression(X, y)
    ours, found = best_of(5, lambda: penchant.solvers.saddles(problem))
    net = penchant.DiagonalNet(2, log_alpha=log_alpha)
    theirs, path = best_of(1, lambda: penchant.train(net, problem, penchant.DualFlow()))
    print(f"\nN={samples}, d={dimension}: {len(found.tau) - 1} jumps")
    least = penchant.interpolate(problem, penchant.L1()).beta
    rows = [
        ["saddles", seconds(ours), f"{np.abs(found.end - least).max():.1e}"],
        [
            f"DualFlow, log_alpha = {log_alpha:g}",
            seconds(theirs),
            f"{np.abs(path.predictor - least).max():.1e}",
        ],
    ]
    table(["method", "time", "distance of the end to the least l1 norm"], rows)
    ratio("one flow / all jumps", theirs / ours, ">= 1")


def clocks(samples: int, dimension: int, steps: int) -> None:
    """One-sample SGD of a diagonal net with and without its effective scale."""
    X, y = noisy_sparse(samples, dimension)
    problem, net = penchant.Regression(X, y), penchant.DiagonalNet(2, alpha=0.1)
    rate, stop = 0.05 / float((X**2).sum(axis=1).max()) / samples, penchant.Steps(steps)
    methods = {
        "plain": penchant.GradientDescent(rate),
        "with its clock": penchant.methods.EffectiveScale(penchant.GradientDescent(rate)),
    }
    times, ends = {}, {}
    for name, method in methods.items():

        def run(method: penchant.GradientDescent = method) -> penchant.Path:
            return penchant.train(net, problem, method, batch=1, stop=stop)

        run()  # compiles
        times[name], ends[name] = best_of(5, run)
    print(f"\nSGD, one sample a step, N={samples}, d={dimension}, {steps} steps")
    table(["method", "time"], [[name, seconds(value)] for name, value in times.items()])
    apart = np.abs(ends["plain"].predictor - ends["with its clock"].predictor).max()
    print(f"largest difference of the ends: {apart:.1e}")
    ratio("with its clock / plain", times["with its clock"] / times["plain"], "<= 1.2")


def predictions(samples: int, dimension: int, steps: int, trained: int) -> None:
    """The end of many steps, predicted, against the compiled run; that is timed on fewer steps."""
    X, y = noisy_sparse(samples, dimension)
    problem, net, stop = (
        penchant.Regression(X, y),
        penchant.DiagonalNet(2, alpha=0.1),
        penchant.Steps(steps),
    )
    rows, ratios = [], {}
    for name, batch in {"all samples": None, "one sample": 1}.items():
        limit = penchant.forecasts.predict_run(
            net, problem, penchant.GradientDescent(1e-9), batch=batch, stop=stop
        ).fails_from
        method = penchant.GradientDescent(0.3 * limit)
        most = trained if batch else trained // 10

        def predict(
            method: penchant.GradientDescent = method, batch: int | None = batch
        ) -> penchant.forecasts.PredictedRun:
            return penchant.forecasts.predict_run(net, problem, method, batch=batch, stop=stop)

        def run(
            few: int, method: penchant.GradientDescent = method, batch: int | None = batch
        ) -> penchant.Path:
            return penchant.train(net, problem, method, batch=batch, stop=penchant.Steps(few))

        run(10)  # compiles
        # what a run costs besides its steps is in both
        short, long = (best_of(3, lambda few=few: run(few))[0] for few in (most // 10, most))
        theirs, ours = (long - short) / (most - most // 10) * steps, best_of(10, predict)[0]
        rows.append([name, seconds(ours), f"{seconds(theirs)}, from {most} steps"])
        ratios[name] = theirs / ours
    print(f"\n{steps} steps, N={samples}, d={dimension}")
    table(["steps on", "prediction", "compiled run"], rows)
    for name, value in ratios.items():
        ratio(f"compiled run on {name} / prediction", value, ">= 1000")


def main() -> None:
    quick = arguments(__doc__ or "").quick
    print(ONE_THREAD)
    jumps(*((10, 30, -100.0) if quick else (100, 1000, -1000.0)))
    clocks(*((10, 30, 1000) if quick else (100, 1000, 100_000)))
    predictions(*((10, 30, 10_000, 1000) if quick else (100, 1000, 1_000_000, 50_000)))


if __name__ == "__main__":
    main()
