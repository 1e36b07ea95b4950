"""Models whose output starts at zero: the difference of two copies, or minus the start's output."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid, door
from penchant.lazy import jnp
from penchant.models.model import Model, Separable
from penchant.records import Record


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Wrapper(Record, Model):
    """A model made of another one; a separable linear predictor stays one."""

    model: Model

    def __new__(cls, model: Model | None = None) -> Any:
        other = isinstance(model, Separable) and not issubclass(cls, Separable)
        return super().__new__(SEPARABLE[cls] if other else cls)

    @door
    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise Invalid(f"expected a Model, got {type(self.model).__name__}")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Difference(Wrapper):
    """f(theta_1, x) - f(theta_2, x), both copies from the start of `model`.

    The difference trick of Lyu et al. 2023, which Woodworth et al. 2020 call the unbiasing trick:
    their unbiased model (3) is the difference of two copies of w^2. The flat parameters are
    (theta_1, theta_2). A model with a separable linear predictor stays one.

    Parameters
    ----------
    model
        The model that is copied.

    References
    ----------
    .. [1] Lyu et al. (2023), Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce
       Grokking.
    .. [2] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> model = penchant.models.Difference(penchant.models.LinearPredictor(1.0))
    >>> model.predict(np.array([2.0, 0.5]), np.array([[1.0], [2.0]]))
    array([1.5, 3. ])
    """

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


def halves(parameters: Array) -> tuple[Array, Array]:
    """The parameters of the two copies."""
    half = len(parameters) // 2
    return parameters[:half], parameters[half:]


class SeparableDifference(Separable, Difference):
    """beta(theta_1) - beta(theta_2): a table with the copies of both, one below the other."""

    called = "Difference"

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


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Unbiased(Wrapper):
    """f(theta, x) - f(theta_0, x) with theta_0 the start of `model`, which stays fixed.

    It removes the bias term f(w(0), x) of Woodworth et al. 2020, section 3. What they themselves
    call unbiasing is another trick, `Difference`. Gradients are those of the model, so training
    towards targets y is training the model towards y + f(theta_0, x). A separable linear predictor
    stays one.

    Parameters
    ----------
    model
        The model whose initial outputs are subtracted.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import penchant
    >>> model = penchant.models.Unbiased(penchant.DiagonalNet(alpha=0.5, signed=False))
    >>> model.predictor(model.start(dimension=2))
    array([0., 0.])
    """

    homogeneity = None  # the constant that is taken away does not scale with the parameters

    def start(self, dimension: int) -> Array:
        return self.model.start(dimension)

    def predict(self, parameters: Array, X: Array) -> Array:
        start = self.model.start(X.shape[1])
        if not isinstance(parameters, np.ndarray):
            start = jnp.asarray(start)  # models may treat JAX arrays and numpy's differently
        return self.model.predict(parameters, X) - self.model.predict(start, X)

    def pullback(self, parameters: Array, X: Array, residual: Array) -> Array:
        return self.model.pullback(parameters, X, residual)

    def jacobian(self, parameters: Array, X: Array) -> Array:
        return self.model.jacobian(parameters, X)


class SeparableUnbiased(Separable, Unbiased):
    """beta(theta) - beta(theta_0)."""

    called = "Unbiased"

    model: Separable

    @property
    def copies(self) -> int:
        return self.model.copies

    def predictor(self, parameters: Array) -> Array:
        start = self.model.start(self.table(parameters).shape[1])
        if isinstance(parameters, np.ndarray):
            return self.model.change(start, parameters - start)  # nothing cancels
        return self.model.predictor(parameters) - self.model.predictor(jnp.asarray(start))

    def change(self, start: Array, displacement: Array) -> Array:
        return self.model.change(start, displacement)

    def slopes(self, parameters: Array) -> Array:
        return self.model.slopes(parameters)

    def bends(self, parameters: Array) -> Array:
        return self.model.bends(parameters)


SEPARABLE: dict[type, type] = {Difference: SeparableDifference, Unbiased: SeparableUnbiased}
