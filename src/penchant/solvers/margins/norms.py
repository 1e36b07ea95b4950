"""argmin of a norm under A b >= c: l_inf by a linear program, matrix norms by a central path.

For the nuclear norm the path runs in the dual, for the spectral norm in the primal: both maximise
a linear function under linear inequalities and one bound |M(x)| < 1 on a largest singular value,
whose barrier is -log det(1 - M^T M). Its slope gives the other half of the pair, feasible too.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.regularizers.norms import Linf
from penchant.regularizers.spectral import MatrixNorm, Nuclear
from penchant.solvers.continuation import Failed
from penchant.solvers.margins.active_set import least_squares
from penchant.solvers.margins.l1 import refined
from penchant.solvers.margins.rows import Rows
from penchant.solvers.solution import SOLVED, Found

GAP = 1e-11  # relative duality gap at the end of the path
GOOD = 1e-9  # one that is good enough where rounding ends it
SHRINK = 0.05  # of mu from one point of the path to the next
NEWTON = 50  # steps for one point
FEW = 12  # of them that are safe; later ones are as long as they gain
DOUBLINGS = 30  # of the length of a step
GENTLEST = 0.8  # no shorter step down is tried
CENTRED = 1e-3  # length of a step from which on its end counts as the point


def solve(norm: Linf | MatrixNorm, rows: Rows) -> Found:
    """A minimiser and its dual in the units of the rows; where there are many, one of them."""
    if isinstance(norm, Linf):
        b, nu, steps = in_box(rows)
    else:
        assert norm.shape is not None
        tensor = rows.A.reshape(-1, *norm.shape)
        inside = separating(rows, norm)
        if isinstance(norm, Nuclear):
            pairs, steps = least_nuclear(tensor, rows.c)
        else:
            pairs, steps = least_spectral(tensor, rows.c, inside)
        feasible = [in_reach(norm, rows, inside, *pair) for pair in pairs]
        b, nu = min(feasible, key=lambda pair: norm(pair[0]) / float(rows.c @ pair[1]))
    return Found(rows.scale * b, rows.factors * nu, steps, SOLVED)


def in_reach(
    norm: MatrixNorm, rows: Rows, inside: Array, b: Array, nu: Array
) -> tuple[Array, Array]:
    """All margins met, along a direction in which all grow, and a dual of norm one."""
    b = b + max(0.0, float(((rows.c - rows.A @ b) / (rows.A @ inside)).max())) * inside
    apart = (rows.A @ b - rows.c) / norm(b)
    # small weights beside margins above one are rounding, or both vanish like the root of mu
    duals = [np.where(nu > nu.max() * apart, nu, 0.0), nu]
    duals = [dual / norm.dual_norm(dual @ rows.A) for dual in duals]
    few, every = (float(rows.c @ dual) for dual in duals)
    return b, duals[int(every > (1 + GAP) * few)]


def in_box(rows: Rows) -> tuple[Array, Array, int]:
    """(b, nu, iterations) of min t under A b >= c and |b_i| <= t."""
    n, d = rows.A.shape
    identity, side = np.eye(d), np.ones((d, 1))
    A = np.block([[rows.A, np.zeros((n, 1))], [-identity, side], [identity, side]])
    c = np.concatenate([rows.c, np.zeros(2 * d)])
    cost = np.append(np.zeros(d), 1.0)
    x, nu, steps = refined(cost, A, c, np.full(d + 1, -np.inf))
    return x[:d], nu[:n], steps


def least_nuclear(tensor: Array, c: Array) -> tuple[list[tuple[Array, Array]], int]:
    """max c.nu under nu >= 0 and |sum nu_n A_n| <= 1, with the matrix of its barrier's slope."""
    top = float(np.linalg.norm(tensor.sum(axis=0), 2)) or 1.0
    path = BarrierPath(c, np.eye(len(c)), tensor, np.full(len(c), 0.5 / top))
    last, steps = path.end()
    pairs = []
    for x, move, mu in last:
        barrier = Barrier.at(path.matrix(x))
        pairs.append((mu * (barrier.slope() + barrier.bend(path.matrix(move))).ravel(), x))
    return pairs, steps


def separating(rows: Rows, norm: MatrixNorm) -> Array:
    """A matrix of norm one half with comparable margins on all rows, however c spreads."""
    even = dataclasses.replace(rows, c=np.ones_like(rows.c))
    V = least_squares(even, np.ones(rows.A.shape[1]))[1].b
    return V / (2 * norm(V))


def least_spectral(tensor: Array, c: Array, inside: Array) -> tuple[list[tuple[Array, Array]], int]:
    """max m under A V >= m c and |V| <= 1, from a V with positive margins; b = V / m."""
    n, size = len(tensor), tensor[0].size
    basis = np.vstack([np.eye(size), np.zeros((1, size))]).reshape(-1, *tensor.shape[1:])
    L = np.hstack([tensor.reshape(n, -1), -c[:, None]])
    goal = np.append(np.zeros(size), 1.0)
    last, steps = BarrierPath(goal, L, basis, np.append(inside, -1.0)).end()
    pairs = []
    for x, move, mu in last:
        slack = L @ x
        # a share beyond the length of the step is rounding, and would turn the sign of a weight
        share = np.clip(L @ move / slack, -CENTRED, CENTRED)
        pairs.append((x[:-1] / x[-1], mu / slack * (1 - share)))
    return pairs, steps


