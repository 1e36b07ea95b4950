"""Penalties of the user's own: any function of the parameters, or the derivatives of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door
from penchant.precision import double_precision
from penchant.records import assign
from penchant.regularizers.penalty import Term

WHO = "DerivativeMatch"


@dataclasses.dataclass(frozen=True, init=False, eq=False, repr=False)
class Custom(Term):
    """h = `value`, any JAX function of the parameters that returns one number.

    Parameters
    ----------
    value
        The function of the parameters.
    subgradient
        Its derivative, a function of the parameters; by default JAX differentiates the value.
    prox
        Its proximal map, a function of (theta, weight). Without it, use a method that needs none.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> penalty = 0.5 * penchant.regularizers.Custom(lambda theta: (theta**4).sum())
    >>> float(penalty.value(np.array([1.0, 2.0])))
    8.5
    """

    stored_as: ClassVar = {"value": "function", "subgradient": "slope", "prox": "nearest"}

    function: Callable[[Any], Any]
    slope: Callable[[Any], Any] | None
    nearest: Callable[[Any, Any], Any] | None

    def __init__(
        self,
        value: Callable[[Any], Any],
        subgradient: Callable[[Any], Any] | None = None,
        prox: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        for name, given in {"value": value, "subgradient": subgradient, "prox": prox}.items():
            if not (callable(given) or (given is None and name != "value")):
                raise ValueError(f"Custom: {name} must be a function, got {given!r}")
        assign(self, function=value, slope=subgradient, nearest=prox)

    @property
    def has_prox(self) -> bool:
        return self.nearest is not None

    def value(self, theta: Any) -> Any:
        return self.function(theta)

    def subgradient(self, theta: Any) -> Any:
        if self.slope is not None:
            return self.slope(theta)
        import jax

        return jax.grad(self.function)(theta)

    def prox(self, theta: Any, weight: Any) -> Any:
        if self.nearest is None:
            raise ValueError("Custom: no proximal map is known; give prox=")
        return self.nearest(theta, weight)


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class DerivativeMatch(Term):
    """h = (1/2) sum_n |grad_x f(theta, x_n) - slopes_n|^2 at the rows x_n of `points`.

    This is first-order Sobolev training. No proximal map is known.

    Parameters
    ----------
    model
        The model f.
    points
        The points x_n, one per row.
    slopes
        The gradients in x of the function to be learnt, one row per point.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> model = penchant.models.LinearPredictor()
    >>> match = penchant.regularizers.DerivativeMatch(model, [[0.0, 0.0]], [[1.0, 2.0]])
    >>> float(match.value(np.array([1.0, 0.0])))
    2.0
    """

    model: Any
    points: Array
    slopes: Array

    @door
    def __init__(self, model: Any, points: ArrayLike, slopes: ArrayLike) -> None:
        if not callable(getattr(model, "predict", None)):
            raise Invalid(f"the model must be a Model, got {type(model).__name__}")
        inputs = finite_array("points", points, ndim=2)
        derivatives = finite_array("slopes", slopes, ndim=2)
        if inputs.shape != derivatives.shape:
            raise Invalid(
                f"slopes must have one row per point and one entry per feature, "
                f"{inputs.shape}, got {derivatives.shape}"
            )
        assign(self, model=model, points=inputs, slopes=derivatives)

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
        raise ValueError(
            f"{WHO}: no proximal map is known; use GradientDescent(..., subgradient=True) or Adam"
        )
