"""A flow in the parameters on the stiff integrator: when to record and when to stop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.problems.classification import Classification
from tacit.training import stop as stopping
from tacit.training.exact.flow import Course, Flow, Followed
from tacit.training.exact.follow import ROUNDING, STOPS, Plan, follow, planned
from tacit.training.exact.labelling import dataset
from tacit.training.exact.stiff.integrator import StiffIntegrator
from tacit.training.exact.task import Task, task
from tacit.training.exact.times import decay_times, last_time


def follow_stiff(flow: Flow, model: object, problem: object, course: Course) -> Followed:
    """theta' = -grad L - rate theta of any model, with the settings of `flow`."""
    who, rate = type(flow).__name__, course.weight_decay
    job = task(who, model, problem)
    if rate:
        _check_decay(who, job, course)
    level = -math.inf if rate else _log_level(who, job, course)
    t_max = math.inf if course.t_max is None else course.t_max
    system = StiffIntegrator(who, job, rate, flow.rtol, t_max)
    first = 0.02 * system.unit
    if rate:
        times = decay_times(who, course, math.log(min(first, 0.1 * t_max)), t_max).t
        ends: Any = {"bare": True, "unit": system.unit, "rests": False, "progress": course.progress}
        plan = Plan(iter(times.tolist()), flow.max_steps, t_max, **ends)
    else:
        plan = planned(who, flow, course, system.unit, first, level)
    moments, outcome = follow(system, plan, system.begin)
    return Followed(dataset(job, rate, moments), outcome, moments[-1].state)


def _check_decay(who: str, job: Task, course: Course) -> None:
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
    stopping.understood(who, course.stops, (*STOPS, stopping.Scale) if labels else STOPS, why)
    fitted: float | None = stopping.Interpolated().relative
    if course.t_max is not None:
        fitted = None if labels else ROUNDING
    unit = job.loss.log_unit(job.samples.predict(job.start))
    return course.log_level(who, job.model, unit, fitted)
