"""The views of `penchant explore`: what they show against other routes, and addresses."""

import contextlib
import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penchant
from penchant.explore.controls import Choice, Number
from penchant.explore.picture import Picture
from penchant.explore.state import LONGEST, State, read_state, write_state
from penchant.explore.views import grokking, regression, regularizer, sphere, theory_views

VIEWS = theory_views()


def curve(picture: Picture, panel: str, name: str):
    found = next(p for p in picture.panels if p.name == panel)
    return next(c for c in found.curves if c.name == name)


def states(view):
    """Values of the controls at both ends and in the middle, one at a time."""
    for control in view.controls:
        ends = (control.low, control.high) if isinstance(control, Number) else control.options
        yield from ({**view.start, control.name: value} for value in ends)


# --- pictures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_curves_keep_their_names_and_lengths_agree(view):
    names = [[c.name for c in p.curves] for p in view.picture(view.start).panels]
    for values in states(view):
        picture = view.picture(values)
        assert [[c.name for c in p.curves] for p in picture.panels] == names
        assert picture.sentence
        for panel in picture.panels:
            assert all(c.x.shape == c.y.shape and c.x.ndim == 1 for c in panel.curves)


def printed(code):
    """What a piece of Python prints."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(code, {})
    return stream.getvalue()


@pytest.mark.parametrize(
    ("view", "values", "name", "form"),
    [
        (regularizer.VIEW, {"depth": 3, "log10_mu": -2.5, "shape": 1.5}, "power", ".3f"),
        (regression.VIEW, {"depth": "3", "log10_alpha": -1.25, "shape": 2.0}, "error", ".3g"),
        (sphere.VIEW, {"points": "3d", "depth": "3", "log10_alpha": 0.25}, "nearest_l2", ".1f"),
    ],
    ids=["regularizer", "regression", "sphere"],
)
def test_the_code_of_a_view_prints_what_it_shows(view, values, name, form):
    picture = view.picture({**view.start, **values})
    assert (
        printed(view.python({**view.start, **values})).strip() == f"{picture.values[name]:{form}}"
    )
    assert printed(view.python(view.start)).strip() != f"{picture.values[name]:{form}}"


def test_the_code_of_grokking_forecasts_and_measures_the_same():
    values = {**grokking.VIEW.start, "log10_alpha": 1.0, "log10_decay": -2.0}
    picture = grokking.VIEW.picture(values)
    kind, jump = printed(grokking.python(values)).split()[-2:]
    assert kind == "grok"
    assert float(jump) == pytest.approx(picture.values["measured"], rel=0.03)  # other records


@pytest.mark.parametrize("depth", [2, 3, 7])
def test_the_ball_has_one_value_of_q(depth):
    shape = [1.0, 0.6]
    values = {"depth": depth, "log10_mu": -1.5, "shape": 0.6}
    ball = curve(regularizer.picture(values), "ball", "Q")
    q = penchant.Q(depth, mu=10**-1.5, shape=shape)
    found = [q(beta) for beta in zip(ball.x, ball.y, strict=True)]
    np.testing.assert_allclose(found, q([1.0, 0.0]), rtol=1e-5)
    wrong = penchant.Q(depth, mu=10**-1.5)  # the control: without the shape it is another ball
    assert np.ptp([wrong(beta) for beta in zip(ball.x, ball.y, strict=True)]) > 1e-2


@pytest.mark.parametrize(("depth", "mu", "name"), [(2, 1e6, "l2"), (5, 1e6, "l2"), (5, 1e-9, "l1")])
def test_q_comes_to_its_limits(depth, mu, name):
    shape = np.array([1.0, 0.7])
    q = penchant.Q(depth, mu=mu, shape=shape)
    limit = dict(zip(("l1", "l2"), regularizer.limits(depth, shape), strict=True))
    beta = np.array([[0.3, 1.1], [1.0, 0.0], [-0.2, 0.4]])
    ratio = q.terms(beta).sum(axis=1) / limit[name](beta).sum(axis=1)
    np.testing.assert_allclose(ratio / ratio[0], 1, rtol=1e-3)
    other = limit["l1" if name == "l2" else "l2"](beta).sum(axis=1)
    assert np.ptp(np.log(q.terms(beta).sum(axis=1) / other)) > 0.1


def test_the_end_of_regression_is_where_the_flow_goes():
    values = {**regression.VIEW.start, "samples": 20, "log10_alpha": -0.5, "shape": 2.0}
    setting = regression.setting_of(values)
    problem, start = regression.problem_of(setting), regression.start_of(setting)
    net = penchant.DiagonalNet(depth=2, alpha=10**-0.5, shape=start)
    path = penchant.train(
        net, problem, penchant.ParameterFlow(), stop=penchant.stop.Interpolated(1e-16)
    )
    beta = regression.end(setting, -0.5)
    np.testing.assert_allclose(beta, path.predictor, atol=1e-5)
    picture = regression.picture(values)
    assert picture.values["error"] == pytest.approx(problem.population_error(path.predictor), 1e-3)
    flat = regression.end((2, 1.0, *setting[2:]), -0.5)
    assert np.abs(flat - path.predictor).max() > 1e-2


def test_the_errors_along_alpha_pass_through_single_solutions():
    setting = (3, 1.0, 0.1, 30, 4)
    path, l1, _ = regression.errors(setting)
    problem = regression.problem_of(setting)
    for k in (3, 9, 16):
        q = penchant.Q(3, log_alpha=np.log(10) * regression.LOG10_ALPHAS[k])
        beta = penchant.interpolate(problem.X, problem.y, q).beta
        assert path[k] == pytest.approx(problem.population_error(beta), rel=1e-6)
    assert path[-1] == pytest.approx(l1, rel=1e-3)


@pytest.mark.parametrize(("points", "depth", "log10_alpha"), [("3b", 2, 1.0), ("3d", 3, 0.0)])
def test_the_trajectory_on_the_sphere_is_that_of_training_in_the_parameters(
    points, depth, log10_alpha
):
    shown = sphere.trajectory(points, depth, log10_alpha)
    problem, net = (
        penchant.problems.three_points(points),
        penchant.DiagonalNet(depth, alpha=10**log10_alpha),
    )
    margins = sphere.recorded_margins(depth, net.alpha)
    early = int(np.searchsorted(margins, 8.0))
    assert early > 8
    path = penchant.train(
        net, problem, penchant.ParameterFlow(rtol=1e-9), stop=penchant.stop.LogLoss(-8.0)
    ).dataset
    reached = path.smoothed_margin.values
    for k in range(early // 2, early, max(early // 8, 1)):
        at = [np.interp(margins[k], reached, path.predictor.values[:, i]) for i in range(3)]
        apart = penchant.measures.angle(sphere.directions(shown[k]), np.array(at))
        assert apart < 0.3, (k, apart)


def test_the_q_path_is_made_of_single_margins():
    problem = penchant.problems.three_points("3d")
    shown = sphere.directions(sphere.q_path("3d", 3))
    for k in (5, 20, 30):
        alone = penchant.max_margin(problem.X, problem.y, penchant.Q(3, mu=sphere.MUS[k])).beta
        assert penchant.measures.angle(shown[k], alone) < 1e-3
        other = penchant.max_margin(
            problem.X, problem.y, penchant.Q(3, mu=100 * sphere.MUS[k])
        ).beta
        assert k == 5 or penchant.measures.angle(shown[k], other) > 1e-2


def test_the_viewer_sees_the_near_side_only():
    view = sphere.viewer(30.0, 22.0)
    x, y = sphere.seen_by(np.array([[30.0, 22.0], [210.0, -22.0]]), view)
    np.testing.assert_allclose([x[0], y[0]], 0, atol=1e-12)
    assert np.isnan(x[1])
    image = sphere.ball("3b", 30.0, 22.0)
    assert image.dtype == np.uint32
    assert image[0, 0] >> 24 == 0  # a corner is outside of the ball, and clear
    assert image[len(image) // 2, len(image) // 2] >> 24 == 255


def test_grokking_is_predicted_and_measured_as_by_a_finer_run():
    key = ("majority", 1.0, -2.0)
    problem = penchant.problems.majority(grokking.SAMPLES, grokking.DIMENSION, seed=3)
    shown = grokking.run(*key)
    net, times = penchant.DiagonalNet(2, alpha=10.0), shown["t"]
    flow = penchant.DualFlow(rtol=1e-8, weight_decay=0.01)
    fine = penchant.train(
        net, problem, flow, record=penchant.record.At(times=tuple(times))
    ).dataset.isel(time=slice(1, None))
    np.testing.assert_allclose(shown["test_accuracy"], fine.test_accuracy, atol=0.01)
    np.testing.assert_allclose(shown["parameter_norm"], fine.parameter_norm, rtol=0.01)
    values = grokking.picture(dict(zip(grokking.VIEW.start, key, strict=True))).values
    assert values["predicted"] == pytest.approx(penchant.forecast(net, problem, 0.01).transition)
    measured = penchant.measures.grokking(fine.t, fine.train_accuracy, fine.test_accuracy)
    assert measured.kind == "grok"
    assert values["measured"] == pytest.approx(measured.jump, rel=0.02)


def test_without_a_prediction_the_run_and_the_reason_are_shown():
    picture = grokking.picture({"task": "majority", "log10_alpha": 0.0, "log10_decay": -0.5})
    assert "no transition to forecast" in picture.sentence
    assert len(curve(picture, "accuracy", "predicted").x) == 0
    assert len(curve(picture, "accuracy", "new samples").x) > 20


def test_grokking_under_a_strong_decay_is_predicted():
    key = {"task": "majority", "log10_alpha": 0.0, "log10_decay": -1.0}
    expected = grokking.predict_transition(*key.values())
    assert expected.low < grokking.picture(key).values["measured"] < expected.high


# --- addresses --------------------------------------------------------------------------------


def drawn(view):
    parts = {}
    for control in view.controls:
        if isinstance(control, Choice):
            parts[control.name] = st.sampled_from(sorted(control.options))
        else:
            count = round((control.high - control.low) / control.step)
            parts[control.name] = st.integers(0, count).map(
                lambda k, c=control: c.nearest(c.low + k * c.step)
            )
    return st.fixed_dictionaries(parts).map(lambda values: State(view.name, values))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.one_of([drawn(view) for view in VIEWS.values()]))
def test_an_address_gives_back_its_state(state):
    assert read_state(write_state(state, VIEWS), VIEWS) == state


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.text(max_size=80))
def test_any_text_is_a_state_or_a_sentence(text):
    try:
        name = read_state(text, VIEWS).view
    except ValueError as reason:
        name = str(reason).split()[0].rstrip(":")
    assert name in (*VIEWS, "explore")


HOSTILE = {
    "view=nowhere": "unknown view",
    "view=../../etc/passwd": "unknown view",
    "depth=99": "from 2 to 10",
    "depth=nan": "from 2 to 10",
    "log10_mu=1e999": "from -8 to 4",
    "log10_mu=-1&log10_mu=-2": "twice",
    "shape=__import__('os')": "from 0.5 to 2",
    "x=<script>alert(1)</script>": "unknown name in the address",
    "depth": "have the form",
    "%ff=%fe": "have the form",
    "depth=2&" + "&".join(f"k{i}=1" for i in range(50)): "have the form",
    "view=" + "a" * LONGEST: "too long",
    "view=regression&depth=" + "9" * 200: "unknown depth",
}


@pytest.mark.parametrize("query", HOSTILE, ids=lambda query: query[:24])
def test_a_hostile_address_is_refused_with_a_short_sentence(query):
    with pytest.raises(ValueError, match=r"^explore") as refusal:
        read_state(query, VIEWS)
    assert HOSTILE[query] in str(refusal.value)
    assert len(str(refusal.value)) < 300


def test_sliders_take_the_nearest_step():
    control = Number("a", "a", -1, 1, 0.25, 0)
    assert [control.read(text) for text in ("0.3", "-1", "1", "0.126")] == [0.25, -1, 1, 0.25]
    steps = [control.write(control.nearest(k / 7)) for k in range(-7, 8)]
    assert all(control.read(text) == float(text) for text in steps)
    assert len(set(itertools.chain(steps))) == 9
