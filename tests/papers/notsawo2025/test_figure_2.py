"""Figure 2, the Goldilocks zone: that a wrong picture would be caught; separate runs."""

import numpy as np
import pytest

from figure_checks import assert_can_be_read
from penchant import Steps, train
from penchant.lab.evidence.evidence import judge
from penchant.methods import HeldNorm
from penchant.models import two_layer
from penchant.problems import opposed_units
from penchant_papers.notsawo2025.figures import figure_2 as module
from penchant_papers.notsawo2025.recoveries import recoverable


@pytest.fixture(scope="module")
def data(data_of):
    return data_of("N-F2")


def missed(checks):
    return [name for name, check in checks.items() if check.misses]


def test_the_l_and_the_u_are_seen_and_their_absence_too(data):
    nets = module.ordinary(data[0])
    assert not missed(module.shape(nets))
    least = float(nets.test.min())
    bump = np.where(np.arange(19) == 12, 5, 1)
    cases = {
        "ratio": {"test": nets.test.clip(max=2 * least)},
        "median": {"test": nets.test * bump},
        "factors of two": {"test": nets.test.roll(place=2)},
        "w_c/2": {"train": 0.01 * nets.train},
        r"w \geq w_c": {"train": nets.train.clip(min=0.1)},
    }
    for word, wrong in cases.items():
        assert any(word in name for name in missed(module.shape(nets.assign(wrong)))), word


def test_shuffled_labels_have_no_zone(data):
    nets = data[0]
    mixed = nets.isel(run=np.flatnonzero(nets.labels.values == "shuffled"))
    assert len(missed(module.shape(mixed))) >= 3


def test_pairs_are_counted_on_both_sides_of_a_centre():
    valley = np.abs(np.arange(19.0) - 8)
    assert module.wrong_way(valley) == module.wrong_way(valley, 8) == 0
    assert module.wrong_way(valley, 12) == 2  # (7, 11) and (8, 12) rise towards 12
    assert module.wrong_way(-valley) == 12  # all five pairs on the left, all seven on the right


@pytest.mark.parametrize(
    ("name", "factor", "word"),
    [("floor", 1.05, "exact lower bound"), ("apart", 1e6, "closed form")],
)
def test_a_bound_that_is_too_high_and_a_wrong_ridge_are_refuted(data, name, factor, word):
    _, sparse, _, path = data
    assert not missed(module.sparse_checks(sparse, path))
    wrong = module.sparse_checks(sparse.assign({name: factor * sparse[name]}), path)
    assert any(word in name for name in missed(wrong))


def test_l2_in_the_place_of_l1_is_refuted(data):
    _, sparse, _, path = data
    turned = sparse.assign_coords(norm=sparse.norm.values[::-1])
    wrong = missed(module.sparse_checks(turned, path))
    assert any("|a^*|_1" in name for name in wrong)
    assert any(r"any held $\ell_2$" in name for name in wrong)


def test_a_penalty_that_stays_on_the_shell_is_refuted(data):
    _, sparse, _, path = data
    size = float(sparse.sel(norm="l2").floor_share[0])
    stays = {"trajectory_share": 0 * path.trajectory_share + size}
    stays["trajectory_error"] = 0 * path.trajectory_error + 0.5
    assert len(missed(module.sparse_checks(sparse, path.assign(stays)))) == 2


def test_a_run_that_has_not_converged_is_no_evidence(data):
    nets, sparse, dense, path = data
    evidence = module.check(nets, sparse.assign(fall=sparse.fall + 1e-5), dense, path)
    assert judge(evidence)[0] == "inconclusive"


def test_a_net_that_is_stretched_rather_than_rescaled_does_not_keep_its_test_loss(monkeypatch):
    table = {"runs": [{"seed": 0, "rescale": True}], "given": module.NET | {"seed": 0}}
    right = module.cell(0, **table)

    def stretched(theta, inner, size):
        return theta * (size / np.linalg.norm(theta))

    monkeypatch.setattr("penchant.models.rescale_layers", stretched)
    wrong = module.cell(0, **table)
    assert np.nanmax(right["rescaled"]) < 2 * right["test"].min()
    assert np.nanmax(wrong["rescaled"]) > 2 * wrong["test"].min()
    assert np.isnan(right["rescaled"][: module.MIDDLE]).all()


def test_the_net_s_losses_are_those_of_separate_runs():
    given = {"inputs": 6, "width": 20, "samples": 30, "steps": 600, "seed": 1}
    found = module.cell(0, runs=[{}], given=given)
    case, model = opposed_units(30, 6, seed=1), two_layer(20, alpha=1.0, seed=1)
    for place, share in ((4, 0.5), (12, 2.0)):
        method = HeldNorm(1e-3, size=case.least_norm() * share)
        path = train(model, case.training, method, stop=Steps(600))
        fitted = path.dataset.loss.values[-1] / (np.sum(case.training.y**2) / 2)
        assert found["train"][place] == pytest.approx(fitted, rel=1e-6)
        error = model.predict(path.parameters, case.test.X) - case.test.y
        tested = np.sum(error**2) / np.sum(case.test.y**2)
        assert found["test"][place] == pytest.approx(tested, rel=1e-6)


def test_below_the_norm_of_least_squares_the_error_contains_the_undetermined_part(data):
    """The second route to the bound: no ridge point is nearer to the truth than X^+ y."""
    l2 = data[1].sel(norm="l2").isel(seed=0)
    case, _ = recoverable("sparse", seed=0, samples=30, dimension=100, few=5)
    ahat = np.linalg.pinv(case.X) @ case.y
    below = module.SHARES * np.linalg.norm(case.truth) < np.linalg.norm(ahat)
    unseen = np.sum((ahat - case.truth) ** 2) / (case.truth @ case.truth)
    assert below.any()
    assert (l2.error.values[below] >= unseen - 1e-9).all()
    assert float(l2.floor) <= unseen + 1e-12
    np.testing.assert_allclose(l2.error, l2.exact_error, rtol=1e-4)


def test_the_symmetric_start_computes_zero():
    x, model = np.random.default_rng(0).normal(size=(5, 10)), module.student(40, 0)
    assert np.abs(model.predict(module.symmetric(40, 10, 0), x)).max() < 1e-12
    assert np.abs(model.predict(model.start(10), x)).max() > 0.01


def test_the_penalized_run_passes_the_best_l2_norm_and_leaves_it(data):
    l2, path = data[1].sel(norm="l2").isel(seed=0), data[3].isel(seed=0, beta=0)
    best = float(l2.floor_share), float(l2.floor)
    apart = np.hypot(path.trajectory_share - best[0], path.trajectory_error - best[1]).values
    assert np.nanmin(apart) < 0.05
    assert 0 < np.nanargmin(apart) < len(apart) - 1


def test_the_picture_can_be_read(data):
    picture = module.experiment.picture(data)
    assert_can_be_read(picture)
    curves = {line.get_label(): line for axes in picture.axes for line in axes.lines}
    np.testing.assert_allclose(
        curves["test loss: $U$"].get_ydata(), module.ordinary(data[0]).test.median("run")
    )
    l2 = data[1].sel(norm="l2").isel(seed=0)
    np.testing.assert_array_equal(curves["exact"].get_ydata(), l2.exact_error)
