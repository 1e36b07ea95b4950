"""A linear predictor that learns values: its loss, and why it rests before it fits them."""

from __future__ import annotations

import math

import numpy as np

from tacit.problems.regression import Regression
from tacit.solvers.constraints import reduce
from tacit.training.exact.flow import Course, Flow
from tacit.training.exact.follow import ROUNDING, Integrator, Plan, log_level, planned
from tacit.training.exact.loss import log_sum_of_squares
from tacit.training.exact.task import Moment

LOOK = 8  # small steps between two looks at the loss


def planned_fit(
    who: str,
    flow: Flow,
    course: Course,
    model: object,
    problem: Regression,
    unit: float,
    log_unit: float = 0.0,
) -> Plan:
    """The plan of a run on values, in units of exp(log_unit) of the training time."""
    log_scale = float(log_sum_of_squares(problem.y)) if problem.y.any() else 0.0
    why = "where a linear predictor learns values"
    level = log_level(who, course, model, log_scale, why)
    return planned(who, flow, course, unit, 0.01 * unit, level, log_unit)._replace(look=LOOK)


class FitIntegrator(Integrator):
    """Steps of a flow whose moments have a predictor of the values of `problem`."""

    def __init__(self, problem: Regression) -> None:
        self.problem = problem

    def log_loss(self, now: Moment) -> float:
        return float(log_sum_of_squares(self.problem.X @ now.predictor - self.problem.y))

    def why(self, now: Moment, plan: Plan) -> str:
        X, y = self.problem.X, self.problem.y
        best = np.linalg.lstsq(X, y, rcond=None)[0]
        floor = float(np.sum((X @ best - y) ** 2))
        here, zero = math.exp(self.log_loss(now)), float(np.sum(y**2))
        if here < ROUNDING * zero:
            return "rounding leaves no less; stop at a larger loss"
        if floor > 0.5 * here and _contradictory(self.problem):
            return f"no linear predictor fits y, the least-squares loss is {floor:.3g}"
        if here < 1e-12 * zero:
            goal = math.exp(plan.log_level)
            return f"the steps are not accurate enough for {goal:.3g}; lower rtol"
        return super().why(now, plan)


def _contradictory(problem: Regression) -> bool:
    """True if no linear predictor fits y, decided with rows and columns in units of their own."""
    try:
        reduce("follow", problem.X, problem.y)
    except ValueError:
        return True
    return False
