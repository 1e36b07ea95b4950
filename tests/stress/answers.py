"""Judges the answers of odd calls by other routes: fractions, 60 digits, enumeration, duality.

Nothing of the package's formulas is used, with one exception: the ends of flows and of the nuclear
slow flow are compared with `interpolate`, after its answer has passed the judge in 60 digits.
"""

from __future__ import annotations

import itertools
import types
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
from mpmath import mpf
from scipy.optimize import nnls

import judge
import penchant
from fraction_walks import (
    beyond,
    dot,
    exact_rows,
    orthogonal,
    solve_exactly,
    walk_saddles,
    walk_slow_flow,
)
from odd_problems import Problem, rank, unclear
from penchant import Outcome
from penchant.lab import Kind

Verdict = tuple[str, str]  # one of outcomes.OUTCOMES, and why
RIGHT = 1e-7
LARGEST, SMALLEST = 1e307, 1e-290
GOOD: Verdict = ("solved and right", "")


def verdict(text: str) -> Verdict:
    return ("wrong", text) if text else GOOD


def failed(outcome: Outcome, beyond_float64: bool = False) -> Verdict | None:
    """The verdict on an outcome that is a failure, None on one that is none."""
    if outcome.ok:
        return None
    if outcome.kind is Kind.OUT_OF_RANGE:
        return ("refused" if beyond_float64 else "wrong"), outcome.sentence
    if outcome.kind is Kind.APPROXIMATE:
        return "approximate", outcome.sentence
    return "stalled", str(outcome)


def worst(verdicts: list[Verdict]) -> Verdict:
    """The worst of several, in the order of the table."""
    order = ["solved and right", "refused", "approximate", "stalled", "wrong"]
    return max(verdicts, key=lambda v: order.index(v[0]))


def outside(numbers: Any) -> bool:
    """Whether float64 does not hold some of these fractions."""
    sizes = [abs(v) for row in numbers for v in row if v]
    return any(v > LARGEST or v < SMALLEST for v in sizes)


def separable(X: np.ndarray, y: np.ndarray) -> bool:
    """Whether some plane separates the points, exactly where HiGHS gives a direction."""
    return judge.separable(problem_of(X, y, penchant.L2(), "max_margin"))


def clearly_separable(X: np.ndarray, y: np.ndarray) -> bool:
    """The same beyond what rounding of features or rows may change."""
    Z = np.asarray(X, dtype=float) * y[:, None]
    sizes = np.abs(Z).max(axis=1)
    return bool((sizes > 1e-300).all()) and separable(X, y)


def problem_of(X: np.ndarray, y: np.ndarray, regularizer: Any, verb: str) -> Problem:
    return Problem(0, verb, X, y, regularizer, "", None)


# Walks in fractions


def of_saddles(X: np.ndarray, y: np.ndarray, answer: Any) -> Verdict:
    """The list of jumps against a walk in fractions over columns that differ."""
    X = np.asarray(X, dtype=float)
    heads = [next((v for v in column if v), 1.0) for column in X.T]
    signs = np.sign(heads)
    columns, share = np.unique(X * signs, axis=1, return_inverse=True)
    share = share.ravel()
    times, points = walk_saddles(columns, y)
    count = np.bincount(share)
    points = [[row[k] / int(count[k]) * int(sign) for k, sign in zip(share, signs, strict=True)]
              for row in points]  # fmt: skip
    if (end := failed(answer.outcome, outside([times, *points]))) is not None:
        return end
    if answer.outcome.kind is Kind.NOT_UNIQUE:
        return verdict(not_least_squares(X, y, answer.end))
    scales = [max(abs(row[j]) for row in points) for j in range(X.shape[1])]
    scales = [max(*pair) for pair in zip(scales, unseen(X, y, points), strict=True)]
    late = next((k for k, row in enumerate(points) if meets(X, y, row)), len(points) - 1)
    return verdict(other_walk(answer, times, points, scales, late))


def meets(X: np.ndarray, y: np.ndarray, beta: list[Fraction]) -> bool:
    """Whether every row is met to the rounding of its terms: what follows only fits rounding."""
    size = [abs(b) for b in beta]
    for row, target in zip(exact_rows(X), map(Fraction, map(float, y)), strict=True):
        terms = abs(target) + dot([abs(v) for v in row], size)
        if abs(target - dot(row, beta)) > Fraction(1e-12) * terms:
            return False
    return True


