"""The test error before the data: predicted from two scalar equations, measured on draws."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from scipy.optimize import brentq

from penchant import L1, L2, Q, interpolate
from penchant.forecasts import PopulationError, largest_alpha, population_error
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_most,
    share_at_least,
    sized,
    upper_share,
    within,
)
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant_papers.beyond import OWN_RUNS

SPIKES, NOISE = 5, 0.1
NINE_OF_TEN = 1.645  # deviations on either side
RARE_NORMAL = 3.3  # deviations that a mean is away by chance once in a thousand draws
LAWS = {
    "l1": L1(),
    "l2": L2(),
    r"$D = 2$, $\alpha = 0.1$": Q(2, alpha=0.1),
    r"$D = 2$, $\alpha = 0.02$": Q(2, alpha=0.02),
    r"$D = 2$, $\alpha = 0.001$": Q(2, alpha=1e-3),
    r"$D = 3$, $\alpha = 0.1$": Q(3, alpha=0.1),
}
MEAN, SPREAD = 0.15, 0.3  # what the first order leaves open, in deviations and as a log ratio
SCALE = 0.8  # of log alpha: four standard errors of a median of ten draws, some 0.2 each
NETS = list(LAWS)[2:]
INPUTS = ("Gaussian", "signs", "heavy tails")


def truth(dimension: int) -> Array:
    weights = np.zeros(dimension)
    weights[:SPIKES] = 1 / math.sqrt(SPIKES)
    return weights


def rows(inputs: str, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Samples with independent features of variance one."""
    if inputs == "signs":
        return rng.choice([-1.0, 1.0], size=shape)
    if inputs == "heavy tails":  # each sample has a size of its own, so that no row is typical
        return rng.normal(size=shape) / np.sqrt(rng.chisquare(3, size=(shape[0], 1)))
    return rng.normal(size=shape)


def drawn_error(law: Any, inputs: str, samples: int, dimension: int, seed: int) -> float:
    """The population error of the certified minimiser on one draw of the data."""
    rng, planted = np.random.default_rng(seed), truth(dimension)
    X = rows(inputs, rng, (samples, dimension))
    y = X @ planted + NOISE * rng.normal(size=samples)
    return float(((interpolate(X, y, law).beta - planted) ** 2).sum())


@functools.lru_cache(maxsize=64)
def predicted(law: str, samples: int, dimension: int) -> PopulationError:
    return population_error(
        LAWS[law], samples=samples, dimension=dimension, truth=truth(dimension), noise=NOISE
    )


def cell(
    law: str, samples: int, inputs: str, seed: int, *, dimension: int, draws: int
) -> dict[str, Any]:
    """Draws at one setting, and how the logarithms of their errors lie around the prediction."""
    prediction = predicted(law, samples, dimension)
    deviation = math.log(prediction.high / prediction.error) / NINE_OF_TEN
    many = draws if inputs == "Gaussian" else math.ceil(draws / 3)
    seeds = np.random.SeedSequence([seed, samples, list(LAWS).index(law)]).generate_state(many)
    errors = [drawn_error(LAWS[law], inputs, samples, dimension, int(own)) for own in seeds]
    logs = np.log(errors)
    above = np.abs(logs - math.log(prediction.error)) / NINE_OF_TEN
    return {
        "predicted": prediction.error,
        "low": prediction.low,
        "high": prediction.high,
        "measured": float(np.exp(np.median(logs))),
        "count": many,
        "shift": float(logs.mean() - math.log(prediction.error)),
        "deviation": deviation,
        "spread": float(logs.std(ddof=1)),
        "inside": int((above < deviation).sum()),
        "inside_rows": int((above < math.sqrt(2 / samples)).sum()),
        "to_flat": float(logs.mean() - math.log(predicted("l2", samples, dimension).error)),
        "to_sparse": float(logs.mean() - math.log(predicted("l1", samples, dimension).error)),
    }


def apart(spread: Any, deviation: Any) -> float:
    """The mean distance of two sets of deviations, as a log ratio."""
    return float(np.abs(np.log(spread / deviation)).mean())


def threshold(
    samples: int, seed: int, *, dimension: int, draws: int, error: float
) -> dict[str, Any]:
    """The largest scale with a population error, predicted and on draws."""
    scale = largest_alpha(
        error, samples=samples, dimension=dimension, truth=truth(dimension), noise=NOISE
    )
    measured = []
    for own in np.random.SeedSequence([seed, samples]).generate_state(draws):

        def excess(log_alpha: float, own: int = int(own)) -> float:
            law = Q(2, log_alpha=log_alpha)
            return math.log(drawn_error(law, "Gaussian", samples, dimension, own) / error)

        ends = scale - 5.0, scale + 3.0
        inside = excess(ends[0]) < 0 < excess(ends[1])
        measured.append(brentq(excess, *ends, xtol=1e-3) if inside else ends[0])
    return {"predicted": scale, "measured": float(np.median(measured))}


