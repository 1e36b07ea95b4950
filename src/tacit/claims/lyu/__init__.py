"""Source lyu: what is not an experiment yet."""

from tacit.claims.lyu import (
    clock,
    forecasts,
    kernel_phase,
    rich_phase,
    sharpness,
    sweep,
    table,
)

__all__ = [
    "clock",
    "forecasts",
    "kernel_phase",
    "rich_phase",
    "sharpness",
    "sweep",
    "table",
]
