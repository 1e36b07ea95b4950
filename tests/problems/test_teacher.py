"""Teacher and student: the data, several outputs, derivatives, and held-out samples in a run."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant import L2, Adam, GradientDescent, Regression, Steps, train
from penchant.models import LinearPredictor, student, two_layer
from penchant.problems import separable_points, teacher_student
from penchant.problems.teacher import questions
from penchant.regularizers import DerivativeMatch
from refusals import refusals


def test_the_dense_teacher_is_the_law_of_the_source():
    data = teacher_student(30, test=40, seed=3)
    assert data.A.shape == (500, 100)
    assert data.B.shape == (2, 500)
    # variances of 50000 and 1000 Gaussian numbers: five standard deviations
    assert np.mean(data.A**2) == pytest.approx(1, abs=5 * np.sqrt(2 / 50000))
    assert np.mean(data.B**2) * 500**2 == pytest.approx(1, abs=5 * np.sqrt(2 / 1000))
    assert data.training.X.shape == (60, 101)
    assert data.test.X.shape == (80, 101)
    assert np.mean(data.test.X[:, :-1] ** 2) == pytest.approx(1, abs=5 * np.sqrt(2 / 4000))


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.data())
def test_a_sparse_teacher_uses_so_many_units_and_inputs(draw):
    hidden, inputs = draw.draw(st.integers(1, 9)), draw.draw(st.integers(1, 9))
    units, reads = draw.draw(st.integers(1, hidden)), draw.draw(st.integers(1, inputs))
    data = teacher_student(
        3,
        inputs,
        width=hidden,
        outputs=2,
        units=units,
        reads=reads,
        seed=draw.draw(st.integers(0, 99)),
    )
    read = (data.A != 0).sum(axis=1)
    assert sorted(read) == [0] * (hidden - units) + [reads] * units
    assert ((data.B != 0).all(axis=0) == (read > 0)).all()


def test_the_inputs_that_are_read_are_a_random_set():
    data = teacher_student(3, 20, width=40, outputs=1, reads=2)
    sets = {tuple(np.flatnonzero(row)) for row in data.A}
    assert len(sets) > 30
    assert {k for one in sets for k in one} == set(range(20))


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_labels_are_the_teacher_s_answers_one_by_one(outputs):
    data = teacher_student(5, 4, width=6, outputs=outputs, seed=2, test=7)
    for part, samples in ((data.training, 5), (data.test, 7)):
        assert part.samples == samples * outputs
        for n in range(part.samples):
            x, k = part.X[n, :4], n % outputs
            if outputs > 1:
                assert part.X[n, 4] == k
            by_hand = sum(data.B[k, j] * max(data.A[j] @ x, 0.0) for j in range(6))
            assert part.y[n] == pytest.approx(by_hand, rel=1e-12)
    x = data.training.X[:1, :4]
    assert data.outputs_at(x)[0] == pytest.approx(data.training.y[:outputs])


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_slopes_are_those_of_finite_differences(outputs):
    data = teacher_student(5, 4, width=6, outputs=outputs, seed=2)
    assert data.slopes.shape == data.training.X.shape
    X, h = data.training.X[::outputs, :4], 1e-6
    for i in range(4):
        ahead, behind = (data.outputs_at(X + s * h * np.eye(4)[i]).ravel() for s in (1, -1))
        np.testing.assert_allclose(data.slopes[:, i], (ahead - behind) / (2 * h), atol=1e-8)
    assert (data.slopes[:, 4:] == 0).all()  # nothing changes with the number of the output
    assert np.abs(data.slopes[:outputs] - data.slopes[outputs : 2 * outputs]).max() > 1e-3


def test_standard_labels_have_variance_one_and_the_same_shape():
    plain, standard = (
        teacher_student(20, 8, width=9, outputs=2, seed=4, standard=s) for s in (False, True)
    )
    assert standard.variance == pytest.approx(1, rel=1e-12)
    assert abs(plain.variance - 1) > 0.1
    np.testing.assert_allclose(standard.training.y, plain.training.y / np.sqrt(plain.variance))
    np.testing.assert_allclose(standard.slopes, plain.slopes / np.sqrt(plain.variance))


def test_a_share_is_a_mean_square_in_units_of_the_variance():
    data = teacher_student(20, 8, width=9, outputs=2, seed=4)
    answers = data.test.y.reshape(-1, 2)
    constant = ((answers - answers.mean(axis=0)) ** 2).sum() / 2
    assert data.share(constant, data.test) == pytest.approx(1, rel=1e-12)
    assert data.share(0.0, data.test) == 0


test_wrong_teachers_are_refused = refusals(
    (lambda: teacher_student(0), "samples must be at least 1"),
    (lambda: teacher_student(5, units=501), "units must be at most width=500, got 501"),
    (lambda: teacher_student(5, reads=0), "reads must be at least 1"),
    (lambda: teacher_student(5, reads=101), "reads must be at most dimension=100, got 101"),
    (lambda: teacher_student(5, outputs=1.5), "outputs must be an integer"),
    (lambda: teacher_student(5, test=1), "test must be at least 2"),
    (lambda: teacher_student(5, seed=-1), "seed must be at least 0"),
)


def test_a_student_with_the_teacher_s_weights_knows_everything():
    data = teacher_student(6, 4, width=5, outputs=3, seed=1)
    model = student(5, 3, alpha=1.0)
    theta = np.concatenate([data.A.ravel(), data.B.ravel()])
    np.testing.assert_allclose(model.predict(theta, data.test.X), data.test.y, rtol=1e-12)
    penalty = DerivativeMatch(model, data.training.X, data.slopes)
    np.testing.assert_allclose(penalty.derivatives(theta), data.slopes, atol=1e-12)
    assert float(penalty.value(theta)) < 1e-20
    shifted = DerivativeMatch(model, data.training.X, np.roll(data.slopes, 3, axis=0))
    assert float(shifted.value(theta)) > 1e-3  # at other samples they differ
    assert float(penalty.value(2 * theta)) > 1e-3


def test_with_one_output_the_student_is_the_two_layer_net():
    one, other = student(7, alpha=0.5, seed=3), two_layer(7, alpha=0.5, seed=3)
    assert (one.start(4) == other.start(4)).all()
    assert (student(7, 2, alpha=0.5, seed=3).start(5)[:28] == one.start(4)[:28]).all()
    assert student(7, 2, log_alpha=np.log(0.5), seed=3).start(5) == pytest.approx(
        student(7, 2, alpha=0.5, seed=3).start(5)
    )


def test_a_student_is_homogeneous_and_has_the_jacobian_of_finite_differences():
    model, rng = student(5, 2, alpha=1.0), np.random.default_rng(0)
    theta, X = model.start(4), questions(rng.standard_normal((3, 3)), 2)
    assert model.predict(3 * theta, X) == pytest.approx(3**model.homogeneity * model.predict(
        theta, X))  # fmt: skip
    h = 1e-6
    steps = h * np.eye(len(theta))
    slopes = [(model.predict(theta + e, X) - model.predict(theta - e, X)) / (2 * h) for e in steps]
    np.testing.assert_allclose(model.jacobian(theta, X), np.array(slopes).T, atol=1e-8)


test_wrong_students_are_refused = refusals(
    (lambda: student(0, alpha=1.0), "student: width must be at least 1"),
    (lambda: student(3, 2, alpha=1.0).start(1), r"2 outputs need rows \(x, k\) of at least 2 num"),
)


@pytest.mark.parametrize(
    ("method", "more"),
    [(Adam(0.01), {"penalty": 0.01 * L2()}), (GradientDescent(0.001), {"batch": 5})],
)
def test_the_loss_of_held_out_samples_is_recorded_and_changes_nothing(method, more):
    data = teacher_student(8, 4, width=5, outputs=2, seed=1, test=6)
    model = student(6, 2, alpha=1.0, seed=2)
    path, alone = (
        train(model, dataclasses.replace(data.training, test=t), method, stop=Steps(40), **more)
        for t in (data.test, None)
    )
    assert (path.parameters == alone.parameters).all()
    assert "test_loss" not in alone.dataset
    wanted = ((model.predict(path.parameters, data.test.X) - data.test.y) ** 2).sum() / 2
    assert float(path.dataset.test_loss[-1]) == pytest.approx(wanted, rel=1e-12)
    assert float(path.dataset.test_loss[0]) != pytest.approx(wanted, rel=1e-3)
    assert path.problem == dataclasses.replace(data.training, test=data.test)


def test_test_samples_without_a_recipe_are_stored():
    rng = np.random.default_rng(0)
    half = {"loss": "half squares"}
    seen, test = (Regression(rng.standard_normal((n, 3)), np.ones(n), **half) for n in (5, 4))
    problem = dataclasses.replace(seen, test=test)
    path = train(LinearPredictor(0.5), problem, Adam(0.01), stop=Steps(5))
    assert (path.dataset.X_test == test.X).all()
    assert (path.dataset.y_test == test.y).all()
    residual = test.X @ path.predictor - test.y
    assert float(path.dataset.test_loss[-1]) == pytest.approx(residual @ residual / 2)


def test_the_accuracy_on_held_out_labels_is_recorded():
    seen, test = (separable_points(20, 3, seed=s) for s in (0, 1))
    problem = dataclasses.replace(seen, test=test)
    path = train(LinearPredictor(0.1), problem, Adam(0.05), stop=Steps(50))
    right = np.mean(test.y * (test.X @ path.predictor) > 0)
    assert float(path.dataset.test_accuracy[-1]) == right


def test_test_samples_of_another_kind_are_refused():
    data = teacher_student(8, 4, width=5, outputs=1, test=6)
    with pytest.raises(ValueError, match=r"test must have .* 4 "):
        dataclasses.replace(data.training, test=Regression(np.ones((2, 3)), [1, 2]))
    with pytest.raises(ValueError, match="test must be a Regression too, got Classification"):
        dataclasses.replace(data.training, test=separable_points(5, 4))
