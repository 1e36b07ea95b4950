"""How large the start may be for the planted sparse predictor to be recovered.

Figures 1 (c) and 3 (c) show this at depth 2 and at several depths. The samples of one
seed are nested: a smaller set is the beginning of the `drawn` ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penchant import L1, L2, interpolate
from penchant.lab import Array, Axes, DataArray, Dataset, Sizes, sized
from penchant.plotting import BLUE
from penchant.problems import sparse_regression
from penchant.solvers import recovery_scale

DRAWN = ("drawn", "dimension", "sparsity", "noise")  # arguments that say what is drawn
LEVEL = 0.025  # the population error that counts as recovery


def planted(
    sample_size: int, drawn: int, dimension: int, sparsity: int, noise: float, seed: int
) -> tuple[Array, Array, Array]:
    """X, y and the truth of a sparse regression problem: the first of the samples drawn."""
    problem = sparse_regression(
        drawn, dimension=dimension, sparsity=sparsity, noise=noise, seed=seed
    )
    assert problem.truth is not None
    return problem.X[:sample_size], problem.y[:sample_size], problem.truth


def population_error(beta: Array, truth: Array) -> float:
    """E (<beta - truth, x>)^2 for x ~ N(0, I), exactly: the squared distance to the truth."""
    return float(np.sum((beta - truth) ** 2))


def falling_grid(log10_mu_range: Sequence[float], per_decade: int) -> Array:
    """log alpha^D from the largest to the smallest scale, dense above and wider below.

    The steps grow by 5 % each, from a first one of 1/per_decade: deep down the error changes
    with the logarithm of the logarithm of the scale.
    """
    high, low = log10_mu_range
    first, growth = 1 / per_decade, 1.05
    count = np.ceil(np.log1p((high - low) * (growth - 1) / first) / np.log(growth))
    depths = first * (growth ** np.arange(count + 1) - 1) / (growth - 1)
    return np.log(10) * np.maximum(high - depths, low)


def largest_scale(
    depth: int,
    sample_size: int,
    seed: int,
    *,
    drawn: int,
    dimension: int,
    sparsity: int,
    noise: float,
    log10_mu_range: Sequence[float],
    per_decade: int,
    level: float = LEVEL,
) -> dict[str, float]:
    """`log_mu`, the largest log alpha^D from which training recovers; -inf if there is none."""
    X, y, truth = planted(sample_size, drawn, dimension, sparsity, noise, seed)
    falling = falling_grid(log10_mu_range, per_decade)
    return {"log_mu": recovery_scale(X, y, truth, depth, falling, error=level)}


def least_norms(
    sample_size: int, seed: int, *, drawn: int, dimension: int, sparsity: int, noise: float
) -> dict[str, float]:
    """Population error and norm of the interpolating predictors of least l1 and of least l2 norm.

    NaN for l1 where no solution was found.
    """
    X, y, truth = planted(sample_size, drawn, dimension, sparsity, noise, seed)
    row: dict[str, float] = {}
    for order, norm in ((1, L1()), (2, L2())):
        end = interpolate(X, y, norm, throw=False)
        beta = end.beta if end.outcome.ok else np.full(dimension, np.nan)
        row[f"l{order}_error"] = population_error(beta, truth)
        row[f"l{order}_norm"] = float(np.linalg.norm(beta, order))
    return row


LABELS = {
    "alpha": r"initial scale $\alpha$",
    "depth": "depth $D$",
    "test_error": r"population error $|\beta - \mathrm{truth}|^2$",
    "sample_size": "number of samples $N$",
    "log_mu": r"log of the largest $\alpha^D$ with population error ≤ 0.025 ($-\infty$: there is "
    "none)",
}


def scale_study(name: str, title: str, **given: Any) -> Sizes:
    """A study of the largest scale that recovers, over the number of samples."""
    look = {"x": "sample_size", "colour": "log_mu"}
    return sized(name, title=title, function=largest_scale, labels=LABELS, draw=look, **given)


def l1_study(name: str, scales: Sizes) -> Sizes:
    """A study of the predictors of least l1 and l2 norm for the draws of a study of scales."""

    def words(given: Mapping[str, Any]) -> dict[str, Any]:
        drawn = {k: v for k, v in given.get("arguments", {}).items() if k in DRAWN}
        grid = {"sample_size": given["grid"]["sample_size"]}
        return {
            "arguments": drawn,
            "grid": grid,
            "seeds": given.get("seeds", scales.quick["seeds"]),
        }

    title = "How many samples the predictor of least ℓ₁ norm needs"
    look = {"x": "sample_size", "colour": "l1_error"}
    quick, others = words(scales.quick), {s: words(o) for s, o in scales.others.items()}
    return sized(
        name, title=title, function=least_norms, labels=LABELS, draw=look, **quick, **others
    )


def medians(scales: Dataset) -> DataArray:
    """The median log alpha^D over the seeds; NaN where no scale satisfies half of them."""
    with np.errstate(invalid="ignore"):  # the mean of two middle values of -inf
        median = scales.log_mu.median("seed")
    return median.where(np.isfinite(median))


def needed(errors: DataArray, level: float = LEVEL) -> float:
    """The fewest samples with which half of the seeds have an error of at most the level."""
    passed = np.flatnonzero(errors.median("seed").values <= level)
    return float(errors.sample_size.values[passed[0]]) if len(passed) else np.nan


def reached(recovered: DataArray, least: Dataset) -> Array:
    """Of the sample sizes from which l1 recovers a problem, the share from which others do too.

    One number per problem; problems that l1 never recovers have none.
    """
    known = least.l1_error <= LEVEL
    shares = (recovered & known).sum("sample_size") / known.sum("sample_size")
    return np.asarray(shares.values[np.isfinite(shares.values)])


def windows(least: Dataset) -> tuple[Array, Array]:
    """Sample sizes from what l1 needs to a third more, and from three quarters more on."""
    sizes, need = least.sample_size.values, needed(least.l1_error)
    return sizes[(sizes >= need) & (sizes < 4 / 3 * need)], sizes[sizes >= 1.75 * need]


def threshold_line(axes: Axes, samples: float) -> None:
    """The dashed line at the samples that the l1 predictor needs, named in the legend."""
    text = r"samples needed by $\ell_1$"
    axes.axvline(samples, color=BLUE, linestyle="--", linewidth=1.4, label=text)
    axes.set_xlabel("number of samples $N$")


def axis_of_powers(axes: Axes, name: str) -> None:
    """A y axis for log10 of a scale, with powers of ten at its ticks.

    It is linear around 1 and logarithmic in the exponent further down, because one curve may
    reach 10^-40 where the others stay above 10^-5.
    """
    axes.set_yscale("asinh", linear_width=2.0)
    low, high = axes.get_ylim()
    ticks = [tick for tick in (2, 0, -1, -2, -3, -5, -10, -20, -40, -100) if low < tick < high]
    axes.set_yticks(ticks, [rf"$10^{{{tick}}}$" for tick in ticks])
    axes.set_ylabel(name)
