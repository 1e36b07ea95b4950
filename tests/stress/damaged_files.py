"""Saved results, gathered studies, records of a watch, verdicts, image caches: damaged, forged."""

from __future__ import annotations

import functools
import itertools
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import h5py
import numpy as np
import xarray

import little_papers
import penchant
from damage import ESC, ODD, Found, chosen, command_fault, damaged, fault
from penchant import Study, store
from penchant.lab.evidence import verdict_json
from penchant.lab.evidence.verdict_json import read_verdicts
from penchant.lab.verification import gather_verdicts
from penchant.problems.images import cache
from penchant.problems.images.catalogue import PARTS, ImageSet, checksum
from penchant.watch import record

Words = tuple[str, ...]
SHOW, WATCH = ("show",), ("watch", "--no-figure")


def of_file(file: Path, count: int, read: Callable[[Path], Any], words: Words) -> Found:
    """Damaged copies of a file, read by the library; every third one by the command as well."""
    original, content = read(file), file.read_bytes()
    found = []
    for number, (name, copy) in enumerate(damaged(content, count)):
        file.write_bytes(copy)
        wrong = fault(lambda: read(file), functools.partial(same, original))
        if not wrong and number % 3 == 0:
            wrong = of_command(file, words)
        found.append((f"{file.name}: {name}", wrong))
    file.write_bytes(content)
    return found


def same(original: Any, found: Any) -> bool:
    if isinstance(original, xarray.Dataset):
        return bool(found.identical(original))
    if isinstance(original, dict):
        return all(np.array_equal(found[name], values) for name, values in original.items())
    return bool(found == original)


def of_command(file: Path, words: Words) -> str:
    return command_fault(words[0], str(file), *words[1:])


# --- forged: somebody wrote what the reader does not expect -----------------------------------


def forged_attributes(file: Path, words: Words, count: int) -> Found:
    """Attributes of the HDF5 file replaced by something odd; loading must not believe them."""
    original, content = store.read(file), file.read_bytes()
    with h5py.File(file) as opened:
        names = list(opened.attrs)
    found = []
    for name, number in chosen(itertools.product(names, range(len(ODD))), count):
        file.write_bytes(content)
        try:
            with h5py.File(file, "r+") as opened:
                opened.attrs[name] = ODD[number]
        except (TypeError, ValueError, OverflowError):
            continue  # HDF5 does not hold it
        wrong = fault(lambda: store.read(file), functools.partial(same, original))
        wrong = wrong or of_command(file, words)
        found.append((f"{file.name}: attribute {name} = odd {number}", wrong))
    file.write_bytes(content)
    return found


def rewritten(file: Path, words: Words, count: int) -> Found:
    """Files with right checksums whose attributes and variables are odd; the command tells."""
    original, content = store.read(file), file.read_bytes()
    changes: list[Any] = [
        *itertools.product([*original.attrs, "more", f"{ESC}[31m"], range(len(ODD)))
    ]
    changes += itertools.product(original.variables, ("dropped", "turned", "texts"))
    found = []
    for name, how in chosen(changes, count):
        try:
            store.write(changed(original, name, how), file)
        except (ValueError, OSError):
            continue  # such a file cannot be made
        found.append((f"{file.name}: {name!r}, {how}", of_command(file, words)))
    file.write_bytes(content)
    return found


def changed(original: xarray.Dataset, name: Any, how: Any) -> xarray.Dataset:
    """The dataset with one odd attribute, or one variable dropped, on other axes or of texts."""
    if isinstance(how, int):
        other = original.assign_attrs({name: ODD[how]})
        other[next(iter(other.data_vars))].attrs = {"units": ODD[how], "long_name": ODD[how]}
        return other
    rest, values = original.drop_vars(name), original[name].values
    if how == "dropped":
        return rest
    if how == "texts":
        return rest.assign({name: (original[name].dims, np.full(values.shape, f"{ESC}[2J"))})
    return rest.assign({name: ([f"{dim}_turned" for dim in original[name].dims], values)})


# --- the kinds --------------------------------------------------------------------------------


