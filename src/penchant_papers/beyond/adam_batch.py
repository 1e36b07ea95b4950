"""Adam on one sample at a time: its second moments weigh the features, and the margin with them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from penchant import L2, Adam, Classification, Steps, max_margin, train
from penchant.lab import (
    Array,
    DataArray,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_least,
    below,
    sized,
)
from penchant.methods import SignDescent
from penchant.models import LinearPredictor
from penchant.plotting import CYCLE, GREY, sheet_of
from penchant.record import At
from penchant.regularizers import Linf
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.beyond.margins import end_shares

ALL, ONE = "Adam, all samples", "Adam, one sample"
# A momentum of 0.5 remembers two samples of eight; 0.9 remembers ten, as many as a pass has.
SIGNUM, SHORT = "Signum 0.995, one sample", "Signum 0.5, one sample"
MOMENTUM = {SIGNUM: 0.995, SHORT: 0.5}
# times 1/sqrt(steps), chosen for every method; the verdict says what other rates give
RATES = {ALL: 0.45, ONE: 1.0, SIGNUM: 0.6, SHORT: 0.6}
OWN = 1.0  # of these rates
NEARLY = 0.98  # of the best margin: the missing share falls like 1/sqrt(steps)
SIGNS, NORMAL = "signs", "normal"
EUCLIDEAN, LARGEST = L2(), Linf()
NORMS = {
    "l2": r"in $\ell_2$",
    "l_inf": r"in $\ell_\infty$",
    "fitted": r"in the weighted $\ell_2$ norm",
}


@functools.lru_cache(maxsize=64)
def data(kind: str, seed: int, samples: int, dimension: int) -> Classification:
    """Random labels of signs times a size for every sample, or of normal features of many sizes.

    In units in which the best l_inf margin is one, so that a step size means the same everywhere.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, dimension))
    if kind == SIGNS:
        X = np.sign(X) * np.exp(0.5 * rng.standard_normal((samples, 1)))
    else:
        X = X * np.exp(0.7 * rng.standard_normal(dimension))
    y = np.where(rng.random(samples) < 0.5, 1.0, -1.0)
    return Classification(X * max_margin(X, y, Linf()).value, y)


@functools.lru_cache(maxsize=64)
def own_norm(problem: Classification) -> tuple[L2, float]:
    """The norm that belongs to one-sample Adam, and how far its weights are from a fixed point."""
    weights, apart = own_weights(problem)
    return L2(weights), apart


def own_weights(problem: Classification, rounds: int = 300) -> tuple[Array, float]:
    """(weights, distance from a fixed point) of the l2 norm that belongs to one-sample Adam.

    At the end the gradients of the samples have fixed ratios nu_n, the dual weights of the margin,
    and v_k is a multiple of sum_n (nu_n x_nk)^2. Steps m_k/sqrt(v_k) are those of gradient descent
    in the norm with the weights sqrt(v_k), whose best margin has the dual weights nu_n.
    """
    weights, apart = np.ones(problem.dimension), math.inf
    for _ in range(rounds):
        nu = max_margin(problem, L2(weights)).dual
        new = np.sqrt(np.square(nu[:, None] * problem.X).sum(axis=0))
        new /= new.max()
        apart = float(np.abs(new / weights - 1).max())
        weights = np.sqrt(weights * new)
        if apart < 1e-10:
            break
    return weights, apart


def cell(
    optimizer: str,
    features: str,
    factor: float,
    seed: int,
    *,
    samples: int,
    dimension: int,
    steps: int,
) -> dict[str, Any]:
    """The shares of the end in three norms."""
    problem = data(features, seed, samples, dimension)
    rate = factor * RATES[optimizer] / math.sqrt(steps)
    method = (
        SignDescent(rate, momentum=MOMENTUM[optimizer])
        if optimizer in MOMENTUM
        else Adam(rate, square_decay=0.99, epsilon=0.0)
    )
    batch, stop, record = None if optimizer == ALL else 1, Steps(steps), At(steps=[steps])
    path = train(
        LinearPredictor(), problem, method, stop=stop, record=record, batch=batch, seed=seed
    )
    weighted, apart = own_norm(problem)
    shares = end_shares(problem, path.predictor, [EUCLIDEAN, LARGEST, weighted])
    return {**dict(zip(NORMS, shares, strict=True)), "apart": apart, "log_loss": path.log_loss}


study = sized(
    "beyond-adam-batch",
    title="With one sample per step, Adam maximises a different margin",
    function=cell,
    arguments={"samples": 8, "dimension": 12, "steps": 40_000},
    grid={"optimizer": list(RATES), "features": [SIGNS, NORMAL], "factor": [0.3, OWN]},
    seeds=7,
    labels={
        "l2": r"share of the best $\ell_2$ margin",
        "l_inf": r"share of the best $\ell_\infty$ margin",
    },
    tiny={"seeds": 5, "grid": {"factor": [OWN]}},
    printed={
        "seeds": 20,
        "grid": {"factor": [0.3, OWN, 3.0]},
        "arguments": {"steps": 160_000},
    },
)


