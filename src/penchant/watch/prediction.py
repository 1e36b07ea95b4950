"""Whether the curves of a record show grokking, and when the test accuracy will jump."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array, with_parts
from penchant.door import door
from penchant.forecasts.jump import JumpForecast, Losses, expected_jump, no_forecast
from penchant.measures.transition import grokking
from penchant.records import Record
from penchant.watch.progress import (
    MEMORIZED,
    Pair,
    Rise,
    decay,
    losses,
    memorization,
    metric,
    not_cross_entropy,
    progress,
    require_accuracies,
    rise,
)
from penchant.watch.weights_turn import forecast_turn

TRAIN = ("train", "training")
TEST = ("test", "val", "valid", "validation", "eval")
ACCURACIES = ("accuracy", "acc")
ERRORS = ("error", "err", "loss", "mse")
PARTS = ("attrs", "data_vars", "weight_decay", "start_step", "level")  # of every record
AT_ONCE = 0.9  # share of the ceiling above which no jump is left
NO_DECAY = (
    "there is no weight decay (weight_decay=0), so the norm of the start does not shrink and no "
    "jump is due at a known time"
)
RATE = "pass optimizer= or learning_rate= to the watch"
SOLVED = 0.05  # an error that counts as none; of losses, this share of the first training loss


@dataclasses.dataclass(frozen=True, repr=False)
class GrokkingVerdict(Record):
    """`kind` is one of those of measures.grokking ("grok", "in progress", ...) or "unknown".

    `t1` and `t2` are the steps from which the training and the test curve are solved, `jump` the
    step at which the late change is half done; NaN if there is none.
    """

    kind: str
    sentence: str
    t1: float = math.nan
    t2: float = math.nan
    jump: float = math.nan


class Curves(NamedTuple):
    """Training and test curve at the steps where both are known, and how to read them."""

    t: Array
    train: Array
    test: Array
    error: bool
    source: str

    def goal(self, level: float | None) -> tuple[float, float]:
        """The error at which training is solved, and the best possible test error.

        Test is solved at `level`, if that is given.
        """
        near = SOLVED * (float(self.train[0]) if self.error else 1.0)
        wrong = near if level is None else level if self.error else 1 - level
        return min(near, wrong), max(wrong - near, 0.0)


def verdict(dataset: Any) -> GrokkingVerdict:
    """The kind of late change that the metrics of the record show, by `penchant.measures.grokking`.

    It uses the first available pair of train and test accuracies, train and test losses (solved
    at 5% of the first training loss), or a train loss with a test accuracy. In the last case
    loss / log 2 replaces the training error, which it bounds if it is a mean cross-entropy.
    The level is that of the watch, by default 0.95 for accuracies. A test curve that levels off
    short of it is solved 0.05 below its own ceiling (of losses 5% of the first training loss above
    it).
    """
    try:
        curves = find_curves(dataset)
        goal = curves.goal(dataset.attrs["level"])
        near, best = goal if curves.error else (1 - error for error in goal)
        finding = grokking(
            curves.t,
            curves.train,
            curves.test,
            near,
            best=best,
            error=curves.error,
            norm=_norms(dataset, curves.t),
        )
    except ValueError as reason:
        return GrokkingVerdict("unknown", str(reason))
    short = ""
    if finding.ceiling != float(not curves.error):
        short = f"; the best test value is taken to be {finding.ceiling:.3g}"
    sentence = f"{finding.reason} (by {curves.source} up to step {curves.t[-1]:g}{short})"
    return GrokkingVerdict(finding.kind, sentence, finding.t1, finding.t2, finding.jump)


@door
def forecast_jump(dataset: Any) -> JumpForecast:
    """When the test accuracy of a watched run will have risen half way, from its record.

    A record that is cut at a step gives the forecast that was made at that step. After the last
    record the rate of weight decay is assumed to stay constant.

    Parameters
    ----------
    dataset
        The record of a watch. It has `glance_step`, `glance_norm`, `glance_turn` and `glance_rate`
        (the share of the parameters that weight decay removes in a step, NaN if unknown),
        `call_step` with the metrics, and the attributes `weight_decay`, `start_step` and `level`.

    Returns
    -------
    JumpForecast
        The state ("expected", "in progress", "happened", "too early" or "none"), the step with the
        limits of an interval of 80%, and a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> watch = penchant.watch(lambda w, x: x @ w, np.eye(2), parameters=np.ones(2))
    >>> watch(1, np.ones(2), train_accuracy=0.5, test_accuracy=0.5)
    >>> print(penchant.forecasts.forecast_jump(watch.dataset).state)
    too early
    """
    with_parts("dataset", dataset, "the record of a watch", *PARTS)
    side = next((side for side in TEST if _metric(dataset, (side,), ACCURACIES)), "")
    names = [_metric(dataset, sides, ACCURACIES) for sides in (TRAIN, (side,))]
    if None in names:
        return _without_test(dataset)
    train, test = (str(name) for name in names)
    accuracies = Pair(metric(dataset, train), metric(dataset, test))
    try:
        for name, curve in zip((train, test), accuracies, strict=True):
            require_accuracies(name, curve)
    except ValueError as reason:
        return no_forecast("too early", str(reason))
    memorized = memorization(accuracies.train)
    if math.isinf(memorized):
        return no_forecast(
            "too early",
            f"{train} is {accuracies.train.value[-1]:.3g}: there is a forecast from the step on at "
            f"which it stays at {MEMORIZED:g}",
        )
    seen = rise(accuracies.test, memorized, min(1.0, dataset.attrs["level"] or 1.0))
    return _seen(dataset, seen, test) or _ahead(dataset, seen, accuracies, side)


def _without_test(dataset: Any) -> JumpForecast:
    if not dataset.attrs["weight_decay"] > 0:
        return no_forecast("none", NO_DECAY, "weights")
    return forecast_turn(dataset)


def _seen(dataset: Any, seen: Rise, name: str) -> JumpForecast | None:
    """A jump that has happened, or a test accuracy that was good from memorization on."""
    start = dataset.attrs["start_step"]
    if seen.plateau >= AT_ONCE * min(1.0, dataset.attrs["level"] or 1.0):
        return no_forecast(
            "none",
            f"{name} was {seen.plateau:.3g} when training was solved at step "
            f"{start + seen.memorized:.4g}: the net generalizes at once, and no jump is left",
        )
    if math.isnan(seen.passed):
        return None
    return _happened(start + seen.passed, f"{name} had risen half way from {seen.plateau:.3g}")


def _happened(step: float, what: str) -> JumpForecast:
    sentence = f"{what} at step {step:.4g}"
    return JumpForecast("happened", step, step, step, "test accuracy", sentence)


def _ahead(dataset: Any, seen: Rise, accuracies: Pair, side: str) -> JumpForecast:
    """The forecast of a jump that has not happened."""
    course = decay(dataset)
    if not (dataset.attrs["weight_decay"] > 0 or (len(course.rate) and course.rate.max() > 0)):
        return no_forecast("none", NO_DECAY)
    if len(course.t) < 2:
        turn = forecast_turn(dataset)
        sentence = f"the rate of weight decay is not known ({RATE}); {turn.sentence}"
        return dataclasses.replace(turn, sentence=sentence)
    if not course.rate[-1] > 0:
        return no_forecast("none", "learning rate or weight decay is zero now: no jump is due")
    start, now = dataset.attrs["start_step"], seen.now
    here = progress(course, seen, _losses(dataset, accuracies, side, seen.memorized))
    try:
        expected = expected_jump(here)
    except ValueError as reason:
        finding = verdict(dataset)  # the test accuracy may have levelled off far below one
        if finding.kind in ("grok", "slow") and finding.jump > start + seen.memorized:
            return _happened(finding.jump, "the test accuracy had made half of its late rise")
        return no_forecast("none", str(reason))
    step, low, high = (start + course.when(z, now) for z in expected)
    state = "in progress" if seen.begun else "expected"
    by = "the losses" if here.losses else "the test accuracy and the weights"
    risen = f"has risen to {seen.accuracy:.3g} and " if state == "in progress" else ""
    sentence = (
        f"the test accuracy {risen}is expected to be half way up at step {step:.4g}, between "
        f"{low:.4g} and {high:.4g} (80%), by {by} and a decay of {course.rate[-1]:.3g} per step"
    )
    return JumpForecast(state, step, low, high, "test accuracy", sentence)


def _losses(dataset: Any, accuracies: Pair, side: str, memorized: float) -> Losses | None:
    """Training and test cross-entropy, if recorded and consistent with the accuracies."""
    names = [_metric(dataset, sides, ("loss",)) for sides in (TRAIN, (side,))]
    if None in names:
        return None
    train, test = (metric(dataset, str(name)) for name in names)
    if not_cross_entropy(accuracies.test, test, memorized):
        return None
    return losses(train, test, memorized)


def find_curves(dataset: Any) -> Curves:
    """The most informative pair of curves; a ValueError says which metrics are missing."""
    for kinds in (ACCURACIES, *((kind,) for kind in ERRORS)):
        train, test = _metric(dataset, TRAIN, kinds), _metric(dataset, TEST, kinds)
        if train and test:
            return _pair(dataset, train, test, error=kinds is not ACCURACIES)
    train, test = _metric(dataset, TRAIN, ERRORS), _metric(dataset, TEST, ACCURACIES)
    if train and test:
        curves = _pair(dataset, train, test, error=False)
        bound = 1 - np.minimum(curves.train / math.log(2), 1.0)
        return curves._replace(train=bound, source=f"{train} / log 2 and {test}")
    raise ValueError(
        "there are no training and test curves; pass train_accuracy= and test_accuracy= (or "
        "train_loss= and test_loss=) to the calls"
    )


def _pair(dataset: Any, train: str, test: str, error: bool) -> Curves:
    t, first, second = (dataset[name].values for name in ("call_step", train, test))
    known = np.isfinite(first) & np.isfinite(second)
    if np.count_nonzero(known) < 2:
        raise ValueError(f"{train} and {test} are known together at fewer than 2 calls")
    first, second = first[known], second[known]
    if error and not first[0] > 0:
        raise ValueError(f"{train} starts at {first[0]:g}; a loss must start above zero")
    return Curves(t[known], first, second, error, f"{train} and {test}")


def _metric(dataset: Any, sides: tuple[str, ...], kinds: tuple[str, ...]) -> str | None:
    names = (f"{side}_{kind}" for side in sides for kind in kinds)
    return next((name for name in names if name in dataset), None)


def _norms(dataset: Any, t: Array) -> Array | None:
    """The parameter norm at the calls; log norm is interpolated linearly between glances."""
    steps, norms = dataset["glance_step"].values, dataset["glance_norm"].values
    known = np.isfinite(norms) & (norms > 0)
    if np.count_nonzero(known) < 2:
        return None
    return np.exp(np.interp(t, steps[known], np.log(norms[known])))
