"""A watch as a dict of numbers, texts and arrays, and back; a resumed run keeps its start."""

from __future__ import annotations

import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.watch.backends.backend import WHO
from penchant.watch.failures import Failure
from penchant.watch.measures import Start
from penchant.watch.record import GLANCES, Log

if TYPE_CHECKING:
    from penchant.watch.watcher import Watch

FORMAT = 2


def attributes_of(watch: Watch) -> dict[str, Any]:
    """What the record says of the whole run."""
    postponed = filter(None, [watch.postponed.note])
    return {
        "weight_decay": watch.weight_decay,
        "start_step": watch.first,
        "parameters": watch.start.parameters,
        "setup_seconds": watch.setup_seconds,
        "look_seconds": watch.budget.spent,
        "asked_seconds": watch.budget.asked,
        "training_seconds": watch.budget.training,
        "budget": watch.share,
        "level": watch.level,
        "changed": watch.changed,
        **watch.family,
        "notes": [*watch.backend.notes, *watch.notes, *postponed],
        "failures": _failures(watch),
    }


def _failures(watch: Watch) -> list[list[Any]]:
    return [[f.kind, f.step, f.count, f.sentence] for f in watch.failures]


def state_of(watch: Watch) -> dict[str, Any]:
    """Start, record, schedule and costs; arrays are tensors if the model is a torch module."""
    start, backend = watch.start, watch.backend
    return _converted(
        {
            "format": FORMAT,
            "probe_inputs": backend.digest,
            "first": watch.first,
            "weight_decay": watch.weight_decay,
            "start": {
                "arrays": start.arrays,
                "outputs": start.outputs,
                "kernels": start.kernels,
                "state": backend.state(),
            },
            "log": _of_log(watch.log),
            "schedule": [watch.looks.next, watch.glances.next],
            "budget": watch.budget.state(),
            "setup_seconds": watch.setup_seconds,
            "failures": _failures(watch),
            "sent": {key: dict(tracker.sent) for key, tracker in watch.trackers.items()},
        },
        _tensors(backend),
    )


def restore(watch: Watch, state: Mapping[str, Any]) -> None:
    """Restore `watch` from `state`."""
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        raise ValueError(
            f"{WHO}: this is not the state of a watch; pass what state_dict() returned"
        )
    held = _converted(dict(state), np.asarray)
    origin = held["start"]
    _require_same(watch, held, origin["arrays"])
    watch.backend.restore(origin["arrays"], origin["state"])
    watch.start = Start(origin["arrays"], origin["outputs"], origin["kernels"])
    watch.first, watch.weight_decay = held["first"], held["weight_decay"]
    axes, watch.log = watch.log.axes, _to_log(watch.log.names, held["log"])
    watch.log.axes = axes
    for steps, ahead in zip((watch.looks, watch.glances), held["schedule"], strict=True):
        steps.start, steps.next = watch.first, ahead
    watch.budget.restore(held["budget"])
    watch.setup_seconds = held["setup_seconds"]
    watch.enter([Failure(kind, step, text, n) for kind, step, n, text in held["failures"]])
    for key, sent in held["sent"].items():
        if key in watch.trackers:
            watch.trackers[key].sent = dict(sent)


def _require_same(watch: Watch, held: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Raise an error unless the state belongs to this model and these probe inputs."""
    known = {name: value.shape for name, value in watch.start.arrays.items()}
    given = {name: value.shape for name, value in arrays.items()}
    if known != given:
        names = [n for n in {**known, **given} if known.get(n) != given.get(n)]
        raise ValueError(
            f"{WHO}: the state belongs to another model (different: {', '.join(names[:3])}); start "
            "a new watch"
        )
    if held["probe_inputs"] != watch.backend.digest:
        raise ValueError(
            f"{WHO}: the probe inputs are not those of the state, so the kernels cannot be compared"
            "; make the watch with the same probe inputs"
        )


def _of_log(log: Log) -> dict[str, Any]:
    metrics = {
        name: [np.array(places), np.array(values)] for name, (places, values) in log.metrics.items()
    }
    rows, late = (
        [{k: v if isinstance(v, np.ndarray) else float(v) for k, v in row.items()} for row in part]
        for part in (log.rows, log.late)
    )
    glances = np.array(log.glances, dtype=np.float64).reshape(-1, 1 + len(GLANCES))
    steps = np.array(log.steps)
    return {"steps": steps, "metrics": metrics, "rows": rows, "late": late, "glances": glances}


def _to_log(names: tuple[str, ...], held: dict[str, Any]) -> Log:
    log = Log(names)
    log.steps = array.array("d", held["steps"].tolist())
    for name, (places, values) in held["metrics"].items():
        pair = array.array("q", places.tolist()), array.array("d", values.tolist())
        log.metrics[name] = pair
    log.rows, log.late = ([dict(row) for row in held.get(part, [])] for part in ("rows", "late"))
    log.glances = [(*row,) for row in held["glances"].tolist()]
    return log


def _tensors(backend: Any) -> Any:
    """How arrays are stored: as tensors, which torch.load reads with weights_only, or as arrays."""
    if not hasattr(backend, "function"):
        return np.array
    import torch

    return lambda value: torch.as_tensor(value).detach().clone()


def _converted(tree: Any, change: Any) -> Any:
    if isinstance(tree, Mapping):
        return {key: _converted(part, change) for key, part in tree.items()}
    if isinstance(tree, list | tuple):
        return [_converted(part, change) for part in tree]
    return change(tree) if hasattr(tree, "shape") else tree