def check(dataset: Dataset) -> Evidence:
    """The end of every method, and its end according to wrong theorems."""
    own = dataset.sel(factor=OWN)
    alone, signs = own.sel(optimizer=ONE), {"features": SIGNS}

    fitted = at_least(middle(alone.fitted).min(), NEARLY)
    plain = at_least(middle(alone.l2.sel(signs)), NEARLY)
    full = at_least(middle(own.l_inf.sel(optimizer=ALL)).min(), NEARLY)
    signum = at_least(middle(own.l_inf.sel(optimizer=SIGNUM)).min(), NEARLY)
    share = "median share of the best margin"
    return Evidence(
        ran=f"linear classifiers on {2 * dataset.sizes['seed']} random problems with 8 samples of "
        "12 features, signs or normal numbers of many sizes, and the exponential loss; Adam "
        r"without $\epsilon$ with $b_1 = 0.9$ and $b_2 = 0.99$, Signum with momentum 0.995 "
        r"and 0.5; learning rates chosen for every method, times $1/\sqrt{\mathrm{steps}}$: "
        + ", ".join(f"{name} {rate:g}" for name, rate in RATES.items()),
        premises={"the weights of the norm are a fixed point": below(dataset.apart.max(), 1e-6)},
        checks={
            f"{share}: Adam on one sample, in the norm of its weights": fitted,
            rf"{share}: Adam on one sample, signs, in $\ell_2$": plain,
            rf"{share}: Adam on all samples, in $\ell_\infty$": full,
            rf"{share}: Signum on one sample, in $\ell_\infty$": signum,
        },
        controls={
            r"one sample: $\ell_\infty$, as for all samples": fitted.control(
                middle(alone.l_inf).min()
            ),
            r"one sample: $\ell_2$ for all data": fitted.control(middle(alone.l2).min()),
            r"all samples: $\ell_2$": full.control(middle(own.l2.sel(optimizer=ALL)).min()),
            r"Signum on one sample: $\ell_\infty$ for every momentum": signum.control(
                middle(own.l_inf.sel(optimizer=SHORT)).min()
            ),
        },
        findings=[_at_rate(dataset.sel(factor=f)) for f in dataset.factor.values if f != OWN],
    )


def middle(shares: DataArray) -> DataArray:
    """The median over problems."""
    return shares.median("seed")


def _at_rate(dataset: Dataset) -> str:
    """The same shares at another multiple of the learning rates."""
    ends = [("fitted", ONE), ("l_inf", ALL), ("l_inf", SIGNUM)]
    told = [
        f"{name}: {float(middle(dataset[norm].sel(optimizer=name)).min()):.3f}"
        for norm, name in ends
    ]
    return f"at {float(dataset.factor):g} times these rates the shares are " + ", ".join(told)


def draw(dataset: Dataset) -> Figure:
    """The shares of all ends, a panel for each kind of features."""
    picture, axes = sheet_of(dataset, widths=(6.0, 6.0), height=4.2)
    names = list(RATES)
    for panel, features in zip(axes, (SIGNS, NORMAL), strict=True):
        for k, (norm, label) in enumerate(NORMS.items()):
            if features == SIGNS and norm == "fitted":  # all weights are one
                continue
            shown = dataset[norm].sel(features=features, factor=OWN)
            values = shown.transpose("optimizer", "seed").values
            rows = np.repeat(np.arange(len(names)) + 0.15 * (k - 1), values.shape[1])
            panel.plot(values.ravel(), rows, "o^D"[k], color=CYCLE[k], label=label)
        panel.axvline(1.0, color=GREY, linewidth=1)
        panel.set_yticks(range(len(names)), names)
        panel.set(ylim=(len(names) - 0.5, -0.5), ylabel="method")
        panel.set_xlabel("margin over the best margin in the norm")
        title = {SIGNS: "features are signs", NORMAL: "features have many sizes"}[features]
        panel.set_title(title, pad=24)
        panel.legend(loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=3)
    return picture


experiment = Experiment(
    "beyond-adam-batch",
    statement=r"Adam with all samples per step converges to the largest $\ell_\infty$ margin. "
    r"With one sample per step it converges to the largest margin in a weighted $\ell_2$ "
    "norm, whose weights solve a fixed-point equation of the data; they are all equal where "
    r"the features of a sample have equal magnitude, which gives the $\ell_2$ margin. Signum "
    r"converges to the $\ell_\infty$ margin even with one sample per step, if its momentum is "
    "close enough to 1.",
    place="Baek et al. 2025 (arXiv 2510.26303)",
    study=study,
    check=check,
    draw=draw,
    ours="the data, the order of samples, constant learning rates, $b_2 = 0.99$ in place of the "
    r"limit $b_2 \to 1$",
    scope=OWN_RUNS,
    seconds=5,
)
