"""Algorithmic dataset: the time at which Adam learns modular addition, over step and beta."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from penchant.forecasts import adam_clock, adam_delay, adam_memory
from penchant.lab import (
    Array,
    Axes,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    within,
)
from penchant.plotting import BLACK, CYCLE, MARKERS, caption_of, log_axes, sheet
from penchant_papers.instances import listed, slope
from penchant_papers.notsawo2025.figures.runs import (
    MOST,
    NAMES,
    arguments,
    delayed,
    generalized,
    later,
    memorized,
    runs_of,
    task,
    token_study,
    without_grok,
    without_penalty,
)

MEMORY = adam_memory()  # 1999 steps
LEARNED = 0.95  # of the validation pairs, at which a run stops; it is later than t2
OFF = 0.2  # tolerance of the growth of the delay; c ~ beta^0.3 would change it by 0.3
Law = Callable[[float, float], Array | float]  # (delay, larger beta / smaller beta) -> delay
Betas = Mapping[str, Mapping[float, Sequence[float]]]  # by penalty and step, falling


def runs(
    betas: Betas,
    room: Mapping[str, float],
    none: int,
    seeds: int = 1,
    decoupled: Sequence[tuple[float, float]] = (),
) -> list[dict[str, Any]]:
    """Runs to LEARNED, for a tenth longer than the delay at most, and `none` steps of no penalty.

    `room` is the c of `adam_delay` from which the longest delays are computed, above all measured
    ones; `decoupled` are pairs of step and beta of AdamW.
    """

    def length(penalty: str, step: float, beta: float) -> int:
        return round(1.1 * (1 / step + float(adam_delay(step * beta, room[penalty]))))

    settings: list[dict[str, Any]] = [
        {
            "penalty": name,
            "learning_rate": step,
            "beta": beta,
            "seed": seed,
            "steps": length(name, step, beta),
            "until": LEARNED,
        }
        for seed in range(seeds)
        for name, table in betas.items()
        for step, row in table.items()
        for beta in row
    ]
    settings.append({"learning_rate": settings[0]["learning_rate"], "beta": 0.0, "steps": none})
    return settings + [
        {"learning_rate": step, "beta": beta, "steps": round(4 / (step * beta)), "decoupled": True}
        for step, beta in decoupled
    ]


SMALL = {"modulus": 31, "fraction": 0.7, "width": 32, "per_decade": 100}
PRINTED = {"modulus": 97, "fraction": 0.4, "width": 64, "per_decade": 150}
study = token_study(
    "N-F-alg",
    r"With Adam, generalization is delayed by log($1/(\mathrm{step}\,\beta)$), not by "
    r"$1/(\mathrm{step}\,\beta)$",
    quick=arguments(
        runs(
            {
                "l1": {1e-2: (1.5e-5, 1.5e-6), 2e-2: (1.5e-5,)},
                "l2^2": {1e-2: (8e-6, 8e-7)},
                "nuclear": {1e-2: (8e-5, 8e-6)},
            },
            {"l1": 1e-2, "l2^2": 4e-3, "nuclear": 4e-2},
            none=12_000,
        ),
        **SMALL,
    ),
    printed=arguments(
        runs(
            {
                "l1": {1e-3: (1e-5, 1e-6), 3e-3: (1e-6,)},  # the source's step, and a larger one
                "l2^2": {1e-3: (1e-5, 1e-6)},
                "nuclear": {1e-3: (1e-4, 1e-5)},
            },
            {"l1": 1e-2, "l2^2": 4e-3, "nuclear": 4e-2},
            none=22_000,
            decoupled=[(1e-3, 1.0), (1e-3, 0.3)],
        ),
        **PRINTED,
    ),
)


@dataclasses.dataclass(frozen=True)
class Row:
    """The runs of one penalty, seed and step, by beta; the largest beta is first."""

    penalty: str
    seed: int
    step: float
    runs: dict[float, Any]

    def __str__(self) -> str:
        return f"{NAMES[self.penalty]}, seed {self.seed}, step {self.step:g}"

    @property
    def step_betas(self) -> Array:
        """step beta."""
        return self.step * np.array(list(self.runs))

    @property
    def delays(self) -> Array:
        """t2 - t1, t2 at MOST of the validation pairs."""
        return np.array([learned(run) - memorized(run) for run in self.runs.values()])

    @property
    def c(self) -> Array:
        """c of `adam_delay` for every run."""
        return self.step_betas * adam_clock(self.delays)

    def error(self, law: Law) -> float:
        """The relative error of a law for the growth of the delay between the outermost betas.

        The whole delay would hide a wrong law: most of it is the first delay, which is given. NaN
        if a run does not reach t2.
        """
        first, last = self.delays[[0, -1]]
        grown = float(law(float(first), float(self.step_betas[0] / self.step_betas[-1]))) - first
        return abs(float(grown / (last - first) - 1))


def log_law(delay: float, weaker: float, memory: float = MEMORY) -> Array:
    """The delay with a beta that is `weaker` times smaller, by the law of `adam_delay`."""
    return memory * np.log1p(weaker * np.expm1(delay / memory))


RIVALS: dict[str, Law] = {
    r"$t_2 - t_1 = c/(\mathrm{step}\,\beta)$, as in gradient descent": lambda delay, weaker: (
        delay * weaker
    ),
    r"$t_2 - t_1 = c/\sqrt{\mathrm{step}\,\beta}$": lambda delay, weaker: delay * math.sqrt(weaker),
    r"the memory of $v$, $T = 1000$, in place of that of $\sqrt{v}$": lambda delay, weaker: log_law(
        delay, weaker, MEMORY / 2
    ),
}


def parts(dataset: Dataset) -> tuple[list[Row], Any, list[Any]]:
    """The rows of runs with a penalty, the run without one, and those of AdamW."""
    rows: dict[tuple[str, int, float], Row] = {}
    everything = runs_of(dataset)
    beside = [run for run in everything if run.decoupled]
    (none,) = (run for run in everything if run.beta == 0)
    for run in everything:
        if run.beta == 0 or run.decoupled:
            continue
        key = str(run.penalty.values), int(run.split), float(run.learning_rate)
        rows.setdefault(key, Row(*key, {})).runs[float(run.beta)] = run
    return list(rows.values()), none, beside


def learned(run: Dataset) -> float:
    """t2, at MOST of the validation pairs."""
    return generalized(run, MOST)


def ordered(rows: Sequence[Row], time: Callable[[Any], float] = learned) -> Array:
    """t2 (or another time) over that with the next larger beta, or with a larger step."""
    ratios = list(delayed([list(row.runs.values()) for row in rows], time))
    for one, other in itertools.permutations(rows, 2):
        same = (one.penalty, one.seed) == (other.penalty, other.seed)
        if same and one.step > other.step:
            both = [beta for beta in one.runs if beta in other.runs]
            ratios += [later(other.runs[beta], one.runs[beta], time) for beta in both]
    return np.array(ratios)


def check(dataset: Dataset) -> Evidence:
    """Which runs grok, the order of t2, and the growth of the delay as beta falls."""
    rows, none, beside = parts(dataset)
    runs = [run for row in rows for run in row.runs.values()]
    wide = [row for row in rows if len(row.runs) > 1]
    groks = at_most(without_grok(runs, MOST))
    order = at_least(ordered(rows).min(), 1.1)
    law = within(max(row.error(log_law) for row in wide), tolerance=OFF)
    shortest = min(float(row.delays.min()) for row in wide)
    spans = [row.step_betas[0] / row.step_betas[-1] for row in wide]
    waited = float(none.step[-1]) / max(map(learned, runs))
    return Evidence(
        ran=f"{task(none)}, {len({row.seed for row in rows})} seed(s), Adam, full batches,"
        f" {len(runs)} runs with the penalties "
        + ", ".join(dict.fromkeys(NAMES[row.penalty] for row in rows))
        + rf", $\beta$ over a factor of {min(spans):.0f} to {max(spans):.0f}; $t_1$ at a training "
        f"accuracy of 1, $t_2$ at a validation accuracy of {MOST:g}",
        premises={
            "every run reaches $t_2$": (
                all(math.isfinite(learned(run)) for run in runs),
                len(runs),
            ),
            "the run without a penalty is longer than every $t_2$": (waited > 1, waited),
            "every delay that the law predicts is longer than $T$": (shortest > MEMORY, shortest),
        },
        checks={
            "runs that penchant.measures.grokking does not classify as a grok": groks,
            r"least ratio of $t_2$ to that of the next larger $\beta$ or step": order,
            "largest relative error of the growth of $t_2 - t_1$ from the largest to the least "
            r"$\beta$, predicted from the run with the largest": law,
        },
        controls={
            "no penalty": groks.control(without_grok([none], MOST)),
            "memorization is delayed as well": order.control(ordered(rows, memorized).min()),
            **{
                name: law.control(min(row.error(rival) for row in wide))
                for name, rival in RIVALS.items()
            },
        },
        findings=findings(rows, none, beside),
    )


def findings(rows: Sequence[Row], none: Dataset, beside: Sequence[Any]) -> list[str]:
    """The rows, the reason for the law, and the delays of AdamW."""
    ((most, _),) = Counter(row.penalty for row in rows).most_common(1)  # has several steps
    shared = [row for row in rows if (row.penalty, row.seed) == (most, rows[0].seed)]
    lines = [
        *(described(row) for row in rows if len(row.runs) > 1),
        r"a smaller step is not the same as a smaller $\beta$: $c$ is "
        + ", ".join(f"{row.c[0]:.2g} at step {row.step:g}" for row in shared)
        + rf" for {NAMES[shared[0].penalty]} at $\beta$ {next(iter(shared[0].runs)):g}",
        r"the reason: after $t_1$ the gradient of the loss vanishes, but $\sqrt{v}$ falls only by "
        "a factor $e$ in $T$ steps, and until then the penalty changes the parameters by step "
        r"$\beta h/\sqrt{v}$, which is less than step; a $\beta$ ten times smaller adds at "
        r"most $T \log(10) = 4600$ steps for every step size",
        without_penalty(none),
    ]
    if beside:
        step_betas = np.array([float(run.learning_rate * run.beta) for run in beside])
        delays = np.array([learned(run) - memorized(run) for run in beside])
        lines.append(
            r"with decoupled decay, as in AdamW, the delay of squared $\ell_2$ is "
            f"{delays_at(step_betas, delays)}; the strongest decay leaves none if it is negative"
        )
    return lines


def delays_at(step_betas: Array, delays: Array) -> str:
    return ", ".join(f"{s:.0f} at {p:.1e}" for p, s in zip(step_betas, delays, strict=True))


def exponents(row: Row) -> tuple[float, float]:
    """The exponents in step beta of the delays in Adam's time and in steps."""
    return slope(row.step_betas, adam_clock(row.delays)), slope(row.step_betas, row.delays)


