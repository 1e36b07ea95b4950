"""
What features are worth
=======================

The kernel of infinite width and a pool of inputs predict the error of a net in the kernel phase for
any number of samples, before training. Trained nets show the gap: from a large start they keep to
the prediction, from a small start they learn the one direction of the target.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, sheet, styled

rng = np.random.default_rng(0)
rows = rng.normal(size=(1600, 10))
rows *= np.sqrt(10) / np.linalg.norm(rows, axis=1)[:, None]
y = np.abs(rows[:, 0]) - 0.8
pool, test, few = slice(0, 700), slice(700, 1000), [15, 60, 100]
kernel, flow = (
    penchant.measures.InfiniteKernel("relu", (256,)),
    penchant.methods.TangentFlow(rtol=3e-2),
)
settings = {"stop": penchant.stop.Interpolated(1e-3), "record": penchant.record.At(times=[])}


def trained_error(alpha, samples, seed):
    net = penchant.models.relu_net(2, 256, alpha=alpha, start="gaussian", unbiased=True, seed=seed)
    own = rng.choice(np.arange(1000, 1600), samples, replace=False)
    path = penchant.train(net, penchant.Regression(rows[own], y[own]), flow, **settings)
    return np.mean((net.predict(path.parameters, rows[test]) - y[test]) ** 2)


many, error = [10, 15, 25, 40, 60, 80, 110], penchant.forecasts.kernel_error
predicted = [error(kernel, rows[pool], y[pool], samples=n).error for n in many]
with styled():
    picture, (axes,) = sheet("What features are worth", widths=(6.5,))
    axes.loglog(many, predicted, color=CYCLE[0], label="kernel phase, predicted before training")
    for colour, mark, alpha, name in (CYCLE[0], "o", 3.0, "kernel"), (CYCLE[2], "s", 0.03, "rich"):
        errors = [[trained_error(alpha, n, seed) for n in few] for seed in range(3)]
        lines = axes.plot(few, np.transpose(errors), mark, color=colour)
        lines[0].set_label(rf"trained from $\alpha = {alpha:g}$: {name} phase")
    axes.set(xlabel="samples", ylabel="mean squared error on new inputs")
    axes.set_xticks(few, few)
    axes.legend(loc="lower left")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "what_features_are_worth.png")
