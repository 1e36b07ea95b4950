"""Which samples a step sees: all of them, or the next piece of a shuffled epoch."""

from __future__ import annotations

import dataclasses
from typing import Any

from tacit.arguments import integer
from tacit.flows.penalized_task import Data, Job, Slope


@dataclasses.dataclass(frozen=True)
class Batches:
    """Pieces of `size` samples, without repeats within an epoch of samples // size steps.

    The samples left over when `size` does not divide them wait for the next shuffle. A gradient
    from a batch is unbiased: it is scaled by samples / size where g is a sum over the samples.
    """

    size: int | None
    samples: int
    mean: bool

    def start(self, seed: int) -> Any:
        """What the draws carry from step to step: the key and the shuffled samples."""
        import jax

        if self.size is None:
            return ()
        return jax.random.PRNGKey(seed), jax.numpy.arange(self.samples)

    def gradient(self, slope: Slope, data: Data, k: Any, theta: Any, draws: Any) -> tuple[Any, Any]:
        """The gradient of g as step `k` estimates it, and what the draws carry on."""
        if self.size is None:
            return slope(data, theta), draws
        picked, draws = self._draw(k, draws)
        scale = 1.0 if self.mean else self.samples / self.size
        return scale * slope((data[0][picked], data[1][picked]), theta), draws

    def _draw(self, k: Any, draws: Any) -> tuple[Any, Any]:
        """The samples of step `k`; every epoch starts with a fresh shuffle."""
        import jax

        key, order = draws
        assert self.size is not None
        epoch, place = divmod(k, self.samples // self.size)

        def shuffle() -> Any:
            return jax.random.permutation(jax.random.fold_in(key, epoch), self.samples)

        order = jax.lax.cond(place == 0, shuffle, lambda: order)
        return jax.lax.dynamic_slice_in_dim(order, place * self.size, self.size), (key, order)


def batches(who: str, job: Job, size: int | None) -> Batches:
    """Batches of this size, or of all samples; refused where there are not that many."""
    if size is not None and size > job.problem.samples:
        raise ValueError(
            f"{who}: batch must be at most the {job.problem.samples} samples, got {size}; leave "
            "it out for full batches"
        )
    return Batches(size, job.problem.samples, job.mean)


def checked_batch(who: str, batch: object, seed: object) -> tuple[int | None, int]:
    """A batch size of at least 1, or None, and a seed of at least 0."""
    size = None if batch is None else integer(who, "batch", batch, least=1)
    return size, integer(who, "seed", seed, least=0)
