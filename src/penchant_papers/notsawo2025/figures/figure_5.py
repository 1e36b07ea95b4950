"""Figure 5: the loss dominates until memorization, the penalty from there to recovery."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant.lab import (
    Axes,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    sized,
    within,
)
from penchant.plotting import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LEGEND,
    ORANGE,
    PURPLE,
    RED,
    caption_of,
    latex,
    mark,
    panel_rows,
)
from penchant_papers.instances import listed
from penchant_papers.notsawo2025.figures.runs import curves_of, dims_of, plain
from penchant_papers.notsawo2025.recoveries import (
    LOW_RANK,
    SPARSE,
    arguments_of,
    count,
    log_steps,
    reached,
    recoverable,
)

CURVES = ("gradient_norm", "penalty_gradient_norm", "loss", "test_error", "norm", "norm_l2")
TIMES = {
    "t1": "step at which the training loss falls to the level",
    "t1_predicted": "the same without a penalty, in closed form",
    "takeover": r"first recorded step with $\beta |H| \geq |G|$",
    "t2": "step at which the squared error $|a - a^*|^2$ falls to the level",
    "t2_source": r"t1_predicted + $|\hat{a} - a^*|/(\mathrm{step}\,\beta)$ in the dual norm, the "
    "source's order",
    "t2_exact": r"t1_predicted + $\tau/(\mathrm{step}\,\beta)$, $\tau$ of the slow phase down to "
    "the level",
}
# the symbols of the predictor, the penalty's norm, the l2 norm, the error, the source's numerator
SYMBOLS = {
    "sparse": ("a", r"\|a\|_1", r"\|a\|_2", r"\|a - a^*\|_2^2", r"\|\hat a - a^*\|_\infty"),
    "completion": ("A", r"\|A\|_*", r"\|A\|_F", r"\|A - A^*\|_F^2", r"\|\hat A - A^*\|_{op}"),
}


def cell(
    beta: float, *, step: float, level: float, points_per_decade: int, **problem: Any
) -> dict[str, Any]:
    """One run to twice the predicted t2, with t1, t2 and the takeover, measured and predicted.

    `level`, of loss and squared error, is in the square of the recovery's unit.
    """
    case, draws = recoverable(**problem)
    level *= case.unit**2
    t1, tau = case.t1(step, level), case.path.reaches(case.truth, math.sqrt(level))
    run = case.run(step, beta, log_steps(2 * (t1 + tau / (step * beta)), points_per_decade))
    points = case.points(run)
    error = case.error(points) ** 2
    penalty_dominates = run.penalty_gradient_norm.values >= run.gradient_norm.values
    return {
        "draws": draws,
        "solved": level,
        "t1": reached(run.step, run.loss, level),
        "t1_predicted": t1,
        "takeover": float(run.step[penalty_dominates][0]) if penalty_dominates.any() else math.nan,
        "t2": reached(run.step, error, level),
        "t2_source": t1 + case.dual_norm(case.memorized() - case.truth) / (step * beta),
        "t2_exact": t1 + tau / (step * beta),
        "truth_norm": float(case.norms(case.truth[None])[0]),
        "truth_l2": float(np.linalg.norm(case.truth)),
        **curves_of(run, ("step", "gradient_norm", "penalty_gradient_norm", "loss")),
        "trajectory_test_error": error,
        "trajectory_norm": case.norms(points),
        "trajectory_norm_l2": np.linalg.norm(points, axis=1),
    }


def _study(
    name: str,
    title: str,
    arguments: dict[str, Any],
    seeds: int,
    tiny: int,
    quick: dict[str, float],
    printed: dict[str, float],
) -> Any:
    """The study of several problems; the sizes differ in beta and in the step."""
    return sized(
        name,
        title=title,
        function=cell,
        arguments=arguments | {"step": quick["step"], "points_per_decade": 30},
        grid={"beta": [quick["beta"]]},
        seeds=seeds,
        dims=dims_of(("step", *CURVES)),
        labels={
            "beta": "strength of the penalty",
            **TIMES,
            "draws": "how many problems were drawn until one met the premises",
            "solved": "the loss at $t_1$ and the squared error at $t_2$",
            "truth_norm": "the penalty's norm of the truth",
            "truth_l2": "Euclidean norm of the truth",
            "trajectory_test_error": "squared error $|a - a^*|^2$",
            "trajectory_gradient_norm": "gradient norm $|G|$ of the loss",
            "trajectory_penalty_gradient_norm": r"$\beta |H|$ of the penalty",
            "trajectory_norm": "the penalty's norm of the predictor",
        },
        tiny={"seeds": tiny},
        printed={
            "arguments": {"step": printed["step"], "points_per_decade": 60},
            "grid": {"beta": [printed["beta"]]},
            "seeds": 5,
        },
    )


sparse = _study(
    "N-F-dominance",
    "The loss leads to memorization quickly, then the ℓ₁ penalty leads to the truth slowly",
    SPARSE | {"noise": 1e-8, "level": 1e-4},
    seeds=5,
    tiny=5,  # of two problems, both may by chance have N's constant of one
    quick={"beta": 1e-4, "step": 0.1},
    printed={"beta": 1e-5, "step": 0.1},
)
nuclear = _study(
    "N-F-dominance-nuclear",
    "Completion: the loss memorizes the entries, then the nuclear norm finds the low rank",
    LOW_RANK | {"kind": "completion", "noise": 0.0, "level": 1e-2},
    seeds=3,
    tiny=2,
    quick={"beta": 3e-3, "step": 0.5},
    printed={"beta": 1e-4, "step": 0.1},
)


def measures(run: Dataset) -> dict[str, float]:
    """The numbers of one run that the statement is about."""
    steps, t1, t2 = run.step.values, float(run.t1), float(run.t2)
    ratio = (run.gradient_norm / run.penalty_gradient_norm).values
    early, slow = steps < t1, (steps > float(run.takeover)) & (steps < t2)
    off = np.abs((run["norm"] / run.truth_norm).values - 1)
    if not (early.any() and slow.any()):
        return dict.fromkeys(("fit", "pull", "end", "begin"), math.nan)
    return {
        "fit": ratio[early].min(),
        "pull": ratio[slow].max(),
        "end": off[-1],
        "begin": off[slow].max(),
    }


def check(dataset: Dataset) -> Evidence:
    """Which gradient dominates before t1 and until t2, and where the norm and the error end."""
    runs = [plain(dataset.isel(beta=0, seed=k)) for k in range(dataset.sizes["seed"])]
    parts = [measures(run) for run in runs]
    times = {name: np.ravel(dataset[name].values) for name in TIMES}
    fit = at_least(min(part["fit"] for part in parts), 1.0)
    pull = at_most(max(part["pull"] for part in parts), 1.0)
    soon = at_most(np.median(times["takeover"] / times["t2"]), 0.02)
    end = within(max(part["end"] for part in parts), tolerance=0.05)
    predicted = within(np.abs(times["t2"] / times["t2_exact"] - 1).max(), tolerance=0.05)
    left = [float(run.test_error[-1] / run.truth_l2**2) for run in runs]
    return Evidence(
        ran=rf"{len(runs)} problems with $\beta = {latex(float(dataset.beta[0]))}$, each to twice "
        f"its predicted $t_2$, {min(float(run.step[-1]) for run in runs):.0f} steps and more",
        premises={
            f"every run {verb}": (bool(np.isfinite(times[name]).all()), listed(times[name], ".0f"))
            for verb, name in (("memorizes", "t1"), ("recovers", "t2"))
        },
        checks={
            r"least $|G|/(\beta |H|)$ before $t_1$": fit,
            r"largest $|G|/(\beta |H|)$ from the takeover to $t_2$": pull,
            "median takeover over $t_2$: the penalty dominates soon after memorization": soon,
            "largest $|h/h^* - 1|$ at the end": end,
            "largest |$t_2$ / $t_2$ by the slow phase - 1|": predicted,
        },
        controls={
            "the loss dominates to the end": fit.control(max(p["pull"] for p in parts)),
            "the penalty dominates from the start": pull.control(min(p["fit"] for p in parts)),
            "the norm is that of the truth from memorization on": end.control(
                min(part["begin"] for part in parts)
            ),
            "the source's order with a constant of one": predicted.control(
                np.abs(times["t2"] / times["t2_source"] - 1).max()
            ),
        },
        findings=[
            summary(runs[0]),
            f"problems whose truth has the least norm: {len(runs)} of {int(dataset.draws.sum())}"
            " drawn",
            "$a(t_2) = a^*$ holds only up to the level: the final squared errors are "
            f"{listed(left, '.1e')} times the squared norm of the truth",
            r"$G$ does not vanish after $t_1$: on average it balances the part of $\beta H$ in "
            r"the row space of $X$, and $|G|/(\beta |H|)$ ends at "
            + listed(
                [run.gradient_norm[-1] / run.penalty_gradient_norm[-1] for run in runs], ".2f"
            ),
        ],
    )


def summary(run: Dataset) -> str:
    """t1 and t2, measured and predicted."""
    at = {name: count(run[name]) if np.isfinite(run[name]) else "never" for name in TIMES}
    return (
        f"$t_1 = {at['t1']}$ (predicted {at['t1_predicted']}), the penalty takes over at "
        f"{at['takeover']}, $t_2 = {at['t2']}$ (predicted {at['t2_exact']} by the slow phase, "
        f"{at['t2_source']} by the source's order)"
    )


def draw(dataset: Dataset) -> Figure:
    """Gradient norms, errors and norms over the number of steps, with t1 and t2."""
    symbols = SYMBOLS[arguments_of(dataset)["kind"]]
    run = plain(dataset.isel(beta=0, seed=0), after=0)
    level = float(run.solved)
    caption = (
        rf"{caption_of(dataset.attrs)} $t_1$: training loss $\leq {latex(level)}$; $t_2$: squared "
        rf"error $\leq {latex(level)}$. After the takeover $G$ does not vanish: on "
        "average over many steps it "
        r"balances the part of $\beta H$ in the row space of $X$."
    )
    picture, axes = panel_rows(dataset.attrs["title"], caption, (1.7, 1.9, 1.5), width=10.0)
    _draw_gradients(axes[0], run)
    _draw_errors(axes[1], run, symbols, level)
    _draw_norms(axes[2], run, symbols)
    _marks(axes, run, symbols)
    for one in axes:
        one.legend(**LEGEND)
    axes[0].set(xscale="log", xlim=(1, float(run.step[-1])))
    picture.align_ylabels(axes)
    return picture


def _draw_gradients(axes: Axes, run: Dataset) -> None:
    axes.plot(run.step, run.gradient_norm, color=BLUE, label=r"$\|G\|$, gradient of the loss")
    penalty = r"$\beta\,\|H\|$, of the penalty"
    axes.plot(run.step, run.penalty_gradient_norm, "--", color=RED, label=penalty)
    takeover = float(run.takeover)
    if math.isfinite(takeover):
        height = float(run.penalty_gradient_norm[np.searchsorted(run.step.values, takeover)])
        text = f"takeover at {count(takeover)}"
        axes.plot(takeover, height, "o", color=BLACK, zorder=4, linestyle="none", label=text)
    axes.set(ylabel="gradient norm", yscale="log")


def _draw_errors(axes: Axes, run: Dataset, symbols: Any, level: float) -> None:
    axes.plot(run.step, run.loss, "--", color=BLUE, label=r"training loss $g$")
    axes.plot(run.step, run.test_error, color=RED, linewidth=3, label=f"test error ${symbols[3]}$")
    axes.axhline(level, color=GREY, linewidth=0.9, label=f"level {level:g}")
    axes.set(ylabel="loss and error", yscale="log")


def _draw_norms(axes: Axes, run: Dataset, symbols: Any) -> None:
    a, h, l2, *_ = symbols
    for values, text, colour, line in (
        (run["norm"] / run.truth_norm, h, GREEN, "-"),
        (run.norm_l2 / run.truth_l2, l2, PURPLE, "--"),
    ):
        of_truth = text.replace(a, f"{a}^*")
        axes.plot(run.step, values, line, color=colour, label=f"${text} / {of_truth}$")
    axes.axhline(1.0, color=BLACK, linewidth=0.9, linestyle=":", label="the truth")
    axes.set(
        ylabel="norm, share\nof the truth's", xlabel="steps of subgradient descent", ylim=(0, None)
    )


def _marks(axes: list[Axes], run: Dataset, symbols: Any) -> None:
    """t1 and t2: measured dash-dotted in colour, predicted dotted and dashed."""
    lines = (
        ("t1", "$t_1$ = ", BLUE, "-."),
        ("t1_predicted", "$t_1$ predicted: ", BLACK, ":"),
        ("t2", "$t_2$ = ", RED, "-."),
        ("t2_exact", r"$t_2$ predicted, slow phase: ", BLACK, ":"),
        ("t2_source", rf"$t_2$ by ${symbols[4]}/(\alpha\beta)$: ", ORANGE, "--"),
    )
    for name, text, colour, line in lines:
        place = float(run[name])
        if math.isfinite(place):
            mark(axes, place, text + count(place), colour, line)


SAYS = (
    r"the gradient $G$ of the loss dominates the subgradient $\beta H$ of the penalty until "
    r"memorization at $t_1$; from then on $\beta H$ dominates and makes the norm converge to "
    "that of the truth at $t_2$, where the truth is recovered"
)
experiment = Experiment(
    "N-F-dominance",
    statement=f"In sparse recovery {SAYS}.",
    place="Sparsity, Figure 5",
    study=sparse,
    check=check,
    draw=draw,
    ours="the seeds, and the number of steps",
    scope={"quick": r"$\beta$ $10^{-4}$ in place of $10^{-5}$"},
    seconds=1,
)
low_rank = Experiment(
    "N-F-dominance-nuclear",
    statement=f"In matrix completion {SAYS}.",
    place="Low-rankness, Figure 5",
    study=nuclear,
    check=check,
    draw=draw,
    ours="the seeds, matrices with a certificate of at most 0.95, the level (an error of $0.1 "
    "|A^*|$) and the number of steps",
    scope={"quick": r"$\beta$ $3 \times 10^{-3}$ in place of $10^{-4}$, step 0.5 in place of 0.1"},
    seconds=1,
)