def unseen(X: np.ndarray, y: np.ndarray, points: list) -> list[Fraction]:
    """1e7 times the weights that move every row by rounding of its terms: labels have no more.

    A row whose terms are all zero has no rounding of its own.
    """
    rows, sizes = (
        exact_rows(np.abs(X)),
        [max(map(abs, column)) for column in zip(*points, strict=True)],
    )
    terms = [abs(Fraction(float(t))) + dot(row, sizes) for row, t in zip(rows, y, strict=True)]
    return [
        min(
            (t / row[j] for row, t in zip(rows, terms, strict=True) if t and row[j]),
            default=Fraction(0),
        )
        * Fraction(1e-13)
        / Fraction(RIGHT)
        for j in range(X.shape[1])
    ]


def not_least_squares(X: np.ndarray, y: np.ndarray, beta: np.ndarray) -> str:
    """By how much the gradient of the sum of squares is off zero, relative to its terms."""
    rows, b = exact_rows(X), [Fraction(float(v)) for v in beta]
    targets = [Fraction(float(v)) for v in y]
    left = [t - dot(row, b) for row, t in zip(rows, targets, strict=True)]
    terms = [abs(t) + dot([abs(v) for v in row], [abs(v) for v in b])
             for row, t in zip(rows, targets, strict=True)]  # fmt: skip
    for j in range(len(b)):
        column = [row[j] for row in rows]
        size = dot([abs(v) for v in column], terms)
        if abs(dot(column, left)) > Fraction(RIGHT) * size:
            return f"the end still falls along {j}"
    return ""


def of_slow_flow(X: np.ndarray, start: np.ndarray, answer: Any) -> Verdict:
    times, points = walk_slow_flow(np.asarray(X, dtype=float), start)
    if (end := failed(answer.outcome, outside([times, *points]))) is not None:
        return end
    size = max((abs(v) for v in points[0]), default=Fraction(1)) or Fraction(1)
    if answer.outcome.kind is Kind.NOT_UNIQUE:
        return verdict(longer(X, answer.end, points, size))
    return verdict(other_walk(answer, times, points, [size] * len(points[0])))


def longer(X: np.ndarray, end: np.ndarray, points: list[list[Fraction]], size: Fraction) -> str:
    """Whether an end is longer than the exact one, or off the rows."""
    exact, least = [Fraction(float(v)) for v in end], sum(map(abs, points[-1]))
    if sum(map(abs, exact)) > least + Fraction(RIGHT) * size:
        return f"the end has the norm {float(sum(map(abs, exact)))}, least is {float(least)}"
    apart = [a - b for a, b in zip(exact, points[0], strict=True)]
    along = [a - b for a, b in zip(apart, beyond(orthogonal(exact_rows(X)), apart), strict=True)]
    off = max(map(abs, along)) > Fraction(RIGHT) * size
    return "the end leaves the rows" if off else ""


def other_walk(
    answer: Any, times: list, points: list, scales: list, late: int | None = None
) -> str:
    """Where a list of corners differs from the exact one.

    Corners closer than the tolerance, in time or in place, may be one: every corner must stand in
    the exact list, and every exact corner that stays longer and moves, up to the number `late`,
    must stand in the list.
    """
    if not (np.isfinite(answer.tau).all() and np.isfinite(answer.points).all()):
        return "a number is not finite"
    tolerance = Fraction(RIGHT)
    mine = [(Fraction(float(t)), [Fraction(float(v)) for v in row])
            for t, row in zip(answer.tau, answer.points, strict=True)]  # fmt: skip
    exact = list(zip(times, points, strict=True))

    def same(a: Any, b: Any) -> bool:
        return abs(a[0] - b[0]) <= tolerance * max(a[0], b[0]) and here(a, b)

    def here(a: Any, b: Any) -> bool:
        return all(abs(v - w) <= tolerance * size
                            for v, w, size in zip(a[1], b[1], scales, strict=True))  # fmt: skip

    def visible(corners: list, k: int) -> bool:
        if k and here(corners[k], corners[k - 1]):
            return False
        last = k + 1 == len(corners)
        return last or corners[k + 1][0] - corners[k][0] > tolerance * corners[k + 1][0]

    for one, other, what in ((mine, exact, "is not exact"), (exact, mine, "is missing")):
        for k, corner in enumerate(one):
            needed = one is mine or late is None or k <= late
            if needed and visible(one, k) and not any(same(corner, c) for c in other):
                return f"the corner {k} at {float(corner[0]):.6g} {what}"
    return ""


