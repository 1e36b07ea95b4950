"""The explicit bounds of published theorems."""

from penchant.bounds.scales import (
    dual_edge,
    l1_norm_edge,
    l1_solution_edge,
    l2_norm_edge,
    l2_solution_edge,
    not_l1_edge,
)

__all__ = [
    "dual_edge",
    "l1_norm_edge",
    "l1_solution_edge",
    "l2_norm_edge",
    "l2_solution_edge",
    "not_l1_edge",
]
