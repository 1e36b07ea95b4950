"""How far an answer is from the exact minimiser, computed from the answer and the data alone.

How it works (docs/theory section 12). Let R be convex, beta' a predictor that meets the
constraints exactly and s = X^T nu for any dual nu. With b the inverse gradient of R, Fenchel and
Young's inequality gives for every coordinate

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
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.regularizers.norms import L1, L2
from penchant.regularizers.q import over_scales
from penchant.regularizers.regularizer import Regularizer
from penchant.solvers import constraints, exact
from penchant.solvers.certificate import SMALL, UNKNOWN, Certificate
from penchant.solvers.homotopy import Graded
from penchant.solvers.pivots import heaviest_columns
from penchant.solvers.sparse_rows import SparseRows

EPS, LARGEST = float(np.finfo(float).eps), float(np.finfo(float).max)
RESOLVED = 1e-10  # of the predictor: what rounding of s may amount to
ROUNDING = 4e-15  # of the terms of a row
GOOD = 1e-9  # a certified error that needs no further step
STEPS = 4
SHORT = 0.1  # of an error: what a step may be and still not halve it
STIFFEST = -500.0  # log of the least weight: a coordinate at zero still moves if none else can
TOGETHER = 16  # answers that are certified at once: few enough to keep little of a long path
VALUE = 1e-8  # tolerance for an error of the value
SHORTER = (0.0, 1e-15, 1e-13, 1e-11)  # parts of s that are cut off to lie inside its domain


class Given:
    """The rows X beta = y as they were given, and sizes that many answers share.

    Rows that were divided by powers of two come with these `powers`.
    """

    def __init__(self, X: Array, y: Array, powers: Any = 0) -> None:
        self.X, self.y, self.powers = X, y, powers

    def as_given(self, numbers: Array) -> Array:
        """One number for each row in the units of the data."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(numbers, self.powers)) if np.any(self.powers) else numbers

    @functools.cached_property
    def sizes(self) -> Array:
        return np.abs(self.X)

    @functools.cached_property
    def units(self) -> Array:
        """The largest entry of each row."""
        rows = np.maximum(self.X.max(axis=1), -self.X.min(axis=1))
        return np.where(rows > 0, rows, 1.0)

    @functools.cached_property
    def largest(self) -> float:
        """The largest target, in units of the rows."""
        return float(np.max(np.abs(self.y) / self.units, initial=0.0)) or 1.0

    def missing(self, beta: Array, ill: bool = False) -> Array:
        """y - X beta, without rounding where that would show; for ill rows it would."""
        terms = self.units.max() * float(np.abs(beta).sum())
        if ill or EPS * terms > exact.VISIBLE * float(np.abs(self.y).max(initial=0.0)):
            return exact.missing(self.X, beta, self.y, ill)
        return np.asarray(self.y - self.X @ beta)

    @functools.cached_property
    def most(self) -> float:
        """The largest target, in the units of the data."""
        return float(np.abs(self.as_given(self.y)).max(initial=0.0)) or 1.0

    def unmet(self, beta: Array, missing: Array) -> float:
        """The largest |missing_n| beyond rounding, relative to the largest target.

        Rows and targets are compared in units of the largest entries of the rows, and as they are:
        in either units a large target may hide that a small one is missed.
        """
        gaps = np.abs(missing)
        in_units = gaps / self.units <= ROUNDING * self.largest
        if in_units.all() and (self.as_given(gaps) <= ROUNDING * self.most).all():
            return 0.0
        left = np.maximum(gaps - ROUNDING * (self.sizes @ np.abs(beta)), 0.0)
        by_units = float(np.max(left / self.units, initial=0.0)) / self.largest
        return max(by_units, float(self.as_given(left).max(initial=0.0)) / self.most)


