"""penchant.sklearn against other integrators and solvers, and against scikit-learn's own checks."""

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import penchant
from penchant.sklearn import DiagonalNetClassifier, DiagonalNetRegressor, DiagonalNetRegressorCV

ESTIMATORS = [
    DiagonalNetRegressor(),
    DiagonalNetRegressor(depth=3, alpha=0.3, fit_intercept=False),
    DiagonalNetClassifier(),
    DiagonalNetClassifier(depth=4, time=30.0),
    DiagonalNetRegressorCV(alphas=[0.1], times=2, cv=2),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_scikit_learn_s_own_checks(estimator):
    statuses = check_estimator(estimator, on_skip=None)
    assert sum(one["status"] == "passed" for one in statuses) > 40
    # array API is skipped where scikit-learn does not dispatch to it
    assert {s["check_name"] for s in statuses if s["status"] != "passed"} <= {
        "check_array_api_input"
    }


def drawn(samples, columns, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, columns)) + 2.0
    return X, X[:, 0] - X[:, 1] + rng.normal(size=samples) + 5.0


def integrated(X, y, depth, alpha, time):
    """The predictor by SciPy's integrator of the weights themselves."""
    columns, X, y = X.shape[1], X - X.mean(axis=0), y - y.mean()

    def velocity(_, w):
        up, down = w[:columns], w[columns:]
        slope = X.T @ (X @ (up**depth - down**depth) - y) / len(y)
        return depth * np.concatenate([-slope * up ** (depth - 1), slope * down ** (depth - 1)])

    start = np.full(2 * columns, alpha)
    w = solve_ivp(velocity, (0, time), start, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    return w[:columns] ** depth - w[columns:] ** depth


@pytest.mark.parametrize(("samples", "columns"), [(6, 9), (12, 4)])
@pytest.mark.parametrize(("depth", "alpha"), [(2, 0.05), (3, 0.4)])
@pytest.mark.parametrize("time", [0.3, 3.0])
def test_the_flow_at_a_time(samples, columns, depth, alpha, time):
    X, y = drawn(samples, columns)
    model = DiagonalNetRegressor(depth, alpha, time=time).fit(X, y)
    np.testing.assert_allclose(model.coef_, integrated(X, y, depth, alpha, time), atol=1e-8)
    assert model.intercept_ == pytest.approx(y.mean() - X.mean(axis=0) @ model.coef_)
    assert isinstance(model.path_, penchant.Path)
    assert np.isnan(model.error_)


def test_times_do_not_depend_on_how_often_samples_are_repeated():
    X, y = drawn(8, 5)
    once, thrice = (
        DiagonalNetRegressor(time=0.5).fit(np.tile(X, (k, 1)), np.tile(y, k)) for k in (1, 3)
    )
    np.testing.assert_allclose(once.coef_, thrice.coef_, rtol=1e-8)


def q_value(beta, alpha):
    """Woodworth et al. 2020, theorem 1, written out."""
    z = beta / alpha**2
    return float(alpha**2 * np.sum(2 - np.sqrt(4 + z**2) + z * np.arcsinh(z / 2)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 5.0]))