study = sized(
    "beyond-population",
    title="The test error is known before the data",
    function=cell,
    arguments={"dimension": 300, "draws": 36},
    grid={"law": NETS, "samples": [75, 110], "inputs": list(INPUTS)},
    seeds=1,
    labels={
        "predicted": "population error, predicted",
        "measured": "population error, median of the draws",
        "deviation": "deviation of its logarithm, predicted",
        "spread": "deviation of its logarithm over draws",
        "inside": "draws in the interval of nine of ten",
    },
    draw={"x": "samples", "colour": "measured", "log": True},
    tiny={"arguments": {"dimension": 200, "draws": 40}, "grid": {"samples": [70]}},
    printed={
        "arguments": {"dimension": 1000, "draws": 50},
        "grid": {"samples": [60, 100, 150]},
        "seeds": 2,
    },
)
scales = sized(
    "beyond-population-scales",
    title="The largest scale that recovers, without data",
    function=threshold,
    arguments={"dimension": 300, "draws": 10, "error": 0.05},
    grid={"samples": [60, 120]},
    seeds=1,
    labels={"predicted": r"$\log \alpha$, predicted", "measured": r"$\log \alpha$ on draws"},
    tiny={"arguments": {"dimension": 200}, "grid": {"samples": [50, 100]}},
    printed={
        "arguments": {"dimension": 1000, "draws": 40, "error": 0.025},
        "grid": {"samples": [75, 100, 125, 150, 200]},
    },
)


def check(dataset: Dataset, thresholds: Dataset) -> Evidence:
    """Errors, their spread and their intervals on Gaussian inputs, other inputs, thresholds."""
    own = dataset.sel(inputs="Gaussian")
    total, inside = int(own["count"].sum()), int(own.inside.sum())
    shifts = np.ravel(own["shift"] / own.deviation)
    error = within(shifts.mean(), 0.0, MEAN + RARE_NORMAL / math.sqrt(total))
    spread = at_most(apart(own.spread, own.deviation), SPREAD)
    covered = share_at_least(inside, total, 0.75)
    signs = dataset.sel(inputs="signs")
    universal = float((signs["shift"] / signs.deviation).mean())
    margin = MEAN + RARE_NORMAL / math.sqrt(int(signs["count"].sum()))
    tails = dataset.sel(inputs="heavy tails")
    scale = at_most(float(np.abs(thresholds.measured - thresholds.predicted).max()), SCALE)
    flat = float(thresholds.predicted.min())
    return Evidence(
        ran=f"{total} draws of sparse regressions with {SPIKES} planted weights and noise"
        f" {NOISE}, $N$ = {own.samples.values.tolist()}, predictors by certified solvers;"
        f" thresholds at {thresholds.samples.size} numbers of samples",
        checks={
            "error: distance of the mean log from the prediction, in predicted deviations, mean"
            " over settings": error,
            "spread of the log of the error over the predicted one, mean |log ratio|": spread,
            "share of draws in the interval of nine of ten": covered,
            "signs in place of Gaussian inputs: the same distance": within(universal, 0.0, margin),
            r"largest scale that recovers: worst distance of $\log \alpha$, median of draws": scale,
        },
        controls={
            r"the error of least $\ell_1$ norm for every scale": error.control(
                float((own.to_sparse / own.deviation).mean())
            ),
            r"the error of least $\ell_2$ norm for every scale": error.control(
                float((own.to_flat / own.deviation).mean())
            ),
            "the spread of $N$ Gaussian residuals": spread.control(
                apart(own.spread, np.sqrt(2 / own.samples))
            ),
            "intervals of this spread": covered.control(
                upper_share(int(own.inside_rows.sum()), total)
            ),
            "one threshold for all numbers of samples": scale.control(
                float(np.abs(thresholds.measured - flat).max())
            ),
        },
        findings=[
            "on rows of heavy tails (Student's t of three degrees, one size a row) errors are"
            f" {float(np.exp(tails['shift'].min())):.2g} to"
            f" {float(np.exp(tails['shift'].max())):.2g} times the prediction:"
            " it is for inputs whose rows have equal sizes"
        ],
    )


def draw(dataset: Dataset, thresholds: Dataset) -> Figure:
    """Measured against predicted errors with the predicted intervals, and the thresholds."""
    picture, (a, b) = sheet_of(dataset, widths=(6.5, 5.5), height=4.8)
    names = {"Gaussian": "Gaussian inputs", "signs": "random signs", "heavy tails": "heavy tails"}
    for k, inputs in enumerate(INPUTS):
        own = dataset.sel(inputs=inputs).stack(setting=("law", "samples", "seed"))
        own = own.sortby("predicted")
        if k == 0:
            a.vlines(own.predicted, own.low, own.high, color=CYCLE[k], alpha=0.35, linewidth=6)
            a.collections[-1].set_label("nine of ten, predicted")
        hollow = "none" if k else "full"
        a.plot(own.predicted, own.measured, "os^"[k], color=CYCLE[k], fillstyle=hollow)
        a.lines[-1].set_label(names[inputs])
    ends = [float(dataset.predicted.min()), float(dataset.predicted.max())]
    a.plot(ends, ends, "--", color=BLACK, linewidth=1.2, label="as predicted")
    a.set(xscale="log", yscale="log", title="population error")
    a.set(xlabel="predicted before the data", ylabel="median of the draws")
    a.legend()
    scales = thresholds.mean("seed") / math.log(10)
    b.plot(scales.samples, scales.predicted, "-", color=BLACK, label="predicted")
    b.plot(scales.samples, scales.measured, "o", color=CYCLE[0], label="median of the draws")
    b.set(xlabel="samples $N$", ylabel=r"$\log_{10} \alpha$", title="largest scale that recovers")
    b.legend()
    return picture


experiment = Experiment(
    "beyond-population",
    statement=r"For Gaussian inputs two scalar equations give the population error of the minimiser"
    r" of $Q_\alpha$ at every scale and depth, the interval that holds nine of ten draws, and the"
    r" largest scale that recovers a sparse truth, before there are any data.",
    place="ours; Gaussian comparison of Thrampoulidis et al. 2015",
    study=(study, scales),
    check=check,
    draw=draw,
    scope=OWN_RUNS,
    seconds=3,
)
