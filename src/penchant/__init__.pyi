"""The public names of penchant, each with its home; `__init__.py` reads this file."""

from penchant.files import load, save
from penchant.lab.evidence.verdict import Verdict, Verdicts
from penchant.lab.reading import read_study
from penchant.lab.studies.run import run_study
from penchant.lab.studies.study import Study
from penchant.lab.verify import verify
from penchant.measures.assumptions import Assumptions, assumptions
from penchant.measures.directions import angle, azimuth_pitch
from penchant.measures.forecast import Forecast, forecast, forecast_run, transition_time
from penchant.measures.grokking import Grokking, grokking
from penchant.measures.kernels.linearize import linearize
from penchant.measures.kernels.machines import KernelMachine, kernel_interpolant, kernel_svm
from penchant.measures.kernels.numbers import effective_rank, kernel_alignment, participation_ratio
from penchant.measures.kernels.regression import KernelRegression, kernel_regression
from penchant.measures.kernels.tangent import kernel_predictor, tangent_kernel
from penchant.measures.kernels.turn import gradient_turn
from penchant.measures.lojasiewicz.constant import Lojasiewicz, lojasiewicz, lojasiewicz_quadratic
from penchant.measures.margins import Stability, margin_shares, margins, stability, support_vectors
from penchant.models.diagonal import DiagonalNet, ProductNet
from penchant.models.factorization import (
    DifferenceFactorization,
    Factorization,
    SymmetricFactorization,
)
from penchant.models.function import FunctionModel
from penchant.models.image_net import ImageNet, conv_net, dense_net
from penchant.models.linear import LinearMatrix, LinearPredictor
from penchant.models.linearized import Linearized, OutputLayer
from penchant.models.matrix import DeepFactorization
from penchant.models.relu_net import relu_net
from penchant.models.reparametrized import Reparametrized
from penchant.models.tangent import gradient_distance, kernel_distance
from penchant.models.tokens.mlp import TokenMLP
from penchant.models.tokens.net import TokenNet
from penchant.models.tokens.transformer import TokenTransformer
from penchant.models.tokens.two_layer import TokenQuadratic, TwoTokenNet
from penchant.models.two_layer import student, two_layer
from penchant.models.unbiased import Difference, Unbiased
from penchant.models.univariate import univariate_relu
from penchant.plotting.paths import plot
from penchant.problems.arithmetic import modular_addition
from penchant.problems.circle import CircleTeacher, circle_teacher
from penchant.problems.classification import Classification, separable_points, three_points
from penchant.problems.images import Images, import_images, load_images
from penchant.problems.matrices import (
    coherent_completion,
    commuting_sensing,
    gaussian_sensing,
    low_rank_completion,
    multiplication_table,
)
from penchant.problems.matrix_problem import Completion, Sensing
from penchant.problems.operations import modular_arithmetic, permutation_group
from penchant.problems.population import majority, wide_margin
from penchant.problems.regression import Regression, sparse_recovery, sparse_regression
from penchant.problems.teacher import TeacherStudent, teacher_student
from penchant.records import NumericalError, Outcome
from penchant.regularizers.custom import Custom, DerivativeMatch
from penchant.regularizers.derive import Derived, derive
from penchant.regularizers.lp import Lp
from penchant.regularizers.norms import L1, L2, Linf
from penchant.regularizers.penalty import Blocks, Penalty, PerTensor
from penchant.regularizers.q import Q, R
from penchant.regularizers.regularizer import Regularizer
from penchant.regularizers.spectral import Frobenius, Nuclear, Schatten, Spectral
from penchant.solvers.interpolate import interpolate
from penchant.solvers.interpolation_path import InterpolationPath, interpolate_path
from penchant.solvers.least_squares import Delay, predicted_delay
from penchant.solvers.margins.path import MarginPath, RatchetPath, max_margin_path, ratchet_path
from penchant.solvers.matrices.interpolate import MatrixSolution
from penchant.solvers.max_margin import max_margin
from penchant.solvers.saddles import Saddles, saddles
from penchant.solvers.separation import Separation, separation
from penchant.solvers.slow_flow import SlowFlow, nuclear_slow_flow, slow_flow
from penchant.solvers.solution import Solution
from penchant.solvers.stationary import stationary_points
from penchant.training.descent.effective_scale import (
    EffectiveScale,
    effective_regularizer,
    predicted_endpoint,
)
from penchant.training.descent.held_norm import HeldNorm, HeldSweep, held_sweep
from penchant.training.descent.methods import Adam, GradientDescent
from penchant.training.descent.predict_run import PredictedRun, predict_run
from penchant.training.descent.proximal import Proximal
from penchant.training.descent.scheduled import Scheduled
from penchant.training.descent.steepest import Muon, NormalizedDescent, SignDescent, SteepestDescent
from penchant.training.exact.dual.flow import DualFlow
from penchant.training.exact.matrices.flow import MatrixFlow
from penchant.training.exact.matrices.greedy_rank import GreedyRank, greedy_rank
from penchant.training.exact.parameter import ParameterFlow
from penchant.training.exact.tangent import TangentFlow
from penchant.training.goals import Accuracy, Below, Near
from penchant.training.path import Path
from penchant.training.record import At, LogSpaced
from penchant.training.stop import Epochs, Interpolated, LogLoss, Loss, Scale, Steps, Time
from penchant.training.train import train
from penchant.watch import Watch, watch

