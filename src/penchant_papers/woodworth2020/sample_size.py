"""Section 4 on generalization: how many samples the rich limit needs, at the depths of Figure 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import L1, L2, Q, interpolate
from penchant.lab import (
    Array,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_most,
    exponents,
    margin_of_mean,
    mean_within,
    sized,
    within,
)
from penchant.plotting import latex
from penchant_papers.woodworth2020.figures.recovery import LEVEL, planted, population_error

# log10 of alpha^D at every depth; at depth 2 it must be far smaller, as Theorem 2 says
SCALES = {2: -60.0, 3: -6.0, 4: -6.0, 10: -6.0}
CONSTANTS = [0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0]
ENOUGH = 2.5  # the constant at which l1 and l2 are compared


def errors(
    dimension: int,
    sparsity: int,
    seed: int,
    constants: list[float],
    regularizers: dict[str, Any],
    always: float | None = None,
) -> dict[str, Any]:
    """Population errors of minimisers from N = c r* log d samples, for every constant c.

    Once an error is at the level, more samples say nothing new: NaN, but at the constant `always`.
    """
    sizes = [round(c * sparsity * np.log(dimension)) for c in constants]
    curves = {name: np.full(len(sizes), np.nan) for name in regularizers}
    for place, size in enumerate(sizes):
        X, y, truth = planted(size, max(sizes), dimension, sparsity, 0.1, seed)
        for name, regularizer in regularizers.items():
            passed = (curves[name] <= LEVEL).any()
            if not passed or constants[place] == always:
                beta = interpolate(X, y, regularizer).beta
                curves[name][place] = population_error(beta, truth)
    return {"samples": sizes, **curves}


def cell(dimension: int, sparsity: int, seed: int, constants: list[float]) -> dict[str, Any]:
    """Those of the predictors of least l1 and of least l2 norm."""
    norms = {"l1_error": L1(), "l2_error": L2()}
    return errors(dimension, sparsity, seed, constants, norms, always=ENOUGH)


def at_depth(
    depth: int, dimension: int, sparsity: int, seed: int, constants: list[float]
) -> dict[str, Any]:
    """Those of a small start at a depth, and of the predictor of least l1 norm."""
    q = Q(depth, log_alpha=np.log(10) * SCALES[depth] / depth)
    return errors(dimension, sparsity, seed, constants, {"error": q, "l1_error": L1()})


RATIOS = [0.5, 0.7, 0.85, 0.95, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0, 2.4, 3.0]  # N over d


def kernel_errors(dimension: int, seed: int) -> dict[str, Any]:
    """Population errors of the kernel regime from N samples, below the dimension and above it.

    Its predictor has the least l2 norm among the least squares solutions.
    """
    sizes = [round(ratio * dimension) for ratio in RATIOS]
    X, y, truth = planted(max(sizes), max(sizes), dimension, 2, 0.1, seed)
    ends: list[Array] = [np.linalg.lstsq(X[:n], y[:n])[0].astype(float) for n in sizes]
    return {"samples": sizes, "kernel_error": [population_error(b, truth) for b in ends]}


study = sized(
    "W-N",
    title=r"In the rich limit, about $r^* \log d$ samples suffice",
    function=cell,
    arguments={"constants": CONSTANTS},
    grid={"dimension": [150, 1200], "sparsity": [2, 6]},
    seeds=20,
    dims=dict.fromkeys(("samples", "l1_error", "l2_error"), ("constant",)),
    tiny={"grid": {"dimension": [150, 600]}},
    printed={"grid": {"dimension": [150, 600, 2400], "sparsity": [2, 4, 6]}, "seeds": 50},
)
depths = sized(
    "W-N-depths",
    title="At every depth a small start needs as many samples as ℓ₁",
    function=at_depth,
    arguments={"dimension": 300, "constants": CONSTANTS[:-1]},
    grid={"depth": list(SCALES), "sparsity": [2]},
    seeds=6,
    dims=dict.fromkeys(("samples", "error", "l1_error"), ("constant",)),
    tiny={"arguments": {"dimension": 100}, "grid": {"depth": [3, 10]}},
    printed={
        "arguments": {"constants": CONSTANTS},
        "grid": {"sparsity": [2, 6]},
        "seeds": 15,
    },
)

kernel = sized(
    "W-N-kernel",
    title="The kernel regime needs more samples than dimensions",
    function=kernel_errors,
    grid={"dimension": [40, 80, 160]},
    seeds=20,
    dims=dict.fromkeys(("samples", "kernel_error"), ("constant",)),
    printed={"grid": {"dimension": [40, 160, 640]}, "seeds": 50},
)


def needed_samples(dataset: Dataset, name: str) -> DataArray:
    """The N at which an error falls to the level, linear in its logarithm; NaN if it does not."""
    import xarray

    def crossed(error: Array, size: Array) -> float:
        below = np.flatnonzero(error <= LEVEL)
        if not len(below):
            return np.nan
        pair = slice(max(below[0] - 1, 0), below[0] + 1)
        return float(np.interp(-np.log(LEVEL), -np.log(error[pair]), size[pair]))

    both = dataset[name], dataset.samples
    return xarray.apply_ufunc(crossed, *both, input_core_dims=[["constant"]] * 2, vectorize=True)


def logarithm(N: DataArray) -> DataArray:
    return N.copy(data=np.log(N.values))


def slopes(N: DataArray, along: str) -> Array:
    """The exponent of N in the dimension or the sparsity, problem by problem."""
    others = [d for d in ("dimension", "sparsity") if d != along]
    logs = logarithm(N).mean(others, skipna=False)
    rows = logs.transpose("seed", along).values
    return exponents(N[along], np.exp(rows[np.isfinite(rows).all(axis=1)]))


def check(dataset: Dataset, depths: Dataset, kernel: Dataset) -> Evidence:
    """N grows like r* log d at every depth; with as many samples l2 has learned nothing."""
    N = needed_samples(dataset, "l1_error").transpose("dimension", "sparsity", "seed")
    d, r = N.dimension, N.sparsity
    constant = np.log(N / (r * np.log(d))).stack(place=("dimension", "sparsity"))
    rows = [row[np.isfinite(row)] for row in constant.transpose("place", "seed").values]
    most = max(np.exp(row.mean() + margin_of_mean(row)) for row in rows)
    other = (needed_samples(depths, "error") / needed_samples(depths, "l1_error")).mean("depth")
    ratios = other.values[np.isfinite(other.values)]
    with_d = mean_within(
        slopes(N, "dimension"), float(np.polyfit(np.log(d), np.log(np.log(d)), 1)[0]), 0.1
    )
    with_r = mean_within(slopes(N, "sparsity"), 1.0, 0.3)
    alike = within(ratios.mean(), 1.0, 0.1)  # paired: the ratios differ by hundredths
    mean = logarithm(N).mean("seed")
    enough = dataset.isel(constant=CONSTANTS.index(ENOUGH)).median("seed")
    learnt = at_most(enough.l1_error.max(), LEVEL)
    reached = float(np.isfinite(N).mean())
    most_needed = needed_samples(kernel, "kernel_error").transpose("seed", "dimension")
    like_d = mean_within(exponents(kernel.dimension, most_needed.values), 1.0, 0.1)
    log_slope = float(np.polyfit(np.log(kernel.dimension), np.log(np.log(kernel.dimension)), 1)[0])
    same = dataset.isel(constant=CONSTANTS.index(ENOUGH))
    explained = mean_within(((1 - same.l2_error) * same.dimension / same.samples).values, 1.0, 0.05)
    widest = 1 - same.l2_error.sel(dimension=d.max(), sparsity=r.min()).values
    nothing = at_most(widest.mean() + margin_of_mean(widest), 0.1)
    return Evidence(
        ran=rf"predictors of least $\ell_1$ and $\ell_2$ norm from $N = {latex(CONSTANTS[0])}$ to "
        rf"{CONSTANTS[-1]:g} $r^* \log d$ samples, $d$ = {d.values.tolist()}, $r^*$ = "
        f"{r.values.tolist()}, {dataset.sizes['seed']} problems each; small starts at depths "
        f"{depths.depth.values.tolist()}, {depths.sizes['seed']} problems; least squares of least "
        rf"norm from ${RATIOS[0]} d$ to ${RATIOS[-1]} d$ samples, $d$ = "
        f"{kernel.dimension.values.tolist()}",
        checks={
            "exponent of $N$ in $d$, at these $d$, mean over the problems": with_d,
            "exponent of $N$ in $r^*$, mean": with_r,
            r"$N$ over $r^* \log d$, the largest geometric mean (0.999 upper limit)": at_most(
                most, 3.0
            ),
            r"$N$ from a small start over that of $\ell_1$, mean over the problems and "
            "depths": alike,
            r"$\ell_1$: median error at $N = 2.5 r^* \log d$, over that of the zero "
            "predictor": learnt,
            r"$\ell_2$, the same $N$: explained part of the truth over $N/d$, mean": explained,
            rf"$\ell_2$ learns nothing, $d = {int(d.max())}$, $r^* = {int(r.min())}$: explained "
            "part of the truth, mean (0.999 upper limit)": nothing,
            r"kernel regime: exponent in $d$ of the samples to the same level, mean": like_d,
        },
        premises={
            "at nine problems of ten the error falls to the level": (reached >= 0.9, reached)
        },
        controls={
            "$N$ like $d$": with_d.control(predicted=1.0),
            "$N$ like $r^{*2}$": with_r.control(predicted=2.0),
            r"$N$ like $\log d$, independent of $r^*$": with_r.control(predicted=0.0),
            r"$\ell_2$ from the same samples": learnt.control(enough.l2_error.min()),
            r"$\ell_1$ learns nothing": nothing.control(
                1 - same.l1_error.sel(dimension=d.max(), sparsity=r.min()).median()
            ),
            r"the kernel regime needs samples like $\log d$": like_d.control(predicted=log_slope),
        },
        findings=[
            f"the error falls to {LEVEL:g} at $N = {np.exp(min(row.mean() for row in rows)):.2f}$ "
            rf"to {np.exp(max(row.mean() for row in rows)):.2f} $r^* \log d$, geometric means "
            "over the problems",
            f"small starts need {ratios.min():.3f} to {ratios.max():.3f} times as many as "
            r"$\ell_1$; from $2.5 r^* \log d$ samples $\ell_2$ has an error of "
            f"{float(enough.l2_error.min()):.2f} to {float(enough.l2_error.max()):.2f}, where "
            "the zero predictor has an error of 1",
            "the kernel regime needs "
            f"{float((most_needed / most_needed.dimension).mean()):.2f} $d$ samples, more than "
            "dimensions: while it interpolates the noise, no number of samples is enough",
        ],
        plots=[
            Plot(
                rf"samples with which the error of $\ell_1$ is {LEVEL:g}, geometric mean",
                r"$r^* \log(d/r^*)$",
                "$N$",
                [
                    Series(
                        "measured",
                        (r * np.log(d / r)).values.ravel(),
                        np.exp(mean.transpose("sparsity", "dimension").values.ravel()),
                        "points",
                    ),
                    Series(r"$N = 1.8 r^* \log(d/r^*)$", [8, 40], [14.4, 72], "dashed"),
                ],
            ),
        ],
    )


experiment = Experiment(
    "W-N",
    statement=r"In the rich limit, of the order of $r^* \log d$ samples suffice to recover an "
    "$r^*$-sparse truth at every depth of Figure 3; with as many samples the predictor of "
    r"least $\ell_2$ norm does not generalize at all: the kernel regime needs of the order of $d$.",
    place="section 4, 'Generalization'; section 5",
    study=(study, depths, kernel),
    check=check,
    title=r"In the rich limit, about $r^* \log d$ samples suffice at every depth",
    ours=r"$d$, $r^*$, the seeds and the scales: $\alpha^2 = 10^{-60}$, $\alpha^D = 10^{-6}$ for "
    "$D > 2$",
    seconds=8,
)
