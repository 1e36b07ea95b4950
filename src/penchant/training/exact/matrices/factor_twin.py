"""Gradient flow of two factors beside the flow of the model linearized at its start.

How it works. The displacement W(t) - W(0) is integrated, not W: a start in the kernel regime is
large and barely moves, and the difference of two large factors would leave no digits. The residual
of the displacement D is r(0) + <X_n, change(D)> with change(D) the part of M in W(0) D^T + D W(0)^T
+ D D^T. The twin obeys r' = -K r with the tangent kernel K of the start, which is solved in its
eigenvectors at the times of the integrator.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.integrate import solve_ivp

from penchant.arguments import Array, positive
from penchant.door import Invalid, door
from penchant.models.factorization import TwoFactors
from penchant.problems.matrix_problem import MatrixProblem
from penchant.records import Kind, Outcome, Record, Unsolved

SINGULAR = 1e-12  # below this part of its largest eigenvalue the kernel of the start is singular
LONGEST = 1e4  # in units of the slowest rate of the twin
ACCURACY = 1e-11  # of the displacement, relative


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class FactorTwin(Record):
    """A trained stack of factors and its tangent twin, at the steps of the integrator.

    Parameters
    ----------
    t
        The times.
    moved
        W(t) - W(0), one matrix for every time.
    residual
        <X_n, M(t)> - y_n.
    length
        The length of the way of W so far.
    impulse
        The time integral of the norm of the residual.
    twin_moved
        W_TK(t) - W(0).
    twin_residual
        The residual of the twin.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.gaussian_sensing(samples=3, dimension=2, rank=1)
    >>> model = penchant.models.wide_factorization(10**6, alpha=0.1, shape=(2, 2))
    >>> twin = penchant.solvers.factor_twin(model, problem)
    >>> isinstance(twin, penchant.solvers.FactorTwin), twin.apart < 0.01 * twin.farthest
    (True, True)
    """

    t: Array
    moved: Array
    residual: Array
    length: Array
    impulse: Array
    twin_moved: Array
    twin_residual: Array

    @property
    def farthest(self) -> float:
        """The largest |W(t) - W(0)|_F."""
        return float(np.linalg.norm(self.moved, axis=(1, 2)).max())

    @property
    def apart(self) -> float:
        """The largest |W(t) - W_TK(t)|_F."""
        return float(np.linalg.norm(self.moved - self.twin_moved, axis=(1, 2)).max())

    @property
    def left(self) -> float:
        """The norm of the residual at the end over that at the start."""
        return float(np.linalg.norm(self.residual[-1]) / np.linalg.norm(self.residual[0]))


@door
def factor_twin(model: TwoFactors, problem: MatrixProblem, *, fall: float = 1e-9) -> FactorTwin:
    """Gradient flow of two factors and of their linearization, side by side.

    It integrates in time and carries no certificate: the tolerance is that of a step.

    Parameters
    ----------
    model
        A Factorization, SymmetricFactorization or DifferenceFactorization.
    problem
        The measurements and their values.
    fall
        Training stops when the norm of the residual is this part of that at the start.

    Returns
    -------
    FactorTwin
        Both ways, at the same times.

    Raises
    ------
    ValueError
        The tangent kernel of the start is singular, or an argument is wrong.
    NumericalError
        The residual did not fall so far.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models, Theorem 9.
    .. [2] Chizat et al. (2019), On Lazy Training in Differentiable Programming.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.gaussian_sensing(samples=3, dimension=2, rank=1)
    >>> for alpha in 0.001, 0.1:
    ...     model = penchant.models.wide_factorization(10**6, alpha=alpha, shape=(2, 2))
    ...     twin = penchant.solvers.factor_twin(model, problem)
    ...     print(round(twin.apart / twin.farthest, 4))
    0.0238
    0.0006
    """
    if not isinstance(model, TwoFactors):
        raise Invalid(f"the model must have two factors, got {type(model).__name__}")
    if not isinstance(problem, MatrixProblem):
        raise Invalid(f"the problem must be a matrix problem, got {type(problem).__name__}")
    if not (fall := positive("fall", fall)) < 1:
        raise Invalid(f"fall must be below 1, got {fall:g}")
    factor = 2 * math.exp(problem.log_factor)  # of the residual in the gradient of the loss
    W0 = model.stack(model.start(problem.dimension))
    begin = problem.apply(model.part(W0 @ W0.T)) - problem.y
    misfit, size = float(np.linalg.norm(begin)), W0.size
    if misfit == 0:
        raise Invalid("the model fits the data at its start, so that nothing moves")
    stack = problem.design.reshape(problem.samples, *problem.shape)
    slopes = (model.lift(stack) @ W0).reshape(problem.samples, -1)
    rates, vectors = np.linalg.eigh(factor * slopes @ slopes.T)
    if not rates[0] > SINGULAR * rates[-1]:
        raise Invalid(
            "the tangent kernel of the start is singular, so the linearized model cannot fit; "
            "take a wider start or fewer measurements"
        )

    def residual(moved: Array) -> Array:
        cross = W0 @ moved.T
        return begin + problem.apply(model.part(cross + cross.T + moved @ moved.T))

    def velocity(_: float, state: Array) -> Array:
        moved = state[:size].reshape(W0.shape)
        r = residual(moved)
        speed = -factor * model.lift(problem.adjoint(r)) @ (W0 + moved)
        return np.concatenate([speed.ravel(), [np.linalg.norm(speed), np.linalg.norm(r)]])

    def fitted(_: float, state: Array) -> float:
        return float(np.linalg.norm(residual(state[:size].reshape(W0.shape))) - fall * misfit)

    fitted.terminal = True  # type: ignore[attr-defined]
    coefficients = vectors.T @ begin
    # how far the twin goes in the end, which is the order of the displacement
    far = float(np.linalg.norm(slopes.T @ vectors @ (factor * coefficients / rates)))
    fastest = rates[-1] + factor * misfit * np.linalg.norm(problem.design, 2)
    solution = solve_ivp(
        velocity,
        (0, LONGEST / rates[0]),
        np.zeros(size + 2),
        method="DOP853",
        events=fitted,
        first_step=0.01 / fastest,
        rtol=ACCURACY,
        atol=1e-2 * ACCURACY * far,
    )
    if solution.status != 1:
        reached = np.linalg.norm(residual(solution.y[:size, -1].reshape(W0.shape))) / misfit
        raise Unsolved(
            Outcome(Kind.STALLED, f"the residual fell to {reached:.2g} of its start, not {fall:g}")
        )
    moved = solution.y[:size].T.reshape(-1, *W0.shape)
    decay = np.outer(solution.t, rates)
    impulse = (coefficients * -np.expm1(-decay) / rates) @ vectors.T
    return FactorTwin(
        solution.t,
        moved,
        np.array([residual(D) for D in moved]),
        solution.y[size],
        solution.y[size + 1],
        (-factor * impulse @ slopes).reshape(-1, *W0.shape),
        (coefficients * np.exp(-decay)) @ vectors.T,
    )
