"""Adam on the cross-entropy of a token net plus a penalty, in compiled loops between records."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tacit.arguments import integer, one_of, positive, real
from tacit.flows.flow import Progress
from tacit.flows.schedule import asked_steps, schedule
from tacit.flows.token_loss import training_loss
from tacit.flows.token_measures import TokenGauge
from tacit.flows.token_penalties import PENALTIES, tensor_penalty
from tacit.models.token_mlp import Tensors, TokenMLP
from tacit.precision import double_precision
from tacit.problems.arithmetic import TokenPairs
from tacit.records import Kind, Outcome, Record
from tacit.versions import versions

WHO = "TokenAdam"
DTYPES: dict[str, Any] = {"single": np.float32, "double": np.float64}
MOMENTS = 0.9, 0.999
EPSILON = 1e-8

State = tuple[Tensors, Tensors, Tensors, Any]  # tensors, both moments, steps taken


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TokenPath(Record):
    """Where training went; `dataset` holds what was recorded, `tensors` are the last ones."""

    outcome: Outcome
    steps: int
    tensors: Tensors = dataclasses.field(repr=False)
    dataset: Any = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, repr=False)
class TokenAdam(Record):
    """Adam with learning rate `step` on g + beta h, g the mean cross-entropy of the training pairs.

    h is `penalty`: "l1", "l2^2", "l2" and "nuclear" per tensor, or "l2 over all". Its subgradient
    enters the moments like that of g, or, if `decoupled`, moves the parameters beside them as in
    AdamW. Each step sees all training pairs, or `batch` of them: every pair once per epoch,
    shuffled by `seed`. Records are log-spaced in steps, or at `record`; the first record whose
    validation accuracy is at least `until` ends the run. N-F1 has the defaults.
    """

    step: float = 1e-3
    steps: int = 20_000
    penalty: str = "l2^2"
    beta: float = 1e-6
    batch: int | None = None
    decoupled: bool = False
    points_per_decade: int = 40
    record: Sequence[int] | None = None
    until: float | None = None
    precision: str = "single"
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", positive(WHO, "step", self.step))
        integer(WHO, "steps", self.steps, least=1)
        one_of(WHO, "penalty", self.penalty, PENALTIES)
        beta = real(WHO, "beta", self.beta, rule="a finite number >= 0")
        if beta < 0:
            raise ValueError(f"{WHO}: beta must be >= 0, got {beta}")
        object.__setattr__(self, "beta", beta)  # plain floats leave float32 as it is in JAX
        if self.batch is not None:
            integer(WHO, "batch", self.batch, least=1)
        integer(WHO, "points_per_decade", self.points_per_decade, least=1)
        object.__setattr__(self, "record", asked_steps(WHO, self.record, self.steps))
        if self.until is not None and not 0 < real(WHO, "until", self.until) <= 1:
            raise ValueError(f"{WHO}: until must be an accuracy of at most 1, got {self.until:g}")
        one_of(WHO, "precision", self.precision, DTYPES)
        integer(WHO, "seed", self.seed, least=0)
        self._stable()

    def _stable(self) -> None:
        """Decoupled decay multiplies the parameters by 1 - 2 step beta."""
        if self.decoupled and self.penalty == "l2^2" and self.step * self.beta >= 0.5:
            raise ValueError(
                f"{WHO}: decoupled decay needs step * beta below 1/2, got "
                f"{self.step * self.beta:g}; take a smaller one"
            )

    def describe(self) -> dict[str, Any]:
        return {"flow": WHO, **dataclasses.asdict(self)}

    def run(
        self, net: TokenMLP, problem: TokenPairs, progress: Progress | None = None
    ) -> TokenPath:
        """Train `net` on the training pairs of `problem`, and watch its validation pairs."""
        _known(net, problem)
        gauge = TokenGauge(net, problem, self.penalty, self.beta)
        tensors, taken, outcome = net.start(problem), 0, None
        with double_precision():
            advance = compiled(self, net, problem)
            state = begin(tensors, DTYPES[self.precision])
            for target in schedule(self.record, self.steps, self.points_per_decade):
                state = advance(state, target - taken)
                moved = Tensors(*(None if x is None else np.asarray(x) for x in state[0]))
                if not all(np.isfinite(x).all() for x in moved.present().values()):
                    sentence = f"not finite after step {taken}; take a smaller step"
                    outcome = Outcome(Kind.DIVERGED, sentence)
                    break
                tensors, taken = moved, target
                reached = gauge.read(self.step * taken, taken, tensors)["test_accuracy"]
                if progress is not None:
                    progress(taken / self.steps, f"step {taken}")
                if self.until is not None and reached >= self.until:
                    break
        outcome = outcome or self._end(taken, gauge.rows[-1]["test_accuracy"])
        dataset = gauge.dataset().assign_attrs(self._attributes(net, problem, outcome))
        return TokenPath(outcome, taken, tensors, dataset)

    def _end(self, taken: int, accuracy: float) -> Outcome:
        if self.until is None or accuracy >= self.until:
            sentence = f"validation accuracy {accuracy:.4g} after {taken} steps"
            return Outcome(Kind.SOLVED, sentence)
        sentence = (
            f"{taken} steps ended with a validation accuracy of {accuracy:.4g} below "
            f"until = {self.until:g}; raise steps"
        )
        return Outcome(Kind.BUDGET_SPENT, sentence)

    def _attributes(self, net: TokenMLP, problem: TokenPairs, outcome: Outcome) -> dict[str, str]:
        described = {"description": problem.description, "recipe": problem.recipe}
        description = {"problem": described, "model": net.describe(), "flow": self.describe(),
                       "versions": versions()}  # fmt: skip
        return {"description": json.dumps(description), "outcome": outcome.kind.value,
                "sentence": outcome.sentence}  # fmt: skip


def begin(tensors: Tensors, dtype: Any) -> State:
    """The state before the first step: moments of zero."""
    import jax
    import jax.numpy as jnp

    first = jax.tree.map(lambda part: jnp.asarray(part, dtype), tensors)
    zeros = jax.tree.map(jnp.zeros_like, first)
    return first, zeros, zeros, jnp.int32(0)


def compiled(adam: TokenAdam, net: TokenMLP, problem: TokenPairs) -> Callable[[State, int], State]:
    """A function (state, number of steps) -> state after them."""
    import jax
    import jax.numpy as jnp

    dtype = DTYPES[adam.precision]
    loss = training_loss(net, problem, dtype, adam.batch, adam.seed)
    penalty = tensor_penalty(adam.penalty)

    def pull(tensors: Tensors) -> Tensors:
        """beta times the subgradient of the penalty."""
        found = penalty.subgradient(tensors.present())
        pulled = {name: adam.beta * part for name, part in found.items()}
        return tensors._replace(**pulled)

    def one_step(_: Any, state: State) -> State:
        tensors, mean, square, taken = state
        slope = jax.grad(loss)(tensors, taken)
        if adam.beta and not adam.decoupled:
            slope = jax.tree.map(jnp.add, slope, pull(tensors))
        (a, b), count = MOMENTS, (taken + 1).astype(dtype)
        mean = jax.tree.map(lambda m, g: a * m + (1 - a) * g, mean, slope)
        square = jax.tree.map(lambda v, g: b * v + (1 - b) * g * g, square, slope)
        # 1 - a^k without the cancellation of small k in float32
        first, second = (-jnp.expm1(count * math.log(moment)) for moment in (a, b))
        moved = jax.tree.map(
            lambda x, m, v: x - adam.step * (m / first) / (jnp.sqrt(v / second) + EPSILON),
            tensors, mean, square,
        )  # fmt: skip
        if adam.beta and adam.decoupled:
            moved = jax.tree.map(lambda x, p: x - adam.step * p, moved, pull(tensors))
        return moved, mean, square, taken + 1

    @jax.jit
    def advance(state: State, count: Any) -> State:
        return jax.lax.fori_loop(0, count, one_step, state)

    return advance


def _known(net: object, problem: object) -> None:
    if not isinstance(net, TokenMLP):
        raise ValueError(f"{WHO}: the model must be a TokenMLP, got {type(net).__name__}")
    if not isinstance(problem, TokenPairs):
        raise ValueError(
            f"{WHO}: the problem must be TokenPairs, got {type(problem).__name__}; "
            "use modular_arithmetic(), permutation_group() or TokenPairs(...)"
        )
