"""Rules that say when a run will grok, each from what was recorded so far.

A rule takes a run that is cut at the present step, and that step. It answers with a step, or with a
step and an interval of 80%, or with the chance of a jump alone, or with nothing. Published laws
have constants of an architecture: `Constants` measures them on the runs of one half, family by
family. Where a law has no interval, `calibrated` gives it one from the same half.

- clock: a multiple of the memorization.
- decay clock: log(scale of the start) + a constant, over the rate of decay (Lyu et al. 2023).
- norm separation: the memorization + log(V_mem / V_post) / rate, V the squared norm (arXiv
  2603.13331); V_post / V_mem is a constant.
- first passage: the memorization + log(V_mem / V*) / (2 kappa rate) (arXiv 2605.18845).
- critical norm: where decay alone brings the norm to W_c (arXiv 2606.13753, free training).
- clamp law: A exp(7.5 norm / W_c), for a norm that stays what it is now (arXiv 2606.13753).
- Hankel DMD: no step; the residual of a linear model of the quantiles of the log-probability
  (arXiv 2605.08237; its abstract gives the method, delays and rank are ours).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from penchant.forecasts import forecast_jump
from penchant_papers.probe import forecast_rules as league
from penchant_papers.probe.bench.recorded import LEVELS
from penchant_papers.probe.forecast_rules import (
    Moments,
    RecordedRun,
    Rule,
    Said,
    watched,
)

Maker = Callable[[list[RecordedRun]], Rule]  # fits a rule on the runs of a half
EXPONENT = 7.5  # of the clamp law, as published
DELAYS, RANK, WINDOW = 4, 4, 24
FEWEST = 4  # runs of a family that have constants of their own
PRESENT = 1e-9


def cut(recorded: RecordedRun, now: float) -> RecordedRun:
    """The run as it was known at a step: its curves until then, and the memorization."""
    known = Moments(recorded.moments.t_mem, *[math.nan] * 4)
    return RecordedRun(recorded.run, recorded.until(now), known)


OURS, BLIND = "the watch", "the watch, net unknown"


def the_watch(seen: RecordedRun, now: float) -> Said:
    """What `watch.forecast` says of the test accuracy."""
    return _ahead(watched(seen, now).assign_attrs(embeddings=seen.run.embeddings))


def norm_rule(seen: RecordedRun, now: float) -> Said:
    """Where the displacement is as long as the decayed start, if that is ahead."""
    said = league.norm_rule(seen, now)
    return said if said.step > now else Said()


def net_unknown(seen: RecordedRun, now: float) -> Said:
    """The same for a net of which nothing is known."""
    return _ahead(watched(seen, now))


def _ahead(dataset: Any) -> Said:
    jump = forecast_jump(dataset)
    ahead = jump.ahead and jump.event == "test accuracy"
    return Said(jump.step, jump.low, jump.high) if ahead else Said()


class Constants(NamedTuple):
    """What published laws measure on runs of an architecture; `norm` is the one at the jump."""

    clock: float  # t_half / t_mem
    decayed: float  # rate t_half - log scale
    shrunk: float  # V_post / V_mem
    norm: float
    kappa: float
    clamped: float  # t_half exp(-EXPONENT norm_mem / W_c)


def constants(recorded: Iterable[RecordedRun]) -> dict[str, Constants]:
    """The constants of every family with FEWEST runs that grok, and of all runs as ""."""
    grown = [run for run in recorded if run.moments.groks and run.run.decay_rate > 0]
    families = {run.run.family for run in grown}
    parts = {name: [run for run in grown if run.run.family == name] for name in families}
    parts = {name: part for name, part in parts.items() if len(part) >= FEWEST} | {"": grown}
    return {name: _constants(part) for name, part in parts.items()}


def _constants(part: list[RecordedRun]) -> Constants:
    mem, half = np.array([(run.moments.t_mem, run.moments.t_half) for run in part]).T
    first = np.array([_norm(run, t) for run, t in zip(part, mem, strict=True)])
    last = np.array([_norm(run, t) for run, t in zip(part, half, strict=True)])
    rate = np.array([run.run.decay_rate for run in part])
    critical = math.exp(np.mean(np.log(last)))
    return Constants(
        clock=math.exp(np.median(np.log(half / mem))),
        decayed=float(np.median(rate * half - np.log([run.run.scale for run in part]))),
        shrunk=math.exp(2 * np.mean(np.log(last / first))),
        norm=critical,
        kappa=float(np.median(np.log(first / critical) / (rate * np.maximum(half - mem, 1.0)))),
        clamped=math.exp(np.median(np.log(half) - EXPONENT * first / critical)),
    )


def _norm(run: RecordedRun, t: float) -> float:
    return float(np.interp(t, run.curves["step"], run.curves["norm"]))


Law = Callable[[Constants, RecordedRun, float, float], float]  # of a rate of decay, and now


def clock(known: Constants, seen: RecordedRun, rate: float, now: float) -> float:
    return known.clock * seen.moments.t_mem


def decay_clock(known: Constants, seen: RecordedRun, rate: float, now: float) -> float:
    return (math.log(seen.run.scale) + known.decayed) / rate


def norm_separation(known: Constants, seen: RecordedRun, rate: float, now: float) -> float:
    return seen.moments.t_mem - math.log(known.shrunk) / rate


def first_passage(known: Constants, seen: RecordedRun, rate: float, now: float) -> float:
    t_mem = seen.moments.t_mem
    return t_mem + math.log(_norm(seen, t_mem) / known.norm) / (known.kappa * rate)


def critical_norm(known: Constants, seen: RecordedRun, rate: float, now: float) -> float:
    return now + math.log(_norm(seen, now) / known.norm) / rate


def clamp_law(known: Constants, seen: RecordedRun, rate: float, now: float) -> float:
    logarithm = EXPONENT * _norm(seen, now) / known.norm + math.log(known.clamped)
    return math.exp(logarithm) if logarithm < 700 else math.inf


def with_constants(law: Law) -> Maker:
    """The rule of a law; nothing is said of runs without decay, nor of a step that is past."""

    def fitted(recorded: list[RecordedRun]) -> Rule:
        families = constants(recorded)

        def rule(seen: RecordedRun, now: float) -> Said:
            known = families.get(seen.run.family, families[""])
            rate = seen.run.decay_rate
            if not rate > 0 and law is not clock:
                return Said()
            step = law(known, seen, rate, now)
            return Said(step) if now < step < math.inf else Said()

        return rule

    return fitted


def hankel_residual(seen: RecordedRun, now: float) -> Said:
    """The residual of the best linear model of RANK modes, relative to what moves."""
    after = seen.curves["step"] >= seen.moments.t_mem / 2
    levels = np.stack([seen.curves[name][after] for name in LEVELS])[:, -WINDOW:]
    if levels.shape[1] < DELAYS + RANK + 1:
        return Said()
    levels = levels - levels.mean(1, keepdims=True)
    rows = [levels[:, d : levels.shape[1] - DELAYS + d + 1] for d in range(DELAYS)]
    delayed = np.concatenate(rows)
    before, later = delayed[:, :-1], delayed[:, 1:]
    left, sizes, right = np.linalg.svd(before, full_matrices=False)
    left, sizes, right = left[:, :RANK], sizes[:RANK], right[:RANK]
    mapped = later @ (right.T / np.maximum(sizes, PRESENT)) @ left.T
    size = float(np.linalg.norm(later))
    return Said(chance=float(np.linalg.norm(later - mapped @ before)) / size if size > 0 else 0.0)


def always(rule: Rule) -> Maker:
    """A rule without constants."""
    return lambda recorded: rule


MAKERS: dict[str, Maker] = {
    OURS: always(the_watch),
    BLIND: always(net_unknown),
    "norm rule": always(norm_rule),
    "clock": with_constants(clock),
    "decay clock": with_constants(decay_clock),
    "norm separation": with_constants(norm_separation),
    "first passage": with_constants(first_passage),
    "critical norm": with_constants(critical_norm),
    "clamp law": with_constants(clamp_law),
    "Hankel DMD": always(hankel_residual),
}
FIXED = (OURS, BLIND, "norm rule", "Hankel DMD")  # without constants
