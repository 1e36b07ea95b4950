"""How far an answer is from the exact minimiser, computed from the answer and the data alone.

Let R be convex, beta' a predictor that meets the constraints exactly and s = X^T nu for any dual
nu. With b the inverse gradient of R, Fenchel and Young's inequality gives for every coordinate

    0 <= r(beta') + r*(s) - beta' s <= (beta' - b(s)) (r'(beta') - s),

and the sum G of the left sides bounds R(beta') - min R. On the graph of the gradient R bends with
1 / b'(s), so |beta' - beta*| is at most sqrt(2 b'(s) G) up to terms of higher order. Where b' is so
large that rounding of s decides beta (a slack below rounding), this says nothing; then the value
is certified instead, by the same inequality with s shortened a little to lie inside its domain.

beta itself meets the constraints only to rounding, and rows that nearly depend on each other
magnify that: the least change that mends it belongs to the error. A small residual alone proves
nothing.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tacit.arguments import Array
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.regularizer import Regularizer
from tacit.solvers import exact
from tacit.solvers.certificate import SMALL, UNKNOWN, Certificate
from tacit.solvers.constraints import Constraints, refitted
from tacit.solvers.homotopy import Graded
from tacit.solvers.pivots import heaviest_columns

EPS = float(np.finfo(float).eps)
RESOLVED = 1e-10  # of the predictor: what rounding of s may amount to
ROUNDING = 4e-15  # of the terms of a row
GOOD = 1e-12  # a certified error that needs no further step
STEPS = 4
STIFFEST = -500.0  # log of the least weight: a coordinate at zero still moves if none else can
VALUE = 1e-8  # tolerance for an error of the value
SHORTER = (0.0, 1e-15, 1e-13, 1e-11)  # parts of s that are cut off to lie inside its domain


@dataclasses.dataclass(frozen=True)
class Answer:
    """A predictor and the dual sum(parts)."""

    beta: Array
    parts: Array

    def moved(self, change: Array, dual: Array) -> Answer:
        """The answer after a change of both; a dual of one part stays one."""
        parts = np.vstack([self.parts, dual]) if len(self.parts) > 1 else self.parts + dual
        return Answer(self.beta + change, parts)


@dataclasses.dataclass(frozen=True)
class Equations:
    """min R(factor beta) under X beta = y as given; `reduced` rows only solve for changes."""

    regularizer: Regularizer
    X: Array
    y: Array
    reduced: Constraints
    factor: float = 1.0

    def missing(self, beta: Array) -> Array:
        """y - X beta, without rounding where rows that nearly depend on each other magnify it."""
        return exact.missing(self.X, beta, self.y, ill=self.reduced.leading is not None)

    def slopes(self, answer: Answer) -> Array:
        """X^T dual, each entry rounded once where the dual has several parts."""
        if len(answer.parts) > 1:
            return exact.product(answer.parts, self.X)
        return np.asarray(answer.parts[0] @ self.X)

    def log_softness(self, beta: Array) -> Array:
        """log of how far each coordinate moves when its dual does; for l1, log of its size."""
        with np.errstate(divide="ignore"):
            logs = sizes = np.log(np.abs(self.factor * beta))
        if not isinstance(self.regularizer, L1):
            logs = self.regularizer.log_softness(self.factor * beta)
            # beyond float64 the softest coordinates are those that are largest
            logs = np.where(logs < np.inf, logs, sizes - np.log(EPS))
        # a coordinate at zero still moves if no other can
        return np.maximum(np.nan_to_num(logs, nan=-np.inf), logs.max(initial=-np.inf) + STIFFEST)

    def step(self, answer: Answer) -> tuple[Array, Array]:
        """(change of beta, change of the dual) that Newton's method takes to meet the rows.

        It is the least change in the metric of R. Where there is none it is not a number.
        """
        right = self.factor * self.reduced.combine(self.missing(answer.beta))
        if not right.any():
            return np.zeros_like(answer.beta), np.zeros(len(self.y))
        logs, rows = self.log_softness(answer.beta), self.reduced.X
        unit = float(logs.max())
        weights = np.exp(logs - unit)
        with np.errstate(all="ignore"):
            nu = Graded(rows, weights).solve(right)
            rigid = isinstance(self.regularizer, L1)  # its dual stays where it is
            dual = self.reduced.original_dual(nu) * (0.0 if rigid else np.exp(-unit))
            return weights * (nu @ rows) / self.factor, dual

    def change(self, answer: Answer) -> Array:
        """A change of beta that meets the rows: that of Newton's method, or one on a basis.

        Where coordinates differ by so many decades that the former cancels, the softest
        independent coordinates alone meet the rows, each by about what the row lacks.
        """
        change, _ = self.step(answer)
        right = self.reduced.combine(self.missing(answer.beta))
        if self.meets(answer.beta, change, right):
            return change
        logs = self.log_softness(answer.beta)
        chosen = heaviest_columns(self.reduced.X, logs)
        change = np.zeros_like(answer.beta)
        if len(chosen) < len(right):
            return np.full_like(change, np.nan)
        change[chosen] = np.linalg.solve(self.reduced.X[:, chosen], right)
        return change

    def meets(self, beta: Array, change: Array, right: Array) -> bool:
        """Whether a change takes away most of what the reduced rows lack."""
        if not np.isfinite(change).all():
            return False
        rows = self.reduced.X
        with np.errstate(all="ignore"):
            left = np.abs(right - rows @ change)
            rounding = ROUNDING * (np.abs(rows) @ np.abs(change))
            return bool((left <= 0.1 * float(np.abs(right).max(initial=0.0)) + rounding).all())

    def unmet(self, beta: Array) -> float:
        """By how much beta misses the worst row, each in its own units and beyond rounding."""
        return worst_row(self.X, self.y, beta, self.missing(beta))

    def certificate(self, answer: Answer) -> Certificate:
        """The certificate of an answer, none of whose numbers is trusted."""
        change = self.change(answer)
        if not np.isfinite(change).all():
            return UNKNOWN
        slopes, near = self.slopes(answer), answer.beta + change
        if isinstance(self.regularizer, L1):
            lower = exact.product(answer.parts, self.y[:, None])[0] / max(1, np.abs(slopes).max())
            known = of_norm(float(np.abs(near).sum()), float(lower))
        else:
            pair = self.factor * answer.beta, slopes, self.factor * change
            known = of_smooth(self.regularizer, *pair)
        return dataclasses.replace(known, error=known.error + self.unmet(answer.beta))

    def improved(self, answer: Answer) -> tuple[Answer, Certificate]:
        """The answer after as many steps of Newton's method as lower its certified error."""
        best = self.certificate(answer)
        for _ in range(STEPS):
            if best.error <= GOOD:
                break
            change, dual = self.step(answer)
            if not np.isfinite(change).all():
                break
            both, alone = answer.moved(change, dual), answer.moved(change, np.zeros_like(dual))
            judged = [
                (self.certificate(both), both),
                (self.certificate(alone), alone),
                (self.moved(best, answer.beta, alone.beta), alone),
            ]
            certificate, trial = min(judged, key=lambda pair: pair[0].error)
            if not certificate.error < 0.5 * best.error:
                break
            best, answer = certificate, trial
        return self.fitted(answer, best)

    def fitted(self, answer: Answer, best: Certificate) -> tuple[Answer, Certificate]:
        """The answer with the rows met to their last digit, unless that spoils its error."""
        largest = float(np.abs(self.y).max())
        if not np.abs(self.missing(answer.beta)).max() > SMALL * largest:
            return answer, best
        trial = Answer(refitted(self.X, self.y, answer.beta), answer.parts)
        choices = [self.certificate(trial), self.moved(best, answer.beta, trial.beta)]
        certificate = min(choices, key=lambda choice: choice.error)
        if certificate.error <= max(best.error, GOOD):
            return trial, certificate
        return answer, best

    def moved(self, certificate: Certificate, start: Array, end: Array) -> Certificate:
        """The certificate of another predictor, by its distance from one that has one."""
        if certificate.part == "value":
            return Certificate(np.inf)
        inside = certificate.error - self.unmet(start)
        with np.errstate(all="ignore"):
            apart = float(np.abs(end - start).max() / np.abs(end).max())
        return dataclasses.replace(certificate, error=inside + apart + self.unmet(end))


