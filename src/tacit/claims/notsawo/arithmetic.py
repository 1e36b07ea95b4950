"""N-F-alg: when modular addition is learned with Adam, as a function of step and beta."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arguments import Array
from tacit.claims.evidence import Check, Evidence
from tacit.claims.instances import slope
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
from tacit.claims.plot import Plot, Series
from tacit.claims.registry import claim
from tacit.claims.verdict import Size
from tacit.flows.adam_clock import adam_clock, adam_delay

Cell = tuple[float, float]  # step and beta
Runs = dict[Cell, Any]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The runs of one size.

    `room` has for every penalty the c of `adam_delay` with which its runs are long enough.
    `decoupled` are cells of AdamW.
    """

    tasks: Sequence[Task]
    cells: Mapping[str, Sequence[Cell]]
    room: Mapping[str, float]
    decoupled: Sequence[Cell] = ()


QUICK = Plan([Task(31, 0.6, 32)],
             {"l1": [(1e-2, 3e-4), (1e-2, 3e-5), (3e-3, 3e-5)],
              "l2^2": [(1e-2, 3e-4), (1e-2, 3e-5), (3e-3, 3e-5)],
              "nuclear": [(1e-2, 1e-3), (1e-2, 1e-4)]},
             {"l1": 3e-3, "l2^2": 1.3e-3, "nuclear": 1e-2})  # fmt: skip
RATES = (1e-2, 3e-3, 1e-3)
SWIFT = 3e-3  # T step = 6: no entry of size about 1 has a longer way, as `adam_delay` asks
FULL = Plan([Task(31, 0.6, 32, seed) for seed in (0, 1)],
            {"l1": list(itertools.product(RATES, (3e-4, 3e-5, 3e-6))),
             "l2^2": list(itertools.product(RATES, (3e-4, 3e-5, 3e-6))),
             "nuclear": list(itertools.product(RATES, (3e-3, 3e-4, 3e-5)))},
            {"l1": 1.5e-2, "l2^2": 5e-3, "nuclear": 4e-2},
            [(1e-2, 0.1), (1e-2, 0.03), (3e-3, 0.1)])  # fmt: skip


def grid(plan: Plan, task: Task, penalty: str) -> Runs:
    """The runs of all cells of one penalty, a quarter longer than their delay is expected."""
    found = {}
    for step, beta in plan.cells[penalty]:
        steps = round(1.25 * (1 / step + float(adam_delay(step * beta, plan.room[penalty]))))
        found[step, beta] = token_run(task, Training(penalty, beta, step, steps))
    return found


def paces(runs: Runs) -> Array:
    return np.array([step * beta for step, beta in runs])


def quick_steps(runs: Runs) -> Runs:
    """The runs whose steps are long enough for the law."""
    return {cell: run for cell, run in runs.items() if cell[0] >= SWIFT}


def delays(runs: Runs) -> Array:
    """t2 - t1 of every run."""
    return np.array([generalized(run) - memorized(run) for run in runs.values()])


def ordered(runs: Runs) -> Array:
    """t2 over that with the next larger beta or step, the other one being the same."""
    found = []
    for (one, first), (other, second) in itertools.permutations(runs.items(), 2):
        (step, beta), (less, weaker) = one, other
        if (step == less and beta > weaker) or (beta == weaker and step > less):
            found.append(later(second, first))
    return np.array(found)


def unpenalized(plan: Plan, runs: Sequence[Any]) -> Any:
    """A run without a penalty, with the largest step, up to the last t2 of the others."""
    steps = int(max(min(generalized(run), int(run.step[-1])) for run in runs))
    step = max(step for cells in plan.cells.values() for step, _ in cells)
    return token_run(plan.tasks[0], Training("l2^2", 0.0, step, steps))


def beside(plan: Plan) -> list[str]:
    """What squared l2 beside the moments does, as in AdamW; nothing without such cells."""
    runs = {(step, beta): token_run(plan.tasks[0], Training(
        "l2^2", beta, step, round(4 / (step * beta)), decoupled=True, until=LEVEL))
        for step, beta in plan.decoupled}  # fmt: skip
    if not runs:
        return []
    return [
        "beside the moments, as in AdamW, the delay of squared l2 has the plain exponent"
        f" {slope(paces(runs), delays(runs)):.2f} in step beta: {listed(runs)}"
    ]


