"""Gradient descent, plain, stochastic, with momentum and with subgradients; Adam."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from penchant.arguments import flag, not_negative, positive, share
from penchant.door import Invalid, class_name, door_as
from penchant.lazy import jax, jnp
from penchant.problems.matrix_problem import MatrixProblem
from penchant.problems.regression import Regression
from penchant.records import Checks
from penchant.training.descent.clock import Clock, ScaledClock
from penchant.training.descent.method import Descent, Oracle, Scheme, over, plus, zeros

FINEST = 10  # the least shrinkage per step, in units of rounding; below it decay is noise


@dataclasses.dataclass(frozen=True, repr=False)
class GradientDescent(Descent):
    """w <- w - learning_rate * grad L(w), on all samples or on batches (stochastic descent).

    With `momentum`, velocity <- momentum * velocity + gradient and w <- w - learning_rate *
    velocity; with `nesterov` the step goes along gradient + momentum * velocity, as in PyTorch.

    With `scaled`, the learning rate is at most scaled / |w|^2: the curvature of a 2-homogeneous
    net grows like |w|^2, so that a large start needs small steps only while it is large.

    Parameters
    ----------
    learning_rate
        The length of a step along the direction of the method.
    momentum
        The share of the velocity that is kept.
    nesterov
        Whether the step looks ahead.
    weight_decay
        Decoupled: every step also subtracts learning_rate * weight_decay * parameters.
    check
        False also allows a learning rate beyond the bound of a quadratic loss.
    subgradient
        True also takes penalties with kinks, such as 0.1 * L1(), and steps along a subgradient.
    label_noise
        The standard deviation of Gaussian noise that every step adds anew to the labels it sees,
        drawn from the seed of `train`; for regression.
    scaled
        The largest learning_rate * |w|^2; None sets no such bound.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=1.0)
    >>> method, stop = penchant.GradientDescent(1e-3, momentum=0.9), penchant.Steps(100)
    >>> penchant.train(net, problem, method, stop=stop, batch=2, seed=1).steps
    100
    """

    momentum: float = 0.0
    nesterov: bool = False
    subgradient: bool = dataclasses.field(default=False, kw_only=True)
    label_noise: float = dataclasses.field(default=0.0, kw_only=True)
    scaled: float | None = dataclasses.field(default=None, kw_only=True)
    checks: ClassVar[Checks] = {
        "momentum": share,
        "nesterov": flag,
        "subgradient": flag,
        "label_noise": not_negative,
        "scaled": lambda *given: None if given[1] is None else positive(*given),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.momentum and self.scaled is not None:
            raise ValueError(
                "GradientDescent: scaled= bounds plain steps, got momentum="
                f"{self.momentum:g} with it; leave one of them out"
            )

    @property
    def scheme(self) -> Scheme:
        plain = self.scaled is None
        clock = Clock(self.learning_rate) if plain else self._clock
        return super().scheme._replace(
            clock=clock,
            start=self._start,
            limit=self._limit,
            label_noise=self.label_noise,
            penalties="any" if self.subgradient else "smooth",
            elementwise=plain,
        )

    @property
    def _clock(self) -> ScaledClock:
        return ScaledClock(self.learning_rate, self.scaled)

    @property
    def _remembers(self) -> bool:
        return not (isinstance(self.momentum, float) and self.momentum == 0)

    @door_as(class_name)
    def _start(self, task: Any) -> Any:
        if self.label_noise and not isinstance(task.problem, Regression | MatrixProblem):
            raise Invalid(
                f"label_noise={self.label_noise:g} is added to numbers, the labels of a "
                f"regression, got {type(task.problem).__name__}; leave it out"
            )
        rate = float(self.scheme.clock.rate(task.start, 0))
        parts = jax.tree.leaves(task.start)
        least = min(FINEST * float(np.finfo(part.dtype).eps) for part in parts)
        if 0 < rate * self.weight_decay < least:
            raise Invalid(
                f"a step shrinks the parameters by learning_rate * "
                f"weight_decay = {rate * self.weight_decay:.2g}, which their precision cannot "
                f"resolve (it needs {least:.2g}); take larger steps or precision='double'"
            )
        return task.start

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        if self.scaled is not None:
            return jnp.float64(0.0)
        return zeros(parameters) if self._remembers else ()

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        gradient = oracle.gradient(parameters)
        if self.scaled is not None:
            rate = self._clock.rate(parameters, k)
            return plus(parameters, -rate, gradient), memory + rate
        if not self._remembers:
            return plus(parameters, -self.learning_rate, gradient), memory
        velocity = plus(gradient, self.momentum, memory)
        ahead = plus(gradient, self.momentum, velocity) if self.nesterov else velocity
        return plus(parameters, -self.learning_rate, ahead), velocity

    def _limit(self, smoothness: float, curvature: float) -> tuple[float, str] | None:
        if self.nesterov:
            return None
        words = "2 (1 + momentum)" if self.momentum else "2"
        bound = over(2 * (1 + self.momentum), smoothness + curvature + self.weight_decay)
        return bound, f"below {words}/(largest curvature of the objective)"


@dataclasses.dataclass(frozen=True, repr=False)
class Adam(Descent):
    """Adam (Kingma and Ba 2015); with weight_decay, which is decoupled, AdamW.

    The penalty's subgradient enters the moments like the gradient of the loss:

        P = grad L + H,     m <- b1 m + (1 - b1) P,     v <- b2 v + (1 - b2) P^2
        w <- w - learning_rate (m/(1 - b1^k)) / (sqrt(v/(1 - b2^k)) + epsilon)

    with b1, b2 = `mean_decay`, `square_decay`. `decoupled` takes the penalty out of the moments:
    w <- w - learning_rate (... + H), of which weight_decay is the special case H = rate * w.

    Parameters
    ----------
    learning_rate
        The length of a step along the direction of the method.
    mean_decay
        b1, the share of the mean that is kept.
    square_decay
        b2, the share of the mean square that is kept.
    epsilon
        Keeps the quotient finite. With 0, parameters whose squared gradients have all been 0 so
        far, or below float64, do not move.
    decoupled
        Takes the penalty out of the moments.
    weight_decay
        Decoupled: every step also subtracts learning_rate * weight_decay * parameters.
    check
        False also allows a learning rate beyond the bound of a quadratic loss.

    References
    ----------
    .. [1] Kingma and Ba (2015), Adam: A Method for Stochastic Optimization.
    .. [2] Loshchilov and Hutter (2019), Decoupled Weight Decay Regularization.

    Examples
    --------
    >>> import penchant
    >>> problem, net = penchant.problems.three_points("3b"), penchant.DiagonalNet(2, alpha=1.0)
    >>> method, stop = penchant.Adam(1e-2, weight_decay=0.1), penchant.Steps(100)
    >>> penchant.train(net, problem, method, stop=stop).steps
    100
    """

    mean_decay: float = 0.9
    square_decay: float = 0.999
    epsilon: float = 1e-8
    decoupled: bool = False
    checks: ClassVar[Checks] = {"mean_decay": share, "square_decay": share, "epsilon": not_negative}

    @property
    def scheme(self) -> Scheme:
        return super().scheme._replace(limit=self._limit, elementwise=True)

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        return zeros(parameters), zeros(parameters)

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        outside = self.decoupled and oracle.penalty is not None
        gradient = (oracle.loss_gradient if outside else oracle.gradient)(parameters)
        a, b = self.mean_decay, self.square_decay
        mean = jax.tree.map(lambda m, g: a * m + (1 - a) * g, memory[0], gradient)
        square = jax.tree.map(lambda v, g: b * v + (1 - b) * g * g, memory[1], gradient)
        # 1 - a^k without the cancellation of small k in float32
        count = (k + 1).astype(jax.tree.leaves(mean)[0].dtype)
        first, second = (-jnp.expm1(count * jnp.log(share)) for share in (a, b))

        def move(w: Any, m: Any, v: Any) -> Any:
            root = jnp.sqrt(v / second)
            bare = isinstance(self.epsilon, float) and self.epsilon == 0
            size = jnp.where(root > 0, root, jnp.inf) if bare else root + self.epsilon
            return w - self.learning_rate * (m / first) / size

        moved = jax.tree.map(move, parameters, mean, square)
        if outside:
            moved = plus(moved, -self.learning_rate, oracle.penalty.subgradient(parameters))
        return moved, (mean, square)

    def _limit(self, smoothness: float, curvature: float) -> tuple[float, str] | None:
        if not (self.decoupled and curvature):
            return None
        return 2 / curvature, "below 2/(curvature of the decoupled penalty)"
