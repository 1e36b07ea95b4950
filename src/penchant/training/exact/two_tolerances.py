"""The error of an exact flow, measured: the run is repeated at another tolerance.

How it works. Integrators hold the error of one step; what the steps add up to depends on the
problem. The second run has ten times the tolerance, and is compared with the first at the records
of the first: at equal times, or at equal losses where the flow is integrated in the loss. The
errors of adaptive integrators grow with the tolerance, so that the distance of the two is about
the error of the looser run, some times that of the first. Twice the distance bounds the error
wherever ten times the tolerance makes one and a half times the error or more. Where the looser run
would be beyond the largest tolerance, the second run is the tighter one.

Integrators that cannot interpolate end a step at every record. Where records are dense they, and
not the tolerance, are what limits the steps of both runs, which would then agree to the last digit.
So the second run of such a flow leaves out every other record, and takes steps of twice the length
there; a record between two others gets the larger of their errors.

A flow that rests at a saddle and is led away by its own errors leaves at another time, or to
another side, at another tolerance. The distance is then of order one, and the outcome says so.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.models.model import Separable
from penchant.problems.classification import Classification
from penchant.records import Kind, Outcome
from penchant.training import stop as stopping
from penchant.training.record import At

APART = 10.0  # the factor between both tolerances
SAFETY = 2.0  # times the distance of both runs is the bound
ROUNDING = 64 * np.finfo(float).eps  # of the largest entry: what both runs may share
SAME = 1e-9  # two clocks closer than this, relatively, are equal
LONG = "largest error of the predictor by two tolerances, over its largest entry"


def certified(method: Any, model: Any, problem: Any, settings: Any, followed: Any) -> Any:
    """The flow with an `error` at every record, and in the sentence of its outcome."""
    name = "predictor" if "predictor" in followed.dataset else "predictions"
    by_margin = (
        method.by_margin
        and isinstance(problem, Classification)
        and isinstance(model, Separable)
        and not settings.weight_decay
    )
    clock = "smoothed_margin" if by_margin else "t"
    looser = APART * method.rtol <= method.tolerances[1]
    rtol = method.rtol * APART if looser else method.rtol / APART
    other = dataclasses.replace(method, rtol=rtol, certify=False)
    first, times = followed.dataset[name].values, followed.dataset[clock].values
    if not np.isfinite(times).all() or (len(times) > 1 and not times[-1] > times[0]):
        error = np.full(len(times), math.inf)
        return _judged(followed, error, method, rtol, "float64 does not hold its times")
    kept = np.arange(len(times))
    if not method.interpolates:
        kept = np.union1d(kept[::-2], 0)
    second, why = first[kept], ""
    if len(times) > 1:
        again = other.follow(model, problem, _same_moments(settings, times[kept], by_margin))
        second, why = _at(again, clock, name, times[kept])
    apart = _largest(first[kept] - second)
    apart = _at_all(apart, kept, np.arange(len(times)))
    sizes = _largest(first)
    # margins grow without end, and with them the predictor; values are learnt from zero
    unit = np.maximum.accumulate(sizes) if by_margin else np.full(len(sizes), sizes.max())
    error = np.where(apart > 0, apart / np.where(unit > 0, unit, 1.0), 0.0)
    error = SAFETY * error + ROUNDING
    return _judged(followed, error, method, rtol, why)


def _at_all(values: Array, kept: Any, records: Any) -> Array:
    """The values of the records that were kept, for all; the larger of two for one between them."""
    after = np.searchsorted(kept, records)
    before = np.where(kept[after] == records, after, after - 1)
    return np.asarray(np.maximum(values[before], values[after]))


def _largest(values: Array) -> Array:
    """The largest entry of each record, in size."""
    return np.asarray(np.abs(values).reshape(len(values), -1).max(axis=1))


def _same_moments(settings: Any, times: Array, by_margin: bool) -> Any:
    """The settings of a run that ends where the first one did, and records what it recorded."""
    if by_margin:
        stop: stopping.Stop = stopping.LogLoss(-float(times[-1]))
        moments: Any = At(margins=[g for g in times[1:-1] if g > max(times[0], 0.0)])
    else:
        stop = stopping.Time(float(times[-1]))
        moments = At(times=times[1:-1].tolist())
    return settings._replace(stops=(stop,), records=(moments,), progress=None)


def _at(again: Any, clock: str, name: str, times: Array) -> tuple[Array, str]:
    """The values of a second run at the `times`, and why some of them are missing."""
    own, values = again.dataset[clock].values, again.dataset[name].values
    spare = SAME * np.maximum(np.abs(times), 1e-300)
    # a flow at rest before the end stays where it is
    place = np.searchsorted(own, times + spare, side="right") - 1
    place = np.maximum(place, 0)
    ended = own[-1] < times[-1] - spare[-1]
    if ended and not again.outcome.ok and "at rest" not in again.outcome.sentence:
        return np.full((len(times), *values.shape[1:]), np.inf), again.outcome.sentence
    return values[place], ""


def _judged(followed: Any, error: Array, method: Any, rtol: float, why: str) -> Any:
    dataset, outcome, worst = followed.dataset, followed.outcome, float(error.max())
    dataset["error"] = ("time",), error, {"units": "1", "long_name": LONG}
    sentence = (
        f"{outcome.sentence}; error at most {worst:.2g} of the largest entry (rtol "
        f"{method.rtol:g} and {rtol:g})"
    )
    if why:
        sentence = f"{outcome.sentence}; its error is unknown: at rtol {rtol:g} {why}"
    kind = outcome.kind
    if outcome.ok and not worst <= math.sqrt(method.rtol):
        kind = Kind.APPROXIMATE
        if not why:
            sentence += (
                ": less than half of the digits; lower rtol. If that does not help, rounding "
                "decides, as where a flow rests at a saddle"
            )
    return followed._replace(dataset=dataset, outcome=Outcome(kind, sentence))
