"""Sending a record to TensorBoard, Weights & Biases, MLflow or trackio, if they are installed.

penchant.watch(model, x, to="wandb")                          every look when it happens
penchant.watch(model, x, to=("tensorboard", "runs/watch"))
watch.report(to="mlflow")                                  what is new since, and the findings
"""

from __future__ import annotations

import abc
import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from penchant.arguments import Array, one_of
from penchant.door import Invalid, door_as
from penchant.watch.backends.backend import WHO
from penchant.watch.prediction import GrokkingVerdict, JumpForecast, forecast_jump, verdict
from penchant.watch.regime import Regime, regime

PREFIX = "watch"
BATCH = 500  # MLflow takes at most 1000 numbers at a time


class StepCurve(NamedTuple):
    """One number over the steps, without the steps at which it is NaN."""

    name: str
    steps: Array
    values: Array


class LookTracker(abc.ABC):
    """A place to which a record is sent look by look, each number once."""

    def __init__(self) -> None:
        self.sent: dict[str, int] = {}  # how many values of every curve were sent

    def send(self, dataset: Any) -> None:
        """Send the part of the record that is new."""
        new = []
        for curve in curves(dataset):
            known = self.sent.get(curve.name, 0)
            if len(curve.steps) > known:
                new.append(StepCurve(curve.name, curve.steps[known:], curve.values[known:]))
        if new:
            self.numbers(new)
        for curve in new:
            self.sent[curve.name] = self.sent.get(curve.name, 0) + len(curve.steps)

    def finish(self, dataset: Any) -> None:
        """Send the rest of the record, and its findings as texts."""
        self.send(dataset)
        step = float(dataset["step"].values[-1])
        self.texts({f"{PREFIX}/{name}": text for name, text in findings(dataset).items()}, step)

    @abc.abstractmethod
    def numbers(self, new: list[StepCurve]) -> None:
        """Send new parts of curves, each over its own steps."""

    @abc.abstractmethod
    def texts(self, sentences: dict[str, str], step: float) -> None:
        """Send the findings at `step`."""


def trackers_for(to: Any) -> dict[str, LookTracker]:
    """Trackers by name, from "wandb", "mlflow", ("tensorboard", folder) or a list of these."""
    trackers = {}
    for place in to if isinstance(to, list) else [] if to is None else [to]:
        name, *folders = [place] if isinstance(place, str) else list(place)
        key, tracker = tracker_for(name, [Path(folder) for folder in folders])
        trackers[key] = tracker
    return trackers


@door_as(WHO)
def tracker_for(to: str, folders: list[Path]) -> tuple[str, LookTracker]:
    """A tracker and its name, which contains the log folder of TensorBoard."""
    kind = TRACKERS[one_of("tracker", to, TRACKERS)]
    if to == "tensorboard":
        if len(folders) != 1:
            raise Invalid(
                f"TensorBoard needs one log folder, got {len(folders)}: "
                "penchant.watch(..., to=('tensorboard', 'runs/name')) or "
                "watch.report('runs/name', to='tensorboard')"
            )
    elif folders:
        raise Invalid(
            f"{folders[0]} is not a file to write (.nc, .json, .png or .svg), and {to} "
            "needs no folder"
        )
    return " ".join([to, *map(str, folders)]), kind(*folders)


def curves(dataset: Any) -> Iterator[StepCurve]:
    """All numbers of a record that have a step: looks, layers, glances and metrics."""
    steps = {name: dataset[name].values for name in ("step", "call_step", "glance_step")}
    for name, variable in dataset.data_vars.items():
        values = variable.values
        if variable.dims == ("time",):
            yield _curve(f"{PREFIX}/{name}", steps["step"], values)
        elif variable.dims == ("glance",):
            yield _curve(f"{PREFIX}/{name}", steps["glance_step"], values)
        elif variable.dims == ("call",):
            yield _curve(f"{PREFIX}/metrics/{name}", steps["call_step"], values)
        elif variable.dims[1:] in (("layer",), ("module",), ("pair",)):
            for layer, column in zip(dataset[variable.dims[1]].values, values.T, strict=True):
                yield _curve(f"{PREFIX}/{name}/{layer}", steps["step"], column)


Read = tuple[Regime, GrokkingVerdict, JumpForecast]


def findings(dataset: Any, known: Read | None = None) -> dict[str, str]:
    """Regime, verdict and forecast as texts, if `known` not read again; each contains its step."""
    where, what, then = known or (regime(dataset), verdict(dataset), forecast_jump(dataset))
    step = float(max(dataset[name].values.max(initial=0.0) for name in ("call_step", "step")))
    return {
        "regime": f"{where.kind}: {where.evidence}",
        "verdict": f"{what.kind}: {what.sentence}",
        "forecast": f"{then.state} (at step {step:g}): {then.sentence}",
    }


def _curve(name: str, steps: Array, values: Array) -> StepCurve:
    known = ~np.isnan(values)
    return StepCurve(name, steps[known], values[known])


class TensorBoard(LookTracker):
    """An event file in `folder`, in single precision, in which TensorBoard stores scalars."""

    def __init__(self, folder: Path):
        super().__init__()
        self.folder = folder
        self.writer: Any = None

    def opened(self) -> Any:
        if self.writer is None:
            try:
                self.writer = _writer(self.folder)
            except ImportError:
                room = _needed("tensorboardX", "tensorboard")
                self.writer = room.SummaryWriter(str(self.folder))
        return self.writer

    def numbers(self, new: list[StepCurve]) -> None:
        writer = self.opened()
        with np.errstate(over="ignore"):  # numbers beyond single precision become infinite
            for curve in new:
                for step, value in zip(curve.steps, curve.values, strict=True):
                    writer.add_scalar(curve.name, float(np.float32(value)), round(float(step)))
        writer.flush()

    def texts(self, sentences: dict[str, str], step: float) -> None:
        writer = self.opened()
        for name, text in sentences.items():
            writer.add_text(name, text, round(step))
        writer.close()
        self.writer = None


