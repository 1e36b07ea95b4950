"""Every public name refuses a wrong call by one sentence that begins with the name.

A new public name joins `REFUSED` with one call, or one of the lists below with a reason.
`test_wrong_arrays.py` has every kind of wrong array; the tests of a room have its other rules.
"""

import inspect
import re

import numpy as np
import pytest

import penchant
from penchant import (
    L1,
    L2,
    Classification,
    DiagonalNet,
    GradientDescent,
    Q,
    Regression,
    Steps,
    bounds,
    forecasts,
    lab,
    measures,
    methods,
    models,
    plotting,
    problems,
    record,
    regularizers,
    solvers,
    stop,
)
from penchant.namespaces import public, public_names

NAN = float("nan")
X, Y, LABELS = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]]), [1.0, -2.0], [1.0, -1.0]
BETA, WRONG = np.array([0.3, -0.2, 1.0]), np.full((2, 3), NAN)
NET, REGRESSION = DiagonalNet(2, alpha=0.5), Regression(X, Y)
LABELLED = Classification(X, LABELS)

STUDY = penchant.Study(name="a", function="math:sqrt", arguments={"x": 1.0})


def path():
    """A path of values, by steps."""
    return penchant.train(NET, REGRESSION, GradientDescent(1e-2), stop=Steps(3))


def never(instance):
    return False


