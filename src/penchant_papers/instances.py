"""Random regression problems, studies of many of them, and numbers in slopes and sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.lab import Array, Sizes, sized
from penchant.plotting import latex
from penchant.problems import MatrixProblem
from penchant.solvers import MatrixSolution

FLAT = 1e-6  # of the largest singular value: below this a matrix of least norm has none


@dataclasses.dataclass(frozen=True)
class Instance:
    """One underdetermined problem with a scale and a start shape to try on it."""

    X: Array
    y: Array
    alpha: float
    shape: Array


def random_instance(
    number: int,
    seed: int,
    *,
    samples: tuple[int, int] = (2, 8),
    dimension: tuple[int, int] = (10, 25),
    log10_alpha: tuple[float, float] = (-2.5, 0.5),
) -> Instance:
    """A Gaussian problem with a sparse or dense truth, a log-uniform scale and a signed shape.

    The numbers of one seed are drawn in turn, from zero on.
    """
    rng = np.random.default_rng(seed)
    for k in range(number + 1):
        rows, columns = rng.integers(*samples), rng.integers(*dimension)
        X = rng.normal(size=(rows, columns))
        truth = rng.normal(size=columns) * (rng.random(columns) < (0.2 if k % 2 else 1.0))
        y = X @ truth + 0.1 * rng.normal(size=rows)
        shape = rng.uniform(0.5, 2.0, columns) * rng.choice([-1.0, 1.0], columns)
        alpha = 10 ** rng.uniform(*log10_alpha)
    return Instance(X, y / np.abs(y).max(), alpha, shape)


def by_instance(
    name: str,
    function: Callable[..., Any],
    quick: int,
    *,
    tiny: int | None = None,
    printed: int,
    **given: Any,
) -> Sizes:
    """A study over the argument `instance`, from zero up to the number that a size has."""
    counts = {"tiny": tiny, "printed": printed}
    sizes: dict[str, Any] = {
        size: {"grid": {"instance": list(range(count))}} for size, count in counts.items() if count
    }
    grid = {"instance": list(range(quick))}
    return sized(name, function=function, grid=grid, **given, **sizes)


def slack_of(problem: MatrixProblem, least: MatrixSolution) -> float:
    """1 minus the size of a nuclear certificate off the range of its matrix, where it is 1.

    `least` is a matrix of least nuclear norm, and the certificate the sum of the measurements with
    its dual. The trained matrix is at a distance of order scale^slack from it: a singular value
    that ends at s has grown by s / scale, and one that grows 1 - slack times as fast by
    (s / scale)^(1 - slack).
    """
    sizes = np.linalg.svd(least.matrix, compute_uv=False)
    values = np.linalg.svd(problem.adjoint(least.dual), compute_uv=False)
    rank = int((sizes > FLAT * sizes[0]).sum())
    return float(1 - values[rank] / values[0]) if rank < len(values) else 1.0


def distance(one: Array, other: Array) -> float:
    """max|one - other| relative to max|other|."""
    return float(np.abs(one - other).max() / np.abs(other).max())


def slope(x: Array, y: Array) -> float:
    """The exponent of the power law y ~ x^slope, by least squares on logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def furthest(values: Any, center: float = 0.0) -> float:
    """The entry that is furthest from `center`, with its sign."""
    flat = np.ravel(values)
    return float(flat[np.argmax(np.abs(flat - center))])


def listed(values: Any, form: str = "g") -> str:
    """Numbers in a sentence, separated by commas, each in the format `form`."""
    texts = (latex(float(value), form) for value in np.ravel(values))
    return ", ".join(f"${text}$" if "\\" in text or "^" in text else text for text in texts)
