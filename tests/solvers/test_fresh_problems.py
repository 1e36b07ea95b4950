"""Calls that fresh problems of the fuzzer found wrong or crashed."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import outcomes
import penchant
from fraction_walks import solve_exactly
from odd_problems import problem as odd_problem
from penchant import L1, L2
from penchant.lab import Kind
from penchant.regularizers import Lp


@pytest.mark.parametrize("distance", [1e-15, 1e-14, 1e-13, 1e-12])
def test_steps_of_a_matrix_keep_rows_that_nearly_depend_on_each_other(distance):
    """The move is orthogonal to both rows, and to what tells them apart, by fractions."""
    rng = np.random.default_rng(5)
    row, start = rng.normal(size=4), rng.normal(size=(2, 2))
    X = np.array([row, 1e3 * (row + distance * rng.normal(size=4))])
    flow = penchant.solvers.slow_flow(X, start, learning_rate=0.02, throw=False)
    first, second = ([Fraction(float(v)) for v in line] for line in X)
    share = product(second, first) / product(first, first)
    apart = [b - share * a for a, b in zip(first, second, strict=True)]
    move = [Fraction(float(v)) for v in flow.points[-1] - flow.points[0]]
    size = float(max(map(abs, move)))
    assert size > 0.1
    for line in (first, apart):
        largest = max(map(abs, line))
        unit = [v / largest for v in line]
        assert abs(float(product(unit, move))) < 1e-10 * size


def product(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


ROW = np.array([0.52260494, -0.18771969, -0.45223954], dtype=np.float32)
NEAR = np.array([0.522605, -0.18771954, -0.4522396], dtype=np.float32)
OPPOSITE = np.array([ROW, NEAR, ROW, ROW]), np.array([-1.0, 1.0, -1.0, 1.0])


def test_separation_of_one_point_with_both_labels_beside_a_near_one():
    X, y = OPPOSITE
    found = penchant.solvers.separation(X, y)
    assert not found.separable
    assert found.residual < 1e-6 * np.abs(X).max()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_paths_refuse_such_points_in_their_own_name(order):
    X, y = OPPOSITE[0][[0, 1, 3]][list(order)], OPPOSITE[1][[0, 1, 3]][list(order)]
    with pytest.raises(ValueError, match=r"^max_margin_path: .*opposite labels"):
        penchant.solvers.max_margin_path(X, y, 3, mus=[2.0, 1e-5])


def test_a_guess_of_the_wrong_sign_for_a_power_norm_raises_no_warning():
    """pytest turns warnings into errors."""
    first = np.array([1, 1, 0, 0, 1, 0, 0, 0, 1, 0], dtype=float)
    last = np.array([-1, -1, 1, 1, -1, 1, 1, 1, -1, -1], dtype=float)
    second = np.array([0, 0, 1, 1, 0, 1, 1, 1, 0, 0], dtype=float)
    X = np.array([first, second, -np.ones(10), last])
    norm = penchant.regularizers.Lp(1.5)
    found = penchant.max_margin(X, -np.ones(4), norm, throw=False)
    assert found.outcome.ok or found.outcome.kind is Kind.STALLED


def test_a_slope_that_cancels_is_computed_exactly():
    """The dual's terms are 1e6 times its slopes: float64 does not say how far it is off."""
    X = np.array(
        [
            [-5.1963343616405461e05, 1.7477460264127080e06, -2.0528138557479403e-07],
            [-2.1163252969178645e05, 1.0446764316634951e07, 3.6359310304527589e-07],
            [2.0707794583310012e05, -2.9600263890721472e06, 5.5708243620958953e-08],
        ]
    )
    y = np.array([5.6937580366125776e-15, 2.3189123964702510e-15, -2.2690066424443806e-15])
    q = penchant.Q(3, log_alpha=-3.7261025143635758)
    solution = penchant.interpolate(X, y, q)
    parts = [solution.dual, *solution.dual_rest]
    rows = [[Fraction(float(v)) for v in row] for row in X]
    dual = [sum((Fraction(float(part[n])) for part in parts), Fraction(0)) for n in range(3)]
    slopes = [float(product(dual, list(column))) for column in zip(*rows, strict=True)]
    # b(s) = mu ((1-s)^-3 - (1+s)^-3) = 6 mu s for slopes as small as these
    image = 6 * np.exp(3 * q.log_alpha + solution.log_dual_unit) * np.array(slopes)
    size = np.abs(solution.beta).max()
    np.testing.assert_allclose(image / size, solution.beta / size, rtol=0, atol=1e-8)