__all__ = [
    "L1",
    "L2",
    "Accuracy",
    "Adam",
    "Assumptions",
    "At",
    "Below",
    "Blocks",
    "CircleTeacher",
    "Classification",
    "Completion",
    "Custom",
    "DeepFactorization",
    "Delay",
    "DerivativeMatch",
    "Derived",
    "DiagonalNet",
    "Difference",
    "DifferenceFactorization",
    "DualFlow",
    "EffectiveScale",
    "Epochs",
    "Factorization",
    "Forecast",
    "Frobenius",
    "FunctionModel",
    "GradientDescent",
    "GreedyRank",
    "Grokking",
    "HeldNorm",
    "HeldSweep",
    "ImageNet",
    "Images",
    "Interpolated",
    "InterpolationPath",
    "KernelMachine",
    "KernelRegression",
    "LinearMatrix",
    "LinearPredictor",
    "Linearized",
    "Linf",
    "LogLoss",
    "LogSpaced",
    "Lojasiewicz",
    "Loss",
    "Lp",
    "MarginPath",
    "MatrixFlow",
    "MatrixSolution",
    "Muon",
    "Near",
    "NormalizedDescent",
    "Nuclear",
    "NumericalError",
    "Outcome",
    "OutputLayer",
    "ParameterFlow",
    "Path",
    "Penalty",
    "PerTensor",
    "PredictedRun",
    "ProductNet",
    "Proximal",
    "Q",
    "R",
    "RatchetPath",
    "Regression",
    "Regularizer",
    "Reparametrized",
    "Saddles",
    "Scale",
    "Schatten",
    "Scheduled",
    "Sensing",
    "Separation",
    "SignDescent",
    "SlowFlow",
    "Solution",
    "Spectral",
    "Stability",
    "SteepestDescent",
    "Steps",
    "Study",
    "SymmetricFactorization",
    "TangentFlow",
    "TeacherStudent",
    "Time",
    "TokenMLP",
    "TokenNet",
    "TokenQuadratic",
    "TokenTransformer",
    "TwoTokenNet",
    "Unbiased",
    "Verdict",
    "Verdicts",
    "Watch",
    "angle",
    "assumptions",
    "azimuth_pitch",
    "circle_teacher",
    "coherent_completion",
    "commuting_sensing",
    "conv_net",
    "dense_net",
    "derive",
    "effective_rank",
    "effective_regularizer",
    "forecast",
    "forecast_run",
    "gaussian_sensing",
    "gradient_distance",
    "gradient_turn",
    "greedy_rank",
    "grokking",
    "held_sweep",
    "import_images",
    "interpolate",
    "interpolate_path",
    "kernel_alignment",
    "kernel_distance",
    "kernel_interpolant",
    "kernel_predictor",
    "kernel_regression",
    "kernel_svm",
    "linearize",
    "load",
    "load_images",
    "lojasiewicz",
    "lojasiewicz_quadratic",
    "low_rank_completion",
    "majority",
    "margin_shares",
    "margins",
    "max_margin",
    "max_margin_path",
    "modular_addition",
    "modular_arithmetic",
    "multiplication_table",
    "nuclear_slow_flow",
    "participation_ratio",
    "permutation_group",
    "plot",
    "predict_run",
    "predicted_delay",
    "predicted_endpoint",
    "ratchet_path",
    "read_study",
    "relu_net",
    "run_study",
    "saddles",
    "save",
    "separable_points",
    "separation",
    "slow_flow",
    "sparse_recovery",
    "sparse_regression",
    "stability",
    "stationary_points",
    "student",
    "support_vectors",
    "tangent_kernel",
    "teacher_student",
    "three_points",
    "train",
    "transition_time",
    "two_layer",
    "univariate_relu",
    "verify",
    "watch",
    "wide_margin",
]
__version__: str
