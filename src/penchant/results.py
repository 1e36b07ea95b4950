"""What results have in common: a labelled dataset, `.plot()` and `.save()`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from penchant import store
from penchant.records import Record

RESULT = "result"  # the attribute of a dataset that says which class of result it came from


class DrawnResult(Record):
    """A record that draws itself."""

    def plot(self, *names: str, x: str | None = None) -> Any:
        """A figure of the numbers `names`; penchant.plot draws several results together."""
        from penchant import plot

        return plot(self, *names, x=x)


class LabelledResult(DrawnResult):
    """One that is written to a file as well; `dataset` has its labelled numbers.

    A subclass defines `dataset`, as a field or as a property.
    """

    dataset: Any

    def save(self, file: str | os.PathLike[str]) -> FilePath:
        """Write the dataset to `file`, and return where it is; `penchant.load` reads it."""
        return store.write(self.dataset, file)


def dataset_of(
    result: LabelledResult,
    variables: Mapping[str, tuple[Any, Any, str]],
    coordinates: Mapping[str, tuple[Any, Any, str]],
    **attributes: Any,
) -> Any:
    """The dataset of a result: name -> (dimensions, values, what it is) for each variable."""
    import xarray

    def labelled(given: Mapping[str, tuple[Any, Any, str]]) -> dict[str, Any]:
        return {name: (d, values, {"long_name": text}) for name, (d, values, text) in given.items()}

    about = {RESULT: type(result).__name__, **attributes}
    if names := getattr(result, "features", ()):
        coordinates = {**coordinates, "feature": ("feature", list(names), "feature")}
    return xarray.Dataset(labelled(variables), labelled(coordinates), about)
