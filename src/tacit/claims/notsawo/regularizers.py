"""N-F3: l1, l2 and nuclear penalties all grok, and under l1 the l2 norm rises afterwards."""

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
    OWN,
    PRINTED,
    Task,
    Training,
    change,
    generalized,
    judged,
    later,
    memorized,
    since,
    spread,
    token_run,
)
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.studies.sizes import Size

RISE = 1.05  # l2 norm over that at t2 that counts as a rise; chance moves it by less than 0.01


@dataclasses.dataclass(frozen=True)
class Plan:
    """The runs of one size: for every penalty its betas, falling, and its number of steps."""

    task: Task
    step: float
    runs: Mapping[str, tuple[Sequence[float], int]]
    none: int  # steps of the run without a penalty


QUICK = Plan(
    Task(31, 0.6, 32),
    1e-2,
    {
        "l1": ((1e-3, 3e-4), 6400),
        "l2^2": ((3e-4, 1e-4), 3600),
        "nuclear": ((3e-3, 1e-3), 2800),
        "l2": ((1e-2,), 1900),
    },
    3000,
)
FULL = Plan(
    PRINTED,
    1e-3,
    {
        "l1": ((3e-5, 1e-5), 22_000),
        "l2^2": ((1e-4, 1e-5), 16_000),
        "nuclear": ((1e-4,), 12_000),
        "l2": ((1e-3,), 12_000),
    },
    12_000,
)

Runs = dict[str, dict[float, Any]]


def plan_of(size: Size) -> Plan:
    return QUICK if size == "quick" else FULL


def runs_of(plan: Plan) -> Runs:
    """Every run by penalty and beta."""
    return {
        name: {beta: token_run(plan.task, Training(name, beta, plan.step, steps)) for beta in betas}
        for name, (betas, steps) in plan.runs.items()
    }


def without(plan: Plan) -> Any:
    """The run without a penalty."""
    return token_run(plan.task, Training("l2^2", 0.0, plan.step, plan.none))


def flat(found: Runs) -> list[Any]:
    return [run for rows in found.values() for run in rows.values()]


def apart(found: Runs, time: Callable[[Any], float] = generalized) -> Array:
    """t2 (or another time) over that of the next larger beta, where a penalty has more than one."""
    pairs = [pair for rows in found.values() for pair in itertools.pairwise(rows.values())]
    return np.array([later(weak, strong, time) for strong, weak in pairs])


def dip(run: Any) -> float:
    """The least l2 norm since t2 over that at t2."""
    norm = since(run, "l2")
    return float(norm.min() / norm[0]) if len(norm) else math.nan


def soon(run: Any) -> float:
    """The l2 norm at 1.2 t2 over that at t2."""
    norm = since(run, "l2")
    steps = run.step.values[len(run.step) - len(norm) :]
    after = norm[steps >= 1.2 * generalized(run)]
    return float(after[0] / norm[0]) if len(after) else math.nan


def missing(runs: Sequence[Any]) -> int:
    """The number of runs that `tacit.grokking` does not call a grok."""
    return sum(judged(run).kind != "grok" for run in runs)


def told(name: str, beta: float, run: Any) -> str:
    """One run in a line: the times and what the norms do after t2."""
    after = ", ".join(f"{norm} x {change(run, norm):.3f}" for norm in ("l1", "l2", "nuclear"))
    return (
        f"{NAMES[name]}, beta {beta:g}: t1 {memorized(run):.0f}, t2 {generalized(run):.0f}; norms"
        f" at the end over those at t2: {after}; the least l2 norm in between x {dip(run):.3f}"
    )


