"""What the estimators share: the parameters of a net, its fit to one target, and its products."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from penchant import stop
from penchant.arguments import Array, flag, integer, positive
from penchant.records import Outcome
from penchant.sklearn.training import ReachableRows, rows_of


class Fit(NamedTuple):
    """The fit of one target: coefficients, intercept, how they came about, and the proof."""

    coef: Array
    intercept: float
    path: Any
    outcome: Outcome
    error: float


class Centred(NamedTuple):
    """Data without their means, and the means; these are zero without an intercept."""

    X: Array
    y: Array
    mean_X: Array
    mean_y: float

    def rows(self, names: tuple[str, ...] = ()) -> ReachableRows:
        return rows_of(self.X, self.y, names)

    def intercept(self, coef: Array) -> Any:
        """The intercept of these coefficients, or of each row of them."""
        return self.mean_y - coef @ self.mean_X


def centred(X: Array, y: Array, intercept: bool) -> Centred:
    mean_X = X.mean(axis=0) if intercept else np.zeros(X.shape[1])
    mean_y = float(y.mean()) if intercept else 0.0
    return Centred(X - mean_X, y - mean_y, mean_X, mean_y)


class NetParameters(NamedTuple):
    """The parameters of a net, checked."""

    depth: int
    alpha: float
    time: float | None
    intercept: bool

    def fit(self, X: Array, y: Array, names: tuple[str, ...]) -> Fit:
        data = centred(X, y, self.intercept)
        rows = data.rows(names)
        path: Any
        if self.time is None or rows.problem is None:
            path = rows.path(self.depth, self.alpha)
            coef, outcome, error = path.beta[-1], path.outcomes[-1], float(path.error[-1])
        else:
            path = rows.flow(self.depth, self.alpha, stop.Time(self.time))
            coef, outcome, error = path.predictor, path.outcome, math.nan
        return Fit(np.array(coef), float(data.intercept(coef)), path, outcome, error)


def checked_net(depth: object, alpha: object, time: object, intercept: object) -> NetParameters:
    return NetParameters(
        integer("depth", depth, least=2),
        positive("alpha", alpha),
        None if time is None else positive("time", time),
        flag("fit_intercept", intercept),
    )


class LinearEstimator(BaseEstimator):
    """An estimator with coefficients and an intercept."""

    coef_: Any
    intercept_: Any

    def _names(self) -> tuple[str, ...]:
        """The names of the columns that the samples had."""
        return tuple(map(str, getattr(self, "feature_names_in_", ())))

    def _outputs(self, X: Any) -> Array:
        """The outputs for new samples."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)
