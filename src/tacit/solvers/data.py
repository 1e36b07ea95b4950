"""The data of a solver: arrays X and y, or the problem that holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.problems.classification import Classification
from tacit.problems.matrix_problem import MatrixProblem
from tacit.problems.regression import Regression

Problem = Regression | Classification | MatrixProblem
OTHERS = {
    Regression: "max_margin() separates",
    Classification: "interpolate() fits",
}


def after_problem(who: str, y: Any, third: Any, default: Any = None) -> Any:
    """What was given after a problem, in the place of y or by name; a problem holds its own y."""
    if y is None:
        return third
    if third is not default or np.ndim(y) > 0:
        raise ValueError(
            f"{who}: a problem holds its own y; give the problem without y, or X and y as arrays"
        )
    return y


def unpacked(
    who: str,
    kind: type[Regression | Classification],
    X: Any,
    y: Any,
    third: Any,
    default: Any = None,
) -> tuple[Any, Any, Any]:
    """(X, y, third), which were given so or as (problem, third) with a problem of this kind."""
    if not isinstance(X, Problem):
        return X, y, third
    third = after_problem(who, y, third, default)
    if isinstance(X, kind):
        return X.X, X.y, third
    way = f"{OTHERS[kind]} its samples"
    if isinstance(X, MatrixProblem):
        way = "use interpolate(problem, Nuclear()), or problem.regression() for vectors"
    raise ValueError(f"{who}: the problem must be a {kind.__name__}, got {type(X).__name__}; {way}")
