"""The present learning rate, weight decay and decay per step of an optimizer, or of several.

Of several optimizers (Muon for the matrices, AdamW for the rest) and of several groups, the group
with most parameters counts; a note in the report says so where they differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from penchant.arguments import positive, real
from penchant.door import Invalid, door_as
from penchant.watch.backends.backend import WHO

DECOUPLED = ("AdamW", "Muon", "Adafactor", "Lion")  # optimizers of torch style that say nothing
Group = Mapping[str, Any]
PLACES = ("opt_state", "inner_opt_state", "inner_state")  # attributes with a wrapped state


class OptimizerRates(NamedTuple):
    """The rates of the group with most parameters; NaN if the optimizer does not have them."""

    learning_rate: float
    weight_decay: float


def groups_of(optimizer: Any) -> list[tuple[Any, Group]]:
    """Every group of a torch optimizer, or of a list of them, with its optimizer."""
    every = optimizer if isinstance(optimizer, list) else [optimizer]
    return [(one, group) for one in every for group in getattr(one, "param_groups", None) or ()]


def rates_of(optimizer: Any) -> OptimizerRates:
    """The rates in the groups of torch optimizers, or in an optax state of inject_hyperparams."""
    if isinstance(optimizer, list):
        for one in optimizer:
            rates_of(one)  # each of them must have rates
    if groups := groups_of(optimizer):
        _, largest = _largest(groups)
        return OptimizerRates(_number(largest, "lr"), _number(largest, "weight_decay"))
    for held in _hyperparams(optimizer):
        return OptimizerRates(_number(held, "learning_rate"), _number(held, "weight_decay"))
    raise ValueError(
        f"{WHO}: a {type(optimizer).__name__} does not have a weight decay to read; give a torch "
        "optimizer, a list of them, or the state of optax.inject_hyperparams(...), or "
        "weight_decay= instead"
    )


def decay_rate(optimizer: Any) -> float:
    """The share of the parameters that weight decay removes in one step; NaN if unknown.

    It is learning rate times weight decay if the decay is decoupled (AdamW). If the decay is part
    of the gradient, momentum m multiplies it by 1/(1 - m), and for Adam, which divides by the size
    of the gradient, there is no such number.
    """
    rate, decay = rates_of(optimizer)
    groups = groups_of(optimizer)
    if not groups:  # of optax, only optimizers with decoupled decay have it as a hyperparameter
        return rate * decay
    owner, group = _largest(groups)
    kinds = {kind.__name__ for kind in type(owner).__mro__}
    if group.get("decoupled_weight_decay") or kinds & set(DECOUPLED):
        return rate * decay
    if "SGD" in kinds:
        momentum = _number(group, "momentum")
        taken = 1 - _number(group, "dampening") if momentum > 0 else 1.0
        return rate * decay * taken / (1 - momentum)
    return 0.0 if decay == 0 else math.nan


class RateReader:
    """The rates of a run, from its optimizer or as they were given."""

    def __init__(self, optimizer: Any, given: Callable[[float], float] | None, weight_decay: float):
        self.optimizer, self.given, self.weight_decay = optimizer, given, weight_decay

    @property
    def row(self) -> dict[str, float]:
        """The rates of the optimizer for the record."""
        if self.optimizer is None:
            return {}
        rate, decay = rates_of(self.optimizer)
        return {"optimizer_rate": rate, "optimizer_decay": decay}

    def learning_rate(self, step: float) -> float:
        """The learning rate at a step; NaN if unknown."""
        if self.optimizer is not None:
            return rates_of(self.optimizer).learning_rate
        return math.nan if self.given is None else self.given(step)

    def decay(self, step: float) -> float:
        """The share of the parameters that weight decay removes in a step; NaN if unknown."""
        if self.optimizer is not None:
            return decay_rate(self.optimizer)
        return self.unknown if self.given is None else self.given(step) * self.weight_decay

    @property
    def unknown(self) -> float:
        """The share if the learning rate is not known."""
        return 0.0 if self.weight_decay == 0 else math.nan


@door_as(WHO)
def weight_decay_of(given: float | None, optimizer: Any) -> float:
    """The given weight decay, or that of the optimizer; both must be equal."""
    stated = None if given is None else real("weight_decay", given)
    if stated is not None and stated < 0:
        raise Invalid(f"weight_decay must be >= 0, got {stated:g}")
    if optimizer is None:
        return stated or 0.0
    decay = rates_of(optimizer).weight_decay
    if math.isnan(decay):
        return stated or 0.0
    if stated is not None and not math.isclose(stated, decay, rel_tol=1e-6):
        raise Invalid(
            f"weight_decay={stated:g} was given, but the optimizer has {decay:g}; leave "
            "weight_decay= out"
        )
    return decay


@door_as(WHO)
def learning_rate_of(given: Any, optimizer: Any) -> Callable[[float], float] | None:
    """The given learning rate as a function of the step."""
    if given is None:
        return None
    if optimizer is not None:
        raise Invalid(
            "the learning rate is read from the optimizer at every look; leave learning_rate= out"
        )
    if callable(given):
        return door_as(WHO)(lambda step: real("learning_rate", float(given(step))))
    rate = positive("learning_rate", given)
    return lambda step: rate


def optimizer_notes(optimizer: Any, backend: Any) -> list[str]:
    """Notes on different groups of a torch optimizer, and on parameters without a group."""
    groups, function = groups_of(optimizer), getattr(backend, "function", None)
    if not groups or function is None:
        return []
    notes = []
    rates = [(_number(group, "lr"), _number(group, "weight_decay")) for _, group in groups]
    if len(set(rates)) > 1:
        text = ", ".join(f"{decay:g}" for _, decay in rates)
        owner, group = _largest(groups)
        notes.append(
            f"the {len(groups)} groups of the optimizer have weight decays {text}; the group with "
            f"most parameters counts ({type(owner).__name__}, {_number(group, 'weight_decay'):g})"
        )
    known = {id(value) for _, group in groups for value in group["params"]}
    live = dict(function.module.named_parameters())
    if missing := [name for name in backend.names if id(live[name]) not in known]:
        notes.append(
            f"{len(missing)} trained parameters ({', '.join(missing[:3])}) are in no group of the "
            "optimizer: nothing moves them"
        )
    return notes


def _largest(groups: list[tuple[Any, Group]]) -> tuple[Any, Group]:
    return max(groups, key=lambda pair: sum(p.numel() for p in pair[1]["params"]))


def _hyperparams(state: Any) -> Iterator[Any]:
    """The hyperparameters of optax states, which are nested tuples."""
    if isinstance(numbers := getattr(state, "hyperparams", None), dict):
        yield numbers
    for name in PLACES:
        if hasattr(state, name):
            yield from _hyperparams(getattr(state, name))
    if isinstance(state, tuple | list):
        for part in state:
            yield from _hyperparams(part)


def _number(held: Any, name: str) -> float:
    value = held.get(name, math.nan)
    value = value.get_value() if hasattr(value, "get_value") else value  # a variable of NNX
    try:
        return float(value)
    except (TypeError, ValueError):  # a schedule
        return math.nan