def test_a_predictor_below_the_digits_of_float64_is_out_of_range():
    X = np.ldexp(np.random.default_rng(2).normal(size=(2, 9)), 787)
    cube = penchant.derive(lambda w: w**3, start=0.01)
    found = penchant.interpolate(X, np.array([6.4e-79, 1.8e-79]), cube, throw=False)
    assert found.outcome.kind is Kind.OUT_OF_RANGE


def test_a_row_of_small_terms_is_met_in_its_own_terms():
    X = np.zeros((5, 10))
    X[0, [4, 6]], X[1, [0, 6]] = [2.73586076e-07, 1.07318103], [3.46097732e-03, 1.07318103]
    X[2, [2, 8]], X[3, [1, 6]] = [9.52427312e06, 1.88295665e-03], [7.24259765e-02, 1.07318103]
    X[4, [0, 2]] = [3.46097732e-03, 9.52427312e06]
    y = np.array([-5.28242532e36, 0.0, 0.0, -1.39840747e42, 0.0])
    shape = [2.3018463, 1.6613066, 1.9025893, 0.301189, 1.2019545, 0.7682495, 1.5599082, 3.0047939,
             2.3835346, 1.5757411]  # fmt: skip
    beta = penchant.interpolate(X, y, penchant.Q(30, log_alpha=-300, shape=shape)).beta
    assert (np.abs(X @ beta - y) <= 1e-9 * (np.abs(X) @ np.abs(beta) + np.abs(y))).all()


def test_dependent_rows_that_deceive_an_estimate_of_their_condition():
    """LAPACK's estimate of the Gram matrix is 0.009 here, but the rows are those of a cycle."""
    pairs = [(0, 2), (6, 8), (7, 7), (6, 9), (2, 8), (0, 6), (3, 4), (1, 4), (2, 6), (3, 9)]
    X = np.zeros((10, 10))
    for row, pair in zip(X, pairs, strict=True):
        row[list(pair)] = 1.0
    y = -np.array([1.0, 0, 0, 2, 1, 0, 2, 0, 1, 4])
    solution = penchant.interpolate(X, y, penchant.L2())
    # the free column is not used, and the others are determined
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    assert solution.beta[5] == 0
    np.testing.assert_allclose(solution.beta, exact, rtol=0, atol=1e-12)


def exactly_solved(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    rows = [[Fraction(float(v)) for v in row] for row in X]
    return np.array([float(v) for v in solve_exactly(rows, [Fraction(float(v)) for v in y]) or ()])


def test_the_only_predictor_that_fits_is_found_in_columns_of_many_units():
    """A row in float64 does not show the least column; the answer is that of fractions."""
    case = odd_problem(827)
    solution = penchant.interpolate(case.X, case.y, case.regularizer)
    exact = exactly_solved(case.X, case.y)
    np.testing.assert_allclose(solution.beta, exact, rtol=0, atol=1e-7 * np.abs(exact).max())


def test_the_only_predictor_that_fits_may_have_a_zero_under_a_power_norm():
    rng = np.random.default_rng(13452)
    X = rng.normal(size=(6, 6))
    for beta in ([0.0, -0.5, -0.25, 0.25, 0.0, 0.5], [1.0, 0, 0, 0, 0, 0], [0, -2.0, 1, 0, 0, 1]):
        solution = penchant.interpolate(X, X @ beta, penchant.regularizers.Lp(1.5))
        np.testing.assert_allclose(solution.beta, beta, rtol=0, atol=1e-7)


def test_softness_over_decades_does_not_hide_what_the_rows_determine():
    """At depth 30 the weights of b differ by 50 decades; the rows give the softest coordinates."""
    case = odd_problem(237)
    solution = penchant.interpolate(case.X, case.y, case.regularizer)
    assert solution.error < 1e-8
    left = np.abs(case.X @ solution.beta - case.y)
    assert (left <= 1e-12 * (np.abs(case.X) @ np.abs(solution.beta))).all()


SMALL_ROWS = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])


def tiny_targets(power: int) -> np.ndarray:
    return np.array([1.0, -2.0]) * 10.0**power


