"""The labelled path of a model that need not have a linear predictor."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.matrix import MatrixModel
from tacit.models.model import Separable
from tacit.models.tangent import kernel_distance, kernel_distances
from tacit.problems.classification import Classification
from tacit.problems.matrices import Completion, MatrixProblem
from tacit.problems.population import accuracy
from tacit.records import Outcome, Record
from tacit.training.exact.margins.tails import log_mean_loss
from tacit.training.exact.matrix_samples import TwoFactorSamples
from tacit.training.exact.samples import HomogeneousSamples
from tacit.training.exact.task import Moment, Task
from tacit.training.labels import LABELS, LEAST, UNITS, label, log_sum_of_squares
from tacit.training.labels import labelled as linear_dataset
from tacit.versions import versions

FEW = 2000  # parameters that are recorded at every time, with their tangent kernels
DIMS = {
    "predictions": ("sample",),
    "margins": ("sample",),
    "parameters": ("parameter",),
    "predictor": ("row", "column"),
}
TEST_LABELS = {
    "test_loss": "loss of the test samples",
    "test_accuracy": "share of the test samples on the right side",
    "X_test": "test samples, one row per sample",
    "y_test": "test labels",
}
MATRIX_LABELS = {
    "predictor": "the matrix M of the linear predictor, f(X) = <M, X>",
    "norm_nuclear": "nuclear norm of the matrix",
    "norm_l2": "Frobenius norm of the matrix",
    "test_error": "root mean square error of the matrix over its hidden entries",
    "entries": "row and column of every observed entry",
    "measurements": "measurement matrices X_n",
}


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TangentPath(Record):
    """Where training went; `dataset` holds everything that was recorded, with labels.

    `predictions` and `parameters` are those of the last recorded time. With test samples the
    dataset has their loss and accuracy too, so that `grokking` can read the jump.
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


def turn(start: Array, now: Array) -> float:
    """The angle between two vectors in degrees; NaN where one of them is zero."""
    sizes = [float(np.abs(vector).max()) for vector in (start, now)]
    if not min(sizes) > 0:
        return math.nan
    a, b = start / sizes[0], now / sizes[1]
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    # 2 atan2(|a - b|, |a + b|): accurate for the smallest angles, where arccos is not
    angle = 2 * math.atan2(float(np.linalg.norm(a - b)), float(np.linalg.norm(a + b)))
    return math.degrees(angle)


def measured(task: Task, moments: Sequence[Moment]) -> dict[str, Array]:
    """t, log_t, parameter_norm and turn, and parameters where they are few."""
    t = np.array([moment.t for moment in moments])
    with np.errstate(divide="ignore", under="ignore"):
        found = {"t": t, "log_t": np.log(t)}
        found["parameter_norm"] = np.array([np.linalg.norm(m.parameters) for m in moments])
        # a displacement from the start tells angles that the parameters have rounded away
        now = [
            m.parameters if m.displacement is None else task.start + m.displacement for m in moments
        ]
        found["turn"] = np.array([turn(task.start, vector) for vector in now])
    if task.start.size <= FEW or isinstance(task.model, Separable):
        found["parameters"] = np.array([moment.parameters for moment in moments])
    return found


def labelled(
    task: Task,
    rate: float,
    flow: dict[str, Any],
    outcome: Outcome,
    moments: Sequence[Moment],
    extra: dict[str, Array] | None = None,
) -> Any:
    """A Path of a separable model, a TangentPath of any other."""
    if isinstance(task.model, Separable):
        recorded = measured(task, moments) | (extra or {})
        recorded |= _linear(task, task.model, rate, moments)
        described = task.model.describe(), flow, outcome
        return label(task.problem, *described, recorded, moments[-1].parameters)
    made = dataset(task, rate, moments, extra)
    made.attrs = {
        "description": json.dumps(description(task) | {"flow": flow, "versions": versions()}),
        "outcome": outcome.kind.value,
        "sentence": outcome.sentence,
    }
    last, log_loss = moments[-1], float(made.log_loss.values[-1])
    return TangentPath(outcome, last.t, log_loss, last.predictions, last.parameters, made)


def dataset(
    task: Task, rate: float, moments: Sequence[Moment], extra: dict[str, Array] | None = None
) -> Any:
    """The labelled dataset of moments, without attributes."""
    recorded = measured(task, moments) | (extra or {})
    if isinstance(task.model, Separable):
        recorded |= _linear(task, task.model, rate, moments)
        if task.test is not None:
            recorded |= _tested(task, moments)
        return linear_dataset(task.problem, recorded, moments[-1].parameters)
    recorded |= _outputs(task, np.array([moment.predictions for moment in moments]))
    if task.test is not None:
        recorded |= _tested(task, moments)
    if isinstance(task.problem, MatrixProblem):
        recorded |= _matrices(task, rate, moments)
    if task.start.size <= FEW:
        recorded |= _kernels(task, moments)
    return as_dataset(task.problem, recorded, moments[-1].parameters, task.test)


def _linear(
    task: Task, model: Separable, rate: float, moments: Sequence[Moment]
) -> dict[str, Array]:
    """The predictor of a separable model, and how far its tangent kernel has turned."""
    exact = task.samples if isinstance(task.samples, HomogeneousSamples) else None
    predictor, slopes = [], []
    for moment in moments:
        if exact is not None and moment.displacement is not None:
            predictor.append(exact.predictor(moment.displacement, -rate * moment.t))
        else:
            predictor.append(model.predictor(moment.parameters))
        slopes.append(log_sum_of_squares(model.slopes(moment.parameters).T))
    found = {"predictor": np.array(predictor)}
    if np.isfinite(np.max(slopes, axis=1)).all():
        with np.errstate(under="ignore"):
            found["kernel_distance"] = kernel_distances(task.rows, np.array(slopes))
    return found


