"""N-F3: three penalties that all grok on modular addition, and what the norms do afterwards."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.figures.cells import Values, cell_of, values_of, without
from tacit.figures.notsawo_runs import about, count
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, caption_of, sheet
from tacit.plotting.typeset import typeset

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# betas fall in every row; steps are per penalty, long enough to see the norms after t2
PRESETS: dict[str, Parameters] = {
    "quick": {
        "modulus": 31,
        "fraction": 0.6,
        "embedding": 32,
        "width": 32,
        "variant": "source",
        "step": 1e-2,
        "penalties": ["l1", "l2^2", "nuclear"],
        "betas": [[3e-4, 1e-4], [1e-4, 1e-5], [1e-3, 1e-4]],
        "steps": [8000, 4500, 4500],
        "seed": 0,
        "points_per_decade": 40,
        "level": 0.99,
    },
    "paper": {
        "modulus": 97,
        "fraction": 0.4,
        "embedding": 64,
        "width": 64,
        "variant": "source",
        "step": 1e-3,
        "penalties": ["l1", "l2^2", "nuclear"],
        "betas": [[1e-5, 3e-6, 1e-6], [1e-5, 3e-6, 1e-6], [1e-4, 3e-5, 1e-5]],
        "steps": [30_000, 16_000, 16_000],
        "seed": 0,
        "points_per_decade": 60,
        "level": 0.99,
    },
}
CURVES = ("train_accuracy", "test_accuracy", "norm_l1", "norm_l2", "norm_nuclear")
NORMS = (
    ("l1", r"$\ell_1$", PURPLE, "-"),
    ("l2", r"$\ell_2$", GREEN, "-"),
    ("nuclear", "nuclear", BLACK, "--"),
)
NAMES = {
    "l1": r"$\ell_1$",
    "l2^2": r"$\ell_2^2$",
    "l2": r"$\ell_2$",
    "nuclear": "nuclear norm",
    "l2 over all": r"$\ell_2$ over all",
}
SHADES = (RED, BLUE, ORANGE, GREY)
TEXTS = {
    "penalty": "penalty",
    "rank": "number of the strength, the largest first",
    "step": "number of steps",
    "beta": "strength of the penalty",
    "train_accuracy": "accuracy over the training pairs; nan after the end of the run",
    "test_accuracy": "accuracy over all validation pairs; nan after the end of the run",
    "norm_l1": "l1 norm of all parameters; nan after the end of the run",
    "norm_l2": "Euclidean norm of all parameters; nan after the end of the run",
    "norm_nuclear": "sum of the nuclear norms of the tensors; nan after the end of the run",
    "t1": "first recorded step with a training accuracy of 1; nan if there is none",
    "t2": "first recorded step with a validation accuracy of at least the level; nan if none",
    "change": "Euclidean norm at the end over that at t2",
    "rise": "Euclidean norm at the end over its least value from t2 on, minus 1",
    "kind": "what tacit.grokking calls the run",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Accuracies and norms over (penalty, rank, step), with t1, t2 and what follows them."""
    import xarray

    betas, runs = np.array(parameters["betas"], dtype=float), []
    for i, j in np.ndindex(betas.shape):
        runs.append(_run(parameters, i, float(betas[i, j])))
        if progress:
            progress(len(runs), betas.size)
    width = betas.shape[1]
    rows = [
        xarray.concat(runs[i : i + width], "rank", join="outer")
        for i in range(0, betas.size, width)
    ]
    found = xarray.concat(rows, "penalty", join="outer").assign(beta=(("penalty", "rank"), betas))
    found = found.assign_coords(penalty=parameters["penalties"], rank=np.arange(width))
    for key, variable in found.variables.items():
        variable.attrs = about(TEXTS[str(key)], "steps" if key in ("step", "t1", "t2") else "1")
    found.attrs = {"summary": "\n".join(_lines(found)), "level": parameters["level"]}
    return found


@cell_of("penalty", "rank", without(PRESETS["quick"], "penalties"))
def cell(parameters: Parameters) -> Values:
    """One run; `betas` has the strengths and `steps` their number, for every penalty by name."""
    penalty, rank = parameters["penalty"], parameters["rank"]
    beta = float(parameters["betas"][penalty][rank])
    one = {**parameters, "penalties": [penalty], "steps": [parameters["steps"][penalty]]}
    return {"beta": beta, **values_of(_run(one, 0, beta), "step")}


def _run(parameters: Parameters, row: int, beta: float) -> xarray.Dataset:
    """One run over its steps from 1 on, and its numbers."""
    from tacit.claims.notsawo.token_runs import weighted
    from tacit.models.token_mlp import TokenMLP
    from tacit.problems.operations import modular_arithmetic
    from tacit.records import NumericalError
    from tacit.training.descent.methods import Adam
    from tacit.training.record import LogSpaced
    from tacit.training.stop import Steps
    from tacit.training.train import train

    seed = parameters["seed"]
    problem = modular_arithmetic(
        parameters["modulus"], operation="+", fraction=parameters["fraction"], seed=seed
    )
    sizes = {name: parameters[name] for name in ("embedding", "width", "variant")}
    path = train(
        TokenMLP(**sizes, seed=seed),
        problem,
        Adam(parameters["step"]),
        penalty=weighted(parameters["penalties"][row], beta),
        stop=Steps(parameters["steps"][row]),
        record=LogSpaced(parameters["points_per_decade"]),
    )
    if not path.outcome.ok:
        raise NumericalError("N-F3", path.outcome)
    run = path.dataset.isel(time=slice(1, None)).swap_dims(time="step").drop_vars("t")
    return run[list(CURVES)].assign(summary(run, parameters["level"]))


