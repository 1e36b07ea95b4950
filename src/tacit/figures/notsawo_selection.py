"""N-F-data: which entries of a low-rank matrix to look at, those of large coherence or any."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.figures.cells import Values, as_curves, cell_of
from tacit.figures.notsawo_low_rank import LowRankRecovery
from tacit.figures.notsawo_runs import about, count, crossing, log_steps
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, BLUE, CYCLE, GREY, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "dimension": 10,
        "rank": 2,
        "samples": [50, 60, 70, 80],
        "shares": [0.0, 0.25, 0.5, 0.75, 1.0],
        "seeds": 5,
        "timed_samples": 70,
        "euler": 5e-3,
        "shown_samples": 60,
        "shown_seed": 6,
        "shown_shares": [0.0, 0.5, 0.75, 1.0],
        "step": 1.0,
        "beta": 1e-3,
        "start": 1e-6,
        "steps": 40_000,
        "points_per_decade": 30,
        "solved": 1e-4,
        "level": 0.05,
    },
    "paper": {
        "dimension": 10,
        "rank": 2,
        "samples": [30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100],
        "shares": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
        "seeds": 20,
        "timed_samples": 70,
        "euler": 1e-3,
        "shown_samples": 60,
        "shown_seed": 6,
        "shown_shares": [0.0, 0.5, 0.75, 1.0],
        "step": 1.0,
        "beta": 1e-5,
        "start": 1e-6,
        "steps": 4_000_000,
        "points_per_decade": 60,
        "solved": 1e-4,
        "level": 0.05,
    },
}
FOUND = 1e-6  # relative error of an interpolator that is the truth
TEXTS = {
    "samples": "number N of entries that are seen",
    "share": "tau, the share of them that is chosen by coherence; the others are random",
    "seed": "seed of the matrix and of the random entries",
    "error": "relative error of the interpolator of least nuclear norm",
    "fewest": "number of entries seen in the row or column with the fewest",
    "delay": "(t2 - t1) step beta by the slow phase, with N = timed_samples; inf: never",
    "shown": "tau of a run",
    "step": "number of steps",
    "loss": "training loss of the run, half the sum of squared residuals",
    "relative_error": "|A - A*|_F / |A*|_F of the run",
    "t1": "first step at which the training loss is down to the value that counts as solved",
    "t2": "step at which the relative error comes down to the level; nan if it does not",
    "t2_foreseen": "t1 + tau/(step beta), tau of the slow phase to the level; inf: never",
    "shown_fewest": "number of entries seen in the row or column with the fewest",
}
CURVES, TIMES = ("loss", "relative_error"), ("t1", "t2", "t2_foreseen", "shown_fewest")


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Errors over (samples, share, seed), delays over (share, seed), and a run for some shares."""
    import xarray

    seeds, every = range(parameters["seeds"]), (parameters["samples"], parameters["shares"])
    error, fewest = np.empty((2, len(every[0]), len(every[1]), len(seeds)))
    total = error.size + 1
    for done, place in enumerate(np.ndindex(error.shape), start=1):
        n, tau = (values[k] for values, k in zip(every, place, strict=False))
        case = chosen(parameters, place[2], n, tau)
        error[place], fewest[place] = miss(case), scarcest(case)
        if progress:
            progress(done, total)
    timed = parameters["timed_samples"]
    delay = [
        [duration(chosen(parameters, seed, timed, tau), parameters) for seed in seeds]
        for tau in every[1]
    ]
    runs = [trained(parameters, tau) for tau in parameters["shown_shares"]]
    variables: dict[str, Any] = {
        "error": (("samples", "share", "seed"), error),
        "fewest": (("samples", "share", "seed"), fewest),
        "delay": (("share", "seed"), delay),
    }
    variables |= {n: (("shown", "record"), np.array([run[n] for run in runs])) for n in CURVES}
    variables |= {n: ("shown", [run[n] for run in runs]) for n in TIMES}
    places = {
        "samples": every[0],
        "share": every[1],
        "seed": list(seeds),
        "shown": parameters["shown_shares"],
        "step": ("record", runs[0]["step"]),
    }
    names = ("level", "solved", "rank", "timed_samples", "shown_samples")
    dataset = xarray.Dataset(variables, places, {name: parameters[name] for name in names})
    for key, variable in dataset.variables.items():
        units = "steps" if key in ("step", "t1", "t2", "t2_foreseen") else "1"
        variable.attrs = about(TEXTS[str(key)], units)
    if progress:
        progress(total, total)
    return dataset.assign_attrs(summary=summary(dataset))


SIZES = ("samples", "share", "seed", "dimension", "rank", "euler", "start", "level")


@cell_of(*SIZES)
def cell(parameters: Parameters) -> Values:
    """The error of the least nuclear norm and the delay of the slow phase, for one matrix."""
    case = chosen(parameters, *(parameters[name] for name in ("seed", "samples", "share")))
    return {"error": miss(case), "fewest": scarcest(case), "delay": duration(case, parameters)}