@pytest.mark.parametrize("power", [-165, -200, -290])
def test_a_flow_fits_targets_whose_squares_are_below_float64(power):
    y = tiny_targets(power)
    problem, net = penchant.Regression(SMALL_ROWS, y), penchant.DiagonalNet(2, alpha=0.5)
    path = penchant.train(net, problem, penchant.ParameterFlow())
    assert path.outcome.ok
    left = SMALL_ROWS @ path.predictor - y
    assert np.abs(left).max() <= 1e-8 * np.abs(y).max()


@pytest.mark.parametrize("power", [-298, -309, -323])
def test_a_flow_refuses_targets_whose_accuracy_is_below_float64(power):
    problem = penchant.Regression(SMALL_ROWS, tiny_targets(power))
    net = penchant.DiagonalNet(2, alpha=0.5)
    with pytest.raises(ValueError, match=r"^ParameterFlow: the squares or products"):
        penchant.train(net, problem, penchant.ParameterFlow())


@pytest.mark.parametrize("power", [-150, -165, -200, -309])
def test_a_matrix_flow_does_not_call_a_start_solved_that_fits_nothing(power):
    matrices = np.array([np.diag(row) for row in SMALL_ROWS])
    problem = penchant.problems.Sensing(matrices, tiny_targets(power))
    model = penchant.models.DifferenceFactorization(alpha=0.5)
    flow = penchant.methods.MatrixFlow()
    if power < -160:
        with pytest.raises(ValueError, match="MatrixFlow: the squares or products"):
            penchant.train(model, problem, flow)
    else:
        path = penchant.train(model, problem, flow)
        assert not path.outcome.ok
        assert "hides targets" in path.outcome.sentence


def least_l1_norm(X: np.ndarray, y: np.ndarray) -> float:
    """The least norm of all vertices, in fractions."""
    rows = [[Fraction(float(v)) for v in row] for row in X]
    targets = [Fraction(float(v)) for v in y]
    sums = []
    for columns in itertools.combinations(range(X.shape[1]), len(X)):
        vertex = solve_exactly([[row[i] for i in columns] for row in rows], targets)
        if vertex is not None:
            sums.append(sum(map(abs, vertex)))
    return float(min(sums))


SMALL_TARGETS = odd_problem(4525, 679225088)  # the least norms fill a face of the large sizes


@pytest.mark.parametrize("columns", [range(10), range(9, -1, -1), [3, 8, 0, 5, 9, 1, 7, 2, 6, 4]])
def test_small_targets_beside_a_face_of_large_sizes_are_met(columns):
    X, y = SMALL_TARGETS.X[:, list(columns)], SMALL_TARGETS.y
    solution = penchant.interpolate(X, y, penchant.L1())
    assert solution.residual < 1e-7
    assert abs(np.abs(solution.beta).sum() / least_l1_norm(X, y) - 1) < 1e-12


def test_small_targets_that_are_missed_are_mended_or_not_called_solved(monkeypatch):
    """The solver is made to forget them; in units of the rows they are 1e-10 of the largest."""

    def forgotten(X, y, point):
        return point.beta, point.nu, point.active()

    monkeypatch.setattr(penchant.solvers.sparse, "with_small_sizes", forgotten)
    X, y = SMALL_TARGETS.X, SMALL_TARGETS.y
    solution = penchant.interpolate(X, y, penchant.L1(), throw=False)
    if solution.outcome.ok:
        assert solution.residual < 1e-7  # as without the change: rounding of the terms
        norm = np.abs(solution.beta).sum()
        assert abs(norm / least_l1_norm(X, y) - 1) <= solution.error + 1e-15
    monkeypatch.setattr(penchant.solvers.accuracy.constraints, "refitted", lambda *args: args[2])
    solution = penchant.interpolate(X, y, penchant.L1(), throw=False)
    assert solution.residual > 1e-3
    assert not solution.outcome.ok


def change_of_two_rows(Z: np.ndarray, depth: int, first: int, second: int) -> tuple[float, float]:
    """(mu, weight of the first) where the margin of the second falls to that of the first alone."""
    with mp.workdps(60):
        rows, p = [[mp.mpf(float(v)) for v in row] for row in Z], mp.mpf(depth) / (depth - 2)

        def margins(weight):
            W = [(1 - weight * v) ** -p - (1 + weight * v) ** -p for v in rows[first]]
            return mp.fdot(rows[first], W), mp.fdot(rows[second], W)

        def gap(weight):
            one, other = margins(weight)
            return other / one - 1

        most = 1 / max(abs(v) for v in rows[first])
        low, high = most / 1000, most * (1 - mp.mpf(10) ** -3)
        assert gap(low) > 0 > gap(high)
        weight = mp.findroot(gap, (low, high), solver="anderson", tol=1e-40)
        return float(1 / margins(weight)[0]), float(weight)


