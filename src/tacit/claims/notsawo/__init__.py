"""Source N: grokking beyond the Euclidean norm, one module per row of claims."""

from tacit.claims.notsawo import (  # noqa: I001  (the order of the source)
    addition,
    rescaling,
    goldilocks,
    regularizers,
    understanding,
    least_squares,
    sparsity,
    low_rank_memory,
    low_rank,
    arithmetic,
    teacher,
    selection,
    depth,
)

__all__ = [
    "addition",
    "arithmetic",
    "depth",
    "goldilocks",
    "least_squares",
    "low_rank",
    "low_rank_memory",
    "regularizers",
    "rescaling",
    "selection",
    "sparsity",
    "teacher",
    "understanding",
]
