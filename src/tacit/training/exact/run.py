"""A run of an exact flow: penalties as decay, half squares in units of squares, overflow."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from tacit.regularizers.norms import L2
from tacit.regularizers.penalty import Term
from tacit.training import record as recording
from tacit.training import stop as stopping
from tacit.training.exact.flow import Course, Flow, Followed

WHOLE = "in units of the whole sum of squares: half the time, twice the loss"


def run_flow(method: Flow, model: Any, problem: Any, penalty: Any, course: Course) -> Followed:
    """Where the flow goes, in the units of the problem."""
    who = type(method).__name__
    decay = method.weight_decay + _decay(who, penalty)
    course = course._replace(weight_decay=decay)
    half = getattr(problem, "loss", None) == "half squares"
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            if not half:
                return method.follow(model, problem, course)
            whole = dataclasses.replace(problem, loss="squares")
            return _halved(method.follow(model, whole, _doubled(course)))
    except (FloatingPointError, OverflowError):
        sizes = [
            f"|{name}| up to {np.abs(getattr(problem, name)).max():.3g}"
            for name in ("X", "y")
            if isinstance(getattr(problem, name, None), np.ndarray)
        ]
        seen = f" ({', '.join(sizes)})" if sizes else ""
        raise ValueError(
            f"{who}: the squares or products of this problem{seen} and this start are beyond "
            "float64; rescale the data or take another start"
        ) from None


def _decay(who: str, penalty: Any) -> float:
    """The rate c of a penalty (c/2) |theta|^2, the only one that a flow follows exactly."""
    if penalty is None:
        return 0.0
    terms = penalty.weighted if isinstance(penalty, Term) else ()
    plain = [isinstance(r, L2) and r.squared and r.weights is None for _, r in terms]
    if not plain or not all(plain):
        raise ValueError(
            f"{who}: an exact flow takes the penalty c * L2() only, which is a weight decay of "
            f"2 c, got {penalty!r}; use Subgradient or Proximal"
        )
    return float(sum(2 * weight for weight, _ in terms))


def _doubled(course: Course) -> Course:
    """The same course on twice the loss, where time runs twice as fast and decay counts double."""
    twice: dict[type, Any] = {
        stopping.Time: lambda rule: stopping.Time(rule.t / 2),
        stopping.Loss: lambda rule: stopping.Loss(2 * rule.value),
        stopping.LogLoss: lambda rule: stopping.LogLoss(rule.value + math.log(2)),
    }
    stops = [twice.get(type(rule), lambda rule: rule)(rule) for rule in course.stops]
    records: list[recording.Rule] = []
    for given in course.records:
        if isinstance(given, recording.At) and given.times is not None:
            given = recording.At(times=[t / 2 for t in given.times])
        records.append(given)
    decay = 2 * course.weight_decay
    return Course(tuple(stops), tuple(records), decay, course.progress)


def _halved(followed: Followed) -> Followed:
    """The records in units of half the squares."""
    dataset = followed.dataset.copy()
    log2 = math.log(2)
    shifts = {"log_t": log2, "log_loss": -log2}
    factors = {"t": 2.0, "loss": 0.5}
    for name in {*shifts, *factors} & set(dataset.variables):
        values = dataset[name].values
        moved = values + shifts[name] if name in shifts else values * factors[name]
        dataset[name] = (dataset[name].dims, moved, dataset[name].attrs)
    sentence = f"{followed.outcome.sentence} ({WHOLE})"
    outcome = dataclasses.replace(followed.outcome, sentence=sentence)
    return followed._replace(dataset=dataset, outcome=outcome)
