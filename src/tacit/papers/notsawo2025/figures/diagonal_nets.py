"""Sparse recovery by diagonal nets from a small start: what each depth selects, and its runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.diagonal import DiagonalNet
from tacit.models.model import Model
from tacit.papers.notsawo2025.recoveries import SOLVED, Recovery, reached, recovery
from tacit.problems.regression import Regression
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.q import Q
from tacit.regularizers.regularizer import Regularizer
from tacit.solvers.interpolate import interpolate
from tacit.studies.sizes import sized
from tacit.training.descent.methods import GradientDescent
from tacit.training.record import LogSpaced
from tacit.training.stop import Loss, Steps
from tacit.training.train import train

BUDGET = 1_000_000  # N: steps
FITTED = 1e-14  # training loss at which a run is over
FEW = [30, 40, 50]  # samples at which l1 always recovers and least squares does not
SHOWN = 30  # samples of the runs that are drawn


def bias_of(depth: int, start: float) -> Regularizer:
    """What descent minimises among the interpolators, as its step goes to 0."""
    return L2() if depth == 1 else Q(depth, alpha=start)


def selected(case: Recovery, bias: Regularizer) -> Array:
    """The interpolator that the bias selects."""
    return interpolate(case.X, case.y, bias).beta


def error(case: Recovery, bias: Regularizer) -> float:
    """|a - a*| / |a*| of the interpolator that the bias selects."""
    return float(np.linalg.norm(selected(case, bias) - case.truth) / np.linalg.norm(case.truth))


def cell(depth: int, start: float, large: float, **problem: Any) -> dict[str, float]:
    """Errors of the minimisers: at this depth, from a large start, and of the least l1 norm."""
    case = recovery(**problem)
    return {
        "error": error(case, bias_of(depth, start)),
        "large_error": error(case, bias_of(depth, large)),
        "sparse_error": error(case, L1()),
    }


def run_cell(
    depth: int,
    start: float,
    *,
    flat_start: float,
    step: float,
    level: float,
    points_per_decade: int,
    most: int,
    signed: bool,
    **problem: Any,
) -> dict[str, Any]:
    """A run without a penalty, to the end of its steps or of its loss, with its times.

    `to_bias`, `to_l2` and `to_depth_2` are distances of its end to minimisers, over |a*|. Without
    `signed` there is one copy w^L, which cannot change its sign.
    """
    case = recovery(**problem)
    net: Model = case.model(flat_start)
    if depth > 1:
        net = DiagonalNet(depth, alpha=start, signed=signed)
    rules: Any = {"stop": [Steps(most), Loss(FITTED)], "record": LogSpaced(points_per_decade)}
    path = train(net, case.problem, GradientDescent(step), **rules)
    run, end, bias = path.dataset, path.predictor, bias_of(depth, start)
    steps, errors = run.step.values.astype(float), run.relative_error.values
    size, goals = np.linalg.norm(case.truth), {"to_bias": bias, "to_l2": L2()}
    goals["to_depth_2"] = bias_of(2, start)
    apart = {n: float(np.linalg.norm(end - selected(case, r)) / size) for n, r in goals.items()}
    return apart | {
        "t1": reached(steps, run.loss.values, SOLVED),
        "t2": reached(steps, errors, level),
        "end_error": float(errors[-1]),
        "end_foreseen": error(case, bias),
        "start_foreseen": escape(case, depth, start) / step,
        "misfit": float(np.linalg.norm(case.X @ end - case.y) / np.linalg.norm(case.y)),
        "trajectory_step": steps,
        "trajectory_loss": run.loss.values,
        "trajectory_relative_error": errors,
    }


def escape(case: Recovery | Regression, depth: int, start: float) -> float:
    """The time in which one weight w grows from `start` until w^depth is the steepest slope c.

    c = |X^T y|_inf is the slope at zero, where dw/dt = depth c w^(depth-1).
    """
    c = float(np.abs(case.X.T @ case.y).max())
    end = c ** (1 / depth)
    if depth == 2:
        return math.log(end / start) / (2 * c)
    power = 2 - depth
    begin = start if depth > 1 else 0.0
    return (end**power - begin**power) / (power * depth * c)


LABELS = {
    "samples": "number N of samples",
    "depth": "number L of layers",
    "error": "relative error |a - a*|/|a*| of the exact minimiser of Q at this depth",
    "large_error": "the same from a start of 1 per layer",
    "sparse_error": "the same for the interpolator of least l1 norm, at all depths",
    "t1": "step at which the training loss falls to 1e-4",
    "t2": "step at which the relative error falls to the level; nan if it does not",
    "end_error": "relative error at the end of the run",
    "end_foreseen": "relative error of the exact minimiser on the same problem",
    "start_foreseen": "step at which the entry with the steepest slope, trained alone, has grown"
    " to its full size",
    "misfit": "norm of the residual over that of the labels",
    "trajectory_relative_error": "|a - a*|/|a*|",
    "trajectory_loss": "training loss, half the sum of squared residuals",
}
GIVEN = {"kind": "sparse", "dimension": 100, "few": 5, "start": 1e-2}
RUN = GIVEN | {"flat_start": 1e-6, "step": 0.1, "level": 1e-2, "points_per_decade": 25}
RUN |= {"most": BUDGET, "signed": True}
DIMS = {f"trajectory_{name}": ["time"] for name in ("step", "loss", "relative_error")}
DEPTHS = [1, 2, 3, 4]
MANY: dict[str, Any] = {
    "seeds": 3,
    "tiny": {"seeds": 1},
    "standard": {"seeds": 5},
    "full": {"seeds": 25},
}
study = sized(
    "N-F-depth",
    title="Depth instead of a penalty: more layers need fewer samples",
    function=cell,
    arguments=GIVEN | {"large": 1.0, "noise": 0.0},
    grid={"samples": [10, 20, 30, 40, 50, 60, 70, 80, 90, 100], "depth": DEPTHS},
    labels=LABELS,
    draw={"x": "samples", "colour": "error", "log": True},
    **MANY,
)
noise = sized(
    "N-F-depth-noise",
    title="The same with the source's noise",
    function=cell,
    arguments=GIVEN | {"large": 1.0, "noise": 1e-8},
    grid={"samples": FEW, "depth": DEPTHS},
    labels=LABELS,
    **MANY,
)
runs = sized(
    "N-F-depth-runs",
    title="Depth instead of a penalty: more layers need more steps",
    function=run_cell,
    arguments=RUN,
    grid={"samples": [SHOWN], "depth": DEPTHS},
    seeds=[0],
    dims=DIMS,
    labels=LABELS,
    draw={"x": "depth", "colour": "t1", "log": True},
    standard={"grid": {"samples": [20, 30, 50]}},
    full={
        "arguments": {"points_per_decade": 50},
        "grid": {"samples": [20, 30, 40, 50, 60, 70, 80, 90]},
        "seeds": 4,
    },
)
unsigned = sized(
    "N-F-depth-unsigned",
    title="A single copy w^L of the layers, which cannot change its sign",
    function=run_cell,
    arguments=RUN | {"samples": SHOWN, "signed": False, "most": 100_000},
    grid={"depth": [2, 3]},
    seeds=[0],
    dims=DIMS,
    labels=LABELS,
    standard={"arguments": {"most": BUDGET}},
    full={"arguments": {"most": BUDGET}},
)
