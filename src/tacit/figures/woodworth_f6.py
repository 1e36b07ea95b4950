"""W-F6 (a, b): ReLU nets on the circle leave the kernel regime as their start shrinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLUE, GREEN, GREY, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRESETS: dict[str, Parameters] = {
    "quick": {
        "depths": [2, 3, 5],
        "log10_scales": [-3.0, 3.0],
        "scales": 7,
        "seeds": 5,
        "rtol": 1e-2,
        "loss": 1e-9,
    },
    "paper": {
        "depths": [2, 3, 5],
        "log10_scales": [-3.0, 3.0],
        "scales": 20,
        "seeds": 10,
        "rtol": 1e-2,
        "loss": 1e-9,
    },
}
COLOURS, MARKERS = (BLUE, RED, GREEN), ("o", "s", "^")
LABELS = {
    "depth": "number of weight matrices of the student",
    "scale": "alpha^D, the depth-adjusted scale of the start",
    "seed": "seed of the points, the teacher and the start, whose kernel can fit the labels",
    "test_error": "mean square of net minus teacher over the circle, the teacher's being 1",
    "kernel_error": "the same for the kernel predictor of the start",
    "grad_distance": "1 - cosine between the tangent features at the start and at the end",
    "apart": "root mean square over the circle of net minus kernel predictor",
    "steps": "exponential steps taken",
    "critical": "alpha^D above which steps of 0.01 on the sum of squares are unstable at the start",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """What both panels show of every depth, scale and seed; a run that fails is left NaN."""
    import xarray

    from tacit.claims.woodworth.network_runs import Trained, fitting

    depths, (low, high) = parameters["depths"], parameters["log10_scales"]
    scales = np.logspace(low, high, parameters["scales"])
    draws = fitting(parameters["seeds"], tuple(depths), parameters["loss"])
    shape = len(depths), len(scales), len(draws)
    found = np.empty((*shape, len(Trained._fields)))
    for done, at in enumerate(np.ndindex(shape), start=1):
        found[at] = _row(depths[at[0]], float(scales[at[1]]), draws[at[2]], parameters)
        if progress:
            progress(done, int(np.prod(shape)))
    dims = "depth", "scale", "seed"
    variables: dict[str, Any] = {
        name: (dims, found[..., k]) for k, name in enumerate(Trained._fields)
    }
    limits = [[critical(depth, seed) for seed in draws] for depth in depths]
    variables["critical"] = ("depth", np.median(limits, axis=1))
    coordinates = {"depth": depths, "scale": scales, "seed": list(draws)}
    dataset = xarray.Dataset(variables, coordinates)
    for name, text in LABELS.items():
        dataset[name].attrs = {"long_name": text, "units": "steps" if name == "steps" else "1"}
    return dataset.assign_attrs(summary=summary(dataset))


def cell(depth: int, scale: float, seed: int, *, rtol: float, loss: float) -> dict[str, float]:
    """The fields of Trained for one start; raises where training does not reach its loss."""
    from tacit.claims.woodworth.network_runs import trained

    return trained(depth, scale, seed, rtol=rtol, loss=loss)._asdict()


def _row(depth: int, scale: float, seed: int, parameters: Parameters) -> Array:
    """The values of a cell; NaN where training did not reach its loss."""
    from tacit.claims.woodworth.network_runs import Trained
    from tacit.records import NumericalError

    given = {name: parameters[name] for name in ("rtol", "loss")}
    try:
        return np.array([*cell(depth, scale, seed, **given).values()], dtype=float)
    except NumericalError:
        return np.full(len(Trained._fields), np.nan)


def critical(depth: int, seed: int, step: float = 0.01) -> float:
    """alpha^D at which `step` times the largest kernel eigenvalue of the start is one."""
    from tacit.claims.woodworth import network_runs

    begin = network_runs.start(depth, 1.0, seed).start(2)
    J = network_runs.net(depth, True).jacobian(begin, network_runs.data(seed).training.X)
    # K grows as alpha^(2 (D - 1)) in a D-homogeneous net
    return float((step * np.linalg.norm(J, 2) ** 2) ** (-depth / (2 * (depth - 1))))


def summary(dataset: xarray.Dataset) -> str:
    """Medians over the seeds at the smallest and the largest start, one line per depth."""
    lines = [
        "medians over the seeds at the smallest and at the largest alpha^D",
        "depth   test error           kernel predictor   grad distance",
    ]
    for depth in dataset.depth.values:
        row = dataset.sel(depth=depth).median("seed")
        ends = [
            f"{float(row[name][0]):.2e} {float(row[name][-1]):.2e}"
            for name in ("test_error", "grad_distance")
        ]
        lines.append(
            f"{depth:5d}   {ends[0]}    {float(row.kernel_error[-1]):.2e}           {ends[1]}"
        )
    limits = ", ".join(f"{float(c):.2g}" for c in dataset.critical)
    lines.append(f"steps of 0.01 are unstable at the start above alpha^D = {limits}")
    left = sorted({*range(int(dataset.seed[-1]))} - {*dataset.seed.values.tolist()})
    if left:
        lines.append(f"seeds left out, where the kernel of the start cannot fit the labels: {left}")
    failed = int(np.isnan(dataset.steps.values).sum())
    return "\n".join([*lines, f"{failed} of {dataset.steps.size} runs did not reach their loss"])


@figure(
    "W-F6ab",
    title="Small starts turn the tangent features of ReLU nets, and halve their test error or more",
    source="Woodworth et al. 2020, Appendix B, Figure 6 (a) and (b)",
    data=data,
    presets=PRESETS,
    constructed="the points, the teacher (Gaussian weights, mean square one over the circle), the "
    "scales and the seeds (median, bands from quartile to quartile); the output is zero at the "
    "start (difference of two nets); gradient flow instead of steps of 0.01",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Test error with the kernel predictor beside it, and the grad distance, over alpha^D."""
    picture, (a, b) = sheet(dataset.title, caption_of(dataset.attrs), widths=(6.0, 6.0), height=4.9)
    for place, depth in enumerate(dataset.depth.values):
        rows, colour = dataset.sel(depth=depth), COLOURS[place % len(COLOURS)]
        marker = MARKERS[place % len(MARKERS)]
        for axes, name in ((a, "test_error"), (b, "grad_distance")):
            _band(axes, rows, name, f"depth {depth}", colour, marker)
        a.plot(rows.scale, rows.kernel_error.median("seed"), "--", color=colour, linewidth=1.4)
    a.plot([], [], "--", color=GREY, linewidth=1.4, label="kernel predictor of the start")
    a.set(
        ylabel="test error / mean square of the teacher",
        title="(a) test error: that of the kernel once the start is large",
    )
    large = dataset.scale.values[dataset.scale.values >= 10]
    if len(large) > 1:
        top = float(dataset.grad_distance.median("seed").sel(scale=large[0]).max())
        b.plot(
            large,
            30 * top * (large / large[0]) ** -2.0,
            ":",
            color=GREY,
            label=r"slope $-2$ in $\alpha^D$",
        )
    b.set(
        ylabel="grad distance (1 - cosine)",
        title="(b) tangent features: turned by small starts, fixed by large",
    )
    for axes in (a, b):
        axes.set(xscale="log", yscale="log", xlabel=r"depth-adjusted scale of the start $\alpha^D$")
        axes.axvline(1.0, color=GREY, linewidth=1.0, label=r"He's start, $\alpha = 1$")
        axes.legend(loc="lower right" if axes is a else "lower left")
    return picture


def _band(
    axes: Axes, rows: xarray.Dataset, name: str, label: str, colour: str, marker: str
) -> None:
    """The median over the seeds with a band between the quartiles."""
    low, middle, high = (rows[name].quantile(q, "seed").values for q in (0.25, 0.5, 0.75))
    axes.plot(rows.scale, middle, color=colour, marker=marker, markersize=4, label=label)
    axes.fill_between(rows.scale, low, high, color=colour, alpha=0.18, linewidth=0)
