"""How large the start may be so that the planted sparse predictor is still recovered.

The panels (c) of W-F1 and W-F3 ask the same question at depth 2 and at several depths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from tacit.arguments import Array
from tacit.figures.cells import Values, cell_of
from tacit.figures.registry import Parameters, Progress
from tacit.plotting.style import BLUE

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

    from tacit.solvers.solution import Solution

PLANTED = ("dimension", "sparsity", "noise")  # parameters of the problem
SOUGHT = (*PLANTED, "level", "log10_mu_range", "per_decade")  # and of the search down the scales
NESTED = ("sample_size", "seed", "drawn")  # of a set of samples that begins a larger one
CHUNK = 10  # a path is followed this many grid points at a time, until the error is small


def population_error(beta: Array, truth: Array) -> Array:
    """E (<beta - truth, x>)^2 for x ~ N(0, I), exactly: the squared distance to the truth."""
    return np.sum((beta - truth) ** 2, axis=-1)


def largest_log_mu(
    X: Array, y: Array, truth: Array, depth: int, log_mus: Array, level: float
) -> float:
    """log of the largest alpha^D with population error <= level, -inf if no grid value reaches it.

    `log_mus` falls. Between the last failing and the first passing value the logarithm of the
    error is taken as linear in the logarithm of the scale.
    """
    from tacit.solvers.interpolation_path import interpolate_path

    def log_error(solution: Solution) -> float:
        return float(np.log(population_error(solution.beta, truth)))

    log_errors: list[float] = []
    while len(log_errors) < len(log_mus):
        chunk = log_mus[len(log_errors) : len(log_errors) + CHUNK]
        measured = interpolate_path(X, y, depth, log_alphas=chunk / depth, measure=log_error)
        log_errors += cast(list[float], measured)
        passed = np.flatnonzero(np.array(log_errors) <= np.log(level))
        if len(passed) and passed[0] > 0:
            pair = slice(passed[0] - 1, passed[0] + 1)
            return float(np.interp(-np.log(level), -np.array(log_errors[pair]), log_mus[pair]))
        if len(passed):
            return float(log_mus[0])
    return -np.inf


def l1_error(X: Array, y: Array, truth: Array) -> float:
    """Population error of the interpolating predictor of least l1 norm, NaN if none was found."""
    from tacit.regularizers.norms import L1
    from tacit.solvers.interpolate import interpolate

    solution = interpolate(X, y, L1(), throw=False)
    return float(population_error(solution.beta, truth)) if solution.outcome.ok else np.nan


@cell_of("depth", NESTED, SOUGHT)
def cell(parameters: Parameters) -> Values:
    """`log_mu`, the largest log alpha^D that recovers, for the first of `drawn` samples."""
    falling = _falling_grid(parameters["log10_mu_range"], parameters["per_decade"])
    given = (*_first_samples(parameters), parameters["depth"], falling, parameters["level"])
    return {"log_mu": largest_log_mu(*given)}


@cell_of("log10_mu", "depth", NESTED, PLANTED)
def predictor(parameters: Parameters) -> Values:
    """Population error and norms of what training finds from alpha^D = 10^log10_mu.

    It is the minimiser of Q among the interpolating predictors of the first of `drawn` samples.
    """
    from tacit.regularizers.q import Q
    from tacit.solvers.interpolate import interpolate

    X, y, truth = _first_samples(parameters)
    depth = parameters["depth"]
    q = Q(depth=depth, log_alpha=float(np.log(10)) * parameters["log10_mu"] / depth)
    beta = interpolate(X, y, q).beta
    norms = {f"norm_l{order}": float(np.linalg.norm(beta, order)) for order in (1, 2)}
    return {"population_error": float(population_error(beta, truth)), **norms}


def _first_samples(parameters: Parameters) -> tuple[Array, Array, Array]:
    """The first of the samples that are drawn, and the truth."""
    X, y, truth = planted(parameters, parameters["drawn"], parameters["seed"])
    count = parameters["sample_size"]
    return X[:count], y[:count], truth


def recovery(
    parameters: Parameters, depths: Sequence[int], progress: Progress | None = None
) -> xarray.Dataset:
    """The largest alpha^D per depth, sample size and seed, and what the l1 predictor needs.

    The samples of one seed are nested: a smaller set is the beginning of a larger one.
    """
    dataset, level = _empty(parameters, depths), parameters["level"]
    sought = {name: parameters[name] for name in SOUGHT}
    most = int(max(dataset.sample_size.max(), dataset.l1_sample_size.max()))
    problems = [planted(parameters, most, seed) for seed in range(parameters["seeds"])]
    jobs = [*np.ndindex(*dataset.log_mu.shape), *np.ndindex(*dataset.l1_error.shape)]
    for done, (*place, size, seed) in enumerate(jobs, start=1):
        if place:  # a depth comes first: the path down the scales
            n, depth = int(dataset.sample_size[size]), depths[place[0]]
            found = cell(depth=depth, sample_size=n, seed=seed, drawn=most, **sought)
            dataset.log_mu.values[place[0], size, seed] = found["log_mu"]
        else:
            X, y, truth = problems[seed]
            n = int(dataset.l1_sample_size[size])
            dataset.l1_error.values[size, seed] = l1_error(X[:n], y[:n], truth)
        if progress:
            progress(done, len(jobs))
    return _with_medians(dataset, level)


def _falling_grid(log10_mu_range: Sequence[float], per_decade: int) -> Array:
    """log alpha^D from the largest to the smallest scale, dense above and wider below.

    The steps grow by 5 % each, from a first one of 1/per_decade: deep down the error changes
    with the logarithm of the logarithm of the scale.
    """
    high, low = log10_mu_range
    first, growth = 1 / per_decade, 1.05
    count = np.ceil(np.log1p((high - low) * (growth - 1) / first) / np.log(growth))
    depths = first * (growth ** np.arange(count + 1) - 1) / (growth - 1)
    return np.log(10) * np.maximum(high - depths, low)


def planted(parameters: Parameters, samples: int, seed: int) -> tuple[Array, Array, Array]:
    """X, y and the truth of a sparse regression problem."""
    from tacit.problems import sparse_regression

    given = {name: parameters[name] for name in PLANTED}
    problem = sparse_regression(samples, **given, seed=seed)
    assert problem.truth is not None
    return problem.X, problem.y, problem.truth


def _empty(parameters: Parameters, depths: Sequence[int]) -> xarray.Dataset:
    """The labelled tables, still without numbers."""
    import xarray

    samples = "number of samples N"
    labels = {
        "depth": (list(depths), "depth D", "1"),
        "sample_size": (list(parameters["sample_sizes"]), samples, "samples"),
        "l1_sample_size": (
            list(range(*parameters["l1_sample_sizes"])),
            f"{samples} of the l1 predictor",
            "samples",
        ),
        "seed": (list(range(parameters["seeds"])), "seed", "1"),
    }
    shapes = {"log_mu": ("depth", "sample_size", "seed"), "l1_error": ("l1_sample_size", "seed")}
    dataset = xarray.Dataset(
        {
            name: (dims, np.full([len(labels[d][0]) for d in dims], np.nan))
            for name, dims in shapes.items()
        },
        coords={
            name: (name, values, {"long_name": text, "units": unit})
            for name, (values, text, unit) in labels.items()
        },
    )
    name = "log of the largest alpha^D with population error <= level (-inf: there is none)"
    dataset.log_mu.attrs.update(long_name=name, units="1")
    dataset.l1_error.attrs.update(long_name="population error of the l1 predictor", units="1")
    return dataset


def _with_medians(dataset: xarray.Dataset, level: float) -> xarray.Dataset:
    """The dataset with medians over the seeds; a seed that no scale satisfies counts as zero."""
    with np.errstate(invalid="ignore"):  # the mean of two middle values of -inf
        median = dataset.log_mu.median("seed")
    dataset["median_log_mu"] = median.where(np.isfinite(median))
    name = "median over seeds of log_mu, NaN where no scale satisfies half of the seeds"
    dataset.median_log_mu.attrs.update(long_name=name, units="1")
    passed = np.flatnonzero(dataset.l1_error.median("seed").values <= level)
    needed = dataset.l1_sample_size.values[passed[0]] if len(passed) else np.nan
    name = "fewest samples with which the l1 predictor satisfies half of the seeds"
    dataset["l1_threshold"] = ((), needed, {"long_name": name, "units": "samples"})
    name = "population error that counts as recovery"
    dataset["level"] = ((), level, {"long_name": name, "units": "1"})
    return dataset


def threshold_line(axes: Axes, dataset: xarray.Dataset) -> None:
    """The dashed line at the samples that the l1 predictor needs, named in the legend."""
    text = r"samples needed by $\ell_1$"
    axes.axvline(float(dataset.l1_threshold), color=BLUE, linestyle="--", linewidth=1.4, label=text)
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
