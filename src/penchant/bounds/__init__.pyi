"""The explicit bounds of published theorems: scales, radii, rates and steps as numbers."""

from penchant.bounds.exponential_loss import (
    largest_log_loss,
    largest_log_weight,
)
from penchant.bounds.penalized_descent import (
    ball_radius,
    contraction,
    dominated_steps,
    largest_step,
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
    "ball_radius",
    "contraction",
    "dominated_steps",
    "dual_edge",
    "l1_norm_edge",
    "l1_solution_edge",
    "l2_norm_edge",
    "l2_solution_edge",
    "largest_log_loss",
    "largest_log_weight",
    "largest_step",
    "not_l1_edge",
]
