"""Saving and loading: datasets, paths of training and records of a watch, each by one name."""

from __future__ import annotations

import os
from pathlib import Path as FilePath
from typing import Any

from penchant import store
from penchant.door import door
from penchant.training.path import is_path, path_of


@door
def save(result: Any, file: str | os.PathLike[str]) -> FilePath:
    """Write a path or an xarray.Dataset to `file`, and return where it is.

    The file appears whole or not at all: it is written next to its destination under another name
    and then moved there, so that a failure leaves an older file unchanged.

    Parameters
    ----------
    result
        The dataset, the path with all that `resume` needs, or another result, such as a Solution,
        whose dataset is written.
    file
        Where to write it.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import penchant
    >>> import tempfile
    >>> import xarray
    >>> dataset = xarray.Dataset({"loss": ("step", [1.0, 0.5])})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     penchant.save(dataset, f"{folder}/run.nc").name
    'run.nc'
    """
    return result.save(file) if hasattr(result, "save") else store.write(result, file)


@door
def load(file: str | os.PathLike[str], *, most: int | None = None) -> Any:
    """What a file of penchant holds: a path, the record of a watch, or the dataset of a study.

    A path can be trained again from its file alone: `train(**path.arguments)`.

    Parameters
    ----------
    file
        The file. One that points elsewhere, was damaged or was not written by penchant is refused.
    most
        The most bytes that the file may have and declare; by default 4 GB, and in proportion to
        its size.

    Returns
    -------
    Path or xarray.Dataset
        The path that `path.save` wrote; otherwise the dataset.

    Examples
    --------
    >>> import os, penchant, tempfile
    >>> problem = penchant.problems.sparse_regression(20, 50, sparsity=3)
    >>> net, method = penchant.DiagonalNet(2, alpha=0.1), penchant.GradientDescent(1e-3)
    >>> half = penchant.train(net, problem, method, stop=penchant.Steps(500))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     half = penchant.load(half.save(os.path.join(folder, "half.nc")))
    >>> half.model, half.method
    (DiagonalNet(alpha=0.1), GradientDescent(learning_rate=0.001))
    >>> more = {**half.arguments, "stop": penchant.Steps(1000)}
    >>> penchant.train(**more, resume=half).steps
    1000
    """
    target = FilePath(file)
    if target.suffix != ".json":
        dataset = store.read(target, most=most)
        if is_path(dataset):
            return path_of(target, dataset)
        if "kind" not in dataset.attrs:
            return dataset
    from penchant.watch import record  # it loads the libraries of the watch

    if target.suffix == ".json":
        return record.read(target)
    return record.checked(target, dataset) if record.is_record(dataset) else dataset
