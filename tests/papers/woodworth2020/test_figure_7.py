"""Figure 7: what it measures, and that wrong limits and wrong nets are refuted."""

import numpy as np
import pytest

from penchant.lab.evidence.evidence import HOLDING, judge
from penchant.measures import mean_kernel
from penchant.models import univariate_relu
from penchant.problems import plateau, steep_end, zigzag
from penchant.solvers import linear_spline
from penchant_papers.woodworth2020.figures import figure_7, spline_survey
from penchant_papers.woodworth2020.figures.hinges import kernel_move, layers
from penchant_papers.woodworth2020.figures.spline_nets import (
    SHARES,
    grid_of,
    learn,
    mean_interpolant,
    norms,
    scaling_of,
    started,
)

ID = figure_7.experiment.id
WIDTH = 150


@pytest.fixture
def datasets(data_of):
    return [dataset.copy(deep=True) for dataset in data_of(ID)]


def status(datasets):
    return judge(figure_7.experiment.evidence(datasets))[0]


def test_what_fails_as_printed(verdict_of):
    plateau, steep, bend, cubic = [
        check for check in verdict_of(ID).evidence.checks.values() if check.misses
    ]
    assert ["plateau" in plateau.name, "(0.7, 1)" in steep.name] == [True, True]
    assert ["variation" in bend.name, "cubic" in cubic.name] == [True, True]
    assert plateau.measured > 0.3
    assert steep.measured < 0.5  # none of the starts, up to what is chance


# --- random data


def places(problem):
    return np.array([[problem.X[:, 0], problem.y]])


def test_three_points_with_one_bend_are_not_learned_by_two_integrators():
    """Their linear spline has the least norm and one bend, and both end as far from it."""
    descent = spline_survey.survey(places(steep_end()), alpha=0.03)
    flow = learn(steep_end(), spline_survey.WIDTH, 0.03)
    assert flow.outcome.ok
    assert descent.fitted.all()
    assert flow.to_linear > 0.3
    np.testing.assert_allclose(descent.distances(linear_spline)[0], flow.to_linear, atol=0.02)
    np.testing.assert_allclose(descent.norms[0], flow.norm, rtol=0.02)
    least, spline = norms(steep_end()).values()
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


def test_stages_and_groups_change_nothing(monkeypatch):
    """Every set ends where a single descent of it alone ends, also beyond one group."""
    data = spline_survey.draw(3, spline_survey.peak, spline_survey.GROUP + 1, seed=5)
    found = spline_survey.survey(data, loss=1e-3, seed=7)
    monkeypatch.setattr(spline_survey, "STAGES", (sum(spline_survey.STAGES),))
    for place in (0, 3, spline_survey.GROUP):
        alone = spline_survey.survey(data[place : place + 1], loss=1e-3, seed=7 + place)
        assert found.losses[place] == alone.losses[0] <= 1e-3
        for part, other in zip(found.nets[place], alone.nets[0], strict=True):
            np.testing.assert_array_equal(part, other)


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


def test_the_numbers_on_another_route(data_of):
    runs, data = data_of(ID)[0].isel(seed=0), zigzag()
    points = np.linspace(-1, 1, 20_001)
    line = np.interp(points, data.X[:, 0], data.y)
    for name in SHARES:
        run, row = learn(data, WIDTH, 1.0, scaling_of(name, WIDTH), rtol=0.1), runs.sel(layers=name)
        row = row.sel(alpha=1.0)
        direct = np.abs(run.function(points) - line)
        np.testing.assert_allclose(row.to_linear, direct.max(), rtol=1e-2)
        np.testing.assert_allclose(row.to_linear_rms, np.sqrt(np.mean(direct**2)), rtol=1e-2)
        gap = run.function(points) - run.interpolant(points)
        np.testing.assert_allclose(row.to_kernel, np.sqrt(np.mean(gap**2)), rtol=1e-2)
        np.testing.assert_allclose(row.learned, run.function(row.input.values))
    flat = learn(plateau(), WIDTH, (0.05 / WIDTH) ** 0.5, scaling_of("balanced", WIDTH), rtol=0.1)
    row = data_of(ID)[1].isel(seed=0).sel(layers="balanced")
    np.testing.assert_allclose(row.learned, flat.function(row.input.values))


def test_the_scalings_weigh_the_layers():
    x = np.array([0.0, 0.7])
    for name, share in SHARES.items():
        c = scaling_of(name, WIDTH)
        whole = np.diag(mean_kernel(x, x, WIDTH, alpha=1.0, scaling=c)) - 2
        outer = 2 * WIDTH * c**2 * (1 + x**2) / 2  # E relu(z)^2 = E z^2 / 2
        np.testing.assert_allclose(whole / outer - 1, 2 / WIDTH if share is None else share)


