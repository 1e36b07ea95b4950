"""Which samples a step sees: all of them, or the next piece of a shuffled epoch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from tacit.arguments import integer
from tacit.lazy import jax, jnp


class Shared(NamedTuple):
    """A part of the data that belongs to all samples."""

    value: Any


def per_sample(function: Callable[[Any], Any], data: Any) -> Any:
    """The data with `function` applied to all arrays that have a row per sample."""

    def shared(part: Any) -> bool:
        return isinstance(part, Shared)

    return jax.tree.map(lambda part: part if shared(part) else function(part), data, is_leaf=shared)


@dataclasses.dataclass(frozen=True)
class Batches:
    """Pieces of `size` of the samples, each sample once per epoch, in an order drawn for it.

    If `size` does not divide the samples, the last piece of an epoch is smaller. The order of an
    epoch depends on the seed and its number alone, so that training can go on anywhere.
    """

    size: Any  # an integer, or None for all samples at every step
    samples: int

    @property
    def epoch(self) -> Any:
        """Steps in an epoch; None where all steps see all samples."""
        return None if self.size is None else -(-self.samples // self.size)

    def start(self, seed: int, taken: int) -> Any:
        """What the draws carry from step to step: the key and the order of the epoch."""
        if self.size is None:
            return ()
        key = jax.random.PRNGKey(seed)
        return key, self._order(key, taken // self.epoch)

    def draw(self, k: Any, carried: Any) -> tuple[Any, Any, Any]:
        """The samples of step `k`, which of them count, and what the draws carry on."""
        key, order = carried
        epoch, place = divmod(k, self.epoch)
        order = jax.lax.cond(place == 0, lambda: self._order(key, epoch), lambda: order)
        rows = jax.lax.dynamic_slice_in_dim(order, place * self.size, self.size)
        share = None
        if self.samples % self.size:
            share = place * self.size + jnp.arange(self.size) < self.samples
        return rows, share, (key, order)

    def _order(self, key: Any, epoch: Any) -> Any:
        """The samples in the order of an epoch; some again at the end fill the last piece."""
        order = jax.random.permutation(jax.random.fold_in(key, epoch), self.samples)
        return jnp.pad(order, (0, self.epoch * self.size - self.samples)).astype(jnp.int32)


def batches(who: str, samples: int, size: int | None) -> Batches:
    """Batches of this size, or of all samples; refused where there are not that many."""
    if size is None:
        return Batches(None, samples)
    size = integer(who, "batch", size, least=1)
    if size > samples:
        raise ValueError(
            f"{who}: batch must be at most the {samples} samples of the problem, got {size}; "
            "leave it out to take all of them"
        )
    return Batches(size, samples)
