"""Cells of Figure 2: nets and sparse recovery, trained at a held norm."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array, one_of
from tacit.papers.notsawo2025.figures.runs import Runs, arguments
from tacit.papers.notsawo2025.recoveries import SPARSE, recovery
from tacit.studies.sizes import sized

if TYPE_CHECKING:
    from tacit.models.function import FunctionModel

SHARES = 2.0 ** np.linspace(-2, 2.5, 19)  # held norm over that of the truth; SHARES[MIDDLE] = 1
MIDDLE = 8
STEP = 0.1  # of sparse recovery
SPARSE_STEPS = {"l1": 2000, "l2": 20_000}  # l2 is slow where the norm is just that of X^+ y
NET: dict[str, Any] = {"inputs": 10, "width": 40, "samples": 80, "steps": 3000}


@functools.lru_cache(maxsize=4)
def student(width: int) -> FunctionModel:
    """The net that learns; one object, so that all of its runs share what was compiled."""
    from tacit.models.two_layer import two_layer

    return two_layer(width, alpha=1.0)


def symmetric(width: int, inputs: int) -> Array:
    """The student's start made symmetric, so that it computes zero."""
    theta = student(width).start(inputs).copy()
    inner, outer = theta[: width * inputs].reshape(width, inputs), theta[width * inputs :]
    half = width // 2
    inner[half:], outer[half:] = inner[:half], -outer[:half]
    return theta


def cell(run: int, *, runs: Runs, given: Mapping[str, Any]) -> dict[str, Any]:
    """Losses of one student at every held norm, over those of the zero predictor.

    `rescaled` is the net of the least test loss, rescaled to each larger norm and trained on.
    """
    from tacit.models.two_layer import rescale_layers
    from tacit.problems.regression import Regression
    from tacit.problems.teacher import opposed_units
    from tacit.training.descent.held_norm import held_sweep

    usual = {"noise": 0.0, "start": "Gaussian", "labels": "right", "rescale": False}
    one: dict[str, Any] = {**usual, **given, **runs[run]}
    width, inputs = one["width"], one["inputs"]
    case = opposed_units(one["samples"], inputs, seed=one["seed"], noise=one["noise"])
    model, training = student(width), case.training
    if one["labels"] == "shuffled":  # nothing to be learnt
        y = np.random.default_rng(0).permutation(training.y)
        training = Regression(training.X, y, loss="half squares")
    sizes = case.least_norm() * SHARES

    def trained(start: Array | None) -> tuple[Array, Array, Array]:
        sweep = held_sweep(
            model, training, sizes, learning_rate=1e-3, steps=one["steps"], start=start
        )
        X, y = case.test.X, case.test.y
        errors = [np.sum((model.predict(theta, X) - y) ** 2) for theta in sweep.parameters]
        return sweep.loss, np.array(errors) / float(np.sum(y**2)), sweep.parameters

    train, test, ends = trained(symmetric(width, inputs) if one["start"] == "symmetric" else None)
    rescaled, low = np.full(len(sizes), np.nan), int(np.argmin(test))
    if one["rescale"]:
        starts = [rescale_layers(ends[low], width * inputs, max(w, sizes[low])) for w in sizes]
        rescaled[low:] = trained(np.array(starts))[1][low:]
    named = {name: one[name] for name in ("start", "labels", "samples", "noise")}
    return {
        **named,
        "teacher": one["seed"],
        "share": SHARES,
        "train": train,
        "test": test,
        "rescaled": rescaled,
        "least_norm": case.least_norm(),
        "unbalanced_norm": case.least_norm(2.0),
    }


def sparse_cell(run: int, *, runs: Runs, given: Mapping[str, Any]) -> dict[str, Any]:
    """Sparse recovery at every held norm of one kind; for l2 also where it must end, exactly."""
    from tacit.solvers.least_squares import held_best, held_ridge
    from tacit.training.descent.held_norm import held_sweep

    one = {**given, **runs[run]}
    norm = one_of("sparse recovery", "norm", one["norm"], SPARSE_STEPS)
    case = recovery(**{name: one[name] for name in ("seed", *SPARSE)})
    length = float(np.linalg.norm(case.truth))
    own = length if norm == "l2" else float(np.abs(case.truth).sum())
    start = np.random.default_rng(7).standard_normal(len(case.truth))
    steps = one["more"] * SPARSE_STEPS[norm]
    sweep = held_sweep(case.model(0.0), case.problem, own * SHARES, norm, STEP, steps, start)
    found = {
        "norm": norm,
        "problem": one["seed"],
        "nonzero": one["few"],
        "share": SHARES,
        "loss": sweep.loss,
        "error": (case.error(sweep.parameters) / length) ** 2,
        "fall": sweep.fall,
        "exact_error": np.full(len(SHARES), np.nan),
        **dict.fromkeys(("apart", "stretched_apart", "floor", "floor_share"), math.nan),
    }
    if norm == "l1":
        return found
    exact = np.array([held_ridge(case.X, case.y, size, start) for size in sweep.sizes])
    ahat = case.memorized()
    stretched = sweep.sizes[:, None] * ahat / np.linalg.norm(ahat)
    size, floor = held_best(case.X, case.truth, start)
    return found | {
        "exact_error": (case.error(exact) / length) ** 2,
        "apart": np.abs(sweep.parameters - exact).max() / length,
        "stretched_apart": np.abs(stretched - exact).max() / length,
        "floor": floor / length**2,
        "floor_share": size / length,
    }


