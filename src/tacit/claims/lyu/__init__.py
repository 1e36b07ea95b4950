"""Source L: grokking by the biases of an early and a late phase, one module per row of claims."""

from tacit.claims.lyu import (  # noqa: I001  (the order of the poster)
    rich_phase,
    sharpness,
    sweep,
    table,
    clock,
    forecasts,
)

__all__ = ["clock", "forecasts", "rich_phase", "sharpness", "sweep", "table"]
