"""Figure 2: training at a held norm, and why the l2 norm alone does not explain grokking."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.lab import (
    Array,
    Axes,
    Check,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    door_as,
    one_of,
    sized,
    within,
)
from penchant.plotting import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, caption_of, sheet
from penchant_papers.instances import listed
from penchant_papers.notsawo2025.figures.runs import Runs, arguments, dims_of, plain
from penchant_papers.notsawo2025.recoveries import SPARSE, recoverable, recovery

if TYPE_CHECKING:
    from penchant import FunctionModel

REST = 1e-6  # fall of the training loss in the second half of the steps
SHARES = 2.0 ** np.linspace(-2, 2.5, 19)  # held norm over that of the truth; SHARES[MIDDLE] = 1
MIDDLE = 8
OCTAVE = 4  # places from a held norm to twice that norm
STEP = 0.1  # of sparse recovery
NEAR = 0.03  # descent held nearer to |X^+ y| is too slow to be judged; its end is known exactly
LEFT = 0.25  # least share of |a*|^2 that the data do not determine, for which held l2 norms fail
SPARSE_STEPS = {"l1": 6000, "l2": 10_000}
NET: dict[str, Any] = {"inputs": 10, "width": 40, "samples": 80, "steps": 3000}


@functools.lru_cache(maxsize=4)
def student(width: int, seed: int) -> FunctionModel:
    """The student net; the runs of a seed share one object, so that its steps are compiled once."""
    from penchant.models import two_layer

    return two_layer(width, alpha=1.0, seed=seed)


def symmetric(width: int, inputs: int, seed: int) -> Array:
    """A symmetric version of the student's start, which computes zero."""
    theta = student(width, seed).start(inputs).copy()
    inner, outer = theta[: width * inputs].reshape(width, inputs), theta[width * inputs :]
    half = width // 2
    inner[half:], outer[half:] = inner[:half], -outer[:half]
    return theta


def cell(run: int, *, runs: Runs, given: Mapping[str, Any]) -> dict[str, Any]:
    """Losses of one student at every held norm, over those of the zero predictor.

    `rescaled` is the net of the least test loss, rescaled to each larger norm and trained on.
    """
    from penchant import Regression
    from penchant.methods import held_sweep
    from penchant.models import rescale_layers
    from penchant.problems import opposed_units

    usual = {"noise": 0.0, "start": "Gaussian", "labels": "right", "rescale": False}
    one: dict[str, Any] = {**usual, **given, **runs[run]}
    width, inputs = one["width"], one["inputs"]
    case = opposed_units(one["samples"], inputs, seed=one["seed"], noise=one["noise"])
    model, training = student(width, given["seed"]), case.training
    if one["labels"] == "shuffled":  # there is nothing to learn
        y = np.random.default_rng((one["seed"], 0)).permutation(training.y)
        training = Regression(training.X, y, loss="half squares")
    sizes = case.least_norm() * SHARES

    def trained(start: Array | None) -> tuple[Array, Array, Array]:
        sweep = held_sweep(
            model, training, sizes, learning_rate=1e-3, steps=one["steps"], start=start
        )
        X, y = case.test.X, case.test.y
        errors = [np.sum((model.predict(theta, X) - y) ** 2) for theta in sweep.parameters]
        return sweep.loss, np.array(errors) / float(np.sum(y**2)), sweep.parameters

    train, test, ends = trained(
        symmetric(width, inputs, given["seed"]) if one["start"] == "symmetric" else None
    )
    rescaled, low = np.full(len(sizes), np.nan), int(np.argmin(test))
    if one["rescale"]:
        starts = [rescale_layers(ends[low], width * inputs, max(w, sizes[low])) for w in sizes]
        rescaled[low:] = trained(np.array(starts))[1][low:]
    named = {name: one[name] for name in ("start", "labels", "samples", "noise")}
    return {
        **named,
        "teacher": one["seed"],
        "share": SHARES,
        "train": train,
        "test": test,
        "rescaled": rescaled,
        "least_norm": case.least_norm(),
        "unbalanced_norm": case.least_norm(2.0),
    }


