"""
Derive your own regularizer
===========================

Write the map from weights to predictor as a function; `penchant.derive` follows its gradient line
and returns the function that training minimises. All curves are scaled to curvature 1 at zero.
"""

import sys

import jax.numpy as jnp
import numpy as np

import penchant
from penchant.plotting import CYCLE, sheet, styled

# A predictor F(w+) - F(w-) may have any map F of its weights. The identity trains as a linear model
# does; powers are deeper nets; the last one stands for any function of your own.
maps = {
    "$w$": lambda w: w,
    "$w^2$": lambda w: w**2,
    "$w^3$": lambda w: w**3,
    r"$\sinh w$": lambda w: jnp.sinh(w),
}
beta = np.linspace(-40, 40, 161)

# `derive` needs the map and the start, and returns the regularizer of each coefficient. The slower
# a curve grows, the less one large coefficient costs beside many small ones: that is what makes a
# bias sparse.
with styled():
    picture, (axes,) = sheet("Write the map, get the regularizer", widths=(6.6,))
    for colour, (name, map) in zip(CYCLE, maps.items(), strict=False):
        derived = penchant.derive(map, start=1.0)
        curvature = 1 / derived.slope(np.zeros(1))
        axes.plot(beta, derived.terms(beta) / curvature, color=colour, label=name)
    axes.set(ylim=(-10, 400), xlabel=r"predictor $\beta_i$ from $F(w_+) - F(w_-)$")
    axes.set_ylabel(r"derived regularizer / curvature at 0")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), title="$F(w)$, start 1")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "derive_your_own.png")
