"""Source N: grokking beyond the Euclidean norm, one module per row of claims."""

from tacit.claims.notsawo import (  # noqa: I001  (the order of the source)
    addition,
    rescaling,
    goldilocks,
    regularizers,
    understanding,
    sparsity,
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
    "low_rank",
    "regularizers",
    "rescaling",
    "selection",
    "sparsity",
    "teacher",
    "understanding",
]
