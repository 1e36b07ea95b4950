"""Whether the verdicts of penchant.watch are right, on runs whose regime is known."""

from penchant.lab import Paper

paper = Paper(
    "watch",
    package=__name__,
    title="The watch of a training run",
    statements={
        "watch-bench": "open_bench",
        "watch-forecast": "forecasts",
        "watch-metrics": "metrics",
        "watch-regime": "regimes",
    },
)
