"""The sweep over start and decay: its law, wrong sweeps, and a general integrator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.lyu2023.by_hand import descend
from penchant.lab import all_claims
from penchant.problems import majority
from penchant_papers.lyu2023 import sweep


@pytest.fixture
def run(data_of):
    return data_of("L-sweep")[0].isel(seed=0)


def flipped(dataset, name):
    """The runs with the values of one axis in the opposite order, where they are large."""
    large = dataset.norm >= sweep.LARGE if name == "norm" else dataset.rate > 0
    values = dataset[name].values.copy()
    values[large.values] = values[large.values][::-1]
    return dataset.assign_coords({name: values}).sortby(name)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda d: d.assign(kind=d.kind * 0), "large starts with decay"),
        (lambda d: flipped(d, "norm"), "neighbouring"),
        (lambda d: flipped(d, "rate"), "neighbouring"),
        (lambda d: d.assign(kind=d.kind.where(d.rate > 0, 3)), "without decay"),
        (lambda d: d.assign(kind=d.kind.where(d.norm > 1, 3)), "without decay"),
    ],
    ids=["none groks", "larger starts first", "smaller rates first", "no decay", "small start"],
)
def test_a_wrong_sweep_is_refuted(data_of, refuted, wrong, words):
    assert refuted("L-sweep", (wrong(data_of("L-sweep")[0]),), words)


def test_labels_of_other_samples_do_not_grok(monkeypatch):
    import dataclasses

    def shuffled(*args, **options):
        found = majority(*args, **options)
        order = np.random.default_rng(0).permutation(found.samples)
        return dataclasses.replace(found, y=found.y[order])

    given = all_claims()["L-sweep"].study.at("tiny").arguments
    assert sweep.LATE_CHANGES[sweep.cell(1e-2, 64.0, 0, **given)["kind"]] == "grok"
    monkeypatch.setattr(sweep, "majority", shuffled)
    assert sweep.LATE_CHANGES[sweep.cell(1e-2, 64.0, 0, **given)["kind"]] != "grok"


def test_a_small_start_generalizes_with_training_and_no_decay_not_in_time(run):
    small = run.sel(norm=0.3)
    assert (small.t2 < 1.5 * small.t1).all()
    still = run.sel(rate=0.0, norm=[64.0, 256.0])
    assert np.isinf(still.t2).all()
    assert np.isfinite(still.t1).all()
    assert (still.final < 0.8).all()
    assert float(still.end.min()) >= float(run.end.max()) * 0.99  # it was given as long


def test_generalization_waits_for_the_logarithm_of_the_start_over_the_decay(run):
    for rate in (1e-3, 1e-2):
        late = rate * run.t2.sel(rate=rate, norm=[64.0, 256.0]).values
        assert np.diff(late)[0] == pytest.approx(np.log(4), rel=0.05)
        assert np.diff(late)[0] != pytest.approx(np.log(4) / 2, rel=0.2)  # the control


def test_a_cell_against_a_general_integrator(run):
    problem, cell = majority(80, 150), run.sel(rate=1e-2, norm=64.0)
    t1, t2 = float(cell.t1), float(cell.t2)
    times = np.array([0.9 * t1, 1.1 * t1, 0.95 * t2, 1.05 * t2])
    thetas = descend(problem.signed_rows, 64.0, 1e-2, times)
    betas = thetas[:, :150] ** 2 - thetas[:, 150:] ** 2
    trust = np.mean(1 / (1 + np.exp(-betas @ problem.signed_rows.T)), axis=1)
    assert trust[0] < 0.95 < trust[1]
    right = [problem.population.accuracy(beta) for beta in betas]
    assert right[2] < 0.95 < right[3]


def test_confidence_is_the_mean_probability_of_the_right_label():
    assert sweep.confidence(np.array([0.0, np.log(3)])) == pytest.approx(0.625)
    assert sweep.confidence(np.array([[-2000.0, 2000.0]])) == pytest.approx([0.5])


@settings(max_examples=6, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_the_share_of_ordered_neighbours_by_counting(seed):
    delays = np.random.default_rng(seed).integers(0, 4, (2, 3, 4)).astype(float)
    count = total = 0
    for p, a, r in np.ndindex(delays.shape):
        for q, b, s in ((p, a + 1, r), (p, a, r + 1)):
            if b < 3 and s < 4:
                total += 1
                count += delays[q, b, s] > delays[p, a, r]
    assert sweep.ordered(delays) == pytest.approx(count / total)


def test_numbers_and_colours_of_the_picture_are_one_quantity(data_of):
    data = data_of("L-sweep")
    picture, dataset = all_claims()["L-sweep"].picture(data), data[0].isel(seed=0)
    grid, bar = picture.axes[0], picture.axes[-1]
    image, grok = grid.images[0], dataset.kind.values == sweep.LATE_CHANGES.index("grok")
    assert "t_2 - t_1" in bar.get_ylabel()
    assert grok.sum() > 3
    np.testing.assert_array_equal(np.ma.getmaskarray(image.get_array()), ~grok)
    texts = {text.get_position(): text.get_text() for text in grid.texts}
    for i, j in zip(*np.nonzero(grok), strict=True):
        delay = float(dataset.delay[i, j])
        assert image.get_array()[i, j] == delay
        digits, power = f"{delay:.1e}".split("e")
        front = "" if digits == "1.0" else rf"{digits} \times "
        assert texts[(j, i)] == rf"${front}10^{{{int(power)}}}$"
