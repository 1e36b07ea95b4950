"""What a run on f = g + beta h records, and its labelled path."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array, real
from tacit.flows.inputs import outputs
from tacit.flows.path import LABELS, log_sum_of_squares
from tacit.flows.penalized_task import Job, Slope
from tacit.flows.tails import log_mean_loss
from tacit.flows.tangent_path import FEW, MATRIX_LABELS
from tacit.problems.classification import Classification
from tacit.problems.matrices import Completion, MatrixProblem
from tacit.problems.population import accuracy
from tacit.records import Outcome, Record
from tacit.regularizers.penalty import Term
from tacit.versions import versions

LEVELS = ("loss", "objective", "test_error", "relative_error")
OWN_LABELS = LABELS | {
    "t": "training time, step size times number of steps",
    "loss": "training loss g: half the sum of squared residuals, or the mean loss of labels",
    "log_loss": "natural logarithm of g",
    "penalty": "penalty h of the parameters",
    "objective": "g + beta h",
    "gradient_norm": "Euclidean norm of the gradient G of g",
    "penalty_gradient_norm": "beta times the Euclidean norm of the subgradient H of h",
    "predictor": "linear predictor, f(x) = <predictor, x>",
    "norm_l1": "sum of the absolute entries of the predictor",
    "norm_l2": "Euclidean norm of the predictor",
    "norm_nuclear": "sum of the singular values of the predictor",
    "test_error": "|predictor - truth|^2, over all entries",
    "relative_error": "|predictor - truth| / |truth|",
    "parameter_norm_l1": "sum of the absolute parameters",
    "test_loss": "the loss g of the test samples",
    "test_accuracy": "share of the test samples on the right side",
    "X_test": "test samples, one row per sample",
    "y_test": "test labels",
    "entries": MATRIX_LABELS["entries"],
}
DIMS = {"parameters": ("parameter",), "predictions": ("sample",)}


class Row(NamedTuple):
    """One recorded step: numbers, and arrays by name."""

    step: int
    theta: Array
    numbers: dict[str, float]
    arrays: dict[str, Array]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class PenalizedPath(Record):
    """Where training went; `dataset` holds everything that was recorded, with labels.

    `parameters` and `predictor` are those of the last recorded step; `predictor` is a vector or
    a matrix, and None for a model that is no linear predictor.
    """

    outcome: Outcome
    t: float
    steps: int
    log_loss: float
    parameters: Array
    predictor: Array | None
    dataset: Any = dataclasses.field(repr=False)


def levels(
    who: str, until: Mapping[str, float] | None, problem: Any = None
) -> dict[str, float] | None:
    """The levels that end a run, checked; with a problem also that it has the truth they need."""
    if until is None:
        return None
    if not isinstance(until, Mapping) or not until or not set(until) <= set(LEVELS):
        known = ", ".join(LEVELS)
        raise ValueError(f"{who}: until must map one of {known} to a number, got {until!r}")
    needed = [name for name in until if name.endswith("_error")]
    if problem is not None and needed and _truth(problem) is None:
        raise ValueError(f"{who}: until {needed[0]!r} needs a problem with a known truth")
    found = {name: real(who, f"until[{name!r}]", level) for name, level in until.items()}
    for name, level in found.items():
        if level < 0:
            raise ValueError(
                f"{who}: until[{name!r}] must be >= 0, or it is never met, got {level}"
            )
    return found


def row(who: str, job: Job, step: int, theta: Array) -> Row:
    """Everything that is measured at one step."""
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        predictor = job.predictor(theta)
        predictions = np.asarray(outputs(job.model, theta, job.data[0]))
        gradient, value, pull = _gauge(job.slope, job.penalty)(job.data, theta)
        numbers = _losses(job.problem, predictions) | _penalty(who, job, step, theta, value, pull)
        numbers["objective"] = numbers["loss"] + job.beta * numbers["penalty"]
        numbers["gradient_norm"] = float(np.linalg.norm(gradient))
        numbers["parameter_norm"] = float(np.linalg.norm(theta))
        numbers["parameter_norm_l1"] = float(np.abs(theta).sum())
        numbers |= _tested(job, theta)
        arrays = {} if predictor is None else {"predictor": predictor}
        if predictor is None:
            arrays["predictions"] = predictions
        else:
            numbers |= _norms(predictor) | _errors(job, predictor)
        if theta.size <= FEW and (predictor is None or predictor.size != theta.size):
            arrays["parameters"] = theta
    return Row(step, theta, numbers, arrays)


def labelled(
    job: Job, step: float, flow: dict[str, Any], outcome: Outcome, rows: Sequence[Row]
) -> PenalizedPath:
    """The path of one run."""
    import xarray

    steps = np.array([r.step for r in rows])
    variables: dict[str, Any] = {
        name: ("time", np.array([r.numbers[name] for r in rows])) for name in rows[0].numbers
    }
    for name, first in rows[0].arrays.items():
        dims = ("row", "column") if first.ndim == 2 else DIMS.get(name, ("feature",))
        variables[name] = ("time", *dims), np.array([r.arrays[name] for r in rows])
    variables["final_parameters"] = "parameter", rows[-1].theta
    if job.problem.recipe is None:  # no recipe to draw the data again: keep the data themselves
        variables["y"] = "sample", job.problem.y
        if isinstance(job.problem, Completion):
            variables["entries"] = ("sample", "index"), job.problem.entries
        else:
            entries = "entry" if isinstance(job.problem, MatrixProblem) else "feature"
            variables["X"] = ("sample", entries), job.data[0]
    if job.test is not None and job.test.recipe is None:
        tested = "test_sample"
        variables |= {"X_test": ((tested, "feature"), job.test.X), "y_test": (tested, job.test.y)}
    dataset = xarray.Dataset(variables, {"t": ("time", step * steps), "step": ("time", steps)})
    for label, variable in dataset.variables.items():
        units = {"step": "steps", "log_loss": "log(1)"}.get(str(label), "1")
        variable.attrs = {"units": units, "long_name": OWN_LABELS[str(label)]}
    dataset.attrs = {"description": json.dumps(_description(job, flow)),
                     "outcome": outcome.kind.value, "sentence": outcome.sentence}  # fmt: skip
    last = rows[-1]
    log_loss, predictor = last.numbers["log_loss"], last.arrays.get("predictor")
    return PenalizedPath(outcome, step * last.step, last.step, log_loss, last.theta, predictor,
                         dataset)  # fmt: skip


def _losses(problem: Any, predictions: Array) -> dict[str, float]:
    if isinstance(problem, Classification):
        margins = predictions * problem.y
        log_loss = float(log_mean_loss(problem.loss, margins[None])[0])
        right = float(accuracy(margins))
        return {"loss": float(np.exp(log_loss)), "log_loss": log_loss, "train_accuracy": right}
    log_loss = float(log_sum_of_squares(predictions - problem.y) - np.log(2))
    return {"loss": float(np.exp(log_loss)), "log_loss": log_loss}


def _tested(job: Job, theta: Array) -> dict[str, float]:
    """The loss of the test samples, if there are any, and the accuracy on labels."""
    if job.test is None:
        return {}
    found = _losses(job.test, np.asarray(job.model.predict(theta, job.test.X)))
    names = {"loss": "test_loss", "train_accuracy": "test_accuracy"}
    return {names[name]: value for name, value in found.items() if name in names}


@functools.lru_cache(maxsize=32)
def _gauge(slope: Slope, penalty: Term | None) -> Callable[..., Any]:
    """A compiled function (data, theta) -> (G, h, H)."""
    import jax

    def measure(data: Any, theta: Any) -> Any:
        if penalty is None:
            return slope(data, theta), 0.0, 0.0
        return slope(data, theta), penalty.value(theta), penalty.subgradient(theta)

    return jax.jit(measure)


def _penalty(
    who: str, job: Job, step: int, theta: Array, value: Any, pull: Any
) -> dict[str, float]:
    """h and beta |H|; a nan of either is an error that names the step."""
    value, size = float(value), float(np.linalg.norm(pull))
    for name, number in {"value": value, "subgradient": size}.items():
        if np.isnan(number):
            raise ValueError(penalty_is_nan(who, name, step, theta))
    return {"penalty": value, "penalty_gradient_norm": job.beta * size}


def penalty_is_nan(who: str, name: str, step: int, point: Array) -> str:
    """The sentence for a penalty that made a nan out of finite parameters."""
    return (
        f"{who}: the {name} of the penalty is nan at step {step}, where the parameters are finite "
        f"(the largest is {np.abs(point).max():.3g}); check the penalty there"
    )


def _norms(predictor: Array) -> dict[str, float]:
    found = {"norm_l1": np.abs(predictor).sum(), "norm_l2": np.linalg.norm(predictor)}
    if predictor.ndim == 2:
        found["norm_nuclear"] = np.linalg.svd(predictor, compute_uv=False).sum()
    return {name: float(value) for name, value in found.items()}


def _errors(job: Job, predictor: Array) -> dict[str, float]:
    truth = _truth(job.problem)
    if truth is None:
        return {}
    apart = float(np.linalg.norm(predictor.ravel() - truth.ravel()))
    return {"test_error": apart**2, "relative_error": float(apart / np.linalg.norm(truth))}


def _truth(problem: Any) -> Array | None:
    """The true predictor; of a Classification only a direction is known, which is no truth."""
    return None if isinstance(problem, Classification) else problem.truth


def _description(job: Job, flow: dict[str, Any]) -> dict[str, Any]:
    problem = job.problem
    described = {"description": problem.description, "samples": problem.samples,
                 "dimension": problem.dimension, "recipe": problem.recipe}  # fmt: skip
    if isinstance(problem, MatrixProblem):
        described["shape"] = list(problem.shape)
    if job.test is not None:
        described["test"] = {"description": job.test.description, "samples": job.test.samples,
                             "recipe": job.test.recipe}  # fmt: skip
    seed = (problem.recipe or {}).get("seed")
    return {"problem": described, "model": job.model.describe(), "flow": flow, "seed": seed,
            "versions": versions()}  # fmt: skip