def _outputs(task: Task, predictions: Array) -> dict[str, Array]:
    log_loss = task.loss.log_loss(predictions)
    with np.errstate(under="ignore"):
        loss = np.where(log_loss > LEAST, np.exp(log_loss), np.nan)
        loss = np.where(np.isneginf(log_loss), 0.0, loss)
    found = {"predictions": predictions, "log_loss": log_loss, "loss": loss}
    if isinstance(task.problem, Classification):
        margins = predictions * task.problem.y
        found |= {
            "margins": margins,
            "margin": margins.min(axis=1),
            "smoothed_margin": -log_loss,
            "train_accuracy": accuracy(margins),
        }
    return found


def _tested(task: Task, moments: Sequence[Moment]) -> dict[str, Array]:
    """The loss of the test samples, and the accuracy on labels."""
    found = [np.asarray(task.model.predict(m.parameters, task.test.X)) for m in moments]
    outputs = np.array(found)
    if not isinstance(task.test, Classification):
        with np.errstate(over="ignore", under="ignore"):
            log_loss = log_sum_of_squares(outputs - task.test.y) + task.test.log_factor
            return {"test_loss": np.exp(log_loss)}
    margins = outputs * task.test.y
    with np.errstate(under="ignore"):
        loss = np.exp(log_mean_loss(task.test.loss, margins))
    return {"test_loss": loss, "test_accuracy": accuracy(margins)}


def _matrices(task: Task, rate: float, moments: Sequence[Moment]) -> dict[str, Array]:
    exact = task.samples if isinstance(task.samples, TwoFactorSamples) else None
    matrices = []
    for moment in moments:
        if exact is not None and moment.displacement is not None:
            matrices.append(exact.matrix(moment.displacement, -rate * moment.t))
        else:
            assert isinstance(task.model, MatrixModel)
            matrices.append(task.model.matrix(moment.parameters))
    stack = np.array(matrices)
    return {"predictor": stack} | matrix_numbers(task.problem, stack)


def matrix_numbers(problem: MatrixProblem, matrices: Array) -> dict[str, Array]:
    """The norms of matrices, and their errors where the truth is known."""
    found = {
        "norm_nuclear": np.linalg.svd(matrices, compute_uv=False).sum(axis=-1),
        "norm_l2": np.linalg.norm(matrices, axis=(1, 2)),
    }
    if problem.truth is not None:
        apart = np.linalg.norm(matrices - problem.truth, axis=(1, 2))
        found["test_error"] = np.array([problem.test_error(matrix) for matrix in matrices])
        found["relative_error"] = apart / np.linalg.norm(problem.truth)
    return found


def _kernels(task: Task, moments: Sequence[Moment]) -> dict[str, Array]:
    """Distances of the tangent kernels from the first one, where none of them vanishes."""

    def kernel_of(moment: Moment) -> Array:
        if moment.kernel is not None:
            return moment.kernel
        return task.samples.derivative(moment.parameters).kernel()

    first, found = kernel_of(moments[0]), [0.0]
    for moment in moments[1:]:
        kernel = kernel_of(moment)
        if not (first.any() and kernel.any()):
            return {}
        found.append(kernel_distance(first, kernel))
    return {"kernel_distance": np.array(found)}


def as_dataset(
    problem: Any, recorded: dict[str, Array], final: Array | None, test: Any = None
) -> Any:
    """The records (first axis: time) as a dataset with labels; with the data if no recipe has them.

    `final` are the last parameters, None where they are not known.
    """
    import xarray

    variables: dict[str, Any] = {
        name: (("time", *DIMS.get(name, ())), values) for name, values in recorded.items()
    }
    if final is not None:
        variables["final_parameters"] = ("parameter",), final
    if problem.recipe is None:
        variables["y"] = ("sample",), problem.y
        if isinstance(problem, Completion):
            variables["entries"] = ("sample", "index"), problem.entries
        elif isinstance(problem, MatrixProblem):
            measured = problem.design.reshape(-1, *problem.shape)
            variables["measurements"] = ("sample", "row", "column"), measured
        else:
            variables["X"] = ("sample", "feature"), problem.X
    if test is not None and test.recipe is None:
        variables["X_test"] = ("test_sample", "feature"), test.X
        variables["y_test"] = ("test_sample",), test.y
    coordinates = {name: variables.pop(name) for name in ("t", "step") if name in variables}
    dataset = xarray.Dataset(variables, coordinates)
    labels = LABELS | TEST_LABELS | (MATRIX_LABELS if isinstance(problem, MatrixProblem) else {})
    for name, variable in dataset.variables.items():
        variable.attrs = {"units": UNITS.get(str(name), "1"), "long_name": labels[str(name)]}
    return dataset


def description(task: Task) -> dict[str, Any]:
    """The problem and the model as plain JSON values."""
    problem = task.problem
    described = {
        "description": problem.description,
        "samples": problem.samples,
        "dimension": problem.dimension,
        "recipe": problem.recipe,
    }
    described["loss"] = problem.loss
    if isinstance(problem, MatrixProblem):
        described["shape"] = list(problem.shape)
    if task.test is not None:
        names = ("description", "samples", "recipe")
        described["test"] = {name: getattr(task.test, name) for name in names}
    seed = (problem.recipe or {}).get("seed")
    return {"problem": described, "model": task.model.describe(), "seed": seed}
