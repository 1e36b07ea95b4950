"""A model with flat parameters on samples, labels or a matrix, for steps and flows."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.lazy import jax, jnp
from penchant.models.function import FunctionModel
from penchant.models.linear import LinearMatrix, LinearPredictor
from penchant.models.matrix import MatrixModel
from penchant.models.model import Model, Separable
from penchant.precision import double_precision
from penchant.problems.classification import Classification
from penchant.problems.matrix_problem import Completion, MatrixProblem
from penchant.problems.population import positive_share
from penchant.problems.regression import Regression
from penchant.regularizers.spectral import Frobenius, MatrixNorm, SpectralFunction
from penchant.training.descent.compiled import Weighted
from penchant.training.descent.method import Objective
from penchant.training.exact.loss import Loss, MarginLoss, SquaredLoss, finite
from penchant.training.exact.task import samples_of
from penchant.training.labels import sample_columns, tested
from penchant.training.task import Measures, Moment, Task

EXTRA = ("penalty", "objective", "gradient_norm", "penalty_gradient_norm", "relative_error")
TAIL = 30.0  # beyond this margin log(1 + exp(-m)) is exp(-m) to the last digits


@dataclasses.dataclass(frozen=True, eq=False)
class SampleLoss(Objective):
    """The loss of a model on rows of inputs and labels; one per model in compiled code."""

    model: Model
    loss: str
    samples: int

    @property
    def key(self) -> tuple[Any, ...]:
        """The model itself, but those that differ in their starts only predict alike."""
        code = self.model.code
        model = id(code) if code is self.model else code
        return model, self.loss, self.samples

    def value(self, data: Any, parameters: Any, share: Any = None) -> Any:
        inputs, y = data
        predictions = outputs(self.model, parameters, inputs)
        if self.loss == "exp":
            losses = jnp.exp(-y * predictions)
        elif self.loss == "logistic":
            losses = jnp.logaddexp(0.0, -y * predictions)
        else:
            losses = (predictions - y) ** 2
        total = 1.0 if self.loss in ("exp", "logistic") else float(self.samples)
        total = total / 2 if self.loss == "half squares" else total
        if share is not None:
            return total * (jnp.sum(jnp.where(share, losses, 0.0)) / jnp.sum(share))
        # a sum over all samples is not written as a mean, which would round once more
        return jnp.sum(losses) * (total / len(y))

    def log_value(self, data: Any, parameters: Any) -> Any:
        inputs, y = data
        if self.loss not in ("exp", "logistic"):
            return jnp.log(self.value(data, parameters))
        margins = y * outputs(self.model, parameters, inputs)
        logs = -margins
        if self.loss == "logistic":  # log log(1 + exp(-m)), which is -m in the tail
            near = jnp.log(jnp.logaddexp(0.0, -jnp.minimum(margins, TAIL)))
            logs = jnp.where(margins < TAIL, near, -margins)
        # its gradient, grad L / L, is the softmax of the gaps to the smallest margin
        # (Moroshko et al. 2020, eq. 87)
        return jax.nn.logsumexp(logs) - math.log(len(y))


class SampleTask(Task):
    """A checked pair of a Model and a Regression, a Classification or a matrix problem.

    Steps use `objective` and `data`, in JAX; flows use `outputs` and `loss`, in NumPy.
    """

    keeps = True
    penalty_names = ("penalty", "gradient_norm", "penalty_gradient_norm")

    def __init__(self, model: Any, problem: Any) -> None:
        _check(model, problem)
        self.model, self.problem = model, problem
        self.samples: int = problem.samples
        self.start = model.start(problem.dimension)
        labels = isinstance(problem, Classification)
        self.loss: Loss = (MarginLoss if labels else SquaredLoss)(problem.y, problem.loss)
        self.outputs = samples_of(model, problem, self.start)
        self.linear = isinstance(model, Separable | MatrixModel)

    @functools.cached_property
    def objective(self) -> SampleLoss:
        return SampleLoss(self.model, self.problem.loss, self.samples)

    @functools.cached_property
    def data(self) -> tuple[Any, Array]:
        return inputs_of(self.model, self.problem), self.problem.y

    @functools.cached_property
    def predictions(self) -> Array:
        """The outputs of the start."""
        with np.errstate(over="ignore", under="ignore"):
            return self.outputs.predict(self.start)

    def refuse_overflow(self) -> None:
        with np.errstate(over="ignore", under="ignore"):
            is_finite = finite(self.loss, self.predictions)
        if not is_finite:
            raise Invalid(
                f"the gradients of this start are beyond float64 (its largest prediction "
                f"is {np.abs(self.predictions).max():.3g}); take a smaller start"
            )

    def trained(self, parameters: Any) -> Any:
        if isinstance(self.model, FunctionModel):
            return self.model.flattened(parameters)
        return parameters

    def whole(self, parameters: Any) -> Any:
        if isinstance(self.model, FunctionModel):
            return self.model.unflattened(parameters)
        return parameters

    def log_unit(self) -> float:
        return self.loss.log_unit(self.predictions)

    def smoothness(self) -> float | None:
        labels = isinstance(self.problem, Classification)
        if labels or not isinstance(self.model, LinearPredictor | LinearMatrix):
            return None
        bend = 1.0 if self.problem.loss == "half squares" else 2.0
        if self.data[0].ndim == 1:
            return bend
        return bend * float(np.linalg.norm(self.data[0], 2) ** 2)

    def predictor(self, parameters: Array) -> Array:
        if isinstance(self.model, MatrixModel):
            return self.model.matrix(parameters)
        assert isinstance(self.model, Separable)
        return self.model.predictor(parameters)

    def shaped(self, penalty: Any) -> Any:
        """A penalty of matrices sees the flat parameters of a LinearMatrix as its matrix."""
        terms = []
        for weight, term in penalty.weighted:
            if isinstance(term, SpectralFunction) and not isinstance(term, Frobenius):
                term = self._of_matrix(term)
            terms.append((weight, term))
        if all(new is old for (_, new), (_, old) in zip(terms, penalty.weighted, strict=True)):
            return penalty
        parts = [weight * term for weight, term in terms]
        return functools.reduce(lambda a, b: a + b, parts)

    def _of_matrix(self, term: SpectralFunction) -> SpectralFunction:
        if getattr(term, "shape", None) is not None:
            return term
        if isinstance(term, MatrixNorm) and isinstance(self.model, LinearMatrix):
            return type(term)(self.problem.shape)
        raise Invalid(
            f"{term!r} acts on a matrix, and the parameters of "
            f"{type(self.model).__name__} are flat; use Nuclear with LinearMatrix or with shape="
        )

    def measures(self, moment: Moment) -> Measures:
        theta, problem = moment.state, self.problem
        measures: Measures = {("log_loss", "loss"): lambda: self._losses(theta)}
        if isinstance(problem, Classification):
            measures[("train_accuracy",)] = lambda: self._accuracy(theta)
        elif self.linear and problem.truth is not None:
            measures[("test_error", "relative_error")] = lambda: self._errors(self.predictor(theta))
        if problem.test is not None:
            names = ("test_loss", "test_accuracy")[: 1 + isinstance(problem.test, Classification)]
            measures[names] = lambda: self._tested(theta)
        return measures

    def penalized(self, penalty: Any, moment: Moment) -> dict[str, float]:
        """The penalty and its subgradient; a nan in either raises an error that names the step."""
        with double_precision():
            weights, terms = zip(*penalty.weighted, strict=True)
            measure = _pulls(self.objective, terms)
            gradient, value, pull = measure(weights, self.data, moment.state)
        numbers = {"penalty": float(value), "penalty_gradient_norm": float(np.linalg.norm(pull))}
        for name, number in zip(("value", "subgradient"), numbers.values(), strict=True):
            if math.isnan(number):
                raise Invalid(
                    f"the {name} of the penalty is nan at step {moment.step}, "
                    "where the parameters are finite (the largest is "
                    f"{np.abs(moment.state).max():.3g}); check the penalty there"
                )
        return numbers | {"gradient_norm": float(np.linalg.norm(gradient))}

    def record(self, moment: Moment, numbers: Mapping[str, Any]) -> dict[str, Any]:
        extra = {name: numbers[name] for name in EXTRA if name in numbers}
        return {"step": moment.step, "log_t": moment.log_t, **extra}

    def columns(
        self, moments: Sequence[Moment], recorded: dict[str, Array], rate: float
    ) -> dict[str, Array]:
        return sample_columns(self, [self._predicted(m) for m in moments], recorded, rate)

    def _predicted(self, moment: Moment) -> Moment:
        if moment.predictions is not None:
            return moment
        return moment._replace(predictions=self.outputs.predict(moment.state))

    def _losses(self, theta: Array) -> dict[str, float]:
        predictions = np.asarray(self.outputs.predict(theta))
        if not np.isfinite(predictions).all():  # infinite margins would be a loss of zero
            return {"log_loss": math.nan, "loss": math.nan}
        log_loss = float(self.loss.log_loss(predictions))
        return {"log_loss": log_loss, "loss": float(np.exp(log_loss))}

    def _accuracy(self, theta: Array) -> dict[str, float]:
        margins = np.asarray(self.outputs.predict(theta)) * self.problem.y
        return {"train_accuracy": float(positive_share(margins))}

    def _errors(self, predictor: Array) -> dict[str, float]:
        truth = self.problem.truth
        apart = float(np.linalg.norm(predictor.ravel() - truth.ravel()))
        error = apart**2
        if isinstance(self.problem, MatrixProblem):
            error = self.problem.test_error(predictor)
        return {"test_error": error, "relative_error": apart / float(np.linalg.norm(truth))}

    def _tested(self, theta: Array) -> dict[str, float]:
        test = self.problem.test
        columns = tested(test, np.asarray(self.model.predict(theta, test.X))[None])
        return {name: float(values[0]) for name, values in columns.items()}


def _check(model: object, problem: object) -> None:
    """A ValueError with the reason if `model` and `problem` do not fit each other."""
    if not isinstance(problem, Regression | Classification | MatrixProblem):
        raise Invalid(
            f"the problem must be a Regression or a Classification, or a matrix problem "
            f"such as Completion, got {type(problem).__name__}; wrap the data as Regression(X, y)"
        )
    if not isinstance(model, Model):
        raise Invalid(
            f"the model must be a Model such as DiagonalNet, or FunctionModel around a "
            f"function of yours, got {type(model).__name__}"
        )
    if isinstance(problem, MatrixProblem) and not isinstance(model, MatrixModel):
        raise Invalid(
            f"a matrix problem needs a model of a matrix such as Factorization, got "
            f"{type(model).__name__}; use problem.regression() for models of vectors"
        )


@functools.lru_cache(maxsize=32)
def _pulls(objective: SampleLoss, terms: tuple[Any, ...]) -> Callable[..., Any]:
    def measure(weights: Any, data: Any, theta: Any) -> Any:
        gradient = jax.grad(objective.value, argnums=1)(data, theta)
        penalty = Weighted(weights, terms)
        return gradient, penalty.value(theta), penalty.subgradient(theta)

    return jax.jit(measure)


def inputs_of(model: Model, problem: Any) -> Any:
    """One row per sample; for observed entries of a matrix only their positions in it."""
    if isinstance(problem, Completion) and isinstance(model, MatrixModel):
        return problem.positions
    return problem.design


def outputs(model: Model, parameters: Any, inputs: Any) -> Any:
    """f of every sample, for the inputs of `inputs_of`; accepts JAX arrays as `predict` does."""
    if inputs.ndim > 1:
        return model.predict(parameters, inputs)
    assert isinstance(model, MatrixModel)
    return model.matrix(parameters).reshape(-1)[inputs]
