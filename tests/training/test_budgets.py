"""Runs beyond float64 or beyond their budget end in seconds with one sentence, and repeat."""

from __future__ import annotations

import numpy as np
import pytest

import penchant
from penchant.lab import Kind
from penchant.training.exact.dual import integrator
from penchant.training.exact.dual.integrator import PATIENCE, is_stuck
from penchant.training.task import Moment

SPARSE = penchant.problems.sparse_regression(8, 20, sparsity=2, seed=0)
RNG = np.random.default_rng(0)
ROWS, TARGETS = RNG.normal(size=(5, 8)), RNG.normal(size=5)
LABELS = np.sign(TARGETS)
TABLE = penchant.problems.low_rank_completion(samples=50, dimension=10, rank=1, seed=0)
NET = penchant.DiagonalNet(2, alpha=0.1)
WIDE = penchant.models.two_layer(20, alpha=1e100)


@pytest.mark.parametrize(
    ("model", "problem", "flow"),
    [
        (NET, penchant.Regression(ROWS, 1e200 * TARGETS), penchant.DualFlow),
        (
            penchant.DiagonalNet(3, alpha=0.1),
            penchant.Regression(ROWS, 1e200 * TARGETS),
            penchant.DualFlow,
        ),
        (NET, penchant.Classification(1e200 * ROWS, LABELS), penchant.DualFlow),
        (NET, penchant.Regression(1e200 * ROWS, TARGETS), penchant.ParameterFlow),
        (WIDE, penchant.Regression(ROWS, TARGETS), penchant.ParameterFlow),
        (WIDE, penchant.Regression(ROWS, TARGETS), penchant.methods.TangentFlow),
        (penchant.models.DeepFactorization(3, 10, alpha=1e100), TABLE, penchant.methods.MatrixFlow),
    ],
)
def test_data_and_starts_beyond_float64_are_a_sentence(model, problem, flow):
    sentence = rf"^{flow.__name__}: .* beyond float64.*(rescale|smaller)"
    with pytest.raises(ValueError, match=sentence):
        penchant.train(model, problem, flow())


def test_large_data_that_float64_holds_are_still_followed():
    """The overflow of a square is refused, not the size: a start of the same regime is solved."""
    path = penchant.train(NET, penchant.Regression(1e100 * ROWS, TARGETS), penchant.DualFlow())
    assert path.outcome.kind is Kind.SOLVED
    plain = penchant.train(NET, penchant.Regression(ROWS, 1e-100 * TARGETS), penchant.DualFlow())
    np.testing.assert_allclose(path.predictor, plain.predictor, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: penchant.Q(10**400),
        lambda: penchant.Q(-(10**400)),
        lambda: penchant.Q(alpha=10**400),
        lambda: penchant.Q(alpha=10**5000),  # more digits than Python prints
        lambda: penchant.DualFlow(max_steps=10**400),
    ],
)
def test_integers_that_float64_does_not_hold_are_a_sentence(make):
    with pytest.raises(ValueError, match=r"an integer of about (401|5001) digits; give") as error:
        make()
    assert len(str(error.value)) < 200


def test_a_fit_to_rounding_is_not_called_impossible():
    """8 equations for 20 unknowns always have a solution."""
    for model in (NET, penchant.DiagonalNet(3, alpha=1.0)):
        path = penchant.train(model, SPARSE, penchant.DualFlow(), stop=penchant.stop.Loss(1e-300))
        assert path.outcome.kind is Kind.STALLED
        assert "rounding leaves no less; stop at a larger loss" in path.outcome.sentence
        misfit = SPARSE.X @ path.predictor - SPARSE.y
        assert np.abs(misfit).max() < 1e-13 * np.abs(SPARSE.y).max()


def test_contradicting_rows_are_still_called_that():
    X = np.vstack([SPARSE.X, SPARSE.X[:1]])
    y = np.append(SPARSE.y, SPARSE.y[0] + 1.0)
    path = penchant.train(NET, penchant.Regression(X, y), penchant.DualFlow())
    assert "no linear predictor fits y, the least-squares loss is 0.5" in path.outcome.sentence


def test_steps_that_bring_nothing_forward_end_a_flow(monkeypatch):
    """From alpha = 1e-8 a net of depth 5 leaves its saddle within 1e-24 of the time it took."""
    monkeypatch.setattr(integrator, "PATIENCE", PATIENCE // 10)  # the sentence keeps its number
    model = penchant.DiagonalNet(5, alpha=1e-8)
    path = penchant.train(model, SPARSE, penchant.DualFlow())
    assert path.outcome.kind is Kind.STALLED
    assert f"{PATIENCE} steps advanced neither the time nor a weight" in path.outcome.sentence
    assert "interpolate()" in path.outcome.sentence
    # the first weight has grown before that: the same place as from a start that float64 resolves
    stop = [penchant.stop.Interpolated(), penchant.Time(1.0001 * path.t * 1e-24 / 1e-12)]
    before = penchant.train(
        penchant.DiagonalNet(5, alpha=1e-4), SPARSE, penchant.DualFlow(), stop=stop
    )
    assert np.abs(path.predictor).argmax() == np.abs(before.predictor).argmax()
    np.testing.assert_allclose(path.predictor, before.predictor, atol=1e-2)


def test_a_weight_that_grows_while_time_stands_still_is_progress():
    zero = np.zeros(2)
    before = Moment(1.0, zero, log_growth=np.array([[3.0, 1.0], [-3.0, -1.0]]))
    grown = Moment(1.0, zero, log_growth=np.array([[9.0, 1.0], [-9.0, -1.0]]))
    later = before._replace(t=1.1)
    assert is_stuck(before, before)
    assert not is_stuck(before, grown)
    assert not is_stuck(before, later)


def test_decayed_training_beyond_the_end_of_all_motion_is_refused():
    for flow in (penchant.ParameterFlow(weight_decay=1e-3), penchant.DualFlow(weight_decay=1e-3)):
        with pytest.raises(ValueError, match=r"Flow: times must lie between .* 1000/weight_decay"):
            penchant.train(NET, SPARSE, flow, stop=penchant.Time(1e300))


def test_a_path_has_a_bounded_number_of_records():
    with pytest.raises(ValueError, match="per_decade must be at most 1000, got 1000000"):
        penchant.record.LogSpaced(10**6)
    assert penchant.record.LogSpaced(1000).per_decade == 1000


@pytest.mark.parametrize("p", [8.0, 10.0])
def test_margins_of_large_p_on_badly_scaled_columns_are_bounded(p):
    """The count of exchanges is bounded, and the answer is near the least norm there is."""
    X = np.random.default_rng(0).normal(size=(20, 40)) * 10.0 ** np.linspace(-6, 6, 40)
    y = np.sign(np.random.default_rng(1).normal(size=20))
    found = penchant.max_margin(X, y, penchant.regularizers.Lp(p), throw=False)
    assert found.iterations <= 20 * (20 + 40) + 100
    assert ((X @ found.beta) * y).min() > 1 - 1e-12
    # weak duality: sum nu / |Z^T nu|_q bounds the norm of any such predictor from below
    q, nu = p / (p - 1), np.maximum(found.dual, 0.0)
    bound = nu.sum() / np.linalg.norm((nu * y) @ X, ord=q)
    assert np.linalg.norm(found.beta, ord=p) <= bound * (1 + 1e-6)
