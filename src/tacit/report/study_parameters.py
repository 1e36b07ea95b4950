"""What a study was made of, for readers: its axes, its parts, and the text to copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tacit.report.markup import Markup, joined, tag
from tacit.report.parts import part, table
from tacit.report.toml_text import toml

if TYPE_CHECKING:
    import xarray

FEW = 10  # values that are spelled out
IS = "is"
ELSEWHERE = ("name", "title", "grid", "seeds", "labels", "draw")  # on the page, or only to copy


def parameters(dataset: xarray.Dataset, description: Mapping[str, Any]) -> Markup:
    """The axes as they came out, everything else by name, and the whole as TOML."""
    rest = {
        key: value
        for key, value in description.items()
        if key not in ELSEWHERE and value is not None
    }
    pairs = [joined(tag("dt", name), tag("dd", text)) for name, text in _told("", rest)]
    text = tag("pre", tag("code", toml(description)), tabindex="0")
    return joined(
        tag("h2", "Parameters"),
        _axes(dataset),
        part("Everything else", tag("dl", *pairs)),
        tag("details", tag("summary", "The whole description as TOML, to copy"), text),
    )


def _axes(dataset: xarray.Dataset) -> Markup | None:
    rows = [
        (
            str(dim),
            str(dataset[dim].attrs.get("long_name", dim)),
            str(dataset.sizes[dim]),
            listed(dataset[dim].values.tolist()),
        )
        for dim in dataset.status.dims
    ]
    return (
        part("Axes", table(("axis", "what it sets", "values", "which"), rows, "plain"))
        if rows
        else None
    )


def listed(values: list[Any]) -> str:
    """The values of an axis, or of many the first, the last and those between in short."""
    texts = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in values]
    return ", ".join(texts if len(texts) <= FEW else [*texts[:3], "…", *texts[-2:]])


def _told(prefix: str, described: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, text) of every value; a table that names a part of tacit is told as a call."""
    for key, value in described.items():
        if isinstance(value, Mapping) and value and IS not in value:
            yield from _told(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", _short(value)


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key}={_short(entry)}" for key, entry in value.items() if key != IS)
        return f"{value.get(IS, '')}({inside})"
    return listed(value) if isinstance(value, list) else str(value)
