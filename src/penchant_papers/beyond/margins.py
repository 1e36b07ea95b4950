"""Which margin a run maximises: that of the norm in which its steps are steepest."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from penchant import L1, L2, Adam, Classification, Steps, max_margin, train
from penchant.lab import (
    Array,
    Axes,
    Check,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    at_most,
    exponents,
    sized,
)
from penchant.methods import Descent, SignDescent, SteepestDescent
from penchant.models import LinearPredictor
from penchant.plotting import BLACK, CYCLE, GREY, sheet_of
from penchant.record import At, LogSpaced
from penchant.regularizers import Linf, as_norm
from penchant_papers.beyond import OWN_RUNS

OWN = 1.0  # times the learning rate of a method: what the checks judge
NEARLY = 0.98  # of the best margin: the missing share falls like 1/sqrt(steps)
FAR = 30.0  # smallest margin of a start at the best predictor of another norm


@dataclasses.dataclass(frozen=True)
class MethodKind:
    """A method as a function of its learning rate, its own norm, and another one to start from."""

    make: Callable[[float], Descent]
    own: str
    other: str
    rate: float = 1.0  # times 1/sqrt(steps), chosen for the method


NORMS = {"l1": L1(), "l2": L2(), "l_inf": Linf()}
STEEPEST = {
    "sign descent": MethodKind(SignDescent, "l_inf", "l1"),
    "normalized gradient descent": MethodKind(
        lambda rate: SteepestDescent(rate, L2()), "l2", "l_inf"
    ),
    "largest entry alone": MethodKind(lambda rate: SteepestDescent(rate, L1()), "l1", "l_inf", 3.0),
}
HEADING = STEEPEST | {
    "Adam": MethodKind(lambda rate: Adam(rate, square_decay=0.95, epsilon=0.0), "l_inf", "l1"),
}
WITH_EPSILON = {
    "Adam, epsilon 1e-4": MethodKind(
        lambda rate: Adam(rate, square_decay=0.95, epsilon=1e-4), "l_inf", "l1"
    ),
}
KINDS = HEADING | WITH_EPSILON
SHOWN = {
    **{"l1": r"$\ell_1$", "l2": r"$\ell_2$", "l_inf": r"$\ell_\infty$"},
    "Adam, epsilon 1e-4": r"Adam, $\epsilon = 10^{-4}$",
}


@functools.lru_cache(maxsize=32)
def data(seed: int, samples: int, dimension: int) -> Classification:
    """Random labels; the features have different sizes, so that norms disagree."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, dimension)) * np.exp(0.5 * rng.standard_normal(dimension))
    return Classification(X, np.where(rng.random(samples) < 0.5, 1.0, -1.0))


def end(
    problem: Classification, kind: MethodKind, norms: Mapping[str, Any], steps: int, factor: float
) -> dict[str, Any]:
    """The shares of the best margins after steps of a rate proportional to 1/sqrt(steps)."""
    method = kind.make(factor * kind.rate / math.sqrt(steps))
    path = train(LinearPredictor(), problem, method, stop=Steps(steps), record=At(steps=[steps]))
    shares = end_shares(problem, path.predictor, norms.values())
    return {"share": np.array(shares), "log_loss": path.log_loss}


def end_shares(problem: Classification, beta: Array, norms: Collection[Any]) -> list[float]:
    """The margin of one predictor as a share of the best one, in every norm.

    Long steps on single entries can come back to zero, which separates nothing: its share is 0.
    """
    if not np.any(beta):
        return [0.0 for _ in norms]
    margin = float((problem.signed_rows @ beta).min())
    sizes = [float(as_norm(norm).value(beta)) for norm in norms]
    return [best(problem, norm) * margin / size for norm, size in zip(norms, sizes, strict=True)]


@functools.lru_cache(maxsize=256)
def best(problem: Classification, norm: Any) -> float:
    """The least norm of a predictor of margin one; all runs on a problem share it."""
    return max_margin(problem, as_norm(norm)).value


def falls(
    problem: Classification, kind: MethodKind, norms: Mapping[str, Any], steps: int
) -> dict[str, Any]:
    """How far smoothed margins fall, as shares of their peaks, on the way from another norm's best.

    The run is as long as its start, in the norm of the method.
    """
    sizes = {name: as_norm(norm).value for name, norm in norms.items()}
    start = FAR * max_margin(problem, norms[kind.other]).beta
    method = kind.make(sizes[kind.own](start) / steps)
    path = train(LinearPredictor(start), problem, method, stop=Steps(steps), record=LogSpaced(10))
    smoothed = -path.dataset.log_loss.values - math.log(problem.samples)

    def fall(norm: str) -> float:
        margin = smoothed / np.array([sizes[norm](b) for b in path.dataset.predictor.values])
        return float((1 - margin / np.maximum.accumulate(margin)).max())

    return {"own": fall(kind.own), "other": fall(kind.other)}


