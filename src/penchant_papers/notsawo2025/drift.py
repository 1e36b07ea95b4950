"""The LU mechanism with weight decay: overfit at a large norm, drift to w_c, generalize there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant import L1, DiagonalNet, DualFlow, Regression, interpolate, train
from penchant.lab import (
    DRAWS,
    Dataset,
    Evidence,
    Experiment,
    at_least,
    at_most,
    drawn,
    log_log,
    margin_of_mean,
    sized,
    within,
)
from penchant.problems import sparse_regression
from penchant.record import At

SOLVED, TESTED = 1e-3, 0.05  # relative errors of training and test that count as solved
SLACK = 0.2  # of the dual certificate of l1: t2 is log(alpha) + log(1/TESTED)/(2 slack), nearly
FAR = 0.5  # least test error of the interpolator of least l2 norm, which the kernel phase has
TIMES = np.unique(np.append(np.geomspace(1e-6, 1.0, 15), np.linspace(0.1, 12.0, 120)))


def problem_of(seed: int, samples: int, dimension: int) -> tuple[Regression, int]:
    """A sparse regression that l1 recovers and the interpolator of least l2 norm does not."""

    def suits(problem: Regression) -> bool:
        truth = np.asarray(problem.truth)
        size = np.linalg.norm(truth)
        rich = interpolate(problem, L1())
        kernel = np.linalg.pinv(problem.X) @ problem.y
        near = np.linalg.norm(rich.beta - truth) < 1e-6 * size
        slack = 1 - np.abs(problem.X.T @ rich.dual)[truth == 0].max()
        far = np.linalg.norm(kernel - truth) > FAR * size
        return bool(near and far and slack >= SLACK)

    return drawn(
        lambda k: sparse_regression(samples, dimension, sparsity=2, noise=0.0, seed=k),
        suits,
        seed=DRAWS * seed,
    )


def cell(start: float, *, seed: int, samples: int, dimension: int, rate: float) -> dict[str, Any]:
    """One run from `start` times w_c: t1, t2 in units of 1/rate, and the norms there over w_c.

    w_c is the least norm of parameters u, v with u^2 - v^2 = truth, sqrt(|truth|_1).
    """
    problem, draws = problem_of(seed, samples, dimension)
    truth = np.asarray(problem.truth)
    critical = math.sqrt(float(np.abs(truth).sum()))
    alpha = start * critical / math.sqrt(2 * dimension)
    flow = DualFlow(rtol=1e-6, weight_decay=rate)
    path = train(
        DiagonalNet(2, alpha=alpha), problem, flow, record=At(times=TIMES / rate), throw=True
    )
    run = path.dataset.isel(time=path.dataset.t.values > 0)
    fitted = np.linalg.norm(run.predictor.values @ problem.X.T - problem.y, axis=1)
    tested = np.linalg.norm(run.predictor.values - truth, axis=1)
    fitted, tested = fitted / np.linalg.norm(problem.y), tested / np.linalg.norm(truth)
    norm, t = run.parameter_norm.values / critical, run.t.values * rate
    places = {"t1": first(fitted <= SOLVED), "t2": first(tested <= TESTED)}
    return {
        "draws": draws,
        **{name: t[k] if k >= 0 else math.inf for name, k in places.items()},
        **{f"norm_{name}": norm[k] if k >= 0 else math.nan for name, k in places.items()},
        "plateau": float(tested[places["t1"]]),
        "end": float(norm[-1]),
        "t": t,
        "train": fitted,
        "test": tested,
        "norm": norm,
    }


def first(reached: Any) -> int:
    """The first record where it holds; -1 if there is none."""
    there = np.flatnonzero(reached)
    return int(there[0]) if len(there) else -1


CURVES = ("t", "train", "test", "norm")
study = sized(
    "N-drift",
    title="Weight decay takes a large start to the norm of the truth, where it generalizes",
    function=cell,
    arguments={"samples": 10, "dimension": 20, "rate": 1e-5},
    grid={"start": [5.0, 20.0]},
    seeds=12,
    dims={name: ["record"] for name in CURVES},
    labels={
        "start": "norm of the start over $w_c$",
        "t1": "time at which training is solved, in units of 1/rate",
        "t2": "time at which the test is solved, in units of 1/rate",
        "norm_t1": "norm over $w_c$ when training is solved",
        "norm_t2": "norm over $w_c$ when the test is solved",
        "plateau": "relative test error when training is solved",
    },
    tiny={"seeds": 8},
    printed={"seeds": 100},
)


def check(dataset: Dataset) -> Evidence:
    """Training at the norm of the start, the test at w_c, and the drift in between."""
    near, far = (dataset.sel(start=start) for start in dataset.start.values)
    zone = at_most(np.abs(dataset.norm_t2 - 1).max(skipna=False), 0.1)
    large = at_least((dataset.norm_t1 / dataset.start).min(), 0.9)
    plateau = at_least(dataset.plateau.min(), 0.4)
    waits = at_least(np.log10(dataset.t2 / dataset.t1).min(), 3.0)
    drift = (far.t2 - near.t2).values
    law = within(drift.mean(), math.log(20 / 5), 0.1 + margin_of_mean(drift))
    runs = far.isel(seed=0)
    return Evidence(
        ran=f"{dataset.sizes['seed']} sparse regressions (10 samples, 20 features, 2 planted "
        r"weights) and diagonal nets $u^2 - v^2$ from $|\theta(0)|$ = 5 and 20 times $w_c$, by the "
        "exact flow under a weight decay of $10^{-5}$; $w_c$ is the least norm of parameters that "
        "compute the truth",
        checks={
            "largest distance of the norm at $t_2$ to $w_c$, over $w_c$": zone,
            "least norm at $t_1$ over that of the start": large,
            "least relative test error at $t_1$": plateau,
            "least number of decades between $t_1$ and $t_2$": waits,
            r"$t_2$ from 20 $w_c$ minus $t_2$ from 5 $w_c$, in units of 1/rate, mean; predicted "
            r"$\log(20/5)$": law,
        },
        controls={
            "the norm at $t_1$ in place of $t_2$": zone.control((dataset.norm_t1 - 1).min()),
            "the norm at $t_2$ over that of the start": large.control(
                (dataset.norm_t2 / dataset.start).max()
            ),
            "a delay that does not depend on the start": law.control(predicted=0.0),
            "a delay proportional to the norm of the start": law.control(
                predicted=float((3 * near.t2).mean())
            ),
        },
        premises={
            "every run solves training and test": (
                bool(np.isfinite(dataset.t1).all() and np.isfinite(dataset.t2).all()),
                int(dataset.t2.size),
            ),
        },
        findings=[
            f"{dataset.sizes['seed']} of {int(near.draws.sum())} regressions drawn are recovered "
            f"by "
            r"$\ell_1$ and not by the interpolator of least $\ell_2$ norm",
            r"the norm falls to $w_c$ because $w_c$ is the least norm of the interpolators, "
            r"which the "
            r"penalty selects here; under a penalty on $\ell_1$ of a linear model it is not",
        ],
        plots=[
            log_log(
                "the test error falls when the norm arrives at $w_c$, long after training",
                "time in units of 1/rate",
                "relative error, norm over $w_c$",
                [
                    (r"norm $|\theta|/w_c$, from 20", runs.t, runs.norm),
                    (
                        "$w_c$, the norm of the truth",
                        runs.t,
                        np.ones(runs.sizes["record"]),
                        "dashed",
                    ),
                    ("test error", runs.t, runs.test),
                    ("training error, or $10^{-6}$", runs.t, np.maximum(runs.train, 1e-6)),
                ],
            )
        ],
    )


experiment = Experiment(
    "N-drift",
    statement="With a large initialization and a small weight decay, training is solved at $t_1$ "
    r"while the norm is still that of the start and the test error is large; the norm then drifts "
    r"to $w_c$ under the decay, and the test is solved at $t_2$, when it is there.",
    place="Goldilocks zone & LU mechanism, large initialization and small weight decay",
    study=study,
    check=check,
    title="Weight decay takes a large start to the norm of the truth, where it generalizes",
    ours="the whole experiment: the source describes the mechanism in words",
    seconds=6,
)
