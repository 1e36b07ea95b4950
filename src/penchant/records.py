"""Frozen records that print as a table in a terminal and in a notebook, and numerical outcomes."""

from __future__ import annotations

import dataclasses
import enum
import html
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from penchant.description import call, shown
from penchant.door import Nameless, door
from penchant.equality import equal_fields, hash_fields
from penchant.suggestions import NamedArguments

MOST = 8  # names of a list that are all written out


class Kind(enum.Enum):
    """How a computation ended; everything but SOLVED and NOT_UNIQUE is a failure."""

    SOLVED = "solved"
    NOT_UNIQUE = "not unique"
    APPROXIMATE = "approximate"  # an answer whose certified error misses the tolerance
    STALLED = "stalled"
    BUDGET_SPENT = "budget spent"
    INFEASIBLE = "infeasible"
    DIVERGED = "diverged"
    OUT_OF_RANGE = "out of range"
    INTERRUPTED = "interrupted"  # by Ctrl-C


@dataclasses.dataclass(frozen=True, repr=False)
class Outcome(NamedArguments):
    """The end of a computation: its kind and one sentence that says what happened.

    Parameters
    ----------
    kind
        A penchant.records.Kind: everything but SOLVED and NOT_UNIQUE is a failure.
    sentence
        What happened.

    Examples
    --------
    >>> import penchant
    >>> outcome = penchant.interpolate([[1.0, 2.0]], [2.0], penchant.L1()).outcome
    >>> outcome.ok, outcome.kind.value
    (True, 'solved')
    """

    kind: Kind
    sentence: str

    @property
    def ok(self) -> bool:
        return self.kind in (Kind.SOLVED, Kind.NOT_UNIQUE)

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.sentence}"

    __repr__ = call


class NumericalError(RuntimeError):
    """A single call that failed numerically; a sweep records `outcome` and continues instead.

    Parameters
    ----------
    caller
        The function that complains.
    outcome
        How the computation ended.
    result
        What there is in spite of it, such as the path of a run.

    Examples
    --------
    >>> import penchant
    >>> outcome = penchant.Outcome(penchant.records.Kind.STALLED, "no step decreases the loss")
    >>> str(penchant.NumericalError("interpolate", outcome))
    'interpolate: stalled: no step decreases the loss'
    """

    def __init__(self, caller: str, outcome: Outcome, result: Any = None):
        super().__init__(f"{caller}: {outcome}")
        self.outcome, self.result = outcome, result


class Unsolved(Nameless, NumericalError):
    """A numerical failure far inside, which gets its name at the door."""

    def __init__(self, outcome: Outcome, result: Any = None):
        RuntimeError.__init__(self, str(outcome))
        self.outcome, self.result = outcome, result

    def named(self, caller: str) -> NumericalError:
        """The error that a user sees: it begins with the name of the caller."""
        return NumericalError(caller, self.outcome, self.result)


def brief(value: Any) -> str:
    """One short line for any field of a record."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray):
        if value.size <= 6:
            return np.array2string(value, precision=4, separator=", ")
        return f"array {value.shape}, from {value.min():.4g} to {value.max():.4g}"
    if isinstance(value, dict):
        return "; ".join(f"{k}: {brief(v)}" for k, v in value.items())
    if isinstance(value, tuple | list):
        if len(value) > MOST and all(isinstance(v, str) for v in value):
            return f"{', '.join(value[: MOST - 2])}, ..., {value[-1]} ({len(value)} names)"
        return ", ".join(brief(v) for v in value)
    text = str(value)
    return shown(value) if " at 0x" in text else text


def text_table(title: str, rows: list[tuple[str, str]]) -> str:
    """Names and texts in two aligned columns under a title."""
    width = max(len(name) for name, _ in rows)
    return "\n".join([title, *(f"  {name:<{width}}  {text}" for name, text in rows)])


def html_table(title: str, rows: list[tuple[str, str]]) -> str:
    """Names and texts in two columns under a title, for a notebook."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in rows
    )
    return f"<table><caption>{html.escape(title)}</caption>{cells}</table>"


class Record(NamedArguments):
    """Base of frozen dataclasses: `repr` is a call, `str` an aligned table, notebooks get HTML.

    Records made with the same arguments are equal; if fields hold arrays, `eq=False` in the
    dataclass leaves equality to this class.

    Its description is made of the arguments of its class, unless a function has left its own call
    as the `recipe`. `stored_as` names the fields of arguments that are stored under another name,
    `implied` the arguments that follow from one that was given, `called` the class that a user
    calls where that is not this one.
    """

    recipe: ClassVar[Mapping[str, Any] | None] = None  # of an object, where a function made it
    stored_as: ClassVar[Mapping[str, str]] = {}
    implied: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    called: ClassVar[str | None] = None

    def rows(self) -> list[tuple[str, str]]:
        """(name, short text) for every field, in order."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return [(f.name, brief(getattr(self, f.name))) for f in fields if f.repr]

    __repr__ = call
    __eq__ = equal_fields
    __hash__ = hash_fields

    def __str__(self) -> str:
        return text_table(type(self).__name__, self.rows())

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self.rows())


def assign(record: Any, **fields: Any) -> None:
    """Sets fields of a frozen record, while it is made."""
    for name, value in fields.items():
        object.__setattr__(record, name, value)


Checks = Mapping[str, Callable[[str, Any], Any]]


class Checked(Record):
    """A record whose fields are checked when it is made, and replaced by what the checks return.

    A check is a function of the name of the field and its value.
    """

    checks: ClassVar[Checks] = {}

    @door
    def __post_init__(self) -> None:
        for kind in reversed(type(self).__mro__):
            for name, check in vars(kind).get("checks", {}).items():
                value = check(name, getattr(self, name))
                object.__setattr__(self, name, value)
