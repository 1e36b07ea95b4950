"""How far a recorded run has come: memorization, the rise of its test accuracy, and its decay."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.measures.curves import Curve, crossing, smoothed
from tacit.measures.jump import Losses, Progress

MEMORIZED = 0.99  # training accuracy
FEWEST = 5  # records of a metric
MOST = 3000  # records of a metric that are read, evenly spaced in the logarithm of the steps
WINDOW = 1.2  # a slope is taken from now / WINDOW to now
ROUNDING = 1e-6


class Metric(NamedTuple):
    """A metric where it is known, over the steps since the start."""

    t: Array
    value: Array


class Pair(NamedTuple):
    """The same metric of training and test."""

    train: Metric
    test: Metric


class Rise(NamedTuple):
    """Memorization and what the test accuracy did since; steps since the start."""

    memorized: float
    plateau: float
    now: float
    accuracy: float
    passed: float  # when the accuracy passed half of the way to the ceiling, NaN before
    share: float  # of the way from the plateau to the ceiling


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
    """Complains about what is no accuracy, and about too few records."""
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
    """The step from which the training accuracy has stayed at 0.99, noise apart; inf before."""
    below = np.flatnonzero(train.value < MEMORIZED)
    first = int(below[-1]) + 1 if len(below) else 0
    stays = float(train.t[first]) if first < len(train.t) else math.inf
    curve = smoothed(train.t, train.value - 1)
    return min(stays, curve.solved(MEMORIZED - 1, 1 - MEMORIZED))


def rise(test: Metric, memorized: float, ceiling: float) -> Rise:
    """What the test accuracy did since memorization, on the way to `ceiling`."""
    curve = smoothed(test.t, test.value)
    plateau, accuracy = curve.at(memorized), float(curve.score[-1])
    way = max(ceiling - plateau, ROUNDING)
    later = test.t > memorized
    t, score = np.append(memorized, test.t[later]), np.append(plateau, curve.score[later])
    passed = crossing(t, score, plateau + way / 2)
    share = (accuracy - plateau) / way
    return Rise(memorized, plateau, float(test.t[-1]), accuracy, passed, share)


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
        """The time of a later z, if the rate stays what it is."""
        return now + (z - self.at(now)) / float(self.rate[-1])


def decay(dataset: Any) -> Decay:
    """The glances of a record at which the rate of decay is known."""
    t = dataset["glance_step"].values - dataset.attrs["start_step"]
    names = ("glance_norm", "glance_turn", "glance_rate")
    norm, turn, rate = (dataset[name].values for name in names)
    known: NDArray[np.bool_] = np.isfinite(norm) & np.isfinite(turn) & np.isfinite(rate)
    return Decay(*(values[known] for values in (t, norm, turn, rate)))


def losses(train: Metric, test: Metric, memorized: float) -> Losses | None:
    """The losses that the law needs, None where they do not reach or are not above zero."""
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
    values = (first.at(memorized), later.at(now), highest)
    return Losses(*(math.exp(value) for value in values), slope)


def _log_curve(seen: Metric) -> Curve:
    return smoothed(seen.t, np.log(seen.value))


def not_cross_entropy(accuracy: Metric, loss: Metric) -> bool:
    """Whether a loss is proved to be no mean cross-entropy of these accuracies.

    The label of a sample that is classified wrongly has a probability of at most 1/2.
    """
    least = (1 - np.interp(loss.t, accuracy.t, accuracy.value)) * math.log(2)
    both = np.isin(loss.t, accuracy.t)
    return bool((loss.value < (1 - ROUNDING) * least)[both].any())


def progress(of: Decay, seen: Rise, found: Losses | None) -> Progress:
    """The numbers of a law at the last record of the test accuracy."""
    norm, turn = (float(np.interp(seen.now, of.t, values)) for values in (of.norm, of.turn))
    return Progress(of.at(seen.now), seen.accuracy, norm / float(of.norm[0]), turn, found)
