"""Shares of the best margins along runs, against their definition."""

import numpy as np
import pytest

from penchant import L1, L2, Q, Steps, max_margin, train
from penchant.measures import margin_shares, margins
from penchant.methods import SignDescent, SteepestDescent
from penchant.models import LinearPredictor, two_layer
from penchant.problems import separable_points, sparse_regression
from penchant.regularizers import Linf, Spectral
from refusals import refusals

PROBLEM = separable_points(8, 6, margin=0.5, seed=1)
PATH = train(LinearPredictor(), PROBLEM, SignDescent(0.01), stop=Steps(3000))


def test_shares_are_those_of_their_definition():
    norms = [L1(), L2(), L2(np.arange(1.0, 7.0)), Linf(), Spectral((2, 3))]
    found = margin_shares(PATH, PROBLEM, norms)
    assert found.dims == ("time", "norm")
    assert list(found.norm.values) == [repr(norm) for norm in norms]
    assert found.step.values[-1] == 3000
    w, last = PATH.predictor, found.isel(time=-1).values
    least = margins(PROBLEM.X, PROBLEM.y, w).min()
    sizes = [
        np.abs(w).sum(),
        np.linalg.norm(w),
        np.sqrt(np.arange(1, 7) @ w**2),
        np.abs(w).max(),
        np.linalg.norm(w.reshape(2, 3), 2),
    ]
    for share, norm, size in zip(last, norms, sizes, strict=True):
        beta = max_margin(PROBLEM, norm).beta  # the best predictor has share one
        scale = {L2(): np.linalg.norm(beta)}.get(norm)
        best = scale or (np.sqrt(norm(beta)) if isinstance(norm, L2) else norm(beta))
        assert share == pytest.approx(least / size * best, rel=1e-9)
        assert share < 1
    assert np.isnan(found.values[0]).all()  # the start is zero


def test_the_default_norms_and_the_best_predictor_of_each():
    for k, norm in enumerate((L1(), L2(), Linf())):
        start = LinearPredictor(max_margin(PROBLEM, norm).beta)
        path = train(start, PROBLEM, SteepestDescent(1e-9, L1()), stop=Steps(1))
        shares = margin_shares(path, PROBLEM).values[0]
        assert shares[k] == pytest.approx(1.0, rel=1e-9)
        assert np.delete(shares, k).max() < 0.99


test_bad_input = refusals(
    (lambda: margin_shares(PATH, sparse_regression(3, 6, sparsity=1)), "got Regression"),
    (lambda: margin_shares(PATH, separable_points(4, 3)), r"3 features, but.*shape \(6,\)"),
    (lambda: margin_shares(PATH, PROBLEM, [Q(2, mu=1)]), "margin_shares: expected a norm"),
    (lambda: margin_shares(PATH, PROBLEM, [Spectral()]), "needs the shape of the matrix"),
    (
        lambda: margin_shares(
            train(two_layer(3, alpha=0.5), PROBLEM, SignDescent(0.01), stop=Steps(1)), PROBLEM
        ),
        "the path has no linear predictor",
    ),
)
