"""
Is my network lazy?
===================

The accuracy of a net does not show that it is lazy; `penchant.watch` does (extras torch and data).
"""

import sys

import torch

import penchant
from penchant.plotting import BLUE, GREY, RED, end_label, sheet, styled

# A PyTorch net learns which digits are odd, from small pictures less their mean: once from a large
# start, which leaves the features as they are, and once from a small one.
images = penchant.problems.load_images("digits", train=500, flat=True)
middle, tensor = images.train_images.mean(axis=0), torch.tensor
X, y = tensor(images.train_images - middle), tensor(images.train_labels % 2)
X_test, y_test = tensor(images.test_images - middle), tensor(images.test_labels % 2)


# An ordinary loop of PyTorch. Three lines are added, and they are numbered: the watch, a look at
# every step, and what the watch has seen. `start` multiplies the weights and the biases of the
# first layer.
def train(start, step_size):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 200), torch.nn.ReLU(), torch.nn.Linear(200, 2))
    for weights, size in zip(model.parameters(), (start, start, 0, 0), strict=True):
        weights.data *= size  # the last layer begins at zero, and with it all outputs
    optimizer = torch.optim.SGD(model.parameters(), lr=step_size)
    watch = penchant.watch(model, X[:50], optimizer=optimizer, budget=None)  # line 1
    for step in range(1, 601):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(X), y).backward()
        optimizer.step()
        watch(step, test_accuracy=(model(X_test).argmax(dim=1) == y_test).float().mean())  # line 2
    return watch.regime.kind, watch.dataset.isel(time=slice(1, None))  # line 3


# On the left both nets end at nearly the same accuracy. On the right is how far their tangent
# kernels have moved since the start: the large start stays below the limit of the kernel regime, so
# its features are nearly those it began with.
with styled():
    picture, (score, moved) = sheet("Equally good, but one is lazy", widths=(3.3, 4.5), height=3.5)
    texts = (12, "kernel regime below", -8), (1, "rich above", 8)
    for limit, (x, text, shift) in zip(penchant.watch.DISTANCE_LIMITS, texts, strict=True):
        moved.axhline(limit, color=GREY, linestyle="--", linewidth=1)
        end_label(moved, x, limit, text, GREY, xytext=(2, shift))
    for start, (kind, seen), colour in ((10, train(10, 0.04), BLUE), (0.1, train(0.1, 0.5), RED)):
        score.plot(seen.call_step, seen.test_accuracy, color=colour)
        moved.plot(seen.step, seen.kernel_distance, color=colour, label=f"start × {start}: {kind}")
    score.set(xscale="log", xlabel="step", ylabel="test accuracy", ylim=(0.5, 1))
    moved.set(xscale="log", yscale="log", xlabel="step", ylabel="distance of the tangent kernel")
    moved.legend(loc="lower right")
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "is_my_network_lazy.png")
