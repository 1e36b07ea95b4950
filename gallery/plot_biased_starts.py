"""
Biased starts
=============

There are two weights and one sample, so the solutions are a line. With w+ != w- the flow starts
away from zero and ends where the derived regularizer predicts (crosses): at the Bregman projection
of the start.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, BLUE, RED, sheet, styled

starts = [(-1, 0), (-1, 0.75), (-0.5, -0.5), (0, 0), (0.5, -0.5), (1, 0), (1.5, -0.5)]
first = np.ravel(starts).astype(float)
X = np.kron(np.eye(len(starts)), [1.0, 2.0])  # one copy of the same problem for every start
problem = penchant.Regression(X, np.full(len(starts), 2.0))

with styled():
    title = "The flow ends at the solution nearest to its start, by its own measure"
    picture, panels = sheet(title, widths=(4.4, 4.4), height=4.4)
    for axes, mu, colour in zip(panels, (10.0, 0.01), (RED, BLUE), strict=True):
        size = np.hypot(first, 2 * mu)  # so that w+^2 - w-^2 is `first` and w+ w- is mu
        pair = np.sqrt((size + first) / 2), np.sqrt((size - first) / 2)
        net, stop = penchant.DiagonalNet(start=pair), penchant.stop.Interpolated(1e-12)
        path = penchant.train(net, problem, penchant.ParameterFlow(), stop=stop)
        end = penchant.interpolate(X, problem.y, penchant.derive(lambda w: w**2, start=pair)).beta
        axes.plot(*first.reshape(-1, 2).T, "o", color=colour, label="start")
        for curve in path.dataset.predictor.values.T.reshape(-1, 2, path.dataset.sizes["time"]):
            axes.plot(*curve, color=colour, linewidth=1.5)
        axes.plot(*end.reshape(-1, 2).T, "x", color=BLACK, markersize=8, label="predicted end")
        axes.plot([-1.5, 2.7], [1.75, -0.35], color=BLACK, linewidth=1, label="all solutions")
        axes.set_title(f"$w_+ w_- = {mu:g}$ at the start")
        axes.set(xlabel=r"$\beta_1$", ylabel=r"$\beta_2$", xlim=(-1.5, 2.7), ylim=(-0.9, 2.4))
        axes.legend(loc="upper right")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "biased_starts.png")
