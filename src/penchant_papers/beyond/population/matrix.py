"""The test error of matrices before the measurements, against certified solutions."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import scipy.fft

from penchant import Q, interpolate
from penchant.forecasts import population_error, population_matrix_error
from penchant.lab import Array, Dataset, Evidence, Experiment, Figure, at_most, sized, within
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant.regularizers import Frobenius, Nuclear, Schatten
from penchant_papers.beyond import OWN_RUNS

NOISE = 0.1
LAWS = {
    "nuclear": Nuclear(),
    r"$D = 2$, $\alpha = 0.1$": Schatten(Q(2, alpha=0.1)),
    r"$D = 2$, $\alpha = 0.3$": Schatten(Q(2, alpha=0.3)),
    r"$D = 3$, $\alpha = 0.3$": Schatten(Q(3, alpha=0.3)),
    "Frobenius": Frobenius(),
}
NETS = list(LAWS)[1:4]
RANKS = [1, 2, 3]
RARE_NORMAL = 3.3  # deviations that a mean is away by chance once in a thousand draws
MEAN = 0.1  # of the log of the error, what twelve rows and the draws of the expectation leave open


def planted(dimension: int, rank: int) -> Array:
    """A matrix of equal singular values and Frobenius norm one; Gaussian rows see no basis."""
    waves = scipy.fft.dct(np.eye(dimension), norm="ortho", axis=0)
    return waves[:, :rank] @ waves[:, rank : 2 * rank].T / math.sqrt(rank)


@functools.lru_cache(maxsize=64)
def predicted(law: str, samples: int, rank: int, dimension: int) -> float:
    truth = planted(dimension, rank)
    return population_matrix_error(LAWS[law], samples=samples, truth=truth, noise=NOISE)


@functools.lru_cache(maxsize=64)
def entrywise(law: str, samples: int, rank: int, dimension: int) -> float:
    """The prediction if entries, not singular values, were what the regularizer sums."""
    truth = planted(dimension, rank).ravel()
    scalar = LAWS[law].law
    size = len(truth)
    return population_error(scalar, samples=samples, dimension=size, truth=truth, noise=NOISE).error


def cell(
    law: str, samples: int, rank: int, seed: int, *, dimension: int, draws: int
) -> dict[str, Any]:
    """Draws at one setting, and the mean of the logarithms of their errors."""
    truth, logs = planted(dimension, rank), []
    seeds = [seed, samples, rank, list(LAWS).index(law)]
    for own_seed in np.random.SeedSequence(seeds).spawn(draws):
        rng = np.random.default_rng(own_seed)
        measurements = rng.normal(size=(samples, dimension, dimension))
        y = np.tensordot(measurements, truth, axes=2) + NOISE * rng.normal(size=samples)
        miss = interpolate(measurements, y, LAWS[law]).matrix - truth
        logs.append(math.log((miss**2).sum()))
    setting = (samples, rank, dimension)
    return {
        "predicted": predicted(law, *setting),
        "measured": float(np.exp(np.mean(logs))),
        "error": float(np.std(logs, ddof=1) / math.sqrt(draws)),
        "nuclear": predicted("nuclear", *setting),
        "frobenius": predicted("Frobenius", *setting),
        "entrywise": entrywise(law, *setting),
    }


study = sized(
    "beyond-population-matrix",
    title="The test error of matrices is known before the measurements",
    function=cell,
    arguments={"dimension": 12, "draws": 12},
    grid={"law": list(LAWS), "samples": [50, 80], "rank": [1, 2]},
    seeds=1,
    labels={
        "predicted": "population error, predicted",
        "measured": "population error, geometric mean of the draws",
        "error": "standard error of its logarithm",
    },
    draw={"x": "samples", "colour": "measured", "log": True},
    tiny={"arguments": {"draws": 10}, "grid": {"law": NETS, "samples": [60], "rank": [1]}},
    printed={
        "arguments": {"dimension": 20, "draws": 50},
        "grid": {"samples": [140, 220], "rank": RANKS},
    },
)


def check(dataset: Dataset) -> Evidence:
    """Mean distances of the logarithms, over settings."""
    logs = np.log(dataset.measured)
    away = logs - np.log(dataset.predicted)
    chance = RARE_NORMAL * float(np.sqrt((dataset.error**2).sum())) / away.size
    mean = within(float(away.mean()), 0.0, MEAN + chance)
    each = math.sqrt(2 / math.pi) * float(dataset.error.mean())  # of a mean distance, by chance
    size = at_most(float(np.abs(away).mean()), MEAN + each + chance)
    nets = dataset.sel(law=NETS)
    values = np.log(nets.measured)
    return Evidence(
        ran=f"Gaussian measurements of matrices of rank {dataset['rank'].values.tolist()} at"
        f" {away.size} settings, noise {NOISE}, matrices by certified solvers",
        checks={
            "log of the error, geometric mean of draws, less its prediction: mean": mean,
            "mean absolute value": size,
        },
        controls={
            "the nuclear norm for every net": mean.control(
                float((values - np.log(nets.nuclear)).mean())
            ),
            "the Frobenius norm for every net": mean.control(
                float((values - np.log(nets.frobenius)).mean())
            ),
            "the equations of entries in place of singular values": size.control(
                float(np.abs(values - np.log(nets.entrywise)).mean())
            ),
        },
    )


def draw(dataset: Dataset) -> Figure:
    """Measured against predicted errors with two standard errors."""
    picture, (axes,) = sheet_of(dataset, widths=(6.5,), height=4.8)
    for k, law in enumerate(LAWS):
        if law not in dataset.law.values:
            continue
        own = dataset.sel(law=law).stack(setting=("samples", "rank", "seed"))
        spread = [own.measured * (1 - np.exp(-2 * own.error)), None]
        spread[1] = own.measured * (np.exp(2 * own.error) - 1)
        axes.errorbar(
            own.predicted, own.measured, spread, fmt="os^Dv"[k], color=CYCLE[k], label=law
        )
    ends = [float(dataset.predicted.min()), float(dataset.predicted.max())]
    axes.plot(ends, ends, "--", color=BLACK, linewidth=1.2, label="as predicted")
    axes.set(xscale="log", yscale="log", xlabel="population error, predicted")
    axes.set(ylabel="mean of the draws, two standard errors")
    axes.legend()
    return picture


experiment = Experiment(
    "beyond-population-matrix",
    statement=r"For Gaussian measurements two equations with the prox of the singular values give"
    r" the population error of the matrix of least Schatten $Q_\alpha$, before there are any.",
    place="ours; Gaussian comparison of Thrampoulidis et al. 2015",
    study=study,
    check=check,
    draw=draw,
    scope=OWN_RUNS,
    seconds=5,
)
