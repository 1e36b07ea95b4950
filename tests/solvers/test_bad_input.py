"""A problem stands for X and y; what is refused, in one sentence with the rule and the value."""

import numpy as np
import pytest

from penchant import L1, L2, Q, Regression, interpolate, max_margin
from penchant.problems import (
    gaussian_sensing,
    low_rank_completion,
    separable_points,
    sparse_regression,
)
from penchant.regularizers import Frobenius, Lp, Nuclear, R, Schatten
from penchant.solvers import interpolate_path, max_margin_path, ratchet_path
from refusals import refusals, refused_with

X = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])
Y = np.array([1.0, -2.0])
BETA = np.array([0.3, -0.2, 1.0])
NAN, INF = float("nan"), float("inf")


# a scale that is no scale: (arguments, the argument, the value seen)
BAD_SCALES = [
    ({"alpha": 0.0}, "alpha", "0.0"),
    ({"alpha": -1e-3}, "alpha", "-0.001"),
    ({"alpha": NAN}, "alpha", "nan"),
    ({"alpha": INF}, "alpha", "inf"),
    ({"alpha": "0.1"}, "alpha", "'0.1'"),
    ({"alpha": 1j}, "alpha", "1j"),
    ({"alpha": [0.1, 0.2]}, "alpha", "[0.1, 0.2]"),
    ({"alpha": True}, "alpha", "True"),
    ({"mu": 0.0}, "mu", "0.0"),
    ({"mu": -2.0}, "mu", "-2.0"),
    ({"mu": INF}, "mu", "inf"),
    ({"log_alpha": NAN}, "log_alpha", "nan"),
    ({"log_alpha": -INF}, "log_alpha", "-inf"),
    ({"log_alpha": "-3"}, "log_alpha", "'-3'"),
    ({}, "alpha, log_alpha and mu", "none"),
    ({"alpha": 0.1, "mu": 0.01}, "exactly one", "alpha and mu"),
    ({"alpha": 0.1, "log_alpha": -1.0}, "exactly one", "alpha and log_alpha"),
    ({"log_alpha": -1.0, "mu": 0.1}, "exactly one", "log_alpha and mu"),
]


@pytest.mark.parametrize(("arguments", "name", "seen"), BAD_SCALES, ids=str)
@pytest.mark.parametrize("build", [Q, R])
def test_scales(build, arguments, name, seen):
    refused_with(lambda: build(**arguments), f"{build.__name__}: ", name, seen)


@pytest.mark.parametrize(
    ("depth", "seen"),
    [(1, "1"), (0, "0"), (-2, "-2"), (2.5, "2.5"), (NAN, "nan"), (INF, "inf"), ("2", "'2'"),
     (None, "None"), (True, "True"), (3j, "3j"), ([2], "[2]")],
)  # fmt: skip
def test_depths(depth, seen):
    refused_with(lambda: Q(depth=depth, alpha=0.1), "Q: ", "depth", seen)
    refused_with(lambda: interpolate_path(X, Y, depth, log_alphas=[-1.0]), "depth", seen)


def test_a_whole_float_is_a_depth():
    assert Q(depth=3.0, alpha=0.1).depth == 3
    assert Q(depth=np.int64(4), alpha=0.1).depth == 4


@pytest.mark.parametrize(
    "build", [lambda w: Q(2, alpha=0.1, shape=w), lambda w: R(alpha=0.1, shape=w)]
)
def test_shapes_with_a_zero(build):
    refused_with(lambda: build([1.0, 0.0, 2.0]), "shape", "zero", "index 1")
    refused_with(lambda: build([1.0, 2.0, -0.0]), "shape", "zero", "index 2")


def test_weights_of_l2_are_positive():
    refused_with(lambda: L2(weights=[1.0, 0.0]), "L2: ", "weights", "> 0", "0.0")
    refused_with(lambda: L2(weights=[1.0, 2.0, -3.0]), "L2: ", "weights", "> 0", "-3.0")


@pytest.mark.parametrize(
    "regularizer",
    [Q(2, alpha=0.1, shape=[1.0, 2.0]), R(alpha=0.1, shape=[1.0, 2.0]), L2(weights=[1.0, 2.0])],
    ids=str,
)
def test_lengths_that_do_not_match(regularizer):
    refused_with(lambda: interpolate(X, Y, regularizer), "interpolate: ", "2", "3", "X")
    refused_with(lambda: regularizer(BETA), type(regularizer).__name__, "beta", "2", "3")


def test_lengths_on_a_path():
    refused_with(
        lambda: interpolate_path(X, Y, 2, log_alphas=[-1.0], shape=[1.0, 2.0]), "2", "3", "X"
    )


@pytest.mark.parametrize("regularizer", [None, "Q", 2.0, Q, np.ones(3)], ids=repr)
def test_what_is_not_a_regularizer(regularizer):
    refused_with(lambda: interpolate(X, Y, regularizer), "interpolate: ", "regularizer")


@pytest.mark.parametrize(("p", "seen"), [(0.0, "0.0"), (-1.0, "-1.0"), (NAN, "nan"), ("2", "'2'")])
def test_exponents(p, seen):
    refused_with(lambda: Lp(p), "Lp: ", "p must", "> 0", seen)


