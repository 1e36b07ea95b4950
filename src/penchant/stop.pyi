"""When training stops."""

from penchant.training.goals import Accuracy, Below, Near
from penchant.training.stop import Epochs, Interpolated, LogLoss, Loss, Scale, Steps, Stop, Time

__all__ = [
    "Accuracy",
    "Below",
    "Epochs",
    "Interpolated",
    "LogLoss",
    "Loss",
    "Near",
    "Scale",
    "Steps",
    "Stop",
    "Time",
]
