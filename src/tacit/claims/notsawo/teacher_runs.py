"""Students of non-linear teachers, as claim N-F-ts trains and measures them."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np

from tacit.claims.notsawo.courses import Course, course, exponent
from tacit.models.function import FunctionModel
from tacit.models.student import student
from tacit.problems.teacher import TeacherStudent, teacher_student
from tacit.regularizers.derivatives import DerivativeMatch
from tacit.regularizers.norms import L1, L2
from tacit.regularizers.penalty import Term
from tacit.training.descent.methods import SGD, Adam

LEVEL = 0.05  # of the variance of the labels: what counts as solved
STEP, BUDGET = 3e-3, 5000
BETAS = (0.1, 0.03, 0.01)
DESCENT = ((4e-3, 0.1), (4e-3, 0.03), (4e-3, 0.01), (2e-3, 0.1))  # step, beta


@functools.lru_cache(maxsize=16)
def sparse(seed: int, samples: int = 60) -> TeacherStudent:
    """A teacher 30-50-1 that uses 3 hidden units, each of which reads 2 inputs."""
    return teacher_student(
        samples, 30, width=50, outputs=1, units=3, reads=2, seed=seed, standard=True
    )


@functools.lru_cache(maxsize=16)
def dense(seed: int, samples: int = 60) -> TeacherStudent:
    """The same net with every weight Gaussian, as in N."""
    return teacher_student(samples, 30, width=50, outputs=1, seed=seed, standard=True)


@functools.lru_cache(maxsize=16)
def smooth(seed: int) -> TeacherStudent:
    """A dense teacher 10-10-1, whose derivatives the student is told."""
    return teacher_student(60, 10, width=10, outputs=1, seed=seed, standard=True)


@functools.lru_cache(maxsize=32)
def net(seed: int) -> FunctionModel:
    """A student of width 50; one object, so that its steps are compiled once."""
    return student(50, alpha=1.0, seed=100 + seed)


@functools.lru_cache(maxsize=32)
def derivatives(seed: int, shuffled: bool = False) -> DerivativeMatch:
    """The penalty of wrong derivatives; shuffled, every sample is told those of another one."""
    data = smooth(seed)
    order = np.roll(np.arange(data.training.samples), 1 if shuffled else 0)
    return DerivativeMatch(net(seed), data.training.X, data.slopes[order])


def taught(
    data: TeacherStudent, seed: int, penalty: Term | None, beta: float, step: float = STEP
) -> Course:
    """The course under Adam, as long as 5000 steps of 3e-3."""
    weighed = None if penalty is None else beta * penalty
    return course(data, net(seed), Adam(step), weighed, round(BUDGET * STEP / step), LEVEL)


def descended(seed: int, step: float, beta: float, reach: float) -> Course:
    """The course under subgradient descent with l1, for `reach` times 1/(step beta) steps."""
    steps = round(reach / (step * beta))
    return course(sparse(seed), net(seed), SGD(step), beta * L1(), steps, LEVEL, 40)


def later(courses: list[Course], time: str = "t2") -> float:
    """The least factor by which t2, or t1, grows from a beta to the next smaller one."""
    times = [getattr(one.verdict, time) for one in courses]
    return min(b / a if np.isfinite([a, b]).all() else 0.0 for a, b in itertools.pairwise(times))


def share_of_groks(courses: list[Course]) -> float:
    return float(np.mean([one.verdict.kind == "grok" for one in courses]))


def powers(courses: list[list[Course]]) -> list[float]:
    """The exponent of t2 in step beta for every seed of descent."""
    pace = np.array([step * beta for step, beta in DESCENT])
    return [exponent(pace, np.array([one.verdict.t2 for one in row])) for row in courses]


@dataclasses.dataclass(frozen=True)
class Runs:
    """Everything that is trained: a row per seed, in it a course per beta."""

    seeds: range
    reach: float

    @functools.cached_property
    def l1(self) -> list[list[Course]]:
        return [[taught(sparse(s), s, L1(), beta) for beta in BETAS] for s in self.seeds]

    @functools.cached_property
    def descent(self) -> list[list[Course]]:
        return [[descended(s, a, b, self.reach) for a, b in DESCENT] for s in self.seeds]

    @functools.cached_property
    def sobolev(self) -> list[list[Course]]:
        return [[taught(smooth(s), s, derivatives(s), beta) for beta in BETAS] for s in self.seeds]

    @functools.cached_property
    def misled(self) -> list[Course]:
        return [taught(smooth(s), s, derivatives(s, shuffled=True), BETAS[1]) for s in self.seeds]

    @functools.cached_property
    def free(self) -> list[Course]:
        return [taught(sparse(s), s, None, 0.0) for s in self.seeds]

    @functools.cached_property
    def untold(self) -> list[Course]:
        return [taught(smooth(s), s, None, 0.0) for s in self.seeds]

    @functools.cached_property
    def euclid(self) -> list[Course]:
        return [taught(sparse(s), s, L2(), BETAS[0]) for s in self.seeds]

    @functools.cached_property
    def dense(self) -> list[Course]:
        return [taught(dense(s), s, L1(), BETAS[0]) for s in self.seeds]

    @property
    def controls(self) -> list[Course]:
        return [*self.free, *self.untold, *self.euclid, *self.dense, *self.misled]


def flat(rows: list[list[Course]]) -> list[Course]:
    return [one for row in rows for one in row]


def least(courses: list[Course]) -> float:
    return min(one.left for one in courses)


def most(courses: list[Course]) -> float:
    return max(one.left for one in courses)


def adam_powers(seed: int, row: list[Course]) -> tuple[float, float]:
    """Adam's exponents of t2 in beta at one step, and in the step at one beta."""
    steps = np.array([STEP, STEP / 3])
    slow = taught(sparse(seed), seed, L1(), BETAS[0], steps[1])
    times = np.array([row[0].verdict.t2, slow.verdict.t2])
    return exponent(np.array(BETAS), np.array([c.verdict.t2 for c in row])), exponent(steps, times)


def span(courses: list[Course]) -> str:
    """The test errors that are left, from the least to the largest."""
    return " to ".join(dict.fromkeys(f"{end(courses):.2f}" for end in (least, most)))


def times(courses: list[Course]) -> str:
    return ", ".join(f"{one.verdict.t2:.0f}" for one in courses)
