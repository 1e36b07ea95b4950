"""
Jumps between saddles
=====================

Gradient flow from alpha = e^-1000, and the list of jumps that `saddles` computes without training.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, CYCLE, sheet, styled

rng = np.random.default_rng(3)
X, y = rng.standard_normal((5, 8)) / np.sqrt(5), rng.standard_normal(5)
found = penchant.solvers.saddles(X, y)
log_alpha, end = -1000.0, 1.4 * found.tau[-1]
unit = np.exp(found.log_unit(log_alpha=log_alpha))
times = np.geomspace(found.tau[1] / 2, end, 600)
path = penchant.train(
    penchant.DiagonalNet(depth=2, log_alpha=log_alpha),
    penchant.Regression(X, y),
    penchant.DualFlow(),
    stop=penchant.Time(end * unit),
    record=penchant.record.At(times=times * unit),
).dataset

with styled():
    picture, (axes,) = sheet("Training from a vanishing start is a list of jumps", widths=(7.0,))
    for colour, i in zip([*CYCLE, BLACK], np.flatnonzero(found.points.any(axis=0)), strict=False):
        axes.plot(times, found.at(times)[:, i], color=colour, linewidth=5, alpha=0.3)
        axes.plot(path.t / unit, path.predictor[:, i], color=colour, label=rf"$\beta_{i + 1}$")
    axes.plot([], [], color=BLACK, linewidth=5, alpha=0.3, label="predicted")
    axes.set(
        xscale="log",
        xlim=(times[0], end),
        xlabel=r"time $\tau = t / \log(1/\alpha)$",
        ylabel=r"weights $\beta_i$",
    )
    axes.set_xticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
    axes.minorticks_off()
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), title="line: trained")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "jumps_between_saddles.png")
