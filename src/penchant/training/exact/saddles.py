"""Where training from a vanishing start rests: of vectors and of matrices, by one name."""

from __future__ import annotations

from typing import Any, overload

from penchant.columns import named_as_given
from penchant.door import door
from penchant.problems.matrix_problem import MatrixProblem
from penchant.solvers.limits.saddles import WHO, Saddles, vector_saddles
from penchant.training.exact.matrices.greedy_rank import GreedyRank, matrix_saddles


@overload
def saddles(
    problem: MatrixProblem,
    /,
    *,
    symmetric: bool = ...,
    throw: bool = ...,
    max_seconds: float | None = ...,
) -> GreedyRank: ...


@overload
def saddles(
    X: Any,
    y: Any = ...,
    *,
    growth: tuple[Any, Any] | None = ...,
    depth: int = ...,
    throw: bool = ...,
    max_seconds: float | None = ...,
) -> Saddles: ...


@door
@named_as_given
def saddles(
    X: Any,
    y: Any = None,
    *,
    growth: tuple[Any, Any] | None = None,
    depth: int = 2,
    symmetric: bool = False,
    throw: bool = True,
    max_seconds: float | None = None,
) -> Any:
    """The points where training rests as its start vanishes, and the times of its jumps.

    Of a regression they are those of a diagonal net, beta = w+^depth - w-^depth, which starts at
    w+ = w- = alpha. At small alpha the jump of time tau happens at about t = tau log(1/alpha) for
    depth 2, and at t = 2 tau alpha^(2 - depth) / (depth (depth - 2)) for more.

    Of a Completion or a Sensing they are those of two factors, M = U V^T, and of rising rank. The
    factors start with i.i.d. entries of size alpha, with at least as many columns as M has rows and
    columns together (of either if symmetric). At small alpha the point of time tau is reached at
    about t = tau log(1/alpha). The times are ours: at a point with the rates r_1 > r_2 > ... the
    sizes alpha^e_1 > alpha^e_2 > ... of what has not grown yet become alpha^(e_i - r_i t), and the
    first to reach size 1 grows next; this holds separately in every subspace that all measurements
    leave invariant. The times assume that within such a subspace no direction of one point is
    orthogonal to those of the next.

    Parameters
    ----------
    X
        The samples, one row each, or a problem instead of X and y.
    y
        One label per sample; the loss is the sum of squares.
    growth
        (t_plus, t_minus), how long each weight takes to grow under a constant unit pull towards
        positive and towards negative values, in units of w+ = w- = alpha: a number or one per
        feature each; inf for a weight that never grows. At depth D > 2 weights that start at
        alpha a take a^(2 - D); at depth 2 those that start at alpha^p take p, and no factor a
        counts. Columns that are equal grow at the least of their times.
    depth
        The depth of the diagonal net, at least 2. It only changes the unit of time.
    symmetric
        True trains M = W W^T, which has no negative eigenvalues; False trains M = U V^T.
    throw
        False returns a numerical failure as the outcome instead of raising it.
    max_seconds
        The list ends early after this time, as a failure; None sets no limit.

    Returns
    -------
    Saddles or GreedyRank
        Times and points, from zero to the end of training, and losses and rates of matrices.
        Columns that are equal or opposite share their weight, as in training. Where other dependent
        columns leave several saddles with the same outputs, or two directions of a matrix grow
        equally fast, the outcome says so. The units of columns and labels do not matter; those of
        rows are weights of the loss. A row that is met to 1e-13 of its terms counts as met: later
        jumps would fit the rounding of its label. If float64 cannot certify a list of vectors, it
        is computed again in rational numbers; of data too large for that the outcome says how far
        it is known.

    Raises
    ------
    ValueError
        An argument is wrong.
    NumericalError
        No end was found: the flow of some rank may have its least loss at infinity; see `throw`.

    Examples
    --------
    >>> import penchant
    >>> problem = penchant.problems.sparse_regression(samples=20, dimension=50, sparsity=3, seed=0)
    >>> path = penchant.solvers.saddles(problem)
    >>> bool(abs(path.end - penchant.interpolate(problem, penchant.L1()).beta).max() < 1e-9)
    True
    >>> problem = penchant.problems.low_rank_completion(samples=60, dimension=10, rank=1, seed=9)
    >>> path = penchant.solvers.saddles(problem)
    >>> bool(abs(path.end - problem.truth).max() < 1e-9)
    True
    >>> least = penchant.interpolate(problem, penchant.regularizers.Nuclear()).matrix
    >>> round(float(abs(path.end - least).max()), 1)
    1.8
    """
    if not isinstance(X, MatrixProblem):
        if symmetric is not False:
            raise ValueError(
                f"{WHO}: symmetric is for a Completion or a Sensing, got {type(X).__name__}"
            )
        return vector_saddles(
            X, y, growth=growth, depth=depth, throw=throw, max_seconds=max_seconds
        )
    if y is not None or depth != 2 or growth is not None:
        given = "y" if y is not None else f"depth {depth!r}" if depth != 2 else "growth"
        raise ValueError(
            f"{WHO}: a matrix problem has its own labels, and its model two factors; leave out "
            f"{given}"
        )
    return matrix_saddles(X, symmetric=symmetric, throw=throw, max_seconds=max_seconds)
