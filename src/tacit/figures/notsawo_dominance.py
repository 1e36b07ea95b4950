"""N-F-dominance: the loss rules until memorization, the penalty from there to recovery."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.figures.cells import Values, cell_of, values_of
from tacit.figures.notsawo_low_rank import recovery
from tacit.figures.notsawo_runs import Recovery, about, count, crossing, log_steps
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, caption_of
from tacit.plotting.transition import LEGEND, mark, rows

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "samples": 30,
        "dimension": 100,
        "sparsity": 5,
        "seed": 0,
        "snr": 1e8,
        "step": 0.1,
        "beta": 1e-4,
        "start": 1e-6,
        "steps": 100_000,
        "level": 1e-4,
        "points_per_decade": 30,
    },
    "paper": {
        "samples": 30,
        "dimension": 100,
        "sparsity": 5,
        "seed": 0,
        "snr": 1e8,
        "step": 0.1,
        "beta": 1e-5,
        "start": 1e-6,
        "steps": 1_000_000,
        "level": 1e-4,
        "points_per_decade": 60,
    },
}
NUCLEAR: dict[str, Parameters] = {
    "quick": {
        "samples": 70,
        "dimension": 10,
        "rank": 2,
        "seed": 2,
        "step": 0.1,
        "beta": 1e-3,
        "start": 1e-6,
        "steps": 150_000,
        "level": 1e-2,
        "points_per_decade": 30,
    },
    "paper": {
        "samples": 70,
        "dimension": 10,
        "rank": 2,
        "seed": 2,
        "step": 0.1,
        "beta": 1e-4,
        "start": 1e-6,
        "steps": 1_500_000,
        "level": 1e-2,
        "points_per_decade": 60,
    },
}
KEPT = ("gradient_norm", "penalty_gradient_norm", "loss", "test_error", "norm_l2")
TIMES = {
    "t1": "step at which the training loss comes down to the level",
    "t1_foreseen": "the same without a penalty, in closed form",
    "takeover": "first recorded step with beta |H| >= |G|",
    "t2": "step at which the squared error |a - a*|^2 comes down to the level",
    "t2_source": "t1_foreseen + |a_hat - a*| / (step beta) in the dual norm, the source's order",
    "t2_exact": "t1_foreseen + tau / (step beta), tau of the slow flow down to the level",
}
# how a drawing writes the predictor, the norm of the penalty, the error and the source's numerator
SYMBOLS = {
    "l1": ("a", r"\|a\|_1", r"\|a\|_2", r"\|a - a^*\|_2^2", r"\|\hat a - a^*\|_\infty"),
    "nuclear": ("A", r"\|A\|_*", r"\|A\|_F", r"\|A - A^*\|_F^2", r"\|\hat A - A^*\|_{op}"),
}
HEIGHTS = (1.7, 1.9, 1.5)  # gradients, errors, norms


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """The run over its recorded steps, and t1 and t2 measured and foreseen."""
    case = recovery(parameters)
    record = log_steps(parameters["steps"], parameters["points_per_decade"])
    step, beta, start = (parameters[name] for name in ("step", "beta", "start"))
    run = case.run(step, beta, start, record)[[*KEPT, f"norm_{case.norm}"]]
    scalars = {**measured(run, parameters["level"]), **foreseen(case, parameters)}
    found = run.assign(
        {name: ((), scalars[name], about(text, "steps")) for name, text in TIMES.items()}
    )
    found = found.assign(
        truth_norm=((), case.sizes(case.truth[None])[0], about("the penalty's norm of the truth")),
        truth_l2=((), np.linalg.norm(case.truth), about("Euclidean norm of the truth")),
        level=((), parameters["level"], about("loss and squared error that count as solved")),
    )
    if progress:
        progress(1, 1)
    return found.assign_attrs(norm=case.norm, summary=summary(found))


@cell_of(PRESETS["quick"])
def cell(parameters: Parameters) -> Values:
    """The curves of the run and its times."""
    return _values(parameters)


@cell_of(NUCLEAR["quick"])
def nuclear_cell(parameters: Parameters) -> Values:
    """The same for completion."""
    return _values(parameters)


def _values(parameters: Parameters) -> Values:
    return values_of(data(parameters).drop_vars("level"), "record")


def summary(run: xarray.Dataset) -> str:
    """t1 and t2, measured and foreseen."""
    told = {name: count(run[name]) if np.isfinite(run[name]) else "never" for name in TIMES}
    return (
        f"t1 = {told['t1']} (foreseen {told['t1_foreseen']}), the penalty takes over at "
        f"{told['takeover']}, t2 = {told['t2']} (foreseen {told['t2_exact']} by the slow phase, "
        f"{told['t2_source']} by the source's order)"
    )


def measured(run: xarray.Dataset, level: float) -> dict[str, float]:
    """t1, t2 and the takeover of a run; nan for what it does not reach."""
    steps = run.step.values.astype(float)
    ruled = np.flatnonzero(run.penalty_gradient_norm.values >= run.gradient_norm.values)
    return {
        "t1": crossing(steps, run.loss.values, level),
        "t2": crossing(steps, run.test_error.values, level),
        "takeover": float(steps[ruled[0]]) if len(ruled) else math.nan,
    }


def foreseen(case: Recovery, parameters: Parameters) -> dict[str, float]:
    """t1 and t2 before training: the source's order and the slow phase."""
    from tacit.solvers.delay import predicted_delay

    step, beta, level = (parameters[name] for name in ("step", "beta", "level"))
    truth = case.problem.truth
    order = predicted_delay(case.X, case.problem.y, truth, step, beta, case.norm, level)
    tau = case.slow(parameters["start"]).reaches(case.truth, math.sqrt(level))
    exact = order.t1 + tau / (step * beta)
    return {"t1_foreseen": float(order.t1), "t2_source": order.t2, "t2_exact": exact}


