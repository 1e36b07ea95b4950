"""N-F-alg: when modular addition is learned with Adam, as a function of step and beta."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.claims.notsawo.token_runs import (
    LEVEL,
    NAMES,
    Task,
    Training,
    generalized,
    judged,
    later,
    memorized,
    token_run,
)
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.measures.adam_clock import MEMORY, adam_clock, adam_delay
from tacit.papers.instances import slope
from tacit.studies.sizes import Size

MOST = 0.9  # the validation accuracy of a delay: when the last pairs follow is a matter of chance
Runs = dict[float, Any]  # by beta, falling
Law = Callable[[float, float], Array | float]  # (a delay, by which factor beta is weaker) -> delay


@dataclasses.dataclass(frozen=True)
class Plan:
    """The runs of one size: for every penalty and step its betas, falling.

    `room` has for every penalty the c of `adam_delay` with which its runs are long enough.
    `decoupled` are steps and betas of AdamW.
    """

    tasks: Sequence[Task]
    betas: Mapping[str, Mapping[float, Sequence[float]]]
    room: Mapping[str, float]
    decoupled: Sequence[tuple[float, float]] = ()


@dataclasses.dataclass(frozen=True)
class Row:
    """The runs of one penalty, seed and step."""

    penalty: str
    task: Task
    step: float
    runs: Runs

    def __str__(self) -> str:
        return f"{NAMES[self.penalty]}, seed {self.task.seed}, step {self.step:g}"

    @property
    def paces(self) -> Array:
        """step beta."""
        return self.step * np.array(list(self.runs))

    @property
    def delays(self) -> Array:
        """t2 - t1, t2 at MOST of the validation pairs."""
        return np.array([generalized(run, MOST) - memorized(run) for run in self.runs.values()])

    @property
    def c(self) -> Array:
        """c of `adam_delay` for every run."""
        return self.paces * adam_clock(self.delays)

    def errors(self, law: Law) -> Array:
        """The relative errors of the delays that a law predicts from that of the largest beta.

        They are nan if a run does not reach t2.
        """
        if not np.isfinite(self.delays).all():
            return np.full(len(self.runs) - 1, np.nan)
        first, weaker = float(self.delays[0]), self.paces[0] / self.paces[1:]
        predicted = np.array([law(first, float(times)) for times in weaker], dtype=float)
        return np.abs(predicted / self.delays[1:] - 1)


QUICK = Plan(
    [Task(31, 0.6, 32)],
    {
        "l1": {1e-2: (3e-5, 1e-6)},
        "l2^2": {1e-2: (1e-5, 1e-7), 3e-3: (1e-5,)},
        "nuclear": {1e-2: (1e-4, 1e-5)},
    },
    {"l1": 2.2e-3, "l2^2": 1.4e-3, "nuclear": 8e-3},
)
WEAK = (1e-5, 1e-6, 1e-7)
FULL = Plan(
    [Task(31, 0.6, 32, seed) for seed in (0, 1)],
    {
        "l1": {1e-2: (3e-5, 3e-6, 3e-7), 3e-3: (3e-5, 3e-6, 3e-7)},
        "l2^2": {1e-2: WEAK, 3e-3: WEAK, 1e-3: WEAK},
        "nuclear": {1e-2: (1e-4, 1e-5, 1e-6), 3e-3: (1e-4, 1e-5)},
    },
    {"l1": 6e-2, "l2^2": 5e-3, "nuclear": 6e-2},
    [(1e-2, 0.1), (1e-2, 0.03), (3e-3, 0.1)],
)


def log_law(delay: float, weaker: float, memory: float = MEMORY) -> Array:
    """The delay with a beta that is `weaker` times smaller, in the clock of `adam_delay`."""
    return memory * np.log1p(weaker * np.expm1(delay / memory))


RIVALS: dict[str, Law] = {
    "t2 - t1 = c/(step beta), as in gradient descent": lambda delay, weaker: delay * weaker,
    "t2 - t1 = c/sqrt(step beta)": lambda delay, weaker: delay * math.sqrt(weaker),
    "the memory of v, T = 1000, for that of sqrt(v)": lambda delay, weaker: log_law(
        delay, weaker, MEMORY / 2
    ),
}


def rows(plan: Plan) -> list[Row]:
    """All runs, a tenth longer than their delay is expected."""
    found = []
    for task, (penalty, steps) in itertools.product(plan.tasks, plan.betas.items()):
        for step, betas in steps.items():
            lengths = [
                1.1 * (1 / step + float(adam_delay(step * beta, plan.room[penalty])))
                for beta in betas
            ]
            runs = {
                beta: token_run(
                    task, Training(penalty, beta, step, round(length), points_per_decade=60)
                )
                for beta, length in zip(betas, lengths, strict=True)
            }
            found.append(Row(penalty, task, step, runs))
    return found


def ordered(found: Sequence[Row], time: Callable[[Any], float] = generalized) -> Array:
    """t2 (or another time) over that of the next larger beta, or of a larger step at one beta."""
    ratios = [later(b, a, time) for row in found for a, b in itertools.pairwise(row.runs.values())]
    for one, other in itertools.permutations(found, 2):
        same = one.penalty == other.penalty and one.task == other.task
        if same and one.step > other.step:
            ratios += [
                later(other.runs[beta], one.runs[beta], time)
                for beta in one.runs
                if beta in other.runs
            ]
    return np.array(ratios)


def unpenalized(plan: Plan, runs: Sequence[Any]) -> Any:
    """A run without a penalty, with the largest step, up to the last t2 of the others."""
    steps = int(max(min(generalized(run), int(run.step[-1])) for run in runs))
    step = max(step for betas in plan.betas.values() for step in betas)
    return token_run(plan.tasks[0], Training("l2^2", 0.0, step, steps))


def beside(plan: Plan) -> list[str]:
    """What squared l2 beside the moments does, as in AdamW; nothing without such cells."""
    runs = [
        token_run(
            plan.tasks[0],
            Training("l2^2", beta, step, round(4 / (step * beta)), decoupled=True, until=LEVEL),
        )
        for step, beta in plan.decoupled
    ]
    if not runs:
        return []
    paces = np.array([step * beta for step, beta in plan.decoupled])
    delays = np.array([generalized(run) - memorized(run) for run in runs])
    return [
        "beside the moments, as in AdamW, the delay of squared l2 has the plain exponent"
        f" {slope(paces, delays):.2f} in step beta: {listed(paces, delays)}"
    ]


@claim(
    "N-F-alg",
    statement="(ours: N only names its figures) on modular addition with an l1, squared l2 or"
    " nuclear penalty in the gradient of Adam a smaller step or beta makes generalization later;"
    " at one step, and for every beta so small that the delay is longer than T = 2/log(1/0.999) ="
    " 1999 steps, it is not c/(step beta) as in gradient descent but T log(1 + c/(T step beta))"
    " with one c",
    place="Algorithmic Dataset",
    seconds=25,
)
def arithmetic(size: Size) -> Evidence:
    plan = QUICK if size == "quick" else FULL
    found = rows(plan)
    runs = [run for row in found for run in row.runs.values()]
    none = unpenalized(plan, runs)
    wide = [row for row in found if len(row.runs) > 1]
    groks = Check(
        "runs that tacit.grokking does not call grok",
        sum(judged(run).kind != "grok" for run in runs),
        0.0,
        0.0,
        "at most",
    )
    order = Check(
        "least ratio of t2 to that of the next larger beta or step",
        float(ordered(found).min()),
        1.1,
        0.0,
        "at least",
    )
    law = Check(
        "largest relative error of t2 - t1, predicted from the run with the largest beta",
        max(float(row.errors(log_law).max()) for row in wide),
        tolerance=0.15,
    )
    shortest = min(float(row.delays.min()) for row in found)
    return Evidence(
        ran=f"{plan.tasks[0]}, N's MLP, {len(plan.tasks)} seed(s), Adam, full batches,"
        f" {len(runs)} runs with three penalties, beta over a factor of "
        + " to ".join(f"{end(span(row) for row in wide):.0f}" for end in (min, max))
        + f"; t1 at a training accuracy of 1, t2 at a validation accuracy of {LEVEL:g},"
        f" in delays at {MOST:g}",
        premises={
            "every run reaches t2": (
                all(math.isfinite(generalized(run)) for run in runs),
                len(runs),
            ),
            "every delay is longer than T": (shortest > MEMORY, shortest),
        },
        checks=[groks, order, law],
        controls={
            "no penalty": groks.control(float(judged(none).kind != "grok")),
            "memorization is later as well": order.control(float(ordered(found, memorized).min())),
            **{
                name: law.control(min(float(row.errors(rival).max()) for row in wide))
                for name, rival in RIVALS.items()
            },
        },
        findings=[
            *(described(row) for row in wide),
            "a smaller step is not the same as a smaller beta: c is "
            + ", ".join(
                f"{row.c[0]:.2g} at step {row.step:g}"
                for row in found
                if (row.penalty, row.task) == ("l2^2", plan.tasks[0])
            )
            + f" for squared l2 at beta {next(iter(plan.betas['l2^2'].values()))[0]:g}",
            "why: after t1 the slope of the loss is gone, but sqrt(v) only falls by e in T steps,"
            " and until then the penalty moves the parameters by step beta h/sqrt(v) and not by"
            " step; a decade of beta costs at most T log(10) = 4600 steps at any step",
            *beside(plan),
            f"without a penalty the validation accuracy is {float(none.test_accuracy[-1]):.3f}"
            f" after {int(none.step[-1])} steps",
        ],
        plots=[_plot(found)],
    )


def span(row: Row) -> float:
    """The largest beta over the least."""
    return float(row.paces[0] / row.paces[-1])


def listed(paces: Array, delays: Array) -> str:
    return ", ".join(f"{s:.0f} at {p:.1e}" for p, s in zip(paces, delays, strict=True))


def described(row: Row) -> str:
    """One row in a line: both exponents, every c, and the delays."""
    exponents = slope(row.paces, adam_clock(row.delays)), slope(row.paces, row.delays)
    return (
        f"{row}: exponent {exponents[0]:.2f} in Adam's clock, {exponents[1]:.2f} in steps; c = "
        + ", ".join(f"{c:.2g}" for c in row.c)
        + "; t2 - t1 = "
        + listed(row.paces, row.delays)
    )


def _plot(found: Sequence[Row]) -> Plot:
    """The delays of the first seed over step beta, and the law with the middle c."""
    series = []
    for row in found:
        if row.task.seed or len(row.runs) < 2:
            continue
        c = float(np.exp(np.mean(np.log(row.c))))
        line = np.geomspace(row.paces[0], row.paces[-1], 60)
        series += [
            Series(str(row), row.paces, row.delays, "points"),
            Series(f"{row}, law", line, adam_delay(line, c)),
        ]
    return Plot(
        "the delay of Adam grows with log(1/(step beta))",
        "step x beta",
        "t2 - t1 in steps",
        series,
        "log",
        "log",
    )