TOP = {
    "Adam": lambda: penchant.Adam(-1.0),
    "Classification": lambda: Classification(X, [1.0, 2.0]),
    "DiagonalNet": lambda: DiagonalNet(0, alpha=0.1),
    "DualFlow": lambda: penchant.DualFlow(rtol=-1.0),
    "Factorization": lambda: penchant.Factorization(0, alpha=0.1),
    "FunctionModel": lambda: penchant.FunctionModel(None, [1.0]),
    "GradientDescent": lambda: GradientDescent(0.0),
    "L1": lambda: L1()(WRONG),
    "L2": lambda: L2(weights=[0.0]),
    "ParameterFlow": lambda: penchant.ParameterFlow(rtol=0.0),
    "Q": lambda: Q(2),
    "Regression": lambda: Regression(WRONG, Y),
    "Steps": lambda: Steps(-1),
    "Study": lambda: penchant.Study(name=""),
    "Time": lambda: penchant.Time(-1.0),
    "derive": lambda: penchant.derive(lambda w: w**2, NAN),
    "forecast": lambda: penchant.forecast(NET, REGRESSION, -1.0),
    "interpolate": lambda: penchant.interpolate(WRONG, Y, L1()),
    "load": lambda: penchant.load(__file__),
    "max_margin": lambda: penchant.max_margin(WRONG, LABELS, L1()),
    "plot": lambda: penchant.plot(path(), "nothing"),
    "run": lambda: penchant.run(STUDY, engine="nothing"),
    "save": lambda: penchant.save(None, "a"),
    "train": lambda: penchant.train(NET, REGRESSION, None),
    "verify": lambda: penchant.verify("nothing"),
    "watch": lambda: penchant.watch(None, X),
}
FORECASTS = {
    "adam_clock": lambda: forecasts.adam_clock(1.0, 2.0),
    "adam_delay": lambda: forecasts.adam_delay(0.0, 1.0),
    "adam_memory": lambda: forecasts.adam_memory(0.0),
    "best_alpha": lambda: forecasts.best_alpha(samples=2, dimension=2, truth=[1.0]),
    "design": lambda: forecasts.design(REGRESSION, L1(), steps=9),
    "effective_regularizer": lambda: forecasts.effective_regularizer(path()),
    "fewest_samples": lambda: forecasts.fewest_samples(0.0, L1(), dimension=2, truth=[1.0]),
    "forecast_jump": lambda: forecasts.forecast_jump(None),
    "kernel_error": lambda: forecasts.kernel_error(None, X, Y),
    "kernel_regime_end": lambda: forecasts.kernel_regime_end(2, -1.0, 0.0, NET, REGRESSION),
    "largest_alpha": lambda: forecasts.largest_alpha(0.1, samples=2, dimension=2, truth=[1.0]),
    "population_error": lambda: forecasts.population_error(
        None, samples=1, dimension=2, truth=[1.0]
    ),
    "population_margin": lambda: forecasts.population_margin(
        None, samples=1, dimension=2, truth=[1.0]
    ),
    "population_matrix_error": lambda: forecasts.population_matrix_error(
        L1(), samples=1, truth=np.eye(2)
    ),
    "predict_run": lambda: forecasts.predict_run(NET, REGRESSION, None, stop=Steps(1)),
    "predicted_delay": lambda: forecasts.predicted_delay(WRONG, Y, BETA, 0.1, 0.1),
    "separable_samples": lambda: forecasts.separable_samples(dimension=2, truth=[0.0]),
    "start_regularizer": lambda: forecasts.start_regularizer(NET, np.ones(6)),
    "tilted_q": lambda: forecasts.tilted_q(1, np.ones(3), np.ones(3)),
    "turning_window": lambda: forecasts.turning_window(WRONG, WRONG),
}
BOUNDS = {
    "largest_log_loss": lambda: bounds.largest_log_loss(REGRESSION, NET, [0.0]),
    "largest_log_weight": lambda: bounds.largest_log_weight(LABELLED, NET, [-1.0]),
    "dual_edge": lambda: bounds.dual_edge(2, alpha=0.1),
    "l1_norm_edge": lambda: bounds.l1_norm_edge(0.0, 1.0, 3),
    "l1_solution_edge": lambda: bounds.l1_solution_edge(3.0, 1.0, 3),
    "l2_norm_edge": lambda: bounds.l2_norm_edge(0.1, -1.0),
    "l2_solution_edge": lambda: bounds.l2_solution_edge(0.1, NAN),
    "not_l1_edge": lambda: bounds.not_l1_edge(1.0, 100),
    "ball_radius": lambda: bounds.ball_radius(1.0, 1.0, 1.0, 1.0, 0.9),
    "contraction": lambda: bounds.contraction(mu=2.0, L=1.0, learning_rate=0.1),
    "dominated_steps": lambda: bounds.dominated_steps(1.0, 1.0, 0.9, 0.5, 1e-3),
    "largest_step": lambda: bounds.largest_step(1.0, 1.0),
    "kernel_regime": lambda: bounds.kernel_regime(1.0, mu=1.0, gamma=1.0, low=1.0, high=1.0),
    "least_width": lambda: bounds.least_width(
        1.0, alpha=1.0, dimension=2, samples=3, low=2.0, high=1.0
    ),
    "misfit_rate": lambda: bounds.misfit_rate(mu=1.0, gamma=-1.0, low=1.0, high=1.0),
    "wide_start_regime": lambda: bounds.wide_start_regime(
        3, 1.0, alpha=1.0, dimension=2, samples=3, low=1.0, high=1.0
    ),
    "wishart_deviation": lambda: bounds.wishart_deviation(4, 3),
}
LAB = {
    "Check": lambda: lab.Check("a", 1.0, tolerance=-1.0),
    "Evidence": lambda: lab.Evidence("ran", checks={}, controls={"a": 1.0}),
    "Experiment": lambda: lab.Experiment("E-1", "", "", lab.sized("E-1", function=max), max),
    "Paper": lambda: lab.Paper("E", "title", "package", {"W-1": "a statement"}),
    "Plot": lambda: lab.Plot("title", "x", "y", [], x_scale="nothing"),
    "Premise": lambda: lab.Premise("no", 1.0),
    "Registry": lambda: lab.Registry(experiments=lab.all_claims().experiments()[:1] * 2),
    "Series": lambda: lab.Series("a", [1.0], [1.0, 2.0]),
    "Setting": lambda: lab.Setting(size="nothing"),
    "Sizes": lambda: lab.Sizes("a", {}, {"nothing": {}}),
    "Turns": lambda: lab.Turns(-1, "a"),
    "Verdicts": lambda: lab.Verdicts(())["nothing"],
    "at_least": lambda: lab.at_least("a"),
    "at_most": lambda: lab.at_most("a"),
    "below": lambda: lab.below("a", 1.0),
    "drawn": lambda: lab.drawn(int, never, 0),
    "door_as": lambda: lab.door_as(3),
    "exponents": lambda: lab.exponents([1.0], [NAN]),
    "integer": lambda: lab.door_as("integer")(lab.integer)("a", 0, least=1),
    "log_log": lambda: lab.log_log("title", "x", "y", [("a",)]),
    "lower_share": lambda: lab.lower_share(3, 2),
    "margin_of_mean": lambda: lab.margin_of_mean([]),
    "mean_within": lambda: lab.mean_within([], 0.0),
    "one_of": lambda: lab.door_as("one_of")(lab.one_of)("a", "b", ["c"]),
    "paper_of": lambda: lab.paper_of(3),
    "read_record": lambda: lab.read_record(3),
    "read_study": lambda: lab.read_study("no such file.toml"),
    "share_at_least": lambda: lab.share_at_least(3, 2, 0.5),
    "sized": lambda: lab.sized("a", tiny={"nothing": 1}),
    "upper_share": lambda: lab.upper_share(3, 2),
    "within": lambda: lab.within("a"),
}
MEASURES = {
    "InfiniteKernel": lambda: measures.InfiniteKernel("tanh", (3,)),
    "angle": lambda: measures.angle([0.0], [1.0]),
    "angles": lambda: measures.angles([1.0, NAN, 0.0]),
    "assumptions": lambda: measures.assumptions(NET, WRONG),
    "azimuth_pitch": lambda: measures.azimuth_pitch([1.0]),
    "crossing": lambda: measures.crossing([1.0], [1.0, 2.0], 0.5),
    "effective_rank": lambda: measures.effective_rank(WRONG),
    "fourier_losses": lambda: measures.fourier_losses(np.ones((4, 4, 4))),
    "excess_norm": lambda: measures.excess_norm(LABELLED, [1.0], L1()),
    "gradient_distance": lambda: measures.gradient_distance(WRONG, X),
    "gradient_turn": lambda: measures.gradient_turn(NET, None, None, WRONG),
    "grokking": lambda: measures.grokking([1.0], [1.0], [1.0]),
    "infinite_kernel": lambda: measures.infinite_kernel(NET),
    "kernel_alignment": lambda: measures.kernel_alignment(WRONG, Y),
    "kernel_distance": lambda: measures.kernel_distance(WRONG, X),
    "kernel_machine": lambda: measures.kernel_machine(None, REGRESSION),
    "kernel_regression": lambda: measures.kernel_regression(NET, None, WRONG, Y),
    "kkt_residual": lambda: measures.kkt_residual(LABELLED, NET, [1.0]),
    "least_norm": lambda: measures.least_norm(REGRESSION, L1()),
    "lojasiewicz": lambda: measures.lojasiewicz(np.dot, BETA, -1.0),
    "lojasiewicz_quadratic": lambda: measures.lojasiewicz_quadratic(0 * X, Y, BETA, 1.0),
    "margin_accuracy": lambda: measures.margin_accuracy("a"),
    "margin_shares": lambda: measures.margin_shares(path(), REGRESSION),
    "margins": lambda: measures.margins(WRONG, LABELS, BETA),
    "mean_kernel": lambda: measures.mean_kernel([0.0], [0.0], 0, alpha=1.0),
    "participation_ratio": lambda: measures.participation_ratio(WRONG),
    "stability": lambda: measures.stability(path(), BETA),
    "support_vectors": lambda: measures.support_vectors(WRONG),
    "tangent_kernel": lambda: measures.tangent_kernel(NET, None, WRONG),
}
METHODS = {
    "EffectiveScale": lambda: methods.EffectiveScale(None),
    "HeldNorm": lambda: methods.HeldNorm(size=-1.0),
    "MatrixFlow": lambda: methods.MatrixFlow(form="nothing"),
    "Muon": lambda: methods.Muon(-1.0),
    "NormalizedDescent": lambda: methods.NormalizedDescent(-1.0),
    "Proximal": lambda: methods.Proximal(-1.0),
    "SAM": lambda: methods.SAM(0.1, -1.0),
    "Scheduled": lambda: methods.Scheduled(GradientDescent(1.0), [1], [1.0, 2.0]),
    "SignDescent": lambda: methods.SignDescent(-1.0),
    "SteepestDescent": lambda: methods.SteepestDescent(-1.0, L1()),
    "TangentFlow": lambda: methods.TangentFlow(rtol=-1.0),
    "CentralFlow": lambda: methods.CentralFlow(-1.0),
    "held_sweep": lambda: methods.held_sweep(NET, REGRESSION, [-1.0]),
}
MODELS = {
    "DeepFactorization": lambda: models.DeepFactorization(0, 1, alpha=0.1),
    "DiagonalLayers": lambda: models.DiagonalLayers([[1.0, 2.0]]),
    "Difference": lambda: models.Difference(None),
    "DifferenceFactorization": lambda: models.DifferenceFactorization(alpha=-1.0),
    "LinearMatrix": lambda: models.LinearMatrix((0, 1)),
    "LinearPredictor": lambda: models.LinearPredictor([NAN]),
    "OutputLayer": lambda: models.OutputLayer(None),
    "ProductNet": lambda: models.ProductNet([1.0], [1.0, 2.0]),
    "Reparametrized": lambda: models.Reparametrized(None, 1.0),
    "SymmetricFactorization": lambda: models.SymmetricFactorization(0, alpha=1.0),
    "TokenMLP": lambda: models.TokenMLP(embedding=0),
    "TokenQuadratic": lambda: models.TokenQuadratic(0),
    "TokenTransformer": lambda: models.TokenTransformer(0),
    "TwoTokenNet": lambda: models.TwoTokenNet(0, alpha=1.0),
    "Unbiased": lambda: models.Unbiased(None),
    "convolutional_net": lambda: models.convolutional_net(0, alpha=1.0),
    "filters_predictor": lambda: models.filters_predictor([1.0, 2.0, 3.0], 2),
    "frequency_net": lambda: models.frequency_net(None, alpha=1.0),
    "conv_net": lambda: models.conv_net("X", alpha=1.0),
    "dense_net": lambda: models.dense_net((0,), alpha=1.0),
    "linearize": lambda: models.linearize(None),
    "relu_net": lambda: models.relu_net(0, 1, alpha=1.0),
    "rescale_layers": lambda: models.rescale_layers(np.ones(3), 1, -1.0),
    "attention": lambda: models.attention([1.0, 0.0], rank=2),
    "student": lambda: models.student(0, alpha=1.0),
    "two_layer": lambda: models.two_layer(0, alpha=1.0),
    "univariate_relu": lambda: models.univariate_relu(0, alpha=1.0),
    "wide_factorization": lambda: models.wide_factorization(3, alpha=1.0, shape=(2, 2)),
    "wishart_root": lambda: models.wishart_root(4, 3),
}
PLOTTING = {
    "Note": lambda: plotting.Note(None, "a", {}),
    "caption_of": lambda: plotting.caption_of(None),
    "clear_logs": lambda: plotting.clear_logs(None),
    "draw_network": lambda: plotting.draw_network(None, None),
    "draw_on_sphere": lambda: plotting.draw_on_sphere(None, None, None),
    "draw_sphere": lambda: plotting.draw_sphere(None, X, None),
    "draw_transition": lambda: plotting.draw_transition(None, ""),
    "end_label": lambda: plotting.end_label(None, 0.0, 0.0, "a", "b"),
    "for_paper": lambda: plotting.for_paper(-1.0),
    "in_terminal": lambda: plotting.in_terminal(3),
    "latex": lambda: plotting.latex("a"),
    "log_axes": lambda: plotting.log_axes(None, "x", "y"),
    "mark": lambda: plotting.mark(None, 0.0, "a", "b", "c"),
    "panel_rows": lambda: plotting.panel_rows("title", "caption", ()),
    "panels": lambda: plotting.panels("title", []),
    "sheet": lambda: plotting.sheet("title", widths=()),
    "sheet_of": lambda: plotting.sheet_of(None),
    "viewer": lambda: plotting.viewer("a", 0.0),
    "wrap": lambda: plotting.wrap("a", 0),
    "write_beside": lambda: plotting.write_beside(None, [], []),
}
PROBLEMS = {
    "Completion": lambda: problems.Completion((2, 2), [[0, 5]], [1.0]),
    "Sensing": lambda: problems.Sensing(X, Y),
    "TokenSelection": lambda: problems.TokenSelection([X, X], X, LABELS, [1.0]),
    "aligned_sensing": lambda: problems.aligned_sensing(2, (3, 4), rank=4),
    "circle_teacher": lambda: problems.circle_teacher(0),
    "coherent_completion": lambda: problems.coherent_completion(0, X, tau=1.0),
    "commuting_sensing": lambda: problems.commuting_sensing(0, 3),
    "gaussian_sensing": lambda: problems.gaussian_sensing(0, 3, rank=1),
    "has_images": lambda: problems.has_images("nothing"),
    "import_images": lambda: problems.import_images("nothing", "nowhere"),
    "load_images": lambda: problems.load_images("nothing"),
    "low_rank_completion": lambda: problems.low_rank_completion(0, 3, rank=1),
    "majority": lambda: problems.majority(0, 3),
    "modular_arithmetic": lambda: problems.modular_arithmetic(1),
    "multiclass": lambda: problems.multiclass(X, [0, 0.5]),
    "multiplication_table": lambda: problems.multiplication_table(0, fraction=0.5),
    "opposed_units": lambda: problems.opposed_units(0),
    "permutation_group": lambda: problems.permutation_group(0),
    "separable_points": lambda: problems.separable_points(0, 3),
    "sparse_recovery": lambda: problems.sparse_recovery(0, 3, sparsity=1),
    "sparse_regression": lambda: problems.sparse_regression(0, 3, sparsity=1),
    "spiked_points": lambda: problems.spiked_points(0),
    "teacher_student": lambda: problems.teacher_student(0),
    "three_points": lambda: problems.three_points("nothing"),
    "token_selection": lambda: problems.token_selection(2, 1, 3),
    "uniform_points": lambda: problems.uniform_points(0),
    "wide_margin": lambda: problems.wide_margin(0, 3, gamma=0.1),
}
RULES = {
    "At": lambda: record.At(),
    "LogSpaced": lambda: record.LogSpaced(0),
    "Accuracy": lambda: stop.Accuracy(),
    "Below": lambda: stop.Below("loss", NAN),
    "Epochs": lambda: stop.Epochs(-1),
    "Interpolated": lambda: stop.Interpolated(-1.0),
    "LogLoss": lambda: stop.LogLoss(NAN),
    "Loss": lambda: stop.Loss(-1.0),
    "Near": lambda: stop.Near([NAN], 1.0),
    "Scale": lambda: stop.Scale(-1.0),
    "log_spaced": lambda: record.log_spaced(10, 0),
}
REGULARIZERS = {
    "Blocks": lambda: regularizers.Blocks([L1()]),
    "Custom": lambda: regularizers.Custom(None),
    "DerivativeMatch": lambda: regularizers.DerivativeMatch(None, [1.0], [1.0]),
    "Frobenius": lambda: regularizers.Frobenius()(BETA),
    "Linf": lambda: regularizers.Linf()(X),
    "Lp": lambda: regularizers.Lp(0.0),
    "Nuclear": lambda: regularizers.Nuclear((0, 1)),
    "Penalty": lambda: regularizers.Penalty(-1.0, L1()),
    "PerTensor": lambda: regularizers.PerTensor(None),
    "R": lambda: regularizers.R(),
    "Schatten": lambda: regularizers.Schatten(None),
    "LayerSpectral": lambda: regularizers.LayerSpectral([(0, 1)]),
    "Spectral": lambda: regularizers.Spectral((0, 1)),
    "as_norm": lambda: regularizers.as_norm("nothing"),
}
SOLVERS = {
    "cubic_spline": lambda: solvers.cubic_spline(REGRESSION),
    "descent_points": lambda: solvers.descent_points(WRONG, Y, 0.1, 0.1, BETA, [1]),
    "empty_factors": lambda: solvers.empty_factors(None, True),
    "error_floor": lambda: solvers.error_floor(WRONG, BETA),
    "greedy_points": lambda: solvers.greedy_points(None, None, []),
    "held_best": lambda: solvers.held_best(WRONG, BETA, BETA),
    "held_ridge": lambda: solvers.held_ridge(WRONG, Y, 1.0),
    "interpolate_path": lambda: solvers.interpolate_path(WRONG, Y, log_alphas=[0.0]),
    "l1_ends": lambda: solvers.l1_ends(WRONG),
    "least_bend": lambda: solvers.least_bend(Regression([[1.0], [1.0]], Y)),
    "least_squares_limit": lambda: solvers.least_squares_limit(WRONG, Y, 0.1),
    "max_margin_path": lambda: solvers.max_margin_path(WRONG, LABELS, mus=[1.0]),
    "memorization_steps": lambda: solvers.memorization_steps(WRONG, Y, 0.1, 0.1),
    "least_weights": lambda: solvers.least_weights(Regression([[0.0], [1.0]], Y), [NAN]),
    "linear_spline": lambda: solvers.linear_spline(None),
    "minimisers": lambda: list(solvers.minimisers(WRONG, np.array(Y), 2, np.zeros(1))),
    "primal_residual": lambda: solvers.primal_residual(WRONG, Y, BETA),
    "ratchet_path": lambda: solvers.ratchet_path(WRONG, LABELS, mus=[1.0]),
    "recovery_scale": lambda: solvers.recovery_scale(X, Y, BETA, 2, [0.0], error=-1.0),
    "ridge_limit": lambda: solvers.ridge_limit(WRONG, Y, 0.1, 0.1),
    "saddles": lambda: solvers.saddles(WRONG, Y),
    "separation": lambda: solvers.separation(WRONG, LABELS),
    "slow_flow": lambda: solvers.slow_flow(WRONG, BETA),
    "factor_twin": lambda: solvers.factor_twin(NET, REGRESSION),
    "stationary_points": lambda: solvers.stationary_points(WRONG, LABELS, regularizers.Lp(0.5)),
    "tangent_twin": lambda: solvers.tangent_twin(NET, LABELLED, [1.0, 0.0]),
}
REFUSED = {
    **TOP,
    **BOUNDS,
    **FORECASTS,
    **LAB,
    **MEASURES,
    **METHODS,
    **MODELS,
    **PLOTTING,
    **PROBLEMS,
    **RULES,
    **REGULARIZERS,
    **SOLVERS,
}

