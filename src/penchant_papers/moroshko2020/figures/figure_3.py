"""Figure 3: trajectories of depth-2 nets on the sphere of directions, for three sets of points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant import Classification, DiagonalNet, Steps, train
from penchant.lab import Array, Axes, Dataset, Evidence, Experiment, Figure, at_least, sized, within
from penchant.measures import angle
from penchant.methods import NormalizedDescent
from penchant.plotting import (
    BLACK,
    PURPLE,
    RED,
    Note,
    draw_on_sphere,
    draw_sphere,
    latex,
    plane,
    sheet,
    sheet_of,
    viewer,
    write_beside,
)
from penchant.problems import three_points
from penchant.record import LogSpaced
from penchant.stop import LogLoss
from penchant_papers.moroshko2020.figures.trajectories import (
    DIRECTION,
    LANDMARK_DIMS,
    apart,
    landmarks_of,
    line_of,
    lines_on,
    rising_margins,
    studies,
    trajectory,
)
from penchant_papers.moroshko2020.stopping import follow

B, C, D = "3b", "3c", "3d"
MARKS = [0.5, 0.2, 0.1, 0.04, 0.01, 0.001]
HUGE, LARGE, SMALL = 10000.0, 100.0, 0.001
TITLE = "Large starts pass the ℓ₂ margin, then follow the $Q$ path to ℓ₁; small starts go straight"
study, landmarks = studies(
    "M-F3",
    [B, C, D],
    [0.001, 0.1, 0.3, 1.0, 3.0, 100.0, 10000.0],
    [0.001, 0.3, 100.0, 10000.0],
    title=TITLE,
    shared={"depth": 2, "marks": MARKS},
    own={"powers": [], "points": 120, "end": 1e6, "least_end": 1e4},
)


def descent_cell(alpha: float, *, step: float, marks: list[float]) -> dict[str, float]:
    """Degrees from normalized descent on the points of (b) to the flow at the marks of mu.

    This is the training of appendix H.5. `other` is the same for a flow from a start 10% larger.
    """
    problem, margins = three_points(B), alpha**2 / np.array(marks)
    stop = [LogLoss(-1.05 * float(margins.max())), Steps(int(50 / step))]
    model, method = DiagonalNet(2, alpha=alpha), NormalizedDescent(step)
    path = train(model, problem, method, stop=stop, record=LogSpaced(400))
    data = path.dataset.isel(time=slice(1, None))
    units = data.predictor.values / np.linalg.norm(data.predictor.values, axis=1, keepdims=True)
    reached = np.log(data.smoothed_margin.values)
    there = np.stack([np.interp(np.log(margins), reached, unit) for unit in units.T], axis=1)
    own, other = (
        angle(there, follow(problem, 2, scale * alpha, margins, 1e-8).predictor.values).max()
        for scale in (1.0, 1.1)
    )
    return {"off": own, "other": other, "steps": int(data.step.values[-1])}


descent = sized(
    "M-F3-descent",
    function=descent_cell,
    arguments={"step": 1e-4, "marks": MARKS},
    grid={"alpha": [LARGE]},
    printed={"arguments": {"step": 1e-5}, "grid": {"alpha": [0.1, 1.0, LARGE]}},
)
TITLES = {
    B: r"(b) the support vectors never change: large $\alpha$ follows the $Q_\mu$ path",
    C: r"(c) many $\ell_1$ max margins: $\alpha$ decides which one",
    D: r"(d) support vectors change: past the kink the flow runs ahead of $Q_\mu$",
}
NAMES: dict[str, dict[str, Any]] = {  # where the values of mu are written
    B: {"ha": "right", "xytext": (-6, 5), "skip": (0.5,)},
    C: {"ha": "right", "xytext": (-6, 0)},
    D: {"ha": "center", "xytext": (0, -12), "skip": (0.5, 0.2, 0.04, 0.01)},
}
VIEW = (30.0, 22.0)  # the viewer stands above this azimuth and pitch


def check(dataset: Dataset, landmarks: Dataset, descent: Dataset) -> Evidence:
    """What the text says about each panel, in degrees."""
    b, c, d = (dataset.sel(curve_set=name) for name in (B, C, D))
    goal_b, goal_c, goal_d = (landmarks.sel(curve_set=name) for name in (B, C, D))
    largest = float(dataset.alpha.max())
    first = [
        apart(line_of(dataset.sel(curve_set=n))[:, 0], landmarks.start.sel(curve_set=n))
        for n in (B, C, D)
    ]
    start = within(np.max(first), tolerance=0.1)
    to_l2 = {a: apart(line_of(b.sel(alpha=a)), goal_b.l2).min() for a in (LARGE, SMALL)}
    visit = within(to_l2[LARGE], tolerance=0.2)
    to_q = {a: apart(b.cross.sel(alpha=a), goal_b.q_mark) for a in (LARGE, 0.3)}
    walk = within(to_q[LARGE].max(), tolerance=0.01)
    huge = {a: between(line_of(b.sel(alpha=a)), line_of(b.sel(alpha=HUGE))) for a in (LARGE, 0.3)}
    alike = within(huge[LARGE], tolerance=0.5)
    ends = apart(line_of(b)[:, -1], goal_b.l1[0])
    reach = within(ends.max(), tolerance=1.0)
    middle = float(apart(b.cross.sel(alpha=LARGE).values[-1], goal_b.l1[0]))
    ends_c = line_of(c)[:, -1]
    edge = within(off_edge(ends_c, goal_c), tolerance=0.5)
    chosen = at_least(np.ptp(ends_c[:, 0]), 30)
    kink = float(goal_d.change_mu[0])
    off = apart(d.cross.sel(alpha=largest), goal_d.q_mark)
    before, after = np.array(MARKS) > kink, np.array(MARKS) < 0.5 * kink
    above = within(off[before].max(), tolerance=0.05)
    below = at_least(off[after].min(), 1.0)
    ours = apart(d.cross.sel(alpha=largest), goal_d.limit_mark).max()
    limit = within(ours, tolerance=0.05)
    stepwise = within(descent.off.max(), tolerance=0.05)
    return Evidence(
        ran=f"exact flows of depth 2 on three sets of three points from {dataset.sizes['alpha']} "
        rf"alphas, {SMALL:g} to {largest:g}, to $\log(1/\mathrm{{loss}}) = 10^6 \alpha^2$ or "
        f"beyond; on the points of (b) also {int(descent.steps.max())} steps of normalized "
        "descent; angles in degrees",
        checks={
            "largest angle of a first step to the mean of the data": start,
            r"(b), $\alpha = 100$: least angle to $\ell_2$": visit,
            r"(b), $\alpha = 100$: largest angle to $\operatorname{argmin} Q_\mu$": walk,
            r"(b): largest distance of the curves of $\alpha = 100$ and 10000": alike,
            r"(b), every $\alpha$: angle to $\ell_1$ at the end": reach,
            r"(c): largest angle of an end to the $\ell_1$ set": edge,
            "(c): degrees between the ends": chosen,
            r"(d): $\mu_0$ where the $Q$ path has its kink": within(kink, 0.04, 0.005),
            rf"(d), $\alpha = {latex(largest)}$: largest angle to $\operatorname{{argmin}} Q_\mu$ "
            r"above $\mu_0$": above,
            rf"(d), $\alpha = {latex(largest)}$: least angle to $\operatorname{{argmin}} Q_\mu$ "
            r"at $\mu = 0.01$ and 0.001": below,
            rf"(d), $\alpha = {latex(largest)}$: largest angle to the ratchet": limit,
            "(b), normalized descent: largest angle to the flow at the marks": stepwise,
        },
        controls={
            r"the start in place of the $\ell_2$ max margin": start.control(
                apart(goal_b.start, goal_b.l2)
            ),
            r"(b) from $\alpha = 0.001$, which goes straight: least angle to "
            r"$\ell_2$": visit.control(to_l2[SMALL]),
            r"(b) from $\alpha = 0.3$: largest angle to $\operatorname{argmin} "
            r"Q_\mu$": walk.control(to_q[0.3].max()),
            r"(b): the curve of $\alpha = 0.3$ in place of 100": alike.control(huge[0.3]),
            r"(b): $\alpha = 100$ at $\mu = 0.001$ in place of the end": reach.control(middle),
            r"(c): the $\ell_2$ max margin as an end": edge.control(
                off_edge(goal_c.l2.values[None], goal_c)
            ),
            r"(b): degrees between the ends, where $\ell_1$ is unique": chosen.control(
                np.ptp(line_of(b)[:, -1, 0])
            ),
            "(d): the $Q$ path in place of the ratchet": limit.control(off.max()),
            "(b), normalized descent against the flow from a start 10% larger (least)": (
                stepwise.control(descent.other.min())
            ),
            r"(d) at $\mu = 0.01$ and 0.001 counted as on the $Q$ path": above.control(
                off[after].min()
            ),
        },
        findings=[
            rf"(d): below $\mu_0 = {kink:.4f}$ the flow from $\alpha = {latex(largest)}$ is "
            f"{off[after].min():.2f} degrees or more from the $Q$ path and {ours:.1e} or less "
            "from the ratchet, which answers a question that the source leaves open",
        ],
    )


def between(one: Array, other: Array) -> float:
    """The largest distance of a point of either curve from the other curve, in degrees."""
    fine = [
        np.stack([np.interp(places, np.arange(len(line)), column) for column in line.T], axis=-1)
        for line in (one, other)
        for places in (np.linspace(0, len(line) - 1, 8 * len(line)),)
    ]
    apart_all = apart(fine[0][:, None], fine[1][None])
    return float(max(apart_all.min(axis=0).max(), apart_all.min(axis=1).max()))


def off_edge(ends: Array, row: Dataset) -> float:
    """The largest angle of directions to the arc of l1 max margins, by a fine division of it."""
    azimuth, pitch = row.l1.values.T
    order, fine = np.argsort(azimuth), np.linspace(azimuth.min(), azimuth.max(), 2001)
    arc = np.stack([fine, np.interp(fine, azimuth[order], pitch[order])], axis=-1)
    return float(apart(ends[:, None], arc).min(axis=1).max())


def draw(dataset: Dataset, landmarks: Dataset, _: Dataset) -> Figure:
    """The sphere for the points of (b), and the azimuth-pitch plane for each set."""
    picture, panels = sheet_of(dataset, (6.2, 6.2), 10.4, rows=(1, 1))
    colours = plane.shades(dataset.alpha.values.tolist())
    falling = dataset.sortby("alpha", ascending=False)
    _on_the_sphere(panels[0], lines_on(dataset, B), landmarks.sel(curve_set=B), colours)
    for axes, (name, text) in zip(panels[1:], TITLES.items(), strict=True):
        row = landmarks.sel(curve_set=name)
        plane.draw_directions(axes, lines_on(dataset, name), colours)
        plane.draw_cross_lines(axes, falling.cross.sel(curve_set=name).values, row)
        plane.draw_landmarks(axes, row)
        plane.name_marks(axes, row.q_mark.values, MARKS, **NAMES[name])
        axes.set_title(text)
    _kink(panels[-1], lines_on(dataset, D), landmarks.sel(curve_set=D), colours)
    return picture


def _on_the_sphere(
    axes: Axes, lines: Mapping[float, Array], row: Dataset, colours: Mapping[float, Any]
) -> None:
    """Panel (a): the same trajectories on the sphere, and the legend of the whole figure."""
    view = viewer(*VIEW)
    draw_sphere(axes, row.rows.values, view)
    for alpha, line in sorted(lines.items(), reverse=True):
        draw_on_sphere(axes, line, view, color=colours[alpha])
    draw_on_sphere(axes, row.q_path.values, view, **plane.Q_PATH)
    for point, style in ((row.l1, plane.STAR), (row.l2, plane.CIRCLE), (row.start, plane.START)):
        draw_on_sphere(axes, point.values.reshape(-1, 2), view, **style)
    axes.set_title("(a) directions on the sphere; grey: those that separate the points of (b)")
    limit = r"limit of the flow, $\alpha \to \infty$ (in $d$)"
    plane.key(axes, colours, limit=limit, edge=r"all $\ell_1$ max margins (in $c$)", flows=False)
    axes.set(xlim=(-1.05, 2.9), anchor="NW")  # the sphere on the left, its legend on the right
    axes.legend(loc="upper left", bbox_to_anchor=(0.54, 1.0), labelspacing=0.45)
    plane.scale_of(axes.inset_axes((0.66, 0.02, 0.05, 0.4)), colours)


def _kink(
    axes: Axes, lines: Mapping[float, Array], row: Dataset, colours: Mapping[float, Any]
) -> None:
    """The limit of the flow, and a closer look at where the support vectors change."""
    closer = axes.inset_axes((0.46, 0.52, 0.54, 0.46))
    plane.draw_directions(closer, lines, colours)
    for panel in (axes, closer):
        plane.draw_limit(panel, row)
    plane.draw_landmarks(closer, row)
    (x, y), mu = row.q_change.values[0], float(row.change_mu[0])
    closer.set(xlim=(x - 7.3, x + 3.2), ylim=(y - 1.6, y + 7.2), xlabel="", ylabel="")
    closer.tick_params(labelsize=7)
    closer.plot(*row.q_mark.values.T, **plane.SQUARE)
    for mark in (0.01, 0.001):
        at, text = row.isel(mark=MARKS.index(mark)), f"{mark:g}"
        plane.label_point(closer, at.q_mark.values, text, PURPLE, xytext=(-8, -9), ha="right")
        plane.label_point(closer, at.limit_mark.values, text, RED, xytext=(5, 8))
    arrow = {"arrowstyle": "->", "color": BLACK}
    text = rf"kink of $Q_\mu$ at $\mu_0 = {mu:.4f}$"
    closer.annotate(text, (x, y), (x - 7.0, y + 0.9), fontsize=9, arrowprops=arrow)
    axes.indicate_inset_zoom(closer, edgecolor=BLACK)


OWN = [1e4, 100.0, 3.0, 1.0, 0.3, 0.1, 1e-3]  # the values of alpha for points of one's own


def draw_points(problem: Classification) -> Figure:
    """Panel (b) for points of one's own with three features."""
    import xarray

    lines = {}
    for alpha in OWN:
        evenly = rising_margins(2, alpha, points=120, end=1e6, least_end=1e4)
        followed = trajectory(problem, alpha, 2, evenly, MARKS)
        lines[alpha] = np.stack([followed[f"trajectory_{name}"] for name in DIRECTION], axis=-1)
    marked = landmarks_of(problem, 2, np.logspace(4.0, -8.0, 61), MARKS)
    row = xarray.Dataset({name: (LANDMARK_DIMS[name], values) for name, values in marked.items()})
    colours = plane.shades(OWN)
    picture, (axes, key) = sheet("Points of one's own: " + TITLE, "", widths=(5.6, 2.6), height=4.8)
    plane.draw_directions(axes, lines, colours)
    plane.draw_landmarks(axes, row)
    marks = row.q_mark.values
    axes.plot(*marks.T, **plane.SQUARE)
    style = {"color": PURPLE, "fontsize": 8}
    notes = [Note(mark, f"{mu:g}", style) for mu, mark in zip(MARKS, marks, strict=True)]
    plane.key(key, colours, cross="")
    key.set_axis_off()
    key.legend(loc="upper left", borderaxespad=0)
    write_beside(axes, notes, list(lines.values()), marks=marks)
    return picture


experiment = Experiment(
    "M-F3",
    statement=r"At depth 2, training from a large start goes to the $\ell_2$ max margin and then "
    r"along the $Q_\mu$ path to $\ell_1$, and from a small start straight to $\ell_1$; the "
    r"start decides among several $\ell_1$ max margins; and where support vectors change, the "
    r"flow leaves the $Q_\mu$ path at its kink.",
    place="section 5, Figure 3",
    study=(study, landmarks, descent),
    check=check,
    draw=draw,
    draw_points=draw_points,
    title=TITLE,
    ours=r"the three points of each set, the values of $\alpha$ and $\mu$, and the limit of the "
    "flow in (d), which the source leaves open",
    scope={
        "quick": "exact flows in place of normalized descent, which trains one run of (b)",
        "printed": "exact flows in place of normalized descent, which trains three runs of (b)",
    },
    seconds=3,
)
