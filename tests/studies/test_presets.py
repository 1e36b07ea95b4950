"""The studies that come with tacit: all can be read; those of W and M are their figures' runs."""

import math

import numpy as np
import pytest

import tacit.figures  # noqa: F401  registers the figures
from preset_cells import tiny, values
from tacit.claims.woodworth import network_runs, wide_net_runs
from tacit.figures import woodworth_f6c
from tacit.figures.registry import figures, make
from tacit.studies.adaptive.threshold import with_axis
from tacit.studies.cells import cells_of
from tacit.studies.compute import OK, compute
from tacit.studies.reading import preset_forms, presets, read_study
from tacit.studies.run import run_study
from tacit.studies.study import Study

OURS = [name for name in presets() if name.startswith(("W-", "M-"))]
IDS = [id for id in figures() if id.startswith(("W-", "M-"))]
# beside W-F6d stands W-F6d-kernel
OWNER = {name: max((id for id in IDS if name.startswith(id)), key=len) for name in OURS}
# W-F6c, W-F6d and W-F8: the file itself has digits, and this form the figure's own quick preset
IMAGES = {name: form for form in ("mnist", "cifar10") for name in OWNER
          if form in preset_forms()[name][1]}  # fmt: skip


def spaced(key, count, power=True):
    """The values of an axis that a figure has by its two ends and a count."""
    space = np.logspace if power else np.linspace
    return lambda p: space(*p[key], p[count])


def union(p):
    return sorted({alpha for alphas in p["alphas"].values() for alpha in alphas})


AXES = {
    "W-F5": {"alpha": spaced("log10_alphas", "alphas"),
             "k": lambda p: np.unique(np.rint(np.logspace(*p["log10_widths"], p["widths"])))},
    "W-F6ab": {"depth": lambda p: p["depths"], "scale": spaced("log10_scales", "scales")},
    "W-F6c": {"alpha": lambda p: p["alphas"], "step": lambda p: p["steps"]},
    "W-F6c-kernel": {"alpha": lambda p: p["alphas"]},
    "W-F6c-output": {},
    "W-F6d": {"alpha": lambda p: p["alphas"]},
    "W-F6d-kernel": {},
    "W-F6d-output": {},
    "W-F7": {"alpha": lambda p: p["alphas"], "scaling": lambda p: p["scalings"]},
    "W-F7d": {"scaling": lambda p: p["scalings"]},
    "W-F8": {"alpha": lambda p: p["alphas"]},
    "M-F1": {"mu": lambda p: p["mu"]},
    "M-F3": {"alpha": union, "curve_set": lambda p: list(p["alphas"])},
    "M-F4": {"alpha": union, "curve_set": lambda p: list(p["alphas"])},
    "M-F5": {"depth": lambda p: p["depths"], "start": spaced("log10_starts", "starts")},
    "M-F5a": {"depth": lambda p: p["depths"], "scale": lambda p: p["scales"]},
    "M-F6": {"alpha": union, "curve_set": lambda p: list(p["alphas"])},
    "M-F7": {"alpha": union},
    "M-F8": {"alpha": union, "curve_set": lambda p: list(p["alphas"])},
    "M-F9": {"depth": lambda p: p["depths"], "scale": lambda p: p["scales"]},
}  # fmt: skip
# arguments that a figure's preset calls by other names
RENAMED = {
    "W-F6c-kernel": {"step": lambda p: p["kernel_step"]},
    "W-F6c-output": {"step": lambda p: p["output_step"], "epochs": lambda p: p["output_epochs"]},
    "W-F6d-kernel": {"step": lambda p: p["kernel_step"], "alpha": lambda p: p["kernel_alpha"],
                     "whole": lambda p: False},
    "W-F6d-output": {"step": lambda p: p["output_step"]},
    "W-F7d": {"alpha": lambda p: p["plateau_alpha"]},
}  # fmt: skip


def axis(study, name):
    return next(list(axis.values) for axis in study.axes if axis.name == name)


