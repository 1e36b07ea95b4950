"""What theory selects, and its limits."""

from penchant.solvers.held_norm import held_best, held_ridge
from penchant.solvers.interpolation_path import InterpolationPath, interpolate_path
from penchant.solvers.least_squares import (
    descent_points,
    error_floor,
    least_squares_limit,
    memorization_steps,
    ridge_limit,
)
from penchant.solvers.limits.saddles import Saddles
from penchant.solvers.limits.slow_flow import SlowFlow, slow_flow
from penchant.solvers.margins.l1_set import l1_ends
from penchant.solvers.margins.path import MarginPath, RatchetPath, max_margin_path, ratchet_path
from penchant.solvers.margins.separation import Separation, separation
from penchant.solvers.matrices.interpolate import MatrixSolution
from penchant.solvers.scales import minimisers, recovery_scale
from penchant.solvers.solution import Solution, primal_residual
from penchant.solvers.splines import (
    cubic_spline,
    least_bend,
    least_weights,
    linear_spline,
)
from penchant.solvers.stationary import stationary_points
from penchant.training.exact.matrices.factor_twin import FactorTwin, factor_twin
from penchant.training.exact.matrices.greedy_rank import (
    GreedyRank,
    empty_factors,
    greedy_points,
)
from penchant.training.exact.saddles import saddles
from penchant.training.exact.tangent_twin import TangentTwin, tangent_twin

__all__ = [
    "FactorTwin",
    "GreedyRank",
    "InterpolationPath",
    "MarginPath",
    "MatrixSolution",
    "RatchetPath",
    "Saddles",
    "Separation",
    "SlowFlow",
    "Solution",
    "TangentTwin",
    "cubic_spline",
    "descent_points",
    "empty_factors",
    "error_floor",
    "factor_twin",
    "greedy_points",
    "held_best",
    "held_ridge",
    "interpolate_path",
    "l1_ends",
    "least_bend",
    "least_squares_limit",
    "least_weights",
    "linear_spline",
    "max_margin_path",
    "memorization_steps",
    "minimisers",
    "primal_residual",
    "ratchet_path",
    "recovery_scale",
    "ridge_limit",
    "saddles",
    "separation",
    "slow_flow",
    "stationary_points",
    "tangent_twin",
]