@claim(
    "N-F-alg",
    statement="(ours: N only names its figures) on modular addition with an l1, squared l2 or"
    " nuclear penalty in the gradient of Adam a smaller step or beta makes generalization later;"
    " the delay is not c/(step beta) as in gradient descent but that in the clock of Adam's second"
    " moment: t2 - t1 = T log(1 + c/(T step beta)) with T = 2/log(1/0.999) = 1999 steps",
    place="Algorithmic Dataset",
    seconds=20,
)
def arithmetic(size: Size) -> Evidence:
    plan = QUICK if size == "quick" else FULL
    sets = {(name, task): grid(plan, task, name) for name in plan.cells for task in plan.tasks}
    runs = [run for found in sets.values() for run in found.values()]
    none = unpenalized(plan, runs)
    ratios = np.concatenate([ordered(found) for found in sets.values()])
    laws = {key: slope(paces(f), adam_clock(delays(f))) for key, f in sets.items()}
    plain = {key: slope(paces(f), delays(f)) for key, f in sets.items()}
    turned = {key: slope(paces(f), adam_clock(delays(f))[::-1]) for key, f in sets.items()}
    swift = {key: quick_steps(found) for key, found in sets.items()}
    every = [slope(paces(f), adam_clock(delays(f))) for f in swift.values()]
    groks = Check("runs that tacit.grokking does not call grok",
                  sum(judged(run).kind != "grok" for run in runs), 0.0, 0.0, "at most")  # fmt: skip
    order = Check("least ratio of t2 to that of the next larger beta or step",
                  float(ratios.min()), 1.05, 0.0, "at least")  # fmt: skip
    law = Check("exponent of e^((t2 - t1)/T) - 1 in step beta, mean over the seeds, of the penalty"
                " farthest from -1", farthest(averaged(laws)), -1.0, 0.2)  # fmt: skip
    single = Check(f"the same of a single seed, for steps of {SWIFT:g} and more", farthest(every),
                   -1.0, 0.2)  # fmt: skip
    return Evidence(
        ran=f"{plan.tasks[0]}, N's MLP, {len(plan.tasks)} seed(s), Adam, full batches,"
        f" {len(runs)} runs over step and beta for three penalties; t1 at a training accuracy of 1,"
        f" t2 at a validation accuracy of {LEVEL:g}",
        premises={"every run reaches t2": (
            all(math.isfinite(generalized(run)) for run in runs), len(runs))},
        checks=[groks, order, law, single],
        controls={
            "no penalty": groks.control(float(judged(none).kind != "grok")),
            "steps and betas in the opposite order": order.control(float((1 / ratios).min())),
            "t2 - t1 = c/(step beta)": law.control(nearest(averaged(plain))),
            "t2 - t1 = c/(step beta), single seeds": single.control(
                nearest([slope(paces(f), delays(f)) for f in swift.values()])),
            "times in the opposite order": law.control(nearest(averaged(turned))),
        },
        findings=[
            *(told(NAMES[name], found, laws[name, task], plain[name, task], task)
              for (name, task), found in sets.items()),
            f"for steps of {SWIFT:g} and more the exponents of single seeds in Adam's clock are "
            + ", ".join(f"{e:.2f}" for e in every) + "; smaller steps are too short for the way"
            " and later than the law",
            "why: after t1 the slope of the loss is gone, but sqrt(v) only falls by e in T steps,"
            " and until then the penalty moves the parameters by step beta h/sqrt(v) and not by"
            " step; by this law a decade of beta costs at most T log(10) = 4600 steps at any step",
            *beside(plan),
            f"without a penalty the validation accuracy is {float(none.test_accuracy[-1]):.3f}"
            f" after {int(none.step[-1])} steps",
        ],
        plots=[_plot(sets)],
    )  # fmt: skip


def averaged(exponents: Mapping[tuple[str, Task], float]) -> list[float]:
    """The mean over the seeds, for every penalty."""
    names = dict.fromkeys(name for name, _ in exponents)
    return [float(np.mean([e for (own, _), e in exponents.items() if own == name]))
            for name in names]  # fmt: skip


def farthest(values: Sequence[float]) -> float:
    """The exponent that differs most from -1."""
    return max(values, key=lambda value: abs(value + 1))


def nearest(values: Sequence[float]) -> float:
    return min(values, key=lambda value: abs(value + 1))


def listed(runs: Runs) -> str:
    return ", ".join(f"{s:.0f} at {p:.1e}" for p, s in zip(paces(runs), delays(runs), strict=True))


def told(name: str, runs: Runs, law: float, plain: float, task: Task) -> str:
    """One penalty in a line: both exponents, the spread of c, and the delays."""
    c = paces(runs) * adam_clock(delays(runs))
    raw = paces(runs) * delays(runs)
    return (
        f"{name}, seed {task.seed}: exponent {law:.2f} in Adam's clock, {plain:.2f} in steps; c"
        f" from {c.min():.2g} to {c.max():.2g}, while (t2 - t1) step beta goes from {raw.min():.2g}"
        f" to {raw.max():.2g}; t2 - t1 = " + listed(runs)
    )


def _plot(sets: Mapping[tuple[str, Task], Runs]) -> Plot:
    """The delays of the first seed over step beta, and the law with the middle c."""
    series = []
    for (name, task), found in sets.items():
        if task.seed:
            continue
        x, s = paces(found), delays(found)
        c = float(np.exp(np.mean(np.log(x * adam_clock(s)))))
        line = np.geomspace(x.min(), x.max(), 60)
        series += [Series(NAMES[name], x, s, "points"),
                   Series(f"{NAMES[name]}, law", line, adam_delay(line, c))]  # fmt: skip
    return Plot("the delay of Adam grows with log(1/(step beta))", "step x beta",
                "t2 - t1 in steps", series, "log", "log")  # fmt: skip
