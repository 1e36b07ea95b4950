"""
Signs leave zero at once
========================

Gradient descent waits at the start of a deep diagonal net, and the smaller the start the longer.
Steps of signs do not: in their geometry zero is no saddle, and the potential has no corner.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, sheet, styled

rng = np.random.default_rng(1)
X = rng.uniform(0.5, 1.5, (1, 3))
problem, scales = penchant.Regression(X, [1.0]), (1e-1, 3e-2, 1e-2, 3e-3)
methods = {
    "gradient descent": penchant.GradientDescent(2e-3),
    "sign descent": penchant.methods.SignDescent(2e-3),
}

with styled():
    picture, (a, b, c) = sheet("Zero is a saddle for gradients, not for signs", widths=(4.0,) * 3)
    for axes, (name, method) in zip((a, b), methods.items(), strict=True):
        for colour, alpha in zip(CYCLE, scales, strict=False):
            net = penchant.DiagonalNet(3, alpha=alpha, signed=False)
            stop = [penchant.Steps(200_000), penchant.stop.Loss(1e-4)]
            path = penchant.train(net, problem, method, stop=stop).dataset
            axes.plot(path.t[1:], np.exp(path.log_loss[1:]), color=colour, label=f"{alpha:g}")
        axes.set(xscale="log", xlim=(1e-2, 200), ylim=(-0.03, 1.03), title=f"{name}, depth 3")
        axes.set(xlabel="training time", ylabel="loss")
    a.legend(title=r"start $\alpha$")
    beta = np.linspace(-2, 2, 201)
    geometries = {"gradients": penchant.L2(), "signs": penchant.regularizers.Linf()}
    for colour, (name, geometry) in zip(CYCLE, geometries.items(), strict=False):
        potential = penchant.derive(lambda w: w**3, start=0.02, geometry=geometry)
        size = np.array([potential([x]) for x in beta])
        c.plot(beta, size / size[-1], color=colour, label=name)
    c.set(xlabel=r"$\beta$ of one coordinate", ylabel="potential, 1 at 2")
    c.set_title("potentials, depth 3, signed pair")
    c.legend()
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "sign_descent.png")
