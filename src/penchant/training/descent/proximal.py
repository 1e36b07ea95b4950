"""Proximal steps, plain (ISTA) and accelerated (FISTA)."""

from __future__ import annotations

import dataclasses
from typing import Any

from penchant.lazy import jnp
from penchant.training.descent.method import Descent, Oracle, Scheme, over, plus


@dataclasses.dataclass(frozen=True, repr=False)
class Proximal(Descent):
    """w <- prox(w - learning_rate * grad L(w)), the proximal map of the penalty (ISTA).

    `accelerated` is FISTA (Beck and Teboulle 2009): the same step from z, starting at z = w and
    weight 1, with weight' = (1 + sqrt(1 + 4 weight^2))/2 and
    z' = w' + (weight - 1)/weight' (w' - w).

    Parameters
    ----------
    learning_rate
        The length of a step along the direction of the method.
    accelerated
        Whether steps start ahead of the parameters (FISTA).
    weight_decay
        Decoupled: every step also subtracts learning_rate * weight_decay * parameters.
    check
        False also allows a learning rate beyond the bound of a quadratic loss.

    References
    ----------
    .. [1] Beck and Teboulle (2009), A Fast Iterative Shrinkage-Thresholding Algorithm for Linear
       Inverse Problems.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = penchant.models.LinearPredictor(), penchant.Steps(100)
    >>> penalty = 0.1 * penchant.L1()
    >>> method = penchant.methods.Proximal(1e-2)
    >>> penchant.train(net, problem, method, stop=stop, penalty=penalty).steps
    100
    """

    accelerated: bool = False

    @property
    def scheme(self) -> Scheme:
        return super().scheme._replace(limit=self._limit, penalties="prox", batches=False)

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        return (parameters, jnp.float64(1.0)) if self.accelerated else ()

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        ahead = memory[0] if self.accelerated else parameters
        moved = plus(ahead, -self.learning_rate, oracle.loss_gradient(ahead))
        moved = oracle.prox(moved, self.learning_rate)
        if not self.accelerated:
            return moved, ()
        weight = memory[1]
        grown = (1 + jnp.sqrt(1 + 4 * weight**2)) / 2
        push = (weight - 1) / grown
        return moved, (plus(moved, push, plus(moved, -1.0, parameters)), grown)

    def _limit(self, smoothness: float, curvature: float) -> tuple[float, str] | None:
        words, top = ("at most 1", 1 + 1e-12) if self.accelerated else ("below 2", 2.0)
        return over(top, smoothness), f"{words}/(largest curvature of the loss)"
