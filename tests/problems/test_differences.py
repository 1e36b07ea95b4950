"""Several classes and tokens as rows of differences: values by hand, by SciPy, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import penchant
from penchant.problems import TokenSelection, multiclass, token_selection
from penchant.regularizers import Nuclear


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 4))
def test_margins_of_classes_are_differences_of_scores(seed, classes, features):
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((5, features)), rng.integers(0, classes, 5)
    W = rng.standard_normal((classes, features))
    scores = X @ W.T
    ahead = [scores[n, c] - scores[n, k] for n, c in enumerate(labels) for k in range(classes)]
    wrong = [k != c for c in labels for k in range(classes)]
    problem = multiclass(X, labels, classes=classes)
    np.testing.assert_allclose(problem.X @ W.ravel(), np.array(ahead)[wrong], atol=1e-12)
    assert (problem.y == 1).all()


@given(st.integers(0, 10**6), st.booleans())
def test_margins_of_tokens_are_differences_of_logits(seed, equal):
    data = token_selection(3, 4, 3, equal_scores=equal, seed=seed)
    W = np.random.default_rng(seed).standard_normal((3, 3))
    logits = np.array([x @ W @ z for x, z in zip(data.tokens, data.queries, strict=True)])
    selected = logits.argmax(axis=1)
    np.testing.assert_array_equal(data.selected(W), selected)
    least = (data.separation(selected).X @ W.ravel()).reshape(3, 3).min(axis=1)
    np.testing.assert_allclose(least, np.diff(np.sort(logits))[:, -1], atol=1e-12)
    assert (data.scores[np.arange(3), data.best] == 1).all()
    assert (np.sort(data.scores)[:, :-1] <= 0.9).all()


def test_the_frobenius_margin_of_tokens_is_that_of_a_general_solver():
    rows = token_selection(3, 3, 3, seed=4).separation().X
    ours = penchant.max_margin(rows, np.ones(len(rows)), penchant.L2())
    rules = {"type": "ineq", "fun": lambda w: rows @ w - 1, "jac": lambda w: rows}
    theirs = minimize(lambda w: w @ w, ours.beta + 0.1, jac=lambda w: 2 * w, constraints=rules)
    np.testing.assert_allclose(ours.beta, theirs.x, atol=1e-6)


def test_a_rotation_of_tokens_and_queries_changes_no_margin():
    data = token_selection(3, 3, 4, seed=1)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    turned = TokenSelection(data.tokens @ turn, data.queries @ turn, data.y, data.head @ turn)
    for norm in (penchant.L2(), Nuclear((4, 4))):
        values = [penchant.max_margin(d.separation(), norm).value for d in (data, turned)]
        assert values[0] == pytest.approx(values[1], rel=1e-7)


def test_tokens_that_no_matrix_selects_are_refused():
    token = [1.0, 0.0]
    equal = TokenSelection([[token, token]], [[1.0, 1.0]], [1], [1.0, 0.0])
    with pytest.raises(ValueError, match="no W prefers token 0 of sample 0 to its token 1"):
        equal.separation()
    between = [[[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]]  # the first lies between the others
    middle = TokenSelection(between, [[1.0, 1.0]], [1], [1.0, 0.0]).separation([0])
    with pytest.raises(ValueError, match="not linearly separable"):
        penchant.max_margin(middle, penchant.L2())


@pytest.mark.parametrize(
    ("labels", "classes", "said"),
    [
        ([0, 0], None, "two classes or more"),
        ([0, 3], 2, "two classes or more"),
        ([0, -1], None, "whole numbers"),
        ([0, 0.5], None, "whole numbers"),
        ([0], None, "one class per sample"),
        ([0, np.nan], None, "labels"),
    ],
)
def test_wrong_classes_are_refused(labels, classes, said):
    with pytest.raises(ValueError, match=f"^multiclass: .*{said}"):
        multiclass(np.eye(2), labels, classes=classes)


def test_a_class_without_a_sample_has_rows_too():
    assert multiclass(np.eye(2), [0, 1], classes=4).X.shape == (6, 8)


@pytest.mark.parametrize(
    "given", [[0, 3, 0], [0, 0], [0.5, 0, 0], [-1, 0, 0], [np.nan, 0, 0]], ids=str
)
def test_wrong_tokens_are_refused(given):
    with pytest.raises(ValueError, match=r"^TokenSelection: selected"):
        token_selection(3, 3, 4).separation(given)
