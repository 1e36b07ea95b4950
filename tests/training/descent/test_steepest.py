"""Steepest descent in a norm, step by step against NumPy; Adam without epsilon."""

import numpy as np
import pytest

from penchant import L1, L2, Adam, Classification, GradientDescent, Q, Steps, train
from penchant.methods import Muon, SignDescent, SteepestDescent
from penchant.models import LinearPredictor, TokenMLP
from penchant.problems import modular_arithmetic, separable_points
from penchant.regularizers import Linf, Nuclear, Spectral
from refusals import refusals

PROBLEM = separable_points(7, 6, margin=0.3, seed=2)
LINE = LinearPredictor(0.1)
SHAPE = (2, 3)
WEIGHTS = np.array([1.0, 2.0, 3.0, 0.5, 1.5, 4.0])


def loss_slope(w):
    Z = PROBLEM.signed_rows
    return -np.exp(-Z @ w) @ Z / len(Z)


def turned(g, sizes):
    U, s, Vt = np.linalg.svd(g.reshape(SHAPE), full_matrices=False)
    return ((U * sizes(s)) @ Vt).ravel()


DIRECTIONS = {
    Linf(): np.sign,
    L1(): lambda g: np.sign(g) * (np.abs(g) == np.abs(g).max()),
    L2(): lambda g: g / np.linalg.norm(g),
    L2(WEIGHTS): lambda g: (g / WEIGHTS) / np.sqrt(np.sum(g * g / WEIGHTS)),
    Spectral(SHAPE): lambda g: turned(g, np.ones_like),
    Nuclear(SHAPE): lambda g: turned(g, lambda s: 1.0 * (s == s.max())),
}


@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("norm", DIRECTIONS, ids=repr)
def test_steps_are_those_of_a_loop_in_numpy(norm, momentum):
    method = SteepestDescent(0.02, norm, momentum=momentum)
    path = train(LINE, PROBLEM, method, stop=Steps(60))
    w, mean = np.full(6, 0.1), np.zeros(6)
    for _ in range(60):
        mean = momentum * mean + (1 - momentum) * loss_slope(w)
        w = w - 0.02 * DIRECTIONS[norm](mean)
    np.testing.assert_allclose(path.predictor, w, atol=1e-10)
    assert path.t == pytest.approx(60 * 0.02)


@pytest.mark.parametrize("norm", DIRECTIONS, ids=repr)
def test_the_direction_has_norm_one_and_no_other_falls_more(norm):
    g, rng = loss_slope(np.full(6, 0.1)), np.random.default_rng(0)
    norm = SteepestDescent(1.0, norm).norm
    best = norm.dual_norm.subgradient(g)
    assert norm.value(best) == pytest.approx(1.0, rel=1e-12)
    assert g @ best == pytest.approx(norm.dual_norm.value(g), rel=1e-12)
    for other in rng.standard_normal((100, 6)):
        assert g @ other / norm.value(other) <= g @ best * (1 + 1e-12)


def test_what_has_a_name_of_its_own():
    pairs = [
        (SignDescent(0.02), SteepestDescent(0.02, Linf())),
        (Muon(0.02, Spectral(SHAPE)), SteepestDescent(0.02, Spectral(SHAPE), momentum=0.95)),
        (GradientDescent(0.02), SteepestDescent(0.02, L2(), normalized=False)),
    ]
    for one, other in pairs:
        ends = [train(LINE, PROBLEM, method, stop=Steps(50)).predictor for method in (one, other)]
        np.testing.assert_allclose(*ends, rtol=1e-12)


def test_every_matrix_of_a_net_takes_a_step_of_its_own():
    problem, net = modular_arithmetic(5, fraction=0.6), TokenMLP(embedding=4, width=3)
    path = train(net, problem, Muon(0.01), stop=Steps(1))
    before = train(net, problem, Muon(1e-12), stop=Steps(1))
    import jax

    for new, old in zip(*map(jax.tree.leaves, (path.parameters, before.parameters)), strict=True):
        if new.ndim == 2:
            sizes = np.linalg.svd(new - old, compute_uv=False)
            np.testing.assert_allclose(sizes[sizes > 1e-6], 0.01, rtol=1e-3)


def test_adam_without_epsilon_is_blind_to_the_size_of_the_loss_and_to_empty_features():
    X = np.column_stack([PROBLEM.X, np.zeros(7)])  # the last feature has no gradient
    problem, start = Classification(X, PROBLEM.y), np.append(np.full(6, 80.0), 0.5)
    # at log losses below -20 epsilon = 1e-8 is no longer small
    start[:6] *= PROBLEM.truth
    ends = {}
    for epsilon in (0.0, 1e-8):
        method = Adam(0.01, square_decay=0.99, epsilon=epsilon)
        path = train(LinearPredictor(start), problem, method, stop=Steps(30))
        ends[epsilon] = path.predictor
    w, m, v = start[:6].copy(), np.zeros(6), np.zeros(6)
    for k in range(1, 31):
        g = loss_slope(w)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        w = w - 0.01 * (m / (1 - 0.9**k)) / np.sqrt(v / (1 - 0.99**k))
    np.testing.assert_allclose(ends[0.0], np.append(w, 0.5), rtol=1e-10)
    assert np.abs(ends[1e-8] - ends[0.0]).max() > 1e-3


def run(method, problem=PROBLEM):
    return train(LINE, problem, method, stop=Steps(1))


test_bad_input = refusals(
    (lambda: run(Muon(0.1)), r"Muon: Spectral\(\) acts on a matrix.*use Spectral\(shape="),
    (lambda: run(Muon(0.1, Spectral((2, 2)))), "Muon: .*4 entries but there are 6 parameters"),
    (lambda: run(SteepestDescent(0.1, L2([1.0, 2.0]))), "SteepestDescent: .*2 entries, got"),
    (lambda: Muon(0.1, Linf()), r"Muon: norm must be Spectral\(\), got Linf\(\)"),
    (lambda: SteepestDescent(0.1, Q(2, mu=1)), "SteepestDescent: expected a norm, L1"),
    (lambda: SteepestDescent(0.1, "l1"), "expected a norm.*got 'l1'"),
    (lambda: SteepestDescent(0.1, L1(), momentum=1.0), r"momentum must be in \[0, 1\)"),
    (lambda: SignDescent(np.nan), "learning_rate must be a finite number"),
    (lambda: SignDescent(0.1, normalized=1), "normalized must be True or False"),
)
