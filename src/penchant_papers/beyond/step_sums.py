"""Sums over the steps of a run on w+^2 - w-^2: what its gradients say of the scale and the tilt.

A step of learning rate gamma and decoupled decay lambda multiplies w+ and w- by
(1 - gamma lambda)(1 - q) and (1 - gamma lambda)(1 + q), with q = 2 gamma g/(1 - gamma lambda) and g
the gradient in beta that the step uses. So the logarithm of the effective scale gains
log((1 - gamma lambda)^2 |1 - q^2|)/2, and the tilt gains log|(1 - q)/(1 + q)| + 2 q.

With momentum m, learning rate gamma and f = w_(k+1)/w_k of one weight,

    (1 - m) log(w/alpha) = -+2 gamma sum g - sum (f - 1 - log f) - m sum (log f - 1 + 1/f),

but for m (1 - 1/f) of the last step, which belongs to a step that has not been taken.

The sums see neither the weights at the end nor the dual that `EffectiveScale` carries.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from penchant import Path, Q
from penchant.lab import Array
from penchant.lazy import jnp
from penchant.methods import Observer, Oracle
from penchant.models import LinearPredictor


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class GradientSums(Observer):
    """A method with the sums over its gradients, as for plain steps with decoupled decay.

    `longer` is the factor by which these plain steps are longer than the learning rate says.
    """

    longer: float = 1.0

    def __repr__(self) -> str:
        return f"GradientSums({self.method!r}, longer={self.longer:g})"

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        sums = jnp.zeros((2, len(parameters) // 2))
        return self.method.scheme.memory(oracle, parameters), sums

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        inner, sums = memory
        objective: Any = oracle.objective
        linear = dataclasses.replace(objective, model=LinearPredictor())
        beta = objective.model.predictor(parameters)
        g = Oracle(linear, oracle.data, oracle.share, None).loss_gradient(beta)
        method = self.method.scheme
        rate = self.longer * method.clock.rate(parameters, k)
        left = 1 - rate * method.weight_decay
        q = 2 * rate * g / left
        up, down = jnp.log(jnp.abs(1 - q)), jnp.log(jnp.abs(1 + q))
        gained = jnp.stack([jnp.log(left) + (up + down) / 2, up - down + 2 * q])
        moved, inner = method.step(oracle, parameters, inner, k)
        return moved, (inner, sums + gained)


class RatioSums(Observer):
    """A method with the sums over the ratios of its weights, as for heavy-ball momentum."""

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        inner = self.method.scheme.memory(oracle, parameters)
        return inner, jnp.ones(len(parameters)), jnp.zeros((2, len(parameters)))

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        inner, _, sums = memory
        moved, inner = self.method.scheme.step(oracle, parameters, inner, k)
        f = moved / parameters
        gained = jnp.stack([f - 1 - jnp.log(jnp.abs(f)), jnp.log(jnp.abs(f)) - 1 + 1 / f])
        return moved, (inner, f, sums + gained)


def summed_regularizer(path: Path, alpha: float) -> Q:
    """Q with the scale and tilt that the sums of a run by GradientSums give."""
    *_, (log_scale, tilt) = memory_of(path)
    return Q(2, alpha=1.0, shape=alpha * np.exp(log_scale), tilt=tilt)


def memory_of(path: Path) -> tuple[Array, ...]:
    if path.memory is None:
        raise ValueError("step_sums: the run diverged; take a smaller learning rate")
    return path.memory


def momentum_regularizer(path: Path, alpha: float, momentum: float) -> Q:
    """Q with the scale and tilt that the sums of a run by GradientSums(RatioSums(...)) give."""
    *_, last, (first, second), _ = memory_of(path)
    lost = (first + momentum * second + momentum * (1 - 1 / last)) / (1 - momentum)
    plus, minus = np.split(lost, 2)
    shape: Array = alpha * np.exp(-(plus + minus) / 2)
    return Q(2, alpha=1.0, shape=shape, tilt=minus - plus)
