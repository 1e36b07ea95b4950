"""The sparse recovery figures of source N, and its rescaled nets, against loops by hand."""

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import minimize, minimize_scalar

from figure_checks import assert_captioned, assert_data_speak
from tacit.figures import (
    notsawo_dominance,
    notsawo_mirage,
    notsawo_rescaling,
    notsawo_runs,
    notsawo_scaling,
)
from tacit.figures.registry import draw, figures, make
from tacit.measures.grokking import grokking
from tacit.problems.recovery import sparse_recovery

MODULES = {
    "N-F-dominance": notsawo_dominance,
    "N-F-scaling": notsawo_scaling,
    "N-F-mirage": notsawo_mirage,
    "N-LU": notsawo_rescaling,
}
PARAMETERS = {
    "N-F-dominance": {},
    "N-F-scaling": {"steps": [0.02, 0.1], "betas": [1e-4, 5e-4, 1e-2]},
    "N-F-mirage": {"linear_points": 60},
    "N-LU": {"points": 61},
}
TINY = {"samples": 6, "dimension": 9, "sparsity": 1, "seed": 1, "snr": 1e8}


@pytest.fixture(scope="module")
def made():
    """Every dataset at a small size."""
    return {id: make(id, parameters) for id, parameters in PARAMETERS.items()}


@pytest.fixture(scope="module")
def drawn(made):
    """Every picture, laid out."""
    pictures = {id: draw(id, dataset) for id, dataset in made.items()}
    for picture in pictures.values():
        picture.canvas.draw()
    return pictures


def descend(problem, step, beta, start, steps, penalty):
    """All iterates of subgradient descent, by a loop."""
    a = np.full(problem.dimension, start)
    points = [a]
    for _ in range(steps):
        H = np.sign(a) if penalty == "l1" else 2 * a
        a = a - step * (problem.X.T @ (problem.X @ a - problem.y) + beta * H)
        points.append(a)
    return np.array(points)


def quick_problem():
    return sparse_recovery(30, 100, sparsity=5, seed=0)


# ---- every figure ----


def test_every_figure_is_registered_with_both_presets():
    for id, module in MODULES.items():
        entry = figures()[id]
        assert entry.presets == module.PRESETS
        assert entry.presets["quick"].keys() == entry.presets["paper"].keys()
        assert entry.presets["quick"] != entry.presets["paper"]
        assert entry.source.startswith("Notsawo et al. 2025")


def test_every_dataset_says_what_its_numbers_are(made, tmp_path):
    for id, dataset in made.items():
        assert_data_speak(id, dataset, tmp_path, "seed")


@pytest.mark.parametrize("id", sorted(MODULES))
def test_a_drawing_has_a_title_a_caption_names_and_a_legend(drawn, id):
    picture = drawn[id]
    assert_captioned(id, picture)
    assert picture.axes[0].get_ylabel()
    assert picture.axes[-1].get_xlabel()


@pytest.mark.parametrize("id", sorted(MODULES))
def test_no_legend_covers_a_curve(drawn, id):
    seen = 0
    for axes in (axes for axes in drawn[id].axes if axes.get_legend()):
        box, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
        for line in axes.lines:
            points = line.get_transform().transform(line.get_xydata())
            shown = [p for p in points if np.isfinite(p).all() and inside.contains(*p)]
            assert not any(box.contains(*p) for p in shown)
            seen += len(shown)
    assert seen > 6


def test_the_summaries_say_the_measured_numbers(made):
    run = made["N-F-dominance"]
    told = run.attrs["summary"]
    for name in ("t1", "t1_foreseen", "t2", "t2_exact", "t2_source"):
        assert notsawo_runs.count(run[name]) in told, name
    never = run.assign(t2=run.t2 * np.nan)
    assert "t2 = never" in notsawo_dominance.summary(never)
    run = made["N-F-scaling"]
    assert f"exponent of t2 - t1 in step beta {float(run.slope_t2):.3f}" in run.attrs["summary"]
    assert f"foreseen {float(run.tau):.3g} by the slow phase" in run.attrs["summary"]
    assert "never measured" in notsawo_scaling.summary(run.assign(t2=run.t2 * np.nan))
    lines = made["N-F-mirage"].attrs["summary"].splitlines()
    assert [line[:6] for line in lines] == ["l2: mi", "l1: gr"]


