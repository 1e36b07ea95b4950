"""Measures of richness beside the truth: how far the linearized net is at equal loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.stats

from penchant.lab import Array, Evidence, Experiment, at_least, at_most, sized
from penchant.plotting import BLUE, GREY, ORANGE, RED, sheet_of
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.probe.metric_runs import metric_cell
from penchant_papers.probe.rules import numbers_of, of_the_watch

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

NETS = ["dense", "dense, biased"]  # one program
study = sized(
    "watch-metrics",
    title="Measures of richness beside the distance of the linearized net at equal loss",
    function=metric_cell,
    arguments={"samples": 160, "probes": 48, "steps": 200},
    grid={"net": NETS},
    seeds=list(range(24)),
    labels={
        "twin_distance": "distance of the twin at equal loss over the change of the outputs",
        "nearest_twin": "the same where the twin comes nearest on its way",
        "kernel_distance": "distance of the centred tangent kernel",
        "uncentred": "distance of the tangent kernel, not centred",
        "linearized_error": "share of what was learned that the linearized net misses",
        "features_distance": "1 - CKA of the last features",
        "collapse": "NC1 of the last features",
        "low_rank": "D_LR of the last features",
        "move": "move of the parameters",
    },
    draw={"x": "net", "colour": "twin_distance"},
    printed={
        "grid": {"net": [*NETS, "LayerNorm", "BatchNorm", "transformer"]},
        "seeds": list(range(40)),
    },
)

# The truth: a twin this near is that of a kernel run, one this far that of a rich run (the limits
# of regimes.py).
NEAR, FAR = 0.25, 0.4
# Of the 366 runs on which the limits of the watch were chosen (other draws), it names 77% right and
# none kernel that is rich; our score has a rank correlation of 0.90, D_LR of 0.25, NC1 of 0.51.
RIGHT, CORRELATION = 0.6, 0.75
OTHERS = {  # the sign makes them grow with richness
    "kernel distance, not centred": ("uncentred", 1),
    "kernel distance, centred": ("kernel_distance", 1),
    "linearized error": ("linearized_error", 1),
    "move of the parameters": ("move", 1),
    "1 - CKA of the features": ("features_distance", 1),
    "NC1": ("collapse", -1),
    "D_LR": ("low_rank", -1),
}
KINDS = ("kernel", "leaving", "rich")
COLOURS = {"kernel": BLUE, "leaving": ORANGE, "rich": RED, "unknown": GREY}


class Measured(NamedTuple):
    """A measure on all runs, what it calls them, and what they are."""

    values: Array
    correlation: float
    called: list[str]
    truth: list[str]

    @property
    def right(self) -> float:
        return float(np.mean([a == b for a, b in zip(self.called, self.truth, strict=True)]))

    @property
    def balanced(self) -> float:
        """The mean over the regimes of the share that is named right; guessing has a third."""
        shares = [self.called_so(k, k) / self.truth.count(k) for k in KINDS if k in self.truth]
        return float(np.mean(shares))

    def called_so(self, called: str, truth: str) -> int:
        return list(zip(self.called, self.truth, strict=True)).count((called, truth))


def truth_of(distance: float) -> str:
    """What a run is, by the distance of its twin."""
    return "kernel" if distance < NEAR else "rich" if distance > FAR else "leaving"


def rows_of(dataset: xarray.Dataset) -> list[dict[str, Any]]:
    """The numbers of every run."""
    flat = dataset.stack(run=("net", "seed"))
    names = [str(name) for name, column in dataset.data_vars.items() if column.dtype.kind == "f"]
    columns = {name: flat[name].values.tolist() for name in names}
    nets = [str(net) for net in flat["net"].values]
    return [
        {"net": net} | dict(zip(columns, values, strict=True))
        for net, values in zip(nets, zip(*columns.values(), strict=True), strict=True)
    ]


def compared(rows: list[dict[str, Any]]) -> dict[str, Measured]:
    """Every measure; the limits of the others come from that half of the runs they do not name."""
    twins = np.array([row["twin_distance"] for row in rows])
    truth = [truth_of(distance) for distance in twins]
    ours = np.array([numbers_of(row).score for row in rows])
    named = [of_the_watch(row) for row in rows]
    measures = {"the watch": Measured(ours, _correlation(ours, twins), named, truth)}
    for name, (column, sign) in OTHERS.items():
        values = sign * np.array([row[column] for row in rows])
        limits = [best_limits(values[half::2], truth[half::2]) for half in (0, 1)]
        named = [_called(value, limits[1 - place % 2]) for place, value in enumerate(values)]
        measures[name] = Measured(values, _correlation(values, twins), named, truth)
    return measures


def _correlation(values: Array, twins: Array) -> float:
    known = np.isfinite(values)
    return float(scipy.stats.spearmanr(values[known], twins[known]).statistic)


def _called(value: float, limits: tuple[float, float]) -> str:
    return "kernel" if value < limits[0] else "rich" if value > limits[1] else "leaving"


def best_limits(values: Array, kinds: list[str]) -> tuple[float, float]:
    """The two limits that name most runs right."""
    levels = np.unique(values[np.isfinite(values)])
    near, mid, far = (np.array([kind == k for kind in kinds]) for k in KINDS)

    def right(low: float, high: float) -> int:
        below, above = values < low, values > high
        return int((below & near).sum() + (above & far).sum() + (~below & ~above & mid).sum())

    pairs = [(low, high) for i, low in enumerate(levels) for high in levels[i:]]
    return max(pairs, key=lambda pair: right(*pair))


def check(dataset: xarray.Dataset) -> Evidence:
    """The correlation of our score with the truth, and how many runs the watch names right."""
    rows = rows_of(dataset)
    by = compared(rows)
    ours = by["the watch"]
    tied = at_least(ours.correlation, CORRELATION)
    right = at_least(ours.balanced, RIGHT)
    wrong = at_most(ours.called_so("kernel", "rich"))
    counts = [ours.truth.count(kind) for kind in ("kernel", "rich")]
    equal = [abs(math.log(row["twin_loss"] / row["loss"])) < 0.1 for row in rows]
    return Evidence(
        ran=f"{len(rows)} runs with settings drawn at random"
        f" ({', '.join(sorted({row['net'] for row in rows}))} on digits), and the linearized net of"
        f" each by the same optimizer; {np.mean(equal):.0%} of the twins have the loss of their"
        " net, the others are taken where they come nearest to it",
        premises={
            "a tenth of the runs or more are kernel, and rich": (
                min(counts) >= len(ours.truth) / 10,
                f"{counts[0]} kernel, {counts[1]} rich",
            )
        },
        checks={
            "rank correlation of our score with the distance of the twin": tied,
            "share that is named right, the mean over kernel, leaving and rich": right,
            "rich runs that are called kernel": wrong,
        },
        controls={
            "rank correlation of D_LR": tied.control(by["D_LR"].correlation),
            "rank correlation of NC1": tied.control(by["NC1"].correlation),
            "share that D_LR names right": right.control(by["D_LR"].balanced),
            "rich runs that NC1 or D_LR calls kernel": wrong.control(
                sum(by[name].called_so("kernel", "rich") for name in ("NC1", "D_LR"))
            ),
        },
        findings=[
            f"{name}: rank correlation {m.correlation:.2f}, {m.right:.0%} of {len(m.truth)} right"
            f" ({m.balanced:.0%} in the mean over the regimes),"
            f" {m.called_so('kernel', 'rich')} rich called kernel,"
            f" {m.called_so('rich', 'kernel')} kernel called rich"
            for name, m in by.items()
        ],
    )


def draw(dataset: xarray.Dataset) -> Figure:
    """The distance of the twin over each measure; colours are what the watch calls the run."""
    rows = rows_of(dataset)
    twins = [row["twin_distance"] for row in rows]
    kinds = [of_the_watch(row) for row in rows]
    shown = ("the watch", "1 - CKA of the features", "move of the parameters", "NC1", "D_LR")
    by = compared(rows)
    picture, axes = sheet_of(dataset, widths=(3.4,) * len(shown), height=4.2)
    for panel, name in zip(axes, shown, strict=True):
        values, sign = by[name].values, -1 if name in ("NC1", "D_LR") else 1
        for kind, colour in COLOURS.items():
            chosen = [k for k, own in enumerate(kinds) if own == kind]
            points = sign * values[chosen], [twins[k] for k in chosen]
            panel.plot(*points, "o", color=colour, label=kind if chosen else None, markersize=4)
        for level in (NEAR, FAR):
            panel.axhline(level, color=GREY, linestyle=":", linewidth=1)
        label = {"the watch": "score of the watch", "D_LR": r"$D_{\mathrm{LR}}$"}.get(name, name)
        panel.set(xlabel=label, yscale="log")
        if name not in ("the watch", "NC1", "D_LR"):
            panel.set_xscale("log")
        panel.set_ylabel("distance of the twin at equal loss")
        panel.set_title(f"rank correlation {by[name].correlation:.2f}", fontsize=10)
    axes[0].legend(loc="lower right", title="called")
    return picture


experiment = Experiment(
    "watch-metrics",
    statement="The three measures of penchant.watch together rank runs by their distance from the"
    " linearized net at equal loss (Spearman 0.75 or more), where NC1 and D_LR do not; of kernel,"
    " leaving and rich runs 60% or more in the mean are named right, and no rich run is called"
    " kernel: for dense nets on digits with scales of the start, optimizers, inputs and decay drawn"
    " at random.",
    place="ours",
    study=study,
    check=check,
    draw=draw,
    ours="nets, data, optimizers and training times",
    scope=OWN_RUNS | {"quick": "our own runs; dense nets on digits"},
    seconds=8,
)
