"""Data selection: completion from the entries of largest coherence, or from random ones."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from penchant.lab import (
    DRAWS,
    Axes,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    door_as,
    drawn,
    lower_share,
    one_of,
    share_at_least,
    sized,
    within,
)
from penchant.plotting import BLACK, BLUE, CYCLE, GREY, RED, caption_of, latex, log_axes, sheet
from penchant.problems import coherent_completion
from penchant_papers.notsawo2025.figures.runs import curves_of, dims_of, plain
from penchant_papers.notsawo2025.recoveries import (
    FOUND,
    SOLVED,
    LowRankRecovery,
    arguments_of,
    count,
    log_steps,
    reached,
)

COHERENT = 0.75  # the share of coherent entries that is compared with random ones
TIMED = 70  # samples at which the delay is computed
APART = 1.25  # the least ratio of the slow phases of two choices that descent is to tell apart
CURVES = ("step", "loss", "relative_error")
WAYS = ("largest coherence first", "least coherence first", "other random entries")


@door_as("data selection")
def chosen(
    seed: int,
    samples: int,
    share: float,
    dimension: int,
    rank: int,
    euler: float,
    way: str = WAYS[0],
) -> LowRankRecovery:
    """A matrix with Gaussian factors, and the choice of its observed entries."""
    one_of("way", way, WAYS)
    u, v = np.random.default_rng(seed).standard_normal((2, dimension, rank))
    problem = coherent_completion(
        samples=samples,
        truth=u @ v.T,
        tau=0.0 if way == WAYS[2] else share,
        seed=seed + 1000 * (way == WAYS[2]),
        least=way == WAYS[1],
        loss="half squares",
    )
    return LowRankRecovery(problem, euler)


@functools.lru_cache(maxsize=8)  # the runs of a seed share their matrix
def timed_seed(
    seed: int, level: float, samples: int, dimension: int, rank: int, euler: float
) -> int:
    """The first seed from 1000 `seed` on whose matrix is recovered with shares of 0.5 and 0.75.

    The times of their slow phases are APART: only then can times of descent tell them apart.
    """

    def suits(place: int) -> bool:
        cases = [chosen(place, samples, share, dimension, rank, euler) for share in (0.5, 0.75)]
        if any(case.off(case.least) >= FOUND for case in cases):
            return False
        one, other = (duration(case, level) for case in cases)
        return max(one, other) >= APART * min(one, other)

    return drawn(lambda place: place, suits, DRAWS * seed)[0]


def cell(level: float, **problem: Any) -> dict[str, float]:
    """The error of the least nuclear norm and, for TIMED samples, the delay of the slow phase."""
    case = chosen(**problem)
    # below 1 the truth is the only interpolator of least norm, and no solver is needed
    error = 0.0 if case.certificate < 1 else case.off(case.least)
    wanted = problem["samples"] == TIMED
    return {
        "error": float(error),
        "fewest": scarcest(case),
        "delay": (duration(case, level) if error < FOUND else math.inf) if wanted else math.nan,
    }


def scarcest(case: LowRankRecovery) -> int:
    """The number of observed entries in the row or column with the fewest."""
    observed = case.X.any(axis=0).reshape(case.problem.shape)
    return int(min(observed.sum(axis=0).min(), observed.sum(axis=1).min()))


def duration(case: LowRankRecovery, level: float) -> float:
    """The tau at which the slow phase reaches the relative error `level`; inf if never."""
    target = level * float(np.linalg.norm(case.truth))
    return case.slow(error=target).reaches(case.truth, target)


def run_cell(
    seed: int,
    share: float,
    level: float,
    step: float,
    beta: float,
    steps: int,
    points_per_decade: int,
    **problem: Any,
) -> dict[str, Any]:
    """One run of descent, with measured and predicted times."""
    place = timed_seed(seed, level, **problem)
    case = chosen(place, share=share, **problem)
    run = case.run(step, beta, log_steps(steps, points_per_decade))
    return {
        "draws": place - DRAWS * seed + 1,
        "fewest": scarcest(case),
        "t1": math.ceil(reached(run.step, run.loss, SOLVED)),
        "t2": reached(run.step, run.relative_error, level),
        "t2_predicted": case.t1(step) + duration(case, level) / (step * beta),
        **curves_of(run, CURVES),
    }


LABELS = {
    "samples": "number $N$ of observed entries",
    "share": r"$\tau$, the share of them chosen by coherence; the others are random",
    "error": "relative error of the interpolator of least nuclear norm",
    "draws": "how many matrices were drawn until one was recovered with two shares, at two times",
    "fewest": "number of observed entries in the row or column with the fewest",
    "delay": r"$(t_2 - t_1)$ step $\beta$ by the slow phase, with 70 entries; $\infty$: never",
    "t1": "first step at which the training loss is at most $10^{-4}$",
    "t2": "step at which the relative error falls to the level; nan if it does not",
    "t2_predicted": r"$t_1 + \tau/(\mathrm{step}\,\beta)$, $\tau$ of the slow phase to the level; "
    r"$\infty$: never",
    "trajectory_relative_error": "$|A - A^*|_F / |A^*|_F$",
    "trajectory_loss": "training loss, half the sum of squared residuals",
}
PROBLEM = {"dimension": 10, "rank": 2, "euler": 5e-3, "level": 0.05}
FINE = {"euler": 1e-3}
study = sized(
    "N-F-data",
    title="Fewer coherent entries suffice, and sooner, but every row needs some random ones",
    function=cell,
    arguments=PROBLEM,
    grid={"samples": [60, 70], "share": [0.0, 0.25, 0.5, 0.75, 1.0]},
    seeds=2,
    labels=LABELS,
    draw={"x": "samples", "y": "share", "colour": "error", "log": False},
    printed={
        "arguments": FINE,
        "grid": {
            "samples": [30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100],
            "share": [0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0],
        },
        "seeds": 20,
    },
)
pairs = sized(
    "N-F-data-pairs",
    title="Each matrix from random entries and from coherent ones",
    function=cell,
    arguments=PROBLEM | {"samples": TIMED},
    grid={"share": [0.0, COHERENT]},
    seeds=25,  # of 200 other matrices two were later with coherent entries, and six never found
    labels=LABELS,
    printed={"arguments": FINE},
)
controls = sized(
    "N-F-data-controls",
    title="Entries chosen in other ways",
    function=cell,
    arguments=PROBLEM | {"share": COHERENT, "samples": TIMED},
    grid={"way": list(WAYS[1:])},
    seeds=14,
    labels=LABELS,
    printed={"arguments": FINE, "seeds": 25},
)
runs = sized(
    "N-F-data-runs",
    title="Descent with the nuclear norm, from coherent entries and from random ones",
    function=run_cell,
    arguments=PROBLEM
    | {"samples": 60, "step": 1.0, "beta": 4e-3, "steps": 7000, "points_per_decade": 30},
    grid={"share": [0.0, 0.5, 0.75]},
    seeds=1,
    dims=dims_of(CURVES),
    labels=LABELS,
    draw={"x": "share", "colour": "t2"},
    printed={
        "arguments": FINE | {"beta": 1e-5, "steps": 4_000_000, "points_per_decade": 60},
        "grid": {"share": [0.0, 0.5, 0.75, 1.0]},
    },
)


def found_of(dataset: Dataset) -> Any:
    """Which matrices are recovered."""
    return dataset.error < FOUND


def earlier(times: Any, than: Any) -> tuple[int, int]:
    """On how many matrices `times` are earlier, and on how many the two differ.

    Never is later than any time. Of two choices that are equally good each wins one half.
    """
    one, other = times.values, than.sel(seed=times.seed).values
    return int((one < other).sum()), int((one != other).sum())


def check(dataset: Dataset, pairs: Dataset, controls: Dataset, runs: Dataset) -> Evidence:
    """Coherent entries recover more matrices, and sooner; the slow phase predicts the times."""
    random, coherent = (pairs.sel(share=share) for share in (0.0, COHERENT))
    other = {way: controls.sel(way=way) for way in WAYS[1:]}
    counts = {
        name: (int(found_of(one).sum()), one.sizes["seed"])
        for name, one in {"random": random, "coherent": coherent, **other}.items()
    }
    recovers = share_at_least(*counts["coherent"], 0.5)
    wins = earlier(coherent.delay, random.delay)
    sooner = share_at_least(*wins, 0.5)
    losing = {way: earlier(one.delay, random.delay) for way, one in other.items()}
    timed = runs.isel(seed=0).where(np.isfinite(runs.isel(seed=0).t2), drop=True)
    exact = within(np.abs(timed.t2 / timed.t2_predicted - 1).max(), tolerance=0.05)
    harmed = found_of(dataset.sel(share=0.5)) & ~found_of(dataset.sel(share=1.0))
    starved = dataset.fewest.sel(share=1.0).where(harmed).min()
    return Evidence(
        ran=f"{pairs.sizes['seed']} matrices 10 x 10 of rank 2 (100 entries, N's $n = 100$), each "
        rf"from {TIMED} entries with $\tau = 0$ and {COHERENT:g}, by the exact interpolator of "
        "least nuclear norm; the delay by its slow phase to a relative error of "
        rf"{arguments_of(pairs)['level']:g}, and for one matrix by descent with $\beta$ "
        f"{arguments_of(runs)['beta']:g} (the first of {int(runs.draws.max())} draws that is "
        r"recovered with $\tau = 0.5$ and 0.75, at times that differ by a factor of "
        rf"{APART:g} or more); a map of {dataset.sizes['seed']} matrices over $N$ and $\tau$",
        premises={"descent recovers the matrix for two shares": (len(timed.share) >= 2, "")},
        checks={
            rf"share recovered with $\tau = {COHERENT:g}$ (0.999 lower limit)": recovers,
            rf"share that $\tau = {COHERENT:g}$ recovers sooner than $\tau = 0$, never being later "
            "than any time, of those that differ (0.999 lower limit)": sooner,
            "largest |$t_2$ of descent / $t_2$ by the slow phase - 1|": exact,
        },
        controls={
            "random entries alone": recovers.control(lower_share(*counts["random"])),
            "the least coherent entries first": recovers.control(lower_share(*counts[WAYS[1]])),
            "the least coherent entries first, sooner": sooner.control(
                lower_share(*losing[WAYS[1]])
            ),
            "another random choice, sooner": sooner.control(lower_share(*losing[WAYS[2]])),
            "the slow phase of another choice of entries": exact.control(
                np.abs(np.divide.outer(timed.t2.values, timed.t2_predicted.values) - 1).max()
            ),
        },
        findings=[
            f"recovered from {TIMED} entries: "
            + ", ".join(f"{count} of {total} ({name})" for name, (count, total) in counts.items()),
            f"sooner than from random entries: {wins[0]} of {wins[1]} (coherent), "
            + ", ".join(f"{count} of {total} ({way})" for way, (count, total) in losing.items()),
            rf"median $(t_2 - t_1)$ step $\beta$ from {TIMED} entries:"
            f" {median_delay(coherent):.3g} (coherent), {median_delay(random):.3g} (random)",
            r"without random entries recovery is not safe: on the map $\tau = 0.5$ recovers the "
            rf"matrix and $\tau = 1$ does not on {int(harmed.sum())} of {harmed.size} problems"
            + (
                f", one of which has {int(starved)} observed entries in a row or column"
                if harmed.any()
                else ""
            ),
            "the choice needs the singular spaces of the truth, which a learner does not have",
        ],
    )


def median_delay(dataset: Dataset) -> float:
    """The median delay over the seeds; never is later than any time."""
    return float(dataset.delay.quantile(0.5, "seed", method="higher"))


def draw(dataset: Dataset, pairs: Dataset, controls: Dataset, runs: Dataset) -> Figure:
    """The error over N and tau, the delay over tau, and the runs for some tau."""
    arguments = arguments_of(runs)
    caption = (
        rf"{caption_of(dataset.attrs)} $\tau N$ entries are those of the largest row plus column "
        "coherence (this needs the truth's singular spaces), the others random. $t_1$: "
        rf"training loss $\leq {latex(SOLVED)}$; $t_2$: relative error "
        rf"$\leq {latex(arguments['level'])}$; predicted: $t_1$ plus the slow phase. A "
        "row or column with fewer than $r = "
        f"{arguments['rank']}$ entries cannot be recovered."
    )
    picture, (whole,) = sheet(dataset.attrs["title"], caption, widths=(10.4,), height=8.4)
    whole.remove()
    grid = picture.add_gridspec(2, 2, height_ratios=[1.0, 1.0])
    _draw_errors(picture.add_subplot(grid[0, 0]), dataset)
    _draw_delays(picture.add_subplot(grid[0, 1]), dataset)
    _draw_runs(picture.add_subplot(grid[1, :]), runs)
    return picture


def _draw_errors(axes: Axes, dataset: Dataset) -> None:
    """The mean error as a colour, the number of recovered matrices as text."""
    mean, recovered = dataset.error.mean("seed"), (dataset.error < FOUND).sum("seed")
    image = axes.imshow(mean.T, origin="lower", cmap="cividis_r", aspect="auto", vmin=0)
    dark, small = float(mean.max()) / 2, 9 if mean.size <= 40 else 7
    for i, j in np.ndindex(mean.shape):
        colour = "white" if float(mean[i, j]) > dark else BLACK
        axes.text(
            i, j, f"{int(recovered[i, j])}", ha="center", va="center", fontsize=small, color=colour
        )
    places = range(0, len(mean), 1 + len(mean) // 8)  # numbers need room
    axes.set_xticks(places, [str(dataset.samples.values[k]) for k in places])
    axes.set_yticks(range(dataset.sizes["share"]), [f"{t:g}" for t in dataset.share.values])
    axes.set(xlabel="observed entries, $N$", ylabel=r"coherent share $\tau$")
    axes.set_title(
        f"mean error; numbers: how many of {dataset.sizes['seed']} matrices are recovered"
    )
    axes.grid(False)
    axes.figure.colorbar(image, ax=axes, label=r"relative error $\|A - A^*\|_F / \|A^*\|_F$")


def _draw_delays(axes: Axes, dataset: Dataset) -> None:
    """A point for every matrix, those never recovered on a line at the top, and the median."""
    timed = dataset.delay.sel(samples=TIMED)
    delay = timed.values
    ever = np.isfinite(delay)
    top = 1.15 * float(delay[ever].max()) if ever.any() else 1.0
    shares = np.broadcast_to(dataset.share.values[:, None], delay.shape)
    axes.plot(
        shares[ever], delay[ever], "o", color=BLUE, markersize=5, alpha=0.7, label="one matrix"
    )
    axes.plot(dataset.share, timed.median("seed"), color=BLACK, label="median")
    axes.axhline(top, color=GREY, linewidth=0.9, linestyle=":")
    for share, row in zip(dataset.share.values, ever, strict=True):
        if not row.all():
            axes.plot(share, top, "^", color=RED, markersize=8, clip_on=False)
            axes.annotate(f"{(~row).sum()}", (share, top), (7, -3), textcoords="offset points")
    axes.plot([], [], "^", color=RED, markersize=8, label="never (number of matrices)")
    axes.set(xlabel=r"coherent share $\tau$", ylim=(-0.03 * top, 1.08 * top))
    axes.set_ylabel(r"delay $t_2 - t_1$, in units of $1/(\mathrm{step}\,\beta)$")
    axes.set_title(f"time of the slow phase, $N$ = {TIMED}")
    axes.legend(loc="center right")


def _draw_runs(axes: Axes, runs: Dataset) -> None:
    """The errors of the runs with t1, t2 and the predicted t2, each in the colour of its run."""
    arguments = arguments_of(runs)
    for k, share in enumerate(runs.share.values):
        run, colour = plain(runs.isel(share=k, seed=0), after=0), CYCLE[k % len(CYCLE)]
        label = _outcome(float(share), run, arguments["rank"])
        axes.plot(run.step, run.relative_error, color=colour, linewidth=2.6, label=label)
        if math.isfinite(float(run.t2)):
            axes.plot(float(run.t2), arguments["level"], "o", color=colour, markersize=8, zorder=4)
        if math.isfinite(float(run.t2_predicted)):
            text = rf"$\tau$ = {share:g}: $t_2$ predicted at {count(run.t2_predicted)}"
            place = float(run.t2_predicted)
            axes.axvline(place, color=colour, linestyle=":", linewidth=1.8, label=text)
    t1, level = float(runs.t1.max()), arguments["level"]
    text = f"$t_1$ = {count(t1)}, all runs"
    axes.axvline(t1, color=GREY, linestyle="-.", linewidth=1.4, label=text)
    axes.axhline(level, color=GREY, linewidth=0.9, label=f"level {level:g}")
    limits = 0.8, float(runs.trajectory_step.max())
    log_axes(axes, "steps of subgradient descent", "relative error", xlim=limits)
    axes.set_title(f"one matrix, $N$ = {arguments['samples']}: descent with the nuclear norm")
    axes.legend(loc="lower left", bbox_to_anchor=(0.05, 0.0))


def _outcome(share: float, run: Dataset, rank: int) -> str:
    """The outcome of a run, for the legend."""
    if math.isfinite(float(run.t2)):
        return rf"$\tau$ = {share:g}: $t_2$ = {count(run.t2)}"
    if math.isfinite(float(run.t2_predicted)):
        return rf"$\tau$ = {share:g}: $t_2$ not yet"
    fewest = int(run.fewest)
    why = f", as a row or column has {fewest} of {rank} entries needed" if fewest < rank else ""
    return rf"$\tau$ = {share:g}: never{why}"


experiment = Experiment(
    "N-F-data",
    statement=r"If $\tau N$ of the $N$ observed entries are those of the largest row plus column "
    "coherence and the rest are random, minimising the nuclear norm completes a 10 x 10 "
    "matrix of rank 2 from fewer entries and sooner than from random entries alone (our "
    "words: the source only names its figure).",
    place="Data Selection, completion with $n = 100$, $r = 2$",
    study=(study, pairs, controls, runs),
    check=check,
    draw=draw,
    ours="the matrices and seeds, the grid, the levels of $t_1$ and $t_2$, and which runs are "
    "shown",
    scope={
        "quick": r"$\beta$ $4 \times 10^{-3}$ in place of $10^{-5}$; $N = 60$ and 70 and five "
        r"values of $\tau$"
    },
    seconds=5,
)
