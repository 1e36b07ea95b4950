"""One run of a diagonal net under weight decay through its transition, its check and picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.evidence.evidence import Check
from tacit.measures.forecast import forecast
from tacit.measures.grokking import grokking
from tacit.models.diagonal import DiagonalNet
from tacit.plotting.style import caption_of
from tacit.plotting.transition import draw_transition
from tacit.problems.classification import Classification
from tacit.records import NumericalError
from tacit.regularizers.norms import L1, L2
from tacit.solvers.max_margin import max_margin
from tacit.studies.compute import TRAJECTORY
from tacit.training.exact.dual.flow import DualFlow
from tacit.training.record import At
from tacit.training.train import train

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

CURVES = {
    "t": "training time",
    "train_accuracy": "accuracy on the training samples",
    "test_accuracy": "accuracy on new samples, from their distribution",
    "parameter_norm": "Euclidean norm of the parameters",
    "decayed_norm": "norm of the start times exp(-lambda t), the kernel regime's",
    "turn": "angle between the parameters and their start (degrees)",
    "share_l1": "smallest margin over l1 norm, as a part of the largest possible",
    "share_l2": "smallest margin over l2 norm, as a part of the largest possible",
    "kernel_distance": "1 - cos(K(t), K(0))",
}
LABELS = {f"{TRAJECTORY}{name}": text for name, text in CURVES.items()} | {
    "norm": "Euclidean norm of the start",
    "rate": "rate of the weight decay, lambda",
    "entry": "size alpha of every parameter at the start",
    "jump": "time at which half of the late change of the test accuracy is done",
    "begins": "time at which a tenth of it is done",
    "ends": "time at which nine tenths of it are done",
    "kind": "what kind of late change the curves show",
    "forecast": "time of the transition foreseen before training",
    "forecast_low": "lower end of the interval foreseen",
    "forecast_high": "upper end of the interval foreseen",
    "theory_norm": "(1/lambda) log of the norm of the start",
    "theory_entry": "(1/lambda) log of the size of one parameter; NaN up to size 1",
    "accuracy_l1": "test accuracy of the l1 max margin classifier",
    "accuracy_l2": "test accuracy of the l2 max margin classifier",
}
DIMS = {f"{TRAJECTORY}{name}": ["time"] for name in CURVES}
GIVEN = {"end": 12.0, "t_first": 0.01, "points_per_decade": 20, "rtol": 1e-6}


def transition(
    problem: Classification,
    norm: float,
    rate: float,
    *,
    end: float,
    t_first: float,
    points_per_decade: int,
    rtol: float,
) -> dict[str, Any]:
    """Accuracies, norm, turn, margins and kernel distance up to t = end/rate, and the forecast."""
    assert problem.population is not None
    alpha = norm / math.sqrt(2 * problem.dimension)  # L: every u_i = v_i, |(u, v)| = norm
    net = DiagonalNet(depth=2, alpha=alpha)
    l1, l2 = (max_margin(problem.X, problem.y, penalty()).beta for penalty in (L1, L2))
    foreseen = forecast(net, problem, rate)
    last = end / rate
    spaced = np.geomspace(t_first, last, round(points_per_decade * math.log10(last / t_first)) + 1)
    even = np.linspace(0, last, 4 * points_per_decade + 1)  # log-spaced records are few late
    times = np.unique(np.concatenate([spaced[:-1], even[even > t_first]]))
    path = train(net, problem, DualFlow(rtol=rtol, weight_decay=rate), record=At(times=times))
    if not path.outcome.ok:
        raise NumericalError(f"flow from norm {norm:g}", path.outcome)
    run = path.dataset.isel(time=slice(1, None))  # at t = 0 there is no direction yet
    curves = {name: run[name].values for name in CURVES if name in run}
    curves["decayed_norm"] = norm * np.exp(-rate * curves["t"])
    curves["share_l1"] = run.margin_l1.values * np.abs(l1).sum()
    curves["share_l2"] = run.margin_l2.values * np.linalg.norm(l2)
    found = grokking(curves["t"], curves["train_accuracy"], curves["test_accuracy"])
    return {f"{TRAJECTORY}{name}": values for name, values in curves.items()} | {
        "entry": alpha,
        "accuracy_l1": problem.population.accuracy(l1),
        "accuracy_l2": problem.population.accuracy(l2),
        "forecast": foreseen.transition,
        "forecast_low": foreseen.low,
        "forecast_high": foreseen.high,
        "theory_entry": foreseen.naive,
        "theory_norm": math.log(norm) / rate,
        "begins": found.begins,
        "jump": found.jump,
        "ends": found.ends,
        "kind": found.kind,
    }


def run_of(dataset: xarray.Dataset) -> xarray.Dataset:
    """The first run of a study, its curves under their plain names."""
    run = dataset.isel(norm=0, rate=0, seed=0)
    curves = {f"{TRAJECTORY}{name}": name for name in CURVES}
    return run.rename(curves).dropna("time", subset=["t"]).assign(decay=run.rate)


def at(run: xarray.Dataset, name: str, t: float) -> float:
    """A curve at time t, linear in log t between records."""
    return float(np.interp(np.log(t), np.log(run.t.values), run[name].values))


def two_biases(run: xarray.Dataset) -> tuple[list[Check], dict[str, Check], dict[str, Any]]:
    """(checks, controls, premises): the kernel's classifier at half of the forecast, l1's last.

    The controls exchange the two, or take log alpha with alpha the size of one parameter.
    """
    half, last = float(run.forecast) / 2, float(run.t[-1])
    l1, l2 = float(run.accuracy_l1), float(run.accuracy_l2)
    early = Check(
        "test accuracy at half of the forecast against the l2 max margin's",
        at(run, "test_accuracy", half),
        l2,
        0.02,
    )
    late = Check(
        "test accuracy at the end against the l1 max margin's",
        at(run, "test_accuracy", last),
        l1,
        0.02,
    )
    kernel = Check(
        "l2 margin at half of the forecast, share of the largest",
        at(run, "share_l2", half),
        0.9,
        kind="at least",
    )
    rich = Check(
        "l1 margin at the end, share of the largest",
        at(run, "share_l1", last),
        0.85,
        kind="at least",
    )
    shrinks = Check(
        "norm at half of the forecast over that of the start times e^(-lambda t)",
        at(run, "parameter_norm", half) / at(run, "decayed_norm", half),
        1.0,
        0.02,
    )
    time = Check(
        "time foreseen before training over the measured one", run.forecast / run.jump, 1.0, 0.5
    )
    naive = max(math.log(float(run.entry)), 0.0) / float(run.decay)
    controls = {
        "the l1 max margin's accuracy in the kernel phase": early.control(predicted=l1),
        "the l2 max margin's accuracy at the end": late.control(predicted=l2),
        "the l1 margin at half of the forecast": kernel.control(at(run, "share_l1", half)),
        "the l2 margin at the end": rich.control(at(run, "share_l2", last)),
        "pure decay of the norm up to the end": shrinks.control(
            at(run, "parameter_norm", last) / at(run, "decayed_norm", last)
        ),
        "(1/lambda) log alpha with alpha the size of one parameter": time.control(
            naive / float(run.jump)
        ),
    }
    trained = float(run.train_accuracy.min())
    premises = {"all training samples are right from the first record on": (trained == 1, trained)}
    return [early, late, kernel, rich, shrinks, time], controls, premises


def draw(dataset: xarray.Dataset) -> Figure:
    """Accuracy, norm, turn, margins and kernel distance over one time axis."""
    return draw_transition(run_of(dataset), caption_of(dataset.attrs))
