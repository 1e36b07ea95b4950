"""Data from two-layer ReLU teachers: y = B relu(A x), and two opposed units."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, finite_array, integer, integers, not_negative
from penchant.description import with_recipe
from penchant.door import Invalid, door, door_as
from penchant.problems.regression import Regression, frozen
from penchant.records import Record

WHO = "teacher_student"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TeacherStudent(Record):
    """Training and test samples of one teacher, and the teacher's weights A and B.

    `teacher_student` makes it.

    Attributes
    ----------
    training
        The training samples.
    test
        The samples that are held out.
    A
        The weights of the hidden layer.
    B
        The weights of the outputs.
    slopes
        The teacher's derivatives in x at the rows of `training`, for DerivativeMatch.
    description
        One line that says what the data are.

    Examples
    --------
    >>> import penchant
    >>> data = penchant.problems.teacher_student(samples=4, dimension=5, width=6, test=3)
    >>> data.slopes.shape[0] == data.training.samples
    True
    """

    recipe_parts: ClassVar = ("training", "test")

    training: Regression
    test: Regression
    A: Array
    B: Array
    slopes: Array
    description: str

    @property
    def outputs(self) -> int:
        return len(self.B)

    @property
    def variance(self) -> float:
        """The mean variance of an output over the test samples."""
        return float(self.test.y.reshape(-1, self.outputs).var(axis=0).mean())

    def share(self, loss: ArrayLike, part: Regression) -> Array:
        """Half a sum of squares over `part` as a mean square in units of the variance.

        0 is perfect, and the best constant answer has 1.
        """
        return np.asarray(2 * np.asarray(loss) / (part.samples * self.variance))

    @door_as(WHO)
    def outputs_at(self, X: ArrayLike) -> Array:
        """B relu(A x), one row for every row x of `X`."""
        return outputs_of(self.A, self.B, finite_array("X", X, ndim=2))


@with_recipe
@door
def teacher_student(
    samples: int,
    dimension: int = 100,
    *,
    width: int = 500,
    outputs: int = 2,
    units: int | None = None,
    reads: int | None = None,
    standard: bool = False,
    test: int = 500,
    seed: int = 0,
) -> TeacherStudent:
    """Samples of y = B relu(A x) with x ~ N(0, 1), A ~ N(0, 1) and B ~ N(0, 1/units^2).

    The defaults are the dense teacher of Notsawo et al. 2025, 100-500-2 without biases, B of
    standard deviation 1/500. A sparse one uses only `units` of the hidden units, and each of these
    reads only `reads` of the inputs; all other weights are zero. The loss is half the sum of the
    squared residuals, as theirs.

    Parameters
    ----------
    samples
        The number of training samples.
    dimension
        The number of features, the inputs of the teacher.
    width
        The number of hidden units.
    outputs
        The number of outputs; each makes one row per sample.
    units
        The number of hidden units that are used; None uses all.
    reads
        The number of inputs that each of these reads; None reads all.
    standard
        Divides B by one number that gives the held out labels the variance 1, so that the
        weight of a penalty means the same for all teachers.
    test
        The number of samples that are held out.
    seed
        The seed of all random numbers.

    Returns
    -------
    TeacherStudent
        Training samples, test samples and teacher.

    References
    ----------
    .. [1] Notsawo et al. (2025), Grokking Beyond the Euclidean Norm of Model Parameters.

    Examples
    --------
    >>> import penchant
    >>> data = penchant.problems.teacher_student(samples=4, dimension=5, width=6, test=3)
    >>> data.training.samples, data.A.shape, data.B.shape
    (8, (6, 5), (2, 6))
    """
    samples, test = integer("samples", samples, least=1), integer("test", test, least=2)
    given = {"dimension": dimension, "width": width, "outputs": outputs}
    sizes = {name: integer(name, value, least=1) for name, value in given.items()}
    units = _some(units, "units", sizes, "width")
    reads = _some(reads, "reads", sizes, "dimension")
    seed = integer("seed", seed, least=0)
    rng = np.random.default_rng(seed)
    A, B = _weights(rng, sizes, units, reads)
    X, Z = (rng.standard_normal((count, sizes["dimension"])) for count in (samples, test))
    if standard:
        B = B / np.sqrt(outputs_of(A, B, Z).var(axis=0).mean())
    description = (
        f"ReLU teacher {'-'.join(map(str, sizes.values()))}, {units} units that "
        f"read {reads} inputs each, seed {seed}"
    )
    held_out = _labelled(A, B, Z, description)
    training = dataclasses.replace(_labelled(A, B, X, description), test=held_out)
    slopes = frozen(slopes_of(A, B, X))
    return TeacherStudent(training, held_out, frozen(A), frozen(B), slopes, description)


def outputs_of(A: Array, B: Array, X: Array) -> Array:
    """B relu(A x), one row for every row x of `X`."""
    return np.asarray(np.maximum(X @ A.T, 0) @ B.T)


def slopes_of(A: Array, B: Array, X: Array) -> Array:
    """The derivatives of every output in x, shaped like `questions`; nothing changes with k."""
    active = (X @ A.T > 0).astype(float)
    slopes = np.einsum("nj,kj,ji->nki", active, B, A, optimize=True).reshape(-1, A.shape[1])
    return slopes if len(B) == 1 else np.pad(slopes, ((0, 0), (0, 1)))


def questions(X: Array, outputs: int) -> Array:
    """The rows (x, 0), (x, 1), ... for every row x of `X`; only x where there is one output."""
    if outputs == 1:
        return X
    which = np.tile(np.arange(outputs), len(X))
    return np.column_stack([np.repeat(X, outputs, axis=0), which])


def _some(value: object, name: str, sizes: dict[str, int], whole: str) -> int:
    """A number between 1 and the size `whole`, which None stands for."""
    some = sizes[whole] if value is None else integer(name, value, least=1)
    if some > sizes[whole]:
        raise Invalid(
            f"{name} must be at most {whole}={sizes[whole]}, got {some}; lower it, or leave "
            "it out for a dense teacher"
        )
    return some


def _weights(
    rng: np.random.Generator, sizes: dict[str, int], units: int, reads: int
) -> tuple[Array, Array]:
    """A and B; zero wherever the teacher does not use a unit or an input."""
    width, dimension = sizes["width"], sizes["dimension"]
    used = rng.permuted(np.tile(np.arange(dimension) < reads, (width, 1)), axis=1)
    alive = np.arange(width) < units  # the first ones: units have no order
    A = rng.standard_normal((width, dimension)) * used * alive[:, None]
    B = rng.standard_normal((sizes["outputs"], width)) * alive / units
    return A, B


def _labelled(A: Array, B: Array, X: Array, about: str) -> Regression:
    """The teacher's answers as samples of one number each."""
    rows, answers = questions(X, len(B)), outputs_of(A, B, X).ravel()
    return Regression(rows, answers, None, 0.0, about, loss="half squares")


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class OpposedUnits(Record):
    """Training samples, clean test samples, and the unit vectors p and q of the teacher."""

    training: Regression
    test: Regression
    directions: Array

    def least_norm(self, scale: float = 1.0) -> float:
        """The norm of the net relu(<scale p, x>)/scale - relu(<scale q, x>)/scale.

        At scale = 1 both layers have the same norm and no rescaling is shorter: it is 2.
        """
        return math.sqrt(2 * (scale**2 + scale**-2))


