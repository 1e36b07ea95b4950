"""W-F7: functions that univariate ReLU nets learn from small to large starts, by layer scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array, one_of
from tacit.figures.registry import Parameters, Progress, figure
from tacit.figures.style import BLACK, BLUE, GREEN, ORANGE, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.claims.woodworth.spline_runs import Learned

PRESETS: dict[str, Parameters] = {
    "quick": {
        "width": 1000, "alphas": [0.03, 0.1, 0.3, 1.0, 30.0], "scalings": [1.0, 0.5, 0.2],
        "plateau_alpha": 0.01, "seed": 0, "rtol": 0.1, "points": 401,
    },
    "paper": {
        "width": 10_000, "alphas": [0.01, 0.03, 0.1, 0.3, 1.0, 30.0], "scalings": [1.0, 0.3, 0.1],
        "plateau_alpha": 0.003, "seed": 0, "rtol": 0.1, "points": 801,
    },
}  # fmt: skip
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
    "x_data": "inputs of the data", "y_data": "targets of the data",
    "x_plateau": "inputs of the plateau", "y_plateau": "targets of the plateau",
}  # fmt: skip


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
        "to_linear": (both, table("to_linear")), "to_linear_rms": (both, table("to_linear_rms")),
        "to_kernel": (both, table("to_kernel")),
        "kernel_to_linear": ("scaling", np.array([run.kernel_to_linear for run in last])),
        "inner_share": ("scaling", 2 / parameters["width"] / scalings**4),
        "plateau": (("scaling", "x"), np.array([run.function(x) for run in flat])),
        "plateau_linear": ("x", linear_spline(plateau())(x)),
        "plateau_to_linear": ("scaling", np.array([run.to_linear for run in flat])),
        "plateau_norm": ("scaling", np.array([run.norm for run in flat])),
        "x_data": ("sample", zigzag().X[:, 0]), "y_data": ("sample", zigzag().y),
        "x_plateau": ("point", plateau().X[:, 0]), "y_plateau": ("point", plateau().y),
    }  # fmt: skip
    dataset = xarray.Dataset(variables, {"x": x, "alpha": alphas, "scaling": scalings})
    for name, text in LABELS.items():
        dataset[name].attrs.update(long_name=text, units="1")
    return dataset.assign_attrs(summary=summary(dataset))


def summary(dataset: xarray.Dataset) -> str:
    """Distances to the linear spline and to the kernel interpolant, one line per net."""
    lines = ["distance of what is learned to the linear spline (largest, RMS) and to the",
             "interpolant with the kernel of the start (RMS)",
             "      c    alpha   linear max   linear RMS   kernel RMS"]  # fmt: skip
    for c in dataset.scaling.values:
        for alpha in dataset.alpha.values:
            row = dataset.sel(scaling=c, alpha=alpha)
            measured = (float(row[n]) for n in ("to_linear", "to_linear_rms", "to_kernel"))
            lines.append(f"{c:7.3g}  {alpha:7.3g}   " + "   ".join(f"{v:10.3g}" for v in measured))
    flat = ", ".join(f"{v:.3g}" for v in dataset.plateau_to_linear.values)
    return "\n".join([*lines, f"plateau, smallest start: largest distance to its spline {flat}"])


@figure(
    "W-F7",
    title="Small starts learn the linear spline where bends alternate, large ones what their "
    "kernel says",
    source="Woodworth et al. 2020, Appendix B.1, Figure 7",
    data=data,
    presets=PRESETS,
    constructed="data points, alphas and scalings; panel (d), whose points bend the same way twice;"
    " gradient flow to zero loss",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """One panel per scaling, and the plateau that refuses the linear spline."""
    count = dataset.sizes["scaling"]
    widths = (3.9,) * (count + 1)
    picture, panels = sheet(dataset.title, caption_of(dataset.attrs), widths=widths, height=4.8)
    for place, axes in enumerate(panels[:-1]):
        _scaling(axes, dataset.isel(scaling=place), "abcdefg"[place])
    _plateau(panels[-1], dataset, "abcdefgh"[count])
    for axes in panels:
        axes.set(xlabel="x", ylabel="f(x)")
    panels[0].legend(loc="upper left", ncols=2, columnspacing=1.0, handlelength=1.6)
    panels[-1].legend(loc="upper left", handlelength=1.6)
    return picture


def _scaling(axes: Axes, row: xarray.Dataset, letter: str) -> None:
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0.0, 0.85, row.sizes["alpha"]))
    for shade, alpha in zip(shades, row.alpha.values, strict=True):
        axes.plot(row.x, row.learned.sel(alpha=alpha), color=shade, label=rf"$\alpha$ = {alpha:g}")
    axes.plot(row.x, row.linear, "--", color=BLACK, linewidth=1.3, label="linear spline")
    axes.plot(row.x, row.interpolant, "--", color=RED, linewidth=1.3, label="kernel at start")
    axes.plot(row.x_data, row.y_data, "o", color=BLACK, markersize=6, zorder=5)
    small, large = float(row.to_linear[0]), float(row.to_kernel[-1])
    axes.set_title(
        f"({letter}) c = {float(row.scaling):g}: inner layer {_share(row)} of the kernel\n"
        f"{small:.1g} off linear (least α), {large:.1g} off kernel (largest)",
        fontsize=9,
    )
    _room(axes, row.linear.values, row.interpolant.values)


def _share(row: xarray.Dataset) -> str:
    share = 100 * float(row.inner_share) / (1 + float(row.inner_share))
    return f"{share:.2g} %"


def _room(axes: Axes, *curves: Array) -> None:
    """Space above the curves for a legend."""
    low, high = min(c.min() for c in curves), max(c.max() for c in curves)
    axes.set_ylim(low - 0.1 * (high - low), high + 0.55 * (high - low))


def _plateau(axes: Axes, dataset: xarray.Dataset, letter: str) -> None:
    styles = zip((BLUE, ORANGE, GREEN), (5.0, 3.0, 1.2), dataset.scaling.values, strict=True)
    for colour, thick, c in styles:  # one over the other: they nearly agree
        axes.plot(dataset.x, dataset.plateau.sel(scaling=c), color=colour, linewidth=thick,
                  label=f"c = {c:g}")  # fmt: skip
    axes.plot(dataset.x, dataset.plateau_linear, "--", color=BLACK, linewidth=1.3,
              label="linear spline")  # fmt: skip
    axes.plot(dataset.x_plateau, dataset.y_plateau, "o", color=BLACK, markersize=6, zorder=5)
    far = float(dataset.plateau_to_linear.min())
    axes.set_title(f"({letter}) two bends of the same sign: even the\n"
                   f"smallest start is {far:.2g} off linear", fontsize=9)  # fmt: skip
    _room(axes, dataset.plateau_linear.values, dataset.plateau.values)
