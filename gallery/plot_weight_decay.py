"""
Grokking, predicted
===================

Sixty corners of a cube are labelled by the majority of three of their 300 signs. Under weight decay
and from a large start, training first fits the samples and much later finds the majority. The time
follows from the predictors that smaller and smaller starts would select.
"""

import sys

import penchant
from penchant.plotting import BLACK, BLUE, GREEN, PALE, RED, sheet, styled

# The labels are the majority of three signs; the other 297 inputs say nothing. From a start at
# scale 20 the net is in the kernel regime. `forecast` reads the time of the change from the data,
# the start and the decay; only then `train` follows the flow itself.
problem = penchant.problems.majority(samples=60, dimension=300, seed=3)
net, rate = penchant.DiagonalNet(depth=2, alpha=20.0), 1e-4
forecast = penchant.forecast(net, problem, rate)  # before training
flow = penchant.DualFlow(rtol=1e-6, weight_decay=rate)
path = penchant.train(net, problem, flow).dataset
path = path.isel(time=slice(1, None))  # at t = 0 nothing is predicted

# The dashed and the dotted line are the accuracies of the two classifiers of largest margin, in
# $\ell_2$ and in $\ell_1$. The red line, new samples, first stays near the dashed one, and then
# climbs to the dotted one. Compare where it climbs with the green line and its band, which were
# there before training.
with styled():
    title = "First the kernel's classifier, then a better one"
    picture, (axes,) = sheet(title, widths=(6.6,), height=3.8)
    for norm, line in ((penchant.L2(), "--"), (penchant.L1(), ":")):
        level = problem.population.accuracy(penchant.max_margin(problem.X, problem.y, norm).beta)
        name = rf"$\ell_{type(norm).__name__[1]}$ max margin, new samples"
        axes.axhline(level, color=BLACK, linestyle=line, linewidth=1, zorder=5, label=name)
    axes.axvspan(forecast.low, forecast.high, color=PALE, zorder=0)
    axes.axvline(forecast.transition, color=GREEN, linewidth=1.5, label="forecast before training")
    axes.plot(path.t, path.train_accuracy, color=BLUE, label="training samples")
    axes.plot(path.t, path.test_accuracy, color=RED, label="new samples")
    axes.set(xscale="log", xlabel="training time", ylabel="accuracy", ylim=(0.5, 1.03))
    axes.set(xlim=(1e-2, float(path.t[-1])))
    axes.legend(loc="center left", bbox_to_anchor=(0, 0.56))
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "weight_decay.png")