def of_nuclear_flow(X: np.ndarray, start: np.ndarray, rate: float, answer: Any) -> Verdict:
    """The rows are kept, and the norm falls to the least one but for steps of the rate."""
    if answer.outcome.kind not in (Kind.APPROXIMATE, Kind.SOLVED):
        return "stalled", str(answer.outcome)
    moved = exact_rows((answer.points - answer.points[0])[[-1]])[0]
    basis, size = orthogonal(exact_rows(X)), float(np.abs(start).max())
    along = [a - b for a, b in zip(moved, beyond(basis, moved), strict=True)]
    if max(map(abs, along)) > RIGHT * size:
        return "wrong", "the end leaves the rows"
    tensor = X.reshape(len(X), *start.shape)
    y = X @ start.ravel()
    norm = float(np.linalg.svd(answer.end.reshape(start.shape), compute_uv=False).sum())
    if unclear(X):  # whether a row is there is a matter of rounding
        return GOOD
    if not y.any():
        return verdict("" if norm <= 10 * rate else f"the end has the norm {norm}, least is 0")
    best = penchant.interpolate(tensor, y, penchant.regularizers.Nuclear(), throw=False)
    given = problem_of(tensor, y, penchant.regularizers.Nuclear(), "interpolate")
    if not best.outcome.ok or judge.wrong(given, best):
        return GOOD  # counted where it belongs
    off = norm - best.value
    return verdict("" if off <= 10 * rate else f"the norm is {norm}, least is {best.value}")


# Paths of solutions in 60 digits


def of_interpolations(
    X: np.ndarray, y: np.ndarray, depth: int, scales: list, answer: Any, solvable: bool
) -> Verdict:
    verdicts = []
    for scale, solution in zip(scales, answer, strict=True):
        case = problem_of(X, y, penchant.Q(depth, log_alpha=scale), "interpolate")
        end = by_outcome(case, solution.outcome)
        if solution.outcome.ok and not solvable:
            end = "wrong", "solved, but nothing fits these targets"
        verdicts.append(end or verdict(judge.wrong(case, solution)))
    return worst(verdicts)


def by_outcome(case: Problem, outcome: Outcome) -> Verdict | None:
    solve = penchant.max_margin if case.verb == "max_margin" else penchant.interpolate
    lost = outcome.kind is Kind.OUT_OF_RANGE and judge.out_of_range(case, solve)
    return failed(outcome, lost)


def of_margins(X: np.ndarray, y: np.ndarray, depth: int, mus: np.ndarray, answer: Any) -> Verdict:
    verdicts = []
    for k, mu in enumerate(mus):
        case = problem_of(X, y, penchant.Q(depth, mu=mu), "max_margin")
        solution = types.SimpleNamespace(
            **{name: getattr(answer, name)[k]
               for name in ("beta", "dual", "log_dual_unit", "value", "residual", "kkt")},
        )  # fmt: skip
        end = by_outcome(case, answer.outcomes[k])
        verdicts.append(end or verdict(judge.wrong(case, solution)))
    return worst(verdicts)


# The ratchet by its own conditions


def of_ratchet(X: np.ndarray, y: np.ndarray, depth: int, answer: Any) -> Verdict:
    """Between two changes the weights of a set grow, and the margins of this set are one.

    The conditions are looked at on a finer list of scales, which has every change and a scale
    between each two; together they determine the path.
    """
    # weights are products of numbers of the size of 1/X
    far = abs(int(np.frexp(np.abs(X).max())[1])) > 300
    for outcome in answer.outcomes:
        if not outcome.ok and far and "rescale X" in outcome.sentence:
            return "refused", outcome.sentence
        if (end := failed(outcome)) is not None:
            return end
    Z = np.asarray(X, dtype=float) * y[:, None]
    changes = (min(change.mu, 1e299) for change in answer.changes)
    corners = sorted({*answer.mus, *changes}, reverse=True)
    corners = [min(corners[0] * 1e3, 1e300), *corners]
    inner = [float(np.sqrt(a * b)) for a, b in itertools.pairwise(corners)]
    mus = sorted([*corners, *inner], reverse=True)
    fine = penchant.solvers.ratchet_path(X, y, depth, mus=mus, throw=False)
    for outcome in fine.outcomes:
        if (end := failed(outcome, far)) is not None:
            return end
    return verdict(
        off_its_conditions(Z, fine) or other_scales(answer, fine) or off_its_graph(Z, depth, answer)
    )