def _writer(folder: Path) -> Any:
    """The writer of the package tensorboard, used as in PyTorch's own SummaryWriter."""
    events = importlib.import_module("tensorboard.summary.writer.event_file_writer")
    proto = importlib.import_module("tensorboard.compat.proto.event_pb2")
    return EventWriter(events.EventFileWriter(str(folder)), proto.Event)


class EventWriter:
    """add_scalar, add_text, flush and close for an EventFileWriter, without torch."""

    def __init__(self, file: Any, event: Any):
        self.file, self.event = file, event

    def add_scalar(self, name: str, value: float, step: int) -> None:
        event = self.event(wall_time=time.time(), step=step)
        event.summary.value.add(tag=name, simple_value=value)
        self.file.add_event(event)

    def add_text(self, name: str, text: str, step: int) -> None:
        event = self.event(wall_time=time.time(), step=step)
        value = event.summary.value.add(tag=f"{name}/text_summary")
        value.metadata.plugin_data.plugin_name = "text"
        value.tensor.dtype = 7  # DT_STRING
        value.tensor.tensor_shape.dim.add(size=1)
        value.tensor.string_val.append(text.encode())
        self.file.add_event(event)

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        self.file.close()


class Wandb(LookTracker):
    """A separate run in the group of the open one, with its id and "-watch".

    The steps of a run can only grow, and W&B drops rows below the last step. Rows of the watch in
    the user's run could therefore make W&B drop rows of the user.
    """

    run: Any = None

    def opened(self) -> Any:
        if self.run is None:
            room = _needed("wandb")
            theirs = room.run
            if theirs is None:
                raise ValueError(
                    f"{WHO}: no run of W&B is open; call wandb.init(...) before the first look"
                )
            self.run = room.init(
                project=theirs.project,
                entity=theirs.entity,
                group=theirs.group or theirs.id,
                id=f"{theirs.id}-watch",
                name=f"{theirs.name or theirs.id} watch",
                dir=theirs.settings.root_dir,
                mode=theirs.settings.mode,
                job_type="watch",
                resume=None if theirs.settings.mode == "offline" else "allow",
                reinit="create_new",
            )
            self.run.define_metric(f"{PREFIX}/step")
            self.run.define_metric(f"{PREFIX}/*", step_metric=f"{PREFIX}/step")
        return self.run

    def numbers(self, new: list[StepCurve]) -> None:
        run = self.opened()
        for step, row in rows_of(new):
            run.log({f"{PREFIX}/step": step, **row})

    def texts(self, sentences: dict[str, str], step: float) -> None:
        self.opened().summary.update(sentences)


class MLflow(LookTracker):
    """The active run, in which every metric has its own steps; MLflow stores whole steps."""

    def active(self) -> Any:
        run = _needed("mlflow").active_run()
        if run is None:
            raise ValueError(
                f"{WHO}: no run of MLflow is active; put the training inside `with "
                "mlflow.start_run():`"
            )
        return run

    def numbers(self, new: list[StepCurve]) -> None:
        run, client = self.active(), _needed("mlflow").MlflowClient()
        entities, now = importlib.import_module("mlflow.entities"), round(1000 * time.time())
        numbers = [
            entities.Metric(curve.name, float(value), now, round(float(step)))
            for curve in new
            for step, value in zip(curve.steps, curve.values, strict=True)
        ]
        for place in range(0, len(numbers), BATCH):
            client.log_batch(run.info.run_id, metrics=numbers[place : place + BATCH])

    def texts(self, sentences: dict[str, str], step: float) -> None:
        self.active()
        for name, text in sentences.items():
            _needed("mlflow").set_tag(name.replace("/", "."), text)


class Trackio(LookTracker):
    """The open run, in which every row has its own step: trackio takes rows in any order."""

    def numbers(self, new: list[StepCurve]) -> None:
        for step, row in rows_of(new):
            self._log(row, step)

    def texts(self, sentences: dict[str, str], step: float) -> None:
        self._log(dict(sentences), step)

    def _log(self, row: Mapping[str, Any], step: float) -> None:
        try:
            _needed("trackio").log(dict(row), step=round(step))
        except RuntimeError:
            raise ValueError(
                f"{WHO}: no run of trackio is open; call trackio.init(...) before the first look"
            ) from None


def rows_of(new: list[StepCurve]) -> list[tuple[float, dict[str, float]]]:
    """The numbers of several curves by their steps, in order."""
    rows: dict[float, dict[str, float]] = {}
    for curve in new:
        for step, value in zip(curve.steps, curve.values, strict=True):
            rows.setdefault(float(step), {})[curve.name] = float(value)
    return sorted(rows.items())


def _needed(package: str, extra: str | None = None) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        wanted = extra or package
        raise ImportError(
            f"{WHO}: to='{wanted}' needs the package {wanted}: pip install 'penchant[{wanted}]'"
        ) from None


TRACKERS: dict[str, Callable[..., LookTracker]] = {
    "tensorboard": TensorBoard,
    "wandb": Wandb,
    "mlflow": MLflow,
    "trackio": Trackio,
}
