"""
A grok and a mirage
===================

A vector with five nonzero entries out of a hundred is measured thirty times. An l1 penalty finds it
late, at a time that is computed in advance. With the squared l2 penalty and a large start the error
also falls late, but only to a floor: the truth has a part outside the span of the measurements.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, BLUE, CYCLE, GREY, RED, sheet, styled

problem = penchant.problems.sparse_recovery(30, 100, sparsity=5, seed=4, snr=np.inf)
size, step, level = np.sum(problem.truth**2), 0.1, 1e-4
slow = penchant.solvers.slow_flow(problem.X, np.linalg.pinv(problem.X) @ problem.y)  # no training
tau = slow.reaches(problem.truth, np.sqrt(level * size))
floor = np.sum((problem.truth - slow.points[0]) ** 2) / size


def curves(penalty, start, steps):
    model, stop = penchant.models.LinearPredictor(start), penchant.Steps(steps)
    method = penchant.GradientDescent(step, subgradient=True)
    run = penchant.train(model, problem, method, penalty=penalty, stop=stop)
    data = run.dataset.isel(time=slice(1, None))
    return data.step, data.loss, data.test_error / size


with styled():
    picture, (left, right) = sheet("A grok and a mirage", widths=(5, 4), height=3.6)
    for beta, colour in zip((1e-3, 1e-4, 1e-5), CYCLE, strict=False):
        t, loss, error = curves(beta * penchant.L1(), 1e-6, int(3 * tau / (step * beta)))
        left.plot(t, error, color=colour, label=rf"$\beta = 10^{{{np.log10(beta):.0f}}}$")
        left.axvline(tau / (step * beta), color=colour, linestyle=":", linewidth=1.5)
    t_2, loss_2, error_2 = curves(1e-4 * penchant.L2(), 10.0, 10**6)
    left.plot([], [], ":", color=GREY, label="predicted")
    right.plot(t_2, error_2, color=RED, label="new data")
    right.plot(t_2, loss_2, "--", color=BLUE, label="training loss")
    right.axhline(floor, color=BLACK, linewidth=1, label="floor")
    for axes, shown in ((left, (t, loss, error)), (right, (t_2, loss_2, error_2))):
        kind = penchant.measures.grokking(*shown, level, floor=floor, error=True).kind
        axes.set(xscale="log", yscale="log", xlabel="step", title=f"`measures.grokking`: {kind}")
        axes.legend()
    left.set_ylabel(r"$|a - a^*|^2 / |a^*|^2$")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "any_regularizer.png")
