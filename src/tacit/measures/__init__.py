"""Numbers read off arrays: pure functions, no training."""

from tacit.measures.kernels.tangent import kernel_distance, kernel_predictor, tangent_kernel
from tacit.measures.norms import excess, norm_l1, norm_l2

__all__ = [
    "excess",
    "kernel_distance",
    "kernel_predictor",
    "norm_l1",
    "norm_l2",
    "tangent_kernel",
]
