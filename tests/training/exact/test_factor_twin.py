"""Two factors beside their linearization: by the matrix flow and by the matrix exponential."""

import numpy as np
import pytest
from scipy.linalg import expm

from penchant import Factorization, train
from penchant.methods import MatrixFlow
from penchant.models import DifferenceFactorization, SymmetricFactorization
from penchant.problems import Completion, gaussian_sensing, low_rank_completion
from penchant.solvers import factor_twin
from penchant.stop import Interpolated

CASES = {
    "sensing": (Factorization(5, alpha=0.7), gaussian_sensing(3, 2, rank=1, seed=1)),
    "half": (
        Factorization(5, alpha=0.7),
        gaussian_sensing(3, 2, rank=1, seed=1, loss="half squares"),
    ),
    "completion": (Factorization(9, alpha=0.5), low_rank_completion(5, 3, rank=1)),
    "oblong": (Factorization(6, alpha=0.8, shape=(1, 3)), Completion((1, 3), [[0, 1]], [2.0])),
    "symmetric": (SymmetricFactorization(5, alpha=0.7), gaussian_sensing(2, 3, rank=1)),
    "difference": (DifferenceFactorization(alpha=0.7), gaussian_sensing(2, 3, rank=1)),
}
everyone = pytest.mark.parametrize("name", CASES)


@everyone
def test_training_ends_where_the_matrix_flow_ends(name):
    model, problem = CASES[name]
    twin = factor_twin(model, problem, fall=1e-10)
    W = model.stack(model.start(problem.dimension)) + twin.moved[-1]
    end = train(model, problem, MatrixFlow(), stop=Interpolated(1e-18)).predictor
    np.testing.assert_allclose(model.matrix(W.ravel()), end, atol=1e-7)
    np.testing.assert_allclose(problem.apply(end) - problem.y, 0, atol=1e-7)
    assert twin.left == pytest.approx(1e-10, rel=0.1)
    ways = np.linalg.norm(np.diff(twin.moved, axis=0), axis=(1, 2)).sum()
    assert twin.farthest <= twin.length[-1] * (1 + 1e-9)
    assert ways <= twin.length[-1] * (1 + 1e-9)


@everyone
def test_the_twin_obeys_its_linear_equation(name):
    model, problem = CASES[name]
    twin = factor_twin(model, problem)
    start, factor = model.start(problem.dimension), 2 * np.exp(problem.log_factor)
    J = model.jacobian(start, problem.design)
    begin = model.predict(start, problem.design) - problem.y
    n = J.shape[1]
    generator = np.zeros((n + 1, n + 1))  # w' = -J^T (J w + r), with a constant 1 as last entry
    generator[:n, :n], generator[:n, n] = -factor * J.T @ J, -factor * J.T @ begin
    for k in 1, len(twin.t) // 2, -1:
        w = expm(twin.t[k] * generator)[:n, n]
        np.testing.assert_allclose(twin.twin_moved[k].ravel(), w, atol=1e-10)
        np.testing.assert_allclose(twin.twin_residual[k], begin + J @ w, atol=1e-10)
    assert twin.apart > 1e-4  # the model itself is not linear


def test_a_start_that_cannot_move_is_refused():
    zero = Factorization(factors=(np.zeros((2, 2)), np.zeros((2, 2))))
    with pytest.raises(ValueError, match="factor_twin: the tangent kernel of the start is singul"):
        factor_twin(zero, CASES["sensing"][1])
    fits = Completion((1, 1), [[0, 0]], [6.0])
    with pytest.raises(ValueError, match="fits the data at its start"):
        factor_twin(Factorization(factors=([[2.0]], [[3.0]])), fits)
    with pytest.raises(ValueError, match="fall must be below 1"):
        factor_twin(*CASES["sensing"], fall=2.0)