def off_its_conditions(Z: np.ndarray, fine: Any) -> str:
    """Which condition a path on corners and inner scales, one after the other, violates."""
    margins, size = fine.beta @ Z.T, np.abs(fine.dual).max()
    # rounding of a predictor moves a margin by the size of its terms, which may be 1e9 margins
    spare = RIGHT + float(judge.ROUNDING) * (np.abs(fine.beta) @ np.abs(Z).T)
    if (margins < 1 - spare).any() or fine.dual.min() < -RIGHT * size:
        return f"a margin is {margins.min():.8g}"
    if (fine.dual[0] * (margins[0] - 1)).max() > 1e-3 * fine.dual[0].max():
        return "the path does not begin at the l2 max margin"
    for k in range(1, len(fine.mus), 2):
        grow, span = fine.support[k], (k - 1, k, k + 1)
        apart = np.abs(margins[span, :][:, grow] - 1)
        if (apart > spare[span, :][:, grow]).any():
            return f"a weight grows at the margin 1 + {apart.max():.2g}"
        change = np.diff(fine.dual[span, :], axis=0)
        if np.abs(change[:, ~grow]).max(initial=0.0) > RIGHT * size:
            return "a weight that rests changes"
        if change.min() < -RIGHT * size:
            return "a weight falls"
    return ""


def other_scales(answer: Any, fine: Any) -> str:
    """Whether the finer list has other predictors at the same scales."""
    for mu, beta in zip(answer.mus, answer.beta, strict=True):
        again = fine.beta[list(fine.mus).index(mu)]
        if np.abs(beta - again).max() > RIGHT * np.abs(again).max():
            return f"at mu = {mu:.6g} a finer list gives another predictor"
    return ""


def off_its_graph(Z: np.ndarray, depth: int, answer: Any) -> str:
    with mp.workdps(judge.DIGITS):
        rows = [[mpf(float(v)) for v in row] for row in Z]
        for mu, beta, dual in zip(answer.mus, answer.beta, answer.dual, strict=True):
            b, nu = ([mpf(float(v)) for v in part] for part in (beta, dual))
            columns = list(zip(*rows, strict=True))
            s = [mp.fdot(nu, column) for column in columns]
            terms = max(mp.fsum(abs(n * x) for n, x in zip(nu, c, strict=True)) for c in columns)
            blur = [judge.ROUNDING * terms] * len(b)
            law = judge.law(penchant.Q(depth, mu=float(mu)), len(b))
            if text := judge.off_graph(law, b, s, blur):
                return f"mu = {mu:.6g}: {text}"
    return ""


# Ranks one after the other


def of_greedy_rank(problem: Any, known: Any, answer: Any) -> Verdict:
    """Closed forms where there are some, criticality of every point elsewhere."""
    if (end := failed(answer.outcome)) is not None:
        return end
    if (np.diff(answer.tau) < 0).any() or (np.diff(answer.loss) > 1e-9 * answer.loss[0]).any():
        return "wrong", "a time or a loss is out of order"
    if answer.outcome.kind is Kind.NOT_UNIQUE or known is None:
        return verdict(not_critical(problem, answer))
    if isinstance(known, tuple):
        X, y, basis = known
        times, points = walk_saddles(X, y)
        spectra = np.einsum("ij,nik,kj->nj", basis, answer.points, basis)
        as_saddles = types.SimpleNamespace(tau=answer.tau / 2, points=spectra)
        size = max(abs(v) for row in points for v in row)
        return verdict(other_walk(as_saddles, times, points, [size] * len(points[0])))
    U, sizes, Vt = np.linalg.svd(known, full_matrices=False)
    exact = np.array([(U[:, :k] * sizes[:k]) @ Vt[:k] for k in range(len(sizes) + 1)])
    if len(answer.points) != len(exact):
        return "wrong", f"{len(answer.points)} points for {len(sizes)} singular values"
    off = np.abs(answer.points - exact).max() / sizes[0]
    return verdict("" if off <= RIGHT else f"a point is {off:.2g} off")


