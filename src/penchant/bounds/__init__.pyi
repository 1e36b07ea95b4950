"""The explicit bounds of published theorems."""

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
    "kernel_regime",
    "least_width",
    "misfit_rate",
    "wide_start_regime",
    "wishart_deviation",
]
