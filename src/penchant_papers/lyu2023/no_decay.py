"""Training without weight decay: grokking waits until log t reaches the square of the start."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from penchant import L1, L2, Classification, max_margin
from penchant.lab import (
    DRAWS,
    Array,
    Axes,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    drawn,
    sized,
    within,
)
from penchant.measures import crossing, margin_accuracy
from penchant.plotting import BLACK, CYCLE, GREY, LEGEND, caption_of, panel_rows
from penchant.problems import majority
from penchant.solvers import max_margin_path, ratchet_path
from penchant_papers.instances import slope
from penchant_papers.moroshko2020.figures.trajectories import follow

BEGIN = 5.0  # smoothed margin of the first record: at log(N/log 2), 4.97 for N = 100, all are right
LAG = 30.0
LATE = 0.2  # a test accuracy that rises by more than this has a transition to measure
RISE = 0.25  # that of the limit rises by more on the data drawn, as a run misses it a little
SEEN = 10.0, 2e-3  # mu = alpha^2 / smoothed margin at the ends of the run from alpha = 6


@functools.lru_cache(maxsize=8)  # all starts and the limit share their problem
def data_set(samples: int, dimension: int, seed: int) -> tuple[Classification, int]:
    """The majority data of this seed on which a run can generalize late, and the draws it took.

    On some sets of so few samples the l2 max margin predictor is nearly as good on new ones as
    where training has come by the last time shown, and there is nothing to wait for.
    """

    def rises(problem: Classification) -> bool:
        path = max_margin_path(problem.X, problem.y, 2, mus=np.array(SEEN)).beta
        first, last = accuracies(problem, path)
        return bool(last - first > RISE)

    return drawn(lambda k: majority(samples, dimension, seed=k), rises, DRAWS * seed)


def margin_points(problem: Classification) -> list[Array]:
    """The l2 and the l1 max margin predictor."""
    return [max_margin(problem.X, problem.y, norm()).beta for norm in (L2, L1)]


def cell(
    alpha: float,
    seed: int,
    *,
    samples: int,
    dimension: int,
    log10_log10_t: float,
    points: int,
    rtol: float,
) -> dict[str, Array]:
    """One flow without decay, at log-spaced smoothed margins up to the last time shown."""
    problem, draws = data_set(samples, dimension, seed)
    end = np.log(10) * 10**log10_log10_t
    # log t is behind the smoothed margin by the log of the speed, a few units
    margins = np.geomspace(BEGIN, end + LAG, points)
    path = follow(problem, 2, alpha, margins, rtol)
    beta, margin = path.predictor.values, path.margin.values
    growth, turn = norm_and_turn(beta, alpha)
    l2, l1 = margin_points(problem)
    return {
        "draws": draws,
        "trajectory_smoothed_margin": margins,
        "trajectory_log_t": path.log_t.values,
        "trajectory_train_accuracy": margin_accuracy(path.margins.values),
        "trajectory_test_accuracy": accuracies(problem, beta),
        "trajectory_growth": growth,
        "trajectory_turn": turn,
        "trajectory_share_l1": margin / np.abs(beta).sum(axis=1) * np.abs(l1).sum(),
        "trajectory_share_l2": margin / np.linalg.norm(beta, axis=1) * np.linalg.norm(l2),
        "trajectory_kernel_distance": path.kernel_distance.values,
    }


def accuracies(problem: Classification, beta: Array) -> Array:
    """The test accuracy of every row."""
    assert problem.population is not None
    return np.array([problem.population.accuracy(row) for row in beta])


def norm_and_turn(beta: Array, alpha: float) -> tuple[Array, Array]:
    """|theta| over |theta(0)|, and the angle between them in degrees, from the predictors alone.

    Without decay u_i v_i stays alpha^2, so u_i^2 + v_i^2 = sqrt(beta_i^2 + 4 alpha^4).
    """
    squares = np.hypot(beta / alpha**2, 2.0)  # (u^2 + v^2) / alpha^2
    growth = np.sqrt(squares.sum(axis=-1) / (2 * beta.shape[-1]))
    along = np.sqrt(squares + 2).sum(axis=-1) / (2 * beta.shape[-1])  # (u + v) / alpha
    return growth, np.degrees(np.arccos(np.minimum(along / growth, 1.0)))


def limit_cell(
    seed: int, *, samples: int, dimension: int, log10_mus: Sequence[float], mu_points: int
) -> dict[str, Array]:
    """Test accuracy of the limit of large starts at each mu = alpha^2 / smoothed margin.

    The limit is that of M theorem 6 with weights that never fall; `q_accuracy` is that of argmin
    Q_mu, as if weights could fall.
    """
    problem, _ = data_set(samples, dimension, seed)
    high, low = log10_mus
    mus = np.logspace(high, low, mu_points)
    flow = ratchet_path(problem.X, problem.y, 2, mus=mus).beta
    q_path = max_margin_path(problem.X, problem.y, 2, mus=mus).beta
    return {
        "mu": mus,
        "limit_accuracy": accuracies(problem, flow),
        "q_accuracy": accuracies(problem, q_path),
    }


CURVES = ("smoothed_margin", "log_t", "train_accuracy", "test_accuracy", "growth", "turn")
DATA = {"samples": 60, "dimension": 300}
study = sized(
    "L-no-decay",
    title=r"Without weight decay, grokking happens only when $\log t$ is of the order of "
    r"$\alpha^2$",
    function=cell,
    arguments={**DATA, "log10_log10_t": 4.0, "points": 40, "rtol": 1e-6},
    grid={"alpha": [0.6, 2.0, 6.0]},
    seeds=1,
    dims={
        f"trajectory_{name}": ["time"]
        for name in (*CURVES, "share_l1", "share_l2", "kernel_distance")
    },
    labels={
        "alpha": "size of every parameter at the start",
        "trajectory_test_accuracy": "accuracy on new samples, from their distribution",
        "trajectory_share_l1": r"smallest margin over $\ell_1$ norm, as a share of the largest "
        "possible",
        "trajectory_share_l2": r"smallest margin over $\ell_2$ norm, as a share of the largest "
        "possible",
        "trajectory_growth": "norm of the parameters over that of the start",
        "trajectory_log_t": "natural logarithm of the training time",
        "draws": "draws of data until the two limits of training differ on new samples",
    },
    printed={
        "arguments": {"samples": 100, "dimension": 2000, "points": 160, "rtol": 1e-8},
        "grid": {"alpha": [0.2, 0.6, 2.0, 6.0]},
    },
)
limit = sized(
    "L-no-decay-limit",
    title="The test accuracy of the limit of large starts",
    function=limit_cell,
    arguments={**DATA, "log10_mus": [1.0, -6.0], "mu_points": 43},
    seeds=1,
    dims={name: ["place"] for name in ("mu", "limit_accuracy", "q_accuracy")},
    labels={"mu": r"$\mu = \alpha^2$ / smoothed margin"},
    printed={"arguments": {"samples": 100, "dimension": 2000, "mu_points": 141}},
)


def transitions(dataset: Dataset, limit: Dataset) -> Dataset:
    """The runs of one seed, with measured and predicted log t of half of the test curve."""
    import xarray

    runs, ends = dataset.isel(seed=0), limit.isel(seed=0)
    half = float(ends.limit_accuracy.values[[0, -1]].mean())
    mu = np.exp(crossing(np.log(ends.mu.values), ends.limit_accuracy.values, half))
    passed = [
        crossing(row.trajectory_log_t.values, row.trajectory_test_accuracy.values, half)
        for row in (runs.sel(alpha=alpha) for alpha in runs.alpha.values)
    ]
    times = {
        "measured_log_t": ("alpha", np.array(passed)),
        "limit_mu": mu,
        "predicted_log_t": runs.alpha**2 / mu,  # log t and log(1/loss) are nearly equal
    }
    return xarray.merge([runs.assign(times), ends[["mu", "limit_accuracy"]]], compat="override")


def off_limit(run: Dataset, limit: Dataset, name: str) -> float:
    """How far the test accuracy of a run is from that of a limit at equal mu, after 1e-2."""
    mus = float(run.alpha) ** 2 / run.trajectory_smoothed_margin.values
    late = (mus < 1e-2) & (mus > float(limit.mu.min()))
    there = np.interp(-np.log(mus[late]), -np.log(limit.mu.values), limit[name].values)
    return float(np.abs(there - run.trajectory_test_accuracy.values[late]).max())


def check(dataset: Dataset, limit: Dataset) -> Evidence:
    """log t of the transition grows like alpha^2, and is as predicted for large starts."""
    runs = transitions(dataset, limit)
    alphas, times = runs.alpha.values, runs.measured_log_t.values
    start, end = (runs.trajectory_test_accuracy.isel(alpha=-1, time=k) for k in (0, -1))
    grows = within(slope(alphas[-2:], times[-2:]), 2.0, 0.05)
    predicted = within(times[-1] / float(runs.predicted_log_t[-1]), 1.0, 0.02)
    large = runs.isel(alpha=-2)
    curve = within(off_limit(large, limit.isel(seed=0), "limit_accuracy"), tolerance=0.01)
    trained = float(runs.trajectory_train_accuracy.min())
    shown = ", ".join(f"{a:g}: {t / np.log(10):.3g}" for a, t in zip(alphas, times, strict=True))
    return Evidence(
        ran=f"{len(alphas)} starts of a diagonal net of depth 2 on corners of a cube with the "
        "majority of three coordinates as label, logistic loss without decay, exact flow to "
        rf"$t = 10^{{10^4}}$; draw {int(runs.draws[0])} of the data, the first whose "
        rf"$\operatorname{{argmin}} Q_\mu$ gains {RISE:.0%} on new samples in this time",
        checks={
            r"exponent of $\log t$ of the transition in $\alpha$, between the two "
            "largest starts": grows,
            r"measured over predicted $\log t$ of the transition at the largest start": predicted,
            "largest distance of the test accuracy from that of the limit at equal "
            r"$\alpha^2/\log(1/\mathrm{loss})$, second largest start": curve,
        },
        controls={
            r"$\log t$ like $\log \alpha$ over a rate: it grows with the start "
            "itself": grows.control(predicted=1.0),
            r"$\operatorname{argmin} Q_\mu$, as if the weights of support vectors "
            "could decrease": curve.control(off_limit(large, limit.isel(seed=0), "q_accuracy")),
        },
        premises={
            "all training samples are classified correctly from the first record on": (
                trained == 1,
                trained,
            ),
            "the largest start generalizes late": (float(end - start) > LATE, float(end - start)),
        },
        findings=[
            r"log10 $t$ at which the rise of the test accuracy is half done, by $\alpha$: "
            f"{shown}; so no run of ordinary length from a large start shows it",
        ],
    )


def draw(dataset: Dataset, limit: Dataset) -> Figure:
    """Accuracy, norm, turn, margins and kernel distance against the logarithm of the time."""
    runs = transitions(dataset, limit)
    picture, axes = panel_rows(dataset.title, caption_of(dataset.attrs))
    accuracy, growth, turn, margins, kernel = axes
    for colour, alpha in zip(CYCLE, runs.alpha.values, strict=False):
        row = runs.sel(alpha=alpha)
        x, label = row.trajectory_log_t / np.log(10), rf"test, $\alpha = {alpha:g}$"
        accuracy.plot(x, row.trajectory_test_accuracy, color=colour, label=label)
        growth.plot(x, row.trajectory_growth, color=colour)
        turn.plot(x, row.trajectory_turn, color=colour)
        margins.plot(x, row.trajectory_share_l2, color=colour)
        margins.plot(x, row.trajectory_share_l1, "--", color=colour)
        kernel.plot(x, row.trajectory_kernel_distance, color=colour)
        predicted = alpha**2 / runs.mu / np.log(10)
        accuracy.plot(predicted, runs.limit_accuracy, ":", color=BLACK, linewidth=1.2)
        for one in axes:
            one.axvline(row.predicted_log_t / np.log(10), color=colour, linestyle="--", linewidth=1)
    growth.set(ylabel="norm over\nstart", yscale="log")
    turn.set(ylabel="turn from\nstart (degrees)", ylim=(0, 92), yticks=(0, 45, 90))
    margins.set(ylabel="margin, share\nof largest", ylim=(0, 1.08), yticks=(0, 0.5, 1))
    kernel.set(ylabel="kernel\ndistance", ylim=(-0.03, 1.0))
    _finish(axes, runs)
    picture.align_ylabels(axes)
    return picture


def _finish(axes: list[Axes], dataset: Dataset) -> None:
    """The legends, and an axis of log t, whose own steps are factors of ten."""
    from matplotlib.ticker import FuncFormatter

    accuracy, margins, kernel = axes[0], axes[3], axes[4]
    place = rf"predicted $\log t = \alpha^2 / {float(dataset.limit_mu):.2g}$"
    accuracy.plot([], [], color=GREY, label="training (all starts)")
    accuracy.plot(accuracy.get_xlim(), [1, 1], color=GREY, linewidth=1, zorder=1)
    accuracy.plot([], [], ":", color=BLACK, linewidth=1.2, label="predicted for large starts")
    accuracy.plot([], [], "--", color=BLACK, linewidth=1, label=place)
    accuracy.set(ylabel="accuracy", ylim=(0.47, 1.03))
    margins.plot([], [], color=BLACK, label=r"$\ell_2$ (kernel bias)")
    margins.plot([], [], "--", color=BLACK, label=r"$\ell_1$ (rich bias)")
    last = np.floor(np.log10(dataset.trajectory_log_t.max() / np.log(10)))
    kernel.set(xscale="log", xlim=(1, 10**last))
    kernel.set_xlabel(r"$\log_{10}$ of the training time $t$ (1 000 means $t = 10^{1000}$)")
    kernel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}".replace(",", " ")))
    for one in (accuracy, margins):
        one.legend(**LEGEND)


experiment = Experiment(
    "L-no-decay",
    statement=r"Without weight decay, grokking from a large start $\alpha$ happens only when "
    r"$\log t$ is of the order of $\alpha^2$, as the limit of large starts predicts.",
    place="training without weight decay; the poster mentions only a large start with a small"
    " decay",
    study=(study, limit),
    check=check,
    draw=draw,
    ours="data, starts and seed",
    seconds=2,
)
