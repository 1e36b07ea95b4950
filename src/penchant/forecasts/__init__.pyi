"""What is said about a run before it ends."""

from penchant.forecasts.runs import PredictedRun, predict_run
from penchant.forecasts.transition import LATER, Forecast
from penchant.forecasts.turning import STRIDE, meeting, window
from penchant.solvers.least_squares import Delay, predicted_delay
from penchant.training.descent.effective_scale import (
    effective_regularizer,
    started,
    tilted,
)
from penchant.watch.prediction import forecast_jump

__all__ = [
    "LATER",
    "STRIDE",
    "Delay",
    "Forecast",
    "PredictedRun",
    "effective_regularizer",
    "forecast_jump",
    "meeting",
    "predict_run",
    "predicted_delay",
    "started",
    "tilted",
    "window",
]
