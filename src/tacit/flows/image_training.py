"""Training of nets on images by SGD, momentum or Adam, in compiled loops over batches."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arguments import integer, one_of, positive, real
from tacit.flows.flow import Progress
from tacit.flows.image_checks import check_problem
from tacit.flows.image_measures import Goal, ImageGauge, Row
from tacit.flows.image_path import ImagePath, check_resume, fingerprint
from tacit.flows.image_steps import (
    OPTIMIZERS,
    Model,
    Rule,
    State,
    begin,
    compiled,
    epoch_batches,
    models,
)
from tacit.flows.image_task import DTYPES, ImageTask, make_task
from tacit.flows.resume import story
from tacit.flows.schedule import asked_steps, schedule
from tacit.models.image_net import ImageNet
from tacit.precision import double_precision
from tacit.problems.images.arrays import Images
from tacit.records import Kind, Outcome, Record
from tacit.threads import on_one_blas_thread

WHO = "ImageTraining"
PARTS = ("all", "output")
CHUNK = 32  # batches between two looks from outside
POINTS = 10  # records per decade of epochs


@dataclasses.dataclass(frozen=True, repr=False)
class ImageTraining(Record):
    """Minimizes the cross-entropy of a net on images, the mean over `batch` of them per step.

    `step` is the learning rate of "sgd", "momentum" or "adam". Every epoch sees every training
    image once, in an order drawn from `seed` and the epoch; if `batch` does not divide them, the
    last batch is smaller. With part="output" only the last layer is trained, which is a kernel
    machine on random features; what it sees is computed once and kept, 4 bytes per image and unit.
    With `twin`, the net linearized in its weights at the start is trained beside on the same
    batches. The run ends after the first epoch with a training accuracy of at least `until`, and
    a training loss of at most `until_loss`, over all training images. Log-spaced epochs are
    recorded, or those in `record`, and always the first and the last.
    """

    step: float
    epochs: int
    batch: int = 256
    optimizer: str = "sgd"
    momentum: float = 0.9
    part: str = "all"
    twin: bool = False
    seed: int = 0
    until: float | None = None
    until_loss: float | None = None
    record: Sequence[int] | None = None
    precision: str = "single"

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", positive(WHO, "step", self.step))
        for name, least in (("epochs", 1), ("batch", 1), ("seed", 0)):
            object.__setattr__(self, name, integer(WHO, name, getattr(self, name), least=least))
        one_of(WHO, "optimizer", self.optimizer, OPTIMIZERS)
        one_of(WHO, "part", self.part, PARTS)
        one_of(WHO, "precision", self.precision, DTYPES)
        momentum = real(WHO, "momentum", self.momentum)
        if not 0 <= momentum < 1:
            raise ValueError(f"{WHO}: momentum must be >= 0 and below 1, got {momentum:g}")
        object.__setattr__(self, "momentum", momentum)
        if self.until is not None and not 0 < real(WHO, "until", self.until) <= 1:
            raise ValueError(
                f"{WHO}: until must be an accuracy above 0 and at most 1, got {self.until:g}"
            )
        if self.until_loss is not None:
            positive(WHO, "until_loss", self.until_loss)
        if self.twin and self.part == "output":
            raise ValueError(
                f"{WHO}: twin must be False with part='output', which is linear in its weights "
                "and so its own twin"
            )
        asked = asked_steps(WHO, self.record, sys.maxsize)
        if asked and max(asked) > self.epochs:
            raise ValueError(
                f"{WHO}: record must stay within epochs={self.epochs}, got {max(asked)}"
            )
        object.__setattr__(self, "record", asked)

    def describe(self) -> dict[str, Any]:
        return {"flow": WHO, **dataclasses.asdict(self)}

    @on_one_blas_thread
    def run(
        self,
        net: ImageNet,
        images: Images,
        progress: Progress | None = None,
        resume: ImagePath | None = None,
    ) -> ImagePath:
        """Train `net` on the training images, and watch the test images.

        With `resume`, a path of the same net, images and settings, training goes on where that
        one ended, to the bit as if it had never stopped; `epochs` counts from the first start.
        """
        check_problem(WHO, net, images, self.batch)
        told = story(images, fingerprint(images), net, self.describe())
        if resume is not None:
            check_resume(WHO, resume, told, self.epochs)
        double = self.precision == "double"
        with double_precision() if double else contextlib.nullcontext():
            task = make_task(net, images, self.part, DTYPES[self.precision])
            gauge = ImageGauge(task, models(task, self.twin))
            state = begin(task, self.rule, gauge.racers)
            if resume is not None:
                gauge.recall(resume.dataset, set(self._schedule()))
                state = _again(task, state, resume)
            done = resume.epochs if resume is not None else 0
            state, done, outcome = self._train(task, gauge, state, done, progress)
            return _path(task, gauge, state, done, outcome, told)

    @property
    def rule(self) -> Rule:
        """How weights move, but for the learning rate."""
        return Rule(self.optimizer, self.momentum)

    @property
    def goal(self) -> Goal:
        """What ends the run early."""
        return Goal(self.until, self.until_loss)

    def _schedule(self) -> list[int]:
        return schedule(self.record, self.epochs, POINTS)

    def _train(
        self,
        task: ImageTask,
        gauge: ImageGauge,
        state: State,
        done: int,
        progress: Progress | None,
    ) -> tuple[State, int, Outcome]:
        """The last finite state, the epochs behind it, and how training ended."""
        recorded = set(self._schedule())
        if not gauge.rows:
            gauge.read(0, state)
        for epoch in range(done + 1, self.epochs + 1):
            moved, lost = self.epoch(task, gauge.racers, state, epoch, progress)
            if lost:
                _last_row(gauge, state, epoch - 1)
                who = "the twin" if lost == "twin" else "the net"
                sentence = f"{who} was not finite in epoch {epoch}; take a smaller step"
                return state, epoch - 1, Outcome(Kind.DIVERGED, sentence)
            state, done = moved, epoch
            if epoch in recorded:
                row = gauge.read(epoch, state)
                met = self.goal.met(row["train_accuracy"], row["train_loss"])
            else:
                met = self.goal.asked and gauge.meets(self.goal, state)
            if met:
                break
        return state, done, self._end(done, _last_row(gauge, state, done))

    def epoch(
        self,
        task: ImageTask,
        racers: dict[str, Model],
        state: State,
        epoch: int,
        progress: Progress | None = None,
    ) -> tuple[State, str]:
        """The state after one epoch, and the name of what is not finite, or an empty one."""
        dtype, count = DTYPES[self.precision], len(task.train.labels)
        advance = compiled(self.rule, tuple(racers.items()))
        tally: Any = {name: (dtype(0), np.int32(0)) for name in racers}
        seen = 0
        for rows in epoch_batches(count, self.batch, self.seed, epoch):
            for first in range(0, len(rows), CHUNK):
                steps = min(CHUNK, len(rows) - first)
                state, tally = advance(
                    (state, tally), task.origin, task.train, rows, first, steps, dtype(self.step)
                )
                for name, (loss, _) in tally.items():
                    if not np.isfinite(loss):
                        return state, name
                seen += steps * rows.shape[1]
                if progress is not None:
                    right = 1 - int(tally["net"][1]) / seen
                    share = (epoch - 1 + seen / count) / self.epochs
                    progress(share, f"epoch {epoch}, {right:.2%} right")
        return state, next((name for name in racers if not _finite(state[name][0])), "")

    def _end(self, epochs: int, row: Row) -> Outcome:
        accuracy, loss = row["train_accuracy"], row["train_loss"]
        reached = f"a training accuracy of {accuracy:.6g} and a loss of {loss:.3g}"
        if not self.goal.asked or self.goal.met(accuracy, loss):
            return Outcome(Kind.SOLVED, f"{reached} after {epochs} epochs")
        sentence = f"{epochs} epochs ended with {reached}, short of {self.goal}; raise epochs"
        return Outcome(Kind.BUDGET_SPENT, sentence)


def _last_row(gauge: ImageGauge, state: State, epoch: int) -> Row:
    """The row of `epoch`, read now if it has not been."""
    return gauge.rows[-1] if gauge.rows[-1]["epoch"] == epoch else gauge.read(epoch, state)


def _finite(params: dict[str, Any]) -> bool:
    return all(np.isfinite(np.asarray(part)).all() for part in params.values())


def _again(task: ImageTask, fresh: State, path: ImagePath) -> State:
    """The state in which a run ended; `fresh` is one before the first step."""
    import jax
    import jax.numpy as jnp

    weights = {"net": path.params, "twin": path.twin or {}}
    found = {}
    for name, (_, kept) in fresh.items():
        leaves = [jnp.asarray(leaf) for leaf in path.kept[name]]
        memory = jax.tree.unflatten(jax.tree.structure(kept), leaves)
        found[name] = task.trained(weights[name]), memory
    return found


def _path(
    task: ImageTask,
    gauge: ImageGauge,
    state: State,
    done: int,
    outcome: Outcome,
    told: dict[str, Any],
) -> ImagePath:
    import jax

    kept = {name: tuple(np.asarray(leaf) for leaf in jax.tree.leaves(memory))
            for name, (_, memory) in state.items()}  # fmt: skip
    twin = task.whole(state["twin"][0]) if "twin" in state else None
    attributes = {"description": json.dumps(told), "outcome": outcome.kind.value,
                  "sentence": outcome.sentence}  # fmt: skip
    dataset = gauge.dataset().assign_attrs(attributes)
    return ImagePath(outcome, done, task.whole(state["net"][0]), twin, kept, dataset)
