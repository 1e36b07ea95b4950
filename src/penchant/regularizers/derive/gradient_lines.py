"""Gradient lines of a reparametrization, followed in one direction from many starts.

How it works. With the dual variable s as time (`dual` below) the parameters of a coordinate move by
w'(s) = grad F(w), so the predictor b(s) = F(w(s)) rises at the rate |grad F|^2 (docs/theory
section 10; Woodworth et al. 2020, section 4, the general approach). A line is followed by its arc
length l, dw/dl = grad F/|grad F|, along which nothing blows up, in panels of Chebyshev collocation:
ds = dl/|grad F|, db = |grad F| dl, dQ = s db. A panel stores averages from its beginning, from
which s, b and Q follow without cancellation, and it is accepted where its last coefficients are
small.
In another geometry (`Reparametrization.velocity`) the line is w'(s) = v(grad F): its speed |v|
gives ds = dl/|v|, and its rate <grad F, v>/|v| gives db; both are |grad F| for gradient lines.
Panels are added when a question needs them, so one line answers for all s, and lines from many
starts are extended together, in one evaluation of the map.

In time s itself, lines that grow exponentially or reach infinity at a finite s would stop an
integrator; in l both are smooth.

Pitfalls. Rounding inside the map leaves a roughness that no shorter panel cures; where halving a
panel does not help, a larger one is accepted. Across a kink no polynomial fits, but a panel too
short to matter is let through. A line whose direction seems to turn back has met a point where grad
F vanishes, and ends. In the geometry of signs a line turns wherever a derivative changes its sign,
and it comes to rest in finite time. Whether a line that has ended would still grow is judged by its
last panels: the range of b is what training can reach.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.regularizers.derive.reparametrization import (
    LARGE,
    SMALL,
    WHO,
    Reparametrization,
    length,
)

DEGREE = 26
SWEEPS = 30  # Picard sweeps for the curve itself; one is enough for a single parameter
# t in [0, 1] is the fraction of the panel behind us
NODES = (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2
TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(2 * NODES - 1, DEGREE))
HUGE = 1e290  # a line ends where a number leaves double precision
PANELS = 4000
TAIL = 1e-14  # what the last Chebyshev coefficients of a resolved panel may amount to
NOISE = 1e-4  # and at most, where rounding inside the map keeps them from falling
PATIENCE = 60  # fruitless attempts, against noise or at the least length, before a line ends
RESTING = 1e-30  # of the rate at the start: a line of signs that is slower has come to rest
DUAL, HEIGHT, COST, RATE = range(4)
Index = NDArray[np.intp]


def averaging_matrix() -> Array:
    """Node values of f to node values of its average over [0, t]."""
    integrals = [chebyshev.chebint(c, lbnd=-1) / 2 for c in TO_COEFFICIENTS.T]
    matrix: Array = np.stack([chebyshev.chebval(2 * NODES - 1, c) for c in integrals], axis=1)
    matrix[1:] /= NODES[1:, None]
    matrix[0] = np.eye(DEGREE + 1)[0]
    return matrix


AVERAGE = averaging_matrix()


@dataclasses.dataclass(frozen=True)
class LinePanels:
    """A panel on each of several lines.

    `table` (lines, 5, degree + 1) holds Chebyshev coefficients in t of five smooth quantities from
    which all others follow without cancellation: the averages of 1/speed and of the rate over
    the panel so far, the `split` of the rectangle (dual gained) x (height gained) between Q and
    its conjugate, the speed, and the rate.
    """

    table: Array
    gain: Array  # (2, lines): what dual and height gain over the whole panel
    split: Array  # (lines,): the split at the far end
    end: Array  # (lines, arguments): the parameters there
    heading: Array  # (lines, arguments): the unit vector along the line there
    value: Array  # F there
    rate: Array  # dF/dl there
    root: Array  # of b' = speed * rate there
    roughness: Array  # what the last coefficients amount to: small if the curve is resolved
    finite: NDArray[np.bool_]  # whether they could be computed at all


def follow(
    line: Reparametrization, start: Array, heading: Array, arc: Array, uphill: float
) -> tuple[Array, Array, Array, Array, Array, NDArray[np.bool_]]:
    """(points, values, speeds, rates, directions, settled) at the nodes of each line's panel."""
    arguments = start.shape[1]
    so_far = NODES[:, None, None] * arc[:, None]
    points = start + so_far * heading
    for _ in range(SWEEPS):
        value, gradient = line.evaluate(points.reshape(-1, arguments))
        velocity = line.velocity(gradient)
        speed = length(velocity).reshape(points.shape[:2])
        directions = uphill * velocity.reshape(points.shape) / speed[..., None]
        # one argument at a time, so that equal arguments stay equal to the last bit
        average = [AVERAGE @ directions[..., j] for j in range(arguments)]
        following = start + so_far * np.stack(average, axis=-1)
        change = np.abs(following - points).max(axis=(0, 2))
        points = following
        settled = change <= 1e-15 * (np.abs(start).max(axis=1) + arc)
        # a line that seems to turn back has met a point with grad F = 0
        lost = ~(
            np.sum(directions * heading, axis=-1).min(axis=0) > (0.5 if line.power > 1 else -2)
        )
        if np.all(settled | lost):
            break
    ahead = np.sum(gradient.reshape(points.shape) * directions, axis=-1) * uphill
    rate = speed if line.power == 2 else ahead
    return points, value.reshape(points.shape[:2]), speed, rate, directions, settled & ~lost