def test_the_end_is_the_least_squares_point_of_least_q(seed, alpha):
    """Of contradicting labels too: two pairs of equal samples have different ones."""
    X, y = drawn(6, 8, seed)
    X = np.vstack([X, X[:2]])
    y = np.append(y, y[:2] + 1.0)
    model = DiagonalNetRegressor(alpha=alpha).fit(X, y)
    assert model.outcome_.ok
    assert model.error_ < 1e-8
    inner, targets = X - X.mean(axis=0), y - y.mean()
    slope = inner.T @ (inner @ model.coef_ - targets)
    assert np.abs(slope).max() < 1e-9 * np.abs(inner.T @ targets).max()
    free = np.linalg.svd(inner)[2][5:].T  # directions that change no output: the rank is 5
    shortest = np.linalg.lstsq(inner, targets, rcond=1e-10)[0]
    best = minimize(lambda c: q_value(shortest + free @ c, alpha), np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(model.coef_, shortest + free @ best.x, atol=2e-4)
    assert q_value(model.coef_, alpha) <= best.fun * (1 + 1e-9) + 1e-12


def test_neither_norm_alone_selects_the_end():
    """The control: at a scale between the regimes both limits are far away, in Q and in place."""
    X, y = drawn(6, 8)
    inner, targets, alpha = X - X.mean(axis=0), y - y.mean(), 0.3
    model = DiagonalNetRegressor(alpha=alpha).fit(X, y)
    wrong = (
        np.linalg.lstsq(inner, targets, rcond=1e-10)[0],
        DiagonalNetRegressor(alpha=1e-9).fit(X, y).coef_,
    )
    for point in wrong:
        assert np.abs(model.coef_ - point).max() > 0.02
        assert q_value(point, alpha) > q_value(model.coef_, alpha) * 1.001


@pytest.mark.parametrize(("depth", "alpha"), [(2, 1e-4), (2, 10.0), (5, 0.1)])
def test_with_more_samples_than_columns_the_end_is_least_squares(depth, alpha):
    X, y = drawn(40, 6)
    plain = LinearRegression().fit(X, y)
    model = DiagonalNetRegressor(depth, alpha).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    assert model.intercept_ == pytest.approx(plain.intercept_)
    early = DiagonalNetRegressor(depth, alpha, time=1e-3).fit(X, y)
    assert np.abs(early.coef_ - plain.coef_).max() > 0.1


def test_a_small_start_ends_at_the_least_l1_norm():
    X, y = drawn(8, 20)
    model = DiagonalNetRegressor(depth=6, alpha=1e-12, fit_intercept=False).fit(X, y)
    least = linprog(np.ones(40), A_eq=np.hstack([X, -X]), b_eq=y)
    np.testing.assert_allclose(model.coef_, least.x[:20] - least.x[20:], atol=1e-6)


def test_the_path_leads_from_the_kernel_regime_to_alpha():
    X, y = drawn(8, 20)
    model = DiagonalNetRegressor(alpha=1e-3).fit(X, y)
    inner = X - X.mean(axis=0)
    shortest = np.linalg.lstsq(inner, y - y.mean(), rcond=1e-10)[0]
    np.testing.assert_allclose(model.path_.beta[0], shortest, atol=1e-3)
    np.testing.assert_array_equal(model.path_.beta[-1], model.coef_)
    assert model.path_.log_alphas[-1] == pytest.approx(np.log(1e-3))
    np.testing.assert_allclose(model.predict(X), y, atol=1e-9)  # it fits the data


def test_names_travel():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    for time in (None, 0.01):
        model = DiagonalNetRegressor(time=time).fit(X[:20], y[:20])
        assert model.feature_names_in_.tolist() == list(X.columns)
        assert model.path_.dataset.feature.values.tolist() == list(X.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.rename(columns={"bmi": "mass"}))


def test_labels_that_do_not_depend_on_the_columns():
    X = np.arange(12.0).reshape(6, 2)
    for time in (None, 2.0):
        model = DiagonalNetRegressor(time=time).fit(X, np.full(6, 3.0))
        assert not model.coef_.any()
        assert model.predict(X) == pytest.approx(3.0)
        assert model.outcome_.ok
    assert not DiagonalNetRegressorCV(cv=2, times=2).fit(X, np.full(6, 3.0)).coef_.any()


# --- cross-validation ------------------------------------------------------------------------


def test_cross_validation_is_that_of_scikit_learn():
    X, y = drawn(20, 30, seed=3)
    folds = KFold(4)
    model = DiagonalNetRegressorCV(alphas=[1.0, 0.01], times=3, cv=folds).fit(X, y)
    assert model.mse_path_.shape == (2, 4, 4)
    assert np.isinf(model.times_[:, -1]).all()
    for k, alpha in enumerate(model.alphas_):
        for j, time in enumerate(model.times_[k]):
            one = DiagonalNetRegressor(alpha=alpha, time=time if np.isfinite(time) else None)
            score = cross_val_score(one, X, y, cv=folds, scoring="neg_mean_squared_error")
            # a flow is off by at most a thousand of its rtol, 1e-8 in folds
            np.testing.assert_allclose(model.mse_path_[k, j], -score, rtol=1e-5)
    best = model.mse_path_.mean(axis=-1)
    assert best.min() == best[list(model.alphas_).index(model.alpha_)].min()
    again = DiagonalNetRegressor(alpha=model.alpha_, time=model.time_).fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert best.max() > 1.05 * best.min()  # the choice matters


def test_a_grid_search_finds_the_same_alpha():
    X, y = drawn(20, 30, seed=4)
    alphas = [3.0, 0.3, 0.03]
    own = DiagonalNetRegressorCV(alphas=alphas, times=0, cv=4).fit(X, y)
    search = GridSearchCV(
        DiagonalNetRegressor(), {"alpha": alphas}, cv=4, scoring="neg_mean_squared_error"
    ).fit(X, y)
    assert own.alpha_ == search.best_params_["alpha"]
    assert own.mse_path_.mean(axis=-1).min() == pytest.approx(-search.best_score_)
    assert own.time_ is None


# --- classes ---------------------------------------------------------------------------------


def test_two_classes_are_labels_of_one_net():
    X, y = drawn(10, 15)
    words = np.where(y > y.mean(), "yes", "no")
    model = DiagonalNetClassifier(alpha=0.1).fit(X, words)
    plain = DiagonalNetRegressor(alpha=0.1).fit(X, np.where(words == "yes", 1.0, -1.0))
    np.testing.assert_array_equal(model.coef_, plain.coef_[None])
    np.testing.assert_allclose(model.decision_function(X), plain.predict(X))
    assert (model.predict(X) == words).all()


def test_three_classes_are_three_nets():
    X, y = load_iris(return_X_y=True)
    model = DiagonalNetClassifier().fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert len(model.path_) == len(model.outcome_) == len(model.error_) == 3
    plain = DiagonalNetRegressor().fit(X, np.where(y == 2, 1.0, -1.0))
    np.testing.assert_array_equal(model.coef_[2], plain.coef_)
    assert model.score(X, y) > 0.8


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"alpha": 0.0}, "DiagonalNetRegressor: alpha must be > 0, got 0.0"),
        ({"alpha": "small"}, "DiagonalNetRegressor: alpha must be a finite number > 0"),
        ({"depth": 1}, "DiagonalNetRegressor: depth must be at least 2, got 1"),
        ({"time": -1.0}, "DiagonalNetRegressor: time must be > 0, got -1.0"),
        ({"fit_intercept": 2}, "DiagonalNetRegressor: fit_intercept must be True or False"),
    ],
)
def test_a_wrong_parameter(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        DiagonalNetRegressor(**arguments).fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"alphas": [0.1, -1.0]}, "DiagonalNetRegressorCV: alphas must be > 0, got -1"),
        ({"alphas": []}, "DiagonalNetRegressorCV: alphas must not be empty"),
        ({"times": 2.5}, "DiagonalNetRegressorCV: times must be an integer"),
    ],
)
def test_a_wrong_grid(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        DiagonalNetRegressorCV(**arguments).fit(*drawn(10, 3))


def test_one_class():
    with pytest.raises(ValueError, match="DiagonalNetClassifier: y must hold two classes or more"):
        DiagonalNetClassifier().fit([[1.0], [2.0]], [1, 1])


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("penchant.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"pip install 'penchant\[sklearn\]'"):
        import penchant.sklearn  # noqa: F401


def test_a_table_of_another_library_that_has_no_names():
    X, y = drawn(5, 8)
    frame = pd.DataFrame(X)  # its columns are numbers
    assert DiagonalNetRegressor().fit(frame, y).path_.features == ()
