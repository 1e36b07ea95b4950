"""W-F6c: a wide ReLU net on digits errs more from large starts, but is no kernel machine there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.claims.woodworth.kernel_regime import INSIDE, OUTSIDE
from tacit.claims.woodworth.wide_net_runs import (
    EARLY,
    Course,
    Scene,
    Trained,
    kernel_course,
    trained,
)
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.studies.sizes import Size

SMALL, LARGE, LARGER = 1.0, 50.0, 200.0  # alpha
SCENES = {"quick": Scene("digits", 512, 300, 64), "full": Scene("mnist", 0, 5000, 256)}
SEEDS = {"quick": 5, "full": 1}
PAIRS = {"quick": 36, "full": 1}  # seeds of the small start and the output layer, which lie close
FAST = 0.5  # the step at alpha = 1, and of the kernel machine in its units
STEPS = {"quick": (0.5, 0.1, 0.05), "full": (0.5, 0.1)}  # searched at the large start
LAST_LAYER = {"quick": 0.5, "full": 0.1}  # step where the output layer alone is trained
EPOCHS = {"quick": 300, "full": 80}
PRINTED = {"small": 0.014, "large": 0.024, "output": 0.027}  # W B.2
NAMES = {"digits": "512 of the 8x8 digits", "mnist": "all of MNIST"}
CLEAR = 3.0  # standard errors from which on a difference of test errors counts


@dataclasses.dataclass(frozen=True, eq=False)
class Runs:
    """Runs by name, one per seed; `step` is the best of the steps of the large start.

    small, large: as printed. kernel: large, its outputs subtracted, tiny steps. output: the last
    layer alone. steps: as large, its outputs subtracted. larger, larger kernel: two epochs only.
    """

    scene: Scene
    images: int  # of the test
    step: float
    named: Mapping[str, tuple[Trained, ...]]

    def field(self, name: str, field: str) -> Array:
        return np.array([getattr(run, field) for run in self.named[name]])

    def error(self, name: str) -> float:
        return float(self.field(name, "error").mean())

    def spread(self, *names: str) -> float:
        """Standard error of the mean error of one name, or of the difference of two."""
        errors = [self.field(name, "error") for name in names]
        paired = min(map(len, errors))  # seeds that all of them have
        errors = [found[:paired] for found in errors]
        if paired > 1:
            found = errors[0] - errors[1] if len(errors) > 1 else errors[0]
            return float(found.std(ddof=1) / len(found) ** 0.5)
        # one run: as if every test image were drawn anew
        return float(sum(e[0] * (1 - e[0]) / self.images for e in errors) ** 0.5)

    def lead(self, name: str, other: str) -> float:
        """How much less `name` errs than `other`, in standard errors; NaN where they have none."""
        ours, theirs = (self.field(one, "error") for one in (name, other))
        paired, spread = min(len(ours), len(theirs)), self.spread(name, other)
        gap = float(theirs[:paired].mean() - ours[:paired].mean())
        return gap / spread if spread else float("nan")

    def share(self, name: str) -> float:
        """The part of the gap between small and large starts at which a mean error lies."""
        gap = self.error("large") - self.error("small")
        return (self.error(name) - self.error("small")) / gap

    def exponent(self, name: str, larger: str) -> float:
        """Of the relative move of the weights in alpha, after the first epochs."""
        ratio = self.field(larger, "early").mean() / self.field(name, "early").mean()
        return float(np.log(ratio) / np.log(LARGER / LARGE))


def courses(size: Size, step: float) -> dict[str, Course]:
    """Everything but the large start as printed, which takes its best step."""
    epochs = EPOCHS[size]
    found = {
        "small": Course(SMALL, FAST, epochs=epochs),
        "kernel": kernel_course(LARGE, FAST, epochs),
        "output": Course(SMALL, LAST_LAYER[size], output=True, epochs=epochs),
        "larger": Course(LARGER, step, epochs=EARLY),
        "larger kernel": kernel_course(LARGER, FAST, EARLY),
    }
    if size == "quick":  # what the steps do alone
        found["steps"] = Course(LARGE, step, unbiased=True, epochs=epochs)
    return found


def ran(size: Size) -> Runs:
    scene, seeds = SCENES[size], range(SEEDS[size])
    tried = {
        step: tuple(trained(scene, Course(LARGE, step, epochs=EPOCHS[size]), s) for s in seeds)
        for step in STEPS[size]
    }
    step = best(tried)
    many = {"small": range(PAIRS[size]), "output": range(PAIRS[size])}
    named = {
        name: tuple(trained(scene, course, s) for s in many.get(name, seeds))
        for name, course in courses(size, step).items()
    }
    return Runs(scene, len(scene.load(0).test_labels), step, {"large": tried[step], **named})


def best(tried: Mapping[float, tuple[Trained, ...]]) -> float:
    """The step of the least mean test error among those that fit everything, if there is one."""
    whole = [step for step, runs in tried.items() if all(r.train_accuracy == 1 for r in runs)]
    return min(whole or tried, key=lambda step: np.mean([r.error for r in tried[step]]))


@claim(
    "W-F6c",
    statement="a depth-2 ReLU net of 5000 units on MNIST, trained by SGD to 100% training accuracy,"
    " errs on 1.4% of the test images for alpha <= 2 and on 2.4% for alpha >= 50, where it is in"
    " the kernel regime and no better than a linear model on random features (2.7%)",
    place="appendix B.2, Figure 6 (c)",
    seconds=40,
)
def wide_nets(size: Size) -> Evidence:
    return evidence(ran(size))


def evidence(runs: Runs) -> Evidence:
    """What the runs say of the statement as printed and as corrected."""
    found = checks(runs)
    return Evidence(
        ran=f"{runs.scene.width} units on {NAMES[runs.scene.images]}, tested on {runs.images};"
        f" starts and draws: {len(runs.named['large'])}, of the small start and the output layer"
        f" {len(runs.named['small'])}; batch {runs.scene.batch}, trained until"
        f" all training images are right; steps {FAST:g} at alpha = {SMALL:g} and"
        f" {runs.step:g} (the best of those tried) at {LARGE:g}; kernel machine: alpha = {LARGE:g},"
        f" outputs of the start subtracted, step {FAST:g}/alpha^2",
        checks=[found[name] for name in ("worse", "proxy", "level", "still", "falls")],
        corrected=[
            found[name] for name in ("worse", "proxy", "rich", "machine", "less", "free", "law")
        ],
        correction="large starts do err more, but as printed they are not in the kernel regime:"
        " under cross-entropy a net that starts with outputs of size alpha^2 is a perceptron on"
        " f(w/alpha), whose course and whose turned features no longer depend on alpha, and it"
        " keeps its random outputs where there are no data. The kernel machine of the same start,"
        " outputs subtracted and steps divided by alpha^2, errs less",
        counterexample={
            f"test error, {name}": runs.error(name)
            for name in ("small", "kernel", "output", "large")
        },
        premises=premises(runs),
        controls=controls(runs, found),
        findings=findings(runs),
        plots=[plot(runs)],
    )


def checks(runs: Runs) -> dict[str, Check]:
    """Every check, of the printed statement and of the corrected one."""
    moves = runs.exponent("large", "larger")
    return {
        "worse": Check(
            "test error of the small start over that of the large one, printed 0.58",
            runs.error("small") / runs.error("large"),
            0.8,
            kind="at most",
        ),
        "proxy": Check(
            "how much less the small start errs than the output layer alone, in standard"
            " errors of the difference",
            runs.lead("small", "output"),
            CLEAR,
            kind="at least",
        ),
        "level": Check(
            "test error of the large start over that of the output layer alone, printed 0.89",
            runs.error("large") / runs.error("output"),
            0.8,
            kind="at least",
        ),
        "still": Check(
            "largest grad distance of the large start: it stays in the kernel regime",
            runs.field("large", "turned").max(),
            tolerance=INSIDE,
        ),
        "falls": Check(
            f"exponent in alpha of its relative move after {EARLY} epochs; -2 in the kernel regime",
            moves,
            -1.0,
            kind="at most",
        ),
        "rich": Check(
            "least grad distance of the small start, which leaves the kernel regime",
            runs.field("small", "turned").min(),
            OUTSIDE,
            kind="at least",
        ),
        "machine": Check(
            "largest grad distance of the kernel machine",
            runs.field("kernel", "turned").max(),
            tolerance=INSIDE,
        ),
        "less": Check(
            "how much less the kernel machine errs than the large start, in standard"
            " errors of the difference",
            runs.lead("kernel", "large"),
            CLEAR,
            kind="at least",
        ),
        "free": Check(
            f"exponent in alpha of the large start's relative move after {EARLY} epochs",
            moves,
            0.0,
            tolerance=0.1,
        ),
        "law": Check(
            "the same of the kernel machine",
            runs.exponent("kernel", "larger kernel"),
            -2.0,
            tolerance=0.1,
        ),
    }


def controls(runs: Runs, found: Mapping[str, Check]) -> dict[str, Check]:
    """What wrong theorems give, trained like the right one or as they predict it."""
    return {
        "what a large start loses is the kernel regime": found["worse"].control(
            runs.error("small") / runs.error("kernel")
        ),
        "random features do as well as the kernel machine": found["proxy"].control(
            runs.lead("output", "kernel")
        ),
        "the small start for the kernel machine": found["machine"].control(
            runs.field("small", "turned").min()
        ),
        "the kernel machine for the small start": found["rich"].control(
            runs.field("kernel", "turned").max()
        ),
        "the large start moves as its kernel machine does": found["free"].control(
            runs.exponent("kernel", "larger kernel")
        ),
        "the kernel machine moves as the large start does": found["law"].control(
            runs.exponent("large", "larger")
        ),
    }


def premises(runs: Runs) -> dict[str, tuple[bool, float]]:
    least = {name: float(runs.field(name, "train_accuracy").min()) for name in runs.named}
    as_printed = min(least["small"], least["large"])
    return {
        "small and large starts reach 100% training accuracy": (as_printed == 1, as_printed),
        "the kernel machine at least 99.9%": (least["kernel"] >= 0.999, least["kernel"]),
    }


def findings(runs: Runs) -> list[str]:
    """What the runs say beyond the checks."""
    told = [
        f"test error {told_error(runs, name)} (W prints {PRINTED[name]:.1%} on MNIST), training"
        f" accuracy {runs.field(name, 'train_accuracy').min():.3%}: {what}"
        for name, what in (
            ("small", f"alpha = {SMALL:g}"),
            ("large", f"alpha = {LARGE:g}"),
            ("output", "output layer alone"),
        )
    ]
    told.append(
        f"test error {told_error(runs, 'kernel')}, training accuracy"
        f" {runs.field('kernel', 'train_accuracy').min():.3%}: kernel machine of the large start,"
        f" not in W; it has {runs.share('kernel'):.0%} of the gap, the output layer alone, which W"
        f" takes for it, {runs.share('output'):.0%}"
    )
    turned = ", ".join(
        f"{runs.field(name, 'turned').mean():.2g} ({name})" for name in ("small", "large", "kernel")
    )
    told.append(f"grad distance between start and end, mean: {turned}")
    return told + (parts(runs) if "steps" in runs.named else [])


def parts(runs: Runs) -> list[str]:
    """The gap between large and small starts, cut by runs that differ in one thing each."""
    cuts = {
        "the outputs of the start": ("large", "steps"),
        "steps not divided by alpha^2, a perceptron's": ("steps", "kernel"),
        "the kernel regime itself": ("kernel", "small"),
    }
    told = ", ".join(
        f"{what} {runs.error(more) - runs.error(less):+.2%} ± {runs.spread(more, less):.2%}"
        for what, (more, less) in cuts.items()
    )
    return [f"what the large start errs more than the small one: {told}"]


def told_error(runs: Runs, name: str) -> str:
    return f"{runs.error(name):.2%} ± {runs.spread(name):.2%}"


def plot(runs: Runs) -> Plot:
    """Test errors of single runs: how many images they leave on either side of the gap."""
    names = [name for name in ("small", "kernel", "output", "steps", "large") if name in runs.named]
    series = [
        Series(
            name, np.full(len(runs.named[name]), float(place)), runs.field(name, "error"), "points"
        )
        for place, name in enumerate(names)
    ]
    return Plot("test error by seed", "run: " + ", ".join(names), "share of test images", series)
