"""
The direction of a small start
==============================

Two nets of depth 3 start at the same tiny scale and in two directions. Each follows its own list
of saddles, which `saddles` computes from growth times, and they end at two sparse solutions.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, CYCLE, sheet, styled

rng = np.random.default_rng(5)
X, y = rng.standard_normal((4, 7)) / 2, rng.standard_normal(4)
COLOURS = [*CYCLE, BLACK]
log_alpha, ahead = -8.0, np.ones(7)
first = penchant.solvers.saddles(X, y)
ahead[np.flatnonzero(first.end)[:2]] = 0.4  # two weights of the first solution start smaller
directions = {"equal starts": np.ones(7), "two weights start at 0.4 of the scale": ahead}

with styled():
    picture, panels = sheet(
        "The direction of a small start chooses the solution", widths=(5.6, 5.6)
    )
    for axes, (name, direction) in zip(panels, directions.items(), strict=True):
        growth = 1 / direction  # a^(2 - depth)
        path = penchant.solvers.saddles(X, y, growth=(growth, growth), depth=3)
        unit = np.exp(path.log_unit(log_alpha=log_alpha))
        times = np.geomspace(path.tau[1] / 2, 1.5 * path.tau[-1], 500)
        trained = penchant.train(
            penchant.DiagonalNet(depth=3, start=np.exp(log_alpha) * np.array([direction] * 2)),
            penchant.Regression(X, y),
            penchant.ParameterFlow(),
            stop=penchant.Time(times[-1] * unit),
            record=penchant.record.At(times=times * unit),
        ).dataset
        for i in np.flatnonzero(path.points.any(axis=0)):
            axes.plot(times, path.at(times)[:, i], color=COLOURS[i], linewidth=5, alpha=0.3)
            shown = trained.t / unit, trained.predictor[:, i]
            axes.plot(*shown, color=COLOURS[i], label=rf"$\beta_{i + 1}$")
        axes.plot([], [], color=BLACK, linewidth=5, alpha=0.3, label="predicted")
        axes.set(xscale="log", xlim=(times[0], times[-1]), title=name, ylabel=r"weights $\beta_i$")
        axes.set_xlabel(r"time $\tau = 3 \alpha t / 2$")
        axes.legend(loc=(0.72, 0.5), title="line: trained")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "growth_times.png")
