"""tacit: a laboratory for the implicit bias of gradient descent."""

from tacit.bias.derive import Derived, derive
from tacit.bias.explicit import R
from tacit.bias.interpolate import InterpolationPath, interpolate, interpolate_path
from tacit.bias.norms import L1, L2, Lp
from tacit.bias.q import Q
from tacit.bias.regularizer import Regularizer
from tacit.bias.solution import Solution
from tacit.claims.run import verify
from tacit.claims.verdict import Verdict, Verdicts
from tacit.flows.descent import GradientDescent
from tacit.flows.dual import DualFlow
from tacit.flows.parameter import ParameterFlow
from tacit.flows.path import Path
from tacit.models.diagonal import DiagonalNet
from tacit.models.product import ProductNet
from tacit.models.reparametrized import Reparametrized
from tacit.probes.kernels import kernel_distance, kernel_predictor, tangent_kernel
from tacit.problems.regression import Regression, sparse_regression
from tacit.records import NumericalError, Outcome
from tacit.store import load, save

__all__ = [
    "L1",
    "L2",
    "Derived",
    "DiagonalNet",
    "DualFlow",
    "GradientDescent",
    "InterpolationPath",
    "Lp",
    "NumericalError",
    "Outcome",
    "ParameterFlow",
    "Path",
    "ProductNet",
    "Q",
    "R",
    "Regression",
    "Regularizer",
    "Reparametrized",
    "Solution",
    "Verdict",
    "Verdicts",
    "derive",
    "interpolate",
    "interpolate_path",
    "kernel_distance",
    "kernel_predictor",
    "load",
    "save",
    "sparse_regression",
    "tangent_kernel",
    "verify",
]
__version__ = "0.1.0"
