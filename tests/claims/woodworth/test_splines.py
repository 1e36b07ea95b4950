"""W-F7: what it measures, and that wrong limits and wrong nets are refuted."""

import dataclasses

import numpy as np
import pytest

import tacit
from tacit.claims.woodworth import spline_survey, splines
from tacit.claims.woodworth.spline_runs import Learned, cubic_spline, linear_spline
from tacit.models.univariate import kernel_move, layers, mean_kernel, univariate_relu
from tacit.problems.univariate import plateau, steep_end, zigzag

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
    assert ["plateau" in misses[0].name, "(0.7, 1)" in misses[1].name] == [True, True]
    assert len(misses) == 2
    assert all(check.measured > 0.3 for check in misses)
    assert not verdict.evidence.arithmetic
    assert "alternate in sign" not in verdict.evidence.correction


# --- random data


def places(problem):
    return np.array([[problem.X[:, 0], problem.y]])


def test_three_points_with_one_bend_are_not_learned_by_two_integrators():
    """Their linear spline has the least norm and one bend, and both end as far from it."""
    descent = spline_survey.survey(places(steep_end()), alpha=0.03)
    flow = splines.learn(steep_end(), spline_survey.WIDTH, 0.03)
    assert flow.outcome.ok
    assert descent.fitted.all()
    assert flow.to_linear > 0.3
    np.testing.assert_allclose(descent.distances(linear_spline)[0], flow.to_linear, atol=0.02)
    np.testing.assert_allclose(descent.norms[0], flow.norm, rtol=0.02)
    least, spline = splines.norms(steep_end())
    np.testing.assert_allclose(spline, least, rtol=1e-9)
    np.testing.assert_allclose(spline, 4.7869, rtol=1e-4)


def test_a_shorter_step_learns_the_same():
    data = spline_survey.draw(3, spline_survey.peak, 60, seed=0)[:12]
    coarse, fine = (spline_survey.survey(data, step=step) for step in (0.4, 0.1))
    np.testing.assert_array_equal(coarse.linear, fine.linear)
    np.testing.assert_allclose(
        coarse.distances(linear_spline), fine.distances(linear_spline), atol=0.02
    )


def test_one_step_of_the_survey_is_one_of_descent():
    model, (x, y) = univariate_relu(20, alpha=0.3), places(steep_end())[0]
    begin = np.asarray(model.start(1))
    J = model.jacobian(begin, x[:, None])
    loss = float(y @ y)  # the output of the start is zero
    (net,) = spline_survey.survey(
        places(steep_end()), alpha=0.3, width=20, loss=loss * (1 - 1e-9)
    ).nets
    rate = 2 * spline_survey.STEP / np.trace(J @ J.T)
    for one, other in zip(net, layers(begin + rate * J.T @ y), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


def test_kinks_are_still_on_their_way_when_the_loss_vanishes():
    gaps = [
        spline_survey.survey(places(steep_end()), loss=loss).short()[0]
        for loss in (0.1, 0.01, 1e-4, 1e-8)
    ]
    assert (np.diff(gaps) < 0).all()
    assert gaps[-1] > 0.1
    assert gaps[-2] - gaps[-1] < 0.01  # at rest


def test_the_kinds_of_random_data():
    for y in spline_survey.draw(3, spline_survey.peak, 20, seed=3)[:, 1]:
        assert (y[1] - y[0]) * (y[2] - y[1]) < 0
    for x, y in spline_survey.draw(4, spline_survey.one_way, 20, seed=3):
        bends = [np.linalg.det(np.array([np.ones(3), x[i : i + 3], y[i : i + 3]])) for i in (0, 1)]
        assert bends[0] * bends[1] > 0
        assert np.abs(y).max() == 1


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
        whole = np.diag(mean_kernel(x, x, WIDTH, alpha=1.0, scaling=c)) - 2
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
    random = spline_survey.surveys("quick")
    learned = int(random.peaks.distances(linear_spline).argmin())
    fields = ("problems", "nets", "losses")
    one = {name: getattr(random.peaks, name)[learned : learned + 1] for name in fields}
    near = random._replace(steep=spline_survey.Survey(**one))
    monkeypatch.setattr(splines, "surveys", lambda size: near)
    evidence = splines.figure_7("quick")
    assert all(check.passes for check in evidence.checks)
    assert plateau().samples == 4


@pytest.mark.parametrize("part", ["peaks", "one_way", "steep"])
def test_random_data_of_the_other_kind_are_refuted(part, monkeypatch, small):
    random = spline_survey.surveys("quick")
    other = random.one_way if part == "peaks" else random.peaks
    wrong = random._replace(**{part: other})
    monkeypatch.setattr(splines, "surveys", lambda size: wrong)
    assert tacit.verify("W-F7").status in REFUTED
