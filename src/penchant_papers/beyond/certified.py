"""The certificate of an exact flow, two runs at two tolerances, bounds the error of the run."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penchant import (
    DiagonalNet,
    DualFlow,
    Factorization,
    ParameterFlow,
    Time,
    stop,
    train,
)
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    margin_of_mean,
    share_at_least,
    sized,
)
from penchant.methods import MatrixFlow, TangentFlow
from penchant.models import FunctionModel, two_layer
from penchant.plotting import BLACK, sheet_of
from penchant.problems import gaussian_sensing, separable_points, sparse_regression
from penchant.record import At
from penchant_papers.beyond import OWN_RUNS

SHARE = 0.7  # of runs whose error is bounded, at least
EXCEEDS = 2.0  # the factor by which the bound exceeds the error in the mean, at least
FACTOR = 30.0  # by which the bound exceeds the error in the mean, at most
TIGHT = 1e-11  # rtol of the runs that count as exact
MANY = 1000.0  # rtol times this is the error that flows are judged by without a certificate
SAME = 1e-9  # relative distance of two moments that are one
MARGIN = 50.0  # log(1/loss) at the end of runs on labels


class CertifiedRun(NamedTuple):
    """A model on a problem, the flow under test, the flow that counts as exact, and the end."""

    model: Any
    problem: Any
    flow: Any
    exact: Any
    stop: Any = None


@functools.lru_cache(maxsize=4)
def tanh_function(width: int) -> Any:
    """The function of tanh nets, one object for all starts, so that it is compiled once."""
    return two_layer(width, alpha=1.0, activation="tanh").function


def tanh_net(rng: np.random.Generator) -> FunctionModel:
    return FunctionModel(tanh_function(6), rng.uniform(0.3, 2) * rng.normal(size=6 * 4))


def regression(rng: np.random.Generator, samples: int = 3, dimension: int = 6) -> Any:
    return sparse_regression(
        samples, dimension, sparsity=2, noise=0.1, seed=int(rng.integers(2**31))
    )


def diagonal(depth: int, rng: np.random.Generator) -> CertifiedRun:
    net = DiagonalNet(depth, alpha=10 ** rng.uniform(-1.5, 0.3))
    return CertifiedRun(net, regression(rng), ParameterFlow(), DualFlow(rtol=TIGHT))


def labels(rng: np.random.Generator) -> CertifiedRun:
    net = DiagonalNet(int(rng.integers(2, 4)), alpha=10 ** rng.uniform(-1, 0.3))
    points = separable_points(4, 6, seed=int(rng.integers(2**31)))
    return CertifiedRun(net, points, ParameterFlow(), DualFlow(rtol=TIGHT), stop.LogLoss(-MARGIN))


def factors(rng: np.random.Generator) -> CertifiedRun:
    problem = gaussian_sensing(6, 3, rank=1, seed=int(rng.integers(2**31)))
    net = Factorization(3, alpha=10 ** rng.uniform(-2, 0), seed=int(rng.integers(2**31)))
    return CertifiedRun(net, problem, MatrixFlow(), ParameterFlow(rtol=TIGHT))


def tanh(flow: Any, rng: np.random.Generator) -> CertifiedRun:
    return CertifiedRun(
        tanh_net(rng), regression(rng, 3, 3), flow, ParameterFlow(rtol=TIGHT), Time(3.0)
    )


KINDS: dict[str, Callable[[np.random.Generator], CertifiedRun]] = {
    "net of depth 2": functools.partial(diagonal, 2),
    "net of depth 3": functools.partial(diagonal, 3),
    "net, labels": labels,
    "two factors": factors,
    "tanh net": functools.partial(tanh, ParameterFlow()),
    "tanh net, tangent flow": functools.partial(tanh, TangentFlow()),
}


IN_PARAMETERS = [*list(KINDS)[:3], "tanh net"]


def cell(kind: str, seed: int) -> dict[str, float]:
    """The error of one run at a random tolerance, its certificate and its tolerance."""
    rng = np.random.default_rng((seed, list(KINDS).index(kind)))
    run = KINDS[kind](rng)
    rough = isinstance(run.flow, TangentFlow)
    rtol = 10 ** (rng.uniform(-4, -2) if rough else rng.uniform(-8, -4))
    flow = dataclasses.replace(run.flow, rtol=rtol, certify=True)
    path = train(run.model, run.problem, flow, stop=run.stop).dataset
    name = "predictor" if "predictor" in path else "predictions"
    clock = "smoothed_margin" if kind == "net, labels" else "t"
    moments = path[clock].values
    if clock == "t":
        given: dict[str, Any] = {"stop": Time(moments[-1]), "record": At(times=moments[1:-1])}
    else:
        later = moments[1:-1][moments[1:-1] > max(moments[0], 0)]
        given = {"stop": stop.LogLoss(-moments[-1]), "record": At(margins=later)}
    exact = train(run.model, run.problem, run.exact, **given).dataset
    own = exact[clock].values
    places = np.array([int(np.abs(moments - moment).argmin()) for moment in own])
    same = np.abs(moments[places] - own) <= SAME * np.abs(own)
    places = places[same]
    ours, true = path[name].values[places], exact[name].values[same]
    apart = np.abs(ours - true).reshape(len(true), -1).max(axis=1)
    sizes = np.abs(true).reshape(len(true), -1).max(axis=1)
    unit = np.maximum.accumulate(sizes) if clock != "t" else sizes.max()
    error = apart / np.where(unit > 0, unit, 1.0)
    return {
        "error": float(error.max()),
        "last": float(error[-1]),
        "certified": float(path.error.max()),
        "certified_last": float(path.error[-1]),
        "rtol": rtol,
        "compared": len(places) / len(moments),
    }


study = sized(
    "beyond-certified",
    title="The error of an exact flow is bounded by a second run at ten times the tolerance",
    function=cell,
    grid={"kind": [kind for kind in KINDS if kind != "tanh net"]},
    seeds=7,
    labels={
        "kind": "model and flow",
        "error": "largest error along the path",
        "last": "error at the end",
        "certified": "certified error of the path",
        "certified_last": "certified error at the end",
        "rtol": "accuracy of one step",
    },
    draw={"x": "kind", "colour": "error", "log": True},
    tiny={"grid": {"kind": ["net of depth 2", "net, labels"]}, "seeds": 14},
    printed={"grid": {"kind": list(KINDS)}, "seeds": 60},
)


def log_factors(bound: Array, error: Array) -> Array:
    """log of a bound over the error, run by run; rounding counts as an error of 1e-14."""
    return np.asarray(np.log(bound / np.maximum(error, 1e-14)))


def limit_of(logs: Array, side: int) -> float:
    """The geometric mean, with its 0.999 limit above (side 1) or below (side -1)."""
    return float(np.exp(logs.mean() + side * margin_of_mean(logs)))


def check(dataset: Dataset) -> Evidence:
    """Shares of runs whose error is within the certificate, and how far that exceeds it."""
    error, certified = dataset.error.values.ravel(), dataset.certified.values.ravel()
    rtol, count = dataset.rtol.values.ravel(), dataset.error.size
    last, at_end = dataset["last"].values.ravel(), dataset.certified_last.values.ravel()
    ended = int((last <= at_end).sum()), int((last <= rtol).sum())
    bounded = share_at_least(int((error <= certified).sum()), count, SHARE)
    factors = log_factors(certified, error)
    plain = dataset.sel(kind=[kind for kind in dataset.kind.values if kind in IN_PARAMETERS])
    own = log_factors(plain.rtol.values.ravel(), plain.error.values.ravel())
    many = log_factors(MANY * rtol, error)
    exceeds = at_least(limit_of(factors, -1), EXCEEDS)
    sharp = at_most(limit_of(factors, 1), FACTOR)
    return Evidence(
        ran=f"{count} runs of {'; '.join(map(str, dataset.kind.values))} on random problems from "
        "random starts at random tolerances, compared at all records with the dual flow or a "
        r"flow in the parameters at a tolerance of $10^{-11}$",
        checks={
            "share of runs whose largest error is within the certified one (0.999 lower limit)": (
                bounded
            ),
            "certified over true error, geometric mean (0.999 lower limit)": exceeds,
            "certified over true error, geometric mean (0.999 upper limit)": sharp,
        },
        premises={
            "nearly all records are compared": (
                float(dataset.compared.min()) > 0.5,
                float(dataset.compared.min()),
            ),
        },
        controls={
            "flow in the parameters: the tolerance of a step over the true error (0.999 upper "
            "limit)": exceeds.control(limit_of(own, 1)),
            "a thousand times the tolerance over the true error (0.999 lower limit)": (
                sharp.control(limit_of(many, -1))
            ),
        },
        findings=[
            f"{kind}: {int((dataset.error <= dataset.rtol).sel(kind=kind).sum())} of "
            f"{dataset.sizes['seed']} errors are within the tolerance"
            for kind in dataset.kind.values
        ]
        + [
            f"at the end {ended[0]} of {count} errors are within the certificate of the last "
            f"record, and {ended[1]} within the tolerance: flows forget most of their errors",
            f"largest error over its certificate: {float((error / certified).max()):.2g}",
            "flow in the parameters: true error over the tolerance: median "
            f"{float(np.exp(-np.median(own))):.2g}, largest {float(np.exp(-own.min())):.2g}",
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """Certified and true errors, and the tolerances in their place."""
    picture, panels = sheet_of(dataset, widths=(5.2, 5.2), height=4.6)
    every = np.concatenate(
        [dataset[name].values.ravel() for name in ("error", "certified", "rtol")]
    )
    line = np.array([max(every.min(), 1e-14) / 2, every.max() * 2])
    for axes, name, label in zip(
        panels, ("certified", "rtol"), ("certified error", "tolerance of a step"), strict=True
    ):
        for k, kind in enumerate(dataset.kind.values):
            row = dataset.sel(kind=kind)
            axes.plot(row[name], row.error, "osv^Dp"[k], label=str(kind), alpha=0.7, markersize=5)
        axes.plot(line, line, "--", color=BLACK, linewidth=1.2, label="equal")
        axes.set(xscale="log", yscale="log", xlim=line, ylim=line, xlabel=label)
    panels[0].set(ylabel="true error, largest along the path", title="a bound: all below the line")
    panels[1].set(ylabel="true error, largest along the path", title="no bound")
    panels[0].legend(loc="upper left")
    return picture


experiment = Experiment(
    "beyond-certified",
    statement="Twice the largest distance between an exact flow and the same run at ten times the "
    "tolerance bounds the error along its path; the tolerance of a step of the flow in the "
    "parameters does not.",
    place="the two tolerances of any book on ordinary differential equations; that it holds for "
    "these flows: ours",
    study=study,
    check=check,
    draw=draw,
    ours="the whole statement, data, models and tolerances",
    scope=OWN_RUNS,
    seconds=5,
)
