"""Figure 6: the trajectories of Figure 3 with log(1/loss) written along them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from penchant.lab import Axes, Dataset, Evidence, Experiment, Figure, at_most
from penchant.plotting import (
    BLACK,
    LEGEND,
    NOTE_DISTANCES,
    Note,
    latex,
    plane,
    sheet_of,
    write_beside,
)
from penchant_papers.moroshko2020.figures.figure_3 import B, C, D
from penchant_papers.moroshko2020.figures.trajectories import apart, lines_on, studies

POWERS = list(range(-6, 15))
TITLE = r"When training passes the ℓ₂ max margin, $\log(1/\mathrm{loss})$ is about $\alpha^2$"
study, landmarks = studies(
    "M-F6",
    [B, C, D],
    [0.001, 0.1, 0.3, 1.0, 100.0, 10000.0],
    [0.001, 100.0, 10000.0],
    title=TITLE,
    shared={"depth": 2, "marks": [1.0]},
    own={"powers": POWERS, "points": 120, "end": 1e6, "least_end": 1e4},
)
SHOWN = {  # as many as there is room for
    B: [0.1, 1.0, 100.0, 10000.0],
    C: [0.001, 0.3, 1.0, 100.0],
    D: [0.1, 1.0, 100.0],
}
TITLES = {
    B: r"(b) the support vectors never change",
    C: r"(c) many $\ell_1$ max margins",
    D: r"(d) support vectors change",
}
BOX = {"boxstyle": "round,pad=0.15", "facecolor": "white"}


def check(dataset: Dataset, landmarks: Dataset) -> Evidence:
    """Where log(1/loss) is alpha^2, large starts are at l2, and not where it is 1000 times that."""
    away = {
        (name, alpha, shift): float(
            apart(
                dataset.at_power.sel(curve_set=name, alpha=alpha)[POWERS.index(power + shift)],
                landmarks.l2.sel(curve_set=name),
            )
        )
        for name, alpha, power in ((B, 100.0, 4), (C, 100.0, 4), (D, 100.0, 4), (B, 1e4, 8))
        for shift in (-4, 0, 3)
    }
    arc = {
        n: float(apart(landmarks.l2.sel(curve_set=n), landmarks.l1.sel(curve_set=n)[0]))
        for n in (B, C, D)
    }
    share = {key: angle / arc[key[0]] for key, angle in away.items()}
    around = {
        rf"panel {name}, $\alpha = {latex(alpha)}$: share of the arc from $\ell_2$ to $\ell_1$ at "
        r"$\log(1/\mathrm{loss}) = \alpha^2$": at_most(value, 0.05)
        for (name, alpha, shift), value in share.items()
        if shift == 0
    }
    ends = [key for key in share if key[2] == 3]
    starts = [key for key in share if key[2] == -4]
    first = next(iter(around.values()))
    return Evidence(
        ran=r"exact flows of depth 2 on three sets of three points from $\alpha = 100$ and 10000, "
        r"read at the powers of ten of $\log(1/\mathrm{loss})$",
        checks=around,
        controls={
            r"$\log(1/\mathrm{loss}) = 1000 \alpha^2$ (least share)": first.control(
                min(share[key] for key in ends)
            ),
            r"$\alpha = 100$, $\log(1/\mathrm{loss}) = 1$ (least share)": first.control(
                min(share[key] for key in starts if key[1] == 100)
            ),
        },
        findings=[
            r"degrees from $\ell_2$ at $\log(1/\mathrm{loss}) = \alpha^2$: "
            + ", ".join(
                rf"{away[k]:.2g} (panel {k[0]}, $\alpha = {latex(k[1])}$)"
                for k in away
                if k[2] == 0
            )
        ],
    )


def draw(dataset: Dataset, landmarks: Dataset) -> Figure:
    """The azimuth-pitch plane for each set, with numbers along the trajectories."""
    after = "The letters of the panels are those of Figure 3."
    picture, panels = sheet_of(dataset, (5.7, 5.7, 5.7), 5.4, after=after)
    colours = plane.shades([alpha for alphas in SHOWN.values() for alpha in alphas])
    shown = {
        name: dataset.sel(alpha=np.intersect1d(alphas, dataset.alpha)[::-1])
        for name, alphas in SHOWN.items()
    }
    for axes, (name, text) in zip(panels, TITLES.items(), strict=True):
        lines, row = lines_on(shown[name], name), landmarks.sel(curve_set=name)
        plane.draw_directions(axes, lines, colours)
        plane.draw_landmarks(axes, row)
        plane.fit(axes, lines, row)
        axes.set_title(text)
    key = panels[-1]
    plane.key(key, colours, cross="", marks="", edge=r"all $\ell_1$ max margins (in $c$)")
    key.plot([], [], ".", color=BLACK, markersize=6, label=r"$\log(1/\mathrm{loss})$ = $10^n$")
    key.legend(**LEGEND)
    for axes, name in zip(panels, TITLES, strict=True):
        _numbers(axes, shown[name], name, landmarks.sel(curve_set=name), colours)
    return picture


def _numbers(
    axes: Axes, shown: Dataset, name: str, row: Dataset, colours: Mapping[float, Any]
) -> None:
    """Dots at the powers of ten, and numbers beside them wherever there is room for one.

    For large alphas the power nearest to alpha^2 comes first and stands in a box.
    """
    from matplotlib.colors import to_hex

    alphas, dots = shown.alpha.values, shown.at_power.sel(curve_set=name).values
    axes.plot(*dots.reshape(-1, 2).T, ".", color=BLACK, markersize=6, zorder=6)
    # how many decades each dot is from alpha^2; the large starts are named there, and first
    away = np.abs(np.array(POWERS) - 2 * np.log10(alphas[:, None]))
    boxed = (away < 0.5) & (alphas[:, None] >= 10)
    known = np.isfinite(dots).all(axis=-1)
    notes = []
    for at in sorted(zip(*np.nonzero(known), strict=True), key=lambda k: (not boxed[k], away[k])):
        red, green, blue = (0.7 * part for part in colours[float(alphas[at[0]])][:3])
        dark = to_hex((red, green, blue))
        style: dict[str, Any] = {"color": dark, "fontsize": 9, "zorder": 9}
        text = rf"$10^{{{POWERS[at[1]]}}}$"
        if boxed[at]:
            framed = {**style, "bbox": {**BOX, "edgecolor": dark}}
            notes.append(Note(dots[at], text, framed, far=(*NOTE_DISTANCES, 19.0)))
        else:
            notes.append(Note(dots[at], text, style))
    marks = np.vstack([row.start, row.l2, row.l1[[0, -1]]])
    lines = [*lines_on(shown, name).values(), row.l1.values, row.q_path.values]
    write_beside(axes, notes, lines, marks)


experiment = Experiment(
    "M-F6",
    statement=r"When training from a large start is at the $\ell_2$ max margin, "
    r"$\log(1/\mathrm{loss})$ is $\alpha^2$.",
    place="appendix H.1, Figure 6",
    study=(study, landmarks),
    check=check,
    draw=draw,
    title=TITLE,
    ours=r"the three points of each set and the values of $\alpha$. Dots: the powers of ten of "
    r"the smoothed margin $\log(1/\mathrm{loss})$",
    seconds=3,
)
