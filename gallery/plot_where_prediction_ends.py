"""
Where the prediction before the data ends
=========================================

The equations are for Gaussian inputs in many dimensions. Random signs do as well; entries of heavy
tails need more dimensions, rows of unequal size never do, and at d = 50 draws spread over a decade.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, CYCLE, sheet, styled

KINDS = {
    "Gaussian": lambda rng, shape: rng.normal(size=shape),
    "random signs": lambda rng, shape: rng.choice([-1.0, 1.0], size=shape),
    "heavy-tailed entries": lambda rng, shape: rng.standard_t(3, size=shape) / np.sqrt(3),
    "rows of unequal size": lambda rng, shape: (
        rng.normal(size=shape) / np.sqrt(rng.chisquare(3, size=(shape[0], 1)))
    ),
}
law, sizes = penchant.Q(2, alpha=0.01), (50, 100, 200, 400)

with styled():
    picture, (axes,) = sheet("Where the prediction before the data ends", widths=(6,))
    for place, d in enumerate(sizes):
        truth, n = np.repeat([0.5, 0.0], [4, d - 4]), 3 * d // 10
        before = penchant.forecasts.population_error(
            law, samples=n, dimension=d, truth=truth, noise=0.1
        )
        band = before.low / before.error, before.high / before.error
        axes.fill_between([place - 0.4, place + 0.4], *band, color=BLACK, alpha=0.12)
        for k, (name, rows) in enumerate(KINDS.items()):
            rng, ratios = np.random.default_rng([d, k]), []
            for X in [rows(rng, (n, d)) for _ in range(30)]:
                beta = penchant.interpolate(X, X @ truth + 0.1 * rng.normal(size=n), law).beta
                ratios.append(((beta - truth) ** 2).sum() / before.error)
            low, middle, high = np.quantile(ratios, [0.05, 0.5, 0.95])
            axes.plot([place + 0.18 * (k - 1.5)] * 2, [low, high], color=CYCLE[k], linewidth=1.5)
            axes.plot(place + 0.18 * (k - 1.5), middle, "os^D"[k], color=CYCLE[k], label=name)
    axes.axhline(1.0, color=BLACK, linestyle="--", linewidth=1, label="as predicted")
    axes.set(yscale="log", xticks=range(len(sizes)), xticklabels=sizes)
    axes.set(xlabel="dimension $d$, with $N = 0.3 d$", ylabel="error of 30 draws / prediction")
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[-5:], names[-5:], loc="center left", bbox_to_anchor=(1.02, 0.5))
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "where_prediction_ends.png")
