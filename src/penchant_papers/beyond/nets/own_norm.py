"""Which norm training chose, on nets: near which KKT points do optimizers end?"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from penchant import L2, Adam, Classification, Steps, train
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Figure,
    at_most,
    share_at_least,
    sized,
    upper_share,
)
from penchant.measures import kkt_residual
from penchant.methods import Scheduled, SteepestDescent
from penchant.models import FunctionModel, two_layer
from penchant.plotting import CYCLE, GREY, sheet_of
from penchant.record import At
from penchant.regularizers import LayerSpectral, Linf
from penchant.stop import LogLoss
from penchant_papers.beyond import OWN_RUNS

FEATURES, WIDTH = 4, 6
LAYERS = LayerSpectral([(WIDTH, FEATURES), (WIDTH, 1)])
NORMS = {"l2": L2(), "l_inf": Linf(), "spectral": LAYERS}
SHOWN = {"l2": r"$\ell_2$", "l_inf": r"$\ell_\infty$", "spectral": "spectral, layer by layer"}
EARLY = 400  # steps of nearly the first rate
LAST = -300.0  # of the log of the loss: at -745 there is no gradient in float64 any more
NEAR = 0.1  # of the best margin of the linearized net; four other problems had 0.02 to 0.06


class OwnNorm(NamedTuple):
    """The step as a function of its length, its own norm, and how long steps are in that norm."""

    make: Any
    own: str
    length: float  # relative to a step of gradient descent: layers grow about equally


OPTIMIZERS = {
    "gradient descent": OwnNorm(lambda rate: SteepestDescent(rate, L2()), "l2", 1.0),
    "sign descent": OwnNorm(lambda rate: SteepestDescent(rate, Linf()), "l_inf", 0.2),
    "Adam": OwnNorm(lambda rate: Adam(rate, square_decay=0.95, epsilon=0.0), "l_inf", 0.2),
    "Muon": OwnNorm(lambda rate: SteepestDescent(rate, LAYERS, momentum=0.9), "spectral", 0.5),
}


@functools.lru_cache(maxsize=64)
def data(seed: int, samples: int) -> Classification:
    """Random labels of Gaussian samples."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, FEATURES))
    return Classification(X, np.where(rng.random(samples) < 0.5, 1.0, -1.0))


def net(seed: int, alpha: float) -> FunctionModel:
    """f(x) = sum_j v_j <w_j, x>^2, homogeneous of degree 3 and smooth."""
    return two_layer(WIDTH, alpha=alpha, activation="quadratic", seed=seed)


def slowing(method: Any, steps: int) -> Scheduled:
    """The method with rates like steps^(-2/3).

    Margins are of degree 3: their slopes grow like |theta|^2, and constant steps would in the end
    be too long for them. With these |theta|^3, and so the margins, grow in proportion to the steps.
    """
    places = np.unique(np.geomspace(1, steps, 25).astype(int))
    factors = (1 + places / EARLY) ** (-2 / 3)
    return Scheduled(method, places.tolist(), factors.tolist())


def cell(
    optimizer: str, steps: int, seed: int, *, samples: int, alpha: float, rate: float
) -> dict[str, Any]:
    kind, problem, model = OPTIMIZERS[optimizer], data(seed, samples), net(seed, alpha)
    method = slowing(kind.make(rate * kind.length), steps)
    path = train(
        model, problem, method, stop=[Steps(steps), LogLoss(LAST)], record=At(steps=[steps])
    )
    least = (problem.y * model.predict(path.parameters, problem.X)).min()
    gaps = [kkt_residual(problem, model, path.parameters, norm=norm) for norm in NORMS.values()]
    return {"gap": np.array(gaps), "least": float(least)}


study = sized(
    "beyond-own-norm",
    title="Every optimizer ends near the KKT points of its own norm, on nets too",
    function=cell,
    arguments={"samples": 6, "alpha": 0.05, "rate": 0.01},
    grid={"optimizer": list(OPTIMIZERS), "steps": [1000, 5000]},
    seeds=20,
    dims={"gap": ["norm"]},
    labels={"steps": "steps", "gap": "missing share of the best margin"},
    tiny={"seeds": 16},
    printed={
        "seeds": 50,
        "grid": {"steps": [1000, 2500, 5000]},
    },
)


def separated(dataset: Dataset) -> Dataset:
    """The runs of problems that every optimizer separates, early and late."""
    good = (dataset.least > 0).all(["optimizer", "steps"])
    return dataset.isel(seed=np.flatnonzero(good.values))


def gaps(dataset: Dataset, optimizer: str, norm: str, end: int = -1) -> Array:
    """The missing shares of all runs of an optimizer in a norm."""
    ends = dataset.gap.sel(optimizer=optimizer).isel(steps=end, norm=list(NORMS).index(norm))
    return np.asarray(ends.values)


