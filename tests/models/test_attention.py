"""One layer of attention: its values, derivatives deep in the tail, and where it ends."""

import mpmath
import numpy as np
import pytest

import penchant
from penchant.models import attention
from penchant.problems import token_selection
from penchant.regularizers import Nuclear, as_norm


def softmax_by_hand(W, data):
    outputs = []
    for x, z in zip(data.tokens, data.queries, strict=True):
        weights = np.exp(x @ W @ z - (x @ W @ z).max())
        outputs.append(data.head @ x.T @ weights / weights.sum())
    return np.array(outputs)


@pytest.mark.parametrize("factored", [False, True])
def test_outputs_and_derivatives_are_those_of_the_formula(factored):
    data = token_selection(3, 4, 3, equal_scores=False, seed=2)
    net = attention(data.head, factored=factored, rank=2 if factored else None, alpha=0.7, seed=1)
    theta, X = net.start(15), data.training.X
    outputs = softmax_by_hand(net.function.matrix(theta), data)
    np.testing.assert_allclose(net.predict(theta, X), outputs, rtol=1e-12)
    slopes, step = net.jacobian(theta, X), 1e-6
    for k, move in enumerate(step * np.eye(len(theta))):
        ends = [softmax_by_hand(net.function.matrix(theta + s * move), data) for s in (1, -1)]
        np.testing.assert_allclose(slopes[:, k], (ends[0] - ends[1]) / (2 * step), atol=1e-8)


def test_derivatives_keep_their_digits_where_a_token_has_all_the_weight():
    """At logits 300 apart, against the same derivative with 200 digits."""
    data = token_selection(1, 3, 2, seed=3)
    W = 300 * penchant.max_margin(data.separation(), penchant.L2()).beta
    slope = attention(data.head).jacobian(W, data.training.X)[0].reshape(2, 2)
    with mpmath.workdps(200):
        x, z = mpmath.matrix(data.tokens[0].tolist()), mpmath.matrix(data.queries[0].tolist())
        weights = [mpmath.exp(v) for v in x * mpmath.matrix(W.reshape(2, 2).tolist()) * z]
        p = [w / sum(weights) for w in weights]
        scores = [x[t, 0] for t in range(3)]
        mean = sum(a * b for a, b in zip(p, scores, strict=True))
        pulls = [a * (b - mean) for a, b in zip(p, scores, strict=True)]
        exact = [[sum(pulls[t] * x[t, i] for t in range(3)) * z[j] for j in (0, 1)] for i in (0, 1)]
        exact = np.array(exact, dtype=float)
    assert 0 < abs(exact).max() < 1e-100
    np.testing.assert_allclose(slope, exact, rtol=1e-8)


def test_w_ends_at_the_frobenius_and_k_q_at_the_nuclear_margin():
    data = token_selection(4, 3, 5, seed=0)
    rows, shares = data.separation(), {}
    for factored, rate in ((False, 0.1), (True, 0.01)):
        net = attention(data.head, factored=factored)
        method = penchant.methods.SteepestDescent(rate, penchant.L2())
        path = penchant.train(net, data.training, method, stop=penchant.Steps(1500))
        W = net.function.matrix(path.parameters).ravel()
        for norm in (as_norm(penchant.L2()), Nuclear((5, 5))):
            best = penchant.max_margin(rows, norm).value
            shares[factored, type(norm)] = (rows.X @ W).min() * best / norm(W)
    assert shares[False, penchant.L2] > 0.99 > 0.95 > shares[False, Nuclear]
    assert shares[True, Nuclear] > 0.97 > shares[True, penchant.L2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rank": 2}, "give factored=True"),
        ({"factored": True, "alpha": 0.0}, "alpha"),
        ({"factored": True, "rank": 0}, "rank"),
        ({"factored": 1}, "factored"),
        ({"alpha": -1.0}, "alpha"),
    ],
)
def test_wrong_layers_are_refused(arguments, said):
    with pytest.raises((ValueError, TypeError), match=f"^attention: .*{said}"):
        attention([1.0, 0.0], **arguments)


def test_rows_of_another_size_are_refused():
    net = attention([1.0, 0.0, 0.0])
    for width in (3, 7):
        with pytest.raises(ValueError, match="attention: a row must hold tokens and a query of 3"):
            net.predict(net.start(9), np.ones((2, width)))
