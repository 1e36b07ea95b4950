"""N-F2: its data against separate runs, the zone and its absence, its drawing."""

import numpy as np
import pytest

import tacit.figures.notsawo_f2 as module
from figure_checks import assert_axes_named, assert_captioned, assert_data_speak
from tacit.figures.registry import draw, figures, make
from tacit.models.network import two_layer
from tacit.problems.opposed_units import opposed_units
from tacit.problems.recovery import sparse_recovery
from tacit.solvers.delay import error_floor
from tacit.training.descent.held_norm import HeldNorm
from tacit.training.stop import Steps
from tacit.training.train import train

SMALL = {"inputs": 6, "width": 20, "samples": 30, "net_seeds": 2, "net_steps": 1500,
         "log2_range": [-2.0, 2.0], "per_doubling": 2, "sparse_steps": 1500, "l2_steps": 4000,
         "path_steps": 60_000, "path_points": 80}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    calls = []
    return make("N-F2", SMALL, progress=lambda *call: calls.append(call)), calls


def test_the_net_s_losses_are_those_of_separate_runs(made):
    dataset, calls = made
    assert calls == [(1, 3), (2, 3), (3, 3)]
    case, model = opposed_units(30, 6, seed=1), two_layer(20, alpha=1.0)
    for share in (0.5, 2.0):
        method = HeldNorm(1e-3, size=case.least_norm() * share)
        path = train(model, case.training, method, stop=Steps(1500))
        one = dataset.sel(net=1, share=share)
        fitted = path.dataset.loss.values[-1] / (np.sum(case.training.y**2) / 2)
        assert float(one.train) == pytest.approx(fitted, rel=1e-6)
        error = model.predict(path.parameters, case.test.X) - case.test.y
        assert float(one.test) == pytest.approx(np.sum(error**2) / np.sum(case.test.y**2), rel=1e-6)
        assert float(one.test) != pytest.approx(float(dataset.test.sel(net=0, share=share)))


def test_the_net_has_a_zone_and_its_rescalings_do_not(made):
    dataset, _ = made
    test = dataset.test.median("net")
    assert float(test.idxmin()) == 1.0
    assert float(test[0]) > 5 * float(test.min())
    assert float(test[-1]) > 3 * float(test.min())
    assert np.isnan(dataset.rescaled.sel(share=0.5)).all()
    assert (dataset.rescaled[:, -1] < 2 * dataset.test.sel(share=1.0)).all()


def test_no_l2_norm_recovers_and_the_l1_norm_of_the_truth_does(made):
    dataset, _ = made
    problem = sparse_recovery(30, 100, sparsity=5, seed=0, snr=np.inf)
    size = float(problem.truth @ problem.truth)
    np.testing.assert_allclose(dataset.error.sel(norm="l2"), dataset.exact_error, rtol=1e-4)
    assert float(dataset.error.sel(norm="l2").min()) >= float(dataset.floor)
    assert float(dataset.floor) <= error_floor(problem.X, problem.truth) / size + 1e-12
    l1 = dataset.error.sel(norm="l1")
    assert float(l1.idxmin()) == 1.0
    assert float(l1.min()) < 1e-6 < 0.1 < float(l1.sel(share=2.0))
    assert float(dataset.loss.sel(norm="l1", share=0.5)) > 0.01


def test_the_penalized_run_passes_the_best_l2_norm_and_leaves_it(made):
    dataset, _ = made
    share, error = dataset.path_share.values, dataset.path_error.values
    apart = np.hypot(share - float(dataset.floor_share), error - float(dataset.floor))
    assert apart.min() < 0.05
    assert 0 < np.argmin(apart) < len(apart) - 1
    assert share[-1] > 1.5 * float(dataset.floor_share)
    assert error[-1] < 1e-2


def test_the_data_speak_and_the_drawing_has_its_curves(made, tmp_path):
    dataset, _ = made
    assert_data_speak("N-F2", dataset, tmp_path, "starts")
    assert "best l2 norm" in dataset.attrs["summary"]
    picture = draw("N-F2", dataset)
    assert_captioned("N-F2", picture)
    assert_axes_named(picture)
    left, right = picture.axes
    curves = {line.get_label(): line for axes in (left, right) for line in axes.lines}
    np.testing.assert_allclose(curves["test loss: U"].get_ydata(), dataset.test.median("net"))
    np.testing.assert_array_equal(curves["exact"].get_ydata(), dataset.exact_error)
    assert f"no $\\ell_2$ norm is below {float(dataset.floor):.2f}" in curves
    assert left.get_legend()
    assert right.get_legend()


def test_the_presets_name_the_same_parameters_and_1_is_among_the_shares():
    entry = figures()["N-F2"]
    assert entry.presets["paper"].keys() == entry.presets["quick"].keys()
    for preset in entry.presets.values():
        shares = module.shares_of(preset)
        assert 1.0 in shares
        assert (shares[0], shares[-1]) == pytest.approx((0.25, 2**2.5))
        assert (preset["features"], preset["sparsity"], preset["measured"]) == (100, 5, 30)
