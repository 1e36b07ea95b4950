"""Students of a non-linear teacher, as figure N-F-ts trains and times them."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import Array
from tacit.figures.registry import Parameters

if TYPE_CHECKING:
    from tacit.claims.notsawo.courses import Course
    from tacit.flows.penalties import Penalty
    from tacit.models.function import FunctionModel
    from tacit.problems.teacher import TeacherStudent


@dataclasses.dataclass(frozen=True)
class Lesson:
    """One teacher, the student's start and the penalties that are tried."""

    data: TeacherStudent
    model: FunctionModel
    parameters: Parameters

    def adam(self, penalty: Penalty | None, beta: float, step: float | None = None) -> Course:
        """The course under Adam; with another step it has as much time."""
        from tacit.claims.notsawo.courses import course
        from tacit.flows.adam import Adam

        p = self.parameters
        size = step or p["step"]
        method = Adam(size, round(p["steps"] * p["step"] / size), penalty, beta,
                      points_per_decade=40)  # fmt: skip
        return course(self.data, self.model, method, p["level"])

    def descent(self, penalty: Penalty, beta: float, step: float) -> Course:
        from tacit.claims.notsawo.courses import course
        from tacit.flows.sgd import SGD

        steps = round(self.parameters["reach"] / (step * beta))
        method = SGD(step, steps, penalty, beta, points_per_decade=40)
        return course(self.data, self.model, method, self.parameters["level"])


def lesson(kind: str, parameters: Parameters, dense: bool = False) -> Lesson:
    """The sparse teacher of l1, a dense one of the same sizes, or the teacher with derivatives."""
    from tacit.models.student import student
    from tacit.problems.teacher import teacher_student

    p, seed = parameters, parameters["seed"]
    name = "" if kind == "l1" else "sobolev_"
    inputs, hidden, outputs = p[f"{name}sizes"]
    units, reads = (p["units"], p["reads"]) if kind == "l1" else (p["sobolev_units"], None)
    if dense:
        units, reads = None, None
    data = teacher_student(p[f"{name}samples"], inputs, hidden, outputs, units, reads, seed,
                           standard=True)  # fmt: skip
    return Lesson(data, student(p["width"], outputs, p["alpha"], 100 + seed), p)


def derivatives(taught: Lesson, shift: int = 0) -> Penalty:
    """The penalty of wrong derivatives; with a shift those of another sample are asked for."""
    from tacit.flows.penalized_derivatives import DerivativeMatch

    slopes = np.roll(taught.data.slopes, shift * taught.data.outputs, axis=0)
    return DerivativeMatch(taught.model, taught.data.training.X, slopes)


def times(courses: list[Course], name: str) -> Array:
    """t1 or t2 of every course; nan where it is not reached."""
    times = np.array([getattr(one.verdict, name) for one in courses])
    return np.where(np.isfinite(times), times, math.nan)


def fitted(x: Array, t2: Array) -> float:
    """The exponent of t2 in x, from what was reached; nan with fewer than two."""
    there = np.isfinite(t2)
    return (
        math.nan
        if there.sum() < 2
        else float(np.polyfit(np.log(x[there]), np.log(t2[there]), 1)[0])
    )
