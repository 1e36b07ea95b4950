"""A sphere of directions seen from far away: where data are separated, and curves on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penchant.arguments import Array, finite_array, real, real_array
from penchant.door import Invalid, door
from penchant.plotting.style import GREY, require_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PIXELS = 320
LIGHT = np.array([-0.45, 0.55, 0.70])  # the direction of the light, in the axes of the viewer
SHADOW = 0.72  # brightness of directions that separate, over that of the others


@door
def viewer(azimuth: float, pitch: float) -> Array:
    """Rows: the directions that are right, up and towards the viewer above (azimuth, pitch)."""
    azimuth, pitch = real("azimuth", azimuth), real("pitch", pitch)
    towards = directions(np.array([azimuth, pitch]))
    right = np.array([-np.sin(np.radians(azimuth)), np.cos(np.radians(azimuth)), 0.0])
    return np.array([right, np.cross(towards, right), towards])


def directions(angles: Array) -> Array:
    """Unit vectors of directions given as azimuth and pitch in degrees (last axis)."""
    azimuth, pitch = np.moveaxis(np.radians(angles), -1, 0)
    flat = np.cos(pitch)
    return np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(pitch)], axis=-1)


def shaded_ball(rows: Array, view: Array, pixels: int) -> tuple[Array, NDArray[np.bool_]]:
    """(brightness, where the ball is) over [-1, 1]^2; in the shadow where every product with `rows`
    is positive.
    """
    side = np.linspace(-1, 1, pixels)
    across, up = np.meshgrid(side, side)
    depth = np.sqrt(np.maximum(1 - across**2 - up**2, 0.0))
    seen = np.stack([across, up, depth], axis=-1)
    separating = ((seen @ view @ rows.T) > 0).all(axis=-1)
    light = 0.82 + 0.18 * np.clip(seen @ LIGHT, 0.0, 1.0)
    return np.where(separating, SHADOW * light, light), across**2 + up**2 <= 1


def seen_by(angles: Array, view: Array) -> tuple[Array, Array]:
    """Where the viewer sees a curve of directions; NaN on the far side."""
    across, up, depth = (directions(angles) @ view.T).T
    hidden = depth < 0
    return np.where(hidden, np.nan, across), np.where(hidden, np.nan, up)


@door
def draw_sphere(axes: Axes, rows: Array, view: Array) -> None:
    """The lit ball with its graticule; grey where every product with `rows` is positive."""
    require_axes(axes)
    rows = finite_array("rows", rows, ndim=2)
    if rows.shape[1] != 3:
        raise Invalid(f"rows must have 3 columns, got {rows.shape[1]}")
    view = _view(view)
    shade, inside = shaded_ball(rows, view, PIXELS)
    colour = np.repeat(shade[..., None], 4, axis=-1)
    colour[..., 3] = inside
    axes.imshow(colour, extent=(-1, 1, -1, 1), origin="lower", interpolation="bilinear", zorder=0)
    turn = np.linspace(0, 2 * np.pi, 361)
    axes.plot(np.cos(turn), np.sin(turn), color=GREY, linewidth=1)
    for tilt in range(-60, 61, 30):
        around = np.stack([np.linspace(-180, 180, 361), np.full(361, float(tilt))], axis=-1)
        draw_on_sphere(axes, around, view, color="white", linewidth=0.7)
    for turned in range(0, 360, 30):
        upwards = np.stack([np.full(181, float(turned)), np.linspace(-90, 90, 181)], axis=-1)
        draw_on_sphere(axes, upwards, view, color="white", linewidth=0.7)
    axes.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03), aspect="equal")
    axes.set_axis_off()


@door
def draw_on_sphere(axes: Axes, angles: Array, view: Array, **options: Any) -> None:
    """A curve of directions; what lies on the far side is left out."""
    require_axes(axes)
    angles = real_array("angles", angles, ndim=2)  # NaN where it is not known
    if angles.shape[1] != 2:
        rule = "angles must be rows of azimuth and pitch"
        raise Invalid(f"{rule}, got shape {angles.shape}")
    view = _view(view)
    axes.plot(*seen_by(angles, view), **options)


def _view(view: Array) -> Array:
    """The rows of `viewer`."""
    rows = finite_array("view", view, ndim=2)
    if rows.shape != (3, 3):
        raise Invalid(f"view must be the 3 x 3 array of viewer(), got shape {rows.shape}")
    return rows
