"""Figure 2, a diagram: the depth-D diagonal network with 2d units in every hidden layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import DiagonalNet
from penchant.lab import Array, Dataset, Evidence, Experiment, Figure, sized, within
from penchant.plotting import NETWORK_DIMS, NETWORK_LABELS, Network, draw_network, sheet_of

FIRST, SECOND, LAST = 4.2, 6.2, 9.2  # where the hidden layers stand: 1, 2 and D - 1
SHOWN = {"1": 4.6, "d": 2.6}  # name and height above the middle of the inputs that are shown
DOTS = r"$\cdots$"  # the layers between the second and the last


def network() -> Network:
    """The units and connections, with the first, second and last hidden layer."""
    network = Network()
    output = network.unit("output", 12.4, 0.0, "$f$")
    for i, height in SHOWN.items():
        entry = network.unit("input", 0.0, height - 3.6, f"$x_{i}$")
        for sign, minus, kind in (("+", "", "positive"), ("-", "-", "negative")):
            y = height if sign == "+" else height - 7.2
            copy = network.unit("fixed", 2.0, y, f"${minus}x_{i}$")
            network.connect(entry, copy, f"${minus}1$", at=0.45)
            chain = [network.unit(kind, x, y) for x in (FIRST, SECOND, LAST)]
            weight = f"$u_{{{sign},{i}}}$"
            network.connect(copy, chain[0], weight)
            network.connect(chain[0], chain[1], weight)
            network.connect(chain[1], chain[2], DOTS)
            network.connect(chain[2], output, weight, at=0.35)
    network.unit("dots", 0.0, 0.0)
    for x in (2.0, FIRST, SECOND, LAST):
        network.unit("dots", x, 3.6)
        network.unit("dots", x, -3.6)
    return network


def output(x: Array, u: Array, between: int) -> float:
    """What the drawn net gives for two inputs; u is u_+, then u_-; dots are `between` layers."""
    net, names = network(), [f"$u_{{{sign},{i}}}$" for sign in "+-" for i in "1d"]
    weights = {"$1$": 1.0, "$-1$": -1.0, **dict(zip(names, u, strict=True))}
    for line in net.connections:
        if line["weight"] == DOTS:  # layers with the weight that leads into them
            into = next(c["weight"] for c in net.connections if c["target"] == line["source"])
            line["weight"] = f"{into} {between} times"
            weights[line["weight"]] = weights[into] ** between
    return net.output({"$x_1$": x[0], "$x_d$": x[1]}, weights)


def cell() -> dict[str, Any]:
    """The units and connections of the network, a column each."""
    return network().arrays()


def evaluated_cell(depth: int, *, samples: int, seed: int) -> dict[str, float]:
    """How far the drawn net is from DiagonalNet at random weights and inputs, and wrong ones."""
    rng, model = np.random.default_rng((seed, depth)), DiagonalNet(depth, alpha=1.0)
    error = dict.fromkeys(("error", "error_without_dots", "error_one_sign"), 0.0)
    for _ in range(samples):
        u, x = rng.uniform(0.5, 1.5, 4), rng.normal(size=2)
        goal = float(model.predict(u, x[None])[0])
        plus_only = float(x @ u[:2] ** depth)
        for name, value in (
            ("error", output(x, u, depth - 3)),
            ("error_without_dots", output(x, u, 0 if depth != 3 else 1)),
            ("error_one_sign", plus_only),
        ):
            error[name] = max(error[name], abs(value - goal) / max(1.0, abs(goal)))
    return error


study = sized(
    "M-F2",
    title="A depth-$D$ diagonal network: one chain of $D$ equal weights per signed input",
    function=cell,
    dims=NETWORK_DIMS,
    labels=NETWORK_LABELS,
)
evaluated = sized(
    "M-F2-evaluated",
    function=evaluated_cell,
    arguments={"samples": 20, "seed": 0},
    grid={"depth": [3, 4, 5, 8]},
)


def check(dataset: Dataset, evaluated: Dataset) -> Evidence:
    """The drawn net, read as a graph, computes what the trained model does."""
    same = within(evaluated.error.values.max(), tolerance=1e-12)
    return Evidence(
        ran="the drawn graph evaluated from its inputs to its output at depths 3, 4, 5 and 8 with "
        "two inputs and random weights, dots as $D - 3$ layers",
        checks={
            "largest relative deviation of the drawn net from DiagonalNet": same,
            "hidden units in a layer, over inputs": within(_hidden(dataset), 2.0),
        },
        controls={
            "dots as another number of layers (least)": same.control(
                evaluated.error_without_dots.values.min()
            ),
            "without the negated inputs (least)": same.control(
                evaluated.error_one_sign.values.min()
            ),
        },
    )


def _hidden(dataset: Dataset) -> float:
    """Units that stand in the first hidden layer over those that stand at the inputs."""
    across, kind = dataset.unit_x.values, dataset.unit_kind.values
    hidden = (across == FIRST) & (kind != "dots")
    return float(hidden.sum() / (kind == "input").sum())


def draw(dataset: Dataset, evaluated: Dataset) -> Figure:
    """The network of units and connections."""
    picture, (axes,) = sheet_of(dataset, widths=(8.4,), height=5.2)
    axes.set_title(
        r"$f(u, x) = \langle u_+^D - u_-^D,\; x \rangle$: $D-1$ hidden layers of $2d$ units",
        fontsize=11,
    )
    draw_network(axes, dataset)
    return picture


experiment = Experiment(
    "M-F2",
    statement="The depth-$D$ diagonal network is one chain of $D$ equal weights per signed input; "
    r"it computes $\langle u_+^D - u_-^D, x\rangle$.",
    place="section 3, Figure 2",
    study=(study, evaluated),
    check=check,
    draw=draw,
)
