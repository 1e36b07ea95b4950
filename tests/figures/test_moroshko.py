"""The figures of source M: their numbers by a second route, their drawings readable."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import linprog, minimize

import tacit.store
from figure_checks import assert_axes_named, assert_captioned, assert_data_speak
from tacit.figures import draw, figures, make
from tacit.figures.accuracy import POINTS
from tacit.figures.excess import norm, relative_excess
from tacit.figures.landmarks import l1_ends
from tacit.figures.moroshko_f5 import line, needed_margin
from tacit.figures.sphere import PIXELS, directions, draw_sphere, viewer
from tacit.figures.style import sheet, styled
from tacit.figures.trajectories import follow
from tacit.problems import three_points

SMALL = {"points": 40, "q_points": 25, "log10_mus": [2.0, -7.0]}
PARAMETERS = {
    "M-F3": {**SMALL, "alphas": {"M-F3b": [0.3, 100.0], "M-F3c": [0.001, 1.0, 100.0],
                                 "M-F3d": [1.0, 100.0]}},
    "M-F4": {**SMALL, "alphas": {"M-F4a": [0.3, 100.0], "M-F4b": [0.3, 0.5, 100.0]}},
    "M-F5": {"points": 25, "starts": 6, "rtol": 1e-5},
    "M-F6": {**SMALL, "alphas": {"M-F3b": [100.0, 10000.0], "M-F3c": [0.001], "M-F3d": [100.0]}},
    "M-F7": {**SMALL, "alphas": {"M-F3c": [0.001, 1.0, 100.0]}},
    "M-F8": {**SMALL, "rtol": 1e-5, "alphas": {"uniform": [0.1, 10.0], "spiked": [0.1, 10.0]}},
    "M-F9": {"depths": [2, 3], "points": 15},
}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    """Every figure's dataset at a small size."""
    return {id: make(id, parameters) for id, parameters in PARAMETERS.items()}


def apart(angles, other):
    """Degrees between directions given as azimuth and pitch."""
    first, second = directions(np.asarray(angles)), directions(np.asarray(other))
    return np.degrees(2 * np.arcsin(np.linalg.norm(first - second, axis=-1) / 2))


def curve(dataset, name, alpha):
    """The one trajectory of `alpha` on the set `name`."""
    found = np.flatnonzero((dataset.curve_set == name) & (dataset.alpha == alpha))
    assert len(found) == 1
    return dataset.isel(curve=found[0])


# ---- every figure ----


def test_every_figure_of_m_is_registered_with_both_presets():
    found = {id for id in figures() if id.startswith("M-F")} - {"M-F1", "M-F2"}
    assert found == set(PARAMETERS)
    for id in found:
        presets = figures()[id].presets
        assert presets["quick"].keys() == presets["paper"].keys()
        assert presets["quick"]["rtol"] > presets["paper"]["rtol"]


def test_every_dataset_says_what_its_numbers_are(made, tmp_path):
    for id, dataset in made.items():
        assert_data_speak(id, dataset, tmp_path, "points")


@pytest.mark.parametrize("id", sorted(PARAMETERS))
def test_a_drawing_has_a_title_a_caption_names_and_a_legend(made, id):
    picture = draw(id, made[id])
    assert_captioned(id, picture)
    assert_axes_named(picture)


@pytest.mark.parametrize("id", ["M-F3", "M-F4", "M-F7", "M-F8", "M-F9"])
def test_no_legend_covers_a_curve(made, id):
    with styled():
        picture = draw(id, made[id])
        picture.canvas.draw()
        for axes in (axes for axes in picture.axes if axes.get_legend()):
            box = axes.get_legend().get_window_extent()
            hit = [box.contains(*p) for line in axes.lines
                   for p in line.get_transform().transform(line.get_xydata())]  # fmt: skip
            assert not any(hit)
            assert len(hit) > 40


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

    u = solve_ivp(velocity, (0, margin), np.full(2 * dimension, alpha), method="LSODA",
                  rtol=1e-10, atol=1e-12).y[:, -1]  # fmt: skip
    return u[:dimension] ** depth - u[dimension:] ** depth


@pytest.mark.parametrize(("id", "name", "alpha"), [("M-F3", "M-F3b", 0.3), ("M-F3", "M-F3d", 1.0),
                                                   ("M-F4", "M-F4b", 0.5)])  # fmt: skip
