"""Adam and AdamW on g + beta h, on full batches or on mini-batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arguments import positive, real
from tacit.flows.flow import Progress
from tacit.flows.penalized_batches import Batches, batches, checked_batch
from tacit.flows.penalized_march import march
from tacit.flows.penalized_path import PenalizedPath, labelled, levels
from tacit.flows.penalized_task import Data, Slope, job
from tacit.flows.schedule import schedule
from tacit.flows.subgradient import describe, settle
from tacit.models.model import Model
from tacit.precision import double_precision
from tacit.records import Record
from tacit.regularizers.penalty import Term
from tacit.threads import on_one_blas_thread

WHO = "Adam"


@dataclasses.dataclass(frozen=True)
class AdamUpdate:
    """One step of Adam, or of AdamW where `decoupled`."""

    slope: Slope
    penalty: Term | None
    draws: Batches
    decoupled: bool

    def __call__(self, numbers: Mapping[str, Any], data: Data, k: Any, state: Any) -> Any:
        theta, mean, square, draws = state
        gradient, draws = self.draws.gradient(self.slope, data, k, theta, draws)
        pull = 0.0
        if self.penalty is not None:
            pull = numbers["beta"] * self.penalty.subgradient(theta)
        if not self.decoupled:
            gradient, pull = gradient + pull, 0.0
        mean, square, move = moments(numbers, k, mean, square, gradient)
        return theta - numbers["step"] * (move + pull), mean, square, draws

    def of_penalty(self, numbers: Mapping[str, Any], data: Data, state: Any) -> dict[str, Any]:
        """Where the next step asks the penalty and what it answers, by name."""
        if self.penalty is None:
            return {}
        return {"subgradient": (state[0], self.penalty.subgradient(state[0]))}


def moments(
    numbers: Mapping[str, Any], k: Any, mean: Any, square: Any, gradient: Any
) -> tuple[Any, Any, Any]:
    """The two moments after step k = 0, 1, ..., and the direction of Adam (Kingma and Ba 2015)."""
    import jax.numpy as jnp

    first, second = numbers["mean_decay"], numbers["square_decay"]
    mean = first * mean + (1 - first) * gradient
    square = second * square + (1 - second) * gradient**2
    # both moments start at 0, which the divisions correct
    unbiased = mean / (1 - first ** (k + 1)), square / (1 - second ** (k + 1))
    return mean, square, unbiased[0] / (jnp.sqrt(unbiased[1]) + numbers["epsilon"])


@dataclasses.dataclass(frozen=True, repr=False)
class Adam(Record):
    """Adam with the penalty inside the moments; `decoupled` keeps it outside of them: AdamW.

    With G_k the gradient of g at theta, H a subgradient of h, and b1, b2 = `mean_decay`,
    `square_decay`:

        P = G + beta H                     (coupled)      P = G          (decoupled)
        m <- b1 m + (1 - b1) P,            v <- b2 v + (1 - b2) P^2
        D = (m/(1 - b1^k)) / (sqrt(v/(1 - b2^k)) + epsilon)
        theta <- theta - step D            (coupled)
        theta <- theta - step (D + beta H) (decoupled)

    The weight_decay of PyTorch's Adam and AdamW is 2 beta with L2(). `batch` samples are
    drawn per step, without repeats within an epoch, from `seed`; None takes all. The loss g (half
    the sum of squares, or a mean over labels), the records and `until` are those of
    `Subgradient`; recorded losses are always those of all samples.
    """

    step: float
    steps: int
    penalty: Term | None = None
    beta: float = 0.0
    decoupled: bool = False
    mean_decay: float = 0.9
    square_decay: float = 0.999
    epsilon: float = 1e-8
    batch: int | None = None
    seed: int = 0
    points_per_decade: int = 20
    record: Sequence[int] | None = None
    until: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        settle(WHO, self)
        for name in ("mean_decay", "square_decay"):
            share = real(WHO, name, getattr(self, name), rule="a number in [0, 1)")
            if not 0 <= share < 1:
                raise ValueError(f"{WHO}: {name} must be in [0, 1), got {share}")
        positive(WHO, "epsilon", self.epsilon)
        curvature = 0.0 if self.penalty is None else self.penalty.curvature
        if self.decoupled and self.step * self.beta * curvature >= 2:
            raise ValueError(
                f"{WHO}: decoupled decay multiplies theta by 1 - {curvature:g} step beta, which "
                f"diverges unless step beta is below {2 / curvature:g}, got "
                f"{self.step * self.beta:g}; take a smaller step or beta"
            )
        batch, seed = checked_batch(WHO, self.batch, self.seed)
        object.__setattr__(self, "batch", batch)
        object.__setattr__(self, "seed", seed)

    def describe(self) -> dict[str, Any]:
        return describe(WHO, self)

    @on_one_blas_thread
    def run(
        self, model: Model, problem: Any, progress: Progress | None = None, test: Any = None
    ) -> PenalizedPath:
        """Train `model` on a Regression, a matrix problem or a Classification.

        The loss of `test`, samples like those of a Regression or a Classification, is recorded.
        """
        made = job(WHO, model, problem, self.penalty, self.beta, test)
        until = levels(WHO, self.until, problem)
        draws = batches(WHO, made, self.batch)
        update = AdamUpdate(made.slope, self.penalty, draws, self.decoupled)
        names = ("step", "beta", "mean_decay", "square_decay", "epsilon")
        numbers = {name: float(getattr(self, name)) for name in names}
        zero = np.zeros_like(made.start)
        with double_precision():
            state = (made.start, zero, zero, draws.start(self.seed))
        steps = schedule(self.record, self.steps, self.points_per_decade)
        rows, outcome = march(WHO, made, update, numbers, state, steps, until, progress)
        return labelled(made, self.step, self.describe(), outcome, rows)
