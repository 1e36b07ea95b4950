"""The figures of source L: grokking and misgrokking, the sweep, and training without decay."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import linprog, nnls

from figure_checks import assert_captioned, assert_data_speak
from tacit import train
from tacit.figures import lyu_f1, lyu_f2, lyu_no_decay, lyu_sweep
from tacit.figures.registry import draw, figures, make
from tacit.figures.style import styled
from tacit.models.diagonal import DiagonalNet
from tacit.problems.grokking import majority
from tacit.solvers.margins.path import max_margin_path
from tacit.training.exact.dual.flow import DualFlow
from tacit.training.stop import LogLoss

LITTLE = {"samples": 30, "dimension": 60, "norm": 20.0, "rate": 1e-2, "rtol": 1e-8}
PARAMETERS = {
    "L-F1": {},
    "L-F2": {},
    "L-no-decay": {"samples": 60, "dimension": 300, "alphas": [0.6, 2.0, 6.0], "points": 40},
    "L-sweep": {"samples": 50, "dimension": 150, "norms": [0.3, 8.0, 64.0, 256.0],
                "rates": [0.0, 1e-3, 1e-2]},
}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    """The two transitions at the quick preset, the others at a small size."""
    return {id: make(id, parameters) for id, parameters in PARAMETERS.items()}


@pytest.fixture(scope="module")
def drawn(made):
    """Every picture, laid out."""
    pictures = {id: draw(id, dataset) for id, dataset in made.items()}
    with styled():
        for picture in pictures.values():
            picture.canvas.draw()
    return pictures


@pytest.fixture(scope="module")
def little():
    """L-F1 at a size that a general integrator can follow."""
    return make("L-F1", LITTLE)


def at(dataset, name, t):
    """A curve at time t, linear in log t between records."""
    return float(np.interp(np.log(t), np.log(dataset.t.values), dataset[name].values))


def descend(Z, norm, rate, times):
    """(u, v) at `times` by integrating theta' = -grad(mean logistic loss) - rate * theta itself."""
    dimension = Z.shape[1]

    def velocity(_, theta):
        u, v = theta[:dimension], theta[dimension:]
        pull = (1 / (1 + np.exp(Z @ (u**2 - v**2)))) @ Z / len(Z)
        return np.concatenate([2 * u * pull, -2 * v * pull]) - rate * theta

    start = np.full(2 * dimension, norm / np.sqrt(2 * dimension))
    found = solve_ivp(velocity, (0, times[-1]), start, method="LSODA", t_eval=times, rtol=1e-9,
                      atol=1e-11)  # fmt: skip
    return found.y.T


# ---- every figure ----


def test_every_figure_is_registered_with_both_presets():
    for id, module in zip(PARAMETERS, (lyu_f1, lyu_f2, lyu_no_decay, lyu_sweep), strict=True):
        presets = figures()[id].presets
        assert presets == module.PRESETS
        assert presets["quick"].keys() == presets["paper"].keys()
        assert presets["quick"]["dimension"] < presets["paper"]["dimension"]


def test_every_dataset_says_what_its_numbers_are(made, tmp_path):
    for id, dataset in made.items():
        assert_data_speak(id, dataset, tmp_path, "seed")


@pytest.mark.parametrize("id", sorted(PARAMETERS))
def test_a_drawing_has_a_title_a_caption_names_and_a_legend(drawn, id):
    picture = drawn[id]
    assert_captioned(id, picture)
    assert all(axes.get_ylabel() for axes in picture.axes)
    assert picture.axes[-1].get_xlabel() or picture.axes[1].get_xlabel()


@pytest.mark.parametrize("id", sorted(PARAMETERS))
def test_no_legend_covers_a_curve(drawn, id):
    seen = 0
    for axes in (axes for axes in drawn[id].axes if axes.get_legend()):
        box, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
        for line in axes.lines:
            points = line.get_transform().transform(line.get_xydata())
            shown = [p for p in points if inside.contains(*p)]
            assert not any(box.contains(*p) for p in shown)
            seen += len(shown)
    assert seen > 6