def test_the_mean_kernel_tends_to_the_one_of_a_wide_net():
    data, c, width = zigzag(), 0.6, 40_000
    limit, other = (mean_interpolant(data, width, 1.0, at) for at in (c, 0.1))
    grid, run = grid_of(data), started(data, width, 1.0, c)
    assert np.abs(run.interpolant(grid) - limit).max() < 0.02
    assert np.abs(run.interpolant(grid) - other).max() > 0.1


# --- sabotage


def test_a_kernel_without_its_inner_layer_is_not_the_interpolant(data_of):
    """The move of the outer layer alone is further from the net than the claim allows."""
    run, x = learn(zigzag(), WIDTH, 400.0, scaling_of("balanced", WIDTH), rtol=0.01), zigzag()
    frozen = kernel_move(run.begin._replace(v=0 * run.begin.v), x.X[:, 0], x.y)
    wrong = started(zigzag(), WIDTH, 400.0, scaling_of("balanced", WIDTH))
    object.__setattr__(wrong, "move", frozen._replace(w=0 * frozen.w, b=0 * frozen.b))
    assert run.from_interpolant(wrong) > 1e-2
    assert run.to_kernel < 1e-3


@pytest.mark.parametrize(
    ("place", "name", "change"),
    [
        (0, "to_linear", lambda d: d.to_cubic),
        (0, "to_linear", lambda d: d.to_linear * 0 + d.to_linear.sel(alpha=1.0)),
        (0, "spline_norm", lambda d: 1.1 * d.spline_norm),
        (1, "norm", lambda d: d.spline_norm),
        (1, "least_norm", lambda d: 0.99 * d.spline_norm),
        (2, "to_own", lambda d: d.crossed.isel(other=0) + 0.01),
        (2, "to_own", lambda d: d.to_own * (d.alpha / 400) ** -1),
        (2, "kink_distance", lambda d: 1.2 * d.kink_distance),
        (2, "between", lambda d: d.between / 100),
        (2, "rescaled", lambda d: d.rescaled + 0.03),
        (2, "kinked", lambda d: 0 * d.kinked),
        (2, "curved", lambda d: d.curved + 0.1),
        (1, "bend", lambda d: 1.1 * d.bend),
        (3, "bend", lambda d: 1.5 * d.bend),
    ],
)
def test_wrong_limits_are_refuted(datasets, place, name, change):
    datasets[place][name] = change(datasets[place])
    assert status(datasets) not in HOLDING


def test_a_net_that_has_not_fitted_decides_nothing(datasets):
    datasets[0]["status"] = datasets[0].status.astype("<U20")
    datasets[0].status[0, 0] = "stalled"
    assert status(datasets) == "inconclusive"


def test_a_plateau_net_at_the_linear_spline_would_hold_as_printed(datasets):
    """The printed statement is not refuted by construction."""
    datasets[1]["to_linear"] = datasets[1].to_linear * 0.001
    random = datasets[3]
    random.distance.loc[{"kind": "steep"}] = 0.001
    random["bend"] = random.bend * 0 + 1.0
    datasets[2]["to_any_cubic"] = datasets[2].to_any_cubic * 0.1
    evidence = figure_7.check(*datasets)
    assert all(check.passes for check in evidence.checks.values())


@pytest.mark.parametrize(("kind", "other"), [("peak", "one way"), ("one way", "peak")])
def test_random_data_of_the_other_kind_are_refuted(kind, other, datasets):
    random = datasets[3]
    for name in spline_survey.MEASURES:
        random[name].loc[{"kind": kind}] = random[name].sel(kind=other).values.copy()
    assert status(datasets) not in HOLDING


def test_three_steep_points_whose_linear_spline_is_learned_are_refuted(datasets):
    datasets[3].distance.loc[{"kind": "steep"}] = 0.001
    assert status(datasets) not in HOLDING


def test_the_drawing_holds_the_data(data_of):
    datasets = data_of(ID)
    picture = figure_7.experiment.picture(datasets)
    assert len(picture.axes) == 4
    runs, flat = (dataset.isel(seed=0) for dataset in datasets[:2])
    lines, row = picture.axes[1].get_lines(), runs.sel(layers="between")
    np.testing.assert_allclose(lines[0].get_ydata(), row.learned[0])
    np.testing.assert_allclose(lines[4].get_ydata(), linear_spline(zigzag())(row.input[0].values))
    np.testing.assert_allclose(lines[5].get_ydata(), row.interpolant[-1])
    np.testing.assert_allclose(picture.axes[3].get_lines()[2].get_ydata(), flat.learned[2])
    assert "$c$ multiplies $w$ and $b$" in picture._supxlabel.get_text().replace("\n", " ")
    named = {line.get_label(): line for line in picture.axes[0].get_lines()}
    largest, kernel = named[r"$\alpha$ = 30"], named["interpolant of the\nkernel at the start"]
    assert largest.get_zorder() > kernel.get_zorder()
    assert kernel.get_linewidth() > 2 * largest.get_linewidth()
    assert picture.axes[1].get_ylim() == picture.axes[0].get_ylim()  # the same data
    assert figure_7.study.at("printed").arguments["width"] == 10_000
