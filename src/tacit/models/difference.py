"""The difference of two equal copies of a model: zero output at the start, same homogeneity."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.model import Model, Separable
from tacit.records import Record

WHO = "Difference"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Difference(Record, Model):
    """f(theta_1, x) - f(theta_2, x), both copies from the start of `model`.

    The difference trick of L, and what W calls the unbiasing trick: W's unbiased model (3) is
    the difference of two copies of w^2. The flat parameters are (theta_1, theta_2). A model
    with a separable linear predictor stays one.

    Parameters
    ----------
    model
        The model that is copied.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> model = tacit.Difference(tacit.LinearPredictor(1.0))
    >>> model.predict(np.array([2.0, 0.5]), np.array([[1.0], [2.0]]))
    array([1.5, 3. ])
    """

    model: Model

    def __new__(cls, model: Model | None = None) -> Difference:
        if cls is Difference and isinstance(model, Separable):
            return super().__new__(SeparableDifference)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise ValueError(f"{WHO}: expected a Model, got {type(self.model).__name__}")

    @property
    def homogeneity(self) -> int | None:
        return self.model.homogeneity

    def start(self, dimension: int) -> Array:
        return np.tile(self.model.start(dimension), 2)

    def predict(self, parameters: Array, X: Array) -> Array:
        first, second = halves(parameters)
        return self.model.predict(first, X) - self.model.predict(second, X)

    def pullback(self, parameters: Array, X: Array, residual: Array) -> Array:
        first, second = halves(parameters)
        up = self.model.pullback(first, X, residual)
        return np.concatenate([up, -self.model.pullback(second, X, residual)])

    def jacobian(self, parameters: Array, X: Array) -> Array:
        first, second = halves(parameters)
        blocks = self.model.jacobian(first, X), -self.model.jacobian(second, X)
        return np.concatenate(blocks, axis=1)

    def describe(self) -> dict[str, Any]:
        return {"model": WHO, "of": self.model.describe()}


def halves(parameters: Array) -> tuple[Array, Array]:
    """The parameters of the two copies."""
    half = len(parameters) // 2
    return parameters[:half], parameters[half:]


class SeparableDifference(Separable, Difference):
    """beta(theta_1) - beta(theta_2): a table with the copies of both, one below the other."""

    called = WHO

    model: Separable

    @property
    def copies(self) -> int:
        return 2 * self.model.copies

    def predictor(self, parameters: Array) -> Array:
        first, second = halves(parameters)
        return self.model.predictor(first) - self.model.predictor(second)

    def change(self, start: Array, displacement: Array) -> Array:
        pairs = zip(halves(start), halves(displacement), strict=True)
        first, second = (self.model.change(*pair) for pair in pairs)
        return first - second

    def slopes(self, parameters: Array) -> Array:
        first, second = halves(parameters)
        return np.concatenate([self.model.slopes(first), -self.model.slopes(second)])

    def bends(self, parameters: Array) -> Array:
        first, second = halves(parameters)
        size = self.model.copies
        bends = np.zeros((self.copies, *self.table(parameters).shape))
        bends[:size, :size] = self.model.bends(first)
        bends[size:, size:] = -self.model.bends(second)
        return bends
