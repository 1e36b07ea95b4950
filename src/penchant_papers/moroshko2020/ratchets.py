"""Data sets by what the flow does with their Q path: it keeps to it, leaves it, or finds it again.

As alpha grows the flow tends to the ratchet path, whose dual weights never decrease.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from penchant import Classification, Q
from penchant.lab import Array, DataArray, drawn
from penchant.measures import angle
from penchant.solvers import MarginPath, RatchetPath, max_margin_path, ratchet_path
from penchant_papers.moroshko2020.stopping import follow, named, random_set

MUS = np.geomspace(10, 1e-3, 33)
ROUNDING = 1e-9  # of the largest weight
REJOINING = "left and found again"
#: an example, found by search: a Q path at depth 3 that is left and found again
REJOINED = (
    Classification(
        np.array(
            [
                [-0.13, -0.84, -0.86, -0.48, 0.45],
                [-0.75, -0.81, -0.34, -0.05, -0.97],
                [-1.13, 0.31, -1.85, -0.18, 0.43],
            ]
        ),
        np.ones(3),
    ),
    3,
)


LEFT, KEPT, CALM = "left", "kept", "calm"  # what happens to the Q path of a random set
APART = 1e-2  # degrees between a Q path that is left and the ratchet, so that both can be told


class RatchetCase:
    """One data set at one depth; all paths are lists of predictors at MUS."""

    def __init__(self, problem: Classification, depth: int):
        self.problem, self.depth = problem, depth

    @cached_property
    def q(self) -> MarginPath:
        return max_margin_path(self.problem.X, self.problem.y, self.depth, mus=MUS)

    @cached_property
    def falls(self) -> bool:
        """True if a dual weight of the Q path falls."""
        return steepest_fall(self.q.dual) < -ROUNDING

    @cached_property
    def changes(self) -> bool:
        """True if the Q path changes its support vectors."""
        return any(MUS[-1] < change.mu < MUS[0] for change in self.q.changes)

    @cached_property
    def kind(self) -> str:
        """Whether the ratchet leaves the Q path, keeps to it in an event, or nothing happens."""
        if not self.falls:
            return KEPT if self.changes else CALM
        gap = angle(self.ratchet(self.depth).beta, self.q.beta).max()
        return LEFT if gap > APART else "hardly left"

    def ratchet(self, depth: int, mus: Any = MUS) -> RatchetPath:
        return ratchet_path(self.problem.X, self.problem.y, depth, mus=mus)

    def trained(self, alpha: float, flow: str = "dual") -> Array:
        """Predictors of the flow from alpha, at the smoothed margins alpha^D/mu."""
        margins = alpha**self.depth / MUS
        path = follow(self.problem, self.depth, alpha, margins, 1e-8, flow)
        return np.asarray(path.predictor.values)

    def weights(self, alpha: float, predictors: Array) -> tuple[Array, float]:
        """R with grad Q(predictor) = Z^T R, and the relative misfit of that equation."""
        s, Z = Q(self.depth, alpha=alpha).dual_of(predictors), self.problem.signed_rows
        R: Array = np.linalg.lstsq(Z.T, s.T)[0].T.astype(np.float64)
        return R, float(np.abs(R @ Z - s).max() / np.abs(s).max())


def case_of(points: str, seed: int) -> tuple[RatchetCase, int]:
    """A panel, the set that is left and found again, or a random set; and the draws it took.

    "kept 1" is a random set of this kind, drawn until there is one.
    """
    if points == REJOINING:
        return RatchetCase(*REJOINED), 1
    kind, _, number = points.partition(" ")
    if not number:
        return RatchetCase(*named(points, seed)), 1
    first = 1000 * (100 * seed + int(number))  # every set has a thousand seeds of its own
    return drawn(lambda k: RatchetCase(*random_set(k)), lambda case: case.kind == kind, first)


def steepest_fall(weights: Array) -> float:
    """The lowest increment of any weight from one row to the next, over the largest weight."""
    return float(np.diff(weights, axis=0).min() / np.abs(weights).max())


def table(changes: Any) -> Array:
    """Changes of support vectors as rows: mu, the sample, and whether it enters."""
    return np.array([(c.mu, c.sample, c.enters) for c in changes], dtype=float).reshape(-1, 3)


def rows_of(changes: DataArray) -> Array:
    """The rows of a table of changes that are filled."""
    return np.asarray(changes.values[np.isfinite(changes.values[:, 0])])
