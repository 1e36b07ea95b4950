"""Descent with the norm of the parameters held at a given size."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np

from tacit.arguments import one_of, positive
from tacit.lazy import jax, jnp
from tacit.records import Checks
from tacit.training.descent.method import Descent, Oracle
from tacit.training.descent.projections import SPHERES, length

GROWTH, SHRINK = 1.3, 0.5  # of the step, after one that was taken and one that was not
STRIDE = 0.1  # the longest step over |w|_2: longer leaps can end where all units are dead


@dataclasses.dataclass(frozen=True, repr=False)
class HeldNorm(Descent):
    """Projected descent on the sphere |w| = size, in the norm "l2" or "l1", from the start
    stretched to `size`.

    The new point minimises <G, d> + |d|^2/(2 rate) over the moves d that keep the norm, G being
    the gradient. It is taken if the loss changes by no more than that number, which d = 0 bounds
    by zero, so that the loss never rises; otherwise the rate is halved and tried again, and after
    a step that was taken it grows by 1.3. `learning_rate` is the first one tried. Since the rates
    differ, t counts the steps tried. No step moves by more than a tenth of |w|_2 before it is
    projected.

    Parameters
    ----------
    learning_rate
        The first length that is tried.
    weight_decay
        Must be 0: this method has none.
    check
        False runs also a learning rate beyond the bound of a quadratic loss.
    size
        The norm that is held.
    norm
        "l2" or "l1".

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = tacit.LinearPredictor(1.0), tacit.Steps(100)
    >>> path = tacit.train(net, problem, tacit.HeldNorm(size=2.0), stop=stop)
    >>> round(float((path.parameters**2).sum()), 6)
    4.0
    """

    learning_rate: float = 1.0
    size: float = dataclasses.field(default=1.0, kw_only=True)
    norm: str = dataclasses.field(default="l2", kw_only=True)
    batches: ClassVar[bool] = False
    penalties: ClassVar[str] = "none"
    decays: ClassVar[bool] = False
    steady: ClassVar[bool] = False
    checks: ClassVar[Checks] = {"norm": functools.partial(one_of, known=SPHERES), "size": positive}

    def prepared(self, parameters: Any) -> Any:
        if not isinstance(parameters, np.ndarray):
            raise ValueError(
                f"HeldNorm: needs flat parameters, got a {type(parameters).__name__} of arrays; "
                "wrap the net as a FunctionModel"
            )
        own = float(length(self.norm, parameters))
        if own == 0:
            raise ValueError(
                "HeldNorm: the start must not be zero, it has no direction to stretch to norm "
                f"{self.size:g}; give the model a start such as LinearPredictor(1.0)"
            )
        return np.asarray(parameters * (self.size / own))

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        rate = jnp.asarray(self.learning_rate, jnp.float64)
        return oracle.value(parameters), oracle.loss_gradient(parameters), rate

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        value, gradient, rate = memory
        longest = STRIDE * jnp.linalg.norm(parameters) / jnp.linalg.norm(gradient)  # inf at rest
        rate = jnp.minimum(rate, longest)
        point = SPHERES[self.norm](parameters - rate * gradient, self.size)
        move = point - parameters
        fall = gradient @ move + move @ move / (2 * rate)
        after = oracle.value(point)
        good = after <= value + fall  # false for a nan
        taken = point, (after, oracle.loss_gradient(point), GROWTH * rate)
        kept = parameters, (value, gradient, SHRINK * rate)
        moved: tuple[Any, Any] = jax.tree.map(lambda a, b: jnp.where(good, a, b), taken, kept)
        return moved

    def time(self, memory: Any, k: int) -> float:
        return float(k)

    def log_time(self, memory: Any, k: int) -> float:
        return float(np.log(k)) if k else -np.inf
