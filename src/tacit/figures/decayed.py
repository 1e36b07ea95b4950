"""One run of a diagonal net under weight decay, measured over training time, with its forecast."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.figures.registry import Parameters

if TYPE_CHECKING:
    import xarray

    from tacit.models.diagonal import DiagonalNet
    from tacit.problems.classification import Classification

TEXTS = {
    "t": "training time",
    "train_accuracy": "accuracy on the training samples",
    "test_accuracy": "accuracy on new samples, from their distribution",
    "parameter_norm": "Euclidean norm of the parameters",
    "decayed_norm": "norm of the start times exp(-decay * t), the kernel regime's",
    "turn": "angle between the parameters and their start",
    "share_l1": "smallest margin over l1 norm, as a part of the largest possible",
    "share_l2": "smallest margin over l2 norm, as a part of the largest possible",
    "kernel_distance": "1 - cos(K(t), K(0))",
    "accuracy_l1": "test accuracy of the l1 max margin classifier",
    "accuracy_l2": "test accuracy of the l2 max margin classifier",
    "decay": "rate of the weight decay, lambda",
    "entry": "size alpha of every parameter at the start",
    "theory_entry": "(1/lambda) log alpha, alpha the size of one parameter; NaN where alpha <= 1",
    "theory_norm": "(1/lambda) log of the norm of the start",
    "forecast": "time of the transition foreseen before training",
    "forecast_low": "lower end of the interval foreseen",
    "forecast_high": "upper end of the interval foreseen",
    "jump": "measured time at which half of the late change of the test accuracy is done",
    "begins": "measured time at which a tenth of it is done",
    "ends": "measured time at which nine tenths of it are done",
}
UNITS = {"turn": "degrees"}


def decayed(problem: Classification, parameters: Parameters) -> xarray.Dataset:
    """Accuracies, norm, turn, margins and kernel distance over time, and what was foreseen."""
    from tacit.measures.forecast import forecast
    from tacit.models.diagonal import DiagonalNet

    norm, rate = parameters["norm"], parameters["rate"]
    alpha = norm / math.sqrt(2 * problem.dimension)  # L: every u_i = v_i, |(u, v)| = norm
    net = DiagonalNet(depth=2, alpha=alpha)
    limits, foreseen = _margin_limits(problem), forecast(net, problem, rate)
    dataset = _curves(_run(net, problem, parameters), parameters, limits)
    scalars = {
        "accuracy_l1": limits.accuracy_l1,
        "accuracy_l2": limits.accuracy_l2,
        "decay": rate,
        "entry": alpha,
        "forecast": foreseen.transition,
        "forecast_low": foreseen.low,
        "forecast_high": foreseen.high,
        "theory_entry": foreseen.naive,
        "theory_norm": math.log(norm) / rate,
    }
    return _labelled(dataset.assign(scalars | _measured(dataset)))


def _run(net: DiagonalNet, problem: Classification, parameters: Parameters) -> xarray.Dataset:
    """The path of the exact flow, recorded from the first time shown: log-spaced and evenly."""
    from tacit.records import NumericalError
    from tacit.training.exact.dual.flow import DualFlow
    from tacit.training.record import At
    from tacit.training.train import train

    first, last = parameters["t_first"], parameters["end"] / parameters["rate"]
    density = parameters["points_per_decade"]
    spaced = np.geomspace(first, last, round(density * math.log10(last / first)) + 1)
    even = np.linspace(0, last, 4 * density + 1)  # log-spaced records are few where it happens
    times = np.unique(np.concatenate([spaced[:-1], even[even > first]]))
    flow = DualFlow(rtol=parameters["rtol"], weight_decay=parameters["rate"])
    path = train(net, problem, flow, record=At(times=times))
    if not path.outcome.ok:
        raise NumericalError(f"flow from norm {parameters['norm']:g}", path.outcome)
    return path.dataset.isel(time=slice(1, None))  # at t = 0 there is no direction yet


@dataclasses.dataclass(frozen=True)
class _Limits:
    """The largest margins of unit l1 and l2 norm, and how accurate their classifiers are."""

    margin_l1: float
    margin_l2: float
    accuracy_l1: float
    accuracy_l2: float


def _margin_limits(problem: Classification) -> _Limits:
    from tacit.regularizers.norms import L1, L2
    from tacit.solvers.max_margin import max_margin

    assert problem.population is not None
    l1, l2 = (max_margin(problem.X, problem.y, norm()).beta for norm in (L1, L2))
    return _Limits(
        margin_l1=1 / float(np.abs(l1).sum()),
        margin_l2=1 / float(np.linalg.norm(l2)),
        accuracy_l1=problem.population.accuracy(l1),
        accuracy_l2=problem.population.accuracy(l2),
    )


def _curves(path: xarray.Dataset, parameters: Parameters, limits: _Limits) -> xarray.Dataset:
    """The recorded curves, with margins as parts of the largest possible."""
    import xarray

    names = ("train_accuracy", "test_accuracy", "parameter_norm", "turn", "kernel_distance")
    curves: dict[str, Any] = {name: ("time", path[name].values) for name in names}
    t = path.t.values
    curves["decayed_norm"] = ("time", parameters["norm"] * np.exp(-parameters["rate"] * t))
    curves["share_l1"] = ("time", path.margin_l1.values / limits.margin_l1)
    curves["share_l2"] = ("time", path.margin_l2.values / limits.margin_l2)
    return xarray.Dataset(curves, coords={"t": ("time", t)})


def _measured(dataset: xarray.Dataset) -> dict[str, float]:
    """When the late change of the test accuracy happens."""
    from tacit.measures.grokking import grokking

    found = grokking(dataset.t, dataset.train_accuracy, dataset.test_accuracy)
    return {name: getattr(found, name) for name in ("begins", "jump", "ends")}


def _labelled(dataset: xarray.Dataset) -> xarray.Dataset:
    """The dataset with a name and a unit on every variable."""
    for name, variable in dataset.variables.items():
        variable.attrs.update(long_name=TEXTS[str(name)], units=UNITS.get(str(name), "1"))
    return dataset
