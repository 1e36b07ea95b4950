"""W-F7: functions that univariate ReLU nets learn from small to large starts, by layer scaling."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array, one_of
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, BLUE, GREEN, ORANGE, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.claims.woodworth.spline_runs import Learned

PRESETS: dict[str, Parameters] = {
    "quick": {
        "width": 1000,
        "alphas": [0.03, 0.1, 0.3, 1.0, 30.0],
        "scalings": [1.0, 0.5, 0.2],
        "plateau_alpha": 0.01,
        "seed": 0,
        "rtol": 0.1,
        "points": 401,
    },
    "paper": {
        "width": 10_000,
        "alphas": [0.01, 0.03, 0.1, 0.3, 1.0, 30.0],
        "scalings": [1.0, 0.3, 0.1],
        "plateau_alpha": 0.003,
        "seed": 0,
        "rtol": 0.1,
        "points": 801,
    },
}
SPLINE: dict[str, Any] = {
    "color": BLACK,
    "linewidth": 1.3,
    "linestyle": "--",
    "label": "linear spline",
}
# wide and pale below the curves: where the largest start has learned it, both are seen
KERNEL: dict[str, Any] = {
    "color": RED,
    "linewidth": 7,
    "alpha": 0.3,
    "zorder": 1,
    "label": "interpolant of the\nkernel at the start",
}
POINTS: dict[str, Any] = {
    "marker": "o",
    "linestyle": "none",
    "color": BLACK,
    "markersize": 6,
    "zorder": 5,
    "label": "data",
}
MEASURES = ("to_linear", "to_linear_rms", "to_kernel", "kernel_to_linear", "norm")
LABELS = {
    "x": "input",
    "alpha": "scale of the start",
    "scaling": "c: factor on w1 and b1, with w2 divided by it",
    "learned": "function learned from a start of scale alpha",
    "interpolant": "interpolant with the tangent kernel of the start, at the largest alpha",
    "linear": "linear spline of the data",
    "to_linear": "largest distance of the learned function to the linear spline",
    "to_linear_rms": "root mean square distance of the learned function to the linear spline",
    "to_kernel": "root mean square distance of the learned function to its kernel interpolant",
    "kernel_to_linear": "root mean square distance of the kernel interpolant to the linear spline",
    "inner_share": "part of the inner layer over that of the outer in the kernel of the start",
    "plateau": "function learned on the plateau from the smallest start",
    "plateau_linear": "linear spline of the plateau",
    "plateau_to_linear": "largest distance of that function to the linear spline",
    "plateau_norm": "sum of |(w, b)| |v| of the net on the plateau",
    "x_data": "inputs of the data",
    "y_data": "targets of the data",
    "x_plateau": "inputs of the plateau",
    "y_plateau": "targets of the plateau",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """What every start learns on a zigzag, and the smallest ones on a plateau."""
    from tacit.problems.univariate import plateau, zigzag

    jobs: list[tuple[Any, float, float]] = [
        (zigzag(), alpha, c) for c in parameters["scalings"] for alpha in parameters["alphas"]
    ]
    jobs += [(plateau(), parameters["plateau_alpha"], c) for c in parameters["scalings"]]
    found = []
    for done, (problem, alpha, c) in enumerate(jobs, start=1):
        found.append(_run(parameters, problem, alpha, c))
        if progress:
            progress(done, len(jobs))
    return _labelled(parameters, found)


def _run(parameters: Parameters, problem: Any, alpha: float, c: float) -> Learned:
    from tacit.claims.woodworth.spline_runs import learn
    from tacit.records import NumericalError

    run = learn(problem, parameters["width"], alpha, c, parameters["seed"], parameters["rtol"])
    if not run.outcome.ok:
        raise NumericalError("W-F7", run.outcome)
    return run


def cell(
    alpha: float, scaling: float, seed: int, *, problem: str, width: int, rtol: float, points: int
) -> dict[str, Any]:
    """What one start learns on the points "zigzag" or "plateau", and how far from what."""
    from tacit.problems.univariate import plateau, zigzag

    known = {"zigzag": zigzag, "plateau": plateau}
    chosen = known[one_of("W-F7", "problem", problem, known)]()
    given = {"width": width, "seed": seed, "rtol": rtol}
    run, x = _run(given, chosen, alpha, scaling), np.linspace(-1, 1, points)
    measures = {name: float(getattr(run, name)) for name in MEASURES}
    return {**measures, "input": x, "learned": run.function(x), "interpolant": run.interpolant(x)}


def _labelled(parameters: Parameters, found: list[Learned]) -> xarray.Dataset:
    import xarray

    from tacit.claims.woodworth.spline_runs import linear_spline
    from tacit.problems.univariate import plateau, zigzag

    alphas, scalings = (np.array(parameters[name]) for name in ("alphas", "scalings"))
    x, shape = np.linspace(-1, 1, parameters["points"]), (len(scalings), len(alphas))
    main = np.array(found[: -len(scalings)], dtype=object).reshape(shape)
    flat = found[-len(scalings) :]
    last = [row[alphas.argmax()] for row in main]
    both = ("scaling", "alpha")

    def table(measure: str) -> Array:
        return np.array([[getattr(run, measure) for run in row] for row in main])

    variables: dict[str, Any] = {
        "learned": ((*both, "x"), np.array([[run.function(x) for run in row] for row in main])),
        "interpolant": (("scaling", "x"), np.array([run.interpolant(x) for run in last])),
        "linear": ("x", linear_spline(zigzag())(x)),
        "to_linear": (both, table("to_linear")),
        "to_linear_rms": (both, table("to_linear_rms")),
        "to_kernel": (both, table("to_kernel")),
        "kernel_to_linear": ("scaling", np.array([run.kernel_to_linear for run in last])),
        "inner_share": ("scaling", 2 / parameters["width"] / scalings**4),
        "plateau": (("scaling", "x"), np.array([run.function(x) for run in flat])),
        "plateau_linear": ("x", linear_spline(plateau())(x)),
        "plateau_to_linear": ("scaling", np.array([run.to_linear for run in flat])),
        "plateau_norm": ("scaling", np.array([run.norm for run in flat])),
        "x_data": ("sample", zigzag().X[:, 0]),
        "y_data": ("sample", zigzag().y),
        "x_plateau": ("point", plateau().X[:, 0]),
        "y_plateau": ("point", plateau().y),
    }
    dataset = xarray.Dataset(variables, {"x": x, "alpha": alphas, "scaling": scalings})
    for name, text in LABELS.items():
        dataset[name].attrs.update(long_name=text, units="1")
    return dataset.assign_attrs(summary=summary(dataset))


def summary(dataset: xarray.Dataset) -> str:
    """Distances to the linear spline and to the kernel interpolant, one line per net."""
    lines = [
        "distance of what is learned to the linear spline (largest, RMS) and to the",
        "interpolant with the kernel of the start (RMS)",
        "      c    alpha   linear max   linear RMS   kernel RMS",
    ]
    for c in dataset.scaling.values:
        for alpha in dataset.alpha.values:
            row = dataset.sel(scaling=c, alpha=alpha)
            measured = (float(row[n]) for n in ("to_linear", "to_linear_rms", "to_kernel"))
            lines.append(f"{c:7.3g}  {alpha:7.3g}   " + "   ".join(f"{v:10.3g}" for v in measured))
    flat = ", ".join(f"{v:.3g}" for v in dataset.plateau_to_linear.values)
    return "\n".join([*lines, f"plateau, smallest start: largest distance to its spline {flat}"])


@figure(
    "W-F7",
    title="Large starts learn what their kernel says, small ones the linear spline, except in (d)",
    source="Woodworth et al. 2020, Appendix B.1, Figure 7",
    data=data,
    presets=PRESETS,
    constructed="data points, values of alpha and c; panel (d), whose points bend the same way "
    "twice; gradient flow to zero loss",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """One panel per scaling, and points at which no start learns the linear spline."""
    count = dataset.sizes["scaling"]
    caption = (
        f"{caption_of(dataset.attrs)} The net is sum v max(w x + b, 0) plus a bias; c "
        "multiplies w and b at the start and divides v, which changes the kernel of the start, "
        "not its function."
    )
    widths = (4.1,) * (count + 1)
    picture, panels = sheet(dataset.title, caption, widths=widths, height=4.4)
    for place, axes in enumerate(panels[:-1]):
        _scaling(axes, dataset.isel(scaling=place), "abcdefg"[place])
    _plateau(panels[-1], dataset, "abcdefgh"[count])
    for axes in panels:
        axes.set(xlabel="input $x$", ylabel="output $f(x)$", xticks=(-1, 0, 1))
    for axes in panels[1:-1]:
        axes.sharey(panels[0])
    _legends(panels)
    return picture


def _legends(panels: list[Axes]) -> None:
    """What all panels share, and the scalings of the last one, on the right of it."""
    shared = panels[0].get_legend_handles_labels()
    last = panels[-1]
    far: dict[str, Any] = {"loc": "upper left", "borderaxespad": 0.0}
    own = last.legend(
        *last.get_legend_handles_labels(), title="(d)", bbox_to_anchor=(1.03, 0.3), **far
    )
    own.set_alignment("left")
    last.add_artist(own)
    first = last.legend(*shared, title="(a) to (c)", bbox_to_anchor=(1.03, 1.0), **far)
    first.set_alignment("left")


def _scaling(axes: Axes, row: xarray.Dataset, letter: str) -> None:
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0.0, 0.85, row.sizes["alpha"]))
    for shade, alpha in zip(shades, row.alpha.values, strict=True):
        axes.plot(row.x, row.learned.sel(alpha=alpha), color=shade, label=rf"$\alpha$ = {alpha:g}")
    axes.plot(row.x, row.linear, **SPLINE)
    axes.plot(row.x, row.interpolant, **KERNEL)
    axes.plot(row.x_data, row.y_data, **POINTS)
    axes.set_title(
        f"({letter}) $c$ = {float(row.scaling):g}: inner layer\n{_share(row)} of the kernel"
    )


def _share(row: xarray.Dataset) -> str:
    share = 100 * float(row.inner_share) / (1 + float(row.inner_share))
    return f"{share:.2g} %"


def _plateau(axes: Axes, dataset: xarray.Dataset, letter: str) -> None:
    styles = zip((BLUE, ORANGE, GREEN), (6.0, 3.4, 1.2), dataset.scaling.values, strict=True)
    for colour, thick, c in styles:  # one over the other: they nearly agree
        axes.plot(
            dataset.x,
            dataset.plateau.sel(scaling=c),
            color=colour,
            linewidth=thick,
            label=f"$c$ = {c:g}",
        )
    axes.plot(dataset.x, dataset.plateau_linear, **{**SPLINE, "label": None})
    axes.plot(dataset.x_plateau, dataset.y_plateau, **{**POINTS, "label": None})
    alpha = json.loads(dataset.attrs["parameters"])["plateau_alpha"]
    axes.set_title(
        f"({letter}) other points, $\\alpha$ = {alpha:g}: still\n"
        f"{float(dataset.plateau_to_linear.min()):.2g} off the linear spline"
    )