@pytest.mark.parametrize("id", sorted(MODULES))
def test_progress_reaches_the_whole(id):
    calls = []
    small = {
        "N-F-dominance": {**TINY, "steps": 50},
        "N-F-scaling": {**TINY, "steps": [0.1], "betas": [1e-2, 1e-1], "settle": 5.0, "last": 5},
        "N-F-mirage": {**TINY, "steps": 100},
        "N-LU": {"points": 3},
    }
    make(id, small[id], progress=lambda *call: calls.append(call))
    total = {"N-F-scaling": 2, "N-F-mirage": 2}.get(id, 1)
    assert calls == [(k, total) for k in range(1, total + 1)]


# ---- times ----


def test_a_crossing_is_found_where_there_is_one():
    steps, values = np.array([0.0, 2.0, 4.0]), np.array([1.0, 1e-2, 1e-4])
    assert notsawo_runs.crossing(steps, values, 1e-3) == pytest.approx(3.0)
    assert notsawo_runs.crossing(steps, values, 2.0) == 0.0
    assert np.isnan(notsawo_runs.crossing(steps, values, 1e-5))


def test_recorded_steps_are_whole_increasing_and_reach_the_end():
    steps = notsawo_runs.log_steps(2000, 10)
    assert steps[0] == 1
    assert steps[-1] == 2000
    assert (steps == np.round(steps)).all()
    assert (np.diff(steps) > 0).all()


# ---- dominance ----


def test_the_run_of_dominance_against_a_loop_by_hand():
    level = 1e-4
    found = make("N-F-dominance", {**TINY, "beta": 1e-3, "steps": 3000, "level": level})
    problem = sparse_recovery(**TINY)
    points = descend(problem, 0.1, 1e-3, 1e-6, 3000, "l1")
    picks = found.step.values
    residuals = points @ problem.X.T - problem.y
    loss, gaps = 0.5 * np.sum(residuals**2, axis=1), points - problem.truth
    G, H = np.linalg.norm(residuals @ problem.X, axis=1), np.sqrt(np.sum(points != 0, axis=1))
    errors = np.sum(gaps**2, axis=1)
    expected = {
        "loss": loss, "test_error": errors, "gradient_norm": G, "penalty_gradient_norm": 1e-3 * H,
        "norm_l1": np.abs(points).sum(axis=1), "norm_l2": np.linalg.norm(points, axis=1),
    }  # fmt: skip
    for name, values in expected.items():
        assert found[name].values == pytest.approx(values[picks], rel=1e-6, abs=1e-12), name
    t1, t2 = (int(np.argmax(curve <= level)) for curve in (loss, errors))
    assert float(found.t1) == pytest.approx(t1, abs=1)
    assert float(found.t2) == pytest.approx(t2, rel=0.02)
    assert float(found.takeover) == picks[np.argmax(1e-3 * H[picks] >= G[picks])]
    other = descend(problem, 0.1, 1.1e-3, 1e-6, 3000, "l1")  # the control: another beta
    assert np.sum((other[t2] - problem.truth) ** 2) < 0.9 * errors[t2]


def test_the_loss_rules_first_and_the_penalty_after(made):
    run = made["N-F-dominance"]
    t1, takeover, t2 = (float(run[name]) for name in ("t1", "takeover", "t2"))
    assert t1 < takeover < 1e-2 * t2
    steps, ratio = run.step.values, (run.gradient_norm / run.penalty_gradient_norm).values
    assert (ratio[steps < takeover] > 1).all()
    assert (ratio[(steps > takeover) & (steps < t2)] < 1).all()
    assert (ratio[steps > takeover] > 0.3).all()


def test_after_the_takeover_the_loss_balances_what_the_data_see_of_the_penalty():
    problem = quick_problem()
    points = descend(problem, 0.1, 1e-4, 1e-6, 5400, "l1")[5000:]
    G, H = (points @ problem.X.T - problem.y) @ problem.X, 1e-4 * np.sign(points)
    left = G + H @ (np.linalg.pinv(problem.X) @ problem.X)
    scale = np.linalg.norm(G.mean(axis=0))
    assert np.linalg.norm(left.mean(axis=0)) < 0.01 * scale
    assert np.linalg.norm(left, axis=1).min() > 0.1 * scale  # the control: not at single steps
    assert np.linalg.norm((G + H).mean(axis=0)) > 0.05 * scale  # nor all of beta H


