"""Many random data sets on a line, all learned from small starts by one compiled descent."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant import Regression
from penchant.lab import (
    DRAWS,
    Array,
    Dataset,
    Record,
    Turns,
    door_as,
    double_precision,
    one_of,
    upper_share,
)
from penchant.models import univariate_relu
from penchant.problems import steep_end
from penchant.solvers import cubic_spline, least_bend, least_weights, linear_spline
from penchant_papers.woodworth2020.figures.hinges import Layers, layers, net_hinges
from penchant_papers.woodworth2020.figures.spline_nets import norms

Mask = NDArray[np.bool_]
Rows = NDArray[np.int_]

WIDTH, ALPHA = 50, 0.002
STEP = 0.4  # over the trace of the tangent kernel, which bounds its largest eigenvalue
LOSS = 1e-8
STAGES = (2_000, 8_000, 30_000)  # steps; after each the sets that are learned are left out
GROUP = 12  # sets that are learned at once: one compiled descent serves any number of them
ON_THE_WAY = (0.1, 0.01, LOSS)  # losses at which the three points are examined
STARTS = 12  # from which the three points are learned
MEASURES = ("fitted", "linear", "cubic", "least", "distance", "norm", "short", "bend")
NEAR = 0.03  # a net nearer than this to a function has learned it; targets are at most 1


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Survey(Record):
    """Nets of equal size after descent, one per data set, and the loss that each has left."""

    problems: list[Regression]
    nets: list[Layers]
    losses: Array

    @property
    def fitted(self) -> Mask:
        return np.asarray(self.losses <= LOSS)

    @property
    def norms(self) -> Array:
        """sum_j |(w_j, b_j)| |v_j| of each net."""
        return np.array([np.hypot(net.w, net.b) @ np.abs(net.v) for net in self.nets])

    @property
    def bends(self) -> Array:
        """The second-order total variation of each net over the least of its data."""
        pairs = zip(self.nets, self.problems, strict=True)
        return np.array([np.abs(n.v) @ np.abs(n.w) / least_bend(p) for n, p in pairs])

    @cached_property
    def linear(self) -> Mask:
        """Which nets have learned the linear spline."""
        return self.fitted & (self.distances(linear_spline) < NEAR)

    @cached_property
    def cubic(self) -> Mask:
        """Which nets have learned the natural cubic spline."""
        return self.fitted & (self.distances(cubic_spline) < NEAR)

    @cached_property
    def least(self) -> Mask:
        """Which nets have the least norm of an interpolating net, up to 2%."""
        least = [least_weights(p, np.union1d(np.linspace(-2, 2, 401), p.X)) for p in self.problems]
        return self.fitted & (self.norms < 1.02 * np.array(least))

    def distances(self, target: Callable[[Regression], Callable[[Array], Array]]) -> Array:
        """The largest distance of each net to a function of its data, between the data."""

        def one(problem: Regression, net: Layers) -> float:
            x = np.linspace(problem.X.min(), problem.X.max(), 2001)
            return float(np.abs(net_hinges(net)(x) - target(problem)(x)).max())

        return np.array([one(p, net) for p, net in zip(self.problems, self.nets, strict=True)])

    def short(self) -> Array:
        """By how much the units of each net that face away from 0 turn before the second point.

        A mean over those that turn between the first point and the last, weighted by their bends;
        positive on the side of 0, NaN where no unit does.
        """

        def one(problem: Regression, net: Layers) -> float:
            x, knots = problem.X[:, 0], -net.b / net.w
            away = (knots > x[0]) & (knots < x[-1]) & (net.w * x[1] > 0)
            weights = np.abs(net.v * net.w) * away
            if not away.any():
                return np.nan
            return float(np.sign(x[1]) * (x[1] - weights @ knots / weights.sum()))

        return np.array([one(p, net) for p, net in zip(self.problems, self.nets, strict=True)])


def draw(points: int, kind: Callable[[Array, Array], bool], count: int, seed: int) -> Array:
    """`count` random data sets of a kind, as (count, 2, points): places and targets.

    Places are uniform in [-1, 1] and at least 0.15 apart, targets Gaussian with the largest at 1.
    """
    rng = np.random.default_rng(seed)
    sets: list[tuple[Array, Array]] = []
    turns = Turns(1_000_000, "the draw of points")
    while len(sets) < count:
        turns.take()
        x, y = np.sort(rng.uniform(-1, 1, points)), rng.standard_normal(points)
        if np.diff(x).min() > 0.15 and kind(x, y):
            sets.append((x, y / np.abs(y).max()))
    return np.array(sets)


def slopes(x: Array, y: Array) -> Array:
    return np.diff(y) / np.diff(x)


def peak(x: Array, y: Array) -> bool:
    """Whether the slopes change sign at every inner point, so that bends alternate."""
    return bool((np.sign(slopes(x, y))[:-1] != np.sign(slopes(x, y))[1:]).all())


def one_way(x: Array, y: Array) -> bool:
    """Whether all bends have one sign."""
    return len(set(np.sign(np.diff(slopes(x, y))))) == 1


KINDS = {"peak": (3, peak), "one way": (4, one_way)}


def survey(
    data: Array,
    alpha: float = ALPHA,
    width: int = WIDTH,
    step: float = STEP,
    loss: float = LOSS,
    seed: int = 0,
) -> Survey:
    """The nets of W appendix B.1 on every data set, by descent from a small start to `loss`.

    Every data set has a start of its own, drawn by the seeds from `seed` on.
    """
    models = [univariate_relu(width, alpha=alpha, seed=seed + k) for k in range(len(data))]
    parameters = np.array([model.start(1) for model in models])
    losses, left = np.full(len(data), np.inf), np.arange(len(data))
    with double_precision():
        for steps in STAGES:
            for rows in _groups(left):
                given = parameters[rows], data[rows, 0], data[rows, 1], step, loss, steps
                parameters[rows], losses[rows] = _descent()(*given)
            left = left[losses[left] > loss]
    problems = [Regression(x[:, None], y) for x, y in data]
    return Survey(problems, [layers(w) for w in parameters], losses)


def _groups(rows: Rows) -> list[Rows]:
    """The rows in groups of equal size; the last one is filled by repeating its own."""
    return [np.resize(rows[k : k + GROUP], GROUP) for k in range(0, len(rows), GROUP)]


@door_as("Figure 7")
def cell(kind: str, seed: int, *, counts: Mapping[str, int]) -> dict[str, Any]:
    """Narrow nets from small starts on random data of a kind: what they learn, 1 or 0 each.

    A "peak" are three points whose slopes change sign, "one way" four points that bend one way;
    "steep" are three points alone, from several starts and at several losses.
    """
    one_of("kind", kind, (*KINDS, "steep"))
    if kind == "steep":
        data = np.array([[steep_end().X[:, 0], steep_end().y]] * STARTS)
        surveys = [survey(data, loss=loss, seed=DRAWS * seed) for loss in ON_THE_WAY]
        own = norms(steep_end())
    else:
        points, rule = KINDS[kind]
        surveys = [survey(draw(points, rule, counts[kind], seed), seed=DRAWS * seed)]
        own = dict.fromkeys(("least_norm", "spline_norm"), np.nan)

    measured = [
        (
            s.fitted,
            s.linear,
            s.cubic,
            s.least,
            s.distances(linear_spline),
            s.norms,
            s.short(),
            s.bends,
        )
        for s in surveys
    ]
    joined = (np.concatenate(parts).astype(float) for parts in zip(*measured, strict=True))
    return {**dict(zip(MEASURES, joined, strict=True)), **own}


def shares(random: Dataset) -> dict[str, float]:
    """Confidence limits (0.999) for the shares of random data, and the share that was fitted.

    What was not fitted counts against the claim on either side.
    """

    def hits(kind: str, name: str) -> Mask:
        values = random[name].sel(kind=kind).values
        return np.asarray(values[np.isfinite(random.distance.sel(kind=kind).values)] > 0.5)

    def at_most(mask: Mask) -> float:
        return upper_share(int(mask.sum()), len(mask))

    peaks, ways = hits("peak", "linear"), hits("one way", "linear")
    fitted = np.concatenate([hits("peak", "fitted"), hits("one way", "fitted")])
    return {
        "mostly": 1 - at_most(~peaks),
        "rarely": at_most(ways | ~hits("one way", "fitted")),
        "least": at_most(hits("peak", "least")),
        "cubic": at_most(hits("peak", "cubic")),
        "fitted": float(fitted.mean()),
        "peaks": len(peaks),
        "ways": len(ways),
    }


def steep_rows(steep: Dataset, name: str) -> Array:
    """A measure of the three points: a row for every loss, a column for every start."""
    values = np.ravel(steep[name].values)
    return values[: len(ON_THE_WAY) * STARTS].reshape(len(ON_THE_WAY), STARTS)


def findings(random: Dataset) -> list[str]:
    """How often the linear spline and the least norm are reached, and what stops the others."""
    peaks, ways, steep = (random.sel(kind=kind) for kind in (*KINDS, "steep"))
    there = np.isfinite(peaks.distance.values)
    away = there & (peaks.fitted.values > 0.5) & (peaks.linear.values < 0.5)
    short, losses = peaks.short.values, ", ".join(f"{v:g}" for v in ON_THE_WAY[:-1])
    gaps = ", ".join(f"{v:.2f}" for v in np.median(steep_rows(steep, "short"), axis=1))
    return [
        f"random data: the net learns the linear spline on {float(peaks.linear.sum()):.0f} of "
        f"{there.sum()} sets of three points with a peak, though only "
        f"{float(peaks.least.sum()):.0f} of these nets have the least norm up to 2%; and on "
        f"{float(ways.linear.sum()):.0f} of {int(ways.distance.notnull().sum())} sets of four "
        "points that bend one way",
        "where a set with a peak does not end at the linear spline, the units that face away "
        "from 0 have their kinks beside the middle point, on the side of 0, in "
        f"{(short[away] > 0).sum()} of {away.sum()} sets, by {np.median(short[away]):.2g} at the "
        "median",
        f"on the points (-1, 0), (0.7, 1), (1, 0) these kinks move from 0 and are {gaps} before "
        f"0.7 (medians over the starts) at losses {losses} and {ON_THE_WAY[-1]:g}: the loss"
        " vanishes before they arrive. We found no rule in the data that decides which of the two"
        " comes first",
    ]


@functools.cache
def _descent() -> Callable[..., Any]:
    """Compiled (starts, places, targets, step, loss, steps) -> (parameters, losses), row by row.

    The step follows the trace of each net's tangent kernel, so that descent stays near the flow;
    where a kink slides along a data point it passes to and fro over it, as the flow would.
    """
    import jax
    import jax.numpy as jnp

    def one(parameters: Any, x: Any, y: Any, step: float, goal: float) -> Any:
        first, second = jnp.split(parameters, 2)
        units = jnp.stack([first[:-1].reshape(3, -1), second[:-1].reshape(3, -1)])
        sign = jnp.array([1.0, -1.0])
        w, v, b = units[:, 0], units[:, 1], units[:, 2]
        z = w[..., None] * x + b[..., None]
        on = (z > 0).astype(z.dtype)
        active = on * z
        outputs = jnp.einsum("c,cj,cjn->n", sign, v, active) + first[-1] - second[-1]
        r = outputs - y
        gated = on * v[..., None]
        trace = jnp.sum(active**2) + jnp.sum(gated**2 * (1 + x**2)) + 2 * len(x)
        inner = sign[:, None] * jnp.stack([gated @ (r * x), active @ r, gated @ r])
        bias = sign * jnp.sum(r)
        slope = jnp.concatenate([inner[:, 0].ravel(), bias[:1], inner[:, 1].ravel(), bias[1:]])
        loss = jnp.sum(r**2)
        return parameters - jnp.where(loss > goal, 2 * step / trace, 0.0) * slope, loss

    every = jax.vmap(one, (0, 0, 0, None, None))

    def descend(starts: Any, x: Any, y: Any, step: float, goal: float, most: int) -> Any:
        def go(state: Any) -> Any:
            parameters, _, taken = state
            return *every(parameters, x, y, step, goal), taken + 1

        def unfinished(state: Any) -> Any:
            return (state[2] < most) & (state[1].max() > goal)

        state = (starts, jnp.full(len(x), jnp.inf), 0)
        return jax.lax.while_loop(unfinished, go, state)[:2]

    return jax.jit(descend)
