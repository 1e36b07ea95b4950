"""W-F6d: test error of a VGG11-like net over the scale of its start, beside its kernel machines."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arguments import one_of
from tacit.figures.registry import Parameters, Progress, figure
from tacit.figures.woodworth_f6c import told
from tacit.plotting.style import BLUE, GREEN, GREY, RED, sheet

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from tacit.claims.woodworth.conv_net_runs import Course, Scene, Trained

# `even`: steps fall as alpha^-6 above alpha = 1; W has one step for all. The preset `paper` is W's:
# 43 TFLOP an epoch, so 2000 of them take a good GPU hours for every start, and two cores weeks.
PRESETS: dict[str, Parameters] = {
    "quick": {
        "images": "cifar10",
        "otherwise": "digits",
        "train": 300,
        "test": 600,
        "slimmer": 16,
        "batch": 20,
        "classes": ["airplane", "automobile", "frog"],
        "alphas": [0.7, 1.0, 1.4, 2.0, 4.0],
        "step": 0.03,
        "even": True,
        "epochs": 150,
        "whole": False,
        "output_step": 0.03,
        "kernel_alpha": 3.0,
        "kernel_step": 0.3,
        "seed": 0,
    },
    "paper": {
        "images": "cifar10",
        "otherwise": None,
        "train": 0,
        "test": 0,
        "slimmer": 1,
        "batch": 128,
        "classes": [],
        "alphas": [0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 2.0, 4.0],
        "step": 1e-4,
        "even": False,
        "epochs": 2000,
        "whole": True,
        "output_step": 1e-3,
        "kernel_alpha": 3.0,
        "kernel_step": 1e-3,
        "seed": 0,
    },
}
CONSTRUCTED = (
    "the alphas, the kernel machine (outputs of the start subtracted, step over alpha^14); in the"
    " preset quick also fewer channels, classes and images, larger steps that fall as alpha^-6"
    " above alpha = 1, and an end at 100% training accuracy"
)
LABELS = {
    "alpha": "scale of the start, as a factor on He's uniform one",
    "record": "place of a recorded epoch in its run",
    "step": "learning rate",
    "error": "share of the test images judged wrongly at the end",
    "train_accuracy": "share of the training images judged rightly at the end",
    "grad_distance": "1 - cosine between the tangent features at the start and at the end",
    "epoch": "passes over the training images",
    "loss": "mean cross-entropy over the training images",
    "accuracy": "share of the training images judged rightly",
    "curve_error": "share of the test images judged wrongly",
}
CURVES = ("epoch", "loss", "accuracy", "curve_error")
KINDS = {"output": "the output layer alone", "kernel": "the kernel machine"}


def data(parameters: Parameters, progress: Progress | None = None) -> xarray.Dataset:
    """Ends and curves of every start, of the output layer alone and of the kernel machine."""
    from tacit.claims.woodworth.conv_net_runs import Scene, trained
    from tacit.claims.woodworth.digit_images import with_images

    parameters, instead = with_images(parameters)
    names = ("images", "train", "test", "slimmer", "batch")
    given: dict[str, Any] = {name: parameters[name] for name in names}
    scene = Scene(**given, classes=tuple(parameters["classes"]))
    planned, found = courses(parameters), []
    for done, course in enumerate(planned):
        found.append(trained(scene, course, parameters["seed"], _part(progress, done, planned)))
    dataset = labelled(parameters, planned, found)
    classes = len(parameters["classes"]) or 10
    return dataset.assign_attrs(told=about(scene, parameters), classes=classes, instead=instead)


def courses(parameters: Parameters) -> list[Course]:
    """How every start is trained; then the output layer alone, last the kernel machine."""
    given = {name: parameters[name] for name in ("epochs", "even", "whole")}
    planned = [course("all", alpha, parameters["step"], **given) for alpha in parameters["alphas"]]
    planned.append(course("output", 1.0, parameters["output_step"], **given))
    return [
        *planned,
        course("kernel", parameters["kernel_alpha"], parameters["kernel_step"], **given),
    ]


def course(
    training: str, alpha: float, step: float, epochs: int, even: bool, whole: bool
) -> Course:
    """How a net is trained: "all" layers, the "output" layer alone, or its "kernel" machine."""
    from tacit.claims.woodworth.conv_net_runs import Course, kernel_course, steady

    if one_of("W-F6d", "training", training, ("all", *KINDS)) == "kernel":
        return dataclasses.replace(kernel_course(alpha, step, epochs), curve=True)
    output = training == "output"
    rate = steady(alpha, step) if even and not output else step
    return Course(alpha, rate, epochs, output=output, whole=whole, curve=True)


def cell(
    alpha: float,
    seed: int,
    *,
    training: str,
    step: float,
    even: bool,
    whole: bool,
    epochs: int,
    images: str,
    train: int,
    test: int,
    slimmer: int,
    batch: int,
    classes: Sequence[str],
) -> dict[str, Any]:
    """One run: its ends and its curves over epochs; `rate` is the learning rate that it had."""
    from tacit.claims.woodworth.conv_net_runs import Scene, trained

    scene = Scene(images, train, test, slimmer, batch, tuple(classes))
    taken = course(training, alpha, step, epochs, even, whole)
    run = trained(scene, taken, seed)
    return {
        "error": run.error,
        "train_accuracy": run.train_accuracy,
        "grad_distance": run.turned,
        "rate": taken.step,
        "trajectory_t": run.epochs,
        "trajectory_loss": run.losses,
        "trajectory_accuracy": run.accuracies,
        "trajectory_error": run.errors,
    }


def _part(progress: Progress | None, done: int, planned: list[Course]) -> Any:
    """What a run tells of its share of the work, in hundredths of runs."""
    if progress is None:
        return None
    return lambda share, text: progress(int(100 * (done + share)), 100 * len(planned))


def labelled(parameters: Parameters, planned: list[Course], found: list[Trained]) -> xarray.Dataset:
    """The runs as a dataset: curves are padded with NaN to one length."""
    import xarray

    records = max(len(run.epochs) for run in found)

    def padded(run: Trained) -> list[Any]:
        rest = (0, records - len(run.epochs))
        parts = (run.epochs, run.losses, run.accuracies, run.errors)
        return [np.pad(np.asarray(part, float), rest, constant_values=np.nan) for part in parts]

    ends = {
        "error": [run.error for run in found],
        "train_accuracy": [run.train_accuracy for run in found],
        "grad_distance": [run.turned for run in found],
        "step": [course.step for course in planned],
    }
    curves = np.array([padded(run) for run in found])
    every: dict[str, Any] = {name: (("record",), curves[:, k]) for k, name in enumerate(CURVES)}
    every |= {name: ((), np.array(values)) for name, values in ends.items()}
    count = len(parameters["alphas"])
    variables: dict[str, Any] = {}
    for name, (dims, values) in every.items():
        variables[name] = (("alpha", *dims), values[:count])
        for place, kind in enumerate(KINDS):
            variables[f"{kind}_{name}"] = (dims, values[count + place])
    coordinates = {"alpha": parameters["alphas"], "record": np.arange(records)}
    dataset = xarray.Dataset(variables, coordinates)
    for label, variable in dataset.variables.items():
        variable.attrs = described(str(label))
    return dataset.assign_attrs(summary=summary(dataset))


def described(name: str) -> dict[str, str]:
    kind, _, rest = name.partition("_")
    text = f"{LABELS[rest]}, {KINDS[kind]}" if kind in KINDS else LABELS[name]
    return {"long_name": text, "units": "epochs" if name.endswith("epoch") else "1"}


def about(scene: Scene, parameters: Parameters) -> str:
    """What was trained, in one line."""
    steps = (
        "steps even relative to the start" if parameters["even"] else f"step {parameters['step']:g}"
    )
    return f"{scene.told}; {steps}"


def summary(dataset: xarray.Dataset) -> str:
    """One line per run: its ends, and the epochs it took."""
    lines = ["                  step   epochs   train accuracy   test error   grad distance"]
    for alpha in dataset.alpha.values:
        row = dataset.sel(alpha=alpha)
        lines.append(_line(f"alpha = {alpha:g}", row, ""))
    lines += [
        _line(name, dataset, f"{kind}_")
        for kind, name in (("output", "output layer"), ("kernel", "kernel"))
    ]
    return "\n".join(lines)


def _line(name: str, row: xarray.Dataset, prefix: str) -> str:
    step, accuracy, error, turned = (
        float(row[prefix + part]) for part in ("step", "train_accuracy", "error", "grad_distance")
    )
    epochs = float(row[f"{prefix}epoch"].max())
    return f"{name:12s} {step:9.2e} {epochs:8.0f} {accuracy:16.4f} {error:12.4f} {turned:15.2e}"


@figure(
    "W-F6d",
    title="A VGG11-like net errs more from starts above alpha = 1, and more than its kernel does",
    source="Woodworth et al. 2020, Appendix B, Figure 6 (d)",
    data=data,
    presets=PRESETS,
    constructed=CONSTRUCTED,
)
def draw(dataset: xarray.Dataset) -> Figure:
    """The final test error over alpha, beside the turn of the tangent features."""
    picture, (a, b) = sheet(dataset.title, told(dataset.attrs), widths=(6.0, 6.0), height=4.9)
    for axes, name in ((a, "error"), (b, "grad_distance")):
        _starts(axes, dataset, name)
        axes.axvline(1.0, color=GREY, linewidth=1.0, label=r"He's start, $\alpha = 1$")
        axes.set(xscale="log", xlabel=r"scale of the start $\alpha$")
        axes.set_xticks(dataset.alpha.values, [f"{alpha:g}" for alpha in dataset.alpha.values])
        axes.minorticks_off()
    a.axhline(
        float(dataset.output_error),
        color=RED,
        linestyle="--",
        linewidth=1.6,
        label=f"output layer alone ({float(dataset.output_train_accuracy):.0%} of the"
        " training images right)",
    )
    for axes, name in ((a, "kernel_error"), (b, "kernel_grad_distance")):
        axes.axhline(
            float(dataset[name]),
            color=GREEN,
            linestyle="-.",
            linewidth=1.6,
            label="kernel machine: start's outputs subtracted",
        )
    about_runs = textwrap.fill(f"(a) test error: {dataset.attrs['told']}", 75)
    a.set(ylabel="share of test images judged wrongly", ylim=(0, None), title=about_runs)
    b.set(
        ylabel="grad distance (1 - cosine)",
        yscale="log",
        title="(b) turn of the tangent features: small only\n"
        "once the start's own outputs are subtracted",
    )
    a.legend(loc="lower right")
    b.legend(loc="center right")
    return picture


def _starts(axes: Any, dataset: xarray.Dataset, name: str) -> None:
    """The curve over alpha; starts that have not learned every training image are hollow."""
    whole = dataset.train_accuracy.values == 1
    axes.plot(dataset.alpha, dataset[name], color=BLUE, label="all layers trained")
    for chosen, face in ((whole, BLUE), (~whole, "white")):
        label = None if face == BLUE else "not at 100% training accuracy"
        if chosen.any():
            axes.plot(
                dataset.alpha[chosen],
                dataset[name][chosen],
                "o",
                color=BLUE,
                markerfacecolor=face,
                label=label,
            )
