"""Regression by a diagonal net."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from penchant.arguments import Array
from penchant.door import class_name, door_as
from penchant.sklearn.linear import LinearEstimator, checked_net


class DiagonalNetRegressor(RegressorMixin, LinearEstimator):
    r"""Linear regression by a diagonal net, trained by gradient flow from a small start.

    The predictor is beta = w+^depth - w-^depth, all weights start at alpha, and gradient flow
    decreases half the mean squared error. At its end the predictor is, among all that minimise this
    error, the one with the least Q(depth, alpha): nearly the l1 norm for small alpha, the l2 norm
    for large alpha. With more independent columns than samples it fits the data exactly. With as
    many samples as columns, or more, it is the only least squares point, which depth and
    alpha do not change; then `time` is the parameter that regularizes.

    Neither the columns of X nor y are scaled: use StandardScaler where their units differ.

    Parameters
    ----------
    depth
        The number of layers, at least 2.
    alpha
        The scale of the start.
    time
        When training stops; None is its end.
    fit_intercept
        Whether there is an intercept. It is no part of the net: data are centred, as for Lasso.

    Attributes
    ----------
    coef_
        The coefficients, one per column.
    intercept_
        The intercept.
    path_
        How the coefficients came about, which draws itself: over time up to `time` (a Path), or
        over the scale of the start, from the kernel regime to alpha (an InterpolationPath).
    outcome_
        How the computation ended, in a sentence.
    error_
        The certified relative error of the coefficients at the end of training, given the range of
        X; NaN at a `time`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> from penchant.sklearn import DiagonalNetRegressor
    >>> X, y = [[1.0, 2.0], [0.0, 0.0]], [2.0, 0.0]
    >>> DiagonalNetRegressor(alpha=1e-6, fit_intercept=False).fit(X, y).coef_.round(3)
    array([0., 1.])
    """

    def __init__(
        self,
        depth: int = 2,
        alpha: float = 1e-2,
        *,
        time: float | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self.depth = depth
        self.alpha = alpha
        self.time = time
        self.fit_intercept = fit_intercept

    @door_as(class_name)
    def fit(self, X: Any, y: Any) -> Self:
        """Train on the samples X with the labels y."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        net = checked_net(self.depth, self.alpha, self.time, self.fit_intercept)
        fit = net.fit(X, y.astype(np.float64), self._names())
        self.coef_, self.intercept_, self.path_, self.outcome_, self.error_ = fit
        return self

    def predict(self, X: Any) -> Array:
        """The labels of new samples."""
        return self._outputs(X)
