"""The test error of classifiers before the data: three equations, against certified margins."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from penchant import L1, L2, Q, max_margin
from penchant.forecasts import PopulationMargin, population_margin, separable_samples
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
from penchant.solvers import separation
from penchant_papers.beyond import OWN_RUNS

SPIKES, SIZE, FLIPS = 5, 1.5, 0.1
NINE_OF_TEN = 1.645  # deviations on either side
RARE_NORMAL = 3.3  # deviations that a mean is away by chance once in a thousand draws
LAWS = {
    "l1": L1(),
    r"$D = 2$, $\alpha = 0.1$": Q(2, alpha=0.1),
    r"$D = 2$, $\alpha = 0.15$": Q(2, alpha=0.15),
    r"$D = 3$, $\alpha = 0.35$": Q(3, alpha=0.35),
    "l2": L2(),
}
LABELS: dict[str, dict[str, Any]] = {
    "sign": {},
    "flipped": {"flips": FLIPS},
    "logistic": {"labels": "logistic"},
}
NETS = list(LAWS)[1:4]
MEAN, SPREAD = 0.15, 0.3  # what the first order leaves open, in deviations and as a log ratio
SUPPORT = 0.03  # one support vector in the smallest setting
EDGE = 0.05  # of log N at the threshold, what a dimension of forty leaves open


def truth(dimension: int) -> Array:
    weights = np.zeros(dimension)
    weights[:SPIKES] = SIZE
    return weights


LENGTH = SIZE * math.sqrt(SPIKES)


def drawn_labels(kind: str, outputs: Array, rng: np.random.Generator) -> Array:
    if kind == "logistic":
        return np.where(rng.random(len(outputs)) < 1 / (1 + np.exp(-outputs)), 1.0, -1.0)
    flipped = rng.random(len(outputs)) < (FLIPS if kind == "flipped" else 0.0)
    return np.where(flipped, -1.0, 1.0) * np.sign(outputs)


def rows(inputs: str, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Samples with independent features of variance one; signs stand off the truth alone."""
    X = rng.normal(size=shape)
    return X if inputs == "Gaussian" else np.hstack([X[:, :SPIKES], np.sign(X[:, SPIKES:])])


def missed(kind: str, beta: Array) -> float:
    """The share of new Gaussian samples with another label than the sign of <x, beta>."""
    planted = truth(len(beta))
    cosine = float(beta @ planted / np.linalg.norm(beta) / LENGTH)
    if kind != "logistic":
        flips = FLIPS if kind == "flipped" else 0.0
        return flips + (1 - 2 * flips) * math.acos(cosine) / math.pi
    angles = np.linspace(0.0, 2 * math.pi, 721)[:-1]  # of (<x, b*>, rest), whose length is Rayleigh
    lengths = np.sqrt(-2 * np.log1p(-(np.arange(400) + 0.5) / 400))
    wrong = 1 / (1 + np.exp(LENGTH * np.outer(lengths, np.cos(angles))))
    along = cosine * np.cos(angles) + math.sqrt(1 - cosine**2) * np.sin(angles)
    return float(np.where(along > 0, wrong, 1 - wrong).mean())


@functools.lru_cache(maxsize=64)
def predicted(law: str, kind: str, samples: int, dimension: int) -> PopulationMargin:
    return population_margin(
        LAWS[law], samples=samples, dimension=dimension, truth=truth(dimension), **LABELS[kind]
    )


def fitted_labels(kind: str, samples: int, dimension: int) -> float:
    """The error by the equations of least squares: labels as targets, least l2 norm."""
    v = np.linspace(-9, 9, 4001)
    right = {"sign": (v > 0) * 1.0, "flipped": np.where(v > 0, 1 - FLIPS, FLIPS)}
    right["logistic"] = 1 / (1 + np.exp(-LENGTH * v))
    slope = float(np.trapezoid(np.exp(-(v**2) / 2) * v * (2 * right[kind] - 1), v))
    slope /= math.sqrt(2 * math.pi)
    share = samples / dimension
    beta = np.zeros(dimension)
    beta[:SPIKES] = share * slope / math.sqrt(SPIKES)
    rest = slope**2 * share * (1 - share) + (1 - slope**2) * share / (1 - share)
    beta[SPIKES] = math.sqrt(rest)
    return missed(kind, beta)


