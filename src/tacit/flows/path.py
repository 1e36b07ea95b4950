"""The path that training took: a labelled dataset, its last point and how it ended."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.flows.tails import log_mean_loss
from tacit.models.tangent import kernel_distances
from tacit.problems.classification import Classification
from tacit.problems.population import accuracy
from tacit.problems.regression import Regression
from tacit.records import Outcome, Record
from tacit.versions import versions

LABELS = {
    "t": "training time; 0 or inf where float64 cannot hold it, see log_t",
    "log_t": "natural logarithm of the training time",
    "step": "number of descent steps taken",
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
    "train_accuracy": "share of the samples with a positive margin; a tie counts one half",
    "test_accuracy": "expected accuracy on new samples",
    "penalty": "penalty of the parameters, with its weight",
    "objective": "training loss plus penalty",
    "gradient_norm": "Euclidean norm of the gradient of the training loss",
    "penalty_gradient_norm": "Euclidean norm of the subgradient of the penalty",
    "relative_error": "|predictor - truth| / |truth|",
    "test_loss": "loss of the test samples",
    "X": "samples, one per row",
    "y": "labels",
}
LEAST = float(np.log(np.finfo(float).tiny))  # of a loss that float64 holds to all its digits
UNITS = {"log_t": "log(1)", "log_loss": "log(1)", "step": "steps", "turn": "degrees"}


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Path(Record):
    """Where training went; `dataset` holds everything that was recorded, with labels.

    `predictor` and `parameters` are those of the last recorded time; `parameters` is None where
    float64 cannot hold them.
    """

    outcome: Outcome
    t: float
    log_loss: float
    predictor: Array
    parameters: Array | None
    dataset: Any = dataclasses.field(repr=False)


def log_sum_of_squares(rows: Array) -> Array:
    """log(sum of squares) along the last axis, also where the squares would underflow."""
    largest = np.abs(rows).max(axis=-1, keepdims=True)
    unit = rows / np.where(largest > 0, largest, 1.0)
    with np.errstate(divide="ignore"):
        return 2 * np.log(largest[..., 0]) + np.log(np.maximum((unit**2).sum(axis=-1), 1.0))


def label(
    problem: Regression | Classification,
    model: dict[str, Any],
    flow: dict[str, Any],
    outcome: Outcome,
    recorded: dict[str, Array],
    final_parameters: Array | None = None,
) -> Path:
    """The path of one run, from the arrays it `recorded` (first axis: time).

    `recorded` has t, log_t and predictor, and whatever else the flow knows: step, dual,
    parameters; on classification data also smoothed_margin and margins, which a predictor
    cannot tell once they are large, and log_slopes, the logarithms of |dbeta_i/dw|^2.
    """
    dataset = labelled(problem, recorded, final_parameters)
    dataset.attrs = {
        "description": json.dumps(_description(problem, model, flow)),
        "outcome": outcome.kind.value,
        "sentence": outcome.sentence,
    }
    return Path(
        outcome,
        t=float(dataset.t.values[-1]),
        log_loss=float(dataset.log_loss.values[-1]),
        predictor=dataset.predictor.values[-1],
        parameters=final_parameters,
        dataset=dataset,
    )


def labelled(
    problem: Regression | Classification,
    recorded: dict[str, Array],
    final_parameters: Array | None = None,
) -> Any:
    """The dataset of what was `recorded`, with all that follows from it."""
    import xarray

    recorded = recorded | _derived(problem, recorded)
    recorded.pop("log_slopes", None)
    variables = {name: (_dims(name), values) for name, values in recorded.items()}
    if final_parameters is not None:
        variables["final_parameters"] = (("parameter",), final_parameters)
    if problem.recipe is None:  # no recipe to draw the data again: keep the data themselves
        variables |= {"X": (("sample", "feature"), problem.X), "y": (("sample",), problem.y)}
    coordinates = {name: variables.pop(name) for name in ("t", "step") if name in variables}
    dataset = xarray.Dataset(variables, coordinates)
    for name, variable in dataset.variables.items():
        variable.attrs = {"units": UNITS.get(str(name), "1"), "long_name": LABELS[str(name)]}
    return dataset


def _derived(problem: Regression | Classification, recorded: dict[str, Array]) -> dict[str, Array]:
    """What follows from the records alone."""
    predictor = recorded["predictor"]
    with np.errstate(under="ignore", over="ignore"):
        found = {
            "norm_l1": np.abs(predictor).sum(axis=1),
            "norm_l2": np.exp(log_sum_of_squares(predictor) / 2),
        }
        if isinstance(problem, Classification):
            found |= _margins(problem, recorded)
            return found | {f"margin_{p}": _over(found["margin"], found[f"norm_{p}"])
                            for p in ("l1", "l2")}  # fmt: skip
        log_loss = log_sum_of_squares(predictor @ problem.X.T - problem.y) + problem.log_factor
        found |= {"log_loss": log_loss, "loss": np.exp(log_loss)}
        if problem.truth is not None:
            found["test_error"] = ((predictor - problem.truth) ** 2).sum(axis=1)
    return found


def _over(margin: Array, norm: Array) -> Array:
    """margin / norm; NaN at a zero predictor, which has no direction."""
    return margin / np.where(norm > 0, norm, np.nan)


def _margins(problem: Classification, recorded: dict[str, Array]) -> dict[str, Array]:
    """Losses and margins on classification data, from the flow's own where it has them."""
    margins = recorded.get("margins")
    if margins is None:
        margins = recorded["predictor"] @ problem.signed_rows.T
    if "smoothed_margin" in recorded:
        log_loss = -recorded["smoothed_margin"]
    else:
        log_loss = log_mean_loss(problem.loss, margins)
    found = {"log_loss": log_loss, "smoothed_margin": -log_loss,
             "loss": np.where(log_loss > LEAST, np.exp(log_loss), np.nan),
             "margins": margins, "margin": margins.min(axis=1),
             "train_accuracy": accuracy(margins)}  # fmt: skip
    if problem.population is not None:
        tested = [problem.population.accuracy(beta) for beta in recorded["predictor"]]
        found["test_accuracy"] = np.array(tested)
    if "log_slopes" in recorded:
        found["kernel_distance"] = kernel_distances(problem.signed_rows, recorded["log_slopes"])
    return found


def _dims(name: str) -> tuple[str, ...]:
    second = {"predictor": "feature", "dual": "sample", "parameters": "parameter",
              "margins": "sample"}.get(name)  # fmt: skip
    return ("time",) if second is None else ("time", second)


def _description(
    problem: Regression | Classification, model: dict[str, Any], flow: dict[str, Any]
) -> dict[str, Any]:
    described = {"description": problem.description, "samples": problem.samples,
                 "dimension": problem.dimension, "recipe": problem.recipe}  # fmt: skip
    if isinstance(problem, Classification):
        described["loss"] = problem.loss
    seed = (problem.recipe or {}).get("seed")
    return {"problem": described, "model": model, "flow": flow, "seed": seed,
            "versions": versions()}  # fmt: skip
