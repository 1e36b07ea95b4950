"""M-F3: trajectories of depth-2 nets on the sphere of directions, for three sets of points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tacit.figures.registry import Parameters, figure
from tacit.figures.trajectories import trajectories
from tacit.plotting import plane
from tacit.plotting.sphere import draw_on_sphere, draw_sphere, viewer
from tacit.plotting.style import BLACK, PURPLE, RED, caption_of

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALPHAS = {
    "M-F3b": [0.001, 0.1, 0.3, 1.0, 3.0, 100.0, 10000.0],
    "M-F3c": [0.001, 0.1, 0.3, 1.0, 3.0, 100.0],
    "M-F3d": [0.001, 0.1, 0.3, 1.0, 3.0, 100.0, 10000.0],
}
MARKS = [0.5, 0.2, 0.1, 0.04, 0.01, 0.001]
PRESETS: dict[str, Parameters] = {
    "quick": {
        "depth": 2,
        "alphas": ALPHAS,
        "marks": MARKS,
        "powers": [],
        "points": 120,
        "end": 1e6,
        "least_end": 1e4,
        "log10_mus": [4.0, -8.0],
        "q_points": 121,
        "rtol": 1e-6,
    },
    "paper": {
        "depth": 2,
        "alphas": ALPHAS,
        "marks": MARKS,
        "powers": [],
        "points": 400,
        "end": 1e8,
        "least_end": 1e6,
        "log10_mus": [6.0, -10.0],
        "q_points": 321,
        "rtol": 1e-10,
    },
}
TITLES = {
    "M-F3b": r"(b) the same support vectors all along: large $\alpha$ walks the $Q_\mu$ path",
    "M-F3c": r"(c) many $\ell_1$ margins: $\alpha$ decides which one",
    "M-F3d": r"(d) support vectors change: past the kink the flow runs ahead of $Q_\mu$",
}
NAMES: dict[str, dict[str, Any]] = {  # where the values of mu are written
    "M-F3b": {"ha": "right", "xytext": (-6, 5), "skip": (0.5,)},
    "M-F3c": {"ha": "right", "xytext": (-6, 0)},
    "M-F3d": {"ha": "center", "xytext": (0, -12), "skip": (0.5, 0.2, 0.04, 0.01)},
}
VIEW = (30.0, 22.0)  # the viewer stands above this azimuth and pitch


@figure(
    "M-F3",
    title="Large starts visit the l2 margin, then walk the Q path to l1; small ones go straight",
    source="Moroshko et al. 2020, section 5, Figure 3",
    data=trajectories,
    presets=PRESETS,
    constructed="the three points of each set, the values of alpha and mu, and the limit of the "
    "flow in (d), which the source leaves open",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The sphere for the points of (b), and the azimuth-pitch plane for each set."""
    caption = caption_of(dataset.attrs)
    picture, panels = plane.sheet_of_rows(dataset.title, caption, widths=(6.2, 6.2), height=10.4)
    colours = plane.shades(dataset.alpha.values.tolist())
    _on_the_sphere(panels[0], dataset, "M-F3b", colours)
    for axes, (name, title) in zip(panels[1:], TITLES.items(), strict=True):
        plane.draw_curves(axes, dataset, name, colours)
        plane.draw_cross_lines(axes, dataset, name)
        plane.draw_landmarks(axes, dataset, name)
        plane.name_marks(axes, dataset, name, **NAMES[name])
        axes.set_title(title)
    _kink(panels[-1], dataset, "M-F3d", colours)
    return picture


def _on_the_sphere(
    axes: Axes, dataset: xarray.Dataset, name: str, colours: Mapping[float, Any]
) -> None:
    """Panel (a): the same trajectories where they live, and the legend of the whole figure."""
    view, row, curves = viewer(*VIEW), dataset.sel(set=name), plane.curves_of(dataset, name)
    draw_sphere(axes, row.rows.values, view)
    for alpha, curve in zip(curves.alpha.values, curves.trajectory.values, strict=True):
        draw_on_sphere(axes, curve, view, color=colours[float(alpha)])
    draw_on_sphere(axes, row.q_path.values, view, **plane.Q_PATH)
    for point, style in ((row.l1, plane.STAR), (row.l2, plane.CIRCLE), (row.start, plane.START)):
        draw_on_sphere(axes, point.values.reshape(-1, 2), view, **style)
    axes.set_title("(a) directions on the sphere; grey: those that separate the points of (b)")
    limit = r"limit of the flow, $\alpha \to \infty$ (in d)"
    plane.key(axes, colours, limit=limit, edge=r"all $\ell_1$ max margins (in c)", flows=False)
    axes.set(xlim=(-1.05, 2.9), anchor="NW")  # the sphere on the left, its legend on the right
    axes.legend(loc="upper left", bbox_to_anchor=(0.54, 1.0), labelspacing=0.45)
    plane.scale_of(axes.inset_axes((0.66, 0.02, 0.05, 0.4)), colours)


def _kink(axes: Axes, dataset: xarray.Dataset, name: str, colours: Mapping[float, Any]) -> None:
    """The limit of the flow, and a closer look at where the support vectors change."""
    closer = axes.inset_axes((0.46, 0.52, 0.54, 0.46))
    plane.draw_curves(closer, dataset, name, colours)
    row = dataset.sel(set=name)
    for panel in (axes, closer):
        plane.draw_limit(panel, dataset, name)
    plane.draw_landmarks(closer, dataset, name)
    (x, y), mu = row.q_change.values[0], float(row.change_mu[0])
    closer.set(xlim=(x - 7.3, x + 3.2), ylim=(y - 1.6, y + 7.2), xlabel="", ylabel="")
    closer.tick_params(labelsize=7)
    closer.plot(*row.q_mark.values.T, **plane.SQUARE)
    for mark in (0.01, 0.001):
        at, text = row.sel(mark=mark, method="nearest"), f"{mark:g}"
        plane.tell(closer, at.q_mark.values, text, PURPLE, xytext=(-8, -9), ha="right")
        plane.tell(closer, at.limit_mark.values, text, RED, xytext=(5, 8))
    arrow = {"arrowstyle": "->", "color": BLACK}
    text = rf"kink of $Q_\mu$ at $\mu_0 = {mu:.4f}$"
    closer.annotate(text, (x, y), (x - 7.0, y + 0.9), fontsize=9, arrowprops=arrow)
    axes.indicate_inset_zoom(closer, edgecolor=BLACK)
