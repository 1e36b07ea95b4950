"""Judges a solver's answer by another route: optimality recomputed from the data with mpmath.

Nothing of the package's formulas is used. The floats of data and answer are taken as exact; a
minimiser is right if it meets its constraints and lies, with its dual, on the graph of the
gradient, both to a relative 1e-7; for norms and matrices the duality gap is recomputed.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
from mpmath import mpf
from scipy.optimize import linprog

from odd_problems import Problem
from penchant import L1, L2, Q
from penchant.regularizers import Derived, Frobenius, Linf, Lp, Nuclear, R, Schatten, Spectral

RIGHT = 1e-7
FAR = 1e-6  # relative distance of a predictor that meets the rows exactly
ROUNDING = mpf(10) ** -14
DIGITS = 60
TINY = mpf(10) ** -15  # below this b is linear to far more digits than are judged


def wrong(problem: Problem, solution) -> str:
    """What is wrong with a solution that is called solved, nothing if all is well."""
    matrix = problem.X.ndim == 3
    beta = solution.matrix if matrix else solution.beta
    for name, numbers in (("beta", beta), ("dual", solution.dual)):
        if not np.isfinite(numbers).all():
            return f"{name} is not finite"
    if not (math.isfinite(solution.residual) and math.isfinite(solution.kkt)):
        return "the certificate is not finite"
    if math.isnan(solution.value):
        return "the value is not a number"
    with mp.workdps(DIGITS):
        margin = problem.verb == "max_margin"
        signs = problem.y if margin else np.ones(len(problem.y))
        flat = np.asarray(problem.X, dtype=float).reshape(len(signs), -1)
        rows = [
            [mpf(float(v)) * int(sign) for v in row] for row, sign in zip(flat, signs, strict=True)
        ]
        b = [mpf(float(v)) for v in np.ravel(beta)]
        unit = mp.exp(mpf(solution.log_dual_unit))
        parts = zip(solution.dual, *getattr(solution, "dual_rest", ()), strict=True)
        nu = [mp.fsum(mpf(float(v)) for v in entry) * unit for entry in parts]
        y = [mpf(1) if margin else mpf(float(v)) for v in problem.y]
        text = unmet(rows, y, b, nu, margin) or ("" if margin else too_far(flat, rows, y, b))
        if text or not any(y):
            return text or ("beta is not zero" if any(b) and not derived(problem) else "")
        s = [mp.fsum(v * row[i] for v, row in zip(nu, rows, strict=True)) for i in range(len(b))]
        # float64 rounds the dual, which moves s by the size of its terms; `interpolate` gives its
        # dual as a sum where that matters
        terms = [mp.fsum(abs(v * row[i]) for v, row in zip(nu, rows, strict=True))
                 for i in range(len(b))]  # fmt: skip
        blur = [ROUNDING * max(terms) if margin else mpf(0)] * len(b)
        if matrix:
            return of_matrix(problem.regularizer, beta.shape, b, s, blur)
        return of_vector(problem.regularizer, b, s, blur)


def derived(problem: Problem) -> bool:
    return isinstance(problem.regularizer, Derived)


def unmet(rows, y, b, nu, margin: bool) -> str:
    """Which constraint is missed, or which dual weight contradicts the margins."""
    largest = max(abs(v) for v in nu)
    biggest = max(abs(v) for v in y)
    for n, (row, target) in enumerate(zip(rows, y, strict=True)):
        value = mp.fsum(x * v for x, v in zip(row, b, strict=True))
        terms = mp.fsum(abs(x * v) for x, v in zip(row, b, strict=True))
        # rounding of beta itself moves a row by the size of its terms
        spare = RIGHT * (target if margin else biggest) + mpf(10) ** -12 * terms
        if margin and value < target - spare:
            return f"margin {n} is {mp.nstr(value, 8)}"
        if not margin and abs(value - target) > spare:
            return f"row {n} is missed by {mp.nstr(abs(value - target) / (biggest or 1), 3)}"
        if margin and nu[n] < -RIGHT * largest:
            return f"dual weight {n} is negative"
        if margin and nu[n] * (value - 1 - spare) > RIGHT * largest:
            return f"dual weight {n} stands beside the margin {mp.nstr(value, 8)}"
    return ""


def too_far(flat, rows, y, b) -> str:
    """Whether the nearest predictor that meets the rows exactly is another one.

    A residual of rounding is none where rows nearly depend on each other. Rows that depend on each
    other to rounding are left out: there the floats say nothing about the solution.
    """
    if len(rows) > len(b) or not clearly_independent(flat):
        return ""
    left = [t - mp.fdot(row, b) for row, t in zip(rows, y, strict=True)]
    size = max(abs(v) for v in b)
    if not size or not any(left):
        return ""
    with mp.workdps(4 * DIGITS):
        X = mp.matrix(rows)
        change = X.T * mp.lu_solve(X * X.T, mp.matrix(left))
    apart = max(abs(v) for v in change) / size
    return f"a predictor that fits is {mp.nstr(apart, 3)} away" if apart > FAR else ""


def clearly_independent(flat: np.ndarray) -> bool:
    """Whether rows of unit size, in columns of unit size, are independent beyond rounding."""
    X = np.asarray(flat, dtype=float)
    for axis in (1, 0, 1, 0, 1):
        sizes = np.abs(X).max(axis=axis, keepdims=True)
        X = X / np.where(sizes > 0, sizes, 1.0)
    return bool(np.linalg.svd(X, compute_uv=False)[-1] > 1e-12)


def of_vector(regularizer, b, s, blur) -> str:
    """Whether (b, s) lies on the graph of the gradient."""
    if isinstance(regularizer, L1) or (isinstance(regularizer, Lp) and regularizer.p == 1):
        return gap_of(1, b, s, blur)
    if isinstance(regularizer, Linf | Nuclear | Spectral):
        return of_norm(regularizer, b, s, blur)
    if isinstance(regularizer, Lp):
        return gap_of(mpf(regularizer.p), b, s, blur)
    if isinstance(regularizer, L2):
        weights = [mpf(float(w)) for w in np.broadcast_to(regularizer.stiffness, len(b))]
        root = [mp.sqrt(w) for w in weights]
        return gap_of(2, *([v * r for v, r in zip(b, root, strict=True)],
                           [v / r for v, r in zip(s, root, strict=True)],
                           [v / r for v, r in zip(blur, root, strict=True)]))  # fmt: skip
    return off_graph(law(regularizer, len(b)), b, s, blur)


def gap_of(p, b, s, blur) -> str:
    """The duality gap of |.|_p^p / p relative to its value."""
    size = max(abs(v) for v in b)
    if not size:
        return "beta is zero"
    if p == 1:
        longest = max(abs(v) - w for v, w in zip(s, blur, strict=True))
        value = mp.fsum(abs(v) for v in b)
        spare = mp.fsum(abs(x) * w for x, w in zip(b, blur, strict=True))
        if longest > 1 + RIGHT:
            return f"a dual of length {mp.nstr(longest, 8)}"
        gap = value - mp.fsum(x * v for x, v in zip(b, s, strict=True))
    else:
        q, height = p / (p - 1), size ** (p - 1)
        b, s, blur = [v / size for v in b], [v / height for v in s], [v / height for v in blur]
        spare = mp.fsum((abs(x) + abs(v) ** (q - 1) + w ** (q - 1)) * w
                        for x, v, w in zip(b, s, blur, strict=True))  # fmt: skip
        value = mp.fsum(abs(v) ** p for v in b) / p
        gap = value + mp.fsum(abs(v) ** q for v in s) / q
        gap -= mp.fsum(x * v for x, v in zip(b, s, strict=True))
    bad = abs(gap) > RIGHT * value + spare
    return f"duality gap {mp.nstr(gap / value, 3)}" if bad else ""


def of_norm(norm, b, s, blur) -> str:
    """A dual of length one, and no gap between the norm and its product with the predictor."""
    value, length = norms_of(norm, b), dual_norms_of(norm, s)
    if length > 1 + RIGHT + mp.fsum(blur):
        return f"a dual of length {mp.nstr(length, 8)}"
    gap = value - mp.fdot(b, s)
    bad = gap > RIGHT * value + mp.fsum(abs(x) * w for x, w in zip(b, blur, strict=True))
    return f"duality gap {mp.nstr(gap / value, 3)}" if bad else ""


def norms_of(norm, b):
    if isinstance(norm, Linf):
        return max(map(abs, b))
    sizes = singular_values(b, norm.shape)
    return mp.fsum(sizes) if isinstance(norm, Nuclear) else max(sizes)


def dual_norms_of(norm, s):
    if isinstance(norm, Linf):
        return mp.fsum(map(abs, s))
    sizes = singular_values(s, norm.shape)
    return max(sizes) if isinstance(norm, Nuclear) else mp.fsum(sizes)


def singular_values(numbers, shape):
    size = max(map(abs, numbers)) or mpf(1)
    matrix = mp.matrix(*shape)
    for k, v in enumerate(numbers):
        matrix[divmod(k, shape[1])] = v / size
    return [size * v for v in mp.svd_r(matrix, compute_uv=False)]


def law(regularizer, dimension: int):
    """(p, list of log mu_i, list of kappa_i): b(s) = mu [(1-kappa s)^-p - (1+kappa s)^-p]."""
    if isinstance(regularizer, Derived):  # w^2 or w^3 from w, the signed pair: Q by theorem
        (start,) = set(np.ravel(regularizer.starts.plus).tolist())
        depth = {2.0: 2, 3.0: 3}[
            round(math.log(regularizer.map.evaluate(np.array([[2.0]]))[0][0], 2))
        ]
        regularizer = Q(depth, alpha=start)
    shape = np.ones(dimension) if regularizer.shape is None else regularizer.shape
    depth = 4 if isinstance(regularizer, R) else regularizer.depth
    layers = 2 if isinstance(regularizer, R) else depth
    kappa = [mpf(1) if isinstance(regularizer, R) else mpf(float(w)) ** (depth - 2) for w in shape]
    logs = [layers * (mpf(regularizer.log_alpha) + mp.log(mpf(float(w)))) for w in shape]
    return (None if depth == 2 else Fraction(depth, depth - 2)), logs, kappa


def off_graph(of, b, s, blur) -> str:
    """The largest distance from the graph, along the nearer axis, in units of each axis."""
    p, logs, kappas = of
    size, height = max(abs(v) for v in b), max(abs(v) for v in s)
    if not size or not height:
        return "beta or its dual is zero"
    for i, (x, v, w, log_mu, kappa) in enumerate(zip(b, s, blur, logs, kappas, strict=True)):
        slope = inverse(p, x, log_mu) / kappa
        along_dual = abs(v - slope) / height
        if along_dual <= RIGHT + w / height:
            continue
        image = forward(p, v * kappa, log_mu)
        if image is None or abs(x - image) > RIGHT * size:
            return f"coordinate {i} is {mp.nstr(along_dual, 3)} off the gradient"
    return ""


def forward(p, s, log_mu):
    """b(s), None outside of its domain."""
    if p is None:
        return 2 * mp.exp(log_mu) * mp.sinh(s)
    if abs(s) >= 1:
        return None
    p = mpf(p.numerator) / p.denominator
    if abs(s) < TINY:
        return 2 * p * mp.exp(log_mu) * s
    return mp.exp(log_mu) * ((1 - s) ** -p - (1 + s) ** -p)


def inverse(p, b, log_mu):
    """The s with b(s) = b, to far more digits than are judged."""
    if not b:
        return mpf(0)
    log_z = mp.log(abs(b)) - log_mu
    if p is None:
        return mp.sign(b) * (log_z if log_z > 100 else mp.asinh(mp.exp(log_z) / 2))
    p = mpf(p.numerator) / p.denominator
    if log_z < -40:
        return mp.sign(b) * mp.exp(log_z) / (2 * p)
    slack = mp.exp(-log_z / p)  # from above: (1-s)^-p > z
    if slack < mpf(10) ** -12:
        return mp.sign(b) * (1 - slack)
    z = mp.exp(log_z)
    low, high = mpf(0), min(mpf(1), z / (2 * p))  # b(s) is at least 2 p mu s
    for _ in range(80):
        middle = (low + high) / 2
        below = (1 - middle) ** -p - (1 + middle) ** -p < z
        low, high = (middle, high) if below else (low, middle)
    return mp.sign(b) * low


def of_matrix(regularizer, shape, b, s, blur) -> str:
    """The duality gap of a regularizer of singular values, relative to the size of its terms."""
    M, S = (mp.matrix(shape[0], shape[1]) for _ in range(2))
    for k, (x, v) in enumerate(zip(b, s, strict=True)):
        M[divmod(k, shape[1])], S[divmod(k, shape[1])] = x, v
    # mpmath's svd wants numbers of order one
    size, height = max(abs(v) for v in b), max(abs(v) for v in s)
    if not size or not height:
        return "the matrix or its dual is zero"
    sizes = [size * v for v in mp.svd_r(M / size, compute_uv=False)]
    heights = [height * v for v in mp.svd_r(S / height, compute_uv=False)]
    product = mp.fsum(x * v for x, v in zip(b, s, strict=True))
    if isinstance(regularizer, Nuclear):
        if max(heights) > 1 + RIGHT + mp.fsum(blur):
            return f"a dual of length {mp.nstr(max(heights), 8)}"
        gap, value = mp.fsum(sizes) - product, mp.fsum(sizes)
    elif isinstance(regularizer, Frobenius):
        value = mp.fsum(v * v for v in sizes)
        gap = value + mp.fsum(v * v for v in heights) / 4 - product
    else:
        assert isinstance(regularizer, Schatten)
        p, (log_mu, *_), _ = law(regularizer.q, len(sizes))
        if p is not None:  # digits of the slack 1 - s
            mp.mp.dps += max(0, int((mp.log(max(sizes)) - log_mu) / (2 * p)))
        if p is not None:  # into the box, which costs no more than this
            shrink = min(mpf(1), (1 - mpf(10) ** -10) / max(heights))
            heights, product = [v * shrink for v in heights], product * shrink
        slopes = [inverse(p, v, log_mu) for v in sizes]
        value = mp.fsum(v * u - primitive(p, u, log_mu) for v, u in zip(sizes, slopes, strict=True))
        gap = value + mp.fsum(primitive(p, v, log_mu) for v in heights) - product
        value = max(value, product)
    spare = 2 * max(sizes) * mp.fsum(blur)
    bad = abs(gap) > RIGHT * value + spare
    return f"duality gap {mp.nstr(gap / value, 3)}" if bad else ""


def primitive(p, s, log_mu):
    """The integral of b from 0 to s."""
    if p is None:
        return 2 * mp.exp(log_mu) * (mp.cosh(s) - 1)
    a = mpf(p.numerator) / p.denominator - 1
    if abs(s) < TINY:
        return (a + 1) * mp.exp(log_mu) * s * s
    return mp.exp(log_mu) / a * ((1 - s) ** -a + (1 + s) ** -a - 2)


def out_of_range(problem: Problem, solve) -> bool:
    """Whether float64 does not hold the minimiser, by solving the problem in other units."""
    flat = np.asarray(problem.X, dtype=float)
    if derived(problem):  # it has a unit of its own
        rows, targets = (np.frexp(np.abs(v).max())[1] for v in (flat, problem.y))
        return bool(abs(targets - rows) >= 299)
    rows, targets = (int(np.frexp(np.abs(v).max())[1]) for v in (flat, problem.y))
    if problem.verb == "max_margin":
        targets = 0
    scaled = dataclasses.replace(
        problem,
        X=np.ldexp(flat, -rows),
        y=np.ldexp(problem.y, -targets),
        regularizer=problem.regularizer.in_units((targets - rows) * math.log(2)),
    )
    solution = solve(scaled.X, scaled.y, scaled.regularizer, throw=False)
    if not solution.outcome.ok:  # then the units alone must be near the end of float64
        return abs(targets - rows) > 1000
    if wrong(scaled, solution):
        return False
    inner = solution.matrix if flat.ndim == 3 else solution.beta
    size = math.log2(np.abs(inner).max()) + targets - rows
    return size > 1023.5 or size < -1020


def separable(problem: Problem) -> bool:
    """Whether some plane separates the points, by HiGHS on rows and columns of unit size."""
    Z = np.asarray(problem.X, dtype=float) * problem.y[:, None]
    for axis in (1, 0, 1):
        sizes = np.abs(Z).max(axis=axis, keepdims=True)
        Z = np.where(sizes > 0, Z / np.where(sizes > 0, sizes, 1.0), 0.0)
    samples, dimension = Z.shape
    cost = np.append(np.zeros(dimension), -1.0)  # the largest margin in a box
    found = linprog(cost, A_ub=np.hstack([-Z, np.ones((samples, 1))]), b_ub=np.zeros(samples),
                    bounds=[(-1, 1)] * dimension + [(None, 1)])  # fmt: skip
    assert found.status == 0
    return bool(-found.fun > 1e-6)  # HiGHS meets its constraints to 1e-7
