"""The ratchet against Bregman projections, integrated flows, M's path and brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from penchant import L2, DiagonalNet, DualFlow, NumericalError, Q, max_margin, train
from penchant.lab import Kind
from penchant.measures import angle
from penchant.problems import separable_points, three_points
from penchant.record import At, LogSpaced
from penchant.solvers import max_margin_path, ratchet_path
from penchant.solvers.margins import ratchet
from penchant.solvers.margins.ratchet import growing, solve_gram
from penchant.stop import Scale

PANELS = [("3d", 2), ("4a", 3), ("4b", 3)]
on_panels = pytest.mark.parametrize(("name", "depth"), PANELS)


def both(problem, depth, mus):
    """(ratchet, Q path) at the same scales."""
    X, y = problem.X, problem.y
    return ratchet_path(X, y, depth, mus=mus), max_margin_path(X, y, depth, mus=mus)


def projected(Z, depth, taus):
    """W at the last tau by Bregman projections from one tau to the next, with a general solver."""
    W = ratchet_path(Z, np.ones(len(Z)), depth, mus=[1 / taus[0]]).beta[0] * taus[0]
    for tau in taus[1:]:
        W = projection(Q(depth, mu=1.0), Z, W, tau)
    return W


def projection(law, Z, W, tau):
    """The point with margins >= tau nearest to W in the Bregman distance of the law."""
    s = law.dual_of(W)
    margins = {"type": "ineq", "fun": lambda V: Z @ V / tau - 1, "jac": lambda V: Z / tau}
    found = minimize(
        lambda V: (law(V) - s @ V) / tau,
        W * tau / (Z @ W).min(),
        jac=lambda V: (law.dual_of(V) - s) / tau,
        constraints=margins,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success, found.message
    return found.x


@on_panels
def test_iterated_bregman_projections_tend_to_the_ratchet(name, depth):
    """They differ only by what the one step that contains the change gets wrong."""
    problem = three_points(name)
    ratchet, q = both(problem, depth, [1e-2])
    coarse, fine = (
        angle(projected(problem.signed_rows, depth, np.geomspace(10, 100, steps)), ratchet.beta[0])
        for steps in (8, 123)
    )
    assert fine < 0.3 * coarse
    assert fine < 0.01 * angle(q.beta[0], ratchet.beta[0])


def flowed(Z, depth, scale, tau):
    """W of the flow from alpha^D = scale at g = scale * tau, by LSODA on R and the margin gaps."""
    p, N = depth / max(depth - 2, 1e-300), len(Z)

    def h(s):
        return 2 * np.sinh(s) if depth == 2 else (1 - s) ** -p - (1 + s) ** -p

    def slope(s):
        return 2 * np.cosh(s) if depth == 2 else p * ((1 - s) ** (-p - 1) + (1 + s) ** (-p - 1))

    def velocity(log_tau, state):
        gaps = state[N:] - state[N:].min()
        weight = np.exp(-gaps) / np.exp(-gaps).sum()
        gain = Z @ (slope(state[:N] @ Z) * (weight @ Z))
        rate = np.exp(log_tau) / (weight @ gain)
        return np.concatenate([rate * weight / scale, rate * gain - np.exp(log_tau)])

    span = (0, np.log1p(scale * tau))
    run = solve_ivp(velocity, span, np.zeros(2 * N), method="LSODA", rtol=1e-9,
                    atol=np.repeat([1e-14, 1e-8], N))  # fmt: skip
    assert run.success
    return h(run.y[:N, -1] @ Z)


@on_panels
def test_the_flow_tends_to_the_ratchet_and_not_to_the_q_path(name, depth):
    problem = three_points(name)
    ratchet, q = both(problem, depth, [1e-2])
    flows = [flowed(problem.signed_rows, depth, scale, 100.0) for scale in (1e3, 1e4)]
    near = [angle(W, ratchet.beta[0]) for W in flows]
    assert near[0] / near[1] == pytest.approx(10, rel=0.2)  # like alpha^-D
    gap = angle(ratchet.beta[0], q.beta[0])
    assert angle(flows[1], q.beta[0]) == pytest.approx(gap, rel=1e-2)
    assert gap > 1  # control: the two predictions are far apart


@pytest.mark.parametrize(
    ("depth", "shape"), [(2, [2.0, 0.5, 1.0]), (4, [1.2, 0.8, 1.0]), (10, None)]
)
def test_the_dual_flow_agrees_at_other_depths_and_shapes(depth, shape):
    problem = three_points("3d")
    mus = [0.3, 0.03, 0.003]
    alpha = 1e6 ** (1 / depth)
    path = train(
        DiagonalNet(depth, alpha=alpha, shape=shape),
        problem,
        DualFlow(),
        stop=Scale(mus[-1]),
        record=[LogSpaced(1), At(margins=[1e6 / mu for mu in mus])],
    )
    smoothed_margin = path.dataset.smoothed_margin.values
    trained = path.dataset.predictor.values[
        [np.abs(smoothed_margin * mu - 1e6).argmin() for mu in mus]
    ]
    found = ratchet_path(problem.X, problem.y, depth, mus=mus, shape=shape)
    assert angle(trained, found.beta).max() < 1e-3
    wrong = ratchet_path(problem.X, problem.y, depth + 1, mus=mus, shape=shape)
    assert angle(trained, wrong.beta).max() > 1e-2


points = st.builds(
    lambda N, d, seed: separable_points(N, d, margin=0.2, seed=seed),
    st.integers(1, 7), st.integers(2, 6), st.integers(0, 10_000),
)  # fmt: skip


@settings(max_examples=40, deadline=None, derandomize=True)
@given(points, st.integers(2, 7))
def test_what_defines_the_ratchet_holds_along_random_paths(problem, depth):
    mus = np.geomspace(1e3, 1e-5, 41)
    found = ratchet_path(problem.X, problem.y, depth, mus=mus)
    margins = found.beta @ problem.signed_rows.T
    assert np.abs(margins.min(axis=1) - 1).max() < 1e-10
    assert np.abs(margins[found.support] - 1).max() < 1e-9
    steps = np.diff(found.dual, axis=0)
    assert found.dual.min() >= 0
    assert steps.min() >= -1e-13 * found.dual.max()
    for mu, beta, R in zip(mus, found.beta, found.dual, strict=True):
        law = Q(depth, mu=mu).primal_of(R @ problem.signed_rows)
        assert np.abs(law - beta).max() < 1e-8 * np.abs(beta).max()
    for n in range(problem.samples):
        events = np.array([c.mu for c in found.changes if c.sample == n])
        for k in range(len(mus) - 1):
            if not ((events <= mus[k]) & (events >= mus[k + 1])).any():
                assert found.support[k, n] == found.support[k + 1, n]
                assert (steps[k, n] > 0) == found.support[k, n]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(points, st.sampled_from([2, 3]))
def test_it_is_the_q_path_until_a_weight_of_that_falls(problem, depth):
    mus = np.geomspace(10, 1e-3, 41)
    ratchet, q = both(problem, depth, mus)
    falls = np.diff(q.dual, axis=0).min(axis=1) < -1e-9 * q.dual.max()
    until = int(np.argmax(falls)) if falls.any() else len(mus)
    assert angle(ratchet.beta, q.beta)[:until].max(initial=0.0) < 1e-7
    if falls.any():
        assert angle(ratchet.beta, q.beta).max() > 1e-7


def test_the_change_of_m_f3d_is_where_the_q_path_has_it():
    ratchet, q = both(three_points("3d"), 2, np.geomspace(1, 1e-3, 5))
    first = q.changes[0]
    assert [(c.sample, c.enters) for c in ratchet.changes] == [(0, True), (1, False)]
    assert ratchet.changes[0].mu == pytest.approx(first.mu, rel=1e-9)
    assert first.mu == pytest.approx(0.0366, rel=0.01)
    assert "0 enters at mu = 0.0365146" in str(ratchet)


def test_a_support_that_never_changes_is_the_q_path_down_to_tiny_mu():
    ratchet, q = both(three_points("3b"), 2, np.geomspace(1e8, 1e-8, 17))
    assert not ratchet.changes
    assert angle(ratchet.beta, q.beta).max() < 1e-9


def test_large_mu_is_the_l2_margin_and_the_order_of_mus_does_not_matter():
    problem = three_points("4a")
    mus = np.array([1e8, 1e-3, 1.0, 1e-6, 30.0])
    mixed = ratchet_path(problem.X, problem.y, 3, mus=mus)
    order = np.argsort(-mus)
    falling = ratchet_path(problem.X, problem.y, 3, mus=mus[order])
    assert np.allclose(mixed.beta[order], falling.beta, rtol=1e-10, atol=1e-15)
    assert angle(mixed.beta[0], max_margin(problem.X, problem.y, L2()).beta) < 1e-7


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.integers(2, 5), st.integers(0, 10_000))
def test_whose_weights_grow_agrees_with_trying_every_set(N, d, seed):
    Z = separable_points(N, d, margin=0.2, seed=seed).signed_rows
    slope = 10 ** np.random.default_rng(seed).uniform(-2, 2, d)
    G = Z * np.sqrt(slope)
    right = []
    for size in range(1, min(N, d) + 1):
        for rows in map(list, itertools.combinations(range(N), size)):
            x = np.linalg.solve(G[rows] @ G[rows].T, np.ones(size))
            if x.min() > 0 and (G @ (x @ G[rows])).min() > 1 - 1e-9:
                right.append(rows)
                assert np.allclose(solve_gram(G[rows], np.ones(size)), x, rtol=1e-6)
    assert right == [np.flatnonzero(growing(Z, slope, np.ones(N, bool))).tolist()]


def test_doubled_points_change_nothing():
    problem, mus = three_points("3d"), np.geomspace(1, 1e-4, 9)
    once = ratchet_path(problem.X, problem.y, mus=mus)
    twice = ratchet_path(np.tile(problem.X, (2, 1)), np.tile(problem.y, 2), mus=mus)
    assert angle(once.beta, twice.beta).max() < 1e-7


def test_many_points_in_many_dimensions_are_followed():
    problem = separable_points(30, 60, margin=0.2, seed=1)
    found = ratchet_path(problem.X, problem.y, 4, mus=np.geomspace(1e2, 1e-6, 17))
    assert len(found.changes) > 5
    assert np.abs((found.beta @ problem.signed_rows.T).min(axis=1) - 1).max() < 1e-10


@pytest.mark.parametrize(
    ("X", "y", "options", "words"),
    [
        ([[1, 2]], [1], {"mus": [1.0, -1.0]}, "mus must be > 0, got -1.0"),
        ([[1, 2], [1, 2]], [1, -1], {"mus": [1.0]}, "not linearly separable"),
        ([[1, 2]], [1], {"mus": [1.0], "shape": [1, 1, 1]}, "3 coordinates"),
    ],
)
def test_wrong_input_is_refused_at_once(X, y, options, words):
    with pytest.raises(ValueError, match=words):
        ratchet_path(X, y, **options)


def test_a_path_that_cannot_go_on_says_so(monkeypatch):
    monkeypatch.setattr(ratchet, "CHANGES", 0)
    problem = three_points("3d")
    with pytest.raises(NumericalError, match="changes of the support vectors"):
        ratchet_path(problem.X, problem.y, mus=[1.0, 1e-3])
    found = ratchet_path(problem.X, problem.y, mus=[1.0, 1e-3], throw=False)
    assert [o.kind for o in found.outcomes] == [Kind.SOLVED, Kind.STALLED]
    assert np.isfinite(found.beta[0]).all()
    assert np.isnan(found.beta[1]).all()
