"""N-LU: one function with parameters of any norm, so no shell of norms holds what generalizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import Array
from tacit.figures.cells import Values, cell_of, values_of, without
from tacit.figures.notsawo_runs import about
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, CYCLE, GREY, caption_of, sheet
from tacit.plotting.typeset import typeset

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "inputs": 4,
        "hidden": 7,
        "outputs": 3,
        "inputs_tried": 50,
        "seed": 0,
        "spread": 10.0,
        "degrees": [1.0, 2.0, 3.0],
        "log10_range": [-1.0, 2.0],
        "points": 121,
    },
    "paper": {
        "inputs": 40,
        "hidden": 100,
        "outputs": 10,
        "inputs_tried": 200,
        "seed": 0,
        "spread": 10.0,
        "degrees": [1.0, 2.0, 3.0],
        "log10_range": [-3.0, 3.0],
        "points": 401,
    },
}
LINES = ("-", "--", "-.", ":")
TEXTS = {
    "degree": "degree of homogeneity L of the activation max(z, 0)^L",
    "scale": "lambda: A is multiplied by it, B divided by its power L",
    "squared_norm": "squared Euclidean norm of the rescaled parameters, measured on them",
    "change": "largest relative change of the outputs against lambda = 1",
    "wrong_change": "the same when B is divided by lambda^(L + 1/2): another function",
    "best_scale": "lambda_0 = (L b/a)^(1/(2(L+1)))",
    "least": "w(lambda_0) = (L^(1/(L+1)) + L^(-L/(L+1))) (a^L b)^(1/(L+1))",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Squared norm and change of the outputs over (degree, scale), and the source's minimum."""
    import xarray

    degrees = parameters["degrees"]
    low, high = parameters["log10_range"]
    scales = np.logspace(low, high, parameters["points"])
    rng = np.random.default_rng(parameters["seed"])
    A = rng.normal(size=(parameters["hidden"], parameters["inputs"]))
    B = parameters["spread"] * rng.normal(size=(parameters["outputs"], parameters["hidden"]))
    x = rng.normal(size=(parameters["inputs_tried"], parameters["inputs"]))
    over = {
        "squared_norm": [[norm(A, B, L, s) for s in scales] for L in degrees],
        "change": [changes(A, B, x, L, L, scales) for L in degrees],
        "wrong_change": [changes(A, B, x, L, L + 0.5, scales) for L in degrees],
    }
    best = [minimum(float(np.sum(A**2)), float(np.sum(B**2)), L) for L in degrees]
    dataset = xarray.Dataset(
        {name: (("degree", "scale"), np.array(values)) for name, values in over.items()}
        | {
            name: ("degree", [pair[k] for pair in best])
            for k, name in enumerate(("best_scale", "least"))
        },
        coords={"degree": degrees, "scale": scales},
    )
    for key, variable in dataset.variables.items():
        variable.attrs = about(TEXTS[str(key)])
    if progress:
        progress(1, 1)
    return dataset


@cell_of("degree", without(PRESETS["quick"], "degrees"))
def cell(parameters: Parameters) -> Values:
    """Squared norm and changes over the scales at one degree."""
    found = data({**parameters, "degrees": [parameters["degree"]]})
    return values_of(found.isel(degree=0, drop=True))


def outputs(A: Array, B: Array, x: Array, degree: float) -> Array:
    """B phi(A x) for the rows of x, with phi(z) = max(z, 0)^degree."""
    return np.asarray(np.maximum(x @ A.T, 0) ** degree @ B.T)


def norm(A: Array, B: Array, degree: float, scale: float) -> float:
    """The squared norm of the parameters (scale A, B / scale^degree)."""
    return float(np.sum((scale * A) ** 2) + np.sum((B / scale**degree) ** 2))


def changes(A: Array, B: Array, x: Array, degree: float, power: float, scales: Array) -> Array:
    """How much the outputs change when A is multiplied by a scale and B divided by its power."""
    plain = outputs(A, B, x, degree)
    moved = np.array([outputs(s * A, B / s**power, x, degree) for s in scales])
    return np.asarray(np.abs(moved - plain).max(axis=(1, 2)) / np.abs(plain).max())


def minimum(a: float, b: float, degree: float) -> tuple[float, float]:
    """The source's lambda_0 and w(lambda_0)."""
    L, root = degree, 1 / (degree + 1)
    return (L * b / a) ** (root / 2), (L**root + L ** (-L * root)) * (a**L * b) ** root


@figure(
    "N-LU",
    title="One function, any norm: rescaling the layers moves the norm and nothing else",
    source="Notsawo et al. 2025, the argument against the LU mechanism, w(lambda)",
    data=data,
    presets=PRESETS,
    constructed="the nets, their sizes (entries of B are ten times those of A) and the seed",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The squared norm over lambda with its least value, and the change of the outputs."""
    caption = (
        f"{caption_of(dataset.attrs)} The net is B phi(A x) with phi(z) = max(z, 0)^L. The "
        "source's w(lambda) is the squared norm, its least value at lambda_0. Changes of exactly 0 "
        "are not drawn."
    )
    picture, (left, right) = sheet(dataset.title, caption, widths=(5.2, 5.2), height=4.8)
    for k, L in enumerate(dataset.degree.values):
        _draw_degree(left, right, dataset.sel(degree=L), k)
    left.set(
        xscale="log",
        yscale="log",
        xlabel=r"scale $\lambda$",
        ylabel=r"squared norm $\|\lambda A\|^2 + \|B/\lambda^L\|^2$",
    )
    right.set(
        xscale="log",
        yscale="log",
        ylim=(1e-18, None),
        xlabel=r"scale $\lambda$",
        ylabel="relative change of the outputs",
    )
    left.plot(
        [], [], "o", color="white", markeredgecolor=BLACK, label=r"least, foreseen at $\lambda_0$"
    )
    right.axhline(
        np.finfo(float).eps,
        color=BLACK,
        linestyle=":",
        linewidth=1.2,
        label=typeset("rounding, 2.2e-16"),
    )
    right.plot([], [], color=GREY, linewidth=1.4, label="control, $B/\\lambda^{L + 1/2}$ instead")
    left.set_title(r"the norm of the layers $\lambda A$ and $B/\lambda^L$ moves by decades")
    right.set_title("their function stays, to rounding")
    left.legend(loc="upper center")
    right.legend(loc="center")
    return picture


def _draw_degree(left: Axes, right: Axes, one: xarray.Dataset, k: int) -> None:
    colour, line = CYCLE[k % len(CYCLE)], LINES[k % len(LINES)]
    L, best = float(one.degree), float(one.best_scale)
    told = rf"$L$ = {L:g}, $\lambda_0$ = {best:.3g}"
    left.plot(one.scale, one.squared_norm, line, color=colour, label=told)
    left.plot(best, float(one.least), "o", color=colour, markeredgecolor=BLACK, zorder=4)
    right.plot(
        one.scale, one.change.where(one.change > 0), line, color=colour, label=f"$L$ = {L:g}"
    )
    changed = one.wrong_change.where(one.wrong_change > 0)
    right.plot(one.scale, changed, line, color=GREY, linewidth=1.4)