def cell(
    law: str, samples: int, kind: str, seed: int, *, dimension: int, draws: int
) -> dict[str, Any]:
    """Draws at one setting, and how the logarithms of their errors lie around the prediction."""
    own = predicted(law, kind, samples, dimension)
    seeds = [seed, samples, list(LAWS).index(law), list(LABELS).index(kind)]
    solved: dict[str, list[tuple[float, int]]] = {"Gaussian": [], "signs": []}
    for inputs, errors in solved.items():
        many = draws if inputs == "Gaussian" else math.ceil(draws / 5)
        for own_seed in np.random.SeedSequence(seeds).spawn(many):
            rng = np.random.default_rng(own_seed)
            X = rows(inputs, rng, (samples, dimension))
            solution = max_margin(
                X, drawn_labels(kind, X @ truth(dimension), rng), LAWS[law], throw=False
            )
            if solution.outcome.ok:  # the others, inseparable data, are counted as missing
                support = int((solution.dual > 1e-8 * solution.dual.max()).sum())
                errors.append((missed(kind, solution.beta), support))
    logs = np.log([error for error, _ in solved["Gaussian"]])
    signs = np.log([error for error, _ in solved["signs"]])
    deviation = math.log(own.high / own.error) / NINE_OF_TEN
    away = np.abs(logs - math.log(own.error)) / NINE_OF_TEN
    flat = predicted("l2", kind, samples, dimension)
    of_share = math.sqrt((1 - own.error) / (own.error * samples))
    return {
        "predicted": own.error,
        "low": own.low,
        "high": own.high,
        "measured": float(np.exp(np.median(logs))),
        "count": len(logs),
        "asked": draws,
        "shift": float(logs.mean() - math.log(own.error)),
        "deviation": deviation,
        "spread": float(logs.std(ddof=1)),
        "of_share": of_share,
        "inside": int((away < deviation).sum()),
        "inside_entries": int((away < 1 / math.sqrt(samples * dimension)).sum()),
        "signs": float(signs.mean() - math.log(own.error)),
        "signs_count": len(signs),
        "support": float(np.mean([support for _, support in solved["Gaussian"]])),
        "support_predicted": own.support,
        "to_flat": float(logs.mean() - math.log(flat.error)),
        "to_sparse": float(logs.mean() - math.log(predicted("l1", kind, samples, dimension).error)),
        "to_fitted": float(logs.mean() - math.log(fitted_labels(kind, samples, dimension))),
    }


def edge(kind: str, seed: int, *, dimension: int, draws: int) -> dict[str, Any]:
    """The most first rows of a draw that are separable, against the predicted number."""
    planted = truth(dimension)
    limit = separable_samples(dimension=dimension, truth=planted, **LABELS[kind])
    logs = []
    for own_seed in np.random.SeedSequence([seed, list(LABELS).index(kind)]).spawn(draws):
        rng = np.random.default_rng(own_seed)
        X = rng.normal(size=(math.ceil(2.5 * limit), dimension))
        y = drawn_labels(kind, X @ planted, rng)
        low, high = dimension // 2, len(X)  # separable with half as many, never with the last
        while high - low > 1:
            middle = (low + high) // 2
            fits = separation(X[:middle], y[:middle]).separable
            low, high = (middle, high) if fits else (low, middle)
        logs.append(math.log(low + 0.5))
    return {
        "predicted": limit,
        "measured": float(np.exp(np.mean(logs))),
        "error": float(np.std(logs, ddof=1) / math.sqrt(draws)),
        "cover": 2.0 * dimension,
    }


study = sized(
    "beyond-population-margin",
    title="The test error of classifiers is known before the data",
    function=cell,
    arguments={"dimension": 120, "draws": 14},
    grid={"law": list(LAWS), "samples": [40, 64], "kind": list(LABELS)},
    seeds=1,
    labels={
        "predicted": "population error, predicted",
        "measured": "population error, median of the draws",
        "deviation": "deviation of its logarithm, predicted",
        "spread": "deviation of its logarithm over draws",
        "support": "support vectors, mean of the draws",
        "support_predicted": "support vectors, predicted",
    },
    draw={"x": "samples", "colour": "measured", "log": True},
    tiny={"arguments": {"draws": 16}, "grid": {"law": NETS, "samples": [48]}},
    printed={
        "arguments": {"dimension": 400, "draws": 50},
        "grid": {"samples": [60, 120, 240]},
    },
)
edges = sized(
    "beyond-population-margin-edges",
    title="The number of samples from which on data are not separable",
    function=edge,
    arguments={"dimension": 40, "draws": 12},
    grid={"kind": ["flipped", "logistic"]},
    seeds=1,
    labels={"predicted": "samples, predicted", "measured": "samples, mean of the draws"},
    tiny={"arguments": {"draws": 10}},
    printed={"arguments": {"dimension": 100, "draws": 40}},
)


