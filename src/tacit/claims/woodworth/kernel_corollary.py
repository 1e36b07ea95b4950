"""W-C10: the kernel regime of i.i.d. Gaussian factors, as bounds and as powers of alpha and k."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.claims.woodworth.matrices import (
    Course,
    Lifted,
    course,
    measurements,
    reach,
    wishart_root,
)
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.instances import slope
from tacit.studies.sizes import Size

WIDTHS = (1e10, 1e12, 1e14)
# powers of (alpha, k) of |W - W(0)| and |W - W_TK|, where the targets rule and where y(0) does
LAW = np.array([[[-1.0, -0.5], [-3.0, -1.5]], [[1.0, 0.0], [1.0, -0.5]]])


@dataclasses.dataclass(frozen=True)
class Setting:
    """Scale alpha, targets of norm Y, and measurements with Gram eigenvalues size^2 to spread."""

    alpha: float
    Y: float
    size: float = 1.0
    spread: float = 2.0
    d: int = 2
    samples: int = 3

    @property
    def edges(self) -> tuple[float, float]:
        """lambda and Lambda."""
        return self.size**2, self.size**2 * self.spread

    def square(self, printed: bool) -> float:
        """What is put for |X|_F^2 in eq. (89): d Lambda^2 as printed, N Lambda as it must be."""
        high = self.edges[1]
        return self.d * high**2 if printed else self.samples * high

    def least_width(self, printed: bool) -> float:
        """What eq. (94) asks of the width, as printed or mended."""
        low, high = self.edges
        ratio = 4 + 16 * high / low
        last = self.Y / (2 * np.sqrt(high) * (low + 4 * high))
        if not printed:
            last = 8 * self.Y * np.sqrt(high) * (low + 4 * high) / low**2
        middle = 512 * self.d**2 * self.square(printed) * high * (ratio / low) ** 2
        return float(max(8192 * self.d * (high / low) ** 2, middle, last / self.alpha**2))

    def bounds(self, width: float, printed: bool) -> tuple[float, float]:
        """The right sides of eqs. (98) and (99), as printed or mended."""
        low, high = self.edges
        g, F2 = self.alpha * np.sqrt(width), self.square(printed)
        start = 4 * self.Y * np.sqrt(high) / (low * g)
        start += 32 * self.d * np.sqrt(F2 * high) * self.alpha / low
        twin = 4 * high * self.Y**2 / (low**2 * g**3) + 2 * start
        twin += 1024 * self.d**2 * F2 * high * self.alpha / (low**2 * np.sqrt(width))
        return float(start), float(twin)


@dataclasses.dataclass(frozen=True)
class Wide:
    """A factorization of some width in a setting, and its run."""

    setting: Setting
    width: float
    seed: int = 0

    @cached_property
    def case(self) -> Lifted:
        """The start, with W W^T drawn by its Wishart law; one seed is one noise at every width."""
        s, n = self.setting, 2 * self.setting.d
        X = measurements(np.random.default_rng(17), s.samples, s.d, s.spread, s.size)
        start = s.alpha * wishart_root(np.random.default_rng(self.seed), n, int(self.width))
        y = np.einsum("nij,ij->n", X, start[: s.d] @ start[s.d :].T)
        mu = s.alpha**2 * self.width
        gamma = float(np.linalg.norm(start @ start.T - mu * np.eye(n), 2))
        return Lifted(X, start, y - s.Y * np.eye(s.samples)[0], mu, gamma)

    @cached_property
    def run(self) -> Course:
        return course(self.case)

    @property
    def reached(self) -> float:
        """The first misfit over what eq. (92) allows."""
        gamma = 8 * self.setting.alpha**2 * np.sqrt(2 * self.width * self.setting.d)
        return self.case.misfit / reach(self.case.mu, gamma, *self.setting.edges)

    def shares(self, printed: bool) -> Array:
        """How much of (98) and of (99) the run uses."""
        bounds = self.setting.bounds(self.width, printed)
        return np.array([self.run.farthest, self.run.apart]) / bounds


def settings() -> list[Setting]:
    """Small and large measurements, flat or not, with and without targets.

    (alpha, Y) and (c alpha, c^2 Y) are the same problem in other units, so one alpha is enough.
    """
    return [
        Setting(1e-3, Y * size, size, spread)
        for size in (1e-3, 1.0, 10.0)
        for Y in (0.0, 1e4)
        for spread in (1.0, 2.0)
    ]


def at_the_edge(printed: bool, seeds: int) -> list[Wide]:
    """Starts of the least width that eq. (94) admits, in every setting."""
    return [Wide(s, s.least_width(printed), seed) for s in settings() for seed in range(seeds)]


def powers(found: list[Wide]) -> Array:
    """[[p, q], [p', q']]: sup|W - W(0)| ~ alpha^p k^q and sup|W - W_TK| ~ alpha^p' k^q'."""
    rows = np.array([[np.log(w.setting.alpha), np.log(w.width), 1.0] for w in found])
    values = np.array([[w.run.farthest, w.run.apart] for w in found])
    return np.linalg.lstsq(rows, np.log(values), rcond=None)[0][:2].T


def leaving(power: float) -> float:
    """Exponent in k of |W - W_TK| / |W_TK - W(0)| from alpha = k^power, targets of norm 1."""
    widths = np.array([1e4, 1e6, 1e8])
    found = [Wide(Setting(k**power, 1.0), k).run for k in widths]
    moves = [np.linalg.norm(run.twin_moved, axis=(1, 2)).max() for run in found]
    return slope(widths, np.array([run.apart for run in found]) / moves)


@claim(
    "W-C10",
    statement="from i.i.d. N(0, alpha^2) factors of width k, W strays from its start by"
    " O(1/(alpha sqrt k) + alpha) and from its tangent twin by"
    " O(1/(alpha^3 k^(3/2)) + 1/(alpha sqrt k) + alpha)",
    place="appendix H, Corollary 10, eqs. (88)-(100)",
    seconds=10,
)
def corollary_10(size: Size) -> Evidence:
    seeds = 2 if size == "quick" else 30
    edge = {printed: at_the_edge(printed, seeds) for printed in (True, False)}
    used = {p: np.max([w.shares(p) for w in edge[p]], axis=0) for p in edge}
    allowed = {p: max(w.reached for w in edge[p]) for p in edge}
    targets = [
        Wide(Setting(g / np.sqrt(k), 1.0), k, seed)
        for k in WIDTHS
        for g in (10.0, 30.0)
        for seed in range(seeds)
    ]
    blank = [
        Wide(Setting(alpha, 0.0), k, seed)
        for k in (1e6, 1e8, 1e10)
        for alpha in (0.01, 1.0)
        for seed in range(seeds)
    ]
    drift = {power: leaving(power) for power in (-0.75, -0.375)}
    law = np.array([powers(targets), powers(blank)])
    rates = {
        (rule, whose, scale): Check(
            f"{whose}, {rule}: exponent in {scale}", law[i, j, k], LAW[i, j, k], tolerance=0.03
        )
        for i, rule in enumerate(("targets rule", "no targets"))
        for j, whose in enumerate(("|W - W(0)|", "|W - W_TK|"))
        for k, scale in enumerate(("alpha", "k"))
        if (rule, scale) != ("no targets", "alpha")  # one by the units of W, whatever the theorem
    }
    printed, mended = (
        [
            Check(f"{how}: largest share used of (98)", used[p][0], 1.0, kind="at most"),
            Check(f"{how}: largest share used of (99)", used[p][1], 1.0, kind="at most"),
            Check(
                f"{how}: misfit over what (92) allows, at the width of (94)",
                allowed[p],
                1.0,
                kind="at most",
            ),
            Check(
                f"{how}: alpha = k^{power}: exponent in k of the relative distance to the twin",
                drift[power],
                -0.1,
                kind="at most",
            ),
        ]
        for p, how, power in ((True, "as printed", -0.75), (False, "mended", -0.375))
    )
    worst = max(edge[True], key=lambda w: w.shares(True)[0])
    tight = max(edge[True], key=lambda w: w.reached)
    return Evidence(
        ran=f"{len(edge[True]) + len(edge[False])} Gaussian starts at the least width of (94), and"
        f" {len(targets) + len(blank)} of widths 1e6 to 1e14 (W W^T drawn by its Wishart law)",
        checks=tuple(rates.values()),
        proof=printed,
        corrected=mended,
        correction="|X|_F^2 <= N Lambda (not d Lambda^2) in (89), so 256 k d^2 N alpha^4 Lambda"
        " there, 512 N d^2 Lambda^2 (4 + 16 Lambda/lambda)^2/lambda^2 in (94), 32 d sqrt(N) Lambda"
        " alpha/lambda in (98) and likewise in (99); the last width of (94) is upside down and must"
        " be 8 Y sqrt(Lambda) (lambda + 4 Lambda)/(alpha^2 lambda^2); after the corollary, alpha"
        " may vanish slower than 1/sqrt k, not 1/k; (69) and (70) themselves stand",
        counterexample={
            "(98)": f"d = 2, {worst.setting.samples} measurements with lambda ="
            f" {worst.setting.edges[0]:g}, Lambda = {worst.setting.edges[1]:g}, y* = 0, k ="
            f" {worst.width:.6g}: |W - W(0)| is {worst.shares(True)[0]:.3g} times the bound",
            "(94)": f"lambda = {tight.setting.edges[0]:g}, Lambda = {tight.setting.edges[1]:g}, Y ="
            f" {tight.setting.Y:g}, alpha = {tight.setting.alpha:g}, k = {tight.width:.4g}: the"
            f" misfit is {tight.reached:.3g} times what (92) allows",
            "alpha = k^-0.75": f"|W - W_TK|/|W_TK - W(0)| grows like k^{drift[-0.75]:.3f}",
        },
        premises={
            "every run interpolates": _interpolated([*edge[False], *targets, *blank]),
            "every start lies in the event of (88)": _typical([*edge[True], *edge[False]]),
        },
        controls={
            "(98) with 1/(alpha k), as the text after the corollary has it": mended[0].control(
                max(w.run.farthest / w.setting.bounds(w.width**2, False)[0] for w in edge[False])
            ),
            "|W - W_TK| like its printed middle term 1/(alpha sqrt k)": (
                rates["targets rule", "|W - W_TK|", "alpha"].control(predicted=-1.0)
            ),
            "|W - W_TK| like its printed last term alpha": (
                rates["no targets", "|W - W_TK|", "k"].control(predicted=0.0)
            ),
            "|W - W(0)| like 1/(alpha sqrt k) without targets too": (
                rates["no targets", "|W - W(0)|", "k"].control(predicted=-0.5)
            ),
            "alpha = k^-0.75, slower than 1/k": mended[3].control(drift[-0.75]),
        },
        findings=[
            "(70) is not sharp: W leaves its twin like 1/(alpha^3 k^(3/2)) + alpha/sqrt k, without"
            " the terms 1/(alpha sqrt k) and alpha; fitted powers of alpha and k: "
            + ", ".join(f"({p:.3f}, {q:.3f})" for p, q in law.reshape(-1, 2)),
            "(93) writes sqrt(2kd)/sqrt(k) for sqrt(2d)/sqrt(k); (99) has lambda/(2 Lambda) for"
            " lambda/(4 Lambda) and 512 for 256, which only loosens it",
        ],
        plots=[
            Plot(
                "distance from the start and from the tangent twin, targets of norm 1",
                "alpha sqrt(k)",
                "distance",
                [
                    Series(name, [np.sqrt(w.case.mu) for w in targets], values, "points")
                    for name, values in (
                        ("start", [w.run.farthest for w in targets]),
                        ("twin", [w.run.apart for w in targets]),
                    )
                ],
                x_scale="log",
                y_scale="log",
            )
        ],
    )


def _interpolated(found: list[Wide]) -> tuple[bool, float]:
    left = max(w.run.left for w in found)
    return left < 1e-8, left


def _typical(found: list[Wide]) -> tuple[bool, float]:
    """Whether |W W^T - alpha^2 k I| < 8 alpha^2 sqrt(2kd), and the largest ratio of the two."""
    share = max(
        w.case.gamma / (8 * w.setting.alpha**2 * np.sqrt(2 * w.width * w.setting.d)) for w in found
    )
    return bool(share < 1), float(share)