def test_the_l1_norm_falls_to_the_truth_while_the_l2_norm_rises(made):
    run = made["N-F-dominance"]
    steps = run.step.values
    slow = (steps > float(run.takeover)) & (steps < float(run.t2))
    assert (np.diff(run.norm_l1.values[slow]) < 0).all()
    assert (np.diff(run.norm_l2.values[slow]) > 0).all()
    assert float(run.norm_l1[-1] / run.truth_norm) == pytest.approx(1, abs=0.01)
    assert float(run.norm_l1.values[slow][0] / run.truth_norm) > 1.5  # the control: not before


def test_t2_is_foreseen_by_the_slow_phase_and_only_in_order_by_the_source(made):
    run = made["N-F-dominance"]
    assert float(run.t1_foreseen) == pytest.approx(float(run.t1), abs=1)
    assert float(run.t2_exact / run.t2) == pytest.approx(1, abs=0.03)
    assert 0.1 < float(run.t2_source / run.t2) < 0.7
    problem = quick_problem()
    gap = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0] - problem.truth
    by_hand = float(run.t1_foreseen) + np.abs(gap).max() / (0.1 * 1e-4)
    assert float(run.t2_source) == pytest.approx(by_hand, rel=1e-9)


def test_the_picture_marks_the_times(made, drawn):
    run = made["N-F-dominance"]
    for axes in drawn["N-F-dominance"].axes:
        places = [float(line.get_xdata()[0]) for line in axes.lines if len(line.get_xdata()) == 2]
        for name in ("t1", "t1_foreseen", "t2", "t2_exact", "t2_source"):
            assert float(run[name]) in places, name


# ---- scaling ----


def test_a_cell_of_the_sweep_against_a_loop_by_hand():
    own = {**TINY, "steps": [0.1], "betas": [1e-3], "settle": 50.0, "last": 20}
    found = make("N-F-scaling", own).isel(alpha=0, beta=0)
    problem = sparse_recovery(**TINY)
    slow = notsawo_runs.SparseRecovery(problem).slow(1e-6)
    end = int(np.ceil(1.5 * slow.time / 1e-4 + 500))
    points = descend(problem, 0.1, 1e-3, 1e-6, end, "l1")
    errors = np.sum((points - problem.truth) ** 2, axis=1)
    assert float(found.t2) == pytest.approx(int(np.argmax(errors <= 1e-4)), rel=0.02)
    left = np.abs(points - problem.truth).sum(axis=1)
    assert float(found.error) == pytest.approx(left[-20:].mean(), rel=1e-6)
    assert left[-20:].mean() < 0.1 * left[len(left) // 10]  # the control: not at rest before


def test_the_exponents_are_those_of_known_laws():
    pace = np.outer([0.01, 0.1], [1e-4, 1e-3, 1e-2])
    found = {"t1": np.full((2, 3), 5.0), "t2": 5 + 3 / pace, "error": pace**0.5 * 7}
    every = 0.0, np.inf
    fits = notsawo_scaling.fits(found, pace, every)
    assert fits == pytest.approx({"slope_t2": -1, "slope_beta": 0.5, "slope_step": 0.5})
    found["t2"][1] = np.nan  # what is not reached is left out
    assert notsawo_scaling.fits(found, pace, every)["slope_t2"] == pytest.approx(-1)
    found["t2"][:] = np.nan
    assert np.isnan(notsawo_scaling.fits(found, pace, every)["slope_t2"])
    noisy = {**found, "error": np.maximum(found["error"], 0.05)}
    assert notsawo_scaling.fits(noisy, pace, (0.06, 1.0))["slope_beta"] == pytest.approx(0.5)
    assert notsawo_scaling.fits(noisy, pace, every)["slope_beta"] < 0.45  # the control
    assert np.isnan(notsawo_scaling.fits(noisy, pace, (10.0, 20.0))["slope_beta"])


def test_the_time_goes_like_one_over_step_beta(made):
    run = made["N-F-scaling"]
    reached = run.t2.values[:, :2]
    assert np.isfinite(reached).all()
    assert np.isnan(run.t2.values[:, 2]).all()  # the control: too strong a penalty
    scaled = (run.t2 - run.t1).values[:, :2] * run.pace.values[:, :2]
    assert scaled == pytest.approx(float(run.tau), rel=0.05)
    assert (scaled > 1.5 * float(run.distance)).all()  # the source gives an order, no constant
    assert float(run.slope_t2) == pytest.approx(-1, abs=0.02)


def test_the_error_left_goes_with_beta_and_hardly_with_the_step(made):
    run = made["N-F-scaling"]
    assert float(run.slope_beta) == pytest.approx(1, abs=0.1)
    assert float(run.slope_step) < 0.5  # 1 if it were proportional to step beta
    # the same step * beta = 1e-5 by beta = 5e-4 and by beta = 1e-4
    one, other = float(run.error[0, 1]), float(run.error[1, 0])
    assert run.pace.values[0, 1] == pytest.approx(run.pace.values[1, 0])
    assert one > 2 * other
    assert (run.error.values >= run.penalized_error.values).all()
    assert float(run.error[0, 2] / run.penalized_error[2]) == pytest.approx(1, abs=0.25)


def test_the_lasso_point_against_a_general_solver():
    problem, beta = sparse_recovery(**TINY), 0.02
    d, X, y = problem.dimension, problem.X, problem.y

    def objective(z):
        r = X @ (z[:d] - z[d:]) - y
        pull = X.T @ r
        return 0.5 * r @ r + beta * z.sum(), np.concatenate([pull, -pull]) + beta

    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000}
    z = minimize(objective, np.full(2 * d, 0.1), jac=True, bounds=[(0, None)] * (2 * d),
                 method="L-BFGS-B", options=options).x  # fmt: skip
    case = notsawo_runs.SparseRecovery(problem)
    start = case.slow(0.0).end
    found = notsawo_scaling.penalized(case, beta, start)
    assert found == pytest.approx(z[:d] - z[d:], abs=1e-6)
    other = notsawo_scaling.penalized(case, 2 * beta, start)
    assert np.abs(other - found).max() > 1e-3  # the control


