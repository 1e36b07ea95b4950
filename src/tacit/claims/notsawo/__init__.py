"""Source N: grokking beyond the Euclidean norm, one module per row of claims."""

from tacit.claims.notsawo import (  # noqa: I001  (the order of the source)
    understanding,
    memorization,
    contraction,
    least_squares,
    sparsity,
    low_rank_memory,
    low_rank,
    selection,
    depth,
)

__all__ = [
    "contraction",
    "depth",
    "least_squares",
    "low_rank",
    "low_rank_memory",
    "memorization",
    "selection",
    "sparsity",
    "understanding",
]