def test_cross_lines_against_the_flow_of_the_parameters(made, id, name, alpha):
    found, depth = curve(made[id], name, alpha), {"M-F3": 2, "M-F4": 3}[id]
    for mark in (1, 2):
        mu = float(found.mark[mark])
        beta = parameter_flow(three_points(name).signed_rows, depth, alpha, alpha**depth / mu)
        expected = np.array(tacit.azimuth_pitch(beta))
        assert apart(found.cross[mark], expected) < 1e-3
        assert apart(found.cross[mark + 1], expected) > 0.05  # the control: another mu


def test_the_q_path_against_a_general_solver(made):
    row = made["M-F3"].sel(set="M-F3d")
    Z = three_points("M-F3d").signed_rows
    for mark in (0, 2, 5):
        mu = float(row.mark[mark])

        def value(w, mu=mu):
            z = w / (2 * mu)
            return mu * np.sum(z * np.arcsinh(z) - np.sqrt(1 + z**2) + 1)

        rule = {"type": "ineq", "fun": lambda w: Z @ w - 1}
        best = minimize(value, np.full(3, 0.5), method="SLSQP", constraints=rule,
                        options={"ftol": 1e-15, "maxiter": 500})  # fmt: skip
        expected = np.array(tacit.azimuth_pitch(best.x))
        assert apart(row.q_mark[mark], expected) < 0.01
        assert apart(row.l2, expected) > 0.1  # the control: it is not the l2 margin


def test_start_and_l2_of_every_set(made):
    for id in ("M-F3", "M-F4"):
        for name in made[id].set.values:
            row, Z = made[id].sel(set=name), three_points(str(name)).signed_rows
            np.testing.assert_allclose(directions(row.start.values) * np.linalg.norm(Z.mean(0)),
                                       Z.mean(axis=0), atol=1e-12)  # fmt: skip
            rule = {"type": "ineq", "fun": lambda w, Z=Z: Z @ w - 1}
            best = minimize(lambda w: w @ w, np.ones(3), method="SLSQP", constraints=rule)
            assert apart(row.l2, np.array(tacit.azimuth_pitch(best.x))) < 0.01
            first = made[id].trajectory[np.flatnonzero(made[id].curve_set == name)[0], 0]
            assert apart(row.start, first) < 0.05  # a flow sets out along the mean of the data
            assert apart(row.start, row.l2) > 1


def test_l1_set_is_one_point_or_an_edge(made):
    rows = made["M-F3"]
    np.testing.assert_allclose(l1_ends(three_points("M-F3b").signed_rows), [[2 / 3, 0, 0]] * 2,
                               atol=1e-9)  # fmt: skip
    np.testing.assert_allclose(rows.l1.sel(set="M-F3b"), 0, atol=1e-6)
    ends = rows.l1.sel(set="M-F3c").values[[0, -1]]
    # every (a, 1 - a, 0) with a <= 2/3 has margin 1 and l1 norm 1
    np.testing.assert_allclose(np.sort(ends[:, 0]), [np.degrees(np.arctan(0.5)), 90], atol=1e-6)
    np.testing.assert_allclose(ends[:, 1], 0, atol=1e-6)


def test_large_starts_follow_the_q_path_and_all_end_at_l1(made):
    rows = made["M-F3"]
    b = rows.sel(set="M-F3b")
    large = curve(rows, "M-F3b", 100.0)
    assert apart(large.cross, b.q_mark).max() < 0.01
    assert apart(curve(rows, "M-F3b", 0.3).cross, b.q_mark).max() > 3  # the control
    for alpha in (0.3, 100.0):
        found = curve(rows, "M-F3b", alpha)
        assert apart(found.trajectory[-1], [0, 0]) < 1  # near (2/3, 0, 0) at mu = 1e-6 ...
        assert apart(found.cross[-1], [0, 0]) > 5  # ... but not yet at mu = 0.001


def test_the_start_decides_among_many_l1_margins(made):
    rows = made["M-F3"]
    ends = {alpha: curve(rows, "M-F3c", alpha).trajectory[-1] for alpha in (0.001, 1.0, 100.0)}
    assert apart(ends[100.0], [45, 0]) < 0.2  # (1/2, 1/2, 0)
    assert apart(ends[0.001], [90, 0]) < 0.2  # (0, 1, 0)
    assert apart(ends[1.0], [45, 0]) > 5
    assert apart(ends[1.0], [90, 0]) > 5
    assert abs(ends[1.0][1]) < 0.1  # yet it is an l1 margin


