"""`repr` of every public object: the call that makes it again, short, never an address."""

from __future__ import annotations

import functools
import html
import inspect
import re

import numpy as np
import pytest

import little_papers
import penchant
from penchant import verify
from penchant.namespaces import public, public_names

rng = np.random.default_rng(0)
X, y = rng.normal(size=(4, 9)), rng.normal(size=4)
labels = np.sign(X[:, 0])
net = penchant.DiagonalNet(2, alpha=0.1)
NAMES = {name: public(name) for name in public_names()}


def outputs(w, x):
    return x @ w


# what eval makes again: every argument is plain, a small array or another such object
CALLS = [
    "Adam(0.01, mean_decay=0.8)",
    "Adam(0.01, weight_decay=0.1)",
    "Accuracy(train=1.0, test=0.9)",
    "At(steps=[0, 5, 10])",
    "At(times=[0.5, 2.0])",
    "At(margins=[1.0])",
    "Below('norm', 2.0)",
    "Blocks([(L1(), 3), (None, 4)])",
    'Classification([[1.0, 2.0], [-1.0, 0.5]], [1, -1], loss="logistic")',
    "Completion((2, 2), [[0, 1], [1, 0]], [1.0, 2.0])",
    "DeepFactorization(3, 4, alpha=0.1)",
    "DeepFactorization(factors=([[1.0]], [[2.0]]))",
    "DerivativeMatch(LinearPredictor(), [[1.0, 2.0]], [[0.5, 0.5]])",
    "DiagonalNet(depth=3, alpha=1e-2)",
    "DiagonalLayers([[1.0, 2.0], [0.5, 0.5]])",
    "DiagonalNet(log_alpha=-5000.0)",
    "DiagonalNet(mu=0.3, depth=5, shape=[1.0, 2.0], signed=False)",
    "DiagonalNet(start=([1.0, 2.0], [0.5, 0.5]))",
    "Difference(DiagonalNet(alpha=2.0))",
    "Difference(relu_net(2, 3, alpha=1.0))",
    "DifferenceFactorization(alpha=0.5)",
    "DualFlow(rtol=1e-6, weight_decay=0.1)",
    "EffectiveScale(GradientDescent(0.1))",
    "Scheduled(GradientDescent(0.1), [0, 10], [0.0, 1.0])",
    "Epochs(3)",
    "Factorization(3, alpha=0.1, seed=4)",
    "Frobenius()",
    "GradientDescent(0.1, weight_decay=0.01)",
    'HeldNorm(size=2.0, norm="l1")',
    "GradientDescent(0.1)",
    "GradientDescent(0.1, weight_decay=1e-3)",
    'HeldNorm(0.1, size=2.0, norm="l1")',
    "Interpolated()",
    "Interpolated(relative=1e-10)",
    "L1()",
    "L2()",
    "L2([1.0, 2.0])",
    "L2(squared=False)",
    "LinearMatrix((2, 3))",
    "LinearPredictor(0.5)",
    "linearize(DiagonalNet(alpha=0.1))",
    "linearize(dense_net((5,), alpha=2.0))",
    "LogLoss(-30.0)",
    "LogSpaced(7)",
    "Loss(1e-3)",
    "Linf()",
    "Lp(1.5)",
    "Muon(0.01, Spectral((2, 3)))",
    "SAM(0.01, 0.05, Linf())",
    "SignDescent(0.01, momentum=0.9)",
    "Spectral((2, 3))",
    "LayerSpectral(((2, 3), (2, 1)))",
    "SteepestDescent(0.01, L1(), normalized=False)",
    "MatrixFlow(rtol=1e-06, form='lifted')",
    "Near([1.0, 0.0], 2.0)",
    "NormalizedDescent(0.1)",
    "Nuclear()",
    "Nuclear((2, 3))",
    'Outcome(Kind.SOLVED, "in 3 steps")',
    'OutputLayer(conv_net("4-M-FC", precision="double"))',
    "ParameterFlow(rtol=1e-6)",
    "1e-05 * L1()",
    "1e-05 * L1() + 0.5 * L2(squared=False)",
    "0.1 * Blocks([(L1(), 3), (2.0 * Nuclear((2, 3)), 6)])",
    "Penalty(0.1, Q(3, mu=1e-3))",
    "PerTensor(L2(squared=False))",
    "ProductNet([1.0, 2.0], [0.5, 0.25])",
    "Proximal(0.1, accelerated=True)",
    "Q(alpha=1.0)",
    "Q(depth=3, mu=1e-3)",
    "Q(log_alpha=-5000, shape=[1.0, 3.0])",
    "R(alpha=0.3)",
    "Regression([[1.0, 2.0]], [3.0])",
    "GradientDescent(0.1, momentum=0.9)",
    "Steps(10)",
    "Time(2.5)",
    "Scale(0.1)",
    "Schatten(Q(2, alpha=0.1))",
    "Sensing([[[1.0, 2.0], [0.0, 1.0]]], [1.0])",
    'Study(name="s", function="study_cells:plain", grid={"a": [1.0, 2.0]}, seeds=2)',
    "GradientDescent(0.1, check=False)",
    "GradientDescent(0.1, subgradient=True)",
    "SymmetricFactorization(3, log_alpha=-290.5)",
    "TangentFlow()",
    "CentralFlow(0.01)",
    "TokenMLP(width=8)",
    "TokenQuadratic()",
    "TokenTransformer(width=8)",
    "TwoTokenNet(4, alpha=0.1)",
    "Unbiased(DiagonalNet(alpha=0.1))",
    # made by public functions
    "attention([1.0, 0.0], factored=True, alpha=0.2)",
    "circle_teacher(seed=3)",
    "dense_net((5, 4), alpha=2.0)",
    'conv_net("4-M-FC", unbiased=True)',
    "coherent_completion(samples=2, truth=[[2.0, 0.0], [0.0, 1.0]], tau=0.5)",
    "commuting_sensing(samples=2, dimension=3, rank=1)",
    "gaussian_sensing(samples=4, dimension=3, rank=1, seed=2)",
    "low_rank_completion(samples=9, dimension=4, rank=2, loss='half squares', seed=4)",
    "majority(samples=9, dimension=5)",
    "modular_arithmetic(7, fraction=0.5, seed=4)",
    'modular_arithmetic(7, operation="x^2+y^2", fraction=0.7)',
    "multiplication_table(5, fraction=0.5)",
    "permutation_group(3)",
    "relu_net(2, 3, alpha=0.3, layers=[1.0, 2.0])",
    "separable_points(4, 6)",
    "sparse_recovery(4, 9, sparsity=2, snr=100.0, seed=7)",
    "sparse_regression(samples=4, dimension=9, sparsity=2, noise=0.3, seed=1)",
    "student(3, outputs=2, alpha=1.0)",
    "teacher_student(4, 5, width=6, units=3, reads=2, standard=True, test=4, seed=7)",
    'three_points("3b")',
    "token_selection(2, 3, 4, equal_scores=False, seed=5)",
    "two_layer(3, alpha=1.0)",
    "univariate_relu(5, alpha=2.0)",
    "wide_margin(5, 6, gamma=0.2)",
]