def worst_row(X: Array, y: Array, beta: Array, missing: Array) -> float:
    """The largest |missing_n| beyond rounding, all rows in units of their largest entry.

    It is relative to the largest target, in the same units.
    """
    rows = np.abs(X).max(axis=1)
    units = np.where(rows > 0, rows, 1.0)
    left = np.abs(missing) - ROUNDING * (np.abs(X) @ np.abs(beta))
    largest = float(np.max(np.abs(y) / units, initial=0.0)) or 1.0
    return float(np.max(left / units, initial=0.0)) / largest


def of_smooth(
    regularizer: Regularizer, beta: Array, s: Array, change: Array, spare: float = 0.0
) -> Certificate:
    """The certificate for a strictly convex regularizer: beta + change meets the constraints.

    The error is that of beta for the targets that it does meet, and the change that the others
    make. `spare` is the sum of nu_n (margin_n - 1), the part of the gap that inequalities add.
    """
    size = float(np.abs(beta).max(initial=0.0))
    if size == 0 and not change.any():  # nothing to fit
        return Certificate(0.0)
    with np.errstate(all="ignore"):
        softest = float(np.exp(np.max(regularizer.log_softness(beta))))
        apart = (beta - regularizer.primal_of(s)) * (regularizer.dual_of(beta) - s)
        gap = float(np.abs(apart).sum()) + spare
        error = float((np.sqrt(2 * softest * gap) + np.abs(change).max()) / size)
    kind = "bound" if isinstance(regularizer, L2) else "estimate"
    certificate = Certificate(np.inf if np.isnan(error) else error, kind)  # type: ignore[arg-type]
    near = beta + change
    with np.errstate(all="ignore"):
        product = float(near @ s)
    return resolved_or_value(regularizer, certificate, softest, near, s, product, spare)