@dataclasses.dataclass(frozen=True)
class Equations:
    """min R(factor beta) under X beta = y as given; `reduced` rows only solve for changes.

    `mend` gives the change of beta that meets rows which lack so much, where a solver has it.
    """

    regularizer: Regularizer
    given: Given
    reduced: Any  # Constraints; None where no change will be asked for
    factor: float = 1.0
    mend: Callable[[Array], Array] | None = None

    def answer(self, beta: Array, parts: Array) -> Answer:
        """An answer, of which everything is computed once."""
        return Answer(self, beta, parts)

    def reduced_change(self, answer: Answer) -> Array:
        """A change of beta that meets the rows: Newton's, the shortest, or one on a basis.

        Where coordinates differ by so many decades that the former cancels, the softest
        independent coordinates alone meet the rows, each by about what the row lacks.
        """
        right = self.reduced.combine(answer.missing)
        if not right.any():
            return np.zeros_like(answer.beta)
        if self.mend is not None and self.meets(change := self.mend(answer.missing), right):
            return change
        plain = self.reduced.gram is not None
        if plain and self.meets(change := self.reduced.shortest(right), right):
            return change
        if self.meets(change := answer.step[0], right):
            return change
        change = np.zeros_like(answer.beta)
        for logs in (answer.log_softness, np.zeros_like(change)):
            chosen = heaviest_columns(self.reduced.X, logs)
            if len(chosen) == len(right):
                break
        else:
            return np.full_like(change, np.nan)
        change[chosen] = np.linalg.solve(self.reduced.X[:, chosen], right)
        return change

    def meets(self, change: Array, right: Array) -> bool:
        """Whether a change takes away most of what the reduced rows lack."""
        if not np.isfinite(change).all():
            return False
        rows, much = self.reduced.X, 0.1 * float(np.abs(right).max(initial=0.0))
        with np.errstate(all="ignore"):
            left = np.abs(right - rows @ change)
            if (left <= much).all():
                return True
            rounding = ROUNDING * (np.abs(rows) @ np.abs(change))
            return bool((left <= much + rounding).all())

    def certificate(self, answer: Answer) -> Certificate:
        """The certificate of an answer, none of whose numbers is trusted."""
        change = answer.change
        if not np.isfinite(change).all():
            return UNKNOWN
        if isinstance(self.regularizer, L1):
            reward = exact.product(answer.parts, self.given.y[:, None])[0]
            length, change_length = (float(np.abs(v).sum()) for v in (answer.beta, change))
            longest = float(np.abs(answer.slopes).max())
            known = of_norm(length, change_length, float(reward), longest)
        elif len(self.reduced.X) == len(answer.beta):  # one predictor fits, whatever R is
            size = float(np.abs(answer.beta).max(initial=0.0)) or 1.0
            error = float(np.abs(change).max(initial=0.0)) / size
            known = Certificate(error + answer.graph.distance)
        else:
            known = of_smooth(answer, self.factor * change)
            if not known.ok:
                known = self.by_rows(answer, change, known)
        if not answer.unmet:
            return known
        return dataclasses.replace(known, error=known.error + answer.unmet)

    def by_rows(self, answer: Answer, change: Array, known: Certificate) -> Certificate:
        """The certificate that also uses that two predictors which meet the rows differ by X d = 0.

        sqrt(2 b' G) bounds every coordinate of d. Where b' spans decades that says nothing of the
        soft ones; but the rows give the softest independent coordinates of d from the others.
        """
        rows = self.reduced.X
        if isinstance(rows, SparseRows):
            return known
        chosen = heaviest_columns(rows, answer.log_softness)
        if len(chosen) < len(rows):
            return known
        others = np.setdiff1d(np.arange(rows.shape[1]), chosen)
        size = float(np.abs(answer.scaled).max())
        with np.errstate(all="ignore"):
            apart = np.sqrt(2 * answer.graph.gap) * np.exp(answer.log_softness / 2)
            given = np.linalg.solve(rows[:, chosen], rows[:, others])
            apart[chosen] = np.fmin(apart[chosen], np.abs(given) @ apart[others])
            error = float(apart.max() / size + np.abs(self.factor * change).max() / size)
        error = max(error, float(answer.graph.distance))
        return Certificate(error, "estimate") if error < known.error else known

    def improved(self, answer: Answer) -> tuple[Answer, Certificate]:
        """The answer after as many steps of Newton's method as lower its certified error."""
        best = self.certificate(answer)
        answer, best = self.reseated(answer, best)
        for _ in range(STEPS):
            if best.error <= GOOD or answer.at_rest(best):
                break
            change, dual = answer.step
            if not np.isfinite(change).all():
                break
            both, alone = answer.moved(change, dual), answer.moved(change, np.zeros_like(dual))
            judged = [
                (self.certificate(both), both),
                (self.certificate(alone), alone),
                (moved(best, answer, alone), alone),
            ]
            if not any(certificate.ok for certificate, _ in judged):
                seated = self.seated(alone)
                judged.append((self.certificate(seated), seated))
            certificate, trial = min(judged, key=lambda pair: pair[0].error)
            if not certificate.error < 0.5 * best.error:
                break
            best, answer = certificate, trial
        return self.fitted(*self.reseated(answer, best))

    def reseated(self, answer: Answer, best: Certificate) -> tuple[Answer, Certificate]:
        """The answer with the dual of `seated` where only that one certifies it."""
        if best.ok:
            return answer, best
        trial = self.seated(answer)
        certificate = self.certificate(trial)
        return (trial, certificate) if certificate.ok else (answer, best)

    def seated(self, answer: Answer) -> Answer:
        """The answer with a dual whose slopes are the gradient at the softest coordinates.

        One float64 dual is right to a part of its largest slope. Where slopes span decades that
        leaves the domain of a small one, so this dual is a sum.
        """
        if isinstance(self.regularizer, L1):
            return answer
        chosen = heaviest_columns(self.reduced.X, answer.log_softness)
        gradient = answer.graph.gradient[chosen]
        if len(chosen) < len(self.reduced.X) or not np.isfinite(gradient).all():
            return answer
        parts, columns = answer.parts, self.given.X[:, chosen]
        last = np.full(len(chosen), np.inf)
        for _ in range(constraints.PARTS - len(parts)):
            lacking = exact.rest(gradient, parts, columns)
            size = np.abs(lacking)
            if (size <= EPS * np.abs(gradient)).all() or not (size < 0.5 * last).any():
                break
            last = size
            nu = np.linalg.solve(self.reduced.X[:, chosen].T, lacking)
            parts = np.vstack([parts, self.reduced.original_dual(nu)])
        return self.answer(answer.beta, parts)

    def fitted(self, answer: Answer, best: Certificate) -> tuple[Answer, Certificate]:
        """The answer with the rows met to their last digit, unless that spoils its error."""
        given = self.given
        gaps = np.abs(answer.missing)
        if (gaps <= SMALL * np.abs(given.y)).all():
            return answer, best
        # a row of small terms beside a large target is met in its own terms, too
        terms = np.abs(given.y) + given.sizes @ np.abs(answer.beta)
        if not (gaps > SMALL * np.minimum(terms, float(np.abs(given.y).max()))).any():
            return answer, best
        for free in (None, np.ones(len(answer.beta), dtype=bool)):
            beta = constraints.refitted(given.X, given.y, answer.beta, free)
            trial = self.answer(beta, answer.parts)
            choices = [self.certificate(trial), moved(best, answer, trial)]
            certificate = min(choices, key=lambda choice: choice.error)
            trial, certificate = self.reseated(trial, certificate)
            # errors below the tolerance are known up to a factor, and rows that are missed are seen
            if certificate.error <= (max(2 * best.error, GOOD) if certificate.ok else GOOD):
                return trial, certificate
            if certificate.error <= best.error:
                answer, best = trial, certificate
        return answer, best


