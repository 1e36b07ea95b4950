"""Figure 1, a diagram: for large scale and high accuracy the order of limits matters."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant.lab import Axes, Dataset, Evidence, Experiment, Figure, sized, within
from penchant.measures import angle
from penchant.plotting import BLUE, GREEN, GREY, PURPLE, RED, sheet_of
from penchant.problems import three_points
from penchant_papers.moroshko2020.figures.trajectories import stationary
from penchant_papers.moroshko2020.stopping import max_margin_of, predictors
from penchant_papers.moroshko2020.theorem_6 import least_q

TITLE = "The order of limits decides between the kernel and the rich regime"
MUS = [0.25, 1.0, 4.0]


def cell(mu: float, *, points: int) -> dict[str, Any]:
    """The line alpha^D / log(1/eps) = mu, both sides folded; `accuracy` is that at alpha^D = 1.

    A quantity a in [0, inf] is shown at a / (1 + a), so that both limits are on the page.
    """
    scale = np.linspace(0.0, 1.0, points)
    accuracy = scale / (scale + mu * (1 - scale))
    return {
        "trajectory_scale": scale,
        "trajectory_accuracy": accuracy,
        "accuracy": 1 / (1 + mu),
    }


def trained_cell(way: str) -> dict[str, float]:
    """Degrees from a depth-3 net on panel 4a to what each limit finds; `to_q` is that of one mu."""
    problem = three_points("4a")
    scale, accuracy = {"alpha first": (1e9, 1e4), "loss first": (1.0, 1e8)}.get(way, (1e6, 0.0))
    mu = float(way.split()[-1]) if way.startswith("mu") else 1.0
    (beta,) = predictors(problem, 3, scale ** (1 / 3), [accuracy or scale / mu], "dual")
    goals = {
        "to_l2": max_margin_of(problem, "l2"),
        "to_l1": max_margin_of(problem, "l1"),
        "to_q": least_q(problem, 3, mu),
    }
    if way.endswith("first"):
        goals["to_deep"] = stationary(problem, 3)[0]
    return {name: float(angle(beta, goal)) for name, goal in goals.items()}


study = sized(
    "M-F1",
    title=TITLE,
    function=cell,
    arguments={"points": 201},
    grid={"mu": MUS},
    dims={"trajectory_scale": ["time"], "trajectory_accuracy": ["time"]},
    labels={
        "mu": r"$\alpha^D / \log(1/\epsilon)$",
        "accuracy": r"$\log(1/\epsilon)$ where $\alpha^D$ is 1, folded to [0, 1]",
        "trajectory_scale": r"scale of the initialization $\alpha^D$, folded to [0, 1]",
        "trajectory_accuracy": r"training accuracy $\log(1/\epsilon)$, folded to [0, 1]",
    },
    draw={"x": "mu", "colour": "accuracy"},
)
ways = sized(
    "M-F1-ways",
    function=trained_cell,
    grid={"way": ["alpha first", "loss first", *(f"mu = {mu:g}" for mu in MUS)]},
)


def check(dataset: Dataset, ways: Dataset) -> Evidence:
    """Three orders of the limits, trained, and the lines that are drawn."""
    first, last = ways.sel(way="alpha first"), ways.sel(way="loss first")
    both = ways.isel(way=slice(2, None))
    kernel = within(first.to_l2, tolerance=0.1)
    rich = within(last.to_deep, tolerance=0.5)
    middle = within(both.to_q.values.max(), tolerance=0.001)
    inner, mu = dataset.trajectory_accuracy.values[:, 1:-1], dataset.mu.values[:, None]
    scale = dataset.trajectory_scale.values[:, 1:-1]
    drawn = scale / (1 - scale) / (inner / (1 - inner))
    line = within(np.abs(drawn / mu - 1).max(), tolerance=1e-9)
    return Evidence(
        ran=r"depth 3 on panel 4a, where $\ell_1$, $\ell_2$ and $\ell_{2/3}$ differ: $\alpha^3 = "
        r"10^9$ to $\log(1/\epsilon) = 10^4$, $\alpha = 1$ to $10^8$, $\alpha^3 = 10^6$ to "
        r"$\alpha^3/\mu$ for $\mu = 0.25$, 1 and 4; angles in degrees",
        checks={
            r"$\alpha$ first: degrees to the $\ell_2$ max margin": kernel,
            r"loss first: degrees to the $\ell_{2/3}$ max margin": rich,
            r"both together: largest angle to $\operatorname{argmin} Q_\mu$, degrees": middle,
            r"drawn lines: largest relative deviation of $\alpha^D / \log(1/\epsilon)$ "
            r"from $\mu$": line,
        },
        controls={
            r"$\alpha$ first ends at the $\ell_{2/3}$ max margin": kernel.control(first.to_deep),
            r"loss first ends at the $\ell_2$ max margin": rich.control(last.to_l2),
            r"loss first ends at the $\ell_1$ max margin": rich.control(last.to_l1),
            r"both together end at the $\ell_2$ max margin (least)": middle.control(
                both.to_l2.values.min()
            ),
        },
    )


def draw(dataset: Dataset, ways: Dataset) -> Figure:
    """The plane of scale and accuracy with both limits, and the lines that meet in its corner."""
    picture, (axes,) = sheet_of(dataset, widths=(7.6,), height=5.6)
    for mu, style in zip(dataset.mu.values, ("--", "-", "-."), strict=False):
        line = dataset.sel(mu=mu)
        axes.plot(
            line.trajectory_scale,
            line.trajectory_accuracy,
            style,
            color=PURPLE,
            linewidth=1.6,
            label=rf"$\mu$ = {mu:g}",
        )
    _limits(axes)
    axes.set(xlim=(0, 1.0), ylim=(0, 1.0))
    axes.set_xticks([0, 0.5, 1], ["0", "1", r"$\infty$"])
    axes.set_yticks([0, 0.5, 1], ["0", "1", r"$\infty$"])
    axes.set_xlabel(r"scale of the initialization, $\alpha^D$")
    axes.set_ylabel(r"training accuracy $\log(1/\epsilon)$, with $\epsilon$ the loss")
    axes.grid(False)
    title = r"both together: fixed $\mu = \alpha^D / \log(1/\epsilon)$"
    axes.legend(loc="center left", bbox_to_anchor=(1.06, 0.5), title=title)
    return picture


def _limits(axes: Axes) -> None:
    """The two edges that are limits, the two orders of taking them, and what each one finds."""
    thick: dict[str, Any] = {"linewidth": 7, "solid_capstyle": "butt", "clip_on": False}
    rich, kernel = (
        r"$\epsilon \to 0$ first: rich, $\ell_{2/D}$",
        r"$\alpha \to \infty$ first: kernel, $\ell_2$",
    )
    both = (
        "both at once: least $Q_\\mu$, from\n"
        r"$\ell_2$ (large $\mu$) to $\ell_1$ (small $\mu$)"
    )
    axes.plot([0, 0.97], [1, 1], color=RED, label=rich, **thick)
    axes.plot([1, 1], [0, 0.97], color=BLUE, label=kernel, **thick)
    corner: dict[str, Any] = {"linestyle": "", "clip_on": False, "zorder": 5}
    axes.plot(1, 1, marker="o", markersize=13, color=GREEN, label=both, **corner)
    arrow = {"arrowstyle": "-|>", "linewidth": 1.4, "mutation_scale": 14}
    for start, end, colour in (
        ((0.36, 0.22), (0.36, 0.97), RED),
        ((0.36, 0.22), (0.97, 0.22), BLUE),
    ):
        axes.annotate("", end, start, arrowprops={**arrow, "color": colour})
    axes.plot(0.36, 0.22, "o", color=GREY, markersize=7, label="a finite run")


experiment = Experiment(
    "M-F1",
    statement=r"If $\alpha$ grows to infinity first, training ends in the kernel regime, at "
    r"$\ell_2$; if the loss falls to zero first, it ends in the rich regime, at $\ell_{2/D}$; "
    r"with $\alpha^D / \log(1/\epsilon)$ held at $\mu$ it ends at the margin of least $Q_\mu$.",
    place="section 1, Figure 1",
    study=(study, ways),
    check=check,
    draw=draw,
    title=TITLE,
    ours=r"the values of $\mu$, the folding $a \to a / (1 + a)$ of both axes, and the points of "
    "the trained runs",
)
