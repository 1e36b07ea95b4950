"""When a test curve follows, deserts or only seems to follow its training curve.

The rules, in order. (1) Curves are smoothed by a running median, a tenth of a decade of time to
either side. (2) A curve is solved from its first crossing of the level after the last smoothed
record that is below it by more than the noise, at most the tolerance. (3) Only what happens later
than `LATE` times t1 is delayed; a change from there to the end counts if it is larger than two
tolerances, a tenth of the way from the worst late value to the best, and three times the noise
(twice where the level is reached as well; four times for a fall, as it starts from a maximum).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, entries, finite_array, positive, real
from tacit.measures.curves import Curve, smoothed
from tacit.records import Record

LATE = 1.5


@dataclasses.dataclass(frozen=True, repr=False)
class Grokking(Record):
    """When training and test are solved for good, and what the test curve does in between.

    The numbers of the late change are nan where there is none.

    Attributes
    ----------
    kind
        "grok" (the test curve is solved clearly after training), "misgrok" (it was good when
        training was solved, and falls clearly later), "mirage" (it rises clearly and late
        without understanding) or "none".
    reason
        Why, in a sentence.
    t1
        When training is solved: inf if the record does not see it, and its first time for what
        starts solved.
    t2
        The same for the test.
    delay
        t2 - t1.
    log_ratio
        log10(t2/t1).
    sharpness
        The decades of time, log10 of `ends`/`begins`, that the middle 80% of the late change
        takes: 0 is a step.
    begins
        When a tenth of the late change is done.
    jump
        When half of it is done.
    ends
        When nine tenths of it are done.
    plateau
        The test value before the late change, in the curve's own unit.
    final
        The test value after it.
    level
        The value at which the curves count as solved.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> t = np.geomspace(1, 1e4, 50)
    >>> found = tacit.grokking(t, train=t > 10, test=np.where(t > 1e3, 1.0, 0.5))
    >>> found.t1 < found.t2, found.plateau, found.final
    (True, 0.5, 1.0)
    """

    kind: str
    reason: str
    t1: float
    t2: float
    delay: float
    log_ratio: float
    sharpness: float
    begins: float
    jump: float
    ends: float
    plateau: float
    final: float
    level: float


def grokking(
    t: ArrayLike,
    train: ArrayLike,
    test: ArrayLike,
    level: float = 0.95,
    *,
    best: float | None = None,
    floor: float | None = None,
    norm: ArrayLike | None = None,
    error: bool = False,
) -> Grokking:
    """What kind of delayed change, if any, the curves show, and when.

    Parameters
    ----------
    t
        Increasing times.
    train
        The training accuracies at these times.
    test
        The test accuracies at these times.
    level
        The accuracy at which a curve counts as solved.
    best
        The best test value that the task allows, where that is not perfection (labels with
        noise): the test curve is solved when it is as near to `best` as `level` is to
        perfection.
    floor
        A lower bound on the test error (one minus the accuracy) that memorization cannot pass
        (N theorem 3.6): a late rise that ends on it, within a tenth, is a mirage wherever the
        level is.
    norm
        The parameter norm at the same times: a rise during which the test error stays
        proportional to it is a mirage too, since a shrinking norm explains it.
    error
        The curves are errors or losses, solved below `level`.

    Returns
    -------
    Grokking
        The kind of change and its times.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> t = np.geomspace(1, 1e4, 50)
    >>> found = tacit.grokking(t, train=t > 10, test=np.where(t > 1e3, 1.0, 0.5))
    >>> found.kind, round(found.log_ratio, 1)
    ('grok', 2.0)
    """
    t = _times(t)
    train, test = _errors("train", train, t, error), _errors("test", test, t, error)
    tolerance, reach = _tolerance(level, error), _reach(best, error)
    if floor is not None and real("grokking", "floor", floor) < 0:
        raise ValueError(f"grokking: floor must be an error >= 0, got {floor:g}")
    if norm is not None:
        norm = entries("grokking", "norm", norm, len(t), "one value per time")
        if norm.min() <= 0:
            raise ValueError(f"grokking: norm must be > 0 at every time, got {norm.min():g}")
    learned, known = smoothed(t, -train), smoothed(t, -test)
    t1, t2 = learned.solved(-tolerance, tolerance), known.solved(-reach - tolerance, tolerance)
    touched = bool((train <= tolerance).any())
    verdict = _verdict(known, t1, t2, -reach, tolerance, touched)
    if verdict.kind in ("grok", "mirage"):
        verdict = _doubt(verdict, known, floor, norm)
    return _record(verdict, t1, t2, float(level), error, known.origin)


@dataclasses.dataclass(frozen=True)
class _Verdict:
    kind: str
    reason: str
    plateau: float = math.nan
    final: float = math.nan
    passage: tuple[float, float, float] = (math.nan, math.nan, math.nan)


def _verdict(
    test: Curve, t1: float, t2: float, best: float, tolerance: float, touched: bool
) -> _Verdict:
    """`best` is the best score of a test curve, which is solved within `tolerance` of it."""
    if math.isinf(t1):
        how = "is lost again by the end of the record" if touched else "is never reached"
        return _Verdict("none", f"the training level {how}, so nothing can be late")
    late = test.origin + LATE * (t1 - test.origin)
    if late >= test.t[-1]:
        return _Verdict("none", f"the record ends before {LATE:g} times t1, too early to tell")
    first = int(np.searchsorted(test.t, late))
    start, final, rest = test.at(late), float(test.score[-1]), test.score[first:]
    top = first + int(np.argmax(rest))
    peak = max(start, float(test.score[top]))
    worst = min(start, float(rest.min()))
    clear, level = max(2 * tolerance, 0.1 * (best - worst)), best - tolerance
    rise, fall = final - start, peak - final
    if fall > max(clear, 4 * test.noise) and (fall > rise or peak >= level):
        turned = dataclasses.replace(test, score=-test.score)
        since = late if start >= peak else float(test.t[top])
        what = "solved" if peak >= level else "better"
        reason = f"once training is solved the test curve is {what}, and later falls by {fall:.3g}"
        passage = _passage(turned, since, -peak, -final)
        return _Verdict("misgrok", reason, peak, final, passage)
    if not rise > max(clear, (2 if math.isfinite(t2) else 3) * test.noise):
        return _Verdict("none", _quiet(t1, t2, start, level), start, final)
    passage = _passage(test, late, start, final)
    if math.isfinite(t2):
        reason = f"training is solved at t = {t1:.4g}, and the test curve only at t = {t2:.4g}"
        return _Verdict("grok", reason, start, final, passage)
    reason = f"the test curve rises late, by {rise:.3g}, but does not reach the level to stay"
    return _Verdict("mirage", reason, start, final, passage)


def _quiet(t1: float, t2: float, start: float, level: float) -> str:
    """Why a test curve without a clear late change is called none."""
    if start >= level or t2 <= t1:
        return "the test curve is solved with training or before it, and stays so or comes back"
    if math.isfinite(t2):
        return "the test curve follows training closely: what is left to rise later is not clear"
    return "the test curve is not solved, and does not change clearly after training is"


def _passage(curve: Curve, since: float, low: float, high: float) -> tuple[float, float, float]:
    """When a rise from `low` at `since` to `high` at the end is done by 10, 50 and 90 percent."""
    first = int(np.searchsorted(curve.t, since, side="right"))
    tenth, half, most = (low + share * (high - low) for share in (0.1, 0.5, 0.9))
    score = curve.score
    # the half is passed where the curve is below it last; the others are those nearest to it
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


def _doubt(verdict: _Verdict, test: Curve, floor: float | None, norm: Array | None) -> _Verdict:
    """The verdict on a rise, or a mirage with its cause if floor or norm explain the rise."""
    if floor and abs(-verdict.final - floor) <= 0.1 * floor:
        reason = f"the late rise of the test curve ends on the error floor {floor:g}"
        return dataclasses.replace(verdict, kind="mirage", reason=reason)
    if norm is not None and _follows(test, norm, verdict):
        reason = "during the late rise the test error stays proportional to the parameter norm"
        return dataclasses.replace(verdict, kind="mirage", reason=reason)
    return verdict


def _follows(test: Curve, norm: Array, verdict: _Verdict) -> bool:
    """Whether error / norm moves by less than a fifth of what the error does, in logarithms."""
    begins, _, ends = verdict.passage
    first = max(int(np.searchsorted(test.t, begins, side="right")) - 1, 0)
    last = min(int(np.searchsorted(test.t, ends)), len(test.t) - 1)
    errors = -test.score[first : last + 1]
    if not errors.min() > 0:
        return False
    logs = np.log(errors)
    return bool(np.ptp(logs - np.log(norm[first : last + 1])) <= 0.2 * np.ptp(logs))


def _record(
    verdict: _Verdict, t1: float, t2: float, level: float, error: bool, origin: float
) -> Grokking:
    begins, jump, ends = verdict.passage
    plateau, final = (-v if error else 1 + v for v in (verdict.plateau, verdict.final))
    delay = t2 - t1 if math.isfinite(t1) else math.nan
    times = t1, t2, delay, _decades(t1, t2, origin), _decades(begins, ends, origin)
    values = begins, jump, ends, plateau, final, level
    return Grokking(verdict.kind, verdict.reason, *times, *values)


def _decades(start: float, stop: float, origin: float) -> float:
    """log10(stop / start); nan where times have no ratio."""
    if origin < 0 or not math.isfinite(start) or math.isnan(stop):
        return math.nan
    if start == 0:
        return math.inf if stop > 0 else math.nan
    with np.errstate(divide="ignore"):
        return float(np.log10(stop / start))


def _times(t: ArrayLike) -> Array:
    t = finite_array("grokking", "t", t, ndim=1)
    if len(t) < 2:
        raise ValueError("grokking: t must hold at least 2 times, got 1; record more of the run")
    steps = np.diff(t)
    if (steps <= 0).any():
        i = int(np.argmax(steps <= 0))
        what = "repeats" if steps[i] == 0 else "falls"
        raise ValueError(
            f"grokking: t must increase, but it {what} at index {i + 1} "
            f"({t[i]:g}, then {t[i + 1]:g}); sort the record and keep one value per time"
        )
    return t


def _errors(name: str, values: ArrayLike, t: Array, error: bool) -> Array:
    """The curve as errors, zero being perfect."""
    values = entries("grokking", name, values, len(t), "one value per time")
    if error:
        if values.min() < 0:
            raise ValueError(f"grokking: {name} must hold errors >= 0, got {values.min():g}")
        return values
    outside = values[(values < 0) | (values > 1)]
    if len(outside):
        raise ValueError(
            f"grokking: {name} must hold accuracies between 0 and 1, got {outside[0]:g}; "
            "pass error=True for losses, and divide percentages by 100"
        )
    return 1 - values


def _tolerance(level: float, error: bool) -> float:
    """The error at which the level is reached."""
    level = positive("grokking", "level", level)
    if not error and level > 1:
        raise ValueError(f"grokking: level must be an accuracy of at most 1, got {level:g}")
    return level if error else 1 - level


def _reach(best: float | None, error: bool) -> float:
    """The error of the best test value."""
    if best is None:
        return 0.0
    value = real("grokking", "best", best)
    if value < 0 or (value > 1 and not error):
        what = "an error >= 0" if error else "an accuracy between 0 and 1"
        raise ValueError(f"grokking: best must be {what}, got {value:g}")
    return value if error else 1 - value
