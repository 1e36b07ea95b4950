"""Random odd problems for the solvers: integer, one-hot, tied, nearly dependent, badly scaled."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np

from penchant import L1, L2, Q, derive
from penchant.regularizers import Frobenius, Lp, Nuclear, R, Regularizer, Schatten, SpectralFunction

DEPTHS = (2, 3, 4, 5, 8, 10, 30)
FIRST = 14  # the stream of the numbers that tests name one by one
EXPONENTS = (1.0, 1.05, 1.2, 1.5, 2.0, 3.0, 4.0, 10.0, 50.0, 1000.0, 1e4)


@dataclasses.dataclass(frozen=True)
class Problem:
    """One call of a solver, what the data are made of, and whether they can be fitted."""

    seed: int
    verb: str  # interpolate or max_margin
    X: np.ndarray
    y: np.ndarray
    regularizer: Regularizer | SpectralFunction
    kind: str  # of the design and of its scales
    solvable: bool | None  # None: the judge finds out
    stream: int = FIRST  # of random numbers

    def __str__(self) -> str:
        return f"{self.stream}/{self.seed}: {self.verb}, {self.regularizer}, {self.kind}"


ILL = 0.3  # share of nearly dependent rows in all other streams


def problem(seed: int, stream: int = FIRST) -> Problem:
    """The problem of this number in a stream of random numbers."""
    rng = np.random.default_rng([stream, seed])
    if stream != FIRST and rng.random() < ILL:
        return nearly_dependent(rng, seed, stream)
    verb = str(rng.choice(["interpolate", "interpolate", "max_margin", "matrix"], p=PARTS))
    samples, dimension = int(rng.integers(1, 6)), int(rng.integers(1, 11))
    shape = tuple(int(n) for n in rng.integers(1, 5, size=2))
    dimension = shape[0] * shape[1] if verb == "matrix" else dimension
    if verb == "interpolate":  # mostly underdetermined, sometimes square or tall
        samples = dimension if rng.random() < 0.1 else samples
    design, X = rows(rng, samples, dimension)
    scale, X = scaled(rng, X, plain=verb == "matrix")
    kind = f"{design}, {scale}"
    if verb == "max_margin":
        y, solvable = labels(rng, X)
        return Problem(seed, verb, X, y, regularizer(rng, dimension), kind, solvable, stream)
    name, y, solvable = targets(rng, X, ill=design == "nearly equal")
    kind = f"{kind}, {name}"
    if verb == "interpolate":
        return Problem(seed, verb, X, y, regularizer(rng, dimension), kind, solvable, stream)
    matrices = X.reshape(len(X), *shape)
    return Problem(seed, "interpolate", matrices, y, spectral(rng), kind, solvable, stream)


def nearly_dependent(rng, seed: int, stream: int) -> Problem:
    """A row next to a combination of others, or measurements that are nearly equal.

    Half of the designs of vectors have columns over 22 decades.
    """
    shape = tuple(int(n) for n in rng.integers(2, 4, size=2))
    matrix = bool(rng.random() < 0.3)
    dimension = shape[0] * shape[1] if matrix else int(rng.integers(3, 8))
    samples = int(rng.integers(2, min(dimension, 4) + 1))
    X, apart = rng.normal(size=(samples, dimension)), 10.0 ** -rng.uniform(4, 12)
    shares = rng.normal(size=samples - 1) if rng.random() < 0.5 else np.eye(samples - 1)[0]
    X[-1] = shares @ X[:-1] + apart * rng.normal(size=dimension)
    wide = not matrix and rng.random() < 0.5
    sizes = 10.0 ** rng.uniform(-11, 11, size=dimension) if wide else np.ones(dimension)
    X = X * sizes
    # targets of a predictor with terms of one size, or any targets
    y = X @ (rng.normal(size=dimension) / sizes) if rng.random() < 0.7 else rng.normal(size=samples)
    kind = f"{apart:.0e} from dependent, {'22 decades' if wide else 'plain'}"
    if matrix:
        matrices = X.reshape(samples, *shape)
        return Problem(seed, "interpolate", matrices, y, spectral(rng), kind, True, stream)
    return Problem(seed, "interpolate", X, y, regularizer(rng, dimension), kind, True, stream)


PARTS = (0.35, 0.2, 0.35, 0.1)


def rows(rng, samples: int, dimension: int) -> tuple[str, np.ndarray]:
    """(name, design) of one of the families."""
    size = (samples, dimension)
    name = str(rng.choice(["integer", "0/1", "one-hot", "tied", "nearly equal", "normal", "signs"]))
    if name == "integer":
        X = rng.integers(-3, 4, size=size).astype(float)
    elif name == "0/1":
        X = rng.integers(0, 2, size=size).astype(float)
    elif name == "one-hot":
        X = np.zeros(size)
        for _ in range(int(rng.integers(1, 3))):
            X[np.arange(samples), rng.integers(0, dimension, size=samples)] = 1.0
    elif name == "tied":  # few different columns
        few = rng.integers(-1, 2, size=(samples, max(1, dimension // 3))).astype(float)
        X = few[:, rng.integers(0, few.shape[1], size=dimension)]
    elif name == "nearly equal":
        X = rng.normal(size=size)
        for n in range(1, samples):
            X[n] = X[0] + 10.0 ** -rng.integers(2, 15) * rng.normal(size=dimension)
    elif name == "signs":
        X = rng.choice([-1.0, 1.0], size=size)
    else:
        X = rng.normal(size=size)
    return name, X


def scaled(rng, X: np.ndarray, plain: bool) -> tuple[str, np.ndarray]:
    """(name, design) in other units."""
    name = str(
        rng.choice(["plain", "plain", "float32", "columns", "rows", "huge", "tiny", "subnormal"])
    )
    if name == "columns" and not plain:
        X = X * 10.0 ** rng.uniform(-8, 8, size=X.shape[1])
    elif name == "rows":
        X = X * 10.0 ** rng.uniform(-8, 8, size=(len(X), 1))
    elif name == "huge":
        X = X * 10.0 ** rng.uniform(100, 300)
    elif name == "tiny":
        X = X * 10.0 ** -rng.uniform(100, 300)
    elif name == "subnormal":
        X = X * 1e-310
    elif name == "float32":
        X = X.astype(np.float32)
    return name, X


def targets(rng, X: np.ndarray, *, ill: bool) -> tuple[str, np.ndarray, bool]:
    """(name, y, whether some beta fits) for targets that are mostly reached by a sparse beta."""
    beta = rng.integers(-2, 3, size=X.shape[1]).astype(float)
    beta *= rng.random(len(beta)) < rng.choice([0.3, 1.0])
    power = int(np.frexp(np.abs(X.astype(float)).max())[1])
    unit = np.ldexp(X.astype(float), -power)
    y = unit @ beta
    y[np.abs(y) <= 1e-12 * (np.abs(unit) @ np.abs(beta))] = 0.0  # rounding of what cancels
    name = str(rng.choice(["unit", "far", "zero", "contradicting"], p=TARGETS))
    ill = ill or any(unclear(rows) for rows in (X, X[1:]) if len(rows))
    name = "unit" if ill and name == "contradicting" else name  # a matter of rounding there
    solvable = True
    if name == "far":
        y = y * 10.0 ** rng.uniform(-200, 150)
    elif name == "zero":
        y = np.zeros_like(y)
    elif name == "contradicting":
        y[0] += 1.0
        solvable = rank(X) > rank(X[1:])  # else the first row depends on the others
        name = "other" if solvable else name
    return name, y, solvable


def rank(X: np.ndarray) -> int:
    """The rank in exact arithmetic."""
    left = [[Fraction(float(v)) for v in row] for row in X]
    found = 0
    for column in range(X.shape[1]):
        pivot = next((row for row in left if row[column]), None)
        if pivot is None:
            continue
        found += 1
        left.remove(pivot)
        for row in left:
            share = row[column] / pivot[column]
            row[:] = [a - share * b for a, b in zip(row, pivot, strict=True)]
    return found


def unclear(X: np.ndarray) -> bool:
    """Whether rows depend on each other to rounding, but not exactly."""
    flat = np.asarray(X, dtype=float)
    for axis in (1, 0, 1, 0, 1):
        sizes = np.abs(flat).max(axis=axis, keepdims=True)
        flat = flat / np.where(sizes > 0, sizes, 1.0)
    sizes = np.linalg.svd(flat, compute_uv=False)
    return int((sizes > 1e-12).sum()) != rank(X)


TARGETS = (0.7, 0.2, 0.05, 0.05)


def labels(rng, X: np.ndarray) -> tuple[np.ndarray, bool | None]:
    """(y, separable): labels of a plane that misses every point, or drawn at random."""
    powers = np.frexp(np.abs(X.astype(float)).max(axis=0))[1]
    scores = np.ldexp(X.astype(float), -powers) @ rng.normal(size=X.shape[1])
    if rng.random() < 0.15:
        return rng.choice([-1.0, 1.0], size=len(X)), None
    return np.where(scores >= 0, 1.0, -1.0), True if np.abs(scores).min() > 1e-6 else None


def regularizer(rng, dimension: int) -> Regularizer:
    """One of all regularizers of vectors."""
    name = str(rng.choice(["Q", "Q with shape", "R", "L1", "L2", "Lp", "derive"], p=SHARES))
    shape = np.exp(rng.normal(size=dimension))
    if name == "Q":
        return Q(int(rng.choice(DEPTHS)), log_alpha=log_alpha(rng))
    if name == "Q with shape":
        return Q(int(rng.choice(DEPTHS)), log_alpha=log_alpha(rng), shape=shape)
    if name == "R":
        return R(log_alpha=log_alpha(rng))
    if name == "L1":
        return L1()
    if name == "L2":
        return L2() if rng.random() < 0.5 else L2(weights=shape)
    if name == "Lp":
        return Lp(float(rng.choice(EXPONENTS)))
    depth = int(rng.choice([2, 3]))
    return derive(lambda w: w**depth, start=float(rng.choice([0.01, 0.3, 1.0])))


SHARES = (0.37, 0.1, 0.07, 0.15, 0.1, 0.2, 0.01)


def log_alpha(rng) -> float:
    """Mostly where kernel and rich regime meet, sometimes far away."""
    return float(rng.choice([rng.uniform(-8, 3), rng.uniform(-40, -8), -300.0, 25.0]))


def spectral(rng) -> SpectralFunction:
    """One of all regularizers of matrices."""
    name = str(rng.choice(["nuclear", "frobenius", "schatten", "schatten"]))
    if name == "nuclear":
        return Nuclear()
    if name == "frobenius":
        return Frobenius()
    return Schatten(Q(int(rng.choice(DEPTHS)), log_alpha=log_alpha(rng)))
