"""The bank of labelled curves on which tacit.grokking is scored; no constant was tuned on it.

    python tests/support/grokking_bank.py tests/measures/grokking_bank.npz sheet.png

trains the runs (two minutes of one processor), writes all curves and draws them. Every label was
given by looking at this sheet, before the detector was run on the curves.
"""

from __future__ import annotations

import sys

import numpy as np

import grokking_runs as runs

LEVEL = {False: 0.95, True: 0.05}  # of accuracies, of errors


def invented(shape, draws=0, first=10.0, last=4.0, count=100, linear=False, seed=0, spikes=0):
    """Training that is solved near `first`, and test(t) = shape(log10 t) counted on `draws`."""
    t = np.linspace(0, 10**last, count) if linear else np.geomspace(1, 10**last, count)
    rng = np.random.default_rng(seed)
    train = -np.expm1(-((t / first) ** 2) * 3)
    test = np.clip(shape(np.log10(np.maximum(t, 1e-3))), 0, 1)
    if draws:
        train, test = (rng.binomial(draws, curve) / draws for curve in (train, test))
    test[rng.choice(count, spikes, replace=False)] *= 0.5
    return {"t": t, "train": train, "test": test}


def gompertz(middle, rate, low=0.1, high=1.0):
    """A rise that starts suddenly and ends slowly, in log time."""
    return lambda x: low + (high - low) * np.exp(-np.exp(-rate * (x - middle)))


def straight(begin, end, low=0.1, high=1.0):
    return lambda x: np.interp(x, [begin, end], [low, high])


def through(*points):
    """Straight lines between the points (log10 t, accuracy)."""
    return lambda x: np.interp(x, *np.transpose(points))


def plus(*shapes):
    return lambda x: sum(shape(x) for shape in shapes)


