"""max_margin against general solvers, mpmath, its limits and its own symmetries."""

import cvxpy as cp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from oracle_q import inverse_gradient
from penchant import L1, L2, NumericalError, Q, derive, max_margin
from penchant.lab import Kind
from penchant.problems import majority, three_points, wide_margin
from penchant.regularizers import Lp, R
from penchant.solvers.margins import walk as margin_walk


def separable(seed):
    """(X, y) of a random kind: more points or more features, one class, equal points, a lattice."""
    rng = np.random.default_rng(seed)
    samples, dimension = int(rng.integers(1, 25)), int(rng.integers(1, 25))
    X = rng.normal(size=(samples, dimension))
    kind = seed % 5
    if kind == 1:
        X = np.abs(X)
        return X, np.ones(samples)
    if kind == 2:
        X = np.vstack([X, X[: samples // 2 + 1], (X[:1] + X[-1:]) / 2])
    if kind == 3:
        X = X * 10.0 ** rng.uniform(-1, 1, (samples, 1))
    if kind == 4:
        X = rng.integers(-2, 3, (2 * samples, dimension)).astype(float)
        X[~X.any(axis=1)] = 1
    y = np.where(X @ rng.normal(size=dimension) > 0, 1.0, -1.0)
    return X, y


def quadratic_program(Z):
    """The least |b| with Z b >= 1 by a general solver, in units of its own value."""
    rows = Z / np.linalg.norm(Z, axis=1)[:, None]
    c = 1 / np.linalg.norm(Z, axis=1)
    b = cp.Variable(Z.shape[1])
    unit = cp.Parameter(nonneg=True, value=1.0)
    program = cp.Problem(cp.Minimize(cp.sum_squares(b)), [rows @ b >= unit * c])
    program.solve(cp.CLARABEL)
    unit.value = 1 / np.linalg.norm(b.value)  # its tolerances are absolute
    program.solve(cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return b.value / unit.value


def l1_value(Z):
    """The least |b|_1 by HiGHS, with bounds t >= |b| instead of two parts."""
    d = Z.shape[1]
    one = np.eye(d)
    blocks = np.block([[-Z, np.zeros_like(Z)], [one, -one], [-one, -one]])
    right = np.concatenate([-np.ones(len(Z)), np.zeros(2 * d)])
    cost = np.concatenate([np.zeros(d), np.ones(d)])
    return linprog(cost, A_ub=blocks, b_ub=right, bounds=(None, None)).fun


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_200_random_problems(start):
    for seed in range(start, start + 50):
        X, y = separable(seed)
        Z = X * y[:, None]
        l2, l1 = max_margin(X, y, L2()), max_margin(X, y, L1())
        reference = quadratic_program(Z)
        assert np.linalg.norm(l2.beta - reference) <= 1e-7 * np.linalg.norm(reference), seed
        assert max(l2.residual, l2.kkt) < 1e-11, seed
        assert l1.value == pytest.approx(l1_value(Z), rel=1e-9), seed
        assert max(l1.residual, l1.kkt) < 1e-11, seed
        rng = np.random.default_rng(seed)
        q = Q(int(rng.choice([2, 3, 10, 30])), mu=float(10 ** rng.uniform(-8, 8)))
        found = max_margin(X, y, q)
        assert max(found.residual, found.kkt) < 1e-9, (seed, str(q))
        check_optimality(Z, q, found)


def check_optimality(Z, q, found):
    """The optimality conditions, not as the package computes them."""
    margins = Z @ found.beta
    assert margins.min() > 1 - 1e-9
    assert found.dual.min() >= 0
    assert np.all((margins < 1 + 1e-8) | (found.dual == 0))
    s = found.dual @ Z
    size = found.beta / np.exp(q.level)
    with np.errstate(over="ignore"):
        if q.depth == 2:
            there = np.arcsinh(size / 2)
        else:
            p, inside = q.depth / (q.depth - 2), np.clip(s, -1 + 1e-16, 1 - 1e-16)
            there, s = (1 - inside) ** -p - (1 + inside) ** -p, size
            loose = 1e-14 * p * ((1 - np.abs(inside)) ** (-p - 1))  # rounding of s, amplified
            assert np.all(np.abs(there - s) <= 1e-7 * np.abs(s).max() + loose)
            return
    np.testing.assert_allclose(s, there, rtol=0, atol=1e-8 * np.abs(s).max())


def test_the_check_of_optimality_can_fail():
    X, y = separable(0)
    Z, q = X * y[:, None], Q(3, mu=0.1)
    check_optimality(Z, q, max_margin(X, y, q))
    for wrong in (L2(), Q(3, mu=0.11), Q(4, mu=0.1)):
        with pytest.raises(AssertionError):
            check_optimality(Z, q, max_margin(X, y, wrong))


def mp_solution(Z, active, nu, depth, log_alpha):
    """(beta, nu) that solve Z_S beta = 1, beta = b(Z_S^T nu), to 40 digits: Newton from nu."""
    rows = mp.matrix(Z[active].tolist())
    dual = mp.matrix([mp.mpf(float(v)) for v in nu[active]])
    step = mp.mpf(10) ** -20
    for _ in range(60):
        s = list(rows.T * dual)
        low = mp.matrix(inverse_gradient([v - step for v in s], depth, log_alpha))
        high = mp.matrix(inverse_gradient([v + step for v in s], depth, log_alpha))
        slope = (high - low) / (2 * step)
        beta = mp.matrix(inverse_gradient(s, depth, log_alpha))
        misfit = rows * beta - mp.ones(len(active), 1)
        hessian = rows * mp.diag(list(slope)) * rows.T
        move = mp.lu_solve(hessian, misfit)
        dual -= move
        if max(abs(v) for v in misfit) < mp.mpf(10) ** -28:
            return beta, dual
    raise AssertionError("mpmath found no solution")


@pytest.mark.parametrize("depth", [2, 3, 10])
@pytest.mark.parametrize("log10_mu", [-8, -5, -2, 0, 3, 8])
def test_mpmath_agrees_to_ten_digits(depth, log10_mu):
    for X in (three_points("3d").X, np.random.default_rng(log10_mu + 9).uniform(-1, 2, (5, 4))):
        y = np.where(X.sum(axis=1) > 0, 1.0, -1.0)
        Z, q = X * y[:, None], Q(depth, mu=10.0**log10_mu)
        found = max_margin(X, y, q)
        active = np.flatnonzero(found.dual > 0)
        with mp.workdps(60):
            beta, nu = mp_solution(Z, active, found.dual, depth, q.log_alpha)
            assert min(nu) > 0
            assert min(mp.matrix(Z.tolist()) * beta) > 1 - mp.mpf(10) ** -20
        exact = np.array([float(v) for v in beta])
        assert np.abs(found.beta - exact).max() < 1e-10 * np.abs(exact).max()


@pytest.mark.parametrize(("depth", "mu"), [(2, 0.3), (2, 0.01), (4, 0.1)])
def test_a_conic_solver_agrees_at_moderate_scales(depth, mu):
    X, y = separable(10)
    Z, b = X * y[:, None], cp.Variable(X.shape[1])
    plus, minus = cp.Variable(X.shape[1]), cp.Variable(X.shape[1])
    limits = [b == plus - minus, Z @ b >= 1]
    if depth == 2:  # Q is the least relative entropy of a pair with product mu^2
        cost = cp.sum(-cp.entr(plus) - cp.entr(minus) - (1 + np.log(mu)) * (plus + minus))
    else:  # and at depth 4 the least squared way of sqrt(plus), sqrt(minus) from sqrt(mu)
        cost = cp.sum(plus + minus - 2 * np.sqrt(mu) * (cp.sqrt(plus) + cp.sqrt(minus)))
    cp.Problem(cp.Minimize(cost), limits).solve(
        cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    found = max_margin(X, y, Q(depth, mu=mu)).beta
    assert np.abs(found - b.value).max() < 1e-5 * np.abs(found).max()
    other = max_margin(X, y, Q(depth, mu=2 * mu)).beta
    assert np.abs(other - b.value).max() > 1e-3 * np.abs(found).max()  # control


def off(first, second):
    return np.linalg.norm(first / np.linalg.norm(first) - second / np.linalg.norm(second))


@pytest.mark.parametrize("depth", [2, 3, 10])
def test_the_limits_are_l2_and_l1(depth):
    X, y = separable(5)
    l2, l1 = max_margin(X, y, L2()).beta, max_margin(X, y, L1()).beta
    assert off(max_margin(X, y, Q(depth, mu=1e8)).beta, l2) < 1e-8
    assert off(max_margin(X, y, Q(depth, log_alpha=-400)).beta, l1) < 1e-8
    middle = max_margin(X, y, Q(depth, mu=0.1)).beta
    assert min(off(middle, l2), off(middle, l1)) > 1e-3
    assert off(l2, l1) > 1e-2


def test_weights_of_l2_are_a_change_of_units():
    X, y = separable(7)
    weights = np.random.default_rng(1).uniform(0.1, 10, X.shape[1])
    found = max_margin(X, y, L2(weights))
    scaled = max_margin(X / np.sqrt(weights), y, L2())
    np.testing.assert_allclose(found.beta, scaled.beta / np.sqrt(weights), rtol=1e-10)
    assert found.value == pytest.approx(scaled.value)
    wide = max_margin(X, y, Q(3, mu=1e8, shape=weights ** (-1 / 4)))  # weights 1/w0^(2D-2)
    np.testing.assert_allclose(wide.beta, found.beta, rtol=1e-6)


def test_other_regularizers_join():
    X, y = separable(12)
    Z = X * y[:, None]
    np.testing.assert_allclose(
        max_margin(X, y, Lp(2)).beta, max_margin(X, y, L2()).beta, rtol=1e-9, atol=1e-12
    )
    pair = [max_margin(X, y, reg).beta for reg in (R(mu=0.03), Q(4, mu=0.03))]
    np.testing.assert_allclose(*pair, rtol=1e-11)  # W: R of depth 2 is Q of depth 4
    cubic = max_margin(X, y, derive(lambda u: u**3, start=0.5)).beta
    np.testing.assert_allclose(cubic, max_margin(X, y, Q(3, alpha=0.5)).beta, rtol=1e-7, atol=1e-9)
    for p in (1.2, 3.0):
        b = cp.Variable(X.shape[1])
        cp.Problem(cp.Minimize(cp.pnorm(b, p)), [Z @ b >= 1]).solve(cp.CLARABEL)
        found = max_margin(X, y, Lp(p))
        assert found.kkt < 1e-9
        assert found.value == pytest.approx(np.sum(np.abs(b.value) ** p) / p, rel=1e-6)


def test_a_face_of_l1_solutions_is_named_and_its_middle_returned():
    points = three_points("3c")
    found = max_margin(points.X, points.y, L1())
    assert found.outcome.kind is Kind.NOT_UNIQUE
    np.testing.assert_allclose(found.beta, [0.5, 0.5, 0], atol=1e-12)
    assert max(found.kkt, found.residual) < 1e-12
    near = max_margin(points.X, points.y, Q(2, log_alpha=-200)).beta
    np.testing.assert_allclose(near, found.beta, atol=1e-10)
    alone = three_points("3d")  # control: a vertex
    assert max_margin(alone.X, alone.y, L1()).outcome.kind is Kind.SOLVED


def test_the_known_points_of_the_three_point_sets():
    l1 = {"3b": (2 / 3, 0, 0), "3d": (10 / 33, 0, 10 / 33)}
    for name, beta in l1.items():
        points = three_points(name)
        np.testing.assert_allclose(max_margin(points.X, points.y, L1()).beta, beta, atol=1e-14)
    points = three_points("4a")
    best = max_margin(points.X, points.y, Lp(2 / 3))
    np.testing.assert_allclose(best.beta, [0, 1 / 1.4, 0], atol=1e-14)
    assert "not proven" in best.outcome.sentence


# ---- many more features than points ----


def wide(seed):
    """(X, y) with 5 to 30 features for each point: Gaussian, +-1, small integers, copies."""
    rng = np.random.default_rng(seed)
    samples = int(rng.integers(2, 30))
    shape = samples, samples * int(rng.integers(5, 30))
    kind = seed % 4
    X = rng.normal(size=shape) if kind in (0, 3) else rng.choice([-1.0, 1.0], shape)
    if kind == 2:
        X = rng.integers(-2, 3, shape).astype(float)
    if kind == 3:
        X = np.hstack([X, X[:, ::-1], 0 * X])
    truth = np.where(np.arange(X.shape[1]) < 3, 1.0, 0.0)  # an odd number: no tie at zero
    y = np.where(X @ truth > 0, 1.0, -1.0)
    return X, y


@settings(deadline=None, derandomize=True, max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_wide_l1_against_one_program_on_all_columns(seed):
    X, y = wide(seed)
    Z = X * y[:, None]
    found = max_margin(X, y, L1())
    whole = linprog(np.ones(2 * Z.shape[1]), A_ub=np.hstack([-Z, Z]), b_ub=-np.ones(len(Z)))
    assert found.value == pytest.approx(whole.fun, rel=1e-9)
    assert max(found.residual, found.kkt) < 1e-9
    # the same from scratch: a margin, and a dual vector that proves the value necessary
    assert (Z @ found.beta).min() > 1 - 1e-9
    assert np.abs(found.dual @ Z).max() < 1 + 1e-9
    assert found.dual.min() >= 0
    assert found.dual.sum() == pytest.approx(found.value, rel=1e-9)


@pytest.mark.parametrize("task", ["majority", "few", "wide"])
def test_the_first_columns_alone_do_not_do(task):
    problem = {"majority": majority(40, 400), "few": majority(14, 400, seed=1),
               "wide": wide_margin(20, 400, gamma=3.0)}[task]  # fmt: skip
    X, y = problem.X, problem.y
    best = max_margin(X, y, L1())
    assert best.value == pytest.approx(l1_value(problem.signed_rows), rel=1e-9)
    first = np.argsort(-np.abs(y @ X))[: 2 * problem.samples]  # the control: one round
    assert max_margin(X[:, first], y, L1()).value > best.value * (1 + 1e-3)


def test_where_margins_tie_the_dual_is_the_shortest():
    problem = majority(60, 600)
    Z = problem.signed_rows
    found = max_margin(problem.X, problem.y, L1())
    np.testing.assert_allclose(found.beta[:3], 1.0, rtol=1e-12)
    assert np.count_nonzero(found.beta) == 3
    assert np.sum(np.abs(found.dual @ Z) > 1 - 1e-9) > 3  # some columns had to be held
    nu = cp.Variable(60, nonneg=True)
    limits = [Z[:, :3].T @ nu == 1, cp.abs(Z.T @ nu) <= 1, nu[Z @ found.beta > 2] == 0]
    cp.Problem(cp.Minimize(cp.sum_squares(nu)), limits).solve(cp.CLARABEL)
    np.testing.assert_allclose(found.dual, nu.value, rtol=0, atol=1e-6)
    whole = linprog(np.ones(1200), A_ub=np.hstack([-Z, Z]), b_ub=-np.ones(60), method="highs-ds")
    assert np.linalg.norm(whole.ineqlin.marginals) > 1.001 * np.linalg.norm(found.dual)  # control


def test_wide_columns_that_span_nothing_at_first():
    X = np.zeros((3, 40))
    X[:, :30] = np.array([[9.0], [-9.0], [9.0]])  # the longest columns, all alike
    X[[0, 1, 2], [37, 38, 39]] = 1.0
    found = max_margin(X, np.ones(3), L1())
    assert found.value == pytest.approx(19 / 9, rel=1e-12)  # 1/9 of the copies, and 2 against them
    assert found.outcome.kind is Kind.NOT_UNIQUE
    np.testing.assert_allclose(found.beta[:30], found.beta[0], rtol=1e-9)  # the middle is even


@pytest.mark.parametrize("weighted", [False, True])
@settings(deadline=None, derandomize=True, max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_wide_l2_against_its_gram_matrix(weighted, seed):
    X, y = wide(seed)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.01, 100, X.shape[1]) if weighted else np.ones(X.shape[1])
    found = max_margin(X, y, L2(weights) if weighted else L2())
    Z = X * y[:, None]
    assert max(found.residual, found.kkt) < 1e-12
    assert (Z @ found.beta).min() > 1 - 1e-12
    np.testing.assert_allclose(
        found.beta, (found.dual @ Z) / (2 * weights), rtol=0, atol=1e-12 * np.abs(found.beta).max()
    )
    K = (Z / weights) @ Z.T  # the dual: max sum(nu) - nu K nu / 4 over nu >= 0
    nu = cp.Variable(len(Z), nonneg=True)
    root = np.linalg.qr((Z / np.sqrt(weights)).T, mode="r")
    unit = 1 / np.diag(K).max()
    dual = cp.sum(nu) - cp.sum_squares(np.sqrt(unit) * root @ nu) / 4
    best = cp.Problem(cp.Maximize(dual)).solve(cp.CLARABEL) * unit
    assert found.dual.sum() / 2 == pytest.approx(best, rel=1e-6)
    other = max_margin(X, y, L2(weights + np.arange(len(weights)))).beta  # the control
    assert np.abs(other - found.beta).max() > 1e-3 * np.abs(found.beta).max()


REGULARIZERS = {
    "L2": lambda t: L2(),
    "L1": lambda t: L1(),
    "Q2": lambda t: Q(2, mu=0.05 / t),
    "Q3": lambda t: Q(3, mu=0.001 / t),
    "Q10": lambda t: Q(10, mu=0.3 / t),
}


@pytest.mark.parametrize("name", REGULARIZERS)
@settings(deadline=None, derandomize=True, max_examples=12)
@given(seed=st.integers(0, 2000), power=st.integers(-6, 6))
def test_symmetries(name, seed, power):
    X, y = separable(seed)
    reg, t = REGULARIZERS[name], 10.0**power
    found = max_margin(X, y, reg(1.0))
    tolerance = {"rtol": 0, "atol": 1e-8 * np.abs(found.beta).max()}
    if found.outcome.kind is Kind.NOT_UNIQUE:
        assert max_margin(t * X, y, reg(t)).value * t == pytest.approx(found.value)
        return
    # Q of t beta at t mu is t Q, so points t times as far have the answer 1/t at mu/t
    np.testing.assert_allclose(t * max_margin(t * X, y, reg(t)).beta, found.beta, **tolerance)
    order = np.random.default_rng(seed).permutation(len(X))
    again = np.concatenate([order, order[:3], order[:1]])
    np.testing.assert_allclose(
        max_margin(X[again], y[again], reg(1.0)).beta, found.beta, **tolerance
    )
    np.testing.assert_allclose(max_margin(-X, -y, reg(1.0)).beta, found.beta, **tolerance)
    turned = max_margin(-X, y, reg(1.0)).beta
    np.testing.assert_allclose(turned, -found.beta, **tolerance)


@pytest.mark.parametrize(
    ("X", "y", "reg", "sentence"),
    [
        ([[1.0, 2.0]], [0], L2(), "labels must be -1 and .1, got 0 and 1"),
        ([[1.0, 2.0]], [2], L2(), "labels must be"),
        ([[1.0, 2.0]], [1, 1], L2(), "1 rows but y has 2 entries"),
        ([[1.0, 2.0]], [1], L2([1, 2, 3]), "3 coordinates, but X has 2 columns"),
        ([[1.0, 2.0]], [1], "l2", "expected a regularizer"),
        ([[1.0, 2.0], [0.0, 0.0]], [1, -1], Q(2, mu=1), "row 1 of X is zero"),
        ([[1.0, 2.0], [2.0, 4.0]], [1, -1], Q(3, mu=1), "rows 0 and 1 are the same point"),
        ([[1.0], [-1.0]], [1, 1], L1(), "not linearly separable"),
        ([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]], [1, 1, 1], L2(), "a convex combination of 3"),
        ([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]], [1, 1, 1], Lp(0.5), "not linearly separable"),
    ],
)
def test_wrong_input(X, y, reg, sentence):
    with pytest.raises(ValueError, match=sentence):
        max_margin(X, y, reg)


def test_a_numerical_failure_is_raised_or_returned(monkeypatch):
    monkeypatch.setattr(margin_walk, "FACTORIZATIONS", 1)
    X, y, q = [[1.0, 2.0, 0.5], [-1.0, 3.0, 1.0]], [1, 1], Q(3, log_alpha=-9.0)
    with pytest.raises(NumericalError, match="max_margin: stalled: spent"):
        max_margin(X, y, q)
    found = max_margin(X, y, q, throw=False)
    assert not found.outcome.ok
    assert np.isnan(found.beta).all()


def test_entries_that_a_linear_program_takes_for_zero():
    X, y = [[1.0, 1e-10], [-1.0, 1e-10]], [1, 1]
    for regularizer in (L1(), Q(2, mu=1)):
        found = max_margin(X, y, regularizer)
        assert found.kkt < 1e-12
        assert found.beta == pytest.approx([0.0, 1e10])


def test_the_dual_of_a_huge_row_is_solved_in_a_unit_of_its_own():
    X, y = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 1e308]]), np.array([1.0, -1.0])
    solution = max_margin(X, y, L2())
    # the huge row is met by far, so that the first alone decides
    np.testing.assert_allclose(solution.beta, X[0] / 6, rtol=1e-12)
    np.testing.assert_allclose(solution.dual, [1 / 3, 0], rtol=1e-12)