class Answer:
    """A predictor and the dual sum(parts) of some equations, with what follows from them."""

    def __init__(self, equations: Equations, beta: Array, parts: Array) -> None:
        self.equations, self.beta, self.parts = equations, beta, parts

    def moved(self, change: Array, dual: Array) -> Answer:
        """The answer after a change of both; a dual of one part stays one."""
        parts = np.vstack([self.parts, dual]) if len(self.parts) > 1 else self.parts + dual
        return Answer(self.equations, self.beta + change, parts)

    @property
    def scaled(self) -> Array:
        """beta in the units in which the gradient of R is the dual."""
        return self.equations.factor * self.beta

    @functools.cached_property
    def missing(self) -> Array:
        """y - X beta."""
        ill = self.equations.reduced.leading is not None
        return self.equations.given.missing(self.beta, ill)

    @functools.cached_property
    def unmet(self) -> float:
        """By how much beta misses the worst row, each in its own units and beyond rounding."""
        return self.equations.given.unmet(self.beta, self.missing)

    @functools.cached_property
    def slopes(self) -> Array:
        """X^T dual, each entry rounded once where rounding of its terms would show."""
        given = self.equations.given
        if len(self.parts) > 1:
            return exact.product(self.parts, given.X)
        slopes = np.asarray(self.parts[0] @ given.X)
        # a sum that cancels says how far it is from the graph only to its own rounding
        enough, sizes = RESOLVED * float(np.abs(slopes).max(initial=0.0)), np.abs(self.parts[0])
        if EPS * float(sizes @ given.units) <= enough or given.X.size > exact.MOST:
            return slopes
        shown = EPS * float((sizes @ given.sizes).max(initial=0.0)) > enough
        return exact.product(self.parts, given.X) if shown else slopes

    @functools.cached_property
    def graph(self) -> Graph:
        """The two points of the graph of the gradient that beta and the dual stand for."""
        return Graph.of(self.equations.regularizer, self.scaled, self.slopes)

    @functools.cached_property
    def change(self) -> Array:
        """A change of beta that meets the rows."""
        return self.equations.reduced_change(self)

    def at_rest(self, known: Certificate) -> bool:
        """Whether a step of Newton's method cannot halve a certified error, as long as it is small.

        The step moves beta and s along the graph of the gradient, so that to first order their
        distances from it stay. If only beta moves, the triangle inequality in the metric of R says
        by how much the root of the gap can fall.
        """
        if not known.ok or known.part == "value" or isinstance(self.equations.regularizer, L1):
            return False
        change, size = self.equations.factor * self.change, float(np.abs(self.scaled).max())
        with np.errstate(all="ignore"):
            short = float(np.abs(change).max()) / size + self.unmet <= SHORT * known.error
            length = float((change**2 * np.exp(-self.log_softness)).sum())
            return short and length <= SHORT**2 * self.graph.gap

    @functools.cached_property
    def log_softest(self) -> float:
        """The largest log_softness."""
        regularizer = self.equations.regularizer
        if "log_softness" not in self.__dict__ and not isinstance(regularizer, L1):
            places = regularizer.softest(self.scaled)
            logs = regularizer.log_softness(self.scaled[places], self.graph.gradient[places])
            if (top := float(logs.max())) < np.inf:
                return max(top, -LARGEST)
        return float(self.log_softness.max())

    @functools.cached_property
    def log_softness(self) -> Array:
        """log of how far each coordinate moves when its dual does; for l1, log of its size."""
        regularizer, beta = self.equations.regularizer, self.scaled
        with np.errstate(divide="ignore"):
            if isinstance(regularizer, L1):
                logs = np.log(np.abs(beta))
            else:
                logs = regularizer.log_softness(beta, self.graph.gradient)
                if not (logs < np.inf).all():
                    # beyond float64 the softest coordinates are those that are largest
                    logs = np.where(logs < np.inf, logs, np.log(np.abs(beta)) - np.log(EPS))
        # a coordinate at zero still moves if no other can
        return np.maximum(logs, max(float(logs.max(initial=-np.inf)) + STIFFEST, -LARGEST))

    @functools.cached_property
    def step(self) -> tuple[Array, Array]:
        """(change of beta, change of the dual) that Newton's method takes to meet the rows.

        It is the least change in the metric of R. Where there is none it is not a number.
        """
        reduced, factor = self.equations.reduced, self.equations.factor
        right = factor * reduced.combine(self.missing)
        if not right.any():
            return np.zeros_like(self.beta), np.zeros(len(self.missing))
        unit = float(self.log_softness.max())
        weights = np.exp(self.log_softness - unit)
        with np.errstate(all="ignore"):
            nu = Graded(reduced.X, weights).solve(right)
            rigid = isinstance(self.equations.regularizer, L1)  # its dual stays where it is
            dual = reduced.original_dual(nu) * (0.0 if rigid else np.exp(-unit))
            return weights * (nu @ reduced.X) / factor, dual