@pytest.mark.parametrize("id", ["L-F1", "L-F2"])
def test_the_rows_share_their_time_and_every_row_shows_the_foreseen_time(made, drawn, id):
    picture = drawn[id]
    limits = {axes.get_xlim() for axes in picture.axes}
    assert len(limits) == 1
    for axes in picture.axes:
        places = [float(line.get_xdata()[0]) for line in axes.lines if len(line.get_xdata()) == 2]
        assert float(made[id].forecast) in places
        assert float(made[id].theory_norm) in places


# ---- grokking and misgrokking ----


def test_grokking_is_late_and_complete(made):
    run = made["L-F1"]
    for transition in (float(run.jump), float(run.forecast)):
        assert at(run, "test_accuracy", transition / 2) < 0.65
        assert at(run, "test_accuracy", transition * 2) > 0.99
    assert (run.train_accuracy == 1).all()
    assert float(run.test_accuracy[-1]) > 0.9999
    assert at(run, "test_accuracy", float(run.theory_entry)) < 0.6  # the control: alpha's own time


def test_misgrokking_is_a_late_fall(made):
    run = made["L-F2"]
    before = at(run, "test_accuracy", float(run.forecast) / 2)
    assert before > 0.95
    assert before - float(run.test_accuracy[-1]) > 0.15
    assert before - at(run, "test_accuracy", float(run.forecast)) < 0.15  # the control: not before


@pytest.mark.parametrize("id", ["L-F1", "L-F2"])
def test_the_kernel_s_bias_comes_first_and_the_rich_one_last(made, id):
    run = made[id]
    half, last = float(run.forecast) / 2, float(run.t[-1])
    assert at(run, "share_l2", half) > 0.9
    assert at(run, "share_l1", half) < 0.5
    assert at(run, "share_l1", last) > 0.85
    assert at(run, "share_l2", last) < 0.3
    assert float(max(run.share_l1.max(), run.share_l2.max())) <= 1 + 1e-9
    assert at(run, "test_accuracy", half) == pytest.approx(float(run.accuracy_l2), abs=0.02)
    assert float(run.test_accuracy[-1]) == pytest.approx(float(run.accuracy_l1), abs=0.02)
    # L-T1: until then the parameters only shrink
    assert at(run, "parameter_norm", half) == pytest.approx(at(run, "decayed_norm", half), rel=0.02)
    assert at(run, "parameter_norm", last) > 100 * at(run, "decayed_norm", last)
    assert at(run, "turn", half) < 10
    assert at(run, "kernel_distance", half) < 1e-3
    assert at(run, "turn", last) > 75


@pytest.mark.parametrize("id", ["L-F1", "L-F2"])
def test_the_time_is_foreseen_to_a_factor_of_two(made, id):
    run = made[id]
    assert 0.5 < float(run.forecast / run.jump) < 2
    assert float(run.forecast_low) < float(run.forecast) < float(run.forecast_high)
    # what is foreseen is where start and displacement meet, a turn of 45 degrees
    assert at(run, "turn", float(run.forecast_low)) < 45 < at(run, "turn", float(run.forecast_high))
    assert float(run.theory_entry / run.jump) < 0.01  # the control: log of the size of one entry


