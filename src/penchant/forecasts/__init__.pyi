"""What is said about a run before it ends."""

from penchant.forecasts.adam import adam_clock, adam_delay, adam_memory
from penchant.forecasts.population import (
    PopulationError,
    fewest_samples,
    largest_alpha,
    population_error,
)
from penchant.forecasts.runs import PredictedRun, predict_run
from penchant.forecasts.transition import LATER, Forecast
from penchant.forecasts.turning import STRIDE, kernel_regime_end, turning_window
from penchant.solvers.least_squares import Delay, predicted_delay
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
    "Forecast",
    "PopulationError",
    "PredictedRun",
    "adam_clock",
    "adam_delay",
    "adam_memory",
    "effective_regularizer",
    "fewest_samples",
    "forecast_jump",
    "kernel_regime_end",
    "largest_alpha",
    "population_error",
    "predict_run",
    "predicted_delay",
    "start_regularizer",
    "tilted_q",
    "turning_window",
]
