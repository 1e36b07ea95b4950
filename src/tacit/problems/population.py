"""The distribution behind a sample: how often a linear classifier is right on new data."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, integer, real
from tacit.records import Record

SHEVTSOVA = 0.56  # Berry-Esseen's constant for summands of different laws, proved in 2010
MOST_EXACT = 20  # coordinates whose 2^k signs are written out


def accuracy(margins: Array) -> Array:
    """The share of positive margins along the last axis; a tie, a margin of 0, counts one half."""
    return (np.sign(margins).mean(axis=-1) + 1) / 2


class Population(Record, abc.ABC):
    """Labelled points that can be drawn without end; nothing is sampled to measure accuracy."""

    @abc.abstractmethod
    def accuracy(self, beta: ArrayLike) -> float:
        """The probability that sgn<beta, x> is the label of x; a tie counts one half."""

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """What the points are, as plain JSON values."""

    def __str__(self) -> str:
        """One line, since it is shown as a field of a problem."""
        name, *fields = self.describe().items()
        return f"{name[1]}: " + ", ".join(f"{field} {value}" for field, value in fields)


@dataclasses.dataclass(frozen=True, repr=False)
class MajorityCube(Population):
    """x uniform on {-1, 1}^dimension, labelled by the majority of its first `relevant` signs.

    The signs of `exact` coordinates are enumerated: the relevant ones and those with the largest
    weights besides. The sum of the others is taken as Gaussian, which errs by at most `error`;
    nothing is left to it where at most `exact` weights matter.
    """

    dimension: int
    relevant: int = 3
    exact: int = 15

    def __post_init__(self) -> None:
        who = "MajorityCube"
        dimension = integer(who, "dimension", self.dimension, least=1)
        relevant = integer(who, "relevant", self.relevant, least=1)
        exact = integer(who, "exact", self.exact, least=1)
        if relevant % 2 == 0:
            raise ValueError(f"{who}: relevant must be odd, got {relevant}; an even vote can tie")
        if relevant > dimension:
            raise ValueError(
                f"{who}: relevant must be at most dimension={dimension}, got {relevant}"
            )
        if not relevant <= exact <= MOST_EXACT:
            raise ValueError(
                f"{who}: exact must be between relevant={relevant} and {MOST_EXACT}, got {exact}"
            )

    def accuracy(self, beta: ArrayLike) -> float:
        sums, spread, _ = self._sums(beta)
        if spread == 0:
            return float(accuracy(sums))
        from scipy.special import ndtr

        return float(np.mean(ndtr(sums / spread)))

    def error(self, beta: ArrayLike) -> float:
        """A bound on how far `accuracy` can be from the truth; 0 where it is exact.

        For every enumerated sum the smaller of two: Berry and Esseen's bound on the distance
        from a Gaussian, and Hoeffding's on the chance that the others overrule the sum.
        """
        sums, spread, thirds = self._sums(beta)
        if spread == 0:
            return 0.0
        uniform = SHEVTSOVA * thirds / spread**3
        return float(np.mean(np.minimum(uniform, np.exp(-((sums / spread) ** 2) / 2))))

    def describe(self) -> dict[str, Any]:
        return {
            "population": "MajorityCube",
            "dimension": self.dimension,
            "relevant": self.relevant,
        }

    def _sums(self, beta: ArrayLike) -> tuple[Array, float, float]:
        """y <beta, x> over the enumerated signs; the l2 norm and the l3 norm cubed of the rest."""
        weights = _weights("MajorityCube", beta, self.dimension)
        votes = _signs(self.relevant)
        votes = votes[votes.sum(axis=1) > 0]  # x and -x are right or wrong together
        others = np.abs(weights[self.relevant :])
        others = others[others > 0]
        kept = min(self.exact - self.relevant, len(others))
        if 0 < kept < len(others):
            others = np.partition(others, len(others) - kept)
        rest, large = others[: len(others) - kept], others[len(others) - kept :]
        ours = votes @ weights[: self.relevant]
        sums = np.add.outer(ours, _signs(kept) @ large).ravel()
        rounding = 4 * np.finfo(float).eps * (large.sum() + np.abs(weights[: self.relevant]).sum())
        sums[np.abs(sums) <= rounding] = 0.0  # a tie that is one but for rounding
        return sums, float(np.sqrt(rest @ rest)), float((rest**3).sum())


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class WideMargin(Population):
    """Gaussian z labelled by the side of a plane it is on, and pushed away from it by gamma/2.

    y = sgn<z, w> for the unit vector w along `direction`, and x = z + (gamma/2) y w.
    """

    direction: Array
    gamma: float

    def __post_init__(self) -> None:
        direction = finite_array("WideMargin", "direction", self.direction, ndim=1)
        length = float(np.linalg.norm(direction))
        if length == 0:
            raise ValueError("WideMargin: direction must not be zero")
        direction = direction / length
        direction.setflags(write=False)
        rule = "a finite number >= 0"
        gamma = real("WideMargin", "gamma", self.gamma, rule=rule)
        if gamma < 0:
            raise ValueError(f"WideMargin: gamma must be >= 0, got {gamma}")
        object.__setattr__(self, "direction", direction)
        object.__setattr__(self, "gamma", gamma)

    def accuracy(self, beta: ArrayLike) -> float:
        from scipy.special import ndtr, owens_t

        weights = _weights("WideMargin", beta, len(self.direction))
        along = float(weights @ self.direction)
        across = float(np.linalg.norm(weights - along * self.direction))
        length = math.hypot(along, across)
        if length == 0:
            return 0.5
        # y <beta, x> / |beta| = c |g| + s h + c gamma/2 with c, s the cosine and the sine and
        # g, h independent N(0, 1): a quadrant of two correlated Gaussians, Owen's T
        shift = along / length * self.gamma / 2
        slope = along / across if across > 0 else math.copysign(math.inf, along)
        return float(min(max(ndtr(shift) + 2 * owens_t(shift, slope), 0.0), 1.0))

    def describe(self) -> dict[str, Any]:
        return {"population": "WideMargin", "dimension": len(self.direction), "gamma": self.gamma}


def _weights(who: str, beta: ArrayLike, dimension: int) -> Array:
    """`beta` with one entry per feature, its largest brought to size one."""
    weights = finite_array(who, "beta", beta, ndim=1)
    if len(weights) != dimension:
        raise ValueError(
            f"{who}: beta must have one entry per feature ({dimension}), got {len(weights)}"
        )
    size = float(np.abs(weights).max())
    return weights / size if size > 0 else weights


def _signs(count: int) -> Array:
    """All rows of {-1, 1}^count; one empty row for none."""
    bits = np.arange(2**count)[:, None] >> np.arange(count)
    return np.asarray(2.0 * (bits & 1) - 1, dtype=np.float64)
