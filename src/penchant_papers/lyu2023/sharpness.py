"""When the jump happens relative to (1/rate) log alpha, and how sharp it is."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from penchant import Classification, DiagonalNet, forecast
from penchant.lab import Array, Dataset, Evidence, Experiment, Plot, Series, at_most, sized, within
from penchant.measures import angle, crossing
from penchant.regularizers import Lp
from penchant.solvers import stationary_points
from penchant_papers.instances import furthest, slope
from penchant_papers.lyu2023.runs import data_set, exact, margin_points

NEAR = 1.0  # degrees from the rich limit at which a run has ended there


def cell(
    seed: int, log_alpha: float, *, depth: int, first: float, last: float, log_rate: float | None
) -> dict[str, float]:
    """The values of rate t at which 10, 50 and 90% of the turn to the rich limit are done.

    The run is recorded from `first` to `last` around its forecast; its rate is 1/alpha unless
    `log_rate` gives another. `left` is the angle in degrees from its end to the rich limit.
    """
    data, rate = data_set(seed), math.exp(-log_alpha if log_rate is None else log_rate)
    expected = forecast(DiagonalNet(depth, log_alpha=log_alpha), data, rate)
    z = expected.transition * rate + window(first, last)
    run = exact(data, log_alpha, rate, z, depth, rtol=1e-6)
    beta = run.predictor.values
    away = angle(beta, margin_points(data)[0])
    left = angle(beta, rich_limit(data, depth, beta[-1]))
    begins, half, ends = (crossing(z, away / (away + left), part) for part in (0.1, 0.5, 0.9))
    log_norms = np.log(run.growth.values) - z + log_alpha + math.log(2 * data.dimension) / 2
    return {
        "begins": begins,
        "half": half,
        "ends": ends,
        "forecast": expected.transition * rate,
        "log_norm": float(np.interp(half, z, log_norms)),
        "left": float(left[-1]),
    }


def window(first: float, last: float) -> Array:
    """Times in units of 1/rate, dense up to 9 after the forecast."""
    late = np.arange(10.0, last + 1, 2.0)
    return np.concatenate([np.linspace(first, 9, round((9 - first) * 10) + 1), late])


def rich_limit(problem: Classification, depth: int, end: Array) -> Array:
    """The l1 max margin at depth 2; beyond, the certified l_{2/L} point nearest to `end`."""
    if depth == 2:
        return margin_points(problem)[1]
    return min(local_margins(problem, depth), key=lambda point: float(angle(end, point)))


@functools.lru_cache(maxsize=8)
def local_margins(problem: Classification, depth: int) -> list[Array]:
    """The certified stationary points of the l_{2/L} margin, once for all starts of one problem."""
    minimisers = stationary_points(problem.X, problem.y, Lp(2 / depth), starts=20)
    return [point.beta for point in minimisers]


LABELS = {
    "begins": "rate $t$ at which a tenth of the path to the rich limit is covered",
    "half": "rate $t$ at which half of it is covered",
    "ends": "rate $t$ at which nine tenths of it are covered",
    "forecast": "rate $t$ of the transition, predicted before training",
    "log_norm": "log of the norm of the parameters at half",
    "left": "degrees from the end of the run to the rich limit",
}
DEPTH_2 = {"depth": 2, "first": -4.0, "last": 200.0, "log_rate": None}
# at depth 3 the exact flow cannot resolve later times
DEPTH_3 = {"depth": 3, "first": -4.0, "last": 9.0, "log_rate": None}
DRAWN = {"x": "log_alpha", "colour": "half"}
study = sized(
    "L-sharp",
    title="The jump from the kernel to the rich classifier at depth 2",
    function=cell,
    arguments=DEPTH_2,
    grid={"log_alpha": [80.0, 640.0]},
    seeds=3,
    labels=LABELS,
    draw=DRAWN,
    printed={"grid": {"log_alpha": [40.0, 160.0, 640.0]}, "seeds": 8},
)
deeper = sized(
    "L-sharp-deeper",
    title="The jump from the kernel to the rich classifier at depth 3",
    function=cell,
    arguments=DEPTH_3,
    grid={"log_alpha": [40.0, 160.0]},
    seeds=3,
    labels=LABELS,
    draw=DRAWN,
    printed={"grid": {"log_alpha": [40.0, 80.0, 160.0]}, "seeds": 8},
)
apart = sized(
    "L-sharp-apart",
    title="The largest start of depth 2 under the largest of the rates",
    function=cell,
    arguments={**DEPTH_2, "log_rate": -80.0},
    grid={"log_alpha": [640.0]},
    seeds=1,
    printed={"arguments": {"log_rate": -40.0}},
)


def rows(dataset: Dataset, values: Any) -> list[Array]:
    """One row of values over log alpha for every data set."""
    return list(values.transpose("seed", "log_alpha").values)


def powers(dataset: Dataset, values: Any) -> Array:
    """The exponents in log alpha, one for every data set."""
    return np.array([slope(dataset.log_alpha.values, row) for row in rows(dataset, values)])


def reached(dataset: Dataset) -> Array:
    """Whether the largest start of each data set ends at the rich limit; near ties take longer."""
    near = dataset.left.isel(log_alpha=-1) < NEAR
    return np.asarray(near & dataset.ends.notnull().all("log_alpha"))


def settled(dataset: Dataset) -> Dataset:
    """The data sets whose largest start ends at the rich limit, or all if none does."""
    places = np.flatnonzero(reached(dataset))
    return dataset.isel(seed=places) if len(places) else dataset


def shares(dataset: Dataset, place: str, change: float) -> Array:
    """The drift of the jump from `place` over the alphas, as a share of that of (1/L) log g."""
    return np.array([np.ptp(row) for row in rows(dataset, dataset.half - dataset[place])]) / change


def check(dataset: Dataset, deeper: Dataset, apart: Dataset) -> Evidence:
    """Place, width, drift from the forecast and norm of the jump, at depths 2 and 3."""
    tried, fresh = (dataset.sizes["seed"], deeper.sizes["seed"]), dataset
    dataset, both = settled(dataset), {2: settled(dataset), 3: settled(deeper)}
    first, last = (float(dataset.log_alpha[k]) for k in (0, -1))
    parted = apart.isel(seed=0, log_alpha=0)
    changes = {L: math.log(float(d.log_alpha[-1] / d.log_alpha[0])) / L for L, d in both.items()}
    places = [
        *(d.half.isel(log_alpha=-1) / float(d.log_alpha[-1]) - 1 for d in both.values()),
        parted.half / last - 1,
    ]
    narrowing = {L: powers(d, (d.ends - d.begins) / d.log_alpha) for L, d in both.items()}
    drift, without = (
        np.median(np.concatenate([shares(d, place, changes[L]) for L, d in both.items()]))
        for place in ("forecast", "log_alpha")
    )
    norms = {L: np.median(powers(d, np.exp(d.log_norm))) - 1 / L for L, d in both.items()}
    first_norm = float(fresh.isel(seed=0, log_alpha=0).log_norm)
    grows = float(parted.log_norm - first_norm) / math.log(last / first)
    sits = within(max(float(abs(place).max()) for place in places), tolerance=0.02)
    sharpens = at_most(max(np.median(values) for values in narrowing.values()), -0.5)
    gap = at_most(drift, 0.5)
    norm = within(furthest(list(norms.values())), tolerance=0.1)
    shown = dataset.isel(seed=0)
    counts = [int(reached(d).sum()) for d in both.values()]
    return Evidence(
        ran=f"{dataset.sizes['seed']} data sets of 4 points in $R^8$ without near ties, logistic "
        rf"loss, rate = $1/\alpha$, exact flow; $\log \alpha$ {first:g} to {last:g} at depth "
        f"2, {float(deeper.log_alpha[0]):g} to {float(deeper.log_alpha[-1]):g} at depth 3; "
        r"the jump is half done where the direction is half way from the $\ell_2$ max margin "
        r"to the rich limit: $\ell_1$ at depth 2, a certified stationary point of "
        r"$\ell_{2/3}$ at depth 3; one run with $\alpha$ and rate chosen separately",
        checks={
            r"largest $|\mathrm{rate}\,t_{\mathrm{half}} / \log \alpha - 1|$ at the largest "
            r"$\alpha$": sits,
            r"exponent of width/(1/rate $\log \alpha$) in $\log \alpha$, larger median of both "
            "depths": sharpens,
            r"drift of $\mathrm{rate}\,t_{\mathrm{half}} - (\log \alpha + \mathrm{const} - (1/L) "
            r"\log g)$ over the alphas, over that of $(1/L) \log g$ (median)": gap,
            r"deviation of the exponent of $|\theta|$ at the jump in $\log(1/\mathrm{rate})$ from "
            "$1/L$ (median)": norm,
        },
        premises={
            "runs end within a degree of the rich limit (data sets at depths 2 and 3)": (
                min(counts) > 0,
                f"{counts[0]} of {tried[0]}, {counts[1]} of {tried[1]}",
            )
        },
        controls={
            r"without the term $(1/L) \log g$": gap.control(without),
            "a transition that begins when training does": sharpens.control(
                min(np.median(powers(d, d.ends / d.log_alpha)) for d in both.values())
            ),
            r"$\alpha$ alone grows at a fixed rate: exponent of $|\theta|$ minus 1/2": norm.control(
                grows - 0.5
            ),
            r"the jump at (1/rate) $\log(1/\mathrm{rate})$": sits.control(
                abs(float(parted.half) / first - 1)
            ),
        },
        findings=_findings(dataset, narrowing),
        plots=[
            Plot(
                "the jump becomes narrower relative to its time",
                r"$\log \alpha$",
                r"rate $t / \log \alpha$",
                [
                    Series(name, dataset.log_alpha, shown[name] / dataset.log_alpha)
                    for name in ("begins", "half", "ends")
                ],
                x_scale="log",
            )
        ],
    )


def _findings(dataset: Dataset, narrowing: dict[int, Array]) -> list[str]:
    exponents = [f"{e:.2f} ($L = {L}$)" for L, row in narrowing.items() for e in row[:2]]
    late = rows(dataset, dataset.half - dataset.log_alpha)[:2]
    starts = ", ".join(f"{a:g}" for a in dataset.log_alpha.values)
    return [
        r"at finite size the jump is at $(1/\mathrm{rate})(\log \alpha + (1/L) \log(|\theta_0|/(g "
        r"|\delta_0|)))$ with $|\theta_0|$ and $|\delta_0|$ at unit scale and $g$ about "
        r"$\log(1/\mathrm{rate})$: it differs from $\log \alpha$ by a constant and $-(1/L) "
        r"\log \log(1/\mathrm{rate})$, so the relative gap closes only like $\log \log \alpha "
        r"/ \log \alpha$",
        r"the width over $(1/\mathrm{rate}) \log \alpha$ falls like $\log \alpha$ to the power "
        + ", ".join(exponents),
        r"$\mathrm{rate}\,t_{\mathrm{half}} - \log \alpha$: "
        + "; ".join(
            f"data set {k}: " + ", ".join(f"{gap:+.2f}" for gap in row)
            for k, row in enumerate(late)
        )
        + rf" for $\log \alpha = {starts}$ at depth 2",
        r"$\alpha$ multiplies the start; the total norm is $\alpha \sqrt{2 d}$, and its logarithm "
        "over the rate is always off by log(2d)/2",
    ]


experiment = Experiment(
    "L-sharp",
    statement=r"The jump from the kernel to the rich classifier happens at $(1/\mathrm{rate}) "
    r"\log \alpha$ and takes only $o((1/\mathrm{rate}) \log(1/\mathrm{rate}))$; it begins "
    r"once the norm has decayed to the order of $(\log 1/\mathrm{rate})^{1/L}$, as measured "
    "on diagonal nets with $L = 2$ and $L = 3$.",
    place="Main results (the time $t_q$) and Key insights, rich regime",
    study=(study, deeper, apart),
    check=check,
    title="The jump becomes narrower relative to the time at which it happens",
    ours=r"the data, and rate = $1/\alpha$, which takes both limits at once",
    seconds=4,
)
