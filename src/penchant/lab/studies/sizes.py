"""One study at several sizes: each size lists only its differences from "quick"."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from penchant.arguments import one_of, text
from penchant.door import Invalid, door, door_as
from penchant.lab.studies.cells import SPACES
from penchant.lab.studies.study import Study
from penchant.records import Record

FORMS = "forms"
QUICK = "quick"
WHOLE = (*SPACES, "is")


@door_as(str)
def formed(source: str, table: Mapping[str, Any], form: str, keys: Iterable[str]) -> dict[str, Any]:
    """The table of a study in one of its forms; `keys` are those that a study may have."""
    forms = read_forms(source, table, [key for key in keys if key != "name"])
    plain = {key: value for key, value in table.items() if key != FORMS}
    if form == QUICK:
        return plain
    one_of("form", form, (QUICK, *forms))
    return {**merged(plain, forms[form]), "name": f"{table['name']}-{form}"}


@door_as(str)
def read_forms(source: str, table: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The forms other than "quick", with known keys."""
    forms, known = table.get(FORMS, {}), list(keys)
    if not isinstance(forms, Mapping):
        rule = "forms must hold tables such as [forms.paper]"
        raise Invalid(f"{rule}, got {forms!r:.80}")
    for name, own in forms.items():
        if name == QUICK:
            raise Invalid("forms.quick is the file itself; put its keys at the top")
        if not re.fullmatch(r"\w[\w.+-]{0,29}", name):
            raise Invalid(f"a form must be a short plain word, got {name!r:.80}")
        if not isinstance(own, Mapping):
            raise Invalid(f"forms.{name} must be a table, got {own!r:.80}")
        for key in own:
            one_of(f"key in forms.{name}", key, known)
    return dict(forms)


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """`old` with the entries of `new`, table by table."""
    table = dict(old)
    for key, value in new.items():
        before = table.get(key)
        tables = isinstance(before, Mapping) and isinstance(value, Mapping)
        whole = not tables or any(word in value for word in WHOLE)
        table[key] = value if whole else merged(before or {}, value)
    return table


Size = Literal["tiny", "quick", "printed"]
SIZES: tuple[Size, ...] = get_args(Size)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Sizes(Record):
    """A study at the sizes "tiny" (for the tests), "quick" and "printed" (as in the source).

    `sized` makes it.
    """

    name: str
    quick: Mapping[str, Any]
    others: Mapping[str, Mapping[str, Any]]

    @door
    def __post_init__(self) -> None:
        text("name", self.name)
        self._require_sizes()

    @door_as(lambda self: f"Sizes {self.name!r}")
    def _require_sizes(self) -> None:
        for size in self.others:
            one_of("size", size, [size for size in SIZES if size != QUICK])

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes with a description of their own."""
        return ("quick", *self.others)

    @door_as(lambda self: self.name)
    def at(self, size: str = "quick", shift: int = 0) -> Study:
        """The study at one size; a size without a description of its own equals the quick one.

        `shift` is added to every seed.
        """
        one_of("size", size, SIZES)
        own = self.others.get(size)
        name = self.name if own is None else f"{self.name}-{size}"
        study = Study(name=name, source=name, **merged(self.quick, own or {}))
        return study.shifted(shift)


@door_as(lambda name: f"sized {name!r}")
def sized(
    name: str,
    *,
    tiny: Mapping[str, Any] | None = None,
    printed: Mapping[str, Any] | None = None,
    **quick: Any,
) -> Sizes:
    """A study from the arguments of `Study`; the other sizes replace single keys of it."""
    given = {"tiny": tiny, "printed": printed}
    known = [field.name for field in dataclasses.fields(Study)]
    for size, own in (("quick", quick), *given.items()):
        for key in own or {}:
            one_of(f"key of {size}", key, known)
    return Sizes(name, quick, {size: own for size, own in given.items() if own is not None})
