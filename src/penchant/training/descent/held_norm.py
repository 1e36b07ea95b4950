"""Descent with the norm of the parameters held at a given size, or at many sizes at once."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, one_of, positive
from penchant.door import Invalid, door, door_as
from penchant.lazy import jax, jnp
from penchant.models.model import Model
from penchant.precision import double_precision
from penchant.problems.classification import Classification
from penchant.records import Checks, Kind, Outcome, Record
from penchant.training.descent.clock import VariableClock
from penchant.training.descent.method import Descent, Oracle, Scheme, no_decay
from penchant.training.samples import SampleLoss, SampleTask
from penchant.training.task import Task

Projection = Callable[[Any, Any], Any]


def onto_l2_sphere(point: Any, size: Any) -> Any:
    """The nearest a with |a|_2 = size; nan for the origin, where no point is nearest."""
    return point * (size / jnp.linalg.norm(point))


def onto_l1_ball(point: Any, size: Any) -> Any:
    """The nearest a with |a|_1 <= size: the entries shrunk by one threshold.

    The threshold makes the entries that survive it sum to `size`; they are the largest ones, so
    sorting finds them (Duchi, Shalev-Shwartz, Singer and Chandra 2008).
    """
    entries = jnp.abs(point)
    falling = jnp.sort(entries)[::-1]
    surplus = jnp.cumsum(falling) - size
    survivors = jnp.sum(falling * jnp.arange(1, point.size + 1) > surplus)
    threshold = jnp.maximum(surplus[survivors - 1] / survivors, 0.0)
    return jnp.sign(point) * jnp.maximum(entries - threshold, 0.0)


def onto_l1_sphere(point: Any, size: Any) -> Any:
    """A nearest a with |a|_1 = size; from inside, every entry grows by the same amount.

    |a_i - p_i| is at least ||a_i| - |p_i||, and these sum to size - |p|_1 or more, so that equal
    shares have the least sum of squares. A zero may grow either way; here it grows upwards.
    """
    missing = jnp.maximum(size - jnp.abs(point).sum(), 0.0) / point.size
    return onto_l1_ball(point, size) + jnp.where(point < 0, -missing, missing)


SPHERES: dict[str, Projection] = {"l1": onto_l1_sphere, "l2": onto_l2_sphere}


def length(norm: str, point: Any) -> Any:
    return abs(point).sum() if norm == "l1" else (point**2).sum() ** 0.5


class TriedClock(VariableClock):
    """Training time as the number of steps tried."""

    def time(self, memory: Any, k: int) -> float:
        return float(k)

    def log_time(self, memory: Any, k: int) -> float:
        return float(np.log(k)) if k else -np.inf


GROWTH, SHRINK = 1.3, 0.5  # of the step, after one that was taken and one that was not
STRIDE = 0.1  # the longest step over |w|_2: a longer one can end where all units are dead


@dataclasses.dataclass(frozen=True, repr=False)
class HeldNorm(Descent):
    """Projected descent on the sphere |w| = size, in the norm "l2" or "l1", from the start
    stretched to `size`.

    The new point minimises <G, d> + |d|^2/(2 rate) over the moves d that keep the norm, G being
    the gradient. It is taken if the loss changes by no more than that number, which d = 0 bounds
    by zero, so that the loss never rises; otherwise the rate is halved and tried again, and after
    a step that was taken it grows by 1.3. `learning_rate` is the first one tried. Since the rates
    differ, t counts the steps tried. No step moves by more than a tenth of |w|_2 before it is
    projected.

    Parameters
    ----------
    learning_rate
        The first length that is tried.
    weight_decay
        Must be 0: this method has none.
    check
        False also allows a learning rate beyond the bound of a quadratic loss.
    size
        The norm that is held.
    norm
        "l2" or "l1".

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    >>> net, stop = penchant.models.LinearPredictor(1.0), penchant.Steps(100)
    >>> path = penchant.train(net, problem, penchant.methods.HeldNorm(size=2.0), stop=stop)
    >>> round(float((path.parameters**2).sum()), 6)
    4.0
    """

    learning_rate: float = 1.0
    size: float = dataclasses.field(default=1.0, kw_only=True)
    norm: str = dataclasses.field(default="l2", kw_only=True)
    checks: ClassVar[Checks] = {
        "norm": functools.partial(one_of, known=SPHERES),
        "size": positive,
        "weight_decay": no_decay,
    }

    @property
    def scheme(self) -> Scheme:
        clock = TriedClock(self.learning_rate)
        start = self._start
        return super().scheme._replace(clock=clock, start=start, penalties="none", batches=False)

    def _start(self, task: Task) -> Array:
        return self.stretched(task.start)

    def stretched(self, parameters: Any) -> Array:
        """The parameters times the number that brings their norm to `size`."""
        if not isinstance(parameters, np.ndarray):
            raise ValueError(
                f"HeldNorm: needs flat parameters, got a {type(parameters).__name__} of arrays; "
                "wrap the net as a FunctionModel"
            )
        own = float(length(self.norm, parameters))
        if own == 0:
            raise ValueError(
                "HeldNorm: the start must not be zero, it has no direction to stretch to norm "
                f"{self.size:g}; give the model a start such as LinearPredictor(1.0)"
            )
        return np.asarray(parameters * (self.size / own))

    def memory(self, oracle: Oracle, parameters: Any) -> Any:
        rate = jnp.asarray(self.learning_rate, jnp.float64)
        return oracle.value(parameters), oracle.loss_gradient(parameters), rate

    def step(self, oracle: Oracle, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        value, gradient, rate = memory
        longest = STRIDE * jnp.linalg.norm(parameters) / jnp.linalg.norm(gradient)  # inf at rest
        rate = jnp.minimum(rate, longest)
        point = SPHERES[self.norm](parameters - rate * gradient, self.size)
        move = point - parameters
        fall = gradient @ move + move @ move / (2 * rate)
        after = oracle.value(point)
        good = after <= value + fall  # false for a nan
        taken = point, (after, oracle.loss_gradient(point), GROWTH * rate)
        rejected = parameters, (value, gradient, SHRINK * rate)
        moved: tuple[Any, Any] = jax.tree.map(lambda a, b: jnp.where(good, a, b), taken, rejected)
        return moved


WHO = "held_sweep"
LABELS = {
    "size": "held norm of the parameters",
    "loss": "training loss at the end, over that of the zero predictor",
    "fall": "fall of the loss in the second half of the steps",
    "parameters": "parameters at the end",
}


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class HeldSweep(Record):
    """Where descent at each held size ended.

    The outcome of a size is solved if its fall is at most the tolerance, and budget spent if more
    steps would matter.

    Attributes
    ----------
    norm
        "l2" or "l1".
    sizes
        The norms that were held.
    loss
        The loss at the end, over that of the zero predictor (over 1 on a Classification).
    fall
        The fall of the loss in the second half of the steps, in the same unit.
    parameters
        Where descent ended, a row per size.
    outcomes
        How the run of each size ended.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    >>> model = penchant.models.LinearPredictor(1.0)
    >>> sweep = penchant.methods.held_sweep(model, problem, [1.0, 2.0], steps=100)
    >>> sweep.parameters.shape
    (2, 8)
    """

    norm: str
    sizes: Array
    loss: Array
    fall: Array
    parameters: Array
    outcomes: tuple[Outcome, ...] = dataclasses.field(repr=False)

    @property
    def ok(self) -> bool:
        return all(outcome.ok for outcome in self.outcomes)

    @property
    def dataset(self) -> Any:
        import xarray

        variables: Any = {"loss": ("size", self.loss), "fall": ("size", self.fall)}
        variables["parameters"] = ("size", "parameter"), self.parameters
        dataset = xarray.Dataset(variables, {"size": self.sizes}, {"norm": self.norm})
        for name, variable in dataset.variables.items():
            variable.attrs = {"units": "1", "long_name": LABELS[str(name)]}
        return dataset


@door
def held_sweep(
    model: Model,
    problem: Any,
    sizes: ArrayLike,
    norm: str = "l2",
    learning_rate: float = 1.0,
    steps: int = 2000,
    start: ArrayLike | None = None,
    tolerance: float = 1e-4,
) -> HeldSweep:
    """Where `HeldNorm` with these settings ends, for all `sizes` in one compiled run.

    Parameters
    ----------
    model
        The model.
    problem
        A Regression, a Classification or a matrix problem.
    sizes
        The norms to hold, a run each.
    norm
        "l2" or "l1".
    learning_rate
        The first length that is tried.
    steps
        The number of steps.
    start
        Replaces the model's start, stretched to each size; a table has one row per size.
    tolerance
        The largest fall of the loss that counts as converged.

    Returns
    -------
    HeldSweep
        Where descent ended, for every size.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(5, 8, sparsity=1)
    >>> model = penchant.models.LinearPredictor(1.0)
    >>> sweep = penchant.methods.held_sweep(model, problem, [0.5, 1.0], steps=200)
    >>> sweep.loss.shape
    (2,)
    """
    task = SampleTask(model, problem)
    task.refuse_overflow()
    one_of("norm", norm, SPHERES)
    norms = finite_array("sizes", sizes, ndim=1)
    if norms.min() <= 0:
        raise Invalid(f"sizes must be > 0, got {norms.min():g}")
    rate = positive("learning_rate", learning_rate)
    steps = integer("steps", steps, least=2)
    begins = _starts(task.start, start, norm, norms)
    with double_precision():
        run = _compiled(task.objective, norm)
        ends = run(task.data, norms, begins, rate, steps // 2, steps)
    parameters, loss, halfway = (np.asarray(part) for part in ends)
    scale = 1.0 if isinstance(problem, Classification) else float(np.exp(task.log_unit()))
    loss, fall = loss / scale, (halfway - loss) / scale
    outcomes = tuple(_outcome(*pair, tolerance) for pair in zip(loss, fall, strict=True))
    return HeldSweep(norm, norms, loss, fall, parameters, outcomes)


@door_as(WHO)
def _starts(own: Array, start: ArrayLike | None, norm: str, sizes: Array) -> Array:
    given, shape = own if start is None else np.asarray(start), (len(sizes), own.size)
    if given.shape not in (shape, shape[1:]):
        raise Invalid(
            f"start must have {shape[1]} parameters, or a row of them for each of the "
            f"{shape[0]} sizes, got shape {given.shape}"
        )
    rows = finite_array("start", np.broadcast_to(given, shape), ndim=2)
    pairs = zip(rows, sizes, strict=True)
    return np.array([HeldNorm(size=size, norm=norm).stretched(row) for row, size in pairs])


def _outcome(loss: float, fall: float, tolerance: float) -> Outcome:
    if not np.isfinite(loss):
        return Outcome(Kind.DIVERGED, f"the loss of the start is {loss}; take a smaller size")
    if fall <= tolerance:
        return Outcome(Kind.SOLVED, f"loss {loss:.3g}, at rest")
    sentence = f"loss {loss:.3g} fell by {fall:.2g} in the second half of the steps; raise steps"
    return Outcome(Kind.BUDGET_SPENT, sentence)


@functools.lru_cache(maxsize=32)
def _compiled(objective: SampleLoss, norm: str) -> Callable[..., Any]:
    """(data, sizes, starts, rate, half, steps) -> parameters, loss, loss at half, for each size."""

    def descend(data: Any, size: Any, start: Any, rate: Any, half: Any, steps: Any) -> Any:
        oracle = Oracle(objective, data, None, None)
        method = HeldNorm(norm=norm).with_numbers({"size": size, "learning_rate": rate})

        def advance(k: Any, state: Any) -> Any:
            return method.step(oracle, state[0], state[1], k)

        middle = jax.lax.fori_loop(0, half, advance, (start, method.memory(oracle, start)))
        end = jax.lax.fori_loop(half, steps, advance, middle)
        return end[0], end[1][0], middle[1][0]

    return jax.jit(jax.vmap(descend, in_axes=(None, 0, 0, None, None, None)))
