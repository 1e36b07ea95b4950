"""Whether and when a test curve follows its training curve late, and how.

Falls of a curve that are regained within a tenth of a decade of time, such as the spikes of Adam,
are filled. Curves are smoothed by a running median over as much to either side. A curve is
solved from its first crossing of the level after the last smoothed record that is below it by more
than the noise, or by more than the tolerance if that is smaller. The rules of the kinds are in
`penchant.measures.late_change`.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, entries, finite_array, positive, real
from penchant.door import Invalid, door, door_as
from penchant.measures.curves import smoothed, without_spikes
from penchant.measures.late_change import Change, doubted, late_change
from penchant.records import Record


@dataclasses.dataclass(frozen=True, repr=False)
class Grokking(Record):
    """When training and test are solved for good, and what the test curve does in between.

    The numbers of the late change are nan where there is none.

    Attributes
    ----------
    kind
        "grok" (the test curve jumps clearly after training is solved), "slow" (it rises then
        without a jump), "in progress" (it still rises when the record ends), "double descent"
        (it was better, fell, and rises again), "misgrok" (it was good when training was solved,
        and falls clearly later), "mirage" (it rises clearly and late, but memorization with a
        shrinking norm explains it) or "none". The rules are in `penchant.measures.late_change`.
    reason
        Why, in a sentence.
    t1
        When training is solved: inf if it never is in the record, the first time if it starts
        solved.
    t2
        The same for the test, which is solved within the tolerance of its ceiling.
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
    ceiling
        The test value that counts as perfect: `best`, or the plateau below the level on which a
        late rise ends.
    level
        The value at which the curves count as solved.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> t = np.geomspace(1, 1e4, 50)
    >>> verdict = penchant.measures.grokking(t, train=t > 10, test=np.where(t > 1e3, 1.0, 0.5))
    >>> verdict.t1 < verdict.t2, verdict.plateau, verdict.final
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
    ceiling: float
    level: float


@door
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
        (Notsawo et al. 2025, theorem 3.6): a late rise that ends on it, within a tenth, is a
        mirage wherever the level is.
    norm
        The parameter norm at the same times: a rise during which the test error stays
        proportional to it is a mirage too, since a shrinking norm explains it.
    error
        The curves are errors or losses, solved below `level`.

    Returns
    -------
    Grokking
        The kind of change and its times.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> t = np.geomspace(1, 1e4, 50)
    >>> verdict = penchant.measures.grokking(t, train=t > 10, test=np.where(t > 1e3, 1.0, 0.5))
    >>> verdict.kind, round(verdict.log_ratio, 1)
    ('grok', 2.0)
    """
    t = _times(t)
    train, test = _errors("train", train, t, error), _errors("test", test, t, error)
    tolerance, reach = _tolerance(level, error), _reach(best, error)
    if floor is not None and real("floor", floor) < 0:
        raise Invalid(f"floor must be an error >= 0, got {floor:g}")
    if norm is not None:
        norm = entries("norm", norm, len(t), "one value per time")
        if norm.min() <= 0:
            raise Invalid(f"norm must be > 0 at every time, got {norm.min():g}")
    learned = smoothed(t, without_spikes(t, -train, ends=True))
    known = smoothed(t, without_spikes(t, -test))
    t1, t2 = learned.solved(-tolerance, tolerance), known.solved(-reach - tolerance, tolerance)
    touched = bool((train <= tolerance).any())
    change = late_change(known, t1, t2, -reach, tolerance, touched)
    change = doubted(change, known, floor, norm)
    if math.isnan(change.ceiling):
        change = dataclasses.replace(change, ceiling=-reach)
    else:
        t2 = known.solved(change.ceiling - tolerance, tolerance)
    return _record(change, t1, t2, float(level), error, known.origin)


def _record(
    change: Change, t1: float, t2: float, level: float, error: bool, origin: float
) -> Grokking:
    begins, jump, ends = change.passage
    scores = change.plateau, change.final, change.ceiling
    plateau, final, ceiling = (-v if error else 1 + v for v in scores)
    delay = t2 - t1 if math.isfinite(t1) else math.nan
    times = t1, t2, delay, _decades(t1, t2, origin), _decades(begins, ends, origin)
    values = begins, jump, ends, plateau, final, ceiling, level
    return Grokking(change.kind, change.reason, *times, *values)


def _decades(start: float, stop: float, origin: float) -> float:
    """log10(stop / start); nan where times have no ratio."""
    if origin < 0 or not math.isfinite(start) or math.isnan(stop):
        return math.nan
    if start == 0:
        return math.inf if stop > 0 else math.nan
    with np.errstate(divide="ignore"):
        return float(np.log10(stop / start))


def _times(t: ArrayLike) -> Array:
    t = finite_array("t", t, ndim=1)
    if len(t) < 2:
        raise Invalid("t must hold at least 2 times, got 1; record more of the run")
    steps = np.diff(t)
    if (steps <= 0).any():
        i = int(np.argmax(steps <= 0))
        what = "repeats" if steps[i] == 0 else "falls"
        raise Invalid(
            f"t must increase, but it {what} at index {i + 1} "
            f"({t[i]:g}, then {t[i + 1]:g}); sort the record and keep one value per time"
        )
    return t


@door_as("grokking")
def _errors(name: str, values: ArrayLike, t: Array, error: bool) -> Array:
    """The curve as errors, zero being perfect."""
    values = entries(name, values, len(t), "one value per time")
    if error:
        if values.min() < 0:
            raise Invalid(f"{name} must hold errors >= 0, got {values.min():g}")
        return values
    outside = values[(values < 0) | (values > 1)]
    if len(outside):
        raise Invalid(
            f"{name} must hold accuracies between 0 and 1, got {outside[0]:g}; "
            "pass error=True for losses, and divide percentages by 100"
        )
    return 1 - values


def _tolerance(level: float, error: bool) -> float:
    """The error at which the level is reached."""
    level = positive("level", level)
    if not error and level > 1:
        raise Invalid(f"level must be an accuracy of at most 1, got {level:g}")
    return level if error else 1 - level


def _reach(best: float | None, error: bool) -> float:
    """The error of the best test value."""
    if best is None:
        return 0.0
    value = real("best", best)
    if value < 0 or (value > 1 and not error):
        what = "an error >= 0" if error else "an accuracy between 0 and 1"
        raise Invalid(f"best must be {what}, got {value:g}")
    return value if error else 1 - value
