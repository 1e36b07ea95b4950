"""L-sweep: larger starts and smaller decay make grokking later; without either there is none."""

from __future__ import annotations

import math

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.grokking import Grokking, grokking
from tacit.models.diagonal import DiagonalNet
from tacit.problems.classification import Classification
from tacit.problems.grokking import majority
from tacit.studies.sizes import Size
from tacit.training.exact.dual.flow import DualFlow
from tacit.training.stop import Interpolated, Time
from tacit.training.train import train

ALPHAS = np.array([1.0, 3.0, 10.0, 30.0])
RATES = np.array([1e-2, 1e-3, 1e-4, 1e-5])
SMALL = 1e-3  # a start that is rich from the beginning
LEVEL = 0.95


def seen(problem: Classification, alpha: float, rate: float) -> Grokking:
    """What the curves of one run show; the run ends well after any transition."""
    flow, end = DualFlow(rtol=1e-5, weight_decay=rate), (max(math.log(alpha), 0.0) + 9) / rate
    return _curves(train(DiagonalNet(2, alpha=alpha), problem, flow, stop=Time(end)).dataset)


def without_decay(problem: Classification, alpha: float, t_max: float) -> Grokking:
    """The same without decay, for as long as the slowest run of the sweep."""
    stop = [Interpolated(1e-300), Time(t_max)]
    path = train(DiagonalNet(2, alpha=alpha), problem, DualFlow(rtol=1e-5), stop=stop)
    return _curves(path.dataset)


def _curves(dataset: object) -> Grokking:
    values = {
        name: dataset[name].values[1:]  # type: ignore[index]
        for name in ("t", "train_accuracy", "test_accuracy")
    }
    keep = np.concatenate([[True], np.diff(values["t"]) > 0]) & (values["t"] > 0)
    t, train, test = (v[keep] for v in values.values())
    return grokking(t, train, test, level=LEVEL)


@claim(
    "L-sweep",
    statement="a larger start and a smaller weight decay make the delay of grokking longer; without"
    " decay or with a small start there is no grokking",
    place="title quotation and prior work",
    seconds=15,
)
def sweep(size: Size) -> Evidence:
    seeds = (3,) if size == "quick" else range(3, 8)
    problems = [majority(80, 300, seed=s) for s in seeds]
    grids = [[[seen(p, a, r) for r in RATES] for a in ALPHAS] for p in problems]
    delays = np.array([[[g.delay for g in row] for row in grid] for grid in grids])
    fitted = np.array([[[g.t1 for g in row] for row in grid] for grid in grids])
    kinds = [g.kind for grid in grids for row in grid for g in row]
    ordered = _ordered(delays)
    ratios = np.array([[[g.log_ratio for g in row] for row in grid] for grid in grids])
    longest = (math.log(ALPHAS[-1]) + 9) / RATES[-1]
    endless = [without_decay(p, float(ALPHAS[-1]), longest) for p in problems]
    small = [seen(p, SMALL, float(r)) for p in problems for r in RATES]
    groks = Check(
        "share of the 16 runs that grok", kinds.count("grok") / len(kinds), 1.0, kind="at least"
    )
    order = Check(
        "share of neighbours in the grid with the longer delay where L says",
        ordered,
        1.0,
        kind="at least",
    )
    none = Check(
        "share of runs without decay, or from alpha = 0.001, that grok",
        _share([*endless, *small]),
        0.0,
        kind="at most",
    )
    return Evidence(
        ran=f"{len(problems)} problems (80 of 300-dimensional cubes' corners, labels the majority"
        " of three coordinates), depth 2, logistic loss, 4 starts x 4 rates; no decay up to"
        f" t = {longest:.2g}; level {LEVEL}",
        checks=[groks, order, none],
        controls={
            "a larger start and a smaller decay make training itself later": order.control(
                _ordered(fitted)
            ),
            "decay and a large start": none.control(_share([grid[-1][-1] for grid in grids])),
        },
        findings=[
            "delay in units of 1/rate by start (alpha = "
            + ", ".join(f"{a:g}" for a in ALPHAS)
            + f") at rate {RATES[-1]:g}: "
            + ", ".join(f"{d * RATES[-1]:.2f}" for d in delays[0, :, -1]),
            "without decay the runs end as: " + "; ".join(g.reason for g in endless),
            "from alpha = 0.001: " + "; ".join(dict.fromkeys(g.reason for g in small)),
        ],
        plots=[
            Plot(
                "delay of grokking over start and decay",
                "alpha",
                "log10(t2/t1)",
                [Series(f"rate {r:g}", ALPHAS, ratios[0, :, k]) for k, r in enumerate(RATES)],
                x_scale="log",
            )
        ],
    )


def _ordered(delays: Array) -> float:
    """The share of neighbours for which the larger start, or the smaller decay, waits longer."""
    with np.errstate(invalid="ignore"):  # between two runs that never grok
        up = np.concatenate([np.diff(delays, axis=1).ravel(), np.diff(delays, axis=2).ravel()])
    return float(np.mean(up > 0))


def _share(found: list[Grokking]) -> float:
    return sum(g.kind == "grok" for g in found) / len(found)
