"""Numbers read off arrays: pure functions, no training."""

from tacit.probes.kernels import kernel_distance, kernel_predictor, tangent_kernel
from tacit.probes.norms import excess, norm_l1, norm_l2

__all__ = [
    "excess",
    "kernel_distance",
    "kernel_predictor",
    "norm_l1",
    "norm_l2",
    "tangent_kernel",
]
