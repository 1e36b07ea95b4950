"""An independent reference: the minimiser of Q under X beta = y, to as many digits as asked.

Everything here is mpmath, with the floats of the caller taken as exact. The methods differ from
those of the package on purpose. Depth 2: damped Newton from zero on the convex dual, no
continuation; the damping is the one that generalised self-concordance proves convergent. Depth
above 2: a primal-dual interior point method, because b+ t+^p = mu with slack t+ = 1 - kappa s is
the central path of a linear program with the exponent p. Neither is trusted: `certify`
recomputes the optimality conditions from the dual vector alone, with more digits.
"""

from __future__ import annotations

import dataclasses

import mpmath as mp
import numpy as np
from mpmath import mpf

from oracle_q import DIGITS, OracleError, Scale, power


@dataclasses.dataclass(frozen=True)
class Reference:
    """The minimiser (`beta`, and its logarithms for entries that underflow) and its proof.

    `residual` is max|X beta - y| / max|y|; `error` bounds the distance from the exact minimiser
    relative to max|beta|, by the size of one more Newton step. Both are far below float64.
    """

    beta: np.ndarray
    log_abs_beta: np.ndarray
    dual: list[mpf]
    residual: float
    error: float
    iterations: int
    digits: int


def solve(X, y, depth: int, log_alpha: float, shape=None) -> Reference:
    """The certified minimiser of Q_{alpha, w0}^depth under X beta = y, X of full row rank."""
    X = np.asarray(X, dtype=np.float64)
    shape = np.ones(X.shape[1]) if shape is None else np.asarray(shape, dtype=np.float64)
    scale = Scale(depth, float(log_alpha), tuple(float(w) for w in shape))
    with mp.workdps(15):
        rows = [[mpf(float(v)) for v in row] for row in X]
        target = [mpf(float(v)) for v in y]
    if not any(target):
        nothing, none = np.zeros(len(shape)), np.full(len(shape), -np.inf)
        return Reference(nothing, none, [mpf(0)] * len(rows), 0.0, 0.0, 0, DIGITS)
    method = damped_newton if depth == 2 else interior_point
    dual, iterations, digits = method(rows, target, scale)
    return certify(rows, target, scale, dual, iterations, digits)


def certify(rows, y, scale: Scale, dual, iterations: int, digits: int) -> Reference:
    """The reference built from `dual` alone, with more digits; raises if it proves nothing."""
    with mp.workdps(digits + DIGITS):
        s = adjoint(rows, dual)
        if scale.depth > 2 and any(abs(k * v) >= 1 for k, v in zip(scale.kappa(), s, strict=True)):
            raise OracleError("the dual vector lies outside its box")
        beta = [a - b for a, b in zip(*scale.branches(s), strict=True)]
        residual = [v - w for v, w in zip(y, apply(rows, beta), strict=True)]
        slopes = scale.slopes(s)
        step, _ = solve_weighted(rows, slopes, residual)
        size = max(abs(b) for b in beta)
        moves = [w * v / size for w, v in zip(slopes, adjoint(rows, step), strict=True)]
        error = max(abs(m) for m in moves)
        relative = max(abs(r) for r in residual) / max(abs(v) for v in y)
        if max(error, relative) > mpf(10) ** -30:
            raise OracleError(f"residual {mp.nstr(relative)}, error {mp.nstr(error)}")
        logs = [float(mp.log(abs(b))) if b else -np.inf for b in beta]
        floats = np.array([float(b) for b in beta])
        proof = (float(relative), float(error))
        return Reference(floats, np.array(logs), dual, *proof, iterations, digits)


