"""L-no-decay: without weight decay grokking waits until log t reaches the square of the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.cells import Values, cell_of, values_of, without
from tacit.figures.registry import Parameters, Progress, figure
from tacit.papers.moroshko2020.trajectories import follow
from tacit.plotting.style import BLACK, CYCLE, GREY, caption_of
from tacit.plotting.transition import LEGEND, rows

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.problems.classification import Classification

PRESETS: dict[str, Parameters] = {
    "quick": {
        "samples": 100,
        "dimension": 1000,
        "seed": 0,
        "alphas": [0.2, 0.6, 2.0, 6.0],
        "log10_log10_t": 4.0,
        "points": 60,
        "log10_mus": [1.0, -6.0],
        "mu_points": 43,
        "rtol": 1e-6,
    },
    "paper": {
        "samples": 100,
        "dimension": 2000,
        "seed": 0,
        "alphas": [0.2, 0.6, 2.0, 6.0],
        "log10_log10_t": 4.0,
        "points": 160,
        "log10_mus": [1.0, -6.0],
        "mu_points": 141,
        "rtol": 1e-8,
    },
}
BEGIN = 1.0  # smoothed margin of the first record; that of the start is log(1/log 2) = 0.37
LAG = 30.0

TEXTS = {
    "alpha": "size of every parameter at the start",
    "record": "number of the record",
    "smoothed_margin": "smoothed margin log(1/loss)",
    "log_t": "natural logarithm of the training time",
    "train_accuracy": "accuracy on the training samples",
    "test_accuracy": "accuracy on new samples, from their distribution",
    "growth": "norm of the parameters over that of the start",
    "turn": "angle between the parameters and their start",
    "share_l1": "smallest margin over l1 norm, as a part of the largest possible",
    "share_l2": "smallest margin over l2 norm, as a part of the largest possible",
    "kernel_distance": "1 - cos(K(t), K(0))",
    "mu": "mu = alpha^2 / smoothed margin",
    "limit_accuracy": "test accuracy of the limit of the flow for alpha to infinity at each mu",
    "limit_mu": "mu at which the test accuracy of that limit has made half its way",
    "foreseen_log_t": "alpha^2 / limit_mu, the foreseen log of the time of the transition",
    "measured_log_t": "log of the time at which the test accuracy has made half its way",
}
UNITS = {
    "turn": "degrees",
    "log_t": "log(1)",
    "foreseen_log_t": "log(1)",
    "measured_log_t": "log(1)",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Measurements along the flow from several starts, and the time foreseen for each."""
    import xarray

    from tacit.problems.grokking import majority

    problem = majority(parameters["samples"], parameters["dimension"], seed=parameters["seed"])
    largest = _largest_margins(problem)
    foreseen = _limit(problem, parameters)
    half = float(foreseen.limit_accuracy.values[[0, -1]].mean())
    mu = crossing(np.log(foreseen.mu.values), foreseen.limit_accuracy.values, half)
    runs, alphas = [], parameters["alphas"]
    for alpha in alphas:
        runs.append(_run(problem, alpha, parameters, largest))
        if progress:
            progress(len(runs), len(alphas))
    found = xarray.merge([xarray.concat(runs, "alpha"), foreseen]).assign_coords(alpha=alphas)
    found["limit_mu"] = np.exp(mu)
    found["foreseen_log_t"] = found.alpha**2 / found.limit_mu  # log t and log(1/loss) run together
    passed = [crossing(run.log_t.values, run.test_accuracy.values, half) for run in runs]
    found["measured_log_t"] = ("alpha", np.array(passed))
    for name, variable in found.variables.items():
        variable.attrs.update(long_name=TEXTS[str(name)], units=UNITS.get(str(name), "1"))
    return found


@cell_of("alpha", without(PRESETS["quick"], "alphas"))
def cell(parameters: Parameters) -> Values:
    """The run from one start, and the time foreseen for it."""
    run = data({**parameters, "alphas": [parameters["alpha"]]}).isel(alpha=0, drop=True)
    return values_of(run, "record")


def crossing(x: Array, y: Array, level: float) -> float:
    """Where y, given at x, first passes `level` from below; NaN if it does not."""
    above = np.flatnonzero(y >= level)
    if len(above) == 0 or above[0] == 0:
        return float("nan")
    pair = slice(above[0] - 1, above[0] + 1)
    return float(np.interp(level, y[pair], x[pair]))


def _largest_margins(problem: Classification) -> tuple[float, float]:
    """The largest margin of a predictor of unit l1 norm and of one of unit l2 norm."""
    from tacit.regularizers.norms import L1, L2
    from tacit.solvers.max_margin import max_margin

    l1, l2 = (max_margin(problem.X, problem.y, norm()).beta for norm in (L1, L2))
    return 1 / float(np.abs(l1).sum()), 1 / float(np.linalg.norm(l2))


def _limit(problem: Classification, parameters: Parameters) -> xarray.Dataset:
    """Test accuracy of the limit of large starts: M theorem 6 with weights that never fall."""
    import xarray

    from tacit.solvers.ratchet.ratchet import ratchet_path

    assert problem.population is not None
    high, low = parameters["log10_mus"]
    mus = np.logspace(high, low, parameters["mu_points"])
    beta = ratchet_path(problem.X, problem.y, 2, mus=mus).beta
    accuracy = np.array([problem.population.accuracy(row) for row in beta])
    return xarray.Dataset({"limit_accuracy": ("mu", accuracy)}, coords={"mu": mus})