@pytest.mark.parametrize("distance", [1e-2, 1e-5, 1e-8, 1e-11, 1e-13])
def test_rows_that_nearly_agree_change_places_where_they_do(distance):
    """In float64 the margins of rows 1e-8 apart cross anywhere within a percent of the scale."""
    Z = np.array([[0.52514954, -0.52317581, -0.40683536, -1.71522024]] * 2)
    Z[0] += distance * np.array([0.58512094, 0.225918, -1.0, 0.27190866])
    mu, weight = change_of_two_rows(Z, 3, first=1, second=0)
    path = penchant.solvers.ratchet_path(Z, np.ones(2), 3, mus=[mu / 1.5])
    assert [(change.sample, change.enters) for change in path.changes][:1] == [(0, True)]
    assert abs(path.changes[0].mu / mu - 1) < 1e-8
    if not path.support[0, 1]:  # its weight rests where the other row took over
        assert abs(path.dual[0, 1] / weight - 1) < 1e-8


@pytest.mark.parametrize("value", [1.0, -1.0, 0.25, -3.0])
def test_one_equal_entry_in_a_spectral_margin(value):
    """Rounding beside a slack that vanishes took the only weight below zero: 0/0."""
    X = np.full((1, 9), value)
    found = penchant.max_margin(X, [1.0], penchant.regularizers.Spectral((3, 3)))
    assert found.value == pytest.approx(1 / (3 * abs(value)), rel=1e-8)
    assert found.dual == pytest.approx([found.value], rel=1e-8)


def test_a_dual_that_crosses_from_bound_to_bound_has_the_rounding_of_its_way():
    """The pull of column 3 cancels to 5e-11 of its terms: float64 puts its second jump 5e-7 late.

    The times follow from least squares on one column each, in fractions.
    """
    X = np.array(
        [
            [
                -8.7068622435251883e-06,
                -0.20793858256023218,
                5.7084158002613253e-09,
                -3.6001621291026478,
            ],
            [
                -8.6366007466274316e-06,
                -0.20636741274890752,
                6.0050471342275417e-09,
                -3.5334514595687967,
            ],
            [
                -8.7068622435275821e-06,
                -0.20793858255993303,
                5.7084158002503569e-09,
                -3.6001621291151933,
            ],
        ]
    )
    y = np.array([0.05198029078183233, 0.05158753338559179, 0.05198029078175755])
    columns = [[Fraction(v) for v in column] for column in X.T.tolist()]
    left, s, times = [Fraction(v) for v in y.tolist()], Fraction(0), [Fraction(0)]
    target = left
    for jumping, watched in ((3, 1), (1, 3)):  # column 3 jumps, then 1, then 3 comes back
        pulls = {k: 4 * product(columns[k], left) for k in (1, 3)}
        if len(times) == 1:
            wait = 1 / abs(pulls[3])
            s = wait * pulls[1]
            times.append(wait)
        column = columns[jumping]
        share = product(column, target) / product(column, column)
        left = [t - share * v for t, v in zip(target, column, strict=True)]
        pull = 4 * product(columns[watched], left)
        end = Fraction(-1 if watched == 1 else 1)
        times.append(times[-1] + (end - (s if watched == 1 else -1)) / pull)
    jumps = penchant.solvers.saddles(X, y)
    assert jumps.tau[:4] == pytest.approx([float(t) for t in times], rel=1e-14)


def test_a_kernel_machine_whose_terms_cancel_reports_what_it_misses():
    """The terms are 4e10 times the targets: float64 products with the answer add 1e-6 to it."""
    sizes = [1.7141710392509291e-04, -2.0193158381914955e-05, -1426.5120551302484]
    X = np.outer([*sizes, 7095846.8709452236], np.ones(4))
    X[:2] *= [1, -1, 1, -1]
    X[2] *= [1, 1, -1, -1]
    X[3] *= [1, 1, 1, -1]
    y = [0.99999999997956546, -2.4072120644944853e-12, -1.7005348862770181e-4, -0.84589086424651427]
    y[1] = y[0] * sizes[1] / sizes[0]
    net = penchant.DiagonalNet(log_alpha=-300.0)
    machine = penchant.measures.kernel_machine(net, penchant.Regression(X, y))
    beta = [Fraction(v) for v in machine.predictor.tolist()]
    rows = zip(X.tolist(), y, strict=True)
    missed = [float(Fraction(t) - product([Fraction(v) for v in row], beta)) for row, t in rows]
    assert machine.residual == pytest.approx(np.abs(missed).max(), abs=1e-16)
    terms = np.abs(X) @ np.abs(machine.predictor)
    assert (np.abs(missed) <= np.finfo(float).eps * terms).all()  # float64 rounds the predictor