@figure(
    "N-F-dominance",
    title="The loss leads to memorization at once, then the l1 penalty leads slowly to the truth",
    source="Notsawo et al. 2025, Figure 5, sparse recovery",
    data=data,
    presets=PRESETS,
    constructed="the seed; in preset quick also beta and the number of steps",
)
@figure(
    "N-F-dominance-nuclear",
    title="Completion: the loss memorizes the entries, then the nuclear norm finds the low rank",
    source="Notsawo et al. 2025, the second Figure 5, matrix completion",
    data=data,
    presets=NUCLEAR,
    constructed="the seed, the level and the number of steps; in preset quick also beta",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Gradient norms, errors and norms over the number of steps, with t1 and t2."""
    level = float(dataset.level)
    caption = (
        f"{caption_of(dataset.attrs)} t1: training loss <= {level:g}; t2: squared error <= "
        f"{level:g}. After the takeover G does not vanish: on average over many steps it balances "
        "the part of beta H that the data see."
    )
    picture, axes = rows(dataset.title, caption, HEIGHTS, width=10.0)
    run = dataset.isel(record=np.flatnonzero(dataset.step.values > 0))
    _draw_gradients(axes[0], run)
    _draw_errors(axes[1], run)
    _draw_norms(axes[2], run)
    _marks(axes, dataset)
    for one in axes:
        one.legend(**LEGEND)
    axes[0].set(xscale="log", xlim=(1, float(dataset.step[-1])))
    picture.align_ylabels(axes)
    return picture


def _draw_gradients(axes: Axes, run: xarray.Dataset) -> None:
    axes.plot(run.step, run.gradient_norm, color=BLUE, label=r"$\|G\|$, gradient of the loss")
    axes.plot(
        run.step,
        run.penalty_gradient_norm,
        "--",
        color=RED,
        label=r"$\beta\,\|H\|$, of the penalty",
    )
    takeover = float(run.takeover)
    if math.isfinite(takeover):
        place = int(np.searchsorted(run.step.values, takeover))
        height = float(run.penalty_gradient_norm[place])
        axes.plot(
            takeover,
            height,
            "o",
            color=BLACK,
            zorder=4,
            linestyle="none",
            label=f"takeover at {count(takeover)}",
        )
    axes.set(ylabel="gradient norm", yscale="log")


def _draw_errors(axes: Axes, run: xarray.Dataset) -> None:
    error = SYMBOLS[run.norm][3]
    axes.plot(run.step, run.loss, "--", color=BLUE, label=r"training loss $g$")
    axes.plot(run.step, run.test_error, color=RED, linewidth=3, label=f"test error ${error}$")
    axes.axhline(float(run.level), color=GREY, linewidth=0.9, label=f"level {float(run.level):g}")
    axes.set(ylabel="loss and error", yscale="log")


def _draw_norms(axes: Axes, run: xarray.Dataset) -> None:
    a, h, l2, *_ = SYMBOLS[run.norm]
    for values, text, colour, line in (
        (run[f"norm_{run.norm}"] / run.truth_norm, h, GREEN, "-"),
        (run.norm_l2 / run.truth_l2, l2, PURPLE, "--"),
    ):
        of_truth = text.replace(a, f"{a}^*")
        axes.plot(run.step, values, line, color=colour, label=f"${text} / {of_truth}$")
    axes.axhline(1.0, color=BLACK, linewidth=0.9, linestyle=":", label="the truth")
    axes.set(
        ylabel="norm, share\nof the truth's", xlabel="steps of subgradient descent", ylim=(0, None)
    )


def _marks(axes: list[Axes], dataset: xarray.Dataset) -> None:
    """t1 and t2: measured dash-dotted in colour, foreseen dotted and dashed."""
    lines = (
        ("t1", "$t_1$ = ", BLUE, "-."),
        ("t1_foreseen", "$t_1$ foreseen: ", BLACK, ":"),
        ("t2", "$t_2$ = ", RED, "-."),
        ("t2_exact", r"$t_2$ foreseen, slow phase: ", BLACK, ":"),
        ("t2_source", rf"$t_2$ by ${SYMBOLS[dataset.norm][4]}/(\alpha\beta)$: ", ORANGE, "--"),
    )
    for name, text, colour, line in lines:
        place = float(dataset[name])
        if math.isfinite(place):
            mark(axes, place, text + count(place), colour, line)
