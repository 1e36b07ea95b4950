"""Sums of two opposite exponentials, which quadratic models lead to, and their Q."""

from __future__ import annotations

import dataclasses
from typing import Any

from tacit.regularizers.formulas.symbolic import NotSymbolic


@dataclasses.dataclass(frozen=True)
class Exponentials:
    """b = up e^(ks) + down e^(-ks) + rest, which quadratic models lead to."""

    up: Any
    down: Any
    rest: Any
    k: Any

    def formulas(self, s: Any, beta: Any) -> tuple[Any, Any, Any]:
        """(b, its inverse, Q), where Q = s b - integral of b vanishes at s = 0."""
        import sympy

        up, down, k, gap = self.up, self.down, self.k, beta - self.rest
        if down == 0:
            root, inverse = gap, sympy.log(gap / up) / k
        else:
            root = sympy.sqrt(gap**2 + sympy.factor(-4 * up * down))
            inverse = sympy.log((gap + root) / (2 * up)) / k
        primal = up * sympy.exp(k * s) + down * sympy.exp(-k * s) + self.rest
        if up + down == 0:
            primal = 2 * up * sympy.sinh(k * s) + self.rest
            inverse = sympy.asinh(gap / (2 * up)) / k
        return primal, inverse, gap * inverse + (up - down - root) / k


def exponentials(expression: Any, s: Any) -> Exponentials:
    """The expression as a sum of two opposite exponentials of s."""
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
    return Exponentials(up, down, rest, k)
