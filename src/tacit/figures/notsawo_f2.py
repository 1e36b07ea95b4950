"""N-F2: the Goldilocks zone of a net, and sparse recovery, where no l2 shell generalizes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.cells import Values, cell_of
from tacit.figures.notsawo_held import NORMS, shares_of, sparse_run
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.problems.regression import Regression
    from tacit.training.descent.held_sweep import HeldSweep

PRESETS: dict[str, Parameters] = {
    "quick": {
        "inputs": 10,
        "width": 40,
        "samples": 60,
        "net_seeds": 3,
        "net_steps": 3000,
        "log2_range": [-2.0, 2.5],
        "per_doubling": 4,
        "features": 100,
        "measured": 30,
        "sparsity": 5,
        "seed": 0,
        "sparse_steps": 2000,
        "l2_steps": 20_000,
        "step": 0.1,
        "beta": 1e-3,
        "path_steps": 80_000,
        "path_points": 150,
    },
    "paper": {
        "inputs": 10,
        "width": 40,
        "samples": 60,
        "net_seeds": 10,
        "net_steps": 8000,
        "log2_range": [-2.0, 2.5],
        "per_doubling": 8,
        "features": 100,
        "measured": 30,
        "sparsity": 5,
        "seed": 0,
        "sparse_steps": 10_000,
        "l2_steps": 20_000,
        "step": 0.1,
        "beta": 1e-4,
        "path_steps": 800_000,
        "path_points": 300,
    },
}
TEXTS = {
    "share": "held norm over the norm of the truth: the teacher's least norm, |a*|_2 or |a*|_1",
    "net": "seed of the teacher and of its samples",
    "train": "training loss of the net trained at the held norm, over the zero predictor's",
    "test": "test loss of the same net, over the zero predictor's",
    "rescaled": "test loss of the net of share 1, rescaled to the held norm and trained on there",
    "norm": "which norm of the predictor is held",
    "loss": "training loss of sparse recovery at the held norm, over the zero predictor's",
    "error": "|a - a*|^2 / |a*|^2 where sparse recovery at the held norm ends",
    "exact_error": "the same for l2 by the singular values of X",
    "floor": "the least error that any held l2 norm can leave from this start",
    "floor_share": "the held l2 norm of the least error, over |a*|_2",
    "path_step": "number of steps of descent with the l1 penalty",
    "path_share": "its |a|_2 over |a*|_2",
    "path_error": "its |a - a*|^2 / |a*|^2",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Nets over (net, share), sparse recovery over (norm, share) and the path of a penalty."""
    import xarray

    shares, nets = shares_of(parameters), range(parameters["net_seeds"])
    total, runs = len(nets) + 1, []
    model = _student(parameters["width"])
    for seed in nets:
        runs.append(net_run(model, seed, shares, parameters))
        if progress:
            progress(seed + 1, total)
    variables: dict[str, Any] = {
        name: (("net", "share"), np.array([run[name] for run in runs])) for name in runs[0]
    }
    variables |= sparse_run(shares, parameters)
    if progress:
        progress(total, total)
    places = {"share": shares, "net": list(nets), "norm": list(NORMS)}
    dataset = xarray.Dataset(variables, places)
    for key, variable in dataset.variables.items():
        units = "steps" if key == "path_step" else "1"
        variable.attrs = {"units": units, "long_name": TEXTS[str(key)]}
    return dataset.assign_attrs(summary=_summary(dataset))


@cell_of("seed", "log2_share", "inputs", "width", "samples", "net_steps")
def cell(parameters: Parameters) -> Values:
    """Losses of one student at one held norm, 2^log2_share of the teacher's."""
    share = 2.0 ** parameters["log2_share"]
    shares = np.unique([1.0, share])  # rescaling begins at the net of share 1
    found = net_run(_student(parameters["width"]), parameters["seed"], shares, parameters)
    at = int(np.flatnonzero(shares == share)[0])
    return {"share": share, **{name: float(row[at]) for name, row in found.items()}}


@functools.lru_cache(maxsize=8)
def _student(width: int) -> Any:
    """The student's model; one object for all cells, as what is compiled for it stays with it."""
    from tacit.models.network import two_layer

    return two_layer(width, alpha=1.0)


def net_run(model: Any, seed: int, shares: Array, parameters: Parameters) -> dict[str, Array]:
    """Losses of one student against the held norm, from its start and from its best net."""
    from tacit.models.rescaling import rescale_layers
    from tacit.problems.opposed_units import opposed_units
    from tacit.training.descent.held_sweep import held_sweep

    case = opposed_units(parameters["samples"], parameters["inputs"], seed=seed)
    sizes, inner = case.least_norm() * shares, parameters["width"] * parameters["inputs"]
    settings = {"learning_rate": 1e-3, "steps": parameters["net_steps"]}
    plain = held_sweep(model, case.training, sizes, **settings)
    middle = int(np.argmin(np.abs(shares - 1)))
    theta = plain.parameters[middle]
    starts = np.array([rescale_layers(theta, inner, max(w, sizes[middle])) for w in sizes])
    again = held_sweep(model, case.training, sizes, start=starts, **settings)
    known = np.where(shares < shares[middle], np.nan, fresh_loss(model, again, case.test))
    return {"train": plain.loss, "test": fresh_loss(model, plain, case.test), "rescaled": known}


