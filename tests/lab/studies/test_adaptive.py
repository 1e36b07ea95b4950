"""Adaptive studies: bisection finds thresholds, refinement follows a boundary; both go on."""

import numpy as np
import pytest

import penchant
from penchant import Study
from penchant.lab.studies.adaptive.refine import on_lattice
from penchant.lab.studies.estimate import estimate
from recorder import Recorder

RULE = {"axis": "alpha", "between": [1e-3, 10.0], "measure": "error", "below": 0.5,
        "tolerance": 0.01}  # fmt: skip
LINES = {"name": "step", "function": "study_cells:step", "seeds": 2}


def test_bisection_finds_the_known_threshold_of_every_line(tmp_path):
    # more seeds than the bisected axis has ends, at which its study is checked
    study = Study(**{**LINES, "seeds": 3}, grid={"width": [0.5, 2.0]}, threshold=RULE)
    found = penchant.run(study, tmp_path)
    assert found.threshold.dims == ("width", "seed")
    truth = 0.1 * found.width * (1 + found.seed)
    assert (found.lower <= truth).all()
    assert (truth < found.upper).all()
    assert (found.upper / found.lower <= 1.01).all()
    assert (found.threshold == found.lower).all()  # the largest that passes
    assert (found.status == "solved").all()
    assert found.attrs["cells"] == int(found.trials.sum()) <= estimate(study, tmp_path / "n").cells
    np.testing.assert_array_equal(found.tried.isel(trial=0), 1e-3)
    assert penchant.load(tmp_path / "step.nc").identical(found)


def test_a_measure_that_must_be_large_gives_the_smallest_value(tmp_path):
    rule = {**RULE, "above": 0.5}
    del rule["below"]
    found = penchant.run(Study(**LINES, threshold=rule), tmp_path)
    assert (found.threshold == found.upper).all()
    assert (found.threshold > 0.1 * (1 + found.seed)).all()


@pytest.mark.parametrize(
    ("spacing", "between", "tolerance", "expected"),
    [("integer", [1, 100], 0.5, 33), ("linear", [0.0, 99.9], 0.01, 33.3)],
)
def test_other_spacings(tmp_path, spacing, between, tolerance, expected):
    rule = {"axis": "alpha", "between": between, "measure": "smooth", "below": 33.3,
            "spacing": spacing, "tolerance": tolerance}  # fmt: skip
    found = penchant.run(Study(**{**LINES, "seeds": None}, threshold=rule), tmp_path)
    assert float(found.threshold) == pytest.approx(expected, abs=tolerance)
    assert float(found.upper - found.lower) <= (1 if spacing == "integer" else tolerance)


def test_an_interrupted_bisection_goes_on_where_it_was(tmp_path):
    study = Study(**LINES, threshold=RULE)
    whole, first, second = Recorder(), Recorder(stop=7), Recorder()
    expected = penchant.run(study, tmp_path / "whole", progress=whole)
    with pytest.raises(KeyboardInterrupt):
        penchant.run(study, tmp_path / "cut", progress=first)
    assert penchant.run(study, tmp_path / "cut", progress=second).identical(expected)
    assert len(first.ended) + len(second.ended) == len(whole.ended)
    files = [(tmp_path / name / "step.nc").read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]


def test_lines_without_a_threshold_say_so(tmp_path):
    rule = {**RULE, "between": [1e-3, 0.15]}
    found = penchant.run(Study(**LINES, threshold=rule), tmp_path)
    assert list(found.status.values) == ["solved", "infeasible"]
    assert "error is 0 at 0.001 and 0 at 0.15: no threshold between" in found.sentence.values[1]
    assert np.isnan(found.threshold.values[1])
    rule = {**RULE, "axis": "a", "measure": "value", "between": [0.5, 1.0]}
    moody = Study(name="moody", function="study_cells:moody", threshold=rule)
    failed = penchant.run(moody, tmp_path)
    assert failed.status == "diverged"
    assert "at a = 1: loss 1e300 after 7 steps" in str(failed.sentence.values)


