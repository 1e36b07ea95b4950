"""Forms of a TOML study: one file, several sizes.

    [forms.paper]               # `tacit run NAME --preset paper` calls the study NAME-paper
    seeds = 9
    arguments.rtol = 1e-8       # replaces one key of [arguments]
    grid.alpha = {logspace = [-4, 1, 101]}

The file without its forms is the form "quick". A form's tables replace key by key; one that says
what it is (`is`) or is a space of values (`logspace`, ...) replaces the whole table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tacit.arguments import one_of
from tacit.studies.axes import SPACES

FORMS = "forms"
QUICK = "quick"
WHOLE = (*SPACES, "is")


def formed(source: str, table: Mapping[str, Any], form: str, keys: Iterable[str]) -> dict[str, Any]:
    """The table of a study in one of its forms; `keys` are those that a study may have."""
    forms = read_forms(source, table, [key for key in keys if key != "name"])
    plain = {key: value for key, value in table.items() if key != FORMS}
    if form == QUICK:
        return plain
    one_of(source, "form", form, (QUICK, *forms))
    return {**merged(plain, forms[form]), "name": f"{table['name']}-{form}"}


def read_forms(source: str, table: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The forms beside "quick", with known keys."""
    forms, known = table.get(FORMS, {}), list(keys)
    if not isinstance(forms, Mapping):
        rule = "forms must hold tables such as [forms.paper]"
        raise ValueError(f"{source}: {rule}, got {forms!r:.80}")
    for name, own in forms.items():
        if name == QUICK:
            raise ValueError(f"{source}: forms.quick is the file itself; put its keys at the top")
        if not re.fullmatch(r"\w[\w.+-]{0,29}", name):
            raise ValueError(f"{source}: a form must be a short plain word, got {name!r:.80}")
        if not isinstance(own, Mapping):
            raise ValueError(f"{source}: forms.{name} must be a table, got {own!r:.80}")
        for key in own:
            one_of(source, f"key in forms.{name}", key, known)
    return dict(forms)


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """`old` with the entries of `new`, table by table."""
    found = dict(old)
    for key, value in new.items():
        before = found.get(key)
        tables = isinstance(before, Mapping) and isinstance(value, Mapping)
        whole = not tables or any(word in value for word in WHOLE)
        found[key] = value if whole else merged(before or {}, value)
    return found
