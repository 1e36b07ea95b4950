"""Section 5 and appendix H.5: how much normalized descent gains, and that it follows the flow."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import DiagonalNet, GradientDescent, Steps, train
from penchant.lab import (
    Dataset,
    Evidence,
    Experiment,
    Plot,
    Series,
    at_least,
    at_most,
    sized,
    within,
)
from penchant.measures import angle
from penchant.methods import NormalizedDescent
from penchant.models import LinearPredictor
from penchant.problems import separable_points, three_points
from penchant.record import At, LogSpaced
from penchant.stop import LogLoss
from penchant_papers.moroshko2020.stopping import follow

RATES = {"normalized": NormalizedDescent, "plain": GradientDescent}
DEPTHS = {"3b": 2, "3c": 2, "3d": 2, "4a": 3, "4b": 3}


def single_cell(seed: int, *, rate: float, steps: list[int]) -> dict[str, Any]:
    """log(1/loss) of one layer at the numbers of `steps`, by both methods."""
    problem = separable_points(4, 6, margin=0.5, seed=seed)
    model, record, stop = LinearPredictor(), At(steps=steps[:-1]), Steps(steps[-1])
    runs = {
        name: train(model, problem, method(rate), stop=stop, record=record, throw=True)
        for name, method in RATES.items()
    }
    return {name: -run.dataset.log_loss.values[1:] for name, run in runs.items()}


def flow_cell(points: str, rate: float, *, margin: float) -> dict[str, float]:
    """Degrees between normalized descent from alpha = 1 and the flow at equal log(1/loss)."""
    problem, depth = three_points(points), DEPTHS[points]
    stop = [LogLoss(-margin), Steps(int(20 / rate))]
    path = train(
        DiagonalNet(depth, alpha=1.0),
        problem,
        NormalizedDescent(rate),
        stop=stop,
        record=LogSpaced(10),
        throw=True,
    )
    data = path.dataset.isel(time=slice(1, None))
    margins = data.smoothed_margin.values
    flow = follow(problem, depth, 1.0, margins, 1e-8).predictor.values
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
    arguments={"margin": 1e3},
    grid={"points": list(DEPTHS), "rate": [9e-4, 0.05]},
    tiny={"arguments": {"margin": 100.0}},
    printed={"arguments": {"margin": 1e5}},
)


def check(dataset: Dataset, flows: Dataset) -> Evidence:
    """log(1/loss) against steps by both methods, and the distance to the flow."""
    steps = np.asarray(dataset.attrs.get("steps", STEPS), dtype=float)
    rows = dataset.transpose("seed", "record")
    count = rows.sizes["record"]
    steps = steps if len(steps) == count else np.arange(1.0, count + 1)
    logs = np.log(steps)
    plain = np.polyfit(logs[1:], rows.plain.values[:, 1:].T, 1)[0]
    fast = np.polyfit(logs[1:], np.log(rows.normalized.values[:, 1:]).T, 1)[0]
    slow = np.polyfit(logs[1:], np.log(rows.plain.values[:, 1:]).T, 1)[0]
    linear = within(np.median(fast), 1.0, 0.1)
    logarithmic = within(np.median(plain), 1.0, 0.15)
    gain = at_least((rows.normalized.values[:, -1] / rows.plain.values[:, -1]).min(), 3.0)
    near = at_most(flows.off.sel(rate=9e-4).max(), 2.0)  # as wide as a line of the figures
    typical = dataset.median("seed")
    return Evidence(
        ran=f"one layer on {rows.sizes['seed']} sets of four points in six dimensions, both "
        f"methods at the rate 0.1, to {steps[-1]:.0f} steps; normalized descent from $\\alpha = 1$ "
        r"on five panels of three points at the rate $9 \times 10^{-4}$",
        checks={
            r"one layer, normalized: exponent of $\log(1/\mathrm{loss})$ in the steps, median": (
                linear
            ),
            r"one layer, plain: slope of $\log(1/\mathrm{loss})$ in the logarithm of the steps, "
            "median": logarithmic,
            r"ratio of $\log(1/\mathrm{loss})$ at the end, normalized over plain, least": gain,
            "five panels, rate below 0.001: largest angle to the flow at equal loss, degrees": near,
        },
        premises={
            r"the five panels are trained far (least $\log(1/\mathrm{loss})$)": (
                bool(flows.end.min() > 3),
                float(flows.end.min()),
            )
        },
        controls={
            r"plain descent: exponent of $\log(1/\mathrm{loss})$ in the steps": linear.control(
                np.median(slow)
            ),
            "five panels at the rate 0.05: the same largest angle": near.control(
                flows.off.sel(rate=0.05).max()
            ),
        },
        plots=[
            Plot(
                "one layer: the loss falls exponentially, and without the norm like 1/steps",
                "steps",
                r"$\log(1/\mathrm{loss})$, median",
                [Series(name, steps, typical[name].values) for name in RATES],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


experiment = Experiment(
    "M-descent",
    statement="Descent on the gradient over the loss lets the loss of one layer fall exponentially "
    "faster than plain descent; at rates below 0.001 it follows the gradient flow.",
    place="section 5, the first paragraph; appendix H.5",
    study=(study, flows),
    check=check,
    title="Normalized descent reaches in a thousand steps what plain descent never does",
    ours="the data sets of one layer, the rates, and the points of the panels",
)