@pytest.mark.parametrize("beta", [1e-6, 1e-4, 1e-1])
def test_the_lasso_point_is_optimal_at_every_strength(beta):
    problem = quick_problem()
    case = notsawo_runs.SparseRecovery(problem)
    start = case.slow(1e-6).end
    assert case.least() == pytest.approx(start, abs=1e-9)
    a = notsawo_scaling.penalized(case, beta, start)
    pull = problem.X.T @ (problem.X @ a - problem.y) / beta
    assert np.abs(pull).max() < 1 + 1e-4
    assert -pull[a != 0] == pytest.approx(np.sign(a[a != 0]), abs=1e-4)
    early = notsawo_scaling.penalized(case, beta, np.zeros(100), steps=3)  # the control
    pull = problem.X.T @ (problem.X @ early - problem.y) / beta
    assert np.abs(pull).max() > 1.01


# ---- the mirage ----


def test_both_runs_against_a_loop_by_hand():
    own = {**TINY, "start": 1.0, "beta": 1e-2, "steps": 1500}
    found, problem = make("N-F-mirage", own), sparse_recovery(**TINY)
    picks = found.step.values.astype(int)
    assert picks[0] == 0
    for penalty in ("l2", "l1"):
        points = descend(problem, 0.1, 1e-2, 1.0, 1500, penalty)[picks]
        run = found.sel(penalty=penalty)
        residuals = points @ problem.X.T - problem.y
        errors = np.sum((points - problem.truth) ** 2, axis=1)
        assert run.loss.values == pytest.approx(0.5 * np.sum(residuals**2, axis=1), rel=1e-6)
        assert run.test_error.values == pytest.approx(errors, rel=1e-6)
        assert run.norm_l2.values == pytest.approx(np.linalg.norm(points, axis=1), rel=1e-6)
    apart = found.test_error.sel(penalty="l2") / found.test_error.sel(penalty="l1")
    assert abs(float(apart[-1]) - 1) > 0.1  # the control: the penalties differ


def test_l2_ends_on_the_floor_and_l1_far_below(made):
    run, problem = made["N-F-mirage"], quick_problem()
    unseen = null_space(problem.X).T @ problem.truth
    assert float(run.floor) == pytest.approx(unseen @ unseen, rel=1e-9)
    ends = run.test_error.isel(record=-1)
    assert float(ends.sel(penalty="l2") / run.floor) == pytest.approx(1, abs=0.01)
    assert float(ends.sel(penalty="l1") / run.floor) < 1e-3
    # both fall late by more than three decades and from the same plateau
    plateau = run.plateau.values
    assert plateau[0] == pytest.approx(plateau[1], rel=0.01)
    assert (plateau > 1e3 * ends.values).all()


def test_the_verdicts_are_mirage_and_grok(made):
    run = made["N-F-mirage"]
    assert (run.attrs["kind_l2"], run.attrs["kind_l1"]) == ("mirage", "grok")
    assert "floor" in run.attrs["reason_l2"]
    assert np.isinf(run.t2.sel(penalty="l2"))
    assert float(run.t2.sel(penalty="l1")) > 1e3 * float(run.t1.sel(penalty="l1"))


