"""Figure 8: the smaller the start of a VGG11-like net, the longer the plateau before it learns."""

from __future__ import annotations

import json

import numpy as np

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
from penchant.measures import crossing
from penchant.plotting import BLACK, GREY, latex, sheet_of
from penchant_papers.instances import slope
from penchant_papers.woodworth2020.figures.conv_nets import (
    DEPTH,
    DIGITS,
    PART,
    in_words,
    net_study,
    starts_in_words,
)

SMALL, FAST, DEAD = (0.5, 0.7), 1.0, 2.0  # alpha
TINY = (0.2, 0.3)  # outputs below 1e-4: errors stay those of a blind guess for an epoch
STEP = 0.05  # one for all alphas, as W has it
SLOWER = 1.5  # one start counts as slower than another with half as many epochs again
LEFT = 2.0  # training loss below which a net has left the plateau at log 10 = 2.30
SMALLER = (
    "200 of the small digits of scikit-learn in place of CIFAR-10, a sixteenth of the channels, "
    "steps of 0.05 for $10^{-4}$"
)
# of 100 images the 32 features of the output layer separate all in one draw of five
GIVEN = {**DIGITS, "train": 200, "even": False, "tangents": False}
CIFAR = {
    **PART,
    "otherwise": "",
    "classes": [],
    "train": 1000,
    "test": 500,
    "batch": 50,
    "step": 0.03,
}
study = net_study(
    "W-F8",
    "With one learning rate for all, smaller starts learn later",
    {**GIVEN, "training": "all", "step": STEP, "epochs": 200},
    grid={"alpha": [*SMALL, FAST]},
    draw={"x": "alpha", "colour": "train_accuracy"},
    printed={"arguments": CIFAR, "grid": {"alpha": [*SMALL, 0.85, FAST, 1.2]}},
)
first = net_study(
    "W-F8-first",
    "The first epochs of starts too small and too large for the step",
    {**GIVEN, "training": "all", "step": STEP, "epochs": 10},
    grid={"alpha": [*TINY, DEAD]},
    draw={"x": "alpha", "colour": "first"},
    printed={"arguments": CIFAR},
)
output = net_study(
    "W-F8-output",
    "A VGG11-like net with only the output layer trained",
    {**GIVEN, "training": "output", "alpha": FAST, "step": 0.3, "epochs": 200},
    printed={"arguments": {**CIFAR, "step": 0.3, "epochs": 200}},
)


def memorized(dataset: Dataset) -> Array:
    """The first recorded epoch with every training image right, by alpha; NaN if none has."""
    rows = dataset.isel(seed=0)
    return np.asarray(rows.trajectory_t.where(rows.trajectory_accuracy == 1).min("time").values)


def rests(dataset: Dataset, level: float = LEFT) -> Array:
    """The epoch at which the training loss passes `level`, between two records, by alpha."""
    rows = dataset.isel(seed=0)
    curves = zip(rows.trajectory_t.values, rows.trajectory_loss.values, strict=True)
    return np.array([crossing(t, loss, level) for t, loss in curves])


def exponent(dataset: Dataset, alphas: tuple[float, ...]) -> float:
    """In alpha, of the share of their start that these starts move in the first epoch."""
    return slope(np.array(alphas), dataset["first"].isel(seed=0).sel(alpha=list(alphas)).values)


def check(dataset: Dataset, first: Dataset, output: Dataset) -> Evidence:
    """The order of the starts, the law of their first epoch, and the output layer alone."""
    rows = dataset.sel(alpha=[*SMALL, FAST])
    epochs, left, power = memorized(rows), rests(rows), DEPTH - 2
    accuracy = {
        "nets": float(rows.train_accuracy.min()),
        "fast": float(rows.train_accuracy.sel(alpha=FAST).min()),
        "dead": float(first.train_accuracy.sel(alpha=DEAD).min()),
        "output": float(output.train_accuracy.min()),
    }
    # from 0.7 and 1 the plateau is a few epochs long, and chance decides which is shorter
    slower = at_least(float((left[0] / left[1:]).min()), SLOWER)
    law = within(exponent(first, TINY), float(power), tolerance=0.05 * power)
    every = at_least(accuracy["nets"], 1.0)
    alone = at_most(accuracy["output"], 0.99)
    spent = float(output.trajectory_t.max())
    given = json.loads(dataset.attrs["description"])["arguments"]
    features = 512 // given["slimmer"]
    samples = given["train"] or 50_000
    return Evidence(
        ran=rf"W's plan on {in_words(dataset)}, 32 x 32; He-uniform times $\alpha$, SGD with step "
        f"{given['step']:g}, batch {given['batch']}; {starts_in_words(dataset)}",
        premises={
            "more training images than the output layer can separate at random, two per feature": (
                samples > 2 * features,
                samples / features,
            ),
            "the output layer has at least as many epochs as any start took": (
                not spent < np.max(epochs),
                spent,
            ),
        },
        checks={
            f"least ratio of the epochs to a training loss of {LEFT:g} from $\\alpha = "
            f"{latex(SMALL[0])}$ to those from a larger start": slower,
            r"exponent in $\alpha$ of the relative change of the weights in the first epoch, "
            "smallest starts": law,
            rf"least training accuracy of a start between $\alpha = {latex(SMALL[0])}$ and "
            f"{FAST:g}": every,
            "training accuracy of the output layer alone, after more epochs": alone,
        },
        controls={
            f"exponent {DEPTH - 1}, that of the gradient": law.control(predicted=DEPTH - 1.0),
            "all starts change equally": law.control(predicted=0.0),
            "random features are enough": every.control(accuracy["output"]),
            "all layers in place of the output layer": alone.control(accuracy["fast"]),
        },
        findings=findings(rows, first, accuracy),
    )


