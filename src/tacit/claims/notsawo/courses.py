"""How a student of a teacher fares: training and test errors over the steps, and the verdict."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from tacit.arguments import Array
from tacit.measures.grokking import Grokking, grokking
from tacit.models.model import Model
from tacit.papers.instances import slope
from tacit.problems.teacher import TeacherStudent
from tacit.records import NumericalError, Record
from tacit.regularizers.penalty import Term
from tacit.training.descent.methods import SGD, Adam
from tacit.training.record import LogSpaced
from tacit.training.stop import Steps
from tacit.training.train import train


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


def course(
    data: TeacherStudent,
    model: Model,
    method: Adam | SGD,
    penalty: Term | None,
    steps: int,
    level: float = 0.05,
    per_decade: int = 20,
) -> Course:
    """The course of `model`, trained by `method` on what the teacher answers."""
    record = LogSpaced(per_decade)
    path = train(model, data.training, method, penalty=penalty, stop=Steps(steps), record=record)
    if not path.outcome.ok:
        raise NumericalError("course", path.outcome)
    run = path.dataset
    errors = (
        data.share(run.loss.values, data.training),
        data.share(run.test_loss.values, data.test),
    )
    return Course(run.step.values.astype(float), *errors, level)


def exponent(x: Array, t2: Array) -> float:
    """The slope of log t2 over log x; nan unless every t2 was reached."""
    return slope(x, t2) if np.isfinite(t2).all() else float("nan")
