"""Many random data sets on a line, learned from small starts by one descent for all of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import Array
from tacit.claims.woodworth.spline_runs import cubic_spline, least_norm, linear_spline
from tacit.measures.binomial import upper_limit
from tacit.models.hinges import net_hinges
from tacit.models.univariate import Layers, layers, univariate_relu
from tacit.precision import double_precision
from tacit.problems.regression import Regression
from tacit.problems.univariate import steep_end
from tacit.records import Record
from tacit.studies.sizes import Size

Mask = NDArray[np.bool_]

WIDTH, ALPHA = 50, 0.002
STEP = 0.4  # over the trace of the tangent kernel, which bounds its largest eigenvalue
LOSS = 1e-8
STEPS = 40_000
ON_THE_WAY = (0.1, 0.01)
DRAWS = {"quick": (60, 30), "full": (300, 150)}  # of three points and of four
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
        least = [least_norm(p, np.union1d(np.linspace(-2, 2, 401), p.X)) for p in self.problems]
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
    found: list[tuple[Array, Array]] = []
    while len(found) < count:
        x, y = np.sort(rng.uniform(-1, 1, points)), rng.standard_normal(points)
        if np.diff(x).min() > 0.15 and kind(x, y):
            found.append((x, y / np.abs(y).max()))
    return np.array(found)


def slopes(x: Array, y: Array) -> Array:
    return np.diff(y) / np.diff(x)


def peak(x: Array, y: Array) -> bool:
    """Whether the slopes change sign at every inner point, so that bends alternate."""
    return bool((np.sign(slopes(x, y))[:-1] != np.sign(slopes(x, y))[1:]).all())


def one_way(x: Array, y: Array) -> bool:
    """Whether all bends have one sign."""
    return len(set(np.sign(np.diff(slopes(x, y))))) == 1


def survey(
    data: Array, alpha: float = ALPHA, width: int = WIDTH, step: float = STEP, loss: float = LOSS
) -> Survey:
    """The nets of W appendix B.1 on every data set, by descent from one small start to `loss`."""
    model = univariate_relu(width, alpha=alpha)
    starts = np.tile(np.asarray(model.start(1)), (len(data), 1))
    with double_precision():
        parameters, losses = _descent()(starts, data[:, 0], data[:, 1], step, loss)
    problems = [Regression(x[:, None], y) for x, y in data]
    return Survey(problems, [layers(w) for w in np.asarray(parameters)], np.asarray(losses))


class Surveys(NamedTuple):
    """Small starts on random data: three points with a peak, and four that bend one way."""

    peaks: Survey
    one_way: Survey
    steep: Survey  # the points of `steep_end` alone
    on_the_way: list[Survey]  # the same at the losses of ON_THE_WAY

    @property
    def fitted(self) -> float:
        """The share of random sets that were fitted."""
        return float(np.mean([*self.peaks.fitted, *self.one_way.fitted]))

    @property
    def mostly(self) -> float:
        """The share of peaks whose linear spline is learned, a lower limit of confidence 0.999."""
        return 1 - upper_limit(int((~self.peaks.linear).sum()), len(self.peaks.nets))

    @property
    def rarely(self) -> float:
        """The same of points that bend one way, an upper limit; what did not fit counts."""
        hits = self.one_way.linear | ~self.one_way.fitted
        return upper_limit(int(hits.sum()), len(hits))

    def findings(self) -> list[str]:
        """How often the linear spline and the least norm are reached, and what stops the others."""
        peaks, ways = self.peaks, self.one_way
        away, short = peaks.fitted & ~peaks.linear, peaks.short()
        gaps = [f"{found.short()[0]:.2f}" for found in (*self.on_the_way, self.steep)]
        return [
            f"random data: the linear spline is learned of {peaks.linear.sum()} of"
            f" {len(peaks.nets)} sets of three points with a peak, though only {peaks.least.sum()}"
            f" of these nets have the least norm up to 2%; and of {ways.linear.sum()} of"
            f" {len(ways.nets)} sets of four points that bend one way",
            "where a set with a peak is left, the units that face away from 0 turn beside the"
            f" middle point, on the side of 0, in {(short[away] > 0).sum()} of {away.sum()} sets,"
            f" by {np.median(short[away]):.2g} at the median",
            "on the points (-1, 0), (0.7, 1), (1, 0) these kinks come from 0 and are"
            f" {', '.join(gaps)} before 0.7 at losses {', '.join(f'{v:g}' for v in ON_THE_WAY)} and"
            f" {LOSS:g}: the loss vanishes before they arrive. No rule in the data was found that"
            " says which of the two comes first",
        ]


@functools.cache
def surveys(size: Size) -> Surveys:
    three, four = DRAWS[size]
    steep = np.array([[steep_end().X[:, 0], steep_end().y]])
    return Surveys(
        survey(draw(3, peak, three, seed=0)),
        survey(draw(4, one_way, four, seed=0)),
        survey(steep),
        [survey(steep, loss=loss) for loss in ON_THE_WAY],
    )


@functools.cache
def _descent() -> Callable[..., Any]:
    """Compiled (starts, places, targets, step, loss) -> (parameters, losses), a row per data set.

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

    def descend(starts: Any, x: Any, y: Any, step: float, goal: float) -> Any:
        def go(state: Any) -> Any:
            parameters, _, taken = state
            return *every(parameters, x, y, step, goal), taken + 1

        def unfinished(state: Any) -> Any:
            return (state[2] < STEPS) & (state[1].max() > goal)

        state = (starts, jnp.full(len(x), jnp.inf), 0)
        return jax.lax.while_loop(unfinished, go, state)[:2]

    return jax.jit(descend)
