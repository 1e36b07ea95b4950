"""Students of a two-layer teacher: the runs with and without a penalty, by Adam and by descent."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import one_of
from tacit.papers.notsawo2025.figures.runs import Runs, arguments, dims_of
from tacit.studies.compute import TRAJECTORY
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    from tacit.models.function import FunctionModel
    from tacit.problems.teacher import TeacherStudent
    from tacit.regularizers.penalty import Term

LEVEL = 0.05  # of the variance of the labels: what counts as solved
BETAS = (0.1, 0.03, 0.01)
PAIRS = ((4e-3, 0.1), (4e-3, 0.03), (4e-3, 0.01), (2e-3, 0.1))  # step and beta of descent
PENALTIES = ("none", "l1", "l2^2", "derivatives", "derivatives of other samples")
# `sizes` are inputs, hidden units and outputs of the teacher, of whose hidden units `units` are
# used, each reading `reads` inputs (all of them where there is none); `width` is the student's
GIVEN = {"samples": 60, "sizes": [30, 50, 1], "width": 50, "method": "Adam", "learning_rate": 3e-3}
GIVEN |= {"steps": 5000, "seed": 0, "per_decade": 20}
QUICK = {"steps": 3600, "per_decade": 12}  # the latest t2 of seed 0 is 2815
SPARSE = {"teacher": "sparse", "units": 3, "reads": 2}  # 3 units that read 2 inputs each
SMOOTH = {"teacher": "smooth", "sizes": [10, 10, 1]}  # its derivatives are known
DENSE = {"teacher": "dense"}  # every weight Gaussian, as in N


@functools.lru_cache(maxsize=16)
def _data(
    samples: int, sizes: tuple[int, ...], units: int | None, reads: int | None, seed: int
) -> TeacherStudent:
    from tacit.problems.teacher import teacher_student

    inputs, hidden, outputs = sizes
    own: dict[str, Any] = {"width": hidden, "outputs": outputs, "units": units, "reads": reads}
    return teacher_student(samples, inputs, seed=seed, standard=True, **own)


@functools.lru_cache(maxsize=16)
def _student(width: int, outputs: int, seed: int) -> FunctionModel:
    """One object for all of its runs, so that its steps are compiled once."""
    from tacit.models.two_layer import student

    return student(width, outputs, alpha=1.0, seed=100 + seed)


@functools.lru_cache(maxsize=16)
def _penalty(name: str, data: TeacherStudent, model: FunctionModel) -> Term | None:
    """The penalty of this name, one object; samples may be given the derivatives of others."""
    from tacit.regularizers.custom import DerivativeMatch
    from tacit.regularizers.norms import L1, L2

    one_of("student", "penalty", name, PENALTIES)
    if name in ("none", "l1", "l2^2"):
        return {"none": None, "l1": L1(), "l2^2": L2()}[name]
    shift = 0 if name == "derivatives" else data.outputs
    return DerivativeMatch(model, data.training.X, np.roll(data.slopes, shift, axis=0))


def cell(run: int, *, runs: Runs, given: Mapping[str, Any]) -> dict[str, Any]:
    """Errors of one student over the steps, over the variance of the labels; t1, t2 and kind."""
    from tacit.measures.grokking import grokking
    from tacit.records import NumericalError
    from tacit.training.descent.methods import SGD, Adam
    from tacit.training.record import LogSpaced
    from tacit.training.stop import Steps
    from tacit.training.train import train

    one = {"units": None, "reads": None, **given, **runs[run]}
    data = _data(one["samples"], tuple(one["sizes"]), one["units"], one["reads"], one["seed"])
    model = _student(one["width"], data.outputs, one["seed"])
    penalty = _penalty(one["penalty"], data, model)
    path = train(
        model,
        data.training,
        {"Adam": Adam, "SGD": SGD}[one["method"]](one["learning_rate"]),
        penalty=None if penalty is None else one["beta"] * penalty,
        stop=Steps(one["steps"]),
        record=LogSpaced(one["per_decade"]),
    )
    if not path.outcome.ok:
        raise NumericalError("student", path.outcome)
    steps = path.dataset.step.values.astype(float)
    fitted = data.share(path.dataset.loss.values, data.training)
    tested = data.share(path.dataset.test_loss.values, data.test)
    found = grokking(steps, fitted, tested, LEVEL, error=True)
    told = {
        name: one[name] for name in ("teacher", "penalty", "samples", "method", "learning_rate")
    }
    return {
        **told,
        "split": one["seed"],
        "beta": one.get("beta", 0.0),
        "hidden": one["sizes"][1],
        "t1": found.t1 if math.isfinite(found.t1) else math.nan,
        "t2": found.t2 if math.isfinite(found.t2) else math.nan,
        "verdict": found.kind,
        "left": tested[-1],
        "best": tested.min(),
        f"{TRAJECTORY}step": steps,
        f"{TRAJECTORY}train": fitted,
        f"{TRAJECTORY}test": tested,
    }


def penalized(seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Both kinds of students at every beta."""
    kinds: dict[str, Any] = {"l1": SPARSE, "derivatives": SMOOTH}
    return [
        {**teacher, "penalty": name, "beta": beta, "seed": seed}
        for seed, (name, teacher), beta in itertools.product(seeds, kinds.items(), BETAS)
    ]


