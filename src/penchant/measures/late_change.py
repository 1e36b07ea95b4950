"""The kind of late change that a test curve shows, by rules on its smoothed scores.

A score is minus an error, so that higher is better. A change is *late* if it comes after `LATE`
times t1, when training is solved, and *clear* if it exceeds two tolerances (what may be missing at
the level), a tenth of the way from the worst late score to the best possible one, and `NOISES`
times the noise. The kinds, in this order:

- *none*: training is not solved, or the record ends before anything could be late.
- *misgrok*: after training was solved the test curve was clearly better than it is at the end. It
  has lost more than it has regained since, and more than it had risen before unless it was solved.
- *double descent*: it rose clearly, fell clearly, and a clear late rise regains what was lost; the
  rise is at most twice the fall (next to a larger rise the fall is a detail).
- *none*: it has not clearly risen from `LATE` times t1 to the end.
- *slow*: the middle half of that rise takes more than `SLOW` decades of time, without a jump: no
  third of the rise is made within a tenth of that.
- *in progress*: the level is not reached, and the rise continues: the last stretch, as long as the
fastest third of the rise took, still contributes a tenth of it.
- *grok*: all other rises. A curve that has levelled off below the level has its *ceiling* there,
and counts as solved within the tolerance of the ceiling.
- *mirage*: a rise of the last three kinds that memorization explains: it ends on the error floor,
  or the error stays proportional to the parameter norm meanwhile (Notsawo et al.
  2025, theorem 3.6).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from penchant.arguments import Array
from penchant.measures.curves import ScoreCurve

LATE_CHANGES = ("none", "mirage", "misgrok", "grok", "slow", "in progress", "double descent")
LATE = 1.5  # a test curve that follows training within half of its time is not delayed
# in units of the noise after smoothing, the highest of hundreds of records is two above the mean
# and the last may be two below it
NOISES = 4.0
# decades: the middle half takes 0.68 in an exponential approach, which has one time scale, and 0.95
# in one like t^(-1/2), which has none
SLOW = 0.8
THIRD = 1 / 3  # the share of a rise that makes a jump, since a jump may come in two steps
TENTH = 0.1  # smaller shares of a whole are details


@dataclasses.dataclass(frozen=True)
class Change:
    """A kind, its reason, the scores before and after, and when 10, 50 and 90% are done.

    `ceiling` is the score of a plateau below the level, NaN where there is none.
    """

    kind: str
    reason: str
    plateau: float = math.nan
    final: float = math.nan
    passage: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    ceiling: float = math.nan


def late_change(
    test: ScoreCurve, t1: float, t2: float, best: float, tolerance: float, touched: bool
) -> Change:
    """What a test curve does after t1; it is solved within `tolerance` of the score `best`.

    `touched` says whether the training curve was ever at its level.
    """
    if math.isinf(t1):
        how = "is lost again by the end of the record" if touched else "is never reached"
        return Change("none", f"the training level {how}, so nothing can be late")
    late = test.origin + LATE * (t1 - test.origin)
    if late >= test.t[-1]:
        return Change("none", f"the record ends before {LATE:g} times t1, too early to tell")
    rest = test.score[np.searchsorted(test.t, late) :]
    worst = min(test.at(late), float(rest.min()))
    clear = max(2 * tolerance, TENTH * (best - worst), NOISES * test.noise)
    level = best - tolerance
    change = _fall(test, late, level, clear) or _second_rise(test, late, clear)
    if change:
        return change
    start, final = test.at(late), float(test.score[-1])
    if not final - start > clear:
        return Change("none", _quiet(t1, t2, start, level), start, final)
    return _rise(test, t1, t2, late)


def _fall(test: ScoreCurve, late: float, level: float, clear: float) -> Change | None:
    """A misgrok, or None."""
    first = int(np.searchsorted(test.t, late))
    start, final = test.at(late), float(test.score[-1])
    top = first + int(np.argmax(test.score[first:]))
    peak = max(start, float(test.score[top]))
    since = late if start >= peak else float(test.t[top])
    fall, rise = peak - final, final - start
    regained = final - float(test.score[top if since > late else first :].min())
    if not (fall > max(clear, regained) and (fall > rise or peak >= level)):
        return None
    turned = dataclasses.replace(test, score=-test.score)
    what = "solved" if peak >= level else "better"
    reason = f"once training is solved the test curve is {what}, and later falls by {fall:.3g}"
    return Change("misgrok", reason, peak, final, _passage(turned, since, -peak, -final))


def _second_rise(test: ScoreCurve, late: float, clear: float) -> Change | None:
    """A double descent (of the error), or None."""
    score, final = test.score, float(test.score[-1])
    highest, lowest = np.maximum.accumulate(score), np.minimum.accumulate(score)
    lost, regained = highest - score, final - score
    trough = int(np.argmax(np.minimum(lost, regained)))
    peak = int(np.argmax(score[: trough + 1]))
    fall, rise = float(lost[trough]), float(regained[trough])
    first = float(score[peak] - lowest[peak])
    if not (min(first, fall, rise) > clear and rise <= 2 * fall):
        return None
    passage = _passage(test, float(test.t[trough]), float(score[trough]), final)
    if not passage[1] > late:
        return None
    reason = f"the test curve falls by {fall:.3g}, and later rises again by {rise:.3g}"
    return Change("double descent", reason, float(score[trough]), final, passage)


def _rise(test: ScoreCurve, t1: float, t2: float, late: float) -> Change:
    """A clear late rise, by its speed and its end."""
    start, final = test.at(late), float(test.score[-1])
    rise, (clock, done) = final - start, test.rising(late)
    middle, third = _takes(clock, done, 0.25, 0.75), _fastest(clock, done, THIRD)
    solved = math.isfinite(t2)
    goes_on = not solved and test.gained(third) > TENTH * rise
    if middle > SLOW and third > TENTH * middle:
        kind, reason = "slow", f"the test curve rises late, by {rise:.3g}, without a jump"
    elif goes_on:
        kind, reason = "in progress", f"the test curve has risen late, by {rise:.3g} so far"
    elif solved:
        reason = f"training is solved at t = {t1:.4g}, and the test curve only at t = {t2:.4g}"
        kind = "grok"
    else:
        kind, reason = "grok", f"the test curve rises late, by {rise:.3g}"
    if goes_on:
        reason += ", and it still rises when the record ends"
    elif not solved:
        reason += ", to a ceiling of its own below the level"
    ceiling = math.nan if solved or goes_on else final
    return Change(kind, reason, start, final, _passage(test, late, start, final), ceiling)


def _takes(clock: Array, done: Array, begin: float, end: float) -> float:
    """The decades from one share of a rise to another."""
    first, last = np.interp([begin, end], done, clock)
    return float(last - first)


def _fastest(clock: Array, done: Array, share: float) -> float:
    """The fewest decades in which this share of a rise happens."""
    begins = np.linspace(0.0, 0.98 - share, 50)  # the last part resembles a plateau
    return min(_takes(clock, done, begin, begin + share) for begin in begins)


def _quiet(t1: float, t2: float, start: float, level: float) -> str:
    """The reason for the kind "none" of a curve without a clear late change."""
    if start >= level or t2 <= t1:
        return "the test curve is solved with training or before it, and stays so or comes back"
    if math.isfinite(t2):
        return "the test curve follows training closely: what is left to rise later is not clear"
    return "the test curve is not solved, and does not change clearly after training is"


def _passage(
    curve: ScoreCurve, since: float, low: float, high: float
) -> tuple[float, float, float]:
    """When a rise from `low` at `since` to `high` at the end is done by 10, 50 and 90 percent."""
    first = int(np.searchsorted(curve.t, since, side="right"))
    tenth, half, most = (low + share * (high - low) for share in (0.1, 0.5, 0.9))
    score = curve.score
    # half is passed where the curve was last below it; the other two are the passages nearest to
    # that
    below = np.flatnonzero(score[first:] < half)
    middle = first + int(below[-1]) + 1 if len(below) else first
    before = np.flatnonzero(score[first:middle] < tenth)
    early = first + int(before[-1]) + 1 if len(before) else first
    after = middle + int(np.argmax(score[middle:] >= most))
    begins, jump, ends = (
        max(curve.between(i, value), since)
        for i, value in ((early, tenth), (middle, half), (after, most))
    )
    return begins, jump, ends


def doubted(change: Change, test: ScoreCurve, floor: float | None, norm: Array | None) -> Change:
    """The change, or a mirage with its cause if floor or norm explain a rise."""
    if change.kind not in ("grok", "slow", "in progress"):
        return change
    reason = ""
    if floor and abs(-change.final - floor) <= 0.1 * floor:
        reason = f"the late rise of the test curve ends on the error floor {floor:g}"
    elif norm is not None and _follows(test, norm, change):
        reason = "during the late rise the test error stays proportional to the parameter norm"
    if not reason:
        return change
    return dataclasses.replace(change, kind="mirage", reason=reason, ceiling=math.nan)


def _follows(test: ScoreCurve, norm: Array, change: Change) -> bool:
    """Whether log(error / norm) changes by less than a fifth of the change of log(error)."""
    begins, _, ends = change.passage
    first = max(int(np.searchsorted(test.t, begins, side="right")) - 1, 0)
    last = min(int(np.searchsorted(test.t, ends)), len(test.t) - 1)
    errors = -test.score[first : last + 1]
    if not errors.min() > 0:
        return False
    logs = np.log(errors)
    return bool(np.ptp(logs - np.log(norm[first : last + 1])) <= 0.2 * np.ptp(logs))
