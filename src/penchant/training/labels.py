"""A run as a labelled dataset, with what follows from its records: losses, norms, margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array
from penchant.measures.distances import kernel_distance, kernel_distances, turn
from penchant.models.model import Separable
from penchant.problems.classification import Classification
from penchant.problems.matrix_problem import Completion, MatrixProblem
from penchant.problems.population import positive_share
from penchant.problems.regression import Regression
from penchant.training.exact.loss import log_mean_loss, log_sum_of_squares

if TYPE_CHECKING:
    from penchant.training.samples import SampleTask
    from penchant.training.task import Moment

LABELS = {
    "t": "training time; 0 or inf where float64 cannot hold it, see log_t",
    "log_t": "natural logarithm of the training time",
    "step": "number of descent steps taken",
    "integrator_steps": "number of steps that the integrator of a flow has taken",
    "loss": "training loss; 0 where float64 cannot hold it, see log_loss",
    "log_loss": "natural logarithm of the training loss",
    "predictor": "linear predictor beta, f(x) = <beta, x>",
    "norm_l1": r"$\ell_1$ norm of the predictor",
    "norm_l2": "Euclidean norm of the predictor",
    "test_error": r"population error $|\beta - \beta^*|^2$, beyond the noise",
    "dual": "dual variable nu, the part in the range of X",
    "smoothed_margin": "smoothed margin, log(1 / loss)",
    "margin": "smallest margin y f(x)",
    "margins": "margins y f(x)",
    "kernel_distance": "1 - cosine between the tangent kernel and that of the first record",
    "parameters": "parameters of the model",
    "final_parameters": "parameters of the model at the last recorded time",
    "predictions": "outputs of the model",
    "oscillation": "standard deviation of a parameter of descent about its average",
    "sharpness": "largest eigenvalue of the Hessian over 2 / learning rate",
    "parameter_norm": "Euclidean norm of the parameters",
    "turn": "angle between the parameters and their start",
    "margin_l1": r"smallest margin over the $\ell_1$ norm of the predictor",
    "margin_l2": "smallest margin over the Euclidean norm of the predictor",
    "train_accuracy": "accuracy on the training samples; a tie counts one half",
    "test_accuracy": "accuracy on the test samples, or expected on new ones",
    "penalty": "penalty of the parameters, with its weight",
    "objective": "training loss plus penalty",
    "gradient_norm": "Euclidean norm of the gradient of the training loss",
    "penalty_gradient_norm": "Euclidean norm of the subgradient of the penalty",
    "relative_error": "|predictor - truth| / |truth|",
    "test_loss": "loss of the test samples",
    "twin_accuracy": "accuracy over test pairs whose mirror is in training",
    "novel_accuracy": "accuracy over test pairs whose mirror is not in training",
    "moved": "distance of all parameters from their start, relative to its norm",
    "layer_norm": "Euclidean norm of the parameters of a layer",
    "layer": "layer of weights",
    "feature": "feature",
    "X": "samples, one per row",
    "y": "labels",
    "X_test": "test samples, one per row",
    "y_test": "test labels",
}
MATRIX_LABELS = {
    "predictor": "the matrix M of the linear predictor, f(X) = <M, X>",
    "norm_nuclear": "nuclear norm of the matrix",
    "norm_l2": "Frobenius norm of the matrix",
    "test_error": "root mean square error of the matrix over its hidden entries",
    "measurements": "measurement matrices X_n",
    "entries": "row and column of every observed entry",
    "y": "measured values",
}
UNITS = {"log_t": "log(1)", "log_loss": "log(1)", "step": "steps", "turn": "degrees"}
DIMS = {
    "predictor": ("feature",),
    "dual": ("sample",),
    "parameters": ("parameter",),
    "oscillation": ("parameter",),
    "predictions": ("sample",),
    "margins": ("sample",),
    "layer_norm": ("layer",),
}
COORDINATES = ("t", "step", "layer")


def build_dataset(
    problem: Any,
    columns: dict[str, Array],
    final_parameters: Array | None = None,
    words: Mapping[str, str] | None = None,
) -> Any:
    """The labelled dataset of arrays whose first axis is time, without attributes.

    Every path has its dataset from here, of steps or of a flow. `words` replace those of LABELS.
    """
    import xarray

    variables = {name: (_dims(name, values), values) for name, values in columns.items()}
    if final_parameters is not None:
        variables["final_parameters"] = ("parameter",), final_parameters
    variables |= _data(problem)
    words = MATRIX_LABELS if isinstance(problem, MatrixProblem) else words or {}
    coordinates: dict[str, Any] = {
        name: variables.pop(name) for name in COORDINATES if name in variables
    }
    names = getattr(problem, "features", None)
    if names and any("feature" in variable[0] for variable in variables.values()):
        coordinates["feature"] = ("feature",), list(names)
    dataset = xarray.Dataset(variables, coordinates)
    for name, variable in dataset.variables.items():
        text = words.get(str(name)) or LABELS[str(name)]
        variable.attrs = {"units": UNITS.get(str(name), "1"), "long_name": text}
    return dataset


def _dims(name: str, values: Array) -> tuple[str, ...]:
    if name == "predictor" and np.ndim(values) == 3:
        return "time", "row", "column"
    if name == "layer":
        return ("layer",)
    return ("time", *DIMS.get(name, ()))


def _data(problem: Any) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    if not isinstance(problem, Regression | Classification | MatrixProblem):
        return variables
    if problem.recipe is None:
        variables["y"] = ("sample",), problem.y
        if isinstance(problem, Completion):
            variables["entries"] = ("sample", "index"), problem.entries
        elif isinstance(problem, MatrixProblem):
            shaped = problem.design.reshape(-1, *problem.shape)
            variables["measurements"] = ("sample", "row", "column"), shaped
        else:
            variables["X"] = ("sample", "feature"), problem.X
    test = problem.test
    if test is not None and test.recipe is None:
        variables["X_test"] = ("test_sample", "feature"), test.X
        variables["y_test"] = ("test_sample",), test.y
    return variables


FEW = 2000  # parameters that are recorded at every time, with their tangent kernels


def sample_columns(
    task: SampleTask, moments: Sequence[Moment], recorded: dict[str, Array], rate: float
) -> dict[str, Array]:
    """What was `recorded`, and all that the parameters and predictions of the moments show."""
    recorded = _measured(task, moments) | recorded
    if isinstance(task.model, Separable):
        recorded |= _predictors(task, task.model, rate, moments)
        return linear_columns(task.problem, recorded)
    recorded |= _outputs(task, np.array([moment.predictions for moment in moments]))
    test = task.problem.test
    if test is not None:
        predictions = [np.asarray(task.model.predict(m.state, test.X)) for m in moments]
        recorded |= tested(test, np.array(predictions))
    if isinstance(task.problem, MatrixProblem):
        recorded |= matrix_columns(task.problem, _wholes(task, rate, moments))
    if task.start.size <= FEW:
        recorded |= _kernels(task, moments)
    return recorded


def predictions_at(predictors: Array, rows: Array) -> Array:
    """The predictions of each moment's predictor on `rows`, each moment by itself.

    BLAS rounds a row of a product by its place among the others, and a run that was resumed has
    others than one that was never stopped.
    """
    return np.matmul(predictors[:, None], rows.T)[:, 0]


def linear_columns(
    problem: Regression | Classification, recorded: dict[str, Array]
) -> dict[str, Array]:
    """What was `recorded` of a linear predictor, and all that follows from it.

    `recorded` has t, log_t and predictor, and whatever else the flow computes: step, dual,
    parameters; on classification data also smoothed_margin and margins, which a predictor does not
    determine once they are large, and log_slopes, the logarithms of |dbeta_i/dw|^2.
    """
    predictor = recorded["predictor"]
    with np.errstate(under="ignore", over="ignore"):
        table = {
            "norm_l1": np.abs(predictor).sum(axis=1),
            "norm_l2": np.exp(log_sum_of_squares(predictor) / 2),
        }
        if isinstance(problem, Classification):
            table |= _margins(problem, recorded)
            for name in ("l1", "l2"):  # a zero predictor has no direction
                norm = table[f"norm_{name}"]
                table[f"margin_{name}"] = table["margin"] / np.where(norm > 0, norm, np.nan)
        else:
            residuals = predictions_at(predictor, problem.X) - problem.y
            table |= _losses(log_sum_of_squares(residuals) + problem.log_factor)
            if problem.truth is not None:
                table["test_error"] = ((predictor - problem.truth) ** 2).sum(axis=1)
        if problem.test is not None:
            table |= tested(problem.test, predictions_at(predictor, problem.test.X))
    known = {name: values for name, values in recorded.items() if name != "log_slopes"}
    return known | table


def matrix_columns(problem: MatrixProblem, matrices: Array) -> dict[str, Array]:
    """The matrices with their norms, and their errors where the truth is known."""
    table = {
        "predictor": matrices,
        "norm_l2": np.linalg.norm(matrices, axis=(1, 2)),
        "norm_nuclear": np.linalg.svd(matrices, compute_uv=False).sum(axis=1),
    }
    if problem.truth is not None:
        apart = np.linalg.norm(matrices - problem.truth, axis=(1, 2))
        table["test_error"] = np.array([problem.test_error(matrix) for matrix in matrices])
        table["relative_error"] = apart / np.linalg.norm(problem.truth)
    return table


def columns(moments: Sequence[Moment], *names: str) -> dict[str, Array]:
    """What the moments hold: one array for every name, first axis time."""
    known = [name for name in names if getattr(moments[0], name) is not None]
    return {name: np.array([getattr(moment, name) for moment in moments]) for name in known}


def _losses(log_loss: Array) -> dict[str, Array]:
    """The loss and its logarithm; the loss rounds to zero below float64, its logarithm goes on."""
    with np.errstate(under="ignore", over="ignore"):
        return {"log_loss": log_loss, "loss": np.exp(log_loss)}


def tested(test: Regression | Classification, outputs: Array) -> dict[str, Array]:
    with np.errstate(over="ignore", under="ignore"):
        if not isinstance(test, Classification):
            return {"test_loss": np.exp(log_sum_of_squares(outputs - test.y) + test.log_factor)}
        margins = outputs * test.y
        loss = np.exp(log_mean_loss(test.loss, margins))
    return {"test_loss": loss, "test_accuracy": positive_share(margins)}


def _margins(problem: Classification, recorded: dict[str, Array]) -> dict[str, Array]:
    """Losses and margins on classification data, from the flow's own where it has them."""
    margins = recorded.get("margins")
    if margins is None:
        margins = predictions_at(recorded["predictor"], problem.signed_rows)
    if "smoothed_margin" in recorded:
        log_loss = -recorded["smoothed_margin"]
    else:
        log_loss = log_mean_loss(problem.loss, margins)
    table = _labels(log_loss, margins)
    if problem.population is not None:
        tested = [problem.population.accuracy(beta) for beta in recorded["predictor"]]
        table["test_accuracy"] = np.array(tested)
    if "log_slopes" in recorded:
        table["kernel_distance"] = kernel_distances(problem.signed_rows, recorded["log_slopes"])
    return table


