"""The effective scale and tilt of a run on w+^2 - w-^2: what its steps have made of its start.

A step w+ <- w+ f+, w- <- w- f- with q = (f- - f+)/(f- + f+) adds log|f+ f-| to log|w+ w-| and
-2 artanh(q) to log|w+/w-|. For gradient steps of rate gamma with decay lambda,
q = 2 gamma g/(1 - gamma lambda) with g the gradient in beta, a combination of the samples; what
artanh(q) - q adds is the tilt, which is log|w+/w-| plus twice the sum of all q. So beta is the
least Q of this scale and tilt among all predictors with its outputs, at every step and exactly,
whatever batches were drawn.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacit.lazy import jnp
from tacit.models.diagonal import DiagonalNet
from tacit.problems.regression import Regression
from tacit.regularizers.q import Q
from tacit.solvers.interpolate import interpolate
from tacit.solvers.solution import Solution
from tacit.training.descent.method import Descent, Oracle
from tacit.training.descent.methods import SGD, GradientDescent
from tacit.training.path import Path
from tacit.training.task import Task

NEVER = 2**31 - 1


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class EffectiveScale(Descent):
    """A gradient method that also carries the tilt of its run on a diagonal net of depth 2.

    Its steps are those of the method. `effective_regularizer` and `predicted_endpoint` read off
    the path what they have made of the start.

    Parameters
    ----------
    method
        GradientDescent, or SGD without momentum; with batches and weight decay as it likes.

    Examples
    --------
    >>> import tacit
    >>> problem = tacit.sparse_regression(8, 20, sparsity=2)
    >>> method = tacit.EffectiveScale(tacit.SGD(0.01))
    >>> net, stop = tacit.DiagonalNet(2, alpha=0.1), tacit.Steps(20_000)
    >>> path = tacit.train(net, problem, method, batch=1, stop=stop)
    >>> foreseen = tacit.predicted_endpoint(path, problem)
    >>> bool(abs(foreseen.beta - path.predictor).max() < 1e-8)
    True
    """

    method: Descent

    def __init__(self, method: Descent) -> None:
        has_scale("EffectiveScale", method)
        for name in ("learning_rate", "weight_decay", "check"):
            object.__setattr__(self, name, getattr(method, name))
        object.__setattr__(self, "method", method)

    def __repr__(self) -> str:
        return f"EffectiveScale({self.method!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EffectiveScale) and other.method == self.method

    def __hash__(self) -> int:
        return hash((EffectiveScale, self.method))

    penalties = "none"

    def refuse(self, task: Task) -> None:
        has_scale("EffectiveScale", self.method, getattr(task, "model", None))
        self.method.refuse(task)

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        """That of the method; the step at which |q| came to 1 first; and the sum of q."""
        d = len(parameters) // 2
        return self.method.memory(oracle, parameters), jnp.full(d, NEVER), jnp.zeros(d)

    def prepared(self, parameters: Any) -> Any:
        return self.method.prepared(parameters)

    def rate(self, parameters: Any) -> Any:
        return self.method.rate(parameters)

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        inner, turned, total = memory
        moved, inner = self.method.step(oracle, parameters, inner, k)
        plus = parameters[: len(total)]
        q = (plus - moved[: len(total)]) / plus / (1 - self.rate(parameters) * self.weight_decay)
        ended = total + q
        large = jnp.abs(ended - total) >= 1  # |q| again, without dividing twice
        turned = jnp.where(large & (turned == NEVER), k.astype(turned.dtype), turned)
        return moved, (inner, turned, ended)

    def note(self, memory: Any) -> str:
        coordinate = int(memory[1].argmin())
        step = int(memory[1][coordinate])
        if step == NEVER:
            return ""
        return (
            f"; 2 learning_rate |gradient| came to 1 in coordinate {coordinate} at step {step}, "
            "where a weight changes its sign: take a smaller learning rate"
        )

    @property
    def label_noise(self) -> float:
        return self.method.label_noise

    @property
    def steady(self) -> bool:
        return self.method.steady

    @property
    def timed(self) -> bool:
        return self.method.timed

    def log_time(self, memory: Any, k: int) -> float:
        return self.method.log_time(memory[0], k)

    def limit(self, smoothness: float, curvature: float) -> tuple[float, str] | None:
        return self.method.limit(smoothness, curvature)

    def describe(self) -> dict[str, Any]:
        return {"method": "EffectiveScale", "of": self.method.describe()}

    def numbers(self) -> dict[str, float]:
        return self.method.numbers()

    def kind(self) -> tuple[Any, ...]:
        return EffectiveScale, self.method.kind()

    def with_numbers(self, numbers: dict[str, Any]) -> EffectiveScale:
        copy = object.__new__(EffectiveScale)
        copy.__dict__.update(self.__dict__ | numbers)
        copy.__dict__["method"] = self.method.with_numbers(numbers)
        return copy


def has_scale(who: str, method: Any, *models: Any) -> None:
    """Raises unless the law of the effective scale holds for the method, on the model if given."""
    plain = isinstance(method, GradientDescent) or (isinstance(method, SGD) and not method.momentum)
    if not plain:
        raise ValueError(
            f"{who}: the law holds for gradient steps, GradientDescent or SGD without momentum, "
            f"got {method!r}"
        )
    for model in models:
        if not (isinstance(model, DiagonalNet) and model.depth == 2 and model.signed):
            raise ValueError(f"{who}: needs w+^2 - w-^2, DiagonalNet(depth=2), got {model!r}")


def effective_regularizer(path: Path) -> Q:
    """The Q whose least value, among all predictors with the outputs of the run, is at its end.

    Parameters
    ----------
    path
        The path of a run by EffectiveScale(method).

    Returns
    -------
    Q
        Of depth 2, with the effective scale as its shape, and with the tilt of the steps.

    Examples
    --------
    >>> import tacit
    >>> problem, net = tacit.sparse_regression(8, 20, sparsity=2), tacit.DiagonalNet(2, alpha=0.1)
    >>> method = tacit.EffectiveScale(tacit.GradientDescent(0.01))
    >>> path = tacit.train(net, problem, method, stop=tacit.Steps(1000))
    >>> bool(tacit.effective_regularizer(path).shape.max() < 0.1)
    True
    """
    if '"method": "EffectiveScale"' not in path.dataset.attrs.get("description", ""):
        raise ValueError("effective_regularizer: train by EffectiveScale(method) for such a path")
    if path.memory is None:
        raise ValueError("effective_regularizer: the run diverged; take a smaller learning rate")
    plus, minus = np.split(np.abs(np.asarray(path.parameters)), 2)
    tilt = np.log(plus / minus) + 2 * np.asarray(path.memory[-1])
    return Q(2, alpha=1.0, shape=np.sqrt(plus * minus), tilt=tilt)


def predicted_endpoint(path: Path, problem: Regression) -> Solution:
    """What the effective scale and tilt of a run select among the predictors that fit.

    Parameters
    ----------
    path
        The path of a run by EffectiveScale(method).
    problem
        The regression it was trained on; where training has not fitted it, one with the outputs
        of the run as labels.

    Returns
    -------
    Solution
        The minimiser with its certificate; its distance to `path.predictor` is the check.

    Examples
    --------
    >>> import tacit
    >>> problem, net = tacit.sparse_regression(8, 20, sparsity=2), tacit.DiagonalNet(2, alpha=0.1)
    >>> method, stop = tacit.EffectiveScale(tacit.GradientDescent(0.01)), tacit.Steps(20_000)
    >>> path = tacit.train(net, problem, method, stop=stop)
    >>> bool(abs(tacit.predicted_endpoint(path, problem).beta - path.predictor).max() < 1e-8)
    True
    """
    return interpolate(problem, effective_regularizer(path))
