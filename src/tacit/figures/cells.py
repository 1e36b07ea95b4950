"""Cells of studies: one run behind a figure, called by the names of its parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tacit.figures.registry import Parameters
from tacit.studies.compute import TRAJECTORY

if TYPE_CHECKING:
    import xarray

Values = dict[str, Any]
Decorator = Callable[[Callable[[Parameters], Values]], Callable[..., Values]]


def cell_of(*names: Iterable[str] | str, **defaults: Any) -> Decorator:
    """A decorator: `names`, single ones or the keys of a preset, become arguments by keyword.

    A study checks its keys against a signature before it runs, so the signature has to tell them.
    """
    flat = [n for given in names for n in ([given] if isinstance(given, str) else given)]
    kind, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    signature = inspect.Signature(
        [
            inspect.Parameter(n, kind, default=defaults.get(n, empty))
            for n in dict.fromkeys([*flat, *defaults])
        ]
    )

    def decorate(inner: Callable[[Parameters], Values]) -> Callable[..., Values]:
        @functools.wraps(inner)
        def call(**given: Any) -> Values:
            bound = signature.bind(**given)
            bound.apply_defaults()
            return inner(bound.arguments)

        call.__dict__["__signature__"] = signature
        return call

    return decorate


def without(preset: Parameters, *names: str) -> list[str]:
    """The parameters of a preset but those that a cell takes one of, or does not need."""
    return [name for name in preset if name not in names]


def values_of(run: xarray.Dataset, time: str = "time") -> Values:
    """The variables of a run by name; those along `time` are curves, trajectory_NAME."""
    return {
        f"{TRAJECTORY if variable.dims == (time,) else ''}{name}": variable.values
        for name, variable in run.variables.items()
    }


def as_curves(found: Values, *names: str) -> Values:
    """The same values, those of `names` as curves of a cell."""
    return {f"{TRAJECTORY if name in names else ''}{name}": value for name, value in found.items()}
