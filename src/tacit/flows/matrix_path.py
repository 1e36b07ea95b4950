"""The path of a matrix flow: a labelled dataset over time, row and column, and its last matrix."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.flows.path import Path
from tacit.problems.matrices import Completion, MatrixProblem
from tacit.records import Outcome
from tacit.training.exact.loss import log_sum_of_squares
from tacit.training.labels import LABELS, UNITS
from tacit.versions import versions

MATRIX_LABELS = {
    "t": LABELS["t"],
    "log_t": LABELS["log_t"],
    "loss": "training loss sum_n (<X_n, M> - y_n)^2",
    "log_loss": LABELS["log_loss"],
    "predictor": "matrix M, f(X) = <M, X>",
    "norm_nuclear": "nuclear norm of M",
    "norm_frobenius": "Frobenius norm of M",
    "test_error": "root mean square of M - truth over the entries that were not seen",
    "parameter_norm": "Euclidean norm of the parameters",
    "turn": "angle between the parameters and those of the start",
    "measurements": "measurement matrices X_n",
    "entries": "row and column of every observed entry",
    "y": "measured values",
}
DIMS = {"predictor": ("time", "row", "column"), "measurements": ("sample", "row", "column"),
        "entries": ("sample", "index"), "y": ("sample",)}  # fmt: skip


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class MatrixPath(Path):
    """A path whose `predictor` is a matrix."""

    @property
    def matrix(self) -> Array:
        """M at the last recorded time."""
        return self.predictor


def label_matrices(
    problem: MatrixProblem,
    model: dict[str, Any],
    flow: dict[str, Any],
    outcome: Outcome,
    recorded: dict[str, Array],
    parameters: Array | None,
) -> MatrixPath:
    """The path of one run, from its recorded t, predictor and parameter_norm (first axis: time)."""
    import xarray

    held: dict[str, Any] = recorded | _derived(problem, recorded["t"], recorded["predictor"])
    if problem.recipe is None:  # no recipe to draw the data again: keep the data themselves
        held["y"] = problem.y
        if isinstance(problem, Completion):
            held["entries"] = problem.entries
        else:
            held["measurements"] = problem.design.reshape(-1, *problem.shape)
    variables = {name: (DIMS.get(name, ("time",)), values) for name, values in held.items()}
    dataset = xarray.Dataset(variables, {"t": variables.pop("t")})
    for name, variable in dataset.variables.items():
        units = {"turn": "degree"}.get(str(name), UNITS.get(str(name), "1"))
        variable.attrs = {"units": units, "long_name": MATRIX_LABELS[str(name)]}
    dataset.attrs = {
        "description": json.dumps(_description(problem, model, flow)),
        "outcome": outcome.kind.value,
        "sentence": outcome.sentence,
    }
    last = {"t": float(held["t"][-1]), "log_loss": float(held["log_loss"][-1])}
    return MatrixPath(outcome, **last, predictor=recorded["predictor"][-1], parameters=parameters,
                      dataset=dataset)  # fmt: skip


def _derived(problem: MatrixProblem, t: Array, matrices: Array) -> dict[str, Array]:
    """What follows from the records alone."""
    residuals = np.array([problem.apply(matrix) for matrix in matrices]) - problem.y
    log_loss = log_sum_of_squares(residuals)
    with np.errstate(under="ignore", divide="ignore"):
        found = {"log_t": np.log(t), "log_loss": log_loss, "loss": np.exp(log_loss)}
    found["norm_nuclear"] = np.linalg.svd(matrices, compute_uv=False).sum(axis=-1)
    found["norm_frobenius"] = np.linalg.norm(matrices, axis=(1, 2))
    if problem.truth is not None:
        found["test_error"] = np.array([problem.test_error(matrix) for matrix in matrices])
    return found


def _description(
    problem: MatrixProblem, model: dict[str, Any], flow: dict[str, Any]
) -> dict[str, Any]:
    described = {"description": problem.description, "samples": problem.samples,
                 "shape": list(problem.shape), "recipe": problem.recipe}  # fmt: skip
    seed = (problem.recipe or {}).get("seed")
    return {"problem": described, "model": model, "flow": flow, "seed": seed,
            "versions": versions()}  # fmt: skip
