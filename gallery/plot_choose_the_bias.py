"""
Choose the bias of a run
========================

`design` computes a weight decay, and the step at which it ends, so that training from one start
ends at the minimiser of `Q` at a wanted scale. Every point is a run of such a recipe.
"""

import sys

import numpy as np

import penchant
from penchant.plotting import BLACK, CYCLE, sheet, styled

# The scale of the start sets the implicit bias, and so the error on new samples. Often the start
# cannot be chosen freely. Here one start is kept, and a weight decay that ends before the run does
# moves the bias.
problem = penchant.problems.sparse_regression(20, 50, sparsity=3, noise=0.05, seed=1)
alphas = np.geomspace(1e-4, 0.2, 25)

# The black line is what each bias is worth: the error of the minimiser of `Q` at that scale. For
# every fourth scale `design` writes a recipe, as arguments of `train`; scales that are out of reach
# are refused and left out. The marks are the ends of the runs. They lie on the line if the recipes
# do what they say.
with styled():
    picture, (axes,) = sheet("A recipe of training for every implicit bias")
    minimisers = [
        penchant.interpolate(problem, penchant.Q(2, alpha=alpha)).beta for alpha in alphas
    ]
    errors = [problem.population_error(beta) for beta in minimisers]
    axes.plot(alphas, errors, color=BLACK, label=r"minimiser of $Q_\alpha$")
    for k, steps in enumerate((2_000, 20_000)):
        ends = []
        for alpha in alphas[::4]:
            try:
                plan = penchant.forecasts.design(
                    problem, penchant.Q(2, alpha=alpha), steps=steps, method="decay"
                )
            except ValueError:  # says which scale is the nearest in reach
                continue
            path = penchant.train(**plan.arguments, record=penchant.record.At(steps=[steps]))
            ends.append((alpha, problem.population_error(path.predictor)))
        style = {"markersize": 10 - 4 * k, "label": f"recipes of {steps:,} steps"}
        axes.plot(*zip(*ends, strict=True), "so"[k], color=CYCLE[k], **style)
    start = float(np.exp(plan.model.log_alpha))
    plain = penchant.interpolate(problem, penchant.Q(2, alpha=start)).beta
    error = problem.population_error(plain)
    axes.axhline(error, color=BLACK, linestyle="--", label="the same start without decay")
    axes.set(xscale="log", yscale="log", xlabel=r"wanted scale $\alpha$ of the end")
    axes.set_ylabel(r"population error $\|\beta-\beta^*\|_2^2$")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "choose_the_bias.png")
