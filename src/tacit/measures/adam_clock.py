"""The clock of Adam's second moment, in which a small slope moves parameters at an even pace."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import Array

SQUARE_DECAY = 0.999  # of Adam by default
# v <- b2 v once nothing is left to add: sqrt(v) falls by a factor e in so many steps
MEMORY = -2 / math.log(SQUARE_DECAY)  # 1999


def adam_delay(pace: ArrayLike, c: float) -> Array:
    """t2 - t1 in steps at pace = step beta: MEMORY log(1 + c / (MEMORY pace)).

    When training is solved sqrt(v) is some G, far above the slope beta h of the penalty, and falls
    as G e^(-s / MEMORY). Parameters move by step beta h / sqrt(v) in a step, hence by
    (MEMORY step beta h / G)(e^(s / MEMORY) - 1) in s steps; c is their way times G / h. That is
    c / pace while s is short against MEMORY. A way longer than MEMORY step takes longer, since
    no step of Adam is much larger than `step`.
    """
    return MEMORY * np.log1p(c / (MEMORY * np.asarray(pace)))


def adam_clock(delays: ArrayLike) -> Array:
    """MEMORY (e^(s / MEMORY) - 1) of s steps after t1: in this time a delay is c / (step beta)."""
    return MEMORY * np.expm1(np.asarray(delays) / MEMORY)
