"""b, the gradient and Q of a derived regularizer as formulas, where they are found quickly.

Every formula is compared with the numerical curve before it is reported, so a wrong branch of an
inverse function loses the formula but never gives a wrong one.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.arguments import Array
from penchant.records import Record
from penchant.regularizers.derive.symbolic import (
    NotSymbolic,
    Route,
    Unit,
    expression_of,
    integral,
    solve_for,
    through_linear_flow,
    through_parameter,
    through_predictor,
    tidy,
)

if TYPE_CHECKING:
    from penchant.regularizers.derive.derived import Derived

AGREES = 1e-8


def exponentials(expression: Any, s: Any, beta: Any) -> tuple[Any, Any, Any]:
    """(b, its inverse, Q) for b = up e^(ks) + down e^(-ks) + rest, as quadratic models have it.

    Q = s b - integral of b vanishes at s = 0.
    """
    import sympy

    sums = sympy.expand(expression.rewrite(sympy.exp))
    rates = {atom: sympy.expand(atom.exp / s) for atom in sums.atoms(sympy.exp) if atom.has(s)}
    k = max((rate for rate in rates.values() if rate.is_rational), default=sympy.Integer(0))
    if k <= 0 or not set(rates.values()) <= {k, -k}:
        raise NotSymbolic("b is no sum of two exponentials")
    x = sympy.Symbol("x", positive=True)
    powers = sympy.expand(sums.subs({atom: x ** (rate / k) for atom, rate in rates.items()}) * x)
    if powers.has(s):
        raise NotSymbolic(f"{s} occurs outside exponentials")
    up, rest, down = (sympy.factor(powers.coeff(x, power)) for power in (2, 1, 0))
    gap = root = beta - rest
    if down != 0:
        root = sympy.sqrt(gap**2 + sympy.factor(-4 * up * down))
    inverse = sympy.log(gap / up if down == 0 else (gap + root) / (2 * up)) / k
    primal = up * sympy.exp(k * s) + down * sympy.exp(-k * s) + rest
    if up + down == 0:
        primal = 2 * up * sympy.sinh(k * s) + rest
        inverse = sympy.asinh(gap / (2 * up)) / k
    return primal, inverse, gap * inverse + (up - down - root) / k


@dataclasses.dataclass(frozen=True, repr=False)
class ClosedForm(Record):
    """Sympy expressions of one coordinate: b(s), its inverse, and the summand of Q.

    `gradient` and `value` are None where the inverse has no formula. `name` says it in words when
    the regularizer is one of those in the sources. `starts` maps the symbols of the start to the
    numbers of the first coordinate, ready for `primal.subs(starts)`; s and beta are real symbols.
    """

    primal: Any
    gradient: Any
    value: Any
    name: str | None
    starts: dict[Any, float]

    def rows(self) -> list[tuple[str, str]]:
        rows = [("b(s)", str(self.primal))]
        if self.gradient is not None:
            rows.append(("dQ/dbeta", str(self.gradient)))
        if self.value is not None:
            rows.append(("Q(beta)", str(self.value)))
        return rows + ([("equals", self.name)] if self.name else [])


def closed_form(derived: Derived) -> ClosedForm | None:
    """The formulas of a derived regularizer, or None if none was found that agrees with it."""
    search = Search(derived)
    for route in (through_predictor, through_parameter, through_linear_flow):
        try:
            formulas = search.along(route)
        except Exception:
            # sympy fails in many ways; the numbers do not need a formula
            continue
        if formulas is not None:
            return formulas
    return None


class Search:
    """The symbols of one derivation, and the comparison of formulas with its numbers."""

    def __init__(self, derived: Derived) -> None:
        import sympy

        self.s, self.beta = sympy.symbols("s beta", real=True)
        self.derived, self.one = derived, derived.first_coordinate()
        starts, names = self.one.starts, derived.map.names
        self.signed, self.equal = starts.minus is not None, starts.equal
        plus, minus = np.split(starts.pairs[0], 2)
        labels = ["alpha"] if len(names) == 1 else [f"{name}0" for name in names]
        tags = ("", "") if self.equal else ("_plus", "_minus")
        self.plus = [symbol(label + tags[0], x) for label, x in zip(labels, plus, strict=True)]
        self.minus = [symbol(label + tags[1], x) for label, x in zip(labels, minus, strict=True)]
        values = [float(x) for x in (*plus, *minus)]
        self.numbers = dict(zip([*self.plus, *self.minus], values, strict=True))
        self.arguments = [symbol(name, x) for name, x in zip(names, plus, strict=True)]
        self.dual_samples = self.one.typical_duals()
        self.samples = self.one.primal_of(self.dual_samples)

    def along(self, route: Route) -> ClosedForm | None:
        """The formulas that one route leads to, if they agree with the numbers."""
        F = expression_of(self.derived.map, self.arguments)
        flow, unit = route(F, self.arguments)
        raw = flow(self.plus, self.s) - (flow(self.minus, -self.s) if self.signed else 0)
        raw = raw.subs(self.s, self.s / self.unit(unit))
        for formulas in (self.by_exponentials, self.by_peeling):
            try:
                primal, gradient, value = formulas(raw)
            except NotSymbolic:
                continue
            if self.agrees(primal, self.s, self.dual_samples, self.samples):
                return ClosedForm(primal, gradient, value, self.name(F), self.numbers)
        return None

    def by_exponentials(self, raw: Any) -> tuple[Any, Any, Any]:
        primal, gradient, value = exponentials(raw, self.s, self.beta)
        return primal, self.gradient_or_none(gradient), self.value_or_none(value)

    def by_peeling(self, raw: Any) -> tuple[Any, Any, Any]:
        """b as found, its inverse if s occurs once in it, and Q from either of them."""
        primal, gradient, value = tidy(raw), None, None
        with contextlib.suppress(NotSymbolic):
            gradient = self.gradient_or_none(tidy(solve_for(primal, self.s, self.beta)))
        if gradient is not None:
            with contextlib.suppress(NotSymbolic):
                area = integral(gradient, self.beta)
                at_start = area.subs(self.beta, primal.subs(self.s, 0))
                value = self.value_or_none(tidy(area - at_start))
        if gradient is not None and value is None:
            with contextlib.suppress(NotSymbolic):
                area = integral(primal, self.s)  # Legendre: Q(b(s)) = s b(s) - integral of b
                value = self.beta * gradient - area.subs(self.s, gradient) + area.subs(self.s, 0)
                value = self.value_or_none(tidy(value))
        return primal, gradient, value

    def gradient_or_none(self, formula: Any) -> Any:
        right = self.agrees(formula, self.beta, self.samples, self.dual_samples)
        return formula if right else None

    def value_or_none(self, formula: Any) -> Any:
        right = self.agrees(formula, self.beta, self.samples, self.one.terms(self.samples))
        return formula if right else None

    def unit(self, formula_unit: Unit) -> Any:
        """The unit of s as a formula where one agrees with the number, else the number."""
        import sympy

        number = self.derived.unit
        if formula_unit is not None and self.derived.starts.alike:
            formula = formula_unit(self.plus)
            if abs(complex(formula.subs(self.numbers).evalf()) - number) <= AGREES * number:
                return formula
        exact = sympy.nsimplify(number, rational=True, tolerance=1e-12)
        return exact if exact.q < 1000 and abs(exact / number - 1) < 1e-11 else sympy.Float(number)

    def agrees(self, formula: Any, variable: Any, at: Array, expected: Array) -> bool:
        import sympy

        function = sympy.lambdify(variable, formula.subs(self.numbers), "numpy")
        with np.errstate(all="ignore"):
            values = np.broadcast_to(function(at.astype(complex)), at.shape)
            error = np.abs(values - expected).max()
        return bool(error <= AGREES * np.abs(expected).max())

    def name(self, F: Any) -> str | None:
        """The Q that this is, in words, or None."""
        from penchant.regularizers.q import Q

        depth = F.exp if F.is_Pow and F.base == self.arguments[0] else None
        alpha = self.one.starts.plus[0, 0]
        if not (self.signed and self.equal and depth is not None and depth.is_Integer):
            return None
        if depth < 2 or alpha <= 0 or not self.derived.starts.alike:
            return None
        q = Q(depth=int(depth), alpha=float(alpha))
        gap = np.abs(q.terms(self.samples) - self.one.terms(self.samples)).max()
        same = gap <= AGREES * np.abs(q.terms(self.samples)).max()
        return f"Q(depth={depth}, alpha={alpha:g})" if same else None


def symbol(name: str, value: float) -> Any:
    import sympy

    return sympy.Symbol(name, positive=True) if value > 0 else sympy.Symbol(name, real=True)
