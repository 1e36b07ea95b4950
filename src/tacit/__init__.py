"""tacit: a laboratory for the implicit bias of gradient descent."""

from tacit.bias.derive import Derived, derive
from tacit.bias.explicit import R
from tacit.bias.interpolate import InterpolationPath, interpolate, interpolate_path
from tacit.bias.margin_path import MarginPath, max_margin_path
from tacit.bias.max_margin import max_margin
from tacit.bias.norms import L1, L2, Lp
from tacit.bias.q import Q
from tacit.bias.ratchet import RatchetPath, ratchet_path
from tacit.bias.regularizer import Regularizer
from tacit.bias.separation import Separation, separation
from tacit.bias.solution import Solution
from tacit.bias.stationary import stationary_points
from tacit.claims.run import verify
from tacit.claims.verdict import Verdict, Verdicts
from tacit.flows.descent import GradientDescent
from tacit.flows.dual import DualFlow
from tacit.flows.normalized import NormalizedDescent
from tacit.flows.parameter import ParameterFlow
from tacit.flows.path import Path
from tacit.flows.stopping import LogLoss, Near, Scale
from tacit.models.diagonal import DiagonalNet
from tacit.models.linearized import Linearized
from tacit.models.product import ProductNet
from tacit.models.reparametrized import Reparametrized
from tacit.probes.directions import angle, azimuth_pitch
from tacit.probes.grokking import Grokking, grokking
from tacit.probes.kernels import kernel_distance, kernel_predictor, tangent_kernel
from tacit.probes.margins import margins, support_vectors
from tacit.probes.stability import Stability, stability
from tacit.problems.classification import Classification, separable_points, three_points
from tacit.problems.regression import Regression, sparse_regression
from tacit.records import NumericalError, Outcome
from tacit.store import load, save

__all__ = [
    "L1",
    "L2",
    "Classification",
    "Derived",
    "DiagonalNet",
    "DualFlow",
    "GradientDescent",
    "Grokking",
    "InterpolationPath",
    "Linearized",
    "LogLoss",
    "Lp",
    "MarginPath",
    "Near",
    "NormalizedDescent",
    "NumericalError",
    "Outcome",
    "ParameterFlow",
    "Path",
    "ProductNet",
    "Q",
    "R",
    "RatchetPath",
    "Regression",
    "Regularizer",
    "Reparametrized",
    "Scale",
    "Separation",
    "Solution",
    "Stability",
    "Verdict",
    "Verdicts",
    "angle",
    "azimuth_pitch",
    "derive",
    "grokking",
    "interpolate",
    "interpolate_path",
    "kernel_distance",
    "kernel_predictor",
    "load",
    "margins",
    "max_margin",
    "max_margin_path",
    "ratchet_path",
    "save",
    "separable_points",
    "separation",
    "sparse_regression",
    "stability",
    "stationary_points",
    "support_vectors",
    "tangent_kernel",
    "three_points",
    "verify",
]
__version__ = "0.1.0"
