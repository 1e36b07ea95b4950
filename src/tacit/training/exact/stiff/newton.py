"""Linear systems of a gradient flow, solved in sample space, with or without the curvature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy  # its submodules load when first used: `import tacit` stays light

from tacit.arguments import Array
from tacit.training.exact.samples import Derivative, Samples

EPS = float(np.finfo(float).eps)
Solver = Callable[[Array], Array]
ENOUGH = 1e-3  # what conjugate gradients may leave; Newton's iteration repeats them
LONGEST = 60  # their number


class GaussNewton:
    """A = -J^T diag(bends) J - rate I: the stiff part of the derivative of a gradient flow.

    The curvature of the model times the slopes of the loss is left out; it is not stiff.
    """

    def __init__(self, derivative: Derivative, bends: Array, rate: float) -> None:
        self.derivative, self.rate, self.root = derivative, rate, np.sqrt(bends)
        self.kernel = self.root[:, None] * derivative.kernel() * self.root

    def solver(self, step: float) -> Solver:
        """Woodbury: (s I + h G^T G)^-1 = (I - h G^T (s I + h G G^T)^-1 G) / s."""
        s, root, derivative = 1 + step * self.rate, self.root, self.derivative
        matrix = step * self.kernel
        # rounding makes the kernel of dependent samples indefinite by about this much
        noise = 4 * len(matrix) * EPS * float(np.diag(matrix).max())
        matrix.flat[:: len(matrix) + 1] += s + noise
        if not np.isfinite(matrix).all():
            return lambda b: np.full_like(b, np.nan)  # Newton's iteration then asks for less
        factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

        def solve(b: Array) -> Array:
            pushed = root * derivative.push(b)
            inner = scipy.linalg.cho_solve(factor, pushed, check_finite=False)
            return np.asarray((b - step * derivative.pull(root * inner)) / s)

        return solve

    def apply(self, direction: Array) -> Array:
        """A direction."""
        outputs = self.root**2 * self.derivative.push(direction)
        return -self.derivative.pull(outputs) - self.rate * direction


class Curved:
    """A with the curvature, for data that cannot be fitted: what is left of them bends the flow."""

    def __init__(self, tangent: GaussNewton, samples: Samples, at: Array, slopes: Array) -> None:
        self.tangent, self.samples, self.at, self.slopes = tangent, samples, at, slopes

    def apply(self, direction: Array) -> Array:
        """(A - sum_n slopes_n Hess f_n) direction, the last by a central difference."""
        size = float(np.abs(direction).max())
        if not 0 < size < np.inf:
            return self.tangent.apply(direction)
        small = 1e-5 * (float(np.abs(self.at).max()) or 1.0) / size
        ahead = self.samples.pullback(self.at + small * direction, self.slopes)
        behind = self.samples.pullback(self.at - small * direction, self.slopes)
        return self.tangent.apply(direction) - (ahead - behind) / (2 * small)

    def solver(self, step: float) -> Solver:
        """Conjugate gradients, preconditioned by the tangent alone."""
        precondition = self.tangent.solver(step)

        def solve(b: Array) -> Array:
            x, left = np.zeros_like(b), b.copy()
            z = precondition(left)
            p, fall = z, float(left @ z)
            enough = ENOUGH**2 * fall
            for _ in range(LONGEST):
                q = p - step * self.apply(p)
                bend = float(p @ q)
                if not bend > 0:  # a step too long for a direction that grows
                    break
                x += (fall / bend) * p
                left -= (fall / bend) * q
                z = precondition(left)
                fall, before = float(left @ z), fall
                if not fall > enough:
                    break
                p = z + (fall / before) * p
            return x

        return solve
