"""Sparse recovery at held norms, and its path with an l1 penalty, as figure N-F2 runs them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array, one_of
from tacit.figures.cells import Values, as_curves, cell_of
from tacit.figures.registry import Parameters

if TYPE_CHECKING:
    from tacit.problems.regression import Regression
    from tacit.training.descent.held_sweep import HeldSweep

NORMS = ("l2", "l1")
SPARSE = ("measured", "features", "sparsity", "seed")


def shares_of(parameters: Parameters) -> Array:
    """Held norms over those of the truth, evenly spaced in the logarithm, with 1 among them."""
    low, high = parameters["log2_range"]
    each = parameters["per_doubling"]
    return np.asarray(2.0 ** (np.arange(round(low * each), round(high * each) + 1) / each))


def sparse_run(shares: Array, parameters: Parameters) -> dict[str, Any]:
    """Sparse recovery at both held norms, the exact l2 curve, and the path of the l1 penalty."""
    case = sparse_case(parameters)
    sweeps = [case.held(norm, shares, parameters) for norm in NORMS]
    found: dict[str, Any] = {
        "loss": (("norm", "share"), np.array([sweep.loss for sweep in sweeps])),
        "error": (
            ("norm", "share"),
            np.array([_errors(sweep.parameters, case.truth) for sweep in sweeps]),
        ),
        "exact_error": ("share", case.exact(shares)),
        **{name: ((), value) for name, value in case.floor().items()},
    }
    return found | _path(case.problem, case.truth, parameters)


@dataclasses.dataclass(frozen=True)
class SparseCase:
    """A sparse recovery without noise, its truth and the start of the runs with a held norm."""

    problem: Regression
    truth: Array
    start: Array

    def size(self, norm: str) -> float:
        """The norm of the truth."""
        return float(np.linalg.norm(self.truth) if norm == "l2" else np.abs(self.truth).sum())

    def held(self, norm: str, shares: Array, parameters: Parameters) -> HeldSweep:
        """Training at every share of the truth's norm."""
        from tacit.models.linear import LinearPredictor
        from tacit.training.descent.held_sweep import held_sweep

        steps = parameters[{"l2": "l2_steps", "l1": "sparse_steps"}[norm]]
        return held_sweep(
            LinearPredictor(), self.problem, self.size(norm) * shares, norm, 0.1, steps, self.start
        )

    def exact(self, shares: Array) -> Array:
        """The errors where training at a held l2 norm ends, by the singular values of X."""
        from tacit.solvers.held_ridge import held_ridge

        X, y, size = self.problem.X, self.problem.y, self.size("l2")
        points = [held_ridge(X, y, size * share, self.start) for share in shares]
        return _errors(np.array(points), self.truth)

    def floor(self) -> dict[str, float]:
        """The least error that a held l2 norm can leave, and where, relative to the truth."""
        from tacit.solvers.held_ridge import held_best

        size, floor = held_best(self.problem.X, self.truth, self.start)
        own = self.size("l2")
        return {"floor": floor / own**2, "floor_share": size / own}


def sparse_case(parameters: Parameters) -> SparseCase:
    from tacit.problems.recovery import sparse_recovery

    problem = sparse_recovery(
        parameters["measured"],
        parameters["features"],
        sparsity=parameters["sparsity"],
        seed=parameters["seed"],
        snr=np.inf,
    )
    assert problem.truth is not None
    start = np.random.default_rng(7).standard_normal(problem.dimension)
    return SparseCase(problem, problem.truth, start)


def _errors(points: Array, truth: Array) -> Array:
    """|a - a*|^2 / |a*|^2 of every row."""
    return np.asarray(np.sum((points - truth) ** 2, axis=1) / float(truth @ truth))


def _path(problem: Regression, truth: Array, parameters: Parameters) -> dict[str, Any]:
    """Norm and error of descent with the l1 penalty, from a start near zero."""
    from tacit.models.linear import LinearPredictor
    from tacit.regularizers.norms import L1
    from tacit.training.descent.methods import Subgradient
    from tacit.training.record import At
    from tacit.training.stop import Steps
    from tacit.training.train import train

    last = parameters["path_steps"]
    record = np.unique(np.geomspace(1, last, parameters["path_points"]).round().astype(int))
    path = train(
        LinearPredictor(1e-6),
        problem,
        Subgradient(parameters["step"]),
        penalty=parameters["beta"] * L1(),
        stop=Steps(last),
        record=At(record.tolist()),
    )
    run = path.dataset.isel(time=slice(1, None))
    size = float(np.linalg.norm(truth))
    return {
        "path_step": ("record", run.step.values),
        "path_share": ("record", run.norm_l2.values / size),
        "path_error": ("record", run.test_error.values / size**2),
    }


@cell_of("norm", "log2_share", "l2_steps", "sparse_steps", *SPARSE)
def cell(parameters: Parameters) -> Values:
    """Sparse recovery at one held norm, 2^log2_share of the truth's; for l2 the exact end too."""
    norm = one_of("N-F2", "norm", parameters["norm"], NORMS)
    case, share = sparse_case(parameters), np.array([2.0 ** parameters["log2_share"]])
    sweep = case.held(norm, share, parameters)
    found = {
        "share": share[0],
        "loss": sweep.loss[0],
        "error": _errors(sweep.parameters, case.truth)[0],
    }
    return found | ({"exact_error": case.exact(share)[0], **case.floor()} if norm == "l2" else {})


@cell_of("step", "beta", "path_steps", "path_points", *SPARSE)
def path_cell(parameters: Parameters) -> Values:
    """The norm and the error along descent with the l1 penalty."""
    case = sparse_case(parameters)
    found = _path(case.problem, case.truth, parameters)
    plain = {name.removeprefix("path_"): values for name, (_, values) in found.items()}
    return as_curves(plain, *plain)
