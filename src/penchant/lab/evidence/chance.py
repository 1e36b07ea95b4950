"""Checks of random numbers: each misses by chance about once in a thousand draws.

An experiment has about ten checks and controls, so that with this budget 99 of 100 sets of seeds
give the same status. A share is a count with its exact binomial bound; a mean, such as that of
exponents fitted to single instances, has the interval of Student's t.

    checks = {"share of problems that end at l1": share_at_least(19, 20, 0.5)}
    controls = {"the l2 solution": checks[...].control(upper_share(2, 20))}

A control is given by its most favourable bound, so that it misses by a clear margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer
from penchant.door import Invalid, door
from penchant.lab.evidence.evidence import RARE, Check, at_least, number, within

DRAWS = 1000  # attempts to meet a premise before it counts as out of reach

Instance = TypeVar("Instance")


@door
def lower_share(count: int, total: int) -> float:
    """The least share that `count` successes of `total` are compatible with (exact binomial)."""
    return _bounds(count, total)[0]


@door
def upper_share(count: int, total: int) -> float:
    """The largest share that `count` successes of `total` are compatible with."""
    return _bounds(count, total)[1]


@door
def share_at_least(count: int, total: int, limit: float) -> Check:
    """The check that a share is at least `limit`, also at its lower bound."""
    limit = number("limit", limit)
    return at_least(_bounds(count, total)[0], limit)


@door
def mean_within(values: ArrayLike, predicted: float, bias: float = 0.0) -> Check:
    """The check that the mean of independent `values` is `predicted`, up to chance and `bias`.

    `bias` is what the statement leaves open, for example a term of the next order.
    """
    array = np.ravel(np.asarray(values, float))
    margin = _margin(array)
    predicted, bias = number("predicted", predicted), number("bias", bias)
    return within(array.mean(), predicted, bias + margin)


@door
def margin_of_mean(values: ArrayLike) -> float:
    """How far the mean of independent values may lie from its expectation, by Student's t."""
    return _margin(np.ravel(np.asarray(values, float)))


def _margin(array: Array) -> float:
    from scipy.stats import t

    if len(array) < 3 or not np.isfinite(array).all():
        seen = f"{len(array)} values, {int(np.isfinite(array).sum())} of them finite"
        raise Invalid(f"a mean needs three finite values or more, got {seen}")
    deviation = float(array.std(ddof=1)) / math.sqrt(len(array))
    return float(t.ppf(1 - RARE / 2, len(array) - 1)) * deviation


@door
def exponents(x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """The exponent of y ~ x^exponent for every row of `y`, by least squares on logarithms."""
    x, rows = finite_array("x", x, ndim=1), finite_array("y", np.atleast_2d(y), ndim=2)
    for name, values in (("x", x), ("y", rows)):
        if values.min() <= 0:
            raise Invalid(f"{name} must be > 0, got {values.min():g}")
    if rows.shape[1] != len(x) or not np.ptp(x) > 0:
        seen = f"{len(x)} in x and {rows.shape[1]} in a row of y"
        raise Invalid(f"y must have a value for each of two different x or more, got {seen}")
    log_x, log_y = np.log(x), np.log(rows)
    centered = log_x - log_x.mean()
    return np.asarray(log_y @ centered / (centered @ centered))


def drawn(
    make: Callable[[int], Instance],
    premise: Callable[[Instance], bool],
    seed: int,
    number: int = 0,
) -> tuple[Instance, int]:
    """The `number`-th instance of `make(seed)`, `make(seed + 1)`, ... that meets the premise.

    The second value is how many draws that took. A premise that too many draws violate raises.
    """
    left = number
    for tries, instance in enumerate(_instances(make, seed), start=1):
        if premise(instance):
            if left == 0:
                return instance, tries
            left -= 1
    raise ValueError(f"drawn: {DRAWS} draws hold {number - left} instances that meet the premise")


def _instances(make: Callable[[int], Instance], seed: int) -> Iterator[Instance]:
    return (make(seed + k) for k in range(DRAWS))


def _bounds(count: int, total: int) -> tuple[float, float]:
    from scipy.stats import binomtest

    count, total = (
        integer(name, value.item() if hasattr(value, "item") else value, least=0)
        for name, value in (("count", count), ("total", total))
    )
    if count > total:
        raise Invalid(f"count must be at most total={total}, got {count}")
    if total == 0:
        return 0.0, 1.0  # no case is compatible with every share
    interval = binomtest(count, total).proportion_ci(1 - RARE)
    return float(interval.low), float(interval.high)
