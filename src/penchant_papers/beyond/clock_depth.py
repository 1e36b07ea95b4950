"""Steps on deeper nets, other maps and labels: their effective start, to second order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from penchant import (
    Classification,
    DiagonalNet,
    GradientDescent,
    Regression,
    Steps,
    interpolate,
    train,
)
from penchant.forecasts import start_regularizer, tilted_q
from penchant.lab import Array, Dataset, Evidence, Experiment, Figure, exponents, sized, within
from penchant.models import Reparametrized
from penchant.plotting import BLACK, CYCLE, latex, sheet_of
from penchant.problems import sparse_regression
from penchant.record import At
from penchant.regularizers import Regularizer
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.instances import furthest

ALPHA = 0.3
STRAIN = 1.0  # the learning rate times the sharpness, at most: half of the limit of stability


class MapKind(NamedTuple):
    """A map F with its first two derivatives, a loss, the longest step, and how long to train."""

    value: Callable[[Array], Array]
    first: Callable[[Array], Array]
    second: Callable[[Array], Array]
    loss: str
    longest: float
    time: float
    depth: int | None


def power(depth: int, loss: str, longest: float, time: float) -> MapKind:
    return MapKind(
        lambda w: w**depth,
        lambda w: depth * w ** (depth - 1),
        lambda w: depth * (depth - 1) * w ** (depth - 2),
        loss,
        longest,
        time,
        depth,
    )


def quartic(w: Any) -> Any:
    return w**2 + w**4


KINDS = {
    "depth 3": power(3, "squares", 0.008, 40.0),
    "depth 4": power(4, "squares", 0.008, 40.0),
    "w² + w⁴": MapKind(
        quartic, lambda w: 2 * w + 4 * w**3, lambda w: 2 + 12 * w**2, "squares", 0.004, 30, None
    ),
    "depth 2, logistic": power(2, "logistic", 0.4, 40.0),
    "depth 2, exp": power(2, "exp", 0.2, 20.0),
}
TARGETS = {
    "to_second": "start set back along the flow",
    "to_scale": "set back, without the tilt",
    "to_start": "unchanged start",
}


@functools.lru_cache(maxsize=8)
def net(depth: int | None) -> DiagonalNet | Reparametrized:
    """One object for all runs, so that their steps are compiled once."""
    return (
        Reparametrized(quartic, start=ALPHA) if depth is None else DiagonalNet(depth, alpha=ALPHA)
    )


@functools.lru_cache(maxsize=8)
def problem(loss: str, samples: int, dimension: int, seed: int) -> Regression | Classification:
    data = sparse_regression(samples, dimension, sparsity=2, noise=0.1, seed=seed)
    if loss == "squares":
        return data
    return Classification(data.X, np.where(data.y > 0, 1.0, -1.0), loss=loss)


def gradient(problem: Regression | Classification, beta: Array) -> Array:
    """The gradient of the loss in beta."""
    outputs = problem.X @ beta
    if isinstance(problem, Regression):
        return 2 * (outputs - problem.y) @ problem.X
    push = np.exp(-problem.y * outputs)
    if problem.loss == "logistic":
        push = push / (1 + push)
    return -(problem.y * push) @ problem.X / len(problem.y)


class FlowIntegrals(NamedTuple):
    """The integral of g^2 F''(w)/2 over a flow, for w+ and w-, and the largest step to judge.

    Orders in the step size say nothing of steps that overshoot: beyond 2 over the sharpness, which
    for squares is largest at the end of the flow, gradient descent does not end there at all.
    """

    back: Array
    longest: float


@functools.lru_cache(maxsize=32)
def clock(name: str, samples: int, dimension: int, seed: int) -> FlowIntegrals:
    """The flow of one problem.

    Following the step w - gamma g F'(w) back along the flow leads to w - gamma^2 g^2 F'' F'/2,
    which is earlier by gamma^2 g^2 F''/2 on the gradient line.
    """
    kind, data = KINDS[name], problem(KINDS[name].loss, samples, dimension, seed)
    sign = np.array([[1.0], [-1.0]])

    def flow(_: float, state: Array) -> Array:
        w = state.reshape(4, -1)[:2]
        plus, minus = kind.value(w)
        g = gradient(data, plus - minus)
        return np.concatenate([-sign * g * kind.first(w), g**2 * kind.second(w) / 2]).ravel()

    begin = np.repeat([ALPHA, 0.0], 2 * dimension)
    solution = solve_ivp(flow, (0, kind.time), begin, "DOP853", rtol=1e-7, atol=1e-10)
    last = solution.y[:, -1].reshape(4, -1)
    longest = kind.longest
    if isinstance(data, Regression):
        scaled = data.X * np.sqrt(np.square(kind.first(last[:2])).sum(0))
        longest = min(longest, STRAIN / (2 * float(np.linalg.norm(scaled, 2)) ** 2))
    return FlowIntegrals(last[2:], longest)


def set_back(kind: MapKind, back: Array) -> Array:
    """w at the times -back for w' = F'(w) from alpha: in closed form or by integration."""
    if kind.depth == 2:
        return ALPHA * np.exp(-2 * back)
    if kind.depth is not None:
        rise = kind.depth * (kind.depth - 2)
        return (ALPHA ** (2.0 - kind.depth) + rise * back) ** (1 / (2 - kind.depth))
    flat = back.ravel()
    begin = np.full(len(flat), ALPHA)
    solution = solve_ivp(lambda _, w: -flat * kind.first(w), (0, 1), begin, rtol=1e-10, atol=1e-13)
    return np.asarray(solution.y[:, -1].reshape(back.shape))


def regularizer_from(model: DiagonalNet | Reparametrized, plus: Array, minus: Array) -> Regularizer:
    """The regularizer of a flow from these weights."""
    if isinstance(model, DiagonalNet):
        return tilted_q(model.depth, plus, minus)
    return start_regularizer(model, np.concatenate([plus, minus]))


def cell(kind: str, share: float, seed: int, *, samples: int, dimension: int) -> dict[str, Any]:
    """Distances of one end to the least regularizers of three starts, over its own size."""
    data, what = problem(KINDS[kind].loss, samples, dimension, seed), KINDS[kind]
    flow, model = clock(kind, samples, dimension, seed), net(what.depth)
    rate = share * flow.longest
    steps = round(what.time / rate)
    record = At(steps=[steps])
    path = train(model, data, GradientDescent(rate), stop=Steps(steps), record=record)
    end, own = path.predictor, Regression(data.X, data.X @ path.predictor)
    predicted = set_back(what, rate * flow.back)
    middle = set_back(what, rate * flow.back.mean(0))

    def far(regularizer: Regularizer) -> float:
        apart = interpolate(own, regularizer).beta - end
        return float(np.linalg.norm(apart) / np.linalg.norm(end))

    alone = np.full(dimension, ALPHA)
    return {
        "to_second": far(regularizer_from(model, *predicted)),
        "to_scale": far(regularizer_from(model, middle, middle)),
        "to_start": far(regularizer_from(model, alone, alone)),
    }


study = sized(
    "beyond-clock-depth",
    title="At any depth, for any map and loss, gradient steps act like a flow from a shifted start",
    function=cell,
    arguments={"samples": 5, "dimension": 10},
    grid={"kind": list(KINDS), "share": [0.5, 1.0]},
    seeds=4,
    labels={
        "kind": "map and loss",
        "share": "learning rate, as a share of the longest",
        **{
            name: f"distance of the endpoint to the minimiser for: {text}"
            for name, text in TARGETS.items()
        },
    },
    draw={"x": "share", "colour": "to_second", "log": True},
    tiny={"grid": {"kind": ["depth 3", "depth 2, exp"]}, "seeds": 3},
    printed={
        "seeds": 20,
        "arguments": {"samples": 8, "dimension": 20},
        "grid": {"share": [0.125, 0.25, 0.5, 1.0]},
    },
)


def orders(dataset: Dataset, name: str) -> Array:
    """The power of the learning rate that a distance follows, kind by kind: means over problems."""
    rows = dataset[name].transpose("kind", "seed", "share").values
    return np.array([exponents(dataset.share.values, table).mean() for table in rows])


def check(dataset: Dataset) -> Evidence:
    """The order of the end that the flow predicts from the start that it sets back."""
    second, first, upright = (orders(dataset, f"to_{end}") for end in ("second", "start", "scale"))
    bent = [kind for kind in dataset.kind.values if KINDS[kind].depth != 2]
    tilted_kinds = np.isin(dataset.kind.values, bent)
    # two orders are one apart; the next one changes a power by the strain of a step, a few tenths
    predicted = within(furthest(second, 2), 2.0, 0.3)
    plain = within(furthest(first, 1), 1.0, 0.3)
    last = dataset.isel(share=-1).mean("seed")
    return Evidence(
        ran=rf"{dataset.to_start.size} runs of gradient descent from $\alpha = {latex(ALPHA)}$ on "
        f"{'; '.join(dataset.kind.values)}, with {dataset.sizes['seed']} sparse regressions "
        "or their signs as labels, each compared with the integrated flow; learning rates up "
        "to "
        + ", ".join(f"{KINDS[kind].longest:g}" for kind in dataset.kind.values)
        + f", and for squares up to {STRAIN:g} over the sharpness at the end of the flow",
        checks={
            "start set back along the flow: power of the learning rate in the distance of the"
            " endpoint, mean over problems": predicted,
            "unchanged start: the same power": plain,
        },
        controls={
            "start set back without the tilt, where F'' is not constant": predicted.control(
                furthest(upright[tilted_kinds], 2)
            ),
            "start not set back": predicted.control(furthest(first, 2)),
            "an endpoint predicted to second order from the unchanged start": plain.control(
                furthest(second, 1)
            ),
        },
        findings=[
            f"{name}: at its largest steps the prediction misses the endpoint by"
            f" {float(last.to_start.sel(kind=name)):.2g} from the unchanged start, by"
            f" {float(last.to_second.sel(kind=name)):.2g} from the start set back along the flow"
            for name in dataset.kind.values
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """The distances over the learning rate, a panel for each kind of run."""
    means = dataset.mean("seed")
    low, high = float(means.to_second.min()), float(means.to_start.max())
    picture, axes = sheet_of(dataset, widths=(3.6,) * len(dataset.kind), height=4.8)
    for panel in axes[1:]:
        panel.sharey(axes[0])
    for panel, kind in zip(axes, dataset.kind.values, strict=True):
        rates, here = dataset.share.values * KINDS[kind].longest, means.sel(kind=kind)
        for k, (name, label) in reversed(list(enumerate(TARGETS.items()))):
            panel.plot(rates, here[name].values, "sv^"[k] + "-", color=CYCLE[k], label=label)
        for of, style in (("to_start", ":"), ("to_second", "--")):
            order = 1 if style == ":" else 2
            line = 1.5 * here[of].values[0] * (rates / rates[0]) ** order
            panel.plot(rates, line, style, color=BLACK, linewidth=1.2, label=f"slope {order}")
        panel.set(xscale="log", yscale="log", ylim=(low / 2, 300 * high), xlabel="learning rate")
        panel.set_title(kind)
        panel.set_xticks(rates, [f"{rate:g}" for rate in rates])
        panel.minorticks_off()
    axes[0].set_ylabel("relative distance of the endpoint to the least regularizer")
    axes[0].legend(loc="upper left")
    return picture


experiment = Experiment(
    "beyond-clock-depth",
    statement=r"For a separable model and any loss, gradient descent with learning rate $\gamma$ "
    "ends where the regularizer of a shifted start is least among all predictors with the "
    r"same outputs, up to an error of second order in $\gamma$: that start is the start of "
    r"the flow with $w_+$ and $w_-$ set back along their flow lines by $\gamma/2$ times the "
    "integral of $g^2 F''(w)$ along the flow. From the unchanged start the error is of first "
    "order.",
    place="Even et al. 2023 (arXiv 2302.08982) for depth 2 and squares; other depths, maps and"
    " losses: ours",
    study=study,
    check=check,
    draw=draw,
    ours="the whole statement, the data, maps and learning rates",
    scope=OWN_RUNS,
    seconds=4,
)
