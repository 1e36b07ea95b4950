"""N-F-ts: students of a non-linear teacher, with an l1 penalty and with first derivatives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.notsawo_lessons import OTHERS, control, fitted, lesson, own_penalty, times
from tacit.figures.notsawo_runs import about, count
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, CYCLE, GREY, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# sizes are inputs, hidden units and outputs of the teacher; the student has the same but `width`
PRESETS: dict[str, Parameters] = {
    "quick": {
        "samples": 60,
        "sizes": [30, 50, 1],
        "units": 3,
        "reads": 2,
        "sobolev_samples": 60,
        "sobolev_sizes": [10, 10, 1],
        "sobolev_units": None,
        "width": 50,
        "alpha": 1.0,
        "seed": 0,
        "betas": [0.1, 0.03, 0.01],
        "step": 3e-3,
        "steps": 5000,
        "other_step": 1e-3,
        "reach": 0.6,
        "level": 0.05,
        "descent": [[4e-3, 0.1], [4e-3, 0.03], [4e-3, 0.01], [2e-3, 0.1]],
    },
    "paper": {
        "samples": 100,
        "sizes": [100, 500, 2],
        "units": 5,
        "reads": 3,
        "sobolev_samples": 100,
        "sobolev_sizes": [100, 500, 2],
        "sobolev_units": 10,
        "width": 500,
        "alpha": 1.0,
        "seed": 0,
        "betas": [0.3, 0.1, 0.03],
        "step": 3e-3,
        "steps": 2000,
        "other_step": 2e-3,
        "descent": [[4e-4, 0.6], [4e-4, 0.3]],
        "reach": 1.5,
        "level": 0.1,
    },
}
KINDS = ("l1", "sobolev")
NAMES = {
    "none": "no penalty",
    "l2": "squared $\\ell_2$ norm",
    "dense": "$\\ell_1$, dense teacher",
    "shuffled": "derivatives of other samples",
}
TEXTS = {
    "beta": "strength of the penalty",
    "pair": "number of the pair of step size and beta of subgradient descent",
    "time": "number of the record",
    "step": "steps of Adam",
    "train": "training error, mean square over the variance of the labels",
    "test": "test error, mean square over the variance of the labels",
    "t1": "step from which on the training error stays below the level; nan if it does not",
    "t2": "step from which on the test error stays below the level; nan if it does not",
    "slower": "the same as t2 with the other step size",
    "slope": "fitted exponent of t2 in beta at the first step size",
    "slope_step": "fitted exponent of t2 in the step size, mean over beta",
    "pace": "step size times beta of subgradient descent with l1",
    "descent_t2": "t2 of subgradient descent with l1; nan if the error stays above the level",
    "slope_descent": "fitted exponent of its t2 in step size times beta",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Errors over the steps and t2, for every beta and the controls, with both penalties."""
    import xarray

    parts: dict[str, Any] = {}
    for done, kind in enumerate(KINDS, start=1):
        parts |= _part(kind, parameters)
        if progress:
            progress(done, len(KINDS) + 1)
    parts |= _descents(parameters)
    if progress:
        progress(len(KINDS) + 1, len(KINDS) + 1)
    coords = {"beta": parameters["betas"], "pair": np.arange(len(parameters["descent"]))}
    dataset = xarray.Dataset(parts, coords)
    for key, variable in dataset.variables.items():
        name = str(key).removeprefix("l1_").removeprefix("sobolev_")
        if name not in TEXTS:
            name = name.rpartition("_")[2]
        units = "steps" if name in ("step", "t1", "t2", "slower", "descent_t2") else "1"
        variable.attrs = about(TEXTS[name], units)
    attributes = {name: parameters[name] for name in ("level", "step", "other_step")}
    return dataset.assign_attrs(**attributes, summary=summary(dataset))


def _part(kind: str, parameters: Parameters) -> dict[str, Any]:
    """The courses of one penalty at every beta and at both step sizes, and of its controls."""
    taught, betas = lesson(kind, parameters), parameters["betas"]
    penalty = own_penalty(kind, taught)
    row = [taught.adam(penalty, beta) for beta in betas]
    slower = [taught.adam(penalty, beta, parameters["other_step"]) for beta in betas]
    others = {name: control(kind, name, taught) for name in OTHERS[kind]}
    t2, late = (times(courses, "t2") for courses in (row, slower))
    ratio = np.log(parameters["step"] / parameters["other_step"])
    found: dict[str, Any] = {
        "step": ("time", row[0].step),
        "train": (("beta", "time"), np.array([one.train for one in row])),
        "test": (("beta", "time"), np.array([one.test for one in row])),
        "t1": ("beta", times(row, "t1")),
        "t2": ("beta", t2),
        "slower": ("beta", late),
        "slope": ((), fitted(np.array(betas), t2)),
        "slope_step": ((), _mean(np.log(t2 / late) / ratio)),
    }
    found |= {f"{name}_test": ("time", one.test) for name, one in others.items()}
    return {f"{kind}_{name}": value for name, value in found.items()}