@door_as("sparse recovery")
def sparse_cell(norm: str, more: int, recovers: bool = True, **problem: Any) -> dict[str, Any]:
    """Sparse recovery at every held norm of one kind; for l2 also the exact endpoints.

    It takes `more` times the usual number of steps. If `recovers`, the truth has the least l1 norm.
    """
    from penchant.methods import held_sweep
    from penchant.solvers import held_best, held_ridge

    one_of("norm", norm, SPARSE_STEPS)
    case = recoverable(**problem)[0] if recovers else recovery(**problem)
    length = float(np.linalg.norm(case.truth))
    own = length if norm == "l2" else float(np.abs(case.truth).sum())
    start = np.random.default_rng((problem["seed"], 7)).standard_normal(len(case.truth))
    steps = more * SPARSE_STEPS[norm]
    sweep = held_sweep(case.model(0.0), case.problem, own * SHARES, norm, STEP, steps, start)
    measures = {
        "share": SHARES,
        "loss": sweep.loss,
        "error": (case.error(sweep.parameters) / length) ** 2,
        "fall": sweep.fall,
        "exact_error": np.full(len(SHARES), np.nan),
        **dict.fromkeys(("apart", "stretched_apart", "floor", "floor_share"), math.nan),
    }
    if norm == "l1":
        return measures
    exact = np.array([held_ridge(case.X, case.y, size, start) for size in sweep.sizes])
    ahat = case.memorized()
    stretched = sweep.sizes[:, None] * ahat / np.linalg.norm(ahat)
    size, floor = held_best(case.X, case.truth, start)
    far = np.abs(sweep.sizes / np.linalg.norm(ahat) - 1) >= NEAR
    return measures | {
        "fall": np.where(far, sweep.fall, np.nan),
        "exact_error": (case.error(exact) / length) ** 2,
        "apart": np.abs(sweep.parameters - exact)[far].max() / length,
        "stretched_apart": np.abs(stretched - exact).max() / length,
        "floor": floor / length**2,
        "floor_share": size / length,
    }


def path_cell(beta: float, points: int, **problem: Any) -> dict[str, Any]:
    """Norm and error along descent with an l1 penalty, and the norm after a squared l2 penalty."""
    from penchant.solvers import ridge_limit

    case, _ = recoverable(**problem)
    last = round(1.3 * case.path.time / (STEP * beta)) + 20_000
    run = case.run(STEP, beta, np.geomspace(1, last, points)).isel(time=slice(1, None))
    length, ridge = np.linalg.norm(case.truth), ridge_limit(case.X, case.y, STEP, beta).point
    return {
        "trajectory_step": run.step.values,
        "trajectory_share": run.norm_l2.values / length,
        "trajectory_error": run.relative_error.values**2,
        "ridge_share": np.linalg.norm(ridge) / length,
    }


def nets(seeds: int, rescaled: int, more: Runs = ()) -> list[dict[str, Any]]:
    """The ordinary runs, one with shuffled labels, and one from a start that computes zero."""
    ordinary = [{"seed": seed, "rescale": seed < rescaled} for seed in range(seeds)]
    others = [{"labels": "shuffled"}, {"start": "symmetric"}, *more]
    return [*ordinary, *({"seed": 0, **other} for other in others)]