def not_critical(problem: Any, answer: Any) -> str:
    """Whether training would not rest at a point, in 60 digits."""
    with mp.workdps(judge.DIGITS):
        A = [mp.matrix(m.tolist()) for m in np.asarray(problem.measurements, dtype=float)]
        for k, point in enumerate(answer.points):
            M = mp.matrix(point.tolist())
            left = [sum(a * m for a, m in zip(part, M, strict=True)) - mpf(float(t))
                    for part, t in zip(A, problem.y, strict=True)]  # fmt: skip
            zero = 0 * M
            G = sum((r * part for r, part in zip(left, A, strict=True)), zero)
            terms = sum((mp.norm(part) * (abs(mpf(float(t))) + mp.norm(part) * mp.norm(M))
                         for part, t in zip(A, problem.y, strict=True)), mpf(0))  # fmt: skip
            pulls = [G * M.T, G.T * M] if k + 1 < len(answer.points) else [G]
            size = terms * (mp.norm(M) if k + 1 < len(answer.points) else 1)
            if any(mp.norm(pull) > RIGHT * size for pull in pulls):
                return f"point {k} is not critical"
    return ""


# Vertices by enumeration


def of_local_points(X: np.ndarray, y: np.ndarray, p: float, answer: Any) -> Verdict:
    """Every point is one of the strict local minimisers that an enumeration finds."""
    Z = np.asarray(X, dtype=float) * y[:, None]
    if not answer:
        return "stalled", "no point was found"
    vertices = local_minimisers(Z, p)
    for point in answer:
        if not point.outcome.ok:
            return "wrong", "a failure is listed"
        size = np.abs(point.beta).max()
        apart = [np.abs(point.beta - v).max() / size for v in vertices]
        if not apart or min(apart) > RIGHT:
            return "wrong", f"{point.beta} is no local minimiser"
    values = [point.value for point in answer]
    return verdict("" if values == sorted(values) else "the best point is not the first")


def local_minimisers(Z: np.ndarray, p: float) -> list[np.ndarray]:
    """All vertices of {Z b >= 1} on their supports whose slope lies in the cone of their rows."""
    rows, found = exact_rows(Z), []
    samples, dimension = Z.shape
    for size in range(1, min(samples, dimension) + 1):
        for support, basis in itertools.product(
            itertools.combinations(range(dimension), size),
            itertools.combinations(range(samples), size),
        ):
            b = solve_exactly([[rows[n][i] for i in support] for n in basis], [Fraction(1)] * size)
            if b is None or not all(b):
                continue
            margins = [dot([row[i] for i in support], b) for row in rows]
            if min(margins) < 1:
                continue
            active = [n for n, margin in enumerate(margins) if margin == 1]
            beta = np.zeros(dimension)
            beta[list(support)] = [float(v) for v in b]
            if in_cone(Z[np.ix_(active, list(support))], beta[list(support)], p):
                found.append(beta)
    return found


def in_cone(rows: np.ndarray, b: np.ndarray, p: float) -> bool:
    """Whether the slope of |b|_p is a combination of rows with weights that are not negative."""
    slope = np.sign(b) * np.abs(b) ** (p - 1)
    units = np.abs(rows).max(axis=0)  # each coordinate in its own units
    slope = slope / units
    _, off = nnls((rows / units).T, slope / np.abs(slope).max())
    return bool(off < 1e-6)


# Kernel machines of diagonal nets: the tangent kernel is a multiple of X X^T


def of_kernel_interpolant(X: np.ndarray, y: np.ndarray, answer: Any) -> Verdict:
    """The shortest predictor of least squares, in fractions."""
    exact = shortest_least_squares(X, y)
    if (end := failed(answer.outcome, outside([exact]))) is not None:
        return end
    # data that fit, or rows that depend on each other, to rounding: floats do not say which
    fits = len(X) > rank(X) and any(meets(X, y, b) for b in (exact, fractions(answer.predictor)))
    if unclear(X) or fits:
        if not answer.residual < RIGHT:
            return verdict(f"misfit {answer.residual:.2g}")
        return verdict(too_long(X, answer.predictor))
    # where targets cancel, the predictor is known to the rounding of its terms
    largest, most = (Fraction(float(np.abs(np.asarray(v, dtype=float)).max())) for v in (X, y))
    return verdict(apart(answer.predictor, exact, most / (largest or 1) / 10**7))


