"""Sharpness-aware minimization: the gradient at the worst point nearby."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from penchant.arguments import positive
from penchant.door import class_name, door_as
from penchant.records import Checks
from penchant.regularizers.norms import L2, norm_of
from penchant.training.descent.method import Descent, Oracle, Scheme, plus
from penchant.training.descent.steepest import in_norm
from penchant.training.task import Task


@dataclasses.dataclass(frozen=True, repr=False)
class SAM(Descent):
    """w <- w - learning_rate * grad L(w + rho * d), d of norm one and steepest ascent of L at w.

    Sharpness-aware minimization: d is g/|g| in l2, sign(g) in l_inf, the largest entry alone in
    l1. The penalty of training counts as part of L.

    Parameters
    ----------
    learning_rate
        The length of a step along the gradient at the point nearby.
    rho
        How far that point is, in the norm.
    norm
        L1(), L2(), Linf(), Nuclear() or Spectral(); L2() by default.
    weight_decay
        Decoupled: every step also subtracts learning_rate * weight_decay * parameters.
    check
        Has no effect here: no bound of stable rates is known.

    References
    ----------
    .. [1] Foret et al. (2021), Sharpness-Aware Minimization for Efficiently Improving
       Generalization.
    .. [2] Moon et al. (2026), Minor First, Major Last: A Depth-Induced Implicit Bias of
       Sharpness-Aware Minimization.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.Classification([[1.0, 2.0]], [1.0])
    >>> net = penchant.models.ProductNet([0.05, 0.2], [0.05, 0.2])
    >>> method = penchant.methods.SAM(0.1, 0.1, penchant.regularizers.Linf())
    >>> path = penchant.train(net, problem, method, stop=penchant.Steps(1000))
    >>> path.predictor.round(2)  # weights that start below rho never grow
    array([0.  , 4.34])
    """

    rho: float
    norm: Any = dataclasses.field(default=L2())
    checks: ClassVar[Checks] = {
        "rho": positive,
        "norm": lambda name, norm: norm_of(norm),
    }

    @property
    def scheme(self) -> Scheme:
        return super().scheme._replace(start=self._start)

    @door_as(class_name)
    def _start(self, task: Task) -> Any:
        return in_norm(self.norm, task)

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        uphill = self.norm.dual_norm.subgradient(oracle.gradient(parameters))
        nearby = plus(parameters, self.rho, uphill)
        return plus(parameters, -self.learning_rate, oracle.gradient(nearby)), memory