# -- all of them can be read, in all forms --------------------------------------------------------


def test_every_preset_can_be_read_in_every_form():
    for name, (title, forms) in preset_forms().items():
        assert {"quick", "paper"} <= set(forms), name
        for form in forms:
            study = read_study(name, form)
            assert study.name == (name if form == "quick" else f"{name}-{form}")
            assert study.title == title
            assert math.prod(study.shape) >= 1
            # what is in the gathered file makes the same study again
            assert Study(**study.describe()).describe() == study.describe()


def test_a_preset_with_a_wrong_word_is_refused(tmp_path):
    text = """
    final = ["test_error"]
    problem = {is = "sparse_regression", samples = 10, dimension = 30, sparsity = 2}
    model = {is = "DiagonalNet", depth = 2}
    method = {is = "DualFlow"}
    grid.model.alpha = [0.1, 1.0]
    draw = {x = "alpha", colour = "test_error"}
    [forms.paper]
    """
    for right, wrong, complaint in (
        ("model.alpha", "model.alhpa", "did you mean alpha"),
        ('x = "alpha"', 'x = "alhpa"', "alhpa"),
        ("forms.paper", "forms.quick", "forms.quick is the file itself"),
    ):
        file = tmp_path / "broken.toml"
        file.write_text(text.replace(right, wrong))
        with pytest.raises(ValueError, match=complaint):
            read_study(file)


def test_every_figure_of_w_and_m_has_a_study():
    assert set(IDS) <= set(presets())


# -- with the figure's own parameters -------------------------------------------------------------


def disagreements(name, form, parameters):
    """What a study and a preset of its figure say differently."""
    study, wrong = read_study(name, form), []
    given = {**study.arguments, **(study.problem or {})}
    own = RENAMED.get(name, {})
    for key, value in given.items():
        known = own[key](parameters) if key in own else parameters.get(key, value)
        wrong += [] if value == known else [(key, value, known)]
    for key, wanted in AXES.get(name, {}).items():
        found, known = axis(study, key), list(wanted(parameters))
        if not isinstance(known[0], str) and len(found) == len(known):  # 10^x may differ by an ulp
            known = np.where(np.isclose(found, known, rtol=1e-14, atol=0.0), found, known).tolist()
        wrong += [] if found == known else [(key, found, known)]
    count = parameters.get("seeds")
    if isinstance(count, int) and study.seed_values is not None and name != "W-F1":
        wrong += [] if study.seed_values == tuple(range(count)) else [("seeds", study.seed_values)]
    return wrong


@pytest.mark.parametrize("name", sorted(OWNER))
def test_the_parameters_are_those_of_the_figure(name):
    known = figures()[OWNER[name]].presets
    assert disagreements(name, IMAGES.get(name, "quick"), known["quick"]) == []
    assert disagreements(name, "paper", known["paper"]) == []


def test_other_parameters_are_noticed():
    quick = {name: figures()[id].presets["quick"] for name, id in OWNER.items()}
    same = {name for name in OWNER if not disagreements(name, "paper", quick[name])}
    # both presets of these figures are one
    assert same == {"M-F1", "M-F2"}


# -- cells give what the figures have -------------------------------------------------------------

SPARSE = {"dimension": 120, "sparsity": 3, "noise": 0.05}


def test_functions_are_drawn_point_by_point():
    line = make("M-F1").accuracy.values.ravel()
    study = read_study("M-F1")
    for place in (0, 30, 200, 333, 602):
        assert values(study, place)["accuracy"] == line[place]


def test_trajectories_are_those_of_the_figures(tmp_path):
    small = {"points": 12, "end": 1e3, "least_end": 1e2}
    figure = make("M-F7", {**small, "alphas": {"M-F3c": [0.3, 3.0]}, "q_points": 3})
    found = run_study(tiny("M-F7", arguments=small, grid={"alpha": [0.3, 3.0]}), tmp_path, "here")
    curves = figure.trajectory.values
    assert (found.trajectory_excess.values == curves[..., 0]).all()
    assert (found.trajectory_excess_l2.values == curves[..., 1]).all()
    assert (found.excess_l2.values == curves[:, -1, 1]).all()
    assert (found.excess.values != curves[:, -1, 1]).all()
    assert (found.trajectory_smoothed_margin.values == figure.smoothed_margin.values).all()


