"""`.plot()` of results, alone and together: what is drawn are their numbers."""

from __future__ import annotations

import functools
import io

import numpy as np
import pytest
from matplotlib.image import imread

import penchant
from penchant.plotting.results import KINDS


@functools.cache
def problem():
    return penchant.problems.sparse_regression(10, 20, sparsity=2)


@functools.cache
def labels():
    return penchant.problems.separable_points(6, 10, seed=1)


def interpolated(depth=2):
    return penchant.solvers.interpolate_path(problem(), depth=depth, log_alphas=[1.0, -3.0, -1.0])


MAKERS = {
    "InterpolationPath": interpolated,
    "MarginPath": lambda: penchant.solvers.max_margin_path(labels(), mus=[1.0, 0.1, 0.01]),
    "RatchetPath": lambda: penchant.solvers.ratchet_path(labels(), mus=[1.0, 0.1, 0.01]),
    "Saddles": lambda: penchant.solvers.saddles(problem()),
    "SlowFlow": lambda: penchant.solvers.slow_flow(problem(), np.ones(20)),
    "Solution": lambda: penchant.interpolate(problem(), penchant.L1()),
}


@functools.cache
def made(kind):
    return MAKERS[kind]()


def lines(axes):
    return [line.get_ydata() for line in axes.lines if len(line.get_ydata())]


@pytest.mark.parametrize("kind", MAKERS)
def test_a_result_draws_its_own_numbers(kind):
    result = made(kind)
    figure = result.plot()
    figure.draw_without_rendering()
    for panel, axes in zip(KINDS[kind].panels, figure.axes, strict=True):
        drawn = np.sort(np.concatenate(lines(axes)))
        own = np.concatenate([result.dataset[name].values.ravel() for name in panel])
        own = np.sort(own[np.isfinite(own)])
        # where steps are drawn the last value stays, and times of zero have no logarithm
        assert set(np.round(drawn, 12)) <= set(np.round(own, 12))
        assert len(drawn) >= len(own) / 2


@pytest.mark.parametrize("kind", MAKERS)
def test_a_result_is_saved_and_drawn_again_from_its_file(kind, tmp_path):
    result = made(kind)
    file = penchant.save(result, tmp_path / "result.nc")
    assert file == result.save(tmp_path / "result.nc")
    loaded = penchant.load(file)
    assert loaded.identical(result.dataset)
    again = penchant.plot(loaded)
    for axes, other in zip(result.plot().axes, again.axes, strict=True):
        for own, drawn in zip(lines(axes), lines(other), strict=True):
            np.testing.assert_array_equal(own, drawn)


@pytest.mark.parametrize("kind", MAKERS)
def test_several_results_are_drawn_together_by_their_labels(kind):
    figure = penchant.plot({"first": made(kind), "second": made(kind)})
    for axes in figure.axes:
        texts = [text.get_text() for text in axes.get_legend().get_texts()]
        assert {text.partition(",")[0] for text in texts} == {"first", "second"}
        colours = {line.get_color() for line in axes.lines}
        assert len(colours) == 2


def table(columns):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, columns)) * np.linspace(1, 3, columns)
    return pandas.DataFrame(X, columns=[f"name {k}" for k in range(columns)])


@pytest.mark.parametrize(("columns", "drawn"), [(20, 20), (60, 24)])
def test_coefficients_of_a_table_stand_beside_each_other_with_names(columns, drawn):
    X = table(columns)
    problem = penchant.Regression(X, X["name 0"] - X["name 5"])
    first = penchant.interpolate(problem, penchant.Q(depth=3, alpha=0.01))
    second = penchant.interpolate(problem, penchant.L2())
    axes = penchant.plot({"depth 3": first, "ridgeless": second}).axes[0]
    texts = [label.get_text() for label in axes.get_xticklabels()]
    largest = np.argsort(-np.maximum(abs(first.beta), abs(second.beta)))[:drawn]
    order = largest if drawn < columns else np.arange(columns)
    assert texts == [f"name {k}" for k in order]
    for heights, solution in zip(lines(axes)[:2], (first, second), strict=True):
        np.testing.assert_array_equal(heights, solution.beta[order])
    left, right = (line.get_xdata() for line in axes.lines[:2])
    assert (left < right).all()


