"""The Chatterjee-Lojasiewicz constant of a loss on a ball, and what it implies for descent.

chi(g, x, r) = inf |grad g|^2 / g over the points of B(x, r) where g is not zero. If 4 g(x) < r^2
chi (Notsawo et al. 2025, definition 1), the path of the gradient flow from x is shorter than
2 sqrt(g(x)/chi) < r.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, entries, finite_array, integer, positive, regression_data
from penchant.door import Invalid, door
from penchant.lazy import jax, jnp
from penchant.measures.inequality.bounds import (
    DIMENSIONS,
    least_gradient_ratio,
    least_ratio,
    least_singular_value,
)
from penchant.precision import double_precision
from penchant.records import Record

WHO = "lojasiewicz"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Lojasiewicz(Record):
    """lower <= chi <= upper on the ball of `radius`, and the `loss` g at its centre.

    Attributes
    ----------
    lower
        A proved bound, and zero where nothing could be proved.
    upper
        The ratio |grad g|^2 / g at `point` of the ball, which is always a bound.
    loss
        g at the centre.
    radius
        The radius of the ball.
    point
        Where the ratio is `upper`.
    how
        What `lower` is proved from.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> bounds = penchant.measures.lojasiewicz_quadratic(np.eye(2), [1.0, 0.0], [0.0, 0.0], 2.0)
    >>> bounds.lower <= bounds.upper, bounds.loss
    (True, 0.5)
    """

    lower: float
    upper: float
    loss: float
    radius: float
    point: Array
    how: str

    @property
    def error(self) -> float:
        """How far `upper` can be above chi."""
        return self.upper - self.lower

    @property
    def holds(self) -> bool | None:
        """Whether 4 g(x) < r^2 chi; None where the two bounds leave it open."""
        if 4 * self.loss < self.radius**2 * self.lower:
            return True
        return False if 4 * self.loss >= self.radius**2 * self.upper else None

    @property
    def zero_within(self) -> float:
        """A zero of g is at most this far from the centre if `holds`; inf if nothing follows."""
        return 2 * math.sqrt(self.loss / self.lower) if self.holds else math.inf

    @property
    def rate(self) -> float:
        """The gradient flow from the centre has g(t) <= g(0) e^(-rate t); 0 if nothing follows."""
        return self.lower if self.holds else 0.0

    @property
    def sentence(self) -> str:
        """What the constant implies for training from the centre."""
        if self.holds:
            return (
                f"gradient flow stays within {self.zero_within:.4g} of the centre, ends at a zero "
                f"of the loss and has loss <= {self.loss:.4g} exp(-{self.rate:.4g} t)"
            )
        why = "4 g >= r^2 chi" if self.holds is False else "the bounds on chi leave it open"
        return f"nothing follows on the ball of radius {self.radius:g}: {why}"


@door
def lojasiewicz_quadratic(
    X: ArrayLike, y: ArrayLike, center: ArrayLike, radius: float
) -> Lojasiewicz:
    """chi of g = (1/2)|X a - y|^2 on the ball around `center`, exact to rounding.

    Where the ball holds an interpolator this is 2 sigma^2, sigma the least singular value > 0
    of X; where it holds a least squares point of positive loss it is 0; elsewhere it is found
    by a search over the sphere, and `lower` is certified by the dual of that problem.

    Parameters
    ----------
    X
        The samples, one row each.
    y
        One label per sample.
    center
        The centre of the ball.
    radius
        Its radius.

    Returns
    -------
    Lojasiewicz
        The bounds, equal to rounding.

    References
    ----------
    .. [1] Chatterjee (2022), Convergence of gradient descent for deep neural networks.
    .. [2] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> bounds = penchant.measures.lojasiewicz_quadratic(np.eye(2), [1.0, 0.0], [0.0, 0.0], 2.0)
    >>> round(bounds.lower, 6), round(bounds.upper, 6)
    (2.0, 2.0)
    """
    X, y = regression_data(X, y)
    x = entries("center", center, X.shape[1], "one entry per column of X")
    radius = positive("radius", radius)
    lower, upper, point = least_ratio(X, y, x, radius)
    loss = 0.5 * float(np.sum((X @ x - y) ** 2))
    return Lojasiewicz(lower, upper, loss, radius, point, "exact for a quadratic")


@door
def lojasiewicz(
    function: Callable[[Any], Any],
    center: ArrayLike,
    radius: float,
    *,
    lipschitz: float | None = None,
    starts: int = 32,
    steps: int = 300,
    seed: int = 0,
) -> Lojasiewicz:
    """Bounds on chi of a JAX `function` on the ball around `center`.

    chi is the least ratio |grad g|^2 / g on the ball.

    Parameters
    ----------
    function
        Returns a loss g >= 0 with least value 0, or a vector F of residuals, which means g =
        (1/2)|F|^2.
    center
        The centre of the ball.
    radius
        Its radius.
    lipschitz
        A Lipschitz constant of the gradient of g (in the Euclidean norm) or of the Jacobian of F
        (in the operator norm) on the ball, and in up to 3 dimensions on the cube around it.
        Sampling cannot give it, and a `lower` above 0 needs it. For residuals `lower` is then twice
        the square of a bound on the least singular value of the transposed Jacobian, from the
        centre, and in up to 3 dimensions from a covering by cubes; for a loss only the covering is
        used, which proves nothing on a ball that holds a zero of g.
    starts
        The number of random points of the ball from which descent on log(|grad g|^2 / g) searches
        for the least ratio, `upper`.
    steps
        The steps of that descent.
    seed
        The seed of all random numbers.

    Returns
    -------
    Lojasiewicz
        The bounds.

    References
    ----------
    .. [1] Chatterjee (2022), Convergence of gradient descent for deep neural networks.
    .. [2] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import penchant
    >>> bounds = penchant.measures.lojasiewicz(lambda a: a - 1.0, [0.0], 0.5, lipschitz=1e-9)
    >>> round(bounds.lower, 4), round(bounds.upper, 4)
    (2.0, 2.0)
    """
    x, radius = finite_array("center", center, ndim=1), positive("radius", radius)
    starts, steps = integer("starts", starts, least=1), integer("steps", steps, least=0)
    constant = None if lipschitz is None else positive("lipschitz", lipschitz)
    with double_precision():
        shape = np.shape(function(jnp.asarray(x)))
        if len(shape) > 1:
            rule = "function must return a number or a vector of residuals"
            raise Invalid(f"{rule}, got shape {shape}")
        residuals = len(shape) == 1
        loss = (lambda a: 0.5 * jnp.sum(function(a) ** 2)) if residuals else function
        value = float(loss(jnp.asarray(x)))
        if value < 0 or not math.isfinite(value):
            raise Invalid(f"the loss at the center must be finite and >= 0, got {value:g}")
        begin = _points(x, radius, starts, integer("seed", seed, least=0))
        upper, point = _descend(loss, x, radius, begin, steps)
        lower, how = _lower(function if residuals else loss, residuals, x, radius, constant)
    if lower > upper * (1 + 1e-9):
        raise Invalid(
            f"lipschitz={constant:g} is too small: it would prove a constant of {lower:.4g} "
            f"where {upper:.4g} was found; give a larger one"
        )
    return Lojasiewicz(min(lower, upper), upper, value, radius, point, how)


def _lower(
    function: Callable[[Any], Any], residuals: bool, x: Array, radius: float, constant: float | None
) -> tuple[float, str]:
    """What can be proved, and from what."""
    if constant is None:
        return 0.0, "no lower bound: give lipschitz="
    if residuals:
        least = least_singular_value(function, x, radius, constant)
        return 2 * least**2, "least singular value of the Jacobian on the ball"
    how = "covering by cubes" if len(x) <= DIMENSIONS else "no covering beyond 3 dimensions"
    return least_gradient_ratio(function, x, radius, constant), how


def _points(x: Array, radius: float, count: int, seed: int) -> Array:
    """The centre and random points, uniform in the ball."""
    rng = np.random.default_rng(seed)
    away = rng.standard_normal((count, len(x)))
    lengths = radius * rng.uniform(size=(count, 1)) ** (1 / len(x))
    away *= lengths / np.linalg.norm(away, axis=1, keepdims=True)
    away[0] = 0.0
    return np.asarray(x + away)


def _descend(
    loss: Callable[[Any], Any], x: Array, radius: float, begin: Array, steps: int
) -> tuple[float, Array]:
    """The least ratio met by projected descent from all points at once, and where."""

    def log_ratio(a: Any) -> Any:
        value, slope = jax.value_and_grad(loss)(a)
        # a zero of g is not among the points of the infimum
        return jnp.where(value > 0, jnp.log(jnp.sum(slope**2)) - jnp.log(value), jnp.inf)

    def inside(a: Any) -> Any:
        away = a - x
        length = jnp.linalg.norm(away)
        return x + away * jnp.where(length > radius, radius / length, 1.0)

    def move(state: Any, _: None) -> Any:
        a, best, length = state
        slope = jax.grad(log_ratio)(a)
        slope = jnp.where(jnp.isfinite(slope), slope, 0.0)
        tried = inside(a - length * slope / (jnp.linalg.norm(slope) + 1e-300))
        value = log_ratio(tried)
        better = value < best
        kept = jnp.where(better, tried, a), jnp.where(better, value, best)
        return (*kept, jnp.where(better, 1.5 * length, 0.5 * length)), None

    def chase(a: Any) -> Any:
        state, _ = jax.lax.scan(move, (a, log_ratio(a), 0.1 * radius), None, length=steps)
        return state[0], state[1]

    points, values = jax.jit(jax.vmap(chase))(jnp.asarray(begin))
    values = np.asarray(values)
    if not (values < np.inf).any():
        raise ValueError(f"{WHO}: the loss is zero or not a number wherever the ball was looked at")
    k = int(np.nanargmin(values))
    return float(np.exp(values[k])), np.asarray(points[k])