def damped_newton(rows, y, scale: Scale) -> tuple[list[mpf], int, int]:
    """Depth 2: the minimiser of sum_i 2 a_i cosh(x_i . nu) - y . nu, from nu = 0.

    Along a direction v the third derivative is at most max|X^T v| times the second, so a Newton
    step shortened to log(1 + d) / d, d = max|X^T step|, always descends (Sun and Tran-Dinh 2019).
    """
    nu, least = [mpf(0)] * len(y), DIGITS + 20 + cancelled(rows, y, scale)
    digits, small = least, mpf(10) ** -(DIGITS // 2)
    for iteration in range(1, 20_000):
        with mp.workdps(digits):
            s = adjoint(rows, nu)
            plus, minus = scale.branches(s)
            beta = [a - b for a, b in zip(plus, minus, strict=True)]
            residual = [v - w for v, w in zip(y, apply(rows, beta), strict=True)]
            weights = [a + b for a, b in zip(plus, minus, strict=True)]
            step, lost = solve_weighted(rows, weights, residual)
            if digits < least + lost:
                digits = least + 20 + lost
                continue
            length = max(abs(v) for v in adjoint(rows, step))
            damping = mp.log1p(length) / length if length > mpf(10) ** -3 else mpf(1)
            nu = [a + damping * b for a, b in zip(nu, step, strict=True)]
            # quadratic: the step just taken doubles the digits
            if length < small * min(mpf(1), max(abs(v) for v in s)):
                return nu, iteration, digits
    raise OracleError("the damped Newton method did not converge")


def interior_point(rows, y, scale: Scale) -> tuple[list[mpf], int, int]:
    """Depth above 2: primal-dual steps on b± t±^p = tau mu, X (b+ - b-) = y, down to tau = 1."""
    state = InteriorPoint(rows, y, scale)
    for iteration in range(1, 5_000):
        with mp.workdps(state.digits):
            if state.step():
                return state.nu, iteration, state.digits
    raise OracleError("the interior point method did not converge")


class InteriorPoint:
    """The moving point (b+, b-, nu) of the primal-dual method and the rule that moves it."""

    def __init__(self, rows, y, scale: Scale):
        self.rows, self.y, self.scale = rows, y, scale
        self.least = DIGITS + 20 + cancelled(rows, y, scale)
        self.digits = self.least + 20
        with mp.workdps(self.digits):
            self.mu = scale.mu() * 2  # one entry per branch: b+ first, then b-
            self.size = max(abs(v) for v in y) / max(abs(v) for row in rows for v in row)
            # nu = 0 with b = tau mu is central for every tau; start where b can reach y
            self.tau = max(mpf(1), self.size / min(self.mu))
            self.b = [self.tau * m for m in self.mu]
            # a slack that meets beta ~ size at tau = 1: t = (mu / size)^(1/p)
            final = mp.log10(self.size / min(self.mu)) / scale.p.numerator * scale.p.denominator
            self.final_depth = 20 + max(0, int(final))
        self.nu = [mpf(0)] * len(y)

    def step(self) -> bool:
        """Move once; True when the point has converged to the target, tau = 1."""
        kappa = self.scale.kappa()
        s = adjoint(self.rows, self.nu)
        slack = [1 - k * v for k, v in zip(kappa, s, strict=True)]
        slack += [1 + k * v for k, v in zip(kappa, s, strict=True)]
        depth = max(0, -int(mp.log10(min(slack))))
        coming = max(depth, min(2 * depth, self.final_depth))  # digits of the next smallest slack
        if self.digits < self.least + coming:
            self.digits = self.least + 20 + max(depth, min(3 * depth, self.final_depth))
            return False
        moves, lost = self.direction(mpf(1), slack, kappa)
        if self.digits < self.least + depth + lost:
            self.digits = self.least + 20 + depth + lost
            return False
        missed = max(1 - self.reach(moves, slack), mpf(10) ** -(depth + 10))
        if self.tau > 1:
            self.tau = max(mpf(1), self.tau * missed**2)
            moves, _ = self.direction(self.tau, slack, kappa)
        limit = self.reach(moves, slack, cap=2)
        reach = mpf(1) if limit > 1 else max(mpf("0.9"), 1 - missed) * limit
        db, dt, dnu = moves
        self.b = [v + reach * w for v, w in zip(self.b, db, strict=True)]
        self.nu = [v + reach * w for v, w in zip(self.nu, dnu, strict=True)]
        change = max(abs(w / v) for v, w in zip(slack, dt, strict=True))
        small = mpf(10) ** -(DIGITS // 2) * min(mpf(1), max(abs(v) for v in s))
        return self.tau == 1 and reach == 1 and change < small

    def direction(self, tau: mpf, slack, kappa):
        """Newton's (db, dt, dnu) towards b t^p = tau mu and X (b+ - b-) = y.

        The product is linearised as b t^p where b is the small factor and as b^(1/p) t where t
        is; only so does the small factor land where it should in one step.
        """
        p, d = mpf(self.scale.p.numerator) / self.scale.p.denominator, len(kappa)
        centre = []
        for b, t, m in zip(self.b, slack, self.mu, strict=True):
            ratio = tau * m / (b * power(t, self.scale.p))
            slack_small = b > self.size * t
            centre.append(p * (power(ratio, 1 / self.scale.p) - 1) if slack_small else ratio - 1)
        wanted = [b * (1 + c) for b, c in zip(self.b, centre, strict=True)]
        reached = apply(self.rows, [wanted[i] - wanted[d + i] for i in range(d)])
        stiff = [p * b / t for b, t in zip(self.b, slack, strict=True)]
        weights = [kappa[i] * (stiff[i] + stiff[d + i]) for i in range(d)]
        dnu, lost = solve_weighted(
            self.rows, weights, [v - w for v, w in zip(self.y, reached, strict=True)]
        )
        ds = [k * v for k, v in zip(kappa, adjoint(self.rows, dnu), strict=True)]
        dt = [-v for v in ds] + ds
        db = [b * c - w * v for b, c, w, v in zip(self.b, centre, stiff, dt, strict=True)]
        return (db, dt, dnu), lost

    def reach(self, moves, slack, cap=1) -> mpf:
        """The longest step, at most `cap`, that keeps b and the slacks nonnegative."""
        db, dt, _ = moves
        pairs = zip(self.b + slack, db + dt, strict=True)
        return min([mpf(cap)] + [-v / w for v, w in pairs if w < 0])


def cancelled(rows, y, scale: Scale) -> int:
    """The digits that beta = b+ - b- loses in the kernel regime, where both are close to mu."""
    with mp.workdps(15):
        size = max(abs(v) for v in y) / max(abs(v) for row in rows for v in row)
        return max(0, int(mp.log10(max(scale.mu()) / size)))


def adjoint(rows, nu) -> list[mpf]:
    """X^T nu."""
    return [mp.fsum(r[i] * v for r, v in zip(rows, nu, strict=True)) for i in range(len(rows[0]))]


def apply(rows, beta) -> list[mpf]:
    """X beta."""
    return [mp.fsum(v * b for v, b in zip(row, beta, strict=True)) for row in rows]


def solve_weighted(rows, weights, rhs) -> tuple[list[mpf], int]:
    """(X diag(weights) X^T)^-1 rhs by Gauss with full pivots, and the digits that may be lost."""
    n = len(rows)
    gram = [apply(rows, [w * v for w, v in zip(weights, row, strict=True)]) for row in rows]
    matrix = [[*row, v] for row, v in zip(gram, rhs, strict=True)]
    order, pivots = list(range(n)), []
    for k in range(n):  # symmetric positive definite: the largest diagonal is a full pivot
        best = max(range(k, n), key=lambda i: matrix[i][i])
        matrix[k], matrix[best] = matrix[best], matrix[k]
        for row in matrix:
            row[k], row[best] = row[best], row[k]
        order[k], order[best] = order[best], order[k]
        pivots.append(matrix[k][k])
        if pivots[-1] <= 0:
            return [mpf(0)] * n, 2 * mp.mp.dps
        for i in range(k + 1, n):
            factor = matrix[i][k] / matrix[k][k]
            matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[k], strict=True)]
    solution = [mpf(0)] * n
    for k in reversed(range(n)):
        known = mp.fsum(matrix[k][j] * solution[order[j]] for j in range(k + 1, n))
        solution[order[k]] = (matrix[k][n] - known) / matrix[k][k]
    return solution, int(mp.log10(max(pivots) / min(pivots))) + 1
