"""The KKT residual by hand, by a general solver, and at points that are none."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import penchant
from penchant import L1, L2, Classification, DiagonalNet, Regression
from penchant.measures import kkt_residual
from penchant.models import Difference, LinearPredictor
from penchant.problems import separable_points, sparse_regression
from penchant.regularizers import LayerSpectral, Linf, Nuclear, Spectral


def weights_of(beta, depth):
    return np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)]) ** (1 / depth)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("seed", range(3))
def test_a_linear_predictor_has_the_l2_max_margin(seed, scale):
    problem, linear = separable_points(5, 4, margin=0.2, seed=seed), LinearPredictor()
    best = penchant.max_margin(problem, L2()).beta
    other = penchant.max_margin(problem, L1()).beta
    assert kkt_residual(problem, linear, scale * best) < 1e-7
    assert kkt_residual(problem, linear, scale * other) > 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_depth_2_has_the_l1_max_margin(seed):
    problem, net = separable_points(4, 8, margin=0.3, seed=seed), DiagonalNet(2, alpha=1.0)
    best = penchant.max_margin(problem, L1()).beta
    assert kkt_residual(problem, net, 7.0 * weights_of(best, 2)) < 1e-7
    other = penchant.max_margin(problem, L2()).beta
    assert kkt_residual(problem, net, weights_of(other, 2)) > 1e-2


@pytest.mark.parametrize("depth", [2, 3])
def test_the_best_multipliers_by_a_general_solver(depth):
    problem, net = separable_points(4, 3, margin=0.3, seed=5), DiagonalNet(depth, alpha=1.0)
    theta = weights_of(problem.truth, depth) + 0.1
    margins = problem.y * net.predict(theta, problem.X)
    theta /= margins.min() ** (1 / depth)
    margins /= margins.min()
    rows = problem.y[:, None] * net.jacobian(theta, problem.X)
    square = theta @ theta

    def squares(nu):
        left = theta - nu @ rows
        slack = depth * nu @ (margins - 1) / square
        return left @ left / square + slack**2

    best = minimize(squares, np.ones(4), bounds=[(0, None)] * 4, method="L-BFGS-B", tol=1e-16)
    assert kkt_residual(problem, net, theta) == pytest.approx(math.sqrt(best.fun), rel=1e-4)
    assert best.fun > 1e-4


def test_a_negative_margin_is_no_candidate_and_no_gradient_leaves_everything():
    line, net = Classification([[1.0, 0.0], [3.0, 1.0]], [1, 1]), DiagonalNet(2, alpha=1.0)
    assert kkt_residual(line, net, [0.0, 0.0, 1.0, 0.0]) == math.inf
    across = LinearPredictor()
    one = Classification([[1.0, 0.0]], [1])
    assert kkt_residual(one, across, [0.0, 1.0], outputs=[1.0]) == pytest.approx(1.0)


def test_values_are_fitted_by_the_shortest_parameters():
    problem = sparse_regression(3, 6, sparsity=2, noise=0.0, seed=1)
    shortest = np.linalg.pinv(problem.X) @ problem.y
    linear = LinearPredictor()
    assert kkt_residual(problem, linear, 5 * shortest) < 1e-12
    aside = np.linalg.svd(problem.X)[2][-1]
    expected = math.sin(math.atan2(0.3, np.linalg.norm(shortest)))
    assert kkt_residual(problem, linear, shortest + 0.3 * aside) == pytest.approx(expected)
    assert kkt_residual(problem, linear, -shortest) == pytest.approx(1.0)
    assert kkt_residual(Regression(problem.X, 0 * problem.y), linear, aside) == pytest.approx(1.0)


def test_outputs_that_are_known_better_are_used():
    line, pair = Classification([[1.0, 0.0], [3.0, 1.0]], [1, 1]), Difference(LinearPredictor())
    huge = np.array([1e17 + 16, 1e17, 1e17, 1e17])  # u - v is 16 or 0, as rounding has it
    assert kkt_residual(line, pair, huge, outputs=[1.0, 3.0]) == pytest.approx(1.0)
    assert kkt_residual(line, DiagonalNet(2, log_alpha=640.0), [2.0, 0, 0, 0]) < 1e-12


def test_a_model_of_no_degree_and_zero_parameters_are_refused():
    line, net = Classification([[1.0, 0.0]], [1]), DiagonalNet(2, alpha=1.0)
    with pytest.raises(ValueError, match=r"^kkt_residual: .*homogeneous"):
        kkt_residual(line, penchant.models.Reparametrized(lambda w: w + w**2, 1.0), [1.0, 1.0])
    with pytest.raises(ValueError, match=r"^kkt_residual: parameters must not all be zero"):
        kkt_residual(line, net, np.zeros(4))


NORMS = [L1(), L2(), Linf(), Spectral((2, 3)), Nuclear((2, 3))]


@pytest.mark.parametrize("norm", NORMS, ids=str)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_linear_predictor_misses_its_share_of_the_best_margin(norm, scale):
    """The gap of a linear model is one minus the share that `margin_shares` computes."""
    problem, linear = separable_points(5, 6, margin=0.2, seed=1), LinearPredictor()
    best, other = (penchant.max_margin(problem, n).beta for n in (norm, L2()))
    assert kkt_residual(problem, linear, scale * best, norm=norm) < 1e-7
    path = penchant.train(
        LinearPredictor(other), problem, penchant.GradientDescent(1e-9), stop=penchant.Steps(1)
    )
    share = penchant.measures.margin_shares(path, problem, [norm]).values[0, 0]
    gap = kkt_residual(problem, linear, scale * other, norm=norm)
    assert gap == pytest.approx(max(0.0, 1 - share), abs=1e-8)


def test_the_gap_of_layers_by_a_linear_program_and_a_general_solver():
    """min_nu N*(sum_n nu_n g_n) over the simplex, by SLSQP; in l_inf by a linear program."""
    problem = Classification(np.random.default_rng(4).standard_normal((3, 3)), [1, -1, 1])
    net = penchant.models.two_layer(2, alpha=1.0, activation="quadratic", seed=2)
    theta = penchant.train(
        net, problem, penchant.methods.SteepestDescent(0.01, L2()), stop=penchant.Steps(600)
    ).parameters
    rows = problem.y[:, None] * net.jacobian(theta, problem.X)
    margins = problem.y * net.predict(theta, problem.X)
    assert margins.min() > 0

    def dual(nu):
        s = nu @ rows
        return np.linalg.norm(s[:6].reshape(2, 3), "nuc") + np.linalg.norm(s[6:])

    starts = np.random.default_rng(0).dirichlet(np.ones(3), 5)
    rules = {"type": "eq", "fun": lambda nu: nu.sum() - 1}
    best = min(
        minimize(dual, nu, bounds=[(0, 1)] * 3, constraints=rules, tol=1e-12).fun for nu in starts
    )
    layers = LayerSpectral([(2, 3), (2, 1)])
    gap = 1 - 3 * margins.min() / layers(theta) / best
    assert gap > 1e-3
    assert kkt_residual(problem, net, theta, norm=layers) == pytest.approx(gap, abs=1e-5)
    program = linprog(  # |s|_1 as the sum of its bounds
        np.append(np.zeros(3), np.ones(8)),
        A_ub=np.vstack([np.hstack([sign * rows.T, -np.eye(8)]) for sign in (1, -1)]),
        b_ub=np.zeros(16),
        A_eq=np.append(np.ones(3), np.zeros(8))[None],
        b_eq=[1.0],
    )
    gap = 1 - 3 * margins.min() / np.abs(theta).max() / program.fun
    assert kkt_residual(problem, net, theta, norm=Linf()) == pytest.approx(gap, abs=1e-8)


def test_what_a_gap_refuses():
    values = Regression([[1.0, 2.0]], [1.0])
    with pytest.raises(ValueError, match=r"^kkt_residual: norm=Linf\(\) needs labels"):
        kkt_residual(values, LinearPredictor(), [1.0, 0.0], norm=Linf())
    line = Classification([[1.0, 0.0], [3.0, 1.0]], [1, 1])
    with pytest.raises(ValueError, match=r"^kkt_residual: expected a norm"):
        kkt_residual(line, LinearPredictor(), [1.0, 0.0], norm="l2")
    assert kkt_residual(line, LinearPredictor(), [-1.0, 0.0], norm=Linf()) == math.inf


def test_a_torch_module_has_the_residuals_of_its_twin():
    torch = pytest.importorskip("torch")
    problem = separable_points(5, 4, margin=0.2, seed=2)
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(4, 8, bias=False), torch.nn.ReLU(), torch.nn.Linear(8, 1, bias=False)
    ).double()
    optimizer = torch.optim.Adam(module.parameters(), 0.01)
    x, y = torch.tensor(problem.X), torch.tensor(problem.y)
    for _ in range(500):
        optimizer.zero_grad()
        torch.exp(-y * module(x)[:, 0]).mean().backward()
        optimizer.step()
    theta = np.concatenate([w.detach().numpy().ravel() for w in module.parameters()])
    twin = penchant.models.two_layer(8, alpha=1.0)
    for norm in (None, L2(), Linf(), LayerSpectral([(8, 4), (1, 8)])):
        own = kkt_residual(problem, module, norm=norm)
        assert 0 < own < 1
        assert own == pytest.approx(kkt_residual(problem, twin, theta, norm=norm), rel=1e-6)
    with pytest.raises(ValueError, match=r"^kkt_residual: a torch module brings its own"):
        kkt_residual(problem, module, theta)
    shifted = torch.nn.Sequential(torch.nn.Linear(4, 1)).double()
    with pytest.raises(ValueError, match=r"^kkt_residual: module must be homogeneous"):
        kkt_residual(problem, torch.nn.Sequential(shifted, torch.nn.Tanh()))
