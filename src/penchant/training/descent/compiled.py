"""Compiled steps of a method: the samples of each step, and what the compiled code depends on."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from penchant.arguments import integer
from penchant.door import Invalid
from penchant.lazy import jax, jnp
from penchant.training.descent.method import Objective, Oracle, StepMethod, plus

NOISE = 2**32 - 1  # a number that no epoch has: it seeds the draws of the noise


class SharedPart(NamedTuple):
    """A part of the data that belongs to all samples."""

    value: Any


def per_sample(function: Callable[[Any], Any], data: Any) -> Any:
    """The data with `function` applied to all arrays that have a row per sample."""

    def shared(part: Any) -> bool:
        return isinstance(part, SharedPart)

    return jax.tree.map(lambda part: part if shared(part) else function(part), data, is_leaf=shared)


@dataclasses.dataclass(frozen=True)
class Batches:
    """Pieces of `size` of the samples, each sample once per epoch, in an order drawn for it.

    If `size` does not divide the samples, the last piece of an epoch is smaller. The order of an
    epoch depends on the seed and its number alone, so that training can be resumed at any step.
    """

    size: Any  # an integer, or None for all samples at every step
    samples: int
    noisy: bool = False  # whether labels get fresh noise at every step, drawn from the seed too

    @property
    def epoch(self) -> Any:
        return None if self.size is None else -(-self.samples // self.size)

    def start(self, seed: int, taken: int) -> Any:
        """The state of the draws between steps: the key and the order of the epoch."""
        if self.size is None and not self.noisy:
            return ()
        key = jax.random.PRNGKey(seed)
        return key, () if self.size is None else self._order(key, taken // self.epoch)

    def draw(self, k: Any, carried: Any) -> tuple[Any, Any, Any]:
        """The samples of step `k`, which of them count, and the new state of the draws."""
        key, order = carried
        epoch, batch_index = divmod(k, self.epoch)
        order = jax.lax.cond(batch_index == 0, lambda: self._order(key, epoch), lambda: order)
        rows = jax.lax.dynamic_slice_in_dim(order, batch_index * self.size, self.size)
        share = None
        if self.samples % self.size:
            share = batch_index * self.size + jnp.arange(self.size) < self.samples
        return rows, share, (key, order)

    def noise(self, k: Any, carried: Any, labels: Any) -> Any:
        """Standard Gaussian noise on the labels of step `k`; it depends on no earlier step."""
        key = jax.random.fold_in(jax.random.fold_in(carried[0], NOISE), k)
        return jax.random.normal(key, labels.shape, labels.dtype)

    def _order(self, key: Any, epoch: Any) -> Any:
        order = jax.random.permutation(jax.random.fold_in(key, epoch), self.samples)
        return jnp.pad(order, (0, self.epoch * self.size - self.samples)).astype(jnp.int32)


def batches(samples: int, size: int | None, noisy: bool = False) -> Batches:
    """Batches of this size, or of all samples; refused where there are not that many."""
    if size is None:
        return Batches(None, samples, noisy)
    size = integer("batch", size, least=1)
    if size > samples:
        raise Invalid(
            f"batch must be at most the {samples} samples of the problem, got {size}; "
            "leave it out to take all of them"
        )
    return Batches(size, samples, noisy)


class Weighted:
    def __init__(self, weights: Sequence[Any], regularizers: Sequence[Any]) -> None:
        self.terms = list(zip(weights, regularizers, strict=True))

    def value(self, parameters: Any) -> Any:
        return sum(weight * regularizer.value(parameters) for weight, regularizer in self.terms)

    def subgradient(self, parameters: Any) -> Any:
        (weight, first), *rest = self.terms
        total = jax.tree.map(lambda part: weight * part, first.subgradient(parameters))
        for factor, regularizer in rest:
            total = plus(total, factor, regularizer.subgradient(parameters))
        return total

    def prox(self, parameters: Any, length: Any) -> Any:
        ((weight, regularizer),) = self.terms
        return regularizer.prox(parameters, length * weight)


@dataclasses.dataclass(frozen=True)
class Code:
    """What compiled steps depend on; runs that differ in numbers and data alone share them."""

    objective: Objective
    kind: tuple[Any, ...]
    method: StepMethod = dataclasses.field(compare=False)
    regularizers: tuple[Any, ...]
    batches: Batches
    outside: bool  # whether the loop over steps is not compiled

    def oracle(self, weights: Sequence[Any], data: Any, share: Any = None) -> Oracle:
        penalty = Weighted(weights, self.regularizers) if self.regularizers else None
        return Oracle(self.objective, data, share, penalty)


@functools.lru_cache(maxsize=64)
def functions(code: Code) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two functions: the memory before the first step, and the compiled steps."""

    def memory(weights: Any, numbers: Any, data: Any, parameters: Any) -> Any:
        return code.method.with_numbers(numbers).scheme.memory(
            code.oracle(weights, data), parameters
        )

    def step_once(weights: Any, numbers: Any, data: Any, k: Any, carried: Any) -> Any:
        parameters, state, draws = carried
        method, share = code.method.with_numbers(numbers).scheme, None
        if code.batches.size is not None:
            rows, share, draws = code.batches.draw(k, draws)
            data = per_sample(lambda a: a.at[rows].get(mode="promise_in_bounds"), data)
        if code.batches.noisy:
            inputs, labels = data
            data = inputs, labels + method.label_noise * code.batches.noise(k, draws, labels)
        moved, state = method.step(code.oracle(weights, data, share), parameters, state, k)
        if code.method.scheme.weight_decay:
            rate = method.clock.rate(parameters, k)
            decay = method.weight_decay * method.decay_factor(k)
            moved = plus(moved, -rate * decay, parameters)
        return moved, state, draws

    def loop(weights: Any, numbers: Any, data: Any, begin: Any, end: Any, *carried: Any) -> Any:
        def step(k: Any, now: Any) -> Any:
            return step_once(weights, numbers, data, k, now)

        return jax.lax.fori_loop(begin, end, step, carried)

    single = jax.jit(step_once)

    def walk(weights: Any, numbers: Any, data: Any, begin: int, end: int, *carried: Any) -> Any:
        for k in range(begin, end):
            carried = single(weights, numbers, data, k, carried)
        return carried

    # on processors XLA makes convolutions inside a loop 15 times slower than outside
    return jax.jit(memory), (walk if code.outside else jax.jit(loop))