def described(row: Row) -> str:
    """One row in a line: both exponents, every c, and the delays."""
    clock, plain = exponents(row)
    return (
        f"{row}: exponent {clock:.2f} in Adam's time, {plain:.2f} in steps; $c$ = "
        f"{listed(row.c, '.2g')}; $t_2 - t_1$ = {delays_at(row.step_betas, row.delays)}"
    )


def draw(dataset: Dataset) -> Figure:
    """The delays and the laws through the largest beta, in steps and in Adam's time."""
    rows = parts(dataset)[0]
    rows = [row for row in rows if row.seed == rows[0].seed]
    picture, (times, clock) = sheet(dataset.title, caption_of(dataset.attrs), (6.4, 5.2), 5.2)
    for k, row in enumerate(rows):
        _row(times, clock, row, CYCLE[k % len(CYCLE)], MARKERS[k % len(MARKERS)])
    law = r"$T\,\log(1 + c\,/\,(T\,\alpha\beta))$ through the largest $\beta$"
    times.plot([], [], "-", color=BLACK, lw=1.4, label=law)
    times.plot([], [], ":", color=BLACK, lw=1.4, label=r"$c\,/\,(\alpha\beta)$ through the same")
    clock.plot([], [], "-", color=BLACK, lw=1.4, label=r"$c\,/\,(\alpha\beta)$")
    product = r"step $\times$ strength, $\alpha\beta$"
    log_axes(times, product, r"delay $t_2 - t_1$ in steps of Adam")
    log_axes(clock, product, r"$T\,(e^{(t_2 - t_1)/T} - 1)$")
    clock.set_title(rf"in Adam's time, $T = 2/\log(1/0.999)$ = {MEMORY:.0f} steps")
    times.set_title("in steps")
    highest = max(float(np.nanmax(row.delays)) for row in rows)
    times.set_ylim(top=40 * highest)  # room for the legend
    clock.set_ylim(top=300 * max(float(np.nanmax(adam_clock(row.delays))) for row in rows))
    for axes in (times, clock):
        axes.legend(fontsize=8, loc="upper right")
    return picture