def _run(
    problem: Classification, alpha: float, parameters: Parameters, largest: tuple[float, float]
) -> xarray.Dataset:
    """One flow without decay, at log-spaced smoothed margins up to the last time shown."""
    import xarray

    from tacit.problems.population import accuracy

    assert problem.population is not None
    end = np.log(10) * 10 ** parameters["log10_log10_t"]
    # log t lags behind the smoothed margin by the log of the speed, a few units
    margins = np.geomspace(BEGIN, end + LAG, parameters["points"])
    path = follow(problem, 2, alpha, margins, parameters["rtol"])
    beta, margin = path.predictor.values, path.margin.values
    growth, turn = norm_and_turn(beta, alpha)
    curves: dict[str, Any] = {
        "smoothed_margin": margins,
        "log_t": path.log_t.values,
        "train_accuracy": accuracy(path.margins.values),
        "test_accuracy": np.array([problem.population.accuracy(row) for row in beta]),
        "growth": growth,
        "turn": turn,
        "share_l1": margin / np.abs(beta).sum(axis=1) / largest[0],
        "share_l2": margin / np.linalg.norm(beta, axis=1) / largest[1],
        "kernel_distance": path.kernel_distance.values,
    }
    return xarray.Dataset({name: ("record", values) for name, values in curves.items()})


def norm_and_turn(beta: Array, alpha: float) -> tuple[Array, Array]:
    """|theta| over |theta(0)|, and the angle between them in degrees, from the predictors alone.

    Without decay u_i v_i stays alpha^2, so u_i^2 + v_i^2 = sqrt(beta_i^2 + 4 alpha^4).
    """
    squares = np.hypot(beta / alpha**2, 2.0)  # (u^2 + v^2) / alpha^2
    growth = np.sqrt(squares.sum(axis=-1) / (2 * beta.shape[-1]))
    along = np.sqrt(squares + 2).sum(axis=-1) / (2 * beta.shape[-1])  # (u + v) / alpha
    return growth, np.degrees(np.arccos(np.minimum(along / growth, 1.0)))


@figure(
    "L-no-decay",
    title="Without decay grokking waits for log t of the order of the squared start",
    source="Lyu et al. 2023, training without weight decay",
    data=data,
    presets=PRESETS,
    constructed="data, starts and seed",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Accuracy, norm, turn, margins and kernel distance against the logarithm of the time."""
    picture, axes = rows(dataset.title, caption_of(dataset.attrs))
    accuracy, growth, turn, margins, kernel = axes
    for colour, alpha in zip(CYCLE, dataset.alpha.values, strict=False):
        row = dataset.sel(alpha=alpha)
        x = row.log_t / np.log(10)
        accuracy.plot(x, row.test_accuracy, color=colour, label=rf"test, $\alpha = {alpha:g}$")
        growth.plot(x, row.growth, color=colour)
        turn.plot(x, row.turn, color=colour)
        margins.plot(x, row.share_l2, color=colour)
        margins.plot(x, row.share_l1, "--", color=colour)
        kernel.plot(x, row.kernel_distance, color=colour)
        foreseen = alpha**2 / dataset.mu / np.log(10)
        accuracy.plot(foreseen, dataset.limit_accuracy, ":", color=BLACK, linewidth=1.2)
        for one in axes:
            one.axvline(row.foreseen_log_t / np.log(10), color=colour, linestyle="--", linewidth=1)
    growth.set(ylabel="norm over\nstart", yscale="log")
    turn.set(ylabel="turn from\nstart (degrees)", ylim=(0, 92), yticks=(0, 45, 90))
    margins.set(ylabel="margin, share\nof largest", ylim=(0, 1.08), yticks=(0, 0.5, 1))
    kernel.set(ylabel="kernel\ndistance", ylim=(-0.03, 1.0))
    _finish(axes, dataset)
    picture.align_ylabels(axes)
    return picture


def _finish(axes: list[Axes], dataset: xarray.Dataset) -> None:
    """The legends, and an axis of log t, whose own steps are factors of ten."""
    from matplotlib.ticker import FuncFormatter

    accuracy, margins, kernel = axes[0], axes[3], axes[4]
    place = rf"foreseen $\log t = \alpha^2 / {float(dataset.limit_mu):.2g}$"
    accuracy.plot([], [], color=GREY, label="training (all starts)")
    accuracy.plot(accuracy.get_xlim(), [1, 1], color=GREY, linewidth=1, zorder=1)
    accuracy.plot([], [], ":", color=BLACK, linewidth=1.2, label="foreseen for large starts")
    accuracy.plot([], [], "--", color=BLACK, linewidth=1, label=place)
    accuracy.set(ylabel="accuracy", ylim=(0.47, 1.03))
    margins.plot([], [], color=BLACK, label=r"$\ell_2$ (kernel bias)")
    margins.plot([], [], "--", color=BLACK, label=r"$\ell_1$ (rich bias)")
    last = np.floor(np.log10(dataset.log_t.max() / np.log(10)))
    kernel.set(xscale="log", xlim=(1, 10**last))
    kernel.set_xlabel(r"$\log_{10}$ of the training time $t$ (1 000 means $t = 10^{1000}$)")
    kernel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}".replace(",", " ")))
    for one in (accuracy, margins):
        one.legend(**LEGEND)
