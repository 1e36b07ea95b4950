"""Teacher and student: that a wrong penalty, wrong derivatives or a wrong law would be caught."""

import dataclasses
import math

import numpy as np
import pytest
import xarray

from figure_checks import assert_can_be_read, assert_readable
from penchant import L1, Adam, Steps, train
from penchant.lab.evidence.evidence import judge
from penchant.models import student
from penchant.problems import teacher_student
from penchant.record import LogSpaced
from penchant_papers.notsawo2025.figures import teacher_student as module

RIGHT = {
    "descent": -1.0,
    "Adam": -0.6,
    ("sparse", "l1"): True,
    ("smooth", "derivatives"): True,
    ("sparse", "none"): False,
    ("smooth", "none"): False,
    ("sparse", "l2^2"): False,
    ("dense", "l1"): False,
    ("smooth", "derivatives of other samples"): False,
}


def invented(size="printed", **wrong):
    """The datasets of the three studies, with made-up runs; `wrong` says what differs."""
    world = RIGHT | wrong.pop("world", {})
    attributes = {"title": "invented", "source": "none", "size": "tiny", "ours": ""}
    found = []
    for study in module.experiment.studies:
        table = study.at(size).arguments
        runs = [
            made_up({"beta": 0.0, **table["given"], **run}, world, **wrong) for run in table["runs"]
        ]
        names = {name: np.array([run[name] for run in runs]) for name in runs[0]}
        data = {name: (("run", "time")[: v.ndim], v) for name, v in names.items()}
        found.append(xarray.Dataset(data, attrs=attributes))
    return found


def made_up(run, world, t1=50.0):
    """A run that is solved at t1, and at t2 if its world says so."""
    step, pace = np.unique(np.round(np.logspace(0, 5, 201))), run["learning_rate"] * run["beta"]
    if run["method"] == "SGD":
        t2 = 1000 * (pace / 4e-4) ** world["descent"]
    else:
        finds = world[run["teacher"], run["penalty"]]
        t2 = 300 * (max(pace, 3e-5) / 3e-4) ** world["Adam"] if finds else math.nan
    test = np.where(step >= t2, 0.01, 1.0)
    late = math.isfinite(t2)
    return {
        **{name: run[name] for name in ("teacher", "penalty", "samples", "method", "beta")},
        "learning_rate": run["learning_rate"],
        "split": run["seed"],
        "hidden": run["sizes"][1],
        "t1": t1,
        "t2": t2,
        "kind": "grok" if late else "none",
        "final_error": test[-1],
        "best_error": test.min(),
        "trajectory_step": step,
        "trajectory_train": np.where(step < t1, 1.0, 1e-4),
        "trajectory_test": test,
    }


def status(**wrong):
    return judge(module.check(*invented(**wrong)))[0]


def test_runs_as_claimed_pass():
    assert status() == "holds"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((case, not found) for case, found in RIGHT.items() if isinstance(case, tuple)),
        ("descent", -1.25),
        ("descent", -0.75),
        ("Adam", 0.2),
        ("Adam", -1.0),
    ],
)
def test_every_wrong_world_is_refuted(name, value):
    assert status(world={name: value}) in ("fails", "inconclusive")


def test_training_that_is_not_solved_decides_nothing():
    evidence = module.check(*invented(t1=math.nan))
    assert judge(evidence)[0] == "inconclusive"
    assert not evidence.premises["training is solved in every run, including the controls"].holds


def test_the_growth_of_t2_is_the_least_one():
    def growth(*times):
        return module.least_growth(xarray.Dataset({"t2": ("run", np.array(times))}))

    assert growth(100.0, 300.0, 500.0) == pytest.approx(5 / 3)
    assert growth(500.0, 300.0, 100.0) < 1
    assert growth(100.0, math.nan) == 0


SMALL = {
    "samples": 20,
    "sizes": [6, 8, 2],
    "units": 1,
    "reads": 1,
    "width": 12,
    "steps": 300,
    "learning_rate": 0.02,
    "per_decade": 40,
    "method": "Adam",
    "seed": 0,
    "teacher": "sparse",
    "penalty": "l1",
    "beta": 0.1,
}


def test_a_cell_is_a_run_of_adam_and_t2_is_the_last_crossing_of_the_level():
    found = module.cell(0, runs=[{}], given=SMALL)
    data = teacher_student(20, 6, width=8, outputs=2, units=1, reads=1, seed=0, standard=True)
    problem = dataclasses.replace(data.training, test=data.test)
    rules = {"penalty": 0.1 * L1(), "stop": Steps(300), "record": LogSpaced(40)}
    model = student(12, 2, alpha=1.0, seed=100)
    path = train(model, problem, Adam(0.02), **rules)
    wanted = 2 * path.dataset.test_loss.values / (data.test.samples * data.variance)
    np.testing.assert_allclose(found["trajectory_test"], wanted, rtol=1e-12)
    for part, name in ((data.training, "train"), (data.test, "test")):
        mean = np.mean((model.predict(path.parameters, part.X) - part.y) ** 2)
        assert found[f"trajectory_{name}"][-1] == pytest.approx(mean / data.variance, rel=1e-10)
    step, test, t2 = found["trajectory_step"], found["trajectory_test"], found["t2"]
    if math.isfinite(t2):
        assert test[step > 1.2 * t2].max() < module.LEVEL < test[step < 0.8 * t2].max()
    assert found["final_error"] == wanted[-1]
    with pytest.raises(ValueError, match="unknown penalty 'l3'"):
        module.cell(0, runs=[{"penalty": "l3"}], given=SMALL)


def test_the_derivatives_of_other_samples_are_those_of_another_one():
    data = module._data(12, (3, 4, 2), 0)
    model = module._student(5, 2, 0)
    right, wrong = (module._penalty(name, data, model).slopes for name in module.PENALTIES[3:])
    assert (right == data.slopes).all()
    assert (wrong[2:] == right[:-2]).all()


def test_the_picture_marks_no_time_that_was_not_reached():
    data = invented()
    data[0].t2[0] = np.nan
    picture = module.experiment.picture(data)
    stars = [line.get_xdata() for line in picture.axes[0].lines if line.get_marker() == "*"]
    places = [place[0] for place in stars if len(place)]
    assert np.isnan(places[0])
    np.testing.assert_array_equal(places[1:], data[0].t2[1:3])


@pytest.mark.slow
def test_the_picture_can_be_read(data_of):
    assert_can_be_read(module.experiment.picture(data_of("N-F-ts", "quick")))


def test_the_full_size_shows_students_of_the_size_of_the_source():
    picture = module.experiment.picture(invented(size="printed"))
    assert_readable(picture)
    sparse, dense = picture.axes[4:]
    assert "100-500-2" in sparse.get_title(loc="left")
    assert sum("test error" in line.get_label() for line in sparse.lines) == 2
    assert "dense" in dense.get_title(loc="left")