LABELS = {
    "share": "held norm over that of the truth: the teacher's least norm, $|a^*|_2$ or $|a^*|_1$",
    "train": "training loss of the net trained at the held norm, over the zero predictor's",
    "test": "test loss of the same net, over the zero predictor's",
    "rescaled": "test loss of the best net, rescaled to the held norm and trained further there",
    "loss": "training loss of sparse recovery at the held norm, over the zero predictor's",
    "error": "$|a - a^*|^2 / |a^*|^2$ where training at the held norm ends",
    "fall": "fall of the training loss in the second half of the steps; not near $|X^+ y|$",
    "exact_error": r"the error for $\ell_2$ by the singular values of $X$",
    "apart": "largest distance of the endpoints to the exact ones, over $|a^*|$",
    "stretched_apart": "the same for $X^+ y$ stretched to the held norms",
    "floor": r"the least error that any held $\ell_2$ norm can leave from this start",
    "floor_share": r"the held $\ell_2$ norm of the least error, over $|a^*|_2$",
    "beta": r"strength of the $\ell_1$ penalty",
    "trajectory_error": "$|a - a^*|^2 / |a^*|^2$",
    "trajectory_share": "$|a|_2$ over $|a^*|_2$",
    "ridge_share": r"$|a|_2$ over $|a^*|_2$ after a squared $\ell_2$ penalty",
}
study = sized(
    "N-F2",
    title="A net has a Goldilocks zone of norms, unless its layers are rescaled",
    function=cell,
    dims={name: ["place"] for name in ("share", "train", "test", "rescaled")},
    labels=LABELS,
    draw={"x": "run", "colour": "least_norm"},
    **arguments(nets(2, 1), **NET),
    tiny=arguments(nets(1, 1), **NET),
    printed=arguments(nets(10, 10, [{"samples": 400}, {"noise": 0.3}]), **NET),
)
HELD: dict[str, Any] = {
    "function": sparse_cell,
    "dims": {name: ["place"] for name in ("share", "loss", "error", "fall", "exact_error")},
    "labels": LABELS,
    "seeds": [0],
}
sparse = sized(
    "N-F2-sparse",
    title="Sparse recovery has no Goldilocks zone in ℓ₂, only in ℓ₁",
    arguments={**SPARSE, "more": 1},
    grid={"norm": ["l2", "l1"]},
    draw={"x": "norm", "colour": "floor"},
    printed={"arguments": {"more": 10}, "seeds": 10},
    **HELD,
)
dense = sized(
    "N-F2-dense",
    title="A truth with 25 of 100 entries is not recovered at its ℓ₁ norm",
    arguments={**SPARSE, "few": 25, "more": 1, "recovers": False},
    grid={"norm": ["l1"]},
    printed={"arguments": {"more": 10}},
    **HELD,
)
path = sized(
    "N-F2-path",
    title="Training with an ℓ₁ penalty ends at the truth, whatever its ℓ₂ norm during training",
    function=path_cell,
    arguments={**SPARSE, "points": 150},
    grid={"beta": [3e-4]},  # the error is of the order of beta^2
    seeds=[0],
    dims=dims_of(("step", "share", "error")),
    labels=LABELS,
    draw={"x": "beta", "colour": "ridge_share"},
    printed={"grid": {"beta": [1e-4]}, "seeds": 10},
)


def ordinary(dataset: Dataset) -> Dataset:
    """The nets that are not controls."""
    usual = (dataset.labels == "right") & (dataset.start == "Gaussian")
    usual &= (dataset.samples == dataset.samples[0]) & (dataset.noise == 0)
    return dataset.isel(run=np.flatnonzero(usual.values))


def rise(test: Array) -> float:
    """The lower of the test losses at the smallest and the largest norm, over the least one."""
    return float(min(test[0], test[-1]) / test.min())


def wrong_way(test: Array, centre: int = MIDDLE) -> int:
    """The pairs (w, 2w) on one side of a centre where the loss does not rise away from it.

    The centre is the place of a held norm, by default that of the truth.

    A single net's loss wavers by a tenth between norms that are nearer to each other than that.
    """
    rises = test[OCTAVE:] > test[:-OCTAVE]
    return int(np.sum(rises[: centre - OCTAVE + 1]) + np.sum(~rises[centre:]))


def shape(dataset: Dataset) -> dict[str, Check]:
    """Checks of the L and the U of the nets."""
    test, train = dataset.test.values, dataset.train.values
    lows = test.argmin(axis=1)
    middle = np.median(test, axis=0)
    before = min(row[: low - 3].min() for row, low in zip(train, lows, strict=True))
    after = max(row[low:].max() for row, low in zip(train, lows, strict=True))
    place = np.abs(np.log2(SHARES[lows])).max()
    return {
        "largest test loss at $w_c$, in units of the zero predictor's": at_most(
            test.min(axis=1).max(), 0.05
        ),
        "least ratio of the test loss at $|w| = w_c/4$ or $5.7 w_c$ to that at $w_c$": at_least(
            min(map(rise, test)), 20
        ),
        "pairs $w$, $2w$ on one side of $w_c$ where the median test loss is not higher at the "
        "one that is further from $w_c$": within(wrong_way(middle)),
        "largest distance of $w_c$ to the teacher's least norm, in factors of two": within(
            place, tolerance=0.3
        ),
        r"least training loss for $w \leq w_c/2$": at_least(before, 0.3),
        r"largest training loss for $w \geq w_c$": at_most(after, 0.01),
    }


