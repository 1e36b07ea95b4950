"""N-F-alg: when modular addition is learned with Adam, over step and strength of the penalty."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.cells import Values, cell_of, without
from tacit.figures.notsawo_runs import about
from tacit.figures.registry import Parameters, Progress, figure
from tacit.measures.adam_clock import MEMORY, adam_clock, adam_delay
from tacit.plotting.style import BLACK, CYCLE, GREY, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# betas are per penalty, from the largest on; every run ends at t2 or after `budget` steps
PRESETS: dict[str, Parameters] = {
    "quick": {
        "modulus": 31,
        "fraction": 0.6,
        "embedding": 32,
        "width": 32,
        "variant": "source",
        "steps": [1e-2, 3e-3],
        "penalties": ["l1", "l2^2", "nuclear"],
        "betas": [[3e-4, 3e-5], [3e-4, 3e-5], [3e-3, 3e-4]],
        "budget": 12_000,
        "seed": 0,
        "points_per_decade": 60,
        "level": 0.99,
    },
    "paper": {
        "modulus": 97,
        "fraction": 0.4,
        "embedding": 64,
        "width": 64,
        "variant": "source",
        "steps": [3e-3, 1e-3],
        "penalties": ["l1", "l2^2", "nuclear"],
        "betas": [[1e-5, 1e-6, 1e-7], [1e-5, 1e-6, 1e-7], [1e-4, 1e-5, 1e-6]],
        "budget": 30_000,
        "seed": 0,
        "points_per_decade": 60,
        "level": 0.99,
    },
}
MARKERS = "os^Dv*"
NAMES = {
    "l1": r"$\ell_1$",
    "l2^2": r"$\ell_2^2$",
    "l2": r"$\ell_2$",
    "nuclear": "nuclear norm",
    "l2 over all": r"$\ell_2$ over all",
}
TEXTS = {
    "penalty": "penalty",
    "alpha": "learning rate of Adam (the source's alpha)",
    "rank": "number of the strength, the largest first",
    "beta": "strength of the penalty",
    "pace": "learning rate times beta",
    "t1": "first recorded step with a training accuracy of 1; nan if there is none",
    "t2": "first recorded step with a validation accuracy of at least the level; nan if none",
    "clock": "t2 - t1 in the clock of Adam's second moment, MEMORY (e^((t2 - t1)/MEMORY) - 1)",
    "c": "clock times learning rate times beta, geometric mean",
    "slope": "fitted exponent of t2 - t1 in learning rate times beta",
    "clock_slope": "fitted exponent of the clock in learning rate times beta",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """t1 and t2 over (penalty, alpha, rank), and the law of Adam's clock fitted to each penalty."""
    import xarray

    betas, rates = np.array(parameters["betas"], dtype=float), parameters["steps"]
    shape = len(betas), len(rates), betas.shape[1]
    t1, t2 = np.full(shape, np.nan), np.full(shape, np.nan)
    for done, (i, j, k) in enumerate(np.ndindex(shape), start=1):
        t1[i, j, k], t2[i, j, k] = _times(parameters, i, rates[j], float(betas[i, k]))
        if progress:
            progress(done, t1.size)
    pace = np.array(rates)[:, None] * betas[:, None, :]
    cells, each = ("penalty", "alpha", "rank"), zip(pace, t2 - t1, strict=True)
    fitted = np.array([fits(one.ravel(), other.ravel()) for one, other in each])
    variables: dict[str, Any] = {
        "t1": (cells, t1),
        "t2": (cells, t2),
        "pace": (cells, pace),
        "clock": (cells, adam_clock(t2 - t1)),
        "beta": (("penalty", "rank"), betas),
    }
    names = ("c", "slope", "clock_slope")
    variables |= {name: ("penalty", fitted[:, k]) for k, name in enumerate(names)}
    coordinates = {"penalty": parameters["penalties"], "alpha": rates, "rank": np.arange(shape[2])}
    dataset = xarray.Dataset(variables, coordinates)
    for key, variable in dataset.variables.items():
        variable.attrs = about(
            TEXTS[str(key)], "steps" if key in ("t1", "t2", "clock", "c") else "1"
        )
    return dataset.assign_attrs(summary="\n".join(_lines(dataset)), memory=MEMORY)


@cell_of("penalty", "step", "rank", without(PRESETS["quick"], "penalties", "steps"))
def cell(parameters: Parameters) -> Values:
    """t1 and t2 of one run; `betas` has the strengths of every penalty by its name."""
    penalty, step = parameters["penalty"], parameters["step"]
    beta = float(parameters["betas"][penalty][parameters["rank"]])
    t1, t2 = _times({**parameters, "penalties": [penalty]}, 0, step, beta)
    return {"beta": beta, "pace": step * beta, "t1": t1, "t2": t2, "clock": adam_clock(t2 - t1)}


