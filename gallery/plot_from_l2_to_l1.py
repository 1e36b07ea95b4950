"""
One regularizer from l2 to l1
=============================

The sets {Q(beta) = Q(e_1)} of a depth-2 diagonal network in two dimensions: a circle for large
starts, a diamond for vanishing ones. The exponents show how small a small start must be.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, sheet, styled

angle = np.linspace(0, 2 * np.pi, 401)
direction = np.array([np.cos(angle), np.sin(angle)])


def level_set(q):
    """Radii at which q(radius * direction) equals q at the first basis vector, by bisection."""
    low, high = np.full(angle.shape, 0.5), np.full(angle.shape, 1.5)
    for _ in range(50):
        radius = (low + high) / 2
        inside = sum(q.terms(radius * row) for row in direction) < q([1.0, 0.0])
        low, high = np.where(inside, radius, low), np.where(inside, high, radius)
    return radius


with styled():
    picture, (axes,) = sheet("The same network: a circle or a diamond", widths=(5.4,), height=4.0)
    for colour, exponent in zip(CYCLE, (1, -1, -2, -5, -1000), strict=False):
        radius = level_set(penchant.Q(depth=2, log_alpha=exponent * np.log(10)))
        label = rf"$\alpha = 10^{{{exponent}}}$"
        axes.plot(*(radius * direction), color=colour, label=label)
    ticks = {"xticks": [-1, 0, 1], "yticks": [-1, 0, 1]}
    axes.set(aspect="equal", xlabel=r"$\beta_1$", ylabel=r"$\beta_2$", **ticks)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "from_l2_to_l1.png")
