"""A run as a labelled dataset: which dimensions its arrays have, their units and their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.problems.matrix_problem import Completion, MatrixProblem

LABELS = {
    "t": "training time; 0 or inf where float64 cannot hold it, see log_t",
    "log_t": "natural logarithm of the training time",
    "step": "number of descent steps taken",
    "integrator_steps": "number of steps that the integrator of a flow has taken",
    "loss": "training loss; NaN where float64 cannot hold it, see log_loss",
    "log_loss": "natural logarithm of the training loss",
    "predictor": "linear predictor beta, f(x) = <beta, x>",
    "norm_l1": "l1 norm of the predictor",
    "norm_l2": "Euclidean norm of the predictor",
    "test_error": "population error |beta - truth|^2, beyond the noise",
    "dual": "dual variable nu, the part in the range of X",
    "smoothed_margin": "smoothed margin, log(1 / loss)",
    "margin": "smallest margin y f(x)",
    "margins": "margins y f(x)",
    "kernel_distance": "1 - cosine between the tangent kernel and that of the first record",
    "parameters": "parameters of the model",
    "final_parameters": "parameters of the model at the last recorded time",
    "predictions": "outputs of the model",
    "parameter_norm": "Euclidean norm of the parameters",
    "turn": "angle between the parameters and their start",
    "margin_l1": "smallest margin over the l1 norm of the predictor",
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
    "predictions": ("sample",),
    "margins": ("sample",),
    "layer_norm": ("layer",),
}
COORDINATES = ("t", "step", "layer")


def assembled(problem: Any, recorded: dict[str, Array], final_parameters: Array | None) -> Any:
    """The dataset of arrays whose first axis is time, without attributes."""
    variables = columns(recorded)
    if final_parameters is not None:
        variables["final_parameters"] = ("parameter",), final_parameters
    matrix = isinstance(problem, MatrixProblem)
    return labelled(variables | _data(problem), MATRIX_LABELS if matrix else {})


def columns(recorded: dict[str, Array]) -> dict[str, Any]:
    """Arrays whose first axis is time, with their dimensions."""
    return {name: (_dims(name, values), values) for name, values in recorded.items()}


def labelled(variables: dict[str, Any], words: Mapping[str, str]) -> Any:
    """The dataset of arrays with their dimensions; `words` replace those of LABELS."""
    import xarray

    found = {name: variables[name] for name in COORDINATES if name in variables}
    rest = {name: values for name, values in variables.items() if name not in found}
    dataset = xarray.Dataset(rest, found)
    for name, variable in dataset.variables.items():
        text = words.get(str(name)) or LABELS[str(name)]
        variable.attrs = {"units": UNITS.get(str(name), "1"), "long_name": text}
    return dataset


def _dims(name: str, values: Array) -> tuple[str, ...]:
    if name == "predictor" and np.ndim(values) == 3:
        return "time", "row", "column"
    return ("time", *DIMS.get(name, ()))


def _data(problem: Any) -> dict[str, Any]:
    """The data themselves, where no recipe draws them again."""
    found: dict[str, Any] = {}
    if problem.recipe is None:
        found["y"] = ("sample",), problem.y
        if isinstance(problem, Completion):
            found["entries"] = ("sample", "index"), problem.entries
        elif isinstance(problem, MatrixProblem):
            shaped = problem.design.reshape(-1, *problem.shape)
            found["measurements"] = ("sample", "row", "column"), shaped
        else:
            found["X"] = ("sample", "feature"), problem.X
    test = problem.test
    if test is not None and test.recipe is None:
        found["X_test"] = ("test_sample", "feature"), test.X
        found["y_test"] = ("test_sample",), test.y
    return found
