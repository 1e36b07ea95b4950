"""Descent on observed entries of a matrix uses their places, and goes where dense rows go."""

import numpy as np
import pytest

import tacit
from tacit.problems.matrix_problem import Completion

SHAPE = (6, 6)


def problem(recipe=None):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 6))
    entries = np.argwhere(rng.random(SHAPE) < 0.6)
    values = truth[tuple(entries.T)]
    return Completion(SHAPE, entries, values, truth, recipe=recipe)


MODELS = {
    "factorization": tacit.Factorization(3, alpha=0.5),
    "deep": tacit.DeepFactorization(3, 6, alpha=0.6),
    "diagonal": tacit.DiagonalNet(2, alpha=0.5),
    "matrix": tacit.LinearMatrix(),
}
METHODS = {
    "descent": lambda: tacit.GradientDescent(0.01, 60, points_per_decade=3),
    "subgradient": lambda: tacit.Subgradient(
        0.02, 60, penalty=tacit.L1(), beta=0.1, points_per_decade=3, check=False
    ),
    "sgd": lambda: tacit.SGD(0.02, 60, batch=5, seed=3, points_per_decade=3),
    "adam": lambda: tacit.Adam(0.02, 60, points_per_decade=3),
}
VECTORS = ("diagonal",)  # GradientDescent wants a model of a matrix for a matrix problem


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
def test_places_lead_where_dense_rows_lead_and_no_dense_row_is_made(method, model, monkeypatch):
    if method == "descent" and model in VECTORS:
        pytest.skip("GradientDescent refuses a model of a vector on a matrix problem")
    given, net = problem(), MODELS[model]
    dense = METHODS[method]().run(net, given.regression())

    def refuse(self):
        raise AssertionError("the dense design was made")

    monkeypatch.setattr(Completion, "design", property(refuse))
    monkeypatch.setattr(
        "tacit.training.exact.labelling.FEW", 0
    )  # the kernels of tiny nets are dense
    path = METHODS[method]().run(net, given)
    np.testing.assert_allclose(path.parameters, dense.parameters, rtol=1e-10, atol=1e-13)
    apart = np.abs(path.parameters - net.start(36)).max()
    assert apart > 1e-2  # it went somewhere
    np.testing.assert_allclose(
        path.dataset.log_loss.values, dense.dataset.log_loss.values, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(path.dataset.entries.values, given.entries)
    assert "X" not in path.dataset


def test_places_are_where_the_entries_are():
    given = problem()
    matrix = np.arange(36.0).reshape(SHAPE)
    np.testing.assert_array_equal(matrix.ravel()[given.places], given.apply(matrix))
    np.testing.assert_array_equal(given.design @ matrix.ravel(), given.apply(matrix))
