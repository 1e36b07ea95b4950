"""The watch itself: called in a training loop, it looks now and then and never stops training."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arguments import real
from tacit.watch.backend import WHO, Backend
from tacit.watch.failures import Failure, Failures
from tacit.watch.measures import (
    Labels,
    Start,
    gain_row,
    kernel_row,
    linearized_row,
    move_row,
    norm_row,
    nuclear_row,
    output_row,
)
from tacit.watch.prediction import Transition, Verdict, transition, verdict
from tacit.watch.record import Log, number, save
from tacit.watch.regime import Regime, regime
from tacit.watch.reporting import Report, deliver, read
from tacit.watch.schedule import Budget, Steps

GLANCES = 32  # per decade: norm and direction alone, as many as the forecast needs


class Watch:
    """Call it as watch(step, train_loss=..., ...), for a JAX function watch(step, parameters, ...).

    Metrics are kept at every call. Looks at the model are taken at log-spaced steps as far as
    the budget allows (see tacit.watch.schedule). A call returns nothing and raises nothing:
    what goes wrong is one sentence in `failures`, unless the watch was made with
    raise_errors=True. `tacit.watch` makes one.

    Parameters
    ----------
    backend
        How the model is looked at.
    parameters
        The parameters at the start, for a JAX function.
    labels
        A function of the numbers of samples and outputs that returns the labels.
    weight_decay
        The weight decay of the training.
    budget
        The largest share of the training time that looks take; None is no limit.
    level
        The test accuracy at which the task counts as solved.
    points_per_decade
        The number of looks in each decade of steps.
    step
        The step at which the watch is made.
    raise_errors
        Raises what goes wrong in a call.
    clock
        Returns the time in seconds.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> watch = tacit.watch(lambda w, x: x @ w, np.eye(2), parameters=np.ones(2))
    >>> watch(1, np.ones(2), train_loss=0.5)
    >>> watch.failures
    ()
    """

    def __init__(
        self,
        backend: Backend,
        parameters: Any,
        labels: Callable[[int, int], Labels | None],
        *,
        weight_decay: float,
        budget: float | None,
        level: float | None = None,
        points_per_decade: int,
        step: float,
        raise_errors: bool,
        clock: Callable[[], float] = time.perf_counter,
    ):
        begun = clock()
        self.backend, self.weight_decay, self.first = backend, weight_decay, step
        self.level = level
        self._failures, self.log = Failures(raise_errors), Log(backend.names)
        self._looks = Steps(step, points_per_decade)
        self._glances = Steps(step, max(points_per_decade, GLANCES))
        self.budget = Budget(budget, clock)
        self._begin(parameters, labels)
        self.setup_seconds = clock() - begun
        self.budget.restart()

    def __call__(self, step: float, parameters: Any = None, **metrics: Any) -> None:
        with self._failures.kept("call", _shown(step)):
            now = self._open(step)
            for name, value in metrics.items():
                with self._failures.kept(f"metric {name}", now):
                    self.log.metric(name, value)
            self._look_if_due(now, parameters)
        self.budget.seen()

    def look(self, parameters: Any = None) -> None:
        """One look at the latest step, whatever schedule and budget say; for the end of a run."""
        step = self.log.steps[-1] if self.log.steps else self.first
        with self._failures.kept("look", step):
            if step > self.log.rows[-1]["step"]:
                self._look(step, parameters)
        self.budget.seen()

    def __repr__(self) -> str:
        looks, calls = len(self.log.rows), len(self.log.steps)
        return f"<Watch of {self.start.parameters} parameters: {looks} looks, {calls} calls>"

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What went wrong so far: one sentence of every kind."""
        return tuple(self._failures)

    @property
    def overhead(self) -> float:
        """The time spent in looks as a share of the training time since the set-up."""
        return self.budget.overhead

    @property
    def dataset(self) -> Any:
        """The record as an xarray.Dataset: looks on `time`, metrics on `call`, norms on `glance`"""
        return self.log.dataset(
            {
                "weight_decay": self.weight_decay,
                "start_step": self.first,
                "parameters": self.start.parameters,
                "setup_seconds": self.setup_seconds,
                "look_seconds": self.budget.spent,
                "training_seconds": self.budget.training,
                "budget": self.budget.share,
                "level": self.level,
                "notes": list(self.backend.notes),
                "failures": [[f.kind, f.step, f.count, f.sentence] for f in self.failures],
            }
        )

    @property
    def regime(self) -> Regime:
        """Kernel, leaving, rich or unknown, with the evidence."""
        return regime(self.dataset)

    @property
    def verdict(self) -> Verdict:
        """Whether the run has grokked, misgrokked or shows a mirage."""
        return verdict(self.dataset)

    @property
    def forecast(self) -> Transition:
        """When the run leaves the kernel regime, if weight decay makes it."""
        return transition(self.dataset)

    def report(self, *files: str | os.PathLike[str], to: str | None = None) -> Report:
        """Prints table and verdicts, writes them to `files`, hands them on; returns the report.

        A file is a record (.nc, .json) or the figure (.png, .svg). `to` is "wandb" or "mlflow",
        whose run must be open, or "tensorboard" with a log folder: report("runs/name",
        to="tensorboard"). What goes wrong is told in the table and kept in `failures`, like at a
        call: a report within a training loop does not end it.
        """
        step = self.log.steps[-1] if self.log.steps else self.first
        guard = functools.partial(self._failures.kept, "report", step)
        written = deliver(self.dataset, files, to, guard)
        found = read(self.dataset, written)
        with guard():
            found.print()
        return found

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the record to `file`, .nc or .json; `from tacit.watch import load` opens it."""
        return save(self.dataset, file)

    def _begin(self, parameters: Any, labels: Callable[[int, int], Labels | None]) -> None:
        """Keeps the start; here errors are raised, since training has not begun."""
        backend = self.backend
        outputs = backend.outputs(parameters)
        self.labels = labels(*outputs.shape)
        arrays = {name: array.copy() for name, array in backend.arrays(parameters).items()}
        self.start = Start(arrays, outputs, backend.kernel(parameters))
        backend.linearized(
            parameters
        )  # once for the compiler, so that the next time tells the cost
        loud, self._failures.raising = self._failures.raising, True
        self._look(self.first, parameters)
        with self.budget.charged("glance"):
            move_row(self.start, backend.arrays(parameters))
        self._failures.raising = loud

    def _open(self, step: Any) -> float:
        now = real(WHO, "step", number("step", step))
        if now < self.first:
            raise ValueError(
                f"{WHO}: step {now:g} is before the start, step {self.first:g} (step= of the watch)"
            )
        self.log.call(now)
        return now

    def _look_if_due(self, step: float, parameters: Any) -> None:
        self.budget.seen()
        if self._looks.due(step) and self.budget.allows("look"):
            self._look(step, parameters)
        elif self._glances.due(step) and self.budget.allows("glance"):
            self._glance(step, parameters)

    def _look(self, step: float, parameters: Any) -> None:
        self._looks.taken(step)
        self._glances.taken(step)
        begun = self.budget.clock()
        with self.budget.charged("look"):
            self.backend.check(parameters)
            with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverges
                row = self._row(step, parameters)
        if row:
            row |= self._nuclear(step, parameters)
            seconds = self.budget.clock() - begun
            self.log.rows.append({"step": step, **row, "look_seconds": seconds})
            self.log.glance(step, row)

    def _nuclear(self, step: float, parameters: Any) -> dict[str, Any]:
        """Nuclear norms, where they fit into their part of the budget."""
        row: dict[str, Any] = {}
        if self.budget.allows("nuclear") or step == self.first:
            with self.budget.charged("nuclear"), self._failures.kept("nuclear norms", step):
                row = nuclear_row(self.backend.arrays(parameters), self.backend.out_axis)
        return row

    def _glance(self, step: float, parameters: Any) -> None:
        self._glances.taken(step)
        with self.budget.charged("glance"):
            self.backend.check(parameters)
            self.log.glance(step, move_row(self.start, self.backend.arrays(parameters)))

    def _row(self, step: float, parameters: Any) -> dict[str, Any]:
        """All that can be read; a part that fails leaves the others standing."""
        row: dict[str, Any] = {}
        kept, backend, start = self._failures.kept, self.backend, self.start
        with kept("parameters", step):
            arrays = backend.arrays(parameters)
            row |= move_row(start, arrays)
            row |= norm_row(arrays)
        with kept("outputs", step):
            outputs = backend.outputs(parameters)
            row |= output_row(start, outputs, self.labels) | {"output": outputs}
            with kept("linearized model", step):
                linear = backend.linearized(parameters)
                row |= linearized_row(start, outputs, linear) | {"linearized_output": linear}
        with kept("tangent kernel", step):
            kernel = backend.kernel(parameters)
            row |= kernel_row(start, kernel, self.labels)
            if "output" in row:
                row |= gain_row(start, row["output"], kernel)
        return row


def _shown(step: Any) -> float:
    """The step for a list of failures, NaN if it is no number."""
    try:
        return number("step", step)
    except ValueError:
        return float("nan")
