"""How parameters move: steps, exact flows, and what wraps them."""

from penchant.training.descent.effective_scale import EffectiveScale
from penchant.training.descent.held_norm import HeldNorm, HeldSweep, held_sweep
from penchant.training.descent.method import Descent, Observer, Oracle
from penchant.training.descent.methods import Adam, GradientDescent
from penchant.training.descent.proximal import Proximal
from penchant.training.descent.sam import SAM
from penchant.training.descent.scheduled import Scheduled
from penchant.training.descent.steepest import Muon, NormalizedDescent, SignDescent, SteepestDescent
from penchant.training.exact.central.flow import CentralFlow
from penchant.training.exact.dual.flow import DualFlow
from penchant.training.exact.matrices.flow import MatrixFlow
from penchant.training.exact.parameter import ParameterFlow
from penchant.training.exact.tangent import TangentFlow

__all__ = [
    "SAM",
    "Adam",
    "CentralFlow",
    "Descent",
    "DualFlow",
    "EffectiveScale",
    "GradientDescent",
    "HeldNorm",
    "HeldSweep",
    "MatrixFlow",
    "Muon",
    "NormalizedDescent",
    "Observer",
    "Oracle",
    "ParameterFlow",
    "Proximal",
    "Scheduled",
    "SignDescent",
    "SteepestDescent",
    "TangentFlow",
    "held_sweep",
]
