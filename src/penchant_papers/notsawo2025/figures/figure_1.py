"""Figure 1: modular addition is memorized early and learned late; the plateau consists of twins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penchant.lab import (
    Axes,
    Check,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    lower_share,
    within,
)
from penchant.plotting import (
    BLACK,
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    LEGEND,
    ORANGE,
    RED,
    caption_of,
    mark,
    panel_rows,
)
from penchant_papers.notsawo2025.figures.runs import (
    LEVEL,
    arguments,
    generalized,
    memorized,
    runs_of,
    task,
    token_study,
    without_grok,
)
from penchant_papers.notsawo2025.recoveries import count

PRINTED = {"t1": 540, "t2": 9150}  # the source reads these off its figure, at p = 97
LATE = PRINTED["t2"] / PRINTED["t1"]  # 17
HEIGHTS = (2.6, 1.3, 1.3)  # accuracy, loss, norms


def runs(beta: float, short: int, seeds: int = 1, more: Sequence[dict[str, Any]] = ()) -> list[Any]:
    """The runs as printed, then the controls; the last of these has a net that is not symmetric."""
    as_printed = [{"beta": beta, "seed": seed} for seed in range(seeds)]
    ordered = {"beta": beta, "variant": "code", "steps": short}
    return [*as_printed, {"beta": 0.0}, {"beta": beta / 10}, ordered, *more]


study = token_study(
    "N-F1",
    "Modular addition: the plateau of the validation accuracy consists of mirrored pairs",
    quick=arguments(
        runs(7e-5, 250),
        modulus=31,
        fraction=0.5,
        width=64,
        learning_rate=5e-3,
        steps=2000,
        per_decade=30,
    ),
    printed=arguments(
        runs(1e-6, 2800, seeds=3, more=[{"beta": 1e-6, "scale": 0.5}]),
        modulus=97,
        fraction=0.4,
        width=64,
        learning_rate=1e-3,
        steps=21_000,
    ),
)


def parts(dataset: Dataset) -> dict[str, list[Dataset]]:
    """The runs by kind.

    They are as printed, without a penalty, with a tenth of it, with the net of the authors' code,
    or from half of the start.
    """
    kinds = ("printed", "unpenalized", "weak", "ordered", "half")
    by_kind: dict[str, list[Dataset]] = {name: [] for name in kinds}
    everything = runs_of(dataset)
    beta = float(everything[0].beta)
    for run in everything:
        usual = {beta: "printed", 0.0: "unpenalized"}.get(float(run.beta), "weak")
        other = "ordered" if run.variant == "code" else "half" if run.scale != 1 else usual
        by_kind[other].append(run)
    return by_kind


def landmarks(run: Dataset, level: float = LEVEL) -> dict[str, float]:
    """t1 and t2 (NaN if not reached), and both validation accuracies between them."""
    t1, t2 = memorized(run), generalized(run, level)
    places = {"t1": t1, "t2": t2, "plateau": math.nan, "novel_plateau": math.nan}
    places |= {"mirrored_plateau": math.nan}
    if 0 < t1 < t2:
        middle = int(np.searchsorted(run.step.values, math.sqrt(t1 * t2)))
        places["plateau"] = float(run.test_accuracy[middle])
        places["novel_plateau"] = float(run.novel_accuracy[middle])
        places["mirrored_plateau"] = mirrored(run, middle)
    return places


def mirrored(run: Dataset, place: int) -> float:
    """The share of the validation pairs with a mirror in training that are right."""
    others = (1 - float(run.twins)) * float(run.novel_accuracy[place])
    return (float(run.test_accuracy[place]) - others) / float(run.twins)


def least_share(run: Dataset, accuracy: float, of: float = 1.0) -> float:
    """The least accuracy on a part of the validation pairs that a measured one is compatible with.

    Of a small table few pairs are left, of which a net that guesses has some right by chance.
    """
    pairs = round(of * (1 - float(run.fraction)) * int(run.modulus) ** 2)
    return math.nan if math.isnan(accuracy) else lower_share(round(accuracy * pairs), pairs)


def off(time: float, printed: float) -> float:
    """|log2(time / printed)|; inf if the time was never reached."""
    return abs(math.log2(time / printed)) if math.isfinite(time) else math.inf


def farthest(marks: Sequence[dict[str, float]]) -> float:
    """The largest distance of t2/t1 from the printed ratio."""
    return max(off(f["t2"] / f["t1"], LATE) for f in marks)


def check(dataset: Dataset) -> Evidence:
    """t1, t2 and the plateau against the printed ratio and the share of the twins."""
    by_kind = parts(dataset)
    printed, (bare,), (ordered,) = by_kind["printed"], by_kind["unpenalized"], by_kind["ordered"]
    first, marks = printed[0], [landmarks(run) for run in printed]
    weak = landmarks(by_kind["weak"][0])
    beyond = min(float(run.step[-1]) / f["t1"] for run, f in zip(printed, marks, strict=True))
    late = within(farthest(marks), tolerance=1.0)
    grok = within(without_grok(printed))
    twins = at_least(np.min([f["mirrored_plateau"] for f in marks]), 0.95)
    guessed = [
        least_share(run, f["novel_plateau"], 1 - float(run.twins))
        for f, run in zip(marks, printed, strict=True)
    ]
    novel = at_most(np.max(guessed), 0.05)
    of_source = int(first.modulus) == 97
    times = printed_times(marks) if of_source else {}
    tenth = late.control(farthest([weak]))
    if times:  # a narrower window, which the longer delay of a larger table needs
        _, t2 = times.values()
        tenth = t2.control(off(weak["t2"], PRINTED["t2"]))
    return Evidence(
        ran=rf"{task(first)}, Adam with step {float(first.learning_rate):g}, $\beta$ "
        f"{float(first.beta):g}, full batches, {int(first.step[-1])} steps, {len(printed)} "
        "seed(s); the same without a penalty, with a tenth of it, and with the net of the "
        "authors' code, which distinguishes $(a, b)$ from $(b, a)$"
        + ("" if of_source else "; the times of $p = 97$ are checked at the printed size only"),
        premises={
            "the runs are longer than the largest $t_2$ allowed": (beyond > 2 * LATE, beyond)
        },
        checks={
            "largest distance of $t_2/t_1$ from the printed 17, in factors of two": late,
            **times,
            "runs not classified as a grok": grok,
            "least accuracy on the plateau on mirrored pairs": twins,
            "largest accuracy on the plateau without mirrored pairs (0.999 lower limit)": novel,
        },
        controls={
            "no penalty": late.control(farthest([landmarks(bare)])),
            "a tenth of the penalty": tenth,
            "no penalty classified as a grok": grok.control(without_grok([bare])),
            "a net that is not symmetric": twins.control(mirrored(ordered, -1)),
            "all pairs in place of those without a mirror": novel.control(
                least_share(first, marks[0]["plateau"])
            ),
        },
        findings=[
            f"{times_of(marks)}; the source reads $t_1 = {PRINTED['t1']}$ and $t_2 = "
            f"{PRINTED['t2']}$ off its figure for $p = 97$; with a tenth of the penalty "
            f"{times_of([weak])}",
            *(choices(first, half) for half in by_kind["half"]),
            f"the plateau at {marks[0]['plateau']:.3f} consists of pairs $(a, b)$ whose mirror "
            f"$(b, a)$ is in training, {float(first.twins):.3f} of the validation pairs: "
            f"without them the accuracy on the plateau is {marks[0]['novel_plateau']:.3f}",
        ],
    )


def printed_times(marks: Sequence[dict[str, float]]) -> dict[str, Check]:
    """The checks of the printed times themselves."""
    return {
        f"largest distance of $t_{name[1]}$ from the printed {printed}, in factors of two": within(
            max(off(f[name], printed) for f in marks), tolerance=math.log2(1.5)
        )
        for name, printed in PRINTED.items()
    }


def choices(run: Dataset, half: Dataset) -> str:
    """The effect on t2 of two choices that the source does not print: the level and the start."""
    strict, small, small_strict = landmarks(run, 1.0), landmarks(half), landmarks(half, 1.0)
    return (
        "the source prints neither its start nor its level: seed 0 has $t_2 = "
        f"{strict['t2']:.0f}$ at a level of 1; with embeddings $N(0, 1/4)$ for $N(0, 1) t_1 = "
        f"{small['t1']:.0f}$ and $t_2 = {small['t2']:.0f}$ ({small_strict['t2']:.0f} at a "
        "level of 1)"
    )


def times_of(marks: Sequence[dict[str, float]]) -> str:
    """t1 and t2 of every run; nan if not reached."""
    return "; ".join(f"$t_1 = {f['t1']:.0f}$, $t_2 = {f['t2']:.0f}$" for f in marks)


def draw(dataset: Dataset) -> Figure:
    """Accuracies, losses and norms over the number of steps, with t1, t2 and the twin share."""
    by_kind = parts(dataset)
    picture, axes = panel_rows(dataset.title, caption_of(dataset.attrs), HEIGHTS)
    accuracy, losses, norms = axes
    for number, run in enumerate(by_kind["printed"]):
        _draw_run(axes, run, number == 0)
    (bare,) = by_kind["unpenalized"]
    text = "validation without a penalty"
    accuracy.plot(bare.step, bare.test_accuracy, ":", color=GREY, linewidth=1.8, label=text)
    _marks(axes, by_kind["printed"][0])
    accuracy.set(ylabel="accuracy", ylim=(-0.03, 1.05), xscale="log")
    accuracy.set_xlim(10, float(by_kind["printed"][0].step[-1]))
    accuracy.set_title("\n".join(map(_line, by_kind["printed"])), fontsize=9)
    losses.set(ylabel="cross-entropy", yscale="log")
    norms.set(ylabel="norm / norm\nafter one step")
    for panel in axes:
        panel.set_xlabel("steps of Adam" if panel is norms else "")
        panel.legend(**LEGEND)
    picture.align_ylabels(axes)
    return picture


def _draw_run(axes: list[Axes], run: Dataset, first: bool) -> None:
    """The curves of one seed; those after the first are thin and not in the legend."""
    accuracy, losses, norms = axes
    width, faint = (1.0, 1.0) if first else (0.4, 0.6)

    def curve(panel: Axes, name: str, text: str, colour: str, line: str, wide: float) -> None:
        values = run[name] / run[name][0] if name.startswith("norm") else run[name]
        label = text if first else None
        panel.plot(run.step, values, line, color=colour, lw=width * wide, alpha=faint, label=label)

    curve(accuracy, "train_accuracy", "training", BLUE, "--", 1.6)
    curve(accuracy, "test_accuracy", "validation", RED, "-", 3)
    curve(accuracy, "novel_accuracy", "validation without mirrored pairs", ORANGE, "-", 1.8)
    curve(losses, "loss", "training", BLUE, "--", 1.6)
    curve(losses, "test_loss", "validation", RED, "-", 2)
    curve(norms, "norm_l1", r"$\ell_1$", CYCLE[3], "-", 1.6)
    curve(norms, "norm_l2", r"$\ell_2$", GREEN, "-", 1.6)
    curve(norms, "norm_nuclear", "nuclear", BLACK, "-", 1.6)


def _marks(axes: list[Axes], run: Dataset) -> None:
    """t1 and t2, those of the source if the size is its own, and the share of the twins."""
    times = landmarks(run)
    for name, colour in (("t1", BLUE), ("t2", RED)):
        symbol = f"${name[0]}_{name[1]}$"
        if math.isfinite(times[name]):
            mark(axes, times[name], f"{symbol} = {count(times[name])}", colour, "-.")
        if int(run.modulus) == 97:
            text = f"source: {symbol} = {count(PRINTED[name])}"
            mark(axes, PRINTED[name], text, GREY, ":")
    share = float(run.twins)
    label = f"share of mirrored pairs: {share:.3f}"
    axes[0].axhline(share, color=BLACK, lw=1, ls=(0, (5, 3)), zorder=1, label=label)


def _line(run: Dataset) -> str:
    """The measured times and accuracies of one seed, in a line."""
    times = landmarks(run)
    if math.isnan(times["t2"]):
        return f"seed {int(run.split)}: training solved at {times['t1']:.0f}, validation never"
    return (
        f"seed {int(run.split)}: $t_1$ = {count(times['t1'])}, $t_2$ = {count(times['t2'])};"
        f" between them validation {times['plateau']:.3f}, without mirrored pairs"
        f" {times['novel_plateau']:.3f}; mirrored pairs {float(run.twins):.3f}"
    )


experiment = Experiment(
    "N-F1",
    statement=r"An MLP with a small $\ell_2^2$ penalty, trained by Adam on a part of the table of "
    "modular addition, fits all training pairs at $t_1$ and the others about 17 times later "
    "(within a factor of 2); at the printed size $t_1$ is about 540 and $t_2$ about 9150 "
    "(within a factor of 1.5, because the source does not print its start).",
    place="What is Grokking?, Figure 1",
    study=study,
    check=check,
    draw=draw,
    ours="the start, PyTorch's (the source prints none), full batches, seeds, sizes 64 and 64",
    scope={
        "quick": "$p = 31$ in place of 97, 50% of the pairs in place of 40%, step 0.005 in place "
        r"of 0.001, $\beta$ $7 \times 10^{-5}$ in place of $10^{-6}$; the times of $p = 97$ "
        "are not checked",
    },
    seconds=8,
)
