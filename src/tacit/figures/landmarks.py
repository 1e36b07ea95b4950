"""The points that trajectories of directions are held against: l1, l2, the Q path and its limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import Array

if TYPE_CHECKING:
    import xarray

    from tacit.problems.classification import Classification

SPREAD = 33  # points along the set of l1 predictors


def landmarks(
    problem: Classification, depth: int, mus: Array, marks: Sequence[float]
) -> xarray.Dataset:
    """Directions in degrees: start, l2, l1 set, Q path, its changes of support, the flow's limit.

    From depth 3 on also the stationary points of the l_{2/depth} margin, which a flow may end in.
    """
    import xarray

    from tacit.regularizers.norms import L2
    from tacit.solvers.margins.path import max_margin_path
    from tacit.solvers.max_margin import max_margin
    from tacit.solvers.ratchet.ratchet import ratchet_path

    X, y = problem.X, problem.y
    path = max_margin_path(X, y, depth, mus=mus)
    changes = sorted({change.mu for change in path.changes}, reverse=True)
    points: dict[str, tuple[str | None, Array]] = {
        "start": (None, problem.signed_rows.mean(axis=0)),
        "l2": (None, max_margin(X, y, L2()).beta),
        "l1": ("spread", np.linspace(*l1_ends(problem.signed_rows), SPREAD)),
        "q_path": ("mu", path.beta),
        "q_mark": ("mark", max_margin_path(X, y, depth, mus=marks).beta),
        "q_change": ("change", _at(problem, depth, changes)),
        "limit": ("mu", ratchet_path(X, y, depth, mus=mus).beta),
        "limit_mark": ("mark", ratchet_path(X, y, depth, mus=marks).beta),
        "stationary": ("place", stationary(problem, depth)),
    }
    variables = {
        name: ((*([dim] if dim else []), "angle"), angles(beta))
        for name, (dim, beta) in points.items()
    }
    dataset = xarray.Dataset(variables)
    dataset["change_mu"] = ("change", np.array(changes))
    dataset["rows"] = (("sample", "feature"), problem.signed_rows)
    # numbered, so that sets with more and with fewer of them fit into one table
    return dataset.assign_coords({dim: range(dataset.sizes[dim]) for dim in ("change", "place")})


def angles(beta: Array) -> Array:
    """(azimuth, pitch) in degrees along the last axis; NaN where a predictor is not known."""
    from tacit.measures.directions import azimuth_pitch

    found = np.full((*beta.shape[:-1], 2), np.nan)
    known = np.isfinite(beta).all(axis=-1)
    found[known] = np.stack(azimuth_pitch(beta[known]), axis=-1)
    return found


def _at(problem: Classification, depth: int, mus: Sequence[float]) -> Array:
    """The points of the Q path at `mus`, of which there may be none."""
    from tacit.solvers.margins.path import max_margin_path

    if not mus:
        return np.empty((0, problem.dimension))
    return max_margin_path(problem.X, problem.y, depth, mus=mus).beta


def stationary(problem: Classification, depth: int) -> Array:
    """The predictors of margin 1 that are stationary for the l_{2/depth} quasi-norm, best first."""
    from tacit.regularizers.norms import Lp
    from tacit.solvers.stationary import stationary_points

    if depth == 2:  # the norm is l1, its minimisers are the l1 set
        return np.empty((0, problem.dimension))
    found = stationary_points(problem.X, problem.y, Lp(2 / depth))
    return np.array([point.beta for point in found])


def l1_ends(Z: Array) -> tuple[Array, Array]:
    """The two predictors of margin 1 and least l1 norm that are furthest apart, often the same.

    A linear program pushes every coordinate both ways over the set of minimisers.
    """
    from scipy.optimize import linprog

    samples, dimension = Z.shape
    ones, pair = np.ones(2 * dimension), np.hstack([Z, -Z])
    least = linprog(ones, A_ub=-pair, b_ub=-np.ones(samples)).fun
    corners = []
    for unit in np.vstack([np.eye(dimension), -np.eye(dimension)]):
        face = linprog(
            np.concatenate([unit, -unit]),
            A_ub=np.vstack([-pair, ones]),
            b_ub=np.append(-np.ones(samples), least * (1 + 1e-12)),
        )
        corners.append(face.x[:dimension] - face.x[dimension:])
    far = np.array(corners)
    apart = np.linalg.norm(far[:, None] - far, axis=-1)
    first, last = np.unravel_index(int(apart.argmax()), apart.shape)
    return far[first], far[last]