# results and what holds large arrays or the user's functions: short, and no call
RESULTS = {
    "Assumptions": lambda: penchant.measures.assumptions(
        penchant.models.relu_net(2, 3, alpha=1.0), X
    ),
    "Delay": lambda: penchant.forecasts.Delay(3, 4.0, 1.0, 0.1, 0.0),
    "Derived": lambda: penchant.derive(lambda w: w**3, start=0.1),
    "Forecast": lambda: penchant.forecast(
        net, penchant.problems.majority(9, 20), weight_decay=1e-3
    ),
    "FunctionModel": lambda: penchant.FunctionModel(outputs, np.ones(9)),
    "Grokking": lambda: penchant.measures.grokking(
        *(np.geomspace(1, 9e3, 50), np.ones(50), np.linspace(0.5, 1, 50))
    ),
    "HeldSweep": lambda: penchant.methods.HeldSweep("l2", *np.ones((4, 30)), ()),
    "Images": lambda: penchant.problems.Images(
        "mine",
        np.zeros((9, 4, 4)),
        np.zeros(9, int),
        np.zeros((9, 4, 4)),
        np.zeros(9, int),
        ("a",),
        "given",
    ),
    "GreedyRank": lambda: penchant.solvers.saddles(
        penchant.problems.low_rank_completion(samples=9, dimension=4, rank=1)
    ),
    "FrequencyNet": lambda: penchant.models.frequency_net(
        penchant.Regression([[1.0, 2.0, 2.0]], [3.0]), alpha=0.1
    ),
    "InfiniteKernel": lambda: penchant.measures.InfiniteKernel("erf", (5,), biases=0.1),
    "InterpolationPath": lambda: penchant.solvers.interpolate_path(X, y, log_alphas=[0.0, -2.0]),
    "KernelError": lambda: penchant.forecasts.kernel_error(
        penchant.measures.InfiniteKernel("relu", (3,)), X, y, ridge=1.0
    ),
    "KernelMachine": lambda: penchant.measures.kernel_machine(net, penchant.Regression(X, y)),
    "KernelRegression": lambda: penchant.measures.kernel_regression(outputs, np.ones(9), X, y),
    "KernelRegime": lambda: penchant.bounds.kernel_regime(
        0.1, mu=2.0, gamma=0.0, low=1.0, high=1.0
    ),
    "Lojasiewicz": lambda: penchant.measures.lojasiewicz_quadratic(X, y, np.zeros(9), 1.0),
    "MarginPath": lambda: penchant.solvers.max_margin_path(X, labels, mus=[1.0, 0.5]),
    "MatrixSolution": lambda: penchant.interpolate(
        penchant.problems.low_rank_completion(samples=9, dimension=4, rank=1),
        penchant.regularizers.Frobenius(),
    ),
    "NumericalError": lambda: penchant.NumericalError(
        "w", penchant.Outcome(NAMES["Kind"].STALLED, "s")
    ),
    "Path": lambda: penchant.train(
        net, penchant.Regression(X, y), penchant.GradientDescent(1e-4), stop=penchant.Steps(2)
    ),
    "Design": lambda: penchant.forecasts.design(
        penchant.Regression(X, y), penchant.Q(2, alpha=0.1), steps=20_000
    ),
    "FourierLosses": lambda: penchant.measures.fourier_losses(np.ones((5, 5, 5))),
    "PredictedRun": lambda: penchant.forecasts.predict_run(
        net, penchant.Regression(X, y), penchant.GradientDescent(1e-4), stop=penchant.Steps(9)
    ),
    "RatchetPath": lambda: penchant.solvers.ratchet_path(X, labels, mus=[1.0, 0.5]),
    "Regression": lambda: penchant.Regression(X, y, truth=np.arange(9.0)),
    "Reparametrized": lambda: penchant.models.Reparametrized(lambda u, v: u * v, (1.0, 0.5)),
    "Saddles": lambda: penchant.solvers.saddles(X, y),
    "Separation": lambda: penchant.solvers.separation(X, labels),
    "SlowFlow": lambda: penchant.solvers.SlowFlow(np.arange(20.0), np.ones((20, 3))),
    "Solution": lambda: penchant.interpolate(X, y, penchant.L1()),
    "Stability": lambda: penchant.measures.Stability(True, 1.0, 2.0, (1, 2), None),
    "PopulationError": lambda: penchant.forecasts.population_error(
        penchant.L2(), samples=2, dimension=5, truth=[1.0], noise=0.1
    ),
    "PopulationMargin": lambda: penchant.forecasts.population_margin(
        penchant.L2(), samples=2, dimension=5, truth=[1.0]
    ),
    "TangentTwin": lambda: penchant.solvers.tangent_twin(
        penchant.DiagonalNet(alpha=2.0), penchant.Classification([[1.0, 2.0]], [1]), [0.0, 1.0]
    ),
    "FactorTwin": lambda: penchant.solvers.factor_twin(
        penchant.Factorization(5, alpha=1.0),
        penchant.problems.low_rank_completion(samples=3, dimension=2, rank=1),
    ),
    "Custom": lambda: penchant.regularizers.Custom(lambda w: w @ w),
    "Verdict": lambda: verify("A-SUM", registry=little_papers.library),
    "Verdicts": lambda: verify("A", registry=little_papers.library),
    "Watch": lambda: penchant.watch(outputs, X, parameters=np.ones(9)),
}
# to derive from; an Oracle is made by training alone
ABSTRACT = {"Descent", "MatrixProblem", "Model", "Observer", "Regularizer", "Separable"}
ABSTRACT |= {"SpectralFunction", "Stop", "Term", "TokenNet", "Oracle"}


