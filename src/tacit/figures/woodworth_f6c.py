"""W-F6 (c): test error of a wide ReLU net on MNIST over the scale of its start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import Array, one_of
from tacit.figures.registry import Parameters, Progress, figure
from tacit.plotting.style import BLACK, BLUE, GREY, RED, caption_of, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tacit.claims.woodworth.wide_net_runs import Course, Trained

PRESETS: dict[str, Parameters] = {
    "quick": {
        "images": "mnist",
        "otherwise": "digits",
        "train": 2048,
        "width": 300,
        "batch": 64,
        "seed": 0,
        "epochs": 25,
        "alphas": [0.3, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0],
        "steps": [0.5, 0.1],
        "kernel_step": 0.5,
        "output_step": 0.5,
        "output_epochs": 300,
    },
    "paper": {  # train = 0: all of MNIST; about 45 runs of some 60 epochs, 10 s each on two cores
        "images": "mnist",
        "otherwise": None,
        "train": 0,
        "width": 5000,
        "batch": 256,
        "seed": 0,
        "epochs": 150,
        "alphas": [0.1, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0],
        "steps": [0.5, 0.1, 0.05, 0.01],
        "kernel_step": 0.5,
        "output_step": 0.1,
        "output_epochs": 150,
    },
}
TRAININGS = ("printed", "kernel", "output")
PER_RUN = 1000  # parts of a run that progress tells apart
LABELS = {
    "alpha": "scale of the start",
    "step": "learning rate",
    "error": "test error as printed: all weights trained",
    "train_accuracy": "training accuracy as printed",
    "turned": "grad distance as printed: 1 - cosine of the tangent features, start to end",
    "epochs": "number of passes over the training images",
    "chosen": "learning rate of the least test error among those that fit every training image",
    "kernel_error": "test error with the outputs of the start subtracted, step over alpha^2",
    "kernel_accuracy": "training accuracy with the outputs of the start subtracted",
    "kernel_turned": "grad distance with the outputs of the start subtracted",
    "output_error": "test error if the output layer alone is trained",
    "output_accuracy": "training accuracy if the output layer alone is trained",
}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Test errors, training accuracies and grad distances of every start and learning rate."""
    from tacit.claims.woodworth.digit_images import with_images
    from tacit.claims.woodworth.wide_net_runs import Trained

    parameters, instead = with_images(parameters)
    alphas, steps = parameters["alphas"], parameters["steps"]
    found = np.array(list(_runs(courses(parameters), parameters, progress)), dtype=float)
    printed = found[: len(alphas) * len(steps)].reshape(len(alphas), len(steps), -1)
    kernel, output = found[len(alphas) * len(steps) : -1], found[-1]
    column = Trained._fields.index
    both = ("alpha", "step")
    variables: dict[str, Any] = {
        name: (both, printed[..., column(name)])
        for name in ("error", "train_accuracy", "turned", "epochs")
    }
    for name, field in (("error", "error"), ("accuracy", "train_accuracy"), ("turned", "turned")):
        variables[f"kernel_{name}"] = ("alpha", kernel[:, column(field)])
    variables["output_error"] = ((), output[column("error")])
    variables["output_accuracy"] = ((), output[column("train_accuracy")])
    return _labelled(variables, np.array(alphas), np.array(steps)).assign_attrs(instead=instead)


def courses(parameters: Parameters) -> list[Course]:
    """As printed by alpha and step, then without the start's outputs by alpha, then the proxy."""
    alphas, epochs, step = (parameters[name] for name in ("alphas", "epochs", "kernel_step"))
    found = [course("printed", a, s, epochs) for a in alphas for s in parameters["steps"]]
    found += [course("kernel", alpha, step, epochs) for alpha in alphas]
    last = course("output", 1.0, parameters["output_step"], parameters["output_epochs"])
    return [*found, last]


def course(training: str, alpha: float, step: float, epochs: int) -> Course:
    """How a net is trained: as "printed", as a "kernel" machine, or the "output" layer alone."""
    from tacit.claims.woodworth.wide_net_runs import Course, kernel_course

    if one_of("W-F6c", "training", training, TRAININGS) == "kernel":
        # below alpha = 1 the weights grow, and a step over alpha^2 would soon be too long
        return kernel_course(alpha, step * min(1.0, alpha**2), epochs)
    return Course(alpha, step, output=training == "output", epochs=epochs)


def cell(
    alpha: float,
    step: float,
    seed: int,
    *,
    training: str,
    images: str,
    train: int,
    width: int,
    batch: int,
    epochs: int,
) -> dict[str, float]:
    """What one run gave; `epochs` are the most it may take, and `taken` those that it took."""
    from tacit.claims.woodworth import wide_net_runs

    scene = wide_net_runs.Scene(images, train, width, batch)
    run = wide_net_runs.trained(scene, course(training, alpha, step, epochs), seed)
    found: dict[str, float] = run._asdict()
    return {"taken" if name == "epochs" else name: value for name, value in found.items()}


def _runs(
    courses: list[Course], parameters: Parameters, progress: Progress | None
) -> Iterable[Trained]:
    from tacit.claims.woodworth import wide_net_runs

    names = ("images", "train", "width", "batch")
    scene = wide_net_runs.Scene(*(parameters[name] for name in names))
    for done, course in enumerate(courses):
        tell = _teller(done, len(courses), progress) if progress else None
        yield wide_net_runs.trained(scene, course, parameters["seed"], tell)
        if progress:
            progress((done + 1) * PER_RUN, len(courses) * PER_RUN)


