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

dimension, width = 10, 256
rng = np.random.default_rng(0)


def draw(count):
    rows = rng.normal(size=(count, dimension))
    return np.sqrt(dimension) * rows / np.linalg.norm(rows, axis=1)[:, None]


def target(rows):
    return np.abs(rows[:, 0]) - 0.8


def trained(alpha, X, seed):
    net = penchant.models.relu_net(
        2, width, alpha=alpha, start="gaussian", unbiased=True, seed=seed
    )
    path = penchant.train(
        net,
        penchant.Regression(X, target(X)),
        penchant.methods.TangentFlow(rtol=3e-2),
        stop=penchant.stop.Interpolated(1e-3),
        record=penchant.record.At(times=[]),
    )
    return np.mean((net.predict(path.parameters, test) - target(test)) ** 2)


kernel = penchant.measures.InfiniteKernel("relu", (width,))
pool, test = draw(700), draw(300)
few = [15, 60, 100]
many = [10, 15, 25, 40, 60, 80, 110]
predicted = [penchant.forecasts.kernel_error(kernel, pool, target(pool), n).error for n in many]
errors = {
    alpha: [[trained(alpha, draw(n), seed) for n in few] for seed in range(3)]
    for alpha in (3.0, 0.03)
}

with styled():
    picture, (axes,) = sheet("What features are worth", widths=(6.5,))
    axes.loglog(many, predicted, color=CYCLE[0], label="kernel phase, predicted before training")
    for colour, mark, (alpha, rows), name in zip(
        CYCLE[0::2], "os", errors.items(), ("kernel", "rich"), strict=False
    ):
        means, ends = np.mean(rows, axis=0), (np.min(rows, axis=0), np.max(rows, axis=0))
        label = rf"trained from $\alpha = {alpha:g}$: {name} phase"
        axes.errorbar(
            few, means, np.abs(ends - means), fmt=mark, color=colour, capsize=3, label=label
        )
    axes.set(xlabel="samples", ylabel="mean squared error on new inputs")
    axes.set_xticks(few, [str(n) for n in few])
    axes.minorticks_off()
    axes.legend(loc="lower left")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "what_features_are_worth.png")
