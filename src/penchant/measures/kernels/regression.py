"""Regression with the frozen tangent kernel of any function, with one output or several."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, one_of, plain_array, positive, real
from penchant.door import Invalid, door, door_as
from penchant.measures.kernels.blocks import Gradients, blocked_kernel
from penchant.measures.kernels.infinite import InfiniteKernel
from penchant.measures.kernels.tangent import (
    MEMORY,
    OUTPUTS,
    alike,
    arguments,
    gradients_of,
    samples,
)
from penchant.models.model import Model
from penchant.records import Kind, Outcome, Record

FITS = 1e-6  # data count as fitted up to this misfit relative to the largest target
WHO = "kernel_regression"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class KernelRegression(Record):
    """f(w, x) + K(x, x_n) dual: the model linearised at `parameters` w, fitted to the targets.

    Attributes
    ----------
    dual
        A row per sample and a column per output.
    residual
        The worst misfit relative to the largest target.
    rank
        The number of eigenvalues of the kernel above rounding, out of `size`.
    size
        The number of equations.
    ridge
        The ridge.
    outputs
        "full" or "mean".
    outcome
        How the computation ended, in a sentence.
    time
        The time of the flow on the sum of squares, infinite at its end; see `at`.
    x
        The samples.
    gradients
        The gradients of the model at the samples.
    memory
        The bytes that a kernel may take.
    system
        The equations in the eigenvectors of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> def f(w, x):
    ...     return x @ w**2
    >>> w, y = np.array([1.0, 1.0]), np.array([2.0, 3.0])
    >>> fit = penchant.measures.kernel_regression(f, w, np.eye(2), y)
    >>> fit.predict(np.array([[1.0, 1.0]])).round(4)
    array([5.])
    >>> fit.at(0.0).predict(np.array([[1.0, 1.0]])).round(4)
    array([2.])
    """

    dual: Array
    residual: float
    rank: int
    size: int
    ridge: float
    outputs: str
    outcome: Outcome
    time: float
    x: Any = dataclasses.field(repr=False)
    gradients: Gradients | InfiniteKernel = dataclasses.field(repr=False)
    memory: float = dataclasses.field(repr=False)
    system: System = dataclasses.field(repr=False)

    @door_as(WHO)
    def at(self, time: float) -> KernelRegression:
        """The linearised model after a time of gradient flow on the sum of squares, from 0 on.

        f_t(x) = f(x) + K(x, x_n) K^-1 (1 - e^(-2 K t)) (y - f(x_n)) is exact at any time. If the
        loss is a mean over n numbers, a step with learning rate r takes the time r / n. A ridge is
        part of the loss.
        """
        if not (time == math.inf or real("time", time) >= 0):
            raise Invalid(f"time must be >= 0, got {time}")
        dual, misfit = self.system.solved(self.ridge, float(time))
        outcome, shape = _outcome(misfit, self.ridge, time), self.dual.shape
        return dataclasses.replace(
            self, dual=dual.reshape(shape), residual=misfit, outcome=outcome, time=float(time)
        )

    @door_as(WHO)
    def predict(self, x: ArrayLike) -> Array:
        """The outputs for every row of `x`, one column per output (flat if there is one)."""
        model: Any = getattr(self.gradients, "model", None)
        named = getattr(model, "named_inputs", None)
        rows = alike(self.x, samples("x", x, model))
        step = max(1, int(self.memory / 4 // (8 * self.size * self.dual.shape[1])))
        parts = [self._predict(rows[at : at + step]) for at in range(0, len(rows), step)]
        if named is not None:
            model.named_inputs = named  # remove the rows of this call
        predictions = np.concatenate(parts)
        return predictions[:, 0] if predictions.shape[1] == 1 else predictions

    def _predict(self, x: Any) -> Array:
        full = self.outputs == "full"
        K = blocked_kernel(self.gradients, x, self.x, full, self.memory)
        return self.gradients.values(x) + np.tensordot(K, self.dual, axes=2 if full else 1)


@door
def kernel_regression(
    model: Model | Callable[[Any, Any], Any],
    parameters: Any = None,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    ridge: float = 0.0,
    outputs: str = "full",
    memory: float = MEMORY,
) -> KernelRegression:
    """The predictor f(x) + <grad f(x), h> with the shortest h that fits y_n at every x_n.

    Gradient descent on the squared loss takes the model linearised at `parameters` there; `at(t)`
    is its gradient flow at time t, in closed form. Targets that no h fits are fitted in the
    least-squares sense, and the outcome says so. The computation is in double precision.

    Parameters
    ----------
    model
        As in `tangent_kernel`. A torch.nn.Module brings its own parameters, and an InfiniteKernel
        has none: kernel_regression(module, x, y).
    parameters
        The parameters.
    x
        The samples.
    y
        One number per sample, or a row of C.
    ridge
        With a number above 0, h minimises the sum of squares plus ridge |h|^2.
    outputs
        "full" couples the outputs as the model does, in a system of N C equations; "mean" gives
        all of them the mean kernel, as in the limit of wide nets.
    memory
        The bytes that the computation may use.

    Returns
    -------
    KernelRegression
        The predictor; see its `predict`.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> def f(w, x):
    ...     return x @ w**2
    >>> w, y = np.array([1.0, 1.0]), np.array([2.0, 3.0])
    >>> fit = penchant.measures.kernel_regression(f, w, np.eye(2), y)
    >>> fit.rank, fit.residual < 1e-9
    (2, True)
    """
    model, parameters, x, y = arguments("double", model, parameters, x, y, least=2)
    rows = samples("x", x, model)
    raw = plain_array("y", y)
    given = finite_array("y", raw, ndim=1 if raw.ndim < 2 else 2)
    targets = given.reshape(len(given), -1)
    memory = positive("memory", memory)
    if real("ridge", ridge) < 0:
        raise Invalid(f"ridge must not be negative, got {ridge}")
    one_of("outputs", outputs, OUTPUTS)
    gradients: Gradients | InfiniteKernel
    if isinstance(model, InfiniteKernel):
        gradients = model
    else:
        gradients = gradients_of(model, parameters, rows, outputs, "double")
    predictions = gradients.values(rows)
    if predictions.shape != targets.shape:
        raise Invalid(
            f"y must have the shape of the outputs, {predictions.shape}, got {targets.shape}"
        )
    goal = targets - predictions
    full = outputs == "full"
    K = blocked_kernel(gradients, rows, None, full, memory)
    flat = goal.reshape(-1, 1) if full else goal
    square = K.reshape(len(flat), len(flat))
    system = _system(square, flat, float(max(np.abs(targets).max(), np.abs(goal).max())) or 1.0)
    dual, misfit = system.solved(ridge, math.inf)
    return KernelRegression(
        dual=dual.reshape(goal.shape),
        residual=misfit,
        rank=len(system.values),
        size=len(flat),
        ridge=ridge,
        outputs=outputs,
        outcome=_outcome(misfit, ridge, math.inf),
        time=math.inf,
        x=rows,
        gradients=gradients,
        memory=memory,
        system=system,
    )


class System(NamedTuple):
    """The equations K dual = goal in the eigenvectors of K whose eigenvalues exceed rounding."""

    values: Array
    vectors: Array
    goal: Array
    size: float  # of the targets

    def solved(self, ridge: float, time: float) -> tuple[Array, float]:
        """The dual at a time of the flow on the squares plus ridge |h|^2, and its misfit."""
        rates = self.values + ridge
        shares = -np.expm1(-2 * rates * time)  # the fitted share in every eigenvector
        along = self.vectors.T @ self.goal
        dual = self.vectors @ ((shares / rates)[:, None] * along)
        fitted = self.vectors @ ((self.values * shares / rates)[:, None] * along)
        return dual, float(np.abs(fitted - self.goal).max()) / self.size


def _system(K: Array, goal: Array, size: float) -> System:
    values, vectors = np.linalg.eigh(K)
    kept = values > len(K) * np.finfo(float).eps * max(values[-1], 0.0)
    return System(values[kept], vectors[:, kept], goal, size)


def _outcome(misfit: float, ridge: float, time: float) -> Outcome:
    if time < math.inf:
        return Outcome(Kind.SOLVED, f"at time {time:.4g} the relative misfit is {misfit:.2g}")
    if ridge > 0:
        return Outcome(Kind.SOLVED, f"the ridge leaves a relative misfit of {misfit:.2g}")
    if misfit <= FITS:
        return Outcome(Kind.SOLVED, "fits the data with the shortest displacement")
    text = f"no displacement fits the data; least squares, relative misfit {misfit:.2g}"
    return Outcome(Kind.SOLVED, text)