def _mean(values: Array) -> float:
    """The mean of what is known; nan where nothing is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def _descents(parameters: Parameters) -> dict[str, Any]:
    """t2 of subgradient descent with l1."""
    taught, pairs = lesson("l1", parameters), parameters["descent"]
    penalty = own_penalty("l1", taught)
    t2 = times([taught.descent(penalty, beta, step) for step, beta in pairs], "t2")
    pace = np.array([step * beta for step, beta in pairs])
    return {
        "pace": ("pair", pace),
        "descent_t2": ("pair", t2),
        "slope_descent": ((), fitted(pace, t2)),
    }


def summary(dataset: xarray.Dataset) -> str:
    """What was measured, a line for every penalty."""
    lines = []
    for kind, name in (("l1", "l1, sparse teacher"), ("sobolev", "first derivatives")):
        t1, t2 = (
            ", ".join(f"{v:.0f}" for v in dataset[f"{kind}_{t}"].values) for t in ("t1", "t2")
        )
        lines.append(
            f"{name}: beta {', '.join(f'{b:g}' for b in dataset.beta.values)}: t1 = {t1}; t2 = "
            f"{t2}; exponent {float(dataset[f'{kind}_slope']):.2f} in beta, "
            f"{float(dataset[f'{kind}_slope_step']):.2f} in the step (Adam)"
        )
    lines.append(f"l1, descent: exponent {float(dataset.slope_descent):.2f} in step times beta")
    return "\n".join(lines)


@figure(
    "N-F-ts",
    title="A student that has memorized its teacher generalizes late: l1 and first derivatives",
    source="Notsawo et al. 2025, section Non-linear Teacher-student (only picture names)",
    data=data,
    presets=PRESETS,
    constructed="the whole experiment: sizes, sparse weights of the teacher, start, labels of "
    "variance 1, steps and values of beta; preset paper has the sizes 100-500-2 and N = 100",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Errors over the steps with t1 and t2, above; t2 over step times beta, below."""
    picture, (left, right) = sheet(dataset.title, caption_of(dataset.attrs), (5.6, 5.6), 8.6)
    for one in (left, right):
        one.remove()
    grid = picture.add_gridspec(2, 2, height_ratios=(1.25, 1))
    titles = {
        "l1": r"$\ell_1$ penalty, teacher with sparse weights",
        "sobolev": "penalty on wrong first derivatives (Sobolev)",
    }
    for place, kind in enumerate(KINDS):
        above = picture.add_subplot(grid[0, place])
        _courses(above, dataset, kind)
        above.set_title(titles[kind])
        _scaling(picture.add_subplot(grid[1, place]), dataset, kind)
    return picture


def _courses(axes: Axes, dataset: xarray.Dataset, kind: str) -> None:
    """Training dashed, test solid, t1 and t2 as marks on the level; controls in grey."""
    after = dataset[f"{kind}_step"].values > 0
    steps = dataset[f"{kind}_step"].values[after]
    for k, beta in enumerate(dataset.beta.values):
        colour = CYCLE[k % len(CYCLE)]
        one = {name: dataset[f"{kind}_{name}"].values[k] for name in ("train", "test", "t1", "t2")}
        axes.plot(steps, one["train"][after], "--", color=colour, linewidth=1)
        axes.plot(steps, one["test"][after], color=colour, label=rf"test error, $\beta$ = {beta:g}")
        axes.plot(one["t1"], dataset.level, "o", color=colour, markersize=7, zorder=4)
        axes.plot(one["t2"], dataset.level, "*", color=colour, markersize=14, zorder=4)
    for name, line in zip(OTHERS[kind], ("-", ":", "-."), strict=False):
        axes.plot(
            steps,
            dataset[f"{kind}_{name}_test"].values[after],
            line,
            color=GREY,
            linewidth=1.6,
            label=NAMES[name],
            zorder=1,
        )
    axes.plot([], [], "--", color=BLACK, linewidth=1, label="training error")
    axes.axhline(
        dataset.level, color=GREY, linewidth=0.9, zorder=1, label=f"level {dataset.level:g}"
    )
    axes.plot([], [], "ok", label="$t_1$: training at the level", markersize=6)
    axes.plot([], [], "*k", label="$t_2$: test at the level", markersize=11)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="steps of Adam",
        xlim=(1, steps[-1]),
        ylim=(1e-4, None),
        ylabel="error over the variance of the labels",
    )
    axes.legend(loc="lower left", fontsize=8)


def _scaling(axes: Axes, dataset: xarray.Dataset, kind: str) -> None:
    """t2 over step times beta, for both step sizes of Adam and for descent."""
    for name, step, marker in (("t2", dataset.step, "o"), ("slower", dataset.other_step, "s")):
        axes.plot(
            step * dataset.beta,
            dataset[f"{kind}_{name}"],
            marker=marker,
            linestyle=":",
            linewidth=1,
            color=CYCLE[3 if marker == "o" else 4],
            label=rf"Adam, step $\alpha$ = {step:g}",
        )
    words = (
        f"Adam: exponent ${float(dataset[f'{kind}_slope']):.2f}$ in $\\beta$, "
        f"${float(dataset[f'{kind}_slope_step']):.2f}$ in the step"
    )
    if kind == "l1":
        pace, t2 = dataset.pace.values, dataset.descent_t2.values
        axes.plot(pace, t2, "^", color=BLACK, markersize=8, label="subgradient descent")
        factor = np.exp(np.nanmean(np.log(pace * t2))) if np.isfinite(t2).any() else math.nan
        span = np.array([pace.min(), pace.max()])
        axes.plot(
            span,
            factor / span,
            color=BLACK,
            linewidth=1,
            label=rf"$t_2 = {factor:.2g} / (\alpha\beta)$",
        )
        words += (
            f"\ndescent: ${float(dataset.slope_descent):.2f}$ in $\\alpha\\beta$ (source: $-1$)"
        )
    axes.set_title(words, fontsize=9)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=r"step times strength, $\alpha\beta$",
        ylabel="$t_2$ (steps)",
    )
    for ticks in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        ticks(_plain_steps)
    axes.legend(loc="upper right", fontsize=8)


def _plain_steps(steps: float, _: Any) -> str:
    """Steps in full where there is room: at 1, 2 and 5 times a power of ten."""
    return count(steps) if f"{steps:.0e}"[0] in "125" else ""
