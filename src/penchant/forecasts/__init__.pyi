"""What is said about a run before it ends."""

from penchant.forecasts.adam import adam_clock, adam_delay, adam_memory
from penchant.forecasts.delay import Delay, predicted_delay
from penchant.forecasts.inverse import Design, design
from penchant.forecasts.kernel_phase import KernelError, kernel_error
from penchant.forecasts.population.error import (
    PopulationError,
    best_alpha,
    fewest_samples,
    largest_alpha,
    population_error,
)
from penchant.forecasts.population.margin import (
    PopulationMargin,
    population_margin,
    separable_samples,
)
from penchant.forecasts.population.matrices import population_matrix_error
from penchant.forecasts.runs import PredictedRun, predict_run
from penchant.forecasts.transition import LATER, Forecast
from penchant.forecasts.turning import STRIDE, kernel_regime_end, turning_window
from penchant.training.descent.effective_scale import (
    effective_regularizer,
    start_regularizer,
    tilted_q,
)
from penchant.watch.prediction import forecast_jump

__all__ = [
    "LATER",
    "STRIDE",
    "Delay",
    "Design",
    "Forecast",
    "KernelError",
    "PopulationError",
    "PopulationMargin",
    "PredictedRun",
    "adam_clock",
    "adam_delay",
    "adam_memory",
    "best_alpha",
    "design",
    "effective_regularizer",
    "fewest_samples",
    "forecast_jump",
    "kernel_error",
    "kernel_regime_end",
    "largest_alpha",
    "population_error",
    "population_margin",
    "population_matrix_error",
    "predict_run",
    "predicted_delay",
    "separable_samples",
    "start_regularizer",
    "tilted_q",
    "turning_window",
]
