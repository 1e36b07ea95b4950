"""Figure 1: the scale of the start decides between l2 and l1, and with it the generalization."""

from __future__ import annotations

import json

import numpy as np

from penchant.lab import (
    RARE,
    Array,
    Axes,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    margin_of_mean,
    sized,
    within,
)
from penchant.plotting import BLACK, BLUE, GREY, RED, sheet_of
from penchant_papers.woodworth2020.figures import recovery

SAMPLES, DIMENSION, NOISE = 100, 1000, 0.1
PLANTED = {"dimension": DIMENSION, "sparsity": 5, "noise": NOISE}
PLANTED_TINY = {"dimension": 80, "sparsity": 2}
# dense where the predictor turns from dense to sparse
ALPHAS = [10.0, 1.0, 0.3, 0.2, 0.1, 0.06, 0.04, 0.02, 0.01, 3e-3, 1e-3, 1e-6]
training = sized(
    "W-F1",
    title="Small starts find the sparse predictor, large starts the dense one",
    problem={"is": "sparse_regression", "samples": SAMPLES, **PLANTED},
    model={"is": "DiagonalNet", "depth": 2},
    method={"is": "DualFlow", "rtol": 1e-6},
    stop={"is": "Interpolated", "relative": 1e-10},
    record={"is": "LogSpaced", "per_decade": 2},
    grid={"model.alpha": ALPHAS},
    seeds=1,
    final=["test_error", "norm_l1", "norm_l2"],
    trajectory=["t", "test_error"],
    labels=recovery.LABELS,
    draw={"x": "alpha", "colour": "test_error"},
    tiny={"problem": {"samples": 30, **PLANTED_TINY}},
    printed={
        "method": {"rtol": 1e-8},
        "stop": {"relative": 1e-14},
        "grid": {"model.alpha": {"logspace": [1.0, -6.0, 141]}},
    },
)
ends = sized(
    "W-F1-ends",
    title="The predictors of least ℓ₁ and of least ℓ₂ norm for the same data",
    function=recovery.least_norms,
    arguments={"sample_size": SAMPLES, "drawn": SAMPLES, **PLANTED},
    seeds=1,
    tiny={"arguments": {"sample_size": 30, "drawn": 30, **PLANTED_TINY}},
)
scales = recovery.scale_study(
    "W-F1c",
    "More samples allow larger starts: the largest α that still generalizes",
    arguments={
        "depth": 2,
        "drawn": 120,
        **PLANTED,
        "dimension": 300,
        "log10_mu_range": [0.0, -40.0],
        "per_decade": 3,
    },
    grid={"sample_size": [36, 42, 48, 54, 62, 72, 90, 120]},
    seeds=20,
    tiny={"grid": {"sample_size": [42, 48, 54, 62, 90, 120]}},
    printed={
        "arguments": {
            "drawn": 300,
            "dimension": DIMENSION,
            "log10_mu_range": [0.0, -60.0],
            "per_decade": 4,
        },
        "grid": {
            "sample_size": [30, 40, *range(44, 60, 2), *range(60, 100, 5), 100, 130, 170, 230, 300]
        },
        "seeds": 50,
    },
)
least = recovery.l1_study("W-F1-l1", scales)
MODERATE = -4.0  # log10 of an alpha^2 that is small, but not exponentially
MOST = 0.5  # in most problems: in more than half, also at the bound of chance
MORE = 0.25  # clearly more problems: a quarter of all, also at the bound of chance


def curves(training: Dataset, ends: Dataset) -> Dataset:
    """Population error and excess norms along alpha, for the one problem of (a) and (b)."""
    rows, end = training.isel(seed=0), ends.isel(seed=0)
    return rows.assign(
        excess_l1=rows.norm_l1 - end.l1_norm, excess_l2=rows.norm_l2 - end.l2_norm
    ).sortby("alpha", ascending=False)


def easier(recovered: DataArray, least: Dataset) -> Array:
    """How much more often a problem is recovered with more samples than l1 needs, by problem."""
    near, far = recovery.windows(least)
    shares = [recovered.sel(sample_size=sizes).mean("sample_size") for sizes in (near, far)]
    return np.asarray((shares[1] - shares[0]).values)


def missed_by_l2(ends: Dataset) -> float:
    """The least error of the l2 predictor that chance allows, over that of the zero predictor.

    X has N random directions of d. What they miss of any truth is the square of its projection
    onto the others, Beta((d - N)/2, N/2); noise adds to it.
    """
    from scipy.stats import beta

    given = json.loads(ends.attrs["description"])["arguments"]
    N, d = given["sample_size"], given["dimension"]
    return float(beta.ppf(RARE, (d - N) / 2, N / 2))


