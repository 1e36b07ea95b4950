"""A record handed to TensorBoard, Weights & Biases or MLflow, where they are installed."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array, one_of
from tacit.watch.backend import WHO
from tacit.watch.prediction import transition, verdict
from tacit.watch.regime import regime

PREFIX = "watch"
BATCH = 500  # MLflow takes at most 1000 numbers at a time


class Curve(NamedTuple):
    """One number over the steps, without the steps at which it is not known (NaN)."""

    name: str
    steps: Array
    values: Array


def export(dataset: Any, to: str, folders: list[Path]) -> list[Path]:
    """Hands every curve of the record to the tracker `to`, and returns the folder it filled."""
    tracker = TRACKERS[one_of(WHO, "tracker", to, TRACKERS)]
    if to == "tensorboard":
        if len(folders) != 1:
            raise ValueError(
                f"{WHO}: TensorBoard needs one log folder, got {len(folders)}: "
                "watch.report('runs/name', to='tensorboard')"
            )
    elif folders:
        raise ValueError(
            f"{WHO}: {folders[0]} is no file to write (.nc, .json, .png or .svg), and {to} needs "
            "no folder"
        )
    tracker(dataset, *folders)
    return folders


def curves(dataset: Any) -> Iterator[Curve]:
    """All numbers of a record that have a step: looks, layers, glances and the metrics."""
    steps = {name: dataset[name].values for name in ("step", "call_step", "glance_step")}
    for name, variable in dataset.data_vars.items():
        values = variable.values
        if variable.dims == ("time",):
            yield _curve(f"{PREFIX}/{name}", steps["step"], values)
        elif variable.dims == ("glance",):
            yield _curve(f"{PREFIX}/{name}", steps["glance_step"], values)
        elif variable.dims == ("call",):
            yield _curve(f"{PREFIX}/metrics/{name}", steps["call_step"], values)
        elif variable.dims == ("time", "layer"):
            for layer, column in zip(dataset["layer"].values, values.T, strict=True):
                yield _curve(f"{PREFIX}/{name}/{layer}", steps["step"], column)


def findings(dataset: Any) -> dict[str, str]:
    """Regime, verdict and forecast as texts."""
    where, what = regime(dataset), verdict(dataset)
    return {
        "regime": f"{where.kind}: {where.evidence}",
        "verdict": f"{what.kind}: {what.sentence}",
        "forecast": transition(dataset).sentence,
    }


def _curve(name: str, steps: Array, values: Array) -> Curve:
    known = ~np.isnan(values)
    return Curve(name, steps[known], values[known])


def _tensorboard(dataset: Any, folder: Path) -> None:
    """An event file in `folder`, in single precision as TensorBoard keeps scalars."""
    try:
        writer = _writer(folder)
    except ImportError:
        writer = _needed("tensorboardX", "tensorboard").SummaryWriter(str(folder))
    with np.errstate(over="ignore"):  # beyond single precision is infinite
        for curve in curves(dataset):
            for step, value in zip(curve.steps, curve.values, strict=True):
                writer.add_scalar(curve.name, float(np.float32(value)), round(float(step)))
    for name, text in findings(dataset).items():
        writer.add_text(f"{PREFIX}/{name}", text)
    writer.close()


def _writer(folder: Path) -> Any:
    """The writer of the package tensorboard, by the route that PyTorch's own takes."""
    events = importlib.import_module("tensorboard.summary.writer.event_file_writer")
    proto = importlib.import_module("tensorboard.compat.proto.event_pb2")
    return EventWriter(events.EventFileWriter(str(folder)), proto.Event)


class EventWriter:
    """add_scalar, add_text and close on an EventFileWriter, so that torch is not needed."""

    def __init__(self, file: Any, event: Any):
        self.file, self.event, self.now = file, event, time.time()

    def add_scalar(self, name: str, value: float, step: int) -> None:
        event = self.event(wall_time=self.now, step=step)
        event.summary.value.add(tag=name, simple_value=value)
        self.file.add_event(event)

    def add_text(self, name: str, text: str) -> None:
        event = self.event(wall_time=self.now, step=0)
        value = event.summary.value.add(tag=f"{name}/text_summary")
        value.metadata.plugin_data.plugin_name = "text"
        value.tensor.dtype = 7  # DT_STRING
        value.tensor.tensor_shape.dim.add(size=1)
        value.tensor.string_val.append(text.encode())
        self.file.add_event(event)

    def close(self) -> None:
        self.file.close()


def _wandb(dataset: Any) -> None:
    """Into the open run, over a step of its own: a run's own steps may only grow."""
    run = _needed("wandb").run
    if run is None:
        raise ValueError(f"{WHO}: no run of W&B is open; call wandb.init(...) before the report")
    run.define_metric(f"{PREFIX}/step")
    run.define_metric(f"{PREFIX}/*", step_metric=f"{PREFIX}/step")
    rows: dict[float, dict[str, float]] = {}
    for curve in curves(dataset):
        for step, value in zip(curve.steps, curve.values, strict=True):
            rows.setdefault(float(step), {})[curve.name] = float(value)
    for step in sorted(rows):
        run.log({f"{PREFIX}/step": step, **rows[step]})
    for name, text in findings(dataset).items():
        run.summary[f"{PREFIX}/{name}"] = text


def _mlflow(dataset: Any) -> None:
    """Into the active run; MLflow keeps whole steps."""
    mlflow = _needed("mlflow")
    run = mlflow.active_run()
    if run is None:
        raise ValueError(
            f"{WHO}: no run of MLflow is active; put the report inside `with mlflow.start_run():`"
        )
    client, entities = mlflow.MlflowClient(), importlib.import_module("mlflow.entities")
    now = round(1000 * time.time())
    numbers = [
        entities.Metric(curve.name, float(value), now, round(float(step)))
        for curve in curves(dataset)
        for step, value in zip(curve.steps, curve.values, strict=True)
    ]
    for place in range(0, len(numbers), BATCH):
        client.log_batch(run.info.run_id, metrics=numbers[place : place + BATCH])
    for name, text in findings(dataset).items():
        mlflow.set_tag(f"{PREFIX}.{name}", text)


def _needed(package: str, extra: str | None = None) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        wanted = extra or package
        raise ImportError(
            f"{WHO}: to='{wanted}' needs the package {wanted}: pip install 'tacit[{wanted}]'"
        ) from None


TRACKERS: dict[str, Callable[..., None]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
}