def fresh_loss(model: Any, sweep: HeldSweep, test: Regression) -> Array:
    """The sum of squares on the test samples over that of the zero predictor, for every size."""
    errors = [np.sum((model.predict(theta, test.X) - test.y) ** 2) for theta in sweep.parameters]
    return np.array(errors) / float(np.sum(test.y**2))


def _summary(dataset: xarray.Dataset) -> str:
    """What was measured, in a sentence."""
    middle, last = dataset.sel(share=1.0, method="nearest"), dataset.isel(share=-1)
    test = dataset.test.median("net")
    return (
        f"net: test loss {float(test.min()):.2g} at {float(test.idxmin()):.3g}"
        f" of the teacher's norm, {float(test[0]):.2g} and {float(test[-1]):.2g} at the ends, but "
        f"{float(last.rescaled.median()):.2g} for the rescaled net; sparse recovery: best l2 norm "
        f"{float(dataset.error.sel(norm='l2').min()):.2g} (exact bound {float(dataset.floor):.2g}),"
        f" l1 norm of the truth {float(middle.error.sel(norm='l1')):.1g}"
    )


@figure(
    "N-F2",
    title="A net has a Goldilocks zone of norms; sparse recovery has none in l2, only in l1",
    source="Notsawo et al. 2025, Figure 2 (after Liu et al. 2023) and the argument below it",
    data=data,
    presets=PRESETS,
    constructed="all but (n, s, N) = (100, 5, 30), which the source uses elsewhere: teacher, "
    "student, starts, held norms and seeds",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Losses of the net over the held norm, and errors of sparse recovery over both norms."""
    caption = (
        f"{caption_of(dataset.attrs)} Left: median and single teachers relu(<p,x>) - relu(<q,x>), "
        "losses over those of the zero predictor. Right: the exact curve is that of ridge "
        "regression and, beyond the norm of least squares, of the part of the start that the data "
        "do not see."
    )
    picture, (left, right) = sheet(dataset.title, caption, widths=(5.4, 5.8), height=5.0)
    _draw_net(left, dataset)
    _draw_sparse(right, dataset)
    for axes in (left, right):
        axes.set(xscale="log", xlim=(0.23, 6.2), ylim=(-0.04, 1.25))
        axes.set_xticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
        axes.minorticks_off()
    return picture


def _draw_net(axes: Axes, dataset: xarray.Dataset) -> None:
    for name, colour in (("train", BLUE), ("test", RED)):
        axes.plot(dataset.share, dataset[name].T, color=colour, linewidth=0.6, alpha=0.5)
    axes.plot(
        dataset.share, dataset.test.median("net"), color=RED, linewidth=3, label="test loss: U"
    )
    axes.plot(
        dataset.share, dataset.train.median("net"), "--", color=BLUE, label="training loss: L"
    )
    axes.plot(
        dataset.share,
        dataset.rescaled.median("net"),
        "o",
        color=GREEN,
        markersize=5,
        markerfacecolor="none",
        label="test loss, net of $w_c$ rescaled\nto this norm and trained on",
    )
    axes.axvline(
        1.0,
        color=BLACK,
        linestyle=":",
        linewidth=1.2,
        zorder=1,
        label="$w_c$ foreseen: teacher's least norm",
    )
    axes.set_title(r"ReLU net, $\|\theta\|_2$ held: a zone at $w_c$", fontweight="bold")
    axes.set(
        xlabel=r"held norm $\|\theta\|_2$ / teacher's", ylabel="loss / loss of the zero predictor"
    )
    axes.legend(loc="upper right")


def _draw_sparse(axes: Axes, dataset: xarray.Dataset) -> None:
    l2, l1 = (dataset.error.sel(norm=norm) for norm in ("l2", "l1"))
    axes.plot(dataset.share, l2, color=ORANGE, linewidth=3, label=r"$\|a\|_2$ held")
    axes.plot(dataset.share, dataset.exact_error, "x", color=BLACK, markersize=5, label="exact")
    axes.plot(dataset.share, l1, "--", color=PURPLE, linewidth=3, label=r"$\|a\|_1$ held")
    axes.axhline(
        float(dataset.floor),
        color=GREY,
        linestyle="-.",
        linewidth=1.2,
        label=f"no $\\ell_2$ norm is below {float(dataset.floor):.2f}",
    )
    axes.plot(
        dataset.path_share,
        dataset.path_error,
        color=GREEN,
        linewidth=2,
        label="training with an\n" r"$\ell_1$ penalty, at its $\|a\|_2$",
    )
    axes.plot(
        dataset.path_share[-1], dataset.path_error[-1], "*", color=GREEN, markersize=13, zorder=5
    )
    axes.set_title(
        r"sparse recovery: held $\ell_2$ never generalizes, held $\ell_1$ does", fontweight="bold"
    )
    axes.set(xlabel="held norm / same norm of the truth", ylabel=r"$\|a - a^*\|^2 / \|a^*\|^2$")
    axes.legend(loc="lower right")