def findings(dataset: Dataset, first: Dataset, accuracy: dict[str, float]) -> list[str]:
    """What the curves say beyond the checks."""
    small = dataset.sel(alpha=list(SMALL))
    left = rests(small)
    counts, waits = (
        ", ".join(
            rf"{n:.{digits}f} ($\alpha = {latex(a)}$)" for a, n in zip(alphas, values, strict=True)
        )
        for alphas, values, digits in (
            (dataset.alpha.values, memorized(dataset), 0),
            (SMALL, left, 1),
        )
    )
    ends = first.trajectory_loss.sel(alpha=DEAD).isel(seed=0).values
    return [
        f"epochs until all training images are classified correctly: {counts}",
        f"epochs until the training loss is {LEFT:g}: {waits}. Near zero the outputs are "
        rf"$\alpha^{{{DEPTH}}} g(w / \alpha)$ and the errors are those of uniform guessing, "
        rf"so $w / \alpha$ moves at the rate $\alpha^{{{DEPTH - 2}}}$: the first epoch has "
        f"the exponent {exponent(first, TINY):.2f} at the smallest starts, "
        f"{exponent(small, SMALL):.2f} at these, whose outputs already change. For these "
        "starts the time on the plateau scales as "
        rf"$\alpha^{{{slope(np.array(SMALL), left):.1f}}}$, where the rate alone gives "
        f"{2 - DEPTH}",
        f"few scales can be trained with one step as large at depth {DEPTH} (W's is $10^{{-4}}$, "
        rf"and all of its starts learned): from $\alpha = {latex(DEAD)}$ the first steps are "
        rf"{DEAD ** (DEPTH - 2):g} times longer in units of the weights than from $\alpha = "
        f"1$, and the net ends at a training accuracy of {accuracy['dead']:.1%} and a loss of "
        f"{ends[np.isfinite(ends)][-1]:.3f} (log 10 = {np.log(10):.3f}: all units are "
        "inactive)",
        f"output layer alone: a training accuracy of {accuracy['output']:.1%} (W:"
        " 50.38%, with 50000 images and 512 features)",
    ]


PANELS = {
    "loss": "training loss",
    "accuracy": "training accuracy",
    "error": "share of test images misclassified",
}


def draw(dataset: Dataset, first: Dataset, output: Dataset) -> Figure:
    """Training loss, training accuracy and test error over the epochs, one colour per start."""
    picture, panels = sheet_of(dataset, (4.6,) * 3, 4.9, before=dataset.instead.values.flat[0])
    for letter, axes, (name, label) in zip("abc", panels, PANELS.items(), strict=True):
        _curves(axes, [dataset, first.sel(alpha=[DEAD])], name)
        rows = output.isel(seed=0)
        axes.plot(
            rows.trajectory_t,
            rows[f"trajectory_{name}"],
            "--",
            color=BLACK,
            linewidth=1.5,
            label="output layer alone",
        )
        axes.set(xscale="symlog", xlabel="epochs", ylabel=label, title=f"({letter}) {label}")
        axes.set_xlim(0, None)
    _blind(panels[0], int(dataset.labels.max()))
    panels[1].set_ylim(0, 1.03)
    panels[2].set_ylim(0, 1.03)
    panels[1].legend(loc="upper left", handlelength=1.6)
    return picture


def _curves(axes: Axes, datasets: list[Dataset], name: str) -> None:
    from matplotlib import colormaps

    runs = [one.sel(alpha=alpha).isel(seed=0) for one in datasets for alpha in one.alpha.values]
    shades = colormaps["viridis"](np.linspace(0.0, 0.88, len(runs)))
    for shade, run in zip(shades, runs, strict=True):
        label = rf"$\alpha$ = {float(run.alpha):g}"
        axes.plot(run.trajectory_t, run[f"trajectory_{name}"], color=shade, label=label)


def _blind(axes: Axes, classes: int) -> None:
    """Marks the loss of a net that finds all classes equally likely."""
    level = np.log(classes)
    axes.set_ylim(0, 1.5 * level)
    axes.axhline(level, color=GREY, linewidth=1.0)
    axes.annotate(
        "uniform guess",
        (1, level),
        xytext=(0, 5),
        color=GREY,
        ha="right",
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        fontsize=9,
    )


experiment = Experiment(
    "W-F8",
    statement="With one learning rate for all starts, a VGG11-like net reaches 100% training "
    r"accuracy from $\alpha$ between 0.5 and 1, and leaves its plateau later from 0.5 than from "
    "larger ones; in as many epochs its output layer alone does not reach it.",
    place="appendix B.2, Figure 8",
    study=(study, first, output),
    check=check,
    draw=draw,
    title="With one learning rate for all, smaller starts learn later",
    ours="the alphas, and an end at 100% training accuracy",
    scope={
        "tiny": SMALLER,
        "quick": SMALLER,
        "printed": "1000 images of CIFAR-10, an eighth of the channels, steps of 0.03 for "
        "$10^{-4}$ and at most 200 epochs for 2000",
    },
    seconds=12,
)