def test_past_the_kink_the_flow_runs_ahead_of_the_q_path(made):
    rows = made["M-F3"]
    d = rows.sel(set="M-F3d")
    np.testing.assert_allclose(d.change_mu[0], 0.0366, rtol=0.01)
    assert not np.isfinite(rows.change_mu.sel(set=["M-F3b", "M-F3c"])).any()
    large = curve(rows, "M-F3d", 100.0)
    before, after = rows.mark.values > 0.0366, rows.mark.values < 0.02
    assert apart(large.cross, d.q_mark)[before].max() < 0.05
    assert apart(large.cross, d.q_mark)[after].min() > 1
    assert apart(large.cross, d.limit_mark).max() < 0.05  # the limit foretells where it is


def test_depth_3_ends_at_a_stationary_point_of_the_deeper_margin(made):
    rows = made["M-F4"]
    a, b = rows.sel(set="M-F4a"), rows.sel(set="M-F4b")
    assert apart(a.stationary[0], [90, 0]) < 1e-6  # (0, .714, 0)
    assert apart(b.stationary[0], [0, 45]) < 1e-6  # (.625, 0, .625)
    assert np.nanmin(apart(b.stationary.dropna("place"), [0, 0])) < 1e-6  # e1 is a local one
    for alpha in (0.3, 100.0):
        end = curve(rows, "M-F4a", alpha).trajectory[-1]
        assert apart(end, [90, 0]) < 0.3
        assert apart(end, a.l1[0]) > 10  # which is not where the Q path goes
    assert apart(a.q_path[-1], a.l1[0]) < 0.3
    ends = [apart(curve(rows, "M-F4b", alpha).trajectory[-1], [0, 0]) for alpha in (0.3, 0.5, 100)]
    np.testing.assert_allclose(ends, [0, 45, 45], atol=0.5)


def test_marks_stand_at_powers_of_ten(made):
    rows = made["M-F6"]
    found = curve(rows, "M-F3b", 10000.0)
    for exponent in (8, 11):
        here = found.at_power.sel(power=10.0**exponent, method="nearest")
        near = int(np.argmin(np.abs(np.log(found.smoothed_margin / 10.0**exponent)).values))
        assert apart(here, found.trajectory[near]) < 3
    at_l2 = found.at_power.sel(power=1e8, method="nearest")
    assert apart(at_l2, rows.l2.sel(set="M-F3b")) < 0.5  # log(1/loss) = alpha^2 there
    assert apart(found.at_power.sel(power=1e11, method="nearest"), rows.l2.sel(set="M-F3b")) > 10
    assert np.isnan(found.at_power.sel(power=1e-6, method="nearest")).all()  # before it begins


# ---- excess norms and accuracy ----


def test_norms_of_any_order_and_the_excess_at_a_margin():
    beta = np.array([[3.0, -4.0], [1e-200, 0.0]])
    np.testing.assert_allclose(norm(beta, 2), [5, 1e-200])
    np.testing.assert_allclose(norm(beta, 2 / 3)[0], (3 ** (2 / 3) + 4 ** (2 / 3)) ** 1.5)
    np.testing.assert_allclose(relative_excess(beta[:1], np.array([0.5]), 1.0, 7.0), [1.0])
    assert np.isnan(relative_excess(beta[:1], np.array([-0.5]), 1.0, 7.0)).all()


def test_the_needed_margin_is_where_the_excess_crosses_the_level(made):
    problem, parameters = three_points(POINTS), {"rtol": 1e-8, "level": 0.05}
    least = linprog(np.ones(6), A_ub=-np.hstack([problem.X, -problem.X]), b_ub=-np.ones(3)).fun
    for depth, scale in ((2, 10.0), (3, 0.1)):
        needed = needed_margin(depth, scale, parameters)
        path = follow(problem, depth, scale ** (1 / depth), needed * np.array([0.5, 1, 2]), 1e-9)
        excess = path.norm_l1.values / (problem.X @ path.predictor.values.T).min(axis=0) / least - 1
        np.testing.assert_allclose(excess[1], 0.05, rtol=1e-3)
        assert excess[0] > 0.055 > 0.045 > excess[2]
    assert np.isnan(needed_margin(2, 1.0, {"rtol": 1e-6, "level": 1e-9}))


def test_the_accuracy_needed_is_proportional_to_the_scale_above_one_only(made):
    rows = made["M-F5"]
    np.testing.assert_allclose(rows.slope, 1, atol=0.02)
    assert (rows.intercept.diff("depth") < -0.3).all()
    assert (rows.slope_below < 0.93).all()  # the source says that it stays 1; measured, it does not
    assert line(np.array([1, 10, 100.0]), np.array([3, 30, 300.0]))[0] == pytest.approx(1)
    falls = rows.excess_l1.isel(smoothed_margin=-1)
    assert (falls.diff("depth") < 0).all()  # deeper is nearer to l1 at the same loss
    assert (falls.diff("scale") > 0).all()  # and so is a smaller start