def panel(
    line: Reparametrization, start: Array, heading: Array, arc: Array, uphill: float
) -> LinePanels:
    """The panels of length `arc` from the rows of `start` along `heading`."""
    with np.errstate(all="ignore"):  # a panel may leave the domain of F; it is refused then
        points, value, speed, rate, directions, settled = follow(line, start, heading, arc, uphill)
        dual_rate, height_rate = AVERAGE @ (1 / speed), AVERAGE @ rate
        split = (
            AVERAGE
            @ (NODES[:, None] * dual_rate * rate)
            / (NODES[:, None] * dual_rate * height_rate)
        )
        split[0] = 0.5
        quantities = np.stack([dual_rate, height_rate, split, speed, rate])
        finite = settled & np.isfinite(value).all(axis=0) & np.isfinite(quantities).all(axis=(0, 1))
        rough = np.where(finite, roughness(speed, rate, directions), np.inf)
        root = rate[-1] if line.power == 2 else np.sqrt(speed[-1]) * np.sqrt(rate[-1])
        table = np.matmul(TO_COEFFICIENTS, quantities).transpose(2, 0, 1)
        gain = arc * quantities[:2, -1]
    return LinePanels(
        table, gain, split[-1], points[-1], directions[-1], value[-1], rate[-1], root, rough, finite
    )


def roughness(speed: Array, rate: Array, directions: Array) -> Array:
    """Largest of the last Chebyshev coefficients, relative to the size of each quantity."""
    parts = np.concatenate(
        [
            (rate / rate.max(axis=0))[..., None],
            (speed.min(axis=0) / speed)[..., None],
            directions,
        ],
        axis=2,
    )
    return np.abs(np.tensordot(TO_COEFFICIENTS[-2:], parts, axes=1)).max(axis=(0, 2))


