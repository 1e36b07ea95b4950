"""The path that training took: a labelled dataset, how it ended, and what is needed to go on."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.records import Outcome, Record
from tacit.training import saving


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Path(Record):
    """Where training went; `dataset` holds everything that was recorded, with labels.

    Attributes
    ----------
    outcome
        How training ended.
    dataset
        What was recorded along `time`, an xarray.Dataset.
    parameters
        The last ones, an array or a pytree of arrays; None where float64 cannot hold them.
    memory
        What a step-by-step method carries from step to step, for `resume`.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = tacit.DiagonalNet(2, alpha=0.1), tacit.Steps(100)
    >>> path = tacit.train(net, problem, tacit.GradientDescent(1e-3), stop=stop)
    >>> path.steps, path.t, path.predictor.shape
    (100, 0.1, (8,))
    """

    outcome: Outcome
    dataset: Any = dataclasses.field(repr=False)
    parameters: Any = dataclasses.field(default=None, repr=False)
    memory: tuple[Array, ...] | None = dataclasses.field(default=None, repr=False)

    @property
    def t(self) -> float:
        """The training time at the end."""
        return float(self.dataset.t.values[-1])

    @property
    def steps(self) -> int:
        """The number of steps taken; a flow has none."""
        if "step" not in self.dataset.coords:
            raise AttributeError("Path.steps: an exact flow has no steps; see t")
        return int(self.dataset.step.values[-1])

    @property
    def log_loss(self) -> float:
        """The natural logarithm of the training loss at the end."""
        return float(self.dataset.log_loss.values[-1])

    @property
    def predictor(self) -> Array:
        """The linear predictor at the end, a vector or a matrix."""
        return self._last("predictor", "the model has no linear predictor; see predictions")

    @property
    def predictions(self) -> Array:
        """The outputs of the model on the samples at the end."""
        return self._last("predictions", "they were not recorded; see predictor")

    def plot(self, *names: str, x: str | None = None) -> Any:
        """A figure of the recorded numbers `names`; see tacit.plot, which draws several paths."""
        from tacit import plot

        return plot(self, *names, x=x)

    def save(self, file: str | os.PathLike[str]) -> FilePath:
        """Write everything to `file`, for `load_path`: also what `resume` needs."""
        return saving.write(file, self.outcome, self.dataset, self.parameters, self.memory)

    def _last(self, name: str, why: str) -> Array:
        if name not in self.dataset:
            raise AttributeError(f"Path.{name}: {why}")
        return np.asarray(self.dataset[name].values[-1])

    def rows(self) -> list[tuple[str, str]]:
        found = [("outcome", str(self.outcome)), ("t", f"{self.t:.6g}")]
        if "step" in self.dataset.coords:
            found.append(("steps", str(self.steps)))
        found.append(("log_loss", f"{self.log_loss:.6g}"))
        sizes = ", ".join(f"{name} {size}" for name, size in self.dataset.sizes.items())
        return [*found, ("dataset", f"{', '.join(map(str, self.dataset.data_vars))} ({sizes})")]


def load_path(file: str | os.PathLike[str]) -> Path:
    """The path that `path.save(file)` wrote; `train(..., resume=path)` goes on from it.

    Parameters
    ----------
    file
        Where the path was saved.

    Returns
    -------
    Path
        The same path.

    Examples
    --------
    >>> import os, tacit, tempfile
    >>> problem = tacit.sparse_regression(20, 50, sparsity=3)
    >>> net, method = tacit.DiagonalNet(2, alpha=0.1), tacit.GradientDescent(1e-3)
    >>> half = tacit.train(net, problem, method, stop=tacit.Steps(500))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     half = tacit.load_path(half.save(os.path.join(folder, "half.nc")))
    >>> tacit.train(net, problem, method, stop=tacit.Steps(1000), resume=half).steps
    1000
    """
    return Path(*saving.read("load_path", file))
