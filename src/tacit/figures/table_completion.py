"""Runs of U U^T - V V^T on a multiplication table under weight decay, with their limits."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.figures.registry import Parameters, Progress

if TYPE_CHECKING:
    import xarray

    from tacit.models.factorization import DifferenceFactorization
    from tacit.problems.matrices import Completion

TEXTS = {
    "decay": "rate of the weight decay next to a mean squared error, lambda",
    "t": "training time of gradient flow on the mean squared error",
    "steps": "training time as a number of descent steps",
    "train_error": "root mean square error on the entries seen",
    "test_error": "root mean square error on the entries neither seen nor mirrored",
    "norm_nuclear": "nuclear norm of the matrix over the least that fits the data",
    "from_kernel": "distance to the kernel interpolant, relative, in Frobenius norm",
    "from_nuclear": "distance to the minimiser of the nuclear norm, relative, in Frobenius norm",
    "parameter_norm": "Euclidean norm of the parameters",
    "turn": "angle between the parameters and their start",
    "kernel_distance": "1 - cos(K(t), K(0))",
    "forecast": "time of the transition foreseen before training",
    "forecast_low": "lower end of the interval foreseen",
    "forecast_high": "upper end of the interval foreseen",
    "theory": "(1/lambda) log alpha; NaN where alpha <= 1",
    "t1": "time from which the training error stays below the level",
    "t2": "time from which the test error stays below the level",
    "jump": "time at which half of the late fall of the test error is done",
    "least_nuclear": "least nuclear norm of a symmetric matrix that fits the data",
    "certificate": "worst optimality condition of that matrix, relative",
    "truth_nuclear": "nuclear norm of the table",
    "least_error": "test error of the matrix of least nuclear norm",
}
UNITS = {"turn": "degrees"}


@dataclasses.dataclass(frozen=True)
class MeanLoss:
    """The one place where a mean squared error meets our sum of squares.

    sum = samples * mean, so decay next to the mean is `samples * decay` next to the sum, and
    gradient flow on the mean takes `samples` times as long.
    """

    samples: int
    decay: float

    @property
    def rate(self) -> float:
        return self.samples * self.decay

    def time(self, ours: Any) -> Any:
        """Training time on the mean that corresponds to a time on the sum."""
        return self.samples * ours


@dataclasses.dataclass(frozen=True)
class Limits:
    """The matrices that the two phases are expected to select."""

    kernel: Array
    nuclear: Array
    value: float
    certificate: float


def seen_pairs(fraction: float) -> float:
    """The share of unordered pairs {i, j} of which a random `fraction` of all entries shows one."""
    return 1 - (1 - fraction) ** 2


def limits(mirrored: Completion) -> Limits:
    """Both minimisers over symmetric matrices, which see (j, i) with (i, j).

    At U = V = alpha I every entry has a tangent feature of its own, so the kernel interpolant is
    the one of least Frobenius norm: zero wherever nothing was seen.
    """
    from tacit.regularizers.spectral import Frobenius, Nuclear
    from tacit.solvers.interpolate import interpolate

    kernel, nuclear = (interpolate(mirrored, norm) for norm in (Frobenius(), Nuclear()))
    certificate = max(nuclear.residual, nuclear.kkt)
    return Limits(kernel.matrix, nuclear.matrix, nuclear.value, certificate)


def tangent_kernel(problem: Completion, matrix: Array, product: float) -> Array:
    """The tangent kernel of U U^T - V V^T on the entries seen, from the matrix alone.

    Training from U = V = alpha I keeps V^T U = product * I, product = alpha^2 exp(-2 decay t), so
    U U^T and V V^T are inverse up to product^2, and their sum S has S^2 = M^2 + 4 product^2 I.
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    S = (vectors * np.hypot(values, 2 * product)) @ vectors.T
    i, j = problem.entries.T
    kernel = np.zeros((len(i), len(i)))
    for a, b in ((i, j), (j, i)):
        for c, d in ((i, j), (j, i)):
            kernel += np.equal.outer(a, c) * S[np.ix_(b, d)]
    return kernel