@dataclasses.dataclass(frozen=True)
class Barrier:
    """-log det(1 - M^T M) by the full singular value decomposition of M; room = 1 - s^2."""

    U: Array
    s: Array
    V: Array
    room: Array

    @classmethod
    def at(cls, M: Array) -> Barrier:
        U, s, Vt = np.linalg.svd(M)
        room = np.ones(M.shape[1])
        room[: len(s)] = (1 - s) * (1 + s)
        return cls(U, s, Vt.T, room)

    def turned(self, H: Array) -> Array:
        """One matrix or many in the two bases."""
        return np.asarray(self.U.T @ H @ self.V)

    def mixed(self, turned: Array) -> Array:
        """M^T H + H^T M in these bases."""
        half = np.zeros((*turned.shape[:-2], len(self.V), len(self.V)))
        half[..., : len(self.s), :] = self.s[:, None] * turned[..., : len(self.s), :]
        return half + np.swapaxes(half, -1, -2)

    def slope(self) -> Array:
        """2 M (1 - M^T M)^-1."""
        count = len(self.s)
        return (self.U[:, :count] * (2 * self.s / self.room[:count])) @ self.V[:, :count].T

    def bend(self, H: Array) -> Array:
        """The change of the slope along H."""
        turned, outer = self.turned(H), np.outer(self.room, self.room)
        change, count = 2 * turned / self.room, len(self.s)
        change[:count] += 2 * self.s[:, None] * (self.mixed(turned) / outer)[:count]
        return np.asarray(self.U @ change @ self.V.T)

    def squares(self, tensor: Array) -> Array:
        """Rows with products that are the second derivatives along the matrices of a tensor."""
        turned = self.turned(tensor)
        plain = turned * np.sqrt(2 / self.room)
        mixed = self.mixed(turned) / np.sqrt(np.outer(self.room, self.room))
        return np.hstack([part.reshape(len(tensor), -1) for part in (plain, mixed)])


@dataclasses.dataclass(frozen=True)
class BarrierPath:
    """max goal.x / mu + sum log(L x) + log det(1 - M^T M), M = sum_k x_k tensor_k, as mu falls."""

    goal: Array
    L: Array
    tensor: Array
    start: Array

    def matrix(self, x: Array) -> Array:
        return np.asarray(np.tensordot(x, self.tensor, axes=1))

    def end(self) -> tuple[list[tuple[Array, Array, float]], int]:
        """The last two points (x, Newton's step from it, mu), and the steps.

        mu is that of each inequality and singular value. The room 1 - s of the last point may be a
        few hundred roundings, which its slope divides by: the point before can be the better one.
        """
        count, mu, steps = len(self.L) + min(self.tensor.shape[1:]), 1.0, 0
        x, centre, before, shrink, careful = self.start, None, None, SHRINK, False
        for _ in Turns(10_000, "the central path"):
            for taken in range(NEWTON):
                move, decrement = self.step(x, mu, careful)
                steps += 1
                if not decrement > CENTRED:
                    break
                length = 1.0 if decrement < 0.25 else 1 / (1 + decrement)  # stays inside
                x = x + move * (length if taken < FEW else self.longer(x, mu, move, length))
            if not decrement <= CENTRED:  # rounding: care or a shorter way may lead further
                if centre is not None and centre[2] * count < GOOD * abs(
                    float(self.goal @ centre[0])
                ):
                    break
                if not careful:
                    careful, x = True, self.start if centre is None else centre[0]
                    continue
                if centre is None or shrink > GENTLEST:
                    break
                x, shrink = centre[0], shrink**0.5
                mu = centre[2] * shrink
                continue
            before, centre = centre, (x, move, mu)
            if mu * count < GAP * abs(float(self.goal @ x)):
                break
            mu *= shrink
        if centre is None:
            raise Failed("the central path has no first point")
        return [centre] if before is None else [centre, before], steps

    def longer(self, x: Array, mu: float, move: Array, length: float) -> float:
        """The length of a step, doubled while the function rises.

        A length that is sure to stay inside gains no more than a constant: with a hundred rows the
        first point is further away than NEWTON such steps. The function is concave, so that it
        rises all the way to a point where it still rises.
        """
        turning = self.matrix(move)
        for _ in range(DOUBLINGS):
            there = x + 2 * length * move
            slack, barrier = self.L @ there, Barrier.at(self.matrix(there))
            if not min(slack.min(), barrier.room.min()) > 0:
                break
            rise = float(self.goal @ move) / mu + float((self.L @ move / slack).sum())
            if not rise > float((turning * barrier.slope()).sum()):
                break
            length *= 2
        return length

    def step(self, x: Array, mu: float, careful: bool) -> tuple[Array, float]:
        """Newton's step and its length in the metric of the barrier, not a number outside.

        A `careful` step is solved by a root of the Hessian, which nearly equal rows make singular
        to rounding long before its root.
        """
        slack, barrier = self.L @ x, Barrier.at(self.matrix(x))
        if not min(slack.min(), barrier.room.min()) > 0:  # by rounding
            return x, np.nan
        pulled = np.tensordot(self.tensor, barrier.slope(), axes=2)
        slope = self.goal / mu + self.L.T @ (1 / slack) - pulled
        with np.errstate(all="ignore"):  # what overflows is no step
            scaled, parts = self.L / slack[:, None], barrier.squares(self.tensor)
            hessian = scaled.T @ scaled + parts @ parts.T
            unit = 1 / np.sqrt(np.diag(hessian))
            try:
                if careful:
                    move = unit * by_root(np.vstack([scaled, parts.T]) * unit, unit * slope)
                else:
                    move = unit * np.linalg.solve(hessian * np.outer(unit, unit), unit * slope)
            except np.linalg.LinAlgError:
                return slope, np.nan
            square = float(slope @ move)  # a form that is positive, but for rounding
        return move, square**0.5 if square >= 0 else np.nan


def by_root(root: Array, right: Array) -> Array:
    """(root^T root)^-1 right."""
    triangle = np.linalg.qr(root)[1]
    return np.asarray(np.linalg.solve(triangle, np.linalg.solve(triangle.T, right)))
