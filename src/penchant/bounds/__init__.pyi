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
from penchant.bounds.wide_factors import (
    KernelRegime,
    kernel_regime,
    least_width,
    misfit_rate,
    wide_start_regime,
    wishart_deviation,
)

__all__ = [
    "KernelRegime",
    "ball_radius",
    "contraction",
    "dominated_steps",
    "dual_edge",
    "kernel_regime",
    "l1_norm_edge",
    "l1_solution_edge",
    "l2_norm_edge",
    "l2_solution_edge",
    "largest_log_loss",
    "largest_log_weight",
    "largest_step",
    "least_width",
    "misfit_rate",
    "not_l1_edge",
    "wide_start_regime",
    "wishart_deviation",
]
