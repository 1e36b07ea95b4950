"""W-F7: what it measures, and that wrong limits and wrong nets are refuted."""

import dataclasses

import numpy as np
import pytest

import tacit
from tacit.claims.woodworth import splines
from tacit.claims.woodworth.spline_runs import Learned, cubic_spline
from tacit.models.univariate import kernel_move, mean_kernel
from tacit.problems.univariate import plateau, zigzag

REFUTED = ("fails", "inconclusive")
WIDTH = 150


@pytest.fixture(scope="module")
def found():
    return splines.runs(WIDTH, splines.SMALL["quick"])


@pytest.fixture
def small(monkeypatch, found):
    """The same runs for every test, of narrow nets: a wrong theory shows there too."""
    monkeypatch.setitem(splines.WIDTH, "quick", WIDTH)
    monkeypatch.setattr(splines, "runs", lambda width, alphas: found)


def changed(runs, **fields):
    """Every net with some fields replaced by functions of it."""

    def one(run):
        return dataclasses.replace(run, **{n: change(run) for n, change in fields.items()})

    rows = [{n: [one(r) for r in row] for n, row in part.items()} for part in runs[:2]]
    return splines.Runs(*rows, {n: one(r) for n, r in runs.flat.items()})


def test_the_claim_holds_as_corrected(small):
    verdict = tacit.verify("W-F7")
    assert verdict.status == "holds as corrected"
    misses = [check for check in verdict.evidence.checks if check.misses]
    assert len(misses) == 1
    assert "plateau" in misses[0].name
    assert misses[0].measured > 0.3


def test_the_numbers_on_another_route(found):
    points, data = np.linspace(-1, 1, 20_001), zigzag()
    line = np.interp(points, data.X[:, 0], data.y)
    for row in found.rich.values():
        direct = np.abs(row[0].function(points) - line)
        np.testing.assert_allclose(row[0].to_linear, direct.max(), rtol=1e-2)
        np.testing.assert_allclose(row[0].to_linear_rms, np.sqrt(np.mean(direct**2)), rtol=1e-2)
    row = found.rich["balanced"]
    gap = row[0].function(points) - row[0].interpolant(points)
    np.testing.assert_allclose(row[0].to_kernel, np.sqrt(np.mean(gap**2)), rtol=1e-2)
    far = row[0].interpolant(points) - line
    np.testing.assert_allclose(row[0].kernel_to_linear, np.sqrt(np.mean(far**2)), rtol=1e-2)


def test_the_scalings_weigh_the_layers():
    x = np.array([0.0, 0.7])
    for share, c in zip((2 / WIDTH, 0.03, 1.0), splines.scalings(WIDTH).values(), strict=True):
        whole = np.diag(mean_kernel(x, x, WIDTH, 1.0, c)) - 2
        outer = 2 * WIDTH * c**2 * (1 + x**2) / 2  # E relu(z)^2 = E z^2 / 2
        np.testing.assert_allclose(whole / outer - 1, share)


def test_the_mean_kernel_tends_to_the_one_of_a_wide_net():
    data, c, width = zigzag(), 0.6, 40_000
    net = splines.learn(data, 20, 1.0, c).begin  # only its shape is needed
    rng = np.random.default_rng(0)
    w, b, v = rng.standard_normal((3, width))
    v = v * np.sqrt(2 / width) / c
    net = net._replace(w=np.tile(c * w, 2), b=np.tile(c * b, 2), v=np.concatenate([v, -v]))
    run = Learned(data, net, kernel_move(net, data.X[:, 0], data.y), net, None, 0)
    limit = splines.mean_interpolant(data, width, 1.0, c)
    assert np.abs(run.interpolant(splines.grid(data)) - limit).max() < 0.02
    other = splines.mean_interpolant(data, width, 1.0, 0.1)
    assert np.abs(run.interpolant(splines.grid(data)) - other).max() > 0.1


# --- sabotage


def test_a_cubic_spline_for_the_linear_one_is_refuted(monkeypatch, small):
    real = Learned._breaks

    def finer(self, *functions):
        return np.union1d(real(self, *functions), np.linspace(-1, 1, 201))

    monkeypatch.setattr(Learned, "_breaks", finer)
    monkeypatch.setattr("tacit.claims.woodworth.spline_runs.linear_spline", cubic_spline)
    assert tacit.verify("W-F7").status in REFUTED


def test_nets_that_stay_at_the_kernel_are_refuted(monkeypatch, small, found):
    rich = {n: [row[0]] * len(row) for n, row in found.rich.items()}
    monkeypatch.setattr(splines, "runs", lambda *_: found._replace(rich=rich))
    assert tacit.verify("W-F7").status in REFUTED


def test_the_kernel_of_another_scaling_is_refuted(monkeypatch, small, found):
    names = list(found.kernel)
    turned = {
        name: [dataclasses.replace(run, begin=other.begin, move=other.move)
               for run, other in zip(found.kernel[name], found.kernel[next_], strict=True)]
        for name, next_ in zip(names, names[1:] + names[:1], strict=True)
    }  # fmt: skip
    monkeypatch.setattr(splines, "runs", lambda *_: found._replace(kernel=turned))
    assert tacit.verify("W-F7").status in REFUTED


def test_a_kernel_without_its_inner_layer_is_refuted(monkeypatch, small, found):
    def outer_only(run):
        x = run.problem.X[:, 0]
        frozen = kernel_move(run.begin._replace(v=0 * run.begin.v), x, run.problem.y)
        return frozen._replace(w=0 * frozen.w, b=0 * frozen.b)

    wrong = changed(found, move=outer_only)
    monkeypatch.setattr(splines, "runs", lambda *_: wrong)
    assert tacit.verify("W-F7").status in REFUTED


def test_a_net_that_has_not_fitted_decides_nothing(monkeypatch, small, found):
    stalled = tacit.records.Outcome(tacit.records.Kind.STALLED, "at rest")
    wrong = changed(found, outcome=lambda run: stalled)
    monkeypatch.setattr(splines, "runs", lambda *_: wrong)
    assert tacit.verify("W-F7").status == "inconclusive"


def test_a_plateau_net_at_the_linear_spline_would_hold_as_printed(monkeypatch, small, found):
    """The printed statement is not refuted by construction."""
    monkeypatch.setattr(splines, "plateau", zigzag)
    flat = {n: row[-1] for n, row in found.rich.items()}
    monkeypatch.setattr(splines, "runs", lambda *_: found._replace(flat=flat))
    evidence = splines.figure_7("quick")
    assert all(check.passes for check in evidence.checks)
    assert plateau().samples == 4
