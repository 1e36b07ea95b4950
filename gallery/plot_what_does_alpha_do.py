"""
What does alpha do?
===================

A net of 100 ReLU units, started at alpha times the usual weights, learns 500 pictures of clothes
(Fashion-MNIST) without a mistake. With a large alpha its features hardly turn, and its test error
is larger. Most of that comes from the random outputs of the start, which `unbiased` subtracts.
"""

import sys

import penchant
from penchant.plotting import BLUE, RED, sheet, styled

try:
    images = penchant.problems.load_images("fashion-mnist", train=500, test=2000, flat=True)
except FileNotFoundError as reason:
    sys.exit(str(reason))  # it says how to get them
alphas = (0.1, 0.3, 1, 3, 10)


def trained(alpha, unbiased):
    """How far the gradients of the outputs have turned (0 to 1), and the test error, at the end."""
    net = penchant.models.dense_net((100,), alpha=alpha, unbiased=unbiased)
    method = penchant.GradientDescent(0.15 / max(alpha, 1) ** 2)
    stop = [penchant.stop.Epochs(1000), penchant.stop.Accuracy(train=1.0)]
    ends = penchant.record.At(epochs=[])
    path = penchant.train(net, images, method, batch=25, stop=stop, record=ends)
    probes, end = images.test_images[:40], path.parameters
    start, turned = net.start(images), penchant.measures.gradient_turn
    turn = turned(net.logits, start, end, probes, outputs="mean")
    print(f"alpha = {alpha:g}, unbiased {unbiased}: {path.outcome.sentence}")
    return turn, 1 - float(path.dataset.test_accuracy[-1])


with styled():
    title = "A large start keeps its features, and its random outputs"
    picture, panels = sheet(title, widths=(3.8, 3.8), height=3.5)
    for unbiased, colour, name in ((False, RED, "as drawn"), (True, BLUE, "outputs begin at zero")):
        curves = zip(*(trained(alpha, unbiased) for alpha in alphas), strict=True)
        for axes, curve in zip(panels, curves, strict=True):
            axes.plot(alphas, curve, "o-", color=colour, label=name)
            axes.set(xscale="log", xlabel=r"initial scale $\alpha$", ylim=(0, None))
    panels[0].set_ylabel("turn of the tangent features")
    panels[1].set_ylabel("test error")
    panels[1].legend(loc="upper left")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "what_does_alpha_do.png")
