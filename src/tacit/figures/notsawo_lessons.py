"""Students of a non-linear teacher, as figure N-F-ts trains and times them."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array, one_of
from tacit.figures.cells import Values, as_curves, cell_of
from tacit.figures.registry import Parameters

if TYPE_CHECKING:
    from tacit.claims.notsawo.courses import Course
    from tacit.models.function import FunctionModel
    from tacit.problems.teacher import TeacherStudent
    from tacit.regularizers.penalty import Term

OTHERS = {"l1": ("none", "l2", "dense"), "sobolev": ("none", "shuffled")}
SIZES = (
    "samples",
    "sizes",
    "units",
    "reads",
    "sobolev_samples",
    "sobolev_sizes",
    "width",
    "alpha",
    "seed",
)


@dataclasses.dataclass(frozen=True)
class Lesson:
    """One teacher, the student's start and the penalties that are tried."""

    data: TeacherStudent
    model: FunctionModel
    parameters: Parameters

    def adam(self, penalty: Term | None, beta: float, step: float | None = None) -> Course:
        """The course under Adam; with another step it has as much time."""
        from tacit.claims.notsawo.courses import course
        from tacit.training.descent.methods import Adam

        p = self.parameters
        size = step or p["step"]
        steps = round(p["steps"] * p["step"] / size)
        weighed = None if penalty is None else beta * penalty
        return course(self.data, self.model, Adam(size), weighed, steps, p["level"], 40)

    def descent(self, penalty: Term, beta: float, step: float) -> Course:
        from tacit.claims.notsawo.courses import course
        from tacit.training.descent.methods import SGD

        steps = round(self.parameters["reach"] / (step * beta))
        level = self.parameters["level"]
        return course(self.data, self.model, SGD(step), beta * penalty, steps, level, 40)


def lesson(kind: str, parameters: Parameters, dense: bool = False) -> Lesson:
    """The sparse teacher of l1, a dense one of the same sizes, or the teacher with derivatives."""
    from tacit.models.student import student
    from tacit.problems.teacher import teacher_student

    p, seed = parameters, parameters["seed"]
    name = "" if kind == "l1" else "sobolev_"
    inputs, hidden, outputs = p[f"{name}sizes"]
    units, reads = (p["units"], p["reads"]) if kind == "l1" else (p["sobolev_units"], None)
    if dense:
        units, reads = None, None
    data = teacher_student(
        p[f"{name}samples"],
        inputs,
        width=hidden,
        outputs=outputs,
        units=units,
        reads=reads,
        seed=seed,
        standard=True,
    )
    return Lesson(data, student(p["width"], outputs, alpha=p["alpha"], seed=100 + seed), p)


def derivatives(taught: Lesson, shift: int = 0) -> Term:
    """The penalty of wrong derivatives; with a shift those of another sample are asked for."""
    from tacit.regularizers.derivatives import DerivativeMatch

    slopes = np.roll(taught.data.slopes, shift * taught.data.outputs, axis=0)
    return DerivativeMatch(taught.model, taught.data.training.X, slopes)


def own_penalty(kind: str, taught: Lesson) -> Term:
    """The penalty that the teacher of this kind is learned with."""
    from tacit.regularizers.norms import L1

    return L1() if kind == "l1" else derivatives(taught)


def control(kind: str, name: str, taught: Lesson) -> Course:
    """The course that lacks what makes the others generalize, see OTHERS."""
    from tacit.regularizers.norms import L2

    betas = taught.parameters["betas"]
    if name == "none":
        return taught.adam(None, 0.0)
    if name == "l2":
        return taught.adam(L2(), betas[0])
    if name == "dense":
        other = lesson(kind, taught.parameters, dense=True).data  # the same student: compiled once
        return dataclasses.replace(taught, data=other).adam(own_penalty(kind, taught), betas[0])
    return taught.adam(derivatives(taught, 1), betas[len(betas) // 2])


@cell_of("kind", "beta", "step", "first_step", "steps", "level", *SIZES, sobolev_units=None)
def cell(parameters: Parameters) -> Values:
    """A course under Adam; it has the time of `steps` steps of size `first_step`."""
    kind = one_of("N-F-ts", "kind", parameters["kind"], OTHERS)
    taught = lesson(kind, {**parameters, "step": parameters["first_step"]})
    return _told(taught.adam(own_penalty(kind, taught), parameters["beta"], parameters["step"]))


@cell_of("control", "betas", "step", "steps", "level", *SIZES, sobolev_units=None)
def control_cell(parameters: Parameters) -> Values:
    """A control, called by its kind and its name."""
    known = [f"{kind} {name}" for kind, names in OTHERS.items() for name in names]
    kind, _, name = one_of("N-F-ts", "control", parameters["control"], known).partition(" ")
    return _told(control(kind, name, lesson(kind, parameters)))


@cell_of("pair", "descent", "reach", "level", *SIZES, sobolev_units=None)
def descent_cell(parameters: Parameters) -> Values:
    """A course of subgradient descent with l1; `descent` has the pairs of step size and beta."""
    step, beta = parameters["descent"][parameters["pair"]]
    taught = lesson("l1", parameters)
    run = taught.descent(own_penalty("l1", taught), beta, step)
    return {"size": step, "beta": beta, "pace": step * beta, **_told(run)}


def _told(run: Course) -> dict[str, Any]:
    """The curves of a course, t1, t2 and the error that is left."""
    found = {"step": run.step, "train": run.train, "test": run.test}
    ends = {name: times([run], name)[0] for name in ("t1", "t2")}
    return {**as_curves(found, *found), **ends, "left": run.left}


def times(courses: list[Course], name: str) -> Array:
    """t1 or t2 of every course; nan where it is not reached."""
    times = np.array([getattr(one.verdict, name) for one in courses])
    return np.where(np.isfinite(times), times, math.nan)


def fitted(x: Array, t2: Array) -> float:
    """The exponent of t2 in x, from what was reached; nan with fewer than two."""
    there = np.isfinite(t2)
    return (
        math.nan
        if there.sum() < 2
        else float(np.polyfit(np.log(x[there]), np.log(t2[there]), 1)[0])
    )