def check(dataset: Dataset, thresholds: Dataset) -> Evidence:
    """Errors, their spread, intervals, support vectors and thresholds of separability."""
    total, inside = int(dataset["count"].sum()), int(dataset.inside.sum())
    asked = int(dataset.asked.sum())
    shifts = (dataset["shift"] / dataset.deviation).mean()
    error = within(float(shifts), 0.0, MEAN + RARE_NORMAL / math.sqrt(total))
    spread = at_most(apart(dataset.spread, dataset.deviation), SPREAD)
    covered = share_at_least(inside, total, 0.75)
    nets = dataset.sel(law=NETS)
    signs = float((dataset.signs / dataset.deviation).mean())
    margin = MEAN + RARE_NORMAL / math.sqrt(int(dataset.signs_count.sum()))
    support = at_most(apart(dataset.support, dataset.support_predicted), SUPPORT)
    allowed = EDGE + RARE_NORMAL * float(np.sqrt((thresholds.error**2).mean()))
    worst = np.abs(np.log(thresholds.measured / thresholds.predicted)).max()
    limit = at_most(float(worst), allowed)
    return Evidence(
        ran=f"{total} draws of classifications with {SPIKES} planted weights at"
        f" {dataset.support.size} settings, labels by sign, flipped with probability {FLIPS} and"
        " logistic, predictors by certified solvers",
        premises={"draws are separable": (total > 0.95 * asked, total / asked)},
        checks={
            "error: distance of the mean log from the prediction, in predicted deviations, mean"
            " over settings": error,
            "spread of the log of the error over the predicted one, mean |log ratio|": spread,
            "share of draws in the interval of nine of ten": covered,
            "random signs off the truth, in deviations": within(signs, 0.0, margin),
            "support vectors over their prediction, mean |log ratio|": support,
            "samples that are separable: worst distance of $\\log N$": limit,
        },
        controls={
            r"the error of least $\ell_1$ norm for every net": error.control(
                float((nets.to_sparse / nets.deviation).mean())
            ),
            r"the error of least $\ell_2$ norm for every net": error.control(
                float((nets.to_flat / nets.deviation).mean())
            ),
            "the equations of least squares: labels as targets": error.control(
                float((dataset.to_fitted / dataset.deviation).mean())
            ),
            "the spread of a share of $N$ samples": spread.control(
                apart(dataset.of_share, dataset.deviation)
            ),
            "intervals of a mean over all $N d$ entries": covered.control(
                upper_share(int(dataset.inside_entries.sum()), total)
            ),
            "every sample is a support vector": support.control(
                apart(dataset.samples, dataset.support_predicted)
            ),
            "Cover's $2 d$ for random labels": limit.control(
                float(np.abs(np.log(thresholds.measured / thresholds.cover)).max())
            ),
        },
    )


def apart(measured: Any, expected: Any) -> float:
    """The mean distance of two sets of numbers, as a log ratio."""
    return float(np.abs(np.log(measured / expected)).mean())


def draw(dataset: Dataset, thresholds: Dataset) -> Figure:
    """Measured against predicted errors with the predicted intervals, and support vectors."""
    picture, (a, b) = sheet_of(dataset, widths=(6, 6), height=4.8)
    for k, kind in enumerate(LABELS):
        own = dataset.sel(kind=kind).stack(setting=("law", "samples", "seed"))
        own = own.sortby("predicted")
        a.vlines(own.predicted, own.low, own.high, color=CYCLE[k], alpha=0.3, linewidth=5)
        a.plot(own.predicted, own.measured, "os^"[k], color=CYCLE[k], label=f"{kind} labels")
        b.plot(own.support_predicted, own.support, "os^"[k], color=CYCLE[k])
    for axes, one in ((a, dataset.predicted), (b, dataset.support_predicted)):
        ends = [float(one.min()), float(one.max())]
        axes.plot(ends, ends, "--", color=BLACK, linewidth=1.2, label="as predicted")
    a.plot([], [], color=BLACK, alpha=0.3, linewidth=5, label="nine of ten, predicted")
    a.set(title="share of new labels that are missed")
    a.set(xlabel="predicted before the data", ylabel="median of the draws")
    a.legend()
    b.set(title="support vectors", xlabel="predicted", ylabel="mean of the draws")
    return picture


experiment = Experiment(
    "beyond-population-margin",
    statement=r"For Gaussian inputs three scalar equations give the population error of the"
    r" $Q_\alpha$ max margin predictor, its number of support vectors, the interval that holds nine"
    r" of ten draws, and the number of samples from which on noisy labels are not separable, before"
    r" there are any data.",
    place="ours; Montanari et al. 2019 for $\\ell_2$, Liang and Sur 2022 for $\\ell_1$",
    study=(study, edges),
    check=check,
    draw=draw,
    scope=OWN_RUNS,
    seconds=6,
)