def completed(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """The runs of all decays over (decay, record), and the two minimisers they are held against."""
    import xarray

    from tacit.models.factorization import DifferenceFactorization
    from tacit.problems.matrices import multiplication_table

    where = {"fraction": seen_pairs(parameters["fraction"]), "seed": parameters["seed"]}
    problem = multiplication_table(parameters["dimension"], **where, mirrored=False)
    known, model = (
        limits(multiplication_table(parameters["dimension"], **where)),
        DifferenceFactorization(alpha=parameters["alpha"]),
    )
    runs = []
    for done, decay in enumerate(parameters["decays"], start=1):
        runs.append(_run(model, problem, known, decay, parameters))
        if progress:
            progress(done, len(parameters["decays"]))
    dataset = xarray.concat(runs, dim="decay").assign_coords(decay=list(parameters["decays"]))
    assert problem.truth is not None
    dataset = dataset.assign(
        least_nuclear=known.value,
        certificate=known.certificate,
        truth_nuclear=float(np.linalg.norm(problem.truth, "nuc")),
        least_error=problem.test_error(known.nuclear),
    )
    return _labelled(dataset).assign_attrs(level=parameters["level"], step=parameters["step"])


def _run(
    model: DifferenceFactorization,
    problem: Completion,
    known: Limits,
    decay: float,
    parameters: Parameters,
) -> xarray.Dataset:
    """One run in the time of the mean loss, what was foreseen and when it jumped."""
    from tacit.measures.forecast import forecast
    from tacit.measures.grokking import grokking

    mean = MeanLoss(problem.samples, decay)
    foreseen = forecast(model, problem, mean.rate)  # before training
    path = _trained(model, problem, mean, parameters)
    run = _curves(path, model, problem, known, mean)
    run["steps"] = run.t / parameters["step"]
    late = run.isel(record=slice(1, None))
    found = grokking(late.t, late.train_error, late.test_error, parameters["level"], error=True)
    times = {
        "forecast": foreseen.transition,
        "forecast_low": foreseen.low,
        "forecast_high": foreseen.high,
        "theory": foreseen.naive,
    }
    run = run.assign({name: mean.time(value) for name, value in times.items()})
    return run.assign(t1=found.t1, t2=found.t2, jump=found.jump)


def _trained(
    model: DifferenceFactorization, problem: Completion, mean: MeanLoss, parameters: Parameters
) -> xarray.Dataset:
    """The recorded path, half of its records log-spaced and half evenly spaced."""
    from tacit.records import NumericalError
    from tacit.training.exact.parameter import ParameterFlow
    from tacit.training.record import At
    from tacit.training.stop import Time
    from tacit.training.train import train

    last, half = parameters["end"] / mean.rate, parameters["records"] // 2
    first = 1e-2 / model.alpha**2  # the kernel's eigenvalues are of order alpha^2
    times = np.append(
        np.geomspace(first, last / half, half, endpoint=False), np.linspace(last / half, last, half)
    )
    flow = ParameterFlow(rtol=parameters["rtol"], weight_decay=mean.rate)
    path = train(model, problem, flow, stop=Time(last), record=At(times=times[:-1]))
    if not path.outcome.ok:
        raise NumericalError(f"L-F3a, decay {mean.decay:g}", path.outcome)
    t = path.dataset.t.values
    return path.dataset.isel(time=np.searchsorted(t, np.append(0.0, times) * (1 - 1e-12)))


def _curves(
    path: xarray.Dataset,
    model: DifferenceFactorization,
    problem: Completion,
    known: Limits,
    mean: MeanLoss,
) -> xarray.Dataset:
    """Everything that is drawn over time."""
    import xarray

    matrices, t = path.predictor.values, path.t.values
    products = model.alpha**2 * np.exp(-2 * mean.rate * t)
    curves = {name: path[name].values for name in ("test_error", "parameter_norm", "turn")}
    curves["t"] = mean.time(t)
    curves["train_error"] = np.sqrt(path.loss.values / problem.samples)
    curves["norm_nuclear"] = path.norm_nuclear.values / known.value
    curves["from_kernel"] = _distances(matrices, known.kernel)
    curves["from_nuclear"] = _distances(matrices, known.nuclear)
    curves["kernel_distance"] = _kernel_distances(problem, matrices, products)
    return xarray.Dataset({name: ("record", values) for name, values in curves.items()})


def _distances(matrices: Array, target: Array) -> Array:
    return np.linalg.norm(matrices - target, axis=(1, 2)) / np.linalg.norm(target)


def _kernel_distances(problem: Completion, matrices: Array, products: Array) -> Array:
    from tacit.models.tangent import kernel_distance

    kernels = (tangent_kernel(problem, M, p) for M, p in zip(matrices, products, strict=True))
    first = next(kernels)
    return np.array([0.0, *(kernel_distance(first, kernel) for kernel in kernels)])


def _labelled(dataset: xarray.Dataset) -> xarray.Dataset:
    """The dataset with a name and a unit on every variable."""
    for name, variable in dataset.variables.items():
        variable.attrs.update(long_name=TEXTS[str(name)], units=UNITS.get(str(name), "1"))
    return dataset
