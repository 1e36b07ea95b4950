"""What the watch needs from a model of any library."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from typing import Any, Protocol

from penchant.arguments import Array, integer
from penchant.door import Invalid, door_as
from penchant.measures.kernels.layers import layer_groups
from penchant.measures.kernels.outputs import MANY, Output

WHO = "watch"
ROOM = 2**26  # bytes of the kernels of single layers


class ChangedModel(ValueError):
    """The model differs from that of the start: layers were replaced, frozen or resized."""


@dataclasses.dataclass(frozen=True)
class LookOptions:
    """How a model is looked at: which outputs, how many random sums, and the warm batch."""

    output: str | int | Callable[[Any], Any] | None = None
    projections: int | None = 32
    warm_batch: Any = None
    batch_axis: int = 0

    @door_as(WHO)
    def __post_init__(self) -> None:
        chosen = self.output
        if isinstance(chosen, int):
            integer("output", chosen, least=0)
        elif not (chosen is None or isinstance(chosen, str) or callable(chosen)):
            raise Invalid(
                f"output must be a name, an index or a function of what the model returns, "
                f"got {type(chosen).__name__}"
            )
        if self.projections is not None:
            integer("projections", self.projections, least=2)
        integer("batch_axis", self.batch_axis, least=0)

    def reader(self) -> Output:
        """What reads the outputs from the return value of the model."""
        return Output(self.output, self.batch_axis)

    def index(self, reader: Output, count: int) -> int | None:
        """The one of `count` outputs that is looked at, after a run of the model; None for all.

        A number is the index of an output, unless the model returns a tuple: then of its part.
        """
        if not isinstance(self.output, int) or reader.parted:
            return None
        if self.output >= count:
            raise Invalid(f"outputs must be below {count}, their number, got {self.output}")
        return self.output

    def sums(self, reader: Output, count: int) -> int | None:
        """The number of random sums that replace `count` outputs; None if all are taken."""
        every = self.index(reader, count) is None
        return self.projections if every and count > MANY else None


def projection_note(shape: tuple[int, ...], count: int, error: float) -> str:
    """The note about random sums in a report."""
    size = math.prod(shape)
    axes = f" ({' x '.join(map(str, shape))})" if len(shape) > 1 else ""
    return (
        f"the model returns {size} numbers per sample{axes}, which {count} random sums of them "
        f"replace: the kernel has a standard error of {error:.2g} of its size, and there are no "
        "margins; projections= sets the number of sums, output= picks fewer numbers"
    )


def layers_of(names: tuple[str, ...], samples: int) -> tuple[int, ...]:
    """The number of the group of every array, counted from 0; memory limits the groups."""
    groups = layer_groups(names, max(1, ROOM // (8 * samples**2)))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    return tuple(numbers[name] for name in groups)


def groups_note(names: tuple[str, ...], groups: tuple[int, ...]) -> tuple[str, ...]:
    """The note in a report if arrays share a kernel."""
    count = max(groups) + 1
    if count == len(names):
        return ()
    return (
        f"the {len(names)} parameter arrays are in {count} groups by their modules, and those of a "
        "group have one layer_distance, since a kernel of every array would take too much memory",
    )


class Backend(Protocol):
    """A model on fixed probe inputs, which stores the parameters of its creation as the start.

    `params` is what the caller passed at a step; a backend that reads a live module ignores it.
    No method changes the model, its gradients, its buffers or any random state.
    """

    names: tuple[str, ...]  # of the trained parameter arrays, shared ones once
    groups: tuple[int, ...]  # for every name the number of its kernel among `kernels`
    out_axis: int  # of arrays with more than two axes, the one that counts the outputs of a layer
    notes: tuple[str, ...]  # notes for the report on how the model is used
    count: int  # numbers that the model returns per sample
    projected: bool  # whether random sums replace them in `outputs`
    digest: str  # of the probe inputs

    def check(self, params: Any) -> None:
        """Raise an error unless the parameters have the structure of the start."""

    def arrays(self, params: Any) -> dict[str, Any]:
        """The trained parameters by name, float32 or float64; they may be views of live ones."""

    def at(self, arrays: dict[str, Any]) -> contextlib.AbstractContextManager[Any]:
        """A context in which the model is looked at with these trained parameters.

        It gives the `params` of the other methods.
        """

    def state(self) -> dict[str, Any]:
        """The state that no optimizer changes, by name; every look uses it."""

    def restore(self, start: dict[str, Any], state: dict[str, Any]) -> None:
        """Replace the start and its state."""

    def outputs(self, params: Any) -> Array:
        """f on the probe inputs, (samples, outputs)."""

    def kernels(self, params: Any) -> Array:
        """The tangent kernel on the probe inputs by groups of parameters, whose sum it is,
        (groups, samples, samples).
        """

    def linearized(self, params: Any) -> Array:
        """f0 + J0 (theta - theta0), the prediction of the model linearized at the start."""