class Orbits:
    """The lines from the rows of `starts`, uphill (+1) or downhill (-1) in F.

    Heights count from the start, or with `absolute` they are +-F itself, which keeps small values
    of F exact where F tends to zero.
    """

    def __init__(
        self,
        line: Reparametrization,
        starts: Array,
        uphill: float,
        *,
        absolute: bool,
        most: int = PANELS,
    ) -> None:
        self.line, self.uphill, self.absolute, self.most = line, uphill, absolute, most
        value, gradient = line.evaluate(starts)
        count, size = len(starts), np.abs(starts).max(axis=1)
        velocity = line.velocity(gradient)
        self.point, speed = starts.copy(), length(velocity)
        self.heading = uphill * velocity / speed[:, None]
        rate = np.sum(gradient * velocity, axis=1) / speed
        self.next_arc = np.where(size > 0, size, 1.0)
        self.growth = np.full(count, 2.0)
        self.refused_with = np.full(count, np.inf)  # roughness of the last panel tried in vain
        self.tail = np.full(count, TAIL)  # the roughness that is accepted now
        self.fruitless = np.zeros(count, dtype=np.intp)
        self.ended = np.zeros(count, dtype=bool)
        self.beyond = np.zeros(count)  # the height past the end of a line that has ended
        self.used = np.zeros(count, dtype=np.intp)
        self.knots = np.zeros((2, 4, count))  # dual, height, cost, rate where panels begin
        self.knots[0, RATE] = rate
        self.table = np.zeros((1, count, 5, DEGREE + 1))
        self.arc, self.gain = np.zeros((2, 1, count))  # of each panel: length, time it takes
        if absolute:
            self.knots[0, HEIGHT] = uphill * value
        self.cover_all(np.arange(count), np.zeros(count))

    def end(self, which: int, lines: Index) -> Array:
        """Dual, height or cost at the far end of the tables."""
        return self.knots[self.used[lines], which, lines]

    def cover(self, lines: Index, dual: Array, height: Array) -> None:
        """Extends distinct `lines` until they reach `dual` or `height`, or they end."""
        for _ in Turns(100_000, "the extension of a gradient line"):
            short = (self.end(DUAL, lines) < dual) & (self.end(HEIGHT, lines) < height)
            short = (short | (self.used[lines] == 0)) & ~self.ended[lines]
            if not short.any():
                return
            self.extend(lines[short])

    def cover_all(self, lines: Index, dual: Array, height: Array | None = None) -> None:
        """`cover` for lines that may repeat: each is followed to the farthest of its goals."""
        distinct, group = np.unique(lines, return_inverse=True)
        goals = np.full((2, len(distinct)), -np.inf)
        np.maximum.at(goals[0], group, dual)
        np.maximum.at(goals[1], group, np.inf if height is None else height)
        self.cover(distinct, *goals)

    def extend(self, lines: Index) -> None:
        """Tries one more panel on each of the distinct `lines`."""
        self.reserve()
        arc, point = self.next_arc[lines], self.point[lines]
        new = panel(self.line, point, self.heading[lines], arc, self.uphill)
        # across a kink of F no polynomial fits, but a short enough panel does not matter
        risen = self.end(HEIGHT, lines) - self.knots[0, HEIGHT, lines]
        slight = (new.gain <= 1e-15 * np.stack([self.end(DUAL, lines), risen])).all(axis=0)
        least = arc <= 4 * np.finfo(float).eps * np.abs(point).max(axis=1) + 1e-300
        # rounding inside the map leaves a roughness that shorter panels do not cure: accept it
        unimproved = new.roughness > 0.1 * self.refused_with[lines]
        noisy = unimproved & (new.roughness < NOISE)
        self.tail[lines[noisy]] = 5 * new.roughness[noisy]
        good = (new.roughness < self.tail[lines]) | (new.finite & slight)
        self.fruitless[lines] += ~good & (least | (unimproved & (new.roughness < 100 * NOISE)))
        lost = self.fruitless[lines] > PATIENCE
        taken = good | (new.finite & least & ~lost)
        if taken.any():
            self.store(lines[taken], new, taken)
        refused = lines[~taken]
        if refused.size:
            self.finish(refused[(least | lost)[~taken]])
            self.refused_with[refused] = new.roughness[~taken]
            self.next_arc[refused] *= 0.5
            self.growth[refused] = np.maximum(0.5, 0.6 * self.growth[refused])

    def reserve(self) -> None:
        """Doubles the tables when the longest line has filled them."""
        if self.used.max() >= len(self.table):
            self.table = np.concatenate([self.table, np.zeros_like(self.table)])
            self.arc = np.concatenate([self.arc, np.zeros_like(self.arc)])
            self.gain = np.concatenate([self.gain, np.zeros_like(self.gain)])
            self.knots = np.concatenate([self.knots, np.zeros_like(self.knots[1:])])

    def store(self, lines: Index, new: LinePanels, taken: NDArray[np.bool_]) -> None:
        """Appends the accepted panels and notes which lines end with them."""
        at = self.used[lines]
        self.table[at, lines], self.arc[at, lines] = new.table[taken], self.next_arc[lines]
        dual, height = new.gain[:, taken]
        self.gain[at, lines] = dual
        before = self.knots[at, :, lines].T
        cost = height * (before[DUAL] + new.split[taken] * dual)
        after = before + np.stack([dual, height, cost, np.zeros(len(at))])
        after[RATE] = rate = new.rate[taken]
        if self.absolute:
            after[HEIGHT] = self.uphill * new.value[taken]
        self.knots[at + 1, :, lines] = after.T
        self.point[lines], self.heading[lines] = new.end[taken], new.heading[taken]
        self.used[lines] = at + 1
        self.refused_with[lines] = np.inf
        self.tail[lines] = np.maximum(TAIL, np.minimum(self.tail[lines], 20 * new.roughness[taken]))
        self.next_arc[lines] *= self.growth[lines]
        self.growth[lines] = np.minimum(2.0, 1.5 * self.growth[lines])
        out = (np.abs(after[:RATE]).max(axis=0) > HUGE) | (self.used[lines] >= self.most)
        root = new.root[taken]
        out |= (root > LARGE) | (root < SMALL)
        out |= (self.line.power == 1) & (rate < RESTING * self.knots[0, RATE, lines])
        self.finish(lines[out])

    def finish(self, lines: Index) -> None:
        """Ends the lines: past its end b is infinite, or at rest, or the map is not defined."""
        self.ended[lines] = True
        for line in lines:
            if self.used[line] == 0:
                raise ValueError(
                    f"{WHO}: the map is not smooth at its start {self.point[line]}, so no gradient"
                    " line leaves it; start elsewhere"
                )
            dual, height = self.limits(line)
            self.beyond[line] = height if np.isinf(height) or np.isinf(dual) else np.nan

    def limits(self, line: int) -> tuple[float, float]:
        """The limits of dual and height along a line that has ended; infinite if they grow."""
        dual, height, _, rate = self.knots[: self.used[line] + 1, :, line].T
        dual_end, height_end = float(dual[-1]), float(height[-1])
        if abs(height_end) <= 1e-25 * abs(height[0]):
            height_end = 0.0

        def settled(values: Array, since: np.intp) -> bool:
            return bool(values[-1] - values[since] < 1e-6 * (values[-1] - values[0]))

        if rate[-1] < 1e-4 * rate.max():  # coming to rest, unless b grows like log s
            at_rest = settled(height, np.searchsorted(dual, dual_end / 2) - 1)
            in_time = self.line.power < 2 and settled(dual, np.argmax(rate < 1e-8 * rate.max()))
            return np.inf, height_end if at_rest or in_time else np.inf
        if rate[-1] > 1e4 * rate.min():  # running away, in finite time or not, or into a wall
            if settled(height, np.flatnonzero(rate <= rate[-1] / 100)[-1]):
                return dual_end, height_end
            boxed = settled(dual, np.searchsorted(height, (height[0] + height[-1]) / 2) - 1)
            return dual_end if boxed else np.inf, np.inf
        return (np.inf, np.inf) if height_end > HUGE**0.4 else (dual_end, height_end)
