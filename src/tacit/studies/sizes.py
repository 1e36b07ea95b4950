"""One study at several sizes, written once: what differs from "quick" is all that is repeated."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, get_args

from tacit.arguments import one_of
from tacit.records import Record
from tacit.studies.forms import merged
from tacit.studies.study import Study

Size = Literal["tiny", "quick", "standard", "full"]
SIZES: tuple[Size, ...] = get_args(Size)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Sizes(Record):
    """A study at the sizes "tiny" (for the tests), "quick", "standard" and "full".

    `sized` makes it.
    """

    name: str
    quick: Mapping[str, Any]
    others: Mapping[str, Mapping[str, Any]]

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that are described apart."""
        return ("quick", *self.others)

    def at(self, size: str = "quick") -> Study:
        """The study at one size; one that is not described apart is the quick one."""
        one_of(self.name, "size", size, SIZES)
        own = self.others.get(size)
        name = self.name if own is None else f"{self.name}-{size}"
        return Study(name=name, source=name, **merged(self.quick, own or {}))


def sized(
    name: str,
    *,
    tiny: Mapping[str, Any] | None = None,
    standard: Mapping[str, Any] | None = None,
    full: Mapping[str, Any] | None = None,
    **quick: Any,
) -> Sizes:
    """A study in the words of `Study`; the other sizes replace single keys of it."""
    given = {"tiny": tiny, "standard": standard, "full": full}
    return Sizes(name, quick, {size: own for size, own in given.items() if own is not None})