def test_a_fitted_estimator_is_drawn_beside_a_solution():
    linear = pytest.importorskip("sklearn.linear_model")
    X = table(20)
    y = X["name 0"] - X["name 5"]
    lasso = linear.Lasso(alpha=0.1, fit_intercept=False).fit(X, y)
    solution = penchant.interpolate(penchant.Regression(X, y), penchant.Q(depth=3, alpha=0.01))
    (axes,) = penchant.plot({"depth 3": solution, "Lasso": lasso}).axes
    np.testing.assert_array_equal(lines(axes)[1], lasso.coef_)
    assert axes.get_xticklabels()[5].get_text() == "name 5"
    assert len(penchant.plot(lasso).axes) == 1
    with pytest.raises(ValueError, match=r"a fitted estimator with `coef_`.*; got Lasso"):
        penchant.plot(linear.Lasso())


def test_the_datasets_have_the_numbers_of_the_results():
    path = interpolated()
    np.testing.assert_array_equal(path.dataset.norm_l1, np.abs(path.beta).sum(axis=1))
    np.testing.assert_allclose(10**path.dataset.log10_alpha, np.exp(path.log_alphas))
    margins = made("MarginPath")
    np.testing.assert_allclose(np.linalg.norm(margins.dataset.direction, axis=1), 1.0)
    np.testing.assert_allclose(margins.dataset.weights.sum("sample"), 1.0)
    saddles = made("Saddles")
    np.testing.assert_array_equal(saddles.dataset.tau, saddles.tau)


def watched(width):
    start = np.ones((3, width)) / width
    watch = penchant.watch(
        lambda w, x: (x @ w**2).sum(axis=1), np.eye(3), parameters=start, budget=None
    )
    for step in range(1, 20):
        watch(step, start * (1 + step / 10), train_loss=1 / step, test_accuracy=step / 20)
    return watch


def test_watches_of_several_runs_are_drawn_together(tmp_path):
    watches = {f"width {width}": watched(width) for width in (1, 4)}
    figure = penchant.plot(watches)
    assert len(figure.axes) == 3
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "test accuracy",
        "train loss",
        "kernel distance",
    ]
    for axes in figure.axes:
        assert [text.get_text() for text in axes.get_legend().get_texts()] == list(watches)
    np.testing.assert_allclose(lines(figure.axes[1])[0], [1 / step for step in range(1, 20)])
    own = watches["width 1"]
    assert "<img src='data:image/png;base64," in own._repr_html_()
    assert len(own.plot().axes) == len(penchant.plot(own).axes) > 3
    loaded = penchant.load(own.save(tmp_path / "run.nc"))
    assert len(penchant.plot([loaded], "kernel_distance").axes) == 1


def test_the_limits_of_the_regimes_are_drawn_and_kept_in_the_file(tmp_path):
    own = watched(4)
    loaded = penchant.load(own.save(tmp_path / "run.nc"))
    for record in (own, loaded):
        figure = penchant.plot({"run": record}, "kernel_distance", "norm_l2")
        distance, norm = ({line.get_ydata()[0] for line in axes.lines[1:]} for axes in figure.axes)
        assert distance == set(penchant.watch.DISTANCE_LIMITS)
        assert not norm


def test_a_verdict_draws_the_plots_of_its_evidence():
    import little_papers

    verdict = penchant.verify("A-SUM", registry=little_papers.library)
    assert [axes.get_xlabel() for axes in verdict.plot().axes] == ["terms k", "terms k"]
    with pytest.raises(ValueError, match=r"A-MEAN has no plots; `penchant figure A-MEAN` draws it"):
        penchant.plot(penchant.verify("A-MEAN", registry=little_papers.library))


def square(a):
    return {"value": a**2}


def test_the_dataset_of_a_study_is_drawn_too(tmp_path):
    study = penchant.Study(
        name="little",
        function=square,
        grid={"a": [1.0, 2.0, 3.0]},
    )
    dataset = penchant.run(study, out=tmp_path, engine="here")
    (axes, *_) = penchant.plot(dataset).axes
    assert [1.0, 4.0, 9.0] in [list(values) for values in lines(axes)]


def test_a_picture_says_how_a_notebook_shows_it():
    figure = made("Solution").plot()
    png, size = figure._repr_png_()
    width, height = (round(72 * inches) for inches in figure.get_size_inches())
    assert size == {"width": width, "height": height}
    drawn = imread(io.BytesIO(png)).shape[:2]
    np.testing.assert_allclose(drawn, (2 * height, 2 * width), atol=1)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda: 3, "give a path, a watch or another result"),
        (dict, "give a result, a list of results or a mapping"),
        (lambda: [made("Saddles"), made("Solution")], "of one kind, got Saddles and Solution"),
    ],
)
def test_what_is_no_result_is_refused(given, sentence):
    with pytest.raises(ValueError, match=f"plot: .*{sentence}"):
        penchant.plot(given())


def test_an_unknown_variable_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'loss' is not a number recorded .* beta, dual, error"):
        made("InterpolationPath").plot("loss")
