"""Training on the exp loss for the lemmas: in the time of the flow, and to any smoothed margin."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count, islice
from typing import Any

import numpy as np

from penchant import Classification, DiagonalNet, ParameterFlow
from penchant.lab import Array, Dataset
from penchant.plotting import latex
from penchant.problems import separable_points, three_points
from penchant.solvers import separation
from penchant_papers.moroshko2020.stopping import trained

EARLIEST = 1e-3  # the first smoothed margin recorded: below it the errors of the steps show
POINT = np.array([[1.0, -2.0, 0.5]])
PANELS = ("3b", "3c", "3d", "4a", "4b")


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One data set, one depth and one scale, with the constants of M appendix B."""

    name: str
    problem: Classification
    depth: int
    alpha: float

    @cached_property
    def rows(self) -> Array:
        """x_n with y_n multiplied in, as appendix B does."""
        return self.problem.signed_rows

    @cached_property
    def gamma_2(self) -> float:
        return separation(self.problem.X, self.problem.y).margin

    @property
    def x_bar(self) -> float:
        return float(np.abs(self.rows).sum(axis=0).max())

    @property
    def x_max(self) -> float:
        return float(np.linalg.norm(self.rows, axis=1).max())

    @property
    def mu(self) -> float:
        return self.alpha**self.depth

    @property
    def model(self) -> DiagonalNet:
        return DiagonalNet(self.depth, alpha=self.alpha)

    def __str__(self) -> str:
        return rf"{self.name}, depth {self.depth}, $\alpha = {latex(self.alpha, '.3g')}$"


def single(depth: int, alpha: float) -> Case:
    """One sample, where all the points are trivially equal."""
    return Case("one point", Classification(POINT, np.ones(1)), depth, alpha)


def crowded() -> Classification:
    """Panel 3d, whose sample 1 leaves the margin, with 27 more points that never come near it."""
    rows = three_points("3d").signed_rows
    more = np.outer(np.linspace(2, 4, 27), rows.mean(axis=0))
    return Classification(np.concatenate([rows, more]), np.ones(30))


def cases(seed: int, kind: int = 0, depths: tuple[int, ...] = (2,)) -> Iterator[Case]:
    """Random sets with labels of both signs and panels of M; alpha^D between 0.1 and 100.

    Each `kind` of run draws its own sets.
    """
    rng = np.random.default_rng((seed, kind))
    for k in count():
        depth = depths[k % len(depths)]
        alpha = float(10 ** (rng.uniform(-1, 2) / depth))
        samples, dimension = (int(size) for size in rng.integers((2, 3), (7, 8)))
        draw = separable_points(samples, dimension, margin=0.3, seed=int(rng.integers(2**32)))
        name = PANELS[int(rng.integers(len(PANELS)))] if k % 3 == 2 else ""
        data = three_points(name) if name else draw
        yield Case(f"panel {name}" if name else f"random set {k}", data, depth, alpha)


def nth(sequence: Iterator[Case], number: int) -> Case:
    """The case with this number, from zero on."""
    return next(islice(sequence, number, None))


def numbered(kind: str, count: int) -> list[str]:
    """The names of `count` runs of one kind, a value each on the axis `run`."""
    return [f"{kind} {k}" for k in range(count)]


def of_kind(dataset: Dataset, *kinds: str) -> Dataset:
    """The runs of these kinds, "near" or the like, in a dataset with the axis `run`."""
    chosen = [name.startswith(kinds) for name in dataset.run.values]
    return dataset.isel(run=np.flatnonzero(chosen))


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedTraining:
    """Training recorded along the way; one row per record."""

    case: Case
    log_t: Array
    smoothed_margin: Array
    predictor: Array
    margins: Array

    @property
    def shares(self) -> Array:
        """r / |r|_1."""
        shares = np.exp(self.smoothed_margin[:, None] - self.margins) / len(self.case.rows)
        return np.asarray(shares)


@dataclasses.dataclass(frozen=True, eq=False)
class TimedRun(RecordedTraining):
    """A run that was integrated in the time of the flow.

    `impulse` is int_0^t r, carried along in the integration, and `growth` is dw/dt by the chain
    rule in the parameters. No closed form of w enters either of them.
    """

    impulse: Array
    growth: Array

    @property
    def drive(self) -> Array:
        """X r in the notation of M."""
        return np.asarray(np.exp(-self.margins) / len(self.case.rows) @ self.case.rows)


