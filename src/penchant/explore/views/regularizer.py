"""The regularizer Q between its limits: along one weight, and as the ball of two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penchant.arguments import Array
from penchant.explore.controls import Number
from penchant.explore.picture import Curve, Panel, Picture, Style
from penchant.explore.state import Values, View
from penchant.plotting.style import BLACK, BLUE, RED
from penchant.regularizers.norms import L2
from penchant.regularizers.q import Q

CONTROLS = (
    Number("depth", "depth D", 2, 10, 1, 2),
    Number("log10_mu", "scale μ = α^D", -8, 4, 0.25, -1, power=True),
    Number("shape", "initial second weight over the first", 0.5, 2, 0.05, 1),
)
LINE = np.linspace(-2, 2, 101)
ANGLE = np.linspace(0, np.pi / 2, 31)
QUARTER = np.stack([np.cos(ANGLE), np.sin(ANGLE)], axis=-1)
FIRST = np.array([1.0, 0.0])
LARGEST = 1100.0  # no ball is wider: (2^18)^(1/2) for the l2 limit at depth 10

Terms = Callable[[Array], Array]


def limits(depth: int, shape: Array) -> tuple[Terms, Terms]:
    """The terms that those of Q are proportional to for mu to 0 and for mu to infinity.

    Coordinate i of Q is (mu_i / kappa_i) q(beta_i / mu_i) with mu_i = mu |w0_i|^D and
    kappa_i = |w0_i|^(D-2); q(z) goes like |z| (times a slow logarithm at depth 2) and like z^2.
    """
    rich, kernel = shape ** (2.0 - depth), L2(shape ** (2.0 - 2 * depth))
    return lambda beta: rich * np.abs(beta), kernel.terms


def ball(terms: Terms, degree: float | None = None) -> Array:
    """The points with the value of the first basis vector, one a direction.

    A quarter is computed; the signs of the weights do not matter.
    """
    radius = bisected(terms) if degree is None else homogeneous(terms, degree)
    quarter = radius[:, None] * QUARTER
    half = np.concatenate([quarter, quarter[::-1] * (-1, 1)])
    return np.concatenate([half, -half])


def bisected(terms: Terms) -> Array:
    """The radius of the ball in every direction of a quarter, to 1e-7."""
    level = terms(FIRST).sum()
    low, high = np.zeros(len(ANGLE)), np.full(len(ANGLE), LARGEST)
    for _ in range(34):
        radius = (low + high) / 2
        inside = terms(radius[:, None] * QUARTER).sum(axis=-1) < level
        low, high = np.where(inside, radius, low), np.where(inside, high, radius)
    return radius


def homogeneous(terms: Terms, degree: float) -> Array:
    """The same where the value grows like a power of the radius."""
    return np.asarray((terms(FIRST).sum() / terms(QUARTER).sum(axis=-1)) ** (1 / degree))


def along(terms: Terms) -> Array:
    """The value along the first weight, 1 at 1."""
    return terms(LINE[:, None] * FIRST).sum(axis=-1) / terms(FIRST).sum()


def growth(terms: Terms) -> float:
    """How the value grows from weight 1 to 2, as a power: 1 for l1, 2 for l2."""
    return float(np.log2(terms(2 * FIRST).sum() / terms(FIRST).sum()))


def picture(values: Values) -> Picture:
    """Q with its two limits, along one weight and as a ball."""
    depth, log_mu = int(values["depth"]), float(values["log10_mu"]) * np.log(10)
    shape = np.array([1.0, float(values["shape"])])
    q = Q(depth, log_alpha=log_mu / depth, shape=shape)
    l1, l2 = limits(depth, shape)
    shown: tuple[tuple[str, Terms, float | None, Style, str], ...] = (
        ("ℓ₁, the limit for μ → 0", l1, 1.0, "dashed", BLUE),
        ("ℓ₂, the limit for μ → ∞", l2, 2.0, "dotted", RED),
        ("Q", q.terms, None, "line", BLACK),
    )
    rows, balls = [], []
    for name, terms, degree, style, colour in shown:
        x, y = ball(terms, degree).T
        rows.append(Curve(name, LINE, along(terms), style, colour))
        balls.append(Curve(name, x, y, style, colour))
    power = growth(q.terms)
    sentence = (
        f"At depth {depth} and μ = {10 ** float(values['log10_mu']):.3g}, Q grows from weight 1 to "
        f"weight 2 like the power {power:.3f}: 1 is ℓ₁, 2 is ℓ₂."
    )
    return Picture(
        (
            Panel(
                "along",
                "Along one weight, scaled to 1 at weight 1",
                "weight",
                "regularizer",
                tuple(rows),
                x_range=(-2, 2),
                y_range=(0, 4),
            ),
            Panel(
                "ball",
                "Two weights: the level set through (1, 0)",
                "first weight",
                "second weight",
                tuple(balls),
                x_range=_span(balls),
                y_range=_span(balls),
                square=True,
            ),
        ),
        sentence,
        {"power": power},
    )


def python(values: Values) -> str:
    """The regularizer of these values, and the power by which it grows."""
    depth, log10_mu, shape = (float(values[name]) for name in ("depth", "log10_mu", "shape"))
    return f"""\
import numpy as np
import penchant

log_alpha = {log10_mu:g} * np.log(10) / {depth:g}
q = penchant.Q({depth:g}, log_alpha=log_alpha, shape=[1.0, {shape:g}])
power = np.log2(q(np.array([2.0, 0.0])) / q(np.array([1.0, 0.0])))  # 1 is l1, 2 is l2
print(f"{{power:.3f}}")
"""


def _span(balls: list[Curve]) -> tuple[float, float]:
    most = max(1.2, 1.1 * float(np.abs(balls[-1].y).max()))
    return -most, most


VIEW = View(
    "regularizer",
    "The regularizer and its limits",
    "Among all predictors that fit the data, gradient flow on a diagonal net of depth D chooses "
    "the one with the smallest Q. A large initialization makes Q like ℓ₂, a small one like ℓ₁.",
    CONTROLS,
    picture,
    python,
    sweep="log10_mu",
)