@dataclasses.dataclass(frozen=True)
class Graph:
    """beta and s with b(s) and gradient(beta): on the graph of the gradient the pairs agree."""

    beta: Array
    s: Array
    image: Array
    gradient: Array

    @classmethod
    def of(cls, regularizer: Regularizer, beta: Array, s: Array) -> Graph:
        with np.errstate(all="ignore"):
            try:
                gradient = regularizer.dual_of(beta)
            except ValueError:  # no training with a derived regularizer reaches this predictor
                gradient = np.full_like(beta, np.nan)
            return cls(beta, s, regularizer.primal_of(s), gradient)

    @functools.cached_property
    def distance(self) -> Any:
        """The worst coordinate, along the nearer axis, each axis in units of its largest entry."""
        with np.errstate(over="ignore", invalid="ignore"):
            along_dual = np.abs(self.s - self.gradient) / largest(self.s)
            along_primal = np.abs(self.beta - self.image) / largest(self.beta)
        # an overflow on one axis decides nothing
        worst = np.fmin(along_dual, along_primal).max(axis=-1)
        return np.where(np.isnan(worst), np.inf, np.minimum(worst, LARGEST))[()]

    @functools.cached_property
    def gap(self) -> Any:
        """A bound on R(beta) + R*(s) - <beta, s>."""
        with np.errstate(all="ignore"):
            return np.abs((self.beta - self.image) * (self.gradient - self.s)).sum(axis=-1)

    def rows(self) -> Iterator[Graph]:
        """The graphs of all rows, where this is one of several predictors."""
        columns = zip(self.beta, self.s, self.image, self.gradient, strict=True)
        for row, distance, gap in zip(columns, self.distance, self.gap, strict=True):
            graph = Graph(*row)
            graph.__dict__.update(distance=distance, gap=gap)
            yield graph


