"""The predictor at the end of training on sparse data, and its distance from the truth."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from penchant.arguments import Array
from penchant.explore.controls import Choice, Number
from penchant.explore.picture import Curve, Panel, Picture, level, line
from penchant.explore.state import Values, View
from penchant.plotting.style import BLACK, BLUE, GREEN, GREY, ORANGE, RED
from penchant.problems.regression import Regression, sparse_regression
from penchant.regularizers.norms import L1, L2
from penchant.regularizers.q import Q
from penchant.solvers.interpolate import interpolate
from penchant.solvers.interpolation_path import interpolate_path

DIMENSION, SPARSITY = 100, 5
# close together where the error changes, at every depth: a curve on a screen needs no more
LOG10_ALPHAS = np.array(
    [2, 1.5, 1, 0.75, 0.5, 0.25, 0, -0.25, -0.5, -0.75, -1, -1.25, -1.5, -2, -2.5, -3, -4, -5, -6]
)
DEPTHS = {str(depth): f"depth {depth}" for depth in (2, 3, 4, 6, 10)}
CONTROLS = (
    Choice("depth", "depth D", DEPTHS, "2"),
    Number("log10_alpha", "initial scale α", -6, 2, 0.25, -2, power=True),
    Number("shape", "initial planted weights relative to the others", 0.25, 4, 0.05, 1),
    Number("noise", "noise of the labels", 0, 1, 0.05, 0.1),
    Number("samples", "samples N", 10, 80, 5, 40),
    Number("seed", "seed of the data", 0, 20, 1, 0),
)
Setting = tuple[int, float, float, int, int]  # all but alpha


def problem_of(setting: Setting) -> Regression:
    """The data of a setting."""
    _, _, noise, samples, seed = setting
    return sparse_regression(samples, DIMENSION, sparsity=SPARSITY, noise=noise, seed=seed)


def start_of(setting: Setting) -> Array:
    """The shape of the initialization: planted weights are larger or smaller by one factor."""
    shape = np.ones(DIMENSION)
    shape[:SPARSITY] = setting[1]
    return shape


@lru_cache(maxsize=128)
def end(setting: Setting, log10_alpha: float) -> Array:
    """The predictor at the end of gradient flow."""
    problem, log_alpha = problem_of(setting), np.log(10) * log10_alpha
    return interpolate(
        problem.X, problem.y, Q(setting[0], log_alpha=log_alpha, shape=start_of(setting))
    ).beta


@lru_cache(maxsize=64)
def errors(setting: Setting) -> tuple[Array, float, float]:
    """Test errors beyond the noise: along alpha, and of the least l1 and l2 norm."""
    problem = problem_of(setting)
    path = interpolate_path(
        problem.X,
        problem.y,
        setting[0],
        shape=start_of(setting),
        log_alphas=np.log(10) * LOG10_ALPHAS,
    )
    ends = (interpolate(problem.X, problem.y, norm).beta for norm in (L1(), L2()))
    l1, l2 = map(problem.population_error, ends)
    assert problem.truth is not None
    return np.sum((path.beta - problem.truth) ** 2, axis=1), l1, l2


def setting_of(values: Values) -> Setting:
    """The values of the controls, as numbers."""
    return (
        int(values["depth"]),
        float(values["shape"]),
        float(values["noise"]),
        int(values["samples"]),
        int(values["seed"]),
    )


def picture(values: Values) -> Picture:
    """The weights at the end of training, and the test error along alpha."""
    setting, log10_alpha = setting_of(values), float(values["log10_alpha"])
    beta, truth = end(setting, log10_alpha), problem_of(setting).truth
    assert truth is not None
    error = float(np.sum((beta - truth) ** 2))
    path, l1, l2 = errors(setting)
    sentence = (
        f"From α = {10**log10_alpha:.3g} the test error is {error:.3g} beyond the noise; it is "
        f"{l1:.3g} for the predictor of least ℓ₁ norm and {l2:.3g} for that of least ℓ₂ norm."
    )
    panels = (_weights(beta, truth), _errors(log10_alpha, error, path, l1, l2))
    return Picture(panels, sentence, {"error": error, "l1": l1, "l2": l2})


def _weights(beta: Array, truth: Array) -> Panel:
    indices, planted = np.arange(1.0, DIMENSION + 1), truth != 0
    curves = (
        Curve("truth", indices[planted], truth[planted], "crosses", BLACK),
        Curve("planted weights", indices[planted], beta[planted], "points", BLUE),
        Curve("all others", indices[~planted], beta[~planted], "points", GREY),
    )
    return Panel(
        "weights",
        "The weights at the end of training",
        "index of the weight",
        "weight",
        curves,
        "log",
        x_range=(0.8, 1.2 * DIMENSION),
        y_range=(-0.6, 0.9),
    )


def _errors(log10_alpha: float, error: float, path: Array, l1: float, l2: float) -> Panel:
    reach, alphas, here = (1e-6, 1e2), 10**LOG10_ALPHAS, np.array([10**log10_alpha])
    curves = (
        Curve("least ℓ₁ norm", *level(reach, l1), "dashed", GREEN),
        Curve("least ℓ₂ norm", *level(reach, l2), "dotted", RED, 3),
        Curve("gradient flow", alphas, path, "line", BLUE),
        Curve("this α", *line(10**log10_alpha, (1e-4, 10)), "line", ORANGE, 1, False),
        Curve("this α", here, np.array([error]), "stars", ORANGE),
    )
    return Panel(
        "errors",
        "Test error beyond the noise",
        "initial scale α",
        "squared distance to the truth",
        curves,
        "log",
        "log",
        reach,
        (1e-4, 10),
    )


def python(values: Values) -> str:
    """The end of training for these values, and its test error."""
    (depth, shape, noise, samples, seed), log10_alpha = setting_of(values), values["log10_alpha"]
    return f"""\
import numpy as np
import penchant

problem = penchant.problems.sparse_regression(
    {samples}, {DIMENSION}, sparsity={SPARSITY}, noise={noise:g}, seed={seed}
)
shape = np.where(problem.truth != 0, {shape:g}, 1.0)
q = penchant.Q({depth}, log_alpha={float(log10_alpha):g} * np.log(10), shape=shape)
beta = penchant.interpolate(problem, q).beta
error = np.sum((beta - problem.truth) ** 2)
print(f"{{error:.3g}}")
"""


VIEW = View(
    "regression",
    "The end of training in sparse regression",
    f"{SPARSITY} of {DIMENSION} weights generated the labels. The scale and the shape of the "
    "initialization decide which of all fitting predictors training selects, and so the test "
    "error.",
    CONTROLS,
    picture,
    python,
    sweep="log10_alpha",
)
