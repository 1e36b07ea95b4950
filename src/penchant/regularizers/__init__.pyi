"""What is small: norms and functions that theorems minimise and penalties add."""

from penchant.regularizers.custom import Custom, DerivativeMatch
from penchant.regularizers.derive.derived import Derived
from penchant.regularizers.layers import LayerSpectral
from penchant.regularizers.lp import Lp
from penchant.regularizers.norms import L1, L2, Linf, as_norm
from penchant.regularizers.penalty import Blocks, Penalty, PerTensor, Term
from penchant.regularizers.q import Q, R
from penchant.regularizers.regularizer import Regularizer
from penchant.regularizers.spectral import Frobenius, Nuclear, Schatten, Spectral, SpectralFunction

__all__ = [
    "L1",
    "L2",
    "Blocks",
    "Custom",
    "DerivativeMatch",
    "Derived",
    "Frobenius",
    "LayerSpectral",
    "Linf",
    "Lp",
    "Nuclear",
    "Penalty",
    "PerTensor",
    "Q",
    "R",
    "Regularizer",
    "Schatten",
    "Spectral",
    "SpectralFunction",
    "Term",
    "as_norm",
]
