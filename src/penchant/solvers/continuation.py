"""The minimiser of Q (or R) followed in the scale, down from the kernel regime.

How it works. The minimiser under X beta = y is beta = b(X^T nu), with the law b of docs/theory
section 7 (depth 2) or section 14 (deeper), so Newton's method solves X b(X^T nu) = y for one number
nu_n per sample. Its Hessian is H = X diag(b') X^T. At fixed s = X^T nu, b is proportional to mu, so
with m = log mu the path has the tangent d nu/dm = -H^-1 y. In the kernel regime b is linear, beta
does not depend on m and nu is a multiple of e^-m; this is the start. From there m falls in steps:

- The last two tangents predict nu, in the variable in which it is smooth: m at depth 2, e^(m/p)
  with p = D/(D-2) beyond, like which the slacks 1 - |s| shrink.
- Newton's method corrects. A Hessian serves as long as each step with it reduces the residual to
  0.3 of the last one; only steps with a new Hessian need a line search.
- The step in m doubles where two Hessians were enough, and shrinks where four were needed.

Pitfalls. The exponent |s| grows like |m| at depth 2, and its rounding with it: no fixed tolerance
can be met, so it grows by 4e-16 |s|. Slacks of deep nets reach 1e-28, which 1 - X^T nu cannot show:
`dual_state` keeps and updates them. Sparse data without noise make the slopes b' differ by hundreds
of decades and H singular to rounding: then `rebase` combines the rows so that the heaviest columns
become unit vectors, and slopes below rounding count as if they were at its edge.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import scipy  # its submodules load when first used, which keeps `import penchant` fast

from penchant.arguments import Array
from penchant.limits import OutOfTime, Turns
from penchant.records import Kind, Outcome
from penchant.regularizers.q import SignedPair
from penchant.solvers.constraints import Constraints
from penchant.solvers.dual_state import DualState, Failed, begin, tilt_in_parts, with_tilt
from penchant.solvers.pivots import Elimination, heaviest_columns
from penchant.solvers.sparse_rows import SparseRows

EXACT = 1e-14  # relative residual at a requested scale
LOOSE = 1e-8  # and at a scale that is only passed on the way
KERNEL = 1e-8  # with max|s| below this b(s) is linear to the last digit
FAR = 600.0  # for log max|s| below minus this the dual needs a unit of its own
SETTLED = 60.0  # for -m/p beyond this the minimiser is its limit to the last digit
BLIND = 0.2  # step in log mu below which no prediction is made
FACTORIZATIONS = 2000  # Hessians a single target may cost


@dataclasses.dataclass(frozen=True)
class Point:
    """beta and its dual at one scale m = log mu."""

    beta: Array
    nu: Array
    factorizations: int
    log_unit: float = 0.0  # the dual is nu times e^log_unit
    hessian: Hessian | None = None  # there or nearby
    back: Array | None = None  # from the dual of its rows to nu

    def mend(self, missing: Array) -> Array:
        """The change of beta that adds `missing` to X beta, by one step of Newton's method."""
        if self.hessian is None:
            return np.full_like(self.beta, np.nan)
        right = missing if self.back is None else missing @ self.back
        return self.hessian.slope * (self.hessian.solve(right) @ self.hessian.X)


def settled_level(pair: SignedPair) -> float:
    """log mu below which nothing changes: the limit is off by (mu_i/beta_i)^(1/p)."""
    return -SETTLED * pair.power - float(np.max(pair.log_weight))


class Hessian:
    """The Cholesky factor of X diag(slope) X^T."""

    def __init__(self, X: Array, slope: Array, jitter: float = 1e-12):
        self.X, self.slope = X, slope
        if isinstance(X, SparseRows):
            matrix = X.gram(slope)
        else:
            weighted = X * np.sqrt(slope)
            matrix = scipy.linalg.blas.dsyrk(1.0, weighted.T, trans=1, lower=1)
        shift = jitter * matrix.diagonal()
        for _ in range(8):
            shifted = matrix.copy(order="F")
            shifted[np.diag_indices_from(shifted)] += shift
            self.factor, failed = scipy.linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1)
            if not failed:
                return
            shift *= 100
        raise Failed("the Hessian could not be factorized")

    @property
    def spread(self) -> float:
        """The least distance of a row of X sqrt(slope), at unit length, from the span of others."""
        lengths = np.sqrt(np.einsum("nk,nk->n", self.factor, self.factor))
        return float((self.factor.diagonal() / lengths).min())

    def solve(self, right: Array) -> Array:
        return scipy.linalg.lapack.dpotrs(self.factor, right, lower=1)[0]

    def refine(self, solution: Array, right: Array, slope: Array | None = None) -> Array:
        """One correction of `solution` towards H^-1 right, for H at `slope` (default: its own)."""
        slope = self.slope if slope is None else slope
        return solution + self.solve(right - self.X @ (slope * (solution @ self.X)))


