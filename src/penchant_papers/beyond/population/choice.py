"""The scale of a diagonal net chosen before training, against cross-validation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant import L1, L2, Q, interpolate
from penchant.forecasts import best_alpha
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_most,
    sized,
)
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant.solvers import interpolate_path
from penchant_papers.beyond import OWN_RUNS

FOLDS = 5
SCALES = np.linspace(math.log(1e-4), math.log(2.0), 12)  # log alpha, as a search would try them
RARE_NORMAL = 3.3  # deviations that a mean is away by chance once in a thousand draws
REGRET = 0.04  # of the log of the error


def cell(problem: int, seed: int, *, dimension: int) -> dict[str, Any]:
    """One random problem: errors at the predicted scale, at that of cross-validation, at all."""
    rng = np.random.default_rng([seed, problem])
    spikes = round(math.exp(rng.uniform(math.log(2), math.log(dimension / 2.5))))
    noise = math.exp(rng.uniform(math.log(0.05), math.log(1.5)))
    samples = int(rng.integers(dimension // 4, 2 * dimension // 3))
    truth = np.zeros(dimension)
    truth[:spikes] = 1 / math.sqrt(spikes)
    X = rng.normal(size=(samples, dimension))
    y = X @ truth + noise * rng.normal(size=samples)

    def error(beta: Array) -> Array:
        return np.asarray(((beta - truth) ** 2).sum(axis=-1))

    scale = best_alpha(samples=samples, dimension=dimension, truth=truth, noise=noise)
    ends = {-math.inf: L1(), math.inf: L2()}
    chosen = float(error(interpolate(X, y, ends.get(scale) or Q(2, log_alpha=scale)).beta))
    errors = error(interpolate_path(X, y, 2, log_alphas=SCALES).beta)
    left_out = np.zeros(len(SCALES))
    fold = rng.permutation(samples) % FOLDS
    for k in range(FOLDS):
        kept, held = fold != k, fold == k
        beta = interpolate_path(X[kept], y[kept], 2, log_alphas=SCALES).beta
        left_out += ((beta @ X[held].T - y[held]) ** 2).sum(axis=1)
    least = min(float(errors.min()), chosen)
    return {
        "spikes": spikes,
        "noise": noise,
        "samples": samples,
        "scale": scale,
        "validated": float(SCALES[left_out.argmin()]),
        "regret": math.log(chosen / least),
        "regret_validated": math.log(errors[left_out.argmin()] / least),
        "regrets": np.log(errors / least),
    }


study = sized(
    "beyond-population-choice",
    title="The best scale of the start is chosen before training",
    function=cell,
    arguments={"dimension": 150},
    grid={"problem": list(range(24))},
    seeds=1,
    dims={"regrets": ["alpha"]},
    labels={
        "regret": "log of the error over the least, scale chosen before the data",
        "regret_validated": "the same, scale of cross-validation",
    },
    tiny={"grid": {"problem": list(range(10))}},
    printed={"arguments": {"dimension": 400}, "grid": {"problem": list(range(60))}},
)


def check(dataset: Dataset) -> Evidence:
    """Mean regrets: of the prediction, against it cross-validation, and one scale for all."""
    own = np.ravel(dataset.regret)
    validated = np.ravel(dataset.regret_validated)
    ahead = own - validated
    error = float(ahead.std(ddof=1) / math.sqrt(len(ahead)))
    regret = at_most(float(own.mean()), REGRET)
    fixed = np.asarray(dataset.regrets.mean(["problem", "seed"]))
    return Evidence(
        ran=f"{own.size} random regressions: 2 to {int(dataset.spikes.max())} planted weights,"
        f" noise {float(dataset.noise.min()):.2g} to {float(dataset.noise.max()):.2g}, errors of"
        " certified solutions; the least error is that of the best of 13 scales on the same draw",
        checks={
            "mean log of the error over the least": regret,
            "the same less that of cross-validation": at_most(
                float(ahead.mean()), RARE_NORMAL * error
            ),
        },
        controls={
            "one scale for all problems, the best one": regret.control(float(fixed.min())),
            "the smallest scale": regret.control(float(fixed[0])),
            "the largest scale": regret.control(float(fixed[-1])),
        },
        findings=[
            "mean log of the error over the least: chosen before the data"
            f" {own.mean():.3f}, five-fold cross-validation {validated.mean():.3f},"
            f" the best single scale {fixed.min():.3f}"
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """Regrets of the prediction and of cross-validation, and of every single scale."""
    picture, (a, b) = sheet_of(dataset, widths=(5.5, 5.5), height=4.6)
    percent = [100 * np.expm1(np.ravel(dataset[name])) for name in ("regret", "regret_validated")]
    most = 1.1 * max(values.max() for values in percent)
    a.plot(percent[1], percent[0], "o", color=CYCLE[0])
    a.plot([0, most], [0, most], "--", color=BLACK, linewidth=1.2, label="equal")
    a.set(xlabel="cross-validation: error above the least (%)")
    a.set(ylabel="chosen before the data: the same (%)", title="one point a problem")
    a.legend()
    b.plot(np.exp(SCALES), 100 * np.expm1(dataset.regrets.mean(["problem", "seed"])), "s-")
    b.lines[-1].set(color=CYCLE[1], label="one scale for all")
    for values, colour, name in (
        (dataset.regret_validated, CYCLE[2], "cross-validation"),
        (dataset.regret, CYCLE[0], "chosen before the data"),
    ):
        b.axhline(100 * math.expm1(float(values.mean())), color=colour, label=name)
    b.set(xscale="log", yscale="log", xlabel=r"initial scale $\alpha$")
    b.set(ylabel="error above the least (%)", title="geometric mean over problems")
    b.legend()
    return picture


experiment = Experiment(
    "beyond-population-choice",
    statement=r"The scale of a diagonal net's start that two scalar equations choose before there"
    r" are data, from the sizes of weights and noise alone, has nearly the least error of all"
    r" scales, and not more than the scale that cross-validation finds.",
    place="ours",
    study=study,
    check=check,
    draw=draw,
    scope=OWN_RUNS,
    seconds=5,
)
