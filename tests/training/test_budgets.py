"""Runs beyond float64 or beyond their budget end in seconds with one sentence, and repeat."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit.records import Kind
from tacit.training.exact.dual import integrator
from tacit.training.exact.dual.integrator import PATIENCE, is_stuck
from tacit.training.task import Moment

SPARSE = tacit.sparse_regression(8, 20, sparsity=2, seed=0)
RNG = np.random.default_rng(0)
ROWS, TARGETS = RNG.normal(size=(5, 8)), RNG.normal(size=5)
LABELS = np.sign(TARGETS)
TABLE = tacit.low_rank_completion(samples=50, dimension=10, rank=1, seed=0)
NET = tacit.DiagonalNet(2, alpha=0.1)
WIDE = tacit.two_layer(20, alpha=1e100)


@pytest.mark.parametrize(
    ("model", "problem", "flow"),
    [
        (NET, tacit.Regression(ROWS, 1e200 * TARGETS), tacit.DualFlow),
        (tacit.DiagonalNet(3, alpha=0.1), tacit.Regression(ROWS, 1e200 * TARGETS), tacit.DualFlow),
        (NET, tacit.Classification(1e200 * ROWS, LABELS), tacit.DualFlow),
        (NET, tacit.Regression(1e200 * ROWS, TARGETS), tacit.ParameterFlow),
        (WIDE, tacit.Regression(ROWS, TARGETS), tacit.ParameterFlow),
        (WIDE, tacit.Regression(ROWS, TARGETS), tacit.TangentFlow),
        (tacit.DeepFactorization(3, 10, alpha=1e100), TABLE, tacit.MatrixFlow),
    ],
)
def test_data_and_starts_beyond_float64_are_a_sentence(model, problem, flow):
    sentence = rf"^{flow.__name__}: .* beyond float64.*(rescale|smaller)"
    with pytest.raises(ValueError, match=sentence):
        tacit.train(model, problem, flow())


def test_large_data_that_float64_holds_are_still_followed():
    """The overflow of a square is refused, not the size: a start of the same regime is solved."""
    path = tacit.train(NET, tacit.Regression(1e100 * ROWS, TARGETS), tacit.DualFlow())
    assert path.outcome.kind is Kind.SOLVED
    plain = tacit.train(NET, tacit.Regression(ROWS, 1e-100 * TARGETS), tacit.DualFlow())
    np.testing.assert_allclose(path.predictor, plain.predictor, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tacit.Q(10**400),
        lambda: tacit.Q(-(10**400)),
        lambda: tacit.Q(alpha=10**400),
        lambda: tacit.Q(alpha=10**5000),  # more digits than Python prints
        lambda: tacit.DualFlow(max_steps=10**400),
    ],
)
def test_integers_that_float64_does_not_hold_are_a_sentence(make):
    with pytest.raises(ValueError, match=r"an integer of about (401|5001) digits; give") as error:
        make()
    assert len(str(error.value)) < 200


def test_a_fit_to_rounding_is_not_called_impossible():
    """8 equations for 20 unknowns always have a solution."""
    for model in (NET, tacit.DiagonalNet(3, alpha=1.0)):
        path = tacit.train(model, SPARSE, tacit.DualFlow(), stop=tacit.Loss(1e-300))
        assert path.outcome.kind is Kind.STALLED
        assert "rounding leaves no less; stop at a larger loss" in path.outcome.sentence
        misfit = SPARSE.X @ path.predictor - SPARSE.y
        assert np.abs(misfit).max() < 1e-13 * np.abs(SPARSE.y).max()


def test_contradicting_rows_are_still_called_that():
    X = np.vstack([SPARSE.X, SPARSE.X[:1]])
    y = np.append(SPARSE.y, SPARSE.y[0] + 1.0)
    path = tacit.train(NET, tacit.Regression(X, y), tacit.DualFlow())
    assert "no linear predictor fits y, the least-squares loss is 0.5" in path.outcome.sentence


def test_steps_that_bring_nothing_forward_end_a_flow(monkeypatch):
    """From alpha = 1e-8 a net of depth 5 leaves its saddle within 1e-24 of the time it took."""
    monkeypatch.setattr(integrator, "PATIENCE", PATIENCE // 10)  # the sentence keeps its number
    model = tacit.DiagonalNet(5, alpha=1e-8)
    path = tacit.train(model, SPARSE, tacit.DualFlow())
    assert path.outcome.kind is Kind.STALLED
    assert f"{PATIENCE} steps advanced neither the time nor a weight" in path.outcome.sentence
    assert "interpolate()" in path.outcome.sentence
    # the first weight has grown before that: the same place as from a start that float64 resolves
    stop = [tacit.Interpolated(), tacit.Time(1.0001 * path.t * 1e-24 / 1e-12)]
    before = tacit.train(tacit.DiagonalNet(5, alpha=1e-4), SPARSE, tacit.DualFlow(), stop=stop)
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
    for flow in (tacit.ParameterFlow(weight_decay=1e-3), tacit.DualFlow(weight_decay=1e-3)):
        with pytest.raises(ValueError, match=r"Flow: times must lie between .* 1000/weight_decay"):
            tacit.train(NET, SPARSE, flow, stop=tacit.Time(1e300))


def test_a_path_has_a_bounded_number_of_records():
    with pytest.raises(ValueError, match="per_decade must be at most 1000, got 1000000"):
        tacit.LogSpaced(10**6)
    assert tacit.LogSpaced(1000).per_decade == 1000


@pytest.mark.parametrize("p", [8.0, 10.0])
def test_margins_of_large_p_on_badly_scaled_columns_are_bounded(p):
    """The count of exchanges is bounded, and the answer is near the least norm there is."""
    X = np.random.default_rng(0).normal(size=(20, 40)) * 10.0 ** np.linspace(-6, 6, 40)
    y = np.sign(np.random.default_rng(1).normal(size=20))
    found = tacit.max_margin(X, y, tacit.Lp(p), throw=False)
    assert found.iterations <= 20 * (20 + 40) + 100
    assert ((X @ found.beta) * y).min() > 1 - 1e-12
    # weak duality: sum nu / |Z^T nu|_q bounds the norm of any such predictor from below
    q, nu = p / (p - 1), np.maximum(found.dual, 0.0)
    bound = nu.sum() / np.linalg.norm((nu * y) @ X, ord=q)
    assert np.linalg.norm(found.beta, ord=p) <= bound * (1 + 1e-6)
