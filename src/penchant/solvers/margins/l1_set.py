"""The set of the max margins in the l1 norm, where there is more than one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array
from penchant.door import Invalid, door
from penchant.records import Kind, NumericalError, Outcome
from penchant.regularizers.norms import L1
from penchant.solvers.accuracy import VALUE
from penchant.solvers.certificate import Certificate, judge

FEASIBLE = 1e-10  # the least that HiGHS takes; with its default, 1e-7, a norm is 1e-8 too large


@door
def l1_ends(Z: ArrayLike) -> tuple[Array, Array]:
    """The two predictors of margin 1 and least l1 norm that are furthest apart, often the same.

    A linear program pushes every coordinate both ways over the set of minimisers. Both are compared
    with the least norm as `max_margin` certifies it.

    Parameters
    ----------
    Z
        The rows y_n x_n of separable data.

    Returns
    -------
    tuple of two arrays
        The two predictors.

    Raises
    ------
    NumericalError
        A predictor misses the least norm, or that cannot be certified.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> first, second = penchant.solvers.l1_ends(np.array([[1.0, 1.0]]))
    >>> round(float(abs(first - second).sum()), 6)
    2.0
    """
    from scipy.optimize import linprog

    from penchant.solvers.max_margin import max_margin

    Z = finite_array("Z", Z, ndim=2)
    samples, dimension = Z.shape
    try:
        norm = max_margin(Z, np.ones(samples), L1(), throw=False)
    except ValueError:
        raise Invalid("Z must have a predictor with positive margins on every row") from None
    outcome, ones, pair = norm.outcome, np.ones(2 * dimension), np.hstack([Z, -Z])
    corners = []
    for unit in np.vstack([np.eye(dimension), -np.eye(dimension)]) if outcome.ok else []:
        face = linprog(
            np.concatenate([unit, -unit]),
            A_ub=np.vstack([-pair, ones]),
            b_ub=np.append(-np.ones(samples), norm.value * (1 + 1e-12)),
            options={"primal_feasibility_tolerance": FEASIBLE},
        )
        if face.x is None:
            raise NumericalError(
                "l1_ends", Outcome(Kind.STALLED, f"a linear program: {face.message}")
            )
        corners.append(face.x[:dimension] - face.x[dimension:])
    far = np.array(corners)
    if outcome.ok:
        far /= (far @ Z.T).min(axis=1)[:, None]
        excess = float(np.abs(far).sum(axis=1).max()) / norm.value - 1
        outcome = judge(outcome, Certificate(excess + norm.error, "bound", VALUE, "value"))
    if not outcome.ok:
        raise NumericalError("l1_ends", outcome)
    apart = np.linalg.norm(far[:, None] - far, axis=-1)
    first, last = np.unravel_index(int(apart.argmax()), apart.shape)
    return far[first], far[last]
