"""Figures 6 and 7: t2 and the remaining error over step and beta, for l1 and the nuclear norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penchant.lab import Array, Axes, Dataset, Evidence, Experiment, Figure, sized, within
from penchant.plotting import (
    BLACK,
    CYCLE,
    GREY,
    MARKERS,
    ORANGE,
    caption_of,
    latex,
    log_axes,
    sheet,
)
from penchant_papers.instances import listed
from penchant_papers.notsawo2025.delays import cell
from penchant_papers.notsawo2025.recoveries import LOW_RANK, SPARSE, arguments_of

SMALL = 0.02  # a fifth of the relative error of a matrix at t2
ROUNDING = 1e-10  # an error that is a smaller share of the truth is not due to noise
# the symbols of the penalty, of the remaining error and of the source's numerator
SYMBOLS = {
    "sparse": (r"\|a\|_1", r"\|a - a^*\|_1", r"\|\hat a - a^*\|_\infty"),
    "completion": (r"\|A\|_*", r"\|A - A^*\|_*", r"\|\hat A - A^*\|_{op}"),
}
LABELS = {
    "step": r"step size (the source's $\alpha$)",
    "beta": "strength of the penalty $h$",
    "t1": "step at which descent without a penalty reaches the loss $10^{-4}$",
    "t2": "step at which $|a - a^*|$, of a matrix over $|A^*|$, falls to the level; nan if it "
    "does not",
    "to_truth": "$h(a - a^*)$ of the converged run, mean over its last steps",
    "point_error": r"$h(a_\beta - a^*)$ of the exact minimiser of loss + $\beta h(a)$",
    "tau": r"time of the slow phase down to the level, in step $\beta$ steps",
    "gap": r"$|\hat{a} - a^*|$ in the dual norm of $h$, the source's numerator of $t_2 - t_1$",
    "noise_error": "$h(a - a^*)$ of the interpolator of least $h$: the error due to noise at "
    r"$\beta$ 0",
    "of_truth": "$h$ of the truth",
    "step_beta": r"step size times $\beta$",
}
sparse = sized(
    "N-F-scaling",
    title=r"The time to recover scales like $1/(\mathrm{step}\,\beta)$; the remaining error "
    r"depends mostly on $\beta$",
    function=cell,
    arguments=SPARSE | {"noise": 1e-8, "level": 0.01, "relative": False},
    grid={"step": [0.01, 0.03, 0.1], "beta": [1e-4, 3e-4, 1e-3, 1e-2]},
    seeds=3,
    tiny={"seeds": 1},
    labels=LABELS,
    draw={"x": "beta", "colour": "t2", "log": True},
    printed={"grid": {"step": [0.005, 0.02, 0.1], "beta": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]}},
)
nuclear = sized(
    "N-F-scaling-nuclear",
    title=r"Nuclear norm: the time to recover scales like $1/(\mathrm{step}\,\beta)$, the "
    r"remaining error like $\beta$",
    function=cell,
    arguments=LOW_RANK | {"kind": "completion", "noise": 0.0, "level": 0.1, "relative": False},
    grid={"step": [0.1, 0.4, 1.5], "beta": [5e-3, 1.5e-2, 5e-2]},
    seeds=6,
    tiny={"seeds": 1},
    labels=LABELS,
    draw={"x": "beta", "colour": "t2", "log": True},
    printed={"grid": {"step": [0.08, 0.35, 1.5], "beta": [1e-4, 1e-3, 1e-2, 1e-1]}},
)


def exponents(run: Dataset) -> dict[str, float]:
    """Fitted exponents: of t2 in step beta, of the errors in beta and in the step alone.

    Only errors between three times that of noise and a tenth of the truth's norm count: noise
    bounds them from below, the truth from above. Only runs that end with less than SMALL of the
    truth's norm count for t2: where the remaining error is near the level, t2 comes late. The
    exponents in the step use steps up to half of the largest stable one: beyond it the iterates
    oscillate more, like step/(bound - step).
    """
    kept = (run.to_truth >= 3 * run.noise_error) & (run.to_truth <= run.of_truth / 10)
    errors, rest = (np.log(run[n].where(kept).values) for n in ("to_truth", "to_point"))
    small = run.step.values <= run.bound.values.min() / 2
    step_beta, steps, betas = (np.log(run[n].values) for n in ("step_beta", "step", "beta"))
    clear = run.to_truth <= SMALL * run.of_truth
    times = np.log(run.t2.where(clear).values)
    done = np.isfinite(times)
    return {
        "delay": _slope(step_beta, times),
        "smooth": _slope(step_beta[done], np.log(-step_beta[done] / np.exp(step_beta[done]))),
        "memorized": _slope(step_beta, np.log(run.t1.values)),
        "beta": _mean([_slope(betas, row) for row in errors]),
        "step": _mean([_slope(steps[small], column) for column in errors[small].T]),
        "rest": _mean([_slope(steps[small], column) for column in rest[small].T]),
    }


def _mean(slopes: list[float]) -> float:
    """The mean of the finite slopes; NaN if there is none."""
    kept = [slope for slope in slopes if math.isfinite(slope)]
    return float(np.mean(kept)) if kept else math.nan


def _slope(x: Array, y: Array) -> float:
    """The least squares slope through the points with a finite y; NaN with fewer than two."""
    kept = np.isfinite(y)
    if len(set(x[kept])) < 2:
        return math.nan
    return float(np.polyfit(x[kept], y[kept], 1)[0])


def check(dataset: Dataset) -> Evidence:
    """The mean exponents of the delay in step beta, and of the error in beta and in the step."""
    problems = [dataset.isel(seed=k) for k in range(dataset.sizes["seed"])]
    every, run = [exponents(problem) for problem in problems], problems[0]
    fitted = {name: float(np.mean([one[name] for one in every])) for name in every[0]}
    law = within(fitted["delay"], -1.0, 0.05)
    both = {
        r"mean exponent of $t_2$ in step $\beta$": law,
        r"mean exponent of the remaining error in $\beta$": within(fitted["beta"], 1.0, 0.1),
    }
    rest = within(fitted["rest"], 1.0, 0.1)
    goals = ("the truth", r"the minimiser of $g + \beta h$")
    by_truth, by_point = (f"mean exponent of the distance to {goal} in the step" for goal in goals)
    late = ((dataset.t2 - dataset.t1) * dataset.step_beta / dataset.tau).values
    reached = late[np.isfinite(late)]
    return Evidence(
        ran=f"{run.t2.size} runs of each of {len(problems)} problems until convergence, steps "
        rf"{float(run.step.min()):g} to {float(run.step.max()):g}, $\beta$ "
        f"{float(run.beta.min()):g} to {float(run.beta.max()):g}",
        premises={
            "some runs of every problem recover the truth": (
                bool(np.isfinite(dataset.t2).any(["step", "beta"]).all()),
                f"{reached.size} runs",
            )
        },
        checks={**both, by_truth: within(fitted["step"], 1.0, 0.1)},
        corrected={**both, by_point: rest},
        correction=r"The remaining error is not proportional to step $\beta$: it scales with "
        r"$\beta$, like that of the minimiser of $g + \beta h$, and only the distance to that "
        r"minimiser is proportional to step $\beta$. A smaller step alone takes longer and "
        "hardly reduces the error.",
        counterexample=r"the error over the step $\beta$: "
        rf"{listed((run.to_truth / run.step_beta).isel(beta=0), '.0f')} at $\beta = "
        f"{latex(float(run.beta[0]))}$ and steps of {listed(run.step)}",
        controls={
            r"log($1/(\mathrm{step}\,\beta)$)/(step $\beta$), as for smooth penalties": law.control(
                fitted["smooth"]
            ),
            "the time of memorization": law.control(fitted["memorized"]),
            r"the error is proportional to step $\beta$": rest.control(fitted["step"]),
        },
        findings=[
            r"$(t_2 - t_1)$ step $\beta$ over the time of the slow phase is "
            + (f"{reached.min():.3g} to {reached.max():.3g}" if reached.size else "unknown")
            + "; over the source's numerator that time is"
            f" {listed([one.tau.max() / one.gap.max() for one in problems], '.3g')}",
            f"{int(np.isnan(late).sum())} of {late.size} runs never reach the level of $t_2$, "
            "those with a strong penalty",
            f"problems whose truth has the least norm: {len(problems)} of"
            f" {int(dataset.draws.isel(step=0, beta=0).sum())} drawn",
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """t2 - t1 over step beta, and the remaining error over step beta and over beta."""
    run = dataset.isel(seed=0)
    caption = (
        f"{caption_of(dataset.attrs)} $t_1$: training loss ≤ $10^{{-4}}$; $t_2$: where the error "
        "falls to the level; strengths that are too large to reach it have no $t_2$. The "
        "error is a mean over the last steps; its exponents are fitted between three times "
        "the noise limit and a tenth of the truth's norm. The source plots it over step "
        r"$\beta$, where the curves of different steps do not coincide."
    )
    title = dataset.attrs["title"]
    picture, axes = sheet(title, caption, widths=(4.4, 4.0, 4.0), height=4.9)
    symbols, fitted = SYMBOLS[arguments_of(dataset)["kind"]], exponents(run)
    _draw_times(axes[0], run, symbols, fitted)
    _draw_errors(axes[1:], run, symbols, fitted)
    return picture


def _draw_times(axes: Axes, run: Dataset, symbols: Any, fitted: dict[str, float]) -> None:
    delay, tau = (run.t2 - run.t1).values, float(run.tau.max())
    _points(axes, run, run.step_beta.values, delay)
    reach = run.step_beta.values[np.isfinite(delay)]
    ends = np.array([reach.min() / 2, reach.max() * 2]) if len(reach) else np.ones(2)
    text = rf"slow phase, {tau:.3g}/$(\alpha\beta)$"
    axes.plot(ends, tau / ends, color=BLACK, linewidth=1.4, zorder=1, label=text)
    text = rf"source, ${symbols[2]}/(\alpha\beta)$"
    axes.plot(ends, float(run.gap.max()) / ends, "--", color=ORANGE, zorder=1, label=text)
    log_axes(axes, r"step times strength, $\alpha\beta$", "delay $t_2 - t_1$ (steps)")
    axes.set_title(f"(a) delay: exponent ${fitted['delay']:.3f}$ (source: $-1$)")
    axes.legend(loc="lower left")


def _draw_errors(axes: list[Axes], run: Dataset, symbols: Any, fitted: dict[str, float]) -> None:
    over_product, over_beta = axes
    penalty, left, _ = symbols
    errors = run.to_truth.values
    _points(over_product, run, run.step_beta.values, errors, "-")
    _points(over_beta, run, np.broadcast_to(run.beta.values, errors.shape), errors)
    over_beta.plot(
        run.beta,
        run.point_error.isel(step=0),
        color=BLACK,
        linewidth=1.4,
        zorder=1,
        label=rf"exact minimiser of $g + \beta{penalty}$",
    )
    over_product.set_title(f"(b) error: exponent in the step {fitted['step']:.2f} (source: 1)")
    over_beta.set_title(rf"(c) error: exponent in $\beta$ {fitted['beta']:.2f} (source: 1)")
    noise = float(run.noise_error.max())
    for one in axes:
        if noise > ROUNDING * float(run.of_truth.max()):
            text = r"from noise alone, $\beta \to 0$"
            one.axhline(noise, color=GREY, linestyle=":", linewidth=1.2, label=text)
    log_axes(over_product, r"step times strength, $\alpha\beta$", f"remaining error ${left}$")
    log_axes(over_beta, r"strength of the penalty, $\beta$", f"remaining error ${left}$")
    over_beta.legend(loc="upper left")


def _points(axes: Axes, run: Dataset, x: Array, y: Array, line: str = "none") -> None:
    """One marker and colour for every step size."""
    for k, step in enumerate(run.step.values):
        look: Any = {"marker": MARKERS[k % len(MARKERS)], "color": CYCLE[k % len(CYCLE)]}
        label = rf"step $\alpha$ = {step:g}"
        axes.plot(x[k], y[k], linestyle=line, markersize=6, linewidth=0.8, label=label, **look)


SAYS = (
    r"$t_2$ is proportional to $1/(\mathrm{step}\,\beta)$ and the error at $t_2$ to step $\beta$: "
    r"a small step $\beta$ requires more time and ends with a lower error"
)
experiment = Experiment(
    "N-F-scaling",
    statement=rf"In sparse recovery with an $\ell_1$ penalty {SAYS}.",
    place="Sparsity, Figures 6 and 7",
    study=sparse,
    check=check,
    draw=draw,
    ours="the seeds, the grid within the source's ranges and when a run has converged",
    scope={
        "quick": r"steps of 0.01 to 0.1 and $\beta$ of $10^{-4}$ to $10^{-2}$ in place of 0.005 "
        "to 0.1 and $10^{-6}$ to 0.1"
    },
    seconds=2,
)
low_rank = Experiment(
    "N-F-scaling-nuclear",
    statement=f"In matrix completion with a nuclear penalty {SAYS}.",
    place="Low-rankness, Figure 6",
    study=nuclear,
    check=check,
    draw=draw,
    ours="the seeds, matrices with a certificate of at most 0.95, the level $(0.1 |A^*|)$, the "
    "grid within the source's ranges and when a run has converged",
    scope={
        "quick": r"steps of 0.1 to 1.5 and $\beta$ of $5 \times 10^{-3}$ to 0.05 in place of 0.08 "
        "to 1.5 and $10^{-6}$ to 0.1",
        "printed": r"$\beta$ of $10^{-4}$ to 0.1 in place of $10^{-6}$ to 0.1",
    },
    seconds=4,
)
