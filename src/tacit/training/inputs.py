"""What a model is given of a problem: rows, or places of entries of a matrix; test samples."""

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


def held_out(who: str, problem: Any, test: Any) -> Any:
    """Test samples of the kind and dimension of the problem; None where none are given."""
    if test is None:
        return None
    if isinstance(problem, MatrixProblem) or type(test) is not type(problem):
        raise ValueError(
            f"{who}: test must be a Regression or a Classification as the problem is, which is a "
            f"{type(problem).__name__}, got {type(test).__name__}"
        )
    if test.dimension != problem.dimension:
        raise ValueError(
            f"{who}: test must have the {problem.dimension} features of the problem, got "
            f"{test.dimension}"
        )
    return test
