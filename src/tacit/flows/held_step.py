"""One step of descent at a held norm, and the loss it compares before and after."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tacit.flows.penalized_task import Data, EntrySlope, ModelSlope, Slope
from tacit.training.descent.projections import SPHERES

GROWTH, SHRINK = 1.3, 0.5  # of the step, after one that was taken and one that was not
STRIDE = 0.1  # the longest step G over |theta|_2: longer leaps can end where all units are dead


def loss(slope: Slope, data: Data, theta: Any) -> Any:
    """The g whose gradient `slope` is."""
    import jax.numpy as jnp

    if isinstance(slope, ModelSlope):
        return slope.value(data, theta)
    rows, y = data
    outputs = theta[rows] if isinstance(slope, EntrySlope) else rows @ theta
    return jnp.sum((outputs - y) ** 2) / 2


@dataclasses.dataclass(frozen=True)
class HeldUpdate:
    """theta <- nearest point of norm `size` to theta - step G, if g falls as much as it must.

    The new point minimises <G, d> + |d|^2/(2 step) over the moves d that keep the norm. The step
    is taken if g changes by no more than that number, which d = 0 bounds by zero: g never rises.
    Otherwise the step is halved and tried again. No step moves by more than a tenth of |theta|_2
    before it is projected. States are (theta, g, G, step).
    """

    slope: Slope
    norm: str

    def begin(self, data: Data, theta: Any, step: Any) -> Any:
        """The state before the first step."""
        return theta, loss(self.slope, data, theta), self.slope(data, theta), step

    def __call__(self, numbers: Mapping[str, Any], data: Data, k: Any, state: Any) -> Any:
        import jax
        import jax.numpy as jnp

        theta, value, gradient, step = state
        longest = STRIDE * jnp.linalg.norm(theta) / jnp.linalg.norm(gradient)  # inf at rest
        step = jnp.minimum(step, longest)
        point = SPHERES[self.norm](theta - step * gradient, numbers["size"])
        move = point - theta
        fall = gradient @ move + move @ move / (2 * step)
        after, slope = loss(self.slope, data, point), self.slope(data, point)
        good = after <= value + fall  # false for a nan
        taken, kept = (point, after, slope, GROWTH * step), (theta, value, gradient, SHRINK * step)
        return jax.tree.map(lambda a, b: jnp.where(good, a, b), taken, kept)

    def of_penalty(self, numbers: Mapping[str, Any], data: Data, state: Any) -> dict[str, Any]:
        """Nothing: there is no penalty."""
        return {}
