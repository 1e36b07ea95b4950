"""Curves over time: where one passes a level, and a noisy one made smooth by a running median."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penchant.arguments import Array, real, real_array
from penchant.door import Invalid, door


@door
def crossing(x: ArrayLike, y: ArrayLike, level: float) -> float:
    """The first x at which the curve passes `level`, up or down; NaN where it never does.

    The curve is linear in x between its points; pass logarithms to interpolate in those. It may end
    in NaN, as the shorter of two recorded curves does.

    Parameters
    ----------
    x
        Where the curve is known, increasing.
    y
        The values of the curve, one for every x.
    level
        The level.

    Returns
    -------
    float
        The first crossing.

    Examples
    --------
    >>> import penchant
    >>> penchant.measures.crossing([0, 1, 2], [0.0, 1.0, 4.0], level=2.5)
    1.5
    """
    level = real("level", level)
    x, y = (real_array(name, value, ndim=1) for name, value in (("x", x), ("y", y)))
    if len(x) != len(y):
        raise Invalid(f"x and y must be equally long, got {len(x)} and {len(y)}")
    unknown = np.isnan(x) | np.isnan(y)
    if (unknown[:-1] & ~unknown[1:]).any():
        where = int(np.argmax(unknown))
        raise Invalid(f"x and y may be NaN at their end only, got it at index {where}")
    above = y >= level
    passed = np.flatnonzero(above[1:] != above[:-1])
    if len(passed) == 0:
        return float("nan")
    pair = slice(passed[0], passed[0] + 2)
    low, high = y[pair]
    return float(x[pair] @ [high - level, level - low] / (high - low))


Places = NDArray[np.signedinteger[Any]]
WINDOW = 0.1  # decades to either side
SPIKE = 0.1  # decades: a fall that is regained within them is a spike of the training
SPIKES = 5.0  # of the noise: smaller falls stay
MOST_RECORDS = 50  # to either side: enough for any noise, and cheap on long linear grids


@dataclasses.dataclass(frozen=True)
class ScoreCurve:
    """A smoothed score (minus the error, so that higher is better) with its times and its noise."""

    t: Array
    origin: float
    score: Array
    half: NDArray[np.int64]
    noise: float

    def at(self, time: float) -> float:
        """The score at `time`, interpolated as in `between`."""
        i = int(np.clip(np.searchsorted(self.t, time), 1, len(self.t) - 1))
        low, high = self.t[i - 1], self.t[i]
        if self.origin == 0 and low > 0:
            low, high, time = math.log(low), math.log(high), math.log(time)
        share = min(max((time - low) / (high - low), 0.0), 1.0)
        return float(self.score[i - 1] + share * (self.score[i] - self.score[i - 1]))

    def between(self, i: int, value: float) -> float:
        """When the score passes `value` between records i - 1 and i: linear in log t if t > 0."""
        low, high = float(self.score[i - 1]), float(self.score[i])
        share = min(max((value - low) / (high - low), 0.0), 1.0) if high != low else 1.0
        start, stop = float(self.t[i - 1]), float(self.t[i])
        if self.origin == 0 and start > 0:
            return start * (stop / start) ** share
        return start + share * (stop - start)

    def rising(self, since: float) -> tuple[Array, Array]:
        """Decades of time from `since` on, and the share of the isotonic rise by then."""
        from scipy.optimize import isotonic_regression

        first = int(np.searchsorted(self.t, since, side="right"))
        clock = np.append(self.decade(since), self.decade(self.t[first:]))
        score = isotonic_regression(np.append(self.at(since), self.score[first:])).x
        return clock, (score - score[0]) / (score[-1] - score[0])

    def gained(self, decades: float) -> float:
        """The rise during the last `decades`, or during the window of the smoothing if longer."""
        clock = self.decade(self.t)
        begin = clock[-1] - max(decades, WINDOW)
        return float(self.score[-1] - np.interp(begin, clock, self.score))

    def decade(self, time: ArrayLike) -> Array:
        """log10 of a time; zero counts as a tenth of the second record."""
        return np.log10(
            np.maximum(np.asarray(time), self.origin + 0.1 * (self.t[1] - self.origin))
            - self.origin
        )

    def solved(self, level: float, tolerance: float) -> float:
        """When the score rises above `level` for good; inf if never, t[0] if it starts there."""
        margin = np.minimum(standard_errors(self.noise, self.half), tolerance)
        below = np.flatnonzero(self.score < level - margin - 1e-12 * abs(level))
        start = int(below[-1]) + 1 if len(below) else 0
        above = np.flatnonzero(self.score[start:] >= level - 1e-12 * abs(level))
        if not len(above):
            return math.inf
        first = start + int(above[0])
        return self.between(first, level) if first else float(self.t[0])


def without_spikes(t: Array, score: Array, ends: bool = False) -> Array:
    """The scores, with falls that are regained within SPIKE decades of time filled.

    A fall is filled to the lower one of its two sides: the filled score at a time is the smallest
    maximum of all windows of this length around it (a morphological closing). Only what exceeds
    the noise is filled. If `ends` is true, a fall in the last SPIKE decades counts as regained.
    """
    origin = min(float(t[0]), 0.0)
    elapsed = t - origin
    last = np.searchsorted(elapsed, elapsed * 10 ** (SPIKE * (1 + 1e-9)), side="right")
    first = np.searchsorted(elapsed, elapsed * 10 ** (-SPIKE * (1 + 1e-9)))
    own = np.arange(len(t))
    after, before = _over(np.maximum, score, own, last), _over(np.maximum, score, first, own + 1)
    filled = np.minimum(  # of windows that begin at a record, and of those that end at one
        _over(np.minimum, after, first, own + 1), _over(np.minimum, before, own, last)
    )
    if ends:
        filled = np.where(elapsed * 10**SPIKE > elapsed[-1], np.maximum(filled, before), filled)
    return np.where(filled - score > SPIKES * _noises(elapsed, score), filled, score)


def _noises(elapsed: Array, score: Array) -> Array:
    """The noise at every record, by the median of the residuals around it."""
    half = _half_windows(elapsed)
    residual = np.abs(score - _running_median(score, half))
    noise = _running_median(residual, half) / 0.6745
    known = np.isfinite(noise)
    return np.interp(np.arange(len(noise)), np.flatnonzero(known), noise[known])


def _over(choose: np.ufunc, values: Array, first: Places, stop: Places) -> Array:
    """The extreme of values[first:stop] for every pair, from those over powers of two."""
    levels = [np.asarray(values, dtype=np.float64)]
    for power_of_half in range(len(values).bit_length() - 1):
        half, wide = 2**power_of_half, levels[-1]
        levels.append(choose(wide[:-half], wide[half:]))
    power = np.floor(np.log2(stop - first)).astype(int)
    extremes = np.empty(len(first))
    for level in np.unique(power):
        at = power == level
        extremes[at] = choose(levels[level][first[at]], levels[level][stop[at] - 2**level])
    return extremes


def standard_errors(noise: float, half: NDArray[np.int64]) -> Array:
    """Four standard errors of medians of 2 half + 1 normal values, each about 1.25 / sqrt(m)."""
    return 5 * noise / np.sqrt(2 * half + 1)


def smoothed(t: Array, score: Array) -> ScoreCurve:
    """The smoothed curve; negative times are counted from the first."""
    origin = min(float(t[0]), 0.0)
    half = _half_windows(t - origin)
    smooth = _running_median(score, half)
    whole, index = np.isfinite(smooth), np.arange(len(t))
    # 90% of normal residuals lie within 1.645 standard deviations; rare spikes do not count
    noise = float(np.quantile(np.abs(score - smooth)[whole], 0.9)) / 1.645
    for i in np.flatnonzero(~whole):
        slope = _slope(score[max(min(i - half[i], len(t) - 5), 0) :], noise)
        near = slice(i - half[i], None)
        along = np.median(score[near] - slope * (index[near] - i))
        smooth[i] = np.clip(along, score[near].min(), score[near].max())
    smooth[~whole] = _end(score, smooth, half, noise)[~whole]
    return ScoreCurve(t, origin, smooth, half, noise)


def _slope(values: Array, noise: float) -> float:
    """The rise per record at the end of a curve: zero unless it is clear.

    A median of records on one side would lag behind it. It is the median over all pairs, which a
    spike among five records does not move, and clear if larger than three standard errors
    sqrt(12 / m^3) noise of a line through m records.
    """
    early, late = np.triu_indices(len(values), 1)
    slope = float(np.median((values[late] - values[early]) / (late - early)))
    return slope if abs(slope) > 3 * noise * math.sqrt(12 / len(values) ** 3) else 0.0


def _half_windows(elapsed: Array) -> NDArray[np.int64]:
    """Records to either side of each: those within WINDOW decades before it, two at least."""
    index = np.arange(len(elapsed))
    # slightly more than WINDOW, so that rounding does not decide on log-spaced grids
    reach = np.searchsorted(elapsed, elapsed * 10 ** (-WINDOW * (1 + 1e-9)))
    return np.minimum(np.clip(index - reach, 2, MOST_RECORDS), index)


def _running_median(values: Array, half: NDArray[np.int64]) -> Array:
    """Medians over index - half ... index + half; NaN where the record ends before."""
    from scipy.ndimage import median_filter

    smooth, count = np.full(len(values), np.nan), len(values)
    whole = np.arange(count) + half < count
    for width in np.unique(half[whole]):
        at = np.flatnonzero(whole & (half == width))
        low, high = at[0] - width, at[-1] + width + 1
        smooth[at] = median_filter(values[low:high], size=2 * int(width) + 1)[at - low]
    return smooth


def _end(values: Array, smooth: Array, half: NDArray[np.int64], noise: float) -> Array:
    """The smoothed end, where windows are cut off, with no lag beyond the noise.

    There a wide window smooths a sharp turn away; a shrinking window has more noise and no lag. The
    first median is moved towards the second by what exceeds the noise of the second.
    """
    count = len(values)
    left = np.minimum(half, count - 1 - np.arange(count))
    prompt = _running_median(values, left)
    if count > 2:
        prompt[-1] = _last(values[-1], prompt[-2], prompt[-3])
    allowed = standard_errors(noise, left)
    gap = prompt - smooth
    return smooth + np.sign(gap) * np.maximum(np.abs(gap) - allowed, 0.0)


def _last(value: float, before: float, earlier: float) -> float:
    """The last record, limited by those before it: it may rise by at most twice their last rise."""
    return float(np.median([value, before, before + 2 * (before - earlier)]))
