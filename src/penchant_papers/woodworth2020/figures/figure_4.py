"""Figure 4, a diagram: in the wide parallel network each input has its own k hidden units."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import Factorization
from penchant.lab import Dataset, Evidence, Experiment, Figure, sized, within
from penchant.plotting import NETWORK_DIMS, NETWORK_LABELS, Network, draw_network, sheet_of
from penchant.problems import Sensing
from penchant_papers.instances import distance

INPUTS = {"1": 6.0, "2": 3.0, "d": -1.0}  # name and height of the inputs that are shown
HIDDEN = {"1": 1.1, "2": 0.35, "k": -1.1}  # name and offset of the hidden units of one input


def network() -> Network:
    """The units and connections, with the first, second and last of each kind."""
    net = Network()
    output = net.unit("output", 7.0, 2.5, "$f$")
    for i, height in INPUTS.items():
        entry = net.unit("input", 0.0, height, rf"$X_{{{i}{i}}}$")
        for j, offset in HIDDEN.items():
            hidden = net.unit("positive", 3.2, height + offset)
            net.connect(entry, hidden, rf"$U_{{{i}{j}}}$", at=0.62)
            net.connect(hidden, output, rf"$V_{{{i}{j}}}$", at=0.3)
        net.unit("dots", 3.2, height - 0.36)
    net.unit("dots", 0.0, 1.05)
    net.unit("dots", 3.2, 1.05)
    return net


def cell(draws: int, seed: int) -> dict[str, Any]:
    """The tables of the network; what it computes and what the model does, at d = k = 3.

    Random diagonal measurements and weights. `shared` is the network whose k hidden units are
    connected with every input, as in a fully connected layer.
    """
    rng, drawn = np.random.default_rng(seed), network()
    d, k = len(INPUTS), len(HIDDEN)
    outputs: dict[str, list[float]] = {"picture": [], "model": [], "shared": []}
    for _ in range(draws):
        x, U, V = rng.normal(size=d), rng.normal(size=(d, k)), rng.normal(size=(d, k))
        weights = {
            f"${name}_{{{i}{j}}}$": W[a, b]
            for name, W in (("U", U), ("V", V))
            for a, i in enumerate(INPUTS)
            for b, j in enumerate(HIDDEN)
        }
        inputs = {f"$X_{{{i}{i}}}$": x[a] for a, i in enumerate(INPUTS)}
        model, problem = Factorization(factors=(U, V)), Sensing(np.diag(x)[None], np.zeros(1))
        start = model.start(problem.dimension)
        outputs["picture"].append(drawn.output(inputs, weights))
        outputs["model"].append(float(model.predict(start, problem.design)[0]))
        outputs["shared"].append(float((x @ U) @ V.sum(axis=0)))
    distinct = {c["weight"] for c in drawn.connections}
    counts = {"weights": len(distinct), "parameters": len(start)}
    return {**drawn.arrays(), **outputs, **counts}


study = sized(
    "W-F4",
    title="For diagonal measurements, every input has its own $k$ hidden units",
    function=cell,
    arguments={"draws": 20, "seed": 4},
    dims={**NETWORK_DIMS, "picture": ["draw"], "model": ["draw"], "shared": ["draw"]},
    labels=NETWORK_LABELS,
)


def check(dataset: Dataset) -> Evidence:
    """The drawn network is the factorization on diagonal measurements."""
    picture, model, shared = (dataset[n].values for n in ("picture", "model", "shared"))
    same = within(distance(picture, model), tolerance=1e-12)
    weights, parameters = int(dataset.weights), int(dataset.parameters)
    return Evidence(
        ran="the units and connections that are drawn, as a network with $d = k = 3$, compared "
        f"with Factorization on diagonal measurements, at {len(picture)} random weights and "
        "inputs",
        checks={
            r"largest difference of the drawn network from $\langle U V^T, "
            r"\operatorname{diag}(x)\rangle$, relative": same,
            "weights drawn, over the parameters of the model": within(weights / parameters, 1.0),
        },
        controls={"hidden units that several inputs share": same.control(distance(shared, model))},
    )


def draw(dataset: Dataset) -> Figure:
    """The network of units and connections in `dataset`."""
    picture, (axes,) = sheet_of(dataset, widths=(7.2,), height=5.6)
    axes.set_title(r"$f((U, V), X) = \sum_i X_{ii} \sum_{j=1}^{k} U_{ij} V_{ij}$", fontsize=11)
    draw_network(axes, dataset)
    return picture


experiment = Experiment(
    "W-F4",
    statement="For diagonal measurements the matrix factorization is a wide parallel network, in "
    "which every input has its own $k$ hidden units.",
    place="section 6, Figure 4",
    study=study,
    check=check,
    draw=draw,
)
