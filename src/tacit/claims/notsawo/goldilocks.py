"""N-F2: training and test loss at a held norm, and why the l2 norm alone explains no grokking."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.arguments import Array
from tacit.claims.notsawo.held_runs import (
    INPUTS,
    MIDDLE,
    SAMPLES,
    SHARES,
    WIDTH,
    Curves,
    Recovered,
    net,
    recovered,
    shuffled,
    silent,
    taught,
)
from tacit.claims.notsawo.runs import STEP, recovery, slow_phase, sparse_run, truth
from tacit.claims.registry import claim
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.models.rescaling import rescale_layers
from tacit.problems.opposed_units import opposed_units
from tacit.problems.recovery import sparse_recovery
from tacit.problems.regression import Regression
from tacit.solvers.delay import least_squares_limit, ridge_limit
from tacit.solvers.held_ridge import held_best, held_ridge
from tacit.studies.sizes import Size

BETA: dict[Size, float] = {"quick": 1e-3, "full": 1e-4}  # of the l1 penalty; the error is O(beta^2)
NETS = {"quick": 3, "full": 10}
MOVED = {"quick": (0,), "full": tuple(range(10))}
SPARSE = {"quick": (0, 4), "full": tuple(range(10))}
MORE = {"quick": 1, "full": 10}  # steps; seeds 7 and 8 have not come to rest without them
REST = 1e-6  # fall of the training loss in the second half of the steps


def shape(nets: Sequence[Curves]) -> list[Check]:
    """The L and the U of the nets."""
    middle = np.median([one.test for one in nets], axis=0)
    bends = np.diff(middle) * np.sign(np.arange(len(middle) - 1) - MIDDLE + 0.5)
    return [
        Check(
            "largest test loss at w_c, in units of the zero predictor's",
            max(one.test.min() for one in nets),
            0.05,
            0.0,
            "at most",
        ),
        Check(
            "least ratio of the test loss at |w| = w_c/4 or 5.7 w_c to that at w_c",
            min(one.rise for one in nets),
            20,
            0.0,
            "at least",
        ),
        Check(
            "steps of w where the median test loss does not fall before w_c or rise after it",
            np.sum(bends <= 0),
        ),
        Check(
            "largest distance of w_c to the teacher's least norm, in doublings",
            max(abs(math.log2(one.sizes[one.bottom] / one.sizes[MIDDLE])) for one in nets),
            tolerance=0.3,
        ),
        Check(
            "least training loss for w <= w_c/2",
            min(one.train[: one.bottom - 3].min() for one in nets),
            0.3,
            0.0,
            "at least",
        ),
        Check(
            "largest training loss for w >= w_c",
            max(one.train[one.bottom :].max() for one in nets),
            0.01,
            0.0,
            "at most",
        ),
    ]


def moved(seed: int) -> float:
    """Test loss of the net of w_c, rescaled to a larger norm and trained there, over its own.

    The largest over all those norms.
    """
    case, one = net(seed)
    theta, inner = one.ends[one.bottom], WIDTH * INPUTS
    starts = [rescale_layers(theta, inner, max(w, one.sizes[one.bottom])) for w in one.sizes]
    return float(taught(case, one.sizes, np.array(starts)).test[one.bottom :].max() / min(one.test))


def exact(run: Recovered) -> Array:
    """The ends of held l2 descent by the singular values of X."""
    X, y = run.problem.X, run.problem.y
    return np.array([held_ridge(X, y, size, run.start) for size in run.sizes])


def apart(ends: Array, others: Array, problem: Regression) -> float:
    return float(np.abs(ends - others).max() / np.linalg.norm(truth(problem)))


def best(run: Recovered) -> tuple[float, float]:
    """The best held l2 norm from this start and its |a - a*|^2 / |a*|^2, exactly."""
    target = truth(run.problem)
    size, error = held_best(run.problem.X, target, run.start)
    return size, error / float(target @ target)


def penalized(problem: Regression, beta: float) -> tuple[float, float]:
    """|a|_2 and |a - a*|^2 / |a*|^2 at the end of descent with the l1 penalty."""
    last = round(1.3 * slow_phase(problem).time / (STEP * beta)) + 20_000
    run = sparse_run(problem, STEP, beta, [last])
    size = float(np.linalg.norm(truth(problem)))
    return float(run.norm_l2[-1]), float(run.test_error[-1]) / size**2


def sparse(l2: Sequence[Recovered], l1: Sequence[Recovered], beta: float) -> list[Check]:
    """What holding either norm does in sparse recovery."""
    ends = [penalized(run.problem, beta) for run in l2]
    return [
        Check(
            "least |a - a*|^2/|a*|^2 at any held l2 norm",
            min(run.error.min() for run in l2),
            0.5,
            0.0,
            "at least",
        ),
        Check(
            "the same over its exact lower bound",
            min(run.error.min() / best(run)[1] for run in l2),
            1.0,
            1e-9,
            "at least",
        ),
        Check(
            "largest distance of the trained ends to the closed form, over |a*|",
            max(apart(run.ends, exact(run), run.problem) for run in l2),
            tolerance=1e-6,
        ),
        Check(
            "largest |a - a*|^2/|a*|^2 at the held l1 norm |a*|_1",
            max(run.error[MIDDLE] for run in l1),
            tolerance=1e-6,
        ),
        Check(
            "least |a - a*|^2/|a*|^2 at half and at twice that l1 norm",
            min(run.error[MIDDLE + k] for run in l1 for k in (-4, 4)),
            0.1,
            0.0,
            "at least",
        ),
        Check(
            "least l2 norm after the l1 penalty, over the best held l2 norm",
            min(end[0] / best(run)[0] for end, run in zip(ends, l2, strict=True)),
            1.5,
            0.0,
            "at least",
        ),
        Check(
            "largest |a - a*|^2/|a*|^2 after the l1 penalty",
            max(end[1] for end in ends),
            1e-3,
            0.0,
            "at most",
        ),
    ]


@claim(
    "N-F2",
    statement="trained at a held l2 norm w, a net has an L-shaped training loss and a U-shaped test"
    " loss with its least value at some w_c; but the same function lies at every larger norm, where"
    " training keeps it, and in sparse recovery no held l2 norm generalizes while the l1 norm of"
    " the truth does",
    place="Goldilocks zone & LU mechanism, Figure 2",
    seconds=15,
)
def goldilocks(size: Size) -> Evidence:
    cases = [net(seed) for seed in range(NETS[size])]
    nets = [one for _, one in cases]
    problems = [recovery(seed) for seed in SPARSE[size]]
    l2, l1 = ([recovered(p, norm, MORE[size]) for p in problems] for norm in ("l2", "l1"))
    low, rise, _, place, _, flat = first = shape(nets)
    bound, _, near, found, _, left, _ = second = sparse(l2, l1, BETA[size])
    keeps = Check(
        "test loss of the net of w_c rescaled to w > w_c and trained on, over its own",
        max(moved(seed) for seed in MOVED[size]),
        2.0,
        0.0,
        "at most",
    )
    mixed = taught(shuffled(cases[0][0]), nets[0].sizes)
    wide = opposed_units(SAMPLES, INPUTS).least_norm(2.0)
    dense = recovered(sparse_recovery(30, 100, sparsity=25, seed=0, snr=math.inf), "l1")
    shrunk = l2[0].sizes[:, None] * least(problems[0]) / np.linalg.norm(least(problems[0]))
    return Evidence(
        ran=f"{len(nets)} teachers relu(<p,x>) - relu(<q,x>) of {INPUTS} inputs, {SAMPLES} samples,"
        f" a student of 40 ReLU units; {len(problems)} sparse recoveries (n, s, N) = (100, 5, 30);"
        f" projected descent from a random start at {len(SHARES)} held norms, 1/4 to 5.7 times"
        " those of the truth; g = half the sum of squares",
        premises={"sparse recovery came to rest at every held norm": rest([*l2, *l1])},
        checks=[*first, keeps, *second],
        controls={
            "shuffled labels, least test loss": low.control(mixed.test.min()),
            "shuffled labels, rise on both sides": rise.control(mixed.rise),
            "shuffled labels, training loss at the same w_c": flat.control(mixed.train[MIDDLE]),
            "the norm of the teacher with layers out of balance": place.control(
                math.log2(nets[0].sizes[nets[0].bottom] / wide)
            ),
            "the ordinary start at 5.7 w_c": keeps.control(
                min(one.test[-1] / one.test.min() for one in nets)
            ),
            "l1 judged as l2": bound.control(min(run.error.min() for run in l1)),
            "the held l2 norm |a*|_2 judged as l1": found.control(
                min(run.error[MIDDLE] for run in l2)
            ),
            "25 non-zero entries for l1": found.control(dense.error[MIDDLE]),
            "a_hat stretched to the held norm": near.control(
                apart(shrunk, exact(l2[0]), problems[0])
            ),
            "the norm after an l2^2 penalty": left.control(
                max(
                    float(np.linalg.norm(decayed(run.problem, BETA[size]))) / best(run)[0]
                    for run in l2
                )
            ),
        },
        findings=[*findings(nets, l2, l1), *(more(nets[0]) if size == "full" else [])],
        plots=[picture(nets), sparse_picture(l2[0], l1[0])],
    )


def rest(runs: Sequence[Recovered]) -> tuple[bool, float]:
    """Whether no training loss still fell, and the largest fall."""
    fall = max(float(run.fall.max()) for run in runs)
    return fall <= REST, fall


def least(problem: Regression) -> Array:
    """The interpolator of least l2 norm."""
    return least_squares_limit(problem.X, problem.y, 1e-3).point


def decayed(problem: Regression, beta: float) -> Array:
    """Where descent with the squared l2 penalty ends."""
    return ridge_limit(problem.X, problem.y, STEP, beta).point


def findings(nets: Sequence[Curves], l2: Sequence[Recovered], l1: Sequence[Recovered]) -> list[str]:
    """Where the picture changes, and what the shell does contain."""
    case, sizes = net(0)[0], nets[0].sizes
    quiet = taught(case, sizes, silent()).test
    return [
        "w_c is the least norm of the teacher's rescalings: on a grid of 2^(1/4) the test loss is"
        f" least at {', '.join(f'{one.sizes[one.bottom]:.3g}' for one in nets)}, and that norm is"
        f" {sizes[MIDDLE]:.3g}",
        "the right arm is not only what the start computes: at 5.7 w_c it is"
        f" {nets[0].test[-1]:.2g} from the ordinary start and {quiet[-1]:.2g} from a symmetric one"
        " that computes zero",
        "the truth of sparse recovery lies on the shell |a|_2 = |a*|_2, but training held there"
        f" ends at |a - a*|^2/|a*|^2 = {l2[0].error[MIDDLE]:.2f}; no l2 norm does better than"
        f" {best(l2[0])[1]:.2f}, at {best(l2[0])[0] / l2[0].sizes[MIDDLE]:.2f} |a*|_2",
        "the l1 bottom is sharp: at 2^(1/4) times and a 2^(1/4)th of |a*|_1 the error is"
        f" {l1[0].error[MIDDLE + 1]:.2g} and {l1[0].error[MIDDLE - 1]:.2g}",
    ]


def more(one: Curves) -> list[str]:
    """How the arms depend on noise and on the number of samples."""
    many = taught(opposed_units(400, INPUTS), one.sizes[[MIDDLE, MIDDLE + 8]]).test
    noisy = taught(opposed_units(SAMPLES, INPUTS, noise=0.3), one.sizes).test
    return [
        f"the right arm needs few samples: at 4 w_c the test loss is {one.test[MIDDLE + 8]:.2g}"
        f" with {SAMPLES} and {many[1]:.2g} with 400",
        f"label noise of 0.3 lifts the bottom to {noisy.min():.2g} (ends {noisy[0]:.2g},"
        f" {noisy[-1]:.2g})",
    ]


def picture(nets: Sequence[Curves]) -> Plot:
    train, test = (
        np.median([getattr(one, name) for one in nets], axis=0) for name in ("train", "test")
    )
    return Plot(
        "a net trained at a held norm",
        "held norm over the teacher's",
        "loss, median",
        [Series("training", SHARES, train), Series("test", SHARES, test, "dashed")],
        x_scale="log",
    )


def sparse_picture(l2: Recovered, l1: Recovered) -> Plot:
    return Plot(
        "sparse recovery at a held norm",
        "held norm over that of the truth",
        "|a - a*|^2 / |a*|^2",
        [Series("l2 held", SHARES, l2.error), Series("l1 held", SHARES, l1.error, "dashed")],
        x_scale="log",
        y_scale="log",
    )