@claim(
    "N-F3",
    statement="on modular addition an l1, a squared l2 and a nuclear penalty each make the MLP"
    " grok, later for a smaller beta; after generalization the norm of the penalty falls, and"
    " under l1 the l2 norm rises above its value at t2: the model leaves the Goldilocks zone and"
    " still generalizes",
    place="Goldilocks zone & LU mechanism, figure 3",
    seconds=20,
)
def regularizers(size: Size) -> Evidence:
    plan = plan_of(size)
    found, none = runs_of(plan), without(plan)
    everything = flat(found)
    ends = {name: [change(run, "l2") for run in rows.values()] for name, rows in found.items()}
    beyond = min(int(run.step[-1]) / generalized(run) for run in everything)
    sparse = list(found["l1"].values())
    groks = Check(
        "runs with a penalty that tacit.grokking does not call grok",
        missing(everything),
        0.0,
        0.0,
        "at most",
    )
    order = Check(
        "least ratio of t2 to that of the next larger beta",
        float(apart(found).min()),
        1.2,
        0.0,
        "at least",
    )
    rising = Check(
        "least ratio of the l2 norm at the end to that at t2 under l1",
        min(ends["l1"]),
        RISE,
        0.0,
        "at least",
    )
    own = Check(
        "largest ratio of a penalty's own norm at the end to that at t2",
        max(change(run, OWN[name]) for name, rows in found.items() for run in rows.values()),
        0.95,
        0.0,
        "at most",
    )
    stays = Check(
        "least validation accuracy at the end under l1",
        min(float(run.test_accuracy[-1]) for run in sparse),
        LEVEL,
        0.0,
        "at least",
    )
    zone = _zone(found)
    return Evidence(
        ran=f"{plan.task}, N's MLP, Adam with step {plan.step:g}, full batches, one run of each"
        f" penalty and beta, to {beyond:.1f} t2 and more; t2 is the first record with a validation"
        f" accuracy of {LEVEL:g}",
        premises={
            "every run learns its training pairs": (
                all(math.isfinite(memorized(run)) for run in everything),
                len(everything),
            )
        },
        checks=[groks, order, rising, own, stays],
        controls={
            "no penalty": groks.control(missing([none])),
            "memorization is later as well": order.control(float(apart(found, memorized).min())),
            "the l2 norm under squared l2": rising.control(max(ends["l2^2"])),
            "the l2 norm under l2": rising.control(max(ends["l2"])),
            "the l2 norm under the nuclear norm": rising.control(max(ends["nuclear"])),
            "a rise at once, by 1.2 t2": rising.control(max(map(soon, sparse))),
            "the l2 norm under l1 as its own": own.control(
                max(change(run, "l2") for run in sparse)
            ),
            "no penalty, at the end": stays.control(float(none.test_accuracy[-1])),
        },
        findings=[
            *(told(name, beta, run) for name, rows in found.items() for beta, run in rows.items()),
            "the l2 norm under l1 is not monotone after t2: it goes on falling to "
            + ", ".join(f"{dip(run):.3f}" for run in sparse)
            + " times its value at t2, and rises"
            " once the entries that are left grow: (l1/l2)^2, a number of entries, goes from "
            + ", ".join(f"{spread(run, 0):.0f} to {spread(run, -1):.0f}" for run in sparse),
            f"the l2 norm at the end under l1 is {zone[0]:.4g}; the squared l2 runs generalize"
            f" at {zone[1]:.4g} and end at {zone[2]:.4g}",
            f"without a penalty the validation accuracy is {float(none.test_accuracy[-1]):.3f}"
            f" after {plan.none} steps, and the l2 norm has grown from"
            f" {float(none.norm_l2[0]):.4g} to {float(none.norm_l2[-1]):.4g}",
        ],
        plots=[_plot(found)],
    )


def _zone(found: Runs) -> tuple[float, float, float]:
    """l2 norms with the largest betas: last under l1; at t2 and last under squared l2."""
    sparse, decayed = (next(iter(found[name].values())) for name in ("l1", "l2^2"))
    at_t2 = float(decayed.norm_l2[-1]) / change(decayed, "l2")
    return float(sparse.norm_l2[-1]), at_t2, float(decayed.norm_l2[-1])


def _plot(found: Runs) -> Plot:
    """The l2 norm over the steps since t2, for the largest beta of every penalty."""
    lines = []
    for name, rows in found.items():
        run = next(iter(rows.values()))
        norm = since(run, "l2")
        if len(norm):
            steps = run.step.values[-len(norm) :]
            lines.append(Series(NAMES[name], steps / steps[0], norm / norm[0]))
    return Plot(
        "the l2 norm after generalization", "steps / t2", "l2 norm / l2 norm at t2", lines, "log"
    )
