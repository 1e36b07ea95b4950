"""The times at which a flow is recorded, and the last of them under weight decay."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tacit.arguments import Array
from tacit.training.exact.flow import Course
from tacit.training.record import At

LONGEST = 1000.0  # times 1/rate: long before, nothing moves any more
AFTER = 8.0  # how many times 1/rate to follow beyond the moment when the start has decayed to 1
MOST = 400  # log-spaced records: a start of 1e300 begins at a time of 1e-600
SAME = 1e-9  # a relative difference of two times that are one but for rounding


def asked_times(who: str, course: Course) -> tuple[float, ...]:
    """The times that the course names, all of them > 0 and within its Time."""
    times = tuple(t for t in course.asked(who, "times") or () if t > 0)
    if course.t_max is not None and times and times[-1] > course.t_max:
        raise ValueError(
            f"{who}: At(times=...) must stay within Time({course.t_max:g}), got {times[-1]:g}"
        )
    return times


def named(t: Array, course: Course) -> Array:
    """Times that are those of the course but for rounding, as the course names them."""
    names = [rule.times for rule in course.records if isinstance(rule, At)]
    for asked in (*(s for times in names for s in times or ()), course.t_max):
        if asked is not None:
            t = np.where(np.abs(t - asked) <= SAME * asked, asked, t)
    return t


def times_to_record(
    first: float, per_decade: int | None, asked: Sequence[float], t_max: float = math.inf
) -> Iterator[float]:
    """Log-spaced times from `first` on, where there are any, and those asked for, in order."""
    spaced: Iterator[float] = iter(())
    if per_decade is not None:
        spaced = (first * 10 ** (k / per_decade) for k in itertools.count())
        # one as near to the end as this would be a second record of it
        spaced = itertools.takewhile(lambda t: t < t_max * (1 - SAME), spaced)
    return (t for t, _ in itertools.groupby(heapq.merge(spaced, asked)))


def own_time(t: float, log_unit: float) -> float:
    """A training time in units of exp(log_unit)."""
    if log_unit == 0:
        return t
    with np.errstate(over="ignore", under="ignore"):
        return max(float(np.exp(math.log(t) - log_unit)), 1e-300)


def last_time(who: str, rate: float, log_alpha: float, t_max: float | None) -> float:
    """`t_max` under weight decay, or by default a time at which any transition has happened."""
    if rate < 1e-300:
        raise ValueError(f"{who}: weight_decay must be 0 or at least 1e-300, got {rate:g}")
    if t_max is None:
        return (max(log_alpha, 0.0) + AFTER) / rate
    if not 1e-300 <= t_max <= (LONGEST + 2 * abs(log_alpha)) / rate:
        raise ValueError(
            f"{who}: times must lie between 1e-300 and {LONGEST:g}/weight_decay (plus twice "
            f"log(alpha)/weight_decay), got {t_max:g} with weight_decay {rate:g}; the decay "
            "ends all motion long before"
        )
    return t_max


class Times(NamedTuple):
    """Increasing times to record: themselves, 0 below float64, and their logarithms."""

    t: Array
    log: Array


def record_times(log_first: float, t_max: float, per_decade: int) -> Times:
    """Log-spaced times, and evenly spaced ones up to t_max.

    The transition sits late in the run, where log-spaced times are few.
    """
    step = max(math.log(10) / per_decade, (math.log(t_max) - log_first) / MOST)
    spaced = np.arange(log_first, math.log(t_max), step)
    even = t_max * (np.arange(1, 4 * per_decade + 1) / (4 * per_decade))
    # a log-spaced time that is an even one but for rounding would stand there twice
    gaps = np.abs(np.subtract.outer(spaced, np.log(even))).min(axis=1)
    spaced = spaced[gaps > SAME]
    with np.errstate(under="ignore"):
        t = np.concatenate([np.exp(spaced), even])
    logs = np.concatenate([spaced, np.log(even)])
    order = np.argsort(logs)
    return Times(t[order], logs[order])


def decay_times(who: str, course: Course, log_first: float, t_max: float) -> Times:
    """The times to record up to t_max under weight decay."""
    asked = np.array([t for t in asked_times(who, course) if t < t_max])
    if course.per_decade is None:
        t = np.append(asked, t_max)
        return Times(t, np.log(t))
    spaced = record_times(log_first, t_max, course.per_decade)
    if not len(asked):
        return spaced
    # of two times with one logarithm, that asked for is recorded, to the bit
    logs, first = np.unique(np.concatenate([np.log(asked), spaced.log]), return_index=True)
    return Times(np.concatenate([asked, spaced.t])[first], logs)