def last_of(path: Dataset, name: str) -> Array:
    """The last value of every path; their lengths differ."""
    values = path[f"trajectory_{name}"].values
    return np.array([row[np.isfinite(row)][-1] for row in values.reshape(-1, values.shape[-1])])


def sparse_checks(sparse: Dataset, path: Dataset) -> dict[str, Check]:
    """Checks of sparse recovery at both held norms and with an l1 penalty."""
    l2, l1 = sparse.sel(norm="l2"), sparse.sel(norm="l1")
    half_and_twice = l1.error[:, [MIDDLE - OCTAVE, MIDDLE + OCTAVE]]
    return {
        r"least $|a - a^*|^2/|a^*|^2$ at any held $\ell_2$ norm": at_least(l2.error.min(), LEFT),
        "the same over its exact lower bound": at_least(
            (l2.error.min("place") / l2.floor).min(), 1.0, 1e-9
        ),
        "largest distance of the trained endpoints to the closed form, over $|a^*|$": within(
            l2.apart.max(), tolerance=1e-6
        ),
        r"largest $|a - a^*|^2/|a^*|^2$ at the held $\ell_1$ norm $|a^*|_1$": within(
            l1.error[:, MIDDLE].max(), tolerance=1e-6
        ),
        r"least $|a - a^*|^2/|a^*|^2$ at half and at twice that $\ell_1$ norm": at_least(
            half_and_twice.min(), 0.1
        ),
        r"least $\ell_2$ norm after the $\ell_1$ penalty, over the best held $\ell_2$ "
        "norm": at_least(
            (last_of(path, "share") / l2.floor_share.values).min(), 1 / math.sqrt(1 - LEFT)
        ),
        r"largest $|a - a^*|^2/|a^*|^2$ after the $\ell_1$ penalty": at_most(
            last_of(path, "error").max(), 1e-3
        ),
    }


def check(dataset: Dataset, sparse: Dataset, dense: Dataset, path: Dataset) -> Evidence:
    """The L and the U of nets, their test loss after rescaling, and sparse recovery."""
    usual = ordinary(dataset)
    (mixed,) = dataset.test.values[dataset.labels.values == "shuffled"]
    first, second = shape(usual), sparse_checks(sparse, path)
    low, up, bends, place, _, flat = first.values()
    bound, _, near, recovers, _, left, _ = second.values()
    l2, l1 = sparse.sel(norm="l2"), sparse.sel(norm="l1")
    least = usual.test.min("place")
    keeps = at_most((usual.rescaled.max("place") / least).max(), 2.0)
    held = float(usual.least_norm[0] * SHARES[int(usual.test.values[0].argmin())])
    squared = MIDDLE + round(OCTAVE * math.log2(float(usual.least_norm[0])))
    fall = max(float(one.fall.max()) for one in (l2, l1))
    train_mixed = dataset.train.values[dataset.labels.values == "shuffled"][0]
    return Evidence(
        ran=rf"{usual.sizes['run']} teachers $\operatorname{{relu}}(\langle p,x\rangle) - "
        rf"\operatorname{{relu}}(\langle q,x\rangle)$ of 10 inputs, {int(usual.samples[0])} "
        f"samples, a student of 40 ReLU units; {l2.sizes['seed']} sparse recoveries $(n, s, "
        f"N) = (100, 5, 30)$; projected descent from a random start at {len(SHARES)} held "
        "norms, 1/4 to 5.7 times those of the truth; $g$ = half the sum of squares",
        premises={"sparse recovery converged at every held norm": (fall <= REST, fall)},
        checks={
            **first,
            "test loss of the net at $w_c$ rescaled to $w > w_c$ and trained further, over that "
            "at $w_c$": keeps,
            **second,
        },
        controls={
            "shuffled labels, least test loss": low.control(mixed.min()),
            "shuffled labels, rise on both sides": up.control(rise(mixed)),
            "the norm of the teacher squared, pairs $w$, $2w$": bends.control(
                wrong_way(np.median(usual.test.values, axis=0), squared)
            ),
            "shuffled labels, training loss at the same $w_c$": flat.control(train_mixed[MIDDLE]),
            "the norm of the teacher with unbalanced layers": place.control(
                math.log2(held / float(usual.unbalanced_norm[0]))
            ),
            "the ordinary start at $5.7 w_c$": keeps.control((usual.test[:, -1] / least).min()),
            r"$\ell_1$ judged as $\ell_2$": bound.control(l1.error.min()),
            r"the held $\ell_2$ norm $|a^*|_2$ judged as $\ell_1$": recovers.control(
                l2.error[:, MIDDLE].min()
            ),
            r"25 non-zero entries for $\ell_1$": recovers.control(
                dense.error.isel(place=MIDDLE).item()
            ),
            r"$\hat{a}$ stretched to the held norm": near.control(l2.stretched_apart[0]),
            r"the norm after an $\ell_2^2$ penalty": left.control(
                (path.ridge_share.values.ravel() / l2.floor_share.values).max()
            ),
        },
        findings=findings(dataset, usual, l2.isel(seed=0), l1.isel(seed=0)),
    )


