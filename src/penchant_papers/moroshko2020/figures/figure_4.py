"""Figure 4: trajectories of depth-3 nets that leave the Q path for the l_{2/3} max margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant.lab import Check, Dataset, Evidence, Experiment, Figure, at_least, within
from penchant.plotting import plane, sheet_of
from penchant_papers.moroshko2020.figures.trajectories import apart, line_of, lines_on, studies

A, B = "4a", "4b"
MARKS = [1.0, 0.2, 0.03, 0.001]
TITLE = "At depth 3, training leaves the Q path for a global or local ℓ₂/₃ max margin"
study, landmarks = studies(
    "M-F4",
    [A, B],
    [0.1, 0.3, 0.5, 1.0, 3.0, 100.0],
    [0.3, 0.5, 100.0],
    title=TITLE,
    shared={"depth": 3, "marks": MARKS},
    own={"powers": [], "points": 140, "end": 1e7, "least_end": 1e4},
)
TITLES = {
    A: r"(a) all starts end at the $\ell_{2/3}$ margin, not at $\ell_1$",
    B: r"(b) small starts end at a local minimum at $(0, 0)$",
}
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
NAMES: dict[str, dict[str, Any]] = {  # where the values of mu are written
    A: {"xytext": (-7, 0), "ha": "right", "bbox": PAPER, "skip": (1.0,)},
    B: {"xytext": (4, 10), "ha": "center", "skip": (1.0, 0.03)},
}


def check(dataset: Dataset, landmarks: Dataset) -> Evidence:
    """Both sets: to l2, near the Q path, then to a stationary point that is not l1; in degrees."""
    checks: dict[str, Check] = {}
    controls: dict[str, Check] = {}
    for panel, name in (("(a)", A), ("(b)", B)):
        curves, goal = dataset.sel(curve_set=name), landmarks.sel(curve_set=name)
        large, ends = curves.sel(alpha=100.0), line_of(curves)[:, -1]
        best, l1 = goal.stationary[0], goal.l1[0]
        off = apart(large.cross, goal.q_mark)
        limit = within(apart(large.cross, goal.limit_mark).max(), tolerance=0.05)
        to_l1 = within(apart(goal.q_path[-1], l1), tolerance=0.5)
        caught = curves.alpha.values <= (0.3 if name == B else 0)
        end, which = within(apart(ends[~caught], best).max(), tolerance=0.5), ""
        if name == B:
            which = ", alpha >= 0.5"
        checks |= {
            f"{panel}, alpha = 100: least angle to l2": within(
                apart(line_of(large), goal.l2).min(), tolerance=0.2
            ),
            f"{panel}, alpha = 100: angle to argmin Q_mu at mu = 1": within(off[0], tolerance=0.01),
            f"{panel}, alpha = 100: angle to argmin Q_mu at mu = 0.001": at_least(off[-1], 3),
            f"{panel}, alpha = 100: largest angle to the ratchet": limit,
            f"{panel}: angle of the last argmin Q_mu to l1": to_l1,
            f"{panel}: largest angle of an end to the l_{{2/3}} max margin{which}": end,
        }
        controls |= {
            f"{panel}: endpoints at l1": end.control(apart(ends[~caught], l1).min()),
            f"{panel}: the Q path in place of the ratchet": limit.control(off.max()),
            f"{panel}: the endpoint of the flow in place of that of the Q path": to_l1.control(
                apart(ends[-1], l1)
            ),
        }
        if name == B:
            local = within(apart(ends[caught], np.zeros(2)).max(), tolerance=0.5)
            checks["(b), alpha <= 0.3: largest angle of an end to (0, 0)"] = local
            controls["(b): runs from alpha >= 0.5 end at (0, 0)"] = local.control(
                apart(ends[~caught], np.zeros(2)).min()
            )
            places = goal.stationary.dropna("place").values
            known = float(apart(places, np.zeros(2)).min())
    return Evidence(
        ran=f"exact flows of depth 3 on two sets of three points from {dataset.sizes['alpha']}"
        " alphas to log(1/loss) = 1e7 alpha³ or beyond; angles in degrees",
        checks=checks,
        premises={
            "(0, 0) is a stationary point of the l_{2/3} margin (degrees)": (known < 1e-6, known)
        },
        controls=controls,
    )


def draw(dataset: Dataset, landmarks: Dataset) -> Figure:
    """The azimuth-pitch plane for each set, with one legend at the right."""
    picture, panels = sheet_of(dataset, (7.2, 7.2), height=5.6)
    colours = plane.shades(dataset.alpha.values.tolist())
    falling = dataset.sortby("alpha", ascending=False)
    for axes, (name, title) in zip(panels, TITLES.items(), strict=True):
        lines, row = lines_on(dataset, name), landmarks.sel(curve_set=name)
        plane.draw_directions(axes, lines, colours)
        plane.draw_cross_lines(axes, falling.cross.sel(curve_set=name).values, row)
        plane.draw_limit(axes, row)
        plane.draw_landmarks(axes, row)
        plane.name_marks(axes, row.q_mark.values, MARKS, **NAMES[name])
        plane.fit(axes, lines, row)
        axes.set_title(title)
    limit = r"limit of the flow, $\alpha \to \infty$"
    plane.key(panels[-1], colours, limit=limit, deeper=r"$\ell_{2/3}$")
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return picture


experiment = Experiment(
    "M-F4",
    statement="At depth 3, training from a large start goes to the l2 max margin, stays near the"
    " Q_mu path and then leaves it for the l_{2/3} max margin, while the Q_mu path"
    " continues to l1; training from a small start may end at a local minimum.",
    place="section 5, Figure 4",
    study=(study, landmarks),
    check=check,
    draw=draw,
    title=TITLE,
    ours="the three points of each set, the values of alpha and mu, and the limit of the flow,"
    " which the source leaves open",
    seconds=2,
)
