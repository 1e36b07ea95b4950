"""Custom: a function of the parameters that the user wrote, as a regularizer of training."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from tacit.regularizers.penalty import Term


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
        Its proximal map, a function of (theta, weight). Without it only methods that need none
        can be used.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> penalty = 0.5 * tacit.Custom(lambda theta: (theta**4).sum())
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
        for name, given in {"function": value, "slope": subgradient, "nearest": prox}.items():
            object.__setattr__(self, name, given)

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
