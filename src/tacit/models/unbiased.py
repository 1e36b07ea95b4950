"""A model minus its own output at the start: zero there, at the price of homogeneity."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.models.model import Model, Separable
from tacit.records import Record

WHO = "Unbiased"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Unbiased(Record, Model):
    """f(theta, x) - f(theta_0, x) with theta_0 the start of `model`, which stays fixed.

    It takes away the bias term f(w(0), x) of W section 3. What W itself calls unbiasing is
    another trick, `Difference`. Gradients are those of the model, so training towards targets y
    is training the model towards y + f(theta_0, x). A separable linear predictor stays one.

    Parameters
    ----------
    model
        The model whose start is taken away.

    Examples
    --------
    >>> import tacit
    >>> model = tacit.Unbiased(tacit.DiagonalNet(alpha=0.5, signed=False))
    >>> model.predictor(model.start(dimension=2))
    array([0., 0.])
    """

    model: Model

    def __new__(cls, model: Model | None = None) -> Unbiased:
        if cls is Unbiased and isinstance(model, Separable):
            return super().__new__(SeparableUnbiased)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise ValueError(f"{WHO}: expected a Model, got {type(self.model).__name__}")

    @property
    def homogeneity(self) -> None:
        """None: the constant that is taken away does not scale with the parameters."""
        return None

    def start(self, dimension: int) -> Array:
        return self.model.start(dimension)

    def predict(self, parameters: Array, X: Array) -> Array:
        start = self.model.start(X.shape[1])
        if not isinstance(parameters, np.ndarray):
            start = traced(start)
        return self.model.predict(parameters, X) - self.model.predict(start, X)

    def pullback(self, parameters: Array, X: Array, residual: Array) -> Array:
        return self.model.pullback(parameters, X, residual)

    def jacobian(self, parameters: Array, X: Array) -> Array:
        return self.model.jacobian(parameters, X)

    def describe(self) -> dict[str, Any]:
        return {"model": WHO, "of": self.model.describe()}


def traced(start: Array) -> Any:
    """The start as a JAX array, for models that treat those and numpy's differently."""
    import jax.numpy as jnp

    return jnp.asarray(start)


class SeparableUnbiased(Separable, Unbiased):
    """beta(theta) - beta(theta_0)."""

    called = WHO

    model: Separable

    @property
    def copies(self) -> int:
        return self.model.copies

    def predictor(self, parameters: Array) -> Array:
        start = self.model.start(self.table(parameters).shape[1])
        if isinstance(parameters, np.ndarray):
            return self.model.change(start, parameters - start)  # nothing cancels
        return self.model.predictor(parameters) - self.model.predictor(traced(start))

    def change(self, start: Array, displacement: Array) -> Array:
        return self.model.change(start, displacement)

    def slopes(self, parameters: Array) -> Array:
        return self.model.slopes(parameters)

    def bends(self, parameters: Array) -> Array:
        return self.model.bends(parameters)
