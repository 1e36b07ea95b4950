"""M-F4: trajectories of depth-3 nets that leave the Q path for the l_{2/3} max margin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.figures.registry import Parameters, figure
from tacit.figures.trajectories import trajectories
from tacit.plotting import plane
from tacit.plotting.style import caption_of

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

ALPHAS = {
    "M-F4a": [0.1, 0.3, 0.5, 1.0, 3.0, 100.0],
    "M-F4b": [0.1, 0.3, 0.5, 1.0, 3.0, 100.0],
}
MARKS = [1.0, 0.2, 0.03, 0.001]
PRESETS: dict[str, Parameters] = {
    "quick": {
        "depth": 3,
        "alphas": ALPHAS,
        "marks": MARKS,
        "powers": [],
        "points": 140,
        "end": 1e7,
        "least_end": 1e4,
        "log10_mus": [4.0, -8.0],
        "q_points": 121,
        "rtol": 1e-6,
    },
    "paper": {
        "depth": 3,
        "alphas": ALPHAS,
        "marks": MARKS,
        "powers": [],
        "points": 400,
        "end": 1e9,
        "least_end": 1e6,
        "log10_mus": [6.0, -10.0],
        "q_points": 321,
        "rtol": 1e-10,
    },
}
TITLES = {
    "M-F4a": r"(a) all starts end at the $\ell_{2/3}$ margin, not at $\ell_1$",
    "M-F4b": r"(b) small starts are caught by a local minimum at $(0, 0)$",
}
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
NAMES: dict[str, dict[str, Any]] = {  # where the values of mu are written
    "M-F4a": {"xytext": (-7, 0), "ha": "right", "bbox": PAPER, "skip": (1.0,)},
    "M-F4b": {"xytext": (4, 10), "ha": "center", "skip": (1.0, 0.03)},
}


@figure(
    "M-F4",
    title="Depth 3: training leaves the Q path for the l2/3 margin, be it only a local one",
    source="Moroshko et al. 2020, section 5, Figure 4",
    data=trajectories,
    presets=PRESETS,
    constructed="the three points of each set, the values of alpha and mu, and the limit of the "
    "flow, which the source leaves open",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The azimuth-pitch plane for each set, with one legend at the right."""
    caption = caption_of(dataset.attrs)
    picture, panels = plane.sheet_of_rows(
        dataset.title, caption, widths=(7.2, 7.2), height=5.6, rows=1
    )
    colours = plane.shades(dataset.alpha.values.tolist())
    for axes, (name, title) in zip(panels, TITLES.items(), strict=True):
        plane.draw_curves(axes, dataset, name, colours)
        plane.draw_cross_lines(axes, dataset, name)
        plane.draw_limit(axes, dataset, name)
        plane.draw_landmarks(axes, dataset, name)
        plane.name_marks(axes, dataset, name, **NAMES[name])
        plane.fit(axes, dataset, name)
        axes.set_title(title)
    limit = r"limit of the flow, $\alpha \to \infty$"
    plane.key(panels[-1], colours, limit=limit, deeper=r"$\ell_{2/3}$")
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return picture
