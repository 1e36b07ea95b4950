"""W-F8: the smaller the start of a VGG11-like net, the longer it rests before it learns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from tacit.arguments import Array
from tacit.claims.registry import claim
from tacit.claims.woodworth.conv_net_runs import DEPTH, Course, Scene, Trained, trained
from tacit.evidence.evidence import Check, Evidence
from tacit.evidence.plot import Plot, Series
from tacit.papers.instances import slope
from tacit.studies.sizes import Size

SMALL, FAST, DEAD = (0.5, 0.7), 1.0, 2.0  # alpha
TINY = (0.2, 0.3)  # outputs below 1e-4: errors stay those of a blind guess for an epoch
SCENES = {"quick": Scene("digits", 200, 100, 16, 20), "full": Scene("cifar10", 1000, 500, 8, 50)}
STEP = {"quick": 0.03, "full": 0.03}  # one for all alphas, as W has it
LAST_LAYER = {"quick": 0.3, "full": 0.03}
EPOCHS = {"quick": 200, "full": 300}
SHORT = 10  # epochs for a start that dies in the first
SLOWER = 1.2  # one start counts as slower than another with a fifth more epochs
BLIND = 0.2  # training accuracy of a net that has learned nothing: 0.1, and what classes differ
LEFT = 2.0  # training loss below which a net has left the plateau at log 10 = 2.30


@dataclasses.dataclass(frozen=True, eq=False)
class Curves:
    """Runs by alpha with one step for all, and with the output layer alone; `dead` is too large.

    `tiny` are single epochs of the smallest starts.
    """

    scene: Scene
    step: float
    nets: Mapping[float, Trained]
    tiny: Mapping[float, Trained]
    dead: Trained
    output: Trained

    def whole(self) -> Array:
        """Epochs until every training image was right, per alpha; NaN where it never happened."""
        return np.array(
            [run.epochs[-1] if run.train_accuracy == 1 else np.nan for run in self.nets.values()]
        )

    def rests(self) -> Array:
        """Epochs on the plateau, per small alpha."""
        return np.array([rest(self.nets[alpha]) for alpha in SMALL])

    def exponent(self) -> float:
        """In alpha, of the share of their start that the smallest starts move in an epoch."""
        return rate(self.tiny)


def rate(runs: Mapping[float, Trained]) -> float:
    return slope(np.array(list(runs)), np.array([first(run) for run in runs.values()]))


def first(run: Trained) -> float:
    """How far the weights have moved after one epoch, as a share of their start."""
    return float(run.moved[run.epochs == 1][0])


def rest(run: Trained, level: float = LEFT) -> float:
    """The epoch at which the training loss first falls through `level`, between two records."""
    below = np.flatnonzero(run.losses <= level)
    if not len(below) or below[0] == 0:
        return float("nan")
    now = below[0]
    pair = slice(now - 1, now + 1)
    return float(np.interp(-level, -run.losses[pair], run.epochs[pair]))


def ran(size: Size) -> Curves:
    scene, step, epochs = SCENES[size], STEP[size], EPOCHS[size]
    nets = {
        alpha: trained(scene, Course(alpha, step, epochs, curve=True), 0)
        for alpha in (*SMALL, FAST)
    }
    tiny = {alpha: trained(scene, Course(alpha, step, 1, curve=True), 0) for alpha in TINY}
    longest = int(max(run.epochs[-1] for run in nets.values()))
    dead = trained(scene, Course(DEAD, step, SHORT, curve=True), 0)
    output = trained(scene, Course(FAST, LAST_LAYER[size], longest, output=True, curve=True), 0)
    return Curves(scene, step, nets, tiny, dead, output)


@claim(
    "W-F8",
    statement="with one step for all of them a VGG11-like net reaches 100% training accuracy from"
    " starts between alpha = 0.5 and 1, the later the smaller the start; its output layer alone"
    " does not, nor does a start that is too large for the step, as alpha = 2 is here (W's runs,"
    " with a step of 1e-4 for 2000 epochs, all reached 100%)",
    place="appendix B.2, Figure 8",
    seconds=30,
)
def training_curves(size: Size) -> Evidence:
    return evidence(ran(size))


def evidence(curves: Curves) -> Evidence:
    """What the training curves say of the statement."""
    epochs, power = curves.whole(), DEPTH - 2
    slower = Check(
        "least ratio of the epochs to 100% of one start to those of the next larger",
        float((epochs[:-1] / epochs[1:]).min()),
        SLOWER,
        kind="at least",
    )
    law = Check(
        "exponent in alpha of the share of their weights that the smallest starts move in the"
        " first epoch",
        curves.exponent(),
        float(power),
        tolerance=0.05 * power,
    )
    every = Check(
        f"least training accuracy of a start between alpha = {SMALL[0]:g} and {FAST:g}",
        min(run.train_accuracy for run in curves.nets.values()),
        1.0,
        kind="at least",
    )
    lost = Check(
        f"training accuracy from alpha = {DEAD:g}, for which the step is too long",
        curves.dead.train_accuracy,
        BLIND,
        kind="at most",
    )
    alone = Check(
        "training accuracy of the output layer alone, in as many epochs",
        curves.output.train_accuracy,
        0.99,
        kind="at most",
    )
    features = 512 // curves.scene.slimmer
    return Evidence(
        ran=f"constructed: W's plan on {curves.scene.told}, 32 x 32; He-uniform times alpha,"
        f" SGD with step {curves.step:g}, batch {curves.scene.batch}",
        premises={
            "more training images than the output layer can separate at random, two per feature": (
                curves.scene.train > 2 * features,
                curves.scene.train / features,
            ),
        },
        checks=[slower, law, every, lost, alone],
        controls={
            "the scale of the start costs no time": slower.control(1.0),
            f"exponent {DEPTH - 1}, that of the gradient": law.control(predicted=DEPTH - 1.0),
            "every start moves alike": law.control(predicted=0.0),
            f"every start learns with this step, alpha = {DEAD:g} too": every.control(
                curves.dead.train_accuracy
            ),
            "random features are enough": every.control(curves.output.train_accuracy),
            f"alpha = {DEAD:g} learns as alpha = {FAST:g} does": lost.control(
                curves.nets[FAST].train_accuracy
            ),
            "all layers for the output layer": alone.control(curves.nets[FAST].train_accuracy),
        },
        findings=findings(curves),
        plots=[plot(curves)],
    )


def findings(curves: Curves) -> list[str]:
    """What the curves say beyond the checks."""
    both = zip(curves.nets, curves.whole(), strict=True)
    rests = zip(SMALL, curves.rests(), strict=True)
    return [
        "epochs until all training images are right: "
        + ", ".join(f"{count:.0f} (alpha = {alpha:g})" for alpha, count in both),
        f"epochs until the training loss is {LEFT:g}: "
        + ", ".join(f"{count:.1f} (alpha = {alpha:g})" for alpha, count in rests)
        + f". Near zero the outputs are alpha^{DEPTH} g(w / alpha) and the errors those of a blind"
        f" guess, so w / alpha moves at the rate alpha^{DEPTH - 2}: the first epoch has the"
        f" exponent {curves.exponent():.2f} at the smallest starts,"
        f" {rate(_small(curves)):.2f} at these, whose outputs react. Over them the rest on the"
        " plateau goes as"
        f" alpha^{slope(np.array(SMALL), curves.rests()):.1f}, where the rate alone gives"
        f" {2 - DEPTH}",
        f"the window of one step is narrow at depth {DEPTH}: from alpha = {DEAD:g} the first"
        f" steps are {DEAD ** (DEPTH - 2):g} times longer in units of the weights than from"
        f" alpha = 1, and the net ends at a training accuracy of {curves.dead.train_accuracy:.1%}"
        f" and a loss of {curves.dead.losses[-1]:.3f} (log 10 = {np.log(10):.3f}: no unit is left"
        " on)",
        f"output layer alone: a training accuracy of {curves.output.train_accuracy:.1%} (W:"
        " 50.38%, with 50000 images and 512 features)",
    ]


def _small(curves: Curves) -> dict[float, Trained]:
    return {alpha: curves.nets[alpha] for alpha in SMALL}


def plot(curves: Curves) -> Plot:
    series = [
        Series(f"alpha = {alpha:g}", run.epochs, run.losses) for alpha, run in curves.nets.items()
    ]
    series.append(
        Series("output layer alone", curves.output.epochs, curves.output.losses, "dashed")
    )
    return Plot("training curves, one step for all", "epochs", "training loss", series)
