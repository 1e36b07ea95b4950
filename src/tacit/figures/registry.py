"""The registry of figures: each one is a labelled dataset first, then a drawing of that dataset."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.arguments import one_of
from tacit.plotting.files import staged
from tacit.plotting.style import styled
from tacit.plotting.ticks import clear_logs
from tacit.records import Record
from tacit.sources import in_order
from tacit.threads import on_one_blas_thread

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

Parameters = Mapping[str, Any]
Progress = Callable[[int, int], None]  # called with (parts done, parts in all)
FORMATS = ("png", "svg", "pdf")


@dataclasses.dataclass(frozen=True, repr=False)
class Entry(Record):
    """A registered figure: what it shows, where it comes from and its named parameter sets.

    `data` is pure numerics, `drawing` reads nothing but the dataset. `constructed` says which
    parameters are ours because the source does not print them.
    """

    id: str
    title: str
    source: str
    presets: Mapping[str, Parameters]
    constructed: str
    data: Callable[[Parameters, Progress | None], xarray.Dataset] = dataclasses.field(repr=False)
    drawing: Callable[[xarray.Dataset], Figure] = dataclasses.field(repr=False)


_ENTRIES: dict[str, Entry] = {}


def figure(
    id: str,
    *,
    title: str,
    source: str,
    data: Callable[[Parameters, Progress | None], xarray.Dataset],
    presets: Mapping[str, Parameters],
    constructed: str = "",
) -> Callable[[Callable[[xarray.Dataset], Figure]], Callable[[xarray.Dataset], Figure]]:
    """A decorator that registers a drawing function together with the data it draws."""
    if id in _ENTRIES:
        raise ValueError(
            f"figure: the id {id!r} is taken by {_ENTRIES[id].title!r}; choose another"
        )

    def register(drawing: Callable[[xarray.Dataset], Figure]) -> Callable[[xarray.Dataset], Figure]:
        _ENTRIES[id] = Entry(id, title, source, dict(presets), constructed, data, drawing)
        return drawing

    return register


def figures() -> dict[str, Entry]:
    """Every registered figure by its id, in the order of the sources."""
    return {id: _ENTRIES[id] for id in in_order(_ENTRIES)}


@on_one_blas_thread
def make(
    id: str, preset: str | Parameters = "quick", progress: Progress | None = None
) -> xarray.Dataset:
    """The labelled data of figure `id`; a mapping as `preset` changes single values of "quick"."""
    entry = _ENTRIES[one_of("figure", "id", id, _ENTRIES)]
    name, parameters = _parameters(entry, preset)
    dataset = entry.data(parameters, progress)
    return dataset.assign_attrs(
        figure=entry.id,
        title=entry.title,
        source=entry.source,
        preset=name,
        parameters=json.dumps(parameters),
        constructed=entry.constructed,
    )


def draw(id: str, dataset: xarray.Dataset) -> Figure:
    """The picture of a dataset that `make` gave for the same id; nothing is computed again."""
    entry = _ENTRIES[one_of("figure", "id", id, _ENTRIES)]
    owner = dataset.attrs.get("figure", "no figure")
    if owner != id:
        raise ValueError(f"draw: the dataset must be made for {id}, this one is for {owner}")
    with styled():
        return clear_logs(entry.drawing(dataset))


def write(
    id: str,
    preset: str | Parameters = "quick",
    folder: str | Path = ".",
    formats: Iterable[str] = ("png", "svg"),
    progress: Progress | None = None,
) -> list[Path]:
    """The files written into `folder`: the picture in every format and its data as netCDF.

    All of them appear together once everything has succeeded; a failure leaves none.
    """
    formats = [one_of("figure", "format", name, FORMATS) for name in formats]
    dataset = make(id, preset, progress)
    return save(id, dataset, folder, formats)


def save(
    id: str, dataset: xarray.Dataset, folder: str | Path, formats: Iterable[str] = ("png", "svg")
) -> list[Path]:
    """The files of an already made dataset: pictures and netCDF, all or none."""
    from tacit import store

    picture = draw(id, dataset)
    with staged(Path(folder)) as (stage, written):
        for name in formats:
            with styled():
                # a date inside would make equal pictures differ
                stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(name)
                picture.savefig(stage / f"{id}.{name}", format=name, metadata=stamp)
        store.save(dataset, stage / f"{id}.nc")
    return written


def _parameters(entry: Entry, preset: str | Parameters) -> tuple[str, dict[str, Any]]:
    """The name and the values of a preset, or of "quick" with some values changed."""
    if isinstance(preset, str):
        name = one_of(f"figure {entry.id}", "preset", preset, entry.presets)
        return name, dict(entry.presets[name])
    quick = dict(entry.presets["quick"])
    for key in preset:
        one_of(f"figure {entry.id}", "parameter", key, quick)
    return "own", {**quick, **preset}