def findings(dataset: Dataset, usual: Dataset, l2: Dataset, l1: Dataset) -> list[str]:
    """Where w_c lies, the cause of the rise, and the errors of sparse recovery."""
    norms = usual.least_norm.values * SHARES[usual.test.values.argmin(axis=1)]
    (quiet,) = dataset.test.values[dataset.start.values == "symmetric"]
    first, base = usual.test.values[0], int(usual.samples[0])
    lines = [
        "$w_c$ is the least norm of the teacher's rescalings: on a grid of $2^{1/4}$ the test "
        f"loss is least at {listed(norms, '.3g')}, and that norm is "
        f"{float(usual.least_norm[0]):.3g}",
        "the rise at large norms does not come from the outputs of the start alone: at $5.7 w_c$ "
        f"the test loss is {first[-1]:.2g} from the ordinary start and {quiet[-1]:.2g} from a "
        "symmetric one that computes zero",
        "the truth of sparse recovery lies on the shell $|a|_2 = |a^*|_2$, but training held "
        rf"there ends at $|a - a^*|^2/|a^*|^2 = {float(l2.error[MIDDLE]):.2f}$; no $\ell_2$ "
        f"norm does better than {float(l2.floor):.2f}, at {float(l2.floor_share):.2f} "
        "$|a^*|_2$",
        r"the minimum in the $\ell_1$ norm is sharp: at $2^{1/4}$ and $2^{-1/4}$ times $|a^*|_1$ "
        f"the error is {float(l1.error[MIDDLE + 1]):.2g} and {float(l1.error[MIDDLE - 1]):.2g}",
    ]
    for many in dataset.test.values[dataset.samples.values > base]:
        lines.append(
            "the rise at large norms appears with few samples only: at $4 w_c$ the test loss is "
            f"{first[MIDDLE + 8]:.2g} with {base} and {many[MIDDLE + 8]:.2g} with "
            f"{int(dataset.samples.max())}"
        )
    for noisy in dataset.test.values[dataset.noise.values > 0]:
        lines.append(
            f"label noise of 0.3 raises the minimum to {noisy.min():.2g} (ends {noisy[0]:.2g},"
            f" {noisy[-1]:.2g})"
        )
    return lines


def draw(dataset: Dataset, sparse: Dataset, dense: Dataset, path: Dataset) -> Figure:
    """Losses of the net over the held norm, and errors of sparse recovery over both norms."""
    caption = (
        f"{caption_of(dataset.attrs)} Left: median and single teachers "
        r"$\operatorname{relu}(\langle p,x\rangle) - \operatorname{relu}(\langle "
        r"q,x\rangle)$, losses over those of the zero predictor. Right: the exact curve is "
        "that of ridge regression and, beyond the norm of least squares, of the part of the "
        "start that the data do not determine."
    )
    picture, (left, right) = sheet(dataset.title, caption, widths=(5.4, 5.8), height=5.0)
    (mixed,) = dataset.test.values[dataset.labels.values == "shuffled"]
    _draw_net(left, ordinary(dataset), mixed)
    _draw_sparse(right, sparse, path)
    for axes in (left, right):
        axes.set(xscale="log", xlim=(0.23, 6.2), ylim=(-0.04, 1.25))
        axes.set_xticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
        axes.minorticks_off()
    return picture


