"""The ratchet followed in tau = 1/mu, from one change of its support vectors to the next.

How it works. This is the limit alpha -> infinity of gradient flow on separable data (docs/theory
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
condition that is large already. Rows that nearly agree are told apart by their differences: in
float64 their margins cross each other anywhere within rounding over the distance of the rows. One
threshold of 1e-11 for all samples moved a change of rows that are 1e-8 apart by a percent. The
certificate compares a row with its conditions and with the weights of the row before; a change that
was missed does not show in it.
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
from penchant.solvers.dual_state import DualState, begin, shifted, stepped
from penchant.solvers.margins.active_set import Index, Unbounded, least_squares
from penchant.solvers.margins.rows import scaled_rows

KERNEL = 1e-6  # with max|s| below this W(s) is linear to 1e-12
EDGE = 1e-11  # of its terms, or of one: what counts as having crossed zero
STRIDE = 0.25  # longest step in log tau
NEAR = 0.1  # relative distance of rows that are told apart by their difference
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
    edge: Array  # how far below zero a lead counts as having crossed it

    @property
    def clearance(self) -> Array:
        """One number per sample that is negative once the sample must change sides."""
        share = self.rate / np.abs(self.rate).max()
        return np.where(self.growing, share + EDGE, self.lead + self.edge)


class Apart:
    """Rows, but one that nearly agrees with an earlier one less that one, in the size of the row.

    Every digit of the difference tells the two apart; in the rows themselves it is hidden by the
    rounding of what they share. `ones` are the products with a vector of margins one.
    """

    def __init__(self, rows: Array):
        distance = distances(rows, rows)
        distance[np.triu_indices(len(rows))] = np.inf
        nearest, size = distance.argmin(axis=1), np.linalg.norm(rows, axis=1)
        self.near = np.flatnonzero(distance.min(axis=1) <= NEAR * size)
        self.earlier = nearest[self.near]
        self.rows, self.ones, self.sizes = rows.copy(), np.ones(len(rows)), np.ones(len(rows))
        self.rows[self.near] -= rows[self.earlier]
        self.ones[self.near] = 0.0
        self.sizes[self.near] = distance[self.near, self.earlier] / size[self.near]
        if not self.sizes.all():
            raise Failed("the rows of the support vectors are dependent")
        self.rows /= self.sizes[:, None]
        self.heights = np.abs(self.rows)

    def original(self, dual: Array) -> Array:
        """The dual of the rows as they are, from one of these."""
        if not self.near.size:
            return dual
        weights = dual / self.sizes
        np.subtract.at(weights, self.earlier, weights[self.near].copy())
        return weights


def distances(rows: Array, others: Array) -> Array:
    """One row for each of `rows`, one column for each of the others.

    Products of the rows give them, but for those that nearly agree: these are subtracted.
    """
    squares = np.einsum("ij,ij->i", rows, rows)[:, None]
    apart = squares + np.einsum("ij,ij->i", others, others) - 2 * (rows @ others.T)
    places = np.nonzero(apart <= (2 * NEAR) ** 2 * squares)
    distance = np.sqrt(np.maximum(apart, 0.0))
    distance[places] = np.linalg.norm(rows[places[0]] - others[places[1]], axis=1)
    return distance


class ToldApart:
    """All rows, but one that nearly agrees with a marked one less that one, and the marked ones."""

    def __init__(self, Z: Array, marks: Marks):
        self.marks, self.growing = marks, Apart(Z[marks])
        distance = distances(Z, Z[marks])
        self.near = distance.min(axis=1) <= NEAR * np.linalg.norm(Z, axis=1)
        self.any_near = bool(self.near.any())
        nearest = Z[marks][distance.argmin(axis=1)]
        self.rows = np.where(self.near[:, None], Z - nearest, Z)
        self.ones = np.where(self.near, 0.0, 1.0)  # the products with a vector of margins one
        self.sizes = np.abs(self.rows)


class RatchetWalk:
    """Walks up in log tau, keeping the last position and the changes on the way."""

    def __init__(self, law: Q, Z: Array):
        self.law, self.Z, self.sizes = law, Z, np.abs(Z)
        N, d = Z.shape
        self.told: ToldApart | None = None
        self.edges = np.full(N, EDGE)
        self.refused = np.zeros(N, dtype=bool)  # their differences are below what `growing` sees
        slope = begin(law, d, np.zeros(N), np.zeros(d)).evaluate(0.0)[1]
        first = growing(Z, slope, np.ones(N, dtype=bool))
        self.start = rates(self.told_apart(first), slope)  # the dual of the l2 max margin
        s = self.start @ Z
        self.kernel = slope * s
        self.edge = float(np.log(KERNEL / np.abs(law.kappa * s).max()))
        self.position: Position | None = None
        self.before: Position | None = None
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
            self.before, self.position = self.position, self.advance(self.position, log_tau)
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
        guess = shifted(here.state, self.foreseen(here, log_tau), self.Z)
        return self.settled(guess, here.growing, log_tau)

    def foreseen(self, here: Position, log_tau: float) -> Array:
        """How much the weights grow until log tau, about.

        The cubic in log tau through this position and the last one, with their rates; while the
        same weights grow, that saves Newton's method a step. Without a last one: as now, in tau.
        """
        before, span = self.before, log_tau - here.log_tau
        past = 0.0 if before is None else here.log_tau - before.log_tau
        if before is None or before.growing is not here.growing or past < 0.01 * span:
            return here.rate * (np.exp(log_tau) - np.exp(here.log_tau))
        new, old = here.rate * np.exp(here.log_tau), before.rate * np.exp(before.log_tau)
        bend = (before.state.nu - here.state.nu + past * new) / past**2
        turn = (old - new) / past
        return span * new + span**2 * (3 * bend + turn + span / past * (2 * bend + turn))

    def settled(self, state: DualState, marks: Marks, log_tau: float) -> Position:
        """Newton's method on Z_S W = tau, the gradient of a convex function, from a guess."""
        apart, tau = self.told_apart(marks).growing, np.exp(log_tau)
        rows, goal = apart.rows, tau * apart.ones
        W, slope = state.evaluate(0.0)
        short = goal - rows @ W
        error, damping, dR = np.abs(short).max(), 1.0, np.zeros(len(self.Z))
        with np.errstate(over="ignore", invalid="ignore"):  # a trial may lead too far
            for _ in range(NEWTON):
                check_time()
                terms = float((apart.heights @ np.abs(W)).max())
                if error <= 1e-15 * terms:
                    break
                step = damping * solve_gram(rows * np.sqrt(slope), short)
                dR[marks] = apart.original(step)
                trial = stepped(state, dR, step @ rows)
                new_W, new_slope = trial.evaluate(0.0)
                new_short = goal - rows @ new_W
                new_error = np.abs(new_short).max()
                if new_error < error:
                    state, W, slope, short = trial, new_W, new_slope, new_short
                    error, damping = new_error, 1.0
                elif error <= 1e-12 * terms:  # an iteration that no longer improves has converged
                    break
                else:
                    damping /= 2
            else:
                raise Failed(f"relative residual {error / tau:.2g} after {NEWTON} Newton steps")
        return self.surveyed(log_tau, state, marks, W, slope)

    def surveyed(
        self, log_tau: float, state: DualState, marks: Marks, W: Array, slope: Array
    ) -> Position:
        """The position with its rates and the leads of all margins."""
        beta = W * np.exp(-log_tau)
        told = self.told_apart(marks)
        edge = self.edges
        if told.any_near:
            with np.errstate(over="ignore"):
                blur = slope * (state.nu @ self.sizes) * np.exp(-log_tau)
                nearer = EDGE * np.minimum(told.sizes @ blur, 1.0)
            edge = np.where(told.near & ~self.refused, nearer, EDGE)
        lead, rate = told.rows @ beta - told.ones, rates(told, slope)
        return Position(log_tau, state, marks, W, slope, rate, lead, edge)

    def told_apart(self, marks: Marks) -> ToldApart:
        """The rows as they are told apart while these grow, kept until others do."""
        told = self.told
        if told is None or (told.marks is not marks and (told.marks != marks).any()):
            told = self.told = ToldApart(self.Z, marks)
        return told

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
            if not marks[n] and here.edge[n] < EDGE:
                self.refused[n] = True
                return self.surveyed(here.log_tau, here.state, here.growing, here.W, here.slope)
            if not marks[n]:
                raise Failed(f"sample {n} falls back to the margin but its weight does not grow")
        for sample in np.flatnonzero(marks != here.growing):
            self.changes.append((here.log_tau, int(sample), bool(marks[sample])))
        if len(self.changes) > CHANGES:
            raise Failed(f"more than {CHANGES} changes of the support vectors")
        return self.surveyed(here.log_tau, here.state, marks, here.W, here.slope)


def certify(
    walk: RatchetWalk, beta: Array, R: Array, marks: Marks, log_tau: float, last: Array
) -> Certificate:
    """An estimate of the relative error of W/tau = `beta`, from a row of the path and the data.

    Of the walk it takes the data alone, with the rows as they are told apart.

    It adds up how far beta is from W(Z^T R)/tau, what Newton's method would still change, the
    margins that are short, and weights that are negative or fell since the `last` row.
    """
    law, Z = walk.law, walk.Z
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
        roots = np.sqrt(slope / slope.max())
    try:
        apart = walk.told_apart(marks).growing
        lacking = exact.missing(apart.rows, beta, apart.ones)
        move = solve_gram(apart.rows * roots, lacking) @ apart.rows
    except Failed:
        return Certificate(np.inf, "estimate")
    change = float(np.abs(roots**2 * move).max()) / size
    return Certificate(float(away + short + fallen + change), "estimate")


def rates(told: ToldApart, slope: Array) -> Array:
    """dR/dtau when the margins of the marked rows keep pace with tau and the other weights rest."""
    rate, apart = np.zeros(len(told.rows)), told.growing
    rate[told.marks] = apart.original(solve_gram(apart.rows * np.sqrt(slope), apart.ones))
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