@door
def opposed_units(
    samples: int, dimension: int = 10, *, test: int = 4000, noise: float = 0.0, seed: int = 0
) -> OpposedUnits:
    """Samples of y = relu(<p, x>) - relu(<q, x>) with x ~ N(0, 1) and p, q orthogonal unit vectors.

    Parameters
    ----------
    samples
        The number of training samples.
    dimension
        The number of features, at least 2.
    test
        The number of test samples, whose labels are clean.
    noise
        The standard deviation of the Gaussian noise of the training labels, over that of y.
    seed
        The seed of all random numbers.

    Returns
    -------
    OpposedUnits
        The regressions `training` and `test`, and p and q as the rows of `directions`.

    Examples
    --------
    >>> import penchant
    >>> data = penchant.problems.opposed_units(5, 3, test=7)
    >>> data.training.X.shape, data.test.samples, data.least_norm()
    ((5, 3), 7, 2.0)
    """
    samples, test = integers(samples=samples, test=test)
    dimension = integer("dimension", dimension, least=2)
    noise = not_negative("noise", noise)
    rng = np.random.default_rng(integer("seed", seed, least=0))
    directions = np.linalg.qr(rng.standard_normal((dimension, 2)))[0].T
    parts = []
    for count, spread in ((samples, noise), (test, 0.0)):
        X = rng.standard_normal((count, dimension))
        y = answers(directions, X)
        size = spread * float(y.std())
        about = f"{count} samples of two opposed ReLU units of {dimension} inputs, seed {seed}"
        noisy = y + size * rng.standard_normal(count)
        parts.append(Regression(X, noisy, noise=size, description=about, loss="half squares"))
    return OpposedUnits(parts[0], parts[1], frozen(directions))


def answers(directions: Array, X: Array) -> Array:
    """relu(<p, x>) - relu(<q, x>) for every row x of `X`."""
    first, second = np.maximum(X @ directions.T, 0).T
    return np.asarray(first - second)
