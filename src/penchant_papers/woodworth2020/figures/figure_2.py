"""Figure 2: q(z), which the flow minimises, and r(z), the distance from the start."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Q
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    door_as,
    one_of,
    sized,
    within,
)
from penchant.plotting import BLUE, GREY, RED, end_label, sheet_of
from penchant.regularizers import R
from penchant_papers.instances import slope

NAMES = ("q", "r", "q of depth 4")


@door_as("figure 2")
def terms(regularizer: str, z: Array) -> Array:
    """q(z), r(z) or q_4(z) at alpha = 1."""
    one_of("regularizer", regularizer, NAMES)
    depth = 4 if regularizer == NAMES[2] else 2
    return (R(alpha=1.0) if regularizer == "r" else Q(depth=depth, alpha=1.0)).terms(z)


def cell(regularizer: str, z_max: float, log10_far: list[float], points: int) -> dict[str, Any]:
    """The regularizer on a symmetric range near zero, and over |z| far out."""
    first, last = log10_far
    z, far = np.linspace(-z_max, z_max, points), np.logspace(first, last, points)
    value, ratio = terms(regularizer, z), terms(regularizer, far) / far
    return {"z": z, "value": value, "far": far, "ratio": ratio}


study = sized(
    "W-F2",
    title="The implicit and explicit regularizers are alike, but not the same function",
    function=cell,
    arguments={"z_max": 10.0, "log10_far": [-2.0, 6.0], "points": 401},
    grid={"regularizer": list(NAMES)},
    dims={"z": ["near"], "value": ["near"], "far": ["out"], "ratio": ["out"]},
    tiny={"arguments": {"points": 41}},
)


def check(dataset: Dataset) -> Evidence:
    """q and r are alike near zero, not rescalings of each other, and different far out."""
    far = dataset.far.isel(regularizer=0).values
    q, r, deeper = (dataset.ratio.sel(regularizer=name).values for name in NAMES)
    last = far >= 1e3
    logs = np.log(far[last])

    def spread(one: Array, other: Array) -> float:
        return float(np.max(one / other) / np.min(one / other))

    near = {
        f"${name}(z)/z^2$ near zero": within(ratio[0] / far[0], limit, 1e-3)
        for name, ratio, limit in (("q", q, 1 / 4), ("r", r, 1 / 8))
    }
    rescaled = at_least(spread(q, r), 1.1)
    grows = within(np.polyfit(logs, q[last], 1)[0], 1.0, 0.01)
    linear = within(slope(far[last], np.abs(1 - r[last])), -0.5, 0.02)
    nearest = next(iter(near.values()))
    return Evidence(
        ran=f"$q$, $r$ and $q$ of depth 4 at {dataset.sizes['out']} points from $|z| = 0.01$ to "
        "$10^6$",
        checks={
            **near,
            "largest over smallest $q/r$": rescaled,
            "$q/|z|$ per factor $e$ in $|z|$, $|z| > 10^3$": grows,
            "exponent in $|z|$ of $1 - r/|z|$, $|z| > 10^3$": linear,
        },
        controls={
            "$q = r$, near zero": nearest.control(r[0] / far[0]),
            "$r$ is $q$ of depth 4, up to a factor": rescaled.control(spread(deeper, r)),
            "$q$ becomes linear, as $r$ does": grows.control(np.polyfit(logs, r[last], 1)[0]),
            "$r$ approaches linearity logarithmically, as $q$ does": linear.control(
                slope(far[last], logs / q[last] - 1)
            ),
        },
        findings=[
            f"$q/r$ grows from {q[0] / r[0]:.3f} near zero to {q[-1] / r[-1]:.3g} at $|z| = 10^6$"
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """Both functions, and their ratio to |z|."""
    picture, (near, far) = sheet_of(dataset, widths=(4.9, 4.9), height=4.2)
    names = {"q": "$q(z)$, implicit", "r": "$r(z)$, explicit"}
    for name, colour in (("q", BLUE), ("r", RED)):
        row = dataset.sel(regularizer=name)
        near.plot(row.z, row.value, color=colour, label=names[name])
        far.plot(row.far, row.ratio, color=colour)
    near.legend(loc="upper center")
    near.set_title("(a) alike, but not the same function")
    near.set(xlabel=r"$z = \beta_i/\alpha^2$", ylabel="regularizer")
    far.set_title(r"(b) only $r$ turns into $|z|$, the $\ell_1$ norm")
    far.set(xscale="log", ylim=(0, None))
    far.set(xlabel=r"$|z| = |\beta_i|/\alpha^2$", ylabel="regularizer / $|z|$")
    far.axhline(1.0, color=GREY, linewidth=1, linestyle="--")
    middle = dataset.sel(regularizer="q").isel(out=int(0.62 * dataset.sizes["out"]))
    x, y = float(middle.far), float(middle.ratio)
    end_label(far, x, y, r"$q/|z| \sim \log|z|$", BLUE, ha="right", xytext=(-8, 4))
    end_label(far, x, 1.0, r"$r/|z| \to 1$", RED, va="bottom", xytext=(0, 5))
    return picture


experiment = Experiment(
    "W-F2",
    statement="The implicit regularizer $q$ and the explicit $r$ are alike near zero but are not "
    "rescalings of each other: $r$ becomes linear, with a gap that is a power of $z$, whereas "
    r"$q$ grows like $|z| \log|z|$.",
    place="section 4, Figure 2 and the text below it",
    study=study,
    check=check,
    draw=draw,
    title="The flow does not minimise the distance from its start: $r$ becomes linear, $q$ never "
    "does",
    ours="the ranges of $z$, and panel (b)",
)
