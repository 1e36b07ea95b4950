"""Training that leaves float64: no loss or parameter that is not a number is called solved."""

import numpy as np
import pytest

import penchant
from penchant.lab import Kind

LABELS = penchant.problems.separable_points(8, 6, seed=0)
VALUES = penchant.Regression([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0])
HUGE = {
    "subgradient": penchant.GradientDescent(1e300, subgradient=True),
    "beyond": penchant.GradientDescent(1e308, subgradient=True),
    "momentum": penchant.GradientDescent(1e305, momentum=0.9),
    "adam": penchant.Adam(1e300),
    "signs": penchant.methods.SignDescent(1e306),
}


def honest(path):
    """A success has finite losses and parameters, and its records have them always."""
    assert np.isfinite(path.dataset.loss).all() or not path.outcome.ok
    assert np.isfinite(path.parameters).all()
    assert not np.isnan(path.dataset.log_loss).any()


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("depth", [None, 2])
def test_a_huge_step_is_never_a_success_without_a_loss(name, depth):
    model = (
        penchant.models.LinearPredictor()
        if depth is None
        else penchant.DiagonalNet(depth, alpha=1.0)
    )
    path = penchant.train(model, LABELS, HUGE[name], stop=penchant.Steps(2))
    honest(path)
    assert path.outcome.ok == (depth is None and name != "beyond")


def test_a_loss_below_float64_rounds_to_zero_and_its_logarithm_goes_on():
    """The step is exact: margins of 6e298, whose loss is e^(-6e298)."""
    method = penchant.GradientDescent(1e300, subgradient=True)
    path = penchant.train(penchant.models.LinearPredictor(), LABELS, method, stop=penchant.Steps(1))
    assert path.dataset.loss.values.tolist() == [1.0, 0.0]
    margins = LABELS.y * (LABELS.X @ path.predictor)
    assert path.dataset.log_loss.values[-1] == pytest.approx(-margins.min())


def test_a_loss_beyond_float64_from_start_to_end_is_no_success():
    model = penchant.FunctionModel(lambda w, x: x @ w, np.full(2, 1e160))
    path = penchant.train(model, VALUES, penchant.GradientDescent(1e-3), stop=penchant.Steps(1))
    assert path.outcome.kind is Kind.OUT_OF_RANGE
    assert "its logarithm 740.765" in path.outcome.sentence