def _times(parameters: Parameters, row: int, step: float, beta: float) -> tuple[float, float]:
    """t1 and t2 of one run; nan for what is not reached."""
    from tacit.claims.notsawo.token_runs import weighted
    from tacit.models.token_mlp import TokenMLP
    from tacit.problems.operations import modular_arithmetic
    from tacit.training.descent.methods import Adam
    from tacit.training.record import LogSpaced
    from tacit.training.stop import Accuracy, Steps
    from tacit.training.train import train

    seed, level = parameters["seed"], parameters["level"]
    problem = modular_arithmetic(
        parameters["modulus"], operation="+", fraction=parameters["fraction"], seed=seed
    )
    sizes = {name: parameters[name] for name in ("embedding", "width", "variant")}
    run = train(
        TokenMLP(**sizes, seed=seed),
        problem,
        Adam(step),
        penalty=weighted(parameters["penalties"][row], beta),
        stop=[Steps(parameters["budget"]), Accuracy(test=level)],
        record=LogSpaced(parameters["points_per_decade"]),
    ).dataset
    steps = run.step.values.astype(float)
    return _first(steps, run.train_accuracy.values, 1.0), _first(
        steps, run.test_accuracy.values, level
    )


def _first(steps: Any, curve: Any, level: float) -> float:
    there = np.flatnonzero(curve >= level)
    return float(steps[there[0]]) if len(there) else math.nan


def fits(pace: Array, delays: Array) -> tuple[float, float, float]:
    """c of `adam_delay`, and the exponents of the delays in steps and in Adam's clock."""
    known = delays > 0  # not where t2 is nan
    if known.sum() < 2:
        return math.nan, math.nan, math.nan
    pace, delays = pace[known], delays[known]
    clock = adam_clock(delays)
    c = float(np.exp(np.mean(np.log(pace * clock))))
    plain, bent = (float(np.polyfit(np.log(pace), np.log(t), 1)[0]) for t in (delays, clock))
    return c, plain, bent


def _lines(dataset: xarray.Dataset) -> list[str]:
    return [
        f"{penalty}: t2 - t1 with the exponent {float(dataset.slope[k]):.2f} in step beta, "
        f"{float(dataset.clock_slope[k]):.2f} in Adam's clock, c = {float(dataset.c[k]):.2g}"
        for k, penalty in enumerate(dataset.penalty.values)
    ]


@figure(
    "N-F-alg",
    title="With Adam generalization is delayed by log(1/(step × strength)), not by "
    "1/(step × strength)",
    source="Notsawo et al. 2025, section Algorithmic Dataset (its figures are only named)",
    data=data,
    presets=PRESETS,
    constructed="strengths within the ranges of the authors' program, the start, full batches, "
    "sizes of the net; in preset quick also p, training share, learning rates and strengths; the "
    "law of the clock is ours",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Left t1 and t2 over the pace with both laws; right the delays in Adam's clock."""
    picture, (times, clock) = sheet(dataset.title, caption_of(dataset.attrs), (6.4, 5.2), 5.2)
    for k in range(dataset.sizes["penalty"]):
        _penalty(times, clock, dataset.isel(penalty=k), CYCLE[k])
    _key(times, dataset)
    times.set(
        xscale="log", yscale="log", xlabel=r"learning rate $\times\;\beta$", ylabel="steps of Adam"
    )
    clock.set(
        xscale="log",
        yscale="log",
        xlabel=r"learning rate $\times\;\beta$",
        ylabel=r"$T\,(e^{(t_2 - t_1)/T} - 1)$",
    )
    clock.set_title(rf"in the clock of Adam, $T = 2/\log(1/0.999)$ = {MEMORY:.0f} steps")
    times.set_title(r"markers: $t_2$ (full) and $t_1$ (small, open)")
    times.set_ylim(top=40 * float(dataset.t2.max()))  # room for the legend
    times.legend(fontsize=8, loc="upper right")
    clock.legend(fontsize=8, loc="upper right")
    return picture


def _penalty(times: Axes, clock: Axes, rows: xarray.Dataset, colour: str) -> None:
    """The runs of one penalty, a marker for every learning rate, and what the laws say of them."""
    name, c = NAMES[str(rows.penalty.values)], float(rows.c)
    for marker, number in zip(MARKERS, range(rows.sizes["alpha"]), strict=False):
        cell = rows.isel(alpha=number)
        times.plot(cell.pace, cell.t2, marker, color=colour)
        times.plot(cell.pace, cell.t1, marker, color=colour, markerfacecolor="none", markersize=4)
        clock.plot(cell.pace, cell.clock, marker, color=colour)
    pace = np.geomspace(float(rows.pace.min()), float(rows.pace.max()), 60)
    base = float(rows.t1.median())
    times.plot(
        pace,
        base + adam_delay(pace, c),
        "-",
        color=colour,
        linewidth=1.6,
        label=rf"{name}: exponent of $t_2 - t_1$ {float(rows.slope):.2f}",
    )
    top = float(rows.pace.max())
    steep = adam_delay(top, c) * top / pace
    times.plot(pace, base + steep, ":", color=colour, linewidth=1.2)
    clock.plot(
        pace,
        c / pace,
        "--",
        color=colour,
        linewidth=1.4,
        label=f"{name}: slope $-1$; fitted {float(rows.clock_slope):.2f}",
    )


def _key(times: Axes, dataset: xarray.Dataset) -> None:
    """What the lines and the markers stand for."""
    times.plot([], [], "-", color=BLACK, label=r"$t_1 + T\,\log(1 + c\,/\,(T \cdot$ pace$))$")
    times.plot(
        [],
        [],
        ":",
        color=BLACK,
        linewidth=1.2,
        label=r"$t_1 + c'\,/\,$pace through the largest pace",
    )
    for marker, alpha in zip(MARKERS, dataset.alpha.values, strict=False):
        times.plot([], [], marker, color=GREY, label=f"learning rate {alpha:g}")