def test_the_run_against_a_general_integrator(little):
    problem = majority(LITTLE["samples"], LITTLE["dimension"])
    Z, K0 = problem.signed_rows, problem.X @ problem.X.T
    picks = np.searchsorted(little.t.values, [0.1, 10.0, 250.0, 600.0, 1199.0])
    thetas = descend(Z, LITTLE["norm"], LITTLE["rate"], little.t.values[picks])
    start = np.ones(2 * LITTLE["dimension"])
    for pick, theta in zip(picks, thetas, strict=True):
        row, pair = little.isel(time=pick), theta.reshape(2, -1)
        beta = pair[0] ** 2 - pair[1] ** 2
        cosine = theta @ start / np.linalg.norm(theta) / np.linalg.norm(start)
        K = (problem.X * (pair**2).sum(axis=0)) @ problem.X.T
        apart = 1 - np.sum(K * K0) / np.linalg.norm(K) / np.linalg.norm(K0)
        margins = Z @ beta
        assert float(row.parameter_norm) == pytest.approx(np.linalg.norm(theta), rel=1e-5)
        assert float(row.turn) == pytest.approx(np.degrees(np.arccos(cosine)), rel=1e-4)
        assert float(row.kernel_distance) == pytest.approx(apart, rel=1e-3, abs=1e-9)
        assert float(row.train_accuracy) == np.mean(margins > 0)
        assert float(row.test_accuracy) == pytest.approx(
            problem.population.accuracy(beta), abs=1e-5
        )
        l1, l2 = largest_margins(Z)
        assert float(row.share_l1) == pytest.approx(margins.min() / np.abs(beta).sum() / l1, 1e-4)
        assert float(row.share_l2) == pytest.approx(margins.min() / np.linalg.norm(beta) / l2, 1e-4)
    other = descend(Z, LITTLE["norm"], 0.9 * LITTLE["rate"], little.t.values[picks])[-2]
    miss = np.linalg.norm(other) / float(little.parameter_norm[picks[-2]])
    assert abs(miss - 1) > 1e-3  # the control: another decay


def largest_margins(Z):
    """The largest margins at unit l1 and l2 norm: a linear program, and the dual by nnls."""
    ones = np.ones(2 * Z.shape[1])
    least_l1 = linprog(ones, A_ub=-np.hstack([Z, -Z]), b_ub=-np.ones(len(Z))).fun
    root = np.linalg.cholesky(Z @ Z.T)
    weights = nnls(root.T, np.linalg.solve(root, np.ones(len(Z))))[0]
    return 1 / least_l1, 1 / np.linalg.norm(weights @ Z)


# ---- without decay ----


def test_without_decay_the_transition_follows_the_square_of_the_start(made):
    run = made["L-no-decay"]
    ratio = (run.measured_log_t / run.foreseen_log_t).values
    assert (np.diff(np.abs(np.log(ratio))) < 0).all()  # the foreseen time is that of large starts
    assert ratio[-1] == pytest.approx(1, abs=0.02)
    growth = float(run.measured_log_t[-1] / run.measured_log_t[-2])
    alphas = float(run.alpha[-1] / run.alpha[-2])
    assert growth == pytest.approx(alphas**2, rel=0.05)
    assert growth != pytest.approx(alphas, rel=0.5)  # the control: not the start itself
    assert float(run.log_t.max()) > np.log(10) * 10**4


def test_the_foreseen_curve_is_the_limit_of_the_flow_and_not_the_path_of_max_margins(made):
    run = made["L-no-decay"]
    problem = majority(60, 300)
    alpha = 2.0
    row = run.sel(alpha=alpha)
    mus = alpha**2 / row.smoothed_margin.values
    late = mus < 1e-3
    limit = np.interp(-np.log(mus[late]), -np.log(run.mu.values), run.limit_accuracy.values)
    off = np.abs(limit - row.test_accuracy.values[late])
    assert off.max() < 0.01
    path = max_margin_path(problem.X, problem.y, 2, mus=mus[late]).beta
    stays = np.array([problem.population.accuracy(beta) for beta in path])
    assert np.abs(stays - row.test_accuracy.values[late]).max() > 0.03


def test_norm_and_turn_without_decay_are_those_of_the_parameters():
    problem, alpha = majority(10, 30), 0.7
    path = train(DiagonalNet(depth=2, alpha=alpha), problem, DualFlow(), stop=LogLoss(-50.0))
    growth, turn = lyu_no_decay.norm_and_turn(path.predictor[None], alpha)
    start = np.full(60, alpha)
    lengths = np.linalg.norm(path.parameters), np.linalg.norm(start)
    assert growth[0] == pytest.approx(lengths[0] / lengths[1], rel=1e-9)
    cosine = path.parameters @ start / (lengths[0] * lengths[1])
    assert turn[0] == pytest.approx(np.degrees(np.arccos(cosine)), rel=1e-9)
    assert turn[0] > 5