def largest(vectors: Array) -> Any:
    """The largest entry of each vector, or a number below all that count."""
    return np.maximum(np.abs(vectors).max(axis=-1, keepdims=True), 1e-300)


def compute_together(answers: Sequence[Answer]) -> None:
    """Computes for all answers of a path what is a matrix product or a law, once for them all.

    The answers belong to the same rows and differ in the scale of their regularizer.
    """
    plain = [answer for answer in answers if len(answer.parts) == 1]
    if len(plain) < 2:
        return
    law = over_scales([answer.equations.regularizer for answer in plain])
    given = plain[0].equations.given
    slopes = np.stack([answer.parts[0] for answer in plain]) @ given.X
    beta = np.stack([answer.scaled for answer in plain])
    for answer, graph in zip(plain, Graph.of(law, beta, slopes).rows(), strict=True):
        answer.__dict__.update(slopes=graph.s, graph=graph)


def moved(certificate: Certificate, start: Answer, end: Answer) -> Certificate:
    """The certificate of another predictor, by its distance from one that has one."""
    if certificate.part == "value":
        return Certificate(np.inf)
    inside = certificate.error - start.unmet
    with np.errstate(all="ignore"):
        apart = float(np.abs(end.beta - start.beta).max() / np.abs(end.beta).max())
    return dataclasses.replace(certificate, error=inside + apart + end.unmet)


def of_smooth(answer: Answer, change: Array, spare: float = 0.0) -> Certificate:
    """The certificate for a strictly convex regularizer: beta + change meets the constraints.

    The error is that of beta for the targets that it does meet, and the change that the others
    make. `spare` is the sum of nu_n (margin_n - 1), the part of the gap that inequalities add.
    """
    regularizer, beta, s = answer.equations.regularizer, answer.scaled, answer.slopes
    size, moved = np.abs(beta).max(initial=0.0), np.abs(change).max(initial=0.0)
    if size == 0 and moved == 0:  # nothing to fit
        return Certificate(0.0)
    with np.errstate(all="ignore"):
        softest = float(np.exp(answer.log_softest))
        moved = moved / size
        error = float(np.sqrt(2 * softest * (answer.graph.gap + spare)) / size + moved)
        error = max(error, answer.graph.distance)  # also where the gap underflows
        kind: Any = "bound" if isinstance(regularizer, L2) else "estimate"
        certificate = Certificate(np.inf if np.isnan(error) else error, kind)
        if certificate.ok:
            return certificate
        near = beta + change
        product = float(near @ s)
    return resolved_or_value(
        regularizer, certificate, softest, near, s, product, spare, float(moved)
    )


