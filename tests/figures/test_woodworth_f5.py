"""W-F5: its cells against descent, its crossings against curves known by formula, its drawing."""

import numpy as np
import pytest
from tacit.figures.woodworth_f5 import MEASURES, crossing, turn

from tacit.figures import woodworth_f5
from tacit.figures.registry import draw, make
from tacit.models.factorization import Factorization
from tacit.problems.matrices import low_rank_completion

PARAMETERS = {"dimension": 4, "rank": 1, "samples": 11, "rtol": 1e-6, "loss": 1e-14}
SMALL = {
    "dimension": 6, "samples": 27, "seeds": 2, "alphas": 9, "widths": 2,
    "log10_widths": [1.0, 2.0], "log10_alphas": [-3.5, 0.0],
}  # fmt: skip


def cell(parameters, seed, alpha, k):
    found = woodworth_f5.cell(alpha, k, seed, **parameters)
    assert found["scale"] == pytest.approx(alpha**2 * (k or 1))
    return np.array([found[name] for name in MEASURES])


@pytest.fixture(scope="module")
def dataset():
    return make("W-F5", SMALL)


def test_a_cell_against_gradient_descent():
    problem = low_rank_completion(samples=11, dimension=4, rank=1, seed=2)
    model = Factorization(12, alpha=0.4, seed=2)
    start = w = model.start(16)
    for _ in range(8_000):
        slope = problem.adjoint(problem.apply(model.matrix(w)) - problem.y)
        w = w - 1e-2 * model.slope(w, slope)
    found, truth, hidden = model.matrix(w), problem.truth, ~problem.observed
    assert np.abs(problem.apply(found) - problem.y).max() < 1e-9

    def nuclear(M):
        return np.linalg.svd(M)[1].sum()

    excess = nuclear(found) - nuclear(truth)
    excess /= nuclear(truth * problem.observed) - nuclear(truth)
    moved = (found - model.matrix(start))[hidden]
    move = np.linalg.norm(moved) / np.linalg.norm(truth[hidden])
    # descent itself is off by the order of its step
    np.testing.assert_allclose(cell(PARAMETERS, 2, 0.4, 12), [excess, move], rtol=5e-3)
    assert np.abs(cell(PARAMETERS, 2, 0.5, 12) / [excess, move] - 1).max() > 0.05


def test_data_that_the_nuclear_norm_cannot_complete_are_refused():
    with pytest.raises(ValueError, match=r"seed 0 .* take more samples"):
        cell(PARAMETERS | {"samples": 10}, 0, 0.4, 12)


def test_wide_starts_tend_to_the_infinite_width():
    limit = cell(PARAMETERS, 0, 1.0, None)
    gaps = [np.abs(cell(PARAMETERS, 0, k**-0.5, k) - limit).max() for k in (100, 1_000_000)]
    assert gaps[1] < 0.02 < gaps[0]


@pytest.mark.parametrize("place", [0.03, 0.1])
def test_the_crossings_of_known_curves(place):
    alphas = np.logspace(-4, 2, 400)
    rising = 1 / (1 + (place / alphas) ** 2)
    half, width, _ = turn(alphas, rising, "excess")
    # x / (1 - x) = (alpha / place)^2 is 1/9 at 10 % and 9 at 90 %
    np.testing.assert_allclose([half, width], [place, np.log10(9)], rtol=1e-3)
    half, width, floor = turn(alphas, 1 - 0.6 * rising, "move")
    np.testing.assert_allclose([half, width, floor], [place, np.log10(9), 0.4], rtol=2e-3)
    assert np.isnan(crossing(alphas, rising, 2.0))
    assert np.isnan(crossing(alphas[300:], rising[300:], 0.1))


def test_the_dataset(dataset):
    assert dataset.excess.dims == ("k", "alpha")
    assert dataset.transition.dims == dataset.width.dims == ("measure", "k")
    np.testing.assert_allclose(dataset.scale, dataset.transition**2 * dataset.k)
    assert (dataset.excess.values[:, 0] < dataset.excess.values[:, -1]).all()
    # rich on the left: no excess (the least nuclear norm may be below that of the truth), and
    # what was hidden has moved as far as the truth
    assert dataset.excess.values[:, 0].max() < 0.1
    assert np.abs(dataset.move.values[:, 0] - 1).max() < 0.3
    # the scale of the transition, not alpha itself, is what two widths share
    scales = dataset.scale.sel(measure="excess").values
    assert 0.02 < scales.min() <= scales.max() < 5
    assert all(v.attrs.get("long_name") for v in dataset.data_vars.values())
    row = dataset.isel(k=1)
    again = turn(dataset.alpha.values, row.move_seeds.median("seed").values, "move")
    np.testing.assert_allclose(again[:2], [row.transition[1], row.width[1]])


def test_the_drawing_holds_the_data(dataset):
    picture = draw("W-F5", dataset)
    a, b = picture.axes[:2]
    drawn = a.collections[0].get_array()
    np.testing.assert_allclose(drawn, np.clip(dataset.excess, 0, 1))
    line = a.get_lines()[1]
    np.testing.assert_allclose(line.get_xdata() ** 2 * line.get_ydata(), 1)
    dots = b.get_lines()[2].get_xdata()
    np.testing.assert_allclose(dots, dataset.transition.sel(measure="move"))
    assert set(woodworth_f5.PRESETS) == {"quick", "paper"}