def _row(times: Axes, clock: Axes, row: Row, colour: str, marker: str) -> None:
    """The runs of one row, and the laws through the first of them."""
    name = f"{NAMES[row.penalty]}, step {row.step:g}"
    words = [name, name]
    if len(row.runs) > 1:
        powers = exponents(row)[::-1]
        words = [f"{name}: exponent ${power:.2f}$" for power in powers]
        step_beta = np.geomspace(row.step_betas[-1], row.step_betas[0], 60)
        delay, weaker = float(row.delays[0]), row.step_betas[0] / step_beta
        times.plot(step_beta, log_law(delay, weaker), "-", color=colour, lw=1.4)
        times.plot(step_beta, delay * weaker, ":", color=colour, lw=1.4)
        clock.plot(step_beta, row.c[0] / step_beta, "-", color=colour, lw=1.4)
    values = row.delays, adam_clock(row.delays)
    for axes, label, heights in zip((times, clock), words, values, strict=True):
        axes.plot(row.step_betas, heights, marker, color=colour, ms=7, label=label)


experiment = Experiment(
    "N-F-alg",
    statement=r"On modular addition with an $\ell_1$, a squared $\ell_2$ or a nuclear "
    r"penalty in the gradient of Adam, a smaller step or $\beta$ delays "
    r"generalization; at a fixed step, and for every $\beta$ so small that the delay is "
    r"longer than $T = 2/\log(1/0.999) = 1999$ steps, the delay is not "
    r"$c/(\mathrm{step}\,\beta)$ as in gradient descent but $T$ log($1 + c$/($T$ step "
    r"$\beta$)) with one $c$ (the law is ours: N only names its figures).",
    place="Algorithmic Dataset",
    study=study,
    check=check,
    draw=draw,
    ours="the law, strengths and steps within the ranges of the authors' program, the start and"
    " full batches",
    scope={
        "quick": "$p = 31$ in place of 97, 70% of the pairs in place of 40%, sizes 32 in place of "
        "64, steps of 0.01 and 0.02",
    },
    seconds=25,
)
