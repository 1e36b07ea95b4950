"""The watch: called in a training loop, it looks at the model at some steps, without raising."""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from penchant.arguments import real
from penchant.door import Invalid, door_as
from penchant.watch.backends.backend import WHO, Backend, ChangedModel
from penchant.watch.checkpoint import attributes_of, restore, state_of
from penchant.watch.export import LookTracker
from penchant.watch.failures import Failure, Failures
from penchant.watch.families import family
from penchant.watch.hooks import Hooks
from penchant.watch.measures import Labels, Start, look_row, move_row, nuclear_row
from penchant.watch.metrics import number, shown
from penchant.watch.optimizer import RateReader, optimizer_notes
from penchant.watch.panel.choice import panel_of
from penchant.watch.panel.instrument import PanelOptions
from penchant.watch.panel.sentences import panel_sentences
from penchant.watch.postponed import Postponed, PostponedLooks
from penchant.watch.prediction import GrokkingVerdict, JumpForecast, forecast_jump, verdict
from penchant.watch.record import Log, save
from penchant.watch.regime import Regime, regime
from penchant.watch.reporting import Report, deliver, read
from penchant.watch.schedule import ASKED, Budget, LookSteps, glance_spacing

GLANCES = 32  # per decade: norm and direction alone, as many as the forecast needs
# Of the budget, for looks by their own clock. The caches of the processor are cold after a look:
# where looks took 3.6% of the time, the loop took 4.8% and 5.7% longer than without a watch.
CLOCKED = 0.7


