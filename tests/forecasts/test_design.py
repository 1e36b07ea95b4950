"""Recipes for a wanted regularizer: trained by hand and by `train`, and refused in one sentence."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import penchant
from penchant.forecasts import design

PROBLEM = penchant.problems.sparse_regression(8, 20, sparsity=2, noise=0.1, seed=3)
TARGET = penchant.Q(2, alpha=0.02)


def by_hand(plan, steps):
    """Plain steps with the decay that the schedule says, and the products w+ w-."""
    method = plan.method.method
    w = plan.model.start(20)
    sign = np.repeat([1.0, -1.0], 20)
    for k in range(steps):
        beta = w[:20] ** 2 - w[20:] ** 2
        g = 2 * PROBLEM.X.T @ (PROBLEM.X @ beta - PROBLEM.y)
        decay = method.weight_decay * (k < plan.method.steps[-1])
        w = w - method.learning_rate * (2 * sign * np.tile(g, 2) * w + decay * w)
    return w[:20] ** 2 - w[20:] ** 2, np.sqrt(np.abs(w[:20] * w[20:]))


def test_a_recipe_trained_by_hand_ends_at_the_minimiser_of_the_target():
    plan = design(PROBLEM, TARGET, steps=8000)
    end, scales = by_hand(plan, 8000)
    wanted = penchant.interpolate(PROBLEM, TARGET).beta
    assert np.abs(end - wanted).max() < 0.01 * np.abs(wanted).max()
    assert np.exp(np.log(scales).mean()) == pytest.approx(0.02, rel=0.01)
    path = penchant.train(**plan.arguments)
    np.testing.assert_allclose(path.predictor, end, atol=1e-9)
    start = plan.model.start(20)[0] ** 2  # the control: the minimiser of the start
    unchanged = penchant.interpolate(PROBLEM, penchant.Q(2, mu=start)).beta
    assert np.abs(unchanged - wanted).max() > 0.1 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("method", "alpha", "batch", "given"),
    [
        ("decay", 2e-3, 2, {}),
        ("label noise", 0.2, None, {}),
        ("learning rate", 0.028, 1, {"model": penchant.DiagonalNet(2, alpha=0.03)}),
    ],
)
def test_the_mean_scale_of_a_trained_recipe_is_the_wanted_one(method, alpha, batch, given):
    target = penchant.Q(2, alpha=alpha)
    plan = design(PROBLEM, target, steps=8000, method=method, batch=batch, **given)
    own = penchant.methods.EffectiveScale(plan.method)
    path = penchant.train(**plan.arguments | {"method": own})
    scale = penchant.forecasts.effective_regularizer(path).shape
    assert np.log(scale / alpha).mean() == pytest.approx(0.0, abs=0.02)
    assert plan.prediction.fails_at is None
    assert plan.sentence.startswith("learning rate")


def test_a_deeper_net_ends_at_its_target_too():
    target = penchant.Q(3, alpha=0.1)
    plan = design(PROBLEM, target, steps=20_000)
    end = penchant.train(**plan.arguments).predictor
    wanted = penchant.interpolate(PROBLEM, target).beta
    assert np.abs(end - wanted).max() < 0.01 * np.abs(wanted).max()


def test_a_shape_is_wanted_and_kept():
    shape = np.linspace(0.5, 2.0, 20)
    plan = design(PROBLEM, penchant.Q(2, alpha=0.02, shape=shape), steps=8000)
    ends = plan.prediction.regularizer.shape
    np.testing.assert_allclose(np.log(ends), np.log(0.02 * shape), atol=0.03)


@pytest.mark.parametrize(("data", "labels"), [(1e3, 1.0), (1e-3, 1.0), (1.0, 1e3), (30.0, 1e-3)])
def test_units_of_the_data_change_the_recipe_as_they_must(data, labels):
    """X in units a and y in units b: beta is in units b/a, and alpha in those of its root."""
    plain = design(PROBLEM, TARGET, steps=8000)
    root = np.sqrt(labels / data)
    other = penchant.Regression(data * PROBLEM.X, labels * PROBLEM.y)
    plan = design(other, penchant.Q(2, alpha=0.02 * root), steps=8000)
    here, there = (run.prediction.predictor for run in (plain, plan))
    np.testing.assert_allclose(there / root**2, here, atol=2e-3 * np.abs(here).max())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"target": penchant.Q(2, alpha=1e-30), "steps": 1000}, "cannot be reached in 1000 steps"),
        ({"target": penchant.Q(2, alpha=5.0)}, "even without decay the scale ends lower"),
        ({"target": penchant.Q(2, alpha=5.0), "method": "learning rate"}, "make a scale smaller"),
        ({"method": "learning rate"}, "larger steps cannot be predicted"),
        ({"target": penchant.L1()}, "the target must be a Q"),
        ({"target": penchant.Q(2, alpha=0.1, tilt=np.ones(20))}, "must have no tilt"),
        ({"steps": 1}, "steps must be"),
        ({"steps": 10}, "10 steps do not fit the data"),
        ({"method": "warmth"}, "unknown method 'warmth'"),
        ({"batch": 9}, "batch must be at most the 8 samples"),
        ({"model": penchant.DiagonalNet(3, alpha=0.1)}, "must be a signed DiagonalNet"),
        ({"problem": penchant.problems.three_points("3b")}, "must be a Regression"),
        ({"problem": dataclasses.replace(PROBLEM, y=0 * PROBLEM.y)}, "labels are all 0"),
    ],
)
def test_what_no_recipe_reaches_is_refused_in_one_sentence(given, words):
    arguments = {"problem": PROBLEM, "target": TARGET, "steps": 2000} | given
    with pytest.raises(ValueError, match=f"design: .*{re.escape(words)}"):
        design(**arguments)


def test_the_nearest_scale_that_is_named_can_be_reached():
    with pytest.raises(ValueError, match="the nearest is") as refused:
        design(PROBLEM, penchant.Q(2, alpha=1e-9), steps=1000)
    nearest = float(str(refused.value).rsplit(" ", 1)[1])
    plan = design(PROBLEM, penchant.Q(2, alpha=1.05 * nearest), steps=1000)
    path = penchant.train(**plan.arguments)
    residual = np.linalg.norm(PROBLEM.X @ path.predictor - PROBLEM.y)
    assert residual < 0.02 * np.linalg.norm(PROBLEM.y)
    assert nearest > 1e-8
