"""SAM, step by step against NumPy; what its two norms do to single weights; wrong input."""

import numpy as np
import pytest

from penchant import L2, Classification, Steps, train
from penchant.methods import SAM
from penchant.models import LinearPredictor, ProductNet
from penchant.problems import separable_points
from penchant.regularizers import Linf, Spectral
from refusals import refusals

PROBLEM = separable_points(7, 6, margin=0.3, seed=2)
UPHILL = {L2(): lambda g: g / np.linalg.norm(g), Linf(): np.sign}


def loss_slope(w):
    Z = PROBLEM.signed_rows
    return -np.exp(-Z @ w) @ Z / len(Z)


@pytest.mark.parametrize("norm", UPHILL, ids=repr)
def test_steps_are_those_of_a_loop_in_numpy(norm):
    method = SAM(0.02, 0.3, norm, weight_decay=0.1)
    path = train(LinearPredictor(0.1), PROBLEM, method, stop=Steps(60))
    w = np.full(6, 0.1)
    for _ in range(60):
        w = (1 - 0.002) * w - 0.02 * loss_slope(w + 0.3 * UPHILL[norm](loss_slope(w)))
    np.testing.assert_allclose(path.predictor, w, atol=1e-10)
    plain = train(LinearPredictor(0.1), PROBLEM, SAM(0.02, 1e-12, norm), stop=Steps(60))
    assert np.abs(plain.predictor - w).max() > 1e-3  # a control: rho matters


def test_signs_of_the_ascent_leave_weights_below_rho_at_zero():
    start, rho = np.array([0.04, 0.2, 0.06, 0.13]), 0.1
    problem = Classification([[2.0, 0.5, 1.0, 0.7]], [1.0])
    path = train(ProductNet(start, start), problem, SAM(0.01, rho, Linf()), stop=Steps(4000))
    np.testing.assert_array_equal(path.predictor > 0.02, start > rho)


def test_flat_parameters_take_a_norm_of_matrices_with_a_shape():
    path = train(LinearPredictor(0.1), PROBLEM, SAM(0.02, 0.3, Spectral((2, 3))), stop=Steps(1))
    U, _, Vt = np.linalg.svd(loss_slope(np.full(6, 0.1)).reshape(2, 3), full_matrices=False)
    nearby = np.full(6, 0.1) + 0.3 * (U @ Vt).ravel()
    np.testing.assert_allclose(path.predictor, 0.1 - 0.02 * loss_slope(nearby), rtol=1e-10)


test_bad_input = refusals(
    (lambda: SAM(0.1, 0.0), "rho must be > 0"),
    (lambda: SAM(0.1, np.nan), "rho must be a finite number"),
    (lambda: SAM(0.1, 0.1, "l2"), "expected a norm"),
    (
        lambda: train(LinearPredictor(0.1), PROBLEM, SAM(0.1, 0.1, Spectral()), stop=Steps(1)),
        "SAM: Spectral.* acts on a matrix",
    ),
)
