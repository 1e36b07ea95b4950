"""The interface of an exact flow, the times it records, and the settings of a run."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from penchant.arguments import Array, decay_rate, flag, positive
from penchant.door import Invalid, class_name, door, door_as
from penchant.records import Checked, Checks, Outcome
from penchant.regularizers.norms import L2
from penchant.regularizers.penalty import Term
from penchant.training import record as recording
from penchant.training import stop as stopping
from penchant.training.exact.certify import judge_flow
from penchant.training.exact.two_tolerances import certified
from penchant.training.record import At
from penchant.training.task import Progress


class Followed(NamedTuple):
    """A flow that was followed: records without attributes, the outcome, the last parameters."""

    dataset: Any
    outcome: Outcome
    parameters: Any


class RunSettings(NamedTuple):
    """The settings of a run: when to stop, what to record, and how the parameters decay."""

    stops: tuple[stopping.Stop, ...] = ()
    records: tuple[recording.Rule, ...] = (recording.LogSpaced(),)
    weight_decay: float = 0.0
    progress: Progress | None = None

    @property
    def t_max(self) -> float | None:
        time = stopping.first(self.stops, stopping.Time)
        return None if time is None else time.t

    @property
    def goals(self) -> tuple[stopping.Stop, ...]:
        return tuple(rule for rule in self.stops if not rule.budget)

    def log_level(self, model: Any, unit: float, fitted: float | None = None) -> float:
        """The log loss to stop at; without a goal where the data are `fitted` to that level."""
        goals = self.goals
        if not goals and fitted is not None:
            goals = (stopping.Interpolated(fitted),)
        return max((rule.log_level(model, unit) for rule in goals), default=-math.inf)

    @property
    def per_decade(self) -> int | None:
        """Records in a factor of ten of the time, where some are log-spaced."""
        return recording.density(self.records)

    def requested_moments(self, *kinds: str) -> tuple[float, ...] | None:
        """The moments that At names, which must be of these kinds; None without At."""
        rules = [rule for rule in self.records if isinstance(rule, recording.At)]
        moments = {moment for rule in rules for moment in rule.moments(*kinds)}
        return tuple(sorted(moments)) if rules else None


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class Flow(Checked, abc.ABC):
    """theta' = -grad L(theta) - weight_decay * theta, integrated to the accuracy `rtol`.

    `rtol` is the accuracy of one step of the integrator, of which there are at most `max_steps`.
    With `certify` the run is repeated at another tolerance, which measures the error of the whole.
    """

    tolerances: ClassVar[tuple[float, float]] = (1e-13, 1e-2)  # the least and the largest rtol
    interpolates: ClassVar[bool] = True  # whether records leave the steps as they are
    by_margin: ClassVar[bool] = False  # whether labels are followed in the loss, not in time
    rtol: float = 1e-10
    max_steps: int = 100_000
    weight_decay: float = 0.0
    certify: bool = False

    checks: ClassVar[Checks] = {
        "max_steps": stopping.COUNT,
        "weight_decay": decay_rate,
        "certify": flag,
    }

    @door
    def __post_init__(self) -> None:
        super().__post_init__()
        least, most = self.tolerances
        if not least <= positive("rtol", self.rtol) <= most:
            raise Invalid(f"rtol must be between {least:g} and {most:g}, got {self.rtol:g}")

    def on_squares(self) -> Flow:
        """The flow on half squares as that on squares, which takes half of the time."""
        return self

    @abc.abstractmethod
    def follow(self, model: Any, problem: Any, settings: RunSettings) -> Followed:
        """Follows the flow of `model` on `problem`, whose loss is not "half squares"."""


LONGEST = 1000.0  # in units of 1/rate; all motion has ended long before
AFTER = 8.0  # in units of 1/rate: how far to follow beyond the time when the start has decayed to 1
MOST = 400  # log-spaced records: a start of 1e300 begins at a time of 1e-600
SAME = 1e-9  # two times closer than this, relatively, are equal up to rounding


def requested_times(settings: RunSettings) -> tuple[float, ...]:
    """The times that the settings name, all of them > 0 and within its Time."""
    times = tuple(t for t in settings.requested_moments("times") or () if t > 0)
    if settings.t_max is not None and times and times[-1] > settings.t_max:
        raise Invalid(f"At(times=...) must stay within Time({settings.t_max:g}), got {times[-1]:g}")
    return times


def named(t: Array, settings: RunSettings) -> Array:
    """The times, where those equal to a requested one up to rounding are replaced by it."""
    names = [rule.times for rule in settings.records if isinstance(rule, At)]
    for requested in (*(s for times in names for s in times or ()), settings.t_max):
        if requested is not None:
            t = np.where(np.abs(t - requested) <= SAME * requested, requested, t)
    return t


def times_to_record(
    first: float, per_decade: int | None, requested: Sequence[float], t_max: float = math.inf
) -> Iterator[float]:
    """Log-spaced times from `first` on, if any, and the requested ones, in order."""
    spaced: Iterator[float] = iter(())
    if per_decade is not None:
        spaced = _powers(first, per_decade)
        # a time as near to the end as this would record the end twice
        spaced = itertools.takewhile(lambda t: t < t_max * (1 - SAME), spaced)
    return (t for t, _ in itertools.groupby(heapq.merge(spaced, requested)))


def _powers(first: float, per_decade: int) -> Iterator[float]:
    """first * 10^(k / per_decade), as far as the power is within float64."""
    with contextlib.suppress(OverflowError):
        yield from (first * 10 ** (k / per_decade) for k in range(400 * per_decade))


def own_time(t: float, log_unit: float) -> float:
    if log_unit == 0:
        return t
    with np.errstate(over="ignore", under="ignore"):
        return max(float(np.exp(math.log(t) - log_unit)), 1e-300)


def last_time(rate: float, log_alpha: float, t_max: float | None) -> float:
    """`t_max` under weight decay, or by default a time at which any transition has happened."""
    if rate < 1e-300:
        raise Invalid(f"weight_decay must be 0 or at least 1e-300, got {rate:g}")
    if t_max is None:
        return (max(log_alpha, 0.0) + AFTER) / rate
    if not 1e-300 <= t_max <= (LONGEST + 2 * abs(log_alpha)) / rate:
        raise Invalid(
            f"times must lie between 1e-300 and {LONGEST:g}/weight_decay (plus twice "
            f"log(alpha)/weight_decay), got {t_max:g} with weight_decay {rate:g}; the decay "
            "ends all motion long before"
        )
    return t_max


class Times(NamedTuple):
    """Increasing times to record: themselves, 0 below float64, and their logarithms."""

    t: Array
    log: Array


def _spaced(log_first: float, t_max: float, per_decade: int) -> Times:
    """Log-spaced and evenly spaced times: the transition comes late, where the former are few."""
    step = max(math.log(10) / per_decade, (math.log(t_max) - log_first) / MOST)
    spaced = np.arange(log_first, math.log(t_max), step)
    even = t_max * (np.arange(1, 4 * per_decade + 1) / (4 * per_decade))
    # a log-spaced time that equals an even one up to rounding would be recorded twice
    gaps = np.abs(np.subtract.outer(spaced, np.log(even))).min(axis=1)
    spaced = spaced[gaps > SAME]
    with np.errstate(under="ignore"):
        t = np.concatenate([np.exp(spaced), even])
    logs = np.concatenate([spaced, np.log(even)])
    order = np.argsort(logs)
    return Times(t[order], logs[order])


def decay_times(settings: RunSettings, log_first: float, t_max: float) -> Times:
    """The times to record up to t_max under weight decay."""
    requested = np.array([t for t in requested_times(settings) if t < t_max])
    if settings.per_decade is None:
        t = np.append(requested, t_max)
        return Times(t, np.log(t))
    spaced = _spaced(log_first, t_max, settings.per_decade)
    if not len(requested):
        return spaced
    # of two times with one logarithm, the requested one is recorded, to the bit
    logs, first = np.unique(np.concatenate([np.log(requested), spaced.log]), return_index=True)
    return Times(np.concatenate([requested, spaced.t])[first], logs)


WHOLE = "in units of the whole sum of squares: half the time, twice the loss"


@door_as(class_name)
def run_flow(
    method: Flow, model: Any, problem: Any, penalty: Any, settings: RunSettings
) -> Followed:
    """The integrated flow, in the units of the problem."""
    decay = method.weight_decay + _decay(penalty)
    settings = settings._replace(weight_decay=decay)
    half = getattr(problem, "loss", None) == "half squares"
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            if not half:
                return _followed(method, model, problem, settings)
            whole = dataclasses.replace(problem, loss="squares")
            return _halved(_followed(method.on_squares(), model, whole, _doubled(settings)))
    except (FloatingPointError, OverflowError):
        sizes = [
            f"|{name}| up to {np.abs(getattr(problem, name)).max():.3g}"
            for name in ("X", "y")
            if isinstance(getattr(problem, name, None), np.ndarray)
        ]
        seen = f" ({', '.join(sizes)})" if sizes else ""
        raise Invalid(
            f"the squares or products of this problem{seen} and this start are beyond "
            "float64; rescale the data or take another start"
        ) from None


def _followed(method: Flow, model: Any, problem: Any, settings: RunSettings) -> Followed:
    """The flow with the outcome that its records allow, and with its error if that is asked for."""
    followed = method.follow(model, problem, settings)
    with np.errstate(all="ignore"):
        records, decay = followed.dataset, settings.weight_decay
        outcome = judge_flow(followed.outcome, records, model, problem, method.rtol, decay)
    followed = followed._replace(outcome=outcome)
    if not method.certify:
        return followed
    return Followed(*certified(method, model, problem, settings, followed))


def _decay(penalty: Any) -> float:
    """The rate c of a penalty (c/2) |theta|^2, the only one that a flow follows exactly."""
    if penalty is None:
        return 0.0
    terms = penalty.weighted if isinstance(penalty, Term) else ()
    plain = [isinstance(r, L2) and r.squared and r.weights is None for _, r in terms]
    if not plain or not all(plain):
        raise Invalid(
            f"an exact flow takes the penalty c * L2() only, which is a weight decay of "
            f"2 c, got {penalty!r}; use GradientDescent(..., subgradient=True) or Proximal"
        )
    return float(sum(2 * weight for weight, _ in terms))


def _doubled(settings: RunSettings) -> RunSettings:
    twice: dict[type, Any] = {
        stopping.Time: lambda rule: stopping.Time(rule.t / 2),
        stopping.Loss: lambda rule: stopping.Loss(2 * rule.value),
        stopping.LogLoss: lambda rule: stopping.LogLoss(rule.value + math.log(2)),
    }
    stops = [twice.get(type(rule), lambda rule: rule)(rule) for rule in settings.stops]
    records: list[recording.Rule] = []
    for given in settings.records:
        if isinstance(given, recording.At) and given.times is not None:
            given = recording.At(times=[t / 2 for t in given.times])
        records.append(given)
    decay = 2 * settings.weight_decay
    return RunSettings(tuple(stops), tuple(records), decay, settings.progress)


def _halved(followed: Followed) -> Followed:
    dataset = followed.dataset.copy()
    log2 = math.log(2)
    shifts = {"log_t": log2, "log_loss": -log2}
    factors = {"t": 2.0, "loss": 0.5}
    for name in {*shifts, *factors} & set(dataset.variables):
        values = dataset[name].values
        moved = values + shifts[name] if name in shifts else values * factors[name]
        dataset[name] = (dataset[name].dims, moved, dataset[name].attrs)
    sentence = f"{followed.outcome.sentence} ({WHOLE})"
    outcome = dataclasses.replace(followed.outcome, sentence=sentence)
    return followed._replace(dataset=dataset, outcome=outcome)