ERRORS = (runs.sparse, runs.recovery, runs.completion, runs.spectrum)  # the others: accuracies
BANK = {
    "addition mod 23, MLP": (runs.mlp, {}, "grok"),
    "addition mod 29, MLP": (
        runs.mlp,
        {"steps": 10000, "modulus": 29, "fraction": 0.5, "seed": 1},
        "grok",
    ),
    "multiplication mod 23, MLP": (runs.mlp, {"steps": 8000, "operation": "*", "seed": 2}, "grok"),
    "addition mod 23, MLP, small decay": (
        runs.mlp,
        {"steps": 20000, "decay": 0.3, "fraction": 0.5},
        "grok",
    ),
    "addition mod 23, MLP, no decay": (runs.mlp, {"steps": 10000, "decay": 0.0}, "none"),
    "addition mod 23, MLP, wrong labels": (
        runs.mlp,
        {"steps": 10000, "wrong": 0.05, "decay": 0.5},
        "grok",
    ),
    "addition mod 23, MLP, wrong training labels": (
        runs.mlp,
        {"steps": 10000, "wrong": 0.05, "everywhere": False, "decay": 0.5},
        "grok",
    ),
    "permutations of 4, MLP": (runs.group, {}, "none"),
    "addition mod 23, quadratic": (runs.quadratic, {"steps": 60000}, "slow"),
    "addition mod 23, quadratic, large start": (
        runs.quadratic,
        {"alpha": 3.0, "steps": 60000},
        "grok",
    ),
    "addition mod 31, quadratic": (
        runs.quadratic,
        {"modulus": 31, "fraction": 0.7, "seed": 3, "steps": 10000},
        "grok",
    ),
    "addition mod 23, quadratic, wrong labels": (
        runs.quadratic,
        {"wrong": 0.1, "fraction": 0.7},
        "slow",
    ),
    "addition mod 23, quadratic, wrong training labels": (
        runs.quadratic,
        {"wrong": 0.05, "fraction": 0.7, "everywhere": False},
        "grok",
    ),
    "addition mod 23, quadratic, few pairs": (
        runs.quadratic,
        {"fraction": 0.4, "steps": 10000},
        "none",
    ),
    "addition mod 31, quadratic, cut at 0.4": (
        runs.quadratic,
        {"modulus": 31, "fraction": 0.7, "seed": 3, "steps": 10000, "until": 0.4},
        "in progress",
    ),
    "addition mod 31, quadratic, cut at 0.8": (
        runs.quadratic,
        {"modulus": 31, "fraction": 0.7, "seed": 3, "steps": 10000, "until": 0.8},
        "in progress",
    ),
    "addition mod 29, MLP, cut at 0.7": (
        runs.mlp,
        {"steps": 10000, "modulus": 29, "fraction": 0.5, "seed": 1, "until": 0.7},
        "in progress",
    ),
    "addition mod 29, MLP, cut at 0.85": (
        runs.mlp,
        {"steps": 10000, "modulus": 29, "fraction": 0.5, "seed": 1, "until": 0.85},
        "in progress",
    ),
    "addition mod 23, MLP, cut at 0.8": (runs.mlp, {"until": 0.8}, "in progress"),
    "digits": (runs.digits, {"steps": 5000}, "none"),
    "digits, start x 8": (runs.digits, {"alpha": 8.0}, "slow"),
    "digits, start x 20": (runs.digits, {"alpha": 20.0}, "grok"),
    "digits, start x 30": (
        runs.digits,
        {"alpha": 30.0, "decay": 0.1, "steps": 40000, "rate": 0.003},
        "grok",
    ),
    "digits, start x 30, cut at 0.75": (
        runs.digits,
        {"alpha": 30.0, "decay": 0.1, "steps": 40000, "rate": 0.003, "until": 0.75},
        "in progress",
    ),
    "60 digits, start x 20": (
        runs.digits,
        {"alpha": 20.0, "decay": 1.0, "train": 60, "seed": 3},
        "grok",
    ),
    "digits, wrong labels": (runs.digits, {"wrong": 0.4, "width": 400, "steps": 10000}, "none"),
    "digits, start x 8, wrong labels": (
        runs.digits,
        {"alpha": 8.0, "wrong": 0.2, "decay": 1.0},
        "none",
    ),
    "majority, norm 64": (runs.diagonal, {"norm": 64.0, "decay": 0.01}, "grok"),
    "majority, norm 256": (runs.diagonal, {"norm": 256.0, "decay": 0.01, "seed": 1}, "grok"),
    "majority, norm 0.5": (runs.diagonal, {"norm": 0.5, "decay": 0.01}, "grok"),
    "majority, 30 samples": (
        runs.diagonal,
        {"norm": 64.0, "decay": 0.01, "samples": 30, "seed": 2, "end": 60.0},
        "grok",
    ),
    "gap 5": (
        runs.diagonal,
        {"norm": 64.0, "decay": 0.01, "gap": 5.0, "samples": 32, "dimension": 300, "seed": 2},
        "misgrok",
    ),
    "gap 3": (
        runs.diagonal,
        {"norm": 64.0, "decay": 0.01, "gap": 3.0, "samples": 32, "dimension": 500, "seed": 3},
        "misgrok",
    ),
    "gap 8": (
        runs.diagonal,
        {"norm": 64.0, "decay": 0.01, "gap": 8.0, "samples": 32, "dimension": 500},
        "none",
    ),
    "noisy sparse truth": (
        runs.sparse,
        {"alpha": 10.0, "decay": 0.01, "noise": 0.3, "seed": 1},
        "double descent",
    ),
    "noisy sparse truth, less noise": (
        runs.sparse,
        {"alpha": 10.0, "decay": 0.01, "noise": 0.2, "samples": 40, "seed": 4},
        "grok",
    ),
    "noisy sparse truth, more noise": (
        runs.sparse,
        {"alpha": 10.0, "decay": 0.001, "noise": 0.5},
        "misgrok",
    ),
    "noisy sparse truth, another": (
        runs.sparse,
        {"alpha": 10.0, "decay": 0.01, "noise": 0.3, "seed": 5},
        "misgrok",
    ),
    "noisy sparse truth, smaller start": (
        runs.sparse,
        {"alpha": 3.0, "decay": 0.01, "noise": 0.3, "samples": 48, "seed": 8},
        "double descent",
    ),
    "recovery, l2, 40 samples": (
        runs.recovery,
        {"penalty": "l2", "beta": 1e-3, "steps": 100000, "start": 0.5, "samples": 40, "seed": 3},
        "mirage",
    ),
    "completion, l2, more decay": (
        runs.completion,
        {"beta": 3e-4, "steps": 300000, "start": 10.0, "seed": 1},
        "mirage",
    ),
    "recovery, l2": (runs.recovery, {"penalty": "l2", "beta": 1e-4, "steps": 1000000}, "mirage"),
    "recovery, l2, 50 samples": (
        runs.recovery,
        {"penalty": "l2", "beta": 1e-3, "steps": 100000, "start": 0.3, "samples": 50, "seed": 1},
        "mirage",
    ),
    "recovery, l1": (
        runs.recovery,
        {"penalty": "l1", "beta": 1e-4, "steps": 300000, "samples": 50},
        "grok",
    ),
    "completion, l2": (runs.completion, {"beta": 1e-4, "steps": 300000, "start": 10.0}, "mirage"),
    "features as 1/i": (runs.spectrum, {"power": 1.0, "steps": 100000}, "slow"),
    "features as 1/i^1.5": (runs.spectrum, {"power": 1.5, "steps": 300000}, "none"),
    "features as 1/i, noise": (
        runs.spectrum,
        {"power": 1.0, "steps": 300000, "noise": 0.3},
        "misgrok",
    ),
    "logistic regression": (runs.margin, {"steps": 300000}, "none"),
    "invented: a jump that ends slowly": (
        invented,
        {"shape": gompertz(2.5, 8.0), "draws": 200},
        "grok",
    ),
    "invented: the same on few samples": (
        invented,
        {"shape": gompertz(2.5, 8.0), "draws": 40, "seed": 1},
        "grok",
    ),
    "invented: a jump to 0.85": (
        invented,
        {"shape": gompertz(2.5, 8.0, high=0.85), "draws": 300, "seed": 2},
        "grok",
    ),
    "invented: a jump to 0.6": (
        invented,
        {"shape": gompertz(2.0, 8.0, low=0.3, high=0.6), "draws": 300, "seed": 3},
        "grok",
    ),
    "invented: two steps": (
        invented,
        {
            "shape": plus(gompertz(2.0, 12.0, 0.1, 0.5), gompertz(4.5, 12.0, 0.0, 0.5)),
            "last": 6.0,
            "draws": 200,
            "seed": 4,
        },
        "grok",
    ),
    "invented: a straight line": (
        invented,
        {"shape": straight(1.5, 4.5), "last": 5.0, "draws": 200, "seed": 5},
        "slow",
    ),
    "invented: a straight line to the end": (
        invented,
        {"shape": straight(1.5, 5.5), "last": 5.0, "draws": 200, "seed": 6},
        "slow",
    ),
    "invented: a jump that has begun": (
        invented,
        {"shape": gompertz(4.0, 5.0), "draws": 200, "seed": 7},
        "in progress",
    ),
    "invented: a jump nearly done": (
        invented,
        {"shape": gompertz(3.75, 6.0), "draws": 500, "seed": 8},
        "in progress",
    ),
    "invented: a jump, linear times": (
        invented,
        {
            "shape": gompertz(3.6, 30.0),
            "linear": True,
            "count": 150,
            "draws": 100,
            "seed": 9,
            "first": 300.0,
        },
        "grok",
    ),
    "invented: a jump, 14 records": (invented, {"shape": gompertz(2.5, 8.0), "count": 14}, "grok"),
    "invented: a jump with spikes": (
        invented,
        {"shape": gompertz(2.5, 8.0), "draws": 200, "spikes": 6, "seed": 10},
        "grok",
    ),
    "invented: better, worse, better": (
        invented,
        {
            "shape": through((0, 0.1), (0.7, 0.75), (1.5, 0.4), (2.3, 0.4), (3.2, 0.85)),
            "draws": 200,
            "seed": 11,
        },
        "double descent",
    ),
    "invented: solved, lost, solved": (
        invented,
        {
            "shape": through((0, 0.1), (0.8, 1), (1.8, 1), (2.3, 0.5), (2.8, 0.5), (3.2, 1)),
            "draws": 200,
            "seed": 12,
        },
        "double descent",
    ),
    "invented: a bump before the jump": (
        invented,
        {
            "shape": through((0, 0.05), (0.6, 0.25), (1.2, 0.08), (2.7, 0.1), (3.0, 1)),
            "draws": 200,
            "seed": 13,
        },
        "grok",
    ),
    "invented: good, then worse": (
        invented,
        {"shape": through((0, 0.1), (0.9, 0.9), (2.5, 0.9), (3.2, 0.6)), "draws": 200, "seed": 14},
        "misgrok",
    ),
    "invented: solved, then lost": (
        invented,
        {
            "shape": through((0, 0.1), (2.0, 0.1), (2.3, 1.0), (3.3, 1.0), (3.6, 0.3)),
            "draws": 200,
            "seed": 15,
        },
        "misgrok",
    ),
    "invented: test with training": (
        invented,
        {"shape": gompertz(0.6, 8.0), "draws": 200, "seed": 16},
        "none",
    ),
    "invented: test with training to 0.8": (
        invented,
        {"shape": gompertz(0.6, 8.0, high=0.8), "draws": 100, "seed": 17},
        "none",
    ),
    "invented: chance": (
        invented,
        {"shape": straight(0, 1, 0.1, 0.1), "draws": 50, "seed": 18},
        "none",
    ),
}


