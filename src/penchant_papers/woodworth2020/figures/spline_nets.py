"""What a univariate ReLU net has learned, and how far it is from linear spline and kernel."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from penchant import Outcome, Regression, train
from penchant.lab import Array, Kind, Record, door_as, one_of
from penchant.measures import mean_kernel
from penchant.methods import TangentFlow
from penchant.models import univariate_relu
from penchant.problems import plateau, zigzag
from penchant.record import At
from penchant.solvers import cubic_spline, least_bend, least_weights, linear_spline
from penchant.stop import Interpolated
from penchant_papers.woodworth2020.figures.hinges import (
    Hinges,
    Layers,
    kernel_move,
    layers,
    net_hinges,
    rms_distance,
    sup_distance,
    tangent_hinges,
)

PROBLEMS = {"zigzag": zigzag, "plateau": plateau}
# how much the inner layer weighs in the tangent kernel, over the outer one, at equal arguments
OUTER = 100.0  # a scaling at which the outer layer is all of the kernel
SHARES = {"standard": None, "between": 0.03, "balanced": 1.0}


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Learned(Record):
    """A net after training on points of a line, with its start and the kernel's displacement.

    Distances are taken between the first and the last data point. `move` is the displacement of
    the interpolant with the tangent kernel of the start.
    """

    problem: Regression
    begin: Layers
    move: Layers
    end: Layers
    outcome: Outcome

    @cached_property
    def function(self) -> Hinges:
        """What the net has learned."""
        return net_hinges(self.end)

    @cached_property
    def interpolant(self) -> Hinges:
        """What the tangent kernel of the start would learn; it jumps at the knots of the start."""
        return tangent_hinges(self.begin, self.move)

    @property
    def norm(self) -> float:
        """sum_j |(w_j, b_j)| |v_j|: half the squared norm of the balanced net, biases counted."""
        return float(np.hypot(self.end.w, self.end.b) @ np.abs(self.end.v))

    @property
    def bend(self) -> float:
        """The second-order total variation of the net, the integral of |f''| over the line."""
        return float(np.abs(self.end.w) @ np.abs(self.end.v))

    @property
    def to_linear(self) -> float:
        """The largest distance to the linear spline of the data."""
        breaks = self._breaks(self.function)
        return sup_distance(self.function, linear_spline(self.problem), breaks)

    @property
    def to_linear_rms(self) -> float:
        """The root mean square distance to the linear spline of the data."""
        breaks = self._breaks(self.function)
        return rms_distance(self.function, linear_spline(self.problem), breaks)

    @property
    def to_kernel(self) -> float:
        """The root mean square distance to the interpolant with the kernel of the start."""
        return self.from_interpolant(self)

    def from_interpolant(self, other: Learned) -> float:
        """The root mean square distance to the interpolant of another start."""
        return self._apart(self.function, other.interpolant)

    def between_interpolants(self, other: Learned) -> float:
        """The root mean square distance of the two kernel interpolants."""
        return self._apart(self.interpolant, other.interpolant)

    @property
    def kink_distance(self) -> float:
        """What `to_kernel` tends to as alpha grows, at any finite width.

        A unit and its copy shift their preactivations by +s and -s, so that a ramp of length
        2 s / |w| stands where the linearised net jumps by 2 v s. Its square integrates to
        (2/3) v^2 s^3 / |w|, which falls as alpha^-2.
        """
        low, high = self._range
        w, v, b, _ = self.begin
        knots = -b / w
        inside = (knots > low) & (knots < high)
        shift = np.abs(self.move.w * knots + self.move.b)
        # every ramp belongs to two units, one and its copy
        squares = (v**2 * shift**3 / np.abs(w))[inside].sum() / 3
        return float(np.sqrt(squares / (high - low)))

    @property
    def _range(self) -> tuple[float, float]:
        x = self.problem.X[:, 0]
        return float(x.min()), float(x.max())

    def _breaks(self, *functions: Hinges) -> Array:
        """The data points and the knots between them."""
        knots = [f.breaks(*self._range) for f in functions]
        return np.unique(np.concatenate([self.problem.X[:, 0], *knots]))

    def _apart(self, f: Hinges, g: Hinges) -> float:
        return rms_distance(f, g, self._breaks(f, g))


@door_as("Figure 7")
def scaling_of(layers: str, width: int) -> float:
    """The relative scaling c of the layers: w1 and b1 are multiplied by it, w2 is divided.

    At c the tangent kernel has the inner layer's part over the outer one's 2 / (width c^4). W's
    standard start has c = 1; at c = (2 / width)^(1/4) both weigh the same.
    """
    share = SHARES[one_of("layers", layers, SHARES)]
    return 1.0 if share is None else float((2 / width / share) ** 0.25)


def learn(
    problem: Regression,
    width: int,
    alpha: float,
    scaling: float = 1.0,
    seed: int = 0,
    rtol: float = 0.03,
    loss: float = 1e-12,
) -> Learned:
    """The net of W appendix B.1 at the end of gradient flow on univariate data."""
    model = univariate_relu(width, alpha=alpha, scaling=scaling, seed=seed)
    flow, stop = TangentFlow(rtol=rtol), Interpolated(loss)
    end = train(model, problem, flow, stop=stop, record=At(times=[]), throw=True)
    start = started(problem, width, alpha, scaling, seed)
    return dataclasses.replace(start, end=layers(end.parameters), outcome=end.outcome)


def started(
    problem: Regression, width: int, alpha: float, scaling: float = 1.0, seed: int = 0
) -> Learned:
    """The same net before training, with the displacement that its kernel predicts."""
    model = univariate_relu(width, alpha=alpha, scaling=scaling, seed=seed)
    begin = layers(model.start(problem.dimension))
    move = kernel_move(begin, problem.X[:, 0], problem.y)
    return Learned(problem, begin, move, begin, Outcome(Kind.SOLVED, "not trained"))


def norms(problem: Regression) -> dict[str, float]:
    """The least norm of any interpolating net, and that of the linear spline."""
    x = problem.X[:, 0]
    every = np.union1d(np.linspace(-2, 2, 801), x)
    return {"least_norm": least_weights(problem, every), "spline_norm": least_weights(problem, x)}


def grid_of(problem: Regression, points: int = 801) -> Array:
    return np.linspace(problem.X.min(), problem.X.max(), points)


@door_as("Figure 7")
def cell(
    alpha: float, layers: str, seed: int, *, problem: str, width: int, rtol: float
) -> dict[str, Any]:
    """What one start learns on the points "zigzag" or "plateau", and how far from what."""
    data = PROBLEMS[one_of("problem", problem, PROBLEMS)]()
    run = trained(data, width, alpha, layers, seed, rtol)
    points = grid_of(data, 401)
    return {
        "c": scaling_of(layers, width),
        "to_linear": run.to_linear,
        "to_linear_rms": run.to_linear_rms,
        "to_kernel": run.to_kernel,
        "to_cubic": sup_distance(run.function, cubic_spline(data), grid_of(data)),
        "norm": run.norm,
        "bend": run.bend / least_bend(data),
        **norms(data),
        "input": points,
        "learned": run.function(points),
        "interpolant": run.interpolant(points),
    }


def trained(
    data: Regression, width: int, alpha: float, layers: str, seed: int, rtol: float
) -> Learned:
    return learn(data, width, alpha, scaling_of(layers, width), seed, rtol)


def kernel_cell(alpha: float, seed: int, *, width: int, rtol: float, wide: int) -> dict[str, Any]:
    """Nets of all three scalings from one large start, and the interpolants of their kernels.

    `crossed[i, j]` is the distance (RMS) of net i to interpolant j, `rescaled[i]` that of
    interpolant i to the one from a start four times smaller. Interpolants with the kernel of the
    width `wide` averaged over starts: `mean_to_` are their largest distances, `between[i, j]` is
    the distance (RMS) of two of them.
    """
    data = zigzag()
    runs = [trained(data, width, alpha, layers, seed, rtol) for layers in SHARES]
    smaller = [started(data, width, alpha / 4, scaling_of(n, width), seed) for n in SHARES]
    means = [mean_interpolant(data, wide, alpha, scaling_of(n, wide)) for n in SHARES]
    points, own = grid_of(data), [scaling_of(n, wide) for n in SHARES]
    return {
        "to_own": [run.to_kernel for run in runs],
        "kink_distance": [run.kink_distance for run in runs],
        "crossed": [[run.from_interpolant(other) for other in runs] for run in runs],
        "between": [
            [float(np.sqrt(np.mean((mean - other) ** 2))) for other in means] for mean in means
        ],
        "rescaled": [r.between_interpolants(s) for r, s in zip(runs, smaller, strict=True)],
        "to_any_cubic": [to_any_cubic(data, mean) for mean in means],
        "kinked": [kinked(data, wide, alpha, scaling_of(n, wide)) for n in SHARES],
        "curved": [curved(data, wide, alpha, c, 2.0) for c in (OUTER, *own)],
        "curved_plain": curved(data, wide, alpha, OUTER, 0.0),
        "mean_to_linear": [np.abs(mean - linear_spline(data)(points)).max() for mean in means],
        "mean_to_cubic": [np.abs(mean - cubic_spline(data)(points)).max() for mean in means],
        "c_wide": [scaling_of(layers, wide) for layers in SHARES],
    }


def mean_interpolant(problem: Regression, width: int, alpha: float, scaling: float) -> Array:
    """On the grid: the interpolant with the tangent kernel averaged over all starts."""
    return _mean_function(problem, width, alpha, scaling)(grid_of(problem))


def _mean_function(
    problem: Regression, width: int, alpha: float, scaling: float
) -> Callable[[Array], Array]:
    x, given = problem.X[:, 0], {"alpha": alpha, "scaling": scaling}
    dual = np.linalg.solve(mean_kernel(x, x, width, **given), problem.y)
    return lambda points: np.asarray(mean_kernel(points, x, width, **given) @ dual)


def to_any_cubic(problem: Regression, values: Array) -> float:
    """The largest distance of values on the grid to a cubic spline with knots at the data.

    Of those that interpolate, with any curvatures at the two ends: the nearest by least squares.
    """
    from scipy.interpolate import CubicSpline

    order, points = np.argsort(problem.X[:, 0]), grid_of(problem)

    def spline(*ends: float) -> Array:
        conditions = tuple((2, end) for end in ends)
        x, y = problem.X[order, 0], problem.y[order]
        return np.asarray(CubicSpline(x, y, bc_type=conditions)(points))

    plain = spline(0.0, 0.0)
    free = np.stack([spline(1.0, 0.0) - plain, spline(0.0, 1.0) - plain], axis=1)
    weights = np.linalg.lstsq(free, values - plain, rcond=None)[0]
    return float(np.abs(values - plain - free @ weights).max())


def kinked(problem: Regression, width: int, alpha: float, scaling: float) -> float:
    """The jump of slope of the mean interpolant at a datum over that of the linear spline.

    The mean over the inner data; a cubic spline has none.
    """
    order = np.argsort(problem.X[:, 0])
    x, y, h = problem.X[order, 0], problem.y[order], 1e-5
    f = _mean_function(problem, width, alpha, scaling)
    jumps = (f(x[1:-1] + h) - 2 * f(x[1:-1]) + f(x[1:-1] - h)) / h
    return float(np.mean(jumps / np.diff(np.diff(y) / np.diff(x))))


def curved(problem: Regression, width: int, alpha: float, scaling: float, power: float) -> float:
    """How far f'' (1 + x^2)^power of the mean interpolant is from linear between the data.

    Relative to its size. Units of the start turn at x with a density like 1/(1 + x^2), and there w
    has the mean square 1/(1 + x^2): with power 2 nothing is left, whatever the scaling.
    """
    x, h = np.sort(problem.X[:, 0]), 1e-3
    f = _mean_function(problem, width, alpha, scaling)
    off, size = [], []
    for low, high in itertools.pairwise(x):
        t = np.linspace(low + 0.02, high - 0.02, 9)
        bend = (f(t + h) - 2 * f(t) + f(t - h)) / h**2 * (1 + t**2) ** power
        off.append(np.abs(bend - np.interp(t, t[[0, -1]], bend[[0, -1]])).max())
        size.append(np.abs(bend).max())
    return float(max(off) / max(size))
