"""Matrix completion by factors from Gaussian starts: matrices, runs, and where they turn."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penchant import Factorization, GradientDescent, Path, Steps, interpolate, train
from penchant.lab import DRAWS, Array, Dataset, drawn
from penchant.measures import crossing
from penchant.methods import MatrixFlow
from penchant.problems import Completion, low_rank_completion
from penchant.record import LogSpaced
from penchant.regularizers import Nuclear
from penchant.stop import Interpolated

MEASURES = ("excess", "move")
ROOM = 0.25  # by which the seen entries alone must exceed the nuclear norm of the truth
NEAR = 0.01  # a relative distance below which two matrices count as the same
LEAVES = 0.1  # the share of the excess, or of the fall, at which a start leaves the rich regime
MOST = 2000.0  # the time after which descent gives up


@functools.lru_cache(maxsize=256)
def matrix(
    seed: int, dimension: int, rank: int, samples: int, elsewhere: bool = False
) -> tuple[Completion, int]:
    """A matrix that its seen entries determine, and how many were drawn to find it.

    `elsewhere` demands that its least nuclear norm does not.
    """

    def make(number: int) -> Completion:
        return low_rank_completion(samples=samples, dimension=dimension, rank=rank, seed=number)

    def fits(problem: Completion) -> bool:
        if not determined(problem):
            return False
        return not elsewhere or _apart(least_nuclear(problem), truth_of(problem)) > NEAR

    return drawn(make, fits, DRAWS * seed)  # a thousand draws to every seed


def determined(problem: Completion) -> bool:
    """Whether no other matrix of rank one has the seen entries, and there is an excess to follow.

    Rank one is determined where the seen entries, as a graph of rows and columns, are connected.
    Their nuclear norm, with zeros elsewhere, has to exceed that of the truth by a part ROOM of it.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, columns = problem.shape
    i, j = problem.entries.T
    graph = coo_array((np.ones(len(i)), (i, rows + j)), shape=(rows + columns,) * 2)
    whole = connected_components(graph, directed=False)[0] == 1
    room = ROOM * float(np.linalg.norm(truth_of(problem), "nuc"))
    return bool(whole) and excess_of_seen(problem) > room


def excess_of_seen(problem: Completion) -> float:
    """The nuclear norm of the seen entries alone, zero elsewhere, above that of the truth."""
    truth = truth_of(problem)
    seen = np.where(problem.observed, truth, 0.0)
    return float(np.linalg.norm(seen, "nuc") - np.linalg.norm(truth, "nuc"))


def truth_of(problem: Completion) -> Array:
    assert problem.truth is not None
    return problem.truth


def least_nuclear(problem: Completion) -> Array:
    """The interpolating matrix of least nuclear norm."""
    return interpolate(problem, Nuclear()).matrix


def gaussian(k: int, alpha: float, dimension: int, seed: int) -> Factorization:
    """U and V with N(0, alpha^2) entries, drawn apart from the matrix.

    Beyond 2d columns a rotation of the columns leaves 2d; gradient flow and descent of U V^T are
    those of the wide factors.
    """
    W = alpha * np.random.default_rng((seed, k)).standard_normal((2 * dimension, k))
    if k > 2 * dimension:
        W = np.asarray(np.linalg.qr(W.T, mode="r")).T
    return Factorization(factors=(W[:dimension], W[dimension:]))


