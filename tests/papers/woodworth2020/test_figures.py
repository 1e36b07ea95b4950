"""Figures 1 to 4 and 9, sample sizes: numbers by a second route, wrong curves refuted."""

import dataclasses
import importlib
import json

import numpy as np
import pytest
import xarray

from penchant import L1, DiagonalNet, Q, interpolate
from penchant.lab import all_claims
from penchant.lab.evidence.evidence import HOLDING, judge
from penchant.problems import sparse_regression
from penchant.solvers import interpolate_path, recovery_scale
from penchant_papers.woodworth2020 import sample_size
from penchant_papers.woodworth2020.figures import figure_1, figure_4, figure_9, recovery
from penchant_papers.woodworth2020.figures.figure_3 import ratio, unit_curvature
from penchant_papers.woodworth2020.figures.recovery import population_error

# ---- Figure 2 ----


def test_q_and_r_against_their_definitions(data_of):
    from scipy.integrate import quad
    from scipy.optimize import minimize_scalar

    def slow_r(z):
        """Least |w - 1|^2 with w+^2 - w-^2 = z, by a search over w-."""
        moved = lambda v: (np.sqrt(z + v * v) - 1) ** 2 + (v - 1) ** 2  # noqa: E731
        return minimize_scalar(moved, bounds=(0, 5), method="bounded", options={"xatol": 1e-10}).fun

    (dataset,) = data_of("W-F2")
    z = dataset.z.isel(regularizer=0).values
    q, r, deep = (dataset.value.sel(regularizer=n).values[z > 0] for n in dataset.regularizer)
    z = z[z > 0]
    np.testing.assert_allclose(q, [quad(lambda u: np.arcsinh(u / 2), 0, v)[0] for v in z], 1e-10)
    np.testing.assert_allclose(r, [slow_r(v) for v in z], rtol=1e-8)
    inverse = [quad(lambda s: (1 - s) ** -2 - (1 + s) ** -2, 0, 0.3)[0]]  # h_4, to s = 0.3
    h = (1 - 0.3) ** -2 - (1 + 0.3) ** -2
    at_h = float(Q(4, alpha=1.0).terms(np.array([h]))[0])
    assert at_h == pytest.approx(0.3 * h - inverse[0])  # the antiderivative of an inverse
    np.testing.assert_allclose(deep / r, deep[0] / r[0])
    assert (q / r).max() > 1.2 * (q / r).min()  # the control: q is no rescaling of r


# ---- Figure 1 ----


def problem(samples=30, dimension=80, seed=0):
    return sparse_regression(samples, dimension=dimension, sparsity=2, noise=0.1, seed=seed)


def test_population_error_against_fresh_samples(data_of):
    from scipy.optimize import minimize

    one, rows = problem(), figure_1.curves(*data_of("W-F1")[:2])
    fresh = np.random.default_rng(1).normal(size=(20000, 80))
    for alpha in (1.0, 0.06, 1e-3):
        mu = alpha**2

        def dual(nu, mu=mu):
            """2 mu sum cosh(X^T nu) - y nu, whose minimiser gives the predictor."""
            s = one.X.T @ nu
            slope = one.X @ (2 * mu * np.sinh(s)) - one.y
            return 2 * mu * np.cosh(s).sum() - one.y @ nu, slope

        nu = minimize(dual, np.zeros(30), jac=True, method="BFGS", options={"gtol": 1e-7}).x
        beta = 2 * mu * np.sinh(one.X.T @ nu)
        measured = np.mean((fresh @ (beta - one.truth)) ** 2)
        np.testing.assert_allclose(rows.test_error.sel(alpha=alpha), measured, rtol=0.05)


def test_training_ends_where_theorem_1_says(data_of):
    one, rows = problem(), figure_1.curves(*data_of("W-F1")[:2]).sel(alpha=0.1)
    least = {order: np.linalg.norm(at, order) for order, at in ends_of(one).items()}
    for depth, alike in ((2, True), (3, False)):
        beta = interpolate(one.X, one.y, Q(depth, alpha=0.1)).beta
        expected = [np.linalg.norm(beta, order) - least[order] for order in (1, 2)]
        close = np.allclose([rows.excess_l1, rows.excess_l2], expected, rtol=1e-3)
        assert close == alike
        error = population_error(beta, one.truth)
        assert np.isclose(rows.test_error, error, rtol=1e-3) == alike


