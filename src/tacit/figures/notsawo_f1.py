"""N-F1: modular addition with the MLP of N, and how much of its plateau the twins explain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.claims.notsawo.addition import landmarks
from tacit.figures.cells import Values, cell_of, values_of, without
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, BLUE, CYCLE, GREEN, GREY, ORANGE, RED, caption_of
from tacit.plotting.transition import LEGEND, mark, rows

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# printed_t1 and printed_t2 are what the source reads off its own figure
PRESETS: dict[str, Parameters] = {
    "quick": {
        "modulus": 59,
        "fraction": 0.5,
        "seeds": [0],
        "embedding": 64,
        "width": 64,
        "variant": "source",
        "step": 2e-3,
        "steps": 8000,
        "penalty": "l2^2",
        "beta": 1e-5,
        "batch": None,
        "points_per_decade": 40,
        "level": 0.99,
        "printed_t1": None,
        "printed_t2": None,
    },
    "paper": {
        "modulus": 97,
        "fraction": 0.4,
        "seeds": [0, 1, 2],
        "embedding": 64,
        "width": 64,
        "variant": "source",
        "step": 1e-3,
        "steps": 20_000,
        "penalty": "l2^2",
        "beta": 1e-6,
        "batch": None,
        "points_per_decade": 100,
        "level": 0.99,
        "printed_t1": 540,
        "printed_t2": 9150,
    },
}
HEIGHTS = (2.6, 1.3, 1.3)  # accuracy, loss, norms
SUMMARY = {
    "t1": "first recorded step with a training accuracy of 1",
    "t2": "first recorded step with a validation accuracy of at least the level",
    "plateau": "validation accuracy halfway, on the logarithmic axis, from t1 to t2",
    "novel_plateau": "accuracy without twins at the same step",
    "twins": "share of validation pairs whose mirror is in training",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """The runs of all seeds over (seed, record), with t1, t2, the plateau and the twin share."""
    import xarray

    seeds, runs = parameters["seeds"], []
    for done, seed in enumerate(seeds, start=1):
        runs.append(_run(seed, parameters))
        if progress:
            progress(done, len(seeds))
    found = xarray.concat(runs, dim="seed")
    seed = ("seed", np.array(seeds), _about("seed of split and start"))
    attributes = {f"printed_{t}": parameters[f"printed_{t}"] for t in ("t1", "t2")}
    printed = {name: value for name, value in attributes.items() if value is not None}
    found = found.assign_coords(seed=seed).assign_attrs(level=parameters["level"], **printed)
    return found.assign_attrs(summary="\n".join(_told(found)))


@cell_of("seed", without(PRESETS["quick"], "seeds", "printed_t1", "printed_t2"), batch=None)
def cell(parameters: Parameters) -> Values:
    """The curves of one run, t1, t2, the plateau and the twin share."""
    return values_of(_run(parameters["seed"], parameters), "record")


def _run(seed: int, parameters: Parameters) -> xarray.Dataset:
    """One run and its summary."""
    from tacit.claims.notsawo.token_runs import weighted
    from tacit.models.token_mlp import TokenMLP
    from tacit.problems.operations import modular_arithmetic
    from tacit.records import NumericalError
    from tacit.training.descent.methods import Adam
    from tacit.training.record import LogSpaced
    from tacit.training.stop import Steps
    from tacit.training.train import train

    problem = modular_arithmetic(
        parameters["modulus"], operation="+", fraction=parameters["fraction"], seed=seed
    )
    sizes = {name: parameters[name] for name in ("embedding", "width", "variant")}
    path = train(
        TokenMLP(**sizes, seed=seed),
        problem,
        Adam(parameters["step"]),
        penalty=weighted(parameters["penalty"], parameters["beta"]),
        stop=Steps(parameters["steps"]),
        record=LogSpaced(parameters["points_per_decade"]),
        batch=parameters["batch"],
        seed=seed,
    )
    if not path.outcome.ok:
        raise NumericalError("N-F1", path.outcome)
    run = path.dataset.drop_attrs(deep=False).rename(time="record")
    times = landmarks(run, parameters["level"])
    times["twins"] = problem.twins.sum() / problem.test.sum()
    return run.assign({name: ((), times[name], _about(text)) for name, text in SUMMARY.items()})


def _about(text: str) -> dict[str, str]:
    return {"units": "1", "long_name": text}


@figure(
    "N-F1",
    title="Modular addition: the plateau of the validation accuracy is made of twins",
    source="Notsawo et al. 2025, figure 1, MLP with an l2 penalty",
    data=data,
    presets=PRESETS,
    constructed="the start, PyTorch's (the source prints none), full batches, seeds, sizes 64 and "
    "64; in preset quick also p, training share, learning rate and beta",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Accuracies, losses and norms over the number of steps, with t1, t2 and the twin share."""
    picture, axes = rows(dataset.title, caption_of(dataset.attrs), HEIGHTS)
    for number in range(dataset.sizes["seed"]):
        run = dataset.isel(seed=number)
        _draw_run(axes, run.isel(record=np.flatnonzero(run.step.values > 0)), number == 0)
    _marks(axes, dataset)
    _furnish(axes, dataset)
    picture.align_ylabels(axes)
    return picture


