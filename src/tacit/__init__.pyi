"""The public names of tacit, each with its home; `__init__.py` reads this file."""

from tacit.evidence.verdict import Verdict, Verdicts
from tacit.measures.assumptions import Assumptions, assumptions
from tacit.measures.directions import angle, azimuth_pitch
from tacit.measures.forecast import Forecast, forecast, forecast_run, transition_time
from tacit.measures.grokking import Grokking, grokking
from tacit.measures.kernels.linearize import linearize
from tacit.measures.kernels.machines import KernelMachine, kernel_interpolant, kernel_svm
from tacit.measures.kernels.numbers import effective_rank, kernel_alignment, participation_ratio
from tacit.measures.kernels.regression import KernelRegression, kernel_regression
from tacit.measures.kernels.tangent import kernel_predictor, tangent_kernel
from tacit.measures.kernels.turn import gradient_turn
from tacit.measures.lojasiewicz.constant import Lojasiewicz, lojasiewicz, lojasiewicz_quadratic
from tacit.measures.margins import Stability, margin_shares, margins, stability, support_vectors
from tacit.models.diagonal import DiagonalNet, ProductNet
from tacit.models.factorization import (
    DifferenceFactorization,
    Factorization,
    SymmetricFactorization,
)
from tacit.models.function import FunctionModel
from tacit.models.image_net import ImageNet, conv_net, dense_net
from tacit.models.linear import LinearMatrix, LinearPredictor
from tacit.models.linearized import Linearized, OutputLayer
from tacit.models.matrix import DeepFactorization
from tacit.models.relu_net import relu_net
from tacit.models.reparametrized import Reparametrized
from tacit.models.tangent import gradient_distance, kernel_distance
from tacit.models.tokens.mlp import TokenMLP
from tacit.models.tokens.net import TokenNet
from tacit.models.tokens.transformer import TokenTransformer
from tacit.models.tokens.two_layer import TokenQuadratic, TwoTokenNet
from tacit.models.two_layer import student, two_layer
from tacit.models.unbiased import Difference, Unbiased
from tacit.models.univariate import univariate_relu
from tacit.papers.reading import read_study
from tacit.papers.verify import verify
from tacit.plotting.paths import plot
from tacit.problems.arithmetic import modular_addition
from tacit.problems.circle import CircleTeacher, circle_teacher
from tacit.problems.classification import Classification, separable_points, three_points
from tacit.problems.images import Images, import_images, load_images
from tacit.problems.matrices import (
    coherent_completion,
    commuting_sensing,
    gaussian_sensing,
    low_rank_completion,
    multiplication_table,
)
from tacit.problems.matrix_problem import Completion, Sensing
from tacit.problems.operations import modular_arithmetic, permutation_group
from tacit.problems.population import majority, wide_margin
from tacit.problems.regression import Regression, sparse_recovery, sparse_regression
from tacit.problems.teacher import TeacherStudent, teacher_student
from tacit.records import NumericalError, Outcome
from tacit.regularizers.custom import Custom, DerivativeMatch
from tacit.regularizers.derive import Derived, derive
from tacit.regularizers.lp import Lp
from tacit.regularizers.norms import L1, L2, Linf
from tacit.regularizers.penalty import Blocks, Penalty, PerTensor
from tacit.regularizers.q import Q, R
from tacit.regularizers.regularizer import Regularizer
from tacit.regularizers.spectral import Frobenius, Nuclear, Schatten, Spectral
from tacit.solvers.interpolate import interpolate
from tacit.solvers.interpolation_path import InterpolationPath, interpolate_path
from tacit.solvers.least_squares import Delay, predicted_delay
from tacit.solvers.margins.path import MarginPath, RatchetPath, max_margin_path, ratchet_path
from tacit.solvers.matrices.interpolate import MatrixSolution
from tacit.solvers.max_margin import max_margin
from tacit.solvers.saddles import Saddles, saddles
from tacit.solvers.separation import Separation, separation
from tacit.solvers.slow_flow import SlowFlow, nuclear_slow_flow, slow_flow
from tacit.solvers.solution import Solution
from tacit.solvers.stationary import stationary_points
from tacit.store import load, save
from tacit.studies.run import run_study
from tacit.studies.study import Study
from tacit.training.descent.effective_scale import (
    EffectiveScale,
    effective_regularizer,
    predicted_endpoint,
)
from tacit.training.descent.held_norm import HeldNorm, HeldSweep, held_sweep
from tacit.training.descent.methods import Adam, GradientDescent
from tacit.training.descent.predict_run import PredictedRun, predict_run
from tacit.training.descent.proximal import Proximal
from tacit.training.descent.scheduled import Scheduled
from tacit.training.descent.steepest import Muon, NormalizedDescent, SignDescent, SteepestDescent
from tacit.training.exact.dual.flow import DualFlow
from tacit.training.exact.matrices.flow import MatrixFlow
from tacit.training.exact.matrices.greedy_rank import GreedyRank, greedy_rank
from tacit.training.exact.parameter import ParameterFlow
from tacit.training.exact.tangent import TangentFlow
from tacit.training.goals import Accuracy, Below, Near
from tacit.training.path import Path, load_path
from tacit.training.record import At, LogSpaced
from tacit.training.stop import Epochs, Interpolated, LogLoss, Loss, Scale, Steps, Time
from tacit.training.train import train
from tacit.watch import Watch, watch

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
    "load_path",
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
