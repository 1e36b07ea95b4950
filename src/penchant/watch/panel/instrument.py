"""What an instrument of the panel is, and the panel that holds those of a watch.

An instrument is made when the watch is, from the backend. At a look it gets a moment and returns
its numbers by name; NUMBERS says what they mean and on which axes they stand. A look that is
postponed has copies of the parameters, not of the optimizer: `keep` stores what the instrument
needs of that time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from penchant.arguments import Array, integer, one_of
from penchant.door import Invalid, door_as
from penchant.watch.backends.backend import WHO, Backend

Arrays = Mapping[str, Any]
Guard = Callable[[str], contextlib.AbstractContextManager[Any]]
Row = dict[str, Any]

MEASURES = ("edge", "activations", "updates", "noise", "balance")
NUMBERS: dict[str, tuple[tuple[str, ...], str]] = {
    "edge": (("time",), "sharpness times learning rate over the threshold of the optimizer"),
    "edge_error": (("time",), "relative residual of the eigenvector behind edge"),
    "sharpness": (("time",), "largest eigenvalue of the Hessian in the units of the optimizer"),
    "noise_scale": (("time",), "trace of the covariance of gradients over their mean squared"),
    "gradient_norm": (("time",), "norm of the gradient on the probe inputs"),
    "zero_loss": (("time",), "share of cross-entropies that are exactly zero in float32"),
    "neural_collapse": (("time",), "spread within classes over that between them (NC1)"),
    "low_rank": (("time",), "1 - alignment of the last features and the span of the outputs"),
    "unit_size": (("time", "module"), "root mean square of the outputs of a layer"),
    "unit_rank": (("time", "module"), "effective rank of the centred inputs of a layer"),
    "dead_units": (("time", "module"), "share of the inputs of a layer that are always zero"),
    "update_share": (("time", "layer"), "norm of one update over that of the array"),
    "rotation": (("time", "layer"), "angle by which one step turns the array, in degrees"),
    "effective_rate": (("time", "layer"), "learning rate over the squared norm of the array"),
    "spectral_norm": (("time", "layer"), "largest singular value"),
    "ball_share": (("time", "layer"), "norm over that of the ball to which weight decay confines"),
    "balance": (("time", "pair"), "size of what gradient flow conserves, over the squared norms"),
    "balance_drift": (("time", "pair"), "its change since the start, over the squared norms"),
}
SECONDS = {f"{name}_seconds": f"time that {name} took" for name in MEASURES}


@dataclasses.dataclass(frozen=True)
class PanelOptions:
    """What the user chose: the measures, the loss on the probe inputs and the batch size.

    `labels` are those of the probe inputs as the user gave them, for the loss.
    """

    measures: tuple[str, ...] = ()
    loss: Callable[..., Any] | None = None
    batch_size: int | None = None
    labels: Any = None


@dataclasses.dataclass(frozen=True)
class LookMoment:
    """What instruments see of a step.

    `arrays` are the parameters, which `parameters` has for the backend. `before` is an earlier
    step with its parameters, None if unknown; `outputs` those of the model, None if they failed.
    """

    step: float
    arrays: Arrays
    parameters: Any
    optimizer: Any
    rate: float
    outputs: Array | None = None
    before: tuple[float, Arrays] | None = None
    kept: Any = None  # of this instrument, for a look that was postponed


class Instrument(Protocol):
    """A measure of the panel."""

    axis: str  # an axis of its own, "module" or "pair", or ""
    members: tuple[str, ...]  # the names on it
    notes: tuple[str, ...]

    def row(self, moment: LookMoment) -> Row:
        """The numbers at a moment."""

    def keep(self, moment: LookMoment) -> Any:
        """What the instrument needs later of a look that is postponed; None for nothing."""


class InstrumentPanel:
    """The instruments of a watch by name, in the order of MEASURES."""

    def __init__(self, instruments: Mapping[str, Instrument]):
        self.instruments = dict(instruments)
        self.axes = {part.axis: part.members for part in instruments.values() if part.axis}

    @property
    def notes(self) -> list[str]:
        return [note for part in self.instruments.values() for note in part.notes]

    @property
    def steps_back(self) -> bool:
        """Whether an instrument compares a step with the one before."""
        return "updates" in self.instruments

    def row(self, moment: LookMoment, guard: Guard, kept: Mapping[str, Any] | None = None) -> Row:
        """The numbers of all instruments; each has its own guard, and its seconds."""
        row: Row = {}
        for name, instrument in self.instruments.items():
            begun = time.perf_counter()
            with guard(name), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                seen = dataclasses.replace(moment, kept=kept and kept.get(name))
                row |= instrument.row(seen)
            row[f"{name}_seconds"] = time.perf_counter() - begun
        return row

    def keep(self, moment: LookMoment, guard: Guard) -> dict[str, Any]:
        """What all instruments need later of a look that is postponed."""
        held = {}
        for name, instrument in self.instruments.items():
            with guard(name):
                held[name] = instrument.keep(moment)
        return {name: value for name, value in held.items() if value is not None}


@door_as(WHO)
def read_options(measure: Any, loss: Any, batch_size: Any, labels: Any) -> PanelOptions:
    """The options of the panel; `measure` is a name, "all" or several names."""
    names = _names(measure)
    if not (loss is None or callable(loss)):
        raise Invalid(
            f"loss must be a function of outputs and labels, such as "
            f"torch.nn.functional.cross_entropy, got {type(loss).__name__}"
        )
    size = None if batch_size is None else integer("batch_size", batch_size, least=1)
    return PanelOptions(tuple(n for n in MEASURES if n in names), loss, size, labels)


def _names(measure: Any) -> set[str]:
    if measure is None:
        return set()
    if isinstance(measure, str):
        measure = MEASURES if measure == "all" else (measure,)
    if not isinstance(measure, Iterable):
        raise Invalid(f"measure must be a name or a list of names, got {type(measure).__name__}")
    return {one_of("measure", name, MEASURES) for name in measure}


def require_torch(backend: Backend, name: str, why: str) -> Any:
    """The torch function of a backend, or an error."""
    function = getattr(backend, "function", None)
    if function is None:
        raise Invalid(f"measure={name!r} {why}, which needs a torch module")
    return function