def test_the_nonconvex_norm_has_no_minimiser_to_offer():
    refused_with(lambda: interpolate(X, Y, Lp(0.5)), "interpolate: ", "convex", "0.5")
    refused_with(lambda: Lp(0.5).inverse_gradient(BETA), "Lp", "p > 1", "0.5")


EVERY = [Q(2, log_alpha=-3.0), Q(3, log_alpha=-1.0), Q(5, log_alpha=-0.5), L1(), L2(), Lp(1.5),
         R(log_alpha=-2.0)]  # fmt: skip


@pytest.mark.parametrize("regularizer", EVERY, ids=str)
@pytest.mark.parametrize(
    ("rows", "targets"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], [1.0, 1.5]),  # two rows that contradict each other
        ([[1.0, 2.0], [0.0, 0.0]], [1.0, 1e-3]),  # nothing times beta is not 1e-3
        ([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 1.0, 3.0]),  # more rows than columns
        ([[0.0, 0.0]], [1.0]),
        (1e150 * np.array([[1.0, 2.0], [2.0, 4.0]]), [1e150, 2.001e150]),
        (1e-150 * np.array([[1.0, 2.0], [2.0, 4.0]]), [1e-150, 2.001e-150]),
    ],
)
def test_targets_out_of_range(regularizer, rows, targets):
    rule = ("y must", "range of X")
    refused_with(lambda: interpolate(rows, targets, regularizer), "interpolate: ", *rule)
    path = lambda: interpolate_path(rows, targets, 3, log_alphas=[-1.0])  # noqa: E731
    refused_with(path, "interpolate_path: ", *rule)


VALUES = sparse_regression(6, 12, sparsity=2, noise=0.1, seed=3)
LABELS = separable_points(5, 8, seed=1)
SEEN = low_rank_completion(samples=9, dimension=4, rank=1, seed=2)
SENSED = gaussian_sensing(samples=6, dimension=3, rank=1, seed=1)
SPECTRAL = [Nuclear(), Frobenius(), Schatten(Q(2, alpha=0.3))]


@pytest.mark.parametrize("regularizer", [L1(), L2(), Q(2, alpha=0.1)])
def test_values(regularizer):
    by_arrays = interpolate(VALUES.X, VALUES.y, regularizer)
    for found in (interpolate(VALUES, regularizer), interpolate(VALUES, regularizer=regularizer)):
        np.testing.assert_array_equal(found.beta, by_arrays.beta)
    # the loss of a problem has no say in where it is fitted
    half = Regression(VALUES.X, VALUES.y, loss="half squares")
    np.testing.assert_array_equal(interpolate(half, regularizer).beta, by_arrays.beta)


@pytest.mark.parametrize("regularizer", SPECTRAL, ids=str)
def test_matrices(regularizer):
    sensed = interpolate(SENSED, regularizer).matrix
    by_arrays = interpolate(SENSED.measurements, SENSED.y, regularizer).matrix
    np.testing.assert_array_equal(sensed, by_arrays)


@pytest.mark.parametrize("regularizer", [L1(), L2(), Q(2, mu=0.5)])
def test_labels(regularizer):
    found, by_arrays = max_margin(LABELS, regularizer), max_margin(LABELS.X, LABELS.y, regularizer)
    np.testing.assert_array_equal(found.beta, by_arrays.beta)


@pytest.mark.parametrize("depth", [(), (3,)])
def test_paths(depth):
    scales = {"log_alphas": [0.0, -1.0]}
    found = interpolate_path(VALUES, *depth, **scales)
    by_arrays = interpolate_path(VALUES.X, VALUES.y, *depth, **scales)
    np.testing.assert_array_equal(found.beta, by_arrays.beta)
    assert found.depth == (depth or (2,))[0]
    for path in (max_margin_path, ratchet_path):
        found, by_arrays = (
            path(*given, *depth, mus=[1.0, 0.1]) for given in ((LABELS,), (LABELS.X, LABELS.y))
        )
        np.testing.assert_array_equal(found.beta, by_arrays.beta)
        assert found.depth == (depth or (2,))[0]


test_what_cannot_be_solved_is_a_sentence = refusals(
    (lambda: interpolate(LABELS, L1()), r"must be a Regression, got Classification; max_marg"),
    (lambda: max_margin(VALUES, L1()), r"must be a Classification, got Regression; interpol"),
    (lambda: max_margin(SEEN, L1()), r"got Completion; use interpolate\(problem, Nuclear"),
    (lambda: interpolate_path(SEEN, log_alphas=[0.0]), "must be a Regression, got Completion"),
    (lambda: interpolate(SEEN, L1()), r"regularizer of singular values .*L1.*\.regression\(\)"),
    (lambda: interpolate(SEEN), "regularizer of singular values such as Nuclear.*got None"),
    (lambda: interpolate(VALUES, Nuclear()), "X must have 3 dimensions"),
    (lambda: interpolate(VALUES, VALUES.y, L1()), "interpolate: a problem holds its own y"),
    (lambda: interpolate(SEEN, SEEN.y, Nuclear()), "interpolate: a problem holds its own y"),
    (lambda: ratchet_path(LABELS, LABELS.y, 2, mus=[1.0]), "a problem holds its own y"),
    (lambda: interpolate(VALUES), "expected a regularizer such as Q"),
    (lambda: interpolate(VALUES.X, VALUES.y), "expected a regularizer such as Q"),
)