def _teller(done: int, runs: int, progress: Progress) -> Callable[[float, str], None]:
    """What a run tells of its own share, as a share of all runs."""
    return lambda share, _: progress(int((done + share) * PER_RUN), runs * PER_RUN)


def _labelled(variables: dict[str, Any], alphas: Array, steps: Array) -> xarray.Dataset:
    import xarray

    dataset = xarray.Dataset(variables, {"alpha": alphas, "step": steps})
    dataset["chosen"] = (
        "alpha",
        chosen(dataset.error.values, dataset.train_accuracy.values, steps),
    )
    for name, text in LABELS.items():
        dataset[name].attrs = {"long_name": text, "units": "epochs" if name == "epochs" else "1"}
    return dataset.assign_attrs(summary=summary(dataset))


def chosen(errors: Array, accuracies: Array, steps: Array) -> Array:
    """Per row the step of the least error among those with accuracy one; NaN if there is none."""
    fitted = np.where(accuracies == 1, errors, np.inf)
    return np.where(np.isfinite(fitted).any(axis=1), steps[fitted.argmin(axis=1)], np.nan)


def at_chosen(dataset: xarray.Dataset, name: str) -> Array:
    """A measure as printed at the chosen step of every alpha; NaN where none was chosen."""
    place = np.abs(dataset.step.values - dataset.chosen.values[:, None])
    columns = np.where(np.isnan(place), np.inf, place).argmin(axis=1)
    values = dataset[name].values[np.arange(dataset.sizes["alpha"]), columns]
    return np.where(np.isnan(dataset.chosen.values), np.nan, values)


def summary(dataset: xarray.Dataset) -> str:
    """One line per start, and W's printed numbers."""
    lines = [
        "           as printed, best step            outputs of the start subtracted",
        "  alpha    step  test error  grad distance   test error  grad distance",
    ]
    columns = [
        dataset.alpha.values,
        dataset.chosen.values,
        at_chosen(dataset, "error"),
        at_chosen(dataset, "turned"),
        dataset.kernel_error.values,
        dataset.kernel_turned.values,
    ]
    for alpha, step, error, turned, kernel, still in zip(*columns, strict=True):
        lines.append(
            f"{alpha:7.3g} {step:7.3g}  {error:10.2%}  {turned:13.2g}   {kernel:10.2%}  "
            f"{still:13.2g}"
        )
    proxy, fits = float(dataset.output_error), float(dataset.output_accuracy)
    lines.append(f"output layer alone: {proxy:.2%} (training accuracy {fits:.2%})")
    lines.append(
        "W prints, for all of MNIST and 5000 units: 1.4% at alpha <= 2, 2.4% at alpha >= "
        "50, 2.7% with the output layer alone"
    )
    missing = [f"{alpha:g}" for alpha, step in zip(*columns[:2], strict=True) if np.isnan(step)]
    if missing:
        lines.append(f"no step fits every training image at alpha = {', '.join(missing)}")
    return "\n".join(lines)


def told(attributes: dict[str, Any]) -> str:
    """The caption, which says first if other images stand in for those of the source."""
    return f"{attributes.get('instead', '')} {caption_of(attributes)}".strip()


@figure(
    "W-F6c",
    title="Large starts err more on digits, and more than their kernel machines: as printed they "
    "never enter the kernel regime",
    source="Woodworth et al. 2020, Appendix B, Figure 6 (c)",
    data=data,
    presets=PRESETS,
    constructed="the alphas and learning rates; in preset quick 2048 images and 300 units; the net "
    "with the outputs of its start subtracted and its step divided by alpha^2, which is not in the "
    "source; preset paper takes hours",
)
def draw(dataset: xarray.Dataset) -> Figure:
    """Test error and grad distance over alpha: as printed, and without the start's outputs."""
    picture, (a, b) = sheet(dataset.title, told(dataset.attrs), widths=(6.0, 6.0), height=4.9)
    for axes, name in ((a, "error"), (b, "turned")):
        factor = 100 if name == "error" else 1
        _curve(axes, dataset, factor * at_chosen(dataset, name), "as printed", RED, "s")
        _curve(
            axes,
            dataset,
            factor * dataset[f"kernel_{name}"].values,
            r"outputs of the start subtracted, step$/\alpha^2$",
            BLUE,
            "o",
        )
        axes.set(xscale="log", xlabel=r"scale of the start $\alpha$")
        axes.axvline(1.0, color=GREY, linewidth=1.0, label=r"He's start, $\alpha = 1$")
    proxy = 100 * float(dataset.output_error)
    a.axhline(proxy, color=BLACK, linestyle="--", linewidth=1.4, label="output layer alone")
    a.set(
        ylabel="test error (% of the test images)",
        title="(a) test error: large starts lose more than their kernel machine",
    )
    a.set_ylim(bottom=0)
    b.set(
        yscale="log",
        ylabel="grad distance (1 - cosine)",
        title="(b) tangent features: as printed no start keeps them",
    )
    a.legend(loc="lower right", frameon=True, edgecolor="none")
    b.legend(loc="lower left", frameon=True, edgecolor="none")
    return picture


def _curve(
    axes: Axes, dataset: xarray.Dataset, values: Array, label: str, colour: str, marker: str
) -> None:
    axes.plot(dataset.alpha, values, color=colour, marker=marker, markersize=4, label=label)
