"""What theorems on grokking assume about a model, measured.

They are those of Lyu et al. 2023: homogeneity, smoothness and zero output.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer
from penchant.door import CALLER, Invalid, door, door_as
from penchant.measures.kernels.features import unit_twin
from penchant.models.model import Model
from penchant.records import Record

CELLS = 128  # cells of a line
WIDE = 8  # cells of the wide differences; the narrow ones take neighbours
NARROW = 16  # a suspect place is examined again on a grid this many times finer
LOOKS = 2  # how many times
SUSPECTS = 6  # how many places
NOISE = 1e-13  # relative to the terms of f; smaller differences are rounding
CLEAR = 2.9  # an order that needs no finer grid
SMOOTH = 0.6  # a jump of f'' reads 0.8 to 1, depending on where it falls in its cell


class Line(NamedTuple):
    """f(x_n) at a position on a line of parameters, and the size of the terms it is summed from."""

    values: Callable[[float], Array]
    terms: Array


def roughness(lines: list[Line]) -> float:
    """3 minus the order in the step at which third differences of f vanish, at the worst place.

    0 means smooth, 1 a jump of the second derivative (squared ReLU), 2 one of the first (ReLU).
    """
    suspects = []
    for line in lines:
        if not all(np.isfinite(line.values(float(s))).all() for s in np.linspace(0.0, 1.0, 9)):
            continue  # f is not defined along this line
        orders, places = orders_along(line, 0.0, 1.0)
        suspects += [(order, line, n, places[n]) for n, order in enumerate(orders)]
    if not suspects:
        raise Invalid("the model is not finite along any line of random parameters")
    suspects.sort(key=lambda suspect: suspect[0])
    seen = [closely(line, n, place, order) for order, line, n, place in suspects[:SUSPECTS]]
    return max(0.0, 3.0 - min(seen))


def closely(line: Line, sample: int, place: float, order: float) -> float:
    """The order for one sample near one place, at ever finer steps while it looks rough."""
    half = 0.5
    for _ in range(LOOKS):
        if order >= CLEAR:
            return order
        half /= NARROW
        orders, places = orders_along(line, max(place - half, 0.0), min(place + half, 1.0))
        order, place = orders[sample], places[sample]
    return order


def orders_along(line: Line, left: float, right: float) -> tuple[list[float], list[float]]:
    """For each sample the order between the two steps, and where its differences are largest."""
    grid = np.linspace(left, right, CELLS + 1)
    values = np.array([line.values(float(s)) for s in grid])
    fine, coarse = np.abs(third(values, 1)), np.abs(third(values, WIDE))
    floor = NOISE * np.maximum(np.abs(values).max(axis=0), line.terms)
    sizes = zip(fine.max(axis=0), coarse.max(axis=0), floor, strict=True)
    orders = [order_of(*size) for size in sizes]
    middles = grid[np.argmax(fine, axis=0)] + 1.5 * (grid[1] - grid[0])
    return orders, [float(middle) for middle in middles]


def third(values: Array, step: int) -> Array:
    """Third differences along the first axis, `step` rows apart."""
    for _ in range(3):
        values = values[step:] - values[:-step]
    return values


def order_of(fine: float, coarse: float, floor: float) -> float:
    """log_8(coarse / fine), or 3 where only rounding is left."""
    return 3.0 if fine <= floor else math.log(coarse / fine, WIDE) if coarse > 0 else 0.0


WHO = "assumptions"
HOMOGENEOUS = 1e-9  # defects up to this size are rounding
ZERO = 1e-10  # outputs up to this size, relative to |grad f| |theta|, count as zero
AGREES = 1e-6  # degrees closer than this are equal
SAMPLES = 16  # the most rows of X that are used
POINTS = 4  # random parameters of each kind
FACTORS = np.array([0.13, 0.37, 0.71, 1.6, 3.1, 7.3])  # deliberately not powers of one number


@dataclasses.dataclass(frozen=True, repr=False)
class Assumptions(Record):
    """The three assumptions of Lyu et al. 2023 for a model on a data set, each with its number.

    Attributes
    ----------
    homogeneous
        Whether f(c theta) = c^L f(theta).
    degree
        The L that fits best.
    defect
        The largest relative deviation from it.
    declared
        The degree that the model itself states, or None.
    smooth
        Whether f is smooth in theta.
    roughness
        0 where f is smooth in theta, 1 where its second derivative jumps and 2 where its
        gradient does.
    zero_output
        Whether the output at the start is zero.
    output
        The largest |f(theta_0, x)| relative to |grad f| |theta_0|.

    References
    ----------
    .. [1] Lyu et al. (2023), Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce
       Grokking.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> facts = penchant.measures.assumptions(penchant.DiagonalNet(alpha=1.0), np.ones((2, 2)))
    >>> facts.declared, facts.smooth, facts.output
    (2, True, 0.0)
    """

    homogeneous: bool
    degree: float
    defect: float
    declared: float | None
    smooth: bool
    roughness: float
    zero_output: bool
    output: float

    @property
    def agrees(self) -> bool:
        """Whether the declared degree, where there is one, is the measured one."""
        return self.declared is None or (
            self.homogeneous and abs(self.degree - self.declared) <= AGREES
        )


@door
def assumptions(model: Model, X: ArrayLike, seed: int = 0) -> Assumptions:
    """Homogeneity, smoothness and zero output at the start of `model`, measured on rows of `X`.

    Parameters are drawn at the size of the start. A net of depth D whose start alpha w0 is
    beyond float64 is measured at alpha = 1, which changes none of the answers.

    Parameters
    ----------
    model
        The model.
    X
        The samples, one row each.
    seed
        The seed of all random numbers.

    Returns
    -------
    Assumptions
        The three answers, each with its number.

    References
    ----------
    .. [1] Lyu et al. (2023), Dichotomy of Early and Late Phase Implicit Biases Can Provably Induce
       Grokking.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> net = penchant.DiagonalNet(depth=3, alpha=1.0)
    >>> facts = penchant.measures.assumptions(net, np.ones((2, 2)))
    >>> facts.homogeneous, round(facts.degree, 6), facts.zero_output
    (True, 3.0, True)
    """
    if not isinstance(model, Model):
        raise Invalid(f"expected a Model, got {type(model).__name__}")
    X = finite_array("X", X, ndim=2)
    rng = np.random.default_rng(integer("seed", seed, least=0))
    chosen = rng.permutation(len(X))[:SAMPLES]
    return _measured(*_begin(model, X.shape[1]), X[np.sort(chosen)], rng)


def require_theorem(model: Model, X: ArrayLike, seed: int = 0, smooth: bool = True) -> Assumptions:
    """The measured assumptions; raises a ValueError where one fails.

    Lyu et al. 2023 expect their proofs to extend to models that are not smooth; `smooth=False`
    lets them pass.
    """
    facts = assumptions(model, X, seed)
    if not facts.homogeneous:
        raise Invalid(
            f"{CALLER} needs f(c theta) = c^L f(theta); this model misses its best fit, degree "
            f"{facts.degree:.3g}, by a relative {facts.defect:.2g}; take a homogeneous one, such "
            "as a net without biases, and not Unbiased(...) but Difference(...)"
        )
    if not facts.agrees:
        raise Invalid(
            f"{CALLER} needs the degree of homogeneity: this model declares {facts.declared:g} but "
            f"has {facts.degree:.6g}; declare the measured one"
        )
    if not facts.zero_output:
        raise Invalid(
            f"{CALLER} needs f(theta_0, x) = 0 at the start; this model's output there is "
            f"{facts.output:.2g} of |grad f| |theta_0|; wrap it in Difference(...)"
        )
    if smooth and not facts.smooth:
        raise Invalid(
            f"{CALLER} needs f twice continuously differentiable in theta; this model has a jump "
            f"in its derivatives (roughness {facts.roughness:.2g}); take a smooth activation, or "
            "smooth=False to go beyond what is proven"
        )
    return facts


def _begin(model: Model, dimension: int) -> tuple[Model, Array]:
    """The model with its start, or from alpha = 1 where the start is beyond float64."""
    try:
        return model, model.start(dimension)
    except ValueError:
        if (twin := unit_twin(model)) is None:
            raise
        return twin[0], twin[0].start(dimension)


@door_as(WHO)
def _measured(model: Model, start: Array, X: Array, rng: np.random.Generator) -> Assumptions:
    near, far = _points(start, rng)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        degree, defect = _homogeneity(model, [*near, *far], X)
        rough = roughness(_lines(model, start, near, far, X))
        output = _output(model, start, X)
    homogeneous = defect <= HOMOGENEOUS, degree, defect, model.homogeneity
    return Assumptions(*homogeneous, rough <= SMOOTH, rough, output <= ZERO, output)


def _points(start: Array, rng: np.random.Generator) -> tuple[list[Array], list[Array]]:
    """Random parameters in the domain of the start, with its signs, and Gaussian ones."""
    size = float(np.sqrt(np.mean((start / (np.abs(start).max() or 1.0)) ** 2)))
    size *= float(np.abs(start).max()) or 1.0
    size = size or 1.0
    normal = rng.standard_normal((2 * POINTS, len(start)))
    moved = np.where(start == 0, 0.1 * size, np.abs(start)) * np.exp(0.5 * normal[:POINTS])
    near = [np.where(start < 0, -1.0, 1.0) * point for point in moved]
    return near, list(size * normal[POINTS:])


def _homogeneity(model: Model, points: list[Array], X: Array) -> tuple[float, float]:
    """(degree, defect) over the points where f is defined and not zero."""
    steps, grown, defects = np.log(FACTORS), [], []
    for point in points:
        before = model.predict(point, X)
        after = np.array([model.predict(c * point, X) for c in FACTORS])
        finite = np.isfinite(before).all() and np.isfinite(after).all()
        if finite and before.any() and after.any(axis=1).all():
            grown.append(np.log(_norm(after.T) / _norm(before)))
            defects.append(functools.partial(_defect, before, after, _terms(model, point, X)))
    if not grown:
        raise ValueError(
            f"{WHO}: the model is zero or not finite at every random point of the size of its "
            "start, so that it has no degree; take another start"
        )
    degree = float(np.mean(grown @ steps) / np.sum(steps**2))
    return degree, max(defect(degree) for defect in defects)


def _norm(columns: Array) -> Array:
    """The Euclidean norm along the first axis, also where squares of entries underflow."""
    size = np.abs(columns).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    return size * np.sqrt(np.sum((columns / size) ** 2, axis=0))


def _defect(before: Array, after: Array, terms: Array, degree: float) -> float:
    """The largest |f(c w) / c^degree - f(w)|, relative to the terms that f(w) is made of."""
    apart = np.abs(after / FACTORS[:, None] ** degree - before).max(axis=0)
    return float(np.max(apart[terms > 0] / terms[terms > 0], initial=0.0))


def _lines(model: Model, start: Array, near: list[Array], far: list[Array], X: Array) -> list[Line]:
    """f along lines between random points, two of them in the domain of the start."""

    def along(first: Array, last: Array, s: float) -> Array:
        return model.predict((1 - s) * first + s * last, X)

    ends = [(start, near[0]), *itertools.pairwise(near[:2]), *itertools.pairwise(far)]
    terms = {id(point): _terms(model, point, X) for pair in ends for point in pair}
    return [
        Line(functools.partial(along, *pair), np.fmax(*(terms[id(point)] for point in pair)))
        for pair in ends
    ]


def _terms(model: Model, point: Array, X: Array) -> Array:
    """The size of the terms f is summed from, for every sample."""
    return np.abs(model.predict(point, X)) + np.abs(model.jacobian(point, X)) @ np.abs(point)


def _output(model: Model, start: Array, X: Array) -> float:
    """The largest |f(start, x)| relative to |grad f(start, x)| |start|."""
    outputs = np.abs(model.predict(start, X))
    if not outputs.any():
        return 0.0
    sizes = _norm(model.jacobian(start, X).T) * _norm(start)
    return float(np.max(np.where(outputs > 0, outputs / sizes, 0.0)))