@cell_of(*SIZES, "step", "beta", "steps", "points_per_decade", "solved")
def run_cell(parameters: Parameters) -> Values:
    """A run by descent for one share, with its times."""
    shown = {f"shown_{name}": parameters[name] for name in ("samples", "seed")}
    run = trained({**parameters, **shown}, parameters["share"])
    return as_curves({"fewest": run.pop("shown_fewest"), **run}, "step", *CURVES)


def chosen(parameters: Parameters, seed: int, samples: int, share: float) -> LowRankRecovery:
    """A matrix with Gaussian factors and the entries of it that are seen."""
    from tacit.problems.coherence import coherent_completion

    size = 2, parameters["dimension"], parameters["rank"]
    u, v = np.random.default_rng(seed).standard_normal(size)
    problem = coherent_completion(
        samples=samples, truth=u @ v.T, tau=share, seed=seed, loss="half squares"
    )
    return LowRankRecovery(problem, euler=parameters["euler"])


def miss(case: LowRankRecovery) -> float:
    """The relative error of the interpolator of least nuclear norm."""
    return float(np.linalg.norm(case.least() - case.truth) / np.linalg.norm(case.truth))


def scarcest(case: LowRankRecovery) -> int:
    """The number of seen entries in the row or column with the fewest."""
    seen = np.zeros(case.problem.shape)
    seen.ravel()[np.flatnonzero(case.X.any(axis=0))] = 1
    return int(min(seen.sum(axis=0).min(), seen.sum(axis=1).min()))


def duration(case: LowRankRecovery, parameters: Parameters) -> float:
    """tau at which the slow phase has the relative error `level`; inf if it never has."""
    target = parameters["level"] * float(np.linalg.norm(case.truth))
    return case.slow(parameters["start"]).reaches(case.truth, target)


def trained(parameters: Parameters, share: float) -> dict[str, Any]:
    """One run by descent with its times, measured and foreseen."""
    from tacit.solvers.delay import memorization_steps

    case = chosen(parameters, parameters["shown_seed"], parameters["shown_samples"], share)
    step, beta, solved = (parameters[name] for name in ("step", "beta", "solved"))
    record = log_steps(parameters["steps"], parameters["points_per_decade"])
    run = case.run(step, beta, parameters["start"], record)
    steps = run.step.values.astype(float)
    t1 = memorization_steps(case.X, case.problem.y, step, solved)
    return {
        "step": steps,
        "loss": run.loss.values,
        "relative_error": run.relative_error.values,
        "t1": np.ceil(crossing(steps, run.loss.values, solved)),
        "shown_fewest": scarcest(case),
        "t2": crossing(steps, run.relative_error.values, parameters["level"]),
        "t2_foreseen": t1 + duration(case, parameters) / (step * beta),
    }


def portions(dataset: xarray.Dataset) -> xarray.DataArray:
    """The part of the matrices that is recovered, over (samples, share)."""
    return (dataset.error < FOUND).mean("seed")


def summary(dataset: xarray.Dataset) -> str:
    """How many matrices are recovered for every share, and when."""
    part, late = portions(dataset).mean("samples"), dataset.delay.median("seed")
    shares = [f"{float(share):g}" for share in dataset.share]
    return (
        "part recovered at tau = "
        + ", ".join(f"{t}: {float(p):.2f}" for t, p in zip(shares, part, strict=True))
        + f"; median (t2 - t1) step beta with N = {dataset.timed_samples} at tau = "
        + ", ".join(f"{t}: {float(d):.3g}" for t, d in zip(shares, late, strict=True))
    )