# what a name makes complains, or the command that it serves
SPEAKERS = {
    "Reparametrized": "derive",
    "at_least": "Check",
    "at_most": "Check",
    "read_study": "run",
    "spiked_points": "Classification",
    "uniform_points": "Classification",
    "within": "Check",
}

# nobody constructs them, and they check nothing: what functions return, and what other code
# extends or raises
RESULTS = {
    *(
        "Assumptions",
        "Delay",
        "Design",
        "Forecast",
        "FourierLosses",
        "GreedyRank",
        "Grokking",
        "HeldSweep",
        "ImageModel",
    ),
    *(
        "InterpolationPath",
        "KernelError",
        "KernelMachine",
        "KernelRegression",
        "Lojasiewicz",
        "MarginPath",
    ),
    *(
        "MatrixSolution",
        "Outcome",
        "Path",
        "PopulationError",
        "PopulationMargin",
        "PredictedRun",
        "RatchetPath",
        "Record",
        "Recorded",
    ),
    *("FactorTwin", "FrequencyNet", "KernelRegime"),
    *("Saddles", "Separation", "SlowFlow", "Solution", "Stability", "Verdict", "Derived"),
    "TangentTwin",
    *("CircleTeacher", "TeacherStudent", "Images", "Network", "Oracle", "NumericalError"),
}
BASES = {
    *("Descent", "MatrixProblem", "Model", "Observer", "Regularizer", "Separable"),
    *("SpectralFunction", "Stop", "Term", "TokenNet"),
}
# of other libraries and of typing
OTHERS = {"Array", "Axes", "DataArray", "Dataset", "Figure", "Kind", "Size", "Status"}


