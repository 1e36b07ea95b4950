"""Q itself in mpmath: value, gradient, inverse gradient, with the caller's floats taken as exact.

Each comes from a definition, not from the formulas of the package: the gradient is a root of
beta = b(s), the value is the Legendre transform beta s - Phi(s) of the primitive Phi of b.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import mpmath as mp
from mpmath import mpf

DIGITS = 40  # correct digits that everything here aims at


class OracleError(RuntimeError):
    """The reference could not certify its own answer."""


@dataclasses.dataclass(frozen=True)
class Scale:
    """mu_i = (alpha |w0_i|)^D, kappa_i = |w0_i|^(D-2), and the map b from s to beta.

    b(s) = mu [(1 - kappa s)^-p - (1 + kappa s)^-p], p = D / (D - 2); 2 mu sinh(s) for D = 2.
    """

    depth: int
    log_alpha: float
    shape: tuple[float, ...]

    @property
    def p(self) -> Fraction:
        return Fraction(self.depth, self.depth - 2)

    def mu(self) -> list[mpf]:
        with mp.workdps(2 * DIGITS):  # a factor of beta: its relative error is all that counts
            alpha = mp.exp(mpf(self.log_alpha))
            return [(alpha * abs(mpf(w))) ** self.depth for w in self.shape]

    def kappa(self) -> list[mpf]:
        return [abs(mpf(w)) ** (self.depth - 2) for w in self.shape]

    def branches(self, s: list[mpf]) -> tuple[list[mpf], list[mpf]]:
        """The two positive parts (w+^D, w-^D) of beta where the dual variable is `s`."""
        if self.depth == 2:
            growth = [mp.exp(v) for v in s]
            parts = [(m * g, m / g) for m, g in zip(self.mu(), growth, strict=True)]
        else:
            scaled = [k * v for k, v in zip(self.kappa(), s, strict=True)]
            parts = [
                (m / power(1 - u, self.p), m / power(1 + u, self.p))
                for m, u in zip(self.mu(), scaled, strict=True)
            ]
        return [plus for plus, _ in parts], [minus for _, minus in parts]

    def slopes(self, s: list[mpf]) -> list[mpf]:
        """b'(s)."""
        both = zip(*self.branches(s), strict=True)
        if self.depth == 2:
            return [plus + minus for plus, minus in both]
        p = mpf(self.p.numerator) / self.p.denominator
        return [
            p * k * (plus / (1 - k * v) + minus / (1 + k * v))
            for (plus, minus), k, v in zip(both, self.kappa(), s, strict=True)
        ]

    def primitive(self, s: list[mpf]) -> list[mpf]:
        """Phi(s), the integral of b from 0 to s."""
        if self.depth == 2:
            return [2 * m * (mp.cosh(v) - 1) for m, v in zip(self.mu(), s, strict=True)]
        q = self.p - 1
        return [
            m / k * (power(1 - k * v, -q) + power(1 + k * v, -q) - 2) * q.denominator / q.numerator
            for m, k, v in zip(self.mu(), self.kappa(), s, strict=True)
        ]


def power(base: mpf, exponent: Fraction) -> mpf:
    """base^exponent by an integer power and a root, which mpmath takes faster than exp and log."""
    return mp.root(base**exponent.numerator, exponent.denominator)


def inverse_h(z: mpf, p: Fraction) -> mpf:
    """The u in [0, 1) with (1 - u)^-p - (1 + u)^-p = z >= 0, by Newton in the slack t = 1 - u.

    t = (z + (2 - t)^-p)^(-1/p) has a right side that falls with a slope between -1 and 0, so the
    difference of the two sides is monotone and nearly straight, and Newton needs no safeguard.
    """
    slack = power(1 / (z + 1), 1 / p)
    for _ in range(200):
        inner = z + 1 / power(2 - slack, p)
        image = power(1 / inner, 1 / p)
        slope = -image / inner / power(2 - slack, p) / (2 - slack)
        step = (image - slack) / (1 - slope)
        slack += step
        if abs(step) <= mpf(10) ** (5 - mp.mp.dps):
            return 1 - slack
    raise OracleError(f"no inverse of h at {mp.nstr(z)}")


def gradient(beta, depth: int, log_alpha: float, shape=None) -> list[mpf]:
    """The gradient of Q at `beta`, each entry to about `DIGITS` digits."""
    scale, beta = exact(beta, depth, log_alpha, shape)
    with mp.workdps(digits_for(beta, scale)):
        ratio = [b / m for b, m in zip(beta, scale.mu(), strict=True)]
        if depth == 2:
            return [mp.asinh(z / 2) for z in ratio]
        kappa = scale.kappa()
        sizes = [inverse_h(abs(z), scale.p) / k for z, k in zip(ratio, kappa, strict=True)]
        return [mp.sign(z) * v for z, v in zip(ratio, sizes, strict=True)]


def digits_for(beta: list[mpf], scale: Scale) -> int:
    """Enough digits for u^2 at small z = beta / mu and for 1 - u at large z."""
    decades = [int(mp.log10(abs(b) / m)) for b, m in zip(beta, scale.mu(), strict=True) if b]
    return 2 * DIGITS + max([-3 * k if k < 0 else k for k in decades], default=0)


def inverse_gradient(s, depth: int, log_alpha: float, shape=None) -> list[mpf]:
    """b(s), each entry to about `DIGITS` digits (work in more if the entries of `s` have more)."""
    scale, s = exact(s, depth, log_alpha, shape)
    small = min([abs(v) for v in s if v], default=mpf(1))
    lost = abs(int(mp.log10(small)))  # the two branches cancel at small s
    with mp.workdps(max(mp.mp.dps, 2 * DIGITS + lost)):
        return [plus - minus for plus, minus in zip(*scale.branches(s), strict=True)]


def value(beta, depth: int, log_alpha: float, shape=None) -> mpf:
    """Q at `beta` by the Legendre transform; an error of s enters it only squared."""
    s = gradient(beta, depth, log_alpha, shape)
    scale, beta = exact(beta, depth, log_alpha, shape)
    with mp.workdps(digits_for(beta, scale)):
        terms = [b * v - phi for b, v, phi in zip(beta, s, scale.primitive(s), strict=True)]
        return mp.fsum(terms)


def value_by_quadrature(beta: float, depth: int, log_alpha: float) -> mpf:
    """Q at one number as the integral of its gradient: the definition, slow, for small |beta|."""
    return mp.quad(lambda b: gradient([b], depth, log_alpha)[0], [0, mpf(beta)])


def exact(vector, depth: int, log_alpha: float, shape) -> tuple[Scale, list[mpf]]:
    """The scale, and the vector as mpmath numbers."""
    numbers = [v if isinstance(v, mpf) else mpf(float(v)) for v in vector]
    shape = [1.0] * len(numbers) if shape is None else [float(w) for w in shape]
    return Scale(depth, float(log_alpha), tuple(shape)), numbers
