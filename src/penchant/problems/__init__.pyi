"""What is to be learned: arrays and the truth behind them."""

from penchant.problems.circle import CircleTeacher, circle_teacher
from penchant.problems.classification import (
    Classification,
    separable_points,
    spiked_points,
    three_points,
    uniform_points,
)
from penchant.problems.completions import (
    coherent_completion,
    low_rank_completion,
    multiplication_table,
)
from penchant.problems.differences import TokenSelection, multiclass, token_selection
from penchant.problems.images.cache import has_images
from penchant.problems.images.importing import import_images
from penchant.problems.images.load import Images, load_images
from penchant.problems.matrix_problem import Completion, MatrixProblem, Sensing
from penchant.problems.operations import modular_arithmetic, permutation_group
from penchant.problems.population import majority, wide_margin
from penchant.problems.regression import (
    Regression,
    plateau,
    sparse_recovery,
    sparse_regression,
    steep_end,
    zigzag,
)
from penchant.problems.sensing import aligned_sensing, commuting_sensing, gaussian_sensing
from penchant.problems.teacher import TeacherStudent, opposed_units, teacher_student
from penchant.training.exact.task import Problem

__all__ = [
    "CircleTeacher",
    "Classification",
    "Completion",
    "Images",
    "MatrixProblem",
    "Problem",
    "Regression",
    "Sensing",
    "TeacherStudent",
    "TokenSelection",
    "aligned_sensing",
    "circle_teacher",
    "coherent_completion",
    "commuting_sensing",
    "gaussian_sensing",
    "has_images",
    "import_images",
    "load_images",
    "low_rank_completion",
    "majority",
    "modular_arithmetic",
    "multiclass",
    "multiplication_table",
    "opposed_units",
    "permutation_group",
    "plateau",
    "separable_points",
    "sparse_recovery",
    "sparse_regression",
    "spiked_points",
    "steep_end",
    "teacher_student",
    "three_points",
    "token_selection",
    "uniform_points",
    "wide_margin",
    "zigzag",
]
