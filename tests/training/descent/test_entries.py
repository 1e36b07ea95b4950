"""Descent on observed entries of a matrix uses their positions, and goes where dense rows go."""

import numpy as np
import pytest

import penchant
from penchant.problems import Completion

SHAPE = (6, 6)


def problem():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 6))
    entries = np.argwhere(rng.random(SHAPE) < 0.6)
    values = truth[tuple(entries.T)]
    return Completion(SHAPE, entries, values, truth)


MODELS = {
    "factorization": penchant.Factorization(3, alpha=0.5),
    "deep": penchant.models.DeepFactorization(3, 6, alpha=0.6),
    "matrix": penchant.models.LinearMatrix(),
}
METHODS = {
    "descent": (penchant.GradientDescent(0.01), {}),
    "subgradient": (
        penchant.GradientDescent(0.01, check=False, subgradient=True),
        {"penalty": 0.2 * penchant.L1()},
    ),
    "sgd": (penchant.GradientDescent(0.01), {"batch": 5, "seed": 3}),
    "adam": (penchant.Adam(0.02), {}),
}


def end(name, net, data):
    method, more = METHODS[name]
    record = penchant.record.LogSpaced(3)
    return penchant.train(net, data, method, stop=penchant.Steps(60), record=record, **more)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
def test_places_lead_where_dense_rows_lead_and_no_dense_row_is_made(method, model, monkeypatch):
    given, net = problem(), MODELS[model]
    dense = end(method, net, given.regression())

    def refuse(self):
        raise AssertionError("the dense design was made")

    monkeypatch.setattr(Completion, "design", property(refuse))
    # the kernels of tiny nets are dense
    monkeypatch.setattr("penchant.training.labels.FEW", 0)
    path = end(method, net, given)
    np.testing.assert_allclose(path.parameters, dense.parameters, rtol=1e-10, atol=1e-13)
    apart = np.abs(path.parameters - net.start(36)).max()
    assert apart > 1e-2  # it went somewhere
    np.testing.assert_allclose(
        path.dataset.log_loss.values, dense.dataset.log_loss.values, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(path.dataset.entries.values, given.entries)
    assert "X" not in path.dataset


def test_models_of_vectors_take_the_rows_of_a_regression():
    with pytest.raises(ValueError, match=r"use problem.regression\(\) for models of vectors"):
        end("sgd", penchant.DiagonalNet(2, alpha=0.5), problem())


def test_places_are_where_the_entries_are():
    given = problem()
    matrix = np.arange(36.0).reshape(SHAPE)
    np.testing.assert_array_equal(matrix.ravel()[given.positions], given.apply(matrix))
    np.testing.assert_array_equal(given.design @ matrix.ravel(), given.apply(matrix))