def follow(
    pair: SignedPair, constraints: Constraints, targets: Sequence[float]
) -> Iterator[Point | Outcome]:
    """The point at each scale in `targets` (log mu, descending); an Outcome where it failed."""
    X, y = constraints.X, constraints.y
    if not y.any():
        yield from (nothing_to_fit(pair, X, m) for m in targets)
        return
    continuation = Continuation(pair, X, y)
    for m in targets:
        try:
            yield continuation.at(m)
        except Failed as reason:
            yield Outcome(Kind.STALLED, f"no solution at log mu = {m:.6g}: {reason}")
        except OutOfTime as reason:
            yield Outcome(Kind.BUDGET_SPENT, f"no solution at log mu = {m:.6g}: {reason}")


def nothing_to_fit(pair: SignedPair, X: Array, m: float) -> Point | Outcome:
    """The point for labels that are all zero, which without a tilt is zero."""
    if pair.tilt is None:
        return Point(np.zeros(X.shape[1]), np.zeros(len(X)), 0)
    from penchant.solvers import homotopy

    beta, nu, steps, outcome = homotopy.solve(pair.in_units(pair.level - m), X, np.zeros(len(X)))
    return Point(beta, nu, steps) if outcome.ok else outcome


class Continuation:
    """Walks down in m = log mu, keeping the last state and its tangents for the next step."""

    def __init__(self, pair: SignedPair, X: Array, y: Array):
        self.stand(pair, X, y)
        weight = np.broadcast_to(np.exp(pair.log_weight) * pair.kappa, X.shape[1])
        self.linear = weight * (2.0 if self.curl == 0 else 2 * pair.power)  # b'(0) / mu
        if weight.max() > 1e3 * weight.min() and not isinstance(X, SparseRows):
            self.change_basis(weight)
        self.kernel = kernel = Hessian(self.X, self.linear, jitter=1e-15)
        self.nu0 = np.zeros_like(y)  # times e^-m: the dual of the kernel regime
        for _ in range(4):
            self.nu0 = kernel.refine(self.nu0, self.y)
        self.s0 = self.nu0 @ self.X
        self.beta0 = self.linear * self.s0
        self.reach = float(np.log(np.abs(pair.kappa * self.s0).max()))  # log max|s| + m
        self.m = self.reach - float(np.log(0.3))

    def stand(self, pair: SignedPair, X: Array, y: Array) -> None:
        """Sets the attributes that every continuation has, before it has a state."""
        self.pair, self.X, self.y = pair, X, y
        self.back: Array | None = None  # from the present basis of nu to the rows of X as given
        self.curl = 1 / pair.power  # slacks scale like e^(m/p); 0 for depth 2
        self.state: DualState | None = None
        self.latest: Hessian | None = None  # that of the last step of Newton's method
        self.tangents: list[tuple[float, Array]] = []
        self.stride = 1.0
        # a step must leave slacks, which shrink like e^(step/p), resolved by the predictor
        self.longest = 8 * pair.power

    @classmethod
    def resumed(
        cls, pair: SignedPair, X: Array, y: Array, m: float, state: DualState
    ) -> Continuation:
        """A continuation at a state near the solution at m; `newton` moves it to the solution."""
        continuation = cls.__new__(cls)
        continuation.stand(pair, X, y)
        continuation.m, continuation.state = m, state
        return continuation

    def at(self, m: float) -> Point:
        """The solution at m, which must not lie above the last one."""
        if self.pair.tilt is None and self.reach - m < np.log(KERNEL):
            near = min(m, self.reach + FAR)
            nu = self.original(self.nu0) * np.exp(-near)
            return Point(self.beta0, nu, 1, near - m, self.kernel, self.back)
        m = max(m, settled_level(self.pair))
        spent = 0
        if self.state is None:  # the first solution comes from the kernel regime
            top = max(m, self.m)
            shrink = np.exp(-top)
            guess = begin(self.pair, self.X.shape[1], self.nu0 * shrink, self.s0 * shrink)
            spent = self.newton(top, guess, EXACT if top == m else LOOSE)
            if self.pair.tilt is not None:
                spent += tilt_in_parts(self.pair.tilt, self.add_tilt)
        turns = Turns(100_000, "the continuation in log mu")
        while self.m > m:
            turns.take()
            try:
                spent += self.advance(m)
            except Failed as reason:
                spent += 6
                self.stride /= 3
                if self.stride < 1e-3:
                    raise Failed(f"the step in log mu shrank to nothing; {reason}") from None
                self.rebase()
                if self.stride < BLIND:  # the tangents mislead: small steps do not use them
                    self.tangents = [(self.m, np.zeros_like(self.nu0))]
            if spent > FACTORIZATIONS:
                raise Failed(f"spent {spent} factorizations; start closer or check the data")
        assert self.state is not None
        beta, _ = self.state.evaluate(m)
        return Point(beta, self.original(self.state.nu), spent, 0.0, self.latest, self.back)

    def add_tilt(self, tilt: Array) -> int:
        """Adds a part of the tilt at the present m; the number of factorizations it took."""
        assert self.state is not None
        beta, slope = self.state.evaluate(self.m)
        dnu = -self.hessian(self.state, beta, slope).solve(self.X @ (slope * tilt))
        built = self.newton(self.m, with_tilt(self.state, tilt, dnu, self.X), EXACT)
        self.tangents = self.tangents[-1:]  # those before were of another tilt
        return 1 + built

    def original(self, nu: Array) -> Array:
        return nu if self.back is None else self.back @ nu

    def advance(self, m: float) -> int:
        """One step towards m; the number of factorizations it took."""
        assert self.state is not None
        gap = self.m - m
        step = gap if gap <= 1.3 * self.stride else min(self.stride, gap / 2)
        guess = self.predicted(step)
        goal, accuracy = (m, EXACT) if step == gap else (self.m - step, LOOSE)
        built = self.newton(goal, guess, accuracy)
        if built <= 2 and step > 0.7 * self.stride:
            self.stride = min(2 * self.stride, self.longest)
        elif built > 3:
            self.stride = 0.7 * step
        return built

    def predict(self, step: float) -> Array:
        """The move of nu for m -> m - step, extrapolated in the variable in which nu is smooth."""
        (_, tangent) = self.tangents[-1]
        forward = self.stretch(-step)
        if len(self.tangents) == 1:
            return forward * tangent
        m_before, before = self.tangents[-2]
        ahead = m_before - self.tangents[-1][0]
        backward = self.stretch(ahead)
        before = before * np.exp(-self.curl * ahead)  # slope in the common variable
        bend = np.clip(-forward / (2 * backward), -0.5, 0.5)
        return forward * (tangent + bend * (tangent - before))

    def predicted(self, step: float) -> DualState:
        """The state predicted for m -> m - step, inside the domain of beta."""
        assert self.state is not None
        dnu = self.predict(step)
        ds = dnu @ self.X
        room = self.state.room(ds)
        factor = 1.0 if room > 1 else 0.9 * room
        return self.state.moved(factor * dnu, factor * ds)

    def stretch(self, dm: float) -> float:
        return dm if self.curl == 0 else float(np.expm1(self.curl * dm) / self.curl)

    def hessian(self, state: DualState, beta: Array, slope: Array) -> Hessian:
        if self.back is None:
            return Hessian(self.X, slope)
        # coordinates below rounding act as if they stood at its edge: noise cannot throw them far
        return Hessian(self.X, self.floored(state, beta, slope), jitter=1e-15)

    @staticmethod
    def floored(state: DualState, beta: Array, slope: Array) -> Array:
        return np.maximum(slope, 1e-13 * np.abs(beta).max() * state.rate())

    def rebase(self) -> None:
        """Writes nu as s on the largest independent coordinates of the present state."""
        assert self.state is not None
        with np.errstate(over="ignore", invalid="ignore"):
            beta, slope = self.state.evaluate(self.m)
        if not (np.isfinite(beta).all() and np.isfinite(slope).all()):
            raise Failed("a guess is beyond float64")
        columns = self.change_basis(self.floored(self.state, beta, slope))
        self.state = dataclasses.replace(self.state, nu=columns.T @ self.state.nu)
        self.tangents = [(m, columns.T @ tangent) for m, tangent in self.tangents]

    def change_basis(self, weight: Array) -> Array:
        """Rows combined so that the heaviest independent columns, returned, become unit vectors."""
        if isinstance(self.X, SparseRows):
            if self.X.dense is None:
                raise Failed("another basis of so large sparse rows would be dense")
            self.X = self.X.dense
        chosen = heaviest_columns(self.X, np.log(weight))
        if len(chosen) < len(self.X):
            raise Failed("the rows are too close to dependent")
        columns = self.X[:, chosen]
        self.latest = None  # it belongs to the old basis
        combined = Elimination(columns)
        self.back = combined.back if self.back is None else self.back @ combined.back
        self.X, self.y = np.ascontiguousarray(combined.of(self.X)), combined.of(self.y)
        self.X[:, chosen] = np.eye(len(chosen))
        return columns

    def newton(self, m: float, state: DualState, accuracy: float) -> int:
        """Moves to the solution at m, from a guess; the number of Hessians built."""
        X, y = self.X, self.y
        state = state.tidied(X)
        with np.errstate(over="ignore", invalid="ignore"):
            beta, slope = state.evaluate(m)
            residual = X @ beta - y
            error = float(np.abs(residual).max())
        built, hessian = 0, None
        for _ in Turns(10_000, "Newton's method"):
            tolerance = accuracy + 4e-16 * state.size()
            fresh = hessian is None
            if hessian is None:
                if built >= 12 or not np.isfinite(slope).all():
                    raise Failed(f"relative residual {error:.2g} after {built} Newton steps")
                hessian = self.hessian(state, beta, slope)
                built += 1
            dnu = -hessian.solve(residual)
            ds = dnu @ X
            if fresh:
                trial = self.search(m, state, dnu, ds, residual)
            elif state.room(ds) > 1:
                trial = state.moved(dnu, ds)
            else:
                hessian = None
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                new_beta, new_slope = trial.evaluate(m)
                new_residual = X @ new_beta - y
                new_error = float(np.abs(new_residual).max())
            if new_error < error or fresh:
                state, beta, slope = trial, new_beta, new_slope
                residual, previous, error = new_residual, error, new_error
                if error <= tolerance:
                    break
                if error <= 0.3 * previous:
                    continue
            if error < self.rounding(state, beta):
                break
            hessian = None
        assert hessian is not None
        self.m, self.state, self.latest = m, state, hessian
        self.tangents = [*self.tangents[-1:], (m, self.tangent(m, state, slope, hessian))]
        return built

    def rounding(self, state: DualState, beta: Array) -> float:
        """The residual below which an iteration that no longer improves counts as converged."""
        terms = float((np.abs(self.X) @ np.abs(beta)).max())
        return 50 * (EXACT + 4e-16 * max(state.size(), terms))

    def tangent(self, m: float, state: DualState, slope: Array, hessian: Hessian) -> Array:
        """d nu/d m = -H^-1 y, from a factor of a Hessian nearby, refined.

        Directions that the Hessian no longer resolves (sparse noise-free data) take the limit
        they tend to: in proportion to m for depth 2, at rest for deeper nets.
        """
        rising = self.curl == 0 and m < -1
        tangent = state.nu / m if rising else np.zeros_like(state.nu)
        for _ in range(3):
            tangent = hessian.refine(tangent, -self.y, slope)
        return tangent

    def search(
        self, m: float, state: DualState, dnu: Array, ds: Array, residual: Array
    ) -> DualState:
        """A point along the Newton direction where the convex dual has ceased to fall steeply."""
        start = float(dnu @ residual)  # derivative of the dual along the direction, negative
        factor = min(1.0, 0.95 * state.room(ds))
        for _ in range(40):
            trial = state.moved(factor * dnu, factor * ds)
            with np.errstate(over="ignore", invalid="ignore"):
                beta, _ = trial.evaluate(m)
                end = float(dnu @ (self.X @ beta - self.y))
            if np.isfinite(end) and end <= -0.9 * start:
                return trial
            factor *= max(0.1, start / (start - end)) if np.isfinite(end) else 0.3
        raise Failed("the line search found no descent")