def summary(run: Any, level: float) -> dict[str, Any]:
    """t1, t2 (nan if they are not reached), the Euclidean norm after t2, and the kind of run."""
    from tacit.measures.grokking import grokking

    steps = run.step.values.astype(float)
    t1, t2 = (
        _first(steps, run[f"{part}_accuracy"].values, value)
        for part, value in (("train", 1.0), ("test", level))
    )
    kind = grokking(steps, run.train_accuracy.values, run.test_accuracy.values, level).kind
    norm = run.norm_l2.values[steps >= t2]  # empty if t2 is nan
    change, rise = (norm[-1] / norm[0], norm[-1] / norm.min() - 1) if len(norm) else (np.nan,) * 2
    return {"t1": t1, "t2": t2, "change": change, "rise": rise, "kind": kind}


def _first(steps: Any, curve: Any, level: float) -> float:
    there = np.flatnonzero(curve >= level)
    return float(steps[there[0]]) if len(there) else math.nan


def _lines(dataset: xarray.Dataset) -> list[str]:
    """What was measured, in a line for every run."""
    lines = []
    for penalty in dataset.penalty.values:
        for rank in dataset["rank"].values:
            run = dataset.sel(penalty=penalty, rank=rank)
            lines.append(
                f"{penalty}, beta {float(run.beta):g}: {run.kind.values!s}, t1 {count(run.t1)}, "
                f"t2 {count(run.t2)}, l2 norm at the end {float(run.change):.3f} of that at t2, "
                f"{float(run.rise):+.3f} over its least since"
            )
    return lines


@figure(
    "N-F3",
    title="Every penalty groks, and under l1 the l2 norm rises after generalization",
    source="Notsawo et al. 2025, figure 3, modular addition",
    data=data,
    presets=PRESETS,
    constructed="strengths within the ranges of the authors' program, the start, full batches, "
    "sizes of the net; in preset quick also p, training share, learning rate and strengths",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Above accuracies for every strength; below the norms with the largest, with t1 and t2."""
    number = dataset.sizes["penalty"]
    picture, top = sheet(dataset.title, caption_of(dataset.attrs), (4.2,) * number, height=7.2)
    grid = picture.add_gridspec(2, number)
    for panel in top:
        panel.remove()
    for k in range(number):
        rows = dataset.isel(penalty=k)
        above = picture.add_subplot(grid[0, k])
        below = picture.add_subplot(grid[1, k])
        _accuracies(above, rows)
        _norms(below, rows.isel(rank=0))
        above.set_title(f"penalty: {NAMES[str(rows.penalty.values)]}", fontsize=11)
    return picture


def _accuracies(panel: Axes, rows: xarray.Dataset) -> None:
    for number, colour in zip(range(rows.sizes["rank"]), SHADES, strict=False):
        run = rows.isel(rank=number)
        label = typeset(f"beta = {float(run.beta):g}, t2 = {count(run.t2)}")
        panel.plot(run.step, run.test_accuracy, color=colour, linewidth=2.4, label=label)
        panel.plot(run.step, run.train_accuracy, "--", color=colour, linewidth=1.2)
        if math.isfinite(float(run.t2)):
            panel.axvline(float(run.t2), color=colour, linestyle="-.", linewidth=1, zorder=1)
    panel.plot([], [], "-", color=GREY, label="validation")
    panel.plot([], [], "--", color=GREY, linewidth=1.2, label="training")
    ends = rows.step.values[np.isfinite(rows.test_accuracy.values).any(axis=0)]
    panel.set(ylabel="accuracy", xlabel="steps of Adam", xscale="log", ylim=(-0.03, 1.05))
    panel.set_xlim(10, ends.max())
    panel.legend(
        loc="lower right",
        fontsize=8,
        bbox_to_anchor=(1.0, 0.03),
        frameon=True,
        framealpha=0.9,
        edgecolor="none",
    )


def _norms(panel: Axes, run: xarray.Dataset) -> None:
    """The norms of one run over those at t2 (or at the end, without one), t1 and t2 marked."""
    run = run.isel(step=np.flatnonzero(np.isfinite(run.norm_l2.values)))
    t1, t2 = float(run.t1), float(run.t2)
    at = int(np.searchsorted(run.step.values, t2)) if math.isfinite(t2) else -1
    for name, text, colour, line in NORMS:
        norm = run[f"norm_{name}"].values
        panel.plot(
            run.step,
            norm / norm[at],
            line,
            color=colour,
            label=text,
            linewidth=3 if name == "l2" else 1.6,
        )
    for name, place, colour in (("t_1", t1, BLUE), ("t_2", t2, RED)):
        if math.isfinite(place):
            panel.axvline(
                place,
                color=colour,
                linestyle="-.",
                linewidth=1.2,
                zorder=1,
                label=f"${name}$ = {count(place)}",
            )
    if math.isfinite(t2):
        panel.axvspan(t2, float(run.step[-1]), color=GREEN, alpha=0.08, zorder=0)
        text = typeset(f"beta = {float(run.beta):g}: after t2 the l2 norm {_verb(run)}")
        panel.set_title(text, fontsize=9, color=GREEN)
    panel.set(ylabel=r"norm / norm at $t_2$", xlabel="steps of Adam", ylim=(0, None))
    panel.set_xlim(0, float(run.step[-1]))  # linear: most of the run comes after t2
    panel.legend(loc="upper right", fontsize=8)


def _verb(run: xarray.Dataset) -> str:
    """What the Euclidean norm does after t2, in the words of its numbers."""
    rise, change = float(run.rise), float(run.change)
    if rise > 0.05:
        return f"rises\nby {rise:.0%} from its least value, to {change:.2f} of that at t2"
    return f"falls\nto {change:.2f} of that at t2"
