"""Source L: grokking by the biases of an early and a late phase, one module per row of claims."""

from tacit.claims.lyu import (  # noqa: I001  (the order of the poster)
    sweep,
    table,
    clock,
    forecasts,
)

__all__ = ["clock", "forecasts", "sweep", "table"]
