"""A diagonal network seen from its samples, and stiff steps of its dual from anchor to anchor.

How it works. Under gradient flow every weight of a diagonal net is a function of s_i = kappa_i
<x_i, nu>, where nu is the time integral of the residuals (docs/theory sections 7 and 14). So the
flow of 2 d weights is an equation in one number per sample, nu' = -rate (X beta - y), which holds
for any alpha: amplitudes and rates are logarithms. `DualForm` has its constants.

The equation is stiff: fitted directions relax at the rates of the tangent kernel while the next
weight waits at a saddle. An implicit method with the exact Jacobian follows it, and after steps in
which much has changed a new `FlowAnchor` is set, from which the variables, and the time where that
has lost its digits, are counted anew: what is small later would be lost in the rounding of what is
large by then.

Pitfalls. LSODA begins with a method that is not stiff and does not recover from the overflow of a
trial step, so SciPy's BDF is used, with trial values capped: a wild step then fails and is
repeated shorter. The error that its Newton iteration leaves bounds the residual that can be
reached, so the anchor sets it. Equal or dependent samples let nu drift in directions that change no
predictor: X is reduced to its row space. Near a saddle the time stands still in float64 while
weights grow by many decades, so the flow counts as stuck only when neither advances.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from typing import Any

import numpy as np

from penchant.arguments import Array
from penchant.limits import Turns
from penchant.models.diagonal import DiagonalNet
from penchant.problems.regression import Regression
from penchant.training.exact.follow import SETTLED, FitIntegrator, FlowPlan
from penchant.training.exact.solver import SHORT, GaveUp, backward, try_step
from penchant.training.task import Moment

RANK = 1e-12  # singular values below this fraction of the largest count as zero


@dataclasses.dataclass(frozen=True)
class DualForm:
    """beta_i = a_i h(s_i) with s_i = kappa_i <x_i, nu> and nu' = -rate (X beta - y).

    From w' = -2 D (X^T r) w^(D-1), the gradient of sum r^2. Depth 2: log w is linear in the
    integral of r, so h(s) = 2 sinh(s), kappa = 1 and rate = 8 (Woodworth et al. 2020, eq. 15 to 17,
    with the factor 2 of their loss put back). Depth D > 2: w^(2-D) is linear in it, so with p =
    D/(D-2) h(s) = (1-s)^-p - (1+s)^-p, kappa_i = |w0_i|^(D-2) and rate = 2 D (D-2) alpha^(D-2)
    (their eq. 51 to 59, likewise).

    The samples are reduced to their row space, X = basis @ rows, so that duplicate or dependent
    samples cannot make the dual drift; `nu` and `y` live there.
    """

    depth: int
    log_amplitude: Array  # log a_i = D log(alpha |w0_i|)
    log_rate: float
    kappa: Array
    basis: Array  # samples x rank, orthonormal columns
    rows: Array  # rank x features
    y: Array  # rank

    @property
    def power(self) -> float:
        """p; 1 for depth 2, so that 2 p is the slope of h at zero for every depth."""
        return 1.0 if self.depth == 2 else self.depth / (self.depth - 2)

    @property
    def scaled(self) -> Array:
        return self.rows * self.kappa

    @property
    def escape(self) -> float:
        """The s at which a weight has moved by its own size, to first order."""
        return 2.0 if self.depth == 2 else (self.depth - 2) / (self.depth - 1)

    @functools.cached_property
    def kernel_predictor(self) -> Array:
        """Where the flow linearised at the start would end."""
        log_weight = self.log_amplitude + np.log(self.kappa)
        root = np.exp((log_weight - log_weight.max()) / 2)
        return root * np.linalg.lstsq(self.rows * root, self.y, rcond=None)[0]

    @property
    def size(self) -> float:
        return float(np.abs(self.kernel_predictor).max())

    def log_cap(self) -> float:
        """log of a size far above any coordinate of beta, to reject wild trial steps."""
        return math.log(1e4 * float(np.abs(self.kernel_predictor).sum()))

    def unit(self, front: Array, size: float = 1.0) -> float:
        """The shortest time scale where beta_i = 2 p front_i s_i / size to first order."""
        slope = 2 * self.power * front
        kernel = np.linalg.norm(self.rows * np.sqrt(slope * self.kappa), ord=2) ** 2
        escape = size * np.abs(self.y @ self.scaled).max() / self.escape
        return float(1 / max(kernel, escape))

    def log_reach(self) -> float:
        """log of the largest |s| that the linearised flow would reach."""
        with np.errstate(divide="ignore"):
            size = np.log(np.abs(self.kernel_predictor))
        return float(np.max(size - math.log(2 * self.power) - self.log_amplitude))


def dual_form(model: DiagonalNet, problem: Regression) -> DualForm:
    assert model.log_alpha is not None
    depth, log_shape = model.depth, np.log(np.abs(model.shape_for(problem.dimension)))
    log_rate = math.log(8)
    if depth > 2:
        log_rate = math.log(2 * depth * (depth - 2)) + (depth - 2) * model.log_alpha
    U, S, Vt = np.linalg.svd(problem.X, full_matrices=False)
    rank = int(np.count_nonzero(S / S[0] > RANK)) if S[0] > 0 else 0
    basis = U[:, :rank]
    return DualForm(
        depth,
        log_amplitude=depth * (model.log_alpha + log_shape),
        log_rate=log_rate,
        kappa=np.exp((depth - 2) * log_shape),
        basis=basis,
        rows=S[:rank, None] * Vt[:rank],
        y=basis.T @ problem.y,
    )


def corner(columns: Array, weight: Array) -> tuple[Array, Array, Array]:
    """As many independent columns as rows, those of most weight: indices, matrix, combinations."""
    from scipy.linalg import qr

    basis = qr(columns * weight, mode="r", pivoting=True)[1][: len(columns)]
    combine = np.asarray(np.linalg.solve(columns[:, basis], columns), dtype=np.float64)
    combine[:, basis] = np.eye(len(columns))
    return basis, columns[:, basis], combine


PATIENCE = 5000  # the most steps in a row that change neither the time nor a weight
STUCK = 25  # anchors in a row from which no step could be taken
NO_ADVANCE = (
    f"{PATIENCE} steps advanced neither the time nor a weight, because one weight grows too"
    " suddenly for float64; take a larger alpha, or interpolate() for the end of the flow"
)


class FlowAnchor(abc.ABC):
    """The flow from time `t` on, in variables that are `start` there; times count from `t`."""

    newton: float  # the part of the tolerance that Newton's iteration may leave

    def __init__(self, form: DualForm, t: float, start: Array) -> None:
        self.form, self.t, self.start = form, t, start

    def unit(self) -> float:
        """The shortest time scale: of the tangent kernel or of the escape."""
        return self.form.unit(np.exp(self.form.log_amplitude))

    @abc.abstractmethod
    def velocity(self, _: float, state: Array) -> Array: ...

    @abc.abstractmethod
    def jacobian(self, _: float, state: Array) -> Array: ...

    @abc.abstractmethod
    def atol(self, rtol: float, state: Array) -> float | Array: ...

    @abc.abstractmethod
    def moment(self, t: float, state: Array) -> Moment: ...

    def follows(self, state: Array) -> bool:
        """False if the anchor cannot follow that far; raises GaveUp if none can."""
        return True

    def far(self, solver: Any) -> bool:
        return False

    def next(self, t: float, state: Array) -> FlowAnchor:
        raise GaveUp(SHORT)

    def first_step(self, t: float, solver: Any) -> float:
        return solver.step_size or 0.0


class DualIntegrator(FitIntegrator):
    """The flow of the dual; its time is training time over exp(log_unit)."""

    def __init__(
        self, problem: Regression, anchor: FlowAnchor, rtol: float, plan: FlowPlan, log_unit: float
    ) -> None:
        super().__init__(problem)
        self.rtol, self.t_max, self.log_unit = rtol, plan.t_max, log_unit
        self.begin = self.marked = anchor.moment(0.0, anchor.start)
        self.h, self.failed = 1e-4 * plan.unit, 0
        self._set(anchor)

    def _set(self, anchor: FlowAnchor) -> None:
        # not LSODA: it begins with a non-stiff method and does not recover from an overflow
        end, atol = self.t_max - anchor.t, anchor.atol(self.rtol, anchor.start)
        settings: Any = {"rtol": 1e-13, "atol": atol, "jac": anchor.jacobian}
        settings["first_step"] = min(self.h, end)
        self.anchor = anchor
        self.solver = backward(anchor.velocity, 0.0, anchor.start, end, **settings)
        self.solver.newton_tol = anchor.newton  # its error bounds the residual

    def _renew(self, t: float, state: Array) -> None:
        self.failed = self.failed + 1 if t == 0 else 0
        if self.failed > STUCK:
            raise GaveUp(
                "coordinates are too close to the boundary of the dual box; use ParameterFlow"
            )
        anchor = self.anchor.next(t, state)
        self.h = self.h / 10 if self.failed else self.anchor.first_step(t, self.solver)
        self._set(anchor)

    def advance(self, limit: float) -> None:
        if self.solver.status != "running" or (self.solver.t and self.anchor.far(self.solver)):
            self._renew(self.solver.t, self.solver.y.copy())
        turns = Turns(1_000_000, "a step of the dual")
        while not self._stepped():
            turns.take()
        self.t, self.steps = self.anchor.t + self.solver.t, self.steps + 1
        if self.solver.status == "finished":
            self.t = self.t_max
        if self.steps % PATIENCE == 0:
            now = self.at(self.t)
            if is_stuck(self.marked, now):
                raise GaveUp(NO_ADVANCE)
            self.marked = now

    def _stepped(self) -> bool:
        """One step of the solver; False if it failed and the flow continues from a new anchor."""
        t, state = self.solver.t, self.solver.y.copy()
        self.solver.atol = self.anchor.atol(self.rtol, state)
        if try_step(self.solver) and self.anchor.follows(self.solver.y):
            return True
        self._renew(t, state)
        return False

    def at(self, t: float) -> Moment:
        solver = self.solver
        local = min(max(t - self.anchor.t, solver.t_old or 0.0), solver.t)
        state = solver.y.copy() if t == self.t else solver.dense_output()(local)
        return self.anchor.moment(t, state)

    def time_text(self, t: float) -> str:
        """Training time in words, also beyond float64."""
        if t == 0:
            return "t=0"
        log_t = (math.log(t) + self.log_unit) / math.log(10)
        return f"t={10**log_t:.4g}" if abs(log_t) < 300 else f"t=10^{log_t:.1f}"


def is_stuck(before: Moment, now: Moment) -> bool:
    """True if steps change nothing but rounding: the time and every weight stand still.

    Near a saddle the time stands still in float64 while weights grow by many orders of magnitude,
    which their logarithms show.
    """
    if now.t > (1 + SETTLED) * before.t:
        return False
    return bool(np.abs(now.log_growth - before.log_growth).max() < math.sqrt(SETTLED))
