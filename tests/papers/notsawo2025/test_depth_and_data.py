"""Depth and data selection: runs against loops by hand, certificates, and wrong numbers caught."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from penchant import interpolate
from penchant.lab import all_claims
from penchant.problems import sparse_recovery
from penchant.regularizers import Nuclear
from penchant.solvers import slow_flow
from penchant_papers.notsawo2025.figures import data_selection, depth
from recoveries_by_hand import descend, judged

ENTRIES = {"dimension": 6, "rank": 1, "euler": 5e-3, "level": 0.05}
SPARSE = {"kind": "sparse", "dimension": 20, "few": 2}


def chosen(seed, samples, share):
    return data_selection.chosen(seed, samples, share, 6, 1, 5e-3)


# ---- data selection ----


def test_the_errors_are_those_of_the_fit_of_least_nuclear_norm():
    errors = []
    for tau, seed in ((0.0, 2), (1.0, 0)):
        found = data_selection.cell(samples=16, share=tau, seed=seed, **ENTRIES)
        case = chosen(seed, 16, tau)
        seen = case.problem.observed
        # the second route: the end of the slow phase, which no dual solver enters
        begin = np.where(seen, case.problem.truth, 0)
        end = slow_flow(case.X, begin, learning_rate=1e-3).end
        error = np.linalg.norm(end - case.truth) / np.linalg.norm(case.truth)
        assert found["error"] == pytest.approx(error, abs=0.01)
        assert found["fewest"] == min(seen.sum(axis=0).min(), seen.sum(axis=1).min())
        errors.append(error)
    assert abs(errors[0] - errors[1]) > 0.1  # the control: the errors do differ


def test_recovery_by_coherence_is_certified_by_a_dual():
    """|S| <= 1 and <S, M> = |M|_*: another route to which truths are found."""
    problem = data_selection.chosen(0, 70, 0.5, 10, 2, 5e-3).problem
    found = interpolate(problem.design.reshape(-1, 10, 10), problem.y, Nuclear())
    witness = problem.adjoint(found.dual)
    assert np.linalg.norm(witness, 2) <= 1 + 1e-8
    assert np.sum(witness * problem.truth) == pytest.approx(np.linalg.norm(problem.truth, "nuc"))


def test_a_run_of_data_selection_against_a_loop_by_hand():
    given = {"step": 1.0, "beta": 1e-3, "steps": 8000, "points_per_decade": 20}
    place = data_selection.timed_seed(0, 0.05, samples=16, dimension=6, rank=1, euler=5e-3)
    for tau in (0.0, 0.75):
        found = data_selection.run_cell(share=tau, seed=0, samples=16, **ENTRIES, **given)
        case = chosen(place, 16, tau)
        assert found["draws"] == place + 1
        gaps = descend(case, 1.0, 1e-3, 1e-6, 8000, "nuclear") - case.truth
        errors = np.linalg.norm(gaps, axis=1) / np.linalg.norm(case.truth)
        picks = found["trajectory_step"].astype(int)
        early = picks < 700  # later a singular value oscillates around zero, up to rounding
        seen = found["trajectory_relative_error"]
        assert seen[early] == pytest.approx(errors[picks[early]], rel=1e-5)
        if tau:
            assert found["t2"] == pytest.approx(np.argmax(errors <= 0.05), rel=0.02)
            assert found["t2_predicted"] == pytest.approx(found["t2"], rel=0.02)
        else:  # the control: random entries do not find this matrix
            assert np.isnan(found["t2"])
            assert np.isinf(found["t2_predicted"])


def test_errors_that_do_not_depend_on_the_share_are_caught(data_of):
    dataset, pairs, controls, runs = data_of("N-F-data")
    for name in ("error", "delay"):
        flat = pairs[name].sel(share=0.0).expand_dims(share=pairs.share)
        wrong = pairs.assign({name: flat.transpose(*pairs[name].dims)})
        assert judged("N-F-data", [dataset, wrong, controls, runs]) == "fails"
    late = runs.assign(t2_predicted=1.1 * runs.t2_predicted)
    assert judged("N-F-data", [dataset, pairs, controls, late]) == "fails"


def test_the_picture_of_data_selection_has_counts_and_marks_never(data_of):
    errors, *others, runs = data_of("N-F-data")
    scarce = runs.assign(fewest=runs.fewest.where(runs.share > 0, 1))
    pictures = [all_claims()["N-F-data"].picture([errors, *others, x]) for x in (runs, scarce)]
    axes = pictures[0].axes
    counts = [int(text.get_text()) for text in axes[0].texts]
    found = (errors.error.values < 1e-6).sum(axis=2)
    assert counts == [found[place] for place in np.ndindex(found.shape)]
    assert (runs.fewest >= 2).all()  # so the first picture names no scarce row
    whys = ["", ", as a row or column has 1 of 2 entries needed"]
    for picture, why in zip(pictures, whys, strict=True):
        labels = [line.get_label() for panel in picture.axes for line in panel.lines]
        assert [x for x in labels if x.startswith(r"$\tau$") and "never" in x] == [
            rf"$\tau$ = 0: never{why}"
        ]


# ---- depth ----


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_the_escape_is_that_of_one_growing_weight(layers):
    problem, start = sparse_recovery(12, 20, sparsity=2, seed=0), 1e-2
    c = np.abs(problem.X.T @ problem.y).max()

    def there(t, w):
        return w[0] ** layers - c

    there.terminal = True
    grown = solve_ivp(
        lambda t, w: layers * c * w ** (layers - 1),
        (0, 1e6),
        [start if layers > 1 else 0.0],
        events=there,
        rtol=1e-10,
        atol=1e-14,
    )
    found = depth.escape(problem, layers, start)
    assert found == pytest.approx(grown.t_events[0][0], rel=1e-6)
    assert (depth.escape(problem, layers, 2 * start) < 0.9 * found) == (layers > 1)


@pytest.mark.parametrize("layers", [1, 3])
def test_a_run_of_depth_against_a_loop_by_hand(layers):
    rules = {"points_per_decade": 10, "most": 5000, "signed": True, "samples": 12, "seed": 0}
    found = depth.run_cell(layers, **SPARSE, **rules)
    problem = sparse_recovery(12, 20, sparsity=2, seed=0, snr=np.inf)
    w = np.full((2, 20), 1e-2) if layers > 1 else np.array([np.full(20, 1e-6), np.zeros(20)])
    picks, points = found["trajectory_step"].astype(int), []
    for _ in range(picks[-1] + 1):
        a = w[0] ** layers - w[1] ** layers
        points.append(a)
        pull = layers * w ** (layers - 1) * ((problem.X @ a - problem.y) @ problem.X)
        # without depth there is no second copy
        w = w - 0.1 * pull * np.array([[1.0], [-1.0 if layers > 1 else 0.0]])
    gaps = np.linalg.norm(np.array(points)[picks] - problem.truth, axis=1)
    errors = gaps / np.linalg.norm(problem.truth)
    assert found["trajectory_relative_error"] == pytest.approx(errors, rel=1e-6)


def test_a_start_that_is_not_small_and_a_wrong_bias_are_caught(data_of):
    dataset, noise, runs, unsigned = data_of("N-F-depth")
    large = dataset.assign(error=dataset.large_error)
    assert judged("N-F-depth", [large, noise, runs, unsigned]) == "fails"
    other = runs.assign(to_bias=runs.to_depth_2)
    assert judged("N-F-depth", [dataset, noise, other, unsigned]) == "fails"
    loud = noise.assign(error=noise.large_error)
    assert judged("N-F-depth", [dataset, loud, runs, unsigned]) == "fails"


def test_from_the_needed_samples_on_all_errors_are_small():
    samples = np.array([10.0, 20.0, 30.0])
    assert depth.needed(np.array([1.0, 1e-3, 1e-3]), samples, 1e-2) == 20
    assert depth.needed(np.array([1e-3, 1.0, 1e-3]), samples, 1e-2) == 30
    assert depth.needed(np.array([1e-3, 1e-3, 1e-3]), samples, 1e-2) == 10
    assert np.isnan(depth.needed(np.array([1e-3, 1e-3, 1.0]), samples, 1e-2))