def nearest(dataset: Dataset, optimizer: str) -> list[str]:
    """The norm of the smallest gap, run by run."""
    table = np.array([gaps(dataset, optimizer, norm) for norm in NORMS])
    return [list(NORMS)[k] for k in table.argmin(axis=0)]


def check(dataset: Dataset) -> Evidence:
    """The own gap is small, falls, and is the smallest; other norms as controls."""
    total, dataset = dataset.sizes["seed"], separated(dataset)
    runs, count = dataset.sizes["seed"], dataset.sizes["seed"] * len(OPTIMIZERS)
    own = {name: gaps(dataset, name, kind.own) for name, kind in OPTIMIZERS.items()}
    early = {name: gaps(dataset, name, kind.own, 0) for name, kind in OPTIMIZERS.items()}
    hits = {name: nearest(dataset, name) for name in OPTIMIZERS}
    right = sum(hits[name].count(kind.own) for name, kind in OPTIMIZERS.items())
    near = at_most(max(np.median(values) for values in own.values()), NEAR)
    picks = share_at_least(right, count, 0.5)
    fallen = sum(int((own[name] < early[name]).sum()) for name in OPTIMIZERS)
    others = [name for name, kind in OPTIMIZERS.items() if kind.own != "l2"]

    def median(optimizer: str, norm: str) -> float:
        return float(np.median(gaps(dataset, optimizer, norm)))

    return Evidence(
        ran=f"two-layer nets with squares as activations, {WIDTH} units, on {runs} random sets "
        f"of 6 samples with {FEATURES} features and the exponential loss, from small Gaussian "
        r"weights, with rates like $\mathrm{steps}^{-2/3}$",
        checks={
            "median gap in the optimizer's own norm, the largest of all optimizers": near,
            "share of runs whose smallest gap is that in the own norm": picks,
            "share of runs whose own gap falls on the way": share_at_least(fallen, count, 0.5),
        },
        premises={
            "a third of the problems are separated by all": (3 * runs >= total, runs / total)
        },
        controls={
            "sign descent ends at the spectral norm": near.control(
                median("sign descent", "spectral")
            ),
            r"Muon ends at $\ell_\infty$": near.control(median("Muon", "l_inf")),
            r"gradient descent ends at $\ell_\infty$": near.control(
                median("gradient descent", "l_inf")
            ),
            r"sign descent, Adam and Muon are nearest to $\ell_2$": picks.control(
                upper_share(sum(hits[name].count("l2") for name in others), len(others) * runs)
            ),
        },
        findings=[
            f"{total - runs} of {total} problems were not separated by one of the optimizers",
            "median gaps in the own norm: "
            + ", ".join(f"{name} {np.median(values):.3f}" for name, values in own.items()),
        ],
    )


def draw(dataset: Dataset) -> Figure:
    dataset = separated(dataset)
    picture, (a,) = sheet_of(dataset, widths=(8.0,), height=4.2)
    for k, norm in enumerate(NORMS):
        for row, (name, kind) in enumerate(OPTIMIZERS.items()):
            values, place = gaps(dataset, name, norm), row + 0.22 * (k - 1)
            label = f"in {SHOWN[norm]}" if row == 0 else None
            a.plot(values, np.full(len(values), place), "o^s"[k], color=CYCLE[k], ms=4, label=label)
            if kind.own == norm:
                a.plot(np.median(values), place, "o", ms=17, mfc="none", mec=CYCLE[k], mew=2)
    a.axvline(0.0, color=GREY, linewidth=1)
    a.set_yticks(range(len(OPTIMIZERS)), list(OPTIMIZERS))
    a.set(ylim=(len(OPTIMIZERS) - 0.5, -0.5), ylabel="optimizer")
    a.set_xlabel("missing share of the best margin of the linearized net (0: a KKT point)")
    a.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(NORMS))
    return picture


experiment = Experiment(
    "beyond-own-norm",
    statement="A smooth homogeneous net that is trained on separable data comes ever nearer, in "
    "direction, to the KKT points of the least norm with margins of one, in the norm in which the "
    r"optimizer's steps are steepest: gradient descent in $\ell_2$, sign descent and Adam without "
    r"$\epsilon$ in $\ell_\infty$, Muon in the largest spectral norm of a layer, and not in the "
    "other two.",
    place="Gronich and Vardi 2026 (arXiv 2602.16340); Tsilivis et al. 2024 (arXiv 2410.22069)",
    study=study,
    check=check,
    draw=draw,
    ours="the gap that measures it, the nets and data, the rates",
    scope=OWN_RUNS,
    seconds=5,
)
