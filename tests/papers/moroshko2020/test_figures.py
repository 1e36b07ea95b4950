"""The figures: wrong theories, their numbers by a second route, places in their drawings."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import linprog, minimize

import penchant
from penchant.lab import all_claims
from penchant.plotting import draw_sphere, sheet, styled, viewer
from penchant.plotting.sphere import PIXELS, directions
from penchant.problems import three_points
from penchant_papers.moroshko2020.figures import figure_5
from penchant_papers.moroshko2020.figures.accuracy import POINTS
from penchant_papers.moroshko2020.figures.trajectories import apart, l1_ends, lines_on
from penchant_papers.moroshko2020.stopping import follow


@pytest.fixture(scope="session")
def picture_of(data_of):
    return lambda id: all_claims()[id].picture(data_of(id))


WRONG = {
    "another depth": ("M-F3", 1, {"depth": 3}),
    "the landmarks of depth 2": ("M-F4", 1, {"depth": 2}),
    "another level": ("M-F5", 0, {"level": 1e-9}),
    "powers that are one off": ("M-F6", 0, {"powers": list(range(-5, 16))}),
    "a depth whose l1 set is not the limit": ("M-F7", 0, {"depth": 4}),
    "ends that are stationary for l1": ("M-F8", 2, {"quasi": 2}),
    "a depth whose end is not the l_{2/3} margin": ("M-F8", 2, {"depth": 2}),
}


@pytest.mark.parametrize("theory", WRONG)
def test_a_wrong_theory_is_refuted(theory, verdict_with):
    id, which, arguments = WRONG[theory]
    assert not verdict_with(id, which=which, **arguments).ok


def test_the_panels_of_the_sphere_s_figure_are_aligned_and_its_legend_is_short(picture_of):
    a, b, c, d = picture_of("M-F3").axes[:4]
    assert c.get_position().y0 == pytest.approx(d.get_position().y0)
    assert c.get_position().y1 == pytest.approx(d.get_position().y1)
    assert b.get_position().x0 == pytest.approx(d.get_position().x0)
    assert a.get_position().y1 == pytest.approx(b.get_position().y1)
    assert len(a.get_legend().get_texts()) <= 8


def test_no_number_of_the_trajectories_lies_on_a_curve(data_of, picture_of):
    picture = picture_of("M-F6")
    with styled():
        picture.canvas.draw()
    shown = {"3b": [100.0, 10000.0], "3c": [0.001, 100.0], "3d": [100.0]}
    for axes, (name, alphas) in zip(picture.axes, shown.items(), strict=True):
        lines = lines_on(data_of("M-F6")[0].sel(alpha=alphas), name)
        dots = axes.transData.transform(np.vstack(list(lines.values())))
        for text in axes.texts:
            frame = text.get_window_extent()
            assert not frame.count_contains(dots), (name, text.get_text())
            assert axes.bbox.count_contains(frame.corners()) == 4, (name, text.get_text())
        assert any(text.get_bbox_patch() for text in axes.texts)


# ---- trajectories of directions ----


def parameter_flow(Z, depth, alpha, margin):
    """The predictor at a smoothed margin by integrating the parameters themselves, M eq. (87)."""
    dimension = Z.shape[1]

    def velocity(g, u):
        plus, minus = u[:dimension], u[dimension:]
        margins = Z @ (plus**depth - minus**depth)
        weights = np.exp(-(margins - margins.min()))
        pull = weights @ Z / weights.sum()
        push = depth * np.concatenate([plus, minus]) ** (depth - 1) * np.tile(pull, 2)
        push[dimension:] *= -1
        return push / (push @ push)  # so that log(1/loss) grows at rate one

    start = np.full(2 * dimension, alpha)
    found = solve_ivp(velocity, (0, margin), start, method="LSODA", rtol=1e-10, atol=1e-12)
    u = found.y[:, -1]
    return u[:dimension] ** depth - u[dimension:] ** depth


@pytest.mark.parametrize(
    ("id", "name", "alpha", "depth"),
    [("M-F3", "3b", 0.3, 2), ("M-F3", "3d", 0.3, 2), ("M-F4", "4b", 0.5, 3)],
)
def test_cross_lines_against_the_flow_of_the_parameters(data_of, id, name, alpha, depth):
    found = data_of(id)[0].sel(curve_set=name, alpha=alpha)
    marks = {"M-F3": [0.5, 0.2, 0.1], "M-F4": [1.0, 0.2, 0.03]}[id]
    for mark in (1, 2):
        margin = alpha**depth / marks[mark]
        beta = parameter_flow(three_points(name).signed_rows, depth, alpha, margin)
        expected = np.array(penchant.measures.azimuth_pitch(beta))
        assert apart(found.cross[mark], expected) < 1e-3
        assert apart(found.cross[mark + 1], expected) > 0.05  # the control: another mu


def test_the_q_path_against_a_general_solver(data_of):
    row = data_of("M-F3")[1].sel(curve_set="3d")
    Z = three_points("3d").signed_rows
    for mark, mu in ((0, 0.5), (2, 0.1), (5, 0.001)):

        def value(w, mu=mu):
            z = w / (2 * mu)
            return mu * np.sum(z * np.arcsinh(z) - np.sqrt(1 + z**2) + 1)

        rule = {"type": "ineq", "fun": lambda w: Z @ w - 1}
        tight = {"ftol": 1e-15, "maxiter": 500}
        best = minimize(value, np.full(3, 0.5), method="SLSQP", constraints=rule, options=tight)
        expected = np.array(penchant.measures.azimuth_pitch(best.x))
        assert apart(row.q_mark[mark], expected) < 0.01
        assert apart(row.l2, expected) > 0.1  # the control: it is not the l2 margin


@pytest.mark.parametrize("id", ["M-F3", "M-F4"])
def test_start_and_l2_of_every_set(data_of, id):
    rows = data_of(id)[1]
    for name in rows.curve_set.values:
        row, Z = rows.sel(curve_set=name), three_points(str(name)).signed_rows
        mean = directions(row.start.values) * np.linalg.norm(Z.mean(0))
        np.testing.assert_allclose(mean, Z.mean(axis=0), atol=1e-12)
        rule = {"type": "ineq", "fun": lambda w, Z=Z: Z @ w - 1}
        best = minimize(lambda w: w @ w, np.ones(3), method="SLSQP", constraints=rule)
        assert apart(row.l2, np.array(penchant.measures.azimuth_pitch(best.x))) < 0.01
        assert apart(row.start, row.l2) > 1


def test_landmarks_by_hand(data_of):
    three = data_of("M-F3")[1]
    np.testing.assert_allclose(
        l1_ends(three_points("3b").signed_rows), [[2 / 3, 0, 0]] * 2, atol=1e-9
    )
    np.testing.assert_allclose(three.l1.sel(curve_set="3b"), 0, atol=1e-6)
    ends = three.l1.sel(curve_set="3c").values[[0, -1]]
    # every (a, 1 - a, 0) with a <= 2/3 has margin 1 and l1 norm 1
    np.testing.assert_allclose(np.sort(ends[:, 0]), [np.degrees(np.arctan(0.5)), 90], atol=1e-6)
    np.testing.assert_allclose(ends[:, 1], 0, atol=1e-6)
    assert not np.isfinite(three.change_mu.sel(curve_set=["3b", "3c"])).any()
    four = data_of("M-F4")[1]
    assert apart(four.stationary.sel(curve_set="4a")[0], [90, 0]) < 1e-6  # (0, .714, 0)
    assert apart(four.stationary.sel(curve_set="4b")[0], [0, 45]) < 1e-6  # (.625, 0, .625)


def test_marks_stand_at_powers_of_ten(data_of):
    rows, landmarks = data_of("M-F6")
    found = rows.sel(curve_set="3b", alpha=10000.0)
    place = {power: 6 + power for power in (-6, 8, 11)}
    for power in (8, 11):
        margins = np.log(found.trajectory_smoothed_margin.values)
        near = int(np.abs(margins - power * np.log(10)).argmin())
        line = lines_on(rows, "3b")[10000.0]
        assert apart(found.at_power[place[power]], line[near]) < 3
    assert apart(found.at_power[place[11]], landmarks.l2.sel(curve_set="3b")) > 10
    assert np.isnan(found.at_power[place[-6]]).all()  # before it begins


# ---- excess norms and accuracy ----


def test_the_needed_margin_is_where_the_excess_crosses_the_level():
    problem = three_points(POINTS)
    least = linprog(np.ones(6), A_ub=-np.hstack([problem.X, -problem.X]), b_ub=-np.ones(3)).fun
    for depth, scale in ((2, 10.0), (3, 0.1)):
        needed = figure_5.cell(depth, scale, 0.05, 1e-8)["needed"]
        path = follow(problem, depth, scale ** (1 / depth), needed * np.array([0.5, 1, 2]), 1e-9)
        excess = path.norm_l1.values / (problem.X @ path.predictor.values.T).min(axis=0) / least - 1
        np.testing.assert_allclose(excess[1], 0.05, rtol=1e-3)
        assert excess[0] > 0.055 > 0.045 > excess[2]
    assert np.isnan(figure_5.cell(2, 1.0, 1e-9, 1e-6)["needed"])


def test_small_starts_need_an_accuracy_that_a_linear_loss_foretells():
    """As alpha -> 0 at depth 2 the pull is the mean of the data: w_i = 2 alpha^2 sinh(s m_i)."""
    Z, scale = three_points(POINTS).signed_rows, 1e-14
    mean = Z.mean(axis=0)

    def excess(s):
        w = np.sinh(s * mean)
        return np.abs(w).sum() / (Z @ w).min() / (2 / 3) - 1

    low, high = 1.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0.05 else (low, middle)
    foretold = 2 * scale * np.sinh(high * mean) @ mean  # 1 - loss, to first order
    needed = figure_5.cell(2, scale, 0.05, 1e-8)["needed"]
    assert needed == pytest.approx(foretold, rel=0.01)  # 30 records a decade, interpolated
    assert figure_5.cell(2, 1.0, 0.05, 1e-8)["needed"] < 0.1 * foretold / scale


def test_the_l1_set_of_figure_7_by_hand(data_of):
    dataset, landmarks = data_of("M-F7")
    # the l1 set is (a, 1 - a, 0), a <= 2/3: l2 norms from sqrt(1/2) up to 1
    row = landmarks.sel(curve_set="3c")
    np.testing.assert_allclose(row.least[0], 1, rtol=1e-9)
    ends = dataset.sel(curve_set="3c")
    for alpha, length in ((100.0, np.sqrt(0.5)), (0.001, 1.0)):
        found = ends.sel(alpha=alpha)
        np.testing.assert_allclose(found.excess_l2, length / row.least[1] - 1, atol=2e-3)
    mean = np.array([2, 6.5, 0.5]) / 3  # margins 20/3, 8.75/3 and 17.75/3
    np.testing.assert_allclose(row.start[0], mean.sum() / (8.75 / 3) - 1, rtol=1e-9)


def test_ten_dimensions(data_of):
    landmarks = data_of("M-F8")[1]
    for name in ("uniform", "spiked"):
        row = landmarks.sel(curve_set=name)
        places = row.stationary.dropna("place")
        np.testing.assert_allclose(places[0, 0], 0, atol=1e-9)
        assert (places[1:, 0] > 0).all()
        assert (np.diff(places[:, 0]) >= 0).all()
        np.testing.assert_allclose(row.l2[1], 0, atol=1e-9)


def test_kernel_distance_against_the_kernel_of_depth_2(data_of):
    (rows, _), X = data_of("M-F9"), three_points(POINTS).X
    found = rows.sel(depth=2, scale=0.1)
    margins = found.trajectory_smoothed_margin.values
    path = follow(three_points(POINTS), 2, 0.1**0.5, margins, 1e-8)
    for place in (10, 17, 24):
        # u+ u- stays alpha^2, so u+^2 + u-^2 = sqrt(w^2 + 4 alpha^4)
        now = X @ np.diag(np.sqrt(path.predictor.values[place] ** 2 + 4 * 0.1**2)) @ X.T
        cosine = np.sum(now * (X @ X.T)) / np.linalg.norm(now) / np.linalg.norm(X @ X.T)
        distance = found.trajectory_kernel_distance[place]
        np.testing.assert_allclose(distance, 1 - cosine, rtol=1e-4, atol=1e-12)
    half = np.interp(
        np.log(found.departure), np.log(margins), found.trajectory_kernel_distance.values
    )
    assert half == pytest.approx(float(found.kernel_distance) / 2)


# ---- the sphere ----


def test_directions_and_viewers():
    beta = np.random.default_rng(0).normal(size=(20, 3))
    beta /= np.linalg.norm(beta, axis=1, keepdims=True)
    angles = np.stack(penchant.measures.azimuth_pitch(beta), axis=-1)
    np.testing.assert_allclose(directions(angles), beta, atol=1e-12)
    np.testing.assert_allclose(
        apart(angles[:-1], angles[1:]), penchant.measures.angle(beta[:-1], beta[1:])
    )
    view = viewer(30, 22)
    np.testing.assert_allclose(view @ view.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(view), 1)
    assert view[1, 2] > 0  # the north pole is up


def test_the_sphere_is_darker_where_the_data_are_separated():
    _, (axes,) = sheet("")
    rows, view = three_points("3d").signed_rows, viewer(30, 22)
    draw_sphere(axes, rows, view)
    image = np.asarray(axes.images[0].get_array())

    def shade(beta):
        across, up, depth = view @ (beta / np.linalg.norm(beta))
        assert depth > 0
        return image[round((up + 1) / 2 * (PIXELS - 1)), round((across + 1) / 2 * (PIXELS - 1)), 0]

    separating, not_separating = np.array([1.0, 0.2, 0.8]), np.array([0.9, 0.1, -0.9])
    assert (rows @ separating > 0).all()
    assert (rows @ not_separating < 0).any()
    assert shade(separating) < shade(not_separating)
    assert image[0, 0, 3] == 0  # nothing outside the ball
