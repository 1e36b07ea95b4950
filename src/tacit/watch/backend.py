"""What the watch needs of a model, whichever library it is written in."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Protocol

from tacit.arguments import Array, integer
from tacit.measures.kernels.layers import layer_groups
from tacit.measures.kernels.outputs import MANY

WHO = "watch"
ROOM = 2**26  # bytes of the kernels of single layers


class ChangedModel(ValueError):
    """The model is not built as at the start any more: layers were replaced, frozen or resized."""


@dataclasses.dataclass(frozen=True)
class Look:
    """How a model is looked at: which outputs, how many random sums of many, which batch warms."""

    output: str | int | Callable[[Any], Any] | None = None
    projections: int | None = 32
    warm_batch: Any = None

    def __post_init__(self) -> None:
        chosen = self.output
        if isinstance(chosen, int):
            integer(WHO, "output", chosen, least=0)
        elif not (chosen is None or isinstance(chosen, str) or callable(chosen)):
            raise ValueError(
                f"{WHO}: output must be a name, an index or a function of what the model returns, "
                f"got {type(chosen).__name__}"
            )
        if self.projections is not None:
            integer(WHO, "projections", self.projections, least=2)

    @property
    def name(self) -> Any:
        """A name or a function, None for all outputs or one by its index."""
        return None if isinstance(self.output, int) else self.output

    @property
    def index(self) -> int | None:
        return self.output if isinstance(self.output, int) else None

    @property
    def asked(self) -> str | int:
        """The outputs of the kernel, as in tangent_kernel."""
        return "mean" if self.index is None else self.index

    def sums(self, count: int) -> int | None:
        """The number of random sums that stand for so many outputs, None if they are all taken."""
        return self.projections if self.index is None and count > MANY else None


def projection_note(shape: tuple[int, ...], count: int, error: float) -> str:
    """What is said about random sums in a report."""
    size = math.prod(shape)
    axes = f" ({' x '.join(map(str, shape))})" if len(shape) > 1 else ""
    return (
        f"the model returns {size} numbers per sample{axes}, for which {count} random sums of them "
        f"stand: the kernel has a standard error of {error:.2g} of its size, and there are no "
        "margins; projections= sets the number of sums, output= picks fewer numbers"
    )


def layers_of(names: tuple[str, ...], samples: int) -> tuple[int, ...]:
    """The number of the group of every array, from 0 on: as many kernels as there is room for."""
    found = layer_groups(names, max(1, ROOM // (8 * samples**2)))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(found))}
    return tuple(numbers[name] for name in found)


def groups_note(names: tuple[str, ...], groups: tuple[int, ...]) -> tuple[str, ...]:
    """What is said in a report about layers that have no kernel of their own."""
    count = max(groups) + 1
    if count == len(names):
        return ()
    return (
        f"the {len(names)} parameter arrays are in {count} groups by their modules, and those of a "
        "group have one layer_distance, since a kernel of every array would take too much memory",
    )


class Backend(Protocol):
    """A model on fixed probe inputs; it keeps the parameters that it was made with, the start.

    `params` is what the caller passed at a step; a backend that reads a live module ignores it.
    No method changes the model, its gradients, its buffers or any random state.
    """

    names: tuple[str, ...]  # of the trained parameter arrays, shared ones once
    groups: tuple[int, ...]  # for every name the number of its kernel among `kernels`
    out_axis: int  # of arrays with more than two axes, the one that counts the outputs of a layer
    notes: tuple[str, ...]  # what the caller should know about how the model is looked at
    count: int  # numbers that the model returns per sample
    projected: bool  # whether random sums stand for them in `outputs`
    digest: str  # of the probe inputs

    def check(self, params: Any) -> None:
        """Complains in one sentence unless the parameters are built as at the start."""

    def arrays(self, params: Any) -> dict[str, Any]:
        """The trained parameters by name, float32 or float64; they may be views of live ones."""

    def state(self) -> dict[str, Any]:
        """What no optimizer moves, by name, as it is held at every look."""

    def restore(self, start: dict[str, Any], state: dict[str, Any]) -> None:
        """Takes another start, and the state held with it."""

    def outputs(self, params: Any) -> Array:
        """f on the probe inputs, (samples, outputs)."""

    def kernels(self, params: Any) -> Array:
        """The tangent kernel on the probe inputs by groups of parameters, whose sum it is,
        (groups, samples, samples).
        """

    def linearized(self, params: Any) -> Array:
        """f0 + J0 (theta - theta0), the prediction of the model linearized at the start."""