def ends_of(one):
    """The predictors of least l1 norm, by a linear program, and of least l2 norm."""
    from scipy.optimize import linprog

    d = one.X.shape[1]
    program = linprog(np.ones(2 * d), A_eq=np.hstack([one.X, -one.X]), b_eq=one.y)
    return {1: program.x[:d] - program.x[d:], 2: np.linalg.pinv(one.X) @ one.y}


def test_least_norms_against_a_linear_program():
    given = {"dimension": 80, "sparsity": 2, "noise": 0.1}
    found = recovery.least_norms(30, 0, drawn=30, **given)
    one = problem()
    for order, beta in ends_of(one).items():
        assert found[f"l{order}_error"] == pytest.approx(population_error(beta, one.truth), 1e-6)
        assert found[f"l{order}_norm"] == pytest.approx(np.linalg.norm(beta, order), 1e-8)
    assert found["l2_error"] > 2 * found["l1_error"]


@pytest.mark.parametrize("depth", [2, 3])
def test_largest_scale_sits_where_the_error_crosses_the_level(depth):
    one = problem(40, seed=1)
    level, falling = 0.025, np.log(10) * np.linspace(1, -12, 53)

    def largest(n, grid):
        return recovery_scale(one.X[:n], one.y[:n], one.truth, depth, grid, error=level)

    def error(log_mu):
        beta = interpolate(one.X, one.y, Q(depth, log_alpha=log_mu / depth)).beta
        return population_error(beta, one.truth)

    found = largest(40, falling)
    np.testing.assert_allclose(error(found), level, rtol=0.03)
    assert error(found + 1.5) > 1.1 * level  # the control: a larger start misses the level
    assert largest(40, falling[::2]) == pytest.approx(found, abs=0.1)
    assert largest(5, falling) == -np.inf  # five samples are not enough for any start
    assert largest(40, falling[-5:]) == falling[-5]  # the whole grid passes


@pytest.mark.parametrize("depth", [2, 10])
def test_a_path_is_followed_point_by_point_to_the_certified_minimisers(monkeypatch, depth):
    """And no further than to the first scale that recovers."""
    own = importlib.import_module("penchant.solvers.scales")
    one, scales = problem(40, seed=2), np.log(10) * np.linspace(1, -12, 27)
    path = interpolate_path(one.X, one.y, depth, log_alphas=scales / depth)
    points = list(own._followed(one.X, one.y, depth, scales))
    np.testing.assert_allclose([point.beta for point in points], path.beta, atol=1e-9)
    errors, asked = np.sum((path.beta - one.truth) ** 2, axis=1), []
    counted = lambda *given: (asked.append(1) or point for point in points)  # noqa: E731
    monkeypatch.setattr(own, "_followed", counted)
    found = recovery_scale(one.X, one.y, one.truth, depth, scales, error=0.025)
    first = int(np.argmax(errors <= 0.025))
    assert len(asked) == first + 1 < len(scales)
    assert scales[first] <= found < scales[first - 1]


def test_what_l2_misses_is_the_part_of_the_truth_outside_of_the_samples(data_of):
    """The limit of Figure 1 (a), against drawn rows: undercut about once in a thousand."""
    ends = data_of("W-F1")[1]
    given = json.loads(ends.attrs["description"])["arguments"]
    N, d = given["sample_size"], given["dimension"]
    rng, truth = np.random.default_rng(0), np.eye(d)[0]
    missed = np.sort([least_miss(rng.normal(size=(N, d)), truth) for _ in range(2000)])
    assert np.mean(missed) == pytest.approx(1 - N / d, abs=0.01)
    assert missed[0] < figure_1.missed_by_l2(ends) < missed[20]


def least_miss(X, truth):
    """What a projection onto the rows leaves of the truth, squared."""
    basis = np.linalg.qr(X.T)[0]
    return 1 - np.sum((truth @ basis) ** 2)


