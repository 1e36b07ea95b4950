"""Implicit steps of the factors with their whole Hessian, where few variables are very stiff.

Measurements of very different sizes confine the factors to a curved valley: `FactorSteps`, which
treats the tangent kernel at the beginning of a step implicitly, then turns with every bend of it in
short steps. Backward differentiation with the exact Jacobian follows such a valley in some hundred
steps, each at the cost of a linear system in all variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.training.exact.matrices.system import FactorSystem
from penchant.training.exact.solver import backward, quiet, step

MOST = 400  # variables: a step takes milliseconds


class ImplicitSteps:
    """W' = -2 lift(G) W from W, with every velocity passed through `confine`."""

    steps = 0

    def __init__(
        self, system: FactorSystem, W: Array, rtol: float, confine: Callable[[Array], Array]
    ) -> None:
        self.system, self.shape = system, W.shape
        self.lifted = system.lifted()
        size = float(np.abs(W).max())
        settings: Any = {"rtol": rtol, "atol": 1e-3 * rtol * size, "jac": self._jacobian}

        def velocity(_: float, flat: Array) -> Array:
            return confine(system.velocity(flat.reshape(self.shape))).ravel()

        self.solver = backward(velocity, 0.0, W.ravel(), math.inf, **settings)

    @property
    def W(self) -> Array:
        return np.asarray(self.solver.y.reshape(self.shape))

    @property
    def t(self) -> float:
        return float(self.solver.t)

    def advance(self) -> None:
        with quiet():  # a trial step may meet a singular matrix
            step(self.solver)
        self.steps += 1

    def _jacobian(self, _: float, flat: Array) -> Array:
        W, system = flat.reshape(self.shape), self.system
        J = (self.lifted @ W).reshape(len(self.lifted), -1)
        bend = system.model.lift(system.problem.adjoint(system.residual(W)))
        return np.asarray(-2 * (J.T @ J + np.kron(bend, np.eye(self.shape[1]))))
