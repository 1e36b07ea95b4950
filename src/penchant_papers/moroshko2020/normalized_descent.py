"""Section 5 and appendix H.5: how much normalized descent gains, and that it follows the flow."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np

from penchant import DiagonalNet, GradientDescent, Steps, train
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_least,
    exponents,
    log_log,
    sized,
    within,
)
from penchant.measures import angle
from penchant.methods import NormalizedDescent
from penchant.models import LinearPredictor
from penchant.plotting import latex
from penchant.problems import separable_points
from penchant.record import At, LogSpaced
from penchant.stop import LogLoss
from penchant_papers.moroshko2020.figures.excess import points_named
from penchant_papers.moroshko2020.stopping import follow

RATES = {"normalized": NormalizedDescent, "plain": GradientDescent}
#: data and depth of Figures 3 to 9; the last two are points in ten dimensions
RUNS = ["3b, 2", "3c, 2", "3d, 2", "4a, 3", "4b, 3", "3b, 3", "3b, 10", "uniform, 3", "spiked, 3"]
RATES_BELOW, COARSE = [9e-4, 4.5e-4], [0.05, 0.025]


def single_cell(seed: int, *, rate: float, steps: list[int]) -> dict[str, Any]:
    """log(1/loss) of one layer at the numbers of `steps`, by both methods."""
    problem = separable_points(4, 6, margin=0.5, seed=seed)
    model, record, stop = LinearPredictor(), At(steps=steps[:-1]), Steps(steps[-1])
    runs = {
        name: train(model, problem, method(rate), stop=stop, record=record, throw=True)
        for name, method in RATES.items()
    }
    return {name: -run.dataset.log_loss.values[1:] for name, run in runs.items()}


@functools.lru_cache(maxsize=8)
def net_of(depth: int) -> DiagonalNet:
    """The net from alpha = 1; runs of one object share what is compiled."""
    return DiagonalNet(depth, alpha=1.0)


def flow_cell(run: str, rate: float, *, margin: float, seed: int) -> dict[str, float]:
    """Degrees between normalized descent from alpha = 1 and the flow at equal log(1/loss).

    At depth 10 the slopes are so steep that the rate is a hundredth of `rate`.
    """
    points, depth = run.split(", ")
    problem, D = points_named(points, seed), int(depth)
    own = rate / 100 if D == 10 else rate
    path = train(
        net_of(D),
        problem,
        NormalizedDescent(own),
        stop=[LogLoss(-margin), Steps(int(20 / own))],
        record=LogSpaced(10),
        throw=True,
    )
    data = path.dataset.isel(time=slice(1, None))
    margins = data.smoothed_margin.values
    flow = follow(problem, D, 1.0, margins, 1e-7).predictor.values
    return {"off": float(angle(data.predictor.values, flow).max()), "end": float(margins[-1])}


STEPS = [50, 100, 200, 400, 800]
study = sized(
    "M-descent",
    function=single_cell,
    arguments={"rate": 0.1, "steps": STEPS},
    seeds=20,
    dims={"normalized": ["record"], "plain": ["record"]},
    tiny={"seeds": 3},
    printed={"seeds": 60, "arguments": {"steps": [50, 200, 800, 3200, 12800]}},
)
flows = sized(
    "M-descent-flow",
    function=flow_cell,
    arguments={"margin": 100.0, "seed": 0},
    grid={"run": RUNS, "rate": [*RATES_BELOW, *COARSE]},
    tiny={"grid": {"run": ["3b, 2", "4b, 3", "3b, 10"]}},
)


def order_of(flows: Dataset, rates: list[float]) -> Array:
    """The exponent of the distance to the flow in the rate, for each run."""
    return exponents(rates, flows.off.transpose("run", "rate").sel(rate=rates).values)


def check(dataset: Dataset, flows: Dataset) -> Evidence:
    """log(1/loss) against steps by both methods, and the distance to the flow."""
    steps = np.array(json.loads(dataset.attrs["description"])["arguments"]["steps"], dtype=float)
    rows = dataset.transpose("seed", "record")
    logs = np.log(steps)
    plain = np.polyfit(logs[1:], rows.plain.values[:, 1:].T, 1)[0]
    fast = np.polyfit(logs[1:], np.log(rows.normalized.values[:, 1:]).T, 1)[0]
    slow = np.polyfit(logs[1:], np.log(rows.plain.values[:, 1:]).T, 1)[0]
    linear = within(np.median(fast), 1.0, 0.1)
    logarithmic = within(np.median(plain), 1.0, 0.15)
    gain = at_least((rows.normalized.values[:, -1] / rows.plain.values[:, -1]).min(), 3.0)
    orders, coarse = (order_of(flows, rates) for rates in (RATES_BELOW, COARSE))
    first = within(orders[np.abs(orders - 1).argmax()], 1.0, 0.05)
    away = flows.off.sel(rate=RATES_BELOW[0])
    typical = dataset.median("seed")
    return Evidence(
        ran=f"one layer on {rows.sizes['seed']} sets of four points in six dimensions, both "
        f"methods at the rate 0.1, to {steps[-1]:.0f} steps; normalized descent from $\\alpha = 1$ "
        rf"on the data and at the depths of {flows.sizes['run']} panels of Figures 3 to 9, to loss "
        r"$e^{-100}$ at the rates $9 \times 10^{-4}$ and half of it (a hundredth of them at $D = "
        "10$)",
        checks={
            r"one layer, normalized: exponent of $\log(1/\mathrm{loss})$ in the steps, median": (
                linear
            ),
            r"one layer, plain: slope of $\log(1/\mathrm{loss})$ in the logarithm of the steps, "
            "median": logarithmic,
            r"ratio of $\log(1/\mathrm{loss})$ at the end, normalized over plain, least": gain,
            "rate below 0.001: exponent in the rate of the largest angle to the flow at equal "
            "loss, the worst panel": first,
        },
        premises={
            r"the panels are trained far (least $\log(1/\mathrm{loss})$)": (
                bool(flows.end.min() >= 100),
                float(flows.end.min()),
            )
        },
        controls={
            r"plain descent: exponent of $\log(1/\mathrm{loss})$ in the steps": linear.control(
                np.median(slow)
            ),
            "rates 0.05 and 0.025: the same exponent": first.control(
                coarse[np.abs(coarse - 1).argmax()]
            ),
        },
        findings=[
            rf"at the rate ${latex(RATES_BELOW[0])}$ the largest angle to the flow is "
            f"{float(away.max()):.2g} degrees (run {away.run.values[away.values.argmax()]}); "
            "halving the rate halves it, as for every first-order method. A step of normalized "
            "descent is stable only while the rate times the curvature is below 2, so that a start "
            r"of $\alpha$ needs a rate of the order of $\alpha^{2-2D}$: at $\alpha = 100$ a run of "
            r"Figure 3 takes $10^5$ steps, and $\alpha = 10^4$ would take $10^9$"
        ],
        plots=[
            Plot(
                "one layer: the loss falls exponentially, not like 1/steps",
                "steps",
                r"$\log(1/\mathrm{loss})$, median",
                [Series(name, steps, typical[name].values) for name in RATES],
                x_scale="log",
                y_scale="log",
            ),
            log_log(
                "the path is that of the flow, up to an error of the order of the rate",
                "rate",
                "largest angle to the flow, degrees",
                [
                    *(
                        (f"{run.item()}", flows.rate.values, flows.off.sel(run=run), "points")
                        for run in (flows.run[0], flows.run[-1])
                    ),
                    (
                        "proportional to the rate",
                        flows.rate.values,
                        float(away[0]) / RATES_BELOW[0] * flows.rate.values,
                        "dashed",
                    ),
                ],
            ),
        ],
    )


experiment = Experiment(
    "M-descent",
    statement="Descent on the gradient over the loss lets the loss of one layer fall exponentially "
    "faster than plain descent; at rates below 0.001 it follows the gradient flow, at a distance "
    "proportional to the rate.",
    place="section 5, the first paragraph; appendix H.5",
    study=(study, flows),
    check=check,
    title="Normalized descent is exponentially faster than plain descent, on the path of the flow",
    ours=r"the data sets of one layer, the rates, $\alpha = 1$, and the points of the panels",
)
