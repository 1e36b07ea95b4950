"""The section on tangent kernels: second routes, and that wrong numbers would be caught."""

import math

import numpy as np
import pytest

from figure_checks import assert_can_be_read
from penchant import DiagonalNet, ParameterFlow, Time, train
from penchant.lab.evidence.evidence import judge
from penchant.measures import angle
from penchant_papers.notsawo2025 import decayed_nets
from penchant_papers.notsawo2025 import tangent_kernel as module

EXPERIMENTS = {e.id: e for e in (module.direction, module.time, module.margins)}


@pytest.mark.parametrize("id", EXPERIMENTS)
def test_the_pictures_can_be_read(id, data_of):
    assert_can_be_read(EXPERIMENTS[id].picture(data_of(id)))


@pytest.mark.parametrize(
    ("id", "wrong"),
    [
        ("N-NTK", {"moved_to_kernel": 5.0}),
        ("N-NTK", {"to_kernel": 5.0}),
        ("N-NTK", {"theta_to_start": 5.0}),
        ("N-NTK-KKT", {"kkt": 0.1}),
    ],
)
def test_a_larger_angle_or_residual_is_refuted(id, wrong, data_of):
    (dataset,) = data_of(id)
    changed = dataset.assign({name: dataset[name] + more for name, more in wrong.items()})
    assert judge(EXPERIMENTS[id].check(changed))[0] == "fails"


@pytest.mark.parametrize("earlier", [-0.1, 0.1])
def test_a_transition_at_another_time_is_refuted(earlier, data_of):
    (dataset,) = data_of("N-NTK-t2")
    places = [
        np.abs(decayed_nets.SHARES - share - earlier).argmin() for share in decayed_nets.SHARES
    ]
    moved = dataset.isel(place=places)
    assert judge(module.check_time(moved))[0] == "fails"


def test_a_run_that_stays_near_the_kernel_decides_nothing(data_of):
    (dataset,) = data_of("N-NTK-t2")
    stuck = dataset.copy(deep=True)
    stuck.to_kernel[0, 0, 0] *= 0.2  # it ends less than 15 degrees away
    assert judge(module.check_time(stuck))[0] == "inconclusive"


def test_a_residual_that_does_not_fall_with_the_start_is_refuted(data_of):
    (dataset,) = data_of("N-NTK-KKT")
    level = dataset.kkt.isel(log_gamma=0)
    same = dataset.assign(kkt=dataset.kkt.where(dataset.log_gamma < 200, level))
    assert judge(module.check_margins(same))[0] in ("fails", "inconclusive")


def test_epsilon_is_a_half():
    assert decayed_nets.SHARES[[decayed_nets.EARLY, decayed_nets.LATE]] == pytest.approx([0.5, 1.5])


def test_theta_against_training_in_the_parameters():
    """Second route at a moderate start: no closed form, no conserved product."""
    problem, *_ = decayed_nets.problem_of("classification", 0, 4, 8, 0)
    log_alpha, rate, z = 3.0, math.exp(-3.0), 4.0
    flow = ParameterFlow(rtol=1e-9, weight_decay=rate)
    path = train(DiagonalNet(2, log_alpha=log_alpha), problem, flow, stop=Time(z / rate))
    theta = np.asarray(path.parameters)
    product = 2 * (log_alpha - z)
    np.testing.assert_allclose(decayed_nets.parameters(path.predictor, product), theta, rtol=1e-5)
    moved = math.exp(z) * theta / math.exp(log_alpha) - 1
    np.testing.assert_allclose(decayed_nets.displacement(path.predictor, product), moved, rtol=1e-4)


def test_the_kernel_solution_is_orthogonal_to_the_start_at_every_depth():
    """Euler: <grad f, theta> = L f, here by the model's own pullback; f = 0 at the start."""
    problem, *_ = decayed_nets.problem_of("regression", 0, 4, 8, 0)
    for depth in (2, 3):
        net = DiagonalNet(depth, alpha=2.0)
        start = net.start(8)
        rows = [net.pullback(start, problem.X[k : k + 1], np.ones(1)) for k in range(4)]
        nu = np.linalg.lstsq(np.array(rows) @ np.array(rows).T, problem.y, rcond=None)[0]
        assert float(angle(nu @ np.array(rows), start)) == pytest.approx(90, abs=1e-9)