def infinite(alpha: float, dimension: int) -> Factorization:
    """The start with lifted matrix alpha^2 I: that of wide Gaussian ones with k a^2 = alpha^2."""
    side, zero = alpha * np.eye(dimension), np.zeros((dimension, dimension))
    return Factorization(factors=(np.hstack([side, zero]), np.hstack([zero, side])))


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
    units of the RMS of the hidden entries of the truth. Without a width (None) it is infinite.
    """
    problem, tries = matrix(seed, dimension, rank, samples)
    model = infinite(alpha, dimension) if k is None else gaussian(k, alpha, dimension, seed)
    own = measures(problem, model, flow(problem, model, rtol, loss).predictor)
    return {**own, "scale": alpha**2 * (k or 1), "tries": tries}


def measures(problem: Completion, model: Factorization, end: Array) -> dict[str, float]:
    """Excess and move of one end of training."""
    truth, hidden = truth_of(problem), problem.hidden
    excess = (np.linalg.norm(end, "nuc") - np.linalg.norm(truth, "nuc")) / excess_of_seen(problem)
    moved = end - model.matrix(model.start(problem.dimension))
    move = np.sqrt(np.mean(moved[hidden] ** 2) / np.mean(truth[hidden] ** 2))
    return {"excess": float(excess), "move": float(move)}


def stepped(
    alpha: float,
    k: int,
    seed: int,
    *,
    dimension: int,
    rank: int,
    samples: int,
    rtol: float,
    loss: float,
    step: float,
) -> dict[str, float]:
    """The same by gradient descent, and how far the flow from the same start ends from it."""
    problem = matrix(seed, dimension, rank, samples)[0]
    model = gaussian(k, alpha, dimension, seed)
    ends = descent(problem, model, step, loss), flow(problem, model, rtol, loss)
    own, other = (measures(problem, model, end.predictor) for end in ends)
    apart = {f"{name}_apart": abs(own[name] - other[name]) for name in MEASURES}
    return {**own, **apart, "steps": float(ends[0].dataset.step[-1])}


def rich(
    seed: int,
    elsewhere: bool,
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

    `below` is by how much of its nuclear norm the truth exceeds the least.
    """
    problem, tries = matrix(seed, dimension, rank, samples, elsewhere)
    end = flow(problem, gaussian(k, alpha, dimension, seed), rtol, loss).predictor
    least, truth = least_nuclear(problem), truth_of(problem)
    seen = np.where(problem.observed, truth, 0.0)
    targets = {"truth": truth, "nuclear": least, "frobenius": seen}
    return {
        **{f"to_{name}": _apart(target, end) for name, target in targets.items()},
        "below": float(1 - np.linalg.norm(least, "nuc") / np.linalg.norm(truth, "nuc")),
        "tries": tries,
    }


def flow(problem: Any, model: Any, rtol: float, loss: float) -> Path:
    """The path of gradient flow to zero loss."""
    method = MatrixFlow(rtol=rtol)
    path = train(model, problem, method, stop=Interpolated(loss), record=LogSpaced(1), throw=True)
    return path


def descent(problem: Any, model: Any, step: float, loss: float) -> Path:
    """The path of gradient descent to zero loss."""
    stop = [Interpolated(loss), Steps(int(MOST / step))]
    path = train(model, problem, GradientDescent(step), stop=stop, record=LogSpaced(1), throw=True)
    return path


def _apart(one: Array, other: Array) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def turn(alphas: Array, row: Array, measure: str) -> tuple[float, float, float, float]:
    """(log10 alpha at 10 %, halfway, decades of alpha from 10 % to 90 %, lowest value) of one row.

    The excess goes from 0 to 1. The move falls from 1 to its least value at this width, and grows
    again with alpha^2, as the start itself does; the fall is what is measured.
    """
    floor = float(row.min())
    rising = row if measure == "excess" else (1 - row) / (1 - floor)
    low, half, high = (
        crossing(np.log10(alphas), rising, level) for level in (LEAVES, 0.5, 1 - LEAVES)
    )
    return low, half, high - low, floor


def turns(dataset: Dataset) -> Dataset:
    """Where every row turns, matrix by matrix: a row is one width, or the infinite one.

    `steepest` is the largest fall of the move per decade of alpha.
    """
    import xarray

    def measured(name: str) -> Dataset:
        parts = xarray.apply_ufunc(
            lambda row: np.array(turn(dataset.alpha.values, row, name)),
            dataset[name],
            input_core_dims=[["alpha"]],
            output_core_dims=[["part"]],
            vectorize=True,
        )
        names = ("departure", "half", "width", "floor")
        return xarray.Dataset({n: parts.isel(part=place) for place, n in enumerate(names)})

    places = xarray.concat([measured(name) for name in MEASURES], "measure")
    falls = (
        -dataset.move.diff("alpha").transpose("alpha", ...)
        / np.diff(np.log10(dataset.alpha))[(slice(None), *(None,) * (dataset.move.ndim - 1))]
    )
    return places.assign(steepest=falls.max("alpha")).assign_coords(measure=list(MEASURES))


def gaps(dataset: Dataset, limit: Dataset) -> Array:
    """The largest distance, where alpha^2 k <= 1, of the mean excess to that at infinite width."""
    places, far = np.log(limit.alpha.values), []
    rows, ends = dataset.excess.mean("seed"), limit.excess.mean("seed").values
    for k in dataset.k.values:
        scale = dataset.alpha.values * np.sqrt(k)
        inside = (scale <= 1) & (scale >= limit.alpha.values[0])
        end = np.interp(np.log(scale[inside]), places, ends)
        far.append(np.abs(rows.sel(k=k).values[inside] - end).max())
    return np.array(far)
