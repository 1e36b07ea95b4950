"""The ratchet followed in tau = 1/mu, from one change of its support vectors to the next.

How it works. This is the limit alpha -> infinity of gradient flow on separable data (docs/theory.md
section 14): the gradient of Q at the predictor is Z^T R, where the weights R of the samples are
integrals of positive numbers and so only grow. Let W(s) be the law of that section. As tau grows
the smallest margin is tau. Between changes a fixed set S of weights grows, all others rest, and
Z_S W(Z^T R) = tau determines R_S: these are the equations of an interpolation, solved by Newton's
method at any tau, so nothing is integrated and no error adds up. A weight of S whose rate comes to
zero rests from then on (on the path of max margins it would fall); a resting one whose margin falls
back to tau begins to grow. Both events are zeros of one number per sample, `clearance`, located by
root finding within the step.

Pitfalls. Which weights grow after a change is a problem of its own, since others may have to rest
when one begins: `growing` solves it as an l2 margin problem, whose dual are the rates. A sample
that comes and goes within one step is not seen, so steps are at most 0.25 in log tau. Only products
of the rows with the roots of the slopes are factorized, by QR: their Gram matrix would square a
condition that is large already. The certificate compares a row with its conditions and with the
weights of the row before; a change that was missed does not show in it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy
from numpy.typing import NDArray

from penchant.arguments import Array
from penchant.limits import Turns, check_time
from penchant.regularizers.q import Q
from penchant.solvers import exact
from penchant.solvers.certificate import Certificate
from penchant.solvers.continuation import Failed
from penchant.solvers.dual_state import DualState, begin, shifted
from penchant.solvers.margins.active_set import Index, Unbounded, least_squares
from penchant.solvers.margins.rows import scaled_rows

KERNEL = 1e-6  # with max|s| below this W(s) is linear to 1e-12
EDGE = 1e-11  # relative: what counts as having crossed zero
STRIDE = 0.25  # longest step in log tau
CHANGES = 1000  # of the support vectors, for one path
NEWTON = 80
HIGHEST = 250.0  # log tau: the slopes of W, at most about tau^2, stay in the range of float64
Marks = NDArray[np.bool_]  # one per sample


@dataclasses.dataclass(frozen=True)
class Position:
    """The state of the ratchet at one log tau, and its next direction."""

    log_tau: float
    state: DualState  # its nu are the weights R
    growing: Marks
    W: Array
    slope: Array
    rate: Array  # dR/dtau
    lead: Array  # margin/tau - 1

    @property
    def clearance(self) -> Array:
        """One number per sample that is negative once the sample must change sides."""
        return np.where(self.growing, self.rate / np.abs(self.rate).max(), self.lead) + EDGE


class RatchetWalk:
    """Walks up in log tau, keeping the last position and the changes on the way."""

    def __init__(self, law: Q, Z: Array):
        self.law, self.Z = law, Z
        N, d = Z.shape
        slope = begin(law, d, np.zeros(N), np.zeros(d)).evaluate(0.0)[1]
        first = growing(Z, slope, np.ones(N, dtype=bool))
        self.start = rates(Z, slope, first)  # the dual of the l2 max margin
        s = self.start @ Z
        self.kernel = slope * s
        self.edge = float(np.log(KERNEL / np.abs(law.kappa * s).max()))
        self.position: Position | None = None
        self.changes: list[tuple[float, int, bool]] = []  # (log tau, sample, enters)

    def at(self, log_tau: float) -> tuple[Array, Array, Marks]:
        """(W/tau, R, growing) at log tau, which must not lie below the last one."""
        if log_tau <= self.edge:
            with np.errstate(under="ignore"):
                return self.kernel, self.start * np.exp(log_tau), self.start > 0
        if log_tau > HIGHEST:
            raise Failed("the scale in the units of the data is beyond float64; rescale X")
        if self.position is None:
            R = self.start * np.exp(self.edge)
            state = begin(self.law, self.Z.shape[1], R, R @ self.Z)
            self.position = self.settled(state, self.start > 0, self.edge)
        turns = Turns(1_000_000, "the ratchet in log tau")
        while self.position.log_tau < log_tau:
            turns.take()
            self.position = self.advance(self.position, log_tau)
        return self.position.W * np.exp(-log_tau), self.position.state.nu, self.position.growing

    def advance(self, here: Position, goal: float) -> Position:
        """A position further on: at `goal`, at the next change, or closer by."""
        step, why = min(STRIDE, goal - here.log_tau), ""
        for _ in range(20):
            try:
                there = self.moved(here, min(here.log_tau + step, goal))
                late = np.flatnonzero(there.clearance < 0)
                return self.changed(*self.first(here, there, late)) if late.size else there
            except (Failed, Unbounded) as reason:
                step, why = step / 2, str(reason)
        raise Failed(f"no way beyond mu = {np.exp(-here.log_tau):.6g}: {why}")

    def moved(self, here: Position, log_tau: float) -> Position:
        """The position at log tau if the same weights grow until then."""
        dR = here.rate * (np.exp(log_tau) - np.exp(here.log_tau))
        return self.settled(shifted(here.state, dR, self.Z), here.growing, log_tau)

    def settled(self, state: DualState, marks: Marks, log_tau: float) -> Position:
        """Newton's method on Z_S W = tau, the gradient of a convex function, from a guess."""
        rows, tau = self.Z[marks], np.exp(log_tau)
        W, slope = state.evaluate(0.0)
        short = tau - rows @ W
        error, damping, dR = np.abs(short).max(), 1.0, np.zeros(len(self.Z))
        for _ in range(NEWTON):
            check_time()
            terms = float((np.abs(rows) @ np.abs(W)).max())
            if error <= 1e-15 * terms:
                return self.surveyed(log_tau, state, marks, W, slope)
            dR[marks] = damping * solve_gram(rows * np.sqrt(slope), short)
            trial = shifted(state, dR, self.Z)
            with np.errstate(over="ignore", invalid="ignore"):
                new_W, new_slope = trial.evaluate(0.0)
                new_short = tau - rows @ new_W
            if np.abs(new_short).max() < error:
                state, W, slope, short = trial, new_W, new_slope, new_short
                error, damping = np.abs(short).max(), 1.0
            elif error <= 1e-12 * terms:  # an iteration that no longer improves has converged
                return self.surveyed(log_tau, state, marks, W, slope)
            else:
                damping /= 2
        raise Failed(f"relative residual {error / tau:.2g} after {NEWTON} Newton steps")

    def surveyed(
        self, log_tau: float, state: DualState, marks: Marks, W: Array, slope: Array
    ) -> Position:
        """The position with its rates and the leads of all margins."""
        lead = self.Z @ W * np.exp(-log_tau) - 1
        return Position(log_tau, state, marks, W, slope, rates(self.Z, slope, marks), lead)

    def first(self, here: Position, there: Position, late: Index) -> tuple[Position, int]:
        """The position between two where the first `late` sample crosses, and its number."""
        sample = -1
        for n in late:
            if here.clearance[n] <= 0:
                return here, int(n)
            if there.clearance[n] < 0:
                there, sample = self.crossing(here, there, int(n)), int(n)
        return there, sample

    def crossing(self, here: Position, there: Position, n: int) -> Position:
        """The position between two where the clearance of sample n vanishes."""

        def clearance(log_tau: float) -> float:
            return float(self.moved(here, log_tau).clearance[n])

        span = (here.log_tau, there.log_tau)
        return self.moved(here, scipy.optimize.brentq(clearance, *span, xtol=1e-14, rtol=1e-14))

    def changed(self, here: Position, n: int) -> Position:
        """The same position after sample n has changed sides, and others where that forces them."""
        marks = here.growing.copy()
        marks[n] = not marks[n]
        if marks[n]:
            marks = growing(self.Z, here.slope, marks)
            if not marks[n]:
                raise Failed(f"sample {n} falls back to the margin but its weight does not grow")
        for sample in np.flatnonzero(marks != here.growing):
            self.changes.append((here.log_tau, int(sample), bool(marks[sample])))
        if len(self.changes) > CHANGES:
            raise Failed(f"more than {CHANGES} changes of the support vectors")
        return self.surveyed(here.log_tau, here.state, marks, here.W, here.slope)