def test_no_more_samples_are_tried_once_the_error_is_small():
    """The number of samples is the same as if all were tried."""
    given = {"dimension": 60, "sparsity": 2, "seed": 4}
    cell = sample_size.cell(**given, constants=sample_size.CONSTANTS)
    sizes, error = np.array(cell["samples"]), cell["l1_error"]
    whole = []
    for size in sizes:
        X, y, truth = recovery.planted(size, max(sizes), 60, 2, 0.1, 4)
        whole.append(population_error(interpolate(X, y, L1()).beta, truth))
    known = np.isfinite(error)
    np.testing.assert_allclose(error[known], np.array(whole)[known], rtol=1e-9)
    first = int(np.argmax(np.array(whole) <= recovery.LEVEL))
    assert known[: first + 1].all()
    assert known[sample_size.CONSTANTS.index(sample_size.ENOUGH)]
    assert known.sum() < len(sizes)
    rows = [
        xarray.Dataset({"error": ("constant", e), "samples": ("constant", sizes)})
        for e in (error, whole)
    ]
    one, other = (float(sample_size.needed_samples(row, "error")) for row in rows)
    assert one == pytest.approx(other, rel=1e-9)


def test_samples_are_nested():
    given = {"dimension": 80, "sparsity": 2, "noise": 0.1, "seed": 3}
    few, many = (recovery.planted(n, 40, **given) for n in (20, 40))
    np.testing.assert_array_equal(few[0], many[0][:20])
    np.testing.assert_array_equal(few[1], many[1][:20])


def test_medians_count_a_hopeless_seed_as_zero():
    log_mu = np.array([[-np.inf, -np.inf, -1.0], [-np.inf, -3.0, -1.0], [-2.0, -3.0, -1.0]])
    scales = xarray.Dataset({"log_mu": (("sample_size", "seed"), log_mu)})
    np.testing.assert_array_equal(recovery.medians(scales), [np.nan, -3.0, -2.0])
    errors = xarray.DataArray(
        [[0.1, 0.1, 0.01], [0.1, 0.01, 0.01], [0.1, 0.1, 0.01], [0.1, 0.01, 0.01]],
        dims=("sample_size", "seed"),
        coords={"sample_size": [10, 20, 30, 40]},
    )
    assert recovery.needed(errors) == 20  # with 10 samples two of three seeds miss the level
    assert np.isnan(recovery.needed(errors, level=0.001))
    assert recovery.needed(errors, level=1.0) == 10


# ---- Figure 3 ----


def test_q_of_every_depth_starts_with_curvature_one_and_ends_with_a_slope():
    step = 1e-3
    for depth in (2, 3, 4, 10):
        left, middle, right = unit_curvature(depth, np.array([-step, 0.0, step]))
        np.testing.assert_allclose((left - 2 * middle + right) / step**2, 1.0, rtol=1e-4)
    far = np.array([1e8, 2e8])
    for depth in (3, 4, 10):
        slope = np.diff(unit_curvature(depth, far))[0] / 1e8
        np.testing.assert_allclose(slope, 2 * depth / (depth - 2), rtol=5e-3)
    assert np.diff(unit_curvature(2, far))[0] / 1e8 > 30  # depth 2 has no last slope


def test_ratio_reaches_both_limits_and_rises_between(data_of):
    rows = data_of("W-F3")[0]
    assert (rows.transition.diff("scale") <= 1e-12).all()  # alpha falls along the grid
    np.testing.assert_allclose(ratio(2, 1e-300, 100), 0.1, rtol=3e-3)
    assert ratio(2, 1e-6, 100) > 0.105  # at depth 2 this alpha is not enough


def test_recovery_is_easier_with_more_samples_and_more_depth(data_of):
    rows = recovery.medians(data_of("W-F3")[1])
    assert (rows.sel(sample_size=70) > rows.sel(sample_size=44).fillna(-np.inf)).all()
    assert (rows.sel(sample_size=[60, 70]).diff("depth") > 0).all()


def test_shares_count_what_l1_recovers_and_windows_lie_above_it():
    """Three problems at four sample sizes; the last is never recovered by l1."""
    errors = np.array([[0.1, 0.01, 0.1], [0.02, 0.02, 0.1], [0.01, 0.01, 0.1], [0.01, 0.01, 0.1]])
    sizes = {"sample_size": [30, 36, 45, 70]}
    least = xarray.Dataset({"l1_error": (("sample_size", "seed"), errors)}, sizes)
    some = xarray.DataArray(
        np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]]) > 0, sizes, ("sample_size", "seed")
    )
    np.testing.assert_allclose(recovery.reached(some, least), [2 / 3, 3 / 4])
    near, far = recovery.windows(least)
    assert (near.tolist(), far.tolist()) == ([36, 45], [70])