def path_cell(beta: float, points: int, **problem: Any) -> dict[str, Any]:
    """Norm and error along descent with an l1 penalty; the norm after a squared l2 penalty."""
    from tacit.solvers.least_squares import ridge_limit

    case = recovery(**problem)
    last = round(1.3 * case.path.time / (STEP * beta)) + 20_000
    run = case.run(STEP, beta, np.geomspace(1, last, points)).isel(time=slice(1, None))
    length, ridge = np.linalg.norm(case.truth), ridge_limit(case.X, case.y, STEP, beta).point
    return {
        "trajectory_step": run.step.values,
        "trajectory_share": run.norm_l2.values / length,
        "trajectory_error": run.relative_error.values**2,
        "ridge_share": np.linalg.norm(ridge) / length,
    }


def nets(seeds: int, rescaled: int, more: Runs = ()) -> list[dict[str, Any]]:
    """The ordinary runs, that with shuffled labels, and that from a start that computes zero."""
    ordinary = [{"seed": seed, "rescale": seed < rescaled} for seed in range(seeds)]
    others = [{"labels": "shuffled"}, {"start": "symmetric"}, *more]
    return [*ordinary, *({"seed": 0, **other} for other in others)]


def recoveries(seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Both norms for every problem, and a problem that is not sparse for l1."""
    both = [{"norm": norm, "seed": seed} for seed in seeds for norm in ("l2", "l1")]
    return [*both, {"norm": "l1", "seed": 0, "few": 25}]


LABELS = {
    "share": "held norm over that of the truth: the teacher's least norm, |a*|_2 or |a*|_1",
    "train": "training loss of the net trained at the held norm, over the zero predictor's",
    "test": "test loss of the same net, over the zero predictor's",
    "rescaled": "test loss of the best net, rescaled to the held norm and trained further there",
    "loss": "training loss of sparse recovery at the held norm, over the zero predictor's",
    "error": "|a - a*|^2 / |a*|^2 where training at the held norm ends",
    "fall": "fall of the training loss in the second half of the steps",
    "exact_error": "the error for l2 by the singular values of X",
    "apart": "largest distance of the endpoints to the exact ones, over |a*|",
    "stretched_apart": "the same for X^+ y stretched to the held norms",
    "floor": "the least error that any held l2 norm can leave from this start",
    "floor_share": "the held l2 norm of the least error, over |a*|_2",
    "beta": "strength of the l1 penalty",
    "trajectory_error": "|a - a*|^2 / |a*|^2",
    "trajectory_share": "|a|_2 over |a*|_2",
    "ridge_share": "|a|_2 over |a*|_2 after a squared l2 penalty",
}
study = sized(
    "N-F2",
    title="A net has a Goldilocks zone of norms, unless its layers are rescaled",
    function=cell,
    dims={name: ["place"] for name in ("share", "train", "test", "rescaled")},
    labels=LABELS,
    draw={"x": "run", "colour": "least_norm"},
    **arguments(nets(2, 1), **NET),
    tiny=arguments(nets(1, 1), **NET),
    standard=arguments(nets(3, 1), **NET),
    full=arguments(nets(10, 10, [{"samples": 400}, {"noise": 0.3}]), **NET),
)
sparse = sized(
    "N-F2-sparse",
    title="Sparse recovery has no Goldilocks zone in ℓ₂, only in ℓ₁",
    function=sparse_cell,
    dims={name: ["place"] for name in ("share", "loss", "error", "fall", "exact_error")},
    labels=LABELS,
    draw={"x": "run", "colour": "floor"},
    **arguments(recoveries([0]), **SPARSE, more=1),
    standard=arguments(recoveries([0, 4]), **SPARSE, more=1),
    # seeds 7 and 8 have not come to rest without ten times the steps
    full=arguments(recoveries(range(10)), **SPARSE, more=10),
)
path = sized(
    "N-F2-path",
    title="Training with an ℓ₁ penalty ends at the truth, whatever its ℓ₂ norm during training",
    function=path_cell,
    arguments={**SPARSE, "points": 150},
    grid={"beta": [1e-3]},
    seeds=[0],
    dims={f"trajectory_{name}": ["time"] for name in ("step", "share", "error")},
    labels=LABELS,
    draw={"x": "beta", "colour": "ridge_share"},
    standard={"seeds": [0, 4]},
    full={"grid": {"beta": [1e-4]}, "seeds": 10},  # the error is of the order of beta^2
)
