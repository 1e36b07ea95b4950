"""Figure 2: training at a held norm, and why the l2 norm alone explains no grokking."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import Array
from tacit.evidence.evidence import Check, Evidence
from tacit.papers.experiment import Experiment
from tacit.papers.notsawo2025.figures.held_norms import MIDDLE, SHARES, path, sparse, study
from tacit.plotting.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


REST = 1e-6  # fall of the training loss in the second half of the steps


def ordinary(dataset: xarray.Dataset) -> xarray.Dataset:
    """The nets as they are; the others are controls."""
    usual = (dataset.labels == "right") & (dataset.start == "Gaussian")
    usual &= (dataset.samples == dataset.samples[0]) & (dataset.noise == 0)
    return dataset.isel(run=np.flatnonzero(usual.values))


def rise(test: Array) -> float:
    """The test loss at the smallest or at the largest norm, the lower one, over the least."""
    return float(min(test[0], test[-1]) / test.min())


def shape(dataset: xarray.Dataset) -> list[Check]:
    """The L and the U of the nets."""
    test, train = dataset.test.values, dataset.train.values
    lows = test.argmin(axis=1)
    middle = np.median(test, axis=0)
    bends = np.diff(middle) * np.sign(np.arange(len(middle) - 1) - MIDDLE + 0.5)
    return [
        Check(
            "largest test loss at w_c, in units of the zero predictor's",
            test.min(axis=1).max(),
            0.05,
            kind="at most",
        ),
        Check(
            "least ratio of the test loss at |w| = w_c/4 or 5.7 w_c to that at w_c",
            min(map(rise, test)),
            20,
            kind="at least",
        ),
        Check(
            "steps of w where the median test loss does not fall before w_c or rise after it",
            float(np.sum(bends <= 0)),
        ),
        Check(
            "largest distance of w_c to the teacher's least norm, in factors of two",
            np.abs(np.log2(SHARES[lows])).max(),
            tolerance=0.3,
        ),
        Check(
            "least training loss for w <= w_c/2",
            min(row[: low - 3].min() for row, low in zip(train, lows, strict=True)),
            0.3,
            kind="at least",
        ),
        Check(
            "largest training loss for w >= w_c",
            max(row[low:].max() for row, low in zip(train, lows, strict=True)),
            0.01,
            kind="at most",
        ),
    ]


def recovered(sparse: xarray.Dataset, norm: str) -> xarray.Dataset:
    """The sparse problems at one kind of held norm."""
    kept = (sparse.norm == norm) & (sparse.nonzero == sparse.nonzero[0])
    return sparse.isel(run=np.flatnonzero(kept.values))


def last_of(path: xarray.Dataset, name: str) -> Array:
    """The last value of every path; some are shorter than others."""
    values = path[f"trajectory_{name}"].values
    return np.array([row[np.isfinite(row)][-1] for row in values.reshape(-1, values.shape[-1])])


def sparse_checks(sparse: xarray.Dataset, path: xarray.Dataset) -> list[Check]:
    """What holding either norm does in sparse recovery."""
    l2, l1 = recovered(sparse, "l2"), recovered(sparse, "l1")
    return [
        Check(
            "least |a - a*|^2/|a*|^2 at any held l2 norm",
            float(l2.error.min()),
            0.5,
            kind="at least",
        ),
        Check(
            "the same over its exact lower bound",
            float((l2.error.min("place") / l2.floor).min()),
            1.0,
            1e-9,
            "at least",
        ),
        Check(
            "largest distance of the trained endpoints to the closed form, over |a*|",
            float(l2.apart.max()),
            tolerance=1e-6,
        ),
        Check(
            "largest |a - a*|^2/|a*|^2 at the held l1 norm |a*|_1",
            float(l1.error[:, MIDDLE].max()),
            tolerance=1e-6,
        ),
        Check(
            "least |a - a*|^2/|a*|^2 at half and at twice that l1 norm",
            float(l1.error[:, [MIDDLE - 4, MIDDLE + 4]].min()),
            0.1,
            kind="at least",
        ),
        Check(
            "least l2 norm after the l1 penalty, over the best held l2 norm",
            (last_of(path, "share") / l2.floor_share.values).min(),
            1.5,
            kind="at least",
        ),
        Check(
            "largest |a - a*|^2/|a*|^2 after the l1 penalty",
            last_of(path, "error").max(),
            1e-3,
            kind="at most",
        ),
    ]


def check(dataset: xarray.Dataset, sparse: xarray.Dataset, path: xarray.Dataset) -> Evidence:
    """The L and the U of nets; what they do not survive; sparse recovery at both held norms."""
    usual = ordinary(dataset)
    (mixed,) = dataset.test.values[dataset.labels.values == "shuffled"]
    low, up, _, place, _, flat = first = shape(usual)
    bound, _, near, found, _, left, _ = second = sparse_checks(sparse, path)
    l2, l1 = recovered(sparse, "l2"), recovered(sparse, "l1")
    dense = sparse.isel(run=int(sparse.nonzero.values.argmax()))
    least = usual.test.min("place")
    keeps = Check(
        "test loss of the net at w_c rescaled to w > w_c and trained further, over that at w_c",
        float((usual.rescaled.max("place") / least).max()),
        2.0,
        kind="at most",
    )
    held = float(usual.least_norm[0] * SHARES[int(usual.test.values[0].argmin())])
    fall = max(float(one.fall.max()) for one in (l2, l1))
    train_mixed = dataset.train.values[dataset.labels.values == "shuffled"][0]
    return Evidence(
        ran=f"{usual.sizes['run']} teachers relu(<p,x>) - relu(<q,x>) of 10 inputs,"
        f" {int(usual.samples[0])} samples, a student of 40 ReLU units; {l2.sizes['run']} sparse"
        f" recoveries (n, s, N) = (100, 5, 30); projected descent from a random start at"
        f" {len(SHARES)} held norms, 1/4 to 5.7 times those of the truth; g = half the sum of"
        " squares",
        premises={"sparse recovery converged at every held norm": (fall <= REST, fall)},
        checks=[*first, keeps, *second],
        controls={
            "shuffled labels, least test loss": low.control(mixed.min()),
            "shuffled labels, rise on both sides": up.control(rise(mixed)),
            "shuffled labels, training loss at the same w_c": flat.control(train_mixed[MIDDLE]),
            "the norm of the teacher with unbalanced layers": place.control(
                math.log2(held / float(usual.unbalanced_norm[0]))
            ),
            "the ordinary start at 5.7 w_c": keeps.control(
                float((usual.test[:, -1] / least).min())
            ),
            "l1 judged as l2": bound.control(float(l1.error.min())),
            "the held l2 norm |a*|_2 judged as l1": found.control(float(l2.error[:, MIDDLE].min())),
            "25 non-zero entries for l1": found.control(float(dense.error[MIDDLE])),
            "a_hat stretched to the held norm": near.control(float(l2.stretched_apart[0])),
            "the norm after an l2^2 penalty": left.control(
                (path.ridge_share.values.ravel() / l2.floor_share.values).max()
            ),
        },
        findings=findings(dataset, usual, l2.isel(run=0), l1.isel(run=0)),
    )


def findings(
    dataset: xarray.Dataset, usual: xarray.Dataset, l2: xarray.Dataset, l1: xarray.Dataset
) -> list[str]:
    """Where the picture changes, and what the shell does contain."""
    norms = usual.least_norm.values * SHARES[usual.test.values.argmin(axis=1)]
    (quiet,) = dataset.test.values[dataset.start.values == "symmetric"]
    first, base = usual.test.values[0], int(usual.samples[0])
    lines = [
        "w_c is the least norm of the teacher's rescalings: on a grid of 2^(1/4) the test loss is"
        f" least at {', '.join(f'{w:.3g}' for w in norms)}, and that norm is"
        f" {float(usual.least_norm[0]):.3g}",
        "the rise at large norms does not come from the outputs of the start alone: at 5.7 w_c"
        f" the test loss is {first[-1]:.2g} from the ordinary start and {quiet[-1]:.2g} from a"
        " symmetric one that computes zero",
        "the truth of sparse recovery lies on the shell |a|_2 = |a*|_2, but training held there"
        f" ends at |a - a*|^2/|a*|^2 = {float(l2.error[MIDDLE]):.2f}; no l2 norm does better than"
        f" {float(l2.floor):.2f}, at {float(l2.floor_share):.2f} |a*|_2",
        "the minimum in the l1 norm is sharp: at 2^(1/4) and 2^(-1/4) times |a*|_1 the error is"
        f" {float(l1.error[MIDDLE + 1]):.2g} and {float(l1.error[MIDDLE - 1]):.2g}",
    ]
    for many in dataset.test.values[dataset.samples.values > base]:
        lines.append(
            "the rise at large norms appears with few samples only: at 4 w_c the test loss is"
            f" {first[MIDDLE + 8]:.2g} with {base} and {many[MIDDLE + 8]:.2g} with"
            f" {int(dataset.samples.max())}"
        )
    for noisy in dataset.test.values[dataset.noise.values > 0]:
        lines.append(
            f"label noise of 0.3 raises the minimum to {noisy.min():.2g} (ends {noisy[0]:.2g},"
            f" {noisy[-1]:.2g})"
        )
    return lines


def draw(dataset: xarray.Dataset, sparse: xarray.Dataset, path: xarray.Dataset) -> Figure:
    """Losses of the net over the held norm, and errors of sparse recovery over both norms."""
    caption = (
        f"{caption_of(dataset.attrs)} Left: median and single teachers relu(<p,x>) -"
        " relu(<q,x>), losses over those of the zero predictor. Right: the exact curve is that"
        " of ridge regression and, beyond the norm of least squares, of the part of the start"
        " that the data do not determine."
    )
    picture, (left, right) = sheet(dataset.title, caption, widths=(5.4, 5.8), height=5.0)
    (mixed,) = dataset.test.values[dataset.labels.values == "shuffled"]
    _draw_net(left, ordinary(dataset), mixed)
    _draw_sparse(right, sparse, path)
    for axes in (left, right):
        axes.set(xscale="log", xlim=(0.23, 6.2), ylim=(-0.04, 1.25))
        axes.set_xticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
        axes.minorticks_off()
    return picture


def _draw_net(axes: Axes, nets: xarray.Dataset, mixed: Array) -> None:
    for name, colour in (("train", BLUE), ("test", RED)):
        axes.plot(SHARES, nets[name].T, color=colour, linewidth=0.6, alpha=0.5)
    axes.plot(SHARES, nets.test.median("run"), color=RED, linewidth=3, label="test loss: U")
    axes.plot(SHARES, nets.train.median("run"), "--", color=BLUE, label="training loss: L")
    axes.plot(SHARES, mixed, ":", color=GREY, label="test loss, shuffled labels")
    text = "test loss, net of $w_c$ rescaled\nto this norm and trained further"
    moved = nets.rescaled.median("run")
    axes.plot(SHARES, moved, "o", color=GREEN, ms=5, markerfacecolor="none", label=text)
    text = "$w_c$ predicted: teacher's least norm"
    axes.axvline(1.0, color=BLACK, linestyle=":", linewidth=1.2, zorder=1, label=text)
    axes.set_title(r"ReLU net, $\|\theta\|_2$ held: a zone at $w_c$", fontweight="bold")
    axes.set(
        xlabel=r"held norm $\|\theta\|_2$ / teacher's", ylabel="loss / loss of the zero predictor"
    )
    axes.legend(loc="upper right", fontsize=8)


def _draw_sparse(axes: Axes, sparse: xarray.Dataset, path: xarray.Dataset) -> None:
    l2, l1 = (recovered(sparse, norm).isel(run=0) for norm in ("l2", "l1"))
    one = path.isel(seed=0, beta=0)
    axes.plot(SHARES, l2.error, color=ORANGE, linewidth=3, label=r"$\|a\|_2$ held")
    axes.plot(SHARES, l2.exact_error, "x", color=BLACK, markersize=5, label="exact")
    axes.plot(SHARES, l1.error, "--", color=PURPLE, linewidth=3, label=r"$\|a\|_1$ held")
    floor = float(l2.floor)
    text = f"no $\\ell_2$ norm is below {floor:.2f}"
    axes.axhline(floor, color=GREY, linestyle="-.", linewidth=1.2, label=text)
    text = "training with an\n" r"$\ell_1$ penalty, at its $\|a\|_2$"
    axes.plot(one.trajectory_share, one.trajectory_error, color=GREEN, label=text)
    end = last_of(path, "share")[0], last_of(path, "error")[0]
    axes.plot(*end, "*", color=GREEN, markersize=13, zorder=5)
    axes.set_title(
        r"sparse recovery: held $\ell_2$ never generalizes, held $\ell_1$ does", fontweight="bold"
    )
    axes.set(xlabel="held norm / same norm of the truth", ylabel=r"$\|a - a^*\|^2 / \|a^*\|^2$")
    axes.legend(loc="lower right")


experiment = Experiment(
    "N-F2",
    statement="Trained at a held l2 norm w, a net has an L-shaped training loss and a U-shaped"
    " test loss with its least value at some w_c; but rescaling gives the same function"
    " at every larger norm, and training there does not change it; in sparse recovery,"
    " training at no held l2 norm generalizes, while training at the l1 norm of the"
    " truth does.",
    place="Goldilocks zone & LU mechanism, Figure 2",
    study=(study, sparse, path),
    check=check,
    draw=draw,
    title="A net has a Goldilocks zone of norms; sparse recovery has none in ℓ₂, only in ℓ₁",
    ours="all but (n, s, N) = (100, 5, 30), which the source uses elsewhere: teacher, student,"
    " starts, held norms and seeds",
    seconds=8,
)
