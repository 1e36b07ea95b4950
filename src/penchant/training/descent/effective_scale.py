"""The effective scale and tilt of a run on a separable model: how its steps changed its start.

How it works (docs/theory section 29). A flow carries every coordinate along the gradient line
w'(s) = grad F(w) of its map, with the dual s as its time. A run of finite steps leaves the line of
its start. But the sum s of its gradients in beta, each times its rate, is a combination of the
samples, and the line through its last parameters, followed back by s, gives an effective start: a
flow from there reaches the same parameters. So beta exactly minimises the regularizer of that start
among all predictors with its outputs, at every step, for any batches and any momentum.

For w+^D - w-^D the effective start is a scale and a tilt: with a = w^(2-D) (log w for D = 2), a
flow moves a+ and a- by opposite amounts. Half their sum is the scale, half their difference is s
and the tilt.

Steps of signs move every weight by +-rate: they stay on the lines of the geometry Linf(), which are
straight, until a weight comes to zero. So they never change the start, and grad R(beta) is the sum
s of -rate * sign(dL/dbeta). But s is no combination of the samples, and beta minimises R among the
predictors with the same <s, beta> alone.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from penchant.arguments import Array, entries, finite_array, integer, plain_array, real
from penchant.door import Invalid, door
from penchant.lazy import jnp
from penchant.models.diagonal import DiagonalNet
from penchant.models.linear import LinearPredictor
from penchant.models.reparametrized import Reparametrized
from penchant.regularizers.derive.derived import Derived, power_of
from penchant.regularizers.derive.reparametrization import Reparametrization, Starts
from penchant.regularizers.norms import Linf
from penchant.regularizers.q import Q
from penchant.training.descent.method import Observer, Oracle, Scheme
from penchant.training.descent.methods import Adam, GradientDescent
from penchant.training.descent.scheduled import Scheduled
from penchant.training.descent.steepest import SignDescent
from penchant.training.path import Path
from penchant.training.task import Task

WHO = "effective_regularizer"
NEVER = 2**31 - 1
PRECISE = 1e-13  # relative error of a line that is followed back
ENDS = "from there on the law of sign descent does not hold"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class EffectiveScale(Observer):
    """A gradient method that also records the dual of its run on a separable model.

    Its steps are those of the method. `effective_regularizer` uses the path to compute how
    these steps have changed the start.

    Parameters
    ----------
    method
        GradientDescent, with any batches, momentum and weight decay. For heavy-ball
        momentum, the change of the start is a function of learning_rate (1 + momentum) /
        (1 - momentum)^2, to second order in 1 - momentum; what the path holds is exact.
        Or steps of signs: SignDescent without momentum and decay, and Adam with mean_decay,
        square_decay and epsilon 0. What they follow is the regularizer of the geometry Linf(), with
        the dual as its gradient, until a weight changes its sign.

    References
    ----------
    .. [1] Even et al. (2023), (S)GD over Diagonal Linear Networks: Implicit Regularisation, Large
       Stepsizes and Edge of Stability.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(8, 20, sparsity=2)
    >>> method = penchant.methods.EffectiveScale(penchant.GradientDescent(0.01))
    >>> net, stop = penchant.DiagonalNet(2, alpha=0.1), penchant.Steps(20_000)
    >>> path = penchant.train(net, problem, method, batch=1, stop=stop)
    >>> own = penchant.forecasts.effective_regularizer(path)
    >>> predicted = penchant.interpolate(problem, own)
    >>> bool(abs(predicted.beta - path.predictor).max() < 1e-8)
    True
    """

    def __post_init__(self) -> None:
        if not isinstance(self.plain, GradientDescent) and not self.signs:
            raise ValueError(
                "EffectiveScale: the law holds for steps along gradients, GradientDescent, and for"
                " those along signs, SignDescent without momentum and decay or Adam with"
                f" mean_decay, square_decay, epsilon and decay 0, got {self.method!r}"
            )

    @property
    def plain(self) -> Any:
        """The method without its schedule."""
        return self.method.method if isinstance(self.method, Scheduled) else self.method

    @property
    def signs(self) -> bool:
        """Whether every step goes along the signs of the gradient alone."""
        plain = self.plain
        if isinstance(plain, SignDescent):
            return plain.normalized and not (plain.momentum or plain.weight_decay)
        kept = ("mean_decay", "square_decay", "epsilon", "weight_decay")
        return isinstance(plain, Adam) and not any(getattr(plain, name) for name in kept)

    @property
    def scheme(self) -> Scheme:
        return super().scheme._replace(start=self._start, penalties="none")

    def _start(self, task: Task) -> Any:
        model = getattr(task, "model", None)
        diagonal = isinstance(model, DiagonalNet) and model.signed
        if not diagonal and not isinstance(model, Reparametrized):
            raise ValueError(
                "EffectiveScale: needs a signed DiagonalNet or a Reparametrized model, whose"
                f" coordinates have their own parameters, got {model!r}"
            )
        return self.method.scheme.start(task)

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        """The memory of the method, the step at which each weight changes sign, and the dual."""
        model: Any = oracle.objective.model  # type: ignore[attr-defined]
        dual = jnp.zeros_like(model.table(parameters)[0])
        turned = jnp.full(len(parameters), NEVER, "int32")
        return self.method.scheme.memory(oracle, parameters), turned, dual

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        inner, turned, dual = memory
        method = self.method.scheme
        moved, inner = method.step(oracle, parameters, inner, k)
        objective: Any = oracle.objective
        model, linear = objective.model, dataclasses.replace(objective, model=LinearPredictor())
        beta = Oracle(linear, oracle.data, oracle.share, None)
        g = beta.loss_gradient(model.predictor(parameters))  # the step has computed it already
        rate = method.clock.rate(parameters, k)
        left = 1 - rate * method.weight_decay * method.decay_factor(k)
        if self.signs:
            g = jnp.sign(g)
        else:
            rate = rate / (left * (1 - self.plain.momentum))
        shrink = left ** (2 - (model.homogeneity or 2))
        late = jnp.minimum(turned, k.astype(turned.dtype))
        turned = jnp.where(moved * parameters < 0, late, turned)
        return moved, (inner, turned, (dual - rate * g) * shrink)

    def note(self, memory: Any) -> str:
        index = int(memory[1].argmin())
        step, coordinate = int(memory[1][index]), index % len(memory[2])
        if step == NEVER:
            return ""
        if self.signs:
            return f"; a weight of coordinate {coordinate} changed its sign at step {step}: {ENDS}"
        return (
            f"; a weight of coordinate {coordinate} changed its sign at step {step}, where"
            " 2 learning_rate |gradient| of a net of depth 2 comes to 1: take a smaller learning"
            " rate"
        )


@door
def effective_regularizer(path: Path, model: Reparametrized | None = None) -> Q | Derived:
    """The regularizer that the end of a run minimises among all predictors with its outputs.

    After steps of signs it is the potential whose gradient at the end is the dual of the run,
    path.memory[-1], and the end minimises it among the predictors b with the same <dual, b>.

    Where training has fitted a regression, `interpolate(problem, effective_regularizer(path))` is
    the end of the run; elsewhere the labels are its last outputs,
    `Regression(X, X @ path.predictor)`.

    Parameters
    ----------
    path
        The path of a run by EffectiveScale(method).
    model
        The Reparametrized model that was trained; a DiagonalNet is taken from the path.

    Returns
    -------
    Q or Derived
        Q with the effective scale as its shape and with the tilt of the steps; for other maps
        what `derive` makes of the effective start of each coordinate.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(8, 20, sparsity=2)
    >>> net = penchant.DiagonalNet(2, alpha=0.1)
    >>> method = penchant.methods.EffectiveScale(penchant.GradientDescent(0.01))
    >>> path = penchant.train(net, problem, method, stop=penchant.Steps(1000))
    >>> bool(penchant.forecasts.effective_regularizer(path).shape.max() < 0.1)
    True
    """
    description = json.loads(path.dataset.attrs.get("description", "{}"))
    seen = description.get("method", {}).get("is", "no method")
    if seen != "EffectiveScale":
        raise ValueError(f"{WHO}: the path must be one of EffectiveScale(method), got {seen}")
    if path.memory is None:
        raise ValueError(f"{WHO}: the run diverged; take a smaller learning rate")
    parameters, dual = np.asarray(path.parameters), np.asarray(path.memory[-1])
    signs = _inner(description["method"])["is"] != "GradientDescent"
    net = description["model"]
    if signs:
        _must_keep_signs(path)
        if net["is"] == "DiagonalNet":
            model = Reparametrized(power_map(net["depth"]), start=1.0)
    elif net["is"] == "DiagonalNet":
        plus, minus = np.split(parameters, 2)
        return tilted_q(description["model"]["depth"], plus, minus, dual)
    if not isinstance(model, Reparametrized):
        raise ValueError(f"{WHO}: the path holds no map; give the model that was trained, model=")
    if signs:
        start = parameters - (dual * np.sign(model.slopes(parameters))).ravel()
        return start_regularizer(model, start, geometry=Linf())
    return start_regularizer(model, followed_back(model, parameters, dual))


@door
def tilted_q(depth: int, plus: ArrayLike, minus: ArrayLike, dual: ArrayLike = 0.0) -> Q:
    """Q of the start from which a flow over the dual `dual` ends at these weights.

    Parameters
    ----------
    depth
        The depth of the diagonal net.
    plus
        The weights whose powers are added, one per feature.
    minus
        The weights whose powers are subtracted.
    dual
        X^T times the integral of the residuals over the flow; 0 where the weights are the start.

    Returns
    -------
    Q
        With the shape of the start and the tilt that unequal weights give it.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> q = penchant.forecasts.tilted_q(2, plus=np.array([0.1, 0.1]), minus=np.array([0.1, 0.2]))
    >>> q.tilt.round(4)
    array([ 0.    , -0.6931])
    """
    depth = integer("depth", depth, least=2)
    plus = finite_array("plus", plus, ndim=1)
    minus = entries("minus", minus, len(plus), "as many entries as plus")
    if plain_array("dual", dual).shape == ():
        dual = real("dual", dual)
    else:
        dual = entries("dual", dual, len(plus), "as many entries as plus")
    flipped = np.flatnonzero((plus <= 0) | (minus <= 0))
    if len(flipped) and depth % 2:
        raise ValueError(
            f"{WHO}: a step changed the sign of a weight of coordinate {flipped[0]}, and at the odd"
            f" depth {depth} no flow does that; take a smaller learning rate"
        )
    for name, weights in (("plus", plus), ("minus", minus)):
        if not weights.all():
            raise Invalid(f"{name} must have no zero entries")
    plus, minus = np.abs(plus), np.abs(minus)
    if depth == 2:
        return Q(2, alpha=1.0, shape=np.sqrt(plus * minus), tilt=np.log(plus / minus) - 4 * dual)
    high, low = plus ** (2.0 - depth), minus ** (2.0 - depth)
    shape, rise = ((high + low) / 2) ** (1 / (2 - depth)), depth * (depth - 2)
    return Q(depth, alpha=1.0, shape=shape, tilt=(low - high) / 2 - rise * dual)


def followed_back(model: Reparametrized, parameters: Array, dual: Array) -> Array:
    """The parameters from which a flow over the dual `dual` ends at `parameters`."""

    def line(_: float, w: Array) -> Array:
        return (-dual * model.slopes(w)).ravel()

    with np.errstate(all="ignore"):
        walked = solve_ivp(line, (0, 1), parameters, "DOP853", rtol=PRECISE, atol=0)
    if not walked.success:
        raise ValueError(
            f"{WHO}: no flow of this map ends where the run stands ({walked.message}); take a"
            " smaller learning rate"
        )
    return walked.y[:, -1]


def _inner(method: dict[str, Any]) -> dict[str, Any]:
    """The description of the method itself, without what is wrapped around it."""
    return _inner(method["method"]) if "method" in method else method


def _must_keep_signs(path: Path) -> None:
    step = int(np.min(path.memory[-2]))  # type: ignore[index]
    if step != NEVER:
        raise ValueError(
            f"{WHO}: a weight changed its sign at step {step}: {ENDS}; stop before that step, or"
            " start at a larger scale"
        )


@functools.cache
def power_map(depth: int) -> Callable[[Any], Any]:
    """w^depth, one function for each depth, so that it is compiled once."""
    return lambda w: w**depth


@door
def start_regularizer(
    model: Reparametrized, parameters: ArrayLike, geometry: Any = None
) -> Derived:
    """The regularizer that a flow of the model from these parameters minimises.

    Parameters
    ----------
    model
        The model; its own start does not matter.
    parameters
        The flat parameters that the flow starts from.
    geometry
        The norm in which the flow is steepest, as in `derive`; L2() by default.

    Returns
    -------
    Derived
        The regularizer.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> model = penchant.models.Reparametrized(lambda w: w**2, start=1.0)
    >>> R = penchant.forecasts.start_regularizer(model, np.full(4, 0.1))  # two features
    >>> round(R([1.0, 2.0]) / penchant.Q(2, alpha=0.1)([1.0, 2.0]), 6)
    1.0
    """
    if not isinstance(model, Reparametrized):
        raise Invalid(f"model must be a Reparametrized, got {type(model).__name__}")
    parameters = finite_array("parameters", parameters, ndim=1)
    if len(parameters) % model.copies:
        rule = f"parameters must hold {model.copies} for every feature"
        raise Invalid(f"{rule}, got {len(parameters)}")
    plus, *minus = (points for _, points in model.halves(parameters))
    line = model.line
    if power_of(geometry) != line.power:
        line = Reparametrization(model.map, power_of(geometry))
    return Derived(line, Starts(plus, minus[0] if minus else None, len(plus)))
