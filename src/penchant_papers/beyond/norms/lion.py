"""Lion, the sign of two means of the gradient, ends at the largest margin in l_inf."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from penchant.lab import Dataset, Evidence, Experiment, Figure, at_least, at_most, sized
from penchant.methods import Descent
from penchant.plotting import CYCLE, GREY, sheet_of
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.beyond.margins import (
    NEARLY,
    NORMS,
    OWN,
    SHOWN,
    MethodKind,
    data,
    end,
    ends,
    orders,
)


@dataclasses.dataclass(frozen=True, repr=False)
class Lion(Descent):
    """w <- w - learning_rate sign(a m + (1 - a) g), then m <- b m + (1 - b) g."""

    ahead: float = 0.9
    kept: float = 0.99

    def memory(self, oracle: Any, parameters: Any) -> Any:
        return 0.0 * parameters

    def step(self, oracle: Any, parameters: Any, memory: Any, k: Any) -> tuple[Any, Any]:
        g = oracle.gradient(parameters)
        mean = self.ahead * memory + (1 - self.ahead) * g
        signs = (mean > 0) * 1.0 - (mean < 0) * 1.0
        return parameters - self.learning_rate * signs, self.kept * memory + (1 - self.kept) * g


KINDS = {"Lion": MethodKind(Lion, "l_inf", "l1", 0.3)}


def cell(steps: int, seed: int, *, samples: int, dimension: int) -> dict[str, Any]:
    return end(data(seed, samples, dimension), KINDS["Lion"], NORMS, steps, OWN)


study = sized(
    "beyond-lion",
    title="Lion ends at the largest margin in the norm of signs",
    function=cell,
    arguments={"samples": 8, "dimension": 12},
    grid={"steps": [2500, 40_000]},
    seeds=20,
    dims={"share": ["norm"]},
    labels={"steps": "steps", "share": "margin over the best margin in the norm"},
    tiny={"seeds": 6},
    printed={"seeds": 30, "grid": {"steps": [2500, 10_000, 40_000, 160_000]}},
)


def check(dataset: Dataset) -> Evidence:
    """The share of the best l_inf margin and its rate; the other norms as controls."""
    runs = dataset.expand_dims(optimizer=["Lion"])
    own = at_least(ends(runs, KINDS, NORMS, "own").min(), NEARLY)
    rate = at_most(orders(runs, KINDS, NORMS).max(), -0.5, tolerance=0.1)

    def other(norm: str) -> float:
        return float(ends(runs, KINDS, NORMS, norm).max())

    def order(norm: str) -> float:
        kinds = {"Lion": dataclasses.replace(KINDS["Lion"], own=norm)}
        return float(orders(runs, kinds, NORMS).min())

    return Evidence(
        ran=f"linear classifiers on {dataset.sizes['seed']} random problems with 8 samples of 12"
        " features and the exponential loss, from zero, with the learning rate"
        r" $0.3/\sqrt{\mathrm{steps}}$ and the means 0.9 and 0.99, without decay",
        checks={
            r"median share of the best $\ell_\infty$ margin after the most steps": own,
            "exponent of the missing share in the number of steps": rate,
        },
        controls={
            r"Lion converges to $\ell_2$": own.control(other("l2")),
            r"Lion converges to $\ell_1$": own.control(other("l1")),
            r"the missing share of $\ell_2$ has the rate": rate.control(order("l2")),
        },
    )


def draw(dataset: Dataset) -> Figure:
    """The shares of every problem in three norms, after few and after many steps."""
    picture, (axes,) = sheet_of(dataset, widths=(6.5,), height=4.2)
    for k, norm in enumerate(NORMS):
        for place, steps in enumerate(dataset.steps.values):
            shares = dataset.share.sel(steps=steps).isel(norm=k).values
            label = SHOWN[norm] if place == 0 else None
            places = np.full(shares.size, place + 0.15 * (k - 1))
            axes.plot(places, shares, "o^D"[k], color=CYCLE[k], label=label)
    axes.axhline(1.0, color=GREY, linewidth=1)
    axes.set_xticks(range(dataset.sizes["steps"]), [f"{s:,}" for s in dataset.steps.values])
    axes.set(xlabel="steps", ylabel="margin over the best margin in the norm")
    axes.legend(title="norm", loc="lower right")
    return picture


experiment = Experiment(
    "beyond-lion",
    statement=r"A linear classifier trained by Lion without decay on separable data converges to"
    r" the largest margin in $\ell_\infty$, as sign descent does, and the missing share falls at"
    r" least like $\mathrm{steps}^{-1/2}$ at rates proportional to that.",
    place="the rule of steepest descent with momentum of Fan et al. 2025 (arXiv 2502.04664),"
    " applied to the optimizer of Chen et al. 2023 (arXiv 2302.06675): ours",
    study=study,
    check=check,
    draw=draw,
    ours="the data, the constant learning rates, no weight decay",
    scope=OWN_RUNS,
    seconds=4,
)