def test_a_kernel_machine_beyond_float64_says_so():
    """The predictor overflows where the displacement, in a unit of its own, does not."""
    X = 1e-310 * np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    problem = penchant.Regression(X, [-0.15, 0.0, -1.15, -0.58])
    with pytest.raises(penchant.NumericalError, match=r"^kernel_machine: .*beyond float64"):
        penchant.measures.kernel_machine(penchant.DiagonalNet(log_alpha=200.0), problem)


LINEAR = penchant.FunctionModel(lambda w, x: x @ w, np.zeros(2))
NET = penchant.DiagonalNet(5, log_alpha=200.0)


@pytest.mark.parametrize("route", ["features", "kernel"])
@pytest.mark.parametrize("model", [NET, LINEAR], ids=["diagonal net", "function"])
@given(decades=st.floats(0, 6.5), seed=st.integers(0, 10**6))
@example(decades=0.0, seed=1131)  # a predictor that is small beside the targets
@settings(max_examples=25, deadline=None)
def test_least_squares_of_a_kernel_machine_are_as_far_off_as_it_says(model, route, decades, seed):
    """A kernel squares the condition of the features: its eigenvectors turned the misfit by 7e-5,
    and the error was said to be 1e-10.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3, 2)) * np.array([[1.0], [10.0**-decades], [10.0**-decades]])
    y = rng.normal(size=3)
    problem = penchant.Regression(X, y)
    machine = penchant.measures.kernel_machine(model, problem, route=route, throw=False)
    columns, targets = ([[Fraction(v) for v in c] for c in A.tolist()] for A in (X.T, y[None]))
    gram = [[product(a, b) for b in columns] for a in columns]
    right = [product(a, targets[0]) for a in columns]
    exact = np.array([float(v) for v in solve_exactly(gram, right)])
    move = machine.displacement if model is LINEAR else machine.predictor
    off = np.abs(move - exact).max() / np.abs(exact).max()
    assert off <= 2 * machine.error + 1e-15
    assert machine.outcome.ok == (machine.error <= 1e-7)
    if model is NET or decades < 3:
        assert machine.outcome.ok


@pytest.mark.parametrize("power", [0, 60])
def test_targets_below_float64_in_units_of_the_rows_are_out_of_range(power):
    """The predictor is 2^-1436; the targets vanish in units of the rows, and nothing was missed."""
    X, y = np.ldexp([[0.0, -1.0], [1.0, 0.0]], 956 + power), np.ldexp([1.0, -1.0], power - 480)
    regularizer = penchant.derive(lambda w: w**2, start=0.3)
    solution = penchant.interpolate(X, y, regularizer, throw=False)
    assert solution.outcome.kind is Kind.OUT_OF_RANGE
    assert penchant.interpolate(X, 0 * y, regularizer).outcome.ok


@pytest.mark.parametrize("power", [510, 523])
def test_lengths_of_active_rows_do_not_overflow(power):
    """The margins of a derived regularizer of large rows, against Q with the same scale."""
    Z = np.ldexp(np.random.default_rng(0).normal(size=(3, 10)), power)
    derived = penchant.max_margin(Z, np.ones(3), penchant.derive(lambda w: w**2, start=0.01))
    same = penchant.max_margin(Z, np.ones(3), penchant.Q(2, alpha=0.01))
    size = np.abs(same.beta).max()
    assert np.abs(derived.beta - same.beta).max() <= 1e-7 * size


@pytest.mark.parametrize(("name", "height"), [("max_margin_path", 1e-200), ("ratchet_path", 1e-20)])
def test_a_path_that_reaches_no_scale_is_a_record_unless_it_is_to_throw(name, height):
    """A tiny part of the points are their margins: that was raised, whatever `throw` said."""
    X, y = np.array([[1.0, 0.0, height], [-0.5, 0.5, 0.0], [-0.5, -0.5, 0.0]]), np.ones(3)
    call, mus = getattr(penchant.solvers, name), np.array([1.0, 1e-3])
    with pytest.raises(penchant.NumericalError, match=f"^{name}: stalled"):
        call(X, y, mus=mus, throw=True)
    path = call(X, y, mus=mus, throw=False)
    assert [outcome.kind for outcome in path.outcomes] == [Kind.STALLED] * 2
    assert path.beta.shape == path.dual.shape == (2, 3)
    assert np.isnan(path.beta).all()
    assert np.isnan(path.error).all()
    assert path.rows()  # the table of a notebook
    assert path.dataset.sizes["scale"] == 2
    late = call(X[:1], y[:1], mus=mus, throw=False, max_seconds=1e-9)
    assert all(outcome.kind is Kind.BUDGET_SPENT for outcome in late.outcomes)


NEARLY_INSEPARABLE = {
    "max_margin_path": lambda X, y: penchant.solvers.max_margin_path(X, y, mus=[1.0, 1e-3]),
    "ratchet_path": lambda X, y: penchant.solvers.ratchet_path(X, y, mus=[1.0], throw=False),
    "separation": penchant.solvers.separation,
    "stationary_points": lambda X, y: penchant.solvers.stationary_points(
        X, y, penchant.regularizers.Lp(0.5), starts=2
    ),
    "max_margin": lambda X, y: penchant.max_margin(
        X, y, penchant.regularizers.Spectral((1, 3)), throw=False
    ),
}


@pytest.mark.parametrize("name", NEARLY_INSEPARABLE)
@pytest.mark.parametrize(("height", "size"), [(1e-15, 1e-290), (1e-150, 1.0), (1e-150, 1e-150)])
def test_points_of_a_tiny_margin_overflow_without_a_warning(name, height, size):
    """A triangle around zero, lifted a little: duals of 1e300 overflowed, and the warning was raw.

    Whatever is solved has margins of one, or separates; the rest says that it failed.
    """
    X = size * np.array([[1.0, 0.0, height], [-0.5, 0.5, 0.0], [-0.5, -0.5, 0.0]])
    try:
        answer = NEARLY_INSEPARABLE[name](X, np.ones(3))
    except (penchant.NumericalError, ValueError) as reason:
        answer = str(reason)
    if isinstance(answer, str):
        assert answer.startswith(f"{name}: ")
        return
    if name == "separation":
        assert answer.separable == bool((X @ answer.direction > 0).all())
        assert answer.residual <= 1e-6 * size
        return
    several = answer if isinstance(answer, tuple) else (answer,)
    for one in several:
        outcomes = getattr(one, "outcomes", None) or [one.outcome]
        for outcome, beta in zip(outcomes, np.atleast_2d(one.beta), strict=True):
            assert not outcome.ok or (X @ beta).min() > 1 - 1e-9


@pytest.mark.parametrize("power", [50, 200, 300, 306, 308])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "regularizer", [L1(), L2(), penchant.Q(3, alpha=0.1), Lp(1.5)], ids=["L1", "L2", "Q", "Lp"]
)
def test_a_row_with_one_huge_entry_is_met_as_it_is_given(regularizer, sign, power):
    """In units of the rows its target is nothing beside the other, and it was missed by 105%.

    With 1e308 an exponent of two beyond float64 was a warning.
    """
    X, y = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, sign * 10.0**power]]), np.array([1.0, -2.0])
    solution = penchant.interpolate(X, y, regularizer)
    assert np.abs(X @ solution.beta - y).max() <= 1e-14
    assert solution.residual <= 1e-14
    # the others are those of the first row alone, of which the huge column takes no part
    alone = penchant.interpolate(X[:1, :2], y[:1], regularizer).beta
    assert np.abs(solution.beta[:2] - alone).max() <= 1e-14


def test_a_known_value_does_not_hide_a_coordinate_that_is_not():
    """Number 25292 of stream 833114779: the value is right to 7e-9, one coordinate of 2e-7 is not
    on the graph of the gradient.
    """
    case = outcomes.drawn(25292, 833114779)
    solution = penchant.interpolate(case.X, case.y, case.regularizer, throw=False)
    assert solution.kkt > 1e-7
    assert solution.certificate.part == "value"
    assert not solution.outcome.ok
    assert solution.error >= solution.kkt