def check(training: Dataset, ends: Dataset, scales: Dataset, least: Dataset) -> Evidence:
    """What section 4 says about the error, both norms and the largest alpha."""
    rows, end = curves(training, ends), ends.isel(seed=0)
    error = rows.test_error.values
    fall = float(np.ptp(error))
    excess_l1 = (rows.excess_l1 / end.l1_norm).values
    excess_l2 = (rows.excess_l2 / end.l2_norm).values
    l1_needs = recovery.needed(least.l1_error)
    gained = easier(scales.log_mu >= MODERATE * np.log(10), least)
    idle = easier(least.l2_error <= recovery.LEVEL, least)
    some = recovery.reached(np.isfinite(scales.log_mu), least)
    dull = recovery.reached(least.l2_error <= recovery.LEVEL, least)
    improves = within(max(np.diff(error).max(), 0.0) / fall, tolerance=0.01)
    dense = at_least(error[0], missed_by_l2(ends))
    rich = within(excess_l1[-1], tolerance=0.01)
    kernel = within(excess_l2[0], tolerance=1e-4)
    edge = at_least(some.mean() - margin_of_mean(some), MOST)
    fewer = at_least(gained.mean() - margin_of_mean(gained), MORE)
    return Evidence(
        ran=f"one sparse problem trained by gradient flow from {len(error)} scales; the largest"
        f" scale that recovers, for {scales.sizes['sample_size']} sample sizes and"
        f" {scales.sizes['seed']} seeds, along the path of minimisers of Q",
        checks={
            "(a) largest rise of the population error as alpha decreases,"
            " over its total fall": improves,
            "(a) population error at the largest alpha, over that of the zero predictor": dense,
            "(b) l1 norm in excess of the least, at the smallest alpha": rich,
            "(b) l2 norm in excess of the least, at the largest alpha": kernel,
            "(c) share of the sample sizes from which l1 recovers where some start does, mean over"
            " the problems (0.999 lower limit)": edge,
            f"(c) share that alpha^2 = {10**MODERATE:g} recovers with 1.75 times the samples that"
            " l1 needs or more, minus that with up to a third more (0.999 lower limit)": fewer,
        },
        controls={
            "(a) generalization improves as alpha grows": improves.control(
                -np.diff(error).min() / fall
            ),
            "(a) the same at the smallest alpha": dense.control(error[-1]),
            "(b) l2 in place of l1 in the rich limit": rich.control(excess_l1[0]),
            "(b) l1 in place of l2 in the kernel regime": kernel.control(excess_l2[-1]),
            "(c) l2 in place of small starts (0.999 upper limit)": edge.control(
                dull.mean() + margin_of_mean(dull)
            ),
            "(c) more samples help l2 as much (0.999 upper limit)": fewer.control(
                idle.mean() + margin_of_mean(idle)
            ),
        },
        findings=[
            f"half of the l1 predictors recover the truth from {l1_needs:g} samples; three quarters"
            f" more samples add {gained.mean():.0%} of the problems to those that a start of"
            f" alpha^2 = {10**MODERATE:g} recovers"
        ],
    )


def draw(training: Dataset, ends: Dataset, scales: Dataset, least: Dataset) -> Figure:
    """Error, excess norms and the largest scale that generalises, in three panels."""
    rows = curves(training, ends)
    picture, (a, b, c) = sheet_of(training, widths=(4.4, 4.4, 4.4), height=4.3)
    a.plot(rows.alpha, rows.test_error, color=BLACK)
    a.set_title("(a) the error falls with the scale")
    a.set(xscale="log", ylim=(0, None), xlabel=r"initial scale $\alpha$")
    a.set_ylabel(r"population error $\|\beta-\beta^*\|_2^2$")
    b.plot(rows.alpha, rows.excess_l1, color=BLUE, label=r"$\ell_1$ norm above the least")
    b.plot(rows.alpha, rows.excess_l2, color=RED, label=r"$\ell_2$ norm above the least")
    b.set_title(r"(b) least $\ell_1$ on the left, least $\ell_2$ on the right")
    b.set(xscale="log", xlabel=r"initial scale $\alpha$", ylabel="excess norm")
    b.legend(loc="center left")
    _largest_alpha(c, scales, recovery.needed(least.l1_error))
    return picture


def _largest_alpha(axes: Axes, scales: Dataset, l1_needs: float) -> None:
    """Panel (c): every seed as a dot, the median as a line, the l1 threshold as a dashed line."""
    in_decades = (scales.log_mu / 2 / np.log(10)).sortby("sample_size")
    for dots in in_decades.where(np.isfinite(in_decades)).transpose("seed", ...):
        axes.plot(dots.sample_size, dots, ".", color=GREY, markersize=4, zorder=1)
    median = (recovery.medians(scales) / 2 / np.log(10)).sortby("sample_size")
    axes.plot(median.sample_size, median, "o-", color=BLACK, markersize=4, label="median")
    axes.plot([], [], ".", color=GREY, label="single seeds")
    recovery.threshold_line(axes, l1_needs)
    axes.set_title("(c) more samples allow larger starts")
    recovery.axis_of_powers(axes, rf"largest $\alpha$ with error $\leq {recovery.LEVEL:g}$")
    axes.legend(loc="lower right")


experiment = Experiment(
    "W-F1",
    statement="The population error falls as the scale of the start falls: training moves from "
    "the predictor of least l2 norm, which does not generalize, to that of least l1 "
    "norm; with close to the fewest samples for l1 the scale must be extremely small, "
    "and a few more samples allow a much larger one.",
    place="section 4, Figure 1 and 'Generalization'",
    study=(training, ends, scales, least),
    check=check,
    draw=draw,
    scope={
        "quick": "in (c) d = 300 in place of 1000",
        "tiny": "d = 80, r* = 2, in (c) d = 300 and r* = 5",
    },
    ours="d, N, r*, the seeds (median in c) and the grids; noise variance 0.01, truth entries"
    " 1/sqrt(r*) and the level 0.025 are the source's",
    seconds=3,
)
