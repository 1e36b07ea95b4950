"""The standard picture of one result, or of several of one kind together.

A result is a dataset: its class, or an attribute, says of which kind, and the kind says what stands
on the horizontal axis of each dimension and which variables have a panel. A variable with one more
axis, such as the coefficients along a path, is drawn as a line for each of its columns.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid, door
from penchant.lab.evidence.verdict import Verdict
from penchant.mathematics import escape, in_terminal
from penchant.plotting.coefficients import dataset_of_estimator, draw_points
from penchant.plotting.mplstyle import styled
from penchant.plotting.plots import panels
from penchant.plotting.style import CYCLE, GREY, clear_logs, sheet
from penchant.results import RESULT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 3  # panels, unless they are named
STYLES = ("-", "--", ":", "-.")
OUTSIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
TEXTS = "UOT"  # kinds of arrays of text
FEW = 15  # points up to which each is marked
LOGARITHMIC = ("t", "step", "epoch", "mu", "call_step", "glance_step")  # as horizontal axes
# numbers with a plain axis, besides those of more than one column
PLAIN = ("train_accuracy", "test_accuracy", "margin_l1", "margin_l2", "log_loss", "support")


@dataclasses.dataclass(frozen=True)
class ResultKind:
    """How results of one kind are drawn.

    `along` names the horizontal variable of each dimension, `panels` the variables of each panel
    in the order in which they are chosen, those of a tuple together where all are there.
    """

    title: str
    along: Mapping[str, str]
    panels: tuple[tuple[str, ...], ...]
    shape: str = "line"  # or "steps", or "points"


TIMES = (
    ("predictor",),
    ("log_loss",),
    ("train_accuracy", "test_accuracy"),
    ("test_error", "test_loss"),
    ("margin_l1", "margin_l2"),
    ("norm_l1", "norm_nuclear", "parameter_norm"),
)
WATCHED = (
    ("train_accuracy", "test_accuracy"),
    ("train_acc", "test_acc"),
    ("test_accuracy",),
    ("train_loss", "test_loss"),
    ("train_loss",),
    ("loss",),
    ("kernel_distance",),
    ("glance_norm",),
)
KINDS = {
    "path": ResultKind("", {"time": "t"}, TIMES),
    "watch": ResultKind(
        "Watched runs",
        {"call": "call_step", "time": "step", "glance": "glance_step"},
        WATCHED,
    ),
    "InterpolationPath": ResultKind(
        "Interpolating minimisers of $Q$, depth {depth}",
        {"scale": "log10_alpha"},
        (("beta",), ("norm_l1", "norm_l2")),
    ),
    "MarginPath": ResultKind(
        "Largest margins of $Q$, depth {depth}", {"scale": "mu"}, (("direction",), ("weights",))
    ),
    "RatchetPath": ResultKind(
        "The limit of large starts, depth {depth}", {"scale": "mu"}, (("direction",), ("weights",))
    ),
    "Saddles": ResultKind(
        "Saddles from a vanishing start, depth {depth}", {"jump": "tau"}, (("points",),), "steps"
    ),
    "SlowFlow": ResultKind("Slow flow to the least norm", {"corner": "tau"}, (("points",),)),
    "Solution": ResultKind(
        "A minimiser and its dual",
        {"feature": "feature", "sample": "sample"},
        (("beta",), ("dual",)),
        "points",
    ),
}


@door
def plot(results: Any, *names: str, x: str | None = None) -> Figure:
    """A figure of one result, or of several of one kind, which shows itself in a notebook.

    Parameters
    ----------
    results
        A path of training, a watch, a verdict, what a solver found, or a fitted linear estimator
        (anything with `coef_`); the dataset of one of these, as `load` reads it, or that of a
        study; a list of results of one kind, or a mapping from labels to them.
    names
        Variables of the dataset, a panel each; without them the most important ones.
    x
        "t", "step" or any other variable along the same dimension.

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
    single = not isinstance(results, Mapping | list | tuple) or hasattr(results, "dataset")
    if single and not names and callable(getattr(results, "figure", None)):
        return results.figure()
    if isinstance(results, Verdict):
        return _verdict(results)
    labelled = {"": results} if single or _is_dataset(results) else _labelled(results)
    data = {label: _dataset(result) for label, result in labelled.items()}
    kinds = {_kind(dataset) for dataset in data.values()}
    if len(kinds) > 1:
        raise Invalid(f"results must be of one kind, got {' and '.join(sorted(kinds))}")
    name = kinds.pop()
    if name == "study":
        return _study(data)
    kind = KINDS[name]
    panels = [(name,) for name in names] or _chosen(kind, data)
    for variable in {variable for panel in panels for variable in panel} | ({x} if x else set()):
        _known(variable, kind, data)
    with styled():
        title = _title(name, data) if panels != [("beta",)] else "Coefficients"
        figure, axes = sheet(title, "", [4.6] * len(panels), 3.8)
        for panel, panel_axes in zip(panels, axes, strict=True):
            _draw(panel_axes, panel, kind, data, x)
        return figure if name == "path" else clear_logs(figure)


