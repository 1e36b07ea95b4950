"""The scale and the time with the least error on samples left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.utils.validation import validate_data

from penchant.arguments import Array, finite_array, integer
from penchant.door import Invalid, class_name, door_as
from penchant.sklearn.linear import LinearEstimator, NetParameters, centred, checked_net


class DiagonalNetRegressorCV(RegressorMixin, LinearEstimator):
    """DiagonalNetRegressor whose alpha and time have the least error on samples left out.

    One path over all alphas finds the ends of training of a fold (`interpolate_path`), and one flow
    for each alpha passes through all times, so that more times cost nothing.

    Parameters
    ----------
    depth
        The number of layers, at least 2.
    alphas
        The scales to try.
    times
        How many times to try for each alpha before the end of training, log-spaced from where the
        coefficients begin to grow to where they rest; 0 tries the end alone.
    cv
        The folds, as in scikit-learn: a number, a splitter or a list of pairs of indices.
    fit_intercept
        Whether there is an intercept; data are centred, in each fold by themselves.

    Attributes
    ----------
    alpha_, time_
        What was chosen; `time_` is None for the end of training.
    alphas_
        The scales that were tried.
    times_
        The times that were tried, one row per alpha; the last one is the end, infinity.
    mse_path_
        The mean squared errors on the samples left out: alphas x times x folds.
    coef_, intercept_, path_, outcome_, error_, n_features_in_, feature_names_in_
        Those of DiagonalNetRegressor(depth, alpha_, time=time_) on all samples.

    Examples
    --------
    >>> import penchant
    >>> from penchant.sklearn import DiagonalNetRegressorCV
    >>> problem = penchant.problems.sparse_regression(30, 60, sparsity=2)
    >>> model = DiagonalNetRegressorCV(alphas=[1.0, 1e-4], times=0).fit(problem.X, problem.y)
    >>> model.alpha_, model.mse_path_.shape
    (0.0001, (2, 1, 5))
    """

    def __init__(
        self,
        depth: int = 2,
        *,
        alphas: Sequence[float] = (1.0, 0.1, 0.01, 0.001),
        times: int = 20,
        cv: Any = None,
        fit_intercept: bool = True,
    ) -> None:
        self.depth = depth
        self.alphas = alphas
        self.times = times
        self.cv = cv
        self.fit_intercept = fit_intercept

    @door_as(class_name)
    def fit(self, X: Any, y: Any) -> Self:
        """Train on every fold, choose, and train on all samples X with the labels y."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = y.astype(np.float64)
        alphas = finite_array("alphas", self.alphas, ndim=1)
        if not (alphas > 0).all():
            raise Invalid(f"alphas must be > 0, got {alphas.min():g}")
        first = checked_net(self.depth, float(alphas[0]), None, self.fit_intercept)
        count = integer("times", self.times, least=0)
        whole = centred(X, y, first.intercept).rows()
        times = [whole.times(first.depth, alpha, count) for alpha in alphas]
        self.alphas_ = alphas
        self.times_ = np.column_stack([times, np.full(len(alphas), np.inf)])
        errors = [
            self._errors(first, X, y, train, test) for train, test in check_cv(self.cv).split(X, y)
        ]
        self.mse_path_ = np.stack(errors, axis=-1)
        best = np.unravel_index(self.mse_path_.mean(axis=-1).argmin(), self.times_.shape)
        self.alpha_, time = float(alphas[best[0]]), float(self.times_[best])
        self.time_ = time if np.isfinite(time) else None
        fit = first._replace(alpha=self.alpha_, time=self.time_).fit(X, y, self._names())
        self.coef_, self.intercept_, self.path_, self.outcome_, self.error_ = fit
        return self

    def _errors(self, net: NetParameters, X: Array, y: Array, train: Any, test: Any) -> Array:
        """The mean squared errors of a fold, alphas x times."""
        data = centred(X[train], y[train], net.intercept)
        rows = data.rows()
        ends = rows.ends(net.depth, np.log(self.alphas_))
        coefs = [
            np.vstack([rows.at(net.depth, float(alpha), times[:-1]), end])
            for alpha, times, end in zip(self.alphas_, self.times_, ends, strict=True)
        ]
        coef = np.stack(coefs)
        outputs = coef @ X[test].T + np.asarray(data.intercept(coef))[..., None]
        return np.asarray(((outputs - y[test]) ** 2).mean(axis=-1))

    def predict(self, X: Any) -> Array:
        """The labels of new samples."""
        return self._outputs(X)
