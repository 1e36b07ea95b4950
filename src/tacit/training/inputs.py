"""What a model is given of a problem: rows, or places of entries of a matrix."""

from __future__ import annotations

from typing import Any

from tacit.models.matrix import MatrixModel
from tacit.models.model import Model
from tacit.problems.matrix_problem import Completion, MatrixProblem


def inputs_of(model: Model, problem: Any) -> Any:
    """One row per sample; for observed entries of a matrix only their places in it."""
    if isinstance(problem, Completion) and isinstance(model, MatrixModel):
        return problem.places
    return problem.design if isinstance(problem, MatrixProblem) else problem.X


def outputs(model: Model, parameters: Any, inputs: Any) -> Any:
    """f of every sample, for the inputs of `inputs_of`; accepts JAX arrays as `predict` does."""
    if inputs.ndim > 1:
        return model.predict(parameters, inputs)
    assert isinstance(model, MatrixModel)
    return model.matrix(parameters).reshape(-1)[inputs]
