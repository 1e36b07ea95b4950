"""
The error along the path
========================

An exact flow has the error of its integrator. `certify=True` repeats the run at ten times the
tolerance and bounds the error at every record: it peaks where weights switch on, a hundred times
above the tolerance of a step, and is forgotten where the data are fitted.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, CYCLE, sheet, styled

problem = penchant.problems.sparse_regression(samples=8, dimension=16, sparsity=2, seed=1)
net = penchant.DiagonalNet(depth=3, alpha=0.01)
flow = penchant.ParameterFlow(rtol=1e-6, certify=True)
path = penchant.train(net, problem, flow).dataset
times = path.t.values[1:-1]
exact = penchant.train(
    net,
    problem,
    penchant.DualFlow(rtol=1e-11),
    stop=penchant.Time(path.t.values[-1]),
    record=penchant.record.At(times=times),
).dataset
apart = np.abs(path.predictor.values - exact.predictor.values).max(axis=1)
true = apart / np.abs(exact.predictor.values).max()

with styled():
    picture, (axes,) = sheet("A tolerance is no error; two runs bound it", widths=(7.0,))
    axes.loglog(times, path.error[1:-1], color=CYCLE[0], label="certified error")
    axes.loglog(times, true[1:-1], color=CYCLE[1], label="true error (dual flow)")
    axes.axhline(1e-6, color=BLACK, linestyle="--", linewidth=1.0, label="tolerance of a step")
    axes.set(
        xlabel="training time $t$",
        ylabel="error over the largest weight",
        ylim=(1e-8, None),
        xlim=(1, None),
    )
    axes.legend()
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "error_along_the_path.png")
