"""Gradient descent with weight decay on the cross-entropy of a net with one logit per class."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.arguments import Array, integer, one_of, positive, real
from tacit.flows.class_measures import Gauge, labelled, norm
from tacit.flows.flow import Progress
from tacit.flows.schedule import points_per_decade
from tacit.models.two_token_net import TwoTokenNet, Weights
from tacit.precision import double_precision
from tacit.problems.arithmetic import TokenPairs
from tacit.records import Kind, Outcome, Record
from tacit.threads import on_one_blas_thread
from tacit.versions import versions

WHO = "ClassDescent"
DTYPES: dict[str, Any] = {"single": np.float32, "double": np.float64}
FINEST = 10  # a step must shrink the weights by this many units of rounding, or decay is noise


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class ClassPath(Record):
    """Where training went; `dataset` holds what was recorded, `weights` are the last ones."""

    outcome: Outcome
    t: float
    steps: int
    weights: Weights = dataclasses.field(repr=False)
    dataset: Any = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, repr=False)
class ClassDescent(Record):
    """theta <- (1 - step * rate) theta - step * grad loss, over all training pairs, until t_max.

    Time is the sum of the steps. With `scaled_step` a step is min(step, scaled_step/|theta|^2):
    the curvature of a 2-homogeneous net grows like |theta|^2, so that a large start needs small
    steps only while it is large. `steps` bounds their number. Records are log-spaced in time.
    `probes` pairs carry the kernel distance. `precision` is "single" or "double".
    """

    step: float
    t_max: float
    rate: float = 0.0
    scaled_step: float | None = None
    points_per_decade: int = 20
    probes: int = 32
    precision: str = "single"
    steps: int = 10**7

    def __post_init__(self) -> None:
        for name in ("step", "t_max"):
            object.__setattr__(self, name, positive(WHO, name, getattr(self, name)))
        rate = real(WHO, "rate", self.rate, rule="a finite number >= 0")
        if rate < 0:
            raise ValueError(f"{WHO}: rate must be >= 0, got {rate}")
        object.__setattr__(self, "rate", rate)
        if self.scaled_step is not None:
            positive(WHO, "scaled_step", self.scaled_step)
        points_per_decade(WHO, self.points_per_decade)
        integer(WHO, "probes", self.probes, least=1)
        integer(WHO, "steps", self.steps, least=1)
        one_of(WHO, "precision", self.precision, DTYPES)
        if self.step * rate >= 1:
            raise ValueError(f"{WHO}: step * rate must be below 1, got {self.step * rate:g}")

    def describe(self) -> dict[str, Any]:
        return {"flow": WHO, **dataclasses.asdict(self)}

    @on_one_blas_thread
    def run(
        self, net: TwoTokenNet, problem: TokenPairs, progress: Progress | None = None
    ) -> ClassPath:
        """Train `net` on the training pairs of `problem`, and watch its test pairs."""
        _known(net, problem)
        start = net.start(problem)
        gauge = Gauge(net, problem, start, self.probes)
        first = self._first_step(norm(start))
        t, steps, weights, outcome = 0.0, 0, start, None
        with double_precision():
            advance = compiled(self, net, problem)
            for target in _targets(first, self.t_max, self.points_per_decade):
                elapsed, count, moved = advance(weights, target - t, self.steps - steps)
                outcome = self._failure(t, moved, steps + count, target - t - elapsed)
                if outcome and outcome.kind is Kind.DIVERGED:
                    break
                t, steps, weights = t + elapsed, steps + count, moved
                if count and not gauge.read(t, steps, weights):
                    outcome = self._dead(t)
                if outcome:
                    break
                if progress is not None:
                    progress(min(target / self.t_max, 1.0), f"t = {target:.4g}")
        outcome = outcome or Outcome(Kind.SOLVED, f"reached t = {t:.4g} in {steps} steps")
        dataset = labelled(gauge.columns())
        dataset.attrs = self._attributes(net, problem, outcome)
        return ClassPath(outcome, t, steps, weights, dataset)

    def _first_step(self, size: float) -> float:
        first = self.step if self.scaled_step is None else self.scaled_step / size**2
        first = min(first, self.step)
        least = FINEST * float(np.finfo(DTYPES[self.precision]).eps)
        if 0 < first * self.rate < least:
            raise ValueError(
                f"{WHO}: a step shrinks the weights by step * rate = {first * self.rate:.2g}, "
                f"which {self.precision} precision cannot resolve (it needs {least:.2g}); "
                "take larger steps or precision='double'"
            )
        if first > self.t_max:
            raise ValueError(f"{WHO}: t_max must reach one step, {first:.3g}, got {self.t_max:g}")
        return first

    def _failure(self, t: float, weights: Weights, steps: int, left: float) -> Outcome | None:
        """What went wrong in the span that began at `t`, if anything did."""
        short = left > 0.75 * self.step  # a span ends within half a step
        if short and steps >= self.steps:
            sentence = f"{steps} steps ended before t_max = {self.t_max:g}; raise steps"
            return Outcome(Kind.BUDGET_SPENT, sentence)
        # the squared norm overflows before the weights do, and that stops the compiled steps
        if short or not math.isfinite(norm(weights)):
            setting = "step" if self.scaled_step is None else "scaled_step"
            sentence = f"not finite after t = {t:.4g}; take a smaller {setting}"
            return Outcome(Kind.DIVERGED, sentence)
        return None

    def _dead(self, t: float) -> Outcome:
        sentence = f"no hidden unit is active any more at t = {t:.4g}; take a smaller step"
        return Outcome(Kind.STALLED, sentence)

    def _attributes(
        self, net: TwoTokenNet, problem: TokenPairs, outcome: Outcome
    ) -> dict[str, str]:
        described = {"description": problem.description, "recipe": problem.recipe}
        description = {"problem": described, "model": net.describe(), "flow": self.describe(),
                       "versions": versions()}  # fmt: skip
        return {"description": json.dumps(description), "outcome": outcome.kind.value,
                "sentence": outcome.sentence}  # fmt: skip


def compiled(
    descent: ClassDescent, net: TwoTokenNet, problem: TokenPairs
) -> Callable[[Weights, float, int], tuple[float, int, Weights]]:
    """A function (weights, span of time, most steps) -> (time passed, steps taken, weights)."""
    import jax
    import jax.numpy as jnp

    dtype = DTYPES[descent.precision]
    x, answers, shares = (jnp.asarray(a, dtype) for a in _distinct(net, problem))

    def loss(weights: Weights) -> Any:
        logits = net.logits(weights, x)
        losses = jax.nn.logsumexp(logits, axis=1) - jnp.sum(logits * answers, axis=1)
        return shares @ losses

    def size(weights: Weights) -> Any:
        square = sum(jnp.sum(jnp.square(part)).astype(jnp.float64) for part in weights)
        scaled = math.inf if descent.scaled_step is None else descent.scaled_step / square
        return jnp.where(jnp.isfinite(square), jnp.minimum(descent.step, scaled), jnp.nan)

    def go_on(carry: Any) -> Any:
        elapsed, count, step, span, most, _ = carry
        # the last step ends nearest to the span; false where the step is not a number
        return (elapsed + step / 2 < span) & (count < most)

    def one_step(carry: Any) -> Any:
        elapsed, count, step, span, most, weights = carry
        gradient = jax.grad(loss)(weights)
        moved = jax.tree.map(
            lambda w, g: w - step.astype(dtype) * (g + descent.rate * w), weights, gradient
        )
        return elapsed + step, count + 1, size(moved), span, most, moved

    @jax.jit
    def advance(weights: Weights, span: Any, most: Any) -> Any:
        carry = (jnp.float64(0), jnp.int64(0), size(weights), span, most, weights)
        return jax.lax.while_loop(go_on, one_step, carry)

    def run(weights: Weights, span: float, most: int) -> tuple[float, int, Weights]:
        begin = Weights(*(jnp.asarray(part, dtype) for part in weights))
        elapsed, count, *_, last = advance(begin, jnp.float64(span), jnp.int64(most))
        return float(elapsed), int(count), Weights(*(np.asarray(part) for part in last))

    return run


def _distinct(net: TwoTokenNet, problem: TokenPairs) -> tuple[Array, Array, Array]:
    """Distinct inputs, the codes of their labels, and their shares of the training pairs.

    A net with a shared code sees (a, b) and (b, a) as one input, worth computing once.
    """
    labels = problem.labels[problem.train]
    table = np.column_stack([net.inputs(problem, problem.train), labels])
    rows, counts = np.unique(table, axis=0, return_counts=True)
    answers = np.eye(problem.classes)[rows[:, -1].astype(int)]
    return rows[:, :-1], answers, counts / len(labels)


def _known(net: object, problem: object) -> None:
    if not isinstance(net, TwoTokenNet):
        raise ValueError(f"{WHO}: the model must be a TwoTokenNet, got {type(net).__name__}")
    if not isinstance(problem, TokenPairs):
        raise ValueError(
            f"{WHO}: the problem must be pairs of tokens, got {type(problem).__name__}; "
            "use modular_addition() or modular_arithmetic()"
        )


def _targets(first: float, t_max: float, per_decade: int) -> list[float]:
    """Log-spaced times from the first step to the last time."""
    count = int(per_decade * math.log10(t_max / first) * (1 + 1e-12)) + 1
    spaced = [first * 10 ** (k / per_decade) for k in range(count)]
    return [t for t in spaced if t < t_max] + [t_max]
