"""The central flow: the averaged path of gradient descent beyond its largest stable step.

How it works (docs/theory section 37). Where the Hessian $H$ has an eigenvalue at 2/rate,
descent oscillates in its direction, and the oscillation lowers that eigenvalue. With $S$ the
covariance of the oscillation, averaged steps follow

    w' = -F,  F = grad L + (1/2) grad <S, H(w)>,    S >= 0,  H <= 2/rate,  <S, 2/rate - H> = 0.

Each step of length dt knows the gap of the eigenvalues near 2/rate, how fast the flow of the loss
alone closes it, and how fast every oscillation would open it: a small semidefinite complementarity
problem (complementarity.py), whose solution is S. The gap that is asked for is that at the end of
the step, so that errors of earlier steps are undone within a few learning rates.

Steps are not infinitely short: to first order in the rate the path of descent obeys
w' = -(F + (rate/2) H F). In the directions that oscillate the expansion in rate times eigenvalue
does not converge, and F is small there; they are left out of this term. A step finds the slopes l'
of half a step ago, l' + (rate/2) l'' J F, also where it multiplies by 1 - rate times the second
derivatives of the outputs: with both the order after the first is right where nothing oscillates.

The integrator is ROS2 (Verwer et al. 1999), of order two with any matrix in its linear systems. The
matrix is the Gauss-Newton part of the Hessian, so that a system has one row per sample. What is
left out of it are the second derivatives of the outputs, which fade with the residuals.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penchant.arguments import Array
from penchant.door import Invalid
from penchant.training.exact.central.bends import Curvature
from penchant.training.exact.central.complementarity import complementary
from penchant.training.exact.follow import Integrator
from penchant.training.exact.loss import finite
from penchant.training.exact.solver import SHORT, GaveUp
from penchant.training.samples import SampleTask
from penchant.training.task import Moment

if TYPE_CHECKING:
    from penchant.training.exact.central.flow import CentralFlow

STAGE = 1 - math.sqrt(0.5)  # of ROS2
NEAR = 0.85  # of 2/rate: eigenvalues beyond it take part in the complementarity problem
MOST = 12  # of them
DENSE = 200  # parameters up to which all eigenvectors are computed
RETURN = 4.0  # learning rates within which an eigenvalue comes back to 2/rate
LARGE = 0.5  # of the parameters: an oscillation beyond it leaves the range of the expansion
LEAST = 1e-8  # of the largest parameter: errors of smaller ones count as of that size


class Spent(GaveUp):
    what = "the central flow has no meaning"


class EdgePoint(NamedTuple):
    """A point of the flow: its parameters, their curvature, and the eigenvectors near 2/rate."""

    parameters: Array
    curvature: Curvature
    values: Array
    vectors: Array
    sharpness: float


class Damping:
    """1 / (1 + length A), A being what the Gauss-Newton part of the Hessian makes of the flow."""

    def __init__(self, curvature: Curvature, flow: CentralFlow, near: float) -> None:
        root = np.sqrt(curvature.second)[:, None] * curvature.J
        values, vectors = np.linalg.eigh(root @ root.T)
        seen = values > len(values) * np.finfo(float).eps * max(float(values[-1]), 1e-300)
        values, self.rows = values[seen], vectors[:, seen].T @ root
        self.values = values
        self.rates = values * (1 + flow.learning_rate / 2 * values * (values < near))
        if not flow.finite_steps:
            self.rates = values

    def of(self, length: float, rows: Array) -> Array:
        share = length * self.rates / (1 + length * self.rates) / self.values
        return rows - ((rows @ self.rows.T) * share) @ self.rows


class CentralIntegrator(Integrator):
    """The central flow of one task under decay at `rate`."""

    def __init__(self, task: SampleTask, flow: CentralFlow, rate: float, t_max: float) -> None:
        self.task, self.flow, self.rate, self.t_max = task, flow, rate, t_max
        self.bound = 2 / flow.learning_rate
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            predictions = task.outputs.predict(task.start)
            known = finite(task.loss, predictions)
            curvature = Curvature(task, task.start, rate)
            known = known and bool(np.isfinite(curvature.gradient).all())
            largest = float(np.abs(curvature.J).max()) if known else math.inf
        if not (known and largest < 1e100):
            raise Invalid(
                "the gradients of this start are beyond float64 (its largest prediction is "
                f"{np.abs(predictions).max():.3g}); take a smaller start"
            )
        self.guess: Array | None = None
        self.now = self.before = self._point(task.start, curvature)
        if self.now.sharpness > self.bound:
            raise Invalid(
                f"learning_rate must be below 2 over the largest eigenvalue of the Hessian at the "
                f"start, {2 / self.now.sharpness:.4g}, got {flow.learning_rate:g}; beyond it "
                "descent jumps away from the start, and no average follows it"
            )
        steepest = float(np.abs(curvature.gradient).max())
        self.stuck = not steepest and bool(curvature.first.any())
        size = float(np.abs(task.start).max())
        fastest = max(self.now.sharpness, steepest / size if size else 0.0)
        self.unit = 0.5 / (fastest or 1.0)
        self.dt = 1e-2 * self.unit
        self.t_before = 0.0
        self.variances = self.variances_before = np.zeros_like(task.start)

    def _point(self, parameters: Array, curvature: Curvature | None = None) -> EdgePoint:
        curvature = curvature or Curvature(self.task, parameters, self.rate)
        values, vectors = self._largest(curvature)
        near = np.flatnonzero(values > NEAR * self.bound)[-MOST:]
        return EdgePoint(parameters, curvature, values[near], vectors[:, near], float(values[-1]))

    def _largest(self, curvature: Curvature) -> tuple[Array, Array]:
        """The largest eigenvalues of the Hessian, in increasing order, and their eigenvectors."""
        size = curvature.parameters.size
        if size <= DENSE:
            return np.linalg.eigh(curvature.hessian())
        from scipy.sparse.linalg import LinearOperator, eigsh

        operator = LinearOperator((size, size), curvature.times, dtype=float)
        first = self.before.vectors[:, -1:].sum(axis=1) if hasattr(self, "before") else None
        first = first if first is not None and first.any() else curvature.gradient
        first = first + 1e-3 * np.linalg.norm(first) * np.cos(np.arange(size)) / math.sqrt(size)
        count = min(MOST, 2 + (self.before.values.size if hasattr(self, "before") else 0))
        values, vectors = eigsh(operator, k=count, which="LA", v0=first, tol=1e-8)
        order = np.argsort(values)
        return values[order], vectors[:, order]

    def advance(self, limit: float) -> None:
        dt, now = min(self.dt, self.t_max - self.t), self.now
        for _ in range(60):
            moved, variances, error = self._step(now, dt)
            if error <= 1:
                break
            dt *= max(0.1, 0.9 / math.sqrt(error)) if error < math.inf else 0.1
        else:
            raise GaveUp(SHORT)
        self.before, self.variances_before, self.t_before = now, self.variances, self.t
        self.now = self._point(moved)
        self.variances = variances
        self.t, self.steps = self.t + dt, self.steps + 1
        self.dt = dt * min(3.0, max(0.3, 0.9 / math.sqrt(max(error, 1e-4))))

    def _step(self, now: EdgePoint, dt: float) -> tuple[Array, Array, float]:
        """One step of ROS2: the parameters, the variances, and the error over what is allowed."""
        curvature = now.curvature
        damping = Damping(curvature, self.flow, NEAR * self.bound)
        covariance, turns = self._covariance(now, dt, damping)
        variances = np.einsum("ik,kl,il->i", now.vectors, covariance, now.vectors)
        length = STAGE * dt
        with np.errstate(over="ignore", invalid="ignore"):
            pull = 0.5 * np.einsum("kl,kli->i", covariance, turns)
            first = damping.of(length, -self._force(now, curvature, pull))
            middle = Curvature(self.task, now.parameters + dt * first, self.rate)
            pull = self._pull(middle, now, covariance)
            ahead = -self._force(now, middle, pull)
            second = damping.of(length, ahead - 2 * first)
            moved = now.parameters + dt / 2 * (3 * first + second)
            sizes = np.abs(now.parameters)
            sizes = np.maximum(sizes, LEAST * float(sizes.max()))
            wrong = np.linalg.norm(dt / 2 * (first + second) / np.maximum(sizes, np.abs(moved)))
            error = float(wrong) / math.sqrt(len(moved)) / math.sqrt(self.flow.rtol)
        return moved, variances, error if math.isfinite(error) else math.inf

    def _force(self, now: EdgePoint, curvature: Curvature, pull: Array) -> Array:
        """F and what steps of finite length add to it."""
        return self._raised(now, curvature, curvature.gradient + pull)

    def _raised(self, now: EdgePoint, curvature: Curvature, rows: Array) -> Array:
        if not self.flow.finite_steps:
            return rows
        step = self.flow.learning_rate
        rest = rows - (rows @ now.vectors) @ now.vectors.T
        seen = (rest @ curvature.J.T) * curvature.second
        outer = seen @ curvature.J + self.rate * rest
        if rows.ndim > 1:  # the response to an oscillation, which is linear in it
            return curvature.bends.stepped(curvature.first, step, rows) + step / 2 * outer
        # steps find the slopes of half a step ago, in the gradient and in the Hessian alike
        late = curvature.first + step / 2 * seen
        return curvature.bends.stepped(late, step, rows + step / 2 * outer)

    def _pull(self, curvature: Curvature, now: EdgePoint, covariance: Array) -> Array:
        """Half of the gradient of <S, H> at another point, with the same oscillation."""
        pull = np.zeros_like(now.parameters)
        if not covariance.any():
            return pull
        values, vectors = np.linalg.eigh(covariance)
        for value, direction in zip(values, (now.vectors @ vectors).T, strict=True):
            if value > 1e-12 * values[-1]:
                pull += 0.5 * value * curvature.turned(direction, direction)
        return pull

    def _covariance(self, now: EdgePoint, dt: float, damping: Damping) -> tuple[Array, Array]:
        """S between the eigenvectors near 2/rate, and the third derivatives along their pairs."""
        count, size = len(now.values), now.parameters.size
        turns = np.zeros((count, count, size))
        if not (count and self.flow.oscillates):
            return np.zeros((count, count)), turns
        for i, u in enumerate(now.vectors.T):
            for j in range(i + 1):
                turns[i, j] = turns[j, i] = now.curvature.turned(u, now.vectors[:, j])
        alone = -dt * damping.of(dt, self._force(now, now.curvature, np.zeros(size)))
        pulls = self._raised(now, now.curvature, turns.reshape(-1, size))
        moves = (-dt / 2 * damping.of(dt, pulls)).reshape(turns.shape)
        # a gap that is open may close within the step; one that is overstepped opens again soon
        gaps = self.bound - now.values
        gaps = np.where(gaps < 0, gaps * min(1.0, dt / (RETURN * self.flow.learning_rate)), gaps)
        A = np.diag(gaps) - turns @ alone
        B = -np.einsum("ijx,pqx->ijpq", turns, moves)
        B = (B + B.transpose(2, 3, 0, 1)) / 2
        covariance = complementary(A, B)
        largest = math.sqrt(max(float(np.linalg.eigvalsh(covariance)[-1]), 0.0))
        if not largest < LARGE * float(np.linalg.norm(now.parameters)):
            raise Spent(
                f"its oscillation, {largest:.3g}, is not small against the parameters, "
                f"{np.linalg.norm(now.parameters):.3g}: descent at this rate diverges or jumps "
                "elsewhere; take a smaller learning rate"
            )
        return covariance, turns

    def at(self, t: float) -> Moment:
        now, before = self.now, self.before
        share = 1.0 if self.t == self.t_before else (t - self.t_before) / (self.t - self.t_before)
        parameters = before.parameters + share * (now.parameters - before.parameters)
        variances = self.variances_before + share * (self.variances - self.variances_before)
        if share == 1.0:
            parameters = now.parameters
        sharpness = before.sharpness + share * (now.sharpness - before.sharpness)
        predictions = self.task.outputs.predict(parameters)
        return Moment(
            t,
            parameters,
            predictions,
            oscillation=np.sqrt(np.maximum(variances, 0.0)),
            sharpness=sharpness / self.bound,
        )

    def log_loss(self, now: Moment) -> float:
        return float(self.task.loss.log_loss(now.predictions))
