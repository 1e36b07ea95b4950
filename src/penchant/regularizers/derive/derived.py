"""derive: the implicit regularizer of any separable reparametrization, from its gradient lines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from penchant.arguments import Array, positive
from penchant.door import Invalid, door
from penchant.records import brief, html_table, text_table
from penchant.regularizers.derive.gradient_lines import Index
from penchant.regularizers.derive.line_walk import (
    BranchPair,
    Growth,
    LineWalk,
    branches,
    growth,
    reachable,
    start_predictors,
)
from penchant.regularizers.derive.reparametrization import (
    Reparametrization,
    Starts,
    check_moving,
    check_start,
    length,
    read_starts,
)
from penchant.regularizers.lp import Lp
from penchant.regularizers.norms import L2, Linf
from penchant.regularizers.regularizer import Regularizer

if TYPE_CHECKING:
    from penchant.regularizers.derive.closed_form import ClosedForm


@door
def derive(
    map: Callable[..., Any],
    start: ArrayLike | tuple[Any, ...],
    signed: bool | None = None,
    unit: float | None = None,
    geometry: Any = None,
) -> Derived:
    """The regularizer that gradient flow minimises when beta_i = map(parameters of coordinate i).

    In another geometry it is the potential of the flow, and what follows from it is less. With
    g = dL/dbeta and 1/p + 1/q = 1, the steepest flow in l_p moves grad R(beta_i) by -sign(g_i)
    |g_i|^(q - 1); so R knows where training stands from the time integral of that, and how it
    leaves a start. But the integral need not be a combination of the samples, and where it is not,
    the end has not the least R among the fits.

    Parameters
    ----------
    map
        A function of the parameters of one coordinate, written with jax.numpy or plain
        operators. A map of a single argument stands for the signed pair map(w+) - map(w-) from
        equal starts.
    start
        A number, or a vector with one entry per coordinate. `(w_plus, w_minus)` are unequal
        starts of a signed pair. A map of several arguments takes a tuple of starts.
    signed
        False uses a map of one argument as it is, without the pair.
    unit
        The factor between the clock w'(s) = grad map(w), in which the dual is the time integral
        of the residuals, and the dual of the regularizer. It scales value and gradient and
        does not change the minimisers. By default it is that of Q, see `Derived.unit`, and 1 in
        another geometry.
    geometry
        The norm of the parameters in which the flow is steepest: L2() by default; Linf() is the
        flow of sign descent, and of Adam without memory; Lp(p) with p > 1 is |g|^(q - 1) of each
        derivative.

    Returns
    -------
    Derived
        A regularizer for `interpolate` and `max_margin`.

    References
    ----------
    .. [1] Woodworth et al. (2020), Kernel and Rich Regimes in Overparametrized Models.
    .. [2] Jacobs et al. (2026), Never Saddle for Reparameterized Steepest Descent as Mirror Flow.

    Examples
    --------
    >>> import penchant
    >>> derived = penchant.derive(lambda w: w**2, start=1.0)
    >>> beta = [1.0, -2.0]
    >>> round(derived(beta), 4), round(penchant.Q(alpha=1.0)(beta), 4)
    (1.1795, 1.1795)
    >>> signs = penchant.derive(lambda w: w**2, start=0.1, geometry=penchant.regularizers.Linf())
    >>> signs.gradient([0.02, 1.0])  # 0.02 = 4 * 0.1 * 0.05, and 1 = (0.1 + 0.9)**2
    array([0.05, 0.9 ])
    """
    line = Reparametrization(map, power_of(geometry))
    signed = len(line.names) == 1 if signed is None else bool(signed)
    starts = read_starts(line.names, start, signed)
    points = np.unique(starts.pairs.reshape(-1, len(line.names)), axis=0)
    check_start(line, points)
    line.check_separable(starts.plus)
    check_moving(line, points)
    return Derived(line, starts, None if unit is None else positive("unit", unit))


def power_of(geometry: Any) -> float:
    """q, with 1/p + 1/q = 1 for the steepest flow in l_p."""
    if geometry is None or (isinstance(geometry, L2) and geometry.weights is None):
        return 2.0
    if isinstance(geometry, Linf):
        return 1.0
    if isinstance(geometry, Lp) and geometry.p > 1:
        return geometry.p / (geometry.p - 1)
    raise Invalid(
        "geometry must move every coordinate by its own derivatives, as L2(), Linf() and Lp(p)"
        f" with p > 1 do; {geometry!r} has no regularizer of single coordinates"
    )


class Derived(Regularizer):
    """A regularizer known through its dynamics: gradient(beta) = b^-1(beta), b(s) = F(w(s)).

    It is zero and smallest at `start_predictor`, and finite on the open interval `range`.
    `derive` makes it.

    Parameters
    ----------
    line
        The map from the parameters of one coordinate to its beta.
    starts
        The parameters that each coordinate starts from.
    unit
        The factor between the time of the map and the dual; None is that of Q.

    Examples
    --------
    >>> import penchant
    >>> derived = penchant.derive(lambda w: w**2, start=1.0)
    >>> derived.start_predictor, derived.range
    (0.0, (-inf, inf))
    """

    stored_as: ClassVar = {"line": "map", "unit": "_given_unit"}

    def __init__(self, line: Reparametrization, starts: Starts, unit: float | None = None) -> None:
        self.map, self.starts, self.dimension = line, starts, starts.dimension
        self._given_unit = unit
        self._latest: tuple[Array, tuple[Array, Array]] | None = None
        # coordinates with the same start are of one kind and share their lines
        pairs, kinds = np.unique(starts.pairs, axis=0, return_inverse=True)
        self._pairs, self._kinds, self._signed = pairs, kinds.reshape(-1), starts.minus is not None
        self._origin = start_predictors(line, pairs, self._signed)
        # heights on a single line are F itself, those on a pair count from the start
        self._offset = self._origin if self._signed else np.zeros(len(pairs))
        self._branches = branches(line, pairs, self._signed)

    @property
    def start_predictor(self) -> float | Array:
        """b(0): one number, or one per coordinate where starts were given for each."""
        return self._spread(self._origin)

    @functools.cached_property
    def range(self) -> tuple[float | Array, float | Array]:
        """(lowest, highest) predictor that training can reach; both ends are excluded."""
        low, high = reachable(self.map, self._pairs, self._signed)
        return self._spread(low), self._spread(high)

    @functools.cached_property
    def unit(self) -> float:
        """The factor between s in w'(s) = grad F and the dual.

        It is chosen as in Woodworth et al. 2020. Where the dual is confined to a box the box is
        (-1, 1), so that large predictors cost |beta| (their theorem 3); where b grows
        exponentially its rate is one, and they cost |beta| log|beta| (their theorem 1); otherwise
        it is 1. All coordinates have one unit, that of the coordinate that starts fastest.
        """
        if self._given_unit is not None:
            return self._given_unit
        if self.map.power != 2:
            return 1.0
        return max(side.unit for side in self._growth.values()) or 1.0

    @functools.cached_property
    def closed_form(self) -> ClosedForm | None:
        """b, gradient and Q as sympy expressions where sympy finds them; None where it does not."""
        from penchant.regularizers.derive.closed_form import closed_form

        return closed_form(self) if self.map.power == 2 else None

    def primal_of(self, s: Array) -> Array:
        return self._at_dual(s)[0]

    def slope(self, s: Array) -> Array:
        return self._at_dual(s)[1]

    def dual_of(self, beta: Array) -> Array:
        return self._at_predictor(beta)[0]

    def terms(self, beta: Array) -> Array:
        return self._at_predictor(beta)[1]

    def walk(self, dimension: int) -> LineWalk:
        """The point s = 0 of the graph of b, to be moved by increments of s."""
        leaders = {way: side.leader for way, side in self._growth.items()}
        graph = BranchPair(self._branches, leaders, self.unit, self._offset)
        return LineWalk.begin(graph, self._kind(dimension))

    @functools.cached_property
    def _growth(self) -> dict[float, Growth]:
        return growth(self.map, self._pairs, self._signed)

    def _spread(self, per_kind: Array) -> float | Array:
        return float(per_kind[0]) if self.dimension is None else per_kind[self._kinds]

    def _kind(self, count: int) -> Index:
        return np.resize(self._kinds, count)

    def _at_dual(self, s: Array) -> tuple[Array, Array]:
        """(b(s), b'(s)), infinite or nan where s is outside the domain."""
        if self._latest is not None and np.array_equal(self._latest[0], s):
            return self._latest[1]
        beta, slope = np.full((2, len(s)), np.nan)
        kinds = self._kind(len(s))
        for way, branch in self._branches.items():
            here = np.flatnonzero((s >= 0) if way > 0 else (s < 0))
            point = branch.at_dual(kinds[here], np.abs(s[here]) / self.unit)
            beta[here] = self._offset[kinds[here]] + way * point.height
            slope[here] = point.slope / self.unit
        self._latest = (s.copy(), (beta, slope))
        return beta, slope

    def _at_predictor(self, beta: Array) -> tuple[Array, Array]:
        """(dual, terms of the value); an error for predictors out of reach."""
        dual, value = np.zeros((2, len(beta)))
        kinds = self._kind(len(beta))
        for way, branch in self._branches.items():
            here = np.flatnonzero(way * (beta - self._origin[kinds]) > 0)
            height = way * (beta[here] - self._offset[kinds[here]])
            near = branch.reach(kinds[here], height) >= height
            edge, here = here[~near], here[near]
            self._require_edge(beta, edge)
            dual[edge] = way * np.inf
            value[edge] = self.unit * branch.total(kinds[edge], np.full(len(edge), np.inf)).cost
            point = branch.at_height(kinds[here], height[near])
            dual[here], value[here] = way * self.unit * point.dual, self.unit * point.cost
        return dual, value

    def _require_edge(self, beta: Array, missing: Index) -> None:
        """An error if beta[missing] is not just the end of the reachable interval."""
        for i in missing:
            pair = self._pairs[self._kind(len(beta))[[i]]]
            low, high = (float(end[0]) for end in reachable(self.map, pair, self._signed))
            if beta[i] in (low, high):
                continue
            within = low < beta[i] < high
            why = "double precision does not resolve it" if within else "training cannot reach it"
            raise ValueError(
                f"{self}: beta[{i}] = {beta[i]:.6g} has no regularizer because {why}; from this"
                f" start the map reaches the open interval ({low:.6g}, {high:.6g})"
            )

    def first_coordinate(self) -> Derived:
        """The regularizer of the first coordinate alone, in the same unit."""
        return Derived(self.map, self.starts.first(), self.unit)

    def typical_duals(self) -> Array:
        """Some s of both signs after which the first coordinate moved by a part of its start."""
        plus = self.starts.plus[:1]
        speed = float(length(self.map.evaluate(plus)[1])[0])
        time = self.unit * (np.abs(self.starts.pairs[0]).max() or 1.0) / speed
        s = time * np.array([-0.7, -0.3, -0.1, -0.01, 0.01, 0.1, 0.3, 0.7])
        return s[np.isfinite(self.first_coordinate().primal_of(s))]

    def __str__(self) -> str:
        power = self.map.power
        p = "" if power == 2 else f", geometry={Linf() if power == 1 else Lp(power / (power - 1))}"
        return f"derive({self.map}, start={self.starts}{p})"

    def rows(self) -> list[tuple[str, str]]:
        """(name, text) of the main properties, including the closed form."""
        low, high = (brief(float(np.max(e)) if np.min(e) == np.max(e) else e) for e in self.range)
        rows = [
            ("map", f"{formula(self.map)}{', signed pair' if self._signed else ''}"),
            ("start", str(self.starts)),
            ("start predictor", brief(self.start_predictor)),
            ("reaches", f"from {low} to {high}, ends excluded"),
            ("unit of the dual", brief(self.unit)),
        ]
        if self.closed_form is None:
            return [*rows, ("closed form", "none found; known by its gradient lines")]
        return rows + self.closed_form.rows()

    def __repr__(self) -> str:
        return text_table(str(self), self.rows())

    def _repr_html_(self) -> str:
        return html_table(str(self), self.rows())


def formula(line: Reparametrization) -> str:
    """The map as an expression in its arguments where it can be read, else its name."""
    import sympy

    from penchant.regularizers.derive.symbolic import NotSymbolic, expression_of

    try:
        return str(expression_of(line, [sympy.Symbol(name, real=True) for name in line.names]))
    except NotSymbolic:
        return str(line)