@figure(
    "N-F-data",
    title="Coherent entries: fewer suffice, and sooner; but leave some to chance, or a row starves",
    source="Notsawo et al. 2025, section Data Selection, completion with n = 100, r = 2",
    data=data,
    presets=PRESETS,
    constructed="the matrices and seeds, the grid, the levels of t1 and t2, and which runs are "
    "shown; in preset quick also beta",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The error over N and tau, the delay over tau, and the runs for some tau."""
    caption = (
        f"{caption_of(dataset.attrs)} tau N entries are those of the largest row plus column "
        "coherence (this needs the truth's singular spaces), the others random. t1: training loss "
        f"<= {dataset.solved:g}; t2: relative error <= {dataset.level:g}; foreseen: t1 plus the "
        f"slow phase. A row or column with fewer than r = {dataset.attrs['rank']} entries cannot "
        "be found."
    )
    picture, (whole,) = sheet(dataset.title, caption, widths=(10.4,), height=8.4)
    whole.remove()
    grid = picture.add_gridspec(2, 2, height_ratios=[1.0, 1.0])
    _draw_errors(picture.add_subplot(grid[0, 0]), dataset)
    _draw_delays(picture.add_subplot(grid[0, 1]), dataset)
    _draw_runs(picture.add_subplot(grid[1, :]), dataset)
    return picture


def _draw_errors(axes: Axes, dataset: xarray.Dataset) -> None:
    """The mean error as a colour, the number of matrices that are found as a text."""
    mean, found = dataset.error.mean("seed"), (dataset.error < FOUND).sum("seed")
    image = axes.imshow(mean.T, origin="lower", cmap="cividis_r", aspect="auto", vmin=0)
    dark, small = float(mean.max()) / 2, 9 if mean.size <= 40 else 7
    for i, j in np.ndindex(mean.shape):
        colour = "white" if float(mean[i, j]) > dark else BLACK
        axes.text(
            i, j, f"{int(found[i, j])}", ha="center", va="center", fontsize=small, color=colour
        )
    places = range(0, len(mean), 1 + len(mean) // 8)  # numbers need room
    axes.set_xticks(places, [str(dataset.samples.values[k]) for k in places])
    axes.set_yticks(range(dataset.sizes["share"]), [f"{t:g}" for t in dataset.share.values])
    axes.set(xlabel="entries seen, $N$", ylabel=r"coherent share $\tau$")
    axes.set_title(f"mean error; numbers: how many of {dataset.sizes['seed']} matrices are found")
    axes.grid(False)
    axes.figure.colorbar(image, ax=axes, label=r"relative error $\|A - A^*\|_F / \|A^*\|_F$")


def _draw_delays(axes: Axes, dataset: xarray.Dataset) -> None:
    """Every matrix a point, those that are never found on a line on top; and the median."""
    delay = dataset.delay.values
    ever = np.isfinite(delay)
    top = 1.15 * float(delay[ever].max()) if ever.any() else 1.0
    shares = np.broadcast_to(dataset.share.values[:, None], delay.shape)
    axes.plot(
        shares[ever], delay[ever], "o", color=BLUE, markersize=5, alpha=0.7, label="one matrix"
    )
    axes.plot(dataset.share, dataset.delay.median("seed"), color=BLACK, label="median")
    axes.axhline(top, color=GREY, linewidth=0.9, linestyle=":")
    for share, row in zip(dataset.share.values, ever, strict=True):
        if not row.all():
            axes.plot(share, top, "^", color=RED, markersize=8, clip_on=False)
            axes.annotate(f"{(~row).sum()}", (share, top), (7, -3), textcoords="offset points")
    axes.plot([], [], "^", color=RED, markersize=8, label="never (number of matrices)")
    axes.set(xlabel=r"coherent share $\tau$", ylim=(-0.03 * top, 1.08 * top))
    axes.set_ylabel(r"delay $t_2 - t_1$, in units of 1/(step $\beta$)")
    axes.set_title(f"time of the slow phase, $N$ = {dataset.timed_samples}")
    axes.legend(loc="center right")


def _draw_runs(axes: Axes, dataset: xarray.Dataset) -> None:
    """The errors of the runs with t1, t2 and the t2 foreseen, each in the colour of its run."""
    for k, share in enumerate(dataset.shown.values):
        run, colour = dataset.isel(shown=k), CYCLE[k % len(CYCLE)]
        later = run.isel(record=np.flatnonzero(run.step.values > 0))
        axes.plot(
            later.step,
            later.relative_error,
            color=colour,
            linewidth=2.6,
            label=_told(float(share), run, dataset.attrs["rank"]),
        )
        if math.isfinite(float(run.t2)):
            axes.plot(float(run.t2), dataset.level, "o", color=colour, markersize=8, zorder=4)
        if math.isfinite(float(run.t2_foreseen)):
            text = rf"$\tau$ = {share:g}: $t_2$ foreseen at {count(run.t2_foreseen)}"
            place = float(run.t2_foreseen)
            axes.axvline(place, color=colour, linestyle=":", linewidth=1.8, label=text)
    t1 = float(dataset.t1.max())
    axes.axvline(
        t1, color=GREY, linestyle="-.", linewidth=1.4, label=f"$t_1$ = {count(t1)}, all runs"
    )
    axes.axhline(dataset.level, color=GREY, linewidth=0.9, label=f"level {dataset.level:g}")
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(0.8, float(dataset.step[-1])),
        xlabel="steps of subgradient descent",
        ylabel="relative error",
    )
    axes.set_title(f"one matrix, $N$ = {dataset.shown_samples}: descent with the nuclear norm")
    axes.legend(loc="lower left", bbox_to_anchor=(0.05, 0.0))


def _told(share: float, run: xarray.Dataset, rank: int) -> str:
    """What becomes of a run, in its legend."""
    if math.isfinite(float(run.t2)):
        return rf"$\tau$ = {share:g}: $t_2$ = {count(run.t2)}"
    if math.isfinite(float(run.t2_foreseen)):
        return rf"$\tau$ = {share:g}: $t_2$ not yet"
    fewest = int(run.shown_fewest)
    why = f", as a row or column shows {fewest} of {rank} entries needed" if fewest < rank else ""
    return rf"$\tau$ = {share:g}: never{why}"