def test_bisection_of_a_real_flow(tmp_path):
    """The largest scale whose endpoint is sparse enough, against the solver of the theory."""
    data = {"samples": 8, "dimension": 16, "sparsity": 2, "seed": 1}
    study = Study(
        name="scale",
        problem={"is": "sparse_regression", **data},
        model={"is": "DiagonalNet"}, method={"is": "DualFlow", "rtol": 1e-8},
        stop={"is": "Interpolated", "relative": 1e-12}, final=["norm_l1"],
        threshold={"axis": "model.alpha", "between": [0.01, 1.0], "measure": "norm_l1",
                   "below": 1.5, "tolerance": 0.02},
    )  # fmt: skip
    found = penchant.run(study, tmp_path)
    problem = penchant.problems.sparse_regression(**data)
    ends = [
        np.abs(
            penchant.interpolate(problem.X, problem.y, penchant.Q(depth=2, alpha=float(a))).beta
        ).sum()
        for a in (found.lower, found.upper)
    ]
    assert ends[0] <= 1.5 < ends[1]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"axsi": 1}, "unknown key in threshold 'axsi'; did you mean"),
        ({"axis": 3}, "threshold.axis must be a name, got 3"),
        ({"axis": "alhpa"}, "unknown key in grid 'alhpa'; did you mean alpha"),
        ({"axis": "width"}, "threshold.axis 'width' is also in the grid"),
        ({"between": [1.0]}, r"threshold.between must be \[low, high\]"),
        ({"between": [0.0, 1.0]}, "must have 0 < low < high"),
        ({"spacing": "integer"}, "must be whole numbers"),
        ({"spacing": "logs"}, "unknown threshold.spacing 'logs'; did you mean log"),
        ({"above": 1.0}, "needs exactly one of below and above"),
        ({"tolerance": 0.0}, "threshold.tolerance must be > 0"),
    ],
)
def test_a_wrong_threshold_is_refused(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        Study(**LINES, grid={"width": [1.0]}, threshold={**RULE, **change})


def test_an_unknown_measure_stops_the_run(tmp_path):
    with pytest.raises(ValueError, match="unknown measure 'eror'; did you mean error"):
        penchant.run(Study(**LINES, threshold={**RULE, "measure": "eror"}), tmp_path)


CIRCLE = {"name": "circle", "function": "study_cells:boundary",
          "grid": {"x": {"linspace": [0, 2, 5]}, "y": {"linspace": [0, 2, 5]}}}  # fmt: skip


def test_refinement_follows_a_circle(tmp_path):
    table = {"measure": "distance", "level": 0.0, "rounds": 3}
    found = penchant.run(Study(**CIRCLE, refine=table), tmp_path)
    assert found.distance.shape == (33, 33)
    computed = (found.status == "solved").values
    assert computed[::8, ::8].all()  # the first grid
    assert computed.sum() < 0.45 * computed.size
    x, y = np.meshgrid(found.x, found.y, indexing="ij")
    inside = np.hypot(x, y) <= 1
    np.testing.assert_allclose(found.distance.values[computed], (np.hypot(x, y) - 1)[computed])
    # every pair of neighbours on both sides of the boundary was asked for, on the finest lattice
    for first, second in ((np.s_[1:, :], np.s_[:-1, :]), (np.s_[:, 1:], np.s_[:, :-1])):
        across = inside[first] != inside[second]
        assert across.any()
        assert (computed[first] & computed[second])[across].all()


def test_refinement_goes_on_with_more_rounds(tmp_path):
    table = {"measure": "distance", "level": 0.0, "rounds": 2}
    first, second, fresh = Recorder(), Recorder(), Recorder()
    penchant.run(Study(**CIRCLE, refine=table), tmp_path / "a", progress=first)
    finer = Study(**CIRCLE, refine={**table, "rounds": 3})
    grown = penchant.run(finer, tmp_path / "a", progress=second)
    alone = penchant.run(finer, tmp_path / "b", progress=fresh)
    assert len(first.ended) + len(second.ended) == len(fresh.ended)
    assert grown.identical(alone)


def test_an_axis_of_whole_numbers_stays_one():
    axes = {"x": [0, 10, 20], "y": {"linspace": [0, 1, 2]}}
    study = Study(**{**CIRCLE, "grid": axes}, refine={"measure": "distance", "level": 0.0})
    assert [axis.values for axis in on_lattice(study).axes] == [
        (0, 2, 5, 8, 10, 12, 15, 18, 20), (0.0, 0.25, 0.5, 0.75, 1.0),
    ]  # fmt: skip


def test_log_axes_are_split_in_their_logarithms(tmp_path):
    study = Study(name="step", function="study_cells:step", seeds=2,
                  grid={"alpha": {"geomspace": [1e-2, 1, 3]}},
                  refine={"measure": "error", "level": 0.4, "rounds": 1})  # fmt: skip
    found = penchant.run(study, tmp_path)
    np.testing.assert_allclose(found.alpha, np.geomspace(1e-2, 1, 5))
    # the mean over the seeds crosses 0.4 between 0.1 and 1 only
    assert list((found.status == "solved").all("seed").values) == [True, False, True, True, True]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"refine": {"mesure": "distance"}}, "unknown key in refine 'mesure'; did you mean"),
        ({"refine": {"measure": "d"}}, "refine.level must be a finite number, got None"),
        ({"grid": {"x": [2.0, 1.0], "y": [0.0, 1.0]}}, "two or more rising numbers in grid.x"),
        ({"grid": {"x": [1.0], "y": [0.0, 1.0]}}, "two or more rising numbers in grid.x"),
        ({"grid": {"x": [1, 2], "y": [0, 9]}}, "grid.x has too few whole numbers"),
        ({"threshold": RULE}, "give threshold or refine, not both"),
    ],
)  # fmt: skip
def test_a_wrong_refinement_is_refused(change, sentence):
    right = {**CIRCLE, "refine": {"measure": "distance", "level": 0.0}}
    Study(**right)
    with pytest.raises(ValueError, match=sentence):
        Study(**{**right, **change})
