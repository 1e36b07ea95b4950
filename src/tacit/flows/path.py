"""The paths of the methods that `training` has not taken over yet."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.model import Separable
from tacit.problems.classification import Classification
from tacit.problems.matrix_problem import MatrixProblem
from tacit.records import Outcome, Record
from tacit.training.exact.labelling import dataset, linear
from tacit.training.exact.task import Moment, Task
from tacit.versions import versions


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Path(Record):
    """Where training went; `dataset` holds everything that was recorded, with labels.

    `predictor` and `parameters` are those of the last recorded time; `parameters` is None where
    float64 cannot hold them.
    """

    outcome: Outcome
    t: float
    log_loss: float
    predictor: Array
    parameters: Array | None
    dataset: Any = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TangentPath(Record):
    """Where training went; `dataset` holds everything that was recorded, with labels.

    `predictions` and `parameters` are those of the last recorded time.
    """

    outcome: Outcome
    t: float
    log_loss: float
    predictions: Array
    parameters: Array
    dataset: Any = dataclasses.field(repr=False)

    @property
    def matrix(self) -> Array:
        """The last matrix of a matrix model."""
        if "predictor" not in self.dataset:
            raise ValueError("TangentPath.matrix: the model has no matrix; see `predictions`")
        return np.asarray(self.dataset.predictor.values[-1])


def label(
    problem: Any,
    model: dict[str, Any],
    flow: dict[str, Any],
    outcome: Outcome,
    recorded: dict[str, Array],
    final_parameters: Array | None = None,
) -> Path:
    """The path of one run of a linear predictor, from the arrays it `recorded`."""
    made = linear(problem, recorded, final_parameters)
    return _path(problem, model, flow, outcome, made, final_parameters)


def labelled(
    task: Task,
    rate: float,
    flow: dict[str, Any],
    outcome: Outcome,
    moments: Sequence[Moment],
    extra: dict[str, Array] | None = None,
) -> Any:
    """A Path of a separable model, a TangentPath of any other."""
    problem = task.problem
    if task.test is not None:
        problem = dataclasses.replace(problem, test=task.test)
    made = dataset(task._replace(problem=problem), rate, moments, extra)
    last = moments[-1]
    if isinstance(task.model, Separable):
        return _path(problem, task.model.describe(), flow, outcome, made, last.parameters)
    made.attrs = _attributes(problem, task.model.describe(), flow, outcome)
    log_loss = float(made.log_loss.values[-1])
    return TangentPath(outcome, last.t, log_loss, last.predictions, last.parameters, made)


def _path(
    problem: Any, model: Any, flow: Any, outcome: Outcome, made: Any, parameters: Array | None
) -> Path:
    made.attrs = _attributes(problem, model, flow, outcome)
    last = float(made.t.values[-1]), float(made.log_loss.values[-1])
    return Path(outcome, *last, made.predictor.values[-1], parameters, made)


def _attributes(problem: Any, model: Any, flow: Any, outcome: Outcome) -> dict[str, Any]:
    names = ("description", "samples", "dimension", "recipe")
    described = {name: getattr(problem, name) for name in names}
    if isinstance(problem, Classification):
        described["loss"] = problem.loss
    if isinstance(problem, MatrixProblem):
        described["shape"] = list(problem.shape)
    if problem.test is not None:
        tested = ("description", "samples", "recipe")
        described["test"] = {name: getattr(problem.test, name) for name in tested}
    told = {
        "problem": described,
        "model": model,
        "flow": flow,
        "seed": (problem.recipe or {}).get("seed"),
        "versions": versions(),
    }
    return {
        "description": json.dumps(told),
        "outcome": outcome.kind.value,
        "sentence": outcome.sentence,
    }