class Watch:
    """Call it as watch(step, train_loss=..., ...), for a JAX function watch(step, parameters, ...).

    Metrics are recorded at every call. Looks at the model are taken at log-spaced steps as far as
    the budget allows (see penchant.watch.schedule); the first that does not fit is announced by a
    warning of `logging`, and some of those are taken later, by `look` or `report`, from copies of
    the parameters. Norm and direction of the parameters, from which forecasts are made, are taken
    at steps that do not depend on the time. A call returns nothing and raises nothing: an error
    becomes one sentence in `failures`, unless the watch was made with raise_errors=True.

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
        The largest share of the training time that looks may take; None is no limit.
    level
        The test accuracy at which the task counts as solved.
    points_per_decade
        The number of looks in each decade of steps.
    step
        The step at which the watch is made.
    raise_errors
        Whether an error in a call is raised.
    optimizer
        The optimizer of the training, whose learning rate and weight decay every look records.
    learning_rate
        The learning rate at a step, if there is no optimizer.
    trackers
        Trackers by name that get every look when it happens.
    hooks
        Functions of the user that are called during the run.
    panel
        The further measures that are taken at every look.
    clock
        Returns the time in seconds.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> watch = penchant.watch(lambda w, x: x @ w, np.eye(2), parameters=np.ones(2))
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
        optimizer: Any = None,
        learning_rate: Callable[[float], float] | None = None,
        trackers: dict[str, LookTracker] | None = None,
        hooks: Hooks | None = None,
        panel: PanelOptions | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        begun = clock()
        self.backend, self.weight_decay, self.first = backend, weight_decay, step
        self.level, self.optimizer, self.trackers = level, optimizer, trackers or {}
        self.rates = RateReader(optimizer, learning_rate, weight_decay)
        self.hooks, self._options = hooks or Hooks(None, None), panel or PanelOptions()
        self.changed, self._latest = "", parameters
        self._failures, self.log = Failures(raise_errors), Log(backend.names)
        self.looks = LookSteps(step, points_per_decade)
        self.glances = LookSteps(step, GLANCES)
        self.share, self.setup_seconds = budget, 0.0
        self.budget = Budget(None if budget is None else CLOCKED * budget, clock)
        self._begin(parameters, labels)
        self.setup_seconds = clock() - begun
        self.budget.restart()

    def __call__(self, step: float, parameters: Any = None, **metrics: Any) -> None:
        with self._failures.kept("call", shown(step)):
            now = self._open(step)
            self._latest = parameters
            for name, value in metrics.items():
                with self._failures.kept(f"metric {name}", now):
                    self.log.metric(name, value)
            if self.log.full:
                self.log.read(self._failures.kept)
            self._look_if_due(now, parameters)
            with self._failures.kept("copy", now), self.budget.charged("glance"):
                self.instruments.seen(now, parameters, self._next_look(now))
        self.budget.seen()

    def look(self, parameters: Any = None) -> None:
        """Take a look at the latest step, outside of schedule and budget; for the end of a run.

        Without `parameters` it uses those of the last call. Looks that did not fit into the budget
        are taken now, from copies of the parameters, at most twelve.
        """
        self._look_now(parameters)
        self._look_back()

    def __repr__(self) -> str:
        looks, calls = (
            f"{len(counted)} {name}{'' if len(counted) == 1 else 's'}"
            for counted, name in ((self.log.looks, "look"), (self.log.steps, "call"))
        )
        return f"<Watch of {self.start.parameters} parameters: {looks}, {calls}>"

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The errors so far, one sentence for each kind."""
        return tuple(self._failures)

    @property
    def should_stop(self) -> bool:
        """Whether `stop_when` has said that the training should stop."""
        return self.hooks.stopped

    def __reduce__(self) -> Any:
        """A pickle holds the record: it is read as a Report, with regime, verdict and figure."""
        return read, (self.dataset,)

    @property
    def overhead(self) -> float:
        """The time spent in looks as a share of the training time since the set-up.

        Looks that were asked for, by `look`, `report`, `figure` or `regime`, are not counted.
        """
        return self.budget.overhead

    @property
    def dataset(self) -> Any:
        """The record as an xarray.Dataset with the axes time (looks), call (metrics) and glance."""
        return self._dataset(self.log.looks)

    def _dataset(self, looks: list[dict[str, Any]]) -> Any:
        self.log.read(self._failures.kept)
        return self.log.dataset(attributes_of(self), looks)

    @property
    def regime(self) -> Regime:
        """Kernel, leaving, rich or unknown, with the evidence of the latest look.

        If a look was due since, one is taken now, and those that were postponed are taken too.
        """
        self._refresh()
        return regime(self.dataset)

    @property
    def verdict(self) -> GrokkingVerdict:
        """The kind of late change that the test curve shows: grok, in progress, mirage, ..."""
        return verdict(self.dataset)

    @property
    def forecast(self) -> JumpForecast:
        """When the test accuracy will have risen half way, predicted from the run so far."""
        return forecast_jump(self.dataset)

    @property
    def panel(self) -> dict[str, str]:
        """What each measure of `measure=` says, by its name, after a look if one is overdue."""
        self._refresh()
        return panel_sentences(self.dataset)

    def report(self, *files: str | os.PathLike[str], to: str | None = None) -> Report:
        """Take a last look, print tables and findings, write `files`, and return the report.

        A file is a record (.nc, .json) or the figure (.png, .svg). `to` is "wandb" or "mlflow",
        whose run must be open, or "tensorboard" with a log folder: report("runs/name",
        to="tensorboard"). A tracker gets only new values. An error is printed and
        recorded in `failures`, as in a call, so a report inside a training loop does not end it.
        """
        self.look()
        step = self.log.steps[-1] if self.log.steps else self.first
        guard = functools.partial(self._failures.kept, "report", step)
        live = self._dataset(self.log.rows)
        written = deliver(self.dataset, files, to, guard, self.trackers, live)
        summary = read(self.dataset, written)
        with guard():
            summary.print()
        return summary

    def figure(self) -> Any:
        """The figure of the report: curves, forecasts, regimes in time, norms, and what moved."""
        self.look()
        return read(self.dataset).figure()

    def plot(self, *names: str, x: str | None = None) -> Any:
        """The same, or the recorded numbers `names`; penchant.plot draws several runs together."""
        from penchant import plot

        return plot(self, *names, x=x)

    def _repr_html_(self) -> str:
        self._refresh()
        return read(self.dataset)._repr_html_()

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the record to `file`, .nc or .json; `penchant.load` opens it."""
        return save(self.dataset, file)

    def state_dict(self) -> dict[str, Any]:
        """The start, the record and the schedule as plain numbers, texts and arrays.

        Save it with the checkpoint of the run. It is about as large as the parameters. Arrays are
        tensors if the model is a torch module.
        """
        self.log.read(self._failures.kept)
        return state_of(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue the watch that returned `state`, with its start and its record.

        Make the watch as before, with the same probe inputs, after the saved parameters are
        loaded into the model.
        """
        restore(self, state)

    def enter(self, failures: Iterable[Failure]) -> None:
        """Add failures from before a restart."""
        for failure in failures:
            self._failures.enter(failure)

    def _begin(self, parameters: Any, labels: Callable[[int, int], Labels | None]) -> None:
        """Record the start; errors are raised here, because training has not begun."""
        backend = self.backend
        outputs = backend.outputs(parameters)
        targets = labels(len(outputs), backend.count)
        if targets is not None and backend.projected:  # random sums have no margins
            targets = dataclasses.replace(targets, classes=None, signs=None)
        self.labels = targets
        self.notes = optimizer_notes(self.optimizer, backend)
        parts = backend, parameters, targets, self.rates, self.first
        self.instruments = panel_of(self._options, *parts)
        self.notes += self.instruments.panel.notes
        self.log.axes = self.instruments.panel.axes
        self.family = family(backend, self.optimizer)
        arrays = {name: array.copy() for name, array in backend.arrays(parameters).items()}
        self.start = Start(arrays, outputs, backend.kernels(parameters))
        self.instruments.before = self.first, arrays
        backend.linearized(parameters)  # compiles it, so that the next call has the usual cost
        self.glances.spacing = glance_spacing(self.start.parameters)
        size = sum(array.nbytes for array in arrays.values())
        self.postponed = PostponedLooks(self.first, self.looks.per_decade, size)
        loud, self._failures.raising = self._failures.raising, True
        self._glance(self.first, parameters)
        self._look(self.first, parameters)
        self.log.rows[-1] |= self.forecast.row  # imports what the later forecasts need
        self._failures.raising = loud

    @door_as(WHO)
    def _open(self, step: Any) -> float:
        now = real("step", number("step", step))
        if now < self.first:
            raise Invalid(
                f"step {now:g} is before the start, step {self.first:g} (step= of the watch)"
            )
        self.log.call(now)
        return now

    def _look_if_due(self, step: float, parameters: Any) -> None:
        self.budget.seen()
        glance = self.glances.due(step)
        due = self.looks.due(step)
        look = due and self.budget.allows("look")
        if glance or due:
            self._check(parameters)
        if glance:
            with self._failures.kept("glance", step):
                self._glance(step, parameters)
        if look:
            self._look(step, parameters)
        if glance or look:
            with self.budget.charged("live"):
                self.hooks.call(self, look, functools.partial(self._failures.kept, step=step))
        if not look and due and self.postponed.steps.due(step):
            self._postpone(step, parameters)

    def _refresh(self) -> None:
        """Look now if a look is overdue, or if there was none, and take those postponed."""
        step = self.log.steps[-1] if self.log.steps else self.first
        if len(self.log.rows) == 1 or self.looks.due(step):
            self._look_now(None)
        self._look_back()

    def _look_now(self, parameters: Any) -> None:
        step = self.log.steps[-1] if self.log.steps else self.first
        if step > self.log.rows[-1]["step"]:
            with self._failures.kept("look", step):
                self._look(step, self._latest if parameters is None else parameters, ASKED)

    def _look_back(self) -> None:
        """Take the looks that were postponed."""
        for held in self.postponed.take():
            with (
                self._failures.kept("look", held.step),
                self.budget.charged(ASKED),
                self.backend.at(held.arrays) as parameters,
            ):
                begun = self.budget.clock()
                row = self._looked(held.step, parameters, held.panel)
                row |= nuclear_row(held.arrays, self.backend.out_axis) | held.row
                row["look_seconds"] = self.budget.clock() - begun
                self.log.late.append(row)

    def _looked(self, step: float, parameters: Any, held: Any = None) -> dict[str, Any]:
        """The row of a look, with the panel; `held` is what it stored if the look was postponed."""
        kept = functools.partial(self._failures.kept, step=step)
        row = look_row(self.backend, self.start, self.labels, parameters, kept)
        if not row:
            return {}
        if held is None:
            row |= self.instruments.row(step, parameters, row.get("output"), kept)
        else:
            row |= self.instruments.late(step, parameters, row.get("output"), held, kept)
        return {"step": step, **row}

    def _next_look(self, step: float) -> float | None:
        """The step of the next look, or of the next copy for one; None while neither fits."""
        ahead = [self.postponed.steps.next]
        ahead += [self.looks.next] if self.budget.allows("look") else []
        return min((due for due in ahead if due > step), default=None)

    def _postpone(self, step: float, parameters: Any) -> None:
        """Copy the parameters of a look that does not fit, and say so the first time."""
        held, kept = self.postponed, functools.partial(self._failures.kept, step=step)
        held.steps.taken(step)
        with self._failures.kept("copy", step):
            if held.most:
                with self.budget.charged("glance"):
                    live = self.backend.arrays(parameters)
                    arrays = {name: array.copy() for name, array in live.items()}
                    panel = self.instruments.keep(step, parameters, kept)
                    copy = Postponed(step, arrays, self._rates(step), panel)
                    held.keep(copy, [row["step"] for row in self.log.looks])
            if not held.note:
                needed = self.budget.needed("look") / CLOCKED
                held.note = held.skipping(step, self.budget, self.share or 0.0, needed)
                logging.getLogger(__package__).warning("%s: %s", WHO, held.note)

    def _look(self, step: float, parameters: Any, kind: str = "look") -> None:
        self.looks.taken(step)
        self.postponed.forget(step)
        self.log.read(self._failures.kept)  # waits for the device: that time belongs to training
        begun = self.budget.clock()
        with self.budget.charged(kind):
            self._check(parameters)
            row = self._looked(step, parameters)
        if row:
            row |= self._rates(step) | self._nuclear(step, parameters, kind)
            row["look_seconds"] = self.budget.clock() - begun
            self.log.rows.append(row)
            if step > self.first:
                self._publish(step, "live" if kind == "look" else kind)

    def _check(self, parameters: Any) -> None:
        """Raise an error, and store it, if the model is no longer that of the start."""
        try:
            self.backend.check(parameters)
            self.changed = ""
        except ChangedModel as reason:
            self.changed = str(reason).removeprefix(f"{WHO}: ")
            raise

    def _publish(self, step: float, kind: str) -> None:
        """Record the forecast of this step, and send the look to the trackers.

        The look of the set-up is sent together with the next one.
        """
        with self.budget.charged(kind):
            with self._failures.kept("forecast", step):
                self.log.rows[-1] |= self.forecast.row
            dataset = self._dataset(self.log.rows) if self.trackers else None
            for tracker in self.trackers.values():
                with self._failures.kept("tracker", step):
                    tracker.send(dataset)

    def _rates(self, step: float) -> dict[str, float]:
        """The rates of the optimizer."""
        with self._failures.kept("optimizer", step):
            return self.rates.row
        return {}

    def _nuclear(self, step: float, parameters: Any, kind: str) -> dict[str, Any]:
        """The nuclear norms, if they fit into the budget or were asked for."""
        if self.budget.allows("nuclear") or step == self.first or kind == ASKED:
            charge = "nuclear" if kind == "look" else kind
            with self.budget.charged(charge), self._failures.kept("nuclear norms", step):
                return nuclear_row(self.backend.arrays(parameters), self.backend.out_axis)
        return {}

    def _glance(self, step: float, parameters: Any) -> None:
        self.glances.taken(step)
        with self.budget.charged("glance"):
            row = move_row(self.start, self.backend.arrays(parameters))
            self.log.glance(step, row, self._decay_rate(step))

    def _decay_rate(self, step: float) -> float:
        with self._failures.kept("optimizer", step):
            return self.rates.decay(step)
        return self.rates.unknown
