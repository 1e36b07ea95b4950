"""A model, a problem and a penalty as one objective f = g + beta h, with the slope of g.

On regression data and matrices g = (1/2) sum_n (f_n - y_n)^2, as in N and unlike the rest of the
package, whose squared loss has no 1/2; on a Classification g is its mean loss.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from tacit.arguments import Array, real
from tacit.flows.inputs import held_out, inputs_of, outputs
from tacit.models.linear import LinearMatrix, LinearPredictor
from tacit.models.matrix import MatrixModel
from tacit.models.model import Model, Separable
from tacit.problems.classification import Classification
from tacit.problems.matrices import MatrixProblem
from tacit.problems.regression import Regression
from tacit.regularizers.penalty import Term

Data = tuple[Any, Any]


@dataclasses.dataclass(frozen=True)
class DenseSlope:
    """The gradient of (1/2) |X a - y|^2 in a."""

    def __call__(self, data: Data, theta: Any) -> Any:
        X, y = data
        return (X @ theta - y) @ X


@dataclasses.dataclass(frozen=True)
class EntrySlope:
    """The same where every row of X picks one entry of a, given by its place."""

    def __call__(self, data: Data, theta: Any) -> Any:
        places, y = data
        return (0 * theta).at[places].set(theta[places] - y)


@dataclasses.dataclass(frozen=True, eq=False)
class ModelSlope:
    """The gradient of the loss of any model, by differentiation; one per model in compiled code."""

    model: Model
    loss: str

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelSlope):
            return NotImplemented
        return other.model is self.model and other.loss == self.loss

    def __hash__(self) -> int:
        return hash((id(self.model), self.loss))

    def value(self, data: Data, theta: Any) -> Any:
        import jax.numpy as jnp

        inputs, y = data
        found = outputs(self.model, theta, inputs)
        if self.loss == "squares":
            return jnp.sum((found - y) ** 2) / 2
        if self.loss == "exp":
            return jnp.mean(jnp.exp(-y * found))
        return jnp.mean(jnp.logaddexp(0.0, -y * found))

    def __call__(self, data: Data, theta: Any) -> Any:
        import jax

        return jax.grad(self.value, argnums=1)(data, theta)


Slope = DenseSlope | EntrySlope | ModelSlope


class Job(NamedTuple):
    """A checked objective: `slope(data, theta)` is the gradient of g; `data` may be a batch."""

    model: Model
    problem: Any
    penalty: Term | None
    beta: float
    start: Array
    slope: Slope
    data: Data
    test: Any = None  # samples like those of the problem, which only records see

    @property
    def linear(self) -> bool:
        """Whether g is a quadratic in the parameters."""
        squares = not isinstance(self.problem, Classification)
        return squares and isinstance(self.model, LinearPredictor | LinearMatrix)

    @property
    def mean(self) -> bool:
        """Whether g is a mean over the samples rather than a sum."""
        return isinstance(self.problem, Classification)

    def predictor(self, theta: Array) -> Array | None:
        """The linear predictor, a matrix for matrix problems; None for other functions."""
        if isinstance(self.model, MatrixModel):
            return self.model.matrix(theta)
        if not isinstance(self.model, Separable):
            return None
        beta = self.model.predictor(theta)
        return beta.reshape(self.problem.shape) if isinstance(self.problem, MatrixProblem) else beta

    def smoothness(self) -> float:
        """sigma_max(X^T X), the largest curvature of g in a linear predictor."""
        if isinstance(self.slope, EntrySlope):
            return 1.0
        return float(np.linalg.norm(self.data[0], 2) ** 2)


def job(
    who: str,
    model: object,
    problem: object,
    penalty: Term | None,
    beta: float,
    test: object = None,
) -> Job:
    """`model`, `problem` and `penalty` as one objective; otherwise an error that says why."""
    if not isinstance(problem, Regression | Classification | MatrixProblem):
        raise ValueError(
            f"{who}: the problem must be a Regression, a Classification or a matrix problem such "
            f"as Completion, got {type(problem).__name__}; wrap the data as Regression(X, y)"
        )
    if not isinstance(model, Model):
        raise ValueError(
            f"{who}: the model must be a Model such as LinearPredictor, or FunctionModel around a "
            f"function of yours, got {type(model).__name__}"
        )
    start = model.start(problem.dimension)
    slope, data = _slope(model, problem)
    made = Job(model, problem, penalty, beta, start, slope, data, held_out(who, problem, test))
    if penalty is not None:
        _try(who, penalty, start)
    return made


def checked_penalty(who: str, penalty: object, beta: object) -> float:
    """beta as a finite float >= 0 that has a penalty to weigh."""
    strength = real(who, "beta", beta, rule="a finite number >= 0")
    if strength < 0:
        raise ValueError(f"{who}: beta must be >= 0, got {strength}")
    if penalty is None and strength > 0:
        raise ValueError(f"{who}: beta={strength:g} has no penalty to weigh; give penalty=")
    if penalty is not None and not isinstance(penalty, Term):
        raise ValueError(
            f"{who}: penalty must be a regularizer such as L1(), or Custom(value) around a "
            f"function of yours, got {penalty!r}"
        )
    return strength


def refuse_unstable(who: str, step: float, limit: float, formula: str, reach: bool = False) -> None:
    """An error that names the bound, unless the step is below it (or at it, with `reach`)."""
    held = step <= limit * (1 + 1e-12) if reach else step < limit
    if not held:
        rule = "at most" if reach else "below"
        raise ValueError(
            f"{who}: step must be {rule} {formula} = {limit:.6g}, or descent can diverge, got "
            f"{step:g}; take a smaller step{' or beta' * ('beta' in formula)}, or check=False to "
            "run it all the same"
        )


def limit(job: Job, curvature: float, factor: float = 2.0) -> float:
    """factor / (sigma_max(X^T X) + curvature); infinite where nothing bends."""
    total = job.smoothness() + curvature
    return factor / total if total > 0 else math.inf


def _slope(model: Model, problem: Any) -> tuple[Slope, Data]:
    data = inputs_of(model, problem), problem.y
    if isinstance(problem, Classification):
        return ModelSlope(model, problem.loss), data
    if not isinstance(model, LinearPredictor | LinearMatrix):
        return ModelSlope(model, "squares"), data
    return (EntrySlope() if data[0].ndim == 1 else DenseSlope()), data


def _try(who: str, penalty: Term, start: Array) -> None:
    """Traces the penalty once, so that a wrong shape speaks before the run."""
    import jax

    from tacit.precision import double_precision

    shapes: dict[str, tuple[int, ...]] = {"value": (), "subgradient": start.shape}
    if penalty.has_prox:
        shapes["prox"] = start.shape
    with double_precision():
        for name, shape in shapes.items():
            arguments = (start, 1.0) if name == "prox" else (start,)
            try:
                made = jax.eval_shape(getattr(penalty, name), *arguments)
            except TypeError as reason:  # among them: NumPy functions on what JAX traces
                told = str(reason).splitlines()[0].rstrip(".")
                takes = "(theta, weight)" if name == "prox" else "theta"
                rule = f"must be a function of {takes} in jax.numpy"
                raise ValueError(f"{who}: the penalty's {name} {rule}, got: {told}") from reason
            if (seen := getattr(made, "shape", None)) != shape:
                raise ValueError(f"{who}: the penalty's {name} must have shape {shape}, got {seen}")