def test_without_floor_a_loose_level_takes_the_mirage_for_grokking(made):
    run, level = made["N-F-mirage"], 0.05
    for penalty, told in (("l2", "mirage"), ("l1", "grok")):
        one = run.sel(penalty=penalty)
        curves = {name: one[name].values for name in ("loss", "test_error", "norm_l2")}
        floor = float(run.floor)
        blind = grokking(one.step, curves["loss"], curves["test_error"], level, error=True)
        assert blind.kind == "grok"
        assert notsawo_mirage.judged(one.step, curves, floor, level).kind == told


def test_the_ends_of_both_falls_are_foreseen_and_marked(made, drawn):
    run, problem = made["N-F-mirage"], quick_problem()
    kernel = null_space(problem.X)
    ratio = np.linalg.norm(kernel.T @ problem.truth) / np.linalg.norm(kernel.sum(axis=0))
    l2, l1 = (float(run.foreseen.sel(penalty=name)) for name in ("l2", "l1"))
    assert (1 - 2e-5) ** l2 == pytest.approx(ratio, rel=1e-6)
    # there the error has fallen from thousands of floors to at most (1 + 1)^2 of them
    there = np.interp(l2, run.step, run.test_error.sel(penalty="l2") / run.floor)
    assert 1 < there < 4
    assert np.interp(l2 / 2, run.step, run.test_error.sel(penalty="l2") / run.floor) > 20
    assert l1 / float(run.t2.sel(penalty="l1")) == pytest.approx(1, abs=0.01)
    for column, name in enumerate(("l2", "l1")):
        for axes in drawn["N-F-mirage"].axes[column::2]:
            ends = {line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2}
            times = [float(run[t].sel(penalty=name)) for t in ("t1", "t2", "foreseen")]
            assert ends >= {t for t in times if np.isfinite(t)}


def test_the_verdicts_stand_over_the_panels(made, drawn):
    top = drawn["N-F-mirage"].axes[:2]
    assert "mirage" in top[0].get_title(loc="left")
    assert "not reached" in top[0].get_title(loc="left")
    assert "grok" in top[1].get_title(loc="left")
    scales = [(axes.get_xscale(), axes.get_yscale()) for axes in drawn["N-F-mirage"].axes[::2]]
    assert scales == [("log", "linear"), ("log", "log"), ("linear", "log")]


# ---- rescaling ----


def test_a_rescaled_net_is_the_same_function_and_the_wrong_power_is_not(made):
    run = made["N-LU"]
    assert float(run.change.max()) < 1e-12
    away = np.abs(np.log(run.scale.values)) > 0.1
    assert float(run.wrong_change.values[:, away].min()) > 0.02


def test_the_source_s_minimum_is_where_the_measured_norm_is_least(made):
    run, rng = made["N-LU"], np.random.default_rng(3)
    assert (run.squared_norm.min("scale") >= run.least * (1 - 1e-12)).all()
    assert float((run.squared_norm / run.least).max()) > 1e3
    A, B = rng.normal(size=(5, 3)), 4 * rng.normal(size=(2, 5))
    for L in (0.5, 1.0, 2.0, 3.0):
        scale, least = notsawo_rescaling.minimum(np.sum(A**2), np.sum(B**2), L)
        found = minimize_scalar(
            lambda s, L=L: np.log(notsawo_rescaling.norm(A, B, L, np.exp(s))),
            bracket=(-3, 3),
            options={"xtol": 1e-12},
        )
        assert scale == pytest.approx(np.exp(found.x), rel=1e-6)
        assert least == pytest.approx(np.exp(found.fun), rel=1e-9)
    swapped = notsawo_rescaling.minimum(np.sum(B**2), np.sum(A**2), 2.0)[1]  # the control
    assert swapped != pytest.approx(notsawo_rescaling.minimum(np.sum(A**2), np.sum(B**2), 2.0)[1])


def test_the_outputs_against_a_loop_over_units():
    A, B, x = np.array([[1.0, -1.0], [2.0, 0.5]]), np.array([[3.0, -1.0]]), np.array([[2.0, 1.0]])
    # A x = (1, 4.5): 3 * 1 - 4.5^2
    assert notsawo_rescaling.outputs(A, B, x, 2.0) == pytest.approx(np.array([[-17.25]]))
    assert notsawo_rescaling.outputs(A, B, -x, 2.0) == pytest.approx(np.array([[0.0]]))
