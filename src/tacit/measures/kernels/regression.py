"""Regression with the frozen tangent kernel of any function, with one output or several."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array, finite_array, one_of, positive, real
from tacit.measures.kernels.blocks import Gradients, blocked_kernel
from tacit.measures.kernels.tangent import MEMORY, OUTPUTS, alike, arguments, gradients_of, samples
from tacit.models.model import Model
from tacit.records import Kind, Outcome, Record

FITS = 1e-6  # a misfit up to this share of the largest target is none
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
        The eigenvalues of the kernel that are not rounding, out of `size`.
    size
        The number of equations.
    ridge
        The ridge that was asked for.
    outputs
        "full" or "mean".
    outcome
        How the computation ended, in a sentence.
    x
        The samples.
    gradients
        The gradients of the model at the samples.
    memory
        The bytes that a kernel may take.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> def f(w, x):
    ...     return x @ w**2
    >>> fit = tacit.kernel_regression(f, np.array([1.0, 1.0]), np.eye(2), np.array([2.0, 3.0]))
    >>> fit.predict(np.array([[1.0, 1.0]])).round(4)
    array([5.])
    """

    dual: Array
    residual: float
    rank: int
    size: int
    ridge: float
    outputs: str
    outcome: Outcome
    x: Any = dataclasses.field(repr=False)
    gradients: Gradients = dataclasses.field(repr=False)
    memory: float = dataclasses.field(repr=False)

    def predict(self, x: ArrayLike) -> Array:
        """The outputs for every row of `x`, one column per output (flat if there is one)."""
        rows = samples(WHO, "x", x, getattr(self.gradients, "model", None))
        rows = alike(WHO, self.x, rows)
        step = max(1, int(self.memory / 4 // (8 * self.size * self.dual.shape[1])))
        parts = [self._predict(rows[at : at + step]) for at in range(0, len(rows), step)]
        found = np.concatenate(parts)
        return found[:, 0] if found.shape[1] == 1 else found

    def _predict(self, x: Any) -> Array:
        full = self.outputs == "full"
        K = blocked_kernel(WHO, self.gradients, x, self.x, full, self.memory)
        return self.gradients.values(x) + np.tensordot(K, self.dual, axes=2 if full else 1)


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

    It is where gradient descent on the squared loss takes the model linearised at `parameters`.
    Targets that no h fits are fitted in the least-squares sense, and the outcome says so. All
    is computed in double precision.

    Parameters
    ----------
    model
        As in `tangent_kernel`. A torch.nn.Module is taken at its own parameters:
        kernel_regression(module, x, y).
    parameters
        The parameters.
    x
        The samples.
    y
        One number per sample, or a row of C.
    ridge
        A number above 0 asks for the least sum of squares plus ridge |h|^2.
    outputs
        "full" couples the outputs as the model does, in a system of N C equations; "mean" gives
        all of them the mean kernel, as in the limit of wide nets.
    memory
        The bytes that the kernel and all that it is made from may take.

    Returns
    -------
    KernelRegression
        The predictor; see its `predict`.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit
    >>> def f(w, x):
    ...     return x @ w**2
    >>> fit = tacit.kernel_regression(f, np.array([1.0, 1.0]), np.eye(2), np.array([2.0, 3.0]))
    >>> fit.rank, fit.residual < 1e-9
    (2, True)
    """
    model, parameters, x, y = arguments(WHO, "double", model, parameters, x, y, least=2)
    rows = samples(WHO, "x", x, model)
    given = finite_array(WHO, "y", y, ndim=1 if np.ndim(y) < 2 else 2)
    targets = given.reshape(len(given), -1)
    memory = positive(WHO, "memory", memory)
    if real(WHO, "ridge", ridge) < 0:
        raise ValueError(f"{WHO}: ridge must not be negative, got {ridge}")
    one_of(WHO, "outputs", outputs, OUTPUTS)
    gradients = gradients_of(WHO, model, parameters, rows, outputs, "double")
    found = gradients.values(rows)
    if found.shape != targets.shape:
        raise ValueError(
            f"{WHO}: y must have the shape of the outputs, {found.shape}, got {targets.shape}"
        )
    goal = targets - found
    full = outputs == "full"
    K = blocked_kernel(WHO, gradients, rows, None, full, memory)
    flat = goal.reshape(-1, 1) if full else goal
    square = K.reshape(len(flat), len(flat))
    dual, rank = _solved(square, flat, ridge)
    size = float(max(np.abs(targets).max(), np.abs(goal).max())) or 1.0
    misfit = float(np.abs(square @ dual - flat).max()) / size
    told = misfit, rank, len(flat), ridge, outputs, _outcome(misfit, ridge)
    return KernelRegression(dual.reshape(goal.shape), *told, rows, gradients, memory)


def _solved(K: Array, goal: Array, ridge: float) -> tuple[Array, int]:
    """(dual, rank) of the least-squares solution of (K + ridge) dual = goal, rounding dropped."""
    values, vectors = np.linalg.eigh(K)
    kept = values > len(K) * np.finfo(float).eps * max(values[-1], 0.0)
    inverse = 1 / (values[kept] + ridge)
    return vectors[:, kept] @ (inverse[:, None] * (vectors[:, kept].T @ goal)), int(kept.sum())


def _outcome(misfit: float, ridge: float) -> Outcome:
    if ridge > 0:
        return Outcome(Kind.SOLVED, f"the ridge leaves a relative misfit of {misfit:.2g}")
    if misfit <= FITS:
        return Outcome(Kind.SOLVED, "fits the data with the shortest displacement")
    text = f"no displacement fits the data; least squares, relative misfit {misfit:.2g}"
    return Outcome(Kind.SOLVED, text)
