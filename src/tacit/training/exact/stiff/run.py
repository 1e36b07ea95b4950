"""Running a parameter flow on the stiff integrator: when to record and when to stop."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tacit.arguments import positive
from tacit.flows.flow import Progress, decayed
from tacit.flows.stopping import rules
from tacit.models.model import Separable
from tacit.problems.classification import Classification
from tacit.records import Kind, Outcome
from tacit.training.exact.decay.follow import last_time, record_times
from tacit.training.exact.labelling import labelled
from tacit.training.exact.stiff.integrator import Course, TangentMarch
from tacit.training.exact.task import Task, task

SADDLE = "the start is a saddle: the gradient vanishes there and nothing moves"


def run_tangent(
    who: str,
    flow: Any,
    model: object,
    problem: object,
    rate: float,
    progress: Progress | None,
    test: object = None,
) -> Any:
    """The path of theta' = -grad L - rate theta with the settings of `flow`, a ParameterFlow."""
    job = task(who, model, problem, test)
    course = _course(who, flow, job, rate)
    separable = isinstance(job.model, Separable)
    march = TangentMarch(who, job.samples, job.loss, job.start, rate, flow.rtol, separable)
    if march.stuck:
        moments, outcome = [march.begin], Outcome(Kind.STALLED, SADDLE)
    else:
        times = _times(who, flow, 0.02 * march.unit, course)
        moments, outcome = march.run(times, course, progress)
    described = decayed(flow, rate) if rate else flow.describe()
    return labelled(job, rate, described, outcome, moments)


def _course(who: str, flow: Any, job: Task, rate: float) -> Course:
    given = rules(who, flow.until)
    if rate:
        if flow.t_max is None:
            raise ValueError(
                f"{who}: training with weight decay never ends by itself; give t_max, some "
                f"multiples of 1/rate = {1 / rate:.4g}"
            )
        if given:
            raise ValueError(f"{who}: under weight decay time alone ends training; drop until=")
        largest = float(np.abs(job.start).max())
        last_time(rate, math.log(largest) if largest else 0.0, flow.t_max)
        return Course(flow.t_max, -math.inf, flow.max_steps, endless=True)
    t_max = math.inf if flow.t_max is None else flow.t_max
    return Course(t_max, _target(who, flow, job, given), flow.max_steps, endless=False)


def _target(who: str, flow: Any, job: Task, given: tuple[Any, ...]) -> float:
    """The logarithm of the loss to stop at."""
    if not given:
        unit = job.loss.log_unit(job.samples.predict(job.start))
        return math.log(flow.loss) + unit if flow.loss > 0 else -math.inf
    if not isinstance(job.problem, Classification) or any(rule.directional for rule in given):
        raise ValueError(
            f"{who}: until takes LogLoss or Scale on a Classification here, for "
            f"{type(job.model).__name__} has no linear predictor; use loss= or t_max="
        )
    return -min(rule.smoothed_margin(who, job.model) for rule in given)


def _times(who: str, flow: Any, first: float, course: Course) -> Iterator[float]:
    """The times to record, increasing: log-spaced ones and those asked for."""
    asked = sorted(positive(who, "record", t) for t in flow.record or ())
    if course.endless:
        first = min(first, 0.1 * course.t_max)
        times = record_times(math.log(first), course.t_max, flow.points_per_decade)
        spaced: Iterator[float] = iter(times.t.tolist())
    else:
        spaced = (first * 10 ** (k / flow.points_per_decade) for k in itertools.count())
    merged = heapq.merge(spaced, asked)
    return (t for t, _ in itertools.groupby(merged))