@functools.cache
def result(name):
    return RESULTS[name]()


ADDRESS = re.compile(r"0x[0-9a-f]{4,}| object at ")


def test_every_public_class_has_an_example():
    classes = {
        name
        for name, path in public_names().items()
        if inspect.isclass(public(name))
        and not path.startswith(("penchant.lab.", "penchant.plotting."))
        and "Examples" in (public(name).__doc__ or "")
    }
    written = {type(eval(call, NAMES)).__name__ for call in CALLS}
    shown = written | {call.split("(")[0] for call in CALLS} | set(RESULTS) | ABSTRACT
    assert classes <= shown, sorted(classes - shown)


@pytest.mark.parametrize("call", CALLS)
def test_the_repr_is_the_call_that_makes_it_again(call):
    thing = eval(call, NAMES)
    text = repr(thing)
    again = eval(text, NAMES)
    assert type(again) is type(thing)
    assert repr(again) == text
    assert again == thing
    assert hash(again) == hash(thing)
    assert len(text) < 300
    assert not ADDRESS.search(text + str(thing))


# a call with one argument more or another one: never equal to what it is next to
OTHERS = [
    ("At(steps=[5])", "At(epochs=[5])"),
    ("Classification([[1.0]], [1])", 'Classification([[1.0]], [1], loss="logistic")'),
    ("DiagonalNet(alpha=0.1)", "DiagonalNet(alpha=0.1, shape=[1.0, 2.0])"),
    ("DiagonalNet(alpha=0.1, shape=[1.0, 3.0])", "DiagonalNet(alpha=0.1, shape=[1.0, 2.0])"),
    ("L2([1.0, 2.0])", "L2([1.0, 3.0])"),
    ("Near([1.0, 0.0], 2.0)", "Near([0.0, 1.0], 2.0)"),
    ("Q(alpha=1.0)", "R(alpha=1.0)"),
    ("1e-05 * L1()", "1e-04 * L1()"),
    (
        "DerivativeMatch(LinearPredictor(), [[1.0]], [[2.0]])",
        "DerivativeMatch(LinearPredictor(), [[1.0]], [[3.0]])",
    ),
    ("Regression([[1.0, 2.0]], [3.0])", "Regression([[1.0, 2.5]], [3.0])"),
    ("Regression([[1.0], [2.0]], [3.0, 1.0])", "Regression([[1.0]], [3.0])"),
    ("GradientDescent(0.1, momentum=0.5)", "GradientDescent(0.1)"),
    ("majority(9, 5)", "majority(9, 5, seed=1)"),
    ("student(3, alpha=1.0)", "student(4, alpha=1.0)"),
    ("two_layer(3, alpha=1.0)", 'two_layer(3, alpha=1.0, activation="tanh")'),
]


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_what_other_arguments_make_is_not_equal(one, other):
    assert eval(one, NAMES) != eval(other, NAMES)
    assert eval(one, NAMES) == eval(one, NAMES)