def _labels(log_loss: Array, margins: Array) -> dict[str, Array]:
    return _losses(log_loss) | {
        "smoothed_margin": -log_loss,
        "margins": margins,
        "margin": margins.min(axis=1),
        "train_accuracy": positive_share(margins),
    }


def _measured(task: SampleTask, moments: Sequence[Moment]) -> dict[str, Array]:
    """t, log_t, parameter_norm and turn, and parameters where they are few."""
    t = np.array([moment.t for moment in moments])
    with np.errstate(divide="ignore", under="ignore", over="ignore"):
        table = {"t": t, "log_t": np.log(t)}
        squares = [float(log_sum_of_squares(m.state)) for m in moments]
        table["parameter_norm"] = np.exp(np.array(squares) / 2)
        # a displacement from the start gives angles that the rounded parameters have lost
        now = [m.state if m.displacement is None else task.start + m.displacement for m in moments]
        table["turn"] = turn(task.start, np.array(now))
    if task.start.size <= FEW or isinstance(task.model, Separable):
        table["parameters"] = np.array([moment.state for moment in moments])
    return table


def _wholes(task: SampleTask, rate: float, moments: Sequence[Moment]) -> Array:
    whole = task.outputs.whole
    return np.array([whole(m.state, m.displacement, -rate * m.t) for m in moments])


