"""Source L: grokking by the biases of an early and a late phase, one module per row of claims."""

from tacit.claims.lyu import (
    table,
)

__all__ = ["table"]