# ---- wrong curves ----

WRONG = [
    ("W-F1", 0, "test_error", lambda x: x[::-1]),
    ("W-F1", 0, "test_error", lambda x: 0.02 + 1e-3 * x),
    ("W-F1", 0, "norm_l1", lambda x: 0 * x + x[0]),
    ("W-F1", 0, "norm_l2", lambda x: x + 0.01),
    ("W-F1", 2, "log_mu", lambda x: np.full_like(x, -3.0)),  # no edge
    ("W-F1", 2, "log_mu", lambda x: np.where(x < -8, -np.inf, x)),  # a later one
    ("W-F1", 2, "log_mu", lambda x: np.where(np.isfinite(x), -30.0, x)),  # more samples, no gain
    ("W-F1", 3, "l1_error", lambda x: x[::-1]),  # from few samples, not from many
    ("W-F2", 0, "ratio", lambda x: x[[0, 0, 2]] / [[1], [2], [1]]),  # r a half of q
    ("W-F2", 0, "ratio", lambda x: x[[1, 1, 2]]),
    ("W-F2", 0, "ratio", lambda x: x[[0, 0, 2]]),
    ("W-F3", 0, "q", lambda x: x[::-1]),  # deeper, later linear
    ("W-F3", 0, "transition", lambda x: x**1.01),  # not to l1
    ("W-F3", 0, "transition", lambda x: x[[0, 0, 2, 3]]),  # D = 3 like 2
    ("W-F3", 1, "log_mu", lambda x: x[::-1]),
    ("W-F3", 1, "log_mu", lambda x: x[[1, 1]]),  # D = 2 like 10
    ("W-F3", 1, "log_mu", lambda x: x - 10),
    ("W-N", 0, "samples", lambda x: x * np.array([1.0, 4.0])[:, None, None, None]),  # with d
    ("W-N", 0, "samples", lambda x: x * np.array([1.0, 3.0])[None, :, None, None]),  # with r*
    ("W-N", 0, "l2_error", lambda x: x / 100),
    ("W-N", 1, "error", lambda x: x[..., [0, 0, *range(x.shape[-1] - 2)]]),  # depth needs more
]


@pytest.mark.parametrize(("id", "place", "name", "wrong"), WRONG)
def test_other_curves_are_refuted(data_of, id, place, name, wrong):
    data = [dataset.copy(deep=True) for dataset in data_of(id)]
    data[place][name] = (data[place][name].dims, wrong(data[place][name].values))
    assert judge(all_claims()[id].evidence(data))[0] not in HOLDING


# ---- Figures 4 and 9 ----


def test_a_network_with_a_connection_missing_is_refuted(monkeypatch):
    whole = figure_4.network()
    assert (len(whole.units), len(whole.connections)) == (18, 18)
    cut = dataclasses.replace(whole, connections=whole.connections[:-1])
    monkeypatch.setattr(figure_4, "network", lambda: cut)
    found = figure_4.cell(draws=5, seed=4)
    assert not np.allclose(found["picture"], found["model"], rtol=1e-6)


def test_what_a_network_computes_by_hand():
    network = figure_9.unbiased()
    plus, minus, x = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, -2.0]), np.array([1.0, -1, 2])
    inputs = {"$x_1$": x[0], "$x_2$": x[1], "$x_d$": x[2]}
    by_hand = (1 - 0.25) * 1 - (4 - 1) + 2 * (9 - 4)
    assert network.output(inputs, figure_9.values("unbiased", plus, minus)) == by_hand
    assert float(DiagonalNet(2, start=(plus, minus)).predictor(np.r_[plus, minus]) @ x) == by_hand
    swapped = figure_9.values("unbiased", minus, plus)
    assert network.output(inputs, swapped) == -by_hand
    for one in (figure_9.standard(), network, figure_4.network()):
        places = [unit["x"] for unit in one.units]
        assert all(places[c["source"]] < places[c["target"]] for c in one.connections)