def results(folder: Path, count: int) -> Found:
    """A result with numbers, texts, truth values and attributes."""
    made = xarray.Dataset(
        {
            "loss": ("t", np.random.default_rng(5).normal(size=40), {"units": "1"}),
            "word": ("b", ["left", "right"]),
            "fits": ("b", [True, False]),
        },
        {"t": np.arange(40)},
        {"description": json.dumps({"method": "DualFlow"}), "note": "a run", "nested": {"a": [1]}},
    )
    file = store.write(made, folder / "run.nc")
    found = of_file(file, count - 2 * (count // 4), store.read, SHOW)
    found += forged_attributes(file, SHOW, count // 4)
    return found + rewritten(file, SHOW, count // 4)


def studies(folder: Path, count: int) -> Found:
    """The gathered file of a small study."""
    grid = {"a": [1.0, 2.0, 3.0]}
    penchant.run(Study(name="plain", function="study_cells:plain", grid=grid, seeds=2), folder)
    found = of_file(folder / "plain.nc", count - count // 3, store.read, SHOW)
    return found + rewritten(folder / "plain.nc", SHOW, count // 3)


def records(folder: Path, count: int) -> Found:
    """The record of a little run, in both formats."""
    log, rng = record.Log(("inner", "outer")), np.random.default_rng(3)
    for step in range(12):
        log.call(float(step))
        log.metric("train_loss", 1.0 / (1 + step))
        row: dict[str, Any] = {name: float(rng.uniform()) for name in record.NUMBERS}
        row |= {name: rng.uniform(size=2) for name in record.LAYERS}
        row |= {name: rng.normal(size=(3, 1)) for name in record.OUTPUTS}
        log.rows.append({"step": float(step), **row})
        log.glance(float(step), row, 0.01)
    numbers = dict.fromkeys(record.ATTRIBUTES[:8], 1.0)
    texts = {"changed": "", "notes": ["a note"], "failures": [["look", 1.0, 2, "no"]]}
    made = log.dataset({**numbers, **texts})
    found = []
    for suffix in (".nc", ".json"):
        found += of_file(record.save(made, folder / f"w{suffix}"), count // 3, record.read, WATCH)
    return found + rewritten(folder / "w.nc", WATCH, count // 3)


def verdicts(folder: Path, count: int) -> Found:
    file = folder / "verdicts.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one of the little claims warns on purpose
        text = verdict_json.dumps(gather_verdicts([little_papers.library.experiments()[0]], jobs=1))
    file.write_text(text, encoding="utf-8")
    found = of_file(
        file, count - count // 4, lambda file: verdict_json.dumps(read_verdicts(file)), SHOW
    )
    for key_path, number in chosen(itertools.product(key_paths(text), range(len(ODD))), count // 4):
        content = json.loads(text)
        inner = functools.reduce(lambda part, key: part[key], key_path[:-1], content)
        inner[key_path[-1]] = ODD[number]
        content["checksum"] = store.json_checksum(content)
        file.write_text(json.dumps(content), encoding="utf-8")
        found.append((f"verdicts.json: {key_path} = odd {number}", of_command(file, SHOW)))
    return found


def key_paths(text: str) -> Iterable[tuple[Any, ...]]:
    """The entries of a verdict file, each by the keys that lead to it."""
    content = json.loads(text)
    first = content["verdicts"][0]
    yield from [("format",), ("versions",), ("verdicts",)]
    yield from [("verdicts", 0, key) for key in first]
    yield from [("verdicts", 0, "evidence", key) for key in first["evidence"]]


@contextmanager
def little_images(folder: Path) -> Iterator[ImageSet]:
    """A set of a few images in a cache folder of its own."""
    rng = np.random.default_rng(8)
    arrays = {
        part: rng.integers(0, 9, ((6, 4, 4, 1) if "images" in part else (6,)), dtype=np.uint8)
        for part in PARTS
    }
    sums = [checksum(arrays[part]) for part in PARTS]
    images = ImageSet("little", "", "", (6, 6), (4, 4, 1), 255, tuple("0123456789"), (*sums,))
    with mock.patch.dict(os.environ, {cache.VARIABLE: str(folder)}):
        cache.write(images, arrays)
        yield images


def image_caches(folder: Path, count: int) -> Found:
    with little_images(folder) as images:
        file, original = cache.file_of(images), cache.read(images)
        found = []
        for name, copy in damaged(file.read_bytes(), count):
            file.write_bytes(copy)
            wrong = fault(lambda: cache.read(images), functools.partial(same, original))
            found.append((f"image cache: {name}", wrong))
    return found
