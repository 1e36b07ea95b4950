"""A linear convolutional net on even inputs is a diagonal net on frequencies, at any scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import L1, L2, DiagonalNet, ParameterFlow, Regression, interpolate, train
from penchant.lab import Array, Dataset, Evidence, Experiment, Figure, at_most, sized
from penchant.models import convolutional_net, filters_predictor, frequency_net
from penchant.plotting import BLACK, CYCLE, sheet_of
from penchant_papers.beyond import OWN_RUNS
from penchant_papers.instances import distance

SAMPLES = 3
NEAR = 1e-5  # training is accurate to about 1e-7, and solvers to rounding
WRONG = {
    "to_equal": "frequencies that all count once",
    "to_l1": "least $\\ell_1$ norm of the frequencies",
    "to_l2": "least $\\ell_2$ norm",
}


def even_problem(seed: int) -> Regression:
    """Even rows, and targets of a predictor whose spectrum is positive."""
    rng = np.random.default_rng((seed, 3))
    dimension = 9 + seed % 2  # few shapes, for each is compiled
    X = rng.normal(size=(SAMPLES, dimension))
    X = (X + np.roll(X[:, ::-1], 1, axis=1)) / 2
    # were the only fit on the boundary of the positive spectra, no flow would end in finite time
    spectrum = 0.2 + rng.exponential(size=dimension // 2 + 1)
    return Regression(X, X @ np.fft.irfft(spectrum, dimension))


def end_of(rows: Array, y: Array, start: Array, depth: int) -> Array:
    """Where a diagonal net without negative weights ends."""
    net = DiagonalNet(depth, start=start, signed=False)
    return np.asarray(train(net, Regression(rows, y), ParameterFlow()).predictor)


def cell(depth: int, seed: int) -> dict[str, Any]:
    """The end of one net, and its distances to predictions."""
    problem = even_problem(seed)
    alpha = 10 ** np.random.default_rng((seed, depth)).uniform(-1.5, 0)
    net = convolutional_net(depth, alpha=alpha, start="impulse")
    path = train(net, problem, ParameterFlow(rtol=1e-9))
    end = filters_predictor(path.parameters, depth)
    seen = frequency_net(problem, depth, alpha=alpha)
    spectra, dimension = np.fft.rfft(problem.X).real, problem.dimension
    count = spectra.shape[1]
    appears = np.full(count, 2.0)
    appears[0] = 1.0
    appears[-1] = 2.0 if dimension % 2 else 1.0
    start = seen.net.start(count)
    equal = end_of(spectra * appears / dimension, problem.y, np.full(count, alpha), depth)
    # the sum over all frequencies counts a pair twice: the variable is m times its entry
    sums = interpolate(Regression(spectra / dimension, problem.y), L1()).beta
    return {
        "to_frequencies": distance(
            seen.predictor(end_of(seen.problem.X, problem.y, start, depth)), end
        ),
        "to_equal": distance(np.fft.irfft(equal, dimension), end),
        "to_l1": distance(np.fft.irfft(sums / appears, dimension), end),
        "to_l2": distance(interpolate(problem, L2()).beta, end),
        "fits": float(np.abs(problem.X @ end - problem.y).max() / np.abs(problem.y).max()),
    }


study = sized(
    "beyond-convolution",
    title="On even inputs a linear convolutional net is a diagonal net on frequencies",
    function=cell,
    grid={"depth": [2, 3]},
    seeds=12,
    labels={
        "depth": "number of filters",
        "to_frequencies": "distance of the end to that of the diagonal net on frequencies",
        **{name: f"the same for: {text}" for name, text in WRONG.items()},
    },
    draw={"x": "depth", "colour": "to_frequencies", "log": True},
    tiny={"grid": {"depth": [2]}, "seeds": 8},
    printed={"grid": {"depth": [2, 3, 4]}, "seeds": 100},
)


def check(dataset: Dataset) -> Evidence:
    """The largest distance to the prediction, and how far plausible others are."""
    near = at_most(float(dataset.to_frequencies.max()), NEAR)
    fits = float(dataset.fits.max())
    return Evidence(
        ran=f"{dataset.fits.size} regressions on even rows of 9 or 10 entries, {SAMPLES} samples, "
        f"nets of {dataset.depth.values.tolist()} filters from impulses of random size 0.03 to 1, "
        "trained by flow in the filters",
        checks={"largest relative distance of an end to that of the diagonal net": near},
        premises={"every net fits its data": (fits < 1e-8, fits)},
        controls={
            f"{text}: median distance": near.control(float(dataset[name].median()))
            for name, text in WRONG.items()
        },
        findings=[
            f"{text}: least distance {float(dataset[name].min()):.2g}"
            for name, text in WRONG.items()
        ],
    )


def draw(dataset: Dataset) -> Figure:
    """All distances, prediction by prediction."""
    picture, (axes,) = sheet_of(dataset, widths=(7,), height=4.4)
    names = {"to_frequencies": "diagonal net\non frequencies", **WRONG}
    for k, name in enumerate(names):
        for j, depth in enumerate(dataset.depth.values):
            values = dataset[name].sel(depth=depth).values
            label = f"{depth} filters" if k == 0 else None
            places = np.full(len(values), k + 0.15 * (j - 0.5))
            axes.semilogy(places, values, "os^"[j], color=CYCLE[j], alpha=0.6, label=label)
    axes.axhline(NEAR, color=BLACK, linestyle="--", linewidth=1.2, label="limit")
    lines = [text.replace(" that", "\nthat").replace(" of ", "\nof ") for text in names.values()]
    axes.set_xticks(range(len(names)), lines)
    axes.set(ylabel="relative distance of the end", xlabel="prediction")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return picture


experiment = Experiment(
    "beyond-convolution",
    statement=r"On even inputs a linear net of $D$ circular convolutions from impulses of size "
    r"$\alpha$ ends where a diagonal net of depth $D$ on frequencies ends, whose weights start at "
    r"$\alpha \sqrt{D m/d}$ for a frequency that appears $m$ times in $d$ entries.",
    place="Gunasekar et al. 2018 for vanishing starts; the law at every scale: ours",
    study=study,
    check=check,
    draw=draw,
    ours="the whole statement, the data and the scales",
    scope=OWN_RUNS,
    seconds=5,
)
