"""Compiled steps of a method: what they depend on, and the functions that take them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from tacit.lazy import jax
from tacit.training.descent.batches import Batches, per_sample
from tacit.training.descent.method import Descent, Objective, Oracle, plus


class Weighted:
    """A weighted sum of regularizers whose weights may be traced."""

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
    method: Descent = dataclasses.field(compare=False)
    regularizers: tuple[Any, ...]
    batches: Batches
    outside: bool  # whether the loop over steps is not compiled

    def oracle(self, weights: Sequence[Any], data: Any, share: Any = None) -> Oracle:
        penalty = Weighted(weights, self.regularizers) if self.regularizers else None
        return Oracle(self.objective, data, share, penalty)


@functools.lru_cache(maxsize=64)
def functions(code: Code) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """(weights, numbers, data, parameters) -> memory; and the steps from one to another."""

    def memory(weights: Any, numbers: Any, data: Any, parameters: Any) -> Any:
        return code.method.with_numbers(numbers).memory(code.oracle(weights, data), parameters)

    def one(weights: Any, numbers: Any, data: Any, k: Any, carried: Any) -> Any:
        parameters, held, draws = carried
        method, share = code.method.with_numbers(numbers), None
        if code.batches.size is not None:
            rows, share, draws = code.batches.draw(k, draws)
            data = per_sample(lambda a: a.at[rows].get(mode="promise_in_bounds"), data)
        moved, held = method.step(code.oracle(weights, data, share), parameters, held, k)
        if code.method.weight_decay:
            moved = plus(moved, -method.rate(parameters) * method.weight_decay, parameters)
        return moved, held, draws

    def loop(weights: Any, numbers: Any, data: Any, begin: Any, end: Any, *carried: Any) -> Any:
        def step(k: Any, now: Any) -> Any:
            return one(weights, numbers, data, k, now)

        return jax.lax.fori_loop(begin, end, step, carried)

    single = jax.jit(one)

    def walk(weights: Any, numbers: Any, data: Any, begin: int, end: int, *carried: Any) -> Any:
        for k in range(begin, end):
            carried = single(weights, numbers, data, k, carried)
        return carried

    # on processors XLA makes convolutions inside a loop 15 times slower than outside
    return jax.jit(memory), (walk if code.outside else jax.jit(loop))
