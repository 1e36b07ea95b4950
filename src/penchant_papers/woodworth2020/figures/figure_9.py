"""Figure 9, a diagram: the standard diagonal linear network, and the unbiased one with 2d units."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penchant import DiagonalNet, ParameterFlow, Regression, train
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    door_as,
    one_of,
    share_at_least,
    sized,
    within,
)
from penchant.models import ProductNet, Reparametrized
from penchant.plotting import NETWORK_DIMS, NETWORK_LABELS, Network, draw_network, sheet_of
from penchant_papers.endpoints import endpoint
from penchant_papers.instances import by_instance, distance, random_instance

NETWORKS = ("standard", "unbiased")
SHOWN = {"1": 4.4, "2": 2.2, "d": -1.0}  # name and height of the inputs that are shown


def standard() -> Network:
    """One hidden unit for each input."""
    net = Network()
    output = net.unit("output", 6.0, 1.7, "$f$")
    for i, height in SHOWN.items():
        entry = net.unit("input", 0.0, height, f"$x_{i}$")
        hidden = net.unit("positive", 3.0, height)
        net.connect(entry, hidden, f"$u_{i}$")
        net.connect(hidden, output, f"$v_{i}$", at=0.4)
    return net


def unbiased() -> Network:
    """Two hidden units for each input, one of them with a minus; each has one weight, twice."""
    net = Network()
    output = net.unit("output", 6.0, 1.7, "$f$")
    for i, height in SHOWN.items():
        entry = net.unit("input", 0.0, height, f"$x_{i}$")
        for sign, minus, kind, offset in (("+", "", "positive", 0.5), ("-", "-", "negative", -0.5)):
            hidden = net.unit(kind, 3.0, height + offset)
            net.connect(entry, hidden, f"$w_{{{sign},{i}}}$", at=0.6)
            net.connect(hidden, output, f"${minus}w_{{{sign},{i}}}$", at=0.24)
    return net


def values(network: str, one: Array, other: Array) -> dict[str, float]:
    """The weights by what is written on the connections, from (u, v) or (w+, w-)."""
    weights: dict[str, float] = {}
    for a, i in enumerate(SHOWN):
        if network == "standard":
            weights |= {f"$u_{i}$": one[a], f"$v_{i}$": other[a]}
        else:
            weights |= {f"$w_{{+,{i}}}$": one[a], f"$w_{{-,{i}}}$": other[a]}
            weights[f"$-w_{{-,{i}}}$"] = -other[a]
    return weights


@door_as("figure 9")
def cell(network: str, draws: int, seed: int) -> dict[str, Any]:
    """The tables of a network; what it computes and what the model does, at d = 3.

    Random weights and inputs. `other` is the same network without the minus, or with one weight
    for both layers.
    """
    one_of("network", network, NETWORKS)
    rng = np.random.default_rng(seed)
    drawn = standard() if network == "standard" else unbiased()
    outputs: dict[str, list[float]] = {"picture": [], "model": [], "other": []}
    for _ in range(draws):
        x, one, two = rng.uniform(0.5, 2.0, size=(3, len(SHOWN)))
        plain = network == "standard"
        model = ProductNet(one, two) if plain else DiagonalNet(2, start=(one, two))
        start = model.start(len(SHOWN))
        inputs = {f"$x_{i}$": x[a] for a, i in enumerate(SHOWN)}
        outputs["picture"].append(drawn.output(inputs, values(network, one, two)))
        outputs["model"].append(float(model.predict(start, x[None])[0]))
        outputs["other"].append(float(x @ (one**2 if plain else one**2 + two**2)))
    distinct = {c["weight"].replace("$-", "$") for c in drawn.connections}
    for x_dots in (0.0, 3.0):
        drawn.unit("dots", x_dots, 0.6)
    counts = {"weights": len(distinct), "parameters": len(start)}
    at_zero = DiagonalNet(2, alpha=0.3)
    outset = float(np.abs(at_zero.predictor(at_zero.start(len(SHOWN)))).max())
    return {**drawn.arrays(), **outputs, **counts, "output_at_start": outset}


study = sized(
    "W-F9",
    title="With twice the units the network can start at zero and reach both signs",
    function=cell,
    arguments={"draws": 20, "seed": 9},
    grid={"network": list(NETWORKS)},
    dims={**NETWORK_DIMS, "picture": ["draw"], "model": ["draw"], "other": ["draw"]},
    labels=NETWORK_LABELS,
)


@functools.cache
def single() -> Reparametrized:
    """One weight w^2 per input, from zero."""
    return Reparametrized(lambda w: w**2, start=0.0, signed=False)


def starts(instance: int, seed: int) -> dict[str, float]:
    """Both ways to start with output zero: w+ = w-, and w = 0 with one weight per input.

    `pair` and `single` are the loss at the end of training over that of the start. The curvatures
    are the least and the largest of the loss at w = 0, over the largest in size. `signed` is the
    relative misfit of the pair to as many targets as inputs, `unsigned` the least that w^2 leaves.
    """
    from scipy.optimize import nnls

    p = random_instance(instance, seed)
    problem, flow = Regression(p.X, p.y), ParameterFlow()
    net = DiagonalNet(2, alpha=p.alpha)
    ends = [train(net, problem, flow), train(single(), problem, flow, throw=False)]
    left = [float(np.sum((p.X @ end.predictor - p.y) ** 2)) for end in ends]
    curvatures = -4 * p.X.T @ p.y  # the Hessian at w = 0 is diagonal
    rng = np.random.default_rng((seed, instance))
    X, truth = rng.normal(size=(5, 5)), rng.normal(size=5)
    y = X @ truth
    return {
        "pair": left[0] / float(p.y @ p.y),
        "single": left[1] / float(p.y @ p.y),
        "lowest": float(curvatures.min() / np.abs(curvatures).max()),
        "highest": float(curvatures.max() / np.abs(curvatures).max()),
        "signed": float(np.linalg.norm(X @ endpoint(X, y, alpha=0.3).beta - y) / np.linalg.norm(y)),
        "unsigned": float(nnls(X, y)[1] / np.linalg.norm(y)),
    }


EVEN = 1e-3  # a curvature below this, over the largest, is none
escape = by_instance("W-F9-starts", starts, 20, tiny=12, printed=100, arguments={"seed": 10})


def check(dataset: Dataset, escape: Dataset) -> Evidence:
    """Each drawn network is the model that is trained; the start of the unbiased one is left."""
    names = {"standard": r"$\sum u v x$", "unbiased": r"$\sum (w_+^2 - w_-^2) x$"}
    wrong = {"standard": "one weight for both layers", "unbiased": "no minus sign for $w_-$"}
    rows = {name: dataset.sel(network=name) for name in NETWORKS}
    same = {
        name: within(distance(row.picture.values, row.model.values), tolerance=1e-12)
        for name, row in rows.items()
    }
    fits, signed = (within(escape[k].max(), tolerance=1e-8) for k in ("pair", "signed"))
    saddles = int(((escape.lowest < -EVEN) & (escape.highest > EVEN)).sum())
    return Evidence(
        ran="the units and connections that are drawn, as networks with $d = 3$, compared with "
        f"ProductNet and DiagonalNet of depth 2, at {dataset.sizes['draw']} random weights "
        f"and inputs; {escape.sizes['instance']} problems trained from output zero",
        checks={
            **{
                f"{name}: largest difference of the drawn network from {names[name]}, relative": one
                for name, one in same.items()
            },
            **{
                f"{name}: weights drawn, over the parameters of the model": within(
                    row.weights / row.parameters, 1.0
                )
                for name, row in rows.items()
            },
            r"unbiased, $w_+ = w_-$: largest $|\beta|$ at the start": within(
                rows["unbiased"].output_at_start
            ),
            r"unbiased, $w_+ = w_-$: loss at the end of training over that of the start, at "
            "worst": fits,
            "one weight $w^2$ per input from zero: the same, at least": within(
                escape.single.min(), 1.0, 1e-9
            ),
            # all inputs of a draw can have one sign of correlation with the targets
            "share of problems where zero is a saddle for it, with curvatures of both signs (0.999 "
            "lower limit)": share_at_least(saddles, escape.sizes["instance"], 0.5),
            "unbiased, as many targets as inputs, signed truth: relative misfit": signed,
        },
        controls={
            f"{name}: {wrong[name]}": same[name].control(
                distance(row.other.values, row.model.values)
            )
            for name, row in rows.items()
        }
        | {
            "one weight per input escapes from zero too": fits.control(escape.single.min()),
            "one weight per input has all signed functions (median)": signed.control(
                escape.unsigned.median()
            ),
        },
    )


def draw(dataset: Dataset, escape: Dataset) -> Figure:
    """Both networks side by side."""
    picture, panels = sheet_of(dataset, widths=(4.8, 4.8), height=4.6)
    panels[0].set_title(r"(a) standard: $f = \sum_i u_i v_i x_i$, $d$ units")
    panels[1].set_title(r"(b) unbiased: $f = \sum_i (w_{+,i}^2 - w_{-,i}^2)\, x_i$, $2d$ units")
    for name, axes in zip(NETWORKS, panels, strict=True):
        draw_network(axes, dataset.sel(network=name), legend=name == "unbiased")
    return picture


experiment = Experiment(
    "W-F9",
    statement=r"A diagonal network with one hidden unit per input computes $\sum u_i v_i x_i$; "
    "one with two units per input, which share their weights and differ in sign, computes "
    r"$\sum (w_+^2 - w_-^2) x$, which are all signed functions, and can start at output zero "
    "without being at a saddle.",
    place="section 4 and appendix C, Figure 9",
    study=(study, escape),
    check=check,
    draw=draw,
)
