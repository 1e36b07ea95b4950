"""One panel of a gradient line: the curve over a short arc, by Chebyshev collocation.

The line is followed by its arc length l, dw/dl = grad F/|grad F|, along which nothing blows up. The
dual clock advances by ds = dl/|grad F|, the predictor by db = |grad F| dl and Q by s db.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.regularizers.reparametrization import Reparametrization, length

DEGREE = 26
SWEEPS = 30  # Picard sweeps for the curve itself; one is enough for a single parameter

# t in [0, 1] is the fraction of the panel behind us
NODES = (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2
TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(2 * NODES - 1, DEGREE))


def averaging_matrix() -> Array:
    """Node values of f to node values of its average over [0, t]."""
    integrals = [chebyshev.chebint(c, lbnd=-1) / 2 for c in TO_COEFFICIENTS.T]
    matrix: Array = np.stack([chebyshev.chebval(2 * NODES - 1, c) for c in integrals], axis=1)
    matrix[1:] /= NODES[1:, None]
    matrix[0] = np.eye(DEGREE + 1)[0]
    return matrix


AVERAGE = averaging_matrix()


@dataclasses.dataclass(frozen=True)
class Panel:
    """A panel on each of several lines.

    `table` (lines, 4, degree + 1) holds Chebyshev coefficients in t of four smooth quantities from
    which all others follow without cancellation: the averages of 1/|grad F| and of |grad F| over
    the panel so far, the `split` of the rectangle (clock gained) x (height gained) between Q and
    its conjugate, and the speed |grad F|.
    """

    table: Array
    gain: Array  # (2, lines): what clock and height gain over the whole panel
    split: Array  # (lines,): the split at the far end
    end: Array  # (lines, arguments): the parameters there
    heading: Array  # (lines, arguments): the unit vector along the line there
    value: Array  # F there
    speed: Array  # |grad F| there
    roughness: Array  # what the last coefficients amount to: small if the curve is resolved
    finite: NDArray[np.bool_]  # whether they could be computed at all


def follow(
    line: Reparametrization, start: Array, heading: Array, arc: Array, uphill: float
) -> tuple[Array, Array, Array, Array, NDArray[np.bool_]]:
    """(points, values, speeds, directions, settled) at the nodes of each line's panel."""
    arguments = start.shape[1]
    so_far = NODES[:, None, None] * arc[:, None]
    points = start + so_far * heading
    for _ in range(SWEEPS):
        value, gradient = line.evaluate(points.reshape(-1, arguments))
        speed = length(gradient).reshape(points.shape[:2])
        directions = uphill * gradient.reshape(points.shape) / speed[..., None]
        # one argument at a time, so that equal arguments stay equal to the last bit
        average = [AVERAGE @ directions[..., j] for j in range(arguments)]
        following = start + so_far * np.stack(average, axis=-1)
        change = np.abs(following - points).max(axis=(0, 2))
        points = following
        settled = change <= 1e-15 * (np.abs(start).max(axis=1) + arc)
        # a line that seems to turn back has met a point with grad F = 0
        lost = ~(np.sum(directions * heading, axis=-1).min(axis=0) > 0.5)
        if np.all(settled | lost):
            break
    return points, value.reshape(points.shape[:2]), speed, directions, settled & ~lost


def panel(
    line: Reparametrization, start: Array, heading: Array, arc: Array, uphill: float
) -> Panel:
    """The panels of length `arc` from the rows of `start` along `heading`."""
    with np.errstate(all="ignore"):  # a panel may leave the domain of F; it is refused then
        points, value, speed, directions, settled = follow(line, start, heading, arc, uphill)
        pace, climb = AVERAGE @ (1 / speed), AVERAGE @ speed
        split = AVERAGE @ (NODES[:, None] * pace * speed) / (NODES[:, None] * pace * climb)
        split[0] = 0.5
        quantities = np.stack([pace, climb, split, speed])
        finite = settled & np.isfinite(value).all(axis=0) & np.isfinite(quantities).all(axis=(0, 1))
        rough = np.where(finite, roughness(speed, directions), np.inf)
        table = np.matmul(TO_COEFFICIENTS, quantities).transpose(2, 0, 1)
        gain = arc * quantities[:2, -1]
    return Panel(
        table, gain, split[-1], points[-1], directions[-1], value[-1], speed[-1], rough, finite
    )


def roughness(speed: Array, directions: Array) -> Array:
    """Largest of the last Chebyshev coefficients, relative to the size of each quantity."""
    parts = np.concatenate(
        [
            (speed / speed.max(axis=0))[..., None],
            (speed.min(axis=0) / speed)[..., None],
            directions,
        ],
        axis=2,
    )
    return np.abs(np.tensordot(TO_COEFFICIENTS[-2:], parts, axes=1)).max(axis=(0, 2))
