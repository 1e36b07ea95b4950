"""The standard picture of one path, or of several together."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.plotting.style import CYCLE, sheet, styled
from penchant.training.path import Path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WHO = "plot"
#: the panels of a picture: of each, those that were recorded; a rate or a share has a plain axis
PANELS = (
    ("log_loss",),
    ("train_accuracy", "test_accuracy"),
    ("test_error", "test_loss"),
    ("margin_l1", "margin_l2"),
    ("norm_l1", "norm_nuclear", "parameter_norm"),
)
PLAIN = ("train_accuracy", "test_accuracy", "margin_l1", "margin_l2", "log_loss")
MOST = 3  # panels, unless they are named
STYLES = ("-", "--", ":", "-.")


def plot(
    paths: Path | Sequence[Path] | Mapping[str, Path], *names: str, x: str | None = None
) -> Figure:
    """A figure of what was recorded along one path, or along several of one kind.

    Parameters
    ----------
    paths
        A path, a list of paths, or a mapping from labels to paths.
    names
        Recorded variables, a panel each; without them the loss and the most important others.
    x
        "t", "step" or any other recorded variable; by default the time, or the step where the
        paths have different learning rates.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(10, 20, sparsity=2)
    >>> net = penchant.DiagonalNet(2, alpha=0.1)
    >>> stop = penchant.Steps(100)
    >>> path = penchant.train(net, problem, penchant.GradientDescent(1e-3), stop=stop)
    >>> figure = penchant.plot(path, "loss", "norm_l1")
    >>> len(figure.axes)
    2
    """
    labelled = _labelled(paths)
    panels = [(name,) for name in names] or _chosen(labelled)
    for name in {name for panel in panels for name in panel}:
        _known(name, labelled)
    along = x or "t"
    _known(along, labelled)
    with styled():
        figure, axes = sheet(_title(labelled), "", [4.6] * len(panels), 3.8)
        for panel, panel_axes in zip(panels, axes, strict=True):
            _draw(panel_axes, panel, labelled, along)
    return figure


def _labelled(paths: Any) -> dict[str, Path]:
    if isinstance(paths, Path):
        return {"": paths}
    given = paths if isinstance(paths, Mapping) else {str(k): p for k, p in enumerate(paths)}
    by_label = {str(label): path for label, path in given.items()}
    if not by_label or not all(isinstance(path, Path) for path in by_label.values()):
        raise ValueError(f"{WHO}: give a path, a list of paths or a mapping from labels to paths")
    return by_label


def _known(name: str, labelled: Mapping[str, Path]) -> None:
    for path in labelled.values():
        if name not in path.dataset.variables or path.dataset[name].dims != ("time",):
            known = sorted(n for n, v in path.dataset.variables.items() if v.dims == ("time",))
            raise ValueError(
                f"{WHO}: {name!r} is not a number recorded along these paths; choose from "
                f"{', '.join(map(str, known))}"
            )


def _chosen(labelled: Mapping[str, Path]) -> list[tuple[str, ...]]:
    """The panels of which something was recorded in every path."""
    quantities = []
    for panel in PANELS:
        there = tuple(n for n in panel if all(n in p.dataset for p in labelled.values()))
        if there:
            quantities.append(there if "accuracy" in there[0] else there[:1])
    return quantities[:MOST]


def _title(labelled: Mapping[str, Path]) -> str:
    """The method, the model and the problem, as far as all paths share them."""
    descriptions = [json.loads(path.dataset.attrs["description"]) for path in labelled.values()]
    shared: list[Any] = []
    for part in ("method", "model"):
        names = {description.get(part, {}).get("is") for description in descriptions} - {None}
        shared += names if len(names) == 1 else []
    problems = {description["about"] for description in descriptions}
    words = ", ".join(map(str, shared))
    return f"{words}: {problems.pop()}" if len(problems) == 1 else words


def _draw(axes: Axes, panel: tuple[str, ...], labelled: Mapping[str, Path], along: str) -> None:
    for colour, (label, path) in zip(itertools.cycle(CYCLE), labelled.items(), strict=False):
        data = path.dataset
        for style, name in zip(STYLES, panel, strict=False):
            words = name.replace("_", " ") if len(panel) > 1 else ""
            text = ", ".join(word for word in (label, words) if word)
            x, y = data[along].values, data[name].values
            drawn = np.isfinite(x) & np.isfinite(y) & (x > 0)
            axes.plot(x[drawn], y[drawn], style, color=colour, label=text)
    first = next(iter(labelled.values())).dataset
    axes.set_xscale("log")
    values = np.concatenate(
        [path.dataset[name].values for path in labelled.values() for name in panel]
    )
    if not set(panel) & set(PLAIN) and (values[np.isfinite(values)] > 0).any():
        axes.set_yscale("log")
    if "accuracy" in panel[0]:
        axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel({"t": "training time t", "step": "step"}.get(along, along))
    axes.set_ylabel(panel[0].replace("_", " ") if len(panel) == 1 else "accuracy")
    about = str(first[panel[0]].attrs.get("long_name", "")).partition(";")[0]
    axes.set_title(about if len(panel) == 1 else "")
    if len(panel) > 1 or len(labelled) > 1:
        axes.legend()