def _labelled(results: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    given = results if isinstance(results, Mapping) else {str(k): p for k, p in enumerate(results)}
    if not given:
        raise Invalid("give a result, a list of results or a mapping from labels to results")
    return {str(label): result for label, result in given.items()}


def _is_dataset(thing: Any) -> bool:
    return hasattr(thing, "data_vars") and hasattr(thing, "attrs")


def _dataset(result: Any) -> Any:
    dataset = result if _is_dataset(result) else getattr(result, "dataset", None)
    dataset = dataset_of_estimator(result) if dataset is None else dataset
    if not _is_dataset(dataset):
        raise Invalid(
            "give a path, a watch or another result, a fitted estimator with `coef_`, a list of "
            f"results, or a mapping from labels to results; got {type(result).__name__}"
        )
    return dataset


def _kind(dataset: Any) -> str:
    """The name of the kind of a dataset: an entry of KINDS, or "study"."""
    attributes = dataset.attrs
    if attributes.get(RESULT) in KINDS:
        return str(attributes[RESULT])
    if attributes.get("kind") == "penchant watch":
        return "watch"
    if "study" in attributes:
        return "study"
    if "time" in dataset.dims and "description" in attributes:
        return "path"
    raise Invalid("the dataset is not one of a path, a watch, a study or a result of a solver")


def _verdict(verdict: Verdict) -> Figure:
    if not verdict.figures:
        raise Invalid(f"{verdict.id} has no plots; `penchant figure {verdict.id}` draws it")
    return panels(verdict.statement, verdict.figures, verdict.ran)


def _study(data: Mapping[str, Any]) -> Figure:
    from penchant.plotting.study.picture import draw_study

    if len(data) > 1:
        raise Invalid("draw one study at a time")
    return draw_study(next(iter(data.values())))


def _known(name: str, kind: ResultKind, data: Mapping[str, Any]) -> None:
    for dataset in data.values():
        if name not in dataset.variables or not _along(dataset, name, kind):
            known = sorted(str(n) for n in dataset.variables if _along(dataset, str(n), kind))
            raise Invalid(
                f"{name!r} is not a number recorded along these results; choose from "
                f"{', '.join(known)}"
            )


def _along(dataset: Any, name: str, kind: ResultKind) -> str:
    """The horizontal variable of a variable that can be drawn, else nothing."""
    dims, values = dataset[name].dims, dataset[name]
    many = len(dims) == 2 and (kind is not KINDS["path"] or dims[1] == "feature")
    drawable = (len(dims) == 1 or many) and values.dtype.kind in "fiub"
    return kind.along.get(str(dims[0]), "") if drawable else ""


def _chosen(kind: ResultKind, data: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The panels of which something is in every dataset."""
    chosen: list[tuple[str, ...]] = []
    for panel in kind.panels:
        there = tuple(n for n in panel if all(_is_shown(n, d, len(data)) for d in data.values()))
        seen = {name for names in chosen for name in names}
        if there and not seen & set(there):
            together = kind is not KINDS["path"] or "accuracy" in there[0]
            chosen.append(there if together else there[:1])
    return chosen[:MOST]


def _is_shown(name: str, dataset: Any, count: int) -> bool:
    """Whether a variable has a panel that nobody named.

    Weights over time are drawn for one run of regression; those of classifiers grow without end.
    """
    if name != "predictor":
        return name in dataset.variables
    weights = dataset.get(name)
    columns = weights is not None and weights.dims[1:] == ("feature",)
    return columns and count == 1 and "margin_l1" not in dataset


def _title(name: str, data: Mapping[str, Any]) -> str:
    """The method, the model and the problem of paths, as far as they share them; else the kind."""
    if name != "path":
        depths = {str(d.attrs.get("depth", "")) for d in data.values()}
        return KINDS[name].title.format(depth=" and ".join(sorted(depths)))
    descriptions = [json.loads(dataset.attrs["description"]) for dataset in data.values()]
    shared: list[Any] = []
    for part in ("method", "model"):
        names = {description.get(part, {}).get("is") for description in descriptions} - {None}
        shared += names if len(names) == 1 else []
    problems = {description["about"] for description in descriptions}
    words = ", ".join(map(str, shared))
    text = f"{words}: {problems.pop()}" if len(problems) == 1 else words
    return re.sub(r"sqrt\((\w+)\)", r"√\1", text)


def _draw(
    axes: Axes, panel: tuple[str, ...], kind: ResultKind, data: Mapping[str, Any], x: str | None
) -> None:
    """One panel: colours tell results apart, or the columns of the only one."""
    if kind.shape == "points":
        _points(axes, panel[0], kind, data, x)
        return
    first = next(iter(data.values()))
    along = x or _along(first, panel[0], kind)
    logarithmic = along in LOGARITHMIC or (x is not None and kind is KINDS["path"])
    logarithmic |= along == "tau" and _spans_decades(first["tau"].values)
    for colour, (label, dataset) in zip(itertools.cycle(CYCLE), data.items(), strict=False):
        at = _places(dataset, along)
        shown = np.isfinite(at) & ((at > 0) | (not logarithmic))
        order = np.flatnonzero(shown)[np.argsort(at[shown], kind="stable")]
        for style, name in zip(STYLES, panel, strict=False):
            words = _words(dataset, name, kind) if len(panel) > 1 else ""
            text = ", ".join(word for word in (label, words) if word)
            values = dataset[name].values[order]
            if values.ndim == 1:
                _line(axes, at[order], values, kind, style, text, color=colour)
            elif len(data) == 1:
                _columns(axes, at[order], values, kind, _names(dataset, str(dataset[name].dims[1])))
            else:
                for k, column in enumerate(values.T):
                    own = {"color": colour, "linewidth": 1.0, "alpha": 0.8}
                    _line(axes, at[order], column, kind, style, "" if k else text, **own)
    _scales(axes, panel, logarithmic, data)
    _labels(axes, panel, along, kind, first)
    if "regime_limits" in first[panel[0]].attrs:
        _regimes(axes, *first[panel[0]].attrs["regime_limits"])
    if axes.get_legend_handles_labels()[1]:
        columns = len(data) == 1 and first[panel[0]].ndim > 1
        axes.legend(**(OUTSIDE if columns else {}))


def _points(
    axes: Axes, name: str, kind: ResultKind, data: Mapping[str, Any], x: str | None
) -> None:
    """One panel of stems, which carry the names of their places if all results share these."""
    first = max(data.values(), key=lambda dataset: dataset[name].size)
    along, size = x or _along(first, name, kind), first[name].size
    series = {
        label: np.pad(
            d[name].values.astype(float), (0, size - d[name].size), constant_values=np.nan
        )
        for label, d in data.items()
    }
    named = {tuple(d[along].values) for d in data.values() if d[along].dtype.kind in TEXTS}
    names = list(map(str, named.pop())) if len(named) == 1 else []
    _labels(axes, (name,), along, kind, first)
    draw_points(axes, series, _places(first, along), names, axes.get_xlabel())
    if any(data):
        axes.legend()


def _regimes(axes: Axes, kernel: float, rich: float) -> None:
    """Dotted lines: below the one a measure speaks for the kernel regime, above the other rich."""
    for limit, text, up in ((kernel, "kernel regime", False), (rich, "rich", True)):
        axes.axhline(limit, color=GREY, linestyle=":", linewidth=1)
        place: dict[str, Any] = {"xytext": (2, 2 if up else -2), "textcoords": "offset points"}
        place |= {"va": "bottom" if up else "top", "ha": "left", "color": GREY}
        axes.annotate(text, (0.0, limit), xycoords=("axes fraction", "data"), **place)


def _spans_decades(times: Array) -> bool:
    """Whether most of these times would lie at the left end of a plain axis."""
    later = times[np.isfinite(times) & (times > 0)]
    return len(later) > 2 and bool(later[-1] > 100 * later[0])


def _places(dataset: Any, along: str) -> Array:
    """The values of the horizontal axis; names stand at 0, 1, 2, ..."""
    values = dataset[along].values
    if values.dtype.kind in TEXTS:
        values = np.arange(len(values))
    return np.asarray(values, dtype=float)


def _names(dataset: Any, dim: str) -> list[str]:
    """What the columns along `dim` are called: their own names, or their numbers."""
    if dim in dataset.coords and dataset[dim].dtype.kind in TEXTS:
        return [escape(str(name)) for name in dataset[dim].values]
    return [f"{dim} {k}" for k in range(dataset.sizes[dim])]


def _columns(axes: Axes, at: Array, values: Array, kind: ResultKind, names: list[str]) -> None:
    """A line for each column; the largest have colours and names, the others are grey."""
    size = np.nanmax(np.abs(np.where(np.isfinite(values), values, 0.0)), axis=0)
    largest = np.argsort(-size, kind="stable")[: len(CYCLE)].tolist()
    for k in sorted(set(range(len(size))) - set(largest)):
        _line(axes, at, values[:, k], kind, "-", "", color=GREY, linewidth=0.7, alpha=0.6)
    for k, colour in zip(sorted(largest), CYCLE, strict=False):
        _line(axes, at, values[:, k], kind, "-", names[k], color=colour, linewidth=1.6)


def _line(
    axes: Axes, at: Array, values: Array, kind: ResultKind, style: str, text: str, **look: Any
) -> None:
    known = np.isfinite(values)
    at, values = at[known], values[known].astype(float)
    if kind.shape == "steps" and len(at):  # the last value stays
        at = np.append(at, at[-1] + 0.1 * max(float(np.ptp(at)), 1e-300))
        values = np.append(values, values[-1])
        look["drawstyle"] = "steps-post"
    elif len(at) < FEW and kind is not KINDS["path"]:
        look |= {"marker": "o", "markersize": 3.5}
    axes.plot(at, values, style, label=text or None, **look)


def _scales(axes: Axes, panel: Iterable[str], logarithmic: bool, data: Mapping[str, Any]) -> None:
    if logarithmic:
        axes.set_xscale("log")
    parts = [dataset[name].values.astype(float) for dataset in data.values() for name in panel]
    values = np.concatenate([part.ravel() for part in parts])
    plain = any(part.ndim > 1 for part in parts) or set(panel) & set(PLAIN)
    positive = values[np.isfinite(values)] > 0
    errors = set(panel) <= {"residual", "kkt", "error"}
    if (logarithmic or errors) and not plain and positive.any():
        axes.set_yscale("log")


def _labels(axes: Axes, panel: tuple[str, ...], along: str, kind: ResultKind, dataset: Any) -> None:
    shares = any("accuracy" in name or name.endswith("acc") for name in panel)
    if shares:
        axes.set_ylim(-0.03, 1.03)
    across = {"t": "training time t", "step": "step", "call_step": "step", "glance_step": "step"}
    axes.set_xlabel(across.get(along) or escape(dataset[along].attrs.get("long_name") or along))
    name = panel[0].replace("_", " ")
    meaning = str(dataset[panel[0]].attrs.get("long_name", "")).partition(";")[0]
    if kind is KINDS["path"] and len(panel) > 1:
        axes.set_ylabel("accuracy")
    elif panel == ("predictor",):
        axes.set_ylabel("coefficients of the predictor")
    elif len(panel) == 1:
        axes.set_ylabel(escape(meaning) if 0 < len(in_terminal(meaning)) <= 40 else name)
    else:
        ends = {name.rpartition("_")[2] for name in panel}
        axes.set_ylabel(ends.pop() if len(ends) == 1 else panel[0].partition("_")[0])


def _words(dataset: Any, name: str, kind: ResultKind) -> str:
    """A variable in the legend of a panel of several."""
    if kind is KINDS["path"] or kind is KINDS["watch"]:
        return name.replace("_", " ")
    return escape(str(dataset[name].attrs.get("long_name") or name))