def cell(
    optimizer: str, steps: int, factor: float, seed: int, *, samples: int, dimension: int
) -> dict[str, Any]:
    return end(data(seed, samples, dimension), KINDS[optimizer], NORMS, steps, factor)


def way(optimizer: str, seed: int, *, samples: int, dimension: int, steps: int) -> dict[str, Any]:
    return falls(data(seed, samples, dimension), KINDS[optimizer], NORMS, steps)


study = sized(
    "beyond-margins",
    title="Every method ends at the largest margin in its own norm",
    function=cell,
    arguments={"samples": 8, "dimension": 12},
    grid={"optimizer": list(KINDS), "steps": [2500, 40_000], "factor": [0.3, OWN]},
    seeds=4,
    dims={"share": ["norm"]},
    labels={"steps": "steps", "share": "margin over the best margin in the norm"},
    tiny={"grid": {"factor": [OWN]}},
    printed={
        "seeds": 20,
        "grid": {"steps": [2500, 10_000, 40_000, 160_000], "factor": [0.3, OWN, 3.0]},
    },
)
ways = sized(
    "beyond-margins-ways",
    title="The smoothed margin in a method's own norm never falls",
    function=way,
    arguments={"samples": 8, "dimension": 12, "steps": 10_000},
    grid={"optimizer": list(STEEPEST)},
    seeds=3,
    labels={"own": "largest fall in the method's own norm", "other": "in the norm of the start"},
    tiny={"seeds": 1},
    printed={"seeds": 20},
)


def shares(dataset: Dataset, kinds: Mapping[str, MethodKind], norms: Any, norm: str) -> Array:
    """Shares over (optimizer, steps, seed) in one norm, or of every method in its "own".

    At the learning rates that were chosen, unless the dataset is that of others.
    """
    if "factor" in dataset.dims:
        dataset = dataset.sel(factor=OWN)
    values = dataset.share.transpose("optimizer", "steps", "seed", "norm")
    rows = []
    for name, kind in kinds.items():
        place = list(norms).index(kind.own if norm == "own" else norm)
        rows.append(values.sel(optimizer=name).isel(norm=place).values)
    return np.array(rows)


def ends(dataset: Dataset, kinds: Mapping[str, MethodKind], norms: Any, norm: str) -> Array:
    """The medians over problems of the shares after the most steps, method by method."""
    return np.asarray(np.median(shares(dataset, kinds, norms, norm)[:, -1], axis=1))


def at_other_rates(dataset: Dataset, kinds: Mapping[str, MethodKind], norms: Any) -> list[str]:
    """The learning rates that were chosen, and the shares at multiples of them."""
    told = [f"{name} {kind.rate:g}" for name, kind in kinds.items()]
    lines = [
        r"learning rates, times $1/\sqrt{\mathrm{steps}}$, chosen for every method: "
        + ", ".join(told)
    ]
    for factor in dataset.factor.values:
        if factor != OWN:
            least = ends(dataset.sel(factor=factor), kinds, norms, "own")
            told = [f"{name} {share:.3f}" for name, share in zip(kinds, least, strict=True)]
            lines.append(f"at {factor:g} times these rates the shares are " + ", ".join(told))
    return lines


def orders(dataset: Dataset, kinds: Mapping[str, MethodKind], norms: Any) -> Array:
    """The power of the steps that 1 - own share follows, for every method: a mean over problems."""
    gaps = 1 - shares(dataset, kinds, norms, "own")
    steps = dataset.steps.values
    return np.array([exponents(steps, rows.T).mean() for rows in gaps])


def checks(
    dataset: Dataset, ways: Dataset, kinds: Mapping[str, MethodKind], norms: Any
) -> dict[str, Check]:
    """The own share at the end; of steepest descent its rate, and that the margin never falls."""
    steepest = {name: kinds[name] for name in ways.optimizer.values}
    rate = at_most(  # the bound has a logarithm of the steps in addition to the power
        orders(dataset, steepest, norms).max(), -0.5, tolerance=0.1
    )
    return {
        "least median share of the best margin in a method's own norm, after the most"
        " steps": at_least(ends(dataset, kinds, norms, "own").min(), NEARLY),
        "steepest descent: largest exponent of the missing share in the number of steps": rate,
        "steepest descent: largest fall of the smoothed margin in the method's own norm": at_most(
            ways.own.max(), 1e-6
        ),
    }