def test_a_crossing_is_found_where_there_is_one():
    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 1.0])
    assert lyu_no_decay.crossing(x, y, 0.75) == pytest.approx(1.5)
    assert np.isnan(lyu_no_decay.crossing(x, y, 1.5))
    assert np.isnan(lyu_no_decay.crossing(x, y, -1.0))


# ---- the sweep ----


def test_the_axis_without_decay_shows_the_logarithm_of_the_time_in_plain_numbers(drawn):
    ticks = [text.get_text() for text in drawn["L-no-decay"].axes[-1].get_xticklabels()]
    assert ticks == ["0", "1", "10", "100", "1 000", "10 000", "100 000"]
    assert "log" in drawn["L-no-decay"].axes[-1].get_xlabel()


def test_numbers_and_colours_of_the_sweep_are_one_quantity(made, drawn):
    grid, bar = drawn["L-sweep"].axes[0], drawn["L-sweep"].axes[-1]
    image, dataset = grid.images[0], made["L-sweep"]
    assert "t_2 - t_1" in bar.get_ylabel()
    grok = dataset.kind.values == 3
    assert grok.sum() > 3
    np.testing.assert_array_equal(np.ma.getmaskarray(image.get_array()), ~grok)
    told = {text.get_position(): text.get_text() for text in grid.texts}
    for i, j in zip(*np.nonzero(grok), strict=True):
        delay = float(dataset.delay[i, j])
        assert image.get_array()[i, j] == delay
        digits, power = f"{delay:.1e}".split("e")
        front = "" if digits == "1.0" else rf"{digits} \times "
        assert told[(j, i)] == rf"${front}10^{{{int(power)}}}$"


def test_larger_starts_and_smaller_decay_wait_longer(made):
    run = made["L-sweep"]
    grok = run.kind.values == lyu_sweep.KINDS.index("grok")
    assert grok.tolist() == [[False] * 4, [False, True, True, True], [False, True, True, True]]
    delay = run.delay.values[1:, 1:]
    assert (np.diff(delay, axis=1) > 0).all()
    assert (delay[0] > 5 * delay[1]).all()


def test_a_small_start_generalizes_with_training_and_no_decay_not_in_time(made):
    run = made["L-sweep"]
    small = run.sel(norm=0.3)
    assert (small.t2 < 1.5 * small.t1).all()
    still = run.sel(rate=0.0, norm=[64.0, 256.0])
    assert np.isinf(still.t2).all()
    assert np.isfinite(still.t1).all()
    assert (still.final < 0.8).all()
    assert float(still.end.min()) >= float(run.end.max()) * 0.99  # it was given as long


def test_generalization_waits_for_the_logarithm_of_the_start_over_the_decay(made):
    run = made["L-sweep"]
    for rate in (1e-3, 1e-2):
        late = rate * run.t2.sel(rate=rate, norm=[64.0, 256.0]).values
        assert np.diff(late)[0] == pytest.approx(np.log(4), rel=0.05)
        assert np.diff(late)[0] != pytest.approx(np.log(4) / 2, rel=0.2)  # the control


def test_a_cell_of_the_sweep_against_a_general_integrator(made):
    problem, cell = majority(50, 150), made["L-sweep"].sel(rate=1e-2, norm=8.0)
    t1, t2 = float(cell.t1), float(cell.t2)
    times = np.array([0.9 * t1, 1.1 * t1, 0.95 * t2, 1.05 * t2])
    thetas = descend(problem.signed_rows, 8.0, 1e-2, times)
    betas = thetas[:, :150] ** 2 - thetas[:, 150:] ** 2
    trust = np.mean(1 / (1 + np.exp(-betas @ problem.signed_rows.T)), axis=1)
    assert trust[0] < 0.95 < trust[1]
    right = [problem.population.accuracy(beta) for beta in betas]
    assert right[2] < 0.95 < right[3]


def test_confidence_is_the_mean_probability_of_the_right_label():
    assert lyu_sweep.confidence(np.array([0.0, np.log(3)])) == pytest.approx(0.625)
    assert lyu_sweep.confidence(np.array([[-2000.0, 2000.0]])) == pytest.approx([0.5])