def too_long(X: np.ndarray, beta: np.ndarray) -> str:
    """What a predictor has beside the span of the rows, if that is too much."""
    inside = fractions(beta)
    aside = max(map(abs, beyond(orthogonal(exact_rows(X)), inside)), default=Fraction(0))
    size = max(map(abs, inside), default=Fraction(0))
    return "" if aside <= Fraction(judge.FAR) * size else "the predictor is not the shortest"


def fractions(numbers: np.ndarray) -> list[Fraction]:
    return [Fraction(float(v)) for v in numbers]


def apart(beta: np.ndarray, exact: list[Fraction], least: Fraction) -> str:
    """The relative distance of a predictor from the exact one, if it is too far."""
    if not np.isfinite(beta).all():
        return "the predictor is not finite"
    size = max(*map(abs, exact), least)
    distance = max(abs(Fraction(float(b)) - e) for b, e in zip(beta, exact, strict=True))
    if distance <= Fraction(judge.FAR) * size:
        return ""
    return f"the predictor is {float(distance / size) if size else 'not'} off"


def shortest_least_squares(X: np.ndarray, y: np.ndarray) -> list[Fraction]:
    rows, targets = exact_rows(X), [Fraction(float(v)) for v in y]
    basis = orthogonal(rows)
    A = [[dot(row, b) for b in basis] for row in rows]
    columns = list(zip(*A, strict=True))
    gram = [[dot(p, q) for q in columns] for p in columns]
    weights = solve_exactly(gram, [dot(c, targets) for c in columns])
    assert weights is not None
    return [sum((w * b[i] for w, b in zip(weights, basis, strict=True)), Fraction(0))
            for i in range(X.shape[1])]  # fmt: skip


def of_kernel_svm(X: np.ndarray, y: np.ndarray, answer: Any) -> Verdict:
    """The l2 max margin with its dual, in 60 digits; `dual` is known but for one factor."""
    case = problem_of(X, y, penchant.L2(), "max_margin")
    if (end := by_outcome(case, answer.outcome)) is not None:
        return end
    weights = answer.dual * y
    beta = answer.predictor
    with mp.workdps(judge.DIGITS):
        reward = mp.fsum(mpf(float(v)) for v in weights)
        # <2 beta, beta> = sum of the dual weights: it gives the factor
        factor = 2 * mp.fsum(mpf(float(b)) ** 2 for b in beta) / reward if reward else mpf(0)
        log_unit = float(mp.log(factor)) if factor > 0 else 0.0
    solution = types.SimpleNamespace(
        beta=beta, dual=weights, residual=0.0, kkt=0.0, value=0.0, log_dual_unit=log_unit
    )
    return verdict(judge.wrong(case, solution))


# Norms by duality


def of_norm_margin(X: np.ndarray, y: np.ndarray, norm: Any, answer: Any) -> Verdict:
    case = problem_of(X, y, norm, "max_margin")
    return by_outcome(case, answer.outcome) or verdict(judge.wrong(case, answer))


def of_separation(X: np.ndarray, y: np.ndarray, answer: Any) -> Verdict:
    """Positive margins in fractions, or HiGHS, and a combination as short as it says."""
    rows = exact_rows(np.asarray(X, dtype=float) * y[:, None])
    if answer.separable:
        direction = [Fraction(float(v)) for v in answer.direction]
        return verdict(
            "" if min(dot(r, direction) for r in rows) > 0 else "a margin is not positive"
        )
    if answer.weights.min() < 0 or not answer.weights.any():
        return "wrong", "a weight is negative"
    return verdict("separable by HiGHS" if separable(X, y) else "")


# Exact flows


def of_flow(X: np.ndarray, y: np.ndarray, q: Any, outcome: Outcome, beta: np.ndarray) -> Verdict:
    """The end of the flow is the minimiser of Q, which is judged first."""
    if (end := failed(outcome)) is not None:
        return end
    case = problem_of(X, y, q, "interpolate")
    best = penchant.interpolate(X, y, q, throw=False)
    if not best.outcome.ok or judge.wrong(case, best):
        return GOOD  # counted where it belongs
    off = np.abs(beta - best.beta).max() / (np.abs(best.beta).max() or 1.0)
    return verdict("" if off <= judge.FAR else f"the end is {off:.2g} off")
