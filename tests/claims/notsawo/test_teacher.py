"""N-F-ts: that a wrong penalty, wrong derivatives or a wrong law would be caught."""

import numpy as np
import pytest

from tacit.claims.evidence import judge
from tacit.claims.notsawo import teacher, teacher_runs
from tacit.claims.notsawo.courses import Course
from tacit.regularizers.norms import L1, L2


def refuted(size="quick"):
    """Whether the sabotaged experiment ran to its end and found something wrong."""
    evidence = teacher.teacher_and_student(size)
    assert evidence.checks
    return judge(evidence)[0] in ("fails", "inconclusive")


def made_up(t2, t1=50.0, left=0.01):
    """A course that is solved at t1 and t2."""
    step = np.unique(np.round(np.logspace(0, 5, 201)))
    train = np.where(step < t1, 1.0, 1e-4)
    return Course(step, train, np.where(step < t2, 1.0, left), teacher_runs.LEVEL)


@pytest.fixture
def told(monkeypatch):
    """The claim on made-up courses, which obey every check; `world` says what is true in them."""
    world = {"descent": -1.0, "adam": -0.6, "squared": False, "dense": False, "shuffled": False,
             "free": False, "l1": True, "derivatives": True}  # fmt: skip
    dense, wrong = teacher_runs.dense(0), [teacher_runs.derivatives(0, shuffled=True)]

    def finds(data, penalty):
        if penalty is None:
            return world["free"]
        if penalty in wrong:
            return world["shuffled"]
        if isinstance(penalty, L2):
            return world["squared"]
        if data is dense:
            return world["dense"]
        return world["l1" if penalty == L1() else "derivatives"]

    def taught(data, seed, penalty, beta, step=teacher_runs.STEP):
        pace = (beta or 0.1) * (step / teacher_runs.STEP)
        return made_up(300.0 * (pace / 0.1) ** world["adam"] if finds(data, penalty) else np.inf)

    def descended(seed, step, beta, reach):
        return made_up(1000 * (step * beta / 4e-4) ** world["descent"])

    monkeypatch.setattr(teacher_runs, "taught", taught)
    monkeypatch.setattr(teacher_runs, "descended", descended)
    return world


def test_the_claim_holds_on_courses_that_obey_it(told):
    assert judge(teacher.teacher_and_student("quick"))[0] == "holds"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("l1", False),
        ("derivatives", False),
        ("free", True),
        ("squared", True),
        ("dense", True),
        ("shuffled", True),
        ("descent", -1.2),
        ("descent", -0.85),
        ("adam", 0.2),
        ("adam", -1.0),
    ],
)
def test_every_wrong_world_is_refuted(told, name, value):
    told[name] = value
    assert refuted()


def test_training_that_is_not_solved_decides_nothing(told, monkeypatch):
    right = teacher_runs.taught

    def lazy(data, seed, penalty, beta, step=teacher_runs.STEP):
        return made_up(np.inf, t1=np.inf) if penalty is None else right(data, seed, penalty, beta)

    monkeypatch.setattr(teacher_runs, "taught", lazy)
    status, why = judge(teacher.teacher_and_student("quick"))
    assert status == "inconclusive"
    assert "training is solved" in why


def test_l1_groks_and_the_same_student_without_it_does_not():
    """The real runs, at the largest beta."""
    data = teacher_runs.sparse(0)
    with_l1 = teacher_runs.taught(data, 0, L1(), teacher_runs.BETAS[0])
    without = teacher_runs.taught(data, 0, None, 0.0)
    assert with_l1.verdict.kind == "grok"
    assert with_l1.left < 0.001
    assert without.verdict.kind == "none"
    assert without.verdict.t1 == pytest.approx(with_l1.verdict.t1, rel=0.2)
    assert without.left > 0.5


def test_derivatives_grok_and_those_of_other_samples_do_not():
    data, beta = teacher_runs.smooth(0), teacher_runs.BETAS[0]
    right = teacher_runs.taught(data, 0, teacher_runs.derivatives(0), beta)
    wrong = teacher_runs.taught(data, 0, teacher_runs.derivatives(0, shuffled=True), beta)
    assert right.verdict.kind == "grok"
    assert wrong.verdict.kind != "grok"
    assert wrong.left > 5 * right.left


def test_shuffled_derivatives_are_those_of_another_sample():
    right, wrong = teacher_runs.derivatives(0), teacher_runs.derivatives(0, shuffled=True)
    assert (wrong.slopes[1:] == right.slopes[:-1]).all()
    assert (wrong.slopes != right.slopes).any(axis=1).all()


def test_the_growth_of_t2_is_the_least_one():
    courses = [made_up(t) for t in (100, 300, 500)]
    times = [one.verdict.t2 for one in courses]
    assert teacher_runs.later(courses) == pytest.approx(times[2] / times[1])
    assert teacher_runs.later(courses[::-1]) < 1
    assert teacher_runs.later([courses[0], made_up(np.inf)]) == 0