def resolved_or_value(
    regularizer: Regularizer,
    certificate: Certificate,
    softest: float,
    near: Array,
    s: Array,
    product: float,
    spare: float = 0.0,
    moved: float = 0.0,
) -> Certificate:
    """The certificate of the predictor, or that of the value where rounding of s decides it.

    `moved` is the relative change that leads to `near`, whose value is certified.
    """
    blur = softest * EPS * float(np.abs(s).max(initial=0.0))
    if certificate.ok or blur <= RESOLVED * float(np.abs(near).max(initial=0.0)):
        return certificate
    error = excess(regularizer, near, s, product, spare) + moved
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
        size, least = abs(value) or abs(product), np.inf
        for part in SHORTER:
            conjugate = float(regularizer.conjugate_of((1 - part) * s).sum())
            gap = value + conjugate - (1 - part) * product + spare
            least = min(least, abs(gap) if np.isfinite(gap) else np.inf)
            if least <= SMALL * size:
                break
    return least / size if size > 0 else np.inf


def of_matrix(law: Regularizer, matrix: Array, S: Array, change: Array, off: float) -> Certificate:
    """The certificate for a regularizer of singular values: matrix + change meets the rows.

    If (M, S) is at the distance `off` from a point of the graph of the gradient, both axes in units
    of their sizes, the gap is at most off^2 |M| |S|.
    """
    near = matrix + change
    sizes, heights = (
        np.asarray(np.linalg.svd(m, compute_uv=False), dtype=np.float64) for m in (near, S)
    )
    if not sizes[0]:
        return Certificate(0.0)
    if not heights[0]:
        return UNKNOWN
    gap = off**2 * float(np.linalg.norm(matrix, 2)) * float(heights[0])
    with np.errstate(all="ignore"):
        softest = float(np.exp(np.max(law.log_softness(sizes, law.dual_of(sizes)))))
        moved = float(np.linalg.norm(change, 2) / sizes[0])
        error = float(np.sqrt(2 * softest * gap) / sizes[0]) + moved
    return resolved_or_value(
        law,
        Certificate(np.inf if np.isnan(error) else error, "estimate"),
        softest,
        sizes,
        heights,
        float((near * S).sum()),
        moved=moved,
    )


def off_graph(law: Regularizer, matrix: Array, S: Array, size: float, height: float) -> float:
    """How far (M, S) is from a pair with S = gradient(M), in units of |M| and |S|."""
    U, total, Vt = np.linalg.svd(matrix / size + S / height, full_matrices=False)
    on_graph = (U * resolvent(law, total, size, height)) @ Vt
    return float(np.linalg.norm(matrix / size - on_graph))


def resolvent(law: Regularizer, total: Array, size: float, height: float) -> Array:
    """x with x + gradient(size x)/height = total, by bisection in the gradient."""
    low, high = np.zeros_like(total), total * height
    enough = EPS * float(high.max(initial=0.0))  # less is rounding of the largest x
    for _ in range(200):
        if (high - low <= enough).all():
            break
        middle = (low + high) / 2
        with np.errstate(over="ignore"):
            above = law.primal_of(middle) / size + middle / height > total
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.maximum(total - low / height, 0.0)


def of_norm(value: float, change: float, reward: float, length: float) -> Certificate:
    """The certificate of a norm, by the value of a feasible point and by its dual.

    `value` is the norm of the answer and `change` that of what leads from it to a feasible point.
    `reward` is y.nu and `length` the dual norm of X^T nu. Shortened to length one the dual is
    feasible, and no value is below its reward; a dual that is too long is an error, too. So is the
    change: a point that misses its rows can have less than the least value.
    """
    upper = value + change
    if upper == 0:
        return Certificate(0.0)
    error = upper * max(length, 1.0) / reward - 1 if reward > 0 else np.inf
    error = max(error, 0.0) + max(length - 1, 0.0) + change / upper
    return Certificate(float(error), "bound", VALUE, "value")
