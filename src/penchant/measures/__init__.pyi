"""Numbers read off arrays, nets and curves."""

from penchant.measures.classifiers import (
    Stability,
    margin_shares,
    margins,
    stability,
    support_vectors,
)
from penchant.measures.curves import crossing
from penchant.measures.directions import angle, angles, azimuth_pitch
from penchant.measures.distances import gradient_distance, kernel_distance
from penchant.measures.excess import excess_norm, least_norm
from penchant.measures.fourier import FourierLosses, fourier_losses
from penchant.measures.homogeneity import Assumptions, assumptions
from penchant.measures.inequality.constant import Lojasiewicz, lojasiewicz, lojasiewicz_quadratic
from penchant.measures.kernels.infinite import InfiniteKernel, infinite_kernel
from penchant.measures.kernels.machines import KernelMachine, kernel_machine
from penchant.measures.kernels.mean import mean_kernel
from penchant.measures.kernels.numbers import effective_rank, kernel_alignment, participation_ratio
from penchant.measures.kernels.regression import KernelRegression, kernel_regression
from penchant.measures.kernels.tangent import tangent_kernel
from penchant.measures.kernels.turn import gradient_turn
from penchant.measures.kkt import kkt_residual
from penchant.measures.late_change import LATE_CHANGES
from penchant.measures.transition import Grokking, grokking
from penchant.problems.population import margin_accuracy

__all__ = [
    "LATE_CHANGES",
    "Assumptions",
    "FourierLosses",
    "Grokking",
    "InfiniteKernel",
    "KernelMachine",
    "KernelRegression",
    "Lojasiewicz",
    "Stability",
    "angle",
    "angles",
    "assumptions",
    "azimuth_pitch",
    "crossing",
    "effective_rank",
    "excess_norm",
    "fourier_losses",
    "gradient_distance",
    "gradient_turn",
    "grokking",
    "infinite_kernel",
    "kernel_alignment",
    "kernel_distance",
    "kernel_machine",
    "kernel_regression",
    "kkt_residual",
    "least_norm",
    "lojasiewicz",
    "lojasiewicz_quadratic",
    "margin_accuracy",
    "margin_shares",
    "margins",
    "mean_kernel",
    "participation_ratio",
    "stability",
    "support_vectors",
    "tangent_kernel",
]