def certify(
    law: Q, Z: Array, beta: Array, R: Array, marks: Marks, log_tau: float, last: Array
) -> Certificate:
    """An estimate of the relative error of W/tau = `beta`, from a row of the path and the data.

    It adds up how far beta is from W(Z^T R)/tau, what Newton's method would still change, the
    margins that are short, and weights that are negative or fell since the `last` row.
    """
    size, weights = float(np.abs(beta).max()), float(R.max(initial=0.0))
    finite = np.isfinite(beta).all() and np.isfinite(R).all()
    if not (finite and size and weights and marks.any()):
        return Certificate(np.inf, "estimate")
    margins = 1 - exact.missing(Z, beta, np.ones(len(Z)))
    with np.errstate(all="ignore"):
        state = begin(law, Z.shape[1], R, R @ Z)
        W, slope = state.evaluate(0.0)
        away = np.abs(W * np.exp(-log_tau) - beta).max() / size
        short = float(np.maximum(1 - margins, 0.0).max())
        fallen = float(max((-R).max(), (last - R).max(), 0.0)) / weights
        rows, roots = Z[marks], np.sqrt(slope / slope.max())
    try:
        move = solve_gram(rows * roots, 1 - margins[marks]) @ rows
    except Failed:
        return Certificate(np.inf, "estimate")
    change = float(np.abs(roots**2 * move).max()) / size
    return Certificate(float(away + short + fallen + change), "estimate")


def rates(Z: Array, slope: Array, marks: Marks) -> Array:
    """dR/dtau when the margins of the marked rows keep pace with tau and the other weights rest."""
    rate = np.zeros(len(Z))
    rate[marks] = solve_gram(Z[marks] * np.sqrt(slope), np.ones(int(marks.sum())))
    return rate


def growing(Z: Array, slope: Array, among: Marks) -> Marks:
    """Whose weights grow, of those that may: the rows `among`, which stand at the same margin."""
    rows = np.flatnonzero(among)
    _, rate, _ = least_squares(scaled_rows(Z[rows]), slope / slope.max())
    marks = np.zeros(len(Z), dtype=bool)
    marks[rows[rate.nu > 0]] = True
    return marks


def solve_gram(G: Array, target: Array) -> Array:
    """x with G G^T x = target, by a QR factorization: G G^T itself would square the condition."""
    if len(G) > G.shape[1]:
        raise Failed(f"{len(G)} support vectors in dimension {G.shape[1]}")
    triangle = scipy.linalg.lapack.dgeqrf(G.T)[0][: len(G)]
    sizes = np.abs(triangle.diagonal())
    if sizes.min() < 1e-14 * sizes.max():
        raise Failed("the rows of the support vectors are dependent")
    inner, _ = scipy.linalg.lapack.dtrtrs(triangle, target, trans=1)
    return np.asarray(scipy.linalg.lapack.dtrtrs(triangle, inner)[0])
