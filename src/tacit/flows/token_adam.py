"""Adam on the cross-entropy of a token net plus a penalty, in compiled loops between records."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tacit.arguments import integer, one_of, positive, real
from tacit.flows.flow import Progress
from tacit.flows.resume import story
from tacit.flows.schedule import asked_steps, points_per_decade, schedule
from tacit.flows.token_loss import training_loss
from tacit.flows.token_measures import TokenGauge
from tacit.flows.token_path import TokenPath, check_resume, fingerprint
from tacit.flows.token_steps import DTYPES, PENALTIES, State, again, begin, compiled
from tacit.models.token_net import TokenNet, present
from tacit.precision import double_precision
from tacit.problems.arithmetic import TokenPairs
from tacit.records import Kind, Outcome, Record
from tacit.threads import on_one_blas_thread

WHO = "TokenAdam"


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
        points_per_decade(WHO, self.points_per_decade)
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

    @on_one_blas_thread
    def run(
        self,
        net: TokenNet,
        problem: TokenPairs,
        progress: Progress | None = None,
        resume: TokenPath | None = None,
    ) -> TokenPath:
        """Train `net` on the training pairs of `problem`, and watch its validation pairs.

        With `resume`, a path of the same net, problem and settings, training goes on where that
        one ended, to the bit as if it had never stopped; `steps` counts from the first start.
        """
        import jax

        _known(net, problem)
        told = story(problem, fingerprint(problem), net, self.describe())
        gauge = TokenGauge(net, problem, self.penalty, self.beta)
        if resume is not None:
            check_resume(WHO, resume, told, self.steps)
            gauge.recall(resume.dataset)
        with double_precision():
            state = again(resume) if resume else begin(net.start(problem), DTYPES[self.precision])
            state, outcome = self._train(self.compiled(net, problem), state, gauge, progress)
            tensors, mean, square = jax.tree.map(np.asarray, state[:3])
        attributes = {"description": json.dumps(told), "outcome": outcome.kind.value,
                      "sentence": outcome.sentence}  # fmt: skip
        dataset = gauge.dataset().assign_attrs(attributes)
        return TokenPath(outcome, int(state.taken), tensors, (mean, square), dataset)

    def compiled(self, net: TokenNet, problem: TokenPairs) -> Callable[[State, int], State]:
        """A function (state, number of steps) -> state after them."""
        dtype = DTYPES[self.precision]
        return compiled(self, training_loss(net, problem, dtype, self.batch, self.seed))

    def _train(
        self,
        advance: Callable[[State, int], State],
        state: State,
        gauge: TokenGauge,
        progress: Progress | None,
    ) -> tuple[State, Outcome]:
        """The last finite state, and how training ended."""
        done = int(gauge.rows[-1]["step"]) if gauge.rows else -1
        targets = schedule(self.record, self.steps, self.points_per_decade)
        reached = 0.0
        for target in (step for step in targets if step > done):
            moved = advance(state, target - int(state.taken))
            parts = {name: np.asarray(x) for name, x in present(moved.tensors).items()}
            if not all(np.isfinite(part).all() for part in parts.values()):
                sentence = f"not finite after step {int(state.taken)}; take a smaller step"
                return state, Outcome(Kind.DIVERGED, sentence)
            state = moved
            reached = gauge.read(self.step * target, target, state.tensors)["test_accuracy"]
            if progress is not None:
                progress(target / self.steps, f"step {target}")
            if self.until is not None and reached >= self.until:
                break
        return state, self._end(int(state.taken), reached)

    def _end(self, taken: int, accuracy: float) -> Outcome:
        if self.until is None or accuracy >= self.until:
            sentence = f"validation accuracy {accuracy:.4g} after {taken} steps"
            return Outcome(Kind.SOLVED, sentence)
        sentence = (
            f"{taken} steps ended with a validation accuracy of {accuracy:.4g} below "
            f"until = {self.until:g}; raise steps"
        )
        return Outcome(Kind.BUDGET_SPENT, sentence)


def _known(net: object, problem: object) -> None:
    if not isinstance(net, TokenNet) or isinstance(net, type):
        raise ValueError(
            f"{WHO}: the model must be a net on token pairs, got {type(net).__name__}; use "
            "TokenMLP() or any TokenNet: symmetric, describe(), start() and logits()"
        )
    if not isinstance(problem, TokenPairs):
        raise ValueError(
            f"{WHO}: the problem must be pairs of tokens, got {type(problem).__name__}; "
            "use modular_arithmetic() or permutation_group()"
        )
