"""Points on the unit circle labelled by a small ReLU teacher.

They are the synthetic data of Woodworth et al. 2020, figure 6.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, entries, finite_array, integer, integers
from penchant.description import with_recipe
from penchant.door import door, door_as
from penchant.problems.regression import Regression, frozen
from penchant.problems.teacher import outputs_of
from penchant.records import Record

WHO = "circle_teacher"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class CircleTeacher(Record):
    """Training samples of one teacher g(x) = sum_j b_j relu(<a_j, x>), with an even test grid.

    The mean square of g over the circle is one. `circle_teacher` makes it.

    Attributes
    ----------
    training
        The training samples.
    test
        The even grid.
    angles
        The angles of the training samples.
    A
        The a_j as rows.
    b
        The b_j.
    description
        One line that says what the data are.

    Examples
    --------
    >>> import penchant
    >>> teacher = penchant.problems.circle_teacher(samples=4, width=2, test=40)
    >>> teacher.angles.shape, teacher.A.shape, teacher.b.shape
    ((4,), (2, 2), (2,))
    """

    recipe_parts: ClassVar = ("training", "test")

    training: Regression
    test: Regression
    angles: Array
    A: Array
    b: Array
    description: str

    @door_as(WHO)
    def outputs_at(self, X: ArrayLike) -> Array:
        """g(x) for every row x of `X`."""
        return outputs_of(self.A, self.b, finite_array("X", X, ndim=2))

    @door_as(WHO)
    def test_error(self, outputs: ArrayLike) -> float:
        """The mean square of f - g over the circle, from the outputs of f at the test grid.

        0 is perfect, and the zero function has 1.
        """
        rule = "one number per point of test.X"
        given = entries("outputs", outputs, self.test.samples, rule)
        return float(np.mean((given - self.test.y) ** 2))


@with_recipe
@door
def circle_teacher(
    samples: int = 10, *, width: int = 3, test: int = 1000, seed: int = 0
) -> CircleTeacher:
    """`samples` uniform points of the unit circle, labelled by a teacher with `width` ReLU units.

    The defaults are those of Woodworth et al. 2020. The teacher's weights are Gaussian, and all its
    outputs are divided by one number that makes their mean square over the circle one.

    Parameters
    ----------
    samples
        The number of training samples.
    width
        The number of hidden units of the teacher.
    test
        The number of points of the even grid over the circle; an integral over it is exact to
        order 1/test^2.
    seed
        The seed of all random numbers.

    Returns
    -------
    CircleTeacher
        Training samples, test grid and teacher.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.

    Examples
    --------
    >>> import numpy as np
    >>> import penchant
    >>> teacher = penchant.problems.circle_teacher(samples=4, width=2, seed=3, test=400)
    >>> teacher.training.X.shape, round(float(np.mean(teacher.test.y**2)), 3)
    ((4, 2), 1.0)
    """
    samples, width = integers(samples=samples, width=width)
    seed, test = integer("seed", seed, least=0), integer("test", test, least=2)
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 2 * np.pi, samples)
    A, b = rng.standard_normal((width, 2)), rng.standard_normal(width)
    b = b / np.sqrt(mean_square(A, b))
    about = f"{samples} points on the circle, ReLU teacher of {width} units, seed {seed}"
    grid = 2 * np.pi * np.arange(test) / test
    training, held_out = (
        Regression(X, outputs_of(A, b, X), noise=0.0, description=about)
        for X in map(_points, (angles, grid))
    )
    return CircleTeacher(training, held_out, frozen(angles), frozen(A), frozen(b), about)


def mean_square(A: Array, b: Array) -> float:
    """The mean of (sum_j b_j relu(<a_j, x>))^2 over the unit circle, exactly."""
    lengths = np.linalg.norm(A, axis=1)
    cosines = np.clip(A @ A.T / np.outer(lengths, lengths), -1, 1)
    apart = np.arccos(cosines)
    # the arc-cosine kernel of order 1 in the plane: 1/4 at angle zero, 0 at pi
    pairs = (np.sin(apart) + (np.pi - apart) * cosines) / (4 * np.pi)
    return float((b * lengths) @ pairs @ (b * lengths))


def _points(angles: Array) -> Array:
    return np.column_stack([np.cos(angles), np.sin(angles)])
