"""W-F2: q(z), what the flow minimises, beside r(z), the distance from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.arguments import Array, one_of
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLUE, GREY, RED, caption_of, end_label, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

NAMES = {"q": "implicit regularizer q(z)", "r": "squared distance from the start r(z)"}
PRESET = {"z_max": 10.0, "points": 401, "log10_far": [-2.0, 6.0]}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """q and r on a symmetric range near zero, and q/|z|, r/|z| far out."""
    import xarray

    low, high = parameters["log10_far"]
    z = np.linspace(-parameters["z_max"], parameters["z_max"], parameters["points"])
    far = np.logspace(low, high, parameters["points"])
    dataset = xarray.Dataset(coords={"z": z, "far": far})
    for coordinate in ("z", "far"):
        name = "predictor in units of the initial scale, z = beta/alpha^2"
        dataset[coordinate].attrs.update(long_name=name, units="1")
    for letter, name in NAMES.items():
        dataset[letter] = ("z", terms(letter, z), {"long_name": name, "units": "1"})
        ratio = {"long_name": f"{name} divided by |z|", "units": "1"}
        dataset[f"{letter}_ratio"] = ("far", terms(letter, far) / far, ratio)
    return dataset


def terms(letter: str, z: Array) -> Array:
    """q(z) or r(z) at alpha = 1."""
    from tacit.regularizers.explicit import R
    from tacit.regularizers.q import Q

    letter = one_of("W-F2", "regularizer", letter, NAMES)
    return (Q(depth=2, alpha=1.0) if letter == "q" else R(alpha=1.0)).terms(z)


def cell(regularizer: str, z: float) -> dict[str, float]:
    """The regularizer "q" or "r" at z, and the same over |z|, which tends to 0 at z = 0."""
    value = float(terms(regularizer, np.array([z]))[0])
    return {"value": value, "ratio": value / abs(z) if z else 0.0}


@figure(
    "W-F2",
    title="The flow does not minimise the distance from its start: r becomes linear, q never does",
    source="Woodworth et al. 2020, section 4, Figure 2",
    data=data,
    presets={"quick": PRESET, "paper": PRESET},
    constructed="the ranges of z, and panel (b)",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Both functions, and their ratio to |z|."""
    caption = caption_of(dataset.attrs)
    picture, (near, far) = sheet(dataset.title, caption, widths=(4.9, 4.9), height=4.2)
    names = {"q": "$q(z)$, implicit", "r": "$r(z)$, explicit"}
    for name, colour in (("q", BLUE), ("r", RED)):
        near.plot(dataset.z, dataset[name], color=colour, label=names[name])
        far.plot(dataset.far, dataset[f"{name}_ratio"], color=colour)
    near.legend(loc="upper center")
    near.set_title("(a) alike, but not the same function")
    near.set(xlabel=r"$z = \beta_i/\alpha^2$", ylabel="regularizer")
    far.set_title(r"(b) only $r$ turns into $|z|$, the $\ell_1$ norm")
    far.set(xscale="log", ylim=(0, None))
    far.set(xlabel=r"$|z| = |\beta_i|/\alpha^2$", ylabel="regularizer / $|z|$")
    far.axhline(1.0, color=GREY, linewidth=1, linestyle="--")
    middle = int(0.62 * dataset.sizes["far"])
    x, y = float(dataset.far[middle]), float(dataset.q_ratio[middle])
    end_label(far, x, y, r"$q/|z| \sim \log|z|$", BLUE, ha="right", xytext=(-8, 4))
    end_label(far, x, 1.0, r"$r/|z| \to 1$", RED, va="bottom", xytext=(0, 5))
    return picture
