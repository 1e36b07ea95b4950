"""The progress of a recorded run: memorization, the rise of its test accuracy, and its decay."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.forecasts.jump import Losses, Progress
from penchant.measures.curves import ScoreCurve, crossing, smoothed, without_spikes
from penchant.measures.late_change import LATE

MEMORIZED = 0.99  # training accuracy
FEWEST = 5  # records of a metric
MOST = 3000  # records of a metric that are read, evenly spaced in the logarithm of the steps
STAYS = 1.2  # a fall of the training accuracy after this factor in time does not count
WINDOW = 1.2  # a slope is taken from now / WINDOW to now
BEGUN = 0.2  # of the way to the ceiling
FARTHEST = 1.5  # the most by which a rise is extrapolated in log z
ROUNDING = 1e-6
UNLIKE = math.log(4)  # the most by which probe inputs may differ from samples of training or test


class Metric(NamedTuple):
    """A metric where it is known, over the steps since the start."""

    t: Array
    value: Array


class Pair(NamedTuple):
    """The same metric of training and test."""

    train: Metric
    test: Metric


class Rise(NamedTuple):
    """Memorization and the test accuracy since; steps are counted from the start."""

    memorized: float
    plateau: float
    now: float
    accuracy: float
    passed: float  # when the accuracy passed half of the way to the ceiling, NaN before
    share: float  # of the way from the plateau to the ceiling
    before: float  # the same at `now` / WINDOW, or at memorization

    @property
    def late_half(self) -> float:
        """When it passed the half, if that is late, else NaN."""
        return self.passed if self.passed > LATE * self.memorized else math.nan

    @property
    def begun(self) -> bool:
        """True if the late rise has begun; a rise that follows training at once is not late."""
        return self.share > BEGUN and self.now > LATE * self.memorized


def metric(dataset: Any, name: str) -> Metric:
    """The metric `name` after the start, in at most MOST records."""
    t = dataset["call_step"].values - dataset.attrs["start_step"]
    value = dataset[name].values
    known = np.isfinite(value) & (t > 0)
    t, value = t[known], value[known]
    if len(t) > MOST:
        places = np.searchsorted(t, np.geomspace(t[0], t[-1], MOST))
        chosen = np.unique(np.minimum(places, len(t) - 1))
        t, value = t[chosen], value[chosen]
    return Metric(t, value)


def require_accuracies(name: str, seen: Metric) -> None:
    """Raise an error for values that are not accuracies, and for too few records."""
    if len(seen.t) < FEWEST:
        raise ValueError(
            f"{name} is known at {len(seen.t)} calls, and a forecast needs {FEWEST} at least"
        )
    outside = seen.value[(seen.value < 0) | (seen.value > 1 + ROUNDING)]
    if len(outside):
        raise ValueError(
            f"{name} must be between 0 and 1, got {outside[0]:g}; divide percentages by 100"
        )


def memorization(train: Metric) -> float:
    """The first step from which the training accuracy stays at 0.99 for a while; inf if never.

    This is the earlier of the steps for the accuracy and for the smoothed accuracy.
    """
    curve = smoothed(train.t, train.value)
    return min(_reached(train.t, values) for values in (train.value, curve.score))


def _reached(t: Array, values: Array) -> float:
    """The first time from which values are at MEMORIZED until STAYS times as late, or until now."""
    below = np.append(t[values < MEMORIZED], math.inf)
    for time in t[values >= MEMORIZED]:
        if below[np.searchsorted(below, time)] > STAYS * time:
            return float(time)
    return math.inf


def rise(test: Metric, memorized: float, ceiling: float) -> Rise:
    """The rise of the test accuracy since memorization, relative to `ceiling`."""
    curve = smoothed(test.t, without_spikes(test.t, test.value))
    plateau, accuracy = curve.at(memorized), float(curve.score[-1])
    way = max(ceiling - plateau, ROUNDING)
    later = test.t > memorized
    t, score = np.append(memorized, test.t[later]), np.append(plateau, curve.score[later])
    passed = crossing(t, score, plateau + way / 2)
    now = float(test.t[-1])
    share, before = (
        (value - plateau) / way for value in (accuracy, curve.at(max(now / WINDOW, memorized)))
    )
    return Rise(memorized, plateau, now, accuracy, passed, share, before)


class Decay(NamedTuple):
    """Norm, turn and the sum of the decay rates at the glances with a known rate."""

    t: Array
    norm: Array
    turn: Array
    rate: Array

    @property
    def z(self) -> Array:
        """The rates summed over the steps: from the start on, with the first known rate before."""
        middle = (self.rate[1:] + self.rate[:-1]) / 2 * np.diff(self.t)
        return np.cumsum(np.append(self.rate[0] * self.t[0], middle))

    def at(self, time: float) -> float:
        """z at a time, with the last known rate after the last glance."""
        later = max(time - float(self.t[-1]), 0.0) * float(self.rate[-1])
        return float(np.interp(time, self.t, self.z)) + later

    def when(self, z: float, now: float) -> float:
        """The time of a later z, if the rate stays constant."""
        return now + (z - self.at(now)) / float(self.rate[-1])


def decay(dataset: Any) -> Decay:
    """The glances of a record at which the rate of decay is known."""
    t = dataset["glance_step"].values - dataset.attrs["start_step"]
    names = ("glance_norm", "glance_turn", "glance_rate")
    norm, turn, rate = (dataset[name].values for name in names)
    known: NDArray[np.bool_] = np.isfinite(norm) & np.isfinite(turn) & np.isfinite(rate)
    return Decay(*(values[known] for values in (t, norm, turn, rate)))


def losses(train: Metric, test: Metric, memorized: float) -> Losses | None:
    """The losses that the law needs; None if records are missing or not above zero."""
    for seen in (train, test):
        if len(seen.t) < FEWEST or seen.t[0] > memorized or not (seen.value > 0).all():
            return None
    first, later = (_log_curve(seen) for seen in (train, test))
    now = float(test.t[-1])
    before = max(now / WINDOW, float(test.t[0]))
    slope = (later.at(now) - later.at(before)) / math.log(now / before) if now > before else 0.0
    highest = max(
        float(later.score[test.t >= memorized].max(initial=-math.inf)), later.at(memorized)
    )
    return Losses(
        memorized=math.exp(first.at(memorized)),
        test=math.exp(later.at(now)),
        highest=math.exp(highest),
        slope=slope,
    )


def _log_curve(seen: Metric) -> ScoreCurve:
    return smoothed(seen.t, np.log(seen.value))


def not_cross_entropy(accuracy: Metric, loss: Metric, memorized: float) -> bool:
    """True if a loss cannot be the mean cross-entropy at these accuracies.

    The label of a sample that is classified wrongly has a probability of at most 1/2. The median
    of the records from half of the memorization time on decides, because losses may come from
    other batches than the accuracies; only records with mostly wrong samples count, if there are
    any.
    """
    wrong = 1 - np.interp(loss.t, accuracy.t, accuracy.value)
    used = loss.t >= memorized / 2
    used = used & (wrong > 0.5) if (used & (wrong > 0.5)).any() else used
    rest = (loss.value - (1 - ROUNDING) * math.log(2) * wrong)[used]
    return bool(len(rest) and np.median(rest) < 0)


def squares(dataset: Any, train: Metric, test: Metric, memorized: float) -> bool:
    """True if the losses are nearer to the square errors of the labelled probe inputs.

    These are samples of training or test (or some of both), and after memorization one of the two
    losses is theirs. False where the record has no losses of the probe inputs.
    """
    if "probe_squares" not in dataset:
        return False
    t = dataset["step"].values - dataset.attrs["start_step"]
    entropy, square = (dataset[n].values for n in ("probe_cross_entropy", "probe_squares"))
    used = (t >= memorized) & (entropy > 0) & (square > 0)
    if not used.any():
        return False
    outputs = dataset.sizes["component"]
    near = _nearest(entropy[used], t[used], (train, test))
    parts = {1.0, 0.5, 1 / outputs, 0.5 / outputs}
    other = min(_nearest(part * square[used], t[used], (train, test)) for part in parts)
    return other < near or near > UNLIKE


def _nearest(seen: Array, t: Array, curves: tuple[Metric, ...]) -> float:
    """The median of |log| of values over a loss, of the loss to which they are nearest."""
    logs = (np.interp(t, curve.t, np.log(curve.value)) for curve in curves)
    return min(float(np.median(np.abs(np.log(seen) - log))) for log in logs)


def progress(course: Decay, seen: Rise, known_losses: Losses | None) -> Progress:
    """The numbers of a law at the last record of the test accuracy."""
    norm, turn = (
        float(np.interp(seen.now, course.t, values)) for values in (course.norm, course.turn)
    )
    z = course.at(seen.now)
    half = math.inf
    if seen.begun and seen.share < 0.5:
        passed = math.log(z / course.at(max(seen.now / WINDOW, seen.memorized)))
        gained = max(seen.share - seen.before, ROUNDING)
        half = z * math.exp(min((0.5 - seen.share) * passed / gained, FARTHEST))
    return Progress(z, seen.accuracy, norm / float(course.norm[0]), turn, known_losses, half)
