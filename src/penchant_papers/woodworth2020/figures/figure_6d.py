"""Figure 6 (d): a VGG11-like net errs more from large starts, its kernel's once unbiased."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from penchant.lab import Dataset, Evidence, Experiment, Figure, at_least, at_most, within
from penchant.plotting import BLUE, GREEN, GREY, RED, latex, sheet_of
from penchant_papers.woodworth2020.figures.conv_nets import (
    DEPTH,
    DIGITS,
    PART,
    in_words,
    net_study,
    starts_in_words,
)
from penchant_papers.woodworth2020.figures.kernel_regime import INSIDE, OUTSIDE

SMALL, LARGE, LARGER = 1.0, 2.0, 4.0  # alpha: outputs of order 1, 256 and 65536
LAZY = 4.0  # alpha of the kernel machine: 65536, and float32 still resolves its moves
BETTER = 0.8  # W's numbers for MNIST are 1.4% and 2.4%: a ratio of 0.58
ALIKE = 0.05  # share of the test images that two kernel machines may judge differently
MORE = {"train": 200, "test": 200, "batch": 20}  # a kernel machine needs more than 100 digits
SMALLER = (
    "200 of the small digits of scikit-learn in place of CIFAR-10, a sixteenth of the channels, "
    "steps of 0.03 for $10^{-4}$"
)
GIVEN = {**DIGITS, **MORE, "even": True, "tangents": True, "epochs": 1000}
study = net_study(
    "W-F6d",
    r"A VGG11-like net has a larger test error from starts above $\alpha = 1$",
    {**GIVEN, "training": "all", "step": 0.03},  # W's step is for a net that is wider
    grid={"alpha": [SMALL, LARGE, LARGER]},
    draw={"x": "alpha", "colour": "error"},
    printed={
        "arguments": {**PART, "otherwise": "", "epochs": 100},
        "grid": {"alpha": [0.85, SMALL, 1.4, LARGE, LARGER]},
    },
)
kernel = net_study(
    "W-F6d-kernel",
    "The kernel machine of a VGG11-like net: the outputs of its start are subtracted",
    {**GIVEN, "training": "kernel", "alpha": LAZY, "step": 0.3},
    printed={"arguments": {**PART, "otherwise": "", "epochs": 100}},
)
output = net_study(
    "W-F6d-output",
    "A VGG11-like net with only the output layer trained, W's proxy for the kernel",
    # the features of a start are larger or smaller by chance; after 100 epochs some have no effect
    {**GIVEN, "training": "output", "alpha": SMALL, "step": 0.3, "epochs": 2000},
    printed={"arguments": {**PART, "otherwise": ""}},
)


def check(dataset: Dataset, kernel: Dataset, output: Dataset) -> Evidence:
    """The statement as printed, and corrected: the outputs of the start have to be subtracted."""
    small, large, larger = (dataset.sel(alpha=alpha) for alpha in (SMALL, LARGE, LARGER))
    runs = {"small": small, "large": large, "larger": larger, "kernel": kernel, "output": output}
    error = {name: float(rows.error.mean()) for name, rows in runs.items()}
    better = at_most(error["small"] / error["large"], BETTER)
    proxy = at_least(error["large"] / error["output"], BETTER)
    moved = at_least(small.turned.values.min(), OUTSIDE)
    machine = within(kernel.turned.values.max(), tolerance=INSIDE)
    same = within(kernel.apart.values.max(), tolerance=ALIKE)
    gain = at_most(error["small"] / error["kernel"], BETTER)
    both = {
        rf"mean test error at $\alpha = {latex(SMALL)}$ over that at {LARGE:g}": better,
        rf"mean test error at $\alpha = {latex(LARGE)}$ over that of the output layer alone": proxy,
        rf"least grad distance from $\alpha = {latex(SMALL)}$, outside of the kernel regime": moved,
    }
    least = min(float(rows.train_accuracy.min()) for rows in (dataset, kernel))
    return Evidence(
        ran=rf"W's plan on {in_words(dataset)}, 32 x 32; He-uniform times $\alpha$, SGD, "
        f"{dataset.sizes['seed']} draws of images, start and batches; the step falls as "
        rf"$\alpha^{{{2 - DEPTH}}}$ above $\alpha = 1$, with the outputs of the start "
        rf"subtracted as $\alpha^{{{2 - 2 * DEPTH}}}$; {starts_in_words(dataset)}",
        premises={"every net reaches 100% training accuracy": (least == 1.0, least)},
        checks={
            **both,
            rf"largest grad distance from $\alpha = {latex(LARGE)}$, inside of the "
            "kernel regime": within(large.turned.values.max(), tolerance=INSIDE),
        },
        corrected={
            **both,
            rf"largest grad distance from $\alpha = {latex(LAZY)}$ with its outputs "
            "subtracted": machine,
            "largest share of test images that this net and its linearization at the start classify"
            " differently": same,
            rf"mean test error at $\alpha = {latex(SMALL)}$ over that of this kernel machine": gain,
        },
        correction="a large start is in the kernel regime once its own outputs, of size "
        r"$\alpha^D$, are subtracted; as printed, training first removes these outputs, which "
        r"changes the tangent features as much as from a small start, however large $\alpha$ "
        "is. The small start has a smaller test error than either",
        counterexample={
            r"grad distance as printed, by $\alpha$": {
                f"{alpha:g}": float(dataset.turned.sel(alpha=alpha).mean())
                for alpha in dataset.alpha.values
            },
            "with the outputs subtracted": float(kernel.turned.mean()),
        },
        controls={
            "two large starts compared": better.control(error["larger"] / error["large"]),
            "the small start against the output layer": proxy.control(
                error["small"] / error["output"]
            ),
            "the features of a kernel machine change": moved.control(machine.measured),
            "the features of the small start do not change": machine.control(moved.measured),
            rf"features of $\alpha = {latex(LARGER)}$ as printed do not change": machine.control(
                larger.turned.values.min()
            ),
            "the net from the small start is linear in its parameters": same.control(
                small.apart.values.min()
            ),
            "the net from the large start as printed is linear in its parameters": same.control(
                large.apart.values.min()
            ),
            "the large start, whose features change too, against the kernel machine": gain.control(
                error["large"] / error["kernel"]
            ),
        },
        findings=findings(dataset, kernel, error, float(output.train_accuracy.mean())),
    )


def findings(
    dataset: Dataset, kernel: Dataset, error: dict[str, float], separated: float
) -> list[str]:
    """What the runs say beyond the checks."""

    def by_alpha(name: str, form: str) -> str:
        means = dataset[name].mean("seed")
        pairs = zip(dataset.alpha.values, means.values, strict=True)
        return ", ".join(f"{value:{form}} ({alpha:g})" for alpha, value in pairs)

    share = (error["kernel"] - error["small"]) / (error["large"] - error["small"])
    return [
        rf"mean test error by $\alpha$: {by_alpha('error', '.1%')}; kernel machine "
        f"{error['kernel']:.1%}; output layer alone {error['output']:.1%} with a training "
        f"accuracy of {separated:.1%} (W: 50.38%)",
        "of the larger test error of a large start, the kernel machine accounts for "
        f"{share:.0%}; the rest comes from the outputs of the start, which training removes on "
        "the training images and not on the others",
        rf"mean grad distance by $\alpha$: {by_alpha('turned', '.2g')}; with outputs subtracted "
        rf"at $\alpha = {latex(LAZY)}$: {float(kernel.turned.mean()):.2g}",
        rf"at large $\alpha$ cross-entropy acts as a perceptron on $f = \alpha^{{{DEPTH}}} g(w / "
        rf"\alpha)$: with a step that falls as $\alpha^{{{2 - DEPTH}}}$ runs hardly depend on "
        rf"$\alpha$, and with W's one step for all it is $\alpha^{{{DEPTH - 2}}}$ times too "
        "large (Figure 8)",
    ]


def draw(dataset: Dataset, kernel: Dataset, output: Dataset) -> Figure:
    """The final test error and the turn of the tangent features over alpha."""
    picture, (a, b) = sheet_of(dataset, (6.0, 6.0), 4.9, before=dataset.instead.values.flat[0])
    for axes, name in ((a, "error"), (b, "turned")):
        _starts(axes, dataset, name)
        axes.axvline(1.0, color=GREY, linewidth=1.0, label=r"He initialization, $\alpha = 1$")
        axes.set(xscale="log", xlabel=r"scale of the start $\alpha$")
        axes.set_xticks(dataset.alpha.values, [f"{alpha:g}" for alpha in dataset.alpha.values])
        axes.minorticks_off()
    separated = float(output.train_accuracy.mean())
    a.axhline(
        float(output.error.mean()),
        color=RED,
        linestyle="--",
        linewidth=1.6,
        label=f"output layer alone ({separated:.0%} of the training images correct)",
    )
    for axes, name in ((a, "error"), (b, "turned")):
        axes.axhline(
            float(kernel[name].mean()),
            color=GREEN,
            linestyle="-.",
            linewidth=1.6,
            label="kernel machine: start's outputs subtracted",
        )
    about_runs = textwrap.fill(f"(a) test error: {in_words(dataset)}", 75)
    a.set(ylabel="share of test images misclassified", ylim=(0, None), title=about_runs)
    b.set(
        ylabel="grad distance (1 - cosine)",
        yscale="log",
        title="(b) change of the tangent features: small only\nonce the start's own outputs are "
        "subtracted",
    )
    a.legend(loc="lower right")
    b.legend(loc="center right")
    return picture


def _starts(axes: Any, dataset: Dataset, name: str) -> None:
    """The mean over alpha; starts that have not learned every training image are hollow."""
    whole = (dataset.train_accuracy == 1).all("seed").values
    means = dataset[name].mean("seed").values
    axes.plot(dataset.alpha, means, color=BLUE, label="all layers trained")
    for seed in dataset.seed.values:
        axes.plot(dataset.alpha, dataset[name].sel(seed=seed), ".", color=BLUE, alpha=0.5)
    for chosen, face in ((whole, BLUE), (~whole, "white")):
        label = None if face == BLUE else "not at 100% training accuracy"
        if chosen.any():
            places = dataset.alpha.values[chosen]
            dots = {"color": BLUE, "markerfacecolor": face, "label": label}
            axes.plot(places, np.asarray(means)[chosen], "o", **dots)


experiment = Experiment(
    "W-F6d",
    statement="A VGG11-like net trained by SGD to 100% training accuracy has a smaller test error "
    r"from a start of $\alpha = 1$ than from a large one; from a large start it stays in the "
    "kernel regime and is no better than its output layer trained alone.",
    place="appendix B.2, Figure 6 (d)",
    study=(study, kernel, output),
    check=check,
    draw=draw,
    title=r"From starts above $\alpha = 1$, a VGG11-like net has a larger test error than its "
    "kernel machine",
    ours="the alphas, the kernel machine (outputs of the start subtracted, step over "
    r"$\alpha^{14}$), steps that fall as $\alpha^{-6}$ above $\alpha = 1$, and an end at 100% "
    "training accuracy; dots are single seeds",
    scope={
        "tiny": SMALLER,
        "quick": SMALLER,
        "printed": "900 images of three classes of CIFAR-10, an eighth of the channels, steps of "
        "0.03 for $10^{-4}$ and at most 100 epochs for 2000",
    },
    seconds=17,
)
