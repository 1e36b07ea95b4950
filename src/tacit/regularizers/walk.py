"""A point on the graph of b that moves by increments of the dual, so that small slacks survive."""

from __future__ import annotations

import abc

import numpy as np

from tacit.arguments import Array
from tacit.regularizers.regularizer import Regularizer


class Walk(abc.ABC):
    """beta = b(s) and the slope b'(s), at a dual s that moves by increments."""

    beta: Array
    slope: Array

    @abc.abstractmethod
    def moved(self, ds: Array) -> Walk:
        """The walk after s -> s + ds; beta is not finite where that leaves the domain of b."""


class PlainWalk(Walk):
    """The walk of any regularizer: s itself is kept."""

    def __init__(self, regularizer: Regularizer, s: Array) -> None:
        self.regularizer, self.s = regularizer, s
        with np.errstate(all="ignore"):  # outside its domain b may be anything
            self.beta, self.slope = regularizer.primal_of(s), regularizer.slope(s)

    def moved(self, ds: Array) -> PlainWalk:
        return PlainWalk(self.regularizer, self.s + ds)
