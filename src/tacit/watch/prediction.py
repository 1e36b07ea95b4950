"""What the curves of a record say: grokked or not, and when the transition is to be expected."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.measures.forecast import Forecast, forecast_run
from tacit.measures.grokking import grokking
from tacit.records import Record

TRAIN = ("train", "training")
TEST = ("test", "val", "valid", "validation", "eval")
ACCURACIES = ("accuracy", "acc")
ERRORS = ("error", "err", "loss", "mse")
SOLVED = 0.05  # an error that counts as none; of losses, this share of the first training loss
# forecast_run extends the kernel phase by a straight line, and runs come later: the margin falls
# on the way and the features begin to grow. In units of 1/rate the delay was 0.5 to 1.3 for ReLU
# and diagonal nets of degree 2 to 4 (1.6 at degree 5), and near the end it is at most 0.6 times
# log(decayed start / displacement). Asked 261 times during 23 runs (descent, SGD, AdamW), the
# interval missed the truth 8 times, that of forecast_run 105 times; 6 and 38 of 79 on the runs
# that had no part in choosing these numbers, all 6 early: of degree 5, or AdamW at 5%.
LATER = (0.75, 1.5)  # expected and at most
NEARER = (0.3, 0.7)
DRIFT = 2.0  # a forecast that moved since half of the record may move so many times as far again
SEEN = 0.1  # of the norm: before, the parameters turn because they fit the data
TURNS = (14.04, 45.0, 75.96)  # degrees at which the displacement is 1/4, 1 and 4 decayed starts


@dataclasses.dataclass(frozen=True, repr=False)
class Verdict(Record):
    """`kind` is one of those of tacit.grokking ("grok", "in progress", ...) or "unknown".

    `t1` and `t2` are the steps from which the training and the test curve are solved, `jump` the
    step at which the late change is half done; NaN where there is no such thing.
    """

    kind: str
    sentence: str
    t1: float = math.nan
    t2: float = math.nan
    jump: float = math.nan


@dataclasses.dataclass(frozen=True, repr=False)
class Transition(Record):
    """The step at which the run leaves the kernel regime, between `low` and `high`; or why not.

    All three are NaN where there is no forecast; `rate` is the decay of the norm per step.
    """

    step: float
    low: float
    high: float
    rate: float
    sentence: str

    @property
    def known(self) -> bool:
        return math.isfinite(self.step)


class Curves(NamedTuple):
    """Training and test curve at the steps where both are known, and how to read them."""

    t: Array
    train: Array
    test: Array
    error: bool
    source: str

    def goal(self, level: float | None) -> tuple[float, float]:
        """The error at which training is solved, and that of the best there is on the test side.

        Test is solved at `level`, if that is given.
        """
        near = SOLVED * (float(self.train[0]) if self.error else 1.0)
        wrong = near if level is None else level if self.error else 1 - level
        return min(near, wrong), max(wrong - near, 0.0)


def verdict(dataset: Any) -> Verdict:
    """What kind of late change the metrics of the record show, as `tacit.grokking` tells them.

    It takes the first pair there is of train and test accuracies, train and test losses (solved
    at 5% of the first training loss), or a train loss with a test accuracy. In the last case
    loss / log 2 stands for the training error, which it bounds if it is a mean cross-entropy.
    The level is that of the watch, by default 0.95 for accuracies. A test curve that levels off
    short of it is solved 0.05 below its own ceiling (of losses 5% of the first training loss above
    it).
    """
    try:
        curves = find_curves(dataset)
        goal = curves.goal(dataset.attrs["level"])
        near, best = goal if curves.error else (1 - error for error in goal)
        found = grokking(
            curves.t,
            curves.train,
            curves.test,
            near,
            best=best,
            error=curves.error,
            norm=_norms(dataset, curves.t),
        )
    except ValueError as reason:
        return Verdict("unknown", str(reason))
    short = ""
    if found.ceiling != float(not curves.error):
        short = f"; the best test value is taken to be {found.ceiling:.3g}"
    sentence = f"{found.reason} (by {curves.source}{short})"
    return Verdict(found.kind, sentence, found.t1, found.t2, found.jump)


def transition(dataset: Any) -> Transition:
    """When the run leaves the kernel regime under weight decay, from its norms and directions."""
    decay = dataset.attrs["weight_decay"]
    if not decay > 0:
        return _unknown(
            "there is no weight decay (weight_decay=0), so the norm of the start does not shrink "
            "and no transition is due at a known time"
        )
    start = dataset.attrs["start_step"]
    t = dataset["glance_step"].values - start
    norm, turn = dataset["glance_norm"].values, dataset["glance_turn"].values
    known = np.isfinite(norm) & np.isfinite(turn)
    if np.count_nonzero(known) < 2:
        return _unknown("the record is too short for a forecast; record more of the run")
    t, norm, turn = t[known], norm[known], turn[known]
    if turn.max() >= TURNS[1]:
        return _happened(t, norm, turn, start)
    try:
        found = forecast_run(t, norm, turn)
    except ValueError as reason:
        return _unknown(str(reason))
    taken = -math.expm1(-found.weight_decay * float(t[-1]))
    if taken < SEEN:
        return _unknown(
            f"it is too early for a forecast: weight decay has taken {taken:.2%} of the norm, and "
            f"until about {SEEN:.0%} the parameters turn because they fit the data"
        )
    half = t <= t[-1] / 2
    try:
        before = forecast_run(t[half], norm[half], turn[half])
    except ValueError:
        return _unknown(
            "it is too early for a forecast: half of the record gives none to compare with"
        )
    drift = max(found.transition - before.transition, 0.0)
    return _later(found, drift, float(t[-1]), float(turn[-1]), start)


def _later(found: Forecast, drift: float, now: float, turn: float, start: float) -> Transition:
    """The forecast with the delay that runs have on it; what is not past 45 degrees is ahead."""
    short = -math.log(math.tan(math.radians(turn)))
    expected, most = (
        found.transition + min(later, nearer * short) / found.weight_decay
        for later, nearer in zip(LATER, NEARER, strict=True)
    )
    high = max(most, found.high) + DRIFT * drift
    step, low, high = (start + max(value, now) for value in (expected, found.low, high))
    sentence = (
        f"the norm decays at {found.weight_decay:.4g} per step; the transition is expected at step "
        f"{step:.4g}, between {low:.4g} and {high:.4g}"
    )
    return Transition(step, low, high, found.weight_decay, sentence)


def _happened(t: Array, norm: Array, turn: Array, start: float) -> Transition:
    """What was seen of a transition: the parameters have turned by 45 degrees."""
    highest = np.maximum.accumulate(turn)
    low, step, high = (float(np.interp(angle, highest, t)) for angle in TURNS)
    if not np.interp(step, t, norm) < (1 - SEEN) * norm[0]:
        return _unknown(
            f"the parameters had turned by {TURNS[1]:.0f} degrees at step {start + step:.4g}, when "
            f"weight decay had not taken {SEEN:.0%} of their norm: learning turned them, and there "
            "is no kernel phase that weight decay would end"
        )
    sentence = (
        f"the transition has happened: the parameters had turned from the start by {TURNS[0]:.0f} "
        f"degrees at step {start + low:.4g}, by {TURNS[1]:.0f} at {start + step:.4g}, and by "
        f"{min(highest[-1], TURNS[2]):.0f} at {start + high:.4g}"
    )
    return Transition(start + step, start + low, start + high, math.nan, sentence)


def find_curves(dataset: Any) -> Curves:
    """The pair of curves that tells most; a ValueError says which metrics are missing."""
    for kinds in (ACCURACIES, *((kind,) for kind in ERRORS)):
        train, test = _metric(dataset, TRAIN, kinds), _metric(dataset, TEST, kinds)
        if train and test:
            return _pair(dataset, train, test, error=kinds is not ACCURACIES)
    train, test = _metric(dataset, TRAIN, ERRORS), _metric(dataset, TEST, ACCURACIES)
    if train and test:
        found = _pair(dataset, train, test, error=False)
        bound = 1 - np.minimum(found.train / math.log(2), 1.0)
        return found._replace(train=bound, source=f"{train} / log 2 and {test}")
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
    """The parameter norm at the calls, between the glances linear in log norm."""
    steps, norms = dataset["glance_step"].values, dataset["glance_norm"].values
    known = np.isfinite(norms) & (norms > 0)
    if np.count_nonzero(known) < 2:
        return None
    return np.exp(np.interp(t, steps[known], np.log(norms[known])))


def _unknown(sentence: str) -> Transition:
    return Transition(math.nan, math.nan, math.nan, math.nan, sentence)