def resolved_or_value(
    regularizer: Regularizer,
    certificate: Certificate,
    softest: float,
    near: Array,
    s: Array,
    product: float,
    spare: float = 0.0,
) -> Certificate:
    """The certificate of the predictor, or that of the value where rounding of s decides it."""
    blur = softest * EPS * float(np.abs(s).max(initial=0.0))
    if certificate.ok or blur <= RESOLVED * float(np.abs(near).max(initial=0.0)):
        return certificate
    error = excess(regularizer, near, s, product, spare)
    value = Certificate(error, "bound", VALUE, "value")
    return value if value.ok or not np.isfinite(certificate.error) else certificate


def excess(
    regularizer: Regularizer, near: Array, s: Array, product: float, spare: float = 0.0
) -> float:
    """The relative excess of the value at `near` over the best lower bound that s gives.

    `product` is <near, s>; for matrices `near` and `s` are the singular values.
    """
    with np.errstate(all="ignore"):
        value = float(regularizer.terms(near).sum())
        gaps = []
        for part in SHORTER:
            shorter = (1 - part) * s
            image = regularizer.primal_of(shorter)
            conjugate = float((shorter * image - regularizer.terms(image)).sum())
            gap = value + conjugate - (1 - part) * product + spare
            gaps.append(abs(gap) if np.isfinite(gap) else np.inf)
    size = abs(value) or abs(product)
    return min(gaps) / size if size > 0 else np.inf


def of_matrix(law: Regularizer, matrix: Array, S: Array, change: Array) -> Certificate:
    """The certificate for a regularizer of singular values: matrix + change meets the rows.

    If (M, S) is at the distance g from a point of the graph of the gradient, both axes in units of
    their sizes, the gap is at most g^2 |M| |S|.
    """
    near = matrix + change
    sizes, heights = (np.linalg.svd(m, compute_uv=False) for m in (near, S))
    if not sizes[0]:
        return Certificate(0.0)
    if not heights[0]:
        return UNKNOWN
    gap = off_graph(law, matrix, S, sizes[0], heights[0]) ** 2 * sizes[0] * heights[0]
    with np.errstate(all="ignore"):
        softest = float(np.exp(np.max(law.log_softness(sizes))))
        error = float((np.sqrt(2 * softest * gap) + np.linalg.norm(change, 2)) / sizes[0])
    return resolved_or_value(
        law,
        Certificate(np.inf if np.isnan(error) else error, "estimate"),
        softest,
        sizes,
        heights,
        float((near * S).sum()),
    )


def off_graph(law: Regularizer, matrix: Array, S: Array, size: float, height: float) -> float:
    """How far (M, S) is from a pair with S = gradient(M), in units of |M| and |S|."""
    U, total, Vt = np.linalg.svd(matrix / size + S / height, full_matrices=False)
    on_graph = (U * resolvent(law, total, size, height)) @ Vt
    return float(np.linalg.norm(matrix / size - on_graph))


def resolvent(law: Regularizer, total: Array, size: float, height: float) -> Array:
    """x with x + gradient(size x)/height = total, by bisection in the gradient."""
    low, high = np.zeros_like(total), total * height
    for _ in range(200):
        middle = (low + high) / 2
        with np.errstate(over="ignore"):
            above = law.primal_of(middle) / size + middle / height > total
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.maximum(total - low / height, 0.0)


def of_norm(upper: float, lower: float) -> Certificate:
    """The certificate of a norm, by the value of a feasible point and that of a feasible dual."""
    if upper == 0:
        return Certificate(0.0)
    error = upper / lower - 1 if lower > 0 else np.inf
    return Certificate(float(max(error, 0.0)), "bound", VALUE, "value")
