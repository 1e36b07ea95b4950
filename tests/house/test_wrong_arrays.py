"""Arrays at the door: every array argument of the library, times every kind of spoiled array.

A spoiled array is refused by one sentence that begins with the function and names the argument, or
it is right there and gives an answer; arrays of other kinds with the same numbers give the same
answer. A new array argument joins `ARGUMENTS` with one line.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import xarray

from penchant import (
    L1,
    L2,
    Classification,
    DiagonalNet,
    ParameterFlow,
    Q,
    Regression,
    forecasts,
    interpolate,
    max_margin,
    measures,
    models,
    problems,
    regularizers,
    solvers,
    stop,
    train,
)
from penchant.namespaces import public, public_names
from penchant.regularizers import Linf, Lp, Nuclear, R

# numbers that float32 holds
X, Y, LABELS = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]]), np.array([1.0, -2.0]), [1.0, -1.0]
BETA, KERNEL, EYES = np.array([0.25, -0.5, 1.0]), np.array([[2.0, 0.5], [0.5, 1.0]]), np.eye(4)
RELU = measures.InfiniteKernel("relu", (3,), biases=0.1)
NET, SQUARES = DiagonalNet(2, alpha=0.5), models.Reparametrized(lambda w: w**2, start=1.0)
REGRESSION, LABELLED = Regression(X, Y), Classification(X, LABELS)
STACK, FALLING = EYES.reshape(4, 2, 2), np.array([0.0, -1.0])
SENSING = problems.Sensing(STACK, [2.0, 0.0, 0.0, 1.0])
TIMES, CURVE = np.arange(8.0), np.array([0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0])
PARAMETERS = NET.start(3)


PATH = train(NET, LABELLED, ParameterFlow(), stop=stop.Loss(0.1))


@dataclasses.dataclass(frozen=True)
class Argument:
    """An array argument: who complains, its name, a call of it, a right value.

    `right` are the kinds of spoiled arrays that are right here. What is `alone` has no partner
    whose length it must match; the sentence may name the `partner` instead.
    """

    who: str
    name: str
    call: Callable[[Any], Any]
    value: Any
    right: tuple[str, ...] = ()
    alone: bool = False
    partner: str = "X and y"


SPARSE = ("interpolate", "interpolate_path", "max_margin", "max_margin_path")


def pair(who, call, X=X, y=Y):
    """The arguments X and y of a function."""
    return [
        Argument(who, "X", lambda X: call(X, y), X, ("sparse",) if who in SPARSE else ()),
        Argument(who, "y", lambda y: call(X, y), np.array(y)),
    ]


SEVERAL = ("axes",)  # a stack of vectors
OPEN = ("nan", "infinite")  # the end of a curve may be unknown, and infinity passes a level
ALONE = {"alone": True}
ANY = ("axes", "scalar")  # of any shape
STEPS_BETA = np.array([2.0**-23, 2.0**-26])
ARGUMENTS = [
    *pair("Regression", Regression),
    Argument("Regression", "truth", lambda v: Regression(X, Y, truth=v), BETA),
    *pair("Classification", Classification, y=LABELS),
    Argument("Classification", "truth", lambda v: Classification(X, LABELS, truth=v), BETA),
    Argument(
        "fourier_losses",
        "logits",
        lambda v: measures.fourier_losses(v, [1]),
        np.arange(27.0).reshape(3, 3, 3) % 5,
    ),
    Argument("multiclass", "X", lambda v: problems.multiclass(v, [0, 1]), X, partner="labels"),
    Argument("multiclass", "labels", lambda v: problems.multiclass(X, v), np.array([0.0, 1.0])),
    Argument("Sensing", "measurements", lambda v: problems.Sensing(v, np.ones(4)), STACK),
    Argument("Sensing", "y", lambda v: problems.Sensing(STACK, v), np.ones(4)),
    Argument("Sensing", "truth", lambda v: problems.Sensing(STACK, np.ones(4), truth=v), KERNEL),
    Argument("Completion", "entries", lambda v: problems.Completion((2, 2), v, Y), np.eye(2)),
    Argument("Completion", "values", lambda v: problems.Completion((2, 2), [[0, 0], [1, 1]], v), Y),
    Argument(
        "Completion",
        "truth",
        lambda v: problems.Completion((2, 2), [[0, 0]], [1.0], truth=v),
        np.eye(2),
    ),
    Argument(
        "coherent_completion",
        "truth",
        lambda v: problems.coherent_completion(2, v, tau=0.5),
        KERNEL,
        **ALONE,
    ),
    *pair("interpolate", lambda X, y: interpolate(X, y, L2())),
    *pair("max_margin", lambda X, y: max_margin(X, y, L2()), y=LABELS),
    Argument("interpolate", "X", lambda v: interpolate(v, np.ones(4), Nuclear()), STACK),
    *pair("interpolate_path", lambda X, y: solvers.interpolate_path(X, y, log_alphas=[0.0])),
    Argument(
        "interpolate_path",
        "log_alphas",
        lambda v: solvers.interpolate_path(X, Y, log_alphas=v),
        FALLING,
        **ALONE,
    ),
    *(
        Argument(
            "interpolate_path",
            name,
            lambda v, name=name: solvers.interpolate_path(X, Y, log_alphas=[0.0], **{name: v}),
            np.ones(3),
        )
        for name in ("shape", "tilt")
    ),
    *(
        argument
        for who, solve in (
            ("max_margin_path", solvers.max_margin_path),
            ("ratchet_path", solvers.ratchet_path),
        )
        for argument in (
            *pair(who, lambda X, y, solve=solve: solve(X, y, mus=[1.0]), y=LABELS),
            Argument(
                who,
                "mus",
                lambda v, solve=solve: solve(X, LABELS, mus=v),
                np.array([1.0, 0.5]),
                **ALONE,
            ),
            Argument(
                who,
                "shape",
                lambda v, solve=solve: solve(X, LABELS, mus=[1.0], shape=v),
                np.ones(3),
            ),
        )
    ),
    Argument(
        "max_margin_path",
        "tilt",
        lambda v: solvers.max_margin_path(X, LABELS, mus=[1.0], tilt=v),
        np.ones(3),
    ),
    *pair("saddles", solvers.saddles),
    *pair("separation", solvers.separation, y=LABELS),
    *pair(
        "stationary_points",
        lambda X, y: solvers.stationary_points(X, y, Lp(0.5), starts=1),
        y=LABELS,
    ),
    *pair("held_ridge", lambda X, y: solvers.held_ridge(X, y, 0.5)),
    Argument("held_ridge", "free", lambda v: solvers.held_ridge(X, Y, 9.0, free=v), BETA),
    Argument("held_best", "X", lambda v: solvers.held_best(v, BETA, np.ones(3)), X, **ALONE),
    Argument("held_best", "truth", lambda v: solvers.held_best(X, v, np.ones(3)), BETA),
    Argument("held_best", "free", lambda v: solvers.held_best(X, BETA, v), np.ones(3)),
    Argument("slow_flow", "X", lambda v: solvers.slow_flow(v, BETA), X, **ALONE),
    Argument("slow_flow", "start", lambda v: solvers.slow_flow(X, v), BETA, SEVERAL),
    Argument("slow_flow", "target", lambda v: solvers.slow_flow(EYES, KERNEL, target=v), KERNEL),
    *pair("descent_points", lambda X, y: solvers.descent_points(X, y, 0.1, 0.5, BETA, [1])),
    Argument(
        "descent_points",
        "start",
        lambda v: solvers.descent_points(X, Y, 0.1, 0.5, v, [1]),
        BETA,
        ("scalar",),
    ),
    Argument(
        "descent_points",
        "steps",
        lambda v: solvers.descent_points(X, Y, 0.1, 0.5, BETA, v),
        np.array([1.0, 4.0]),
        **ALONE,
    ),
    Argument("error_floor", "X", lambda v: solvers.error_floor(v, BETA), X, **ALONE),
    Argument("error_floor", "truth", lambda v: solvers.error_floor(X, v), BETA),
    Argument("l1_ends", "Z", solvers.l1_ends, X, **ALONE),
    *pair("least_squares_limit", lambda X, y: solvers.least_squares_limit(X, y, 0.1)),
    Argument(
        "least_squares_limit",
        "start",
        lambda v: solvers.least_squares_limit(X, Y, 0.1, v),
        BETA,
        ("scalar",),
    ),
    *pair("memorization_steps", lambda X, y: solvers.memorization_steps(X, y, 0.1, 0.1)),
    Argument(
        "memorization_steps",
        "start",
        lambda v: solvers.memorization_steps(X, Y, 0.1, 0.1, v),
        BETA,
        ("scalar",),
    ),
    *pair("minimisers", lambda X, y: solvers.minimisers(X, y, 2, [0.0])),
    Argument("minimisers", "log_mus", lambda v: solvers.minimisers(X, Y, 2, v), FALLING, **ALONE),
    *pair(
        "recovery_scale",
        lambda X, y: solvers.recovery_scale(X, y, BETA, 2, [0.0], error=0.1),
    ),
    Argument(
        "recovery_scale",
        "truth",
        lambda v: solvers.recovery_scale(X, Y, v, 2, [0.0], error=0.1),
        BETA,
    ),
    Argument(
        "recovery_scale",
        "log_mus",
        lambda v: solvers.recovery_scale(X, Y, BETA, 2, v, error=0.1),
        FALLING,
        **ALONE,
    ),
    Argument(
        "least_weights",
        "knots",
        lambda v: solvers.least_weights(Regression([[0.0], [1.0]], Y), v),
        TIMES,
        **ALONE,
    ),
    *(
        Argument(
            "mean_kernel",
            name,
            lambda v, name=name: measures.mean_kernel(
                **{"x": TIMES, "other": TIMES, name: v}, width=5, alpha=1.0
            ),
            TIMES,
            **ALONE,
        )
        for name in ("x", "other")
    ),
    *pair("primal_residual", lambda X, y: solvers.primal_residual(X, y, BETA)),
    Argument("primal_residual", "beta", lambda v: solvers.primal_residual(X, Y, v), BETA),
    *pair("ridge_limit", lambda X, y: solvers.ridge_limit(X, y, 0.1, 0.5)),
    Argument(
        "greedy_points",
        "spaces",
        lambda v: solvers.greedy_points(SENSING, solvers.empty_factors(SENSING, False), [v]),
        EYES,
    ),
    *pair("margins", lambda X, y: measures.margins(X, y, BETA), y=LABELS),
    Argument(
        "kkt_residual",
        "parameters",
        lambda v: measures.kkt_residual(LABELLED, NET, v),
        np.array([1.0, 0.25, 0.5, 0.5, 0.25, 0.25]),
    ),
    Argument(
        "kkt_residual",
        "outputs",
        lambda v: measures.kkt_residual(LABELLED, NET, 2 * PARAMETERS, outputs=v),
        np.array([2.0, -1.0]),
    ),
    Argument(
        "excess_norm", "beta", lambda v: measures.excess_norm(LABELLED, v, L1()), BETA, SEVERAL
    ),
    Argument(
        "excess_norm",
        "margin",
        lambda v: measures.excess_norm(LABELLED, np.array([BETA, BETA]), L1(), margin=v),
        np.ones(2),
    ),
    Argument(
        "tangent_twin",
        "times",
        lambda v: solvers.tangent_twin(NET, LABELLED, v).outputs,
        np.array([0.5, 1.0]),
        **ALONE,
    ),
    Argument(
        "tangent_twin",
        "points",
        lambda v: solvers.tangent_twin(NET, LABELLED, [1.0], v).outputs,
        X,
        **ALONE,
    ),
    Argument("margins", "beta", lambda v: measures.margins(X, LABELS, v), BETA),
    Argument("stability", "limit", lambda v: measures.stability(PATH, v), np.array([1.0, 2.0])),
    Argument("support_vectors", "margins", measures.support_vectors, BETA, SEVERAL, **ALONE),
    Argument(
        "margin_accuracy",
        "margins",
        measures.margin_accuracy,
        BETA,
        ("infinite", *SEVERAL),
        **ALONE,
    ),
    Argument("crossing", "x", lambda v: measures.crossing(v, CURVE, 0.5), TIMES, OPEN),
    Argument("crossing", "y", lambda v: measures.crossing(TIMES, v, 0.5), CURVE, OPEN),
    Argument("angle", "a", lambda v: measures.angle(v, BETA), X[0], SEVERAL),
    Argument("angle", "b", lambda v: measures.angle(BETA, v), X[0], SEVERAL),
    Argument("angles", "beta", measures.angles, BETA, SEVERAL),
    Argument("azimuth_pitch", "beta", measures.azimuth_pitch, BETA, SEVERAL),
    Argument("gradient_distance", "F0", lambda v: measures.gradient_distance(v, X), X),
    Argument("gradient_distance", "F1", lambda v: measures.gradient_distance(X, v), X),
    Argument("kernel_distance", "K0", lambda v: measures.kernel_distance(v, EYES), EYES),
    Argument("kernel_distance", "K1", lambda v: measures.kernel_distance(EYES, v), EYES),
    Argument("kernel_alignment", "K", lambda v: measures.kernel_alignment(v, Y), KERNEL),
    Argument("kernel_alignment", "y", lambda v: measures.kernel_alignment(KERNEL, v), Y),
    Argument("effective_rank", "K", measures.effective_rank, KERNEL),
    Argument("participation_ratio", "K", measures.participation_ratio, KERNEL),
    Argument("assumptions", "X", lambda v: measures.assumptions(NET, v), X, **ALONE),
    Argument(
        "lojasiewicz",
        "center",
        lambda v: measures.lojasiewicz(lambda w: w @ w, v, 1.0, starts=1, steps=1),
        BETA,
        **ALONE,
    ),
    *pair("lojasiewicz_quadratic", lambda X, y: measures.lojasiewicz_quadratic(X, y, BETA, 0.5)),
    Argument(
        "lojasiewicz_quadratic",
        "center",
        lambda v: measures.lojasiewicz_quadratic(X, Y, v, 0.5),
        BETA,
    ),
    Argument(
        "kernel_machine", "start", lambda v: measures.kernel_machine(NET, REGRESSION, v), PARAMETERS
    ),
    Argument(
        "kernel_regression",
        "x",
        lambda v: measures.kernel_regression(NET, PARAMETERS, v, Y),
        X,
        partner="y",
    ),
    Argument(
        "kernel_regression",
        "y",
        lambda v: measures.kernel_regression(NET, PARAMETERS, X, v),
        Y,
    ),
    Argument(
        "tangent_kernel",
        "x",
        lambda v: measures.tangent_kernel(NET, PARAMETERS, v),
        X,
        SEVERAL,
        True,
    ),
    Argument(
        "tangent_kernel", "x2", lambda v: measures.tangent_kernel(NET, PARAMETERS, X, v), X, **ALONE
    ),
    Argument(
        "gradient_turn",
        "x",
        lambda v: measures.gradient_turn(NET, PARAMETERS, 2 * PARAMETERS, v),
        X,
        SEVERAL,
        **ALONE,
    ),
    Argument("grokking", "t", lambda v: measures.grokking(v, CURVE, CURVE), TIMES),
    Argument("grokking", "train", lambda v: measures.grokking(TIMES, v, CURVE), CURVE),
    Argument("grokking", "test", lambda v: measures.grokking(TIMES, CURVE, v), CURVE),
    Argument(
        "grokking", "norm", lambda v: measures.grokking(TIMES, CURVE, CURVE, norm=v), 1 + CURVE
    ),
    Argument("kernel_error", "X", lambda v: forecasts.kernel_error(RELU, v, Y), X, partner="y"),
    Argument("kernel_error", "y", lambda v: forecasts.kernel_error(RELU, X, v), Y),
    Argument(
        "population_error",
        "truth",
        lambda v: forecasts.population_error(L1(), samples=2, dimension=5, truth=v, noise=0.1),
        np.array([1.0, 0.5]),
        **ALONE,
    ),
    Argument(
        "population_matrix_error",
        "truth",
        lambda v: forecasts.population_matrix_error(Nuclear(), samples=2, truth=v, noise=0.1),
        np.array([[1.0, 0.5], [0.0, 2.0]]),
        **ALONE,
    ),
    Argument(
        "population_error",
        "covariance",
        lambda v: forecasts.population_error(
            L1(), samples=1, dimension=3, truth=[1.0], noise=0.1, covariance=v
        ),
        np.array([1.0, 2.0, 0.5]),
        partner="3 numbers",
    ),
    *(
        Argument(
            name,
            argument,
            lambda v, call=call, argument=argument: call(**{"truth": [1.0], argument: v}),
            np.array(value),
            partner="40 numbers",
            alone=argument == "truth",
        )
        for name, call in (
            (
                "largest_alpha",
                lambda **given: forecasts.largest_alpha(
                    0.5, samples=20, dimension=40, noise=0.1, **given
                ),
            ),
            (
                "population_margin",
                lambda **given: forecasts.population_margin(
                    L1(), samples=20, dimension=40, **given
                ),
            ),
            (
                "separable_samples",
                lambda **given: forecasts.separable_samples(dimension=40, flips=0.1, **given),
            ),
            (
                "best_alpha",
                lambda **given: forecasts.best_alpha(samples=20, dimension=40, noise=0.1, **given),
            ),
            (
                "fewest_samples",
                lambda **given: forecasts.fewest_samples(
                    0.5, L1(), dimension=40, noise=0.1, **given
                ),
            ),
        )
        for argument, value in (("truth", [1.0]), ("covariance", [1.0] * 20 + [0.5] * 20))
    ),
    Argument(
        "adam_delay", "step_beta", lambda v: forecasts.adam_delay(v, 1e-3), STEPS_BETA, ANY, **ALONE
    ),
    Argument(
        "adam_clock", "delays", forecasts.adam_clock, 2.0**36 * STEPS_BETA, ANY + OPEN, **ALONE
    ),
    *pair("predicted_delay", lambda X, y: forecasts.predicted_delay(X, y, BETA, 0.1, 0.1)),
    Argument(
        "predicted_delay", "truth", lambda v: forecasts.predicted_delay(X, Y, v, 0.1, 0.1), BETA
    ),
    Argument("turning_window", "z", lambda v: forecasts.turning_window(v, CURVE[1:]), TIMES),
    Argument("turning_window", "turned", lambda v: forecasts.turning_window(TIMES, v), CURVE[1:]),
    Argument(
        "start_regularizer",
        "parameters",
        lambda v: forecasts.start_regularizer(SQUARES, v)(BETA),
        np.ones(6),
    ),
    Argument("tilted_q", "plus", lambda v: forecasts.tilted_q(2, v, np.ones(3)), np.ones(3)),
    Argument("tilted_q", "minus", lambda v: forecasts.tilted_q(2, np.ones(3), v), np.ones(3)),
    Argument(
        "tilted_q",
        "dual",
        lambda v: forecasts.tilted_q(2, np.ones(3), np.ones(3), v),
        BETA,
        ("scalar",),
    ),
    Argument("L2", "weights", lambda v: L2(weights=v), np.ones(3), **ALONE),
    Argument("Q", "shape", lambda v: Q(2, alpha=0.5, shape=v), np.ones(3), **ALONE),
    Argument("Q", "tilt", lambda v: Q(2, alpha=0.5, tilt=v), np.ones(3), **ALONE),
    Argument("R", "shape", lambda v: R(alpha=0.5, shape=v), np.ones(3), **ALONE),
    *(
        Argument(type(one).__name__, name, call, BETA, **ALONE)
        for one in (Q(2, alpha=0.5), Q(3, alpha=0.5), L1(), L2(), Linf(), Lp(1.5), R(alpha=0.5))
        for name, call in (
            ("beta", one),
            ("beta", one.gradient),
            ("s", one.inverse_gradient),
        )
        if not (type(one) in (L1, Linf) and name == "s")
    ),
    Argument(
        "DerivativeMatch",
        "points",
        lambda v: regularizers.DerivativeMatch(NET, v, X),
        X,
        partner="slopes",
    ),
    Argument("Near", "direction", lambda v: stop.Near(v, 1.0), BETA, **ALONE),
]


def with_entry(array, value):
    """A copy of `array` whose last entry is `value`."""
    changed = np.array(array, dtype=complex if isinstance(value, complex) else float)
    changed.flat[-1] = value
    return changed


def masked(array, where):
    return np.ma.masked_array(array, mask=np.full(np.shape(array), where))


# what is wrong with an array: (spoil it, what the sentence says of it)
SPOILED = {
    "nan": (lambda a: with_entry(a, float("nan")), "finite, got nan|NaN"),
    "infinite": (lambda a: with_entry(a, -float("inf")), "finite"),
    "complex": (lambda a: with_entry(a, 1j), "complex numbers"),
    "strings": (lambda a: a.astype(str), "strings"),
    "text": (lambda a: "0.5", "strings|'0.5'|a single number"),
    "objects": (lambda a: np.full(a.shape, None), "object"),
    "empty": (lambda a: np.zeros((0,) * a.ndim), "empty"),
    "axes": (lambda a: a[None], "dimension|shape|match"),
    "scalar": (lambda a: 1.0, "dimension|shape|a single number"),
    "ragged": (lambda a: [[1.0, 2.0], [3.0]], "ragged rows"),
    "sparse": (
        lambda a: scipy.sparse.coo_array(a.reshape(-1, a.shape[-1])),
        r"toarray\(\)|3 dimensions",
    ),
    "masked": (lambda a: masked(a, True), "masked entries"),
    "longer": (lambda a: np.concatenate([a, a[:1]]), ""),
}
# the same numbers in another form
FAITHFUL = {
    "list": lambda a: a.tolist(),
    "float32": lambda a: a.astype(np.float32),
    "columns first": np.asfortranarray,
    "nothing masked": lambda a: masked(a, False),
    "labelled": xarray.DataArray,
}


def numbers(answer):
    """Every array and number of an answer."""
    if dataclasses.is_dataclass(answer):
        answer = [getattr(answer, field.name) for field in dataclasses.fields(answer)]
    if isinstance(answer, Iterator | list | tuple):
        return [array for part in answer for array in numbers(part)]
    return [np.asarray(answer)] if isinstance(answer, np.ndarray | np.generic | float | int) else []


def ids(argument):
    return f"{argument.who}-{argument.name}"


@pytest.mark.parametrize("argument", ARGUMENTS, ids=ids)
@pytest.mark.filterwarnings("ignore")
def test_spoiled_arrays_are_refused_by_a_sentence(argument):
    for kind, (spoil, rule) in SPOILED.items():
        if kind == "longer" and argument.alone:
            continue
        if kind in argument.right:
            numbers(argument.call(spoil(argument.value)))
            continue
        with pytest.raises((ValueError, TypeError)) as caught:
            argument.call(spoil(argument.value))
        message = str(caught.value)
        assert re.fullmatch(rf"{argument.who}\b[^:\n]*: [^\n]{{,200}}", message), (kind, message)
        assert re.search(rf"\b({argument.name}|{argument.partner})\b", message), (kind, message)
        assert re.search(rule, message), (kind, message)


@pytest.mark.parametrize("argument", ARGUMENTS, ids=ids)
def test_the_same_numbers_give_the_same_answer(argument):
    expected = numbers(argument.call(argument.value))
    for kind, form in FAITHFUL.items():
        answer = numbers(argument.call(form(argument.value)))
        assert len(answer) == len(expected), kind
        for one, other in zip(answer, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=kind)


LABELLING = [one for one in ARGUMENTS if one.value.tolist() == LABELS]


@pytest.mark.parametrize("argument", LABELLING, ids=ids)
def test_truth_values_are_no_labels(argument):
    with pytest.raises(ValueError, match=f"^{argument.who}: labels must be -1 and \\+1, got 0 and"):
        argument.call(argument.value > 0)


def test_no_array_argument_is_left_out():
    """Of the functions; `derive` takes starts of several coordinates, tested beside it."""
    rooms = {"solvers", "problems", "measures", "forecasts"}
    taken = {
        (name, argument)
        for name, where in public_names().items()
        if rooms & set(where.split(".")) or where.count(".") == 1
        if inspect.isfunction(public(name))
        for argument, told in inspect.signature(public(name)).parameters.items()
        if "Array" in str(told.annotation)
    }
    assert taken - {(one.who, one.name) for one in ARGUMENTS} == {("derive", "start")}