def unhelped(seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Students without what makes the others generalize."""
    wrong = {"penalty": "derivatives of other samples", "beta": BETAS[1]}
    cases: list[dict[str, Any]] = [
        {**SPARSE, "penalty": "none"},
        {**SPARSE, "penalty": "l2^2", "beta": BETAS[0]},
        {**DENSE, "penalty": "l1", "beta": BETAS[0]},
        {**SMOOTH, "penalty": "none"},
        {**SMOOTH, **wrong},
    ]
    return [{**case, "seed": seed} for seed in seeds for case in cases]


def descended(seeds: Iterable[int], reach: float, pairs: Any = PAIRS) -> list[dict[str, Any]]:
    """Subgradient descent with l1, for `reach` times 1/(step beta) steps."""
    return [
        {"learning_rate": step, "beta": beta, "steps": round(reach / (step * beta)), "seed": seed}
        for seed in seeds
        for step, beta in pairs
    ]


SLOWER = {**SPARSE, "penalty": "l1", "beta": BETAS[0], "learning_rate": 1e-3, "steps": 15_000}
LARGE: dict[str, Any] = {"samples": 100, "sizes": [100, 500, 2], "width": 500}  # N's size
LARGE_SPARSE = {"teacher": "sparse", "units": 5, "reads": 3, "penalty": "l1", "steps": 3000}
LARGE_DENSE = {**DENSE, "penalty": "l1", "beta": 0.3, "steps": 1000}
MORE = [  # what is reported beside the checks
    SLOWER,
    {**SPARSE, "penalty": "l2^2", "beta": BETAS[0], "samples": 180},
    {**DENSE, "penalty": "l1", "beta": BETAS[0], "samples": 180},
    {**LARGE, **LARGE_SPARSE, "beta": 0.3},
    {**LARGE, **LARGE_SPARSE, "beta": 0.03},
    {**LARGE, **LARGE_DENSE},
    {**LARGE, **LARGE_DENSE, "samples": 1000},
]
CURVES = ("step", "train", "test")
LABELS = {
    "run": "number of the run",
    "split": "seed of teacher and start",
    "beta": "strength of the penalty",
    "learning_rate": "step size",
    "t1": "step after which the training error stays below the level; NaN if it does not",
    "t2": "step after which the test error stays below the level; NaN if it does not",
    "left": "test error at the end, over the variance of the labels",
    "best": "least test error, over the variance of the labels",
    "verdict": "how tacit.grokking classifies the run",
    f"{TRAJECTORY}test": "test error, mean square over the variance of the labels",
    f"{TRAJECTORY}train": "training error, mean square over the variance of the labels",
}
FORM: dict[str, Any] = {"function": cell, "dims": dims_of(CURVES), "labels": LABELS}
DESCENT = {**GIVEN, **SPARSE, "penalty": "l1", "method": "SGD", "per_decade": 40}

study = sized(
    "N-F-ts",
    title="A student that has memorized generalizes late under ℓ₁ or Sobolev penalties",
    draw={"x": "run", "colour": "t2", "log": True},
    **FORM,
    **arguments(penalized([0]), **GIVEN | QUICK),
    standard=arguments(penalized([0]), **GIVEN),
    full=arguments(penalized(range(5)), **GIVEN),
)
controls = sized(
    "N-F-ts-controls",
    title="Students without the penalty or data that make the others generalize",
    draw={"x": "run", "colour": "left"},
    **FORM,
    **arguments(unhelped([0]), **GIVEN | QUICK),
    standard=arguments([*unhelped([0]), SLOWER], **GIVEN),
    full=arguments([*unhelped(range(5)), *MORE], **GIVEN),
)
# the first seed is done at 0.3/(step beta), the slowest of the first five at 0.9/(step beta)
descent = sized(
    "N-F-ts-descent",
    title="With subgradient descent, t₂ scales like 1/(step β)",
    draw={"x": "run", "colour": "t2", "log": True},
    **FORM,
    **arguments(descended([0], 0.4, (PAIRS[0], *PAIRS[2:])), **DESCENT),
    standard=arguments(descended([0], 0.6), **DESCENT),
    full=arguments(descended(range(5), 1.2), **DESCENT),
)
