"""A flow in the parameters on the stiff integrator: when to record and when to stop."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tacit.models.model import Separable
from tacit.problems.classification import Classification
from tacit.records import Kind, Outcome
from tacit.training import stop as stopping
from tacit.training.exact.flow import Course, Flow, Followed
from tacit.training.exact.follow import ROUNDING
from tacit.training.exact.labelling import dataset
from tacit.training.exact.stiff.integrator import Plan, StiffIntegrator
from tacit.training.exact.task import Task, task
from tacit.training.exact.times import asked_times, decay_times, last_time, times_to_record

SADDLE = "the start is a saddle: the gradient vanishes there and nothing moves"
GOALS = (stopping.Interpolated, stopping.Loss, stopping.LogLoss, stopping.Time)


def follow_stiff(flow: Flow, model: object, problem: object, course: Course) -> Followed:
    """theta' = -grad L - rate theta of any model, with the settings of `flow`."""
    who, rate = type(flow).__name__, course.weight_decay
    job = task(who, model, problem)
    plan = _plan(who, flow, job, course)
    separable = isinstance(job.model, Separable)
    system = StiffIntegrator(who, job.samples, job.loss, job.start, rate, flow.rtol, separable)
    times = _times(who, 0.02 * system.unit, plan, course)
    if system.stuck:
        moments, outcome = [system.begin], Outcome(Kind.STALLED, SADDLE)
    else:
        moments, outcome = system.run(times, plan, course.progress)
    return Followed(dataset(job, rate, moments), outcome, moments[-1].parameters)


def _plan(who: str, flow: Flow, job: Task, course: Course) -> Plan:
    t_max = math.inf if course.t_max is None else course.t_max
    if course.weight_decay:
        _decaying(who, job, course)
        return Plan(t_max, -math.inf, flow.max_steps, bare=True, decays=True)
    level = _log_level(who, job, course)
    bare = not course.goals and course.t_max is not None
    return Plan(t_max, level, flow.max_steps, bare, decays=False)


def _decaying(who: str, job: Task, course: Course) -> None:
    """A ValueError if the course is none that ends under weight decay."""
    rate = course.weight_decay
    why = "under weight decay, where time alone ends training"
    stopping.understood(who, course.stops, (stopping.Time,), why)
    if course.t_max is None:
        raise ValueError(
            f"{who}: training with weight decay never ends by itself; give stop=Time(t), some "
            f"multiples of 1/weight_decay = {1 / rate:.4g}"
        )
    largest = float(np.abs(job.start).max())
    last_time(who, rate, math.log(largest) if largest else 0.0, course.t_max)


def _log_level(who: str, job: Task, course: Course) -> float:
    """The logarithm of the loss to stop at."""
    labels = isinstance(job.problem, Classification)
    why = f"where {type(job.model).__name__} learns {'labels' if labels else 'values'}"
    stopping.understood(who, course.stops, (*GOALS, stopping.Scale) if labels else GOALS, why)
    fitted: float | None = stopping.Interpolated().relative
    if course.t_max is not None:
        fitted = None if labels else ROUNDING
    unit = job.loss.log_unit(job.samples.predict(job.start))
    return course.log_level(who, job.model, unit, fitted)


def _times(who: str, first: float, plan: Plan, course: Course) -> Iterator[float]:
    """The times to record, increasing: log-spaced ones and those asked for."""
    if plan.decays:
        log_first = math.log(min(first, 0.1 * plan.t_max))
        return iter(decay_times(who, course, log_first, plan.t_max).t.tolist())
    return times_to_record(first, course.per_decade, asked_times(who, course))