def test_curves_along_the_accuracy_are_those_of_the_figures():
    small = {"log10_margins": [-1.0, 3.0], "points": 9}
    figure = make("M-F9", {**small, "depths": [2, 3]})
    study = tiny("M-F9", arguments=small, grid={"depth": [2, 3]})
    for place, (depth, scale) in enumerate(((2, 0.1), (2, 1.0), (3, 0.1), (3, 1.0))):
        found, curve = values(study, place), figure.sel(depth=depth, scale=scale)
        for name in ("excess_l1", "kernel_distance"):
            assert np.array_equal(found[f"trajectory_{name}"], curve[name].values, equal_nan=True)
        assert found["kernel_distance"] == float(curve.kernel_distance[-1])
        half = np.interp(math.log(found["departure"]), np.log(curve.smoothed_margin),
                         curve.kernel_distance)  # fmt: skip
        assert half == pytest.approx(found["kernel_distance"] / 2)
    assert found["departure"] != pytest.approx(values(study, 0)["departure"], rel=0.1)


def test_other_images_than_digits_belong_to_other_forms():
    for name, form in IMAGES.items():
        assert read_study(name).arguments["images"] == "digits"
        assert read_study(name, form).arguments["images"] == form
        assert read_study(name, "paper").arguments["images"] == form
    kernel = read_study("W-F6c-kernel", "mnist").arguments
    courses = woodworth_f6c.courses(figures()["W-F6c"].presets["quick"])
    for course in courses[14:21]:
        own = woodworth_f6c.course("kernel", course.alpha, kernel["step"], kernel["epochs"])
        assert own == course
    assert courses[21] == woodworth_f6c.course("output", 1.0, 0.5, 300) != courses[20]


# -- slower ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_seed_of_the_circle_is_one_that_the_figure_leaves_out():
    study = read_study("W-F6ab", "paper")
    depths = tuple(axis(study, "depth"))
    assert network_runs.fitting(3, depths, 1e-9) == read_study("W-F6ab").seed_values[:3]


@pytest.mark.slow
def test_a_run_on_digits_is_that_of_the_claims():
    small = {"train": 60, "width": 16, "batch": 30, "epochs": 3}
    found = values(tiny("W-F6c", arguments=small, grid={"alpha": [2.0], "step": [0.1]}))
    scene = wide_net_runs.Scene("digits", 60, 16, 30)
    run, other = (wide_net_runs.trained(scene, wide_net_runs.Course(alpha, 0.1, epochs=3), 0)
                  for alpha in (2.0, 3.0))  # fmt: skip
    assert (found["error"], found["turned"]) == (run.error, run.turned)
    assert found["turned"] != other.turned


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_the_last_cell_of_every_preset(name):
    study = read_study(name)
    plain = with_axis(study) if study.threshold else study
    result = compute(list(cells_of(plain, "test"))[-1].spec)
    assert result.status in OK, result.sentence
    dims = {key: value[0] for key, value in result.values.items() if isinstance(value, tuple)}
    assert not [key for key, own in dims.items() if f"{key}_0" in own], "an axis without a name"
    assert set(study.dims) <= set(dims)
    numbers = {key: value for key, value in result.values.items()
               if isinstance(value, float | int)}  # fmt: skip
    drawn = (study.draw or {}).get("colour")
    assert drawn in (None, "threshold") or math.isfinite(numbers[drawn])
    if study.threshold:
        assert study.threshold["measure"] in numbers
    if not (study.record or study.threshold):  # those have labels of their own
        assert [key for key in (*numbers, *dims) if key not in study.labels] == []