def _draw_run(axes: list[Axes], run: xarray.Dataset, first: bool) -> None:
    """The curves of one seed; those after the first are thin and have no names."""
    accuracy, losses, norms = axes
    width, faint = (1.0, 1.0) if first else (0.4, 0.6)

    def curve(panel: Axes, name: str, text: str, colour: str, line: str, wide: float) -> None:
        values = run[name] / run[name][0] if name.startswith("norm") else run[name]
        panel.plot(
            run.step,
            values,
            line,
            color=colour,
            linewidth=width * wide,
            alpha=faint,
            label=text if first else None,
        )

    curve(accuracy, "train_accuracy", "training", BLUE, "--", 1.6)
    curve(accuracy, "test_accuracy", "validation", RED, "-", 3)
    curve(accuracy, "novel_accuracy", "validation without twins", ORANGE, "-", 1.8)
    curve(losses, "loss", "training", BLUE, "--", 1.6)
    curve(losses, "test_loss", "validation", RED, "-", 2)
    for name, text, colour in (
        ("l1", r"$\ell_1$", CYCLE[3]),
        ("l2", r"$\ell_2$", GREEN),
        ("nuclear", r"nuclear", BLACK),
    ):
        curve(norms, f"norm_{name}", text, colour, "-", 1.6)


def _marks(axes: list[Axes], dataset: xarray.Dataset) -> None:
    """t1 and t2 of the first seed, those the source prints, and the share of the twins."""
    run = dataset.isel(seed=0)
    for name, colour in (("t1", BLUE), ("t2", RED)):
        if math.isfinite(float(run[name])):
            text = f"${name[0]}_{name[1]}$ = {float(run[name]):.0f}"
            mark(axes, float(run[name]), text, colour, "-.")
        if f"printed_{name}" in dataset.attrs:
            value = float(dataset.attrs[f"printed_{name}"])
            mark(axes, value, f"source: ${name[0]}_{name[1]}$ = {value:.0f}", GREY, ":")
    share = float(run.twins)
    axes[0].axhline(
        share,
        color=BLACK,
        linewidth=1,
        linestyle=(0, (5, 3)),
        zorder=1,
        label=f"share of twins: {share:.3f}",
    )


def _furnish(axes: list[Axes], dataset: xarray.Dataset) -> None:
    accuracy, losses, norms = axes
    steps = dataset.step.values
    accuracy.set(ylabel="accuracy", ylim=(-0.03, 1.05), xscale="log")
    accuracy.set_xlim(10, steps.max())
    accuracy.set_title("\n".join(_lines(dataset)), fontsize=9)
    losses.set(ylabel="cross-entropy", yscale="log")
    norms.set(ylabel="norm / norm\nafter one step", xlabel="steps of Adam")
    for panel in axes:
        panel.legend(**LEGEND)


def _lines(dataset: xarray.Dataset) -> list[str]:
    """What was measured, in a line for every seed."""
    lines = []
    for number, seed in enumerate(dataset.seed.values):
        run = dataset.isel(seed=number)
        t1, t2, plateau, novel = (float(run[name]) for name in list(SUMMARY)[:4])
        if math.isnan(t2):
            lines.append(f"seed {seed}: training solved at {t1:.0f}, validation not")
            continue
        lines.append(
            f"seed {seed}: $t_1$ = {t1:.0f}, $t_2$ = {t2:.0f}; between them validation "
            f"{plateau:.3f}, without twins {novel:.3f}; twins {float(run.twins):.3f}"
        )
    return lines


def _told(dataset: xarray.Dataset) -> list[str]:
    """The same without mathematics, and what the source reads off its own figure."""
    lines = [line.replace("$", "").replace("_", "") for line in _lines(dataset)]
    printed = [
        f"{t} = {dataset.attrs[f'printed_{t}']}"
        for t in ("t1", "t2")
        if f"printed_{t}" in dataset.attrs
    ]
    return [*lines, f"source: {', '.join(printed)}"] if printed else lines
