"""Corollary 10: the kernel regime of i.i.d. Gaussian factors, as bounds and as powers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from penchant.bounds import kernel_regime, least_width, wishart_deviation
from penchant.lab import (
    Array,
    Dataset,
    Evidence,
    Experiment,
    at_least,
    at_most,
    log_log,
    sized,
    within,
)
from penchant.models import wishart_root
from penchant.plotting import latex
from penchant_papers.instances import slope
from penchant_papers.woodworth2020.lifted import Lifted, followed, measurements

# powers of (alpha, k) in |W - W(0)| and |W - W_TK|, where the targets dominate and where y(0) does
LAW = np.array([[[-1.0, -0.5], [-3.0, -1.5]], [[1.0, 0.0], [1.0, -0.5]]])


@dataclasses.dataclass(frozen=True)
class Wide:
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
        """The bound used for |X|_F^2 in eq. (89): d Lambda^2 as printed, N Lambda as it must be."""
        high = self.edges[1]
        return self.d * high**2 if printed else self.samples * high

    def least_width(self, printed: bool) -> float:
        """The width that eq. (94) requires, as printed or corrected."""
        low, high = self.edges
        if not printed:
            sizes = {"dimension": self.d, "samples": self.samples}
            return least_width(self.Y, alpha=self.alpha, low=low, high=high, **sizes)
        ratio = 4 + 16 * high / low
        last = self.Y / (2 * np.sqrt(high) * (low + 4 * high))
        middle = 512 * self.d**2 * self.square(printed) * high * (ratio / low) ** 2
        return float(max(8192 * self.d * (high / low) ** 2, middle, last / self.alpha**2))

    def bounds(self, width: float, printed: bool) -> tuple[float, float]:
        """The right sides of eqs. (98) and (99), as printed or corrected."""
        low, high = self.edges
        g, F2 = self.alpha * np.sqrt(width), self.square(printed)
        start = 4 * self.Y * np.sqrt(high) / (low * g)
        start += 32 * self.d * np.sqrt(F2 * high) * self.alpha / low
        twin = 4 * high * self.Y**2 / (low**2 * g**3) + 2 * start
        twin += 1024 * self.d**2 * F2 * high * self.alpha / (low**2 * np.sqrt(width))
        return float(start), float(twin)

    def condition(self, width: float, printed: bool) -> dict[str, float]:
        """Eqs. (95) and (93) at a width, left side over right side, and whether Y dominates.

        Eq. (96) is (93) where Y does not dominate in (89), eq. (97) where it does.
        """
        low, high = self.edges
        narrow = np.sqrt((1 + 8 * np.sqrt(2 * self.d / width)) / (1 + low / (4 * high)))
        noise = 256 * width * self.d**2 * self.square(printed) * self.alpha**4
        allowed = self.alpha**2 * low * width / np.sqrt(high) * (1 - narrow)
        return {
            "eq_95": float(narrow / (1 - 1 / (4 + 16 * high / low))),
            "eq_93": float(np.sqrt(2 * self.Y**2 + noise) / allowed),
            "targets_dominate": float(noise < 2 * self.Y**2),
        }

    def gamma(self, width: float) -> float:
        """The event of (88): |W W^T - alpha^2 k I| is below this."""
        return self.alpha**2 * wishart_deviation(2 * self.d, int(width))

    def start(self, width: float, seed: int) -> Lifted:
        """A start of some width: W W^T by its Wishart law, the same noise at any width."""
        n = 2 * self.d
        X = measurements(
            np.random.default_rng((seed, 17)), self.samples, self.d, self.spread, self.size
        )
        W = self.alpha * wishart_root(n, int(width), seed)
        y = np.einsum("nij,ij->n", X, W[: self.d] @ W[self.d :].T)
        mu = self.alpha**2 * width
        gamma = float(np.linalg.norm(W @ W.T - mu * np.eye(n), 2))
        return Lifted(X, W, y - self.Y * np.eye(self.samples)[0], mu, gamma)


def at_least_width(
    how: str, size: float, target: float, spread: float, seed: int
) -> dict[str, Any]:
    """A start of the least width that eq. (94) admits, "printed" or "mended".

    Small and large measurements, flat or not, with and without targets. (alpha, Y) and
    (c alpha, c^2 Y) are the same problem in other units, so one alpha is enough.
    """
    s, printed = Wide(1e-3, target * size, size, spread), how == "printed"
    k = s.least_width(printed)
    case = s.start(k, seed)
    run, gamma, (low, high) = followed(case), s.gamma(k), s.edges
    largest = kernel_regime(0, mu=case.mu, gamma=gamma, low=low, high=high).largest_misfit
    gap = case.start @ case.start.T - case.mu * np.eye(2 * s.d)
    return {
        "width": k,
        "norm": s.Y,
        "shares": np.array([run.farthest, run.apart]) / s.bounds(k, printed),
        "share_of_1_over_k": run.farthest / s.bounds(k**2, printed)[0],
        "reached": case.misfit / largest,
        "typical": case.gamma / gamma,
        "left": run.left,
        **s.condition(k, printed),
        "eq_89": float(np.linalg.norm(gap) ** 2 / (2 * s.d * np.linalg.norm(gap, 2) ** 2)),
    }


def cell(width: float, factor: float, power: float, Y: float, seed: int) -> dict[str, float]:
    """How far W of width k moves from its start and its twin, alpha = factor k^power."""
    alpha = factor * width**power
    case = Wide(alpha, Y).start(width, seed)
    run = followed(case)
    return {
        "alpha": alpha,
        "root_mu": np.sqrt(case.mu),
        "farthest": run.farthest,
        "apart": run.apart,
        "twin_farthest": np.linalg.norm(run.twin_moved, axis=(1, 2)).max(),
        "left": run.left,
    }


DRAWS: dict[str, Any] = {"seeds": 1, "printed": {"seeds": 30}}
edge = sized(
    "W-C10",
    function=at_least_width,
    grid={
        "how": ["printed", "mended"],
        "size": [1e-3, 1.0, 10.0],
        "target": [0.0, 1e4],
        "spread": [1.0, 2.0],
    },
    dims={"shares": ["bound"]},
    **DRAWS,
)
targets = sized(
    "W-C10-targets",
    function=cell,
    arguments={"power": -0.5, "Y": 1.0},
    grid={"width": [1e10, 1e12, 1e14], "factor": [10.0, 30.0]},
    **DRAWS,
)
blank = sized(
    "W-C10-blank",
    function=cell,
    arguments={"power": 0.0, "Y": 0.0},
    grid={"width": [1e6, 1e8, 1e10], "factor": [0.01, 1.0]},
    **DRAWS,
)
vanishing = sized(
    "W-C10-vanishing",
    function=cell,
    arguments={"factor": 1.0, "Y": 1.0, "seed": 0},
    grid={"power": [-0.75, -0.375], "width": [1e4, 1e6, 1e8]},
)


def powers(suprema: Dataset) -> Array:
    """[[p, q], [p', q']]: sup|W - W(0)| ~ alpha^p k^q and sup|W - W_TK| ~ alpha^p' k^q'."""
    width = suprema.width.broadcast_like(suprema.alpha)
    columns = np.log(np.stack([suprema.alpha.values.ravel(), width.values.ravel()], axis=-1))
    rows = np.column_stack([columns, np.ones(len(columns))])
    values = np.stack([suprema.farthest.values.ravel(), suprema.apart.values.ravel()], axis=-1)
    return np.linalg.lstsq(rows, np.log(values), rcond=None)[0][:2].T


def check(edge: Dataset, targets: Dataset, blank: Dataset, vanishing: Dataset) -> Evidence:
    """The powers of (69) and (70), and the constants of the proof as printed and corrected."""
    law = np.array([powers(targets), powers(blank)])
    rates = {
        (rule, whose, scale): within(law[i, j, k], LAW[i, j, k], 0.03)
        for i, rule in enumerate(("targets dominate", "no targets"))
        for j, whose in enumerate(("$|W - W(0)|$", "$|W - W_{TK}|$"))
        for k, scale in enumerate((r"$\alpha$", "$k$"))
        if (rule, scale) != ("no targets", r"$\alpha$")  # one by the units of W alone
    }
    drift = {  # exponent in k of |W - W_TK| / |W_TK - W(0)|
        power: slope(row.width.values, (row.apart / row.twin_farthest).values)
        for power in (-0.75, -0.375)
        for row in [vanishing.sel(power=power)]
    }
    printed, mended = (
        {
            f"{label}: largest share used of (98)": at_most(shares[0], 1.0),
            f"{label}: largest share used of (99)": at_most(shares[1], 1.0),
            f"{label}: misfit over what (92) allows, at the width of (94)": at_most(
                rows.reached.max(), 1.0
            ),
            f"{label}: eq. (95), left side over right side": at_most(rows.eq_95.max(), 1.0, 1e-9),
            f"{label}: eq. (96), right side over left side": at_most(
                rows.eq_93.where(rows.targets_dominate == 0).max(), 1.0, 1e-9
            ),
            f"{label}: eq. (97), right side over left side": at_most(dominated.max(), 1.0, 1e-9),
            rf"{label}: $\alpha = k^{{{power}}}$: exponent in $k$ of the relative distance to the "
            "tangent-kernel flow": at_most(drift[power], -0.1),
        }
        for how, label, power in (("printed", "as printed", -0.75), ("mended", "corrected", -0.375))
        for rows in [edge.sel(how=how)]
        for dominated in [rows.eq_93.where(rows.targets_dominate == 1)]
        for shares in [rows.shares.max([d for d in rows.shares.dims if d != "bound"]).values]
    )
    moved, *_, slower = mended.values()
    square = dict(zip(("least", "most"), (edge.eq_89.min(), edge.eq_89.max()), strict=True))
    shares = r"(89), line 5: squares of the singular values over $2 d$ times the largest"
    printed[f"as printed: {shares}, at least"] = at_least(square["least"], 1.0, 1e-9)
    mended[f"corrected: {shares}, at most"] = at_most(square["most"], 1.0, 1e-9)
    left = max(float(f.left.max()) for f in (edge.sel(how="mended"), targets, blank))
    typical = float(edge.typical.max())
    axes = [d for d in edge.reached.dims if d != "how"]
    rows = edge.sel(how="printed").stack(start=axes)
    worst = rows.isel(start=int(rows.shares.isel(bound=0).values.argmax()))
    tight = rows.isel(start=int(rows.reached.values.argmax()))
    return Evidence(
        ran=f"{edge.reached.size} Gaussian starts at the least width of (94), and "
        f"{targets.alpha.size + blank.alpha.size} of widths $10^6$ to $10^{{14}}$ ($W W^T$ "
        "drawn by its Wishart law)",
        checks={
            f"{whose}, {rule}: exponent in {scale}": rate
            for (rule, whose, scale), rate in rates.items()
        },
        proof=printed,
        corrected=mended,
        correction=r"$|X|_F^2 \leq N \Lambda$ (not $d \Lambda^2$) in (89), so $256 k d^2 N "
        r"\alpha^4 \Lambda$ there, $512 N d^2 \Lambda^2 (4 + 16 \Lambda/\lambda)^2/\lambda^2$ "
        r"in (94), $32 d \sqrt{N} \Lambda \alpha/\lambda$ in (98) and likewise in (99); the "
        r"'=' of line 5 of (89) is '$\leq$'; the last width of (94) is inverted, which (97) uses, "
        r"and must be $8 Y \sqrt{\Lambda} (\lambda + 4 \Lambda)/(\alpha^2 \lambda^2)$; after the "
        r"corollary, $\alpha$ may vanish slower "
        r"than $1/\sqrt{k}$, not $1/k$; (69) and (70) themselves hold",
        counterexample={
            "(98)": f"$d = 2$, 3 measurements with {_edges(worst)}, $y^* = 0$, $k = "
            f"{float(worst.width):.6g}$: $|W - W(0)|$ is {float(worst.shares[0]):.3g} times "
            "the bound",
            "(94)": rf"{_edges(tight)}, $Y = {latex(float(tight.norm))}$, $\alpha = 0.001$, $k = "
            f"{float(tight.width):.4g}$: the misfit is {float(tight.reached):.3g} times what "
            "(92) allows",
            "(97)": f"there the right side is {float(tight.eq_93):.3g} times the left side",
            "(89), line 5": f"the left side is {float(square['least']):.3g} of the right side",
            r"$\alpha = k^{-0.75}$": "$|W - W_{TK}|/|W_{TK} - W(0)|$ grows like "
            f"$k^{{{drift[-0.75]:.3f}}}$",
        },
        premises={
            "every run interpolates": (left < 1e-8, left),
            "every start satisfies (88)": (typical < 1, typical),
        },
        controls={
            r"(98) with $1/(\alpha k)$, as the text after the corollary has it": moved.control(
                edge.share_of_1_over_k.sel(how="mended").max()
            ),
            r"$|W - W_{TK}|$ like its printed middle term $1/(\alpha \sqrt{k})$": (
                rates["targets dominate", "$|W - W_{TK}|$", r"$\alpha$"].control(predicted=-1.0)
            ),
            r"$|W - W_{TK}|$ like its printed last term $\alpha$": (
                rates["no targets", "$|W - W_{TK}|$", "$k$"].control(predicted=0.0)
            ),
            r"$|W - W(0)|$ like $1/(\alpha \sqrt{k})$ without targets too": (
                rates["no targets", "$|W - W(0)|$", "$k$"].control(predicted=-0.5)
            ),
            r"$\alpha = k^{-0.75}$, slower than $1/k$": slower.control(drift[-0.75]),
        },
        findings=[
            r"(70) is not sharp: $|W - W_{TK}|$ scales like $1/(\alpha^3 k^{3/2}) + "
            r"\alpha/\sqrt{k}$, without the terms $1/(\alpha \sqrt{k})$ and $\alpha$; fitted "
            r"powers of $\alpha$ and $k$: "
            + ", ".join(f"({p:.3f}, {q:.3f})" for p, q in law.reshape(-1, 2)),
            r"(93) writes $\sqrt{2 k d}/\sqrt{k}$ for $\sqrt{2 d}/\sqrt{k}$; (99) has $\lambda/(2 "
            r"\Lambda)$ for $\lambda/(4 \Lambda)$ and 512 for 256, which only loosens it",
        ],
        plots=[
            log_log(
                "distance from the start and from the tangent-kernel flow, targets of norm 1",
                r"$\alpha \sqrt{k}$",
                "distance",
                [
                    (name, targets.root_mu.values.ravel(), values.values.ravel(), "points")
                    for name, values in (("start", targets.farthest), ("twin", targets.apart))
                ],
            )
        ],
    )


def _edges(row: Dataset) -> str:
    low, high = Wide(1.0, 0.0, float(row["size"]), float(row.spread)).edges
    return rf"$\lambda = {latex(low)}$, $\Lambda = {latex(high)}$"


experiment = Experiment(
    "W-C10",
    statement=r"From i.i.d. $N(0, \alpha^2)$ factors of width $k$, the distance of $W$ from its "
    r"start is $O(1/(\alpha \sqrt{k}) + \alpha)$ and its distance from the tangent-kernel "
    r"flow $W_{TK}$ is $O(1/(\alpha^3 k^{3/2}) + 1/(\alpha \sqrt{k}) + \alpha)$.",
    place="appendix H, Corollary 10, eqs. (88)-(100)",
    study=(edge, targets, blank, vanishing),
    check=check,
    title="Wide factors stay near their start, and even nearer to the tangent-kernel flow",
    seconds=2,
)
