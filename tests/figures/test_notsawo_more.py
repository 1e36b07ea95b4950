"""The nuclear, data selection and depth figures of source N, against loops by hand and solvers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from figure_checks import assert_captioned, assert_data_speak
from tacit.claims.notsawo.nuclear_runs import corner
from tacit.figures import notsawo_depth, notsawo_dominance, notsawo_scaling, notsawo_selection
from tacit.figures.notsawo_low_rank import LowRankRecovery
from tacit.figures.registry import draw, figures, make
from tacit.problems.coherence import coherent_completion
from tacit.problems.matrices import low_rank_completion
from tacit.problems.recovery import sparse_recovery
from tacit.solvers.nuclear_slow_flow import nuclear_slow_flow

PRESETS = {
    "N-F-dominance-nuclear": notsawo_dominance.NUCLEAR,
    "N-F-scaling-nuclear": notsawo_scaling.NUCLEAR,
    "N-F-data": notsawo_selection.PRESETS,
    "N-F-depth": notsawo_depth.PRESETS,
}
MATRIX = {"dimension": 5, "rank": 1, "samples": 17, "seed": 3, "level": 1e-2}
SMALL = {
    "N-F-dominance-nuclear": {**MATRIX, "step": 0.5, "beta": 1e-2, "steps": 3000},
    "N-F-scaling-nuclear": {**MATRIX, "steps": [0.1, 1.0], "betas": [3e-3, 3e-2]},
    "N-F-data": {"dimension": 6, "rank": 1, "samples": [10, 16], "shares": [0.0, 0.5, 1.0],
                 "seeds": 3, "timed_samples": 16, "shown_samples": 16, "shown_seed": 0,
                 "shown_shares": [0.0, 0.5, 1.0], "steps": 4000},
    "N-F-depth": {"dimension": 20, "sparsity": 2, "samples": [6, 12, 20], "depths": [1, 2, 3],
                  "seeds": 2, "descended": [8, 12], "shown": 12, "steps": 20_000},
}  # fmt: skip
PARTS = {"N-F-dominance-nuclear": 1, "N-F-scaling-nuclear": 4, "N-F-data": 19, "N-F-depth": 6}


@pytest.fixture(scope="module")
def progress():
    return {id: [] for id in SMALL}


@pytest.fixture(scope="module")
def made(progress):
    """Every dataset at a small size."""
    return {id: make(id, own, lambda *call, id=id: progress[id].append(call))
            for id, own in SMALL.items()}  # fmt: skip


@pytest.fixture(scope="module")
def drawn(made):
    """Every picture, laid out."""
    pictures = {id: draw(id, dataset) for id, dataset in made.items()}
    for picture in pictures.values():
        picture.canvas.draw()
    return pictures


def descend(seen, truth, step, beta, start, steps):
    """All iterates of subgradient descent on the seen entries plus the nuclear norm, by a loop."""
    A = np.full(truth.shape, start)
    points = [A]
    for _ in range(steps):
        u, s, v = np.linalg.svd(A)
        H = (u * (s > 1e-13 * s[0])) @ v
        A = A - step * (np.where(seen, A - truth, 0) + beta * H)
        points.append(A)
    return np.array(points)


def lines(axes):
    return {line.get_label(): line for line in axes.lines}


# ---- every figure ----


@pytest.mark.parametrize("id", sorted(SMALL))
def test_registered_with_both_presets_data_that_speak_and_a_caption(made, drawn, id, tmp_path):
    entry = figures()[id]
    assert entry.presets == PRESETS[id]
    assert entry.presets["quick"].keys() == entry.presets["paper"].keys()
    assert entry.presets["quick"] != entry.presets["paper"]
    assert entry.source.startswith("Notsawo et al. 2025")
    assert_data_speak(id, made[id], tmp_path, "seed")
    assert_captioned(id, drawn[id])
    panels = [axes for axes in drawn[id].axes if axes.get_label() != "<colorbar>"]
    assert all(axes.get_ylabel() for axes in panels)
    assert panels[-1].get_xlabel()


@pytest.mark.parametrize("id", sorted(SMALL))
def test_progress_reaches_the_whole(made, progress, id):
    assert progress[id] == [(k, PARTS[id]) for k in range(1, PARTS[id] + 1)]


# ---- the slow phase of the nuclear norm ----


@pytest.mark.parametrize(("a", "b", "c"), [(2.0, 1.0, 1.0), (3.0, 1.5, 0.5)])
def test_the_slow_phase_of_a_corner_takes_the_time_known_in_closed_form(a, b, c):
    X = np.eye(4)[:3]
    start, end = np.array([[a, b], [c, 0.0]]), np.array([a, b, c, b * c / a])
    slow = nuclear_slow_flow(X, start, 1e-4)
    assert slow.end == pytest.approx(end, abs=1e-3)
    for error in (0.05, 0.2):
        exact = corner(a, b, c, b * c / a - error)
        assert slow.reaches(end, error) == pytest.approx(exact, abs=2e-4)
    assert slow.reaches(end + 0.1, 0.05) == np.inf  # the control: the path ends elsewhere


def test_the_slow_phase_ends_in_the_fit_of_least_nuclear_norm():
    ends = []
    for seed in (0, 2):  # one where that is the truth, and one where it is not
        case = LowRankRecovery(
            low_rank_completion(samples=16 + 4 * seed, dimension=6, rank=1, seed=seed)
        )
        slow = case.slow(1e-6)
        assert case.X @ slow.end == pytest.approx(case.problem.y, abs=1e-9)
        begin, end, least = case.sizes(np.array([slow.points[0], slow.end, case.least()]))
        assert least == pytest.approx(end, rel=5e-3)
        assert begin > 1.05 * end
        ends.append(np.linalg.norm(slow.end - case.truth))
    assert ends[0] > 0.5 > 0.02 > ends[1]


# ---- dominance and scaling with the nuclear norm ----


def test_the_run_of_nuclear_dominance_against_a_loop_by_hand(made):
    found, problem = (
        made["N-F-dominance-nuclear"],
        low_rank_completion(samples=17, dimension=5, rank=1, seed=3),
    )
    points = descend(problem.observed, problem.truth, 0.5, 1e-2, 1e-6, 3000)
    residuals = np.where(problem.observed, points - problem.truth, 0)
    loss = 0.5 * np.sum(residuals**2, axis=(1, 2))
    errors = np.sum((points - problem.truth) ** 2, axis=(1, 2))
    spectra, picks = np.linalg.svd(points, compute_uv=False), found.step.values
    expected = {"loss": loss, "test_error": errors, "norm_nuclear": spectra.sum(axis=1),
                "norm_l2": np.linalg.norm(points, axis=(1, 2)),
                "gradient_norm": np.linalg.norm(residuals, axis=(1, 2))}  # fmt: skip
    for name, values in expected.items():
        assert found[name].values == pytest.approx(values[picks], rel=1e-5, abs=1e-9), name
    t1, t2 = (int(np.argmax(curve <= 1e-2)) for curve in (loss, errors))
    assert float(found.t1) == pytest.approx(t1, abs=1)
    assert float(found.t2) == pytest.approx(t2, rel=0.02)
    assert float(found.truth_norm) == pytest.approx(np.linalg.svd(problem.truth)[1].sum())
    other = descend(problem.observed, problem.truth, 0.5, 1.1e-2, 1e-6, t2)  # the control
    assert np.sum((other[-1] - problem.truth) ** 2) < 0.9 * errors[t2]


def test_the_slow_phase_foresees_t2_and_the_source_s_order_does_not(made, drawn):
    run, problem = (
        made["N-F-dominance-nuclear"],
        low_rank_completion(samples=17, dimension=5, rank=1, seed=3),
    )
    assert float(run.t1_foreseen) == pytest.approx(float(run.t1), abs=1)
    assert float(run.t2_exact / run.t2) == pytest.approx(1, abs=0.03)
    # the least squares point from zero knows the seen entries and nothing else
    gap = np.where(problem.observed, 0, problem.truth)
    by_hand = float(run.t1_foreseen) + np.linalg.norm(gap, 2) / (0.5 * 1e-2)
    assert float(run.t2_source) == pytest.approx(by_hand, rel=1e-9)
    assert abs(float(run.t2_source / run.t2) - 1) > 0.2  # the control
    names = ("t1", "t1_foreseen", "t2", "t2_exact", "t2_source")
    for axes in drawn["N-F-dominance-nuclear"].axes:
        places = {line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2}
        assert places >= {float(run[name]) for name in names}


def test_the_nuclear_norm_falls_to_that_of_the_truth_while_the_frobenius_norm_rises(made):
    run = made["N-F-dominance-nuclear"]
    slow = (run.step.values > float(run.takeover)) & (run.step.values < float(run.t2))
    # singular values hop over zero: neighbours may be out of order
    assert (np.diff(run.norm_nuclear.values[slow][::8]) < 0).all()
    assert (np.diff(run.norm_l2.values[slow][::8]) > 0).all()
    assert float(run.norm_nuclear[-1] / run.truth_norm) == pytest.approx(1, abs=0.01)
    assert float(run.norm_nuclear.values[slow][0] / run.truth_norm) > 1.05  # the control


def test_the_nuclear_time_goes_like_one_over_step_beta_and_the_error_with_beta(made, drawn):
    run = made["N-F-scaling-nuclear"]
    scaled = (run.t2 - run.t1).values * run.pace.values
    kept = np.isfinite(scaled)
    assert kept[:, 0].all()
    assert scaled[kept] == pytest.approx(float(run.tau), rel=0.06)
    assert float(run.slope_t2) == pytest.approx(-1, abs=0.05)
    assert float(run.slope_beta) == pytest.approx(1, abs=0.1)
    assert float(run.slope_step) < 0.8  # 1 if it were proportional to step beta
    assert (run.error.values >= 0.99 * run.penalized_error.values).all()
    assert float(run.noise_error) < 1e-9
    problem = low_rank_completion(samples=17, dimension=5, rank=1, seed=3)
    gap = np.linalg.norm(np.where(problem.observed, 0, problem.truth), 2)
    assert float(run.distance) == pytest.approx(gap, rel=1e-4)
    assert f"slow phase, {float(run.tau):.3g}/$(\\alpha\\beta)$" in lines(
        drawn["N-F-scaling-nuclear"].axes[0]
    )


@pytest.mark.parametrize("beta", [1e-3, 1e-1])
def test_the_penalized_matrix_is_certified_by_its_gradient(beta):
    half = {"loss": "half squares", "seed": 3}
    case = LowRankRecovery(low_rank_completion(samples=17, dimension=5, rank=1, **half))

    def gap(A, strength):
        """How far -gradient/strength is from a subgradient of the nuclear norm at A."""
        pull = (case.problem.y - case.X @ A) @ case.X / strength
        return np.linalg.norm(pull.reshape(5, 5), 2) - 1, pull @ A / case.sizes(A[None])[0] - 1

    A = notsawo_scaling.penalized(case, beta, case.least())
    assert gap(A, beta) == pytest.approx((0, 0), abs=1e-6)
    assert min(gap(A, 1.05 * beta)) < -0.04  # the control
    assert abs(gap(case.least(), beta)[1]) > 0.5


# ---- data selection ----


def test_the_errors_are_those_of_the_fit_of_least_nuclear_norm(made):
    run = made["N-F-data"]
    for n, tau, seed in ((16, 0.0, 2), (16, 1.0, 0)):
        u, v = np.random.default_rng(seed).standard_normal((2, 6, 1))
        problem = coherent_completion(samples=n, truth=u @ v.T, tau=tau, seed=seed)
        # the second route: the end of the slow phase, which no dual solver enters
        end = nuclear_slow_flow(problem.design, np.where(problem.observed, u @ v.T, 0), 1e-3).end
        error = np.linalg.norm(end - (u @ v.T).ravel()) / np.linalg.norm(u @ v.T)
        one = run.sel(samples=n, share=tau, seed=seed)
        assert float(one.error) == pytest.approx(error, abs=0.01)
        seen = problem.observed
        assert float(one.fewest) == min(seen.sum(axis=0).min(), seen.sum(axis=1).min())
    assert float(np.ptp(run.error.values)) > 0.5  # the control: the errors do differ


def test_more_coherent_entries_recover_more_and_a_starved_row_nothing(made):
    run = made["N-F-data"]
    part = notsawo_selection.portions(run).sel(samples=16)
    assert part.values[0] < part.values[1] < part.values[2]
    starved = run.fewest.values < 1  # no entry at all in a row or column, rank 1
    assert starved.any()
    assert (run.error.values[starved] > 1e-2).all()
    assert (run.error.values[~starved] < 1e-6).any()
    assert "0: 0.00" in run.attrs["summary"]


def test_the_runs_of_data_selection_against_a_loop_by_hand(made):
    run = made["N-F-data"]
    u, v = np.random.default_rng(0).standard_normal((2, 6, 1))
    truth, picks = u @ v.T, run.step.values.astype(int)
    for tau in (0.0, 1.0):
        seen = coherent_completion(samples=16, truth=truth, tau=tau, seed=0).observed
        points = descend(seen, truth, 1.0, 1e-3, 1e-6, 4000)[picks]
        errors = np.linalg.norm(points - truth, axis=(1, 2)) / np.linalg.norm(truth)
        one = run.sel(shown=tau)
        # at rest a singular value hops over zero, and rounding decides when
        early = picks < 700
        assert one.relative_error.values[early] == pytest.approx(errors[early], rel=1e-5)
        if tau:
            below = picks[np.argmax(errors <= 0.05)]
            assert 0.9 * below < float(one.t2) <= below
            assert float(one.t2_foreseen / one.t2) == pytest.approx(1, abs=0.02)
            delay = float(run.delay.sel(share=1.0, seed=0))
            assert float(one.t2_foreseen) == pytest.approx(1 + delay / 1e-3)
        else:  # the control: random entries do not find this matrix
            assert np.isnan(one.t2)
            assert np.isinf(one.t2_foreseen)


def test_the_picture_of_data_selection_marks_times_and_says_never(made, drawn):
    run, runs = made["N-F-data"], drawn["N-F-data"].axes[-1]
    labels = lines(runs)
    texts = drawn["N-F-data"].axes[0].texts
    told = [(text.get_position(), int(text.get_text())) for text in texts]
    recovered = (run.error.values < 1e-6).sum(axis=2)
    assert told == [(place, recovered[place]) for place in np.ndindex(2, 3)]
    foreseen = float(run.t2_foreseen.sel(shown=1.0))
    assert labels[rf"$\tau$ = 1: $t_2$ foreseen at {foreseen:.0f}"].get_xdata()[0] == foreseen
    assert r"$\tau$ = 0: never" in labels
    assert r"$\tau$ = 0.5: never, as a row or column shows 0 of 1 entries needed" in labels
    assert any(label.startswith("$t_1$ = 1,") for label in labels)
    short = make("N-F-data", {**SMALL["N-F-data"], "samples": [16], "shares": [1.0], "seeds": 1,
                              "shown_shares": [1.0], "steps": 10})  # fmt: skip
    assert r"$\tau$ = 1: $t_2$ not yet" in lines(draw("N-F-data", short).axes[-1])


# ---- depth ----


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_the_escape_is_that_of_one_growing_weight(depth):
    problem, start = sparse_recovery(12, 20, sparsity=2, seed=0), 1e-2
    c = np.abs(problem.X.T @ problem.y).max()
    begin = [start if depth > 1 else 0.0]

    def there(t, w):
        return w[0] ** depth - c

    there.terminal = True
    grown = solve_ivp(lambda t, w: depth * c * w ** (depth - 1), (0, 1e6), begin, events=there,
                      rtol=1e-10, atol=1e-14)  # fmt: skip
    found = notsawo_depth.escape(problem, depth, start)
    assert found == pytest.approx(grown.t_events[0][0], rel=1e-6)
    other = notsawo_depth.escape(problem, depth, 2 * start)
    assert (other < 0.9 * found) == (depth > 1)


def test_the_runs_of_depth_against_a_loop_by_hand(made):
    run, problem = made["N-F-depth"], sparse_recovery(12, 20, sparsity=2, seed=0, snr=np.inf)
    picks = run.step.values.astype(int)
    for depth in (1, 3):
        w = np.full((2, 20), 1e-2) if depth > 1 else np.array([np.full(20, 1e-6), np.zeros(20)])
        points = []
        for _ in range(picks[-1] + 1):
            a = w[0] ** depth - w[1] ** depth
            points.append(a)
            pull = depth * w ** (depth - 1) * ((problem.X @ a - problem.y) @ problem.X)
            # without depth there is no second copy
            w = w - 0.1 * pull * np.array([[1.0], [-1.0 if depth > 1 else 0.0]])
        gaps = np.linalg.norm(np.array(points)[picks] - problem.truth, axis=1)
        errors = gaps / np.linalg.norm(problem.truth)
        one = run.relative_error.sel(descended=12, depth=depth).values
        kept = np.isfinite(one)
        assert one[kept] == pytest.approx(errors[kept], rel=1e-6)
        assert kept.all() == (depth > 1)  # the shallow run is over before
    deep, flat = (run.relative_error.sel(descended=12, depth=d).values[-1] for d in (3, 2))
    assert deep < 0.5 * flat  # the control: depth matters


def test_depth_is_foreseen_where_it_begins_and_where_it_ends(made):
    run = made["N-F-depth"]
    for n in (8, 12):
        one = run.sel(descended=n)
        ends = (one.end_error / one.end_foreseen).values
        assert ends[:2] == pytest.approx(1, abs=0.15)
        begin = float(one.start_foreseen.sel(depth=3))
        loss = one.loss.sel(depth=3)
        assert np.interp(0.8 * begin, run.step, loss) > 0.9 * float(loss[0])
        assert np.interp(1.2 * begin, run.step, loss) < 0.5 * float(loss[0])
    # the exact minimisers: deeper nets end nearer to the truth, but not from too few samples
    medians = run.error.median("seed").sel(samples=12).values
    assert (np.diff(medians) < 0).all()
    assert run.error.sel(samples=6, seed=1).values.min() > 0.5  # the control


def test_the_samples_needed_are_counted_from_where_the_error_stays_small():
    samples = np.array([10, 20, 30])
    assert notsawo_depth.needed(np.array([1.0, 1e-3, 1e-3]), samples, 1e-2) == 20
    assert notsawo_depth.needed(np.array([1e-3, 1.0, 1e-3]), samples, 1e-2) == 30
    assert notsawo_depth.needed(np.array([1e-3, 1e-3, 1e-3]), samples, 1e-2) == 10
    assert np.isnan(notsawo_depth.needed(np.array([1e-3, 1e-3, 1.0]), samples, 1e-2))


def test_the_picture_of_depth_ties_every_run_to_what_was_foreseen_for_it(made, drawn):
    dataset, axes = made["N-F-depth"], drawn["N-F-depth"].axes[0]
    marks = {tuple(np.ravel(line.get_xydata())): line for line in axes.lines}
    hollow = 0
    for n in dataset.descended.values:
        for depth in dataset.depth.values:
            run = dataset.sel(descended=n, depth=depth)
            end, rest = float(run.end_error), float(run.end_foreseen)
            loss = run.loss.values[np.isfinite(run.loss.values)]
            open_ = marks[(n, end)].get_color() == "white"
            assert open_ == (loss[-1] > 1e-14)
            assert marks[(n, end, n, rest)].get_color() == marks[(n, rest)].get_color()
            hollow += open_
    assert 0 < hollow < dataset.end_error.size


def test_the_picture_of_depth_marks_both_times_and_both_predictions(made, drawn):
    run = made["N-F-depth"].sel(descended=12)
    _, losses, tests = drawn["N-F-depth"].axes
    for depth in (1, 2, 3):
        one = run.sel(depth=depth)
        for axes in (losses, tests):
            starts = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata())]
            assert float(one.start_foreseen) in starts
        points = [tuple(np.ravel(line.get_xydata())) for line in tests.lines]
        assert (float(run.step[-1]), float(one.end_foreseen)) in points  # on the right edge
        dots = [tuple(np.ravel(line.get_xydata())) for line in losses.lines]
        assert (float(one.t1), 1e-4) in dots
        assert ((float(one.t2), 1e-2) in points) == (depth == 3)
