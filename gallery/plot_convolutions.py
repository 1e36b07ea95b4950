"""
Convolutions are diagonal nets on frequencies
=============================================

A linear net of two circular convolutions on even inputs, trained in its filters, and the diagonal
net on frequencies that it is: their spectra are the same at all times.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import CYCLE, sheet, styled

rng, dimension = np.random.default_rng(3), 13
X = rng.normal(size=(5, dimension))
X = (X + np.roll(X[:, ::-1], 1, axis=1)) / 2
spectrum = np.array([0.0, 2.0, 0.0, 1.2, 0.0, 0.6, 0.0])
problem = penchant.Regression(X, X @ np.fft.irfft(spectrum, dimension))
net = penchant.models.convolutional_net(2, alpha=1e-2, start="impulse")
seen = penchant.models.frequency_net(problem, 2, alpha=1e-2)
few, many = (penchant.record.LogSpaced(count) for count in (8, 40))
flow, stop = penchant.ParameterFlow(rtol=1e-7), penchant.Time(3000)
filters = penchant.train(net, problem, flow, stop=stop, record=few).dataset
twin = penchant.train(seen.net, seen.problem, flow, stop=stop, record=many).dataset
betas = [penchant.models.filters_predictor(w, 2) for w in filters.parameters.values]
trained = np.fft.rfft(betas, axis=1).real

with styled():
    picture, (axes,) = sheet("Convolutions are diagonal nets on frequencies", widths=(7.0,))
    for k in range(len(spectrum)):
        colour = CYCLE[k % len(CYCLE)]
        axes.plot(twin.t, twin.predictor[:, k] * seen.sizes[k], color=colour, label=f"{k}")
        axes.plot(filters.t, trained[:, k], "o", color=colour, markersize=4)
    axes.set(
        xscale="log", xlim=(0.1, None), xlabel="training time $t$", ylabel="spectrum of $\\beta$"
    )
    title = "frequency\nline: diagonal net\ndots: filters"
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), title=title)
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "convolutions.png")
