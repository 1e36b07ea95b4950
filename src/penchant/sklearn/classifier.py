"""Classification by diagonal nets."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from penchant.arguments import Array
from penchant.door import Invalid, class_name, door_as
from penchant.sklearn.linear import LinearEstimator, checked_net


class DiagonalNetClassifier(ClassifierMixin, LinearEstimator):
    """A classifier that is a diagonal net trained by gradient flow on labels of -1 and +1.

    It decreases the squared error, as RidgeClassifier does, so that any labels have an exact end,
    separable or not; with more than two classes there is one net for each, and the class with the
    largest output is chosen. For the exponential and the logistic loss on separable labels use
    `penchant.max_margin` and `penchant.train`.

    Parameters
    ----------
    depth, alpha, time, fit_intercept
        As in DiagonalNetRegressor.

    Attributes
    ----------
    classes_
        The classes.
    coef_
        The coefficients, one row per net.
    intercept_
        The intercepts, one per net.
    path_
        How the coefficients came about (see DiagonalNetRegressor); with more than two classes a
        list, one for each class.
    outcome_
        How the computation ended, in a sentence; with more than two classes a list.
    error_
        The certified relative errors, one per net; NaN at a `time`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from penchant.sklearn import DiagonalNetClassifier
    >>> X, y = [[1.0, 2.0], [0.5, -1.0]], ["up", "down"]
    >>> DiagonalNetClassifier().fit(X, y).predict([[0.0, 3.0]]).tolist()
    ['up']
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
        """Train on the samples X with the classes y."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, places = np.unique(y, return_inverse=True)
        count = len(self.classes_)
        if count < 2:
            raise Invalid(f"y must hold two classes or more, got one class {self.classes_[0]!r}")
        nets = range(count) if count > 2 else [1]
        net = checked_net(self.depth, self.alpha, self.time, self.fit_intercept)
        fits = [net.fit(X, np.where(places == k, 1.0, -1.0), self._names()) for k in nets]
        coefs, intercepts, paths, outcomes, errors = zip(*fits, strict=True)
        self.coef_, self.intercept_ = np.array(coefs), np.array(intercepts)
        self.path_ = paths[0] if len(fits) == 1 else list(paths)
        self.outcome_ = outcomes[0] if len(fits) == 1 else list(outcomes)
        self.error_ = np.array(errors)
        return self

    def decision_function(self, X: Any) -> Array:
        """The outputs of the nets: one number per sample, or one per sample and class."""
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any) -> Any:
        """The classes of new samples."""
        outputs = self.decision_function(X)
        if outputs.ndim == 1:
            return self.classes_[(outputs > 0).astype(int)]
        return self.classes_[outputs.argmax(axis=1)]