def run_in_time(case: Case, *, goal: float = 25.0, points: int = 60) -> TimedRun:
    """u' = -grad L(u) in the time t of M eq. (1), until the smoothed margin is `goal`."""
    from scipy.integrate import solve_ivp

    model, Z = case.model, case.rows
    start = model.start(Z.shape[1])
    n = len(start)

    # the displacement from the start is held: from a large start w is a small difference
    def weights(moved: Array) -> Array:
        return np.asarray(np.exp(-Z @ model.change(start, moved)) / len(Z))

    def velocity(_: float, state: Array) -> Array:
        r = weights(state[:n])
        return np.concatenate([model.pullback(start + state[:n], Z, r), r])

    def missing(_: float, state: Array) -> float:
        return goal + float(np.log(weights(state[:n]).sum()))

    missing.terminal = True  # type: ignore[attr-defined]
    slope = float(np.abs(model.slopes(start)).max())
    atol = np.full(n + len(Z), 1e-13 * min(case.alpha, 1 / slope))
    atol[n:] = 1e-13 / (slope * case.x_max) ** 2
    with np.errstate(over="ignore", invalid="ignore"):  # in trial steps that are then rejected
        solution = solve_ivp(
            velocity,
            (0, 1e40),
            np.zeros(n + len(Z)),
            method="LSODA",
            events=missing,
            first_step=1e-4 / (slope * case.x_max) ** 2,
            rtol=1e-11,
            atol=atol,
        )
    if solution.status != 1:
        raise RuntimeError(f"run_in_time: {case}: {solution.message}")
    states = solution.y.T
    gone = np.array([missing(0, state) for state in states]) < goal - EARLIEST
    spread = np.unique(np.linspace(0, gone.sum() - 1, points).astype(int))
    keep = np.flatnonzero(gone)[spread]
    return _unfolded(case, start, solution.t[keep], states[keep])


def _unfolded(case: Case, start: Array, t: Array, states: Array) -> TimedRun:
    """What the states of the integration mean."""
    n, Z, model = len(start), case.rows, case.model
    predictor = np.array([model.change(start, state[:n]) for state in states])
    margins = predictor @ Z.T
    weights = np.exp(-margins) / len(Z)
    growth = [
        (
            model.slopes(start + state[:n]) * model.table(model.pullback(start + state[:n], Z, r))
        ).sum(axis=0)
        for state, r in zip(states, weights, strict=True)
    ]
    g = -np.log(weights.sum(axis=1))  # |r|_1 = exp(-smoothed margin), M appendix B
    return TimedRun(case, np.log(t), g, predictor, margins, states[:, n:], np.array(growth))


def run_far(case: Case, *, goal: float = 1e6, rtol: float = 1e-7) -> RecordedTraining:
    """Gradient flow in the parameters to the smoothed margin `goal`, by ParameterFlow."""
    flow = ParameterFlow(rtol=rtol)
    path = trained(case.problem, case.model, [goal], flow, per_decade=8)
    data = path.dataset.isel(time=slice(1, None))  # the start itself has t = 0 and w = 0
    names = ("log_t", "smoothed_margin", "predictor", "margins")
    return RecordedTraining(case, *(np.asarray(data[name].values) for name in names))


def run_named(run: str, seed: int, depths: Mapping[str, tuple[int, ...]]) -> RecordedTraining:
    """The run "near 3" in time, or "far 3" to loss e^-1000000; the kinds draw their own cases."""
    kind, number = run.split()
    case = nth(cases(seed, ("near", "far").index(kind), depths[kind]), int(number))
    return run_in_time(case) if kind == "near" else run_far(case)


def trials(special: Iterable[str]) -> dict[str, Any]:
    """The part of a study that says which runs there are at each size."""
    grids = {
        size: {"run": [*numbered("near", near), *numbered("far", far), *special]}
        for size, near, far in (("quick", 3, 3), ("printed", 60, 24))
    }
    return {"grid": grids.pop("quick"), **{size: {"grid": grid} for size, grid in grids.items()}}


def listed(values: Array) -> str:
    return ", ".join(f"{value:.2g}" for value in values)


def h(z: Array, depth: int) -> Array:
    """h_D, outside (-1, 1) too if the formula is defined there."""
    p = depth / (depth - 2)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN beyond 1 where p is no integer
        return np.asarray((1 - z) ** -p - (1 + z) ** -p)


def h_slope(z: Array, depth: int) -> Array:
    p = depth / (depth - 2)
    return np.asarray(p * ((1 - z) ** (-p - 1) + (1 + z) ** (-p - 1)))


def h_inverse(w: Array, depth: int) -> Array:
    """h_D^-1 by bisection, which relies on h_D alone."""
    low, high = -np.ones_like(w), np.ones_like(w)
    for _ in range(60):
        middle = (low + high) / 2
        above = h(middle, depth) > w
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2
