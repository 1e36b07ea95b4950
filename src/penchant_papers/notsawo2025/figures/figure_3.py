"""Figure 3: nets grok under three penalties; under l1 the l2 norm first falls, then rises."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penchant.lab import Axes, Dataset, Evidence, Experiment, Figure, at_least, at_most
from penchant.plotting import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    caption_of,
    latex,
    sheet,
)
from penchant_papers.notsawo2025.figures.runs import (
    MOST,
    NAMES,
    OWN,
    arguments,
    change,
    delayed,
    generalized,
    memorized,
    runs_of,
    since,
    task,
    token_study,
    without_grok,
    without_penalty,
)
from penchant_papers.notsawo2025.recoveries import count

# A norm has risen if its log is higher by so many standard deviations of the run's own fluctuation;
# of a thousand records that fluctuate about a line, none comes so far by chance.
SIGMAS = 5.0
DRAWN = ("l1", "l2^2", "nuclear")
NORMS = (
    ("l1", r"$\ell_1$", PURPLE, "-"),
    ("l2", r"$\ell_2$", GREEN, "-"),
    ("nuclear", "nuclear", BLACK, "--"),
)
SHADES = (RED, BLUE, ORANGE, GREY)

Runs = dict[str, list[Any]]  # by penalty; the largest beta is first


def runs(plan: Mapping[str, tuple[Sequence[float], int]], none: int) -> list[dict[str, Any]]:
    """The runs of a plan {penalty: (falling betas, steps)}, and one without a penalty."""
    penalized = [
        {"penalty": name, "beta": beta, "steps": steps}
        for name, (betas, steps) in plan.items()
        for beta in betas
    ]
    return [*penalized, {"beta": 0.0, "steps": none}]


SMALL: dict[str, Any] = {
    "modulus": 31,
    "fraction": 0.7,
    "width": 32,
}  # as the algorithmic dataset, whose programs it shares
study = token_study(
    "N-F3",
    "The net groks with every penalty; under ℓ₁ its ℓ₂ norm falls on after t₂ and then rises",
    quick=arguments(
        runs(
            {
                "l1": ((1.5e-3, 5e-4), 2000),
                "l2^2": ((6e-4, 2e-4), 1200),
                "nuclear": ((6e-3, 2e-3), 1000),
            },
            1000,
        ),
        **SMALL,
        learning_rate=2e-2,
        per_decade=25,
    ),
    printed=arguments(
        runs(
            {
                "l1": ((3e-5, 1e-5), 22_000),
                "l2^2": ((1e-4, 1e-5), 16_000),
                "nuclear": ((1e-4, 1e-5), 18_000),
                "l2": ((1e-3,), 12_000),
            },
            12_000,
        ),
        modulus=97,
        fraction=0.4,
        width=64,
        learning_rate=1e-3,
        per_decade=40,
    ),
)


def parts(dataset: Dataset) -> tuple[Runs, Any]:
    """The runs of every penalty, and the run without one."""
    by_penalty: Runs = {}
    *penalized, none = runs_of(dataset)
    for run in penalized:
        by_penalty.setdefault(str(run.penalty.values), []).append(run)
    return by_penalty, none


def t2_of(run: Dataset) -> float:
    """t2, at MOST of the validation pairs."""
    return generalized(run, MOST)


def dip(run: Dataset) -> float:
    """The least l2 norm since t2 over that at t2."""
    norm = since(run, "l2", MOST)
    return float(norm.min() / norm[0]) if len(norm) else math.nan


def fluctuation(run: Dataset) -> float:
    """The standard deviation of the log of the l2 norm since t2 from the mean of its neighbours.

    A curve that bends deviates too, so that this is never less than its fluctuation.
    """
    logs = np.log(since(run, "l2", MOST))
    return float(np.std(logs[1:-1] - (logs[:-2] + logs[2:]) / 2)) if len(logs) > 3 else math.nan


def rise(run: Dataset) -> float:
    """How far the l2 norm at the end lies above its least value since t2, in fluctuations."""
    return math.log(change(run, "l2", MOST) / dip(run)) / fluctuation(run)


def fall(run: Dataset) -> float:
    """How far the least l2 norm since t2 lies below that at t2, in fluctuations."""
    return -math.log(dip(run)) / fluctuation(run)


def spread(run: Dataset, place: int) -> float:
    """(l1 norm / l2 norm)^2: the number of non-zero entries if these all had the same size."""
    l1, l2 = since(run, "l1", MOST), since(run, "l2", MOST)
    return float((l1[place] / l2[place]) ** 2) if len(l1) else math.nan


def check(dataset: Dataset) -> Evidence:
    """Which runs grok, the order of their t2, and the norms at the end over those at t2."""
    by_penalty, none = parts(dataset)
    everything, sparse = list(itertools.chain(*by_penalty.values())), by_penalty["l1"]
    rises = {name: [rise(run) for run in row] for name, row in by_penalty.items()}
    beyond = min(float(run.step[-1]) / t2_of(run) for run in everything)
    groks = at_most(without_grok(everything, MOST))
    order = at_least(delayed(by_penalty.values(), t2_of).min(), 1.2)
    rising = at_least(min(rises["l1"]), SIGMAS)
    own = at_most(
        max(change(run, OWN[name], MOST) for name, row in by_penalty.items() for run in row), 0.95
    )
    stays = at_least(min(float(run.test_accuracy[-1]) for run in sparse), 0.95)
    both = {
        "runs with a penalty that measures.grokking does not classify as a grok": groks,
        r"least ratio of $t_2$ to that of the next larger $\beta$": order,
        "largest ratio of a penalty's own norm at the end to that at $t_2$": own,
        r"least rise of the $\ell_2$ norm from its least value since $t_2$ to the end under "
        r"$\ell_1$, in standard deviations of its own fluctuation": rising,
        r"least validation accuracy at the end under $\ell_1$": stays,
    }
    ends = ", ".join(f"{change(run, 'l2', MOST):.2f}" for run in sparse)
    return Evidence(
        ran=f"{task(none)}, Adam with step {float(none.learning_rate):g}, full batches, one run "
        rf"of each penalty and $\beta$, to {beyond:.1f} $t_2$ and more; $t_2$ is the first "
        f"record with a validation accuracy of {MOST:g}",
        premises={
            "every run learns its training pairs": (
                all(math.isfinite(memorized(run)) for run in everything),
                len(everything),
            )
        },
        checks={
            **both,
            r"largest fall of the $\ell_2$ norm below its value at $t_2$ under $\ell_1$, in "
            "standard deviations of its own fluctuation": at_most(max(map(fall, sparse)), SIGMAS),
        },
        corrected=both,
        correction=r"from $t_2$ on the $\ell_2$ norm falls on, as under the other penalties, and "
        r"rises only from its least value; whether it then passes its value at $t_2$ depends on "
        rf"$\beta$ and on how long one trains: here it ends at {ends} times that value",
        counterexample={
            rf"$\beta = {latex(float(run.beta))}$, least $\ell_2$ norm since $t_2$ over that at "
            "$t_2$": dip(run)
            for run in sparse
        },
        controls={
            "no penalty": groks.control(without_grok([none], MOST)),
            "memorization is delayed as well": order.control(
                delayed(by_penalty.values(), memorized).min()
            ),
            **{
                rf"the $\ell_2$ norm under {NAMES[name]}": rising.control(max(rises[name]))
                for name in by_penalty
                if OWN[name] == "l2"
            },
            r"no penalty, the $\ell_2$ norm from memorization on": own.control(
                none.norm_l2[-1] / none.norm_l2[int(np.argmax(none.train_accuracy.values))]
            ),
            "no penalty, at the end": stays.control(none.test_accuracy[-1]),
        },
        findings=findings(by_penalty, none),
    )


def findings(by_penalty: Runs, none: Dataset) -> list[str]:
    """A line for every run, and the l2 norms."""
    sparse, decayed = by_penalty["l1"], by_penalty["l2^2"][0]
    last = float(decayed.norm_l2[-1])
    return [
        *(described(run) for row in by_penalty.values() for run in row),
        r"the $\ell_2$ norm under $\ell_1$ is not monotone after $t_2$: it continues to fall to "
        + ", ".join(f"{dip(run):.3f}" for run in sparse)
        + " times its value at $t_2$, and rises when the remaining entries grow: "
        r"$(\ell_1/\ell_2)^2$, an effective number of entries, changes from "
        + ", ".join(f"{spread(run, 0):.0f} to {spread(run, -1):.0f}" for run in sparse),
        rf"the $\ell_2$ norm at the end under $\ell_1$ is {float(sparse[0].norm_l2[-1]):.4g}; the "
        rf"squared $\ell_2$ runs generalize at {last / change(decayed, 'l2', MOST):.4g} and "
        f"end at {last:.4g}",
        r"under the nuclear norm, which leaves few directions as $\ell_1$ leaves few entries, the "
        r"$\ell_2$ norm may rise from its least value too: here to "
        + ", ".join(f"{change(run, 'l2', MOST) / dip(run):.3f}" for run in by_penalty["nuclear"])
        + " times it",
        rf"{without_penalty(none)}, and the $\ell_2$ norm has grown from "
        f"{float(none.norm_l2[0]):.4g} to {float(none.norm_l2[-1]):.4g}",
    ]


def described(run: Dataset) -> str:
    """One run in a line: its times, and its norms after t2."""
    after = ", ".join(
        f"{NAMES[norm]} × {change(run, norm, MOST):.3f}" for norm in ("l1", "l2", "nuclear")
    )
    return (
        rf"{NAMES[str(run.penalty.values)]}, $\beta$ {float(run.beta):g}: $t_1$ "
        f"{memorized(run):.0f}, $t_2$ {t2_of(run):.0f}; norms at the end over those at $t_2$: "
        rf"{after}; the least $\ell_2$ norm in between × {dip(run):.3f}"
    )


def draw(dataset: Dataset) -> Figure:
    """The accuracies for every beta, and below them the norms for the largest, with t1 and t2."""
    by_penalty, none = parts(dataset)
    caption = caption_of(dataset.attrs)
    many = len(DRAWN)
    picture, panels = sheet(dataset.title, caption, (4.2,) * many, height=7.4, rows=(1, 1))
    for name, above, below in zip(DRAWN, panels[:many], panels[many:], strict=True):
        _accuracies(above, by_penalty[name], none)
        _norms(below, by_penalty[name][0])
        above.set_title(f"penalty: {NAMES[name]}", fontsize=11)
    return picture


def _accuracies(panel: Axes, row: Sequence[Any], none: Dataset) -> None:
    for run, colour in zip(row, SHADES, strict=False):
        t2 = t2_of(run)
        label = rf"$\beta = {latex(float(run.beta))}$, $t_2 = {count(t2)}$"
        panel.plot(run.step, run.test_accuracy, color=colour, linewidth=2.4, label=label)
        panel.plot(run.step, run.train_accuracy, "--", color=colour, linewidth=1.2)
        if math.isfinite(t2):
            panel.axvline(t2, color=colour, linestyle="-.", linewidth=1, zorder=1)
    label = r"validation, $\beta = 0$"
    panel.plot(none.step, none.test_accuracy, ":", color=GREY, linewidth=1.8, label=label)
    panel.plot([], [], "--", color=GREY, linewidth=1.2, label="training")
    panel.set(ylabel="accuracy", xlabel="steps of Adam", xscale="log", ylim=(-0.03, 1.05))
    panel.set_xlim(10, max(float(run.step[-1]) for run in row))
    panel.legend(
        loc="lower right",
        fontsize=8,
        bbox_to_anchor=(1.0, 0.03),
        frameon=True,
        framealpha=0.9,
        edgecolor="none",
    )


def _norms(panel: Axes, run: Dataset) -> None:
    """The norms of one run over those at t2 (at the end if there is no t2), with t1 and t2."""
    t1, t2, last = memorized(run), t2_of(run), float(run.step[-1])
    at = int(np.searchsorted(run.step.values, t2)) if math.isfinite(t2) else -1
    for name, text, colour, line in NORMS:
        norm = run[f"norm_{name}"].values
        wide = 3 if name == "l2" else 1.6
        panel.plot(run.step, norm / norm[at], line, color=colour, label=text, linewidth=wide)
    for name, place, colour in (("t_1", t1, BLUE), ("t_2", t2, RED)):
        if math.isfinite(place):
            text = f"${name}$ = {count(place)}"
            panel.axvline(place, color=colour, ls="-.", lw=1.2, zorder=1, label=text)
    if math.isfinite(t2):
        panel.axvspan(t2, last, color=GREEN, alpha=0.08, zorder=0)
        verb = "rises" if rise(run) >= SIGMAS else "does not rise"
        text = (
            rf"$\beta = {latex(float(run.beta))}$: after $t_2$ the $\ell_2$ norm {verb}:"
            "\nat the end it is"
        )
        text += f" {change(run, 'l2', MOST):.2f} times that at $t_2$"
        panel.set_title(text, fontsize=9, color=GREEN)
    panel.set(ylabel=r"norm / norm at $t_2$", xlabel="steps of Adam", ylim=(0, None))
    panel.set_xlim(0, last)  # linear: most of the run comes after t2
    panel.legend(loc="upper right", fontsize=8)


experiment = Experiment(
    "N-F3",
    statement=r"On modular addition an $\ell_1$, a squared $\ell_2$ and a nuclear penalty each "
    r"make the MLP grok, later for a smaller $\beta$; after generalization the norm of the "
    r"penalty falls, while under $\ell_1$ the $\ell_2$ norm rises: the model leaves the "
    "Goldilocks zone and still generalizes.",
    place="Goldilocks zone & LU mechanism, Figure 3",
    study=study,
    check=check,
    draw=draw,
    ours="strengths up to ten times those of the authors' program, the start, full batches, sizes"
    " of the net",
    scope={
        "quick": "$p = 31$ in place of 97, 70% of the pairs in place of 40%, step 0.02 in place "
        "of 0.001, and stronger penalties",
    },
    seconds=9,
)
