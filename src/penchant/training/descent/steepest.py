"""Steepest descent in a norm, as in sign descent and Muon; descent normalized by the loss."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

from penchant.arguments import flag, share
from penchant.door import Invalid, class_name, door_as
from penchant.lazy import jax, jnp
from penchant.records import Checks
from penchant.regularizers.norms import Linf, norm_of
from penchant.regularizers.spectral import MatrixNorm, Spectral
from penchant.training.descent.clock import LogClock
from penchant.training.descent.method import Descent, Oracle, Scheme, no_decay, plus, zeros
from penchant.training.task import Task


@dataclasses.dataclass(frozen=True, repr=False)
class SteepestDescent(Descent):
    """w <- w - learning_rate * d, with d of norm one the direction in which the loss falls most.

    That is a subgradient of the dual norm at the gradient: its sign in l_inf, its largest entry
    alone in l1, g/|g| in l2, U V^T of its singular vectors in the spectral norm.

    Parameters
    ----------
    learning_rate
        The length of a step in the norm.
    norm
        L1(), L2(), Linf(), Nuclear() or Spectral(); L2(weights) for a preconditioner. A norm of
        matrices treats every matrix among the parameters separately; with a shape it applies to
        flat parameters.
    momentum
        The share of the mean gradient that is kept; the direction is that of the mean.
    normalized
        False multiplies the step by the dual norm of the gradient: with L2() this is gradient
        descent.
    weight_decay
        Decoupled: every step also subtracts learning_rate * weight_decay * parameters.
    check
        Has no effect here: no bound of stable rates is known.

    References
    ----------
    .. [1] Fan et al. (2025), Implicit Bias of Spectral Descent and Muon on Multiclass Separable
       Data.

    Examples
    --------
    >>> import penchant
    >>> problem, stop = penchant.problems.separable_points(6, 4, margin=0.5), penchant.Steps(100)
    >>> method = penchant.methods.SteepestDescent(0.01, penchant.L1())
    >>> path = penchant.train(penchant.models.LinearPredictor(), problem, method, stop=stop)
    >>> round(float(abs(path.predictor).sum()), 6)  # every step moves one coordinate
    1.0
    """

    norm: Any
    momentum: float = 0.0
    normalized: bool = True
    checks: ClassVar[Checks] = {
        "norm": lambda name, norm: norm_of(norm),
        "momentum": share,
        "normalized": flag,
    }

    @property
    def scheme(self) -> Scheme:
        return super().scheme._replace(start=self._start)

    @door_as(class_name)
    def _start(self, task: Task) -> Any:
        return in_norm(self.norm, task)

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        return zeros(parameters) if self._remembers else ()

    @property
    def _remembers(self) -> bool:
        return not (isinstance(self.momentum, float) and self.momentum == 0)

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        mean = oracle.gradient(parameters)
        if self._remembers:
            momentum = self.momentum
            mean = jax.tree.map(lambda m, g: momentum * m + (1 - momentum) * g, memory, mean)
        rate = self.learning_rate
        if not self.normalized:
            rate = rate * self.norm.dual_norm.value(mean)
        moved = plus(parameters, -rate, self.norm.dual_norm.subgradient(mean))
        return moved, mean if self._remembers else ()


def in_norm(norm: Any, task: Task) -> Any:
    """The start of a task whose parameters have this norm; an error if they have not."""
    parts = jax.tree.leaves(task.start)
    flat = all(part.ndim < 2 for part in parts)
    if flat and isinstance(norm, MatrixNorm) and norm.shape is None:
        name = type(norm).__name__
        raise Invalid(
            f"{norm!r} acts on a matrix, and the parameters of"
            f" {type(task.model).__name__} are flat; use {name}(shape=(rows, columns))"
        )
    try:
        norm.value(task.start)
    except ValueError as reason:
        raise Invalid(f"{reason}") from None
    return task.start


@dataclasses.dataclass(frozen=True, repr=False)
class SignDescent(SteepestDescent):
    """w <- w - learning_rate * sign(gradient); with momentum, Signum.

    Parameters
    ----------
    learning_rate
        How far every entry moves in a step.
    momentum
        The share of the mean gradient that is kept; the direction is that of the mean.
    normalized
        False multiplies the step by the sum of the gradient's absolute values.
    weight_decay
        Decoupled: every step also subtracts learning_rate * weight_decay * parameters.
    check
        Has no effect here: no bound of stable rates is known.

    Examples
    --------
    >>> import penchant
    >>> problem, stop = penchant.problems.separable_points(6, 4, margin=0.5), penchant.Steps(1)
    >>> model, method = penchant.models.LinearPredictor(), penchant.methods.SignDescent(0.01)
    >>> path = penchant.train(model, problem, method, stop=stop)
    >>> abs(path.predictor)
    array([0.01, 0.01, 0.01, 0.01])
    """

    norm: Any = dataclasses.field(default=Linf(), init=False)


@dataclasses.dataclass(frozen=True, repr=False)
class Muon(SteepestDescent):
    """Steps along U V^T of the singular vectors of the mean gradient, matrix by matrix.

    Muon proper (Jordan et al. 2024) approximates U V^T by a few Newton-Schulz steps; here it is
    exact. A vector among the parameters counts as one column.

    Parameters
    ----------
    learning_rate
        The singular values of a step.
    norm
        Spectral(), in which this is steepest descent; Spectral(shape) applies to flat parameters.
    momentum
        The share of the mean gradient that is kept.
    normalized
        False multiplies the step by the sum of the mean gradient's singular values.
    weight_decay
        Decoupled: every step also subtracts learning_rate * weight_decay * parameters.
    check
        Has no effect here: no bound of stable rates is known.

    References
    ----------
    .. [1] Jordan et al. (2024), Muon: An optimizer for hidden layers in neural networks.
    .. [2] Fan et al. (2025), Implicit Bias of Spectral Descent and Muon on Multiclass Separable
       Data.

    Examples
    --------
    >>> import penchant
    >>> problem, stop = penchant.problems.separable_points(6, 4, margin=0.5), penchant.Steps(1)
    >>> method = penchant.methods.Muon(0.01, penchant.regularizers.Spectral(shape=(2, 2)))
    >>> path = penchant.train(penchant.models.LinearPredictor(), problem, method, stop=stop)
    >>> round(penchant.regularizers.Spectral(shape=(2, 2))(path.predictor), 6)
    0.01
    """

    norm: Any = dataclasses.field(default=Spectral())
    momentum: float = 0.95
    checks: ClassVar[Checks] = {"norm": lambda name, norm: _spectral(norm)}


def _spectral(norm: object) -> Spectral:
    if not isinstance(norm, Spectral):
        raise Invalid(f"norm must be Spectral(), got {norm!r}; use SteepestDescent for others")
    return norm


@dataclasses.dataclass(frozen=True, repr=False)
class NormalizedDescent(Descent):
    """w <- w - learning_rate * grad L(w) / L(w), in a form that no small loss makes underflow.

    The form is that of Moroshko et al. 2020, appendix H.5. A step takes learning_rate / L of
    training time, so that its paths share the axes of the flows. Only log L is ever represented.

    Parameters
    ----------
    learning_rate
        The length of a step along the direction of the method.
    weight_decay
        Must be 0: this method has none.
    check
        False also allows a learning rate beyond the bound of a quadratic loss.

    References
    ----------
    .. [1] Moroshko et al. (2020), Implicit Bias in Deep Linear Classification: Initialization Scale
       vs Training Accuracy.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=1.0)
    >>> stop = [penchant.Steps(1000), penchant.stop.LogLoss(-50)]
    >>> path = penchant.train(net, problem, penchant.methods.NormalizedDescent(1e-2), stop=stop)
    >>> path.log_loss <= -50
    True
    """

    checks: ClassVar[Checks] = {"weight_decay": no_decay}

    @property
    def scheme(self) -> Scheme:
        clock = LogClock(self.learning_rate)
        return super().scheme._replace(
            clock=clock, penalties="none", batches=False, logarithmic=True
        )

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        return jnp.float64(-math.inf)

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        log_loss, gradient = oracle.log_value_and_gradient(parameters)
        log_time = jnp.logaddexp(memory, jnp.log(self.learning_rate) - log_loss)
        return plus(parameters, -self.learning_rate, gradient), log_time
