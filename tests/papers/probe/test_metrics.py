"""Measures of richness, by other code, and the claim about them sabotaged."""

import numpy as np
import pytest

from penchant.watch import RegimeNumbers
from penchant_papers.probe import metrics
from penchant_papers.probe.metric_runs import (
    cka,
    collapse,
    drawn_setting,
    features,
    low_rank,
    moved,
)
from penchant_papers.probe.nets import NETS, start
from penchant_papers.probe.runs import digits


def test_features_are_what_the_last_layer_reads():
    data = digits("pixels", 0, 30, 20)
    for net in ("dense", "dense, biased"):
        p = start(net, 64, 10, 1.0, 0)
        hidden = np.maximum(data.probe @ p["w1"] + p["b1"], 0)
        np.testing.assert_allclose(features(NETS[net], p, data.probe, data.x), hidden, atol=1e-5)
    p = start("transformer", 64, 10, 1.0, 0)
    read = features(NETS["transformer"], p, data.probe, data.x) @ p["u"]
    outputs = np.asarray(NETS["transformer"](p, data.probe, data.x))
    np.testing.assert_allclose(read, outputs, atol=1e-4)


def test_cka_by_features():
    """|Y'X|^2 / (|X'X| |Y'Y|) of centred features (Kornblith et al., eq. 5)."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 6)) + 3, rng.standard_normal((40, 4)) - 1
    x[:, :2] += y[:, :2]
    a, b = x - x.mean(0), y - y.mean(0)
    size = np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b)
    assert cka(x @ x.T, y @ y.T) == pytest.approx(np.linalg.norm(b.T @ a) ** 2 / size)


def test_collapsed_features():
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), 10)
    means = rng.standard_normal((4, 7))
    assert collapse(means[classes], classes) == pytest.approx(0, abs=1e-12)
    noise = rng.standard_normal((40, 7))
    noise -= np.stack([noise[classes == k].mean(0) for k in range(4)])[classes]
    within = noise.T @ noise / 40
    apart = means - means.mean(0)
    solved = np.linalg.lstsq(apart.T @ apart / 4, within, rcond=1e-8)[0]  # least norm
    assert collapse(means[classes] + noise, classes) == pytest.approx(np.trace(solved) / 4)
    assert collapse(means[classes] + 2 * noise, classes) == pytest.approx(np.trace(solved))


def test_features_that_are_the_outputs_have_the_lowest_rank():
    rng = np.random.default_rng(0)
    outputs = rng.standard_normal((50, 5))
    whitened = np.linalg.qr(outputs - outputs.mean(0))[0]
    assert low_rank(whitened + 4, outputs) == pytest.approx(0, abs=1e-10)
    assert low_rank(rng.standard_normal((50, 200)), outputs) > 0.5
    mixed = outputs @ rng.standard_normal((5, 5)) + 1
    features = rng.standard_normal((50, 9))
    assert low_rank(features, mixed) == pytest.approx(low_rank(features, outputs))


def test_the_move_of_parameters():
    first = {"a": np.array([3.0, 4.0]), "b": np.zeros(2)}
    last = {"a": np.array([3.0, 4.0]), "b": np.array([0.0, 2.0])}
    assert moved(first, last) == pytest.approx(2 / 5)


def test_best_limits_by_trying_all():
    rng = np.random.default_rng(3)
    values = rng.standard_normal(25)
    kinds = [metrics.KINDS[int(k)] for k in np.clip(values + rng.standard_normal(25) + 1.5, 0, 2)]

    def right(limits):
        return sum(metrics._called(v, limits) == k for v, k in zip(values, kinds, strict=True))

    grid = np.linspace(-3, 3, 61)
    best = max(right((low, high)) for low in grid for high in grid[grid >= low])
    assert right(metrics.best_limits(values, kinds)) >= best


def test_the_score_is_0_and_1_at_the_limits():
    low, high = RegimeNumbers(0.02, 0.18, 0.3), RegimeNumbers(0.06, 0.42, 0.53)
    assert low.score == pytest.approx(0)
    assert high.score == pytest.approx(1)
    assert RegimeNumbers(0.06, 0.18, float("nan")).score == pytest.approx(0.5)
    assert np.isnan(RegimeNumbers(float("nan"), float("nan")).score)


def test_settings_of_other_seeds_are_others():
    names = {drawn_setting("dense", seed).name for seed in range(60)}
    assert len(names) > 55
    assert drawn_setting("dense", 1, attempt=1) != drawn_setting("dense", 1)


def test_the_check_finds_a_wrong_regime(data_of, monkeypatch):
    def wrong(row):
        return "kernel" if row["twin_distance"] > 0.4 else "leaving"

    (dataset,) = data_of("watch-metrics")
    assert not any(c.misses for c in metrics.check(dataset).checks.values())
    monkeypatch.setattr(metrics, "of_the_watch", wrong)
    checks = metrics.check(dataset).checks
    assert [check.misses for check in checks.values()] == [False, True, True]
