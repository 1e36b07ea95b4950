"""Section 4 on generalization: how many samples the rich limit needs, at the depths of Figure 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Evidence, at_most, within
from tacit.evidence.plot import Plot, Series
from tacit.lazy import DataArray, Dataset
from tacit.papers.experiment import Experiment
from tacit.papers.woodworth2020.figures.recovery import LEVEL, planted, population_error
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.q import Q
from tacit.solvers.interpolate import interpolate
from tacit.studies.sizes import sized

# log10 of alpha^D at every depth; at depth 2 it must be far smaller, as Theorem 2 says
SCALES = {2: -60.0, 3: -6.0, 4: -6.0, 10: -6.0}
CONSTANTS = [0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5]


def errors(
    dimension: int, sparsity: int, seed: int, constants: list[float], regularizers: dict[str, Any]
) -> dict[str, Any]:
    """Population errors of minimisers from N = c r* log d samples, for every constant c."""
    sizes = [round(c * sparsity * np.log(dimension)) for c in constants]
    found: dict[str, list[float]] = {name: [] for name in regularizers}
    for size in sizes:
        X, y, truth = planted(size, max(sizes), dimension, sparsity, 0.1, seed)
        for name, regularizer in regularizers.items():
            found[name].append(population_error(interpolate(X, y, regularizer).beta, truth))
    return {"samples": sizes, **found}


def cell(dimension: int, sparsity: int, seed: int, constants: list[float]) -> dict[str, Any]:
    """Those of the predictors of least l1 and of least l2 norm."""
    return errors(dimension, sparsity, seed, constants, {"l1_error": L1(), "l2_error": L2()})


def at_depth(
    depth: int, dimension: int, sparsity: int, seed: int, constants: list[float]
) -> dict[str, Any]:
    """Those of a small start at a depth, and of the predictor of least l1 norm."""
    q = Q(depth, log_alpha=np.log(10) * SCALES[depth] / depth)
    return errors(dimension, sparsity, seed, constants, {"error": q, "l1_error": L1()})


study = sized(
    "W-N",
    title="In the rich limit, about r* log d samples suffice",
    function=cell,
    arguments={"constants": CONSTANTS},
    grid={"dimension": [150, 1200], "sparsity": [2, 6]},
    seeds=9,
    dims=dict.fromkeys(("samples", "l1_error", "l2_error"), ("constant",)),
    printed={"grid": {"dimension": [150, 600, 2400], "sparsity": [2, 4, 6]}, "seeds": 25},
)
depths = sized(
    "W-N-depths",
    title="At every depth a small start needs as many samples as ℓ₁",
    function=at_depth,
    arguments={"dimension": 300, "constants": CONSTANTS[1:-1]},
    grid={"depth": list(SCALES), "sparsity": [2]},
    seeds=3,
    dims=dict.fromkeys(("samples", "error", "l1_error"), ("constant",)),
    tiny={"grid": {"depth": [3, 10]}},
    printed={
        "arguments": {"constants": CONSTANTS},
        "grid": {"sparsity": [2, 6]},
        "seeds": 15,
    },
)


def needed_samples(dataset: Dataset, name: str) -> DataArray:
    """The N at which a median error falls to the level, linear in its logarithm; NaN if none."""
    import xarray

    def crossed(error: Array, size: Array) -> float:
        below = np.flatnonzero(error <= LEVEL)
        if not len(below) or below[0] == 0:
            return np.nan
        pair = slice(below[0] - 1, below[0] + 1)
        return float(np.interp(-np.log(LEVEL), -np.log(error[pair]), size[pair]))

    both = dataset[name].median("seed"), dataset.samples.isel(seed=0)
    return xarray.apply_ufunc(crossed, *both, input_core_dims=[["constant"]] * 2, vectorize=True)


def check(dataset: Dataset, depths: Dataset) -> Evidence:
    """N grows like r* log d at every depth; with as many samples l2 has learned nothing."""
    N = needed_samples(dataset, "l1_error").transpose("dimension", "sparsity")
    d, r = N.dimension, N.sparsity
    constant, sharper = (N / (r * np.log(d))).values, (N / (r * np.log(d / r))).values
    other = needed_samples(depths, "error") / needed_samples(depths, "l1_error")
    with_d = within(
        np.polyfit(np.log(d), np.log(N.values).mean(axis=1), 1)[0],
        np.polyfit(np.log(d), np.log(np.log(d)), 1)[0],
        0.15,
    )
    with_r = within(np.polyfit(np.log(r), np.log(N.values).mean(axis=0), 1)[0], 1.0, 0.3)
    spread = at_most(sharper.max() / sharper.min(), 1.25)
    alike = within(np.abs(other - 1).max(), tolerance=0.1)
    last = dataset.isel(constant=-1).median("seed")
    learnt = at_most(last.l1_error.max(), LEVEL)
    finite = bool(np.isfinite(constant).all() and np.isfinite(other).all())
    return Evidence(
        ran=f"predictors of least l1 and l2 norm from N = 0.75 to 2.5 r* log d samples, d ="
        f" {d.values.tolist()}, r* = {r.values.tolist()}, {dataset.sizes['seed']} seeds; small"
        f" starts at depths {depths.depth.values.tolist()}, d = 300",
        checks={
            "exponent of N in d, at these d": with_d,
            "exponent of N in r*": with_r,
            "largest N over r* log d": at_most(constant.max(), 2.0),
            "N over r* log(d/r*) (ours): largest over smallest": spread,
            "N from a small start at each depth over that of l1, largest deviation from 1": alike,
            "l1: median error at N = 2.5 r* log d, over that of the zero predictor": learnt,
        },
        premises={"every median error falls to the level": (finite, "")},
        controls={
            "N like sqrt(d)": with_d.control(predicted=0.5),
            "N like d": with_d.control(predicted=1.0),
            "N like r*^2": with_r.control(predicted=2.0),
            "N like log d, independent of r*": with_r.control(predicted=0.0),
            "r* sqrt(d) in place of r* log(d/r*)": spread.control(
                (N / (r * d**0.5)).max() / (N / (r * d**0.5)).min()
            ),
            "l2 from the same samples": learnt.control(last.l2_error.min()),
        },
        findings=[
            f"the median error falls to {LEVEL:g} at N = {constant.min():.2f} to"
            f" {constant.max():.2f} r* log d, that is {sharper.min():.2f} to {sharper.max():.2f}"
            " r* log(d/r*)",
            f"small starts need {float(other.min()):.3f} to {float(other.max()):.3f} times as "
            "many as l1; from 2.5 r* log d samples l2 has an error of "
            f"{float(last.l2_error.min()):.2f} to {float(last.l2_error.max()):.2f}, where the "
            "zero predictor has an error of 1",
        ],
        plots=[
            Plot(
                f"samples with which the median error of l1 is {LEVEL:g}",
                "r* log(d/r*)",
                "N",
                [
                    Series(
                        "measured", (r * np.log(d / r)).values.ravel(), N.values.T.ravel(), "points"
                    ),
                    Series("N = 1.8 r* log(d/r*)", [8, 40], [14.4, 72], "dashed"),
                ],
            ),
            Plot(
                "samples needed from a small start over those of l1, by depth",
                "depth D",
                "ratio",
                [
                    Series(f"r* = {int(k)}", other.depth, other.sel(sparsity=k).values, "points")
                    for k in other.sparsity
                ],
            ),
        ],
    )


experiment = Experiment(
    "W-N",
    statement="In the rich limit, of the order of r* log d samples suffice to recover an "
    "r*-sparse truth at every depth of Figure 3; with as many samples the predictor of "
    "least l2 norm does not generalize at all.",
    place="section 4, 'Generalization'; section 5",
    study=(study, depths),
    check=check,
    title="In the rich limit, about r* log d samples suffice at every depth",
    ours="d, r*, the seeds (median) and the scales: alpha^2 = 1e-60, alpha^D = 1e-6 for D > 2",
    seconds=4,
)