def _predictors(
    task: SampleTask, model: Separable, rate: float, moments: Sequence[Moment]
) -> dict[str, Array]:
    table = {"predictor": _wholes(task, rate, moments)}
    slopes = np.array([log_sum_of_squares(model.slopes(m.state).T) for m in moments])
    if np.isfinite(np.max(slopes, axis=1)).all():
        with np.errstate(under="ignore"):
            table["kernel_distance"] = kernel_distances(task.problem.design, slopes)
    return table


def _outputs(task: SampleTask, predictions: Array) -> dict[str, Array]:
    log_loss, table = task.loss.log_loss(predictions), {"predictions": predictions}
    if isinstance(task.problem, Classification):
        return table | _labels(log_loss, predictions * task.problem.y)
    return table | _losses(log_loss)


def _kernels(task: SampleTask, moments: Sequence[Moment]) -> dict[str, Array]:
    """Distances of the tangent kernels from the first one, where none of them vanishes."""

    def kernel_of(moment: Moment) -> Array:
        known = moment.kernel
        return task.outputs.derivative(moment.state).kernel() if known is None else known

    first, distances = kernel_of(moments[0]), [0.0]
    for moment in moments[1:]:
        kernel = kernel_of(moment)
        if not (first.any() and kernel.any()):
            return {}
        distances.append(kernel_distance(first, kernel))
    return {"kernel_distance": np.array(distances)}
