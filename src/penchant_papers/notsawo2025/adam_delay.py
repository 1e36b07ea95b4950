"""How long Adam waits: the time of its second moment, and the delay that follows from it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from penchant.lab import Array

SQUARE_DECAY = 0.999  # the default of Adam
# v <- b2 v once gradients vanish: sqrt(v) falls by a factor e in this many steps
MEMORY = -2 / math.log(SQUARE_DECAY)  # 1999


def adam_delay(step_beta: ArrayLike, c: float) -> Array:
    """t2 - t1 in steps: MEMORY log(1 + c / (MEMORY step_beta)).

    When training is solved sqrt(v) is some G and falls as G e^(-s / MEMORY). Parameters move by
    (MEMORY step beta h / G)(e^(s / MEMORY) - 1) in s steps; c is the distance they must move times
    G / h.
    """
    return MEMORY * np.log1p(c / (MEMORY * np.asarray(step_beta)))


def adam_clock(delays: ArrayLike) -> Array:
    """MEMORY (e^(s / MEMORY) - 1) for delays of s steps; in this unit they are c / (step beta)."""
    return MEMORY * np.expm1(np.asarray(delays) / MEMORY)
