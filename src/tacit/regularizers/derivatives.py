"""The Sobolev penalty: how far the derivatives of a model are from known ones."""

from __future__ import annotations

import dataclasses
from typing import Any

from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array
from tacit.precision import double_precision
from tacit.regularizers.penalty import Term

WHO = "DerivativeMatch"


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class DerivativeMatch(Term):
    """h = (1/2) sum_n |grad_x f(theta, x_n) - slopes_n|^2 at the rows x_n of `points`.

    This is first-order Sobolev training. A proximal map is not known.

    Parameters
    ----------
    model
        The model f.
    points
        The places x_n, one per row.
    slopes
        The gradients in x of the function to be learnt, one row per point.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> match = tacit.DerivativeMatch(tacit.LinearPredictor(), [[0.0, 0.0]], [[1.0, 2.0]])
    >>> float(match.value(np.array([1.0, 0.0])))
    2.0
    """

    model: Any
    points: Array
    slopes: Array

    def __init__(self, model: Any, points: ArrayLike, slopes: ArrayLike) -> None:
        if not callable(getattr(model, "predict", None)):
            raise ValueError(f"{WHO}: the model must be a Model, got {type(model).__name__}")
        places = finite_array(WHO, "points", points, ndim=2)
        wanted = finite_array(WHO, "slopes", slopes, ndim=2)
        if places.shape != wanted.shape:
            raise ValueError(
                f"{WHO}: slopes must have one row per point and one entry per feature, "
                f"{places.shape}, got {wanted.shape}"
            )
        for name, value in {"model": model, "points": places, "slopes": wanted}.items():
            object.__setattr__(self, name, value)

    @property
    def smooth(self) -> bool:
        return True

    def derivatives(self, theta: Any) -> Any:
        """grad_x f(theta, x_n), one row per point."""
        import jax
        import jax.numpy as jnp

        with double_precision():
            given: Any = jnp.asarray(theta)

            def output(x: Any) -> Any:
                return self.model.predict(given, x[None])[0]

            return jax.vmap(jax.grad(output))(jnp.asarray(self.points))

    def value(self, theta: Any) -> Any:
        with double_precision():
            return ((self.derivatives(theta) - self.slopes) ** 2).sum() / 2

    def subgradient(self, theta: Any) -> Any:
        import jax

        with double_precision():
            return jax.grad(self.value)(theta)

    def prox(self, theta: Any, weight: Any) -> Any:
        raise ValueError(f"{WHO}: no proximal map is known; use Subgradient, Adam or SGD")
