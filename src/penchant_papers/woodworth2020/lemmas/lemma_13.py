"""Lemma 13: how near to a multiple of the identity W W^T starts for a Gaussian W."""

from __future__ import annotations

import numpy as np

from penchant.bounds import wishart_deviation
from penchant.lab import Dataset, Evidence, Experiment, Plot, Series, at_most, sized, upper_share
from penchant.models import wishart_root


def cell(rows: int, ratio: int, draws: int, seed: int) -> dict[str, float]:
    """|W W^T/sigma^2 - k I|_op / sqrt(k d) for Gaussian W (d x k), k = ratio d, by the Wishart law.

    `limit` is the upper limit of its probability to be at least 8, over the printed 2 exp(-d/2),
    and `limit_cited` that for the constant of the theorem which is cited; the shares of draws
    beyond two smaller constants are in the same unit.
    """
    width, printed = ratio * rows, 2 * np.exp(-rows / 2)
    rng = np.random.default_rng((seed, rows, width))
    roots = np.array([wishart_root(rows, width, rng) for _ in range(draws)])
    gap = roots @ roots.transpose(0, 2, 1) - width * np.eye(rows)
    off = np.abs(np.linalg.eigvalsh(gap)).max(axis=1) / np.sqrt(width * rows)
    eight = wishart_deviation(rows, width) / np.sqrt(width * rows)
    cited = 4 + 4 * np.sqrt(rows / width)
    return {
        "limit": upper_share(int((off >= eight).sum()), draws) / printed,
        "limit_cited": upper_share(int((off >= cited).sum()), draws) / printed,
        "share_2": (off >= 2).mean() / printed,
        "share_without_d": (off >= 8 / np.sqrt(rows)).mean() / printed,
        "median": np.median(off),
        "largest": off.max(),
        "drawn": draws,
    }


study = sized(
    "W-L13",
    function=cell,
    arguments={"draws": 2000, "seed": 0},
    grid={"rows": [2, 4, 6, 10], "ratio": [1, 4, 100]},
    tiny={"arguments": {"draws": 1000}},
    printed={"arguments": {"draws": 20_000}, "grid": {"rows": [2, 4, 6, 10, 16]}},
)
large = sized(
    "W-L13-large",
    function=cell,
    arguments={"draws": 200, "seed": 0},
    grid={"rows": [40], "ratio": [100]},
)


def check(dataset: Dataset, large: Dataset) -> Evidence:
    """The 0.999 upper limits of the probabilities over 2 exp(-d/2)."""
    draws, ten = int(dataset.drawn.max()), dataset.sel(rows=10)
    wide = ten.sel(ratio=100)
    rare = at_most(dataset.limit.max(), 1.0)
    return Evidence(
        ran=f"{draws} draws of $W W^T$ for each of {dataset.limit.size} shapes with $d = 2$ to "
        f"{int(dataset.rows.max())} and $k = d$ to $100 d$, exact law by Bartlett's "
        "decomposition",
        checks={
            r"probability (0.999 upper limit) over $2 \exp(-d/2)$, at worst": rare,
            r"the same for $4 \sqrt{k d}$ + 4d in place of $8 \sqrt{k d}$ (ours)": at_most(
                dataset.limit_cited.max(), 1.0
            ),
        },
        controls={
            r"$2 \sqrt{k d}$, where the spectrum ends for $k \gg d$, at $d = 10$": rare.control(
                ten.share_2.min()
            ),
            r"$8 \sqrt{k}$, without $d$, at $d = 40$": rare.control(large.share_without_d.max()),
        },
        findings=[
            "far from sharp: at $d = 10$, $k = 1000$ the deviation is "
            rf"{float(wide['median']):.2f} $\sigma^2 \sqrt{{k d}}$ at the median and "
            f"{float(wide.largest):.2f} at the largest of {draws} draws; the cited theorem "
            r"gives $4 \sqrt{k d}$ + 4d with the same probability, which is at most $8 "
            r"\sqrt{k d}$ for $d \leq k$",
            r"with $2 d$ rows it is eq. (88): $8 \alpha^2 \sqrt{2 k d}$ and $1 - 2 \exp(-d)$, for "
            r"$k \geq 2 d$",
        ],
        plots=[
            Plot(
                r"largest observed deviation of $W W^T$ from $\sigma^2 k I$",
                "$k / d$",
                r"deviation over $\sigma^2 \sqrt{k d}$",
                [
                    Series(f"$d = {d}$", dataset.ratio, dataset.largest.sel(rows=d))
                    for d in dataset.rows.values
                ],
                x_scale="log",
            )
        ],
    )


experiment = Experiment(
    "W-L13",
    statement=r"For a Gaussian $W$ ($d \times k$) with $d \leq k$, $|W W^T - \sigma^2 k "
    r"I|_{\mathrm{op}} \geq 8 \sigma^2 \sqrt{k d}$ has probability at most $2 \exp(-d/2)$.",
    place="appendix H, Lemma 13",
    study=(study, large),
    check=check,
    title="A wide Gaussian start is near a multiple of the identity",
    seconds=2,
)
