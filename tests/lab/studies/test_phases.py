"""The four phase diagrams: what their studies describe, one number of each by a second route."""

import dataclasses
import math

import numpy as np
import pytest

import penchant
from penchant.lab import read_study
from penchant.lab.studies.cells import cells_of
from penchant.lab.studies.compute import OK, USABLE, compute
from penchant.measures import crossing
from penchant_papers.beyond import scale_accuracy, step_beta
from penchant_papers.woodworth2020.figures import completion

NAMES = ("phase-scale-width", "phase-scale-accuracy", "phase-start-decay", "phase-step-beta")
SPARSE = {"samples": 15, "dimension": 20, "sparsity": 2, "snr": 1e8, "start": 1e-6, "level": 1e-4,
          "budget": 20_000, "points_per_decade": 40}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_describes_a_diagram_that_can_be_drawn(name):
    quick = read_study(name)
    middle = list(cells_of(quick, "any"))[math.prod(quick.shape) // 2]
    assert 100 < math.prod(quick.shape) < 1100  # of cells of 30 to 300 ms: see the slow test
    assert len(quick.axes) == 2
    assert len(quick.title) > 40
    found = compute(middle.spec)
    assert found.status in USABLE, found.sentence  # the steps end before the test error is low
    drawn = quick.draw
    assert {drawn["x"], drawn["y"]} == {axis.name for axis in quick.axes}
    assert drawn["colour"] == next(iter(drawn["contours"]))  # the measured line is the colour's
    assert len(drawn["contours"]) > 1
    for variable in drawn["contours"]:
        assert isinstance(found.values[variable], float), variable
        assert variable in quick.labels


@pytest.mark.parametrize("name", NAMES)
def test_the_paper_form_is_finer_and_draws_the_same(name):
    quick, paper = read_study(name), read_study(name, "paper")
    assert paper.name == f"{name}-paper"
    assert math.prod(paper.shape) > 3 * math.prod(quick.shape)
    assert all(fine >= coarse for fine, coarse in zip(paper.shape, quick.shape, strict=True))
    assert paper.draw == quick.draw
    assert paper.dimensions == quick.dimensions


# --- scale x width ---------------------------------------------------------------------------


def test_a_cell_of_scale_and_width_against_the_flow_in_parameters():
    given = {"dimension": 4, "rank": 1, "samples": 11, "rtol": 1e-8, "loss": 1e-12}
    problem, tries = completion.matrix(2, 4, 1, 11)
    # the wide factors, which the cell replaces by eight columns
    W = 0.4 * np.random.default_rng((2, 12)).standard_normal((8, 12))
    model = penchant.Factorization(factors=(W[:4], W[4:]))
    found = penchant.train(
        model, problem, penchant.ParameterFlow(rtol=1e-9), stop=penchant.stop.Interpolated(1e-12)
    ).predictor

    def nuclear(matrix):
        return np.sqrt(np.linalg.eigvalsh(matrix.T @ matrix).clip(0)).sum()

    least, seen = nuclear(problem.truth), nuclear(np.where(problem.observed, problem.truth, 0))
    excess = (nuclear(found) - least) / (seen - least)
    one = completion.cell(0.4, 12, 2, **given)
    assert one["excess"] == pytest.approx(excess, rel=1e-4)
    assert one["scale"] == pytest.approx(0.4**2 * 12)
    assert one["tries"] == tries
    assert abs(completion.cell(0.4, 13, 2, **given)["excess"] - excess) > 1e-2  # another width


# --- scale x accuracy ------------------------------------------------------------------------


def trained(rows, alpha, accuracy):
    """u^2 - v^2 from u = v = alpha at mean exp loss e^-accuracy, by a general integrator."""
    from scipy.integrate import solve_ivp

    def slope(_, w):
        u, v = np.split(w, 2)
        margins = rows @ (u**2 - v**2)
        share = np.exp(-margins - np.log(np.mean(np.exp(-margins)))) / len(rows)  # -dL/dm over L
        pull = rows.T @ share
        return np.concatenate([2 * u * pull, -2 * v * pull])

    def done(_, w):
        u, v = np.split(w, 2)
        return accuracy + np.log(np.mean(np.exp(-(rows @ (u**2 - v**2)))))

    done.terminal = True
    start = np.full(2 * rows.shape[1], alpha)
    u, v = np.split(solve_ivp(slope, (0, 1e3), start, "LSODA", rtol=1e-10, atol=1e-12,
                              events=done).y[:, -1], 2)  # fmt: skip
    return u**2 - v**2


def hypentropy_margin(rows, mu):
    """argmin of Q_mu at depth 2 under margins >= 1, by a general solver."""
    from scipy.optimize import minimize

    def value(beta):
        z = beta / mu
        return mu * np.sum(2 - np.sqrt(4 + z**2) + z * np.arcsinh(z / 2))

    def slope(beta):
        return np.arcsinh(beta / mu / 2)

    fits = {"type": "ineq", "fun": lambda b: rows @ b - 1, "jac": lambda b: rows}
    start = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    options = {"ftol": 1e-14, "maxiter": 500}
    return minimize(value, start, jac=slope, constraints=fits, options=options).x


def test_a_cell_of_scale_and_accuracy_against_general_solvers():
    rows = penchant.problems.three_points("3b").signed_rows
    least = 2 / 3  # by hand: all three rows have at least 1.5 in their first entry
    kernel = np.linalg.lstsq(rows[:2], np.ones(2), rcond=None)[0]  # its two support vectors
    assert (rows @ kernel >= 1 - 1e-12).all()

    def excess(beta):
        scaled = np.abs(beta).sum() / (rows @ beta).min() / least - 1
        return scaled / (np.abs(kernel).sum() / (rows @ kernel).min() / least - 1)

    def cell(alpha, accuracy):
        return scale_accuracy.cell(alpha, accuracy, points="3b", depth=2, rtol=1e-8)

    one, direct = cell(0.7, 30.0), trained(rows, 0.7, 30.0)
    assert one["excess"] == pytest.approx(excess(direct), rel=1e-5)
    limit = hypentropy_margin(rows, 0.7**2 / 30)
    assert one["predicted"] == pytest.approx(excess(limit), rel=1e-5)
    cosine = direct @ limit / np.linalg.norm(direct) / np.linalg.norm(limit)
    assert one["gap"] == pytest.approx(math.degrees(math.acos(cosine)), rel=1e-3)
    assert abs(cell(0.75, 30.0)["excess"] / excess(direct) - 1) > 0.02
    assert abs(cell(0.7, 30.0)["predicted"] / excess(hypentropy_margin(rows, 0.7 / 30)) - 1) > 0.02


# --- start x decay ---------------------------------------------------------------------------


def test_a_cell_of_start_and_decay_against_the_flow_in_parameters():
    base = read_study("phase-start-decay")
    small = {**base.problem, "samples": 30, "dimension": 40}
    grid = {"model.log_alpha": [1.0, 1.5], "method.weight_decay": [1e-2]}
    study = dataclasses.replace(base, problem=small, grid=grid)
    found, other = (compute(cell.spec).values for cell in cells_of(study, "any"))
    problem = penchant.problems.majority(30, 40, seed=11)
    flow = penchant.ParameterFlow(rtol=1e-6, weight_decay=0.01)
    path = penchant.train(
        penchant.DiagonalNet(2, alpha=math.e),
        problem,
        flow,
        stop=penchant.Time(900.0),
        record=penchant.record.LogSpaced(40),
    )
    t = path.dataset.t.values
    # the exact accuracy of the package is counted here, on random corners
    corners = np.random.default_rng(0).choice([-1.0, 1.0], (5_000, 40))
    labels, scores = np.sign(corners[:, :3].sum(axis=1)), path.dataset.predictor.values @ corners.T
    counted = (labels == np.sign(scores)).mean(axis=1)[1:]
    assert found["transition_final"] == pytest.approx(counted[-1], abs=0.01)
    late = np.flatnonzero(counted > (found["transition_plateau"] + counted[-1]) / 2)
    assert found["transition_jump"] == pytest.approx(t[1 + late[0]], rel=0.06)
    assert found["forecast_low"] <= t[1 + late[0]] <= found["forecast_high"]
    assert other["transition_jump"] - found["transition_jump"] == pytest.approx(50, abs=2)
    assert other["transition_jump"] != pytest.approx(t[1 + late[0]], rel=0.2)


# --- step x beta -----------------------------------------------------------------------------


def descended(problem, step, beta, level, steps):
    """The first step with |a - a*|^2 <= level, of subgradient descent written out."""
    a = np.full(problem.dimension, 1e-6)
    for count in range(1, steps + 1):
        a = a - step * (problem.X.T @ (problem.X @ a - problem.y) + beta * np.sign(a))
        if np.sum((a - problem.truth) ** 2) <= level:
            return count
    return math.nan


def lasso(X, y, beta):
    """The minimiser of (1/2)|X a - y|^2 + beta |a|_1, entry by entry."""
    a, squares = np.zeros(X.shape[1]), np.sum(X**2, axis=0)
    for _ in range(600):
        for j in range(len(a)):
            pull = X[:, j] @ (y - X @ a) + squares[j] * a[j]
            a[j] = np.sign(pull) * max(abs(pull) - beta, 0) / squares[j]
    return a


def test_a_cell_of_step_and_beta_against_descent_written_out():
    problem = penchant.problems.sparse_recovery(15, 20, sparsity=2, seed=3, snr=1e8)
    step = 0.4 * 2 / np.linalg.eigvalsh(problem.X @ problem.X.T)[-1]
    one = step_beta.cell(0.4, 1e-3, 3, **SPARSE)
    count = descended(problem, step, 1e-3, SPARSE["level"], 20_000)
    assert one["t2"] == pytest.approx(count, rel=0.03)  # records are 6 % apart
    assert one["predicted"] == pytest.approx(count, rel=0.15)
    rest = np.sum((lasso(problem.X, problem.y, 1e-2) - problem.truth) ** 2)
    assert step_beta.cell(0.4, 1e-2, 3, **SPARSE)["rest"] == pytest.approx(rest, rel=1e-4)
    other = step_beta.cell(0.4, 5e-4, 3, **SPARSE)["t2"]
    assert other == pytest.approx(2 * count, rel=0.1)
    assert other != pytest.approx(count, rel=0.5)


def test_a_step_that_is_too_large_is_a_row_with_its_sentence():
    base = read_study("phase-step-beta")
    study = dataclasses.replace(base, arguments=SPARSE, seeds=[3],
                                grid={"step_size": [0.95, 1.05], "beta": [1e-5]})  # fmt: skip
    stable, large = (compute(cell.spec) for cell in cells_of(study, "any"))
    assert stable.status in OK
    assert large.status == "diverged"
    assert "take a smaller learning rate" in large.sentence


# --- whole diagrams --------------------------------------------------------------------------


def slope(x, y):
    good = np.isfinite(y)
    return np.polyfit(np.log(x[good]), np.log(y[good]), 1)[0]


@pytest.fixture
def whole(tmp_path):
    return lambda name: penchant.run(read_study(name), tmp_path, engine="here")


@pytest.mark.slow
def test_scale_and_width_leave_the_rich_regime_together(whole):
    dataset = whole("phase-scale-width")
    excess = dataset.excess.median("seed").transpose("k", "alpha").values
    alphas = np.exp([crossing(np.log(dataset.alpha.values), row, 0.5) for row in excess])
    k = dataset.k.values
    # theory -1/2; at finite width the excess sets in earlier, the more so the narrower
    assert -0.5 < slope(k, alphas) < -0.38
    assert 0.25 < (alphas**2 * k).min() < (alphas**2 * k).max() < 1.0
    assert alphas.max() / alphas.min() > 5  # what they do not share is alpha itself


@pytest.mark.slow
def test_accuracy_must_grow_with_the_square_of_a_large_scale(whole):
    dataset = whole("phase-scale-accuracy")
    alpha, accuracy = dataset.alpha.values, dataset.accuracy.values
    measured, predicted = (
        np.exp(
            [crossing(np.log(accuracy), 1 - dataset[name].sel(alpha=a).values, 0.5) for a in alpha]
        )
        for name in ("excess", "predicted")
    )
    large = alpha > 3
    assert slope(alpha[large], measured[large]) == pytest.approx(2.0, abs=0.02)
    assert np.abs(measured[large] / predicted[large] - 1).max() < 0.03
    small = alpha < 0.3  # there the theorem, of large alpha, is far off
    assert slope(alpha[small], measured[small]) < 1.2
    assert dataset.gap.values[-1, -1] < 0.01 < 1 < dataset.gap.values[0].max()


@pytest.mark.slow
def test_the_jump_is_at_the_forecast(whole):
    dataset = whole("phase-start-decay").sel(log_alpha=slice(1.0, None))
    jump = dataset.transition_jump * dataset.weight_decay
    assert (dataset.transition_kind == "grok").all()
    for rate in dataset.weight_decay.values:
        line = np.polyfit(dataset.log_alpha.values, jump.sel(weight_decay=rate).values, 1)
        assert line[0] == pytest.approx(1.0, abs=0.01)
    assert float(abs(dataset.transition_jump / dataset.forecast_transition - 1).max()) < 0.05
    assert float((dataset.transition_jump / dataset.forecast_naive - 1).min()) > 0.1


@pytest.mark.slow
def test_t2_is_one_over_step_and_beta(whole):
    dataset = whole("phase-step-beta")
    stable = dataset.step_size.values < 1
    assert (dataset.status.values == "diverged").all(axis=(1, 2)).tolist() == (~stable).tolist()
    low = dataset.isel(step_size=stable).sel(beta=slice(None, 1.1e-4))
    ratio = (low.t2 / low.predicted).values
    assert np.nanmax(np.abs(ratio - 1)) < 0.06
    assert np.isfinite(ratio).sum() > 100
    # beyond this beta the minimiser itself is too far from the truth
    never = dataset.rest.where(dataset.rest > 1e-5).notnull() & (dataset.status == "solved")
    assert not np.isfinite(dataset.t2.values[never.values]).any()
