"""Training on three separable points in space: the direction of the predictor, and the Q path."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.explore.controls import Choice, Number
from penchant.explore.picture import Curve, Panel, Picture, Range, Style, reach
from penchant.explore.state import Values, View
from penchant.measures.directions import angle, angles
from penchant.models.diagonal import DiagonalNet
from penchant.plotting.sphere import directions, seen_by, shaded_ball, viewer
from penchant.plotting.style import BLACK, BLUE, GREEN, ORANGE
from penchant.problems.classification import three_points
from penchant.regularizers.norms import L2
from penchant.solvers.margins.l1_set import l1_ends
from penchant.solvers.margins.path import max_margin_path
from penchant.solvers.max_margin import max_margin
from penchant.training.exact.dual.flow import DualFlow
from penchant.training.record import At
from penchant.training.stop import LogLoss
from penchant.training.train import train

SETS = {
    "3b": "support vectors stay",
    "3c": "many ℓ₁ margins",
    "3d": "support vectors change",
}
LOOKS = {"sphere": "the whole sphere", "flow": "around the trajectory"}
DEPTHS = {str(depth): f"depth {depth}" for depth in (2, 3, 4)}
CONTROLS = (
    Choice("points", "three points", SETS, "3b"),
    Choice("depth", "depth D", DEPTHS, "2"),
    Number("log10_alpha", "initial scale α", -3, 2, 0.25, 1, power=True),
    Choice("look", "look at", LOOKS, "sphere"),
    Number("azimuth", "seen from azimuth (degrees)", -180, 180, 2, 30),
    Number("pitch", "seen from pitch (degrees)", -80, 80, 2, 22),
)
# the smoothed margins of a trajectory: enough for a curve on a screen
BEGIN, END, LEAST_END, RECORDS = 1e-3, 1e6, 1e4, 64
RTOL = 1e-3  # errs by 0.1 degrees at most, less than a pixel
MUS = np.logspace(4, -8, 49)
PIXELS = 300


@lru_cache(maxsize=256)
def trajectory(points: str, depth: int, log10_alpha: float) -> Array:
    """Azimuth and pitch of the predictor along training, from the start on."""
    alpha = 10.0**log10_alpha
    margins = recorded_margins(depth, alpha)
    stop, record = LogLoss(-float(margins[-1])), At(margins=margins)
    net, flow = DiagonalNet(depth, alpha=alpha), DualFlow(rtol=RTOL)
    path = train(net, three_points(points), flow, stop=stop, record=record, throw=True)
    return angles(path.dataset.predictor.values[1:])


def recorded_margins(depth: int, alpha: float) -> Array:
    """Smoothed margins from where no direction has moved yet to beyond the last turn.

    Small starts continue to LEAST_END: their samples become unequal only at margins near 1.
    """
    scale = alpha**depth
    return np.geomspace(BEGIN * min(1.0, scale), max(scale * END, LEAST_END), RECORDS)


@lru_cache(maxsize=32)
def q_path(points: str, depth: int) -> Array:
    """Azimuth and pitch of the Q max margin, from mu to infinity to mu to 0."""
    problem = three_points(points)
    return angles(max_margin_path(problem.X, problem.y, depth, mus=MUS, throw=False).beta)


@lru_cache(maxsize=8)
def marks(points: str) -> tuple[Array, Array, Array]:
    """Azimuth and pitch of the start, of the l2 margin and of the ends of the l1 margins."""
    problem = three_points(points)
    l2 = max_margin(problem.X, problem.y, L2()).beta
    ends = np.linspace(*l1_ends(problem.signed_rows), 17)
    return angles(problem.signed_rows.mean(axis=0)[None]), angles(l2[None]), angles(ends)


@lru_cache(maxsize=64)
def ball(points: str, azimuth: float, pitch: float) -> NDArray[np.uint32]:
    """The lit sphere as RGBA; darker where a direction separates the points."""
    light, inside = shaded_ball(three_points(points).signed_rows, viewer(azimuth, pitch), PIXELS)
    shade = (255 * light).astype(np.uint8)
    opaque = np.where(inside, 255, 0).astype(np.uint8)
    colours = np.stack([shade, shade, shade, opaque], axis=-1)
    return np.ascontiguousarray(colours).view(np.uint32)[..., 0]


def prepare() -> None:
    """Compute in advance what all values of alpha share, so that the first choices are fast."""
    for points in SETS:
        marks(points)
        for depth in DEPTHS:
            q_path(points, int(depth))


def picture(values: Values) -> Picture:
    """The trajectory with its landmarks, on the sphere and in the plane of azimuth and pitch."""
    points, depth = str(values["points"]), int(values["depth"])
    log10_alpha, azimuth, pitch = (
        float(values[name]) for name in ("log10_alpha", "azimuth", "pitch")
    )
    flow, path = trajectory(points, depth, log10_alpha), q_path(points, depth)
    start, l2, l1 = marks(points)
    shown: tuple[tuple[str, Array, Style, str], ...] = (
        ("all ℓ₁ max margins", l1, "line", ORANGE),
        ("gradient flow", flow, "line", BLUE),
        ("Q path, μ from ∞ to 0", path, "dashed", BLACK),
        ("start", start, "crosses", BLACK),
        ("ℓ₂ max margin", l2, "points", GREEN),
        ("ℓ₁ max margin, or its two ends", l1[:: len(l1) - 1], "stars", ORANGE),
    )
    wide = {"all ℓ₁ max margins": 6.0, "gradient flow": 4.0}
    plane, seen = [], []
    for name, curve, style, colour in shown:
        width, (x, y) = wide.get(name, 2.0), seen_by(curve, viewer(azimuth, pitch))
        plane.append(Curve(name, curve[:, 0], curve[:, 1], style, colour, width, in_legend=False))
        seen.append(Curve(name, x, y, style, colour, width))
    nearest = _degrees(flow, l2)
    sentence = (
        f"From α = {10**log10_alpha:.3g} at depth {depth}, training comes within "
        f"{nearest:.1f} degrees of the ℓ₂ max margin; at the last recorded point it is"
        f" {_degrees(flow[-1:], l1):.1f} degrees from ℓ₁."
    )
    across, up = (-1.05, 1.05), (-1.05, 1.05)
    if values["look"] == "flow":
        across, up = _square(seen[1])
    return Picture(
        (
            Panel(
                "sphere",
                "Directions on the sphere (drag to turn it); grey: directions that separate",
                "",
                "",
                tuple(seen),
                x_range=across,
                y_range=up,
                square=True,
                bare=True,
                image=ball(points, azimuth, pitch),
                dragged=("azimuth", "pitch"),
            ),
            Panel(
                "plane",
                "Azimuth and pitch of the same directions",
                "azimuth (degrees)",
                "pitch (degrees)",
                tuple(plane),
                x_range=reach(*(c.x for c in plane), least=1),
                y_range=reach(*(c.y for c in plane), least=1),
            ),
        ),
        sentence,
        {"nearest_l2": nearest},
    )


def _square(curve: Curve) -> tuple[Range, Range]:
    """Equal ranges around what is seen of a curve; the whole sphere where it is all behind."""
    known = np.isfinite(curve.x) & np.isfinite(curve.y)
    if not known.any():
        return (-1.05, 1.05), (-1.05, 1.05)
    sides = [reach(values[known]) for values in (curve.x, curve.y)]
    half = max(0.6 * max(high - low for low, high in sides), 0.02)
    middles = [(low + high) / 2 for low, high in sides]
    across, up = ((middle - half, middle + half) for middle in middles)
    return across, up


def python(values: Values) -> str:
    """The flow of these values, and how near it comes to the l2 margin."""
    depth, alpha = int(values["depth"]), 10.0 ** float(values["log10_alpha"])
    margins = recorded_margins(depth, alpha)
    return f"""\
import numpy as np
import penchant

problem = penchant.problems.three_points("{values["points"]}")
margins = np.geomspace({margins[0]:.6g}, {margins[-1]:.6g}, {RECORDS})
path = penchant.train(
    penchant.DiagonalNet({depth}, alpha={alpha:.6g}),
    problem,
    penchant.DualFlow(rtol={RTOL:g}),
    stop=penchant.stop.LogLoss(-margins[-1]),
    record=penchant.record.At(margins=margins),
)
l2 = penchant.max_margin(problem, penchant.L2()).beta
nearest = penchant.measures.angle(path.dataset.predictor.values[1:], l2).min()
print(f"{{nearest:.1f}}")
"""


def _degrees(curve: Array, mark: Array) -> float:
    """The smallest angle between two sets of directions."""
    return float(min(angle(directions(curve), direction).min() for direction in directions(mark)))


VIEW = View(
    "sphere",
    "The flow on the sphere, with the Q path",
    "Three separable points in R³, exponential loss. From a large initialization, training first "
    "comes near the ℓ₂ max margin and then follows the Q max margins to ℓ₁; from a small one it "
    "goes to ℓ₁ directly.",
    CONTROLS,
    picture,
    python,
    sweep="log10_alpha",
)
