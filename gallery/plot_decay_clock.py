"""
Decay passes through all scales
===============================

A regression is trained in its parameters under weight decay, from one large start. At time t its
predictor is the one that training without decay would select from the scale alpha e^(-rate t).
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, BLUE, GREY, sheet, styled

problem = penchant.problems.sparse_regression(
    samples=25, dimension=60, sparsity=3, noise=0.0, seed=1
)
net, rate = penchant.DiagonalNet(depth=2, alpha=10.0), 1e-4
z = np.linspace(0.2, 8, 40)  # rate t
flow = penchant.ParameterFlow(rtol=1e-6, weight_decay=rate)
stop, record = penchant.Time(z[-1] / rate), penchant.record.At(times=z / rate)
path = penchant.train(net, problem, flow, stop=stop, record=record).dataset
trained = path.predictor.values[np.searchsorted(path.t, z / rate * (1 - 1e-9))]
selected = penchant.solvers.interpolate_path(
    problem.X, problem.y, log_alphas=net.log_alpha - z
).beta

with styled():
    picture, (axes,) = sheet("One run follows the whole path from l2 to l1")
    axes.plot(z, trained[:, 3:], color=GREY, linewidth=0.6)
    axes.plot(z, trained[:, :3], color=BLUE)
    axes.plot(z[::3], selected[::3, :3], "o", color=BLACK, markersize=4)
    axes.plot([], [], color=BLUE, label="planted weights, trained with decay")
    axes.plot([], [], color=GREY, linewidth=0.6, label="all others")
    name = r"selected by $Q$ at $\alpha e^{-\lambda t}$"
    axes.plot([], [], "o", color=BLACK, markersize=4, label=name)
    axes.set(xlabel=r"time times decay, $\lambda t$", ylabel="weights", xlim=(0, 8.1))
    axes.legend(loc="upper left")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "decay_clock.png")