def test_results_are_compared_number_by_number():
    one, two = (penchant.interpolate(X, y, penchant.L1()) for _ in range(2))
    assert one == two
    assert one != penchant.interpolate(X, 2 * y, penchant.L1())
    assert len({one, two}) == 1


# what a person reads in a notebook; the rest of RESULTS is not made of named values
TABLES = [name for name in RESULTS if name not in {"Custom", "NumericalError", "Watch"}]


@pytest.mark.parametrize("name", TABLES)
def test_a_result_prints_as_a_table(name):
    text, page = str(result(name)), result(name)._repr_html_()
    assert page.startswith("<table>")
    assert not ADDRESS.search(text + page)
    for row, shown in result(name).rows():
        assert row in html.unescape(page)
        assert row in text or name == "Derived"  # whose str is the call
        assert shown[:20].split("\n")[0] in html.unescape(page)


@pytest.mark.parametrize("name", RESULTS)
def test_the_repr_of_a_result_is_short(name):
    text = repr(result(name))
    assert len(text) < 700, text
    assert name in text or name == "Derived"  # whose first line is the call of derive
    assert not ADDRESS.search(text), text


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (penchant.DiagonalNet(depth=2, alpha=1e-2), "DiagonalNet(alpha=0.01)"),
        (penchant.Q(log_alpha=-5000), "Q(log_alpha=-5000.0)"),
        (penchant.L2([1.0, 2.0]), "L2(weights=[1.0, 2.0])"),
        (penchant.problems.three_points("3b"), "three_points(name='3b')"),
        (
            penchant.Regression(X, y),
            "Regression(X=<array of 4 x 9>, y=[{}])".format(", ".join(map(repr, y.tolist()))),
        ),
        (penchant.regularizers.Custom(np.sum), "Custom(value=sum)"),
    ],
)
def test_what_a_repr_reads_like(thing, text):
    assert repr(thing) == text


def test_a_verdict_is_one_line_and_its_table_is_printed():
    verdict = verify("A-SUM", registry=little_papers.library)
    assert repr(verdict) == "<Verdict A-SUM, quick: holds (5e-05 ≤ 0.0001)>"
    assert repr(verify("A", registry=little_papers.library)) == (
        "<Verdicts: 1 holds; 1 holds as corrected>"
    )
    assert "partial sums of 20000 terms" in str(verdict)
