"""N-F-scaling: how t2 and the error that is left depend on step and beta, for l1 and nuclear."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.cells import Values, cell_of, values_of, without
from tacit.figures.notsawo_low_rank import recovery
from tacit.figures.notsawo_runs import Recovery, about, crossing, log_steps
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, CYCLE, GREY, ORANGE, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.solvers.slow_flow import SlowFlow

PRESETS: dict[str, Parameters] = {
    "quick": {
        "samples": 30,
        "dimension": 100,
        "sparsity": 5,
        "seed": 0,
        "snr": 1e8,
        "start": 1e-6,
        "level": 1e-4,
        "steps": [0.01, 0.03, 0.1],
        "betas": [1e-5, 1e-4, 1e-3, 1e-2],
        "points_per_decade": 20,
        "settle": 300.0,
        "last": 100,
    },
    "paper": {
        "samples": 30,
        "dimension": 100,
        "sparsity": 5,
        "seed": 0,
        "snr": 1e8,
        "start": 1e-6,
        "level": 1e-4,
        "steps": [0.005, 0.02, 0.1],
        "betas": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
        "points_per_decade": 30,
        "settle": 300.0,
        "last": 100,
    },
}
NUCLEAR: dict[str, Parameters] = {
    "quick": {
        "samples": 70,
        "dimension": 10,
        "rank": 2,
        "seed": 2,
        "start": 1e-6,
        "level": 1e-2,
        "steps": [0.1, 0.4, 1.5],
        "betas": [1e-3, 3e-3, 1e-2, 1e-1],
        "points_per_decade": 20,
        "settle": 300.0,
        "last": 100,
    },
    "paper": {
        "samples": 70,
        "dimension": 10,
        "rank": 2,
        "seed": 2,
        "start": 1e-6,
        "level": 1e-2,
        "steps": [0.08, 0.35, 1.5],
        "betas": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
        "points_per_decade": 30,
        "settle": 300.0,
        "last": 100,
    },
}
MARKERS = "os^Dv*"
ROUNDING = 1e-10  # of the truth: an error that is smaller is no noise
TEXTS = {
    "alpha": "step size (the source's alpha)",
    "beta": "strength of the penalty h",
    "pace": "step size times beta",
    "t1": "step at which the training loss comes down to the level; nan if it does not",
    "t2": "step at which |a - a*|^2 comes down to the level; nan if it does not",
    "error": "h(a - a*) of the run at rest, mean over its last steps",
    "penalized_error": "h(a_beta - a*) of the exact minimiser of loss + beta h(a)",
    "tau": "time of the slow phase down to the level, in step beta steps",
    "distance": "|a_hat - a*| in the dual norm of h, the source's numerator of t2 - t1",
    "noise_error": "h(a - a*) of the interpolator of least h: what noise leaves at beta 0",
    "truth_norm": "h of the truth",
    "level": "loss and squared error that count as solved",
    "slope_t2": "fitted exponent of t2 - t1 in step beta",
    "slope_beta": "fitted exponent of the error in beta, step fixed; errors between three times "
    "noise_error and half of truth_norm",
    "slope_step": "fitted exponent of the error in the step, beta fixed; the same errors",
}
# how a drawing writes the penalty, the error left and the source's numerator
SYMBOLS = {
    "l1": (r"\|a\|_1", r"\|a - a^*\|_1", r"\|\hat a - a^*\|_\infty"),
    "nuclear": (r"\|A\|_*", r"\|A - A^*\|_*", r"\|\hat A - A^*\|_{op}"),
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """t1, t2 and the error left at every step size and beta, with what theory foresees."""
    import xarray

    case = recovery(parameters)
    slow, least = case.slow(parameters["start"]), case.least()
    sizes, betas = parameters["steps"], parameters["betas"]
    found = {name: np.full((len(sizes), len(betas)), np.nan) for name in ("t1", "t2", "error")}
    for done, (i, j) in enumerate(np.ndindex(len(sizes), len(betas)), start=1):
        for name, value in _cell(case, slow, sizes[i], betas[j], parameters).items():
            found[name][i, j] = value
        if progress:
            progress(done, len(sizes) * len(betas))
    points = np.array([least, *(penalized(case, beta, least) for beta in betas)])
    noise, *left = case.sizes(points - case.truth)
    scalars = {
        "tau": slow.reaches(case.truth, math.sqrt(parameters["level"])),
        "distance": case.dual(slow.points[0] - case.truth),
        "noise_error": noise,
        "truth_norm": case.sizes(case.truth[None])[0],
        "level": parameters["level"],
    }
    pace = np.outer(sizes, betas)
    variables: dict[str, Any] = {name: (("alpha", "beta"), v) for name, v in found.items()}
    variables |= {"pace": (("alpha", "beta"), pace), "penalized_error": ("beta", left)}
    within = 3 * float(noise), float(scalars["truth_norm"]) / 2
    scalars |= fits(found, pace, within)
    variables |= {name: ((), value) for name, value in scalars.items()}
    dataset = xarray.Dataset(variables, {"alpha": sizes, "beta": betas}, {"norm": case.norm})
    for key, variable in dataset.variables.items():
        variable.attrs = about(TEXTS[str(key)], "steps" if key in ("t1", "t2") else "1")
    return dataset.assign_attrs(summary=summary(dataset))


@cell_of("step", "beta", without(PRESETS["quick"], "steps", "betas"))
def cell(parameters: Parameters) -> Values:
    """t1, t2 and the error left of one run, with what theory foresees."""
    return _values(parameters)


@cell_of("step", "beta", without(NUCLEAR["quick"], "steps", "betas"))
def nuclear_cell(parameters: Parameters) -> Values:
    """The same for completion."""
    return _values(parameters)


def _values(parameters: Parameters) -> Values:
    one = {**parameters, "steps": [parameters["step"]], "betas": [parameters["beta"]]}
    found = data(one).isel(alpha=0, beta=0, drop=True)
    pooled = [name for name in found.variables if str(name).startswith("slope")]
    return values_of(found.drop_vars([*pooled, "level"]))


def summary(dataset: xarray.Dataset) -> str:
    """The fitted exponents and the constant of the delay."""
    scaled = ((dataset.t2 - dataset.t1) * dataset.pace).values
    kept = scaled[np.isfinite(scaled)]
    reach = f"{kept.min():.3g} to {kept.max():.3g}" if len(kept) else "never measured"
    return (
        f"exponent of t2 - t1 in step beta {float(dataset.slope_t2):.3f}; (t2 - t1) step beta "
        f"{reach}, foreseen {float(dataset.tau):.3g} by the slow phase and "
        f"{float(dataset.distance):.3g} by the source; exponent of the error in beta "
        f"{float(dataset.slope_beta):.2f}, in the step {float(dataset.slope_step):.2f}"
    )


def _cell(
    case: Recovery, slow: SlowFlow, step: float, beta: float, parameters: Parameters
) -> dict[str, float]:
    """One run to half as long again as its slow phase, and a while to settle."""
    pace, level = step * beta, parameters["level"]
    tau = slow.reaches(case.truth, math.sqrt(level))
    end = math.ceil(1.5 * slow.time / pace + parameters["settle"] / step)
    near = np.linspace(0.8, 1.3, 41) * tau / pace if math.isfinite(tau) else np.zeros(1)
    rest = np.arange(end - parameters["last"] + 1, end + 1)
    log = log_steps(end, parameters["points_per_decade"])
    run = case.run(step, beta, parameters["start"], np.concatenate([log, near, rest]))
    steps = run.step.values.astype(float)
    # the iterates keep hopping over zero: a single one would be a matter of luck
    last = run.predictor.values[-parameters["last"] :].reshape(parameters["last"], -1)
    return {
        "t1": crossing(steps, run.loss.values, level),
        "t2": crossing(steps, run.test_error.values, level),
        "error": float(case.sizes(last - case.truth).mean()),
    }


def penalized(case: Recovery, beta: float, start: Array, steps: int = 4000) -> Array:
    """The minimiser of (1/2)|X a - y|^2 + beta h(a), by accelerated proximal descent.

    From the interpolator of least norm it is near even for tiny beta, from zero it is far.
    """
    from tacit.training.descent.methods import Proximal
    from tacit.training.record import At
    from tacit.training.stop import Steps
    from tacit.training.train import train

    method = Proximal(0.99 / float(np.linalg.norm(case.X, 2)) ** 2, accelerated=True)
    path = train(
        case.model(start),
        case.problem,
        method,
        penalty=beta * case.penalty,
        stop=Steps(steps),
        record=At([]),
    )
    return path.predictor.ravel()


def fits(found: dict[str, Array], pace: Array, within: tuple[float, float]) -> dict[str, float]:
    """The exponents of t2 - t1 in step beta, and of the error in beta and in the step alone.

    Errors outside `within` are left out: noise keeps small ones up, the truth large ones down.
    """
    low, high = within
    errors = np.where((found["error"] >= low) & (found["error"] <= high), found["error"], np.nan)
    logs, sizes, betas = np.log(errors), np.log(pace[:, 0]), np.log(pace[0])
    return {
        "slope_t2": _slope(np.log(pace), np.log(found["t2"] - found["t1"])),
        "slope_beta": _mean([_slope(betas, row) for row in logs]),
        "slope_step": _mean([_slope(sizes, column) for column in logs.T]),
    }


def _mean(slopes: list[float]) -> float:
    """The mean of the slopes that there are."""
    kept = [slope for slope in slopes if math.isfinite(slope)]
    return float(np.mean(kept)) if kept else math.nan


def _slope(x: Array, y: Array) -> float:
    """The least squares slope through the points that are there; nan with fewer than two."""
    kept = np.isfinite(y)
    if len(set(x[kept])) < 2:
        return math.nan
    return float(np.polyfit(x[kept], y[kept], 1)[0])


@figure(
    "N-F-scaling",
    title="The time to recover goes like 1/(step beta); the error left goes mostly with beta",
    source="Notsawo et al. 2025, Figures 6 and 7, sparse recovery with an l1 penalty",
    data=data,
    presets=PRESETS,
    constructed="the seed, the grid within the source's ranges and when a run is at rest",
)
@figure(
    "N-F-scaling-nuclear",
    title="Nuclear norm: the time to recover goes like 1/(step beta), the error left like beta",
    source="Notsawo et al. 2025, the second Figure 6, matrix completion with a nuclear penalty",
    data=data,
    presets=NUCLEAR,
    constructed="the seed, the level, the grid within the source's ranges and when a run is at "
    "rest",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """t2 - t1 over step beta, and the error left over step beta and over beta."""
    caption = (
        f"{caption_of(dataset.attrs)} t1 and t2: training loss and squared error <= "
        f"{float(dataset.level):g}; strengths too large to come there have no t2. The error is a "
        "mean over the last steps; its exponents are fitted between three times the noise limit and"
        " half the truth's norm. The source plots it over step beta, where different steps do not "
        "meet."
    )
    picture, axes = sheet(dataset.title, caption, widths=(4.4, 4.0, 4.0), height=4.9)
    _draw_times(axes[0], dataset)
    _draw_errors(axes[1:], dataset)
    return picture


def _draw_times(axes: Axes, dataset: xarray.Dataset) -> None:
    delay = (dataset.t2 - dataset.t1).values
    _points(axes, dataset, dataset.pace.values, delay)
    reach = dataset.pace.values[np.isfinite(delay)]
    ends = np.array([reach.min() / 2, reach.max() * 2]) if len(reach) else np.ones(2)
    axes.plot(
        ends,
        float(dataset.tau) / ends,
        color=BLACK,
        linewidth=1.4,
        zorder=1,
        label=rf"slow phase, {float(dataset.tau):.3g}/$(\alpha\beta)$",
    )
    axes.plot(
        ends,
        float(dataset.distance) / ends,
        "--",
        color=ORANGE,
        zorder=1,
        label=rf"source, ${SYMBOLS[dataset.norm][2]}/(\alpha\beta)$",
    )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=r"step times strength, $\alpha\beta$",
        ylabel="delay $t_2 - t_1$ (steps)",
    )
    axes.set_title(f"(a) delay: exponent ${float(dataset.slope_t2):.3f}$ (source: $-1$)")
    axes.legend(loc="lower left")


def _draw_errors(axes: list[Axes], dataset: xarray.Dataset) -> None:
    over_pace, over_beta = axes
    penalty, left, _ = SYMBOLS[dataset.norm]
    beta = np.broadcast_to(dataset.beta.values, dataset.error.shape)
    _points(over_pace, dataset, dataset.pace.values, dataset.error.values, "-")
    _points(over_beta, dataset, beta, dataset.error.values)
    over_beta.plot(
        dataset.beta,
        dataset.penalized_error,
        color=BLACK,
        linewidth=1.4,
        zorder=1,
        label=rf"exact minimiser of $g + \beta{penalty}$",
    )
    over_pace.set(xlabel=r"step times strength, $\alpha\beta$", ylabel=f"error left ${left}$")
    over_beta.set(xlabel=r"strength of the penalty, $\beta$", ylabel=f"error left ${left}$")
    over_pace.set_title(
        f"(b) error: exponent in the step {float(dataset.slope_step):.2f} (source: 1)"
    )
    over_beta.set_title(
        rf"(c) error: exponent in $\beta$ {float(dataset.slope_beta):.2f} (source: 1)"
    )
    for one in axes:
        if float(dataset.noise_error) > ROUNDING * float(dataset.truth_norm):
            one.axhline(
                float(dataset.noise_error),
                color=GREY,
                linestyle=":",
                linewidth=1.2,
                label=r"by noise alone, $\beta \to 0$",
            )
        one.set(xscale="log", yscale="log")
    over_beta.legend(loc="upper left")


def _points(axes: Axes, dataset: xarray.Dataset, x: Array, y: Array, line: str = "none") -> None:
    """One marker and colour for every step size."""
    for k, alpha in enumerate(dataset.alpha.values):
        axes.plot(
            x[k],
            y[k],
            linestyle=line,
            marker=MARKERS[k % len(MARKERS)],
            markersize=6,
            linewidth=0.8,
            color=CYCLE[k % len(CYCLE)],
            label=rf"step $\alpha$ = {alpha:g}",
        )
