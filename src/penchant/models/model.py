"""The interface of a model: a start, predictions, and how parameters move predictions."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from penchant.arguments import Array


class Model(abc.ABC):
    """A function f(parameters, x) with flat parameters and one number per sample.

    A model of your own defines the five members below; `FunctionModel` makes one of a JAX function
    with less. `predict` uses plain operators only, so that it also accepts JAX arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> class Line(penchant.models.Model):
    ...     homogeneity = 1
    ...     def start(self, dimension):
    ...         return np.zeros(dimension)
    ...     def predict(self, parameters, X):
    ...         return X @ parameters
    ...     def pullback(self, parameters, X, residual):
    ...         return residual @ X
    ...     def jacobian(self, parameters, X):
    ...         return X
    >>> problem, method = penchant.Regression([[1.0, 2.0]], [5.0]), penchant.GradientDescent(0.05)
    >>> penchant.train(Line(), problem, method, stop=penchant.Steps(200)).parameters.round(6)
    array([1., 2.])
    """

    @property
    def code(self) -> Any:
        """What compiled code of the model depends on: models with equal code differ in starts only.

        It is the model itself, unless its class says more.
        """
        return self

    @property
    @abc.abstractmethod
    def homogeneity(self) -> int | None:
        """D such that f(c w, x) = c^D f(w, x) for every c > 0; None where unknown."""

    @abc.abstractmethod
    def start(self, dimension: int) -> Array:
        """The parameters training starts from, for data with `dimension` features."""

    @abc.abstractmethod
    def predict(self, parameters: Array, X: Array) -> Array:
        """f(parameters, x) for every row x of `X`."""

    @abc.abstractmethod
    def pullback(self, parameters: Array, X: Array, residual: Array) -> Array:
        """The gradient in the parameters of sum_n residual_n f(parameters, x_n)."""

    @abc.abstractmethod
    def jacobian(self, parameters: Array, X: Array) -> Array:
        """df(x_n)/dw_j, one row per sample."""


class Separable(Model):
    """A linear predictor beta whose every coordinate has its own few parameters.

    The parameters are a (copies x features) table, row after row: beta_i = F(w_1i, w_2i, ...).
    `Reparametrized` makes such a model of a JAX function; here every derivative is written out.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> class Square(penchant.models.Separable):
    ...     homogeneity, copies = 2, 1
    ...     def start(self, dimension):
    ...         return np.ones(dimension)
    ...     def predictor(self, parameters):
    ...         return parameters**2
    ...     def change(self, start, displacement):
    ...         return displacement * (2 * start + displacement)
    ...     def slopes(self, parameters):
    ...         return 2 * self.table(parameters)
    ...     def bends(self, parameters):
    ...         return np.full((1, 1, len(parameters)), 2.0)
    >>> problem = penchant.Regression([[1.0, 2.0]], [5.0])
    >>> penchant.train(Square(), problem, penchant.ParameterFlow()).predictor.round(6)
    array([1.350781, 1.824609])
    """

    @property
    @abc.abstractmethod
    def copies(self) -> int:
        """The number of parameters per coordinate."""

    @abc.abstractmethod
    def predictor(self, parameters: Array) -> Array:
        """beta, with f(parameters, x) = <beta, x>."""

    @abc.abstractmethod
    def change(self, start: Array, displacement: Array) -> Array:
        """predictor(start + displacement) - predictor(start), without cancellation.

        From a large start the two predictors are huge and their difference is not.
        """

    @abc.abstractmethod
    def slopes(self, parameters: Array) -> Array:
        """d beta_i / d w_ki as a (copies x features) table."""

    @abc.abstractmethod
    def bends(self, parameters: Array) -> Array:
        """d^2 beta_i / (d w_ki d w_li) as a (copies x copies x features) table."""

    def table(self, parameters: Array) -> Array:
        """The flat parameters as a (copies x features) table."""
        return parameters.reshape(self.copies, -1)

    def predict(self, parameters: Array, X: Array) -> Array:
        return X @ self.predictor(parameters)

    def pullback(self, parameters: Array, X: Array, residual: Array) -> Array:
        return (self.slopes(parameters) * (residual @ X)).ravel()

    def jacobian(self, parameters: Array, X: Array) -> Array:
        blocks = [X * slope for slope in self.slopes(parameters)]
        return np.concatenate(blocks, axis=1)

    def curvature(self, parameters: Array, X: Array, residual: Array) -> Array:
        """The Hessian in the parameters of sum_n residual_n f(parameters, x_n)."""
        blocks = self.bends(parameters) * (residual @ X)
        features = blocks.shape[2]
        hessian = np.zeros((self.copies, features, self.copies, features))
        diagonal = np.arange(features)
        for k, row in enumerate(blocks):
            for other, block in enumerate(row):
                hessian[k, diagonal, other, diagonal] = block
        return hessian.reshape(self.copies * features, -1)