def check(dataset: Dataset, ways: Dataset) -> Evidence:
    """The three laws, and wrong ones as controls."""
    laws = checks(dataset, ways, HEADING, NORMS)
    own, rate, rises = laws.values()

    def least(norm: str, *names: str) -> Check:
        kinds = {name: KINDS[name] for name in names}
        return own.control(ends(dataset, kinds, NORMS, norm).min())

    dwindled = least("l_inf", *WITH_EPSILON)
    return Evidence(
        ran=f"linear classifiers on {dataset.sizes['seed']} random problems with 8 samples of 12 "
        "features and the exponential loss, from zero with learning rates proportional to "
        r"$1/\sqrt{\mathrm{steps}}$, and with small steps from the best predictor of another "
        "norm",
        checks=laws,
        controls={
            r"sign descent and Adam converge to $\ell_2$": least("l2", "sign descent", "Adam"),
            r"normalized gradient descent converges to $\ell_\infty$": least(
                "l_inf", "normalized gradient descent"
            ),
            r"steps on the largest entry converge to $\ell_2$": least("l2", "largest entry alone"),
            r"Adam with $\epsilon = 10^{-4}$ converges to $\ell_\infty$": dwindled,
            r"Adam with $\epsilon = 10^{-4}$ has the rate": rate.control(
                orders(dataset, WITH_EPSILON, NORMS)[0]
            ),
            "the margin in the norm of the start does not fall either": rises.control(
                ways.other.max()
            ),
        },
        findings=[
            *at_other_rates(dataset, KINDS, NORMS),
            r"once gradients are below $\epsilon = 10^{-4}$ the steps of Adam are gradient steps "
            rf"with momentum: its $\ell_\infty$ share falls to {dwindled.measured:.3f}",
            r"without $\epsilon$ the missing share of Adam scales with the power "
            f"{orders(dataset, {'Adam': KINDS['Adam']}, NORMS)[0]:.2f} of the steps here",
        ],
    )


def draw_ends(axes: Axes, dataset: Dataset, kinds: Mapping[str, MethodKind], norms: Any) -> None:
    """The shares of every method's ends, a ring around those in its own norm."""
    for colour, norm in zip(CYCLE, norms, strict=False):
        last = shares(dataset, kinds, norms, norm)[:, -1]
        for row, (kind, values) in enumerate(zip(kinds.values(), last, strict=True)):
            label = f"in {SHOWN.get(norm, norm)}" if row == 0 else None
            axes.plot(values, np.full(len(values), row), "o", color=colour, label=label)
            if kind.own == norm:
                axes.plot(values.mean(), row, "o", ms=17, mfc="none", mec=colour, mew=2)
    axes.axvline(1.0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(kinds)), [SHOWN.get(name, name) for name in kinds])
    axes.set(ylim=(len(kinds) - 0.5, -0.5), ylabel="method")
    axes.set_xlabel("margin over the best margin in the norm")
    axes.set_xlim(right=1.04)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(norms))


def draw_rates(axes: Axes, dataset: Dataset, kinds: Mapping[str, MethodKind], norms: Any) -> None:
    """The missing share in each method's own norm over the steps, with the slope -1/2."""
    steps, missing = dataset.steps.values, 1 - shares(dataset, kinds, norms, "own")
    for k, (name, rows) in enumerate(zip(kinds, missing.mean(axis=2), strict=True)):
        axes.plot(steps, rows, "o^Dsv*"[k], ls="-", color=CYCLE[k], label=SHOWN.get(name, name))
    level = 0.5 * np.sqrt(steps[0] / steps) * missing.min()
    axes.plot(steps, level, "--", color=BLACK, label=r"slope $-1/2$")
    axes.set(
        xscale="log", yscale="log", xlabel="steps", ylabel="1 $-$ share in the method's own norm"
    )
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_both(
    dataset: Dataset, kinds: Mapping[str, MethodKind], norms: Any, width: float
) -> Figure:
    """Where runs end, and how fast; `width` in inches is that of the first panel."""
    picture, (a, b) = sheet_of(dataset, widths=(width, 6.2), height=4.6)
    draw_ends(a, dataset, kinds, norms)
    draw_rates(b, dataset, kinds, norms)
    return picture


def draw(dataset: Dataset, ways: Dataset) -> Figure:
    return draw_both(dataset, KINDS, NORMS, 6.2)


experiment = Experiment(
    "beyond-margins",
    statement="On separable data, steps along the direction of steepest descent in a norm "
    "converge to the largest margin in that norm, with a gap of at most order "
    r"$\mathrm{steps}^{-1/2}$: sign descent to $\ell_\infty$, normalized gradient descent to "
    r"$\ell_2$, steps on the largest entry of the gradient to $\ell_1$; Adam without "
    r"$\epsilon$ converges to $\ell_\infty$. The smoothed margin in the method's own norm "
    "never falls.",
    place="Zhang et al. 2024 (arXiv 2406.10650) for Adam; Fan et al. 2025 (arXiv 2502.04664) for"
    " the rates; Tsilivis et al. 2024 (arXiv 2410.22069) for the margin that rises",
    study=(study, ways),
    check=check,
    draw=draw,
    ours="the data, the starts, learning rates that are constant during a run",
    scope=OWN_RUNS,
    seconds=4,
)