def curve(name):
    """Times, training, test, and norm and floor where they are known; accuracies or errors."""
    make, given, _ = BANK[name]
    given = dict(given)
    value = given.pop("until", None)
    seen = make(**given)
    if value is not None:
        end = int(np.argmax(seen["test"] >= value)) + 1
        seen = {name: curve[:end] for name, curve in seen.items()}
    return seen


def write(file):
    """All curves in one file, in single precision."""
    found = {}
    for name in BANK:
        for part, values in curve(name).items():
            found[f"{name}/{part}"] = np.asarray(values, np.float32)
    np.savez_compressed(file, **found)


def read(file):
    """The arguments of tacit.grokking for every curve, by name."""
    found = {name: {} for name in BANK}
    with np.load(file) as stored:
        for key in stored.files:
            name, part = key.rsplit("/", 1)
            found[name][part] = stored[key].astype(float)
    for name, given in found.items():
        given["error"] = BANK[name][0] in ERRORS
        given["level"] = LEVEL[given["error"]]
        if "floor" in given:
            given["floor"] = float(given["floor"])
    return found


def draw(curves, file):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(-(-len(curves) // 6), 6, figsize=(20, 2.4 * len(curves) / 6))
    for number, (ax, (name, seen)) in enumerate(zip(axes.flat, curves.items(), strict=False)):
        for part, colour in (("train", "0.6"), ("test", "C0")):
            ax.plot(np.maximum(seen["t"], 1e-9), seen[part], ".-", color=colour, ms=2, lw=1)
        ax.axhline(seen["level"], lw=0.4)
        ax.set_title(f"{number} {name}", fontsize=8)
        ax.set_xscale("log")
        if max(seen["test"]) > 1.5:
            ax.set(yscale="log", ylim=(1e-3, None))
        else:
            ax.set_ylim(-0.03, 1.03)
    figure.tight_layout()
    figure.savefig(file, dpi=60)


if __name__ == "__main__":
    write(sys.argv[1])
    draw(read(sys.argv[1]), sys.argv[2])
