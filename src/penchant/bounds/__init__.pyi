"""The explicit bounds of published theorems: scales, radii, rates and steps as numbers."""

from penchant.bounds.exponential_loss import (
    largest_log_loss,
    largest_log_weight,
)
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
    "largest_log_loss",
    "largest_log_weight",
    "not_l1_edge",
]