def _draw_net(axes: Axes, nets: Dataset, mixed: Array) -> None:
    for name, colour in (("train", BLUE), ("test", RED)):
        axes.plot(SHARES, nets[name].T, color=colour, linewidth=0.6, alpha=0.5)
    axes.plot(SHARES, nets.test.median("run"), color=RED, linewidth=3, label="test loss: $U$")
    axes.plot(SHARES, nets.train.median("run"), "--", color=BLUE, label="training loss: $L$")
    axes.plot(SHARES, mixed, ":", color=GREY, label="test loss, shuffled labels")
    text = "test loss, net of $w_c$ rescaled\nto this norm and trained further"
    moved = nets.rescaled.median("run")
    axes.plot(SHARES, moved, "o", color=GREEN, ms=5, markerfacecolor="none", label=text)
    text = "$w_c$ predicted: teacher's least norm"
    axes.axvline(1.0, color=BLACK, linestyle=":", linewidth=1.2, zorder=1, label=text)
    axes.set_title(r"ReLU net, $\|\theta\|_2$ held: a zone at $w_c$", fontweight="bold")
    axes.set(
        xlabel=r"held norm $\|\theta\|_2$ / teacher's", ylabel="loss / loss of the zero predictor"
    )
    axes.legend(loc="upper right", fontsize=8)


def _draw_sparse(axes: Axes, sparse: Dataset, path: Dataset) -> None:
    l2, l1 = (sparse.sel(norm=norm).isel(seed=0) for norm in ("l2", "l1"))
    trained = plain(path.isel(seed=0, beta=0))
    axes.plot(SHARES, l2.error, color=ORANGE, linewidth=3, label=r"$\|a\|_2$ held")
    axes.plot(SHARES, l2.exact_error, "x", color=BLACK, markersize=5, label="exact")
    axes.plot(SHARES, l1.error, "--", color=PURPLE, linewidth=3, label=r"$\|a\|_1$ held")
    floor = float(l2.floor)
    text = f"no $\\ell_2$ norm is below {floor:.2f}"
    axes.axhline(floor, color=GREY, linestyle="-.", linewidth=1.2, label=text)
    text = "training with an\n" r"$\ell_1$ penalty, at its $\|a\|_2$"
    axes.plot(trained.share, trained.error, color=GREEN, label=text)
    axes.plot(trained.share[-1], trained.error[-1], "*", color=GREEN, markersize=13, zorder=5)
    axes.set_title(
        r"sparse recovery: held $\ell_2$ never generalizes, held $\ell_1$ does", fontweight="bold"
    )
    axes.set(xlabel="held norm / same norm of the truth", ylabel=r"$\|a - a^*\|^2 / \|a^*\|^2$")
    axes.legend(loc="lower right")


experiment = Experiment(
    "N-F2",
    statement=r"Trained at a held $\ell_2$ norm $w$, a net has an L-shaped training loss and a "
    "U-shaped test loss with its least value at some $w_c$; but rescaling gives the same "
    "function at every larger norm, and training there does not change it; in sparse "
    r"recovery, training at no held $\ell_2$ norm generalizes, while training at the $\ell_1$ "
    "norm of the truth does.",
    place="Goldilocks zone & LU mechanism, Figure 2",
    study=(study, sparse, dense, path),
    check=check,
    draw=draw,
    title="A net has a Goldilocks zone of norms; sparse recovery has none in ℓ₂, only in ℓ₁",
    ours="all but $(n, s, N) = (100, 5, 30)$, which the source uses elsewhere: teacher, student, "
    "starts, held norms and seeds",
    scope={
        "quick": "the source prints no sizes, all are ours; two teachers and one sparse recovery",
        "printed": "the source prints no sizes, all are ours",
    },
    seconds=6,
)
