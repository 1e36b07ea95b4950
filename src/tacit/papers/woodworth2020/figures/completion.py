"""Matrix completion by factors from Gaussian starts: single runs, and where rows of them turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array
from tacit.measures.curves import crossing
from tacit.models.factorization import Factorization
from tacit.problems.matrices import low_rank_completion
from tacit.records import NumericalError
from tacit.regularizers.spectral import Nuclear
from tacit.solvers.interpolate import interpolate
from tacit.training.exact.matrices.flow import MatrixFlow
from tacit.training.path import Path
from tacit.training.record import LogSpaced
from tacit.training.stop import Interpolated
from tacit.training.train import train

if TYPE_CHECKING:
    import xarray

MEASURES = ("excess", "move")


def cell(
    alpha: float,
    k: int | None,
    seed: int,
    *,
    dimension: int,
    rank: int,
    samples: int,
    rtol: float,
    loss: float,
) -> dict[str, float]:
    """Excess nuclear norm and RMS move of hidden entries at the end of training; scale alpha^2 k.

    The first is in units of its value for the seen entries alone, zero elsewhere; the second in
    units of the RMS of the hidden entries of the truth. An infinite width (None) is the start
    with lifted matrix alpha^2 I, towards which wide Gaussian starts of k a^2 = alpha^2 tend.
    """
    problem = low_rank_completion(samples=samples, dimension=dimension, rank=rank, seed=seed)
    if k is None:
        side, zero = alpha * np.eye(dimension), np.zeros((dimension, dimension))
        model = Factorization(factors=(np.hstack([side, zero]), np.hstack([zero, side])))
    else:
        model = Factorization(k, alpha=alpha, seed=seed)
    path = flow(problem, model, rtol, loss)
    assert problem.truth is not None
    truth, hidden = problem.truth, problem.hidden
    least = np.linalg.norm(truth, "nuc")
    kernel = np.linalg.norm(np.where(problem.observed, truth, 0.0), "nuc") - least
    if kernel <= 0:
        raise ValueError(
            f"Figure 5: at seed {seed} the seen entries alone have a smaller nuclear norm than the "
            "truth, so there is no excess to follow; take more samples"
        )
    excess = (np.linalg.norm(path.predictor, "nuc") - least) / kernel
    moved = path.predictor - model.matrix(model.start(problem.dimension))
    move = np.sqrt(np.mean(moved[hidden] ** 2) / np.mean(truth[hidden] ** 2))
    return {"excess": float(excess), "move": float(move), "scale": alpha**2 * (k or 1)}


def rich(
    seed: int,
    *,
    alpha: float,
    k: int,
    dimension: int,
    rank: int,
    samples: int,
    rtol: float,
    loss: float,
) -> dict[str, Any]:
    """Where a small start ends: distances, relative to it, of what may be the rich limit.

    The nuclear norms are relative to that of the truth.
    """
    problem = low_rank_completion(samples=samples, dimension=dimension, rank=rank, seed=seed)
    assert problem.truth is not None
    end = flow(problem, Factorization(k, alpha=alpha, seed=seed), rtol, loss).predictor
    least = interpolate(problem, Nuclear()).matrix
    low, stages = greedy(problem, rtol, loss)
    seen = np.where(problem.observed, problem.truth, 0.0)
    targets = {"truth": problem.truth, "greedy": low, "nuclear": least, "frobenius": seen}
    found = {f"to_{name}": _apart(target, end) for name, target in targets.items()}
    norms = [float(np.linalg.norm(matrix, "nuc")) for matrix in (end, least, problem.truth)]
    return {**found, "stages": stages, "norm": norms[0] / norms[2], "least": norms[1] / norms[2]}


def greedy(problem: Any, rtol: float, loss: float, start: float = 1e-6) -> tuple[Array, int]:
    """The end of greedy low-rank learning (Li et al. 2021), and the number of its stages.

    A stage adds a column to both factors, along the largest singular pair of the residual and all
    but zero, and follows the flow to rest; the first that rests at zero loss is the last.
    """
    U = V = np.zeros((len(problem.truth), 0))
    for stages in range(1, len(problem.truth) + 1):
        residual = problem.y - problem.apply(U @ V.T)
        left, _, right = np.linalg.svd(problem.adjoint(residual))
        U, V = np.hstack([U, start * left[:, :1]]), np.hstack([V, start * right[:1].T])
        path = flow(problem, Factorization(factors=(U, V)), rtol, loss, to_the_end=False)
        if path.outcome.ok:
            return np.asarray(path.predictor), stages
        U, V = np.split(np.reshape(path.parameters, (2 * len(U), -1)), 2)
    raise NumericalError("greedy", path.outcome)


def flow(problem: Any, model: Any, rtol: float, loss: float, to_the_end: bool = True) -> Path:
    """The path of gradient flow to zero loss."""
    method = MatrixFlow(rtol=rtol)
    path = train(model, problem, method, stop=Interpolated(loss), record=LogSpaced(1))
    if to_the_end and not path.outcome.ok:
        raise NumericalError("Figure 5", path.outcome)
    return path


def _apart(one: Array, other: Array) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def turn(alphas: Array, row: Array, measure: str) -> tuple[float, float, float, float]:
    """(alpha at 10 %, halfway, decades of alpha from 10 % to 90 %, lowest value) of one row.

    The excess goes from 0 to 1. The move falls from 1 to its least value at this width, and grows
    again with alpha^2, as the start itself does; the fall is what is measured.
    """
    floor = float(row.min())
    rising = row if measure == "excess" else (1 - row) / (1 - floor)
    low, half, high = (crossing(np.log10(alphas), rising, level) for level in (0.1, 0.5, 0.9))
    return 10**low, 10**half, high - low, floor


def turns(dataset: xarray.Dataset, limit: xarray.Dataset) -> xarray.Dataset:
    """Medians over the seeds, and where every row of them turns; `limit_` is infinite width."""
    import xarray

    medians = dataset[list(MEASURES)].median("seed").transpose("k", "alpha")
    rows = limit[list(MEASURES)].median("seed").rename(alpha="limit_alpha")
    found = np.array(
        [[turn(dataset.alpha.values, row, m) for row in medians[m].values] for m in MEASURES]
    )
    ends = np.array([turn(limit.alpha.values, rows[m].values, m) for m in MEASURES])
    line = ("measure", "k")
    return medians.assign(
        departure=(line, found[..., 0]),
        transition=(line, found[..., 1]),
        width=(line, found[..., 2]),
        scale=(line, found[..., 1] ** 2 * dataset.k.values),
        floor=("k", found[1, :, 3]),
        limit_excess=rows.excess,
        limit_move=rows.move,
        limit_scale=("measure", ends[:, 1] ** 2),
        limit_width=("measure", ends[:, 2]),
    ).assign_coords(measure=xarray.DataArray(list(MEASURES), dims="measure"))


def gaps(found: xarray.Dataset) -> Array:
    """The largest distance, where alpha^2 k <= 1, to the excess at infinite width, by k."""
    places, far = np.log(found.limit_alpha.values), []
    for k in found.k.values:
        row = found.excess.sel(k=k)
        scale = found.alpha.values * np.sqrt(k)
        inside = (scale <= 1) & (scale >= found.limit_alpha.values[0])
        limit = np.interp(np.log(scale[inside]), places, found.limit_excess.values)
        far.append(np.abs(row.values[inside] - limit).max())
    return np.array(far)
