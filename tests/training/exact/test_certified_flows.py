"""A flow that is called solved has a loss that falls and predictors with that loss."""

from __future__ import annotations

import numpy as np
import pytest

import penchant
from penchant.lab import Kind

REGRESSION = penchant.problems.sparse_regression(samples=6, dimension=9, sparsity=2, seed=0)
SENSING = penchant.problems.gaussian_sensing(samples=6, dimension=3, rank=1, seed=0)
POINTS = penchant.problems.separable_points(5, 8, seed=0)
RUNS = {
    "DualFlow": (penchant.DiagonalNet(alpha=0.1), REGRESSION, penchant.DualFlow()),
    "DualFlow, depth 3": (penchant.DiagonalNet(3, alpha=0.3), REGRESSION, penchant.DualFlow()),
    "ParameterFlow": (penchant.DiagonalNet(alpha=0.3), REGRESSION, penchant.ParameterFlow()),
    "MatrixFlow": (
        penchant.models.DifferenceFactorization(alpha=0.5),
        SENSING,
        penchant.methods.MatrixFlow(),
    ),
    "margins": (penchant.DiagonalNet(alpha=0.3), POINTS, penchant.DualFlow()),
}
FITS = [name for name in RUNS if name != "margins"]


def trained(name, monkeypatch, poison=None):
    """The path of a run whose records are changed before they are judged."""
    model, problem, method = RUNS[name]
    if poison is not None:
        plain = type(method).follow

        def follow(self, *given):
            followed = plain(self, *given)
            return followed._replace(dataset=poison(followed.dataset.copy(deep=True)))

        monkeypatch.setattr(type(method), "follow", follow)
    stop = penchant.stop.LogLoss(-30.0) if name == "margins" else None
    return penchant.train(model, problem, method, stop=stop)


@pytest.mark.parametrize("name", RUNS)
def test_a_right_flow_is_solved(name, monkeypatch):
    assert trained(name, monkeypatch).outcome.kind is Kind.SOLVED


@pytest.mark.parametrize("size", [1e-1, 1e-4])
@pytest.mark.parametrize("name", RUNS)
def test_a_loss_that_rises_is_caught(name, size, monkeypatch):
    def poison(dataset):
        middle = dataset.sizes["time"] // 2
        dataset["log_loss"].values[middle] = dataset["log_loss"].values[middle - 1] + size
        return dataset

    outcome = trained(name, monkeypatch, poison).outcome
    assert outcome.kind is Kind.STALLED
    assert "the loss rises" in outcome.sentence
    assert "lower rtol" in outcome.sentence


@pytest.mark.parametrize("size", [1e-1, 1e-5])
@pytest.mark.parametrize("name", FITS)
def test_a_predictor_that_does_not_fit_is_caught(name, size, monkeypatch):
    def poison(dataset):
        last = dataset["predictor"].values[-1]
        last *= 1 + size
        return dataset

    outcome = trained(name, monkeypatch, poison).outcome
    assert outcome.kind is Kind.STALLED
    assert "is not that of the predictor" in outcome.sentence


@pytest.mark.parametrize("loss", ["squares", "half squares"])
def test_units_of_data_change_nothing(loss):
    """A loss of 1e-280 or 1e300 is judged in units of the labels."""
    for power in (-450, 0, 450):
        problem = penchant.Regression(REGRESSION.X, np.ldexp(REGRESSION.y, power), loss=loss)
        start = float(np.ldexp(0.1, power // 2))
        path = penchant.train(penchant.DiagonalNet(alpha=start), problem, penchant.DualFlow())
        assert path.outcome.ok, path.outcome


def test_a_flow_with_decay_may_rise():
    path = penchant.train(
        penchant.DiagonalNet(alpha=0.1), REGRESSION, penchant.DualFlow(weight_decay=1e-2)
    )
    assert path.outcome.ok
    assert np.diff(path.dataset["log_loss"].values).max() > 1e-3  # the weights shrink after the fit