def test_the_selected_l1_margin_has_the_least_or_the_largest_l2_norm(made):
    rows = made["M-F7"]
    # the l1 set is (a, 1 - a, 0), a <= 2/3: l2 norms from sqrt(1/2) up to 1
    np.testing.assert_allclose(rows.least.sel(set="M-F3c")[0], 1, rtol=1e-9)
    ends = {alpha: curve(rows, "M-F3c", alpha).trajectory[-1] for alpha in (0.001, 100.0)}
    least = float(rows.least.sel(set="M-F3c")[1])
    np.testing.assert_allclose(ends[100.0], [0, np.sqrt(0.5) / least - 1], atol=2e-3)
    np.testing.assert_allclose(ends[0.001], [0, 1 / least - 1], atol=2e-3)
    np.testing.assert_allclose(rows.l1[0, :, 0], 0, atol=1e-9)
    first = curve(rows, "M-F3c", 100.0).trajectory[0]
    np.testing.assert_allclose(first, rows.start[0], atol=1e-3)
    mean = np.array([2, 6.5, 0.5]) / 3  # margins 20/3, 8.75/3 and 17.75/3
    np.testing.assert_allclose(rows.start[0, 0], mean.sum() / (8.75 / 3) - 1, rtol=1e-9)
    assert rows.l2[0, 0] > 0.05
    assert abs(rows.l2[0, 1]) < 1e-9


def test_ten_dimensions(made):
    rows = made["M-F8"]
    for name in ("uniform", "spiked"):
        row = rows.sel(set=name)
        places = row.stationary.dropna("place")
        assert len(places) > 5
        np.testing.assert_allclose(places[0, 0], 0, atol=1e-9)
        assert (places[1:, 0] > 0).all()
        assert (np.diff(places[:, 0]) >= 0).all()
        np.testing.assert_allclose(row.l2[1], 0, atol=1e-9)
    spiked, random = rows.sel(set="spiked"), rows.sel(set="uniform")
    np.testing.assert_allclose(spiked.l1[0], spiked.stationary[0], atol=1e-6)
    assert random.l1[0, 0] > 0.1  # the control: for random data l1 is not the deeper margin
    for alpha in (0.1, 10.0):
        np.testing.assert_allclose(curve(rows, "spiked", alpha).trajectory[-1, 0], 0, atol=0.01)
    small, large = (curve(rows, "uniform", alpha).trajectory[-1] for alpha in (0.1, 10.0))
    assert small[1] - large[1] > 1  # each start has its own minimum


def test_kernel_distance_against_the_kernel_of_depth_2(made):
    rows, X = made["M-F9"], three_points(POINTS).X
    margins = rows.smoothed_margin.values
    path = follow(three_points(POINTS), 2, 0.1**0.5, margins, 1e-8)
    for place in (5, 10, 14):
        # u+ u- stays alpha^2, so u+^2 + u-^2 = sqrt(w^2 + 4 alpha^4)
        now = X @ np.diag(np.sqrt(path.predictor.values[place] ** 2 + 4 * 0.1**2)) @ X.T
        cosine = np.sum(now * (X @ X.T)) / np.linalg.norm(now) / np.linalg.norm(X @ X.T)
        found = rows.kernel_distance.sel(depth=2, scale=0.1)[place]
        np.testing.assert_allclose(found, 1 - cosine, rtol=1e-4, atol=1e-12)
    middle = rows.kernel_distance.sel(smoothed_margin=3, method="nearest")
    assert (middle.diff("depth") > 0).all()  # deeper leaves the kernel earlier
    assert (middle.diff("scale") < 0).all()  # and so does a smaller start


# ---- the sphere ----


def test_directions_and_viewers():
    beta = np.random.default_rng(0).normal(size=(20, 3))
    beta /= np.linalg.norm(beta, axis=1, keepdims=True)
    angles = np.stack(tacit.azimuth_pitch(beta), axis=-1)
    np.testing.assert_allclose(directions(angles), beta, atol=1e-12)
    view = viewer(30, 22)
    np.testing.assert_allclose(view @ view.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(view), 1)
    assert view[1, 2] > 0  # the north pole is up


def test_the_sphere_is_darker_where_the_data_are_separated():
    _, (axes,) = sheet("")
    rows, view = three_points("M-F3d").signed_rows, viewer(30, 22)
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
