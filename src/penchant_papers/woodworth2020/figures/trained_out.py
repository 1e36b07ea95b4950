"""Appendix B.2: nets on digits at their best rate are trained on until nothing is left to learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from penchant import GradientDescent, Path, train
from penchant.lab import Dataset, Evidence, Experiment, at_least, at_most, log_log, sized
from penchant.models import dense_net
from penchant.problems import Images
from penchant.record import At
from penchant.stop import Accuracy, Epochs, Loss, Stop
from penchant_papers.woodworth2020.figures.digit_images import present
from penchant_papers.woodworth2020.figures.wide_nets import DIGITS, WHOLE, loaded

TITLE = (
    r"From small starts a net reaches a loss of $10^{-5}$ long after its last error, "
    "from large ones with it"
)
GOAL = 1e-5  # mean cross-entropy
RATES = (1.0, 0.5, 0.25)
SMALLER = "128 of the small digits of scikit-learn in place of MNIST, 300 units for 5000"


def descended(
    images: Images,
    alpha: float,
    rate: float,
    seed: int,
    *,
    width: int,
    batch: int,
    stop: list[Stop],
) -> Path:
    """SGD from one start; the rate and the seed give the same steps, wherever they end."""
    net = dense_net((width,), alpha=alpha, seed=seed)
    return train(
        net,
        images,
        GradientDescent(rate),
        batch=batch,
        seed=seed,
        stop=stop,
        record=At(epochs=[1]),
    )


def cell(
    alpha: float,
    seed: int,
    *,
    images: str,
    otherwise: str,
    train: int,
    width: int,
    batch: int,
    epochs: int,
    most: int,
) -> dict[str, Any]:
    """The best rate of one start, by the test error when all images are right, and its end.

    `first_accuracy` is that on the training images after the first epoch.
    """
    name, instead = present(images, otherwise)
    data, given = loaded(name, train, seed), {"width": width, "batch": batch}
    right: list[Stop] = [Epochs(epochs), Accuracy(train=1.0)]
    tried = {rate: descended(data, alpha, rate, seed, stop=right, **given) for rate in RATES}
    last = {rate: path.dataset.isel(time=-1) for rate, path in tried.items()}
    fits = [rate for rate in RATES if float(last[rate].train_accuracy) == 1]
    rate = min(fits or RATES, key=lambda rate: -float(last[rate].test_accuracy))
    goal: list[Stop] = [Epochs(most), Loss(GOAL)]
    path = descended(data, alpha, rate, seed, stop=goal, **given).dataset
    end = path.isel(time=-1)
    return {
        "rate": rate,
        "fits": len(fits),
        "right": float(last[rate].epoch),
        "loss_right": float(last[rate].loss),
        "error_right": 1 - float(last[rate].test_accuracy),
        "taken": round(float(end.epoch)),
        "first_accuracy": float(path.train_accuracy[path.epoch.values == 1][0]),
        "loss": float(end.loss),
        "train_accuracy": float(end.train_accuracy),
        "error": 1 - float(end.test_accuracy),
        "instead": instead,
    }


study = sized(
    "W-loss",
    title=TITLE,
    function=cell,
    arguments={**DIGITS, "train": 128, "batch": 16, "epochs": 600, "most": 60_000},
    grid={"alpha": [0.5, 2.0, 50.0, 200.0]},
    seeds=1,
    labels={
        "alpha": r"initial scale $\alpha$, as a factor on the He initialization",
        "rate": "learning rate of the least test error",
        "right": "epochs until all training images are right",
        "loss_right": "training loss then",
        "loss": "training loss at the end",
    },
    tiny={"grid": {"alpha": [6.0, 50.0]}},
    printed={"arguments": {**WHOLE, "epochs": 100, "most": 5000}},
)


def check(dataset: Dataset) -> Evidence:
    """The loss and the accuracy that every net ends with, at the best rate of its start."""
    rows = dataset.isel(seed=0)
    reached = at_most(rows.loss.max(), GOAL)
    every = at_least(rows.train_accuracy.min(), 1.0)
    rates = ", ".join(
        f"{float(row.rate):g} ({a:g})"
        for a, row in zip(rows.alpha.values, [rows.sel(alpha=a) for a in rows.alpha], strict=True)
    )
    fitted = int(rows.fits.min())
    return Evidence(
        ran=rf"one net of each start, $\alpha$ = {', '.join(f'{a:g}' for a in rows.alpha.values)}; "
        f"the best of the rates {', '.join(f'{rate:g}' for rate in RATES)} by the test error when "
        f"all training images are right: {rates}; then on at this rate. "
        + str(rows.instead.values.flat[0]),
        checks={
            "largest training loss": reached,
            "least training accuracy": every,
        },
        premises={
            "every start has a rate that fits all training images": (fitted > 0, fitted),
        },
        controls={
            "where all images are right (largest)": reached.control(rows.loss_right.max()),
            "after the first epoch (largest)": every.control(rows.first_accuracy.max()),
        },
        findings=[
            rf"$\alpha = {a:g}$: all images right after {float(row.right):.0f} epochs at a loss of "
            f"{float(row.loss_right):.2g}; {float(row.loss):.2g} after {int(row.taken)}; test "
            f"error {float(row.error_right):.1%} and {float(row.error):.1%}"
            for a, row in zip(
                rows.alpha.values, [rows.sel(alpha=a) for a in rows.alpha], strict=True
            )
        ],
        plots=[
            log_log(
                "training goes on after the last error",
                r"scale of the start $\alpha$",
                "training loss, mean cross-entropy",
                [
                    ("all images right", rows.alpha, np.maximum(rows.loss_right, 1e-12), "points"),
                    ("end", rows.alpha, np.maximum(rows.loss, 1e-12), "points"),
                    (r"$10^{-5}$", rows.alpha.values[[0, -1]], np.full(2, GOAL), "dashed"),
                ],
                caption="Losses below $10^{-12}$ are drawn there.",
            )
        ],
    )


experiment = Experiment(
    "W-loss",
    statement="At the learning rate that generalizes best, the best of several for each $\\alpha$, "
    "every net reaches 100% training accuracy and a cross-entropy below $10^{-5}$.",
    place="appendix B.2, MNIST",
    study=study,
    check=check,
    title=TITLE,
    ours="the scales and the rates",
    scope={"tiny": SMALLER, "quick": SMALLER, "printed": "one seed, rates of our own"},
    seconds=12,
)
