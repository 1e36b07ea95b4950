"""Source M: implicit bias in deep linear classification, one module per row of claims."""

from tacit.claims.moroshko import (  # noqa: I001  (the order of the paper)
    kernel_prefix,
    long_time,
    regimes,
    condition,
    depth,
    numbers,
    open_question,
)

__all__ = [
    "condition",
    "depth",
    "kernel_prefix",
    "long_time",
    "numbers",
    "open_question",
    "regimes",
]
