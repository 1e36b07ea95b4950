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
    squares,
)
from penchant.watch.record import until
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
COUPLED = (
    "the optimizer was read, but its decay is in the gradient, which Adam divides by its size: "
    "AdamW has a rate"
)
HALF = 0.5  # of the way to the ceiling
LATE_RISES = ("grok", "slow", "double descent")
MOST = 40  # forecasts of a record that are made again for its score
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
    start = dataset.attrs["start_step"]
    try:
        curves = find_curves(dataset)
        goal = curves.goal(dataset.attrs["level"])
        near, best = goal if curves.error else (1 - error for error in goal)
        finding = grokking(
            curves.t - start,
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
    jump = finding.jump
    if finding.kind == "in progress":
        jump = math.nan  # half of what is not known
    elif finding.kind in LATE_RISES and not short:  # the number that the forecasts are about
        known = accuracies(dataset)
        jump = known.rise.late_half if known and known.rise else jump
        jump = finding.jump if math.isnan(jump) else jump
    times = (start + time for time in (finding.t1, finding.t2, jump))
    return GrokkingVerdict(finding.kind, sentence, *times)


class Accuracies(NamedTuple):
    """The accuracies of a record by their names; `side` is test or val, `rise` that of the test."""

    names: tuple[str, str]
    side: str
    curves: Pair
    rise: Rise | None  # None before memorization


def accuracies(dataset: Any) -> Accuracies | None:
    """The accuracies of training and test; None if one is missing, a ValueError if one is odd."""
    side = next((side for side in TEST if _metric(dataset, (side,), ACCURACIES)), "")
    train, test = (_metric(dataset, sides, ACCURACIES) for sides in (TRAIN, (side,)))
    if train is None or test is None:
        return None
    curves = Pair(metric(dataset, train), metric(dataset, test))
    for name, curve in zip((train, test), curves, strict=True):
        require_accuracies(name, curve)
    memorized = memorization(curves.train)
    if math.isinf(memorized):
        return Accuracies((train, test), side, curves, None)
    ceiling = min(1.0, dataset.attrs["level"] or 1.0)
    return Accuracies((train, test), side, curves, rise(curves.test, memorized, ceiling))


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
    try:
        known = accuracies(dataset)
    except ValueError as reason:
        return no_forecast("too early", str(reason))
    if known is None:
        return _without_test(dataset)
    shown = verdict(dataset)
    if shown.kind in LATE_RISES:
        name, half = known.names[1], known.rise.late_half if known.rise else math.nan
        if math.isfinite(half):
            plateau = known.rise.plateau if known.rise else math.nan
            step = dataset.attrs["start_step"] + half
            return _happened(step, f"{name} had risen half way from {plateau:.3g}")
        return _happened(shown.jump, f"{name} had made half of its late rise")
    if known.rise is None:
        return no_forecast(
            "too early",
            f"{known.names[0]} is {known.curves.train.value[-1]:.3g}: there is a forecast from the "
            f"step on at which it stays at {MEMORIZED:g}",
        )
    return _seen(dataset, known.rise, known.names[1], shown) or _ahead(
        dataset, known.rise, known, shown
    )


def _without_test(dataset: Any) -> JumpForecast:
    if not dataset.attrs["weight_decay"] > 0:
        return no_forecast("none", NO_DECAY, "weights")
    return forecast_turn(dataset)


def _seen(dataset: Any, seen: Rise, name: str, shown: GrokkingVerdict) -> JumpForecast | None:
    """A jump that has happened, or a test accuracy that was good from memorization on.

    It has happened if the verdict is of a late rise, too: an accuracy that follows the training at
    once, or that passed the half and fell again, has not jumped.
    """
    start = dataset.attrs["start_step"]
    if seen.plateau >= AT_ONCE * min(1.0, dataset.attrs["level"] or 1.0):
        return no_forecast(
            "none",
            f"{name} was {seen.plateau:.3g} when training was solved at step "
            f"{start + seen.memorized:.4g}: the net generalizes at once, and no jump is left",
        )
    if math.isnan(seen.passed):
        return None
    if shown.kind == "mirage":
        return no_forecast("none", f"the late rise is a mirage: {shown.sentence}")
    if math.isnan(seen.late_half):
        return no_forecast(
            "none",
            f"{name} was half way up at step {start + seen.passed:.4g}, soon after training was "
            f"solved at step {start + seen.memorized:.4g}: it follows the training, and no late "
            "jump is known to be left",
        )
    if shown.kind == "none" and seen.share < HALF:
        return None  # it fell again
    if shown.kind == "none":
        return no_forecast(
            "none",
            f"{name} passed the half at step {start + seen.passed:.4g}, but what it does since "
            f"training is solved is no clear late rise: {shown.sentence}",
        )
    return _happened(start + seen.passed, f"{name} had risen half way from {seen.plateau:.3g}")


def _happened(step: float, what: str) -> JumpForecast:
    sentence = f"{what} at step {step:.4g}"
    return JumpForecast("happened", step, step, step, "test accuracy", sentence)


def _ahead(dataset: Any, seen: Rise, known: Accuracies, shown: GrokkingVerdict) -> JumpForecast:
    """The forecast of a jump that has not happened."""
    if shown.kind == "mirage":
        return no_forecast("none", f"the late rise is a mirage: {shown.sentence}")
    course = decay(dataset)
    if not (dataset.attrs["weight_decay"] > 0 or (len(course.rate) and course.rate.max() > 0)):
        return no_forecast("none", NO_DECAY)
    if len(course.t) < 2:
        turn = forecast_turn(dataset)
        read = "optimizer_rate" in dataset and np.isfinite(dataset["optimizer_rate"].values).any()
        why = COUPLED if read else RATE
        sentence = f"the rate of weight decay is not known ({why}); {turn.sentence}"
        return dataclasses.replace(turn, sentence=sentence)
    if not course.rate[-1] > 0:
        return no_forecast("none", "learning rate or weight decay is zero now: no jump is due")
    start, now = dataset.attrs["start_step"], seen.now
    here = progress(course, seen, _losses(dataset, known, seen.memorized))
    here = here._replace(embedded=bool(dataset.attrs.get("embeddings", "")))
    try:
        expected = expected_jump(here)
    except ValueError as reason:
        if shown.kind == "in progress":
            return no_forecast("in progress", f"the test accuracy rises, but {reason}")
        return no_forecast("none", str(reason))
    step, low, high = (start + course.when(z, now) for z in expected)
    state = "in progress" if shown.kind == "in progress" else "expected"
    by = "the losses" if here.losses else "the test accuracy and the weights"
    risen = f"has risen to {seen.accuracy:.3g} and " if state == "in progress" else ""
    sentence = (
        f"the test accuracy {risen}is expected to be half way up at step {step:.4g}, between "
        f"{low:.4g} and {high:.4g} (80%), by {by} and a decay of {course.rate[-1]:.3g} per step"
    )
    if here.losses and not _checked(dataset):
        sentence += "; the losses are taken to be cross-entropies (labels= would show it)"
    if other := dataset.attrs.get("unfitted", ""):
        sentence += (
            f"; but the law was fitted on nets of other kinds, and this one has {other}: the "
            "interval may miss far more often than one time in five"
        )
    return JumpForecast(state, step, low, high, "test accuracy", sentence)


def _losses(dataset: Any, known: Accuracies, memorized: float) -> Losses | None:
    """Training and test cross-entropy, if recorded and consistent with the accuracies."""
    names = [_metric(dataset, sides, ("loss",)) for sides in (TRAIN, (known.side,))]
    if None in names:
        return None
    train, test = (metric(dataset, str(name)) for name in names)
    if not_cross_entropy(known.curves.test, test, memorized):
        return None
    levels = losses(train, test, memorized)
    return None if levels and squares(dataset, train, test, memorized) else levels


def _checked(dataset: Any) -> bool:
    """Whether the record has losses of labelled probe inputs."""
    name = "probe_cross_entropy"
    return name in dataset and bool(np.isfinite(dataset[name].values).any())


def forecasts_read(dataset: Any) -> list[tuple[float, JumpForecast]]:
    """The forecasts that a user could have read, each with its step: those at the glances.

    The record that is cut at a step gives the forecast that was made there; of many glances it
    takes MOST.
    """
    steps = dataset["glance_step"].values
    if not (dataset.attrs["weight_decay"] > 0 or np.nanmax(dataset["glance_rate"].values) > 0):
        return []
    every = np.unique(np.linspace(0, len(steps) - 1, MOST).round().astype(int))
    made = ((step, forecast_jump(until(dataset, step))) for step in steps[every].tolist())
    return [(step, forecast) for step, forecast in made if forecast.ahead]


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