def refuses(name, call):
    """Whether the call is refused by one line, from the name that complains."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    return is_sentence(name, caught.value)


def is_sentence(name, error):
    speaker = re.escape(SPEAKERS.get(name, name))
    return re.fullmatch(rf"{speaker}\b[^:\n]*: \S[^\n]*", str(error)) is not None


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_call_is_refused_by_one_sentence(name):
    assert refuses(name, REFUSED[name])


@pytest.mark.parametrize("name", sorted(RESULTS | BASES))
def test_what_nobody_constructs_has_no_check(name):
    """One that gets a check moves to `REFUSED`."""
    told = inspect.signature(public(name)).parameters.values()
    named = [one.name for one in told if one.kind is inspect.Parameter.KEYWORD_ONLY]
    placed = [one for one in told if one.kind < inspect.Parameter.VAR_POSITIONAL]
    reason = None
    try:
        public(name)(*(object() for _ in placed), **{one: object() for one in named})
    except Exception as error:
        reason = error
    assert not is_sentence(name, reason)


def takes_arguments(name):
    """Whether a call of the name can be wrong."""
    value = public(name)
    return inspect.isclass(value) or bool(callable(value) and inspect.signature(value).parameters)


def test_no_public_name_is_left_out():
    lists = (REFUSED, RESULTS, BASES, OTHERS)
    listed = [name for names in lists for name in names]
    assert len(listed) == len(set(listed)), "a name is listed twice"
    called = {name for name in set(public_names()) - OTHERS if takes_arguments(name)}
    assert called | OTHERS == set(listed)
    assert SPEAKERS.keys() <= REFUSED.keys()


def test_what_python_or_a_library_says_is_no_sentence_of_ours():
    """The control: missing arguments and errors from inside."""
    assert not refuses("Q", lambda: Q(*range(9)))
    assert not refuses("L2", lambda: np.ones(2) @ np.ones(3))
