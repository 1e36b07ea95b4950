"""How a student of a teacher fares: training and test errors over the steps, and the verdict."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from tacit.arguments import Array
from tacit.claims.instances import slope
from tacit.flows.adam import Adam
from tacit.flows.sgd import SGD
from tacit.measures.grokking import Grokking, grokking
from tacit.models.model import Model
from tacit.problems.teacher import TeacherStudent
from tacit.records import NumericalError, Record


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Course(Record):
    """Mean squared errors at the recorded steps, in units of the variance of the labels.

    `level` is the error from which on a curve counts as solved.
    """

    step: Array
    train: Array
    test: Array
    level: float

    @functools.cached_property
    def verdict(self) -> Grokking:
        """t1, t2 and whether the test curve follows late."""
        return grokking(self.step, self.train, self.test, self.level, error=True)

    @property
    def left(self) -> float:
        """The test error at the end."""
        return float(self.test[-1])


def course(data: TeacherStudent, model: Model, method: Adam | SGD, level: float = 0.05) -> Course:
    """The course of `model`, trained by `method` on what the teacher answers."""
    path = method.run(model, data.training, test=data.test)
    if not path.outcome.ok:
        raise NumericalError("course", path.outcome)
    run = path.dataset
    train = data.share(run.loss.values, data.training)
    test = data.share(run.test_loss.values, data.test)
    return Course(run.step.values.astype(float), train, test, level)


def exponent(x: Array, t2: Array) -> float:
    """The slope of log t2 over log x; nan unless every t2 was reached."""
    return slope(x, t2) if np.isfinite(t2).all() else float("nan")
