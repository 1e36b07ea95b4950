"""The public names of penchant at the top, each with its home; `__init__.py` reads this file."""

from penchant.files import load, save
from penchant.forecasts.transition import forecast
from penchant.lab.studies.run import run
from penchant.lab.studies.study import Study
from penchant.lab.verification import verify
from penchant.models.diagonal import DiagonalNet
from penchant.models.factorization import Factorization
from penchant.models.function import FunctionModel
from penchant.plotting.results import plot
from penchant.problems.classification import Classification
from penchant.problems.regression import Regression
from penchant.records import NumericalError, Outcome
from penchant.regularizers.derive.derived import derive
from penchant.regularizers.norms import L1, L2
from penchant.regularizers.q import Q
from penchant.solvers.interpolate import interpolate
from penchant.solvers.max_margin import max_margin
from penchant.solvers.solution import Solution
from penchant.training.descent.methods import Adam, GradientDescent
from penchant.training.exact.dual.flow import DualFlow
from penchant.training.exact.parameter import ParameterFlow
from penchant.training.path import Path
from penchant.training.stop import Steps, Time
from penchant.training.train import train
from penchant.watch import watch

__all__ = [
    "L1",
    "L2",
    "Adam",
    "Classification",
    "DiagonalNet",
    "DualFlow",
    "Factorization",
    "FunctionModel",
    "GradientDescent",
    "NumericalError",
    "Outcome",
    "ParameterFlow",
    "Path",
    "Q",
    "Regression",
    "Solution",
    "Steps",
    "Study",
    "Time",
    "derive",
    "forecast",
    "interpolate",
    "load",
    "max_margin",
    "plot",
    "run",
    "save",
    "train",
    "verify",
    "watch",
]
__version__: str
